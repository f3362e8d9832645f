//! Owns what a reader of one load must know before he reads a number: each a sentence with its
//! figures. Must not know layout. Start reading at [`warnings`].

pub(crate) use record::GENERATOR_BUSY;
use record::{GeneratorLimit, LoadPlan, LoadRecord};

use crate::figures::{counted, grouped, listed, percent, significant};
use crate::outcome_words::{failures, outcome_words};
use crate::standing::span;
use crate::wording::plain;

/// Connections made over connections asked for above which they were not kept, and requests for each
/// reconnect from which on it is of no interest; as the doctor has them for a run.
const CONNECTS_MAX: f64 = 1.05;
const REQUESTS_PER_RECONNECT_MAX: u64 = 10_000;

/// A rate was missed for want of connections where one could not be made for each so many of the
/// requests that are missing: each is waited for before it is tried again, while others queue.
const UNCONNECTED_MIN: u64 = 10;

/// Hex digits that tell two bodies apart for a reader.
const DIGITS: usize = 12;

/// What spoils the figures of a load, worst first.
pub fn warnings(record: &LoadRecord) -> Vec<String> {
    let looks = [
        interrupted,
        generator_limit,
        rate_missed,
        failed,
        bodies_differ,
        tls_failed,
        proxy_failed,
        redirected,
        silent,
        unanswered,
        reconnected,
        bare_lf,
        smaller,
    ];
    looks.iter().filter_map(|look| look(record)).collect()
}

fn interrupted(record: &LoadRecord) -> Option<String> {
    record.interrupted.then(|| "incomplete: the load was interrupted".to_owned())
}

fn failed(record: &LoadRecord) -> Option<String> {
    let requests = record.requests;
    if requests.ok == 0 {
        return Some(format!(
            "no request succeeded, of {} started: there is nothing to measure",
            grouped(requests.started)
        ));
    }
    let kinds: Vec<String> = failures(record)
        .map(|(outcome, count)| format!("{} {}", grouped(count), outcome_words(outcome)))
        .collect();
    (requests.failed > 0).then(|| {
        format!(
            "{} failed ({}): {}; rates and latencies below are without them",
            counted(requests.failed, "request"),
            percent(requests.failed, requests.done),
            listed(&kinds)
        )
    })
}

/// The counts say how often TLS failed; the first failure says why.
fn tls_failed(record: &LoadRecord) -> Option<String> {
    let why = record.tls.as_ref()?.failure.as_ref()?;
    Some(format!("TLS failed: {}", plain(why)))
}

/// The same, of a proxy.
fn proxy_failed(record: &LoadRecord) -> Option<String> {
    let (why, proxy) = (record.proxy_failure.as_ref()?, record.plan.proxy.as_ref()?);
    Some(format!("the proxy {} {}", plain(&proxy.host), plain(why)))
}

/// A redirect is a quick reply without the page: it is easily taken for a fast server.
fn redirected(record: &LoadRecord) -> Option<String> {
    let count = record.redirected();
    let first = record.redirects.first.as_ref()?;
    // Who expects nothing but redirects knows.
    if count == 0 || record.plan.follow > 0 || record.plan.verify.status_min >= 300 {
        return None;
    }
    let (were, them) = if count == 1 {
        ("reply was a redirect", "it")
    } else {
        ("replies were redirects", "them")
    };
    Some(format!(
        "{} {were} ({} to {}); --follow 5 follows {them}",
        grouped(count),
        first.status,
        plain(&first.location),
    ))
}

fn silent(record: &LoadRecord) -> Option<String> {
    record.silence_at_end().map(|silence| {
        format!(
            "no request succeeded in the last {silence} of {} s: the server crashed or hung, and the \
             rate includes that time",
            significant(record.seconds)
        )
    })
}

/// They are the slowest of all, and missing in every quantile.
fn unanswered(record: &LoadRecord) -> Option<String> {
    let requests = record.requests;
    (requests.unanswered > 0 && requests.ok > 0).then(|| {
        let were = if requests.unanswered == 1 { "was" } else { "were" };
        format!(
            "{} {were} still without a reply {} after the end: they are the slowest, and not in the \
             latencies below",
            counted(requests.unanswered, "request"),
            record.plan.drain,
        )
    })
}

/// A connection that was lost with its request is told among the failures.
fn reconnected(record: &LoadRecord) -> Option<String> {
    let asked = u64::from(record.connections);
    let kept = record.connects.saturating_sub(record.requests.failed);
    let again = kept.saturating_sub(asked);
    let few = kept as f64 <= CONNECTS_MAX * asked as f64
        || again.saturating_mul(REQUESTS_PER_RECONNECT_MAX) < record.requests.done;
    let plan = &record.plan;
    let why = match plan.origins.len() {
        _ if record.redirects.followed > 0 => {
            "the server did not keep connections, or redirects led to another one".to_owned()
        }
        0 | 1 if plan.expect_continue => "connections were not kept".to_owned(),
        0 | 1 => "the server did not keep connections".to_owned(),
        n => format!("connections changed between {n} origins"),
    };
    // A merged record has its parts say it: they may have used their connections one after the other.
    let is_merged = !record.parts.is_empty();
    (plan.keeps_connections() && !few && !is_merged).then(|| {
        format!(
            "{why}: {} were opened where {} were requested, and the rate and response times include reconnecting",
            grouped(record.connects),
            grouped(asked),
        )
    })
}

/// Replies that were not hashed count as good, whatever they sent.
fn bodies_differ(record: &LoadRecord) -> Option<String> {
    let bodies = &record.bodies_verified;
    let first = bodies.first.as_ref().filter(|_| bodies.differ > 0)?;
    let digits = |sha256: &str| plain(sha256.get(..DIGITS).unwrap_or(sha256));
    Some(format!(
        "{} of {} verified bodies differ from the one before the load; the first came {} into the load \
         ({}): SHA-256 {} instead of {}. Bodies that were not verified count as ok",
        grouped(bodies.differ),
        grouped(bodies.verified),
        first.at,
        plain(&first.request),
        digits(&first.got),
        digits(&first.expected),
    ))
}

/// The figures stand; a server under test wants to know.
fn bare_lf(record: &LoadRecord) -> Option<String> {
    (record.bare_lf_replies > 0).then(|| {
        format!(
            "replies end lines with a bare LF ({}): RFC 9112 (2.2) requires CRLF, and a strict client \
             or proxy refuses such a reply",
            counted(record.bare_lf_replies, "head")
        )
    })
}

/// Whether the generator itself was the limit of a load: by what, what that spoils, and the way out.
pub fn generator_limit(record: &LoadRecord) -> Option<String> {
    let limits = record.generator_limits();
    let first = *limits.first()?;
    let causes: Vec<String> = limits.into_iter().map(cause).collect();
    let so = match (record.open_loop, record.rate_missed()) {
        (None, _) => "the rate is a lower bound",
        (Some(_), Some(_)) => "the server got no more requests than that",
        (Some(_), None) => "latencies include the generator's own delay",
    };
    Some(format!(
        "the generator was the limit: {}, so {so}; {}",
        listed(&causes),
        remedy(first, &record.plan)
    ))
}

fn cause(limit: GeneratorLimit) -> String {
    match limit {
        GeneratorLimit::Files { n_requests } => {
            format!("{} found no file descriptor", counted(n_requests, "request"))
        }
        GeneratorLimit::Ports { n_requests } => {
            format!("{} found no local port", counted(n_requests, "request"))
        }
        GeneratorLimit::Busy { share } => {
            format!("its busiest thread used {} % of its CPU", significant(100.0 * share))
        }
        GeneratorLimit::Late { quantile, late_ms, response_ms } => format!(
            "it was late by {} of a response time of {} (p{})",
            span(late_ms),
            span(response_ms),
            100.0 * quantile
        ),
    }
}

fn remedy(limit: GeneratorLimit, plan: &LoadPlan) -> &'static str {
    match limit {
        GeneratorLimit::Files { .. } => "raise `ulimit -n`, or use fewer connections (-c)",
        GeneratorLimit::Ports { .. } => {
            "keep connections, give it several source addresses (--source), or widen \
             net.ipv4.ip_local_port_range"
        }
        GeneratorLimit::Busy { .. } => "give it more threads (-t) or CPUs (--cpus)",
        GeneratorLimit::Late { .. } if plan.busy_poll => {
            "give it CPUs that nothing else uses (--cpus)"
        }
        GeneratorLimit::Late { .. } => {
            "give it CPUs that nothing else uses (--cpus), and let it spin (--busy-poll)"
        }
    }
}

/// Whether a rate that was asked for was not reached, and by how much.
pub fn rate_missed(record: &LoadRecord) -> Option<String> {
    let missed = record.rate_missed()?;
    let errors = &record.errors;
    let unconnected = errors.connect_refused
        + errors.connect_failed
        + errors.connect_timeout
        + errors.tls_timeout;
    let why = if is_generator_limit(record) {
        "the generator could not".to_owned()
    } else if record.silence_at_end().is_some() {
        "the server crashed or hung".to_owned()
    } else if unconnected.saturating_mul(UNCONNECTED_MIN) >= missed.due - missed.begun {
        format!(
            "{} could not connect, and others waited for a connection: check that the server is up all \
             the time and its backlog is long enough",
            counted(unconnected, "request")
        )
    } else {
        "all connections were busy: use more of them (-c) or a lower rate, unless the server is at its limit"
            .to_owned()
    };
    let on_time =
        if record.open_loop.is_some_and(|open| open.overdue > 0) { " on time" } else { "" };
    let dropped = if missed.dropped > 0 {
        format!(", {} dropped because the queue was full", grouped(missed.dropped))
    } else {
        String::new()
    };
    Some(format!(
        "target rate not reached: started{on_time} {} of {} ({}){dropped}; {why}",
        grouped(missed.begun),
        counted(missed.due, "scheduled request"),
        percent(missed.begun, missed.due),
    ))
}

/// Whether rate or latencies are the generator's.
pub(crate) fn is_generator_limit(record: &LoadRecord) -> bool {
    !record.generator_limits().is_empty()
}

/// An open loop opens no more connections than it needs.
fn smaller(record: &LoadRecord) -> Option<String> {
    let (open, asked) = (record.client.connections_open_max, record.connections);
    let is_closed = record.open_loop.is_none();
    (is_closed && open < asked && record.requests.started > 0).then(|| {
        format!(
            "at most {open} of {asked} connections were open at once: the load was smaller than requested"
        )
    })
}

#[cfg(test)]
mod tests {
    use record::{Interval, OpenLoop};

    use units::Nanos;

    use super::*;
    use crate::testdata;

    #[test]
    fn a_clean_load_has_no_warning() {
        assert_eq!(warnings(&testdata::load()), Vec::<String>::new());
    }

    /// Three seconds of load, in which the server was dead after so many intervals of 100 ms.
    fn dead_after(n_intervals: u64) -> LoadRecord {
        let mut load = testdata::load();
        load.seconds = 3.0;
        let interval = |n: u64| {
            let start = Nanos::from_millis(100 * n);
            let mut interval = Interval::new(start, Nanos::from_millis(100));
            interval.ok = if n < n_intervals { 5000 } else { 0 };
            interval
        };
        load.intervals = (0..30).map(interval).collect();
        (load.requests.failed, load.errors.connect_refused) = (40, 40);
        load.requests.done += 40;
        load
    }

    #[test]
    fn a_server_that_died_is_told_by_its_silence_not_by_the_share_of_failures() {
        let text = warnings(&dead_after(10)).join("\n");
        assert!(text.contains("no request succeeded in the last 2s of 3.00 s"), "{text}");
        for n_intervals in [29, 30] {
            assert_eq!(silent(&dead_after(n_intervals)), None);
        }
    }

    #[test]
    fn why_tls_failed_is_told_once() {
        let mut load = testdata::load();
        let failure = Some("the server's certificate expired 3 days ago".to_owned());
        load.tls = Some(record::TlsUse { failure, ..Default::default() });
        assert!(warnings(&load).iter().any(|line| line.contains("expired 3 days ago")));
    }

    #[test]
    fn replies_with_a_bare_lf_are_counted_in_one_warning() {
        let mut record = testdata::load();
        record.bare_lf_replies = 1200;
        assert_eq!(
            warnings(&record),
            ["replies end lines with a bare LF (1,200 heads): RFC 9112 (2.2) requires CRLF, and \
              a strict client or proxy refuses such a reply"]
        );
    }

    /// Two loads of two and three connections, each of which kept all of its own.
    #[test]
    fn loads_that_ran_one_after_the_other_did_not_connect_again() {
        let mut record = testdata::load();
        (record.connections, record.connects, record.requests.done) = (3, 5, 200);
        assert!(warnings(&record)[0].contains("5 were opened where 3 were requested"));
        record.parts = vec![record::LoadPart {
            name: "a.json".to_owned(),
            began_unix_ms: Some(7),
            start: Nanos::ZERO,
            seconds: 1.0,
            started: 200,
            ok: 200,
            rate_per_s: 200.0,
            findings: Vec::new(),
        }];
        assert_eq!(warnings(&record), Vec::<String>::new());
    }

    #[test]
    fn slow_replies_without_a_failure_are_no_silence() {
        let mut load = dead_after(10);
        (load.requests.failed, load.errors.connect_refused) = (0, 0);
        assert_eq!(silent(&load), None);
    }

    #[test]
    fn what_was_never_answered_is_said_before_any_latency() {
        let mut load = testdata::load();
        load.requests.unanswered = 54;
        load.requests.started += 54;
        let text = warnings(&load).join("\n");
        assert!(text.contains("54 requests were still without a reply"), "{text}");
    }

    #[test]
    fn connections_that_were_not_kept_are_told_unless_that_was_the_plan() {
        let mut load = testdata::load();
        load.connects = load.requests.done;
        assert!(warnings(&load)[0].contains("did not keep connections"));
        let other = load.plan.origin().clone();
        load.plan.origins.push(other);
        let text = warnings(&load)[0].clone();
        assert!(text.contains("changed between 2 origins"), "not the server's doing: {text}");
        load.plan.keep_alive = false;
        assert_eq!(warnings(&load), Vec::<String>::new());
        load.plan.keep_alive = true;
        load.plan.requests[0].headers.push(("Connection".to_owned(), "close".to_owned()));
        assert_eq!(warnings(&load), Vec::<String>::new(), "the plan's own field asked for it");
        assert!(crate::load_shape::shape(&load).contains("one request per connection"));
    }

    #[test]
    fn a_generator_at_its_limit_names_cause_consequence_and_way_out() {
        let mut load = testdata::load();
        assert_eq!(generator_limit(&load), None);
        load.client.threads[0].cpu = load.client.threads[0].wall;
        let text = generator_limit(&load).unwrap();
        assert_eq!(
            text,
            "the generator was the limit: its busiest thread used 100 % of its CPU, so the rate is a \
             lower bound; give it more threads (-t) or CPUs (--cpus)"
        );
        load.open_loop = Some(OpenLoop::default());
        load.errors.port_exhausted = 2;
        let text = generator_limit(&load).unwrap();
        for part in
            ["2 requests found no local port and its", "the generator's own delay", "--source"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn an_asked_rate_that_was_not_reached_is_told_with_its_cause() {
        let mut load = testdata::load();
        assert_eq!(rate_missed(&load), None);
        let started = load.requests.started;
        load.open_loop = Some(OpenLoop { due: started, ..OpenLoop::default() });
        assert_eq!(rate_missed(&load), None);
        load.open_loop = Some(OpenLoop { due: 2 * started, left: started, ..OpenLoop::default() });
        let text = rate_missed(&load).unwrap();
        assert!(text.contains("50.0 %") && text.contains("more of them (-c)"), "{text}");
        load.client.threads[0].cpu = load.client.threads[0].wall;
        assert!(rate_missed(&load).unwrap().ends_with("the generator could not"));
    }

    #[test]
    fn a_rate_that_was_missed_is_put_down_to_what_was_seen() {
        let open = |load: LoadRecord, overdue| {
            let due = 2 * load.requests.started;
            let open = OpenLoop { due, left: due / 2, overdue, ..OpenLoop::default() };
            rate_missed(&LoadRecord { open_loop: Some(open), ..load }).unwrap()
        };
        let gone = open(dead_after(10), 0);
        assert!(gone.ends_with("the server crashed or hung"), "{gone}");
        let mut refusing = dead_after(30);
        assert!(open(refusing.clone(), 0).contains("all connections were busy"), "a few of many");
        refusing.errors.connect_refused = refusing.requests.started / 5;
        assert!(open(refusing, 0).contains("requests could not connect"));
        let late = open(testdata::load(), testdata::load().requests.started);
        assert!(late.contains("started on time") && late.contains("(50.0 %)"), "{late}");
    }

    #[test]
    fn connections_that_an_open_loop_did_not_need_are_no_matter() {
        let mut load = testdata::load();
        load.client.connections_open_max = 3;
        assert!(smaller(&load).is_some());
        load.open_loop = Some(OpenLoop::default());
        assert_eq!(smaller(&load), None);
    }
}
