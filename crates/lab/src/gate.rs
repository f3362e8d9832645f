//! Owns the answer of a finished run of two contenders as an exit code: is the candidate worse than the base by more
//! than the margin? Start reading at [`gate`].

use record::BoundCause::Ceiling;
use record::{PairVerdict, Plan, Verdict};

/// How the second contender of a run compares with its first on the primary metric.
#[derive(Debug, Clone, PartialEq)]
pub struct Gate {
    /// The answer.
    pub answer: GateAnswer,
    /// Candidate over base, with the interval that the answer is based on. `None` if nothing was measured, or nothing
    /// measured is reliable. An open end is 0 or infinite.
    pub ratio: Option<(f64, f64, f64)>,
}

/// Whether the candidate is worse.
#[derive(Debug, Clone, PartialEq)]
pub enum GateAnswer {
    /// The whole interval is worse than the margin allows.
    Worse,
    /// No part of the interval is worse than that.
    NotWorse,
    /// Part of the interval is worse, part is not.
    Undecided,
    /// There is no verdict.
    Withheld {
        /// Why.
        reason: String,
    },
}

/// Compares the second contender of a plan with the first, by the verdicts of its run.
pub fn gate(plan: &Plan, verdicts: &[PairVerdict]) -> Gate {
    let metric = plan.metrics[0];
    let of = |pair: &&PairVerdict| pair.metric == metric && pair.a.max(pair.b) == 1;
    let Some(pair) = verdicts.iter().find(of) else {
        let reason = "the two were not compared".to_owned();
        return Gate { answer: GateAnswer::Withheld { reason }, ratio: None };
    };
    let Some((ratio, low, high)) = candidate_over_base(pair) else {
        let reason = match &pair.verdict {
            Verdict::Withheld { reason } => reason.clone(),
            _ => "too few blocks were measured for an interval".to_owned(),
        };
        return Gate { answer: GateAnswer::Withheld { reason }, ratio: None };
    };
    let (margin, more_is_better) = (plan.margin.0, metric.more_is_better());
    // The ratio turned so that more is worse: the candidate at best and at worst.
    let (best, worst) = if more_is_better { (1.0 / high, 1.0 / low) } else { (low, high) };
    let answer = if best > 1.0 + margin {
        GateAnswer::Worse
    } else if worst <= 1.0 + margin || matches!(pair.verdict, Verdict::NoDifference { .. }) {
        GateAnswer::NotWorse
    } else {
        GateAnswer::Undecided
    };
    Gate { answer, ratio: Some((ratio, low, high)) }
}

/// The estimate as candidate over base, as far as the verdict makes it reliable.
fn candidate_over_base(pair: &PairVerdict) -> Option<(f64, f64, f64)> {
    let (ratio, low, high) = match (&pair.verdict, pair.estimate) {
        (Verdict::Withheld { .. }, _) => return None,
        (Verdict::AtLeast { ratio, cause: Ceiling }, _) => (*ratio, *ratio, f64::INFINITY),
        (Verdict::AtMost { ratio, cause: Ceiling }, _) => (*ratio, 0.0, *ratio),
        (_, Some(estimate)) => (estimate.ratio, estimate.low, estimate.high),
        (_, None) => return None,
    };
    // The candidate is the second contender.
    if pair.a == 1 { Some((ratio, low, high)) } else { Some((1.0 / ratio, 1.0 / high, 1.0 / low)) }
}

#[cfg(test)]
mod tests {
    use record::{Contender, Estimate, Metric, Plan};
    use units::Share;

    use super::*;

    /// A run whose only pair, base over candidate, has this interval.
    fn run(
        metric: Metric,
        (ratio, low, high): (f64, f64, f64),
        verdict: Verdict,
    ) -> (Plan, PairVerdict) {
        let estimate = Estimate { ratio, low, high, blocks: 8, sd_ln: 0.01, p_holm: 0.001 };
        let estimate = Some(estimate);
        let pair = PairVerdict { metric, a: 0, b: 1, cell: 0, estimate, verdict, short_of: None };
        let plan = Plan {
            contenders: vec![Contender::default(); 2],
            metrics: vec![metric],
            margin: Share(0.02),
            ..Plan::default()
        };
        (plan, pair)
    }

    #[test]
    fn worse_is_a_whole_interval_beyond_the_margin_and_not_worse_one_within_it() {
        let said = |(ratio, low, high)| Verdict::Ratio { ratio, low, high };
        // The pair is base over candidate: a ratio above 1 means less throughput of the candidate.
        for (metric, interval, answer) in [
            (Metric::Throughput, (1.06, 1.04, 1.08), GateAnswer::Worse),
            (Metric::Throughput, (1.04, 1.01, 1.07), GateAnswer::Undecided),
            (Metric::Throughput, (1.0, 0.99, 1.015), GateAnswer::NotWorse),
            (Metric::Throughput, (0.5, 0.4, 0.6), GateAnswer::NotWorse),
            (Metric::ServerCpu, (0.94, 0.92, 0.96), GateAnswer::Worse),
            (Metric::ServerCpu, (1.06, 1.04, 1.08), GateAnswer::NotWorse),
            (Metric::P99, (0.99, 0.90, 1.10), GateAnswer::Undecided),
        ] {
            let (plan, pair) = run(metric, interval, said(interval));
            let gate = gate(&plan, &[pair]);
            assert_eq!(gate.answer, answer, "{metric:?} {interval:?}");
            let (ratio, low, high) = gate.ratio.unwrap();
            assert!(low <= ratio && ratio <= high, "{gate:?}");
        }
    }

    #[test]
    fn a_bound_answers_on_its_own_side_and_what_is_withheld_does_not() {
        let wide = (3.0, 0.5, 9.0);
        let answer = |a: usize, interval, verdict| {
            let (plan, pair) = run(Metric::Throughput, interval, verdict);
            gate(&plan, &[PairVerdict { a, b: 1 - a, ..pair }]).answer
        };
        let bound = |a, ratio| answer(a, wide, Verdict::AtLeast { ratio, cause: Ceiling });
        assert_eq!(bound(0, 1.25), GateAnswer::Worse);
        assert_eq!(bound(1, 1.25), GateAnswer::NotWorse);
        assert_eq!(bound(0, 0.8), GateAnswer::Undecided);
        let most = |a, ratio| answer(a, wide, Verdict::AtMost { ratio, cause: Ceiling });
        assert_eq!((most(0, 0.8), most(1, 0.8)), (GateAnswer::NotWorse, GateAnswer::Worse));
        // The interval itself is known, however wide it is.
        let far = (4.0, 1.5, 9.0);
        let cause = record::BoundCause::WideInterval;
        assert_eq!(answer(0, far, Verdict::AtLeast { ratio: 1.5, cause }), GateAnswer::Worse);
        assert_eq!(answer(1, far, Verdict::AtLeast { ratio: 1.5, cause }), GateAnswer::NotWorse);
        let reason = "the generator was the limit for both".to_owned();
        let (plan, pair) = run(Metric::Throughput, wide, Verdict::Withheld { reason });
        let withheld = gate(&plan, &[pair]);
        assert!(matches!(withheld.answer, GateAnswer::Withheld { .. }), "{withheld:?}");
        assert_eq!(withheld.ratio, None);
    }
}
