//! Carries out what an `Exchange` wants of its socket, for every model: one system call for each
//! want. Owns how bytes move and how a connection is closed. Start reading at [`advance`].
//!
//! Cost of a request on a kept-alive connection: one receive and one send. After a short receive
//! the socket is empty, so we do not read again before it is ready (epoll(7), "edge-triggered").

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::pread;
use sys::clock;
use sys::epoll::{Epoll, EventFlags};
use sys::listener::{self, MoreData};
use sys::poll::timespec;
use sys::signals::Stop;
use sys::wake::Wake;
use units::Nanos;

use crate::service::Service;
use site::config::SiteConfig;
use site::exchange::{Awaited, Close, Exchange, Progress, Want};

/// Bytes that one connection may move in one turn (lighttpd's MAX_WRITE_LIMIT). A small response
/// waits at most some 100 us behind a large one.
pub(crate) const TURN_BYTES_MAX: usize = 256 * 1024;

/// Connections that an event loop accepts in one round (lighttpd's 100), so that older ones get
/// turns in between.
pub(crate) const ACCEPTS_MAX: usize = 100;

/// How long an event loop stops accepting when descriptors or memory run out, unless a connection
/// ends earlier.
pub(crate) const EXHAUSTED_REST: Nanos = Nanos::from_millis(100);

/// How long we read from a connection after we closed it, so that a reset does not destroy its last
/// response (RFC 9112, 9.6). Apache's SECONDS_TO_LINGER for a silent client.
pub(crate) const LINGER_MAX: Nanos = Nanos::from_secs(2);

/// Bytes that we drop during that time. After that we close the connection anyway.
pub(crate) const LINGER_BYTES_MAX: usize = 1024 * 1024;

/// We do not sleep through the last part of a hold: a sleep ends some 50 us late on a virtual
/// machine, and a hold must be exact to a few. Only planted faults hold answers.
pub(crate) const SPIN: Nanos = Nanos::from_micros(100);

/// What a connection waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Bytes from the client.
    Read,
    /// Room in the send buffer.
    Write,
    /// Its next turn, because it has moved as much as one turn allows.
    Turn,
    /// This instant, because a planted fault holds its answer.
    Hold(Nanos),
    /// News on the file of [`Exchange::awaited`], or bytes from the client.
    Gateway,
    /// Nothing: it is to be closed in this way.
    Close(Close),
}

/// What we know of a socket's input before we read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InputState {
    /// There may be bytes to receive.
    MayHave,
    /// The peer has closed: the end of the stream follows, even after a short receive.
    Ending,
    /// There is nothing, because the last receive was short.
    Empty,
}

/// What [`advance`] needs to know after each call on a socket, since the call may have blocked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AfterCall {
    /// The current time.
    pub(crate) now: Nanos,
    /// The server or this child is to end, so the request that was just received is the last one.
    pub(crate) ending: bool,
}

/// Moves a connection on until it has to wait. On a blocking socket the kernel waits, within the socket's own timeouts.
/// `after_call` is called after each call; if calls do not block, it is a constant.
pub(crate) fn advance(
    socket: BorrowedFd<'_>,
    exchange: &mut Exchange<'_>,
    input: &mut InputState,
    after_call: impl Fn() -> AfterCall,
) -> Step {
    let mut left = TURN_BYTES_MAX;
    loop {
        let (wait, moved) = match exchange.want(|| after_call().now) {
            Want::Close(close) => {
                exchange.ended();
                return Step::Close(close);
            }
            Want::Hold(until) => return Step::Hold(until),
            Want::Gateway if left == 0 => return Step::Turn,
            Want::Gateway => match exchange.ask_gateway(socket, after_call().now) {
                Progress::Moved(n) => {
                    left = left.saturating_sub(n);
                    continue;
                }
                Progress::Waits if !look_at_client(socket, exchange, input, after_call().now) => {
                    return Step::Gateway;
                }
                Progress::Waits => continue,
            },
            Want::Read(_) if *input == InputState::Empty => return Step::Read,
            _ if left == 0 => return Step::Turn,
            Want::Load { fd, offset, into } => {
                // We treat a file that cannot be read like one that became shorter.
                let count = pread(fd, into, offset).unwrap_or(0);
                exchange.loaded(count, after_call().now);
                continue;
            }
            Want::Read(buf) => (Step::Read, fill(socket, buf, input)),
            Want::Write { head, body } => (Step::Write, send_parts(socket, head, body, left)),
            Want::File { head: [], fd, offset, len } => {
                (Step::Write, send_range(socket, fd, offset, len.min(left as u64)))
            }
            Want::File { head, .. } => {
                (Step::Write, listener::send(socket, &head[..head.len().min(left)], MoreData::More))
            }
        };
        let AfterCall { now, ending } = after_call();
        match moved {
            Ok(n) => {
                left = left.saturating_sub(n);
                if wait == Step::Write {
                    exchange.wrote(n, now);
                    continue;
                }
                if ending {
                    exchange.finish_next();
                }
                exchange.received(n, now);
            }
            Err(error) if is_wait(&error) => return wait,
            Err(_) => {
                exchange.lost(now);
                return Step::Close(Close::Normal);
            }
        }
    }
}

/// While a gateway makes the answer: takes what the client sends, or notes that it has gone.
/// Returns whether anything was new.
fn look_at_client(
    socket: BorrowedFd<'_>,
    exchange: &mut Exchange<'_>,
    input: &mut InputState,
    now: Nanos,
) -> bool {
    if *input == InputState::Empty {
        return false;
    }
    let Some(room) = exchange.room().filter(|room| !room.is_empty()) else {
        // The input has no room for more. poll(2) reports a broken connection even if we ask for
        // nothing.
        let broke = wait(socket, PollFlags::empty(), Nanos::ZERO);
        if broke {
            exchange.lost(now);
        }
        return broke;
    };
    match listener::receive_now(socket, room) {
        Ok(n) => exchange.received(n, now),
        Err(error) if is_wait(&error) => {
            *input = InputState::Empty;
            return false;
        }
        Err(_) => exchange.lost(now),
    }
    true
}

/// Like [`advance`], but only receives. `None`: a request is complete or bytes are to be sent,
/// which the caller leaves to another thread.
pub(crate) fn receive_request(
    socket: BorrowedFd<'_>,
    exchange: &mut Exchange<'_>,
    input: &mut InputState,
    after_call: impl Fn() -> AfterCall,
) -> Option<Step> {
    let mut left = TURN_BYTES_MAX;
    while !exchange.is_asked() {
        let received = match exchange.want(|| after_call().now) {
            Want::Close(close) => {
                exchange.ended();
                return Some(Step::Close(close));
            }
            Want::Read(_) if *input == InputState::Empty => return Some(Step::Read),
            Want::Read(_) if left == 0 => return Some(Step::Turn),
            Want::Read(buf) => fill(socket, buf, input),
            _ => return None,
        };
        let AfterCall { now, ending } = after_call();
        match received {
            Ok(n) => {
                left = left.saturating_sub(n);
                if ending {
                    exchange.finish_next();
                }
                exchange.received(n, now);
            }
            Err(error) if is_wait(&error) => return Some(Step::Read),
            Err(_) => {
                exchange.lost(now);
                return Some(Step::Close(Close::Normal));
            }
        }
    }
    None
}

fn is_wait(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

fn fill(socket: BorrowedFd<'_>, buf: &mut [u8], input: &mut InputState) -> io::Result<usize> {
    let room = buf.len();
    let received = listener::receive(socket, buf);
    if *input == InputState::MayHave && !matches!(received, Ok(n) if n == room) {
        *input = InputState::Empty;
    }
    received
}

/// Sends at most `most` bytes of `head` and then `body`, in one call.
fn send_parts(socket: BorrowedFd<'_>, head: &[u8], body: &[u8], most: usize) -> io::Result<usize> {
    let head = &head[..head.len().min(most)];
    let body = &body[..body.len().min(most - head.len())];
    match (head, body) {
        (only, []) | ([], only) => listener::send(socket, only, MoreData::Nothing),
        (head, body) => listener::send_two(socket, head, body),
    }
}

fn send_range(
    socket: BorrowedFd<'_>,
    file: BorrowedFd<'_>,
    offset: u64,
    len: u64,
) -> io::Result<usize> {
    match listener::send_file(socket, file, offset, len as usize)? {
        // The file is now shorter than its length in the head that was sent. The response cannot be
        // completed, and only closing the connection can say so.
        0 => Err(ErrorKind::UnexpectedEof.into()),
        n => Ok(n),
    }
}

/// Closes the connection as its exchange wants. Returns the socket if it lingers: its sending side
/// is shut, and [`drop_input`] reads from it for at most [`LINGER_MAX`].
pub(crate) fn close(socket: OwnedFd, how: Close) -> Option<OwnedFd> {
    match how {
        Close::Normal => None,
        Close::Reset => {
            listener::reset(socket);
            None
        }
        Close::Linger => listener::shutdown_send(&socket).is_ok().then_some(socket),
    }
}

/// Drops what a lingering connection receives, up to `left` bytes. Returns whether it can be
/// closed: at the end of the stream or of `left`.
pub(crate) fn drop_input(socket: BorrowedFd<'_>, left: &mut usize) -> bool {
    let mut dropped = [0; 4096];
    while *left > 0 {
        match listener::receive_now(socket, &mut dropped) {
            Ok(0) => return true,
            Ok(n) => *left = left.saturating_sub(n),
            Err(error) => return !is_wait(&error),
        }
    }
    true
}

/// The time limit of one blocking call. Connections of a blocking model inherit it from their
/// listener (see [`call_max`]), which saves a setsockopt for each connection and a poll for each
/// request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallLimit(Nanos);

/// The limit for the listener: the shortest time that a client may wait. A longer wait takes
/// several calls; poll waits for the rest of one that has begun.
pub(crate) fn call_max(config: &SiteConfig) -> Nanos {
    config.waits().min().unwrap_or(LINGER_MAX)
}

impl CallLimit {
    /// The limit that the service's listener has.
    pub(crate) fn of(service: &Service) -> Self {
        Self(call_max(&service.config))
    }

    /// Whether one call may last beyond the deadline. A deadline that was set a moment ago counts
    /// as a whole limit: we rather time out 2 % late than make one more system call for each
    /// request.
    fn exceeds(self, left: Nanos) -> bool {
        left.0 < self.0.0 - self.0.0 / 50
    }
}

/// The exchange of a thread that serves one connection after the other. The buffers of the first
/// connection serve all later ones.
pub(crate) fn exchange_for<'a, 's>(
    spare_exchange: &'a mut Option<Exchange<'s>>,
    service: &'s Service,
    peer: SocketAddr,
) -> &'a mut Exchange<'s> {
    let now = clock::monotonic();
    match spare_exchange {
        Some(exchange) => {
            exchange.reset_for(peer, now);
            exchange
        }
        None => spare_exchange.insert(Exchange::new(service, peer, now)),
    }
}

/// Serves one connection to its end on a blocking socket, in the calling thread. `ending` says
/// whether and how the server or this child is to end. A signal interrupts the blocking call so
/// that we ask it.
pub(crate) fn serve_blocking(
    socket: OwnedFd,
    exchange: &mut Exchange<'_>,
    call_limit: CallLimit,
    ending: &impl Fn() -> Option<Stop>,
) {
    let after_call = || AfterCall { now: clock::monotonic(), ending: ending().is_some() };
    loop {
        match ending() {
            None => {}
            Some(Stop::AtOnce) => return exchange.lost(clock::monotonic()),
            // A request that has already arrived is still answered.
            Some(Stop::Drain) if wait(socket.as_fd(), PollFlags::IN, Nanos::ZERO) => {}
            Some(Stop::Drain) => exchange.finish(),
        }
        // `Empty` is for sockets that report readiness. Here the receive itself waits.
        let mut input = InputState::MayHave;
        let flags = match advance(socket.as_fd(), exchange, &mut input, after_call) {
            Step::Close(how) => return linger_blocking(socket, how, ending),
            Step::Turn => continue,
            Step::Hold(until) => {
                sleep_until(until);
                continue;
            }
            Step::Gateway => {
                wait_for_gateway(socket.as_fd(), exchange, None);
                continue;
            }
            Step::Read => PollFlags::IN,
            Step::Write => PollFlags::OUT,
        };
        let left = exchange.deadline().saturating_sub(clock::monotonic());
        if left > Nanos::ZERO && call_limit.exceeds(left) {
            wait(socket.as_fd(), flags, left);
        }
        // This does nothing before the deadline. If the deadline has come, the next call would
        // block too long.
        exchange.timed_out(clock::monotonic());
    }
}

/// Adds the file of a gateway to a poll set. The set may have it already, for this connection or
/// another.
pub(crate) fn watch_gateway(
    epoll: &Epoll,
    awaited: &Awaited<'_>,
    token: u64,
    flags: EventFlags,
) -> io::Result<()> {
    match epoll.add(awaited.file, token, flags) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            epoll.modify(awaited.file, token, flags)
        }
        added => added,
    }
}

/// Waits for news from the gateway or the client, the deadline, or a signal. Returns whether `ends`
/// was given and rung.
pub(crate) fn wait_for_gateway(
    socket: BorrowedFd<'_>,
    exchange: &mut Exchange<'_>,
    ends: Option<BorrowedFd<'_>>,
) -> bool {
    let left = exchange.deadline().saturating_sub(clock::monotonic());
    let has_room = exchange.room().is_some_and(|room| !room.is_empty());
    let Some(Awaited { file, reads, writes, .. }) = exchange.awaited() else { return false };
    let mut of_file = PollFlags::empty();
    of_file.set(PollFlags::IN, reads);
    of_file.set(PollFlags::OUT, writes);
    // poll(2) reports a broken connection even without any flag.
    let of_client = if has_room { PollFlags::IN } else { PollFlags::empty() };
    let mut files = [
        PollFd::from_borrowed_fd(file, of_file),
        PollFd::from_borrowed_fd(socket, of_client),
        PollFd::from_borrowed_fd(ends.unwrap_or(file), PollFlags::IN),
    ];
    let watched = if ends.is_some() { &mut files[..] } else { &mut files[..2] };
    let is_ready = poll(watched, Some(&timespec(left))).is_ok_and(|n| n > 0);
    let broke = is_ready && files[1].revents().intersects(PollFlags::HUP | PollFlags::ERR);
    let rung = is_ready && ends.is_some() && !files[2].revents().is_empty();
    if broke {
        exchange.lost(clock::monotonic());
    }
    exchange.timed_out(clock::monotonic());
    rung
}

/// Blocks the thread until that instant, or until a signal comes.
pub(crate) fn sleep_until(until: Nanos) {
    let sleep = until.saturating_sub(clock::monotonic().saturating_add(SPIN));
    let timeout = timespec(sleep);
    if sleep == Nanos::ZERO || poll(&mut [], Some(&timeout)).is_ok() {
        spin_until(until);
    }
}

/// Like [`sleep_until`], but `ends` interrupts it. Returns whether the instant has come.
pub(crate) fn sleep_unless_rung(until: Nanos, ends: &Wake) -> bool {
    loop {
        let left = until.saturating_sub(clock::monotonic().saturating_add(SPIN));
        if left == Nanos::ZERO {
            spin_until(until);
            return true;
        }
        let mut files = [PollFd::new(ends, PollFlags::IN)];
        if poll(&mut files, Some(&timespec(left))).is_ok_and(|n| n > 0) {
            return false;
        }
    }
}

/// Waits for the end of a hold without the kernel.
fn spin_until(until: Nanos) {
    while clock::monotonic() < until {
        std::hint::spin_loop();
    }
}

/// The time for a turn: that of the round, or the exact time if a planted fault counts from it.
pub(crate) fn time(service: &Service, round: Nanos) -> Nanos {
    if service.faults.is_some() { clock::monotonic() } else { round }
}

fn linger_blocking(socket: OwnedFd, how: Close, ending: &impl Fn() -> Option<Stop>) {
    let Some(socket) = close(socket, how) else { return };
    let until = clock::monotonic().saturating_add(LINGER_MAX);
    let mut left = LINGER_BYTES_MAX;
    while ending() != Some(Stop::AtOnce) && !drop_input(socket.as_fd(), &mut left) {
        let now = clock::monotonic();
        if now >= until {
            return;
        }
        wait(socket.as_fd(), PollFlags::IN, until - now);
    }
}

/// Waits until the socket is ready, the time is over or a signal comes. Returns whether it is
/// ready.
pub(crate) fn wait(socket: BorrowedFd<'_>, flags: PollFlags, most: Nanos) -> bool {
    poll(&mut [PollFd::new(&socket, flags)], Some(&timespec(most))).is_ok_and(|n| n > 0)
}

/// Waits until the socket can send or the time is over. Returns whether `ends` was rung.
pub(crate) fn wait_for_room(socket: BorrowedFd<'_>, ends: &Wake, most: Nanos) -> bool {
    let mut files = [PollFd::new(ends, PollFlags::IN), PollFd::new(&socket, PollFlags::OUT)];
    poll(&mut files, Some(&timespec(most))).is_ok() && !files[0].revents().is_empty()
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    use super::*;
    use crate::testing;

    #[test]
    fn a_client_that_stops_within_a_head_is_refused_at_the_deadline() {
        let mut config = testing::config();
        config.site.limits.head_timeout = Nanos::from_millis(20);
        let service = Service::bind(config).unwrap();
        let (mut client, socket) = UnixStream::pair().unwrap();
        client.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        client.write_all(b"GET / HT").unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // A call on this socket would never time out: one call too many would hang the
                // test.
                let mut exchange = Exchange::new(&service, service.address(), clock::monotonic());
                let call_limit = CallLimit(Nanos::from_secs(3600));
                serve_blocking(socket.into(), &mut exchange, call_limit, &|| None);
            });
            let mut answer = [0; 12];
            client.read_exact(&mut answer).unwrap();
            assert_eq!(&answer, b"HTTP/1.1 408");
            drop(client);
        });
    }
}
