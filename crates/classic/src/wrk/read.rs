//! Parses wrk's report, of 1.0 to 4.2, with and without `--latency`. Owns the fields that wrk2 shares. Start reading at
//! [`read_reports`].

use units::{Bytes, Nanos, PerSecond, Share};

use crate::ReadError;
use crate::layout::{Field, FieldOrder, Layout, field, label, nothing, put, read};
use crate::numbers::with_unit;
use crate::report::{Rates, Report, Summary};
use crate::words::Cursor;

pub(super) fn read_reports(text: &str) -> Result<Vec<Report>, ReadError> {
    read(&[&LAYOUT], text)
}

static LAYOUT: Layout =
    Layout { tool: "wrk", fields: FIELDS, order: FieldOrder::Fixed, finish: nothing };

const FIELDS: &[Field] = &[
    RUNNING.signs().always(),
    MAKING,
    THREADS.always(),
    // This line belongs to wrk2.
    field("Thread calibration: mean lat.:", label).repeats().disowns(),
    field("Latency Distribution (HdrHistogram", label).repeats().disowns(),
    LATENCY_99,
    LATENCY.signs().always(),
    RATES,
    field("Latency Distribution", distribution).repeats(),
    REQUESTS.signs().always(),
    ERRORS,
    BAD,
    RATE.always(),
];

pub(crate) const RUNNING: Field = field("Running # test @", |at, to| {
    at.hash_span(0)?;
    to.url = Some(at.word()?.to_owned());
    Some(())
})
.opens();

/// From the first versions, which took a number of requests.
pub(crate) const MAKING: Field = field("Making # requests to", |at, to| {
    at.hash_count(0)?;
    to.url = Some(at.word()?.to_owned());
    Some(())
})
.opens();

pub(crate) const THREADS: Field = field("# threads and # connections", |at, to| {
    to.threads = Some(at.hash_count(0)?);
    to.concurrency = Some(at.hash_count(1)?);
    Some(())
});

/// `Avg Stdev Max +/- Stdev`; the last is the share within one standard deviation, and is not a number without
/// requests.
pub(crate) const LATENCY: Field = field("Latency", |at, to| {
    let (mean, step) = (at.span()?, at.step());
    let (sd, max) = (at.span()?, at.span()?);
    to.times.total = Summary { max: Some(max), ..mean_and_sd(mean, sd, at)? };
    put(&mut to.steps.time, Nanos::from_secs_f64(step))
});

/// A variant of wrk2 has a percentile in place of the maximum.
pub(crate) const LATENCY_99: Field =
    field("Thread Stats Avg Stdev 99% +/- Stdev Latency", |at, to| {
        let (mean, step) = (at.span()?, at.step());
        let (sd, percentile) = (at.span()?, at.span()?);
        to.times.total = mean_and_sd(mean, sd, at)?;
        to.percentiles = vec![(99.0, percentile)];
        put(&mut to.steps.time, Nanos::from_secs_f64(step))
    });

pub(crate) const RATES: Field = field("Req/Sec", |at, to| {
    let (mean, sd, max) = (metric(at)?, metric(at)?, metric(at)?);
    let within_sd = within_sd(at)?;
    to.rates = Rates { mean: Some(mean), sd: Some(sd), max: Some(max), min: None, within_sd };
    Some(())
});

pub(crate) const REQUESTS: Field = field("# requests in", |at, to| {
    to.requests.complete = Some(at.hash_count(0)?);
    to.duration = Some(at.span()?);
    to.steps.duration = Some(Nanos::from_secs_f64(at.step()));
    to.traffic.received = Some(at.size()?);
    to.steps.bytes = Some(Bytes(at.step().max(1.0) as u64));
    at.says("read")
});

pub(crate) const ERRORS: Field = field("Socket errors:", |at, to| {
    for kind in ["connect", "read", "write", "timeout"] {
        at.says(kind)?;
        to.errors.insert(kind.to_owned(), at.count()?);
    }
    Some(())
});

pub(crate) const BAD: Field =
    field("Non-2xx or 3xx responses:", |at, to| put(&mut to.requests.non_2xx, at.count()?));

/// Combined, because hey has a line like the first.
pub(crate) const RATE: Field = field("Requests/sec: # Transfer/sec:", |at, to| {
    to.rate = Some(PerSecond(at.hash_number(0)?));
    to.steps.rate = Some(PerSecond(at.step()));
    to.traffic.rate = Some(PerSecond(at.size()?.0 as f64));
    put(&mut to.steps.traffic_rate, PerSecond(at.step()))
});

/// The following percentiles.
pub(crate) fn distribution(at: &mut Cursor<'_, '_>, to: &mut Report) -> Option<()> {
    let mut percentiles: Vec<(f64, Nanos)> = Vec::new();
    while let Some(row) = at.percentile(percentiles.last().map(|row| row.0), |at| at.span()) {
        percentiles.push(row);
    }
    if !percentiles.is_empty() && to.percentiles.is_empty() {
        to.percentiles = percentiles;
    }
    (!to.percentiles.is_empty()).then_some(())
}

fn mean_and_sd(mean: Nanos, sd: Nanos, at: &mut Cursor<'_, '_>) -> Option<Summary> {
    let within_sd = within_sd(at)?;
    Some(Summary { mean: Some(mean), sd: Some(sd), within_sd, ..Summary::default() })
}

/// The share within one standard deviation; not a number without requests.
fn within_sd(at: &mut Cursor<'_, '_>) -> Option<Option<Share>> {
    if let Some(percent) = at.percent() {
        return Some(Some(Share(percent / 100.0)));
    }
    at.word()?.ends_with('%').then_some(None)
}

/// A number with a letter for thousands or more.
fn metric(at: &mut Cursor<'_, '_>) -> Option<PerSecond> {
    let (_, unit) = with_unit(at.peek()?)?;
    let scale = match unit {
        "" => 1.0,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        _ => return None,
    };
    Some(PerSecond(at.number_before(unit)? * scale))
}
