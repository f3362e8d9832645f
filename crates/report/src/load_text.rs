//! The terminal report of one load on one server. Owns its layout. What spoils the figures
//! ([`crate::load_findings`]) comes before any of them. Start reading at [`load_text`].

use record::{Judgement, LatencyMillis, LoadRecord, OpenLoop, TlsUse};
use units::Bytes;

use crate::Options;
use crate::figures::{NONE, counted, grouped, listed, optional, significant};
use crate::load_findings::{self, is_rate_bound};
use crate::load_shape::shape;
use crate::load_tables::{by_request, distribution, merged_from, replies, share};
use crate::outcome_words::{failures, outcome_words};
use crate::standing::span;
use crate::terminal::{Lean, Page, Paint};
use crate::wording::plain;

/// What a load measured, for a terminal; ends in a newline.
pub fn load_text(record: &LoadRecord, options: &Options) -> String {
    let mut page = Page::new(options);
    let url = plain(&record.plan.url);
    page.heading(&format!("joust load: {url}"), "");
    let has_findings = load_findings::show(&mut page, record);
    let judged: Vec<Judgement> = record.plan.goals.iter().map(|goal| goal.judge(record)).collect();
    let (met, broken): (Vec<&Judgement>, _) = judged.iter().partition(|judged| judged.is_met());
    for judged in &broken {
        page.paragraph(&judgement(judged), Paint::Alarm);
    }
    let is_clean = !has_findings && broken.is_empty();
    page.paragraph(&rate(record), if is_clean { Paint::Good } else { Paint::Caution });
    for judged in &met {
        page.paragraph(&judgement(judged), Paint::Good);
    }
    page.paragraph(&shape(record), Paint::Faint);
    merged_from(&mut page, record);
    outcomes(&mut page, record);
    latencies(&mut page, record, options);
    for table in [distribution(record, options), by_request(record)].into_iter().flatten() {
        page.described(&table);
    }
    page.heading("Cost", "");
    for line in cost(record) {
        page.paragraph(&line, Paint::Plain);
    }
    page.finish()
}

/// A goal with what was measured, and whether it was met.
pub(crate) fn judgement(judged: &Judgement) -> String {
    let verdict = match judged.met {
        Some(true) => "met",
        Some(false) => "MISSED",
        None => "UNDECIDED",
    };
    format!("goal {} {verdict}: {}", judged.goal, plain(&judged.text))
}

/// The rate with its total; in an open loop, beside the requested rate.
pub(crate) fn rate(record: &LoadRecord) -> String {
    let asked = record.open_loop.map_or_else(String::new, |open| {
        format!(" of a target of {}", significant(open.asked_per_s))
    });
    format!(
        "{}{} requests/s{asked} over {} s: {} ok of {} started",
        if is_rate_bound(record) { ">= " } else { "" },
        significant(record.rate_per_s),
        significant(record.rate_seconds()),
        grouped(record.requests.ok),
        grouped(record.requests.started),
    )
}

/// Requests by outcome; kinds that did not occur have no row.
fn outcomes(page: &mut Page, record: &LoadRecord) {
    page.heading("Requests", &replies(record));
    let columns = [("outcome", Lean::Left), ("requests", Lean::Right), ("share", Lean::Right)];
    page.table(&columns, &outcome_rows(record));
}

/// How the requests ended, with their shares of those that were started; if they ended in several ways, the sum too.
/// What follows the sum is not part of it, or is part of a row above.
pub(crate) fn outcome_rows(record: &LoadRecord) -> Vec<Vec<String>> {
    let requests = record.requests;
    let ok = std::iter::once(("ok", requests.ok));
    let failed = failures(record).map(|(outcome, count)| (outcome_words(outcome), count));
    let unanswered = std::iter::once(("unanswered when the load ended", requests.unanswered));
    let parts = ok.chain(failed.chain(unanswered).filter(|(_, count)| *count > 0));
    let row = |(what, count): (&str, u64)| {
        vec![what.to_owned(), grouped(count), share(count, requests.started)]
    };
    let mut rows: Vec<Vec<String>> = parts.map(row).collect();
    if rows.len() > 1 {
        rows.push(row(("all that were started", requests.started)));
    }
    let open = record.open_loop.unwrap_or_default();
    let beside = [
        (open.dropped, "due, dropped because the queue was full"),
        (open.left, "due, still waiting for a connection at the end"),
        (requests.drained, "of those done, after the window (not in the rate)"),
        (requests.retried, "of those started, retried after a keep-alive connection was closed"),
    ];
    let beside = beside.into_iter().filter(|(count, _)| *count > 0);
    rows.extend(beside.map(|(count, what)| vec![what.to_owned(), grouped(count), String::new()]));
    rows
}

/// A figure of a summary.
pub(crate) type Reading = fn(&LatencyMillis) -> Option<f64>;

/// Figures of a latency, as columns: how each is read, and whether a narrow terminal also shows it.
pub(crate) const FIGURES: [(&str, Reading, bool); 8] = [
    ("mean", |l| l.mean, true),
    ("sd", |l| l.sd, false),
    ("min", |l| l.min, false),
    ("p50", |l| l.p50, true),
    ("p90", |l| l.p90, false),
    ("p99", |l| l.p99, true),
    ("p99.9", |l| l.p999, true),
    ("max", |l| l.max, true),
];

/// Columns of a terminal from which all figures stand side by side unbroken.
const WIDTH_OF_ALL: usize = 80;

/// What must be known to read latencies.
pub(crate) const LATENCY_REMARK: &str = "of ok requests; service: sent to done; queue: due to sent; \
                                        response: due to done; - marks too few samples";

/// The parts of a request that were timed.
pub(crate) fn phases(record: &LoadRecord) -> impl Iterator<Item = (&'static str, &LatencyMillis)> {
    let phases = [
        ("connect", &record.connect_ms),
        ("TLS full", &record.handshake_full_ms),
        ("TLS resumed", &record.handshake_resumed_ms),
        ("first byte", &record.first_byte_ms),
        ("service", &record.service_ms),
        ("queue", &record.queue_ms),
        ("response", &record.response_ms),
        ("failed", &record.failed_ms),
    ];
    phases.into_iter().filter(|(_, summary)| **summary != LatencyMillis::default())
}

fn latencies(page: &mut Page, record: &LoadRecord, options: &Options) {
    page.heading("Latency", LATENCY_REMARK);
    let figures: Vec<_> = FIGURES
        .iter()
        .filter(|(.., is_always)| *is_always || options.width >= WIDTH_OF_ALL)
        .collect();
    let titles = figures.iter().map(|(title, ..)| (*title, Lean::Right));
    let columns: Vec<_> = std::iter::once(("phase", Lean::Left)).chain(titles).collect();
    let rows: Vec<Vec<String>> = phases(record)
        .map(|(phase, summary)| {
            let shown = figures.iter().map(|(_, of, _)| of(summary));
            let shown = shown.map(|millis| millis.map_or_else(|| NONE.to_owned(), span));
            std::iter::once(phase.to_owned()).chain(shown).collect()
        })
        .collect();
    if rows.is_empty() {
        page.paragraph("nothing was timed", Paint::Plain);
    } else {
        page.table(&columns, &rows);
    }
}

pub(crate) fn cost(record: &LoadRecord) -> Vec<String> {
    let requests = record.requests.done.max(1);
    let lines = [
        Some(generator(record)),
        record.open_loop.as_ref().map(schedule),
        Some(connections(record)),
        record.tls.as_ref().map(tls),
        (record.plan.follow > 0).then(|| redirects(record)),
        Some(format!(
            "Bytes: {} read ({} bodies), {} per reply; {} written",
            Bytes(record.bytes.read),
            Bytes(record.bytes.body),
            Bytes(record.bytes.read / requests),
            Bytes(record.bytes.written),
        )),
        (record.probes > 0).then(|| {
            format!(
                "Before the load: {} to check the answer, not in any figure",
                counted(record.probes, "request")
            )
        }),
    ];
    lines.into_iter().flatten().collect()
}

/// Threads of the generator that are shown one by one, the busiest first.
const THREADS_SHOWN_MAX: usize = 8;

fn generator(record: &LoadRecord) -> String {
    let mut busy: Vec<f64> = record.client.threads.iter().map(record::ThreadUse::busy).collect();
    busy.sort_by(|a, b| b.total_cmp(a));
    let shown: Vec<String> = busy
        .iter()
        .take(THREADS_SHOWN_MAX)
        .map(|share| format!("{} %", significant(100.0 * share)))
        .collect();
    let of = match busy.len() {
        1 => "its thread".to_owned(),
        n if n > THREADS_SHOWN_MAX => format!("the {THREADS_SHOWN_MAX} busiest of {n} threads"),
        n => format!("its {n} threads"),
    };
    let busy = if shown.is_empty() { NONE.to_owned() } else { listed(&shown) };
    format!(
        "Generator: {} us of CPU time per request; CPU of {of}: {busy}; wake-up to last reply: at most {}",
        optional(record.cpu_us_per_request),
        record.client.lag_max,
    )
}

fn schedule(open: &OpenLoop) -> String {
    let late = open.late_ms;
    let shown = |millis: Option<f64>| millis.map_or_else(|| NONE.to_owned(), span);
    format!(
        "Schedule: target {}/s, started {}/s; the generator sent late by {} (median), {} (p99), {} at \
         most; longest queue: {}",
        significant(open.asked_per_s),
        significant(open.begun_per_s),
        shown(late.p50),
        shown(late.p99),
        shown(late.max),
        grouped(open.queue_max),
    )
}

fn connections(record: &LoadRecord) -> String {
    let per_connect =
        (record.connects > 0).then(|| record.requests.started as f64 / record.connects as f64);
    let refused = [
        (record.errors.port_exhausted, "no local port was free"),
        (record.errors.fd_exhausted, "no file descriptor was free"),
    ];
    let refused: String = refused
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, why)| format!("; {} refused {why}", grouped(count)))
        .collect();
    format!(
        "Connections: {} requested, at most {} open at once, {} established, requests per connection: \
         {}{refused}",
        grouped(record.connections.into()),
        grouped(record.client.connections_open_max.into()),
        grouped(record.connects),
        optional(per_connect),
    )
}

fn redirects(record: &LoadRecord) -> String {
    let followed = record.redirects.followed;
    format!(
        "Redirects: {} followed, {} per request; a request counts once, from its first send to its \
         last reply",
        grouped(followed),
        significant(followed as f64 / record.requests.done.max(1) as f64),
    )
}

fn tls(tls: &TlsUse) -> String {
    if tls.full + tls.resumed == 0 {
        return "TLS: no handshake was complete".to_owned();
    }
    let alpn = if tls.alpn.is_empty() { "no ALPN".to_owned() } else { plain(&tls.alpn) };
    format!(
        "TLS: {}, {}, {alpn}; handshakes: {} full, {} resumed",
        plain(&tls.version),
        plain(&tls.cipher_suite),
        grouped(tls.full),
        grouped(tls.resumed),
    )
}

#[cfg(test)]
mod tests {
    use record::Severity;

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
        load.findings = vec![
            crate::load_findings::finding_of_load(
                "generator_limit",
                Severity::Bound,
                "its thread was busy",
            ),
            crate::load_findings::finding_of_load(
                "errors_as_speed",
                Severity::Void,
                "3 of 9 were refused",
            ),
        ];
        let text = load_text(&load, &Options::default());
        let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part} is not in\n{text}"));
        assert!(at("3 of 9 were refused") < at("its thread was busy"));
        assert!(at("its thread was busy") < at(">= ") && at("Remedy: mend it") < at(">= "));
        assert!(at(">= ") < at("requests/s over"));
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
        let seen = "7 of 7 requests failed (100 %): 7 refused; no request succeeded";
        load.findings = vec![crate::load_findings::finding_of_load("errors", Severity::Void, seen)];
        let text = load_text(&load, &Options { width: 80, ..Options::default() });
        let before: String = text.split("requests/s").next().unwrap_or_default().to_owned();
        let before = before.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(before.contains("no request succeeded"), "{text}");
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    const WIDTHS: [usize; 5] = [40, 60, 80, 100, 200];

    /// A load with everything that a report may show.
    fn full() -> LoadRecord {
        let mut load = testdata::load();
        let some = load.service_ms;
        (load.connect_ms, load.queue_ms, load.failed_ms) = (some, some, some);
        (load.handshake_full_ms, load.handshake_resumed_ms) = (some, some);
        load.plan.pacing = record::Pacing::Poisson { rate: units::PerSecond(100_000.0) };
        let started = load.requests.started;
        load.open_loop = Some(OpenLoop {
            due: started + 5000,
            dropped: 1000,
            left: 4000,
            overdue: 0,
            queue_max: 5000,
            seconds: load.seconds,
            asked_per_s: 100_000.0,
            begun_per_s: 92_000.0,
            late_ms: some,
        });
        load.tls = Some(TlsUse {
            full: 32,
            resumed: 32,
            version: "TLS 1.3".to_owned(),
            cipher_suite: "TLS13_AES_256_GCM_SHA384".to_owned(),
            alpn: "http/1.1".to_owned(),
            ..TlsUse::default()
        });
        load.probes = 3;
        load.errors.port_exhausted = 7;
        (load.requests.failed, load.requests.done) = (7, load.requests.done + 7);
        load.plan.goals =
            record::parse_goals("p99<1us,errors<50%,connect.p99.99<1s").expect("goals");
        load
    }

    #[test]
    fn every_line_fits_and_no_figure_is_broken() {
        for width in WIDTHS {
            for load in [testdata::load(), full()] {
                let text = load_text(&load, &Options { width, ..Options::default() });
                assert!(text.lines().all(|line| line.chars().count() <= width), "{width}\n{text}");
                let rows = text.lines().filter(|line| line.trim_start().starts_with("service "));
                let figures = if width < WIDTH_OF_ALL { 5 } else { 8 };
                for row in rows {
                    assert_eq!(row.split_whitespace().count(), figures + 1, "{width}\n{text}");
                }
            }
        }
    }

    #[test]
    fn queue_stands_between_service_and_response_and_empty_rows_are_left_out() {
        let text = load_text(&full(), &Options::default());
        let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part} is not in\n{text}"));
        let rows = ["connect  ", "TLS full", "TLS resumed", "first byte", "service  ", "queue  "];
        assert!(rows.windows(2).all(|pair| at(pair[0]) < at(pair[1])), "{text}");
        assert!(at("queue  ") < at("response  "));
        for part in
            ["TLS13_AES_256_GCM_SHA384", "32 resumed", "longest queue: 5,000", "3 requests to"]
        {
            at(part);
        }
        let clean = load_text(&testdata::load(), &Options::default());
        assert!(!clean.contains("TLS") && !clean.contains("queue  "), "{clean}");
    }

    #[test]
    fn broken_goals_come_before_the_rate_and_met_ones_after_it() {
        let text = load_text(&full(), &Options { width: 200, ..Options::default() });
        let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part} is not in\n{text}"));
        assert!(at("goal p99<1us MISSED: p99 of response") < at("requests/s of"));
        assert!(at("goal connect.p99.99<1s UNDECIDED") < at("requests/s of"));
        assert!(
            at("requests/s of a target of 100,000")
                < at("goal errors<50% met: the share of errors")
        );
    }

    #[test]
    fn what_spoils_the_figures_stands_in_the_first_line() {
        let mut load = full();
        let seen = "7 requests found no local port";
        load.findings = vec![crate::load_findings::finding_of_load("ports", Severity::Void, seen)];
        let text = load_text(&load, &Options { width: 200, ..Options::default() });
        let first = "ports (spoils the figures): 7 requests found no local port";
        assert!(text.lines().nth(1).unwrap().contains(first), "{text}");
    }
}
