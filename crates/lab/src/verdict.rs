//! Owns what may be said of each pair of contenders: visits paired by block, the estimate, and which of the six
//! wordings holds. Start reading at [`verdicts`].
//!
//! A generator at its limit affects each metric differently, because a closed loop ties them together:
//! - throughput of a limited contender is a lower bound of what it can do;
//! - latency at a fixed number of connections is connections over throughput (Little's law), so it includes the
//!   generator's own queue, and there is no verdict;
//! - CPU time per request and memory are counted on the server itself, and remain valid.

use record::{
    BoundCause, Estimate, Finding, Metric, MetricKind, PairSoFar, PairVerdict, Plan, Severity,
    ShortOf, UserSkip, Verdict, Visit, VisitState,
};
use stats::{BlockVisits, Decision, Held, Paired};

/// Adjusted p below which a difference is called. Stopping on width favours blocks that
/// happened to vary little: up to 3.4 % of simulated A/A sessions that begin with eight blocks are called
/// different at a level of 2 % (docs/estimators.md).
pub(crate) const ALPHA: f64 = 0.02;
/// If a larger share of a contender's visits failed, the remaining ones are its best ones.
const FAILED_SHARE_MAX: f64 = 0.1;

/// The verdict of every pair on every metric, cell by cell, the primary metric first, pairs in the order
/// of the contenders. The ratio is that of the contender named first over the other.
pub fn verdicts(plan: &Plan, visits: &[Visit], findings: &[Finding]) -> Vec<PairVerdict> {
    verdicts_after_skips(plan, visits, findings, &[])
}

/// As [`verdicts`], in a run whose user had contenders skipped: all that is said of them is withheld. The user may
/// have seen their figures, and a comparison that is broken off for its figures shows them too large or too small.
pub fn verdicts_after_skips(
    plan: &Plan,
    visits: &[Visit],
    findings: &[Finding],
    skips: &[UserSkip],
) -> Vec<PairVerdict> {
    let at = |cell: usize| {
        let visits = visits.iter().filter(|visit| visit.cell == cell).collect();
        let is_here = |finding: &&Finding| finding.cell.is_none_or(|seen| seen == cell);
        let findings = findings.iter().filter(is_here).collect();
        Judge { plan, cell, visits, findings, skips }
    };
    let judges: Vec<Judge<'_>> = (0..plan.cells.len()).map(at).collect();
    let mut said = vec![Vec::new(); judges.len()];
    for &metric in &plan.metrics {
        let cases: Vec<Case<'_>> = judges.iter().flat_map(|judge| judge.cases(metric)).collect();
        for (case, held) in cases.iter().zip(held(&cases)) {
            said[case.judge.cell].push(case.judge.pair(metric, case, held));
        }
    }
    let said = said.concat();
    let pairs: usize = (0..plan.cells.len()).map(|cell| plan.pairs(cell).len()).sum();
    assert_eq!(said.len(), pairs * plan.metrics.len(), "each pair has a verdict on each metric");
    said
}

/// A pair of contenders in a cell.
struct Case<'a> {
    judge: &'a Judge<'a>,
    a: usize,
    b: usize,
    /// `None` if no block has a visit of both.
    paired: Option<Paired>,
    /// Why nothing may be said, whatever the figures.
    withheld: Option<String>,
}

impl Case<'_> {
    /// p of "no difference", if there are enough blocks for one.
    fn p(&self) -> Option<f64> {
        Some(self.paired?.interval?.p)
    }
}

/// Holm's step-down over one family: the pairs of a metric in all cells, because readers search all of them, and
/// among thirty equal cells one stands out by chance.
///
/// Two kinds of pairs are not tested: those that are withheld whatever their figures, and those without figures. They
/// cannot be called different by chance, so they raise no other p: a server that never started costs the others
/// nothing. If such a pair has a p, it is the value that one more test would give it.
fn held(cases: &[Case<'_>]) -> Vec<Held> {
    let tested = |case: &Case<'_>| case.p().filter(|_| case.withheld.is_none());
    let family: Vec<f64> = cases.iter().filter_map(tested).collect();
    let mut held = stats::held(&family).into_iter();
    let beside = |p: f64| {
        let tests = family.len() + 1;
        Held { p: (p * tests as f64).min(1.0), tests }
    };
    let one = |case: &Case<'_>| match tested(case) {
        Some(_) => held.next().expect("one for each that is tested"),
        None => beside(case.p().unwrap_or(1.0)),
    };
    cases.iter().map(one).collect()
}

/// Whether the interval of the primary metric is narrow enough for every pair of `left_in` in a cell.
/// It uses widths only: stopping as soon as a difference is significant would turn noise into
/// differences.
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
        .all(|(a, b)| table.paired(a, b).as_ref().is_some_and(is_narrow))
}

/// Most pairs that are looked at between two blocks. Of more, only those with the best contender of each cell are: an
/// estimate takes some 10 us, and a run has up to some 20,000 pairs.
const PAIRS_SO_FAR_MAX: usize = 400;

/// What is known so far of the pairs of `left_in` on the primary metric, cell by cell.
pub(crate) fn pairs_so_far(plan: &Plan, visits: &[Visit], left_in: &[usize]) -> Vec<PairSoFar> {
    let metric = plan.metrics[0];
    let all: usize = (0..plan.cells.len()).map(|cell| plan.pairs(cell).len()).sum();
    let in_cell = |cell: usize| {
        let here: Vec<&Visit> = visits.iter().filter(|visit| visit.cell == cell).collect();
        let table = Table::new(plan, &here, metric);
        let best = (all > PAIRS_SO_FAR_MAX).then(|| table.best(metric, left_in)).flatten();
        let is_shown = move |&(a, b): &(usize, usize)| {
            let is_left = left_in.contains(&a) && left_in.contains(&b);
            is_left && best.is_none_or(|best| best == a || best == b)
        };
        let pair = move |(a, b): (usize, usize)| {
            let paired = table.paired(a, b)?;
            let interval = paired.interval.map(|interval| (interval.low, interval.high));
            let blocks = paired.n as u32;
            Some(PairSoFar { cell, a, b, blocks, ratio: paired.ratio, interval })
        };
        plan.pairs(cell).into_iter().filter(is_shown).filter_map(pair)
    };
    (0..plan.cells.len()).flat_map(in_cell).collect()
}

/// Logarithms of one metric: a row for each contender, a column for each block, from usable visits.
struct Table {
    rows: Vec<Vec<Vec<f64>>>,
}

impl Table {
    fn new(plan: &Plan, visits: &[&Visit], metric: Metric) -> Self {
        let blocks = visits.iter().map(|visit| visit.block as usize + 1).max().unwrap_or(0);
        let mut rows = vec![vec![Vec::new(); blocks]; plan.contenders.len()];
        for visit in visits.iter().filter(|visit| visit.state != VisitState::Disturbed) {
            // Zero has no logarithm; contenders that answered nothing are withheld (`Judge::failing`).
            let value = visit.value(metric).filter(|&value| value > 0.0);
            rows[visit.contender][visit.block as usize].extend(value.map(f64::ln));
        }
        Self { rows }
    }

    /// The contender with the best mean.
    fn best(&self, metric: Metric, among: &[usize]) -> Option<usize> {
        let mean = |&one: &usize| {
            let (sum, count) =
                self.rows[one].iter().flatten().fold((0.0, 0), |(s, n), v| (s + v, n + 1));
            (count > 0).then(|| (one, sum / f64::from(count)))
        };
        let means = among.iter().filter_map(mean);
        let by_mean = |a: &(usize, f64), b: &(usize, f64)| a.1.total_cmp(&b.1);
        let best =
            if metric.more_is_better() { means.max_by(by_mean) } else { means.min_by(by_mean) };
        best.map(|(one, _)| one)
    }

    /// The ratio over the blocks that have both; `None` if there is no such block.
    fn paired(&self, a: usize, b: usize) -> Option<Paired> {
        let both = self.rows[a].iter().zip(&self.rows[b]);
        let blocks: Vec<BlockVisits> = both
            .filter(|(a, b)| !a.is_empty() && !b.is_empty())
            .map(|(a, b)| BlockVisits { a: a.clone(), b: b.clone() })
            .collect();
        Paired::of_visits(&blocks).ok()
    }
}

/// What is known of one cell.
struct Judge<'a> {
    plan: &'a Plan,
    cell: usize,
    visits: Vec<&'a Visit>,
    findings: Vec<&'a Finding>,
    skips: &'a [UserSkip],
}

/// The estimate as a run file stores it; with two blocks there is no interval, and so no estimate.
fn estimate(paired: &Paired, held: Held) -> Option<Estimate> {
    let interval = paired.interval?;
    assert!(
        interval.low <= paired.ratio && paired.ratio <= interval.high,
        "an interval holds its estimate: {paired:?}"
    );
    assert!((0.0..=1.0).contains(&held.p), "a p is a probability: {}", held.p);
    Some(Estimate {
        ratio: paired.ratio,
        low: interval.low,
        high: interval.high,
        blocks: paired.n as u32,
        sd_ln: interval.sd_ln,
        p_holm: held.p,
    })
}

impl<'a> Judge<'a> {
    /// Every pair, in order.
    fn cases(&'a self, metric: Metric) -> impl Iterator<Item = Case<'a>> {
        let table = Table::new(self.plan, &self.visits, metric);
        let case = move |(a, b)| Case {
            judge: self,
            a,
            b,
            paired: table.paired(a, b),
            withheld: self.withheld(metric, (a, b), table.paired(a, b).as_ref()),
        };
        self.plan.pairs(self.cell).into_iter().map(case)
    }

    fn pair(&self, metric: Metric, case: &Case<'_>, held: Held) -> PairVerdict {
        let (cell, a, b) = (self.cell, case.a, case.b);
        let estimate = case.paired.as_ref().and_then(|paired| estimate(paired, held));
        let verdict = match (&case.withheld, &case.paired) {
            (Some(reason), _) => Verdict::Withheld { reason: reason.clone() },
            (None, None) => Verdict::Withheld { reason: self.nothing_to_pair(metric, a, b) },
            (None, Some(paired)) => {
                let said = self.wording(paired, held);
                let is_rate = metric.is_rate();
                match (estimate.filter(|_| is_rate), self.limited(a), self.limited(b)) {
                    (Some(estimate), true, false) => self.bound(a, b, estimate, said),
                    (Some(estimate), false, true) => {
                        self.bound(b, a, inverse(estimate), said.turned()).turned()
                    }
                    _ => said,
                }
            }
        };
        let of = self.plan.blocks.min;
        let short = |paired: Paired| ShortOf { blocks: paired.n as u32, of };
        let short_of = case.paired.map(short).filter(|short| short.blocks < of);
        PairVerdict { cell, metric, a, b, estimate, verdict, short_of }
    }

    /// Why nothing may be said of the pair; `None` if something may.
    fn withheld(
        &self,
        metric: Metric,
        (a, b): (usize, usize),
        paired: Option<&Paired>,
    ) -> Option<String> {
        if let Some(skip) = self.skips.iter().find(|skip| [a, b].contains(&skip.contender)) {
            let name = self.name(skip.contender);
            return Some(format!("{name} was skipped by the user in block {}", skip.block + 1));
        }
        // An artifact may be too small to explain a large difference.
        let is_spared =
            |finding: &Finding| paired.is_some_and(|of| doctor::spares(finding, of.centre_ln));
        let is_void = |finding: &&&Finding| {
            finding.acts(Severity::Void) && finding.touches_pair(a, b) && !is_spared(finding)
        };
        if let Some(finding) = self.findings.iter().find(is_void) {
            return Some(self.short(finding, a, b));
        }
        if let Some(reason) = [a, b].into_iter().find_map(|n| self.failing(metric, n)) {
            return Some(reason);
        }
        let limited: Vec<&str> =
            [a, b].into_iter().filter(|&n| self.limited(n)).map(|n| self.name(n)).collect();
        match (metric.info().kind, limited.as_slice()) {
            _ if metric == Metric::Memory => {
                self.unlike_memory(a, b).or_else(|| self.open_memory(a, b))
            }
            (MetricKind::Rate, [_, _]) => {
                let limit = self.limit([a, b]);
                Some(format!("{limit} was the limit for both; compare CPU time per request"))
            }
            (MetricKind::ServiceTime(_), [_, ..]) => Some(format!(
                "{limit} was the limit for {}, so its latency holds {limit}'s own queue; compare CPU \
                 time per request, or use fewer connections",
                limited.join(" and "),
                limit = self.limit([a, b]),
            )),
            _ => None,
        }
    }

    /// Why memory of the pair is not compared, if its visits differ in how memory was counted.
    fn unlike_memory(&self, a: usize, b: usize) -> Option<String> {
        let methods = [a, b].map(|n| {
            let of = self.visits.iter().filter(|visit| visit.contender == n);
            let measured = of.filter(|visit| visit.state == VisitState::Measured);
            measured.filter_map(|visit| visit.memory_method()).collect()
        });
        record::unlike_memory([(self.name(a), &methods[0]), (self.name(b), &methods[1])])
    }

    /// Why memory that is known only as a range has no verdict, if the ranges of both sides overlap.
    fn open_memory(&self, a: usize, b: usize) -> Option<String> {
        let range = |n: usize| {
            let of = self.visits.iter().filter(|visit| visit.contender == n);
            let used = of.filter(|visit| visit.state == VisitState::Measured);
            used.filter_map(|visit| visit.server).fold((u64::MAX, 0, false), |seen, server| {
                let (low, high, is_open) = seen;
                let (least, most) = (server.memory.0, server.memory_account.at_most.0);
                (low.min(least), high.max(most.max(least)), is_open || most > least)
            })
        };
        let (one, other) = (range(a), range(b));
        let overlap = one.0 <= other.1 && other.0 <= one.1;
        ((one.2 || other.2) && overlap).then(|| {
            let said = |n: usize, (low, high, _): (u64, u64, bool)| {
                format!("{} to {} for {}", units::Bytes(low), units::Bytes(high), self.name(n))
            };
            format!(
                "memory is known as a range ({}, {}), because page frames can be told apart only with \
                 CAP_SYS_ADMIN: run as root",
                said(a, one),
                said(b, other)
            )
        })
    }

    /// The finding and the contenders that it affects; its evidence is shown once, with the findings.
    fn short(&self, finding: &Finding, a: usize, b: usize) -> String {
        // If the two are unlike, or met the same limit, both are named: neither alone is at fault.
        let is_of_both = finding.alike || finding.among;
        let whom = if is_of_both { &[a, b] } else { finding.contenders.as_slice() };
        let names: Vec<&str> = whom.iter().map(|&n| self.name(n)).collect();
        if finding.among {
            return format!("{} of {}", finding.check.replace('_', " "), names.join(" and "));
        }
        match names.as_slice() {
            [] => finding.check.clone(),
            names => format!("{} on {}", finding.check, names.join(", ")),
        }
    }

    /// Why a contender has too many failed visits, or visits that answered nothing, in words. A rate of zero has no
    /// logarithm: leaving it out would keep only the blocks in which the server did answer.
    fn failing(&self, metric: Metric, contender: usize) -> Option<String> {
        let counts =
            |visit: &&&Visit| visit.contender == contender && visit.state != VisitState::Disturbed;
        let visits: Vec<&&Visit> = self.visits.iter().filter(counts).collect();
        let mut reasons = visits.iter().filter_map(|visit| match &visit.state {
            VisitState::Failed { reason, .. } => Some(reason),
            VisitState::Measured | VisitState::Disturbed => None,
        });
        let (all, failed) = (visits.len(), reasons.clone().count());
        let silent = visits.iter().filter(|visit| visit.answered_nothing()).count();
        let is_rate = metric.is_rate();
        let too_many = (failed + silent) as f64 > FAILED_SHARE_MAX * all as f64;
        let voids = too_many || (is_rate && silent > 0);
        if !voids {
            return None;
        }
        let name = self.name(contender);
        let visits = format!("of {all} visits of {name}");
        Some(match reasons.next_back().filter(|_| too_many) {
            None => format!("{silent} {visits} finished no request in the measured window"),
            // The reason of a contender that was given up already names it.
            Some(reason) if failed == all && reason.starts_with(name) => reason.clone(),
            Some(reason) if silent == 0 => format!("{failed} {visits} failed: {reason}"),
            Some(reason) => {
                format!("{} {visits} failed or finished no request: {reason}", failed + silent)
            }
        })
    }

    fn nothing_to_pair(&self, metric: Metric, a: usize, b: usize) -> String {
        let (a, b) = (self.name(a), self.name(b));
        match metric.info().kind {
            MetricKind::ServiceTime(_) => format!(
                "too few blocks have enough requests of both {a} and {b} for this quantile; \
                 measure for longer"
            ),
            _ => format!("too few blocks have a measured visit of both {a} and {b}"),
        }
    }

    /// The wordings of a pair that the generator did not limit. Fewer blocks than the minimum do not change what is
    /// certain: such a session ended because of its budget, not its figures, and Student's t allows for few blocks
    /// that vary little by chance (simulated: `aa.rs`).
    fn wording(&self, paired: &Paired, held: Held) -> Verdict {
        let margin = self.plan.margin;
        let standard = stats::Standard { margin: margin.0, alpha: ALPHA };
        match (stats::decide(paired, held, standard), paired.interval) {
            (Decision::Undecided { more }, None) => {
                // Nothing is known of the spread yet, so the missing blocks follow from the study's minimum.
                let missing = self.plan.blocks.min.saturating_sub(paired.n as u32);
                Verdict::Undecided { more_blocks: more.map(|more| more.max(missing)), margin }
            }
            (Decision::Undecided { more }, Some(_)) => {
                Verdict::Undecided { more_blocks: more, margin }
            }
            (Decision::NoDifference, _) => Verdict::NoDifference { margin },
            (Decision::Ratio, None) => unreachable!("a difference is decided by its interval"),
            (Decision::Ratio, Some(stats::PairedInterval { low, high, .. })) => {
                Verdict::of_difference(paired.ratio, (low, high))
            }
        }
    }

    /// The verdict if the generator limited only the numerator: its true rate is at least the measured one, so the
    /// near end of the interval is a bound. There is no bound if the measured rate does not put the numerator ahead.
    fn bound(&self, a: usize, b: usize, estimate: Estimate, said: Verdict) -> Verdict {
        match said {
            said if said.tells_apart() && estimate.low > 1.0 => {
                Verdict::AtLeast { ratio: estimate.low, cause: BoundCause::Ceiling }
            }
            Verdict::Undecided { .. } if estimate.ratio > 1.0 => said,
            _ => Verdict::Withheld {
                reason: format!(
                    "{} was the limit for {}, and the measured rate is not above that of {}; compare CPU \
                     time per request",
                    self.limit([a, b]),
                    self.name(a),
                    self.name(b)
                ),
            },
        }
    }

    fn limited(&self, contender: usize) -> bool {
        self.bounds(&[contender]).next().is_some()
    }

    fn bounds<'b>(&'b self, of: &'b [usize]) -> impl Iterator<Item = &'b Finding> {
        let touches = |finding: &&Finding| of.iter().any(|&one| finding.touches(one));
        let bounds = self.findings.iter().copied().filter(|one| one.acts(Severity::Bound));
        bounds.filter(move |finding| touches(finding))
    }

    /// What bounds the rate of one of the two, or both.
    fn limit(&self, of: [usize; 2]) -> &'static str {
        match self.bounds(&of).next().map(|finding| finding.check.as_str()) {
            Some("link_ceiling") => "the network",
            Some("cut_off_at_the_end") => "the end of the load",
            _ => "the generator",
        }
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
