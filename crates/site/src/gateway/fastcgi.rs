//! A request that a FastCGI application answers. Owns the connection to it, from a pool or a fresh one, and what is
//! sent on it. Start reading at [`Conversation::read`].
//!
//! One loop writes the request and reads the answer, each as far as possible, so an application that answers before it
//! has read everything blocks nobody. If a connection from the pool proves to be closed and nothing was answered on it,
//! it is replaced by a fresh one, once. But a request that is not idempotent, such as POST, is not sent twice (RFC
//! 9110, 9.2.2).

use std::fmt;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recv,
    send, socket_with, sockopt,
};
use wire::fastcgi::{self, Outcome, Piece, Reader, Stream};

use super::environment::Environment;
use super::spool::Spool;
use super::{Awaited, Failure, GatewayOutput};

/// Bytes of a body that are read and sent at once.
const BODY_BYTES: usize = 32 * 1024;

/// Bytes that are received at once.
const RECEIVED_BYTES: usize = 16 * 1024;

/// Idempotent methods: their requests may be sent twice (RFC 9110, 9.2.2).
const IDEMPOTENT: [&[u8]; 6] = [b"GET", b"HEAD", b"OPTIONS", b"TRACE", b"PUT", b"DELETE"];

/// Where an application listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Address {
    Unix(SocketAddrUnix),
    Tcp(SocketAddr),
}

/// The sockets of an application, and idle connections to them.
#[derive(Debug)]
pub(super) struct Application {
    /// Not set until the application is started, if the server starts it.
    addresses: OnceLock<Vec<Address>>,
    /// Chooses the address that the next request tries first.
    next: AtomicUsize,
    kept_max: usize,
    kept: Mutex<Vec<OwnedFd>>,
}

impl Address {
    /// From `unix:/PATH` or `tcp:HOST:PORT`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("unix", path)) if path.starts_with('/') => SocketAddrUnix::new(Path::new(path))
                .map(Self::Unix)
                .map_err(|error| format!("`{text}`: {error}: a path has 107 bytes at most")),
            Some(("tcp", place)) => {
                let all = place.to_socket_addrs().map_err(|error| format!("`{text}`: {error}"))?;
                let first = all.into_iter().next();
                first.map(Self::Tcp).ok_or_else(|| format!("`{text}`: it has no address"))
            }
            _ => Err(format!("`socket` must be unix:/PATH or tcp:HOST:PORT, got `{text}`")),
        }
    }

    /// A connection to it, which may still be connecting.
    fn connect(&self) -> io::Result<OwnedFd> {
        let family = match self {
            Self::Unix(_) => AddressFamily::UNIX,
            Self::Tcp(SocketAddr::V4(_)) => AddressFamily::INET,
            Self::Tcp(SocketAddr::V6(_)) => AddressFamily::INET6,
        };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(family, SocketType::STREAM, flags, None)?;
        let result = match self {
            Self::Unix(path) => connect(&socket, path),
            Self::Tcp(address) => {
                sockopt::set_tcp_nodelay(&socket, true)?;
                connect(&socket, address)
            }
        };
        match result {
            Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
            Err(error) => Err(error.into()),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => match path.path() {
                Some(path) => write!(f, "unix:{}", path.to_string_lossy()),
                None => f.write_str("unix:"),
            },
            Self::Tcp(address) => write!(f, "tcp:{address}"),
        }
    }
}

impl Application {
    /// TCP ports of its sockets.
    pub(super) fn ports(&self) -> impl Iterator<Item = u16> {
        self.addresses.get().into_iter().flatten().filter_map(|address| match address {
            Address::Unix(_) => None,
            Address::Tcp(address) => Some(address.port()),
        })
    }

    /// At those addresses, of which there is at least one; keeps at most `kept_max` idle connections.
    pub(super) fn new(addresses: Vec<Address>, kept_max: u32) -> Self {
        let application = Self::spawned(kept_max);
        application.is_at(addresses);
        application
    }

    /// The same for an application that is not started yet.
    pub(super) fn spawned(kept_max: u32) -> Self {
        Self {
            addresses: OnceLock::new(),
            next: AtomicUsize::new(0),
            kept_max: kept_max as usize,
            kept: Mutex::default(),
        }
    }

    /// Sets where it listens; only the first call has an effect.
    pub(super) fn is_at(&self, addresses: Vec<Address>) {
        let _ = self.addresses.set(addresses);
    }

    fn kept(&self) -> MutexGuard<'_, Vec<OwnedFd>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection of the pool that does not seem to be closed. One with something to read is dropped: the application
    /// has no reason to send anything on it.
    fn living(&self) -> Option<OwnedFd> {
        while let Some(socket) = self.kept().pop() {
            let peeked = recv(&socket, &mut [0; 1][..], RecvFlags::DONTWAIT | RecvFlags::PEEK);
            if matches!(peeked, Err(Errno::AGAIN)) {
                return Some(socket);
            }
        }
        None
    }

    /// A fresh connection to the next address that takes one.
    fn connect(&self, tries: &mut Tries) -> Result<OwnedFd, Failure> {
        let first = self.next.fetch_add(1, Relaxed);
        let addresses = self.addresses.get().map_or(&[][..], Vec::as_slice);
        while tries.count < addresses.len() {
            let at = (first + tries.count) % addresses.len();
            (tries.count, tries.at) = (tries.count + 1, Some(at));
            match addresses[at].connect() {
                Ok(socket) => return Ok(socket),
                Err(error) => self.note_try(tries, &error),
            }
        }
        let said = match tries.said.is_empty() {
            true => "it was not started".to_owned(),
            false => tries.said.join("; "),
        };
        Err(Failure::new(503, format!("no application accepts the request: {said}")))
    }

    /// Notes why the last connection that was tried failed.
    fn note_try(&self, tries: &mut Tries, error: &io::Error) {
        let address = tries.at.zip(self.addresses.get()).map(|(at, addresses)| &addresses[at]);
        tries.said.push(match address {
            Some(address) => format!("{address}: {error}"),
            None => format!("a kept connection: {error}"),
        });
    }
}

/// Connections that were tried for a request.
#[derive(Debug, Default)]
struct Tries {
    /// How many addresses, each tried once.
    count: usize,
    /// The last of them; `None`: a connection of the pool.
    at: Option<usize>,
    /// Their errors. Nothing is allocated if the first one takes the request.
    said: Vec<String>,
}

/// One request and its answer.
#[derive(Debug)]
pub(super) struct Conversation<'s> {
    application: &'s Application,
    /// `None` once it was given back.
    socket: Option<OwnedFd>,
    id: u64,
    /// It came from the pool, and nothing was answered on it: it may have been closed meanwhile.
    may_be_stale: bool,
    /// It may be sent again, even if the application may have worked on it.
    is_repeatable: bool,
    /// The connection is not established yet.
    is_connecting: bool,
    tries: Tries,
    /// Records that begin the request; kept whole, for a second connection.
    head: Vec<u8>,
    /// Records of the body that are being sent.
    records: Vec<u8>,
    /// Bytes sent of `head` or of `records`, whichever is being sent.
    sent: usize,
    writing: Writing,
    /// Bytes of the body that were put into records.
    body_at: u64,
    reader: Reader,
    /// The unfinished line of standard error.
    line: Vec<u8>,
    name: String,
}

/// How far the request was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Writing {
    Head,
    Body,
    Done,
    /// The application reads no more; it may still have answered.
    Broken,
}

/// Why a conversation stopped.
enum Stopped {
    /// The connection was closed, or never established; another one may work.
    Gone(io::Error),
    /// The request has failed.
    Failed(Failure),
}

impl<'s> Conversation<'s> {
    /// Begins; nothing is sent yet.
    ///
    /// # Errors
    /// 503 if no application takes it.
    pub(super) fn begin(
        application: &'s Application,
        environment: &Environment,
        name: String,
    ) -> Result<Self, Failure> {
        let mut head = Vec::new();
        fastcgi::write_begin(&mut head, application.kept_max > 0);
        let mut params = Vec::new();
        for (name, value) in environment.pairs() {
            fastcgi::write_pair(&mut params, name, value);
        }
        fastcgi::write_stream(&mut head, Stream::Params, &params);
        fastcgi::write_end(&mut head, Stream::Params);
        let method = environment.pairs().find(|(name, _)| *name == b"REQUEST_METHOD");
        let is_repeatable = method.is_some_and(|(_, method)| IDEMPOTENT.contains(&method));
        let kept = application.living();
        let mut tries = Tries::default();
        let (socket, may_be_stale) = match kept {
            Some(socket) => (socket, true),
            None => (application.connect(&mut tries)?, false),
        };
        Ok(Self {
            application,
            socket: Some(socket),
            id: super::next_id(),
            may_be_stale,
            is_repeatable,
            is_connecting: !may_be_stale,
            tries,
            head,
            records: Vec::new(),
            sent: 0,
            writing: Writing::Head,
            body_at: 0,
            reader: Reader::default(),
            line: Vec::new(),
            name,
        })
    }

    /// Writes and reads as far as possible. Output is appended to `buffer`, until that holds `bytes_max` bytes; `note`
    /// takes lines of standard error.
    ///
    /// # Errors
    /// 502 if its answer is invalid, 503 if it is overloaded or gone.
    pub(super) fn read(
        &mut self,
        buffer: &mut Vec<u8>,
        bytes_max: usize,
        spool: &Spool,
        note: &dyn Fn(&str, &str),
    ) -> Result<GatewayOutput, Failure> {
        loop {
            match self.go_on(buffer, bytes_max, spool, note) {
                Ok(got) => return Ok(got),
                Err(Stopped::Failed(failure)) => return Err(failure),
                Err(Stopped::Gone(error)) => self.again(&error)?,
            }
        }
    }

    /// Starts again on another connection, if that may help.
    fn again(&mut self, error: &io::Error) -> Result<(), Failure> {
        let was_sent = self.sent > 0 || self.writing != Writing::Head;
        let may_be_done = was_sent && !self.is_repeatable;
        if may_be_done || !self.may_be_stale && !self.is_connecting {
            let why = format!("the application ended the connection before its answer: {error}");
            return Err(Failure::new(502, why));
        }
        self.application.note_try(&mut self.tries, error);
        self.socket = Some(self.application.connect(&mut self.tries)?);
        (self.may_be_stale, self.is_connecting) = (false, true);
        self.id = super::next_id();
        (self.sent, self.writing, self.body_at) = (0, Writing::Head, 0);
        Ok(())
    }

    fn go_on(
        &mut self,
        buffer: &mut Vec<u8>,
        bytes_max: usize,
        spool: &Spool,
        note: &dyn Fn(&str, &str),
    ) -> Result<GatewayOutput, Stopped> {
        self.write(spool)?;
        if self.is_connecting {
            return Ok(GatewayOutput::Some { waits: true });
        }
        let mut received = [0; RECEIVED_BYTES];
        while buffer.len() < bytes_max {
            let Some(socket) = &self.socket else { return Ok(GatewayOutput::End) };
            let count = match recv(socket, &mut received[..], RecvFlags::DONTWAIT) {
                Ok((_, 0)) => return Err(Stopped::Gone(ErrorKind::UnexpectedEof.into())),
                Ok((count, _)) => count,
                Err(Errno::AGAIN) => return Ok(GatewayOutput::Some { waits: true }),
                Err(Errno::INTR) => continue,
                Err(error) => return Err(Stopped::Gone(error.into())),
            };
            self.may_be_stale = false;
            let mut rest = &received[..count];
            loop {
                let (used, piece) = self
                    .reader
                    .read(rest)
                    .map_err(|fault| Stopped::Failed(Failure::new(502, fault.to_string())))?;
                rest = &rest[used..];
                match piece {
                    Piece::NeedMore => break,
                    Piece::Stdout(bytes) => buffer.extend_from_slice(bytes),
                    Piece::Stderr(bytes) => self.take_errors(bytes, note),
                    Piece::End(ended) => return self.end(ended.outcome, rest.is_empty(), note),
                }
            }
        }
        Ok(GatewayOutput::Some { waits: false })
    }

    /// Sends what is to be sent, as far as it is taken.
    fn write(&mut self, spool: &Spool) -> Result<(), Stopped> {
        loop {
            let bytes = match self.writing {
                Writing::Head => &self.head,
                Writing::Body => &self.records,
                Writing::Done | Writing::Broken => return Ok(()),
            };
            if self.sent == bytes.len() {
                self.next_records(spool)?;
                continue;
            }
            let Some(socket) = &self.socket else { return Ok(()) };
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            match send(socket, &bytes[self.sent..], flags) {
                Ok(count) => {
                    self.is_connecting = false;
                    self.sent += count;
                }
                // ENOTCONN: it is still connecting.
                Err(Errno::AGAIN | Errno::NOTCONN) => return self.check_connection(),
                Err(Errno::INTR) => {}
                Err(error) if self.may_be_stale || self.is_connecting => {
                    return Err(Stopped::Gone(error.into()));
                }
                // What it has answered can still be read.
                Err(_) => self.writing = Writing::Broken,
            }
        }
    }

    /// A connection that is not established yet may have been refused.
    fn check_connection(&self) -> Result<(), Stopped> {
        let Some(socket) = &self.socket else { return Ok(()) };
        match sockopt::socket_error(socket) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) | Err(error) => Err(Stopped::Gone(error.into())),
        }
    }

    /// Puts the next part of the body into records.
    fn next_records(&mut self, spool: &Spool) -> Result<(), Stopped> {
        self.records.clear();
        self.sent = 0;
        if self.body_at > spool.len() {
            self.writing = Writing::Done;
            return Ok(());
        }
        self.writing = Writing::Body;
        let mut part = [0; BODY_BYTES];
        let count = spool.read_at(self.body_at, &mut part).map_err(|error| {
            let why = format!("the body of its request cannot be read: {error}");
            Stopped::Failed(Failure::new(500, why))
        })?;
        self.body_at += count as u64;
        fastcgi::write_stream(&mut self.records, Stream::Stdin, &part[..count]);
        if count == 0 {
            fastcgi::write_end(&mut self.records, Stream::Stdin);
            // Beyond the end: once this is sent, everything is.
            self.body_at = spool.len() + 1;
        }
        Ok(())
    }

    fn take_errors(&mut self, bytes: &[u8], note: &dyn Fn(&str, &str)) {
        const LINE_BYTES_MAX: usize = 1024;
        for &byte in bytes {
            if byte == b'\n' || self.line.len() == LINE_BYTES_MAX {
                self.end_line(note);
            }
            if byte != b'\n' {
                self.line.push(byte);
            }
        }
    }

    fn end_line(&mut self, note: &dyn Fn(&str, &str)) {
        if !self.line.is_empty() {
            note(&self.name, &String::from_utf8_lossy(&self.line));
            self.line.clear();
        }
    }

    /// The request is over. If all of it was sent and nothing more arrived, the connection goes to the pool.
    fn end(
        &mut self,
        outcome: Outcome,
        is_all: bool,
        note: &dyn Fn(&str, &str),
    ) -> Result<GatewayOutput, Stopped> {
        self.end_line(note);
        let status = match outcome {
            Outcome::Complete => {
                if is_all && self.writing == Writing::Done {
                    self.keep();
                }
                return Ok(GatewayOutput::End);
            }
            Outcome::Overloaded | Outcome::CannotMultiplex => 503,
            Outcome::UnknownRole | Outcome::Unknown(_) => 502,
        };
        Err(Stopped::Failed(Failure::new(status, format!("it refused the request: {outcome:?}"))))
    }

    fn keep(&mut self) {
        let mut kept = self.application.kept();
        if kept.len() < self.application.kept_max {
            kept.extend(self.socket.take());
        }
    }

    /// Its socket.
    pub(super) fn awaited(&self) -> Option<Awaited<'_>> {
        let is_writing = matches!(self.writing, Writing::Head | Writing::Body);
        Some(Awaited {
            file: self.socket.as_ref()?.as_fd(),
            reads: !self.is_connecting,
            writes: self.is_connecting || is_writing,
            id: self.id,
        })
    }
}
