//! Owns the check that a contender is as good as itself. Start reading at [`look`].
//!
//! A study may have the same server with the same settings twice (A/A). Whatever makes the two differ is the lab's
//! doing (a port, a name, what was visited before), and it moves the other pairs as much. So differences of
//! that size are no verdict; those far above it are ([`crate::spares`]).
//!
//! An interval of 95 % misses the truth in one run of twenty, so the limit is p < 0.1 % over all copies and
//! metrics, and a difference of at least half of the study's margin. The pair is its own second witness:
//! nothing else can make two copies differ.

use record::{Certainty, Finding, Metric, Question, Severity};
use stats::Paired;

use super::Check;
use crate::deviations::level_metrics;
use crate::{Evidence, Observation, words};

/// See the module.
pub(crate) const ITEM: Check = Check {
    name: "noise_floor",
    severity: Severity::Void,
    question: Question::DoesItReproduce,
    spares_like_pairs: false,
    title: "the same server, measured twice, differs from itself",
    meaning: "something in the experiment makes a difference where there is none, so small differences of this run \
              may be made by it",
    remedy: "look for what differs between the two (port, order, CPU, page cache), and repeat: joust run --repeat-of \
             RUN",
    detection: "Where two contenders differ in nothing but their names, their ratio must cover 1.00. It is \
             confirmed at p < 0.1 % over all metrics and half of the study's margin; it withholds differences up to \
             twice as large",
    example: "two contenders of the same server, of which one is visited just after a heavy load",
    source: "Georges, Buytaert and Eeckhout, Statistically Rigorous Java Performance Evaluation, 2007",
    needs: &[],
    look,
};

/// p below which two copies differ, over all of them and all metrics.
const P_MAX: f64 = 0.001;
/// Part of the study's margin that the difference must have: a smaller one makes no difference of interest.
const MARGIN_PART: f64 = 0.5;
/// Differences larger than the copies' by this factor are beyond it: the copies' may be at the low end of chance.
const BEYOND: f64 = 2.0;

/// One for the cell: what makes copies differ touches every pair.
fn look(evidence: &Evidence) -> Vec<Observation> {
    let copies = copies(evidence);
    let metrics = level_metrics(*evidence);
    let tests = (copies.len() * metrics.len()) as f64;
    let margin = evidence.run.plan.margin.0;
    let mut found = Vec::new();
    for &(a, b) in &copies {
        for &metric in &metrics {
            let Some(paired) = paired(evidence, a, b, metric) else { continue };
            let Some(interval) = paired.interval else { continue };
            let off = paired.centre_ln.abs().exp_m1();
            if interval.p * tests < P_MAX && off >= MARGIN_PART * margin {
                found.push((off, a, b, metric, paired.ratio, interval));
            }
        }
    }
    let Some((off, a, b, metric, ratio, interval)) =
        found.into_iter().max_by(|one, other| one.0.total_cmp(&other.0))
    else {
        return Vec::new();
    };
    let text = format!(
        "{}: the same server with the same settings as {}, and {ratio:.3}x [{:.3}, {:.3}] its {}; differences up to \
         {} may come from the experiment",
        evidence.name(a),
        evidence.name(b),
        interval.low,
        interval.high,
        metric.info().quantity,
        words::percent(BEYOND * off),
    );
    vec![Observation {
        share: Some(off),
        certainty: Certainty::Confirmed,
        contenders: Vec::new(),
        evidence: text,
    }]
}

/// Whether a finding says nothing about a pair of that log ratio: copies differ, but far less than this pair.
pub(crate) fn spares(finding: &Finding, ratio_ln: f64) -> bool {
    let off = finding.share.map_or(f64::INFINITY, |share| share.0);
    finding.check == ITEM.name && ratio_ln.abs() > (BEYOND * off).ln_1p()
}

/// Pairs of contenders that differ in nothing but their names.
fn copies(evidence: &Evidence) -> Vec<(usize, usize)> {
    let contenders = &evidence.run.plan.contenders;
    let is_copy = |a: usize, b: usize| {
        let renamed =
            record::Contender { name: contenders[b].name.clone(), ..contenders[a].clone() };
        renamed == contenders[b]
    };
    let all = evidence.contenders().flat_map(|a| (a + 1..contenders.len()).map(move |b| (a, b)));
    all.filter(|&(a, b)| is_copy(a, b)).collect()
}

/// The ratio over the blocks that have both.
fn paired(evidence: &Evidence, a: usize, b: usize, metric: Metric) -> Option<Paired> {
    let value = |contender: usize, block: u32| {
        let visits = evidence.run.measured(contender).filter(|visit| visit.block == block);
        visits.last()?.value(metric).filter(|value| *value > 0.0)
    };
    let blocks = evidence.run.measured(a).map(|visit| visit.block);
    let blocks: std::collections::BTreeSet<u32> = blocks.collect();
    let logs =
        blocks.into_iter().filter_map(|block| Some((value(a, block)? / value(b, block)?).ln()));
    Paired::of_logs(&logs.collect::<Vec<f64>>()).ok()
}

#[cfg(test)]
mod tests {
    use record::{RunRecord, SettingValue};

    use super::*;
    use crate::noise::{Law, Noise};
    use crate::testdata;

    /// Two copies and another server; the rates of b are off by this factor, with noise of 2 %.
    fn run(off: f64, seed: u64) -> RunRecord {
        let mut run = testdata::light(&["a", "b", "c"], 16);
        run.plan.contenders[..2].iter_mut().for_each(|one| one.settings.clear());
        let mut noise = Noise::new(seed);
        for visit in &mut run.visits {
            let level = [50_000.0, 50_000.0 * off, 80_000.0][visit.contender];
            visit.rate_per_s = Some(level * (0.02 * noise.of(Law::Normal)).exp());
        }
        run
    }

    #[test]
    fn a_server_that_differs_from_itself_withholds_small_differences_only() {
        let seen = look(&Evidence::of(&run(1.06, 1)));
        assert_eq!(seen.len(), 1);
        assert_eq!((seen[0].certainty, seen[0].contenders.len()), (Certainty::Confirmed, 0));
        assert!(
            seen[0].evidence.starts_with("a: the same server with the same settings as b, and 0.9"),
            "{seen:?}"
        );
        let finding = ITEM.finding(seen[0].clone());
        assert!(!spares(&finding, 1.03f64.ln()) && spares(&finding, 1.6f64.ln()));
        assert!(spares(&finding, -1.6f64.ln()) && !spares(&Finding::default(), 5.0));
    }

    #[test]
    fn copies_that_agree_and_contenders_that_are_no_copies_are_silent() {
        let alarms =
            (0..200).filter(|&seed| !look(&Evidence::of(&run(1.0, seed))).is_empty()).count();
        assert!(alarms <= 1, "{alarms} of 200");
        let mut other = run(1.1, 1);
        other.plan.contenders[1].settings.insert("backlog".to_owned(), SettingValue::Number(1));
        assert_eq!(look(&Evidence::of(&other)), []);
    }

    #[test]
    fn what_is_below_half_of_the_margin_is_silent() {
        let mut run = run(1.06, 1);
        run.plan.margin = units::Share(0.2);
        assert_eq!(look(&Evidence::of(&run)), []);
    }
}
