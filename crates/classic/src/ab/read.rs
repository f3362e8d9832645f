//! ab's report read back, of "Version 2.3" (httpd 2.4) and of trunk, as text and as the tables of
//! `-w`. Source of the layout: httpd, `support/ab.c`.

use units::{Bytes, Nanos, PerSecond};

use crate::ReadError;
use crate::layout::{Field, Layout, field, put, read};
use crate::report::{DocumentLength, Report, Summary};
use crate::words::{Cursor, millis};

pub(super) fn read_reports(text: &str) -> Result<Vec<Report>, ReadError> {
    read(&[&LAYOUT], text)
}

static LAYOUT: Layout = Layout { tool: "ab", fields: FIELDS, finish };

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
            None => DocumentLength::Fixed(whole_bytes(at)?),
        });
        Some(())
    }),
    field("Concurrency Level:", |at, to| put(&mut to.concurrency, at.count()?)).always(),
    field("Number of workers:", |at, to| put(&mut to.threads, at.count()?)),
    field("Time taken for tests:", |at, to| {
        to.duration = Some(Nanos::from_secs_f64(at.number()?));
        at.says("seconds")
    })
    .signs()
    .always(),
    field("Complete requests:", |at, to| put(&mut to.requests.complete, at.count()?))
        .signs()
        .always(),
    field("Failed requests:", |at, to| put(&mut to.requests.failed, at.count()?)).always(),
    field("(Connect:", failures),
    field("Write errors:", |at, to| error(at, to, "Write")),
    field("Keep-Alive aborts:", |at, to| error(at, to, "Keep-Alive aborts")),
    field("Non-2xx responses:", |at, to| put(&mut to.requests.non_2xx, at.count()?)),
    field("Keep-Alive requests:", |at, to| put(&mut to.requests.kept_alive, at.count()?)),
    field("Total transferred:", |at, to| put(&mut to.traffic.received, whole_bytes(at)?)).always(),
    field("Total body sent:", |at, to| put(&mut to.traffic.sent, Bytes(at.count()?))),
    field("HTML transferred:", |at, to| put(&mut to.traffic.bodies, whole_bytes(at)?)).always(),
    // Absent where nothing was done, or in no time.
    field("Requests per second:", |at, to| put(&mut to.rate, PerSecond(at.number()?))).signs(),
    field("Time per request:", time_per_request).repeats(),
    field("Transfer rate:", |at, to| put(&mut to.traffic.rate, PerSecond(at.number()? * 1024.0))),
    field("Connect:", |at, to| put(&mut to.times.connect, times(at)?)),
    field("Processing:", |at, to| put(&mut to.times.processing, times(at)?)),
    field("Waiting:", |at, to| put(&mut to.times.waiting, times(at)?)),
    field("Total:", |at, to| put(&mut to.times.total, times(at)?)).always(),
    field("Percentage of the requests served within a certain time (ms)", percentiles).signs(),
];

/// A line that is only there where it is above 0 says 0 by its absence: but not where the report
/// broke off before it.
fn finish(report: &mut Report) {
    if report.traffic.received.is_some() && report.requests.complete.is_some() {
        report.requests.non_2xx.get_or_insert(0);
    }
}

/// A server that does not name itself leaves the value empty.
fn server_software(at: &mut Cursor<'_, '_>, to: &mut Report) -> Option<()> {
    let mut ahead = at.clone();
    let is_empty = ahead.says("Server Hostname:").is_some() || ahead.peek().is_none();
    to.server_software = if is_empty { None } else { Some(at.word()?.to_owned()) };
    Some(())
}

fn whole_bytes(at: &mut Cursor<'_, '_>) -> Option<Bytes> {
    let count = at.count()?;
    at.says("bytes")?;
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

/// Two lines: over the connections, and over all; the second is 1 / rate and says nothing more.
fn time_per_request(at: &mut Cursor<'_, '_>, to: &mut Report) -> Option<()> {
    let millis = millis(at.number()?);
    at.says("[ms]")?;
    match at.word()? {
        "(mean)" => to.time_per_request = Some(millis),
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
    while let Some(percent) = at.percent() {
        to.percentiles.push((percent, millis(at.number()?)));
    }
    // "(longest request)" follows 100 %.
    let _ = at.says("(longest request)");
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
