//! Parses ab's report, of every version from 1.2 (Apache 1.3) to 2.3 (httpd 2.4) and trunk, as text and as the tables
//! of `-w`; and that of its predecessor, zb. Source of the layout: httpd, `support/ab.c`, and Apache 1.3,
//! `src/support/ab.c`.

use units::{Bytes, Nanos, PerSecond};

use crate::ReadError;
use crate::layout::{
    Field, FieldOrder, Layout, duration_secs, field, put, rate, read, traffic_rate,
};
use crate::numbers::millis;
use crate::report::{DocumentLength, Report, Summary};
use crate::words::Cursor;

pub(super) fn read_reports(text: &str) -> Result<Vec<Report>, ReadError> {
    read(&[&LAYOUT], text)
}

static LAYOUT: Layout = Layout { tool: "ab", fields: FIELDS, order: FieldOrder::Fixed, finish };

/// Size of ab's "Kbytes".
const KBYTE: f64 = 1024.0;
/// How closely the bytes per second must fit a unit: 1000 and 1024 differ by 2.4 %.
const RATE_UNIT_TOLERANCE: f64 = 0.011;

const FIELDS: &[Field] = &[
    field("This is ApacheBench, Version", |at, to| {
        to.version = Some(at.word()?.to_owned());
        Some(())
    })
    .opens(),
    field("Test aborted after", |at, to| {
        at.count()?;
        to.aborted = true;
        Some(())
    })
    .opens(),
    field("Server Software:", server_software).opens(),
    field("Server Hostname:", |at, to| {
        to.url = Some(format!("http://{}", at.word()?));
        Some(())
    })
    .signs()
    .always(),
    field("Server Port:", |at, to| {
        let port = at.count()?;
        to.url.as_mut()?.push_str(&format!(":{port}"));
        Some(())
    }),
    field("SSL/TLS Protocol:", |at, to| {
        at.word()?;
        let rest = to.url.as_ref()?.strip_prefix("http://")?.to_owned();
        to.url = Some(format!("https://{rest}"));
        Some(())
    }),
    field("Document Path:", |at, to| {
        let path = at.word()?;
        to.url.as_mut()?.push_str(path);
        Some(())
    }),
    field("Document Length:", |at, to| {
        to.document_length = Some(match at.says("Variable") {
            Some(()) => DocumentLength::Variable,
            None => DocumentLength::Fixed(length(at)?),
        });
        Some(())
    })
    .also("Doucment Length:"),
    field("Concurrency Level:", |at, to| put(&mut to.concurrency, at.count()?))
        .also("Concurency Level:")
        .always(),
    field("Number of workers:", |at, to| put(&mut to.threads, at.count()?)),
    field("Time taken for tests:", |at, to| {
        duration_secs(at, to)?;
        at.says("seconds")
    })
    .signs()
    .always(),
    field("Complete requests:", |at, to| put(&mut to.requests.complete, at.count()?))
        .signs()
        .always(),
    field("Failed requests:", |at, to| put(&mut to.requests.failed, at.count()?)).always(),
    field("(Connect:", failures),
    field("Broken pipe errors:", |at, to| error(at, to, "Broken pipe")),
    field("Write errors:", |at, to| error(at, to, "Write")),
    field("Keep-Alive aborts:", |at, to| error(at, to, "Keep-Alive aborts")),
    field("Non-2xx responses:", |at, to| put(&mut to.requests.non_2xx, at.count()?)),
    field("Keep-Alive requests:", |at, to| put(&mut to.requests.kept_alive, at.count()?)),
    field("Total transferred:", |at, to| put(&mut to.traffic.received, length(at)?))
        .also("Bytes transfered:")
        .always(),
    field("Total body sent:", |at, to| put(&mut to.traffic.sent, Bytes(at.count()?)))
        .also("Total POSTed:"),
    field("HTML transferred:", |at, to| put(&mut to.traffic.bodies, length(at)?))
        .also("HTML transfered:")
        .always(),
    // Absent if nothing was done, or the time was 0.
    field("Requests per second:", rate).also("Requests per seconds:").signs(),
    field("Time per request:", time_per_request).repeats(),
    field("Transfer rate:", |at, to| traffic_rate(at, to, KBYTE)),
    field("Connect:", |at, to| put(&mut to.times.connect, times(at)?)),
    field("Processing:", |at, to| put(&mut to.times.processing, times(at)?)),
    field("Waiting:", |at, to| put(&mut to.times.waiting, times(at)?)),
    field("Total:", |at, to| {
        to.times.total = times(at)?;
        put(&mut to.steps.time, millis(1.0))
    })
    .always(),
    field("Percentage of the requests served within a certain time (ms)", percentiles).signs(),
];

/// A line that is only printed for a number above 0 means 0 if it is absent, unless the report is cut off before it.
fn finish(report: &mut Report) {
    if report.traffic.received.is_some() && report.requests.complete.is_some() {
        report.requests.non_2xx.get_or_insert(0);
    }
    report.steps.bytes = report.traffic.received.map(|_| Bytes(1));
    find_rate_unit(report);
}

/// Apache 1.3 and 2.0 print Kbytes of 1000 bytes, later versions of 1024: the bytes and the time show which.
fn find_rate_unit(report: &mut Report) {
    let (Some(rate), Some(received), Some(duration)) =
        (report.traffic.rate, report.traffic.received, report.duration)
    else {
        return;
    };
    let received = received.0.saturating_add(report.traffic.sent.map_or(0, |sent| sent.0)) as f64;
    let bytes_of_unit = received / duration.as_secs_f64() / (rate.0 / KBYTE);
    // For a short test the printed time is too imprecise.
    let step = report.steps.duration.unwrap_or_default();
    let told = step.as_secs_f64() / 2.0 < duration.as_secs_f64() * RATE_UNIT_TOLERANCE;
    let is = |unit: f64| told && (bytes_of_unit / unit - 1.0).abs() < RATE_UNIT_TOLERANCE;
    match (is(1000.0), is(KBYTE)) {
        (true, false) => {
            report.traffic.rate_unit = Some(Bytes(1000));
            report.traffic.rate = Some(PerSecond(rate.0 / KBYTE * 1000.0));
            let step = report.steps.traffic_rate.map(|step| PerSecond(step.0 / KBYTE * 1000.0));
            report.steps.traffic_rate = step;
        }
        (false, true) => report.traffic.rate_unit = Some(Bytes(1024)),
        _ => {}
    }
}

/// The value is empty if the server does not name itself.
fn server_software(at: &mut Cursor<'_, '_>, to: &mut Report) -> Option<()> {
    let mut ahead = at.clone();
    let is_empty = ahead.says("Server Hostname:").is_some() || ahead.peek().is_none();
    to.server_software = if is_empty { None } else { Some(at.word()?.to_owned()) };
    Some(())
}

/// The oldest versions print no unit.
fn length(at: &mut Cursor<'_, '_>) -> Option<Bytes> {
    let count = at.count()?;
    let _ = at.says("bytes");
    Some(Bytes(count))
}

fn error(at: &mut Cursor<'_, '_>, to: &mut Report, kind: &str) -> Option<()> {
    to.errors.insert(kind.to_owned(), at.count()?);
    Some(())
}

/// `(Connect: 0, Receive: 0, Length: 7, Exceptions: 0)`; the table has no Receive.
fn failures(at: &mut Cursor<'_, '_>, to: &mut Report) -> Option<()> {
    error(at, to, "Connect")?;
    for kind in ["Receive", "Length", "Exceptions"] {
        if at.says(&format!("{kind}:")).is_some() {
            error(at, to, kind)?;
        }
    }
    Some(())
}

/// Two lines: across the connections, and overall; the second is 1 / rate and adds nothing.
fn time_per_request(at: &mut Cursor<'_, '_>, to: &mut Report) -> Option<()> {
    let time = millis(at.figure()?);
    let step = millis(at.step());
    at.says("[ms]")?;
    match at.word()? {
        "(mean)" => {
            to.time_per_request = Some(time);
            to.steps.time_per_request = Some(step);
        }
        "(mean," => at.says("across all concurrent requests)")?,
        _ => return None,
    }
    Some(())
}

/// `min mean sd median max`, or with -S and -w `min avg max`.
fn times(at: &mut Cursor<'_, '_>) -> Option<Summary> {
    let printed: Vec<Nanos> = std::iter::from_fn(|| at.number().map(millis)).take(5).collect();
    let summary = |min, mean, max| Summary {
        min: Some(min),
        mean: Some(mean),
        max: Some(max),
        ..Summary::default()
    };
    match *printed.as_slice() {
        [min, mean, sd, median, max] => {
            Some(Summary { sd: Some(sd), median: Some(median), ..summary(min, mean, max) })
        }
        [min, mean, max] => Some(summary(min, mean, max)),
        _ => None,
    }
}

fn percentiles(at: &mut Cursor<'_, '_>, to: &mut Report) -> Option<()> {
    to.percentiles.clear();
    let last = |to: &Report| to.percentiles.last().map(|(percent, _)| *percent);
    while let Some(row) = at.percentile(last(to), |at| at.number().map(millis)) {
        to.percentiles.push(row);
    }
    // "(longest request)" follows 100 %; in Apache 1.3 it is "(last request)".
    let _ = at.says("(longest request)").or_else(|| at.says("(last request)"));
    (!to.percentiles.is_empty()).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_without_a_name_is_none() {
        let text = "Server Software:        \nServer Hostname:        h\nServer Port: 80\n\
                    Document Path: /x y\n";
        let reports = read_reports(text).unwrap();
        assert_eq!(reports[0].server_software, None);
        assert_eq!(reports[0].url.as_deref(), Some("http://h:80/x"));
        assert!(reports[0].missing.contains(&"Complete requests:"));
    }

    #[test]
    fn failures_are_told_by_kind_and_https_is_seen() {
        let text = "Server Hostname: h\nServer Port: 443\nSSL/TLS Protocol: TLSv1.3,X,2048,256\n\
                    Document Path: /\nComplete requests: 10\nFailed requests: 9\n   \
                    (Connect: 1, Receive: 2, Length: 4, Exceptions: 2)\nWrite errors: 3\n";
        let report = read_reports(text).unwrap().remove(0);
        assert_eq!(report.url.as_deref(), Some("https://h:443/"));
        let errors: Vec<(&str, u64)> =
            report.errors.iter().map(|(kind, count)| (kind.as_str(), *count)).collect();
        let told = [("Connect", 1), ("Exceptions", 2), ("Length", 4), ("Receive", 2), ("Write", 3)];
        assert_eq!(errors, told);
    }
}
