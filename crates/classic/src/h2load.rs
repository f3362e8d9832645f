//! h2load (nghttp2): its report, of 1.x. Source of the layout: its output and its manual.

use units::{Bytes, Nanos, PerSecond, Share};

use crate::layout::{Field, FieldOrder, Layout, field, nothing, put, read};
use crate::numbers::count;
use crate::report::{Rates, Report, Summary};
use crate::words::Cursor;
use crate::{ReadError, Tool};

/// The tool.
pub(crate) static TOOL: Tool = Tool {
    name: "h2load",
    about: "h2load: a closed loop for HTTP/1.1, HTTP/2 and HTTP/3, on several threads",
    counts_differently: &[
        "succeeded are replies with 2xx and 3xx; failed are 4xx and 5xx as well as errors and timeouts",
        "with -D requests in flight at the end are neither done nor failed: they are started minus done",
        "total is the number done (-D) or requested (-n)",
        "the time to the first byte is that of each connection's first request only, from the start of its connecting",
        "a request's time starts when it is queued on the connection: with -m above 1 it includes waiting for others",
        "bytes include heads and framing; there are no percentiles before 1.65",
        "a connection that the server closes is opened again; bytes of HTTP/1.1 connections that end with a reply are not counted (1.52)",
    ],
    command: None,
    own_flags: &[],
    read: read_reports,
};

fn read_reports(text: &str) -> Result<Vec<Report>, ReadError> {
    read(&[&LAYOUT], text)
}

static LAYOUT: Layout =
    Layout { tool: "h2load", fields: FIELDS, order: FieldOrder::Fixed, finish: nothing };

const FIELDS: &[Field] = &[
    field("spawning thread #0:", |at, to| spawning(at, to, 0)).opens(),
    field("spawning thread", |at, to| {
        let thread = count(at.word()?.strip_prefix('#')?.strip_suffix(':')?)?;
        spawning(at, to, thread)
    })
    .opens()
    .repeats(),
    field("finished in # # req/s, #", |at, to| {
        to.duration = Some(at.hash_span(0)?);
        to.steps.duration = Some(Nanos::from_secs_f64(at.step()));
        to.rate = Some(PerSecond(at.hash_number(1)?));
        to.steps.rate = Some(PerSecond(at.step()));
        to.traffic.rate = Some(PerSecond(at.hash_size(2)?.0 as f64));
        put(&mut to.steps.traffic_rate, PerSecond(at.step()))
    })
    .opens()
    .signs()
    .always(),
    field(
        "requests: # total, # started, # done, # succeeded, # failed, # errored, # timeout",
        |at, to| {
            to.requests.started = Some(at.hash_count(1)?);
            to.requests.complete = Some(at.hash_count(2)?);
            to.requests.succeeded = Some(at.hash_count(3)?);
            to.requests.failed = Some(at.hash_count(4)?);
            to.errors.insert("errored".to_owned(), at.hash_count(5)?);
            to.errors.insert("timeout".to_owned(), at.hash_count(6)?);
            Some(())
        },
    )
    .signs()
    .always(),
    // Combined, because weighttp has a line like the first.
    field(
        "status codes: # 2xx, # 3xx, # 4xx, # 5xx traffic: # # total, # # headers (space savings",
        traffic,
    )
    .also("status codes: # 2xx, # 3xx, # 4xx, # 5xx traffic: # bytes total, # bytes headers (space savings")
    .signs()
    .always(),
    field("time for request:", |at, to| {
        (to.times.total, to.percentiles) = times(at)?;
        put(&mut to.steps.time, Nanos::from_secs_f64(at.step()))
    })
    .also("request :")
    .signs()
    .always(),
    field("time for connect:", |at, to| put(&mut to.times.connect, times(at)?.0))
        .also("connect :")
        .signs()
        .always(),
    field("time to 1st byte:", |at, to| put(&mut to.times.waiting, times(at)?.0))
        .also("TTFB :")
        .signs()
        .always(),
    field("req/s :", rates).also("req/s (client) :"),
];

/// `spawning thread #0: 4 total client(s). 100 total requests`: summed over all threads.
fn spawning(at: &mut Cursor<'_, '_>, to: &mut Report, thread: u64) -> Option<()> {
    let clients = at.count()?;
    at.says("total client(s).")?;
    to.add_thread(thread, clients);
    Some(())
}

/// `total: bytes as rounded (bytes), heads, data`; the first versions print only the bytes.
fn traffic(at: &mut Cursor<'_, '_>, to: &mut Report) -> Option<()> {
    let class = |n| Some((n as u8 + 2, at.hash_count(n)?));
    to.requests.set_classes((0..4).map(class).collect::<Option<Vec<_>>>()?);
    let rounded = at.hash(4)?.ends_with(|c: char| c.is_ascii_alphabetic());
    let (received, heads) = if rounded { (5, 7) } else { (4, 5) };
    to.traffic.received = Some(Bytes(at.hash_count(received)?));
    to.traffic.heads = Some(Bytes(at.hash_count(heads)?));
    at.word()?;
    if rounded {
        at.size()?;
    }
    to.traffic.bodies = Some(Bytes(at.count()?));
    to.steps.bytes = Some(Bytes(1));
    at.says(if rounded { "data" } else { "bytes data" })
}

/// `min max mean sd +/- sd` of the connections' requests per second.
fn rates(at: &mut Cursor<'_, '_>, to: &mut Report) -> Option<()> {
    let mut next = || at.number().map(PerSecond);
    let (min, max, mean, sd) = (next()?, next()?, next()?, next()?);
    let within_sd = Some(Share(at.percent()? / 100.0));
    to.rates = Rates { min: Some(min), max: Some(max), mean: Some(mean), sd: Some(sd), within_sd };
    Some(())
}

/// `min max mean sd +/- sd`; newer versions have `median p95 p99` before the mean.
fn times(at: &mut Cursor<'_, '_>) -> Option<(Summary, Vec<(f64, Nanos)>)> {
    let mut spans = Vec::new();
    while let Some(span) = at.span() {
        spans.push(span);
    }
    let step = at.step();
    let within_sd = Some(Share(at.percent()? / 100.0));
    at.set_step(step);
    let (ends, median, percentiles) = match *spans.as_slice() {
        [min, max, mean, sd] => ([min, max, mean, sd], None, Vec::new()),
        [min, max, median, p95, p99, mean, sd] => {
            let percentiles = vec![(50.0, median), (95.0, p95), (99.0, p99)];
            ([min, max, mean, sd], Some(median), percentiles)
        }
        _ => return None,
    };
    let [min, max, mean, sd] = ends.map(Some);
    Some((Summary { min, max, mean, sd, median, within_sd }, percentiles))
}
