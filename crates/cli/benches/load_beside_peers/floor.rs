//! The bare loop: the cost of a generator over epoll that knows the length of every reply in
//! advance, so it neither parses nor stamps, and counts only bytes. The distance between it and our
//! generator is the cost of reading replies. The bench calls itself with [`ARGUMENT`] to run it in
//! a process of its own, like any other generator.
//!
//! A request costs a send and a receive (two for a body above 4 KB: the first bytes are copied, as
//! for any generator that reads heads, and the rest is discarded in the kernel), and a share of an
//! `epoll_wait`. Start reading at [`run`].

use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use crate::Outcome;
use crate::beside::http::{reply_bytes, request};

/// First argument of the bench as the bare loop; ADDRESS, PATH, CONNECTIONS and SECONDS follow.
pub const ARGUMENT: &str = "--bare-loop";

/// Most bytes that are copied of each reply.
const HEAD_BYTES: usize = 4096;
/// Most bytes that are discarded in one call.
const DISCARD_BYTES: usize = 1 << 20;
/// Most events taken by one `epoll_wait`.
const EVENTS: usize = 256;

/// One connection, always with a request in flight.
struct Conn {
    stream: TcpStream,
    /// Bytes of the reply that are still to come, at least 1.
    left: usize,
}

/// The state that all connections share.
struct Loop {
    request: Vec<u8>,
    reply_bytes: usize,
    /// Receives heads; bodies are discarded, so most of its pages are never touched.
    buffer: Vec<u8>,
}

/// Loads the server for a while and prints the number of replies, and the seconds.
pub fn run(args: &[String]) -> Outcome<()> {
    let [addr, path, connections, seconds] = args else {
        return Err(format!("{ARGUMENT} wants ADDRESS PATH CONNECTIONS SECONDS").into());
    };
    let addr: SocketAddr = addr.parse()?;
    let mut bare = Loop {
        request: request(addr, path),
        reply_bytes: reply_bytes(addr, path)?,
        buffer: vec![0; DISCARD_BYTES],
    };
    let mut conns = Vec::new();
    let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    for index in 0..connections.parse()? {
        let mut stream = TcpStream::connect(addr)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        epoll::add(&poll, &stream, epoll::EventData::new_u64(index), epoll::EventFlags::IN)?;
        stream.write_all(&bare.request)?;
        conns.push(Conn { stream, left: bare.reply_bytes });
    }
    let window = Duration::from_secs(seconds.parse()?);
    let begun = Instant::now();
    let mut events = Vec::with_capacity(EVENTS);
    let mut answered: u64 = 0;
    while begun.elapsed() < window {
        events.clear();
        let patience = Timespec { tv_sec: 1, tv_nsec: 0 };
        epoll::wait(&poll, rustix::buffer::spare_capacity(&mut events), Some(&patience))?;
        for event in &events {
            answered += u64::from(bare.advance(&mut conns[event.data.u64() as usize])?);
        }
    }
    println!("{answered} {}", begun.elapsed().as_secs_f64());
    Ok(())
}

impl Loop {
    /// Takes what has arrived; at the end of a reply sends the next request and returns true.
    fn advance(&mut self, conn: &mut Conn) -> Outcome<bool> {
        loop {
            let (most, flags) = if conn.left == self.reply_bytes {
                (HEAD_BYTES, RecvFlags::empty())
            } else {
                (DISCARD_BYTES, RecvFlags::TRUNC)
            };
            let most = most.min(conn.left);
            let taken = match recv(&conn.stream, &mut self.buffer[..most], flags) {
                Ok((_, 0)) => return Err("the server closed a connection of the bare loop".into()),
                Ok((_, taken)) => taken,
                Err(Errno::AGAIN) => return Ok(false),
                Err(error) => return Err(error.into()),
            };
            conn.left -= taken;
            if conn.left == 0 {
                conn.left = self.reply_bytes;
                conn.stream.write_all(&self.request)?;
                return Ok(true);
            }
            // Less than requested: the socket is empty, and another call would only confirm it.
            if taken < most {
                return Ok(false);
            }
        }
    }
}
