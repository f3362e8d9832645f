//! The generator's [`Driver`] on io_uring. Owns the operations in flight, the order in which their ends are reported,
//! and the bytes that the kernel did not take. Start reading at [`UringDriver`], then its `wait` and `take`.
//!
//! # Cost
//!
//! | what | system calls |
//! |---|---|
//! | a reply and the next request on a kept-alive connection | 1/8 io_uring_enter |
//! | a round, shared by all replies that are there | 1 io_uring_enter |
//! | a connection | socket, TCP_NODELAY, TCP_QUICKACK, connect, getpeername, close; shutdown where it is left by us |
//! | a reply whose body is discarded | besides: 2 recv, one more for each wake-up within it |
//! | a body of 256 KiB or more that is discarded | SO_RCVLOWAT, 3 times |
//!
//! - A receive is armed once per connection (multishot) and takes its buffers from a ring that all
//!   connections share: memory grows with what arrives at once, not with the number of connections.
//! - A send that succeeds has no completion (CQE_SKIP_SUCCESS). MSG_DONTWAIT and MSG_WAITALL together
//!   make it complete or fail. A send that the kernel took in part, or not at all, completes with the
//!   number of bytes taken and is no longer in flight, so its bytes are ours again as soon as it was
//!   submitted. The rest goes into a send of its own, which waits for room.
//! - Sends are submitted when `BATCH_MAX` are pending, when that many completions were reported
//!   since, or at the next wait.
//! - If bodies are discarded, the multishot receive is replaced by a poll and recv(2) (`polled.rs`).
//!
//! Memory: the buffers, at most 4 MiB; about 200 bytes per slot, and what the kernel keeps for an armed receive (about
//! 700 bytes).

use std::collections::VecDeque;
use std::io;
use std::marker::PhantomData;
use std::os::fd::AsRawFd as _;

use io_uring::types::{CancelBuilder, Fd};
use io_uring::{opcode, squeue};
use units::Nanos;

use crate::clock;
use crate::driver::{Completion, Driver, Failure, Leave, Peer, Route, Slot, What};
use crate::shared::{ConnPhase, Receive, Timing};
use crate::socket::{self, Handshake};
use crate::tcp_info::TcpInfo;
use crate::uring::buffers::{Buffers, Filled, Shape};
use crate::uring::ring::{self, Ring};

mod alarm;
mod chains;
mod completions;
mod conn;
mod polled;
mod receives;

use alarm::{Alarm, End};
use chains::{Chains, Event};
use conn::{Conn, Operation, Receiving};
use receives::Header;

/// Most pending sends before they are submitted, and most completions that are processed meanwhile. The caller stamps a
/// request as sent just before [`Driver::send`]. A pending request waits while the others are handled, about 1 us each,
/// so a stamp is at most 7 us early, and 3.5 us on average. A larger batch would save nothing: with 4, 8, 16 and 64 a
/// request took 5.77, 5.77, 5.75 and 5.75 us of CPU time (replies of 3 KB, 100 connections, some three of them ready in
/// a round).
const BATCH_MAX: usize = 8;

/// Largest pending send; a longer one is sent at once by send(2), because copying it twice would cost more than the
/// saved call.
const STAGED_BYTES_MAX: usize = 4 * 1024;

/// Most buffers of the ring. If more replies arrive in one round, receives that find no buffer end (ENOBUFS) and are
/// armed again in the next round.
const BUFFERS_MAX: u32 = 256;

/// Bytes of a buffer.
const BUFFER_BYTES: u16 = 16 * 1024;

/// io_uring, for the slots 0 to `slots` - 1; stays on the thread that made it.
pub struct UringDriver {
    /// Dropped first, so that the kernel releases the memory below.
    ring: Ring,
    buffers: Buffers,
    timing: Timing,
    alarm: Alarm,
    conns: Vec<Conn>,
    chains: Chains,
    /// The slot of the last completion, until the next is requested; the buffer that it came in, which is given back
    /// then; and when it happened, if that is known.
    worked_on: Option<Slot>,
    held: Option<Filled>,
    arrived: Option<Nanos>,
    /// Set if stamps were requested.
    header: Option<Header>,
    /// Bytes read from a polled connection: the first `n_direct` are those of the last completion.
    direct: Box<[u8]>,
    n_direct: usize,
    /// Polled connections that used up their share of a round and may have more: slot and generation.
    unfinished: VecDeque<(Slot, u32)>,
    /// Pending sends, and their bytes.
    staged: Vec<Staged>,
    staged_bytes: Box<[u8]>,
    /// Incremented whenever entries were submitted.
    batch: u64,
    /// Completions that were reported while sends were pending.
    n_reported: usize,
    /// Connections whose receive found no buffer: slot and generation.
    starved: VecDeque<(Slot, u32)>,
    n_starved: u64,
    /// Operations that name our memory and have a completion to come.
    n_in_flight: usize,
    /// Bytes of sends that were in flight when their connection was closed, until they end.
    orphans: Vec<(u64, Vec<u8>)>,
    /// Why the ring can no longer be used; the next wait reports it.
    broken: Option<io::Error>,
    handshake: Handshake,
    /// The ring belongs to this thread (SINGLE_ISSUER).
    _not_send: PhantomData<*const ()>,
}

/// A pending send: `staged_bytes[from..from + n_bytes]`.
struct Staged {
    slot: Slot,
    from: usize,
    n_bytes: usize,
}

/// Whether io_uring can be used here for this many slots, over all threads: they share a user's limit of locked memory.
/// Makes a ring like the driver's, enters it once (a sandbox may forbid only that), and closes it.
///
/// # Errors
/// As [`UringDriver::new`].
pub fn is_available(n_slots: u32) -> io::Result<()> {
    UringDriver::new(n_slots)?.ring.look().map_err(ring::explained)
}

impl UringDriver {
    /// A driver for `slots` connections, for the calling thread only.
    ///
    /// # Errors
    /// [`io::ErrorKind::Unsupported`] if the kernel has no io_uring, or one from before 6.1;
    /// [`io::ErrorKind::PermissionDenied`] if it is forbidden. Both name the cause, and are a reason to use
    /// [`crate::epoll_driver`] instead. [`io::ErrorKind::OutOfMemory`] if the limit of locked memory is below some 128
    /// bytes per slot. EMFILE as it is.
    pub fn new(slots: u32) -> io::Result<Self> {
        let n_buffers = slots.next_power_of_two().clamp(16, BUFFERS_MAX);
        let ring = Ring::new(n_buffers + 4 * slots).map_err(ring::explained)?;
        let shape = Shape { n_buffers: n_buffers as u16, n_bytes: BUFFER_BYTES };
        let buffers = Buffers::register(ring.uring(), shape).map_err(ring::explained)?;
        Ok(Self {
            ring,
            buffers,
            timing: Timing::new(),
            alarm: Alarm::default(),
            conns: (0..slots).map(|_| Conn::default()).collect(),
            chains: Chains::new(slots, n_buffers),
            worked_on: None,
            held: None,
            arrived: None,
            header: None,
            direct: vec![0; BUFFER_BYTES.into()].into_boxed_slice(),
            n_direct: 0,
            unfinished: VecDeque::new(),
            staged: Vec::with_capacity(BATCH_MAX),
            staged_bytes: vec![0; BATCH_MAX * STAGED_BYTES_MAX].into_boxed_slice(),
            batch: 1,
            n_reported: 0,
            starved: VecDeque::with_capacity(slots as usize),
            n_starved: 0,
            n_in_flight: 0,
            orphans: Vec::new(),
            broken: None,
            handshake: Handshake::AckWithRequest,
            _not_send: PhantomData,
        })
    }

    /// Waits by polling instead of sleeping, so that the wake-up of an idle CPU (some 50 us, in a virtual machine 100
    /// and more) does not delay replies. It takes a whole CPU; [`Driver::cpu`] does not include polls that find
    /// nothing.
    #[must_use]
    pub fn busy_polling(mut self, busy_poll: bool) -> Self {
        self.timing.busy_poll = busy_poll;
        self
    }

    /// Whether the first request carries the ACK of the handshake ([`Handshake::AckWithRequest`]); on by default. Turn
    /// it off for connections that are opened in advance: the server would see them up to 200 ms late.
    #[must_use]
    pub fn ack_with_request(mut self, on: bool) -> Self {
        self.handshake = if on { Handshake::AckWithRequest } else { Handshake::AckAtOnce };
        self
    }

    /// Makes the kernel stamp what arrives, for [`Driver::arrived`]; if it cannot, that stays `None`. The control
    /// message costs each receive about 0.2 us.
    #[must_use]
    pub fn with_kernel_stamps(mut self, on: bool) -> Self {
        self.header = on.then(Header::new);
        self
    }

    /// How many times a receive ended because all buffers were in use, and was armed again: a high number means that
    /// this thread cannot keep up.
    #[must_use]
    pub fn n_starved(&self) -> u64 {
        self.n_starved
    }

    fn token(&self, slot: Slot, kind: Operation) -> u64 {
        conn::token(kind, self.conns[slot.0 as usize].generation, slot)
    }

    /// Pushes an operation on a slot's socket.
    fn push(&mut self, slot: Slot, kind: Operation, entry: squeue::Entry) {
        self.conns[slot.0 as usize].batch = self.batch;
        if kind != Operation::Send {
            self.n_in_flight += 1;
        }
        let entry = entry.user_data(self.token(slot, kind));
        // SAFETY: the named memory lives long enough. Receives only name the buffers, which outlive the ring. Staged
        // bytes stay until the entries are submitted, and the kernel needs them no longer. `unsent` stays untouched
        // until its completion.
        let pushed = unsafe { self.ring.push(&entry) };
        self.note(pushed);
    }

    fn cancel(&mut self, entry: &squeue::Entry) {
        let entry = entry.clone().user_data(conn::token(Operation::Cancel, 0, Slot(0)));
        // SAFETY: a cancellation names no memory.
        let pushed = unsafe { self.ring.push(&entry) };
        self.note(pushed);
    }

    fn note(&mut self, result: io::Result<()>) {
        if let Err(error) = result {
            self.broken.get_or_insert(error);
        }
    }

    /// Arms a slot's receive, unless one is in flight or its bytes are not processed yet: only then is it known in
    /// which way to receive next.
    fn receive(&mut self, slot: Slot) {
        let conn = &mut self.conns[slot.0 as usize];
        let idle = conn.phase == ConnPhase::Open && conn.receiving.is_none() && !conn.starved;
        if !idle || self.worked_on == Some(slot) || !self.chains.is_empty_of(slot) {
            return;
        }
        if conn.polled || conn.interest.next() != Receive::All {
            return self.poll(slot);
        }
        let socket = conn.socket.as_ref().expect("an open connection has a socket");
        conn.receiving = Some(Receiving::Repeated);
        let entry = receives::repeated(Fd(socket.as_raw_fd()), self.header.as_ref());
        self.push(slot, Operation::Receive, entry);
    }

    /// The last completion has been processed.
    #[inline]
    fn worked_off(&mut self) {
        if let Some(filled) = self.held.take() {
            self.buffers.give_back(filled.id);
        }
        self.arrived = None;
        if let Some(slot) = self.worked_on.take() {
            self.receive(slot);
        }
    }

    /// The event as the caller sees it; `None`: nothing to report.
    #[inline]
    fn report(&mut self, slot: Slot, event: Event) -> Option<What> {
        match event {
            Event::Connected(at) => {
                self.arrived = at;
                Some(What::Connected)
            }
            Event::Closed => Some(What::Closed),
            Event::Failed(failure) => Some(What::Failed(failure)),
            Event::Received(filled) => {
                self.held = Some(filled);
                self.conns[slot.0 as usize].came(filled.n_bytes);
                let in_buffer = |header: &Header| header.in_buffer(self.buffers.whole(filled));
                let stamp = self.header.as_ref().and_then(in_buffer);
                self.arrived = stamp.map(|stamp| self.timing.of_stamp(stamp));
                Some(What::Received)
            }
            Event::Readable => {
                let what = self.read(slot);
                if what.is_none() {
                    // If the poll has ended, it is armed again here: nothing else would do that.
                    self.receive(slot);
                }
                what
            }
        }
    }

    /// Starts sending a connection's `unsent`; this send waits for room as long as needed.
    fn send_rest(&mut self, slot: Slot) {
        let conn = &mut self.conns[slot.0 as usize];
        let socket = conn.socket.as_ref().expect("only an open connection has bytes left over");
        conn.sending = true;
        let (start, n_bytes) = (conn.unsent.as_ptr(), conn.unsent.len() as u32);
        let flags = libc::MSG_NOSIGNAL | libc::MSG_WAITALL;
        let entry = opcode::Send::new(Fd(socket.as_raw_fd()), start, n_bytes).flags(flags).build();
        self.push(slot, Operation::SendRest, entry);
    }

    /// Submits what is pending and takes the completions that are there at once.
    fn hand_over(&mut self) {
        let submitted = self.ring.submit();
        self.note(submitted);
        self.handed_over();
    }

    /// Takes what is there after entries were submitted, and clears the staged sends: the kernel is done with them once
    /// the partial sends are known.
    fn handed_over(&mut self) {
        // Before the completions: entries that these push belong to the next batch.
        self.batch += 1;
        self.n_reported = 0;
        loop {
            while let Some(completion) = self.ring.pop() {
                self.take(&completion);
            }
            if !self.ring.has_overflowed() || self.broken.is_some() {
                break;
            }
            // Completions that found no room may belong to staged sends.
            let looked = self.ring.look();
            self.note(looked);
        }
        self.staged.clear();
    }

    fn spin(&mut self, until: Nanos) -> io::Result<()> {
        self.ring.look()?;
        self.handed_over();
        if !self.chains.is_empty() {
            return Ok(());
        }
        let begun = clock::thread_cpu();
        // The next wait re-arms receives that found no buffer.
        let is_idle = |driver: &Self| {
            driver.chains.is_empty() && driver.broken.is_none() && driver.starved.is_empty()
        };
        while is_idle(self) && self.now() < until {
            self.ring.look()?;
            self.handed_over();
        }
        self.timing.spun += clock::thread_cpu().saturating_sub(begun);
        Ok(())
    }

    /// The timer of the wait itself; none if the alarm ends the wait.
    fn timer_of(&mut self, timeout: Nanos, until: Nanos) -> Option<Nanos> {
        let at = self.timing.monotonic(until);
        match self.alarm.end_of(timeout, at) {
            End::OwnTimer => return Some(timeout),
            End::Alarm => {}
            End::NewAlarm => {
                let entry = self.alarm.set(at, timeout);
                // SAFETY: the entry names the alarm's memory, which is set again only after the alarm has rung.
                let pushed = unsafe { self.ring.push(&entry) };
                self.note(pushed);
            }
        }
        None
    }

    fn stage(&mut self, slot: Slot, fd: Fd, bytes: &[u8]) {
        if self.staged.len() == BATCH_MAX {
            self.hand_over();
        }
        let from = self.staged.len() * STAGED_BYTES_MAX;
        let place = &mut self.staged_bytes[from..][..bytes.len()];
        place.copy_from_slice(bytes);
        let start = place.as_ptr();
        self.staged.push(Staged { slot, from, n_bytes: bytes.len() });
        let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT | libc::MSG_WAITALL;
        let entry = opcode::Send::new(fd, start, bytes.len() as u32).flags(flags).build();
        self.push(slot, Operation::Send, entry.flags(squeue::Flags::SKIP_SUCCESS));
    }
}

impl Driver for UringDriver {
    fn name(&self) -> &'static str {
        "io_uring"
    }

    fn begin(&mut self, origin: Nanos) {
        self.timing.begin(origin);
    }

    fn now(&mut self) -> Nanos {
        self.timing.now()
    }

    fn cpu(&mut self) -> Nanos {
        self.timing.cpu()
    }

    fn connect(&mut self, slot: Slot, route: &Route) {
        let conn = &mut self.conns[slot.0 as usize];
        assert!(conn.socket.is_none(), "a slot is closed before it connects again");
        // A system call and not an entry: its cost is the handshake, and a connection to this machine is established
        // when it returns, so that its request goes with the next batch.
        let connecting = socket::connect(route, self.handshake).map(|socket| {
            let is_connected = socket::is_connected(&socket);
            if self.header.is_some() {
                // Everything else works without stamps.
                socket::enable_stamps(&socket).ok();
            }
            let fd = Fd(socket.as_raw_fd());
            let conn = &mut self.conns[slot.0 as usize];
            conn.socket = Some(socket);
            conn.phase = ConnPhase::Connecting;
            conn.is_inet = matches!(route.to, Peer::Inet(_));
            if is_connected {
                self.connected(slot, Some(self.timing.now()));
            } else {
                let writable = u32::from(libc::POLLOUT as u16);
                self.push(slot, Operation::Connect, opcode::PollAdd::new(fd, writable).build());
            }
        });
        if let Err(error) = connecting {
            self.fails(slot, Failure::from(&error));
        }
    }

    fn send(&mut self, slot: Slot, bytes: &[u8]) {
        if self.staged.iter().any(|staged| staged.slot == slot) {
            // The previous send may have been taken in part.
            self.hand_over();
        }
        let conn = &mut self.conns[slot.0 as usize];
        let Some(socket) = conn.socket.as_ref().filter(|_| conn.phase.can_send()) else { return };
        if conn.sending {
            conn.queued.extend_from_slice(bytes);
        } else if bytes.len() <= STAGED_BYTES_MAX {
            let fd = Fd(socket.as_raw_fd());
            self.stage(slot, fd, bytes);
        } else {
            match socket::send(socket, bytes) {
                Ok(Some(n_sent)) if n_sent == bytes.len() => {}
                Ok(sent) => {
                    conn.unsent.clear();
                    conn.unsent.extend_from_slice(&bytes[sent.unwrap_or(0)..]);
                    self.send_rest(slot);
                }
                Err(error) => self.send_fails(slot, error.raw_os_error().unwrap_or(0)),
            }
        }
    }

    fn discard(&mut self, slot: Slot, n_bytes: u64) {
        let token = self.token(slot, Operation::Receive);
        let conn = &mut self.conns[slot.0 as usize];
        let Some(socket) = conn.socket.as_ref().filter(|_| conn.is_inet) else { return };
        conn.interest.discard(socket, n_bytes);
        if n_bytes > 0 && conn.receiving == Some(Receiving::Repeated) {
            // The receive would copy the body; what it takes until it ends is delivered.
            let entry = opcode::AsyncCancel::new(token).build();
            self.cancel(&entry.flags(squeue::Flags::SKIP_SUCCESS));
        }
    }

    fn reply_complete(&mut self, slot: Slot) {
        let conn = &mut self.conns[slot.0 as usize];
        if conn.is_readable && !conn.drains && self.chains.take_back_readable(slot) {
            conn.is_readable = false;
        }
    }

    fn close(&mut self, slot: Slot, how: Leave) {
        // Unsubmitted entries name a descriptor, which may soon belong to another connection. Submitting them may add
        // one more: the rest of a send.
        while self.conns[slot.0 as usize].batch == self.batch {
            self.hand_over();
        }
        if self.conns[slot.0 as usize].receiving == Some(Receiving::Polled) {
            self.end_poll(slot);
        }
        let token = self.token(slot, Operation::SendRest);
        let conn = &mut self.conns[slot.0 as usize];
        if let Some(socket) = conn.socket.take() {
            let connecting = conn.phase == ConnPhase::Connecting;
            let under_way = conn.receiving.is_some() || conn.sending || connecting;
            conn::leave(&socket, how, under_way);
        }
        if std::mem::take(&mut conn.sending) {
            self.orphans.push((token, std::mem::take(&mut conn.unsent)));
        }
        conn.reset();
        for filled in self.chains.clear(slot) {
            self.buffers.give_back(filled.id);
        }
    }

    fn tcp_info(&self, slot: Slot) -> Option<TcpInfo> {
        let conn = &self.conns[slot.0 as usize];
        conn.socket.as_ref().filter(|_| conn.is_inet).and_then(TcpInfo::of)
    }

    fn wait(&mut self, until: Nanos) -> io::Result<()> {
        if let Some(error) = self.broken.take() {
            return Err(error);
        }
        if !self.chains.is_empty() {
            if !self.staged.is_empty() {
                self.hand_over();
            }
            return Ok(());
        }
        self.worked_off();
        self.timing.sleeps();
        self.buffers.publish();
        self.take_up_unfinished();
        while let Some((slot, generation)) = self.starved.pop_front() {
            let conn = &mut self.conns[slot.0 as usize];
            if conn.generation == generation {
                conn.starved = false;
                self.receive(slot);
            }
        }
        let has_more = !self.chains.is_empty();
        let timeout = if has_more { Some(Nanos::ZERO) } else { self.timing.timeout(until) };
        if self.timing.busy_poll && timeout != Some(Nanos::ZERO) {
            return self.spin(until);
        }
        let timeout = timeout.and_then(|timeout| self.timer_of(timeout, until));
        self.ring.wait(timeout)?;
        self.handed_over();
        Ok(())
    }

    #[inline]
    fn next(&mut self) -> Option<Completion> {
        self.worked_off();
        if !self.staged.is_empty() {
            self.n_reported += 1;
            if self.n_reported == BATCH_MAX {
                self.hand_over();
            }
        }
        loop {
            let (slot, event) = self.chains.next()?;
            let Some(what) = self.report(slot, event) else { continue };
            self.worked_on = Some(slot);
            return Some(Completion { slot, what });
        }
    }

    fn received(&self) -> &[u8] {
        self.held.map_or(&self.direct[..self.n_direct], |filled| self.buffers.bytes(filled))
    }

    fn arrived(&self) -> Option<Nanos> {
        self.arrived
    }
}

impl Drop for UringDriver {
    /// Ends operations in flight before their memory is freed. If the kernel does not confirm it (never seen), the
    /// memory is leaked.
    fn drop(&mut self) {
        for slot in 0..self.conns.len() as u32 {
            self.close(Slot(slot), Leave::Orderly);
        }
        self.cancel(&opcode::AsyncCancel2::new(CancelBuilder::any()).build());
        let until = clock::monotonic() + Nanos::from_secs(1);
        while self.n_in_flight > 0 && clock::monotonic() < until {
            if self.ring.wait(Some(Nanos::from_millis(10))).is_err() {
                break;
            }
            self.handed_over();
        }
        if self.n_in_flight > 0 {
            std::mem::forget(std::mem::take(&mut self.orphans));
            std::mem::forget(self.header.take());
            self.buffers.leak();
        }
    }
}
