//! httperf: its report, of 0.9. Source of the layout: its manual and its output.

use std::collections::BTreeMap;

use units::{Bytes, Nanos, PerSecond};

use crate::layout::{Field, FieldOrder, Layout, field, put, read, traffic_rate};
use crate::numbers::{Comma, bytes, count, figure, millis};
use crate::report::{Report, Summary};
use crate::words::Cursor;
use crate::{ReadError, Tool};

/// The tool.
pub(crate) static TOOL: Tool = Tool {
    name: "httperf",
    about: "httperf: an open loop of connections at a rate, each with a number of calls",
    counts_differently: &[
        "the rate is that of connections: each makes its calls one after the other, so the load is open in connections and closed in calls",
        "concurrency follows from the rate and cannot be set; the report shows what was reached",
        "errors are counted by connection, not by request: calls that a broken connection never made are in no count",
        "every reply counts whatever its status; counts are by status class",
        "times of replies are means only; the median is of connection lifetimes, in steps of 1 ms",
        "the rate of replies is sampled every 5 s: a shorter run has no sample and prints 0.0",
        "it polls without sleeping: it takes a whole CPU whatever the load is",
    ],
    command: None,
    own_flags: &[],
    read: read_reports,
};

fn read_reports(text: &str) -> Result<Vec<Report>, ReadError> {
    read(&[&LAYOUT], text)
}

static LAYOUT: Layout =
    Layout { tool: "httperf", fields: FIELDS, order: FieldOrder::Fixed, finish };

const FIELDS: &[Field] = &[
    field("httperf", command).opens(),
    field("Total: connections # requests # replies # test-duration # s", |at, to| {
        to.requests.started = Some(at.hash_count(1)?);
        to.requests.complete = Some(at.hash_count(2)?);
        to.duration = Some(Nanos::from_secs_f64(at.hash_number(3)?));
        put(&mut to.steps.duration, Nanos::from_secs_f64(at.step()))
    })
    .opens()
    .signs()
    .always(),
    field("Connection rate:", |at, to| {
        at.number()?;
        at.says("conn/s")?;
        at.number()?;
        at.says("ms/conn")?;
        to.concurrency = Some(count(at.word()?.strip_prefix("<=")?)?);
        at.says("concurrent connections)")
    })
    .signs()
    .always(),
    field("Connection time [ms]: min", lives).signs().always(),
    field("Connection time [ms]: connect", |at, to| {
        put(&mut to.times.connect.mean, millis(at.number()?))
    })
    .signs()
    .always(),
    field("Request rate:", |at, to| {
        to.rate = Some(PerSecond(at.number()?));
        to.steps.rate = Some(PerSecond(at.step()));
        at.says("req/s")
    })
    .signs()
    .always(),
    field("Reply time [ms]: response", |at, to| {
        let response = at.number()?;
        at.says("transfer")?;
        to.times.waiting.mean = Some(millis(response));
        // The mean of a sum is the sum of the means.
        let transfer = at.number()?;
        to.times.receiving.mean = Some(millis(transfer));
        to.times.total.mean = Some(millis(response + transfer));
        put(&mut to.steps.time, millis(at.step()))
    })
    .signs()
    .always(),
    field("Reply size [B]: header", |at, to| {
        let head = at.number()?;
        at.says("content")?;
        let content = at.number()?;
        at.says("footer")?;
        at.number()?;
        at.says("(total")?;
        let total = at.number()?;
        let replies = to.requests.complete? as f64;
        to.traffic.heads = Some(bytes(head * replies));
        to.traffic.bodies = Some(bytes(content * replies));
        to.traffic.received = Some(bytes(total * replies));
        Some(())
    })
    .signs()
    .always(),
    field("Reply status:", |at, to| {
        let mut classes = Vec::new();
        for class in 1..=5_u8 {
            let told = at.word()?.strip_prefix(&format!("{class}xx="))?;
            classes.push((class, count(told)?));
        }
        to.requests.set_classes(classes);
        Some(())
    })
    .signs()
    .always(),
    field("CPU time [s]: user", |at, to| {
        let user = at.number()?;
        at.says("system")?;
        to.own_cpu = Some(Nanos::from_secs_f64(user + at.number()?));
        Some(())
    })
    .signs()
    .always(),
    field("Net I/O:", |at, to| {
        traffic_rate(at, to, 1024.0)?;
        at.says("KB/s")
    })
    .always(),
    field("Errors: total", |at, to| {
        to.requests.failed = Some(at.count()?);
        errors(at, to, &["client-timo", "socket-timo", "connrefused", "connreset"])
    })
    .signs()
    .always(),
    field("Errors:", |at, to| errors(at, to, &["fd-unavail", "addrunavail", "ftab-full", "other"]))
        .signs()
        .always(),
];

/// Sizes are means per reply: a report that is cut off before the count of replies has none.
fn finish(report: &mut Report) {
    // httperf prints 0.0 ms if there was no reply.
    let replied = report.requests.complete.is_some_and(|replies| replies > 0);
    if !replied && report.times.total.mean.is_none_or(|mean| mean.0 == 0) {
        report.times.waiting.mean = None;
        report.times.receiving.mean = None;
        report.times.total.mean = None;
        report.steps.time = None;
    }
    if report.traffic.received == Some(Bytes(0)) && report.requests.complete != Some(0) {
        report.traffic.received = None;
    }
}

/// The command line, which httperf repeats with all defaults.
fn command(at: &mut Cursor<'_, '_>, to: &mut Report) -> Option<()> {
    let mut options = BTreeMap::new();
    while let Some(option) = at.peek().filter(|word| word.starts_with("--")) {
        at.word()?;
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        options.insert(name, value);
    }
    if let (Some(server), Some(port), Some(uri)) =
        (options.get("--server"), options.get("--port"), options.get("--uri"))
    {
        to.url = Some(format!("http://{server}:{port}{uri}"));
    }
    let told = |name: &str| options.get(name).and_then(|value| number(value));
    let calls = told("--num-calls");
    let ordered = |each: Option<f64>| each.zip(calls).map(|(each, calls)| each * calls);
    to.ordered.requests = ordered(told("--num-conns")).map(|requests| requests as u64);
    // Its rate is that of connections; 0 means as fast as possible.
    to.ordered.rate = ordered(told("--rate").filter(|rate| *rate > 0.0)).map(PerSecond);
    (!options.is_empty()).then_some(())
}

fn number(value: &str) -> Option<f64> {
    Some(figure(value)?.settle(Comma::Unknown)?.value)
}

/// `min 0.1 avg 4.7 max 72.0 median 0.5 stddev 12.7`: over whole connections.
fn lives(at: &mut Cursor<'_, '_>, to: &mut Report) -> Option<()> {
    let min = millis(at.number()?);
    let mut named = |name: &str| {
        at.says(name)?;
        at.number().map(millis)
    };
    to.times.connection = Summary {
        min: Some(min),
        mean: Some(named("avg")?),
        max: Some(named("max")?),
        median: Some(named("median")?),
        sd: Some(named("stddev")?),
        within_sd: None,
    };
    Some(())
}

fn errors(at: &mut Cursor<'_, '_>, to: &mut Report, kinds: &[&str]) -> Option<()> {
    for kind in kinds {
        at.says(kind)?;
        to.errors.insert((*kind).to_owned(), at.count()?);
    }
    Some(())
}
