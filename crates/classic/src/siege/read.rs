//! Parses siege's report: of 2.6 (bytes), of 2.7 to 4.1.5 (seconds), of 4.1.7 and 4.2 (milliseconds), and as JSON
//! (`-j`: seconds in every version). Source of the layout: JoeDog/siege, `src/main.c`.

use units::{Nanos, Share};

use crate::ReadError;
use crate::layout::{
    Field, FieldOrder, Layout, duration_secs, field, nothing, put, rate, read, traffic_rate,
};
use crate::numbers::{bytes, millis};
use crate::report::Report;
use crate::words::Cursor;

const MEGABYTE: f64 = 1_048_576.0;

pub(super) fn read_reports(text: &str) -> Result<Vec<Report>, ReadError> {
    read(&[&TEXT, &JSON], text)
}

static TEXT: Layout =
    Layout { tool: "siege", fields: TEXT_FIELDS, order: FieldOrder::Fixed, finish: nothing };
static JSON: Layout =
    Layout { tool: "siege", fields: JSON_FIELDS, order: FieldOrder::Free, finish: nothing };

const TEXT_FIELDS: &[Field] = &[
    field("** SIEGE #", |at, to| put(&mut to.version, at.hash(0)?.to_owned()))
        .also("** Siege #")
        .opens(),
    field("** Preparing # concurrent users for battle.", |at, to| {
        put(&mut to.concurrency, at.hash_count(0)?)
    })
    .opens(),
    field("siege aborted due to excessive socket failure; you", |_, to| {
        to.aborted = true;
        Some(())
    })
    .opens(),
    field("Transactions:", |at, to| {
        to.requests.complete = Some(at.count()?);
        at.says("hits")
    })
    .opens()
    .signs()
    .always(),
    field("Availability:", |at, to| {
        availability(at, to)?;
        at.says("%")
    })
    .always(),
    field("Elapsed time:", |at, to| {
        duration_secs(at, to)?;
        at.says("secs")
    })
    .always(),
    field("Data transferred:", |at, to| {
        let figure = at.figure()?;
        let unit =
            if at.says("bytes").is_some() { 1.0 } else { at.says("MB").map(|()| MEGABYTE)? };
        to.traffic.bodies = Some(bytes(figure * unit));
        put(&mut to.steps.bytes, bytes(at.step() * unit))
    })
    .always(),
    field("Response time:", |at, to| {
        let (time, step) = time(at)?;
        to.times.total.mean = Some(time);
        put(&mut to.steps.time, step)
    })
    .always(),
    field("Transaction rate:", |at, to| {
        rate(at, to)?;
        at.says("trans/sec")
    })
    .signs()
    .always(),
    field("Throughput:", |at, to| {
        let mut ahead = at.clone();
        ahead.figure()?;
        let unit = if ahead.says("bytes/sec").is_some() { 1.0 } else { MEGABYTE };
        traffic_rate(at, to, unit)?;
        at.says(if unit > 1.0 { "MB/sec" } else { "bytes/sec" })
    })
    .always(),
    field("Concurrency:", concurrency).always(),
    field("Successful transactions:", succeeded).signs().always(),
    field("Failed transactions:", failed).signs().always(),
    field("Longest transaction:", |at, to| put(&mut to.times.total.max, time(at)?.0)).always(),
    field("Shortest transaction:", |at, to| put(&mut to.times.total.min, time(at)?.0)).always(),
];

const JSON_FIELDS: &[Field] = &[
    field("\"transactions\":", |at, to| put(&mut to.requests.complete, at.count()?))
        .opens()
        .signs()
        .always(),
    field("\"availability\":", availability).signs().always(),
    field("\"elapsed_time\":", duration_secs).always(),
    field("\"data_transferred\":", data).always(),
    field("\"response_time\":", |at, to| {
        to.times.total.mean = Some(seconds(at)?);
        put(&mut to.steps.time, Nanos::from_secs_f64(at.step()))
    })
    .always(),
    field("\"transaction_rate\":", rate).signs().always(),
    field("\"throughput\":", throughput).always(),
    field("\"concurrency\":", concurrency).always(),
    field("\"successful_transactions\":", succeeded).signs().always(),
    field("\"failed_transactions\":", failed).signs().always(),
    field("\"longest_transaction\":", |at, to| put(&mut to.times.total.max, seconds(at)?)).always(),
    field("\"shortest_transaction\":", |at, to| put(&mut to.times.total.min, seconds(at)?))
        .always(),
];

fn seconds(at: &mut Cursor<'_, '_>) -> Option<Nanos> {
    at.number().map(Nanos::from_secs_f64)
}

/// Since 4.1.7 with the unit ms; before, in seconds, which the longest and shortest do not name.
fn time(at: &mut Cursor<'_, '_>) -> Option<(Nanos, Nanos)> {
    let (number, step) = (at.figure()?, at.step());
    if at.says("ms").is_some() {
        return Some((millis(number), millis(step)));
    }
    let _ = at.says("secs");
    Some((Nanos::from_secs_f64(number), Nanos::from_secs_f64(step)))
}

fn availability(at: &mut Cursor<'_, '_>, to: &mut Report) -> Option<()> {
    let percent = at.number().filter(|percent| *percent <= 100.0)?;
    put(&mut to.availability, Share(percent / 100.0))
}

fn data(at: &mut Cursor<'_, '_>, to: &mut Report) -> Option<()> {
    to.traffic.bodies = Some(bytes(at.number()? * MEGABYTE));
    put(&mut to.steps.bytes, bytes(at.step() * MEGABYTE))
}

fn throughput(at: &mut Cursor<'_, '_>, to: &mut Report) -> Option<()> {
    traffic_rate(at, to, MEGABYTE)
}

fn concurrency(at: &mut Cursor<'_, '_>, to: &mut Report) -> Option<()> {
    to.concurrency_mean = Some(at.number()?);
    put(&mut to.steps.concurrency_mean, at.step())
}

fn succeeded(at: &mut Cursor<'_, '_>, to: &mut Report) -> Option<()> {
    put(&mut to.requests.succeeded, at.count()?)
}

fn failed(at: &mut Cursor<'_, '_>, to: &mut Report) -> Option<()> {
    put(&mut to.requests.failed, at.count()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The layout of 4.1.7, which Debian does not package.
    const NEWER: &str = "\nTransactions:\t\t      200    hits\nAvailability:\t\t       99.50 %\n\
        Elapsed time:\t\t        0.02 secs\nData transferred:\t        0.64 MB\n\
        Response time:\t\t        0.35 ms\nTransaction rate:\t    10000.00 trans/sec\n\
        Throughput:\t\t       32.05 MB/sec\nConcurrency:\t\t        2.50\n\
        Successful transactions:      200\nFailed transactions:\t        1\n\
        Longest transaction:\t        6.21 ms\nShortest transaction:\t        0.08 ms\n \n";

    #[test]
    fn the_unit_that_stands_there_is_taken() {
        let newer = read_reports(NEWER).unwrap().remove(0);
        let total = newer.times.total;
        assert_eq!((total.mean, total.max), (Some(Nanos(350_000)), Some(Nanos(6_210_000))));
        let older = NEWER.replace(" ms", "");
        let older = read_reports(&older).unwrap().remove(0);
        assert_eq!(older.times.total.mean, Some(Nanos::from_millis(350)));
        assert_eq!(newer.missing, [""; 0]);
    }
}
