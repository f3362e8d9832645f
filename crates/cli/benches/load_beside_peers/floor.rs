//! The bare loop: what a generator over epoll costs that knows beforehand how long every reply is,
//! and so neither parses nor stamps, and counts nothing but bytes. How far it stands from ours is
//! what looking at replies costs. The bench calls itself with [`ARGUMENT`] to have it in a process
//! of its own, like any other generator.
//!
//! A request costs a send and a receive (two for a body above 4 KB: its head is copied, as whoever
//! looks at heads must, the rest is discarded in the kernel), and a share of an `epoll_wait`.
//! Start reading at [`run`].

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

/// Most that is copied of each reply.
const HEAD_BYTES: usize = 4096;
/// Most that is discarded in one call.
const DISCARD_BYTES: usize = 1 << 20;
/// Events taken by one `epoll_wait`.
const EVENTS: usize = 256;

/// One connection, always with a request out.
struct Conn {
    stream: TcpStream,
    /// Bytes of the reply that are still to come, at least 1.
    left: usize,
}

/// What all connections share.
struct Loop {
    request: Vec<u8>,
    reply_bytes: usize,
    /// Receives heads; bodies are discarded, so most of its pages are never touched.
    buffer: Vec<u8>,
}

/// Loads the server for a while and prints how many replies it had, and in how many seconds.
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
    /// Takes what has arrived; at the end of a reply sends the next request and says true.
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
            // Less than was asked for: the socket is empty, and another call would only say so.
            if taken < most {
                return Ok(false);
            }
        }
    }
}
