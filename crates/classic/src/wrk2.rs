//! wrk2: its report, with the whole distribution. Source of the layout: giltene/wrk2, `src/wrk.c`, and its README.

use units::Nanos;

use crate::layout::{Field, FieldOrder, Layout, field, label, nothing, put, read};
use crate::numbers::{count, millis};
use crate::report::{Bin, Report};
use crate::words::Cursor;
use crate::wrk::read::{
    BAD, ERRORS, LATENCY, LATENCY_99, MAKING, RATE, RATES, REQUESTS, RUNNING, THREADS, distribution,
};
use crate::{ReadError, Tool};

/// The tool.
pub(crate) static TOOL: Tool = Tool {
    name: "wrk2",
    about: "wrk2: wrk with a rate of requests that is held, and latencies from when each was due",
    counts_differently: &[
        "a latency is taken from when the request was due by the rate: it has the waiting behind late replies in it, and is that of an open loop",
        "requests of the first ten seconds count in the requests and the rate, but not in latency: they calibrate its sampling",
        "each connection has its share of the rate and sends one request at a time: behind the rate it catches up at twice its pace",
        "a latency is late by up to 1 ms: it waits by timers of whole milliseconds",
        "replies with 4xx and 5xx count as requests like any other; its line of non-2xx or 3xx counts those of 400 and above",
        "timeouts are counted once per check, not per request",
        "bytes include heads",
    ],
    command: None,
    own_flags: &[],
    read: read_reports,
};

fn read_reports(text: &str) -> Result<Vec<Report>, ReadError> {
    read(&[&LAYOUT], text)
}

static LAYOUT: Layout =
    Layout { tool: "wrk2", fields: FIELDS, order: FieldOrder::Fixed, finish: nothing };

const FIELDS: &[Field] = &[
    RUNNING.always(),
    MAKING,
    THREADS.always(),
    field("Thread calibration: mean lat.:", label).repeats().signs(),
    LATENCY_99,
    LATENCY.always(),
    RATES,
    field("Latency Distribution (HdrHistogram - Recorded Latency)", distribution).signs(),
    field("Detailed Percentile spectrum: Value Percentile TotalCount 1/(1-Percentile)", spectrum)
        .repeats(),
    field("#[Mean =", moments).repeats(),
    // The latency without coordinated omission taken into account: left out.
    field("Latency Distribution (HdrHistogram - Uncorrected Latency", label).signs().parts(),
    REQUESTS.always().whole(),
    ERRORS.whole(),
    BAD.whole(),
    RATE.always().whole(),
];

/// Rows of `value percentile count 1/(1-percentile)`, in milliseconds; the counts add up.
fn spectrum(at: &mut Cursor<'_, '_>, to: &mut Report) -> Option<()> {
    let (mut bins, mut before) = (Vec::new(), 0);
    while let Some(row) = row(at) {
        let (value, total) = row;
        let more = total.checked_sub(before)?;
        if more > 0 {
            bins.push(Bin { at: value, count: more });
        }
        before = total;
    }
    if to.histogram.is_empty() {
        to.histogram = bins;
    }
    Some(())
}

fn row(at: &mut Cursor<'_, '_>) -> Option<(Nanos, u64)> {
    let mut ahead = at.clone();
    let value = millis(ahead.number()?);
    ahead.number().filter(|share| *share <= 1.0)?;
    let total = count(ahead.word()?)?;
    ahead.number().map(|_| ()).or_else(|| ahead.says("inf"))?;
    *at = ahead;
    Some((value, total))
}

/// `#[Mean    =        6.602, StdDeviation   =        1.919]`: the latency line's values with more digits. Those of the
/// second histogram are left out.
fn moments(at: &mut Cursor<'_, '_>, to: &mut Report) -> Option<()> {
    let (mean, step) = (millis(at.number()?), millis(at.step()));
    at.says("StdDeviation =")?;
    let sd = millis(at.number()?);
    let fits = to
        .times
        .total
        .mean
        .zip(to.steps.time)
        .is_some_and(|(printed, step)| printed.0.abs_diff(mean.0) <= step.0);
    if fits {
        (to.times.total.mean, to.times.total.sd) = (Some(mean), Some(sd));
        put(&mut to.steps.time, step)?;
    }
    Some(())
}
