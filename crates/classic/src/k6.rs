//! k6: the summary at the end of its test, of 0.2x to 1.x, as text and as JSON (`--summary-export`, and the input of
//! `handleSummary`). Source of the layouts: its output (grafana/k6, `internal/js/summary.js`).

use units::{Bytes, Nanos, PerSecond, Share};

use crate::json::{numbers, skip_words};
use crate::layout::{Field, FieldOrder, Layout, field, label, nothing, put, read};
use crate::numbers::{bytes, millis};
use crate::report::{Report, Summary};
use crate::words::Cursor;
use crate::{ReadError, Tool};

/// The tool.
pub(crate) static TOOL: Tool = Tool {
    name: "k6",
    about: "k6: virtual users that run a JavaScript script, in a closed or open loop of iterations",
    counts_differently: &[
        "the time of a request is from its sending to the end of its reply: waiting for a connection, connecting and TLS are reported separately",
        "virtual users are not requests in flight: a user that waits or runs its script has none",
        "the rate is over the whole test, with the starting and ending of users",
        "a request fails by the rule of the script: by default where its status is 400 and above, or there is no reply",
        "redirects are followed, and each of them counts as a request",
        "bytes are those on the wire, heads and TLS with them",
        "quantities of bytes are in powers of 1000",
    ],
    command: None,
    own_flags: &[],
    read: read_reports,
};

fn read_reports(text: &str) -> Result<Vec<Report>, ReadError> {
    read(&[&TEXT, &JSON], text)
}

static TEXT: Layout = Layout { tool: "k6", fields: TEXT_FIELDS, order: FieldOrder::Free, finish };
static JSON: Layout =
    Layout { tool: "k6", fields: JSON_FIELDS, order: FieldOrder::Free, finish: nothing };

const TEXT_FIELDS: &[Field] = &[
    field("# scenario, # max VUs, # max duration", scenario)
        .also("# scenarios, # max VUs, # max duration")
        .opens(),
    // After the summary since 1.0, before it in older versions; printed repeatedly.
    field("running", ran).repeats().whole(),
    field("running", runs).opens().repeats(),
    field("█ THRESHOLDS", label).opens(),
    field("█ TOTAL RESULTS", label).opens(),
    // A part of the load follows.
    field("█ GROUP:", label).parts().repeats(),
    field("↳ GROUP:", label).parts().repeats(),
    field("█ SCENARIO:", label).parts().repeats(),
    field("http_req_blocked..:", |at, to| put(&mut to.times.blocked, trend(at)?.0)),
    field("http_req_connecting..:", |at, to| put(&mut to.times.connect, trend(at)?.0)),
    field("http_req_tls_handshaking..:", |at, to| put(&mut to.times.tls, trend(at)?.0)),
    field("http_req_sending..:", |at, to| put(&mut to.times.sending, trend(at)?.0)),
    field("http_req_waiting..:", |at, to| put(&mut to.times.waiting, trend(at)?.0)),
    field("http_req_receiving..:", |at, to| put(&mut to.times.receiving, trend(at)?.0)),
    field("http_req_duration..:", |at, to| {
        (to.times.total, to.percentiles) = trend(at)?;
        Some(())
    })
    .signs()
    .always(),
    field("http_req_failed..:", failed),
    field("http_reqs..:", |at, to| {
        let (count, rate) = counter(at)?;
        (to.requests.complete, to.rate) = (Some(count), Some(rate));
        put(&mut to.steps.rate, PerSecond(at.step()))
    })
    .signs()
    .always(),
    field("iteration_duration..:", |at, to| put(&mut to.users.times, trend(at)?.0)).signs(),
    field("iterations..:", |at, to| {
        let (count, rate) = counter(at)?;
        if !fits(to.duration, to.users.iterations, count, rate) {
            // That progress belonged to another test.
            (to.duration, to.steps.duration, to.users.interrupted) = (None, None, None);
        }
        (to.users.iterations, to.users.rate) = (Some(count), Some(rate));
        Some(())
    }),
    field("vus..:", |at, to| {
        let (min, max) = gauge(at)?;
        (to.users.min, to.users.max) = (Some(min), Some(max));
        Some(())
    }),
    field("vus_max..:", |at, to| put(&mut to.users.allocated, gauge(at)?.1)),
    field("data_received..:", |at, to| {
        let (size, step) = size(at)?;
        let (rate, rate_step) = size_per_second(at)?;
        (to.traffic.received, to.traffic.rate) = (Some(bytes(size)), Some(PerSecond(rate)));
        to.traffic.rate_unit = Some(Bytes(1000));
        to.steps.bytes = Some(bytes(step.max(1.0)));
        put(&mut to.steps.traffic_rate, PerSecond(rate_step))
    })
    .always(),
    field("data_sent..:", |at, to| put(&mut to.traffic.sent, bytes(size(at)?.0))),
];

const JSON_FIELDS: &[Field] = &[
    field("\"http_req_blocked\":", |at, to| put(&mut to.times.blocked, trend_json(at)?.0)),
    field("\"http_req_connecting\":", |at, to| put(&mut to.times.connect, trend_json(at)?.0)),
    field("\"http_req_tls_handshaking\":", |at, to| put(&mut to.times.tls, trend_json(at)?.0)),
    field("\"http_req_sending\":", |at, to| put(&mut to.times.sending, trend_json(at)?.0)),
    field("\"http_req_waiting\":", |at, to| put(&mut to.times.waiting, trend_json(at)?.0)),
    field("\"http_req_receiving\":", |at, to| put(&mut to.times.receiving, trend_json(at)?.0)),
    field("\"http_req_duration\":", |at, to| {
        (to.times.total, to.percentiles) = trend_json(at)?;
        Some(())
    })
    .signs()
    .always(),
    field("\"http_req_failed\":", |at, to| {
        let values = values(at);
        let passes = get(&values, "passes")?;
        to.requests.failed = Some(passes as u64);
        let all = passes + get(&values, "fails")?;
        to.availability = (all > 0.0).then(|| Share(1.0 - passes / all));
        Some(())
    }),
    field("\"http_reqs\":", |at, to| {
        let values = values(at);
        to.requests.complete = Some(get(&values, "count")? as u64);
        put(&mut to.rate, PerSecond(get(&values, "rate")?))
    })
    .signs()
    .always(),
    field("\"iteration_duration\":", |at, to| put(&mut to.users.times, trend_json(at)?.0)).signs(),
    field("\"iterations\":", |at, to| {
        let values = values(at);
        to.users.iterations = Some(get(&values, "count")? as u64);
        put(&mut to.users.rate, PerSecond(get(&values, "rate")?))
    }),
    field("\"vus\":", |at, to| {
        let values = values(at);
        to.users.min = Some(get(&values, "min")? as u64);
        put(&mut to.users.max, get(&values, "max")? as u64)
    }),
    field("\"vus_max\":", |at, to| put(&mut to.users.allocated, get(&values(at), "max")? as u64)),
    field("\"data_received\":", |at, to| {
        let values = values(at);
        to.traffic.received = Some(bytes(get(&values, "count")?));
        to.steps.bytes = Some(Bytes(1));
        put(&mut to.traffic.rate, PerSecond(get(&values, "rate")?))
    })
    .always(),
    field("\"data_sent\":", |at, to| put(&mut to.traffic.sent, bytes(get(&values(at), "count")?))),
    field("\"testRunDurationMs\":", |at, to| put(&mut to.duration, millis(at.number()?))),
];

/// Without the iterations it is unknown which test the progress belonged to.
fn finish(report: &mut Report) {
    if report.users.rate.is_none() {
        (report.duration, report.steps.duration) = (None, None);
        (report.users.iterations, report.users.interrupted) = (None, None);
    }
}

/// How far the iterations divided by their rate may be from the printed time, as a share and in seconds: users start
/// and end outside of it.
const DURATION_TOLERANCE: f64 = 0.02;
const DURATION_TOLERANCE_SECS: f64 = 0.3;

/// Whether the progress line, if any, fits a test with this number of iterations at that rate.
fn fits(duration: Option<Nanos>, rounds: Option<u64>, count: u64, rate: PerSecond) -> bool {
    let Some(duration) = duration else { return true };
    let secs = duration.as_secs_f64();
    let told = count as f64 / rate.0;
    let near = (told - secs).abs() <= secs * DURATION_TOLERANCE + DURATION_TOLERANCE_SECS;
    rounds == Some(count) && (near || rate.0 == 0.0)
}

/// `1 scenario, 10 max VUs, 1m0s max duration (incl. graceful stop): * default: 10 looping VUs for 30s`.
fn scenario(at: &mut Cursor<'_, '_>, to: &mut Report) -> Option<()> {
    to.users.allocated = Some(at.hash_count(1)?);
    if at.hash_count(0) == Some(1) {
        let _ = looping(at, to);
    }
    Some(())
}

fn looping(at: &mut Cursor<'_, '_>, to: &mut Report) -> Option<()> {
    let mut ahead = at.clone();
    ahead.says("(incl. graceful stop):")?;
    let _ = ahead.says("*");
    ahead.word()?.ends_with(':').then_some(())?;
    let users = ahead.count()?;
    ahead.says("looping VUs for")?;
    ahead.span()?;
    *at = ahead;
    put(&mut to.concurrency, users)
}

/// The last progress line: `running (00m14.9s), 0/1 VUs, 1 complete and 0 interrupted iterations`; in earlier ones
/// users are still running.
struct Progress {
    time: Nanos,
    step: Nanos,
    complete: u64,
    interrupted: u64,
}

fn progress(at: &mut Cursor<'_, '_>) -> Option<Progress> {
    let time = at.span()?;
    let step = Nanos::from_secs_f64(at.step());
    let (working, _) = at.word()?.split_once('/')?;
    (working.parse() == Ok(0)).then_some(())?;
    at.says("VUs")?;
    let complete = at.count()?;
    at.says("complete and")?;
    let interrupted = at.count()?;
    at.says("interrupted iterations")?;
    Some(Progress { time, step, complete, interrupted })
}

/// The line after the summary that it belongs to.
fn ran(at: &mut Cursor<'_, '_>, to: &mut Report) -> Option<()> {
    let progress = progress(at)?;
    let (count, rate) = (to.users.iterations?, to.users.rate?);
    let is_its =
        to.duration.is_none() && fits(Some(progress.time), Some(progress.complete), count, rate);
    is_its.then(|| take(progress, to))
}

/// The line before the summary.
fn runs(at: &mut Cursor<'_, '_>, to: &mut Report) -> Option<()> {
    let progress = progress(at)?;
    take(progress, to);
    Some(())
}

fn take(progress: Progress, to: &mut Report) {
    (to.duration, to.steps.duration) = (Some(progress.time), Some(progress.step));
    (to.users.iterations, to.users.interrupted) =
        (Some(progress.complete), Some(progress.interrupted));
}

type Percentiles = Vec<(f64, Nanos)>;

/// `avg=1ms min=0s med=1ms max=2ms p(90)=2ms p(95)=2ms`, or those that the script selects.
fn trend(at: &mut Cursor<'_, '_>) -> Option<(Summary, Percentiles)> {
    let mut all = Vec::new();
    loop {
        if let Some((name, time)) = at.named_span() {
            all.push((name.to_owned(), time));
        } else if at.peek().is_some_and(|word| word.starts_with("count=")) {
            at.word()?;
        } else {
            break;
        }
    }
    summary(all)
}

fn trend_json(at: &mut Cursor<'_, '_>) -> Option<(Summary, Percentiles)> {
    summary(values(at).into_iter().map(|(name, value)| (name, millis(value))).collect())
}

fn summary(all: Vec<(String, Nanos)>) -> Option<(Summary, Percentiles)> {
    let (mut summary, mut percentiles) = (Summary::default(), Vec::new());
    for (name, time) in all {
        match name.as_str() {
            "avg" => summary.mean = Some(time),
            "min" => summary.min = Some(time),
            "med" => summary.median = Some(time),
            "max" => summary.max = Some(time),
            name => {
                let percent = name.strip_prefix("p(").and_then(|name| name.strip_suffix(')'));
                let percent = percent.and_then(|percent| percent.parse().ok());
                let percent = percent.filter(|percent| (0.0..=100.0).contains(percent));
                percentiles.extend(percent.map(|percent| (percent, time)));
            }
        }
    }
    (summary != Summary::default() || !percentiles.is_empty()).then_some((summary, percentiles))
}

/// `180 4.36938/s`.
fn counter(at: &mut Cursor<'_, '_>) -> Option<(u64, PerSecond)> {
    let count = at.count()?;
    Some((count, PerSecond(at.number_before("/s")?)))
}

/// `1 min=1 max=10`.
fn gauge(at: &mut Cursor<'_, '_>) -> Option<(u64, u64)> {
    at.count()?;
    let mut named = |name: &str| at.word()?.strip_prefix(name)?.parse().ok();
    Some((named("min=")?, named("max=")?))
}

/// `50.00% ✓ 1 ✗ 1`, since 1.0 `50.00% 1 out of 2`; the first count is that of failures.
fn failed(at: &mut Cursor<'_, '_>, to: &mut Report) -> Option<()> {
    at.percent()?;
    let marked = at.says("✓").is_some();
    let failed = at.count()?;
    let all = if marked {
        at.says("✗")?;
        failed.checked_add(at.count()?)?
    } else {
        at.says("out of")?;
        at.count()?
    };
    to.requests.failed = Some(failed);
    to.availability = (all > 0 && failed <= all).then(|| Share(1.0 - failed as f64 / all as f64));
    Some(())
}

/// `1.3 MB`, with the unit of its last digit.
fn size(at: &mut Cursor<'_, '_>) -> Option<(f64, f64)> {
    let number = at.number()?;
    let scale = unit(at.word()?)?;
    Some((number * scale, at.step() * scale))
}

/// `31 kB/s`, with the unit of its last digit.
fn size_per_second(at: &mut Cursor<'_, '_>) -> Option<(f64, f64)> {
    let number = at.number()?;
    let scale = unit(at.word()?.strip_suffix("/s")?)?;
    Some((number * scale, at.step() * scale))
}

fn unit(word: &str) -> Option<f64> {
    Some(match word {
        "B" => 1.0,
        "kB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        "TB" => 1e12,
        _ => return None,
    })
}

fn values(at: &mut Cursor<'_, '_>) -> Vec<(String, f64)> {
    skip_words(at, &["values"]);
    numbers(at)
}

fn get(values: &[(String, f64)], name: &str) -> Option<f64> {
    values.iter().find(|(key, _)| key == name).map(|(_, value)| *value)
}
