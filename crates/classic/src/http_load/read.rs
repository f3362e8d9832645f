//! Parses http_load's report. Source of the layout: `http_load.c`. Start reading at [`read_reports`].

use std::collections::BTreeMap;

use units::{Nanos, PerSecond};

use crate::ReadError;
use crate::layout::{Field, FieldOrder, Layout, field, put, read};
use crate::numbers::{bytes, millis};
use crate::report::{Report, Summary};
use crate::words::Cursor;

pub(super) fn read_reports(text: &str) -> Result<Vec<Report>, ReadError> {
    read(&[&LAYOUT], text)
}

static LAYOUT: Layout =
    Layout { tool: "http_load", fields: FIELDS, order: FieldOrder::Fixed, finish };

const FIELDS: &[Field] = &[
    field("# fetches, # max parallel, # bytes, in # seconds", |at, to| {
        to.requests.complete = Some(at.hash_count(0)?);
        to.concurrency = Some(at.hash_count(1)?);
        to.traffic.bodies = Some(bytes(at.hash_number(2)?));
        to.steps.bytes = Some(bytes(at.step().max(1.0)));
        to.duration = Some(Nanos::from_secs_f64(at.hash_number(3)?));
        put(&mut to.steps.duration, Nanos::from_secs_f64(at.step()))
    })
    .opens()
    .signs()
    .always(),
    field("# mean bytes/connection", |_, _| Some(())),
    field("# fetches/sec, # bytes/sec", |at, to| {
        to.rate = Some(PerSecond(at.hash_number(0)?));
        to.steps.rate = Some(PerSecond(at.step()));
        to.traffic.rate = Some(PerSecond(at.hash_number(1)?));
        put(&mut to.steps.traffic_rate, PerSecond(at.step()))
    })
    .signs(),
    field("msecs/connect:", |at, to| put(&mut to.times.connect, times(at)?)).signs(),
    field("msecs/first-response:", |at, to| put(&mut to.times.waiting, times(at)?)).signs(),
    field("# timeouts", |at, to| error(at, to, "timeouts")),
    field("# bad checksums", |at, to| error(at, to, "bad checksums")),
    field("# bad byte counts", |at, to| error(at, to, "bad byte counts")),
    field("HTTP response codes:", codes).always(),
];

/// Failures are the counts in the error lines, and the fetches without a code.
fn finish(report: &mut Report) {
    let coded: u64 = report.requests.by_status.values().fold(0, |sum, n| sum.saturating_add(*n));
    if report.is_complete() {
        report.requests.failed = report.requests.complete.map(|n| n.saturating_sub(coded));
    }
}

fn error(at: &mut Cursor<'_, '_>, to: &mut Report, kind: &str) -> Option<()> {
    to.errors.insert(kind.to_owned(), at.hash_count(0)?);
    Some(())
}

fn times(at: &mut Cursor<'_, '_>) -> Option<Summary> {
    let mut named = |name: &str| {
        let number = at.number()?;
        at.says(name)?;
        Some(millis(number))
    };
    let (mean, max, min) = (named("mean")?, named("max")?, named("min")?);
    Some(Summary { mean: Some(mean), max: Some(max), min: Some(min), ..Summary::default() })
}

/// One line per code, `code 200 -- 57`; no line without replies.
fn codes(at: &mut Cursor<'_, '_>, to: &mut Report) -> Option<()> {
    let mut codes = BTreeMap::new();
    while at.says("code").is_some() {
        let code = u16::try_from(at.count()?).ok()?;
        at.says("--")?;
        codes.insert(code, at.count()?);
    }
    to.requests.set_statuses(codes);
    Some(())
}
