//! Owns the check that what was measured are answers, not failures. Start reading at [`look`].
//!
//! An error page from memory and an immediate connection reset are the fastest answers, and
//! tools that count every reply (wrk, weighttp) print them as requests/s. joust's rate counts good
//! replies only, but a contender that sheds load still does less work than the others.
//!
//! The limit is that of RFC 9411: no more than 0.001 % of attempts may fail. A short study has
//! fewer than 100,000 requests of a contender, so a single reset exceeds it. Therefore failures count
//! only if chance does not explain their number. A reply of the wrong status, the
//! wrong length or no HTTP at all is the server's own answer and not bad luck on the way, so a
//! single one is enough.

use record::{Certainty, ErrorCounts, LoadRecord, Outcome, Question, Severity};

use super::Check;
use crate::{Evidence, Observation, words};

/// See the module.
pub(crate) const ITEM: Check = Check {
    name: "errors_as_speed",
    severity: Severity::Void,
    question: Question::DidItError,
    spares_like_pairs: false,
    title: "requests failed, and failing is fast",
    meaning: "a failed request costs the server less than a good one, so its speed is not that of the \
              requested work",
    remedy: "check the kinds of failure and the server's log; raise its limits (MaxRequestWorkers, \
             backlog, `ulimit -n`) or use fewer connections, and run again",
    detection: "Failed requests are counted by kind. It is confirmed where more than 0.001 % failed and \
             chance does not explain the number, or where a single reply was wrong",
    example: "`joust serve --fixed 3361 --fault status=503:5%`: an error from memory is faster than a page",
    source: "RFC 9411, section 4.3",
    needs: &[],
    look,
};

/// Share of failed requests above which a measurement is void (RFC 9411).
const FAILED_SHARE_MAX: f64 = 0.00001;
/// Standard deviations by which the number must exceed that share: it does so by chance once in 1,000 studies.
const BEYOND_CHANCE: f64 = 3.09;

fn look(evidence: &Evidence) -> Vec<Observation> {
    evidence.contenders().filter_map(|contender| look_at(evidence, contender)).collect()
}

fn look_at(evidence: &Evidence, contender: usize) -> Option<Observation> {
    let mut ok = 0;
    let mut errors = ErrorCounts::default();
    for (visit, load) in evidence.loads(contender) {
        for interval in load.intervals.iter().filter(|interval| interval.start >= visit.cut) {
            ok += interval.ok;
            errors.merge(&interval.errors);
        }
    }
    // A body that differs from the one before the load has a check of its own
    // (`bodies_change_under_load`): one cause, one finding.
    errors.wrong_body = 0;
    let (failed, all) = (errors.total(), ok + errors.total());
    let said = errors.unexpected_status + errors.wrong_length + errors.protocol;
    let is_nothing_good = ok == 0 && failed > 0;
    if said == 0 && !above_limit(failed, all) && !is_nothing_good {
        return None;
    }
    let kinds = errors.each().filter(|(_, count)| *count > 0);
    let kinds: Vec<String> =
        kinds.map(|(kind, n)| format!("{} {}", words::grouped(n), name(kind))).collect();
    let after = match is_nothing_good {
        true => "; no request succeeded, so there is nothing to measure",
        false => "; a tool that counts every reply would count them as throughput",
    };
    let evidence = format!(
        "{}: {} of {} failed ({}): {}{}{after}",
        evidence.name(contender),
        words::grouped(failed),
        words::count(all, "request"),
        words::percent(failed as f64 / all as f64),
        words::list(&kinds),
        reason(evidence, contender, &errors).map_or(String::new(), |why| format!(" ({why})")),
    );
    Some(Observation {
        share: Some(failed as f64 / all as f64),
        certainty: Certainty::Confirmed,
        contenders: vec![contender],
        evidence,
    })
}

/// Why the first connection failed that failed by TLS or the proxy: the counts say only how often.
fn reason(evidence: &Evidence, contender: usize, errors: &ErrorCounts) -> Option<String> {
    let loads = || evidence.loads(contender).map(|(_, load)| load);
    let tls = || {
        let why = loads().find_map(|load| load.tls.as_ref()?.failure.as_ref())?;
        Some(format!("TLS failed first because {why}"))
    };
    let proxy = || {
        let of = |load: &'_ LoadRecord| {
            Some(format!(
                "the proxy {} {}",
                load.plan.proxy.as_ref()?.host,
                load.proxy_failure.as_ref()?
            ))
        };
        loads().find_map(of)
    };
    match (errors.tls > 0, errors.proxy > 0) {
        (true, _) => tls(),
        (false, true) => proxy(),
        (false, false) => None,
    }
}

/// Whether more failed than the limit allows, chance aside. Twice the root of a Poisson count is about
/// normal with a standard deviation of 1, for small counts too (Anscombe 1948).
fn above_limit(failed: u64, all: u64) -> bool {
    let allowed = FAILED_SHARE_MAX * all as f64;
    2.0 * ((failed as f64).sqrt() - allowed.sqrt()) > BEYOND_CHANCE
}

/// A kind of failure, as in a sentence after its count.
fn name(kind: Outcome) -> &'static str {
    match kind {
        Outcome::Ok => "good",
        Outcome::UnexpectedStatus => "of unexpected status",
        Outcome::WrongLength => "of wrong length",
        Outcome::WrongHeader => "without a header field",
        Outcome::WrongBody => "of wrong content",
        Outcome::Protocol => "not HTTP",
        Outcome::TooManyRedirects => "redirected too often",
        Outcome::BadRedirect => "redirected to where no request can go",
        Outcome::ConnectRefused => "refused",
        Outcome::ConnectFailed => "not connected",
        Outcome::ConnectTimeout => "timed out connecting",
        Outcome::TlsTimeout => "timed out in the TLS handshake",
        Outcome::Proxy => "failed at the proxy",
        Outcome::Tls => "failed in TLS",
        Outcome::ResetBeforeFirstByte => "reset before the first byte",
        Outcome::ResetAfterFirstByte => "reset inside the reply",
        Outcome::ClosedBeforeFirstByte => "closed before the first byte",
        Outcome::ClosedAfterFirstByte => "closed inside the reply",
        Outcome::TimeoutWaiting => "timed out waiting",
        Outcome::TimeoutReading => "timed out reading",
        Outcome::FdExhausted => "without a file descriptor",
        Outcome::PortExhausted => "without a local port",
        Outcome::Unanswered => "unanswered",
    }
}

#[cfg(test)]
mod tests {
    use record::RunRecord;

    use super::*;
    use crate::testdata;

    /// Plants failures in the last interval of the last visit of contender 1.
    fn planted(errors: ErrorCounts) -> RunRecord {
        let mut run = testdata::run(&["a", "b"], 8);
        let visit = run.visits.iter_mut().rfind(|visit| visit.contender == 1).unwrap();
        visit.load.as_mut().unwrap().intervals.last_mut().unwrap().errors = errors;
        run
    }

    #[test]
    fn a_run_without_failures_is_silent() {
        assert_eq!(look(&Evidence::of(&testdata::run(&["a", "b"], 8))), []);
    }

    #[test]
    fn many_failures_fire_with_their_kinds() {
        let errors =
            ErrorCounts { unexpected_status: 4000, timeout_waiting: 12, ..Default::default() };
        let seen = look(&Evidence::of(&planted(errors)));
        assert_eq!(seen.len(), 1);
        assert_eq!(seen[0].contenders, [1]);
        assert_eq!(seen[0].certainty, Certainty::Confirmed);
        let kinds = ": 4,000 of unexpected status and 12 timed out waiting;";
        assert!(seen[0].evidence.contains(kinds), "{}", seen[0].evidence);
    }

    #[test]
    fn bodies_that_differ_are_left_to_their_own_check() {
        let errors = ErrorCounts { wrong_body: 4000, ..Default::default() };
        assert_eq!(look(&Evidence::of(&planted(errors))), []);
    }

    #[test]
    fn a_single_wrong_reply_is_enough_but_a_single_reset_is_not() {
        let wrong = ErrorCounts { wrong_length: 1, ..Default::default() };
        assert_eq!(look(&Evidence::of(&planted(wrong))).len(), 1);
        let reset = ErrorCounts { reset_before_first_byte: 1, ..Default::default() };
        assert_eq!(look(&Evidence::of(&planted(reset))), []);
    }

    #[test]
    fn the_limit_of_the_rfc_holds_as_soon_as_chance_is_left_out() {
        // Of a few requests, a few failures; of many, hardly more than the share itself.
        let cases = [
            (2, 40_000, false),
            (5, 40_000, true),
            (10, 1_000_000, false),
            (24, 1_000_000, true),
            (10_000, 1_000_000_000, false),
            (10_400, 1_000_000_000, true),
            (0, 0, false),
        ];
        for (failed, all, above) in cases {
            assert_eq!(above_limit(failed, all), above, "{failed} of {all}");
        }
    }

    #[test]
    fn failures_before_the_cut_are_not_measured() {
        let mut run = testdata::run(&["a", "b"], 8);
        let load = run.visits[0].load.as_mut().unwrap();
        load.intervals[0].errors = ErrorCounts { unexpected_status: 9, ..Default::default() };
        assert_eq!(look(&Evidence::of(&run)), []);
    }

    #[test]
    fn a_contender_that_only_fails_fires() {
        let mut run = testdata::run(&["a", "b"], 2);
        for interval in run.visits.iter_mut().flat_map(|v| &mut v.load.as_mut().unwrap().intervals)
        {
            interval.ok = 0;
            interval.errors = ErrorCounts { connect_refused: 10, ..Default::default() };
        }
        let seen = look(&Evidence::of(&run));
        assert_eq!(seen.len(), 2);
        assert!(seen[0].evidence.contains("(100 %)"), "{}", seen[0].evidence);
        assert!(seen[0].evidence.contains("no request succeeded"), "{}", seen[0].evidence);
    }

    #[test]
    fn a_single_request_that_failed_is_all_there_is() {
        let mut run = testdata::run(&["a"], 1);
        let load = run.visits[0].load.as_mut().unwrap();
        load.intervals.iter_mut().for_each(|interval| interval.ok = 0);
        load.intervals[3].errors.connect_refused = 1;
        assert_eq!(look(&Evidence::of(&run)).len(), 1);
    }

    #[test]
    fn why_tls_or_the_proxy_failed_is_told() {
        let mut run = planted(ErrorCounts { tls: 40, proxy: 40, ..Default::default() });
        let proxy = record::Proxy {
            addr: ([127, 0, 0, 1], 3128).into(),
            host: "proxy.example:3128".to_owned(),
            authorization: None,
        };
        let load = run.visits.iter_mut().rfind(|visit| visit.contender == 1).unwrap();
        let load = load.load.as_mut().unwrap();
        load.plan.proxy = Some(proxy);
        load.proxy_failure = Some("refused CONNECT".to_owned());
        let said = look(&Evidence::of(&run))[0].evidence.clone();
        assert!(!said.contains("because"), "nothing is known of TLS: {said}");
        let load = run.visits.iter_mut().rfind(|visit| visit.contender == 1).unwrap();
        let load = load.load.as_mut().unwrap();
        let failure = Some("the server's certificate expired 3 days ago".to_owned());
        load.tls = Some(record::TlsUse { failure, ..Default::default() });
        let said = look(&Evidence::of(&run))[0].evidence.clone();
        assert!(said.contains("certificate expired 3 days ago"), "{said}");
        for interval in run.visits.iter_mut().flat_map(|v| &mut v.load.as_mut().unwrap().intervals)
        {
            interval.errors.tls = 0;
        }
        let said = look(&Evidence::of(&run))[0].evidence.clone();
        assert!(said.contains("(the proxy proxy.example:3128 refused CONNECT)"), "{said}");
    }
}
