//! Owns the check that visits hold enough requests for the quantiles of the study. Start reading at [`look`].
//!
//! With fewer than ln 0.025 / ln q requests, the chance that none lies beyond the true q-quantile exceeds
//! 1 in 40: the "p99" is then a smaller quantile (368 for p99, 6 for the median).
//! Such a visit has no quantile, so no wrong one is compared; this note says why it is missing.

use record::{Certainty, Question, Severity};

use super::Check;
use crate::{Evidence, Observation, words};

/// See the module.
pub(crate) const ITEM: Check = Check {
    name: "too_few_samples",
    severity: Severity::Note,
    question: Question::DidItBreakALimit,
    spares_like_pairs: false,
    title: "visits hold too few requests for a quantile",
    meaning: "the quantile would depend on a few outliers, so these visits have none",
    remedy: "measure for longer ([visit] measure), or ask for a lower quantile",
    detection: "Fewer than ln 0.025 / ln q requests in a visit for the quantile q: 368 for p99",
    example: "p99 of a visit with 200 requests",
    source: "Conover, Practical Nonparametric Statistics, section 3.2 (order statistics)",
    needs: &[],
    look,
};

fn look(evidence: &Evidence) -> Vec<Observation> {
    let metrics = evidence
        .run
        .plan
        .metrics
        .iter()
        .filter_map(|metric| Some((metric.info().name, metric.service_quantile()?)));
    let looks = metrics.flat_map(|asked| {
        evidence.contenders().filter_map(move |contender| look_at(evidence, contender, asked))
    });
    looks.collect()
}

fn look_at(evidence: &Evidence, contender: usize, (name, q): (&str, f64)) -> Option<Observation> {
    let needed = stats::samples_needed(q);
    let visits = evidence.run.measured(contender);
    let counts: Vec<u64> =
        visits.filter_map(|visit| Some(visit.service_after_cut()?.count())).collect();
    let short = counts.iter().filter(|&&count| count < needed);
    let (least, number) = (short.clone().min()?, short.count());
    let evidence = format!(
        "{}: {} of {} held too few requests for {name}: as few as {}, but {} are needed",
        evidence.name(contender),
        number,
        words::count(counts.len() as u64, "visit"),
        words::grouped(*least),
        words::grouped(needed),
    );
    Some(Observation {
        share: None,
        certainty: Certainty::Confirmed,
        contenders: vec![contender],
        evidence,
    })
}

#[cfg(test)]
mod tests {
    use record::{Metric, RunRecord};

    use super::*;
    use crate::testdata;

    /// Every visit of contender 0 holds that many requests after the cut.
    fn holding(requests: u64) -> RunRecord {
        let mut run = testdata::run(&["a", "b"], 8);
        for visit in run.visits.iter_mut().filter(|visit| visit.contender == 0) {
            let intervals = &mut visit.load.as_mut().unwrap().intervals;
            intervals.iter_mut().for_each(|interval| interval.service.clear());
            let service = &mut intervals.last_mut().unwrap().service;
            (0..requests).for_each(|n| service.record(units::Nanos::from_micros(500 + n)));
        }
        run
    }

    #[test]
    fn enough_requests_are_silent() {
        assert_eq!(look(&Evidence::of(&testdata::run(&["a", "b"], 8))), []);
        assert_eq!(look(&Evidence::of(&holding(368))), []);
    }

    #[test]
    fn one_request_short_fires_with_what_it_had_and_needed() {
        let seen = look(&Evidence::of(&holding(367)));
        assert_eq!(seen.len(), 1);
        assert_eq!(seen[0].contenders, [0]);
        let text =
            "a: 8 of 8 visits held too few requests for p99: as few as 367, but 368 are needed";
        assert_eq!(seen[0].evidence, text);
    }

    #[test]
    fn each_quantile_that_lacks_requests_is_named() {
        let seen = look(&Evidence::of(&holding(5)));
        assert_eq!(seen.len(), 2, "{seen:?}");
    }

    #[test]
    fn a_study_that_asks_for_no_quantile_needs_no_samples() {
        let mut run = holding(5);
        run.plan.metrics = vec![Metric::Throughput, Metric::ServerCpu];
        assert_eq!(look(&Evidence::of(&run)), []);
    }
}
