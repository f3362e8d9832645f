//! What the kernel drivers, epoll and io_uring, have in common: the state of a connection, what it receives next, and
//! their clock. Start reading at [`Interest`].

use std::cell::Cell;
use std::io;
use std::os::fd::AsFd;

use units::Nanos;

use crate::clock;
use crate::socket::{self, LowWater};
use crate::stamps::Clocks;

/// Bytes of a [`Receive::Head`]: a head has some hundred. A larger receive would copy most of a body before the caller
/// could say that it does not need it.
pub(crate) const HEAD_BYTES: usize = 1024;

/// Bytes of one [`Receive::Discard`], so that an endless body does not keep the others from their turn.
const DISCARD_BYTES_MAX: u64 = 1024 * 1024;

/// Full receives from one connection before the others have their turn again. Without a limit one endless reply would
/// keep the caller from ever reading its clock. 16 of them make 1 MiB and more, so the additional wait is not
/// noticeable.
pub(crate) const FULL_RECVS_MAX: u8 = 16;

/// The state of a connection.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnPhase {
    #[default]
    Connecting,
    Open,
    /// The end of the stream was received; sending is possible.
    Ended,
    /// A failure was or will be reported; the socket waits to be closed.
    Failed,
}

impl ConnPhase {
    /// Whether bytes can be sent.
    pub(crate) fn can_send(self) -> bool {
        matches!(self, Self::Open | Self::Ended)
    }
}

/// What a receive takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Receive {
    /// All bytes that are there.
    All,
    /// As many bytes as a head may need: [`HEAD_BYTES`].
    Head,
    /// At most this many bytes, which are discarded.
    Discard(usize),
}

/// Which of the coming bytes are needed.
#[derive(Default)]
pub(crate) struct Interest {
    /// How many of the bytes that are not reported yet are not needed; and whether a head is expected after them.
    discard_left: u64,
    expects_head: bool,
    low_water: LowWater,
}

impl Interest {
    /// The kind of the next receive.
    #[inline]
    pub(crate) fn next(&self) -> Receive {
        match self.discard_left {
            0 if self.expects_head => Receive::Head,
            0 => Receive::All,
            n_bytes => Receive::Discard(n_bytes.min(DISCARD_BYTES_MAX) as usize),
        }
    }

    /// Notes that bytes were received: after the last one that is not needed comes a head.
    #[inline]
    pub(crate) fn came(&mut self, socket: impl AsFd, n_bytes: u64) {
        self.expects_head = self.discard_left > 0 && self.discard_left <= n_bytes;
        if self.discard_left > 0 {
            self.discard(socket, self.discard_left.saturating_sub(n_bytes));
        }
    }

    /// The next `n_bytes` are not needed.
    #[inline]
    pub(crate) fn discard(&mut self, socket: impl AsFd, n_bytes: u64) {
        self.discard_left = n_bytes;
        self.low_water.follow(socket, n_bytes);
    }
}

/// The result of a recv.
pub(crate) struct Taken {
    pub(crate) n_bytes: usize,
    /// The most that it would have taken.
    pub(crate) n_bytes_max: usize,
    pub(crate) is_discarded: bool,
    pub(crate) stamp: Option<Nanos>,
}

impl Taken {
    /// Whether there may be more.
    pub(crate) fn is_full(&self) -> bool {
        self.n_bytes == self.n_bytes_max
    }
}

/// Receives once: discards bytes that are not needed, and reads others into `buf`. `None`: nothing is there.
///
/// # Errors
/// As [`socket::recv`].
#[inline]
pub(crate) fn take(
    socket: impl AsFd + Copy,
    interest: &mut Interest,
    buf: &mut [u8],
    stamped: bool,
) -> io::Result<Option<Taken>> {
    let (n_bytes_max, is_discarded) = match interest.next() {
        Receive::All => (buf.len(), false),
        Receive::Head => (HEAD_BYTES, false),
        Receive::Discard(n_bytes) => (n_bytes, true),
    };
    let taken = match (stamped, is_discarded) {
        (true, true) => socket::recv_stamped(socket, &mut [], Some(n_bytes_max))?,
        (true, false) => socket::recv_stamped(socket, &mut buf[..n_bytes_max], None)?,
        (false, true) => socket::discard(socket, n_bytes_max)?.map(|n_bytes| (n_bytes, None)),
        (false, false) => {
            let n_bytes = socket::recv(socket, &mut buf[..n_bytes_max])?;
            n_bytes.map(|n_bytes| (n_bytes, None))
        }
    };
    let Some((n_bytes, stamp)) = taken else { return Ok(None) };
    interest.came(socket, n_bytes as u64);
    Ok(Some(Taken { n_bytes, n_bytes_max, is_discarded, stamp }))
}

/// The clock of a driver.
pub(crate) struct Timing {
    origin: Nanos,
    /// The last reading.
    last: Cell<Nanos>,
    clocks: Clocks,
    /// Whether waits poll instead of sleeping; and the CPU time spent in polls that found nothing.
    pub(crate) busy_poll: bool,
    pub(crate) spun: Nanos,
}

impl Timing {
    /// Starts now.
    pub(crate) fn new() -> Self {
        let (origin, clocks) = (clock::monotonic(), Clocks::default());
        Self { origin, last: Cell::default(), clocks, busy_poll: false, spun: Nanos::ZERO }
    }

    /// As [`crate::driver::Driver::begin`].
    pub(crate) fn begin(&mut self, origin: Nanos) {
        self.origin = origin;
    }

    /// As [`crate::driver::Driver::now`].
    pub(crate) fn now(&self) -> Nanos {
        let now = clock::monotonic().saturating_sub(self.origin);
        self.last.set(now);
        now
    }

    /// The instant on the monotonic clock.
    pub(crate) fn monotonic(&self, instant: Nanos) -> Nanos {
        self.origin.saturating_add(instant)
    }

    /// CPU time of the thread, without polls that found nothing.
    pub(crate) fn cpu(&self) -> Nanos {
        clock::thread_cpu().saturating_sub(self.spun)
    }

    /// How long to wait until that instant, counted from the last reading of the clock: the caller has just read it,
    /// and a reading costs 50 ns in a virtual machine. `None`: for ever.
    pub(crate) fn timeout(&self, until: Nanos) -> Option<Nanos> {
        (until != Nanos::MAX).then(|| until.saturating_sub(self.last.get()))
    }

    /// The thread is about to sleep: see [`Clocks::woke`].
    pub(crate) fn sleeps(&self) {
        self.clocks.woke();
    }

    /// The instant of a stamp by the wall clock.
    pub(crate) fn of_stamp(&self, wall: Nanos) -> Nanos {
        self.clocks.since(self.origin, wall)
    }
}
