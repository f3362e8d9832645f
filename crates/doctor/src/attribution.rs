//! Owns why two contenders differ: how much of ln of their ratio each cause makes up. Start reading at
//! [`attribute`].
//!
//! In a closed loop each connection goes round in cycles: it waits, is answered, and asks again, so that throughput
//! is connections over the mean time of a cycle. A cycle is a sum of times by cause, T = T1 + T2 + ..., each in the
//! mean over good requests. The logarithm of a ratio of two sums is divided by the logarithmic mean L of the two
//! (Ang, Decomposition Analysis for Policymaking in Energy, 2004: LMDI): the part of cause k is
//! (Tk of b - Tk of a) / L. The parts add up exactly, a over b is the negative of b over a, and a cause's share is
//! its part of the difference in seconds. In an open loop the mean response time takes the cycle's place.
//!
//! It is done block by block, and the mean over blocks is the whole; intervals of shares are by a
//! bootstrap over blocks (BCa). Nothing is said where the whole may be chance, or is below 1 %: shares of nothing.
//!
//! | cause | its time in a good request |
//! |---|---|
//! | stalls | what requests in narrow modes far beyond the median took longer than the others; their kind is that of a confirmed finding, else a fixed hold |
//! | pauses | share of the time in which no reply came on any connection, times the cycle, beyond these stalls |
//! | reconnects | connects beyond the connections, times the mean time to connect and of a handshake |
//! | errors | time of failed requests over good ones |
//! | warm-up | cycle less the cycle of the part behind the first one, where the finding `warm_up_inside` is there |
//! | bytes | the rest, where the link was the limit of both |
//! | client limit | the queue for the generator's CPU, where it was busy for one of the two |
//! | service time | the rest |
//!
//! System and user time are not told apart, because a record has only their sum.

use std::collections::BTreeMap;

use record::{
    Attributed, AttributedPart, Attribution, Band, Cause, Certainty, Finding, LoadRecord, Plan,
    Severity, Visit, VisitState,
};
use stats::{Histogram, Paired};
use units::Nanos;

use crate::busy::{BUSY_MIN, client_busy};
use crate::first_part::FirstPart;
use crate::modes::{self, Mode};
use crate::timeline::Timeline;
use crate::{transport, window};

/// A smaller difference, in ln, is not divided.
const WHOLE_MIN_LN: f64 = 0.01;
/// Blocks from which a difference is divided.
const BLOCKS_MIN: usize = 4;
/// From this many mean distances of replies on, a silence is longer than chance makes one: exp(-14) is one in a
/// million.
const SILENT_GAPS: f64 = 14.0;
/// Shortest silence that is no hiccup of a scheduler.
const SILENCE_MIN: Nanos = Nanos::from_millis(3);
/// Every cause, in the order of [`Cause`].
const CAUSES: [Cause; 12] = [
    Cause::DelayedAck,
    Cause::RetransmissionTimeout,
    Cause::ProcessStarts,
    Cause::FixedHold,
    Cause::Pauses,
    Cause::Reconnects,
    Cause::Errors,
    Cause::WarmUp,
    Cause::Bytes,
    Cause::ClientLimit,
    Cause::Waiting,
    Cause::ServiceTime,
];

/// The causes of every pair's difference in a cell that is clear enough to be divided. `visits` may be of all cells.
pub fn attribute(
    plan: &Plan,
    cell: usize,
    visits: &[Visit],
    findings: &[Finding],
) -> Vec<Attribution> {
    let sides: BTreeMap<usize, Side> = plan
        .in_cell(cell)
        .filter_map(|contender| Some((contender, Side::of(cell, contender, visits, findings)?)))
        .collect();
    let pair = |(a, b): (usize, usize)| {
        let found = divide(sides.get(&a)?, sides.get(&b)?, plan.seed)?;
        Some(Attribution { cell, a, b, ..found })
    };
    plan.pairs(cell).into_iter().filter_map(pair).collect()
}

/// One contender in the cell, as it was visited.
struct Side {
    of: Attributed,
    slots: u64,
    /// Whether the link was the limit.
    at_link: bool,
    /// Whether the generator was busy.
    client_is_limit: bool,
    /// By block.
    visits: BTreeMap<u32, Times>,
}

/// A visit, as parts of its cycle in seconds, but for those that depend on the other contender.
struct Times {
    whole: f64,
    /// In the order of [`CAUSES`]; the rest has no part here.
    parts: [f64; CAUSES.len()],
    /// What the generator's CPU takes of a cycle.
    client: f64,
}

impl Side {
    /// `None` without loads of our own, or of both kinds of loop.
    fn of(cell: usize, contender: usize, visits: &[Visit], findings: &[Finding]) -> Option<Self> {
        let is_used = |visit: &&Visit| {
            visit.cell == cell
                && visit.contender == contender
                && visit.state == VisitState::Measured
        };
        let used: Vec<(&Visit, &LoadRecord)> = visits
            .iter()
            .filter(is_used)
            .filter_map(|visit| Some((visit, visit.load.as_ref()?)))
            .collect();
        let (_, first) = used.first()?;
        let slots = window::slots(first);
        let is_open = first.open_loop.is_some();
        let is_alike = used.iter().all(|(_, load)| {
            window::slots(load) == slots
                && load.open_loop.is_some() == is_open
                && (is_open || window::is_closed_loop(load))
        });
        let has = |check: &str| {
            let is_seen = |one: &Finding| {
                one.check == check
                    && one.touches(contender)
                    && one.cell.is_none_or(|seen| seen == cell)
                    && one.certainty == Certainty::Confirmed
            };
            findings.iter().any(is_seen)
        };
        let has_warm_up = has("warm_up_inside");
        let steady = |visit: &Visit, load: &LoadRecord| {
            let part = FirstPart::of(visit, load).filter(|part| has_warm_up && part.share > 0.0)?;
            Some((part.until, part.share))
        };
        let mut merged = Histogram::new();
        for (visit, load) in &used {
            let from = steady(visit, load).map_or(visit.cut, |(from, _)| from);
            merged.merge(&service_from(load, from));
        }
        let stalls: Vec<Stall> =
            modes::far(&merged).into_iter().map(|mode| Stall::of(mode, &merged, &has)).collect();
        let times = |(visit, load): &(&Visit, &LoadRecord)| {
            let times = Times::of(visit, load, &stalls, steady(visit, load), is_open)?;
            Some((visit.block, times))
        };
        let busy = used.iter().filter_map(|(visit, load)| client_busy(visit, load));
        let busy = stats::median(&busy.collect::<Vec<_>>()).unwrap_or(0.0);
        let is_bound = |check: &str| {
            findings
                .iter()
                .any(|one| one.check == check && one.acts_on(Severity::Bound, cell, contender))
        };
        is_alike.then(|| Self {
            of: if is_open { Attributed::ResponseTime } else { Attributed::Throughput },
            slots,
            at_link: is_bound(LINK_CEILING),
            client_is_limit: busy >= BUSY_MIN,
            visits: used.iter().filter_map(times).collect(),
        })
    }
}

/// The check that says that the link was the limit.
const LINK_CEILING: &str = "link_ceiling";

/// Requests that stood still for one time.
struct Stall {
    mode: Mode,
    cause: Cause,
    /// Of the requests in its band, those that its neighbours do not predict.
    part: f64,
}

impl Stall {
    fn of(mode: Mode, all: &Histogram, has: &dyn Fn(&str) -> bool) -> Self {
        let is_retransmission = transport::is_retransmission(mode.middle)
            && ["request_retransmitted", "packet_loss", "accept_queue_overflow"]
                .iter()
                .any(|check| has(check));
        let cause = match () {
            () if is_retransmission => Cause::RetransmissionTimeout,
            () if transport::is_delayed_ack(mode.middle) && has("delayed_ack") => Cause::DelayedAck,
            () if has("process_churn") => Cause::ProcessStarts,
            () => Cause::FixedHold,
        };
        let band = modes::count_between(all, mode.from, Nanos(mode.until.0 + 1));
        Self { mode, cause, part: (mode.count as f64 / band.max(1) as f64).min(1.0) }
    }

    fn holds(&self, span: Nanos) -> bool {
        (self.mode.from..=self.mode.until).contains(&span)
    }
}

/// Service times of what ended behind an instant.
fn service_from(load: &LoadRecord, from: Nanos) -> Histogram {
    let mut merged = Histogram::new();
    let after = load.intervals.iter().filter(|interval| interval.start >= from);
    after.for_each(|interval| merged.merge(&interval.service));
    merged
}

impl Times {
    /// `None` where the visit has no rate, or no request.
    fn of(
        visit: &Visit,
        load: &LoadRecord,
        stalls: &[Stall],
        steady: Option<(Nanos, f64)>,
        is_open: bool,
    ) -> Option<Self> {
        let mut parts = [0.0; CAUSES.len()];
        let mut add = |cause: Cause, seconds: f64| parts[place(cause)] += seconds;
        let window = window::sum(visit, load)?;
        let whole = match is_open {
            true => window.response.mean()?.as_secs_f64(),
            false => window::slots(load) as f64 / visit.rate_per_s.filter(|rate| *rate > 0.0)?,
        };
        let from = steady.map_or(visit.cut, |(from, _)| from);
        let service = service_from(load, from);
        let mut stalled = 0.0;
        for (cause, seconds) in stall_times(&service, stalls) {
            add(cause, seconds);
            stalled += seconds;
        }
        if is_open {
            let waiting = whole - window.service.mean()?.as_secs_f64();
            add(Cause::Waiting, waiting.max(0.0));
        } else {
            if let Some((_, share)) = steady {
                add(Cause::WarmUp, whole * share);
            }
            add(Cause::Pauses, (silent_share(visit, load) * whole - stalled).max(0.0));
            let good = load.requests.ok.max(1) as f64;
            add(Cause::Reconnects, reconnecting(load) / good);
            add(Cause::Errors, sum_of(&load.latencies.failed) / good);
        }
        let busy = client_busy(visit, load).unwrap_or(0.0);
        let demand = load.cpu_us_per_request.unwrap_or(0.0) * 1e-6;
        // Beside a busy CPU all wait for it; one with time to spare has the queue of an open one.
        let client = if busy >= BUSY_MIN { busy * whole } else { demand / (1.0 - busy) };
        Some(Self { whole, parts, client })
    }

    /// All parts, the last one the rest; `is_client`: whether the generator's CPU is told apart.
    fn divided(&self, is_client: bool, at_link: bool) -> [f64; CAUSES.len()] {
        let mut parts = self.parts;
        let rest = |parts: &[f64]| self.whole - parts.iter().sum::<f64>();
        if is_client {
            parts[place(Cause::ClientLimit)] = self.client.min(rest(&parts)).max(0.0);
        }
        let last = if at_link { Cause::Bytes } else { Cause::ServiceTime };
        parts[place(last)] = rest(&parts);
        parts
    }
}

fn place(cause: Cause) -> usize {
    cause as usize
}

/// What stalled requests took longer than the others, over all requests, cause by cause.
fn stall_times<'a>(
    service: &'a Histogram,
    stalls: &'a [Stall],
) -> impl Iterator<Item = (Cause, f64)> + 'a {
    let all = service.count().max(1) as f64;
    let (mut count, mut sum) = (0.0, 0.0);
    for (span, n) in
        service.buckets().filter(|(span, _)| !stalls.iter().any(|one| one.holds(*span)))
    {
        (count, sum) = (count + n as f64, sum + n as f64 * span.as_secs_f64());
    }
    let usual = if count > 0.0 { sum / count } else { 0.0 };
    stalls.iter().map(move |stall| {
        let within = service.buckets().filter(|(span, _)| stall.holds(*span));
        let longer = within.map(|(span, n)| n as f64 * (span.as_secs_f64() - usual)).sum::<f64>();
        (stall.cause, stall.part * longer.max(0.0) / all)
    })
}

/// Share of the measured time in which no reply came for longer than chance explains.
fn silent_share(visit: &Visit, load: &LoadRecord) -> f64 {
    let Some(timeline) = Timeline::measured(visit, load) else { return 0.0 };
    let talking = (1.0 - timeline.empty_share()) * timeline.length().as_secs_f64();
    let gap = talking / timeline.replies().max(1) as f64;
    let at_least = SILENCE_MIN.max(Nanos::from_secs_f64(SILENT_GAPS * gap));
    let silences = timeline.silences(at_least).into_iter();
    let silent: f64 = silences.map(|one| one.length.as_secs_f64() - gap).sum();
    silent / timeline.length().as_secs_f64()
}

/// Seconds that connections beyond those of the plan took to be made.
fn reconnecting(load: &LoadRecord) -> f64 {
    let again = load.connects.saturating_sub(u64::from(load.connections)) as f64;
    let each = load.connects.max(1) as f64;
    let of = [
        &load.latencies.connect,
        &load.latencies.handshake_full,
        &load.latencies.handshake_resumed,
    ];
    of.into_iter().map(sum_of).sum::<f64>() * again / each
}

fn sum_of(spans: &Histogram) -> f64 {
    spans.mean().map_or(0.0, |mean| mean.as_secs_f64() * spans.count() as f64)
}

/// The parts of one block: of ln(a / b), and of either's cycle.
struct Block {
    ln: [f64; CAUSES.len()],
    a: [f64; CAUSES.len()],
    b: [f64; CAUSES.len()],
}

impl Block {
    fn whole(&self) -> f64 {
        self.ln.iter().sum()
    }
}

/// `None` where the two cannot be compared, or may be alike. Cell and contenders are the caller's.
fn divide(a: &Side, b: &Side, seed: u64) -> Option<Attribution> {
    let is_comparable = a.of == b.of && (a.slots == b.slots || a.of == Attributed::ResponseTime);
    if !is_comparable {
        return None;
    }
    let is_client = a.of == Attributed::Throughput && (a.client_is_limit || b.client_is_limit);
    let at_link = a.at_link && b.at_link;
    let block = |(block, of_a): (&u32, &Times)| {
        let of_b = b.visits.get(block)?;
        let (a_parts, b_parts) =
            (of_a.divided(is_client, at_link), of_b.divided(is_client, at_link));
        // Throughput is over the cycle, so that a longer cycle of b makes a faster.
        let sign = if a.of == Attributed::Throughput { 1.0 } else { -1.0 };
        let mean = logarithmic_mean(of_a.whole, of_b.whole);
        let ln = std::array::from_fn(|at| sign * (b_parts[at] - a_parts[at]) / mean);
        Some(Block { ln, a: a_parts, b: b_parts })
    };
    let blocks: Vec<Block> = a.visits.iter().filter_map(block).collect();
    if blocks.len() < BLOCKS_MIN {
        return None;
    }
    let wholes: Vec<f64> = blocks.iter().map(Block::whole).collect();
    let interval = Paired::of_logs(&wholes).ok()?.interval?;
    let whole = wholes.iter().sum::<f64>() / wholes.len() as f64;
    let is_clear = (interval.low > 1.0 || interval.high < 1.0) && whole.abs() >= WHOLE_MIN_LN;
    let parts = CAUSES.into_iter().filter_map(|cause| part(&blocks, cause, seed)).collect();
    is_clear.then_some(Attribution {
        cell: 0,
        a: 0,
        b: 0,
        blocks: blocks.len() as u32,
        of: a.of,
        ln: whole,
        parts,
    })
}

/// `None` where neither has the cause.
fn part(blocks: &[Block], cause: Cause, seed: u64) -> Option<AttributedPart> {
    let at = place(cause);
    let mean = |of: fn(&Block) -> &[f64; CAUSES.len()]| {
        blocks.iter().map(|block| of(block)[at]).sum::<f64>() / blocks.len() as f64
    };
    let (a_s, b_s) = (mean(|block| &block.a), mean(|block| &block.b));
    if a_s == 0.0 && b_s == 0.0 && cause != Cause::ServiceTime {
        return None;
    }
    let share = |chosen: &[usize]| {
        let part: f64 = chosen.iter().map(|&block| blocks[block].ln[at]).sum();
        let whole: f64 = chosen.iter().map(|&block| blocks[block].whole()).sum();
        (whole != 0.0).then(|| part / whole)
    };
    let all: Vec<usize> = (0..blocks.len()).collect();
    let interval = stats::bca_bootstrap(blocks.len(), seed, share);
    Some(AttributedPart {
        cause,
        a_ms: a_s * 1e3,
        b_ms: b_s * 1e3,
        ln: mean(|block| &block.ln),
        share: share(&all)?,
        interval: interval.map(|one| Band { low: one.low, high: one.high }),
    })
}

/// (x - y) / ln(x / y), and x where they are equal; both above 0.
fn logarithmic_mean(x: f64, y: f64) -> f64 {
    let ln = (x / y).ln();
    // Below that the quotient is made of rounding, and the arithmetic mean is as good to 1e-13.
    if ln.abs() < 1e-6 { f64::midpoint(x, y) } else { (x - y) / ln }
}

#[cfg(test)]
mod tests;
