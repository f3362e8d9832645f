//! Parses weighttp's reports, of 0.4 (lines) and of 0.5 (JSON). Source of the layouts:
//! lighttpd/weighttp, `src/weighttp.c`. Start reading at [`read_reports`].

use std::collections::BTreeMap;

use units::{Bytes, Nanos, PerSecond};

use crate::ReadError;
use crate::json::numbers;
use crate::layout::{Field, FieldOrder, Layout, field, nothing, put, read};
use crate::report::{Report, Summary};
use crate::words::Cursor;

pub(super) fn read_reports(text: &str) -> Result<Vec<Report>, ReadError> {
    read(&[&LINES, &JSON], text)
}

static LINES: Layout =
    Layout { tool: "weighttp", fields: LINES_FIELDS, order: FieldOrder::Fixed, finish: nothing };
static JSON: Layout =
    Layout { tool: "weighttp", fields: JSON_FIELDS, order: FieldOrder::Free, finish: nothing };

/// The banner of 0.5 has no article.
const BANNER: Field = field("weighttp # -", |at, to| {
    let _ = at.says("a");
    at.says("lightweight and simple webserver")?;
    put(&mut to.version, at.hash(0)?.to_owned())
})
.opens();
const FIRST_THREAD: Field = field("spawning thread #1:", |at, to| spawning(at, to, 1)).opens();
const THREAD: Field = field("spawning thread", |at, to| {
    let thread = at.word()?.strip_prefix('#')?.strip_suffix(':')?.parse().ok()?;
    spawning(at, to, thread)
})
.opens()
.repeats();

const LINES_FIELDS: &[Field] = &[
    BANNER,
    FIRST_THREAD,
    THREAD,
    field("finished in # sec, # millisec and # microsec, # req/s, # kbyte/s", |at, to| {
        let micros = at.hash_count(1)?.checked_mul(1000)?.checked_add(at.hash_count(2)?)?;
        let secs = Nanos::from_secs_f64(at.hash_number(0)?);
        to.duration = Some(secs.saturating_add(Nanos(micros.checked_mul(1000)?)));
        to.rate = Some(PerSecond(at.hash_number(3)?));
        to.traffic.rate = Some(PerSecond(at.hash_number(4)? * 1024.0));
        Some(())
    })
    .signs()
    .always(),
    // h2load has the same line with "timeout" after it, and then these words have a comma.
    field("requests: # total, # started, # done, # succeeded, # failed, # errored", |at, to| {
        to.requests.started = Some(at.hash_count(1)?);
        to.requests.complete = Some(at.hash_count(2)?);
        to.requests.succeeded = Some(at.hash_count(3)?);
        to.requests.failed = Some(at.hash_count(4)?);
        to.errors.insert("errored".to_owned(), at.hash_count(5)?);
        Some(())
    })
    .always(),
    // Combined, because h2load has a line like the first.
    field(
        "status codes: # 2xx, # 3xx, # 4xx, # 5xx traffic: # bytes total, # bytes http, # bytes data",
        |at, to| {
            let class = |n| Some((n as u8 + 2, at.hash_count(n)?));
            to.requests.set_classes((0..4).map(class).collect::<Option<Vec<_>>>()?);
            to.traffic.received = Some(Bytes(at.hash_count(4)?));
            to.traffic.heads = Some(Bytes(at.hash_count(5)?));
            to.traffic.bodies = Some(Bytes(at.hash_count(6)?));
            Some(())
        },
    )
    .signs()
    .always(),
];

const JSON_FIELDS: &[Field] = &[
    BANNER,
    FIRST_THREAD,
    THREAD,
    field("\"reqs_per_sec\":", |at, to| put(&mut to.rate, PerSecond(at.number()?)))
        .opens()
        .signs()
        .always(),
    field("\"kBps_per_sec\":", |at, to| {
        put(&mut to.traffic.rate, PerSecond(at.number()? * 1024.0))
    })
    .signs()
    .always(),
    field("\"secs_elapsed\":", |at, to| put(&mut to.duration, Nanos::from_secs_f64(at.number()?)))
        .signs()
        .always(),
    field("\"request_counts\":", |at, to| {
        let counts = entries(at, &["started", "retired", "total", "keep-alive"])?;
        to.requests.started = count(&counts, "started");
        to.requests.complete = count(&counts, "retired");
        to.requests.kept_alive = count(&counts, "keep-alive");
        Some(())
    })
    .always(),
    field("\"response_counts\":", |at, to| {
        let counts = entries(at, &["pass", "fail", "errs"])?;
        to.requests.succeeded = count(&counts, "pass");
        to.requests.failed = count(&counts, "fail");
        to.errors.extend(count(&counts, "errs").map(|n| ("errs".to_owned(), n)));
        Some(())
    })
    .always(),
    field("\"status_codes\":", |at, to| {
        let counts = entries(at, &["2xx", "3xx", "4xx", "5xx"])?;
        let class = |(name, n): (String, f64)| Some((name.as_bytes().first()? - b'0', n as u64));
        to.requests.set_classes(counts.into_iter().filter_map(class));
        Some(())
    })
    .always(),
    field("\"traffic\":", |at, to| {
        let counts = entries(at, &["bytes_total", "bytes_headers", "bytes_body"])?;
        to.traffic.received = count(&counts, "bytes_total").map(Bytes);
        to.traffic.heads = count(&counts, "bytes_headers").map(Bytes);
        to.traffic.bodies = count(&counts, "bytes_body").map(Bytes);
        Some(())
    })
    .always(),
    field("\"connect_times\":", |at, to| put(&mut to.times.connect, times(at)?.0)).always(),
    field("\"time_to_first_byte\":", |at, to| put(&mut to.times.waiting, times(at)?.0)).always(),
    field("\"response_times\":", |at, to| {
        (to.times.total, to.percentiles) = times(at)?;
        Some(())
    })
    .always(),
];

/// `spawning thread #1: 5 concurrent requests, 250 total requests`: summed over all threads.
fn spawning(at: &mut Cursor<'_, '_>, to: &mut Report, thread: u64) -> Option<()> {
    let connections = at.count()?;
    at.says("concurrent requests")?;
    to.add_thread(thread.checked_sub(1)?, connections);
    Some(())
}

/// The entries of an object with these names; `None` if there are none.
fn entries(at: &mut Cursor<'_, '_>, names: &[&str]) -> Option<BTreeMap<String, f64>> {
    let known = |name: &String| names.contains(&name.as_str());
    let entries: BTreeMap<_, _> = numbers(at).into_iter().filter(|(name, _)| known(name)).collect();
    (!entries.is_empty()).then_some(entries)
}

fn count(entries: &BTreeMap<String, f64>, name: &str) -> Option<u64> {
    entries.get(name).map(|number| *number as u64)
}

/// `num`, `avg`, `stddev`, `unit` and percentiles by name, in microseconds.
fn times(at: &mut Cursor<'_, '_>) -> Option<(Summary, Vec<(f64, Nanos)>)> {
    let mut all = numbers(at);
    at.says("\"unit\": \"us\"")?;
    all.extend(numbers(at));
    let (mut summary, mut percentiles) = (Summary::default(), Vec::new());
    for (name, number) in all {
        let value = Nanos::from_secs_f64(number / 1e6);
        let percent = name.strip_suffix('%').and_then(|percent| percent.parse().ok());
        match (name.as_str(), percent) {
            ("avg", _) => summary.mean = Some(value),
            ("stddev", _) => summary.sd = Some(value),
            (_, Some(percent)) => percentiles.push((percent, value)),
            _ => {}
        }
    }
    let at_percent = |percent| percentiles.iter().find(|(p, _)| *p == percent).map(|(_, v)| *v);
    (summary.min, summary.median) = (at_percent(0.0), at_percent(50.0));
    summary.max = at_percent(100.0);
    (summary != Summary::default()).then_some((summary, percentiles))
}
