//! Owns what makes many load agents give one result: an agent's estimate of the controller's clock, the windows that
//! agents send, their spool, the sum of all windows, and what is missing of it. Nothing here sends anything.
//!
//! | module | what |
//! |---|---|
//! | [`ids`] | names of runs and agents |
//! | [`clock`] | the run clock, with a bound of its error |
//! | [`window`] | what one agent did in one second, as a message |
//! | [`spool`] | messages on disk until they are collected |
//! | [`tally`] | the sum, each message once |
//! | [`coverage`] | what is there and what is missing |
//! | [`order`] | what a controller orders and an agent answers |
//! | [`conductor`] | the controller's part in a run |
//! | [`seat`] | an agent's part in it |
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

pub mod clock;
pub mod conductor;
pub mod coverage;
pub mod ids;
pub mod order;
pub mod seat;
#[cfg(test)]
mod simulated;
pub mod spool;
pub mod tally;
pub mod window;
