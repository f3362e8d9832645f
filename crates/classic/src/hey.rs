//! hey: its report, of 0.1, and of boom, its former name. Owns the parts that oha shares. Source of the layout: its
//! output (rakyll/hey, `requester/print.go`).

use std::collections::BTreeMap;

use units::{Bytes, Nanos, PerSecond};

use crate::layout::{Field, FieldOrder, Layout, field, label, put, read};
use crate::numbers::{count, unit_secs};
use crate::report::{Bin, Report, Summary};
use crate::words::Cursor;
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

static LAYOUT: Layout = Layout { tool: "hey", fields: FIELDS, order: FieldOrder::Fixed, finish };

const FIELDS: &[Field] = &[
    field("Summary:", label).opens(),
    // This line belongs to oha.
    field("Success rate:", label).opens().disowns(),
    field("Size/sec:", label).disowns(),
    field("Response time distribution:", label).disowns(),
    field("Total:", |at, to| {
        to.duration = Some(seconds(at)?);
        put(&mut to.steps.duration, Nanos::from_secs_f64(at.step()))
    })
    .opens()
    .signs()
    .always(),
    // Without replies there is no mean: it is printed as NaN.
    field("Slowest:", |at, to| put(&mut to.times.total.max, seconds(at)?)).signs().always(),
    field("Fastest:", |at, to| put(&mut to.times.total.min, seconds(at)?)).signs().always(),
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
        to.traffic.bodies = Some(Bytes(at.count()?));
        to.steps.bytes = Some(Bytes(1));
        at.says("bytes")
    }),
    field("Response time histogram:", histogram),
    field("Latency distribution:", percentiles),
    field("DNS+dialup:", |at, to| put(&mut to.times.connect, details(at)?)),
    field("DNS-lookup:", |at, to| put(&mut to.times.lookup, details(at)?)),
    field("req write:", |at, to| put(&mut to.times.sending, details(at)?)),
    field("resp wait:", |at, to| put(&mut to.times.waiting, details(at)?)),
    field("resp read:", |at, to| put(&mut to.times.receiving, details(at)?)),
    field("Status code distribution:", statuses).always(),
    field("Error distribution:", errors),
];

/// Replies are those counted by status, and failures those counted by error.
fn finish(report: &mut Report) {
    if report.is_complete() {
        let sum = |counts: &mut dyn Iterator<Item = u64>| counts.fold(0, u64::saturating_add);
        report.requests.complete = Some(sum(&mut report.requests.by_status.values().copied()));
        report.requests.failed = Some(sum(&mut report.errors.values().copied()));
    }
}

/// A time in seconds; oha's may have another unit.
pub(crate) fn seconds(at: &mut Cursor<'_, '_>) -> Option<Nanos> {
    let number = at.number()?;
    let unit = unit(at)?;
    at.set_step(at.step() * unit);
    Some(Nanos::from_secs_f64(number * unit))
}

fn unit(at: &mut Cursor<'_, '_>) -> Option<f64> {
    let word = at.word()?.trim_end_matches([',', '.']);
    if matches!(word, "sec" | "secs") { Some(1.0) } else { unit_secs(word) }
}

/// Rows of `0.005 [4] |■■■`: a time (for oha with its unit) and a count.
pub(crate) fn histogram(at: &mut Cursor<'_, '_>, to: &mut Report) -> Option<()> {
    let mut bins = Vec::new();
    while let Some(bin) = bin(at) {
        bins.push(bin);
        while at.peek().is_some_and(|word| word.starts_with('■')) {
            at.word()?;
        }
    }
    if to.histogram.is_empty() {
        to.histogram = bins;
    }
    Some(())
}

fn bin(at: &mut Cursor<'_, '_>) -> Option<Bin> {
    let mut ahead = at.clone();
    let number = ahead.number()?;
    let scale = if ahead.peek()?.starts_with('[') { 1.0 } else { unit(&mut ahead)? };
    let count = bracketed(ahead.word()?)?;
    *at = ahead;
    Some(Bin { at: Nanos::from_secs_f64(number * scale), count })
}

/// `average, fastest, slowest`.
pub(crate) fn details(at: &mut Cursor<'_, '_>) -> Option<Summary> {
    let (mean, min, max) = (seconds(at)?, seconds(at)?, seconds(at)?);
    Some(Summary { mean: Some(mean), min: Some(min), max: Some(max), ..Summary::default() })
}

/// `  95% in 0.0063 secs`. With too few replies for a percentile hey prints one of 0 % in its place, and oha NaN; both
/// are left out.
pub(crate) fn percentiles(at: &mut Cursor<'_, '_>, to: &mut Report) -> Option<()> {
    let time = |at: &mut Cursor<'_, '_>| {
        at.says("in")?;
        seconds(at)
    };
    let mut percentiles: Vec<(f64, Nanos)> = Vec::new();
    loop {
        if let Some(row) = at.percentile(percentiles.last().map(|row| row.0), time) {
            percentiles.push(row);
        } else if nothing(at).is_none() {
            break;
        }
    }
    percentiles.retain(|(percent, _)| *percent > 0.0);
    to.percentiles = percentiles;
    Some(())
}

/// A row without a valid percentile.
fn nothing(at: &mut Cursor<'_, '_>) -> Option<()> {
    let mut ahead = at.clone();
    let percent = ahead.percent()?;
    ahead.says("in")?;
    let is_nan = ahead.peek() == Some("NaN");
    let is_zero = percent == 0.0 && ahead.number() == Some(0.0);
    if is_nan {
        ahead.word()?;
    }
    (is_nan || is_zero).then_some(())?;
    unit(&mut ahead)?;
    *at = ahead;
    Some(())
}

/// `  [200]\t24091 responses`; no line without replies.
pub(crate) fn statuses(at: &mut Cursor<'_, '_>, to: &mut Report) -> Option<()> {
    let mut codes = BTreeMap::new();
    while let Some((code, count)) = status(at) {
        codes.insert(code, count);
    }
    to.requests.set_statuses(codes);
    Some(())
}

fn status(at: &mut Cursor<'_, '_>) -> Option<(u16, u64)> {
    let mut ahead = at.clone();
    let code = u16::try_from(bracketed(ahead.word()?)?).ok()?;
    let count = ahead.count()?;
    ahead.says("responses")?;
    *at = ahead;
    Some((code, count))
}

/// `  [10]\tGet "http://...": dial tcp ...: connect: connection refused`, one line each. After an empty line a number
/// in brackets is a footnote, unless every line is preceded by one.
pub(crate) fn errors(at: &mut Cursor<'_, '_>, to: &mut Report) -> Option<()> {
    let spaced = at.after_blank();
    while let Some(count) = at.peek().and_then(bracketed) {
        if at.after_blank() && !spaced {
            break;
        }
        at.word()?;
        let kind = to.errors.entry(at.line()).or_default();
        *kind = kind.saturating_add(count);
    }
    Some(())
}

fn bracketed(word: &str) -> Option<u64> {
    count(word.strip_prefix('[')?.strip_suffix(']')?)
}
