//! A server that answers as a test says, kept alive unless it says otherwise, and keeps what it was asked.
//! Each reply takes some milliseconds, so that many tools run beside each other. Owns its threads; they
//! end with it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// What it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// Answers.
    Plain,
    /// Says that each reply is the last on its connection.
    Closes,
    /// Ends each connection behind its reply, without saying so.
    ClosesSilently,
    /// Ends each connection without a reply.
    NoReply,
    /// Resets each connection within its reply.
    Resets,
    /// Answers with what is no HTTP.
    Junk,
    /// With that status.
    Status(u16),
    /// Never.
    Hangs,
    /// After so many milliseconds.
    Slow(u64),
    /// The tenth after so many milliseconds.
    Stalls(u64),
    /// In chunks.
    Chunked,
    /// Without a length, up to the end of the connection.
    Unbounded,
    /// 401, but for those who bring the token that it gave them.
    Guarded,
}

/// Requests that are kept, at most.
const ASKED_MAX: usize = 10_000;

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
        {
            let mut asked = asked.lock().unwrap();
            if asked.len() < ASKED_MAX {
                asked.push(request);
            }
        }
        let nth = count.fetch_add(1, Ordering::SeqCst) + 1;
        let wait = match manner {
            Manner::Slow(millis) => millis,
            Manner::Stalls(millis) if nth == 10 => millis,
            // wrk's threads do not wait for the lines that its first thread prints when all have begun.
            _ if nth == 1 => 100,
            _ => 3,
        };
        std::thread::sleep(Duration::from_millis(wait));
        let goes_on = match manner {
            Manner::Resets => {
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab").ok();
                // The client has read it by then, or the reset would take it away.
                std::thread::sleep(Duration::from_millis(50));
                socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
                return;
            }
            Manner::NoReply => false,
            Manner::Hangs => {
                while !over.load(Ordering::SeqCst) {
                    std::thread::sleep(Duration::from_millis(20));
                }
                false
            }
            _ => {
                stream.write_all(&reply(manner, nth, &text)).ok();
                let ends =
                    [Manner::Closes, Manner::ClosesSilently, Manner::Junk, Manner::Unbounded];
                !ends.contains(&manner)
            }
        };
        if !goes_on {
            stream.shutdown(Shutdown::Both).ok();
            return;
        }
    }
}

fn reply(manner: Manner, nth: u64, request: &str) -> Vec<u8> {
    let target = request.split(' ').nth(1).unwrap_or_default();
    let text = match manner {
        Manner::Closes => {
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello".to_owned()
        }
        Manner::Junk => "hello\r\n\r\n".to_owned(),
        Manner::Status(304) => "HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n".to_owned(),
        Manner::Status(status) => {
            format!("HTTP/1.1 {status} X\r\nX-Status: {status}\r\nContent-Length: 5\r\n\r\nhello")
        }
        Manner::Chunked => {
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n"
                .to_owned()
        }
        Manner::Unbounded => "HTTP/1.0 200 OK\r\nServer: un/1\r\n\r\nhello".to_owned(),
        Manner::Guarded if request.contains("X-Token: abc") => {
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello".to_owned()
        }
        Manner::Guarded => {
            let status = if target == "/authenticate" { "200 OK" } else { "401 No" };
            format!("HTTP/1.1 {status}\r\nX-Token: abc\r\nContent-Length: 0\r\n\r\n")
        }
        _ => format!(
            "HTTP/1.1 200 OK\r\nX-Nth: {}\r\nx-lower:  a b \r\nX-Twice: 1\r\nX-Twice: 2\r\n\
             Content-Length: 5\r\n\r\nhello",
            nth.min(9)
        ),
    };
    text.into_bytes()
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
