//! oha: its report, of 0.4 to 1.x, as text and as JSON. Source of the layouts: its output (hatoo/oha,
//! `src/printer.rs`).

use std::collections::BTreeMap;

use units::{Bytes, Nanos, PerSecond, Share};

use crate::hey::{details, errors, histogram, percentiles, seconds, statuses};
use crate::json::numbers;
use crate::layout::{Field, FieldOrder, Layout, field, label, put, read};
use crate::numbers::bytes;
use crate::report::{Bin, Report, Summary};
use crate::words::Cursor;
use crate::{ReadError, Tool};

/// The tool.
pub(crate) static TOOL: Tool = Tool {
    name: "oha",
    about: "oha: a closed loop of one task a worker, HTTP/1.1, HTTP/2 and HTTP/3",
    counts_differently: &[
        "a reply counts whatever its status is; the codes are listed",
        "with -z requests in flight at the end are aborted: they are listed as errors and count in the rate, but not in latency or the success rate",
        "the rate is that of replies, errors and aborted requests together",
        "the success rate is that of requests that had a reply, whatever its status is",
        "a request without a reply has no latency",
        "percentiles are those of all latencies, which it keeps: the memory grows with the requests",
        "with -q and --latency-correction a latency is taken from when the request was due; without it, from its sending",
        "bytes are those of bodies",
    ],
    command: None,
    own_flags: &[],
    read: read_reports,
};

/// oha's name for requests that the end of the load cut off.
const DEADLINE: &str = "aborted due to deadline";

fn read_reports(text: &str) -> Result<Vec<Report>, ReadError> {
    read(&[&TEXT, &JSON], text)
}

static TEXT: Layout = Layout { tool: "oha", fields: TEXT_FIELDS, order: FieldOrder::Fixed, finish };
static JSON: Layout = Layout { tool: "oha", fields: JSON_FIELDS, order: FieldOrder::Free, finish };

const TEXT_FIELDS: &[Field] = &[
    field("Summary:", label).opens(),
    field("Success rate:", success_rate).opens().signs().always(),
    field("Total:", |at, to| {
        to.duration = Some(seconds(at)?);
        put(&mut to.steps.duration, Nanos::from_secs_f64(at.step()))
    })
    .always(),
    field("Slowest:", |at, to| put(&mut to.times.total.max, seconds(at)?)),
    field("Fastest:", |at, to| put(&mut to.times.total.min, seconds(at)?)),
    // There is no number if there was no reply.
    field("Average:", |at, to| {
        to.times.total.mean = Some(seconds(at)?);
        put(&mut to.steps.time, Nanos::from_secs_f64(at.step()))
    }),
    field("Requests/sec:", |at, to| {
        to.rate = Some(PerSecond(at.figure()?));
        to.steps.rate = Some(PerSecond(at.step()));
        // wrk has a line like this one, followed by Transfer/sec.
        (at.peek() != Some("Transfer/sec:")).then_some(())
    })
    .always(),
    field("Total data:", |at, to| {
        to.traffic.bodies = Some(at.size()?);
        put(&mut to.steps.bytes, Bytes(at.step().max(1.0) as u64))
    }),
    field("Size/sec:", |at, to| {
        to.traffic.rate = Some(PerSecond(at.size()?.0 as f64));
        put(&mut to.steps.traffic_rate, PerSecond(at.step()))
    })
    .signs(),
    field("Response time histogram:", histogram),
    field("Response time distribution:", percentiles).also("Latency distribution:"),
    field("DNS+dialup:", |at, to| put(&mut to.times.connect, details(at)?)),
    field("DNS-lookup:", |at, to| put(&mut to.times.lookup, details(at)?)),
    field("Status code distribution:", statuses).always(),
    field("Error distribution:", errors),
];

const JSON_FIELDS: &[Field] = &[
    field("\"summary\":", summary).opens().signs().always(),
    field("\"latencyPercentiles\":", |at, to| {
        to.percentiles = numbers(at).into_iter().filter_map(percentile).collect();
        Some(())
    })
    .signs()
    .always(),
    field("\"responseTimeHistogram\":", |at, to| {
        let bins = numbers(at).into_iter().filter_map(|(edge, count)| {
            let at = Nanos::from_secs_f64(edge.parse().ok()?);
            Some(Bin { at, count: count as u64 })
        });
        to.histogram = bins.collect();
        to.histogram.sort_by_key(|bin| bin.at);
        Some(())
    }),
    field("\"DNSDialup\":", |at, to| put(&mut to.times.connect, triple(at))),
    field("\"DNSLookup\":", |at, to| put(&mut to.times.lookup, triple(at))),
    field("\"firstByte\":", |at, to| put(&mut to.times.waiting, triple(at))),
    field("\"statusCodeDistribution\":", |at, to| {
        let statuses = numbers(at).into_iter();
        let statuses = statuses.filter_map(|(code, n)| Some((code.parse().ok()?, n as u64)));
        to.requests.set_statuses(statuses.collect::<BTreeMap<u16, u64>>());
        Some(())
    })
    .signs()
    .always(),
    field("\"errorDistribution\":", |at, to| {
        to.errors = numbers(at).into_iter().map(|(kind, n)| (kind, n as u64)).collect();
        Some(())
    })
    .always(),
];

/// Replies are those counted by status; oha counts requests cut off by the end as errors, and we do not.
fn finish(report: &mut Report) {
    let unfinished = report.errors.remove(DEADLINE);
    if report.is_complete() {
        let sum = |counts: &mut dyn Iterator<Item = u64>| counts.fold(0, u64::saturating_add);
        report.requests.complete = Some(sum(&mut report.requests.by_status.values().copied()));
        report.requests.failed = Some(sum(&mut report.errors.values().copied()));
        report.requests.unfinished = Some(unfinished.unwrap_or(0));
    }
}

/// `1.0000`, since 1.0 `100.00%`; NaN without requests.
fn success_rate(at: &mut Cursor<'_, '_>, to: &mut Report) -> Option<()> {
    let share = at.percent().map(|percent| percent / 100.0).or_else(|| at.number());
    match share.filter(|share| *share <= 1.0) {
        Some(share) => to.availability = Some(Share(share)),
        None => at.word()?.starts_with("NaN").then_some(())?,
    }
    Some(())
}

fn summary(at: &mut Cursor<'_, '_>, to: &mut Report) -> Option<()> {
    let numbers = numbers(at);
    let get = |name: &str| numbers.iter().find(|(key, _)| key == name).map(|(_, value)| *value);
    let secs = |name: &str| get(name).map(Nanos::from_secs_f64);
    to.rate = Some(PerSecond(get("requestsPerSec")?));
    to.availability = get("successRate").map(Share);
    to.duration = secs("total");
    let total = &mut to.times.total;
    (total.mean, total.min, total.max) = (secs("average"), secs("fastest"), secs("slowest"));
    to.traffic.bodies = get("totalData").map(bytes);
    to.traffic.rate = get("sizePerSec").map(PerSecond);
    to.steps.bytes = Some(Bytes(1));
    Some(())
}

/// `average`, `fastest` and `slowest`: all three, or this is another object.
fn triple(at: &mut Cursor<'_, '_>) -> Summary {
    let numbers = numbers(at);
    let names: Vec<&str> = numbers.iter().map(|(name, _)| name.as_str()).collect();
    if names != ["average", "fastest", "slowest"] {
        return Summary::default();
    }
    let secs = |index: usize| Some(Nanos::from_secs_f64(numbers[index].1));
    Summary { mean: secs(0), min: secs(1), max: secs(2), ..Summary::default() }
}

/// `"p99.9": 0.0026`.
fn percentile((name, secs): (String, f64)) -> Option<(f64, Nanos)> {
    let percent: f64 = name.strip_prefix('p')?.parse().ok()?;
    (0.0..=100.0).contains(&percent).then(|| (percent, Nanos::from_secs_f64(secs)))
}
