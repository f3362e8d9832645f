//! What the drivers of the kernel, epoll and io_uring, have in common: how a connection stands, what it is
//! to receive next, and the time that they go by. Start reading at [`Interest`].

use std::cell::Cell;
use std::io;
use std::os::fd::AsFd;

use units::Nanos;

use crate::clock;
use crate::socket::{self, LowWater};
use crate::stamps::Clocks;

/// Bytes of a [`Receive::Head`]: a head has some hundred; with more of them most of a body would be
/// copied before anybody could say that it is of no interest.
pub(crate) const HEAD_BYTES: usize = 1024;

/// Bytes of one [`Receive::Discard`], so that an endless body leaves the others their turn.
const DISCARD_BYTES_MAX: u64 = 1024 * 1024;

/// Full receives from one connection before the others have their turn again. Without a bound
/// one endless reply would keep the caller from ever looking at its clock; 16 make 1 MiB and more, so the
/// additional wait is not to be seen.
pub(crate) const FULL_RECVS_MAX: u8 = 16;

/// How a connection stands.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnPhase {
    #[default]
    Connecting,
    Open,
    /// The end of the stream was received; sending is possible.
    Ended,
    /// A failure is or will be reported; the socket waits for its close.
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
    /// All that comes.
    All,
    /// What a head may need: [`HEAD_BYTES`].
    Head,
    /// At most this many bytes, to nowhere.
    Discard(usize),
}

/// Which of the bytes to come are of interest.
#[derive(Default)]
pub(crate) struct Interest {
    /// Bytes to come that are of none, of those that are not reported yet; and whether a head is
    /// expected behind them.
    discard_left: u64,
    expects_head: bool,
    low_water: LowWater,
}

impl Interest {
    /// What the next receive should take.
    #[inline]
    pub(crate) fn next(&self) -> Receive {
        match self.discard_left {
            0 if self.expects_head => Receive::Head,
            0 => Receive::All,
            n_bytes => Receive::Discard(n_bytes.min(DISCARD_BYTES_MAX) as usize),
        }
    }

    /// Bytes that came are reported: after the last of those that are of no interest comes a head.
    #[inline]
    pub(crate) fn came(&mut self, socket: impl AsFd, n_bytes: u64) {
        self.expects_head = self.discard_left > 0 && self.discard_left <= n_bytes;
        if self.discard_left > 0 {
            self.discard(socket, self.discard_left.saturating_sub(n_bytes));
        }
    }

    /// The next `n_bytes` are of no interest.
    #[inline]
    pub(crate) fn discard(&mut self, socket: impl AsFd, n_bytes: u64) {
        self.discard_left = n_bytes;
        self.low_water.follow(socket, n_bytes);
    }
}

/// What a recv took.
pub(crate) struct Taken {
    pub(crate) n_bytes: usize,
    /// What it would have taken at most.
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

/// Receives once: what is of no interest to nowhere, all else into `buf`. `None`: nothing is there.
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

/// The time that a driver goes by.
pub(crate) struct Timing {
    origin: Nanos,
    /// What was read last.
    last: Cell<Nanos>,
    clocks: Clocks,
    /// Whether waiting is asking again and again; and the CPU time that went into it.
    pub(crate) busy_poll: bool,
    pub(crate) spun: Nanos,
}

impl Timing {
    /// From now on.
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

    /// That instant by the monotonic clock.
    pub(crate) fn monotonic(&self, instant: Nanos) -> Nanos {
        self.origin.saturating_add(instant)
    }

    /// CPU time of the thread except asking in vain.
    pub(crate) fn cpu(&self) -> Nanos {
        clock::thread_cpu().saturating_sub(self.spun)
    }

    /// How long a wait until that instant lasts, from when the time was last asked for: whoever says until
    /// when has just done so, and a clock read is 50 ns in a virtual machine. `None`: for ever.
    pub(crate) fn timeout(&self, until: Nanos) -> Option<Nanos> {
        (until != Nanos::MAX).then(|| until.saturating_sub(self.last.get()))
    }

    /// The thread is about to sleep: see [`Clocks::woke`].
    pub(crate) fn sleeps(&self) {
        self.clocks.woke();
    }

    /// The instant of a stamp of the wall clock.
    pub(crate) fn of_stamp(&self, wall: Nanos) -> Nanos {
        self.clocks.since(self.origin, wall)
    }
}
