//! wrk's report read back, with and without `--latency`; and that of wrk2, which writes the distribution
//! with more digits. Start reading at [`read_reports`].

use units::PerSecond;

use crate::ReadError;
use crate::layout::{Field, Layout, field, nothing, put, read};
use crate::report::{Report, Summary};
use crate::words::{Cursor, span};

pub(super) fn read_reports(text: &str) -> Result<Vec<Report>, ReadError> {
    read(&[&LAYOUT], text)
}

static LAYOUT: Layout = Layout { tool: "wrk", fields: FIELDS, finish: nothing };

const FIELDS: &[Field] = &[
    field("Running # test @", |at, to| {
        span(at.hash(0)?)?;
        to.url = Some(at.word()?.to_owned());
        Some(())
    })
    .opens()
    .signs()
    .always(),
    field("# threads and # connections", |at, to| {
        to.threads = Some(at.hash_count(0)?);
        to.concurrency = Some(at.hash_count(1)?);
        Some(())
    })
    .always(),
    field("Latency", latency).signs().always(),
    field("Latency Distribution", distribution).repeats(),
    field("# requests in", |at, to| {
        to.requests.complete = Some(at.hash_count(0)?);
        to.duration = Some(at.span()?);
        to.traffic.received = Some(at.size()?);
        at.says("read")
    })
    .signs()
    .always(),
    field("Socket errors:", |at, to| {
        for kind in ["connect", "read", "write", "timeout"] {
            at.says(kind)?;
            to.errors.insert(kind.to_owned(), at.count()?);
        }
        Some(())
    }),
    field("Non-2xx or 3xx responses:", |at, to| put(&mut to.requests.non_2xx, at.count()?)),
    // In one: hey has a line like the first.
    field("Requests/sec: # Transfer/sec:", |at, to| {
        to.rate = Some(PerSecond(at.hash_number(0)?));
        to.traffic.rate = Some(PerSecond(at.size()?.0 as f64));
        Some(())
    })
    .always(),
];

/// `Avg Stdev Max +/- Stdev`; the last is the share within one standard deviation, and is not a
/// number where there was no request.
fn latency(at: &mut Cursor<'_, '_>, to: &mut Report) -> Option<()> {
    let (mean, sd, max) = (at.span()?, at.span()?, at.span()?);
    to.times.total =
        Summary { mean: Some(mean), sd: Some(sd), max: Some(max), ..Summary::default() };
    at.word()?.ends_with('%').then_some(())
}

/// wrk2 names the histogram first, and may print a second, "uncorrected" one, which is left out.
fn distribution(at: &mut Cursor<'_, '_>, to: &mut Report) -> Option<()> {
    let _ = at.says("(HdrHistogram - Recorded Latency)");
    let mut percentiles = Vec::new();
    while let Some(percent) = at.percent() {
        percentiles.push((percent, at.span()?));
    }
    if to.percentiles.is_empty() {
        to.percentiles = percentiles;
    }
    (!to.percentiles.is_empty()).then_some(())
}
