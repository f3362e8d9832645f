//! Owns what may be said of each pair of contenders: visits paired by block, the estimate, and which
//! of the six wordings holds. Must not know how visits are made or shown.
//! Start reading at [`verdicts`].
//!
//! A ceiling acts by metric, because a closed loop ties the metrics together:
//! - throughput: that of a limited contender is a lower bound of what it can do;
//! - latency: at a fixed number of connections it is connections over throughput (Little's law), so
//!   where the generator was the limit it is the generator's own queue; there is no verdict;
//! - CPU time per request and memory are the server's own accounts; they stand.

use record::{
    BoundCause, Estimate, Finding, Metric, PairVerdict, Plan, Severity, ShortOf, Verdict, Visit,
    VisitState,
};
use stats::{BlockVisits, Decision, Paired};

/// Level below which an adjusted p is called a difference. Stopping on width favours blocks that
/// happened to vary little: of 2 000 simulated A/A sessions with the noise of real visits 5.4 % were
/// called a difference at a level of 5 %, and 2.3 % at 2 %.
pub(crate) const ALPHA: f64 = 0.02;
/// Where more of a contender's visits failed, those that are left are its best ones.
const FAILED_SHARE_MAX: f64 = 0.1;

/// The verdict of every pair on every metric, cell by cell, the primary metric first, pairs in the order
/// of the contenders. The ratio is that of the contender named first over the other, except where only the
/// inverse can be said ("at least").
pub fn verdicts(plan: &Plan, visits: &[Visit], findings: &[Finding]) -> Vec<PairVerdict> {
    let at = |cell: usize| {
        let visits = visits.iter().filter(|visit| visit.cell == cell).collect();
        let is_here = |finding: &&Finding| finding.cell.is_none_or(|seen| seen == cell);
        let findings = findings.iter().filter(is_here).collect();
        Judge { plan, cell, visits, findings }
    };
    let judges: Vec<Judge<'_>> = (0..plan.cells.len()).map(at).collect();
    let mut said = vec![Vec::new(); judges.len()];
    for &metric in &plan.metrics {
        let paired: Vec<_> = judges.iter().map(|judge| judge.paired(metric)).collect();
        // One family a metric over all cells: a study is read for the cells that differ, and among
        // thirty equal cells the one that stands out by chance would be found.
        let mut adjusted = stats::holm(&p_values(paired.iter().flatten())).into_iter();
        for ((judge, paired), said) in judges.iter().zip(paired).zip(&mut said) {
            said.extend(judge.metric(metric, paired.into_iter().zip(&mut adjusted)));
        }
    }
    said.concat()
}

/// A pair without an interval is as good as one without a difference.
fn p_values<'a>(paired: impl Iterator<Item = &'a Option<Paired>>) -> Vec<f64> {
    let p = |paired: &Option<Paired>| Some((*paired)?.interval?.p);
    paired.map(|paired| p(paired).unwrap_or(1.0)).collect()
}

/// Whether the interval of the primary metric is narrow enough for every pair of `left_in` in a cell.
/// Looks at widths alone: to stop as soon as a difference is significant would make differences of
/// noise.
pub fn narrow_enough(plan: &Plan, cell: usize, visits: &[Visit], left_in: &[usize]) -> bool {
    let here: Vec<&Visit> = visits.iter().filter(|visit| visit.cell == cell).collect();
    let table = Table::new(plan, &here, plan.metrics[0]);
    let is_narrow = |paired: &Paired| {
        let Some(interval) = paired.interval else { return false };
        let farthest = (interval.high / paired.ratio).max(paired.ratio / interval.low) - 1.0;
        paired.n >= plan.blocks.min as usize && farthest <= plan.blocks.half_width.0
    };
    plan.pairs(cell)
        .into_iter()
        .filter(|(a, b)| left_in.contains(a) && left_in.contains(b))
        .all(|(a, b)| table.paired(a, b, plan.seed).as_ref().is_some_and(is_narrow))
}

/// Logarithms of one metric: a row a contender, a column a block, the visits of it that can be used.
struct Table {
    rows: Vec<Vec<Vec<f64>>>,
}

impl Table {
    fn new(plan: &Plan, visits: &[&Visit], metric: Metric) -> Self {
        let blocks = visits.iter().map(|visit| visit.block as usize + 1).max().unwrap_or(0);
        let mut rows = vec![vec![Vec::new(); blocks]; plan.contenders.len()];
        for visit in visits.iter().filter(|visit| visit.state != VisitState::Disturbed) {
            // Zero has no logarithm; a server that answered nothing has no rate, and that is said by
            // its errors.
            let value = visit.value(metric).filter(|&value| value > 0.0);
            rows[visit.contender][visit.block as usize].extend(value.map(f64::ln));
        }
        Self { rows }
    }

    /// The ratio over the blocks that have both; `None` where there is none.
    fn paired(&self, a: usize, b: usize, seed: u64) -> Option<Paired> {
        let both = self.rows[a].iter().zip(&self.rows[b]);
        let blocks: Vec<BlockVisits> = both
            .filter(|(a, b)| !a.is_empty() && !b.is_empty())
            .map(|(a, b)| BlockVisits { a: a.clone(), b: b.clone() })
            .collect();
        Paired::of_visits(&blocks, seed).ok()
    }
}

/// What is known of one cell.
struct Judge<'a> {
    plan: &'a Plan,
    cell: usize,
    visits: Vec<&'a Visit>,
    findings: Vec<&'a Finding>,
}

/// A pair's ratio, with its p adjusted for the other pairs of the metric in all cells.
#[derive(Clone, Copy)]
struct Seen {
    paired: Paired,
    p_holm: f64,
}

impl Seen {
    /// As it lies in a run file; two blocks have no interval, and so no estimate.
    fn estimate(&self) -> Option<Estimate> {
        let interval = self.paired.interval?;
        Some(Estimate {
            ratio: self.paired.ratio,
            low: interval.low,
            high: interval.high,
            blocks: self.paired.n as u32,
            sd_ln: interval.sd_ln,
            p_holm: self.p_holm,
        })
    }
}

impl Judge<'_> {
    /// The ratio of every pair, in their order.
    fn paired(&self, metric: Metric) -> Vec<Option<Paired>> {
        let table = Table::new(self.plan, &self.visits, metric);
        let pairs = self.plan.pairs(self.cell).into_iter();
        pairs.map(|(a, b)| table.paired(a, b, self.plan.seed)).collect()
    }

    /// The verdict of every pair, from its ratio and its adjusted p.
    fn metric(
        &self,
        metric: Metric,
        paired: impl Iterator<Item = (Option<Paired>, f64)>,
    ) -> Vec<PairVerdict> {
        let pairs = self.plan.pairs(self.cell).into_iter();
        pairs
            .zip(paired)
            .map(|((a, b), (paired, p_holm))| {
                self.pair(metric, a, b, paired.map(|paired| Seen { paired, p_holm }))
            })
            .collect()
    }

    fn pair(&self, metric: Metric, a: usize, b: usize, seen: Option<Seen>) -> PairVerdict {
        let estimate = seen.and_then(|seen| seen.estimate());
        let cell = self.cell;
        let short_of = self.short_of(seen);
        let verdict = |verdict| PairVerdict { cell, metric, a, b, estimate, verdict, short_of };
        if let Some(reason) = self.withheld(metric, a, b) {
            return verdict(Verdict::Withheld { reason });
        }
        let Some(seen) = seen else {
            return verdict(Verdict::Withheld { reason: self.nothing_to_pair(metric, a, b) });
        };
        let worded = self.wording(&seen);
        match (metric, self.limited(a), self.limited(b), &worded, estimate) {
            (Metric::Throughput | Metric::Capacity, true, false, said, Some(estimate)) => {
                self.bound(metric, (a, b), estimate, said, short_of)
            }
            (Metric::Throughput | Metric::Capacity, false, true, said, Some(estimate)) => {
                self.bound(metric, (b, a), inverse(estimate), said, short_of)
            }
            _ => verdict(worded),
        }
    }

    /// Why nothing may be said of the pair, if so.
    fn withheld(&self, metric: Metric, a: usize, b: usize) -> Option<String> {
        let void = self.findings.iter().find(|finding| {
            finding.acts(Severity::Void) && (finding.touches(a) || finding.touches(b))
        });
        if let Some(finding) = void {
            return Some(self.short(finding));
        }
        if let Some(reason) = [a, b].into_iter().find_map(|n| self.failing(n)) {
            return Some(reason);
        }
        let limited: Vec<&str> =
            [a, b].into_iter().filter(|&n| self.limited(n)).map(|n| self.name(n)).collect();
        match (metric, limited.as_slice()) {
            (Metric::Throughput | Metric::Capacity, [_, _]) => {
                Some("the generator was the limit for both; compare CPU time per request".into())
            }
            (Metric::P50 | Metric::P99, [_, ..]) => Some(format!(
                "the generator was the limit for {}, so its latency holds the generator's own \
                 queue; compare CPU time per request, or use fewer connections",
                limited.join(" and ")
            )),
            _ => None,
        }
    }

    /// Which finding, on whom; its evidence stands once, with the findings.
    fn short(&self, finding: &Finding) -> String {
        let names: Vec<&str> = finding.contenders.iter().map(|&n| self.name(n)).collect();
        match names.as_slice() {
            [] => finding.check.clone(),
            names => format!("{} on {}", finding.check, names.join(", ")),
        }
    }

    /// Whether too many of a contender's visits failed, in words.
    fn failing(&self, contender: usize) -> Option<String> {
        let counts =
            |visit: &&&Visit| visit.contender == contender && visit.state != VisitState::Disturbed;
        let visits: Vec<&&Visit> = self.visits.iter().filter(counts).collect();
        let mut failed = visits.iter().filter_map(|visit| match &visit.state {
            VisitState::Failed { reason, .. } => Some(reason),
            VisitState::Measured | VisitState::Disturbed => None,
        });
        let (count, all) = (failed.clone().count(), visits.len());
        (count as f64 > FAILED_SHARE_MAX * all as f64).then(|| {
            let last = failed.next_back().expect("more than none failed");
            format!("{count} of {all} visits of {} failed: {last}", self.name(contender))
        })
    }

    fn nothing_to_pair(&self, metric: Metric, a: usize, b: usize) -> String {
        let (a, b) = (self.name(a), self.name(b));
        match metric {
            Metric::P50 | Metric::P99 => format!(
                "too few blocks have enough requests of both {a} and {b} for this quantile; \
                 measure for longer"
            ),
            _ => format!("too few blocks have a measured visit of both {a} and {b}"),
        }
    }

    fn short_of(&self, seen: Option<Seen>) -> Option<ShortOf> {
        let (blocks, of) = (seen?.paired.n as u32, self.plan.blocks.min);
        (blocks < of).then_some(ShortOf { blocks, of })
    }

    /// The wordings of a pair without a ceiling.
    fn wording(&self, seen: &Seen) -> Verdict {
        let margin = self.plan.margin;
        let standard = stats::Standard { margin: margin.0, alpha: ALPHA };
        let decision = stats::decide(&seen.paired, seen.p_holm, standard);
        match (decision, seen.paired.interval) {
            (Decision::Undecided { more }, _) => {
                Verdict::Undecided { more_blocks: Some(more), margin }
            }
            (Decision::NoDifference, _) => Verdict::NoDifference { margin },
            (Decision::Ratio, None) => unreachable!("a difference is decided by its interval"),
            (Decision::Ratio, Some(stats::PairedInterval { low, high, .. })) => {
                Verdict::of_difference(seen.paired.ratio, (low, high))
            }
        }
    }

    /// What can be said where the generator was the limit for the numerator alone: its true rate is
    /// what was seen or more, so the near end of the interval is a bound; unless what was seen does
    /// not even put the numerator ahead.
    fn bound(
        &self,
        metric: Metric,
        (a, b): (usize, usize),
        estimate: Estimate,
        said: &Verdict,
        short_of: Option<ShortOf>,
    ) -> PairVerdict {
        let verdict = match said {
            said if said.tells_apart() && estimate.low > 1.0 => {
                Verdict::AtLeast { ratio: estimate.low, cause: BoundCause::Ceiling }
            }
            Verdict::Undecided { .. } if estimate.ratio > 1.0 => said.clone(),
            _ => Verdict::Withheld {
                reason: format!(
                    "the generator was the limit for {}, and what it let through is no more than \
                     {} reached; compare CPU time per request",
                    self.name(a),
                    self.name(b)
                ),
            },
        };
        let cell = self.cell;
        PairVerdict { cell, metric, a, b, estimate: Some(estimate), verdict, short_of }
    }

    fn limited(&self, contender: usize) -> bool {
        self.findings
            .iter()
            .any(|finding| finding.acts(Severity::Bound) && finding.touches(contender))
    }

    fn name(&self, contender: usize) -> &str {
        &self.plan.contenders[contender].name
    }
}

/// The same estimate of b over a.
fn inverse(of_a_over_b: Estimate) -> Estimate {
    let Estimate { ratio, low, high, .. } = of_a_over_b;
    Estimate { ratio: 1.0 / ratio, low: 1.0 / high, high: 1.0 / low, ..of_a_over_b }
}
