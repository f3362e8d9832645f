//! A server that answers as a test says, down to the way in which it ends a connection: what real
//! servers do once in a thousand requests it does at the fifth. Owns its threads; they end with it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// What it does at its fifth request, or at each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// Nothing special; keeps what it was asked.
    Plain,
    /// The fifth connection is reset, before a reply or within one.
    ResetBefore,
    ResetWithin,
    /// The fifth reply is cut off by an orderly end, or there is none.
    CutOff,
    NoReply,
    /// The fifth reply never comes.
    Hangs,
    /// Every reply is chunked.
    Chunked,
    /// Every body ends with its connection, and no length is told.
    Unbounded,
    /// Every third reply has another length.
    Lengths,
    /// Every reply is a redirect without a body, by a server that has no name.
    Nameless,
}

pub struct Scripted {
    addr: SocketAddr,
    asked: Arc<Mutex<Vec<Vec<u8>>>>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Scripted {
    pub fn start(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let over = Arc::new(AtomicBool::new(false));
        let (keep, ended) = (Arc::clone(&asked), Arc::clone(&over));
        let thread = std::thread::spawn(move || {
            let count = Arc::new(AtomicU64::new(0));
            while let Ok((stream, _)) = listener.accept() {
                if ended.load(Ordering::SeqCst) {
                    return;
                }
                let (keep, count, ended) =
                    (Arc::clone(&keep), Arc::clone(&count), Arc::clone(&ended));
                std::thread::spawn(move || serve(stream, manner, &count, &keep, &ended));
            }
        });
        Self { addr, asked, over, thread: Some(thread) }
    }

    pub fn port(&self) -> u16 {
        self.addr.port()
    }

    /// Every request so far, whole.
    pub fn asked(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        // One more connection wakes the thread that accepts.
        TcpStream::connect(self.addr).ok();
        self.thread.take().map(JoinHandle::join);
    }
}

/// One connection, until either side ends it.
fn serve(
    stream: TcpStream,
    manner: Manner,
    count: &AtomicU64,
    asked: &Mutex<Vec<Vec<u8>>>,
    over: &AtomicBool,
) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    while let Some(request) = request(&mut reader) {
        let text = String::from_utf8_lossy(&request).into_owned();
        let keeps = text.to_lowercase().contains("connection: keep-alive");
        asked.lock().unwrap().push(request);
        let nth = count.fetch_add(1, Ordering::SeqCst) + 1;
        let goes_on = match manner {
            Manner::ResetBefore if nth == 5 => return reset(&stream),
            Manner::ResetWithin if nth == 5 => {
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab").ok();
                // The client has read it by then, or the reset would take it away.
                std::thread::sleep(Duration::from_millis(100));
                return reset(&stream);
            }
            Manner::CutOff if nth == 5 => {
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab").ok();
                false
            }
            Manner::NoReply if nth == 5 => false,
            Manner::Hangs if nth == 5 => {
                while !over.load(Ordering::SeqCst) {
                    std::thread::sleep(Duration::from_millis(20));
                }
                false
            }
            _ => {
                let is_head = text.starts_with("HEAD");
                stream.write_all(&reply(manner, nth, keeps, is_head)).ok();
                keeps && manner != Manner::Unbounded
            }
        };
        if !goes_on {
            stream.shutdown(Shutdown::Both).ok();
            return;
        }
    }
}

fn reply(manner: Manner, nth: u64, keeps: bool, is_head: bool) -> Vec<u8> {
    let connection = if keeps { "Connection: keep-alive\r\n" } else { "" };
    let (status, fields, body) = match manner {
        Manner::Chunked => {
            ("200 OK", "Transfer-Encoding: chunked\r\n".to_owned(), "5\r\nhello\r\n0\r\n\r\n")
        }
        Manner::Unbounded => return b"HTTP/1.0 200 OK\r\nServer: un/1\r\n\r\nhello".to_vec(),
        Manner::Nameless => ("302 Found", "Content-Length: 0\r\n".to_owned(), ""),
        Manner::Lengths if nth.is_multiple_of(3) => {
            ("200 OK", "Server: s/2\r\nContent-Length: 7\r\n".to_owned(), "another")
        }
        _ => ("200 OK", "Server: s/2 (x)\r\nContent-Length: 5\r\n".to_owned(), "hello"),
    };
    let body = if is_head { "" } else { body };
    format!("HTTP/1.1 {status}\r\n{fields}{connection}\r\n{body}").into_bytes()
}

/// A head, and a body of the length that it tells.
fn request(reader: &mut BufReader<TcpStream>) -> Option<Vec<u8>> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        if reader.read_until(b'\n', &mut request).ok()? == 0 {
            return None;
        }
    }
    let head = String::from_utf8_lossy(&request).to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    let mut body = vec![0; length.map_or(0, |digits| digits.trim().parse().unwrap())];
    reader.read_exact(&mut body).ok()?;
    request.extend(body);
    Some(request)
}

fn reset(stream: &TcpStream) {
    let socket = socket2::SockRef::from(stream);
    socket.set_linger(Some(Duration::ZERO)).unwrap();
    // Both handles of it are closed when their owner returns.
}
