//! Stages: one constant rate after the other. Start reading at [`Stages`].
//!
//! Request g is due when the integral of the rate over all stages reaches g. A stage that ends between two requests
//! passes the fraction on, so a hundred stages lose no request. Each stage begins at exactly the sum of the lengths
//! before it.

use record::Stage;
use units::{Nanos, PerSecond};

use super::{Law, instant, nanos_for};

/// Request g when the integral of the rate reaches g. A rate of zero is a pause. The last stage continues for ever;
/// if it is a pause, the law ends.
pub(crate) struct Stages {
    stages: Vec<StageStart>,
    /// Index of the stage of the last request.
    current: usize,
    /// Number of the next request.
    number: u64,
}

struct StageStart {
    at: Nanos,
    /// Integral of the rate over all stages before.
    n_before: f64,
    rate: PerSecond,
}

impl Stages {
    /// At least one stage has a rate above zero; the sum of the lengths is a valid instant.
    pub(crate) fn new(stages: &[Stage]) -> Self {
        let (mut at, mut n_before) = (Nanos::ZERO, 0.0);
        let begin = |stage: &Stage| {
            let begun = StageStart { at, n_before, rate: stage.rate };
            at += stage.length;
            n_before = near_whole(n_before + stage.rate.0 * stage.length.0 as f64 / 1e9);
            begun
        };
        Self { stages: stages.iter().map(begin).collect(), current: 0, number: 0 }
    }
}

impl Law for Stages {
    fn next(&mut self) -> Option<Nanos> {
        let g = self.number as f64;
        self.number += 1;
        while self.stages.get(self.current + 1).is_some_and(|next| g >= next.n_before) {
            self.current += 1;
        }
        let stage = &self.stages[self.current];
        let after = || instant(nanos_for(g - stage.n_before, stage.rate));
        let after = (stage.rate.0 > 0.0).then(after).flatten()?;
        stage.at.0.checked_add(after.0).map(Nanos)
    }

    fn span(&self, n: u64) -> Option<Nanos> {
        // A pause after the `n` requests does not count, including one at the very end.
        let is_begun = |stage: &&StageStart| stage.n_before < n as f64;
        let Some(stage) = self.stages.iter().rfind(is_begun) else { return Some(Nanos::ZERO) };
        if stage.rate.0 == 0.0 {
            return Some(stage.at);
        }
        let after = instant(nanos_for(n as f64 - stage.n_before, stage.rate))?;
        stage.at.0.checked_add(after.0).map(Nanos)
    }
}

/// Makes 100/m for a minute 100 requests and not 100.00000000000001; otherwise the 101st would be due at the
/// beginning of a following pause.
fn near_whole(n: f64) -> f64 {
    let whole = n.round();
    if (n - whole).abs() <= whole * 1e-14 { whole } else { n }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use record::Pacing;

    use super::*;
    use crate::pacing::testing::{WHOLE, assert_counts_follow, instants};

    fn stages(typed: &[(f64, u64)]) -> Pacing {
        let stage = |&(rate, length_ms): &(f64, u64)| Stage {
            rate: PerSecond(rate),
            length: Nanos::from_millis(length_ms),
        };
        Pacing::Stages { stages: typed.iter().map(stage).collect() }
    }

    /// Integral of the rate until `secs`, stage by stage.
    fn due_by(stages: &[(f64, u64)], secs: f64) -> f64 {
        let mut begin = 0.0;
        let mut due = 0.0;
        for (index, &(rate, length_ms)) in stages.iter().enumerate() {
            let is_last = index + 1 == stages.len();
            let length = if is_last { f64::INFINITY } else { length_ms as f64 / 1e3 };
            due += rate * (secs - begin).clamp(0.0, length);
            begin += length;
        }
        due
    }

    #[test]
    fn every_stage_begins_at_its_instant_with_a_request() {
        let drawn = instants(&stages(&[(1000.0, 10_000), (5000.0, 30_000)]), 1, WHOLE, 20_000);
        let by = |secs| drawn.iter().filter(|at| **at < Nanos::from_secs(secs)).count();
        assert_eq!((by(10), by(11)), (10_000, 15_000));
        assert_eq!(drawn[9_999], Nanos::from_micros(9_999_000));
        assert_eq!(drawn[10_000..10_002], [10_000_000, 10_000_200].map(Nanos::from_micros));
    }

    #[test]
    fn nothing_is_due_in_a_pause() {
        for rate in [100.0, 100.0 / 60.0, 1.0 / 3.0, 0.7] {
            let drawn = instants(
                &stages(&[(0.0, 500), (rate, 60_000), (0.0, 5000), (rate, 1)]),
                1,
                WHOLE,
                9000,
            );
            assert!(drawn[0] == Nanos::from_millis(500), "{rate}: {:?}", drawn[0]);
            let pause = Nanos::from_millis(60_500)..Nanos::from_millis(65_500);
            assert!(!drawn.iter().any(|at| pause.contains(at)), "{rate}");
            assert!(*drawn.last().unwrap() > pause.end, "the last stage goes on");
        }
    }

    #[test]
    fn a_pause_at_the_end_ends_everything() {
        let drawn = instants(&stages(&[(10.0, 1000), (0.0, 1000)]), 1, WHOLE, 1000);
        assert_eq!(drawn.len(), 10);
    }

    #[test]
    fn many_short_stages_lose_no_request() {
        // Each is a third of a request long.
        let drawn = instants(&stages(&[(100.0 / 3.0, 10); 300]), 1, WHOLE, 100);
        assert_eq!(drawn.last(), Some(&Nanos::from_millis(2970)));
    }

    proptest! {
        #[test]
        fn counts_are_the_integral_of_the_rate(
            typed in prop::collection::vec((prop_oneof![Just(0.0), 0.01..1e6f64], 1u64..3000), 1..8),
        ) {
            let rate_max = typed.iter().map(|(rate, _)| *rate).fold(0.0, f64::max);
            prop_assume!(rate_max > 0.0);
            let drawn = instants(&stages(&typed), 1, WHOLE, 3000);
            assert_counts_follow(&drawn, rate_max, |secs| due_by(&typed, secs));
        }
    }
}
