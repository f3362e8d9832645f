//! One request alone on a fresh connection: the probe of whether a server answers, and the oracle of
//! what it answers. Owns nothing of a load's speed: body and head are kept. Must not know why it is
//! asked. Start reading at [`fetch`].

use std::io;

use record::LoadPlan;
use sys::clock;
use sys::driver::{Driver, Failure, Leave, Slot, What};
use sys::epoll_driver::EpollDriver;
use units::{Bytes, Nanos};
use wire::{Eof, Event, ReplyError, ReplyLimits, ReplyParser, RequestKind};

use crate::request;

/// Longest body that is kept.
pub const FETCH_BODY_MAX: Bytes = Bytes(256 * 1024 * 1024);

/// A reply, whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// Status of the final reply.
    pub status: u16,
    /// Its head as it came, status line and fields, but each line ends in LF alone and what is not
    /// UTF-8 is replaced.
    pub head: String,
    /// Its body, without chunk framing.
    pub body: Vec<u8>,
}

/// Why there is no reply.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The connection could not be made.
    #[error("cannot connect to {addr}: {}", cause(*failure))]
    Connect {
        /// As planned.
        addr: std::net::SocketAddr,
        /// What the kernel said.
        failure: Failure,
    },
    /// The connection was lost before the reply was complete.
    #[error("{addr} closed the connection before its reply was complete ({read} read)")]
    Cut {
        /// As planned.
        addr: std::net::SocketAddr,
        /// What had come.
        read: Bytes,
    },
    /// The reply is not HTTP, or not well framed.
    #[error("{addr} sent what is no well-formed reply: {source}")]
    Protocol {
        /// As planned.
        addr: std::net::SocketAddr,
        /// What is wrong with it.
        source: ReplyError,
    },
    /// Nothing, or not all, came in time.
    #[error("{addr} did not {phase} within {timeout}: it hangs, is overloaded, or drops packets")]
    Timeout {
        /// As planned.
        addr: std::net::SocketAddr,
        /// "accept the connection", "begin its reply" or "complete its reply".
        phase: &'static str,
        /// As planned.
        timeout: Nanos,
    },
    /// The body is longer than [`FETCH_BODY_MAX`].
    #[error("the reply of {addr} is longer than {FETCH_BODY_MAX}: choose a smaller file")]
    TooLong {
        /// As planned.
        addr: std::net::SocketAddr,
    },
    /// The event loop failed.
    #[error("the event loop failed: {0}")]
    Driver(#[from] io::Error),
}

fn cause(failure: Failure) -> String {
    match failure {
        Failure::Refused => "refused; nobody listens there: is the server started, the port right?",
        Failure::Reset => "reset in the handshake; a firewall or a full backlog may do that",
        Failure::TimedOut => "no answer; a firewall may drop the packets",
        Failure::FdExhausted => "this process may open no more files: raise `ulimit -n`",
        Failure::PortExhausted => {
            "no local port is free: wait a minute, or widen net.ipv4.ip_local_port_range"
        }
        Failure::Other(errno) => return io::Error::from_raw_os_error(errno).to_string(),
    }
    .to_owned()
}

/// Sends the plan's request once, on a connection of its own, and reads the reply. Each phase
/// (connecting, first byte, rest) may take the plan's timeout.
///
/// # Errors
/// There was no complete reply; its text says where it ended. A status of any kind is no error.
pub fn fetch(plan: &LoadPlan) -> Result<Fetched, FetchError> {
    let mut fetching = Fetching {
        plan,
        driver: EpollDriver::new(1)?,
        parser: ReplyParser::new(ReplyLimits::DEFAULT),
        phase: "accept the connection",
        n_read: 0,
        head: Vec::new(),
        reply: Fetched { status: 0, head: String::new(), body: Vec::new() },
    };
    let result = fetching.run();
    fetching.driver.close(SLOT, Leave::Orderly);
    result.map(|()| fetching.reply)
}

const SLOT: Slot = Slot(0);

struct Fetching<'a> {
    plan: &'a LoadPlan,
    driver: EpollDriver,
    parser: ReplyParser,
    /// What the server is awaited to do.
    phase: &'static str,
    n_read: u64,
    /// Bytes of the head so far.
    head: Vec<u8>,
    reply: Fetched,
}

impl Fetching<'_> {
    fn run(&mut self) -> Result<(), FetchError> {
        let plan = self.plan;
        self.driver.begin(clock::monotonic());
        self.driver.connect(SLOT, plan.addr);
        let mut deadline = self.driver.now().saturating_add(plan.timeout);
        loop {
            self.driver.wait(deadline)?;
            let phase = self.phase;
            while let Some(completion) = self.driver.next() {
                if self.take(completion.what)? {
                    return Ok(());
                }
            }
            let now = self.driver.now();
            if self.phase != phase {
                deadline = now.saturating_add(plan.timeout);
            } else if now >= deadline {
                return Err(FetchError::Timeout { addr: plan.addr, phase, timeout: plan.timeout });
            }
        }
    }

    /// Whether the reply is complete.
    fn take(&mut self, what: What) -> Result<bool, FetchError> {
        let addr = self.plan.addr;
        match what {
            What::Connected => {
                self.phase = "begin its reply";
                self.parser.expect(RequestKind::of(&self.plan.method));
                self.driver.send(SLOT, &request::bytes(self.plan));
                Ok(false)
            }
            What::Received => {
                self.phase = "complete its reply";
                self.read().and_then(|is_complete| {
                    let is_too_long = self.reply.body.len() as u64 > FETCH_BODY_MAX.0;
                    if is_too_long { Err(FetchError::TooLong { addr }) } else { Ok(is_complete) }
                })
            }
            What::Closed => match self.parser.eof() {
                Ok(Eof::Done(_)) => Ok(true),
                _ => Err(FetchError::Cut { addr, read: Bytes(self.n_read) }),
            },
            What::Failed(failure) if self.phase == "accept the connection" => {
                Err(FetchError::Connect { addr, failure })
            }
            What::Failed(_) => Err(FetchError::Cut { addr, read: Bytes(self.n_read) }),
        }
    }

    fn read(&mut self) -> Result<bool, FetchError> {
        let mut left = self.driver.received();
        self.n_read += left.len() as u64;
        loop {
            let step = self
                .parser
                .feed(left)
                .map_err(|source| FetchError::Protocol { addr: self.plan.addr, source })?;
            let (used, rest) = left.split_at(step.used);
            left = rest;
            if self.reply.status == 0 {
                self.head.extend_from_slice(used);
            }
            match step.event {
                Event::NeedMore => return Ok(false),
                Event::Interim { .. } => self.head.clear(),
                Event::Head { head, .. } => {
                    let text = String::from_utf8_lossy(&self.head).replace("\r\n", "\n");
                    self.reply.head = text.trim_end().to_owned();
                    self.reply.status = head.status;
                }
                Event::Body(bytes) => self.reply.body.extend_from_slice(bytes),
                Event::Done(_) => return Ok(true),
            }
        }
    }
}
