//! A server whose answers a test defines, down to the bytes and the way in which a connection ends: the classic tools
//! and our replacements are both tested with it. Owns its threads, which end with it, and the recorded requests. Start
//! reading at [`Scripted::start`].

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// Most requests that are kept.
const ASKED_MAX: usize = 10_000;

pub(crate) struct Scripted {
    addr: SocketAddr,
    talk: Arc<Talk>,
    thread: Option<JoinHandle<()>>,
}

/// The state that all connections share.
#[derive(Default)]
struct Talk {
    asked: Mutex<Vec<Vec<u8>>>,
    n_asked: AtomicU64,
    over: AtomicBool,
}

impl Scripted {
    /// On a port of its own; `serve` gets each connection on a thread, and its return ends the connection.
    pub(crate) fn start(serve: impl Fn(&mut Connection) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let talk = Arc::new(Talk::default());
        let (common, serve) = (Arc::clone(&talk), Arc::new(serve));
        let thread = std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                if common.over.load(Ordering::SeqCst) {
                    return;
                }
                let (talk, serve) = (Arc::clone(&common), Arc::clone(&serve));
                let reader = BufReader::new(stream.try_clone().unwrap());
                let mut connection = Connection { reader, stream, talk, is_reset: false };
                std::thread::spawn(move || {
                    serve(&mut connection);
                    connection.end();
                });
            }
        });
        Self { addr, talk, thread: Some(thread) }
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }

    pub(crate) fn port(&self) -> u16 {
        self.addr.port()
    }

    /// Every complete request since the last call.
    pub(crate) fn asked(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.talk.asked.lock().unwrap())
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.talk.over.store(true, Ordering::SeqCst);
        // One more connection wakes the accepting thread.
        TcpStream::connect(self.addr).ok();
        self.thread.take().map(JoinHandle::join);
    }
}

pub(crate) struct Connection {
    reader: BufReader<TcpStream>,
    stream: TcpStream,
    talk: Arc<Talk>,
    is_reset: bool,
}

impl Connection {
    /// The next request, head and body of the announced length, and its number among all, from 1; `None` when the
    /// client has ended the connection.
    pub(crate) fn request(&mut self) -> Option<(String, u64)> {
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            if self.reader.read_until(b'\n', &mut request).ok()? == 0 {
                return None;
            }
        }
        let head = String::from_utf8_lossy(&request).to_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
        let mut body = vec![0; length.map_or(0, |digits| digits.trim().parse().unwrap())];
        self.reader.read_exact(&mut body).ok()?;
        request.extend(body);
        let text = String::from_utf8_lossy(&request).into_owned();
        let mut asked = self.talk.asked.lock().unwrap();
        if asked.len() < ASKED_MAX {
            asked.push(request);
        }
        Some((text, self.talk.n_asked.fetch_add(1, Ordering::SeqCst) + 1))
    }

    /// The port of the server.
    pub(crate) fn port(&self) -> u16 {
        self.stream.local_addr().unwrap().port()
    }

    /// Sends bytes; ignores a client that has gone.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).ok();
    }

    /// Makes the connection end by a reset.
    pub(crate) fn reset(&mut self) {
        self.is_reset = true;
    }

    /// Sends nothing until the server ends.
    pub(crate) fn hang(&self) {
        while !self.talk.over.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn end(self) {
        if self.is_reset {
            // Both handles are closed here, which sends the reset.
            socket2::SockRef::from(&self.stream).set_linger(Some(Duration::ZERO)).unwrap();
        } else {
            self.stream.shutdown(Shutdown::Both).ok();
        }
    }
}
