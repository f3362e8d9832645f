//! When requests are due. Owns the laws of arrivals, one file each, and whose turn an instant is.
//! Start reading at [`pace`]. To add a law of one rate: its file here with an arm in [`pace`], and its
//! variant and entry in `record/src/pacing.rs`.
//!
//! A law is one sequence of instants for the whole load. Every thread of every agent draws all of it from the same
//! seed and keeps its own turns. So the instants depend neither on the number of threads nor on what one of them
//! does, and nothing is shared. The price is that a thread also draws the instants of others; in ns each (AMD EPYC,
//! optimised): constant, stages, jitter, ramp 4 to 5, Poisson 23. At 1 million requests a second over all threads
//! that is at most 2.3 % of each; a single thread draws only its own. Nothing is allocated after [`pace`]. A replay
//! draws nothing: a thread copies only its own instants.
//!
//! Instants are computed in f64 and rounded to a nanosecond. With numbers of 53 bits the error of an instant t before
//! rounding is less than t / 2^51: 0.04 ns after a day, half a nanosecond after 13.

mod bounds;
mod closed;
mod constant;
mod jitter;
mod poisson;
mod ramp;
mod replay;
mod stages;
mod typed;

use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;
use record::Pacing;
use units::{Nanos, PerSecond};

pub use bounds::check;
pub use bounds::{INSTANTS_MAX, LENGTH_MAX, PacingError, RATE_MAX, STAGES_MAX};
pub(crate) use closed::Pauses;
pub use replay::{ReplayError, read_instants};
pub use typed::{parse_ramp, parse_rate, parse_stages, parse_think};

/// How a load is paced, as one thread of the generator follows it.
pub(crate) enum Pace {
    /// A connection sends its next request when its reply is complete and its pause is over.
    Closed(Pauses),
    /// Requests are due at instants that no reply changes.
    Open(Arrivals),
}

/// A law of arrivals: when the requests of the whole load are due.
pub(crate) trait Law: Send {
    /// The next instant, not before the last one; `None`: there will never be another.
    fn next(&mut self) -> Option<Nanos>;

    /// Time that contains its first `n` instants: until the integral of its rate reaches `n`. `None`: it has no rate,
    /// or its number of instants is random.
    fn span(&self, _n: u64) -> Option<Nanos> {
        None
    }
}

/// Which of a law's instants belong to this thread: number g of all, if g mod `of` is one of `first..first + n`. The
/// numbers are those of connections in the whole load, over all agents and threads: the shares of connections differ
/// by at most one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ArrivalShare {
    /// First number of this thread.
    pub(crate) first: u32,
    /// How many numbers are this thread's, at least 1.
    pub(crate) n: u32,
    /// How many there are over all threads, at least `first + n`.
    pub(crate) of: u32,
}

/// The instants at which this thread's requests are due, in rising order.
pub(crate) struct Arrivals {
    law: Box<dyn Law>,
    turn: ArrivalShare,
    /// Number of the law's next instant, modulo `turn.of`.
    number: u32,
    next: Option<Nanos>,
}

/// How the thread whose turn this is follows a law.
///
/// # Panics
/// If [`check`] refuses the law, or the share is not part of the whole.
pub(crate) fn pace(pacing: &Pacing, seed: u64, turn: ArrivalShare) -> Pace {
    assert_eq!(check(pacing), Ok(()), "a plan's law is within its bounds");
    let law: Box<dyn Law> = match pacing {
        Pacing::Closed => return Pace::Closed(Pauses::none()),
        Pacing::Think { pause, spread } => {
            let random = random(seed, RESTS.wrapping_add(turn.first.into()));
            return Pace::Closed(Pauses::new(*pause, *spread, random));
        }
        Pacing::Constant { rate } => Box::new(constant::Constant::new(*rate)),
        Pacing::Poisson { rate } => Box::new(poisson::Poisson::new(*rate, random(seed, ARRIVALS))),
        Pacing::Jitter { rate } => Box::new(jitter::Jitter::new(*rate, random(seed, ARRIVALS))),
        Pacing::Ramp { from, to, over } => Box::new(ramp::Ramp::new(*from, *to, *over)),
        Pacing::Stages { stages } => Box::new(stages::Stages::new(stages)),
        Pacing::Replay { instants } => {
            let own = replay::Replay::new(instants, turn);
            return Pace::Open(Arrivals::new(
                Box::new(own),
                ArrivalShare { first: 0, n: 1, of: 1 },
            ));
        }
    };
    Pace::Open(Arrivals::new(law, turn))
}

impl ArrivalShare {
    /// Whether the instant of that number, modulo `of`, is this thread's.
    #[inline]
    fn has(self, number: u32) -> bool {
        number.wrapping_sub(self.first) < self.n
    }
}

impl Arrivals {
    fn new(law: Box<dyn Law>, turn: ArrivalShare) -> Self {
        let ArrivalShare { first, n, of } = turn;
        assert!(n > 0 && u64::from(first) + u64::from(n) <= u64::from(of), "a part of a whole");
        let mut arrivals = Self { law, turn, number: 0, next: None };
        arrivals.next = arrivals.draw();
        arrivals
    }

    /// When the next request is due; `None`: there will never be another. Does not advance.
    #[inline]
    pub(crate) fn peek(&self) -> Option<Nanos> {
        self.next
    }

    /// As [`Arrivals::peek`], and advances to the next instant.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<Nanos> {
        let taken = self.next?;
        self.next = self.draw();
        Some(taken)
    }

    /// Time that the law has for all instants before this thread's next one, if `n` of its own lie before that;
    /// `None` if the law cannot say.
    pub(crate) fn span(&self, n: u64) -> Option<Nanos> {
        self.law.span(self.turn.index_of(n))
    }

    /// The law's next instant that is this thread's.
    fn draw(&mut self) -> Option<Nanos> {
        loop {
            let drawn = self.law.next()?;
            let is_own = self.turn.has(self.number);
            self.number += 1;
            if self.number == self.turn.of {
                self.number = 0;
            }
            if is_own {
                return Some(drawn);
            }
        }
    }
}

/// Random stream of arrivals. It differs from [`RESTS`] and all other streams of the plan's seed, so that
/// they are independent. ASCII of its name.
const ARRIVALS: u64 = u64::from_be_bytes(*b"arrivals");

/// Random stream of pauses; each thread adds the number of its first connection.
const RESTS: u64 = u64::from_be_bytes(*b"resting\0");

fn random(seed: u64, stream: u64) -> Pcg64Mcg {
    Pcg64Mcg::seed_from_u64(seed ^ stream)
}

/// An exponential variate of mean 1, 0 to 36.7, by inversion. Agents whose mathematics libraries
/// round the logarithm differently agree to less than a nanosecond, and on turns exactly: these go
/// by number.
#[inline]
fn exponential(random: &mut Pcg64Mcg) -> f64 {
    // 1 - u: the generator gives 0 but not 1, and 0 has no logarithm.
    -(1.0 - random.random::<f64>()).ln()
}

/// Nanoseconds from 0 up, rounded; `None` beyond the largest representable instant.
#[inline]
fn instant(nanos: f64) -> Option<Nanos> {
    // Not `round`: it is a call of the mathematics library on x86-64 without SSE 4.1.
    (nanos < u64::MAX as f64).then_some(Nanos((nanos + 0.5) as u64))
}

/// Time until `n` requests are due at a constant rate, in ns. Multiplies first: if whole requests and whole
/// nanoseconds both fit into 53 bits, only the division rounds.
#[inline]
fn nanos_for(n: f64, rate: PerSecond) -> f64 {
    n * 1e9 / rate.0
}

#[cfg(test)]
mod testing;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use record::{RATE_LAWS, Spread, Stage};

    use super::testing::{WHOLE, instants};
    use super::*;

    fn laws(rate: f64) -> Vec<Pacing> {
        let rate = PerSecond(rate);
        let seconds = Nanos::from_secs;
        let stages = [(rate, 1), (PerSecond(0.0), 2), (PerSecond(2.0 * rate.0), 1)];
        let stages = stages.map(|(rate, length)| Stage { rate, length: seconds(length) });
        let mut laws: Vec<Pacing> = RATE_LAWS.iter().map(|law| (law.at)(rate)).collect();
        laws.extend([
            Pacing::Ramp { from: PerSecond(0.0), to: rate, over: seconds(3) },
            Pacing::Ramp { from: rate, to: PerSecond(0.0), over: seconds(3) },
            Pacing::Stages { stages: stages.to_vec() },
            Pacing::Replay { instants: (0..200).map(|n| Nanos(n * n)).collect() },
        ]);
        laws
    }

    proptest! {
        #[test]
        fn turns_of_any_division_are_the_undivided_law(
            parts in prop::collection::vec(1u32..5, 1..6),
            rate in 1.0..1e6f64,
            seed: u64,
        ) {
            for pacing in laws(rate) {
                let of = parts.iter().sum();
                let whole = instants(&pacing, seed, WHOLE, 500);
                let mut merged = vec![None; whole.len()];
                let mut first = 0;
                for &n in &parts {
                    let own = instants(&pacing, seed, ArrivalShare { first, n, of }, 500);
                    let numbers = (0..whole.len() as u32).filter(|g| (first..first + n).contains(&(g % of)));
                    for (number, instant) in numbers.zip(own) {
                        merged[number as usize] = Some(instant);
                    }
                    first += n;
                }
                let whole: Vec<_> = whole.into_iter().map(Some).collect();
                prop_assert_eq!(merged, whole, "{:?}", pacing);
            }
        }

        #[test]
        fn instants_rise(rate in 1e-3..5e7f64, seed: u64) {
            for pacing in laws(rate) {
                let drawn = instants(&pacing, seed, WHOLE, 1000);
                prop_assert!(drawn.is_sorted(), "{:?}", pacing);
            }
        }
    }

    proptest! {
        #[test]
        fn the_span_of_n_ends_between_the_last_of_them_and_the_next(
            rate in 1e-3..1e6f64,
            seed: u64,
            first in 0u32..3,
        ) {
            let turn = ArrivalShare { first, n: 2, of: 5 };
            for pacing in laws(rate) {
                let Pace::Open(mut arrivals) = pace(&pacing, seed, turn) else { panic!("an open loop") };
                for n in 0..300 {
                    let Some(span) = arrivals.span(n) else {
                        let is_random = pacing.rate_law().is_some_and(|(law, _)| law.is_random);
                        let has_none = is_random || matches!(pacing, Pacing::Replay { .. });
                        prop_assert!(has_none, "{:?}", pacing);
                        break;
                    };
                    // The next instant of this thread comes when all before it are due, its own and those of others.
                    let next = arrivals.take().unwrap_or(Nanos::MAX);
                    prop_assert!(span <= next, "{:?}: {} {} {}", pacing, n, span, next);
                    let own = arrivals.peek();
                    prop_assert!(own.is_none_or(|own| arrivals.span(n + 1).unwrap() <= own));
                }
            }
        }
    }

    #[test]
    fn spans_are_the_time_until_the_integral_of_the_rate_is_n() {
        let (ms, rate) = (Nanos::from_millis, PerSecond(100.0));
        let stage = |rate, length| Stage { rate: PerSecond(rate), length: ms(length) };
        let stages = vec![stage(0.0, 2000), stage(100.0, 200), stage(0.0, 20_000), stage(9.0, 1)];
        let ended = vec![stage(100.0, 105), stage(0.0, 1)];
        let ramp =
            |from, to| Pacing::Ramp { from: PerSecond(from), to: PerSecond(to), over: ms(1000) };
        let cases = [
            (Pacing::Constant { rate }, 1, ms(10)),
            (Pacing::Jitter { rate }, 7, ms(70)),
            (ramp(100.0, 0.0), 50, ms(1000)),
            (ramp(0.0, 200.0), 25, ms(500)),
            (ramp(0.0, 200.0), 300, ms(2000)),
            // A pause before belongs to them, one after does not.
            (Pacing::Stages { stages: stages.clone() }, 1, ms(2010)),
            (Pacing::Stages { stages: stages.clone() }, 20, ms(2200)),
            (Pacing::Stages { stages }, 29, ms(23_200)),
            // Ten and a half requests become eleven; the last one has only half of its time.
            (Pacing::Stages { stages: ended }, 11, ms(105)),
        ];
        for (pacing, n, span) in cases {
            let Pace::Open(arrivals) = pace(&pacing, 1, WHOLE) else { panic!("an open loop") };
            assert_eq!(arrivals.span(n), Some(span), "{pacing:?}");
        }
    }

    #[test]
    fn asking_changes_nothing_and_the_end_is_the_end() {
        let pacing = Pacing::Replay { instants: vec![Nanos(3), Nanos(5)] };
        let Pace::Open(mut arrivals) = pace(&pacing, 1, WHOLE) else { panic!("an open loop") };
        for instant in [3, 5] {
            assert_eq!(arrivals.peek(), Some(Nanos(instant)));
            assert_eq!(arrivals.peek(), arrivals.take());
        }
        for _ in 0..3 {
            assert_eq!((arrivals.peek(), arrivals.take()), (None, None));
        }
    }

    #[test]
    fn same_seed_same_instants_and_another_seed_others() {
        let is_random = |pacing: &Pacing| pacing.rate_law().is_some_and(|(law, _)| law.is_random);
        for pacing in &laws(100.0).into_iter().filter(is_random).collect::<Vec<_>>() {
            let first = instants(pacing, 1, WHOLE, 100);
            assert_eq!(first, instants(pacing, 1, WHOLE, 100), "{pacing:?}");
            assert_ne!(first, instants(pacing, 2, WHOLE, 100), "{pacing:?}");
        }
    }

    #[test]
    fn threads_rest_independently() {
        let pacing = Pacing::Think { pause: Nanos::from_secs(1), spread: Spread::Exponential };
        let pauses = |first| {
            let Pace::Closed(mut rest) = pace(&pacing, 1, ArrivalShare { first, n: 1, of: 2 })
            else {
                panic!("a closed loop")
            };
            [rest.next(), rest.next(), rest.next()]
        };
        assert_eq!(pauses(0), pauses(0));
        assert!(pauses(0).iter().zip(pauses(1)).all(|(one, other)| *one != other));
    }

    #[test]
    #[should_panic(expected = "within its bounds")]
    fn no_rate_is_refused() {
        pace(&Pacing::Poisson { rate: PerSecond(0.0) }, 1, WHOLE);
    }
}
