//! The terminal report of one load on one server. Owns its layout. What spoils the figures
//! ([`crate::load_warnings`]) comes before any of them. Start reading at [`load_text`].

use record::{LatencyMillis, LoadRecord, Outcome};
use units::Bytes;

use crate::Options;
use crate::figures::{NONE, counted, grouped, optional, significant};
use crate::load_warnings::{is_generator_limit, warnings};
use crate::standing::span;
use crate::terminal::{Lean, Page, Paint};
use crate::wording::plain;

/// What a load measured, for a terminal; ends in a newline.
pub fn load_text(record: &LoadRecord, options: &Options) -> String {
    let mut page = Page::new(options);
    let url = plain(&record.plan.url);
    page.heading(&format!("joust load: {url}"), "");
    let warnings = warnings(record);
    for warning in &warnings {
        page.paragraph(warning, Paint::Alarm);
    }
    page.paragraph(&rate(record), if warnings.is_empty() { Paint::Good } else { Paint::Caution });
    page.paragraph(&shape(record), Paint::Faint);
    outcomes(&mut page, record);
    latencies(&mut page, record);
    page.heading("Cost", "");
    for line in cost(record) {
        page.paragraph(&line, Paint::Plain);
    }
    page.finish()
}

fn shape(record: &LoadRecord) -> String {
    let connections = counted(record.connections.into(), "connection");
    let threads = counted(record.threads.into(), "thread");
    let reuse = if record.plan.keep_alive { "keep-alive" } else { "a connection a request" };
    format!("{connections}, {threads}, {reuse}, closed loop")
}

fn rate(record: &LoadRecord) -> String {
    let bound = if is_generator_limit(record) { ">= " } else { "" };
    format!(
        "{bound}{} requests/s over {} s: {} ok of {} begun",
        significant(record.rate_per_s),
        significant(record.seconds),
        grouped(record.requests.ok),
        grouped(record.requests.started),
    )
}

/// Requests by what came of them; kinds that did not occur have no row.
fn outcomes(page: &mut Page, record: &LoadRecord) {
    let requests = record.requests;
    let mut rows = vec![vec!["ok".to_owned(), grouped(requests.ok)]];
    for (outcome, count) in failures(record) {
        rows.push(vec![outcome_words(outcome).to_owned(), grouped(count)]);
    }
    let ends = [(requests.unanswered, "unanswered when the load ended")];
    for (count, what) in ends.into_iter().filter(|(count, _)| *count > 0) {
        rows.push(vec![what.to_owned(), grouped(count)]);
    }
    if requests.drained > 0 {
        rows.push(vec![
            "of those done, ended after the window (not in the rate)".to_owned(),
            grouped(requests.drained),
        ]);
    }
    page.heading("Requests", &statuses(record));
    page.table(&[("outcome", Lean::Left), ("requests", Lean::Right)], &rows);
}

fn statuses(record: &LoadRecord) -> String {
    let each: Vec<String> = record
        .status
        .iter()
        .map(|(status, count)| format!("{status}: {}", grouped(*count)))
        .collect();
    if each.is_empty() {
        "no status was seen".to_owned()
    } else {
        format!("status {}", each.join(", "))
    }
}

pub(crate) fn failures(record: &LoadRecord) -> impl Iterator<Item = (Outcome, u64)> {
    record.errors.each().filter(|(_, count)| *count > 0)
}

/// What an outcome means, for a reader who does not know the names.
pub(crate) fn outcome_words(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Ok => "ok",
        Outcome::UnexpectedStatus => "unexpected status",
        Outcome::WrongLength => "body of the wrong length",
        Outcome::WrongHeader => "a header field missing or other than asked for",
        Outcome::WrongBody => "body other than expected",
        Outcome::Protocol => "not HTTP",
        Outcome::ConnectRefused => "connection refused",
        Outcome::ConnectFailed => "connection failed",
        Outcome::ConnectTimeout => "timed out connecting",
        Outcome::Tls => "TLS failed",
        Outcome::ResetBeforeFirstByte => "closed before the first byte",
        Outcome::ResetAfterFirstByte => "closed inside the reply",
        Outcome::TimeoutWaiting => "timed out waiting for the first byte",
        Outcome::TimeoutReading => "timed out inside the reply",
        Outcome::FdExhausted => "no file descriptor left (ulimit -n)",
        Outcome::PortExhausted => "no local port left (ip_local_port_range)",
        Outcome::Unanswered => "unanswered",
    }
}

fn latencies(page: &mut Page, record: &LoadRecord) {
    let remark =
        "of ok requests; service counts from sent, response from due; - has too few samples";
    page.heading("Latency", remark);
    let titles = ["", "mean", "sd", "min", "p50", "p90", "p99", "p99.9", "max"];
    let columns = titles.map(|t| (t, if t.is_empty() { Lean::Left } else { Lean::Right }));
    let phases = [
        ("connect", &record.connect_ms),
        ("first byte", &record.first_byte_ms),
        ("service", &record.service_ms),
        ("response", &record.response_ms),
    ];
    let mut rows: Vec<Vec<String>> =
        phases.iter().map(|(phase, summary)| latency_row(phase, summary)).collect();
    if record.failed_ms != LatencyMillis::default() {
        rows.push(latency_row("failed", &record.failed_ms));
    }
    page.table(&columns, &rows);
}

fn latency_row(phase: &str, l: &LatencyMillis) -> Vec<String> {
    let figures = [l.mean, l.sd, l.min, l.p50, l.p90, l.p99, l.p999, l.max];
    let shown = figures.map(|millis| millis.map_or_else(|| NONE.to_owned(), span));
    std::iter::once(phase.to_owned()).chain(shown).collect()
}

fn cost(record: &LoadRecord) -> Vec<String> {
    let requests = record.requests.done.max(1);
    let per_connect =
        (record.connects > 0).then(|| record.requests.started as f64 / record.connects as f64);
    vec![
        format!(
            "Generator: CPU time a request {} us, busiest thread {} %, stamps at most {} late; \
             engine {}",
            optional(record.cpu_us_per_request),
            significant(100.0 * record.client.busiest()),
            record.client.lag_max,
            plain(&record.engine),
        ),
        format!(
            "Connections: {} established, requests on each on average: {}",
            grouped(record.connects),
            optional(per_connect),
        ),
        format!(
            "Bytes: {} read ({} bodies), {} a reply; {} written",
            Bytes(record.bytes.read),
            Bytes(record.bytes.body),
            Bytes(record.bytes.read / requests),
            Bytes(record.bytes.written),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata;

    #[test]
    fn a_clean_load_opens_with_its_rate() {
        let text = load_text(&testdata::load(), &Options::default());
        let second = text.lines().nth(1).unwrap();
        assert!(second.contains("requests/s over"), "{text}");
        assert!(!text.contains('\u{1b}') && !text.contains("NaN"), "{text}");
    }

    #[test]
    fn failures_and_a_busy_generator_come_before_any_rate() {
        let mut load = testdata::load();
        load.requests.failed = 3;
        load.requests.done += 3;
        load.errors.connect_refused = 3;
        load.client.threads[0].cpu = load.client.threads[0].wall;
        let text = load_text(&load, &Options::default());
        let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part} is not in\n{text}"));
        assert!(at("3 requests failed") < at("requests/s over"));
        assert!(at("the generator was the limit") < at(">= "));
        assert!(at("connection refused") < at("requests/s over"));
    }

    #[test]
    fn a_load_without_any_reply_says_so_and_prints_no_nonsense() {
        let mut load = testdata::load();
        load.requests =
            record::RequestCounts { started: 7, failed: 7, done: 7, ..Default::default() };
        load.errors.connect_refused = 7;
        load.status.clear();
        load.cpu_us_per_request = None;
        (load.rate_per_s, load.connects) = (0.0, 0);
        let none = LatencyMillis::default();
        (load.connect_ms, load.first_byte_ms) = (none, none);
        (load.service_ms, load.response_ms) = (none, none);
        let text = load_text(&load, &Options { width: 80, ..Options::default() });
        assert!(text.lines().nth(1).unwrap().contains("no request succeeded"), "{text}");
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
}
