//! Owns the numbers behind a verdict: quantiles, intervals, tests, bootstrap, warm-up. Pure
//! functions on numbers; must not know where numbers come from, and reads no clock, file or socket.
//! Start reading at [`Histogram`].

mod histogram;

pub use histogram::{DecodeError, Histogram, SPAN_MAX, samples_needed};
