//! How a server hands its port to the one that follows it. Known to all processes of both: who has the
//! port, and whether the first accepts no more.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use sys::process::SharedCells;

/// Whether another process goes on with a server's listening socket: known to all processes of both.
#[derive(Debug, Clone)]
pub(crate) struct Handover(Arc<SharedCells>);

impl Handover {
    /// No handover yet.
    ///
    /// # Errors
    /// ENOMEM.
    pub(crate) fn none() -> io::Result<Self> {
        Ok(Self(Arc::new(SharedCells::new(4)?)))
    }

    /// From now on another server has the first `queues` queues of the port, and this one leaves them open.
    pub(crate) fn begin(&self, queues: usize) {
        self.0[0].store(queues as u32, Relaxed);
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.queues() != 0
    }

    /// Queues that the other server has.
    pub(crate) fn queues(&self) -> usize {
        self.0[0].load(Relaxed) as usize
    }

    /// The server that hands over accepts no more connections.
    pub(crate) fn accepts_no_more(&self) {
        self.0[1].store(1, Relaxed);
    }

    pub(crate) fn is_free(&self) -> bool {
        self.0[1].load(Relaxed) != 0
    }

    /// This many workers (processes, or threads of processes) serve now.
    pub(crate) fn set_workers(&self, count: usize) {
        self.0[2].store(count as u32, Relaxed);
    }

    pub(crate) fn workers(&self) -> usize {
        self.0[2].load(Relaxed) as usize
    }

    /// From now on the queues of the port are being closed: no other server can go on with them.
    pub(crate) fn closes_port(&self) {
        self.0[3].store(1, Relaxed);
    }

    pub(crate) fn has_closed_port(&self) -> bool {
        self.0[3].load(Relaxed) != 0
    }
}
