//! What several models share: who accepts, where connections wait, how loops and processes end.
//! Start reading at [`socket_io`], which carries out what an `Exchange` wants of its socket.

pub(crate) mod acceptor;
pub(crate) mod answer_threads;
pub(crate) mod child;
pub(crate) mod handoff;
pub(crate) mod loop_group;
pub(crate) mod looped;
pub(crate) mod parent;
pub(crate) mod parked;
pub(crate) mod run_queue;
pub(crate) mod scoreboard;
pub(crate) mod socket_io;
pub(crate) mod spare;
pub(crate) mod timers;
