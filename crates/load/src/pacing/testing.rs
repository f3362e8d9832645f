//! What the tests of several laws need. Owns the drawing of instants and the integral of a rate as an
//! oracle. Start reading at [`instants`].

use record::Pacing;
use units::Nanos;

use super::{ArrivalShare, Pace, pace};

/// One thread does everything.
pub(super) const WHOLE: ArrivalShare = ArrivalShare { first: 0, n: 1, of: 1 };

/// The first instants of an open loop that are of that turn, among the first `n` of the whole.
pub(super) fn instants(pacing: &Pacing, seed: u64, turn: ArrivalShare, n: u32) -> Vec<Nanos> {
    let Pace::Open(mut arrivals) = pace(pacing, seed, turn) else { panic!("an open loop") };
    let numbers = (0..n).filter(|g| (turn.first..turn.first + turn.n).contains(&(g % turn.of)));
    numbers.map_while(|_| arrivals.take()).collect()
}

/// Distances of neighbours in seconds, the first from zero.
pub(super) fn gaps_secs(instants: &[Nanos]) -> Vec<f64> {
    let before = std::iter::once(&Nanos::ZERO).chain(instants);
    before.zip(instants).map(|(before, after)| (*after - *before).as_secs_f64()).collect()
}

/// Panics unless at every instant, just before and just after its request, the number of requests due differs from
/// the integral of the rate by at most one. `due_by` is that integral until a time in seconds; `rate_max` bounds what
/// the rounding to a nanosecond can add.
#[track_caller]
pub(super) fn assert_counts_follow(instants: &[Nanos], rate_max: f64, due_by: impl Fn(f64) -> f64) {
    let slack = 1.0 + rate_max * 1e-9 + 1e-6;
    for (n_before, at) in instants.iter().enumerate() {
        let due = due_by(at.as_secs_f64());
        for count in [n_before, n_before + 1] {
            let apart = (count as f64 - due).abs();
            assert!(apart <= slack, "at {at:?} {count} were due, and {due} should have been");
        }
    }
}
