//! hey: its report, of 0.1. Source of the layout: its output (rakyll/hey, `requester/print.go`).

use std::collections::BTreeMap;

use units::{Bytes, Nanos, PerSecond};

use crate::layout::{Field, Layout, field, put, read};
use crate::report::{Report, Summary};
use crate::words::{Cursor, count};
use crate::{ReadError, Tool};

/// The tool.
pub(crate) static TOOL: Tool = Tool {
    name: "hey",
    about: "hey: a closed loop of one goroutine a worker, HTTP/1.1 and HTTP/2",
    counts_differently: &[
        "a reply counts whatever its status is; the codes are listed",
        "a request without a reply is an error and has no latency, but its time counts in the rate: the rate is that of replies and errors together",
        "redirects are followed, and each chain counts as one request, unless -disable-redirects",
        "with -z a request that the end cuts off may be missing from every count",
        "latencies are kept for the first million requests only; percentiles are of those",
        "times are printed to 0.1 ms",
        "bytes are those of bodies, by their Content-Length",
        "it runs on the runtime of Go, whose scheduler and garbage collector run beside the load",
    ],
    command: None,
    own_flags: &[],
    read: read_reports,
};

fn read_reports(text: &str) -> Result<Vec<Report>, ReadError> {
    read(&[&LAYOUT], text)
}

static LAYOUT: Layout = Layout { tool: "hey", fields: FIELDS, finish };

const FIELDS: &[Field] = &[
    field("Summary:", |_, _| Some(())).opens(),
    field("Total:", |at, to| put(&mut to.duration, seconds(at)?)).opens().signs().always(),
    // No mean where there was no reply: it is printed as NaN.
    field("Slowest:", |at, to| put(&mut to.times.total.max, seconds(at)?)).signs().always(),
    field("Fastest:", |at, to| put(&mut to.times.total.min, seconds(at)?)).signs().always(),
    field("Average:", |at, to| put(&mut to.times.total.mean, seconds(at)?)),
    field("Requests/sec:", |at, to| {
        to.rate = Some(PerSecond(at.number()?));
        // wrk has a line like this one, and then this.
        (at.peek() != Some("Transfer/sec:")).then_some(())
    })
    .always(),
    field("Total data:", |at, to| {
        to.traffic.bodies = Some(Bytes(at.count()?));
        at.says("bytes")
    }),
    field("Latency distribution:", percentiles),
    field("DNS+dialup:", |at, to| put(&mut to.times.connect, details(at)?)),
    field("resp wait:", |at, to| put(&mut to.times.waiting, details(at)?)),
    field("Status code distribution:", statuses).always(),
    field("Error distribution:", errors),
];

/// Replies are what is counted by status, and what failed is what is counted by error.
fn finish(report: &mut Report) {
    if report.is_complete() {
        let sum = |counts: &mut dyn Iterator<Item = u64>| counts.fold(0, u64::saturating_add);
        report.requests.complete = Some(sum(&mut report.requests.by_status.values().copied()));
        report.requests.failed = Some(sum(&mut report.errors.values().copied()));
    }
}

fn seconds(at: &mut Cursor<'_, '_>) -> Option<Nanos> {
    let number = at.number()?;
    at.says("secs")?;
    Some(Nanos::from_secs_f64(number))
}

/// `average, fastest, slowest`.
fn details(at: &mut Cursor<'_, '_>) -> Option<Summary> {
    let (mean, min, max) = (seconds(at)?, seconds(at)?, seconds(at)?);
    Some(Summary { mean: Some(mean), min: Some(min), max: Some(max), ..Summary::default() })
}

/// `  95% in 0.0063 secs`. Where there are too few replies for a percentile hey prints one of 0 % in
/// its place, which is none and is left out.
fn percentiles(at: &mut Cursor<'_, '_>, to: &mut Report) -> Option<()> {
    while let Some(percent) = at.percent() {
        at.says("in")?;
        let time = seconds(at)?;
        if percent > 0.0 {
            to.percentiles.push((percent, time));
        }
    }
    Some(())
}

/// `  [200]\t24091 responses`; no line where nothing was answered.
fn statuses(at: &mut Cursor<'_, '_>, to: &mut Report) -> Option<()> {
    let mut codes = BTreeMap::new();
    while let Some(code) = at.peek().and_then(bracketed) {
        at.word()?;
        codes.insert(u16::try_from(code).ok()?, at.count()?);
        at.says("responses")?;
    }
    to.requests.set_statuses(codes);
    Some(())
}

/// `  [10]\tGet "http://...": dial tcp ...: connect: connection refused`, one line each.
fn errors(at: &mut Cursor<'_, '_>, to: &mut Report) -> Option<()> {
    while let Some(count) = at.peek().and_then(bracketed) {
        at.word()?;
        let kind = to.errors.entry(at.line()).or_default();
        *kind = kind.saturating_add(count);
    }
    Some(())
}

fn bracketed(word: &str) -> Option<u64> {
    count(word.strip_prefix('[')?.strip_suffix(']')?)
}
