//! One request alone on a fresh connection: the probe of whether a server answers, and the oracle of what
//! it answers. Owns nothing of a load's speed: body and head are kept. Start reading at [`fetch`].

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use rand::SeedableRng as _;
use rand_pcg::Pcg64Mcg;
use record::{LoadPlan, Origin, ServerAddress};
use sys::clock;
use sys::driver::{Driver, Failure, Leave, Peer, Route, Slot, What};
use sys::epoll_driver::EpollDriver;
use units::{Bytes, Nanos};
use wire::tls::{Resumption, TlsClient, TlsError};
use wire::{Eof, Event, ReplyError, ReplyLimits, ReplyParser, RequestKind};

use crate::prepared::{Fill, Prepared};
use crate::proxy::{self, Tunnel};
use crate::secure::{self, TlsSetupError};

/// Time between two looks at whether a fetch is interrupted.
const INTERRUPT_LOOK: Nanos = Nanos::from_millis(50);
/// Longest body that is kept.
pub const FETCH_BODY_MAX: Bytes = Bytes(256 * 1024 * 1024);

/// A complete reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// Status of the final reply.
    pub status: u16,
    /// Its head as it came, status line and fields, except that each line ends in LF alone and bytes that are not
    /// UTF-8 are replaced.
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
        addr: ServerAddress,
        /// What the kernel said.
        failure: Failure,
    },
    /// The proxy could not be reached, or opened no tunnel.
    #[error("the proxy {host} {why}")]
    Proxy {
        /// As planned.
        host: String,
        /// What the proxy did.
        why: String,
    },
    /// The connection was lost before the reply was complete.
    #[error("{addr} closed the connection before its reply was complete ({read} read)")]
    Cut {
        /// As planned.
        addr: ServerAddress,
        /// Bytes that had arrived.
        read: Bytes,
    },
    /// The reply is not HTTP, or not well framed.
    #[error("{addr} sent a reply that is not valid HTTP/1: {source}")]
    Protocol {
        /// As planned.
        addr: ServerAddress,
        /// What is wrong with it.
        source: ReplyError,
    },
    /// The reply, or its end, did not come in time.
    #[error("{addr} did not {phase} within {timeout}: it hangs, is overloaded, or drops packets")]
    Timeout {
        /// As planned.
        addr: ServerAddress,
        /// "accept the connection", "begin its reply" or "complete its reply".
        phase: &'static str,
        /// As planned.
        timeout: Nanos,
    },
    /// The body is longer than [`FETCH_BODY_MAX`].
    #[error("the reply of {addr} is longer than {FETCH_BODY_MAX}: choose a smaller file")]
    TooLong {
        /// As planned.
        addr: ServerAddress,
    },
    /// The caller gave it up.
    #[error("interrupted")]
    Interrupted,
    /// TLS cannot begin.
    #[error(transparent)]
    TlsSetup(#[from] TlsSetupError),
    /// The handshake failed.
    #[error("{addr}: {source}")]
    Tls {
        /// As planned.
        addr: ServerAddress,
        /// What is wrong.
        source: TlsError,
    },
    /// The event loop failed.
    #[error("the event loop failed: {0}")]
    Driver(#[from] io::Error),
}

fn cause(failure: Failure) -> String {
    match failure {
        Failure::Refused => {
            "refused; nothing listens there: is the server started, the port right?"
        }
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

/// Sends the plan's first request once, on its own connection, and reads the reply. Each phase
/// (connecting, first byte, rest) may take the plan's timeout.
///
/// # Errors
/// There was no complete reply; its text says where it ended. A status of any kind is no error.
pub fn fetch(plan: &LoadPlan) -> Result<Fetched, FetchError> {
    fetch_one(plan, 0)
}

/// As [`fetch`], but gives up within 50 ms of `interrupt`.
///
/// # Errors
/// As there, and [`FetchError::Interrupted`].
pub fn fetch_until(plan: &LoadPlan, interrupt: &AtomicBool) -> Result<Fetched, FetchError> {
    fetch_index(plan, 0, Some(interrupt))
}

/// As [`fetch`], the request of that index.
pub(crate) fn fetch_one(plan: &LoadPlan, index: usize) -> Result<Fetched, FetchError> {
    fetch_index(plan, index, None)
}

fn fetch_index(
    plan: &LoadPlan,
    index: usize,
    interrupt: Option<&AtomicBool>,
) -> Result<Fetched, FetchError> {
    let request = &plan.requests[index];
    let prepared = Prepared::new(plan, request).expect("a plan's requests were rendered before");
    let origin = &plan.origins[request.origin as usize];
    let tls = match (secure::config(plan, false)?, &origin.tls_name) {
        (Some(config), Some(name)) => Some(
            TlsClient::new(&config, name, Resumption::Fresh)
                .map_err(|source| FetchError::Tls { addr: origin.place.clone(), source })?,
        ),
        _ => None,
    };
    let mut bytes = Vec::new();
    let mut random = Pcg64Mcg::seed_from_u64(plan.seed);
    let columns = &plan.columns;
    prepared.render(&mut Fill { seq: 0, random: &mut random, columns, cookies: None }, &mut bytes);
    let mut parser = ReplyParser::new(ReplyLimits::DEFAULT);
    let kind = prepared.kind();
    parser.expect(kind);
    let mut fetching = Fetching {
        plan,
        interrupt,
        origin,
        driver: EpollDriver::new(1)?,
        tls,
        parser,
        kind,
        phase: CONNECTING,
        tunnel: proxy::connect_request(plan, origin),
        bytes,
        n_read: 0,
        head: Vec::new(),
        reply: Fetched { status: 0, head: String::new(), body: Vec::new() },
    };
    let result = fetching.run();
    fetching.driver.close(SLOT, Leave::Orderly);
    result.map(|()| fetching.reply)
}

const SLOT: Slot = Slot(0);

/// Phases before the request is sent.
const CONNECTING: &str = "accept the connection";
const TUNNELLING: &str = "answer CONNECT";

struct Fetching<'a> {
    plan: &'a LoadPlan,
    interrupt: Option<&'a AtomicBool>,
    origin: &'a Origin,
    driver: EpollDriver,
    tls: Option<TlsClient>,
    parser: ReplyParser,
    kind: RequestKind,
    /// What the server is expected to do next.
    phase: &'static str,
    /// The request to the proxy before the tunnel; empty if there is no tunnel.
    tunnel: Vec<u8>,
    /// The request.
    bytes: Vec<u8>,
    n_read: u64,
    /// Bytes of the head so far.
    head: Vec<u8>,
    reply: Fetched,
}

impl Fetching<'_> {
    fn run(&mut self) -> Result<(), FetchError> {
        let plan = self.plan;
        self.driver.begin(clock::monotonic());
        let to = match &self.origin.place {
            ServerAddress::Inet(addr) => Peer::Inet(*addr),
            ServerAddress::Unix(path) => Peer::Unix(path.clone()),
        };
        self.driver.connect(SLOT, &Route { to, from: plan.sources.first().copied() });
        let mut deadline = self.driver.now().saturating_add(plan.timeout);
        loop {
            let until = match self.interrupt {
                Some(flag) if flag.load(Ordering::Relaxed) => return Err(FetchError::Interrupted),
                Some(_) => deadline.min(self.driver.now().saturating_add(INTERRUPT_LOOK)),
                None => deadline,
            };
            self.driver.wait(until)?;
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
                let timeout = plan.timeout;
                return Err(FetchError::Timeout { addr: self.addr(), phase, timeout });
            }
        }
    }

    fn addr(&self) -> ServerAddress {
        self.origin.place.clone()
    }

    fn proxy_error(&self, why: String) -> FetchError {
        let host = self.plan.proxy.as_ref().map_or_else(String::new, |proxy| proxy.host.clone());
        FetchError::Proxy { host, why }
    }

    /// Bytes of the proxy's answer came.
    fn tunnel(&mut self) -> Result<(), FetchError> {
        match proxy::read_tunnel(&mut self.parser, self.driver.received()) {
            Tunnel::Awaited => Ok(()),
            Tunnel::Refused(why) => Err(self.proxy_error(why)),
            Tunnel::Open => {
                self.parser.reset();
                self.parser.expect(self.kind);
                self.phase = "begin its reply";
                self.send()
            }
        }
    }

    /// Whether the reply is complete.
    fn take(&mut self, what: What) -> Result<bool, FetchError> {
        let is_early = [CONNECTING, TUNNELLING].contains(&self.phase);
        match what {
            What::Connected if !self.tunnel.is_empty() => {
                self.phase = TUNNELLING;
                proxy::expect_tunnel(&mut self.parser);
                self.driver.send(SLOT, &self.tunnel);
                Ok(false)
            }
            What::Received if self.phase == TUNNELLING => self.tunnel().map(|()| false),
            What::Failed(failure) if is_early && self.plan.proxy.is_some() => {
                Err(self.proxy_error(proxy::lost(failure)))
            }
            What::Closed if self.phase == TUNNELLING => {
                Err(self.proxy_error("closed the connection".to_owned()))
            }
            What::Connected => {
                let is_tls = self.tls.is_some();
                self.phase = if is_tls { "complete the TLS handshake" } else { "begin its reply" };
                self.send()?;
                Ok(false)
            }
            What::Received => {
                let is_complete = self.receive()?;
                if self.reply.body.len() as u64 > FETCH_BODY_MAX.0 {
                    return Err(FetchError::TooLong { addr: self.addr() });
                }
                Ok(is_complete)
            }
            What::Closed => self.closed(),
            What::Failed(failure) if self.phase == CONNECTING => {
                Err(FetchError::Connect { addr: self.addr(), failure })
            }
            What::Failed(_) => Err(FetchError::Cut { addr: self.addr(), read: Bytes(self.n_read) }),
            What::Discarded(_) => unreachable!("nothing is asked to be discarded"),
        }
    }

    /// The server has closed its side; returns whether the reply is complete that way.
    fn closed(&mut self) -> Result<bool, FetchError> {
        if let Some(client) = &self.tls {
            client.end().map_err(|source| FetchError::Tls { addr: self.addr(), source })?;
        }
        match self.parser.eof() {
            Ok(Eof::Done(_)) => Ok(true),
            _ => Err(FetchError::Cut { addr: self.addr(), read: Bytes(self.n_read) }),
        }
    }

    /// Sends the request; TLS keeps it until its handshake is done.
    fn send(&mut self) -> Result<(), FetchError> {
        let addr = self.addr();
        match &mut self.tls {
            None => self.driver.send(SLOT, &self.bytes),
            Some(client) => {
                let sent = client.send(&self.bytes);
                sent.map_err(|source| FetchError::Tls { addr, source })?;
                self.send_records();
            }
        }
        Ok(())
    }

    fn send_records(&mut self) {
        if let Some(client) = &mut self.tls {
            let mut records = Vec::new();
            client.take_output(&mut records);
            self.driver.send(SLOT, &records);
        }
    }

    fn receive(&mut self) -> Result<bool, FetchError> {
        let Some(client) = &mut self.tls else {
            self.phase = "complete its reply";
            let bytes = self.driver.received().to_vec();
            return self.read(&bytes);
        };
        let mut plain = Vec::new();
        let fed = client.feed(self.driver.received(), &mut plain);
        self.send_records();
        if fed.as_ref().is_ok_and(|event| event.handshake_done_now) {
            self.phase = "begin its reply";
        }
        if !plain.is_empty() {
            self.phase = "complete its reply";
        }
        let is_complete = self.read(&plain)?;
        let event = fed.map_err(|source| FetchError::Tls { addr: self.addr(), source })?;
        // TCP may stay open until this side has closed too.
        if event.peer_closed && !is_complete { self.closed() } else { Ok(is_complete) }
    }

    fn read(&mut self, bytes: &[u8]) -> Result<bool, FetchError> {
        let mut left = bytes;
        self.n_read += left.len() as u64;
        loop {
            let step = self.parser.feed(left).map_err(|source| FetchError::Protocol {
                addr: self.origin.place.clone(),
                source,
            })?;
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
