//! Owns the experiment: adapters that run real servers, the schedule of visits, what is counted while they are
//! loaded, the verdicts, and the folder of results. Must not know argv, rendering, or the inside of any server: our
//! own is a child process like any other.
//! Start reading at [`runner`] for how an experiment runs, at [`adapters`] for how a server is configured.

pub mod adapters;
pub mod analysis;
mod budget;
mod by_tool;
pub mod calibration;
mod calls;
mod capacity;
mod cgroup;
pub mod clients;
pub mod cpus;
pub mod elsewhere;
pub mod error;
pub mod facts;
pub mod gate;
pub mod journal;
mod left;
pub mod look;
mod machine;
mod memory;
mod nearest;
pub mod netns;
pub mod oracle;
mod others;
pub mod parity;
pub mod prepare;
pub mod probe;
mod proc_stat;
mod processes;
pub mod results;
pub mod runner;
pub mod sampler;
pub mod schedule;
mod scratch;
pub mod server;
pub mod session;
mod settle;
pub mod study;
mod study_error;
pub mod surroundings;
pub mod tree;
mod trial;
pub mod verdict;

pub use error::LabError;
pub use nearest::nearest;
