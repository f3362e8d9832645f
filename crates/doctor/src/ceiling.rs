//! Owns whether what a contender sent was as much as its network carries, for the checks that ask what set the pace.
//! Must not judge a pair. Start reading at [`at_link`].
//!
//! A link has one rate, whoever sends: bytes a second hardly vary, requests queue for it although no CPU is busy, and
//! unlike servers meet at the same figure. Fixed delays and few slots make a level rate too, so that the pattern alone
//! is a suspicion. The second witness is the figure itself: links are made and shaped in round numbers of bits a
//! second, and the interface's counter, which counts what is on the wire, says how near it came to one.

use record::{LoadRecord, MachineSeries, Visit};
use units::Nanos;

use crate::{Evidence, busy, window};

/// A contender that sent as much as its network carries.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AtLink {
    pub(crate) contender: usize,
    /// On the wire where the interface was read, else of replies.
    pub(crate) bytes_per_s: f64,
    /// The speed that it came near to.
    pub(crate) speed: Option<Speed>,
    /// The others that sent as much, itself included.
    pub(crate) equals: Vec<usize>,
    /// Whether a second witness was there.
    pub(crate) is_sure: bool,
}

/// A speed of links and how much of it was used.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Speed {
    pub(crate) bits_per_s: f64,
    /// About 1.
    pub(crate) used: f64,
}

/// Spread of a contender's visits, and distance between contenders, up to which bytes a second are one figure.
const ONE_FIGURE: f64 = 0.01;
/// Median over shortest service time from which requests queued. A fixed delay has a shortest one as long.
const QUEUED_MIN: f64 = 2.0;
/// Share of its CPUs below which a side clearly was not the limit.
const FREE_MAX: f64 = 0.7;
/// Visits or steps of a counter below which a spread says nothing.
const RATES_MIN: usize = 5;
/// Groups of many steps.
const GROUPS: usize = 8;

/// Speeds that networks have or are shaped to, in bits a second: these times a power of ten, from 1 Mbit/s to
/// 400 Gbit/s.
const ROUND: [f64; 5] = [1.0, 2.0, 2.5, 4.0, 5.0];
const SPEED_MIN: f64 = 1e6;
const SPEED_MAX: f64 = 400e9;
/// On the wire: what a shaper lets through, whose bucket gives a little more at first.
const WIRE_USED: (f64, f64) = (0.97, 1.01);
/// The same where it is the only witness: CPUs may have been busy, or no other contender has the same rate. By chance
/// one figure in 23 lies so near to a round one.
const WIRE_USED_CLEARLY: (f64, f64) = (0.985, 1.005);

/// Every contender whose bytes a second were the network's, as far as that can be known.
pub(crate) fn at_link(evidence: &Evidence) -> Vec<AtLink> {
    let flows: Vec<Flow> =
        evidence.contenders().filter_map(|contender| Flow::of(evidence, contender)).collect();
    flows.iter().filter_map(|flow| judged(evidence, flow, &flows)).collect()
}

fn judged(evidence: &Evidence, flow: &Flow, flows: &[Flow]) -> Option<AtLink> {
    let is_equal = |other: &&Flow| {
        let ratio = other.bytes_per_s / flow.bytes_per_s;
        ratio.max(1.0 / ratio) - 1.0 <= ONE_FIGURE
    };
    let equals: Vec<usize> = flows.iter().filter(is_equal).map(|other| other.contender).collect();
    let meets_another = equals.iter().any(|&other| unlike(evidence, flow.contender, other));
    let is_free = flow.limit == CpuLimit::None;
    // Replies alone do not tell what was on the wire, and a round number of bits is near to any figure of theirs.
    let on_wire = |used| flow.on_wire.then(|| self::speed(flow.bytes_per_s, used)).flatten();
    let (speed, clearly) = (on_wire(WIRE_USED), on_wire(WIRE_USED_CLEARLY).is_some());
    let is_sure = match meets_another {
        true => speed.is_some() && (is_free || clearly),
        false => is_free && clearly,
    };
    let is_suspect = meets_another && is_free;
    (is_sure || is_suspect).then(|| AtLink {
        contender: flow.contender,
        bytes_per_s: flow.bytes_per_s,
        speed: speed.filter(|_| is_sure),
        equals,
        is_sure,
    })
}

/// Whether two contenders are not the same server with the same settings, asked for the same.
pub(crate) fn unlike(evidence: &Evidence, a: usize, b: usize) -> bool {
    let [a, b] = [a, b].map(|one| &evidence.run.plan.contenders[one]);
    (&a.server, &a.settings, &a.work) != (&b.server, &b.settings, &b.work)
}

/// The round speed that this number of bytes a second comes near to.
fn speed(bytes_per_s: f64, (from, to): (f64, f64)) -> Option<Speed> {
    let bits = 8.0 * bytes_per_s;
    let decade = 10f64.powf(bits.max(1.0).log10().floor());
    let candidates = [decade, 10.0 * decade].into_iter().flat_map(|ten| ROUND.map(|one| one * ten));
    let near = candidates.filter(|&speed| {
        (SPEED_MIN..=SPEED_MAX).contains(&speed) && bits >= from * speed && bits <= to * speed
    });
    near.map(|speed| Speed { bits_per_s: speed, used: bits / speed })
        .min_by(|a, b| (a.used - 1.0).abs().total_cmp(&(b.used - 1.0).abs()))
}

/// What a contender sent, if it was a level flow that requests queued for and no CPU was seen to limit.
#[derive(Debug, Clone, Copy)]
struct Flow {
    contender: usize,
    bytes_per_s: f64,
    on_wire: bool,
    limit: CpuLimit,
}

/// Whether a CPU could have set the pace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CpuLimit {
    /// All had time left.
    None,
    /// It is not known how busy the server's were.
    Unknown,
}

impl Flow {
    fn of(evidence: &Evidence, contender: usize) -> Option<Self> {
        if evidence.run.plan.work(0, contender).sleep.is_some() {
            return None;
        }
        let loads: Vec<(&Visit, &LoadRecord)> = evidence
            .loads(contender)
            .filter(|(_, load)| window::is_closed_loop(load) && load.requests.ok > 0)
            .collect();
        let limit = cpu_limit(evidence, contender, &loads)?;
        let wire = match loads.as_slice() {
            [(visit, _)] => Level::of_readings(visit),
            _ => {
                let rates: Option<Vec<f64>> =
                    loads.iter().map(|(visit, load)| on_wire(visit, load)).collect();
                rates.and_then(|rates| Level::of_rates(&rates))
            }
        };
        let on_wire = wire.is_some();
        let of_replies = || {
            let rates = loads.iter().filter_map(|(visit, load)| replies(visit, load));
            Level::of_rates(&rates.collect::<Vec<_>>())
        };
        let level = wire.or_else(of_replies)?;
        let is_level = level.n >= RATES_MIN && level.spread <= ONE_FIGURE;
        let bytes_per_s = level.bytes_per_s;
        (is_level && has_queue(&loads)).then_some(Self { contender, bytes_per_s, on_wire, limit })
    }
}

/// Bytes a second, and how much they varied. Robust: one visit, or one reading of many, that something disturbed does
/// not make a flow unlevel.
#[derive(Debug, Clone, Copy)]
struct Level {
    bytes_per_s: f64,
    /// As a share.
    spread: f64,
    /// Of how many rates or steps.
    n: usize,
}

impl Level {
    /// Of a rate in each visit.
    fn of_rates(rates: &[f64]) -> Option<Self> {
        let bytes_per_s = stats::median(rates).filter(|rate| *rate > 0.0)?;
        let spread = spread(rates)? / bytes_per_s;
        Some(Self { bytes_per_s, spread, n: rates.len() })
    }

    /// Of a load alone, from the readings of the interface that moved most. Single steps would not do: a segment of
    /// 20 KB on either side of a reading is 1.6 % of what 50 Mbit/s carry in 200 ms, and a shaper lets a burst through
    /// at once. Many steps are taken in groups, so that one that was disturbed is one of eight; of a few, the bytes so
    /// far are held against a straight line. Without the first and the last step, in which the load began and ended;
    /// `None` where too few were read, or nothing was sent in one of them.
    fn of_readings(visit: &Visit) -> Option<Self> {
        let steps = moved_most(visit)?;
        let at = &visit.surroundings.as_ref()?.series.at;
        let inner = steps.get(1..steps.len().checked_sub(1)?).filter(|inner| inner.len() > 1)?;
        if inner.iter().any(|step| *step <= 0) {
            return None;
        }
        let at = at.get(1..inner.len() + 2)?;
        if inner.len() >= 2 * GROUPS {
            Self::of_groups(at, inner)
        } else {
            Self::of_line(at, inner)
        }
    }

    /// Of as many groups of neighbouring steps.
    fn of_groups(at: &[Nanos], steps: &[i64]) -> Option<Self> {
        let edge = |group: usize| group * steps.len() / GROUPS;
        let rates: Vec<f64> = (0..GROUPS)
            .map(|group| {
                let (from, until) = (edge(group), edge(group + 1));
                let bytes: i64 = steps[from..until].iter().sum();
                bytes as f64 / at[until].saturating_sub(at[from]).as_secs_f64()
            })
            .collect();
        Some(Self { n: steps.len(), ..Self::of_rates(&rates)? })
    }

    /// By how far the bytes so far lie off a straight line, as a share of what a step has.
    fn of_line(at: &[Nanos], inner: &[i64]) -> Option<Self> {
        let mut so_far = 0.0;
        let bytes = std::iter::once(0.0).chain(inner.iter().map(|step| {
            so_far += *step as f64;
            so_far
        }));
        let points: Vec<(f64, f64)> = at.iter().map(|at| at.as_secs_f64()).zip(bytes).collect();
        let mean =
            |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / points.len() as f64;
        let (x, y) = (mean(|point| point.0), mean(|point| point.1));
        let xy: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
        let xx: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
        let bytes_per_s = (xx > 0.0).then(|| xy / xx).filter(|rate| *rate > 0.0)?;
        let off: Vec<f64> =
            points.iter().map(|point| point.1 - y - bytes_per_s * (point.0 - x)).collect();
        let step = so_far / inner.len() as f64;
        Some(Self { bytes_per_s, spread: spread(&off)? / step, n: inner.len() })
    }
}

/// The standard deviation of a normal law whose median absolute deviation is that of the values.
fn spread(values: &[f64]) -> Option<f64> {
    Some(1.4826 * stats::median_absolute_deviation(values)?)
}

/// `None` where a CPU was the limit, or nearly.
fn cpu_limit(
    evidence: &Evidence,
    contender: usize,
    loads: &[(&Visit, &LoadRecord)],
) -> Option<CpuLimit> {
    if let Some((client, server)) = busy::medians(evidence, contender) {
        let is_shared = evidence.run.layout.shared;
        let used = if is_shared { client + server } else { client.max(server) };
        return (used < FREE_MAX).then_some(CpuLimit::None);
    }
    let client = loads.iter().map(|(_, load)| load.client.busiest()).fold(0.0, f64::max);
    if client >= FREE_MAX {
        return None;
    }
    let series = loads.iter().filter_map(|(visit, _)| visit.surroundings.as_ref());
    let busiest: Vec<f64> = series.filter_map(|around| busiest_cpu(&around.series)).collect();
    match stats::median(&busiest) {
        Some(busy) if busy < FREE_MAX => Some(CpuLimit::None),
        // A load alone has nothing to be compared with.
        _ if evidence.contenders().len() < 2 => None,
        _ => Some(CpuLimit::Unknown),
    }
}

/// Share of the time in which the machine's busiest CPU did something.
fn busiest_cpu(series: &MachineSeries) -> Option<f64> {
    let mut cpus: std::collections::BTreeMap<&str, (i64, i64)> = Default::default();
    for (name, course) in &series.counters {
        let Some((cpu, what)) = name.strip_prefix("cpu.").and_then(|rest| rest.split_once('.'))
        else {
            continue;
        };
        let ticks: i64 = course.steps.iter().sum();
        let (idle, all) = cpus.entry(cpu).or_default();
        *all += ticks;
        *idle += if matches!(what, "idle_ticks" | "iowait_ticks") { ticks } else { 0 };
    }
    let busy = cpus.into_values().filter(|(_, all)| *all > 0);
    busy.map(|(idle, all)| 1.0 - idle as f64 / all as f64).reduce(f64::max)
}

/// Whether the median request waited for others: the shortest of all visits found the way free.
fn has_queue(loads: &[(&Visit, &LoadRecord)]) -> bool {
    let shortest = loads.iter().filter_map(|(_, load)| load.latencies.service.min()).min();
    let medians: Vec<f64> = loads
        .iter()
        .filter_map(|(_, load)| Some(load.latencies.service.quantile(0.5)?.as_secs_f64()))
        .collect();
    match (shortest, stats::median(&medians)) {
        (Some(shortest), Some(median)) => median >= QUEUED_MIN * shortest.as_secs_f64(),
        _ => false,
    }
}

/// Bytes of replies a second in the measured window.
fn replies(visit: &Visit, load: &LoadRecord) -> Option<f64> {
    let sum = window::sum(visit, load)?;
    Some(sum.bytes_read as f64 / sum.length.as_secs_f64())
}

/// Bytes a second on the wire in the measured window: those of the replies, times what the interface counted over the
/// whole load for each byte of them. Readings are too far apart to tell of a short window by themselves.
fn on_wire(visit: &Visit, load: &LoadRecord) -> Option<f64> {
    let all = u64::try_from(moved_most(visit)?.iter().sum::<i64>()).ok()?;
    (load.bytes.read > 0).then_some(replies(visit, load)? * all as f64 / load.bytes.read as f64)
}

/// Bytes between readings of the interface that moved most.
fn moved_most(visit: &Visit) -> Option<&[i64]> {
    let series = &visit.surroundings.as_ref()?.series;
    let moved = |side: &str, counter: &str| {
        let (prefix, suffix) = (format!("{side}.dev."), format!(".{counter}"));
        let of_side = series.counters.iter();
        of_side
            .filter(|(name, _)| name.starts_with(&prefix) && name.ends_with(&suffix))
            .map(|(_, course)| &course.steps)
            .max_by_key(|steps| steps.iter().sum::<i64>())
    };
    moved("server", "tx_bytes")
        .or_else(|| moved("both", "rx_bytes"))
        .or_else(|| moved("client", "rx_bytes"))
        .map(Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_speed_is_found_from_a_little_below_and_no_other_is() {
        let found = |mbit: f64, used| speed(mbit * 1e6 / 8.0, used).map(|one| one.bits_per_s / 1e6);
        assert_eq!(found(49.7, WIRE_USED), Some(50.0));
        assert_eq!(found(50.6, WIRE_USED), None);
        assert_eq!(found(990.0, WIRE_USED), Some(1_000.0));
        assert_eq!(found(46.9, WIRE_USED), None);
        assert_eq!(found(0.99, WIRE_USED), Some(1.0));
        assert_eq!(found(0.978, WIRE_USED_CLEARLY), None);
        assert_eq!(found(0.5, WIRE_USED), None);
        assert_eq!(found(39_500.0, WIRE_USED), Some(40_000.0));
    }

    /// A load alone, of which the interface was read at those instants and had moved so many bytes.
    fn read(points: &[(f64, f64)]) -> Option<Level> {
        let mut run = crate::testdata::behind_a_link(50e6, 1);
        let series = &mut run.visits[0].surroundings.as_mut().unwrap().series;
        series.at = points.iter().map(|point| units::Nanos::from_secs_f64(point.0)).collect();
        let course = series.counters.get_mut("server.dev.server.tx_bytes").unwrap();
        course.steps = points.windows(2).map(|pair| (pair[1].1 - pair[0].1) as i64).collect();
        Level::of_readings(&run.visits[0])
    }

    #[test]
    fn segments_on_either_side_of_a_reading_leave_a_flow_level_and_a_rate_that_wanders_does_not() {
        const SEGMENT: f64 = 20_000.0;
        let speed = 50e6 / 8.0;
        let instants = || (0..=10).map(|n| f64::from(n) * 0.2 + 0.001 * f64::from(n * 7 % 3));
        let link: Vec<(f64, f64)> =
            instants().map(|at| (at, (at * speed / SEGMENT).floor() * SEGMENT)).collect();
        let level = read(&link).unwrap();
        assert!((level.bytes_per_s / speed - 1.0).abs() < 0.005, "{level:?}");
        assert!(level.spread <= ONE_FIGURE && level.n == 8, "{level:?}");
        let mut bytes = 0.0;
        let server: Vec<(f64, f64)> = instants()
            .enumerate()
            .map(|(n, at)| {
                bytes += speed * 0.2 * (1.0 + 0.05 * ((n * 5 % 7) as f64 - 3.0) / 3.0);
                (at, bytes)
            })
            .collect();
        assert!(read(&server).unwrap().spread > ONE_FIGURE);
    }

    #[test]
    fn one_reading_of_many_that_was_disturbed_leaves_a_flow_level() {
        let speed = 50e6 / 8.0;
        let mut bytes = 0.0;
        let link: Vec<(f64, f64)> = (0..=20)
            .map(|n| {
                // 10 of 200 ms were lost.
                bytes += speed * if n == 9 { 0.19 } else { 0.2 };
                (f64::from(n) * 0.2, bytes)
            })
            .collect();
        let level = read(&link).unwrap();
        assert!(level.spread <= ONE_FIGURE && level.n == 18, "{level:?}");
        let mut silent = link.clone();
        silent[9].1 = silent[8].1;
        assert!(read(&silent).is_none(), "nothing was sent for a while");
    }
}
