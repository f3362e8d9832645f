//! Owns what makes many load agents give one result: an agent's estimate of the controller's clock, the windows that
//! agents send, their spool, the sum of all windows, and what is missing of it; and the two programs that do this over a NATS broker. The load itself
//! is made elsewhere.
//!
//! | module | what |
//! |---|---|
//! | [`ids`] | names of runs and agents |
//! | [`clock`] | the run clock, with a bound of its error |
//! | [`message`] | what an agent sends of a load |
//! | [`spool`] | messages on disk until they are collected |
//! | [`tally`] | the sum, each message once |
//! | [`coverage`] | what is there and what is missing |
//! | [`partial`] | the record of an agent that was lost |
//! | [`order`] | what a controller orders and an agent answers |
//! | [`conductor`] | the controller's part in a run |
//! | [`seat`] | an agent's part in it |
//! | [`plan`] | a plan, sealed and signed |
//! | [`permit`] | whom an agent's owner permits to load |
//! | [`config`] | the files of agents and controllers |
//! | [`init`] | those of a new fleet |
//! | [`broker`], [`subject`] | NATS, and the names on it |
//! | [`worker`] | the process that makes an agent's load |
//! | [`outbox`] | messages on their way to the broker |
//! | [`agent`], [`controller`] | the two programs |
//!
//! ```
//! use joust_fleet::clock::{ClockEstimate, Probe};
//! use units::Nanos;
//!
//! let mut clock = ClockEstimate::default();
//! let us = Nanos::from_micros;
//! clock.add(Probe { sent: us(0), received: us(1_040), answered: us(1_041), returned: us(81) });
//! let run = clock.to_run(us(81)).expect("a probe has come");
//! assert_eq!(run.at, us(1_081));
//! assert!(run.error < us(41));
//! ```

pub mod agent;
pub mod broker;
pub mod clock;
pub mod conductor;
pub mod config;
pub mod controller;
pub mod coverage;
pub mod ids;
pub mod init;
pub mod message;
pub mod order;
pub mod outbox;
pub mod partial;
pub mod permit;
pub mod plan;
pub mod seat;
#[cfg(test)]
mod simulated;
pub mod spool;
pub mod subject;
pub mod tally;
pub mod worker;

#[cfg(test)]
mod tests {
    /// The plan of a small load.
    pub(crate) fn plan() -> record::LoadPlan {
        let mut options = load::LoadOptions::new("http://127.0.0.1:1/");
        options.draft.stop.duration = Some(units::Nanos::from_secs(5));
        options.plan().expect("a plan")
    }
}
