//! Owns every `unsafe` line and every direct system call: epoll, sockets, processes, signals,
//! affinity, clocks. Its interface is safe. Must not know HTTP, statistics or policy. Start reading
//! at [`driver`] for the generator's side, [`process`] for the server's.

#![warn(clippy::cast_lossless)]

pub mod affinity;
pub mod allocations;
pub mod append;
pub mod child;
pub mod clock;
pub mod driver;
pub mod epoll;
pub mod epoll_driver;
pub mod file;
pub mod handout;
pub mod heap;
pub mod identity;
pub mod interrupt;
pub mod landlock;
pub mod link;
pub mod listener;
pub mod mark;
pub mod namespace;
pub mod pagemap;
pub mod poll;
pub mod process;
pub mod program;
mod shared;
pub mod signals;
pub mod sock_diag;
pub mod socket;
mod stamps;
pub mod syscalls;
pub mod tcp_info;
mod uring;
pub mod uring_driver;
pub mod uring_server;
pub mod wake;
pub mod watch;
