//! Owns the check that servers kept connections where the study asks for keep-alive. Start reading at [`look`].
//!
//! A server that ends a connection after 100 requests (Apache's and Tomcat's default) or 1,000
//! (nginx) makes its client connect again: two more round trips, a new socket on both ends, and
//! TIME_WAIT. A server without a limit does not have that work, and requests/s do not show the difference.
//! Without keep-alive every request has its own connection by plan, so this check is silent.

use std::collections::BTreeMap;

use record::{Certainty, ConnectionEnds, Question, Severity};

use super::Check;
use crate::{Evidence, Observation, words};

/// See the module.
pub(crate) const ITEM: Check = Check {
    name: "keep_alive_not_honoured",
    severity: Severity::Void,
    question: Question::DoesItMatter,
    spares_like_pairs: true,
    title: "the server closed connections that should have been kept",
    meaning: "reconnecting is extra work that the other contenders did not have",
    remedy: "lift the limit for all contenders (Apache and joust: MaxKeepAliveRequests 0; nginx: \
             keepalive_requests 4294967295; lighttpd: server.max-keep-alive-requests = 65535, its \
             most), or compare without keep-alive ([workload] keep_alive = false; on the command line \
             --no-keepalive)",
    detection: "Connections made over connections asked for, above 1.05, and more than one reconnect in \
             10,000 requests. The limit is named where nine in ten of the connections that the server ended had \
             the same number of replies",
    example: "`joust serve --fixed 3361 --fault keepalive=10`, or Apache with its default \
             MaxKeepAliveRequests 100",
    source: "https://httpd.apache.org/docs/2.4/mod/core.html#maxkeepaliverequests; \
             https://nginx.org/en/docs/http/ngx_http_core_module.html#keepalive_requests",
    needs: &[],
    look,
};

/// Ratio of connections made to connections asked for, above which they were not kept: a few in a hundred
/// may be lost to a worker that ends.
const CONNECTS_MAX: f64 = 1.05;
/// Requests per reconnect from which on reconnects do not matter: a connect costs about as much as
/// a few requests, so one in 10,000 does not reach a thousandth of the rate. lighttpd can keep a
/// connection for 65,535 requests at most, which a long visit uses up.
const REQUESTS_PER_RECONNECT_MAX: u64 = 10_000;

/// Of the connections that the server ended, the part that must have had the same number of replies for this to be
/// a limit: some end for other reasons.
const SAME_MIN: f64 = 0.9;
/// Minimum number of connections that the server ended, for that to be told.
const ENDED_MIN: u64 = 5;

/// Servers with a limit of requests a connection, by how the `Server` field of their replies begins: what
/// lifts it, or that nothing does.
const KNOWN: [(&str, &str); 6] = [
    (OURS, "`MaxKeepAliveRequests = 0` lifts the limit"),
    ("Apache", "`MaxKeepAliveRequests 0` lifts the limit"),
    ("nginx", "`keepalive_requests 4294967295` lifts the limit"),
    ("openresty", "`keepalive_requests 4294967295` lifts the limit"),
    ("lighttpd", "`server.max-keep-alive-requests = 65535` is the most it takes"),
    ("SimpleHTTP", "Python's http.server speaks HTTP/1.0 and keeps none"),
];
/// Characters of a `Server` field that are shown.
const FIELD_MAX: usize = 60;
/// Our own server's `Server` field.
const OURS: &str = "joust";

/// A contender that closes connections early.
struct Closing {
    contender: usize,
    /// Requests after which it closes a connection.
    limit: u64,
    /// Whether what was asked for may be why.
    is_by_plan: bool,
    said: String,
}

fn look(evidence: &Evidence) -> Vec<Observation> {
    if !evidence.run.plan.cells[0].workload.keep_alive {
        return Vec::new();
    }
    // Contenders that close after the same number of requests did the same work, so one finding names them
    // all, and a pair of two of them stands.
    let mut by_limit: BTreeMap<u64, Vec<Closing>> = BTreeMap::new();
    for closing in evidence.contenders().filter_map(|contender| look_at(evidence, contender)) {
        by_limit.entry(closing.limit).or_default().push(closing);
    }
    let seen = |alike: Vec<Closing>| Observation {
        share: None,
        // Where the plan itself may be why, the number of connections is a pattern alone.
        certainty: match alike.iter().any(|one| one.is_by_plan) {
            true => Certainty::Suspected,
            false => Certainty::Confirmed,
        },
        contenders: alike.iter().map(|one| one.contender).collect(),
        evidence: alike.into_iter().map(|one| one.said).collect::<Vec<_>>().join(". "),
    };
    by_limit.into_values().map(seen).collect()
}

fn look_at(evidence: &Evidence, contender: usize) -> Option<Closing> {
    let (mut asked, mut made, mut requests) = (0, 0, 0);
    let (mut origins, mut has_followed) = (1, false);
    // In a merged load the parts may have used their connections one after the other.
    for (_, load) in evidence.loads(contender).filter(|(_, load)| load.parts.is_empty()) {
        asked += u64::from(load.connections);
        // One that was lost with its request is counted among the failures.
        made += load.connects.saturating_sub(load.requests.failed);
        requests += load.requests.done;
        origins = origins.max(load.plan.origins.len());
        has_followed |= load.redirects.followed > 0 || load.plan.expect_continue;
    }
    let again = made.saturating_sub(asked);
    let few = made as f64 <= CONNECTS_MAX * asked as f64;
    if few || again.saturating_mul(REQUESTS_PER_RECONNECT_MAX) < requests {
        return None;
    }
    let ends = Ends::of(evidence, contender);
    let limit =
        ends.as_ref().map_or_else(|| limit(requests, made, again), |ends| ends.limit).max(1);
    let after = match limit {
        1 => "one request".to_owned(),
        n => format!("{} requests", words::grouped(n)),
    };
    let ends = ends.map_or(String::new(), |ends| ends.to_string());
    let way_out = lifted_by(evidence, contender).map_or(String::new(), |how| format!("; {how}"));
    let why = match (origins, has_followed) {
        (2.., _) => format!("connections changed between {origins} origins"),
        (_, true) => "redirects or `Expect` may have ended them".to_owned(),
        _ => format!("the server closes each connection after {after}{ends}{way_out}"),
    };
    let said = format!(
        "{}: {} for {} that should have been kept: {why}",
        evidence.name(contender),
        words::count(made, "connection"),
        words::grouped(asked),
    );
    Some(Closing { contender, limit, is_by_plan: origins > 1 || has_followed, said })
}

/// The number of replies that nearly all connections had which the server ended.
struct Ends {
    limit: u64,
    /// Connections with that number of replies.
    same: u64,
    /// All that the server ended.
    all: u64,
}

impl Ends {
    /// `None` where the connections were not counted, or had unlike numbers.
    fn of(evidence: &Evidence, contender: usize) -> Option<Self> {
        let mut sum = ConnectionEnds::default();
        evidence.loads(contender).for_each(|(_, load)| sum.merge(&load.connection_ends));
        let (&limit, &same) = sum.replies.iter().max_by_key(|(_, connections)| **connections)?;
        let all = sum.by_server;
        (all >= ENDED_MIN && same as f64 >= SAME_MIN * all as f64).then_some(Self {
            limit,
            same,
            all,
        })
    }
}

impl std::fmt::Display for Ends {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { limit, same, all } = self;
        let (same, all) = (words::grouped(*same), words::count(*all, "connection"));
        write!(
            f,
            ", a limit of {} a connection: {same} of {all} that it ended had that number",
            words::count(*limit, "request")
        )
    }
}

/// After how many requests connections are closed, where their ends were not counted. It lies between requests over all
/// connections (the end of the load cut the last ones) and requests over those that were closed. Limits are round
/// numbers, so the roundest number between the two is taken.
fn limit(requests: u64, made: u64, closed: u64) -> u64 {
    let (low, high) = (requests.div_ceil(made.max(1)), requests / closed.max(1));
    let steps = (0..19).rev().map(|power| 10_u64.pow(power));
    let mut round = steps.map(|step| high / step * step);
    round.find(|&number| number >= low && number > 0).unwrap_or(low)
}

/// What lifts the limit of a contender's server, where its replies name a server that is known.
fn lifted_by(evidence: &Evidence, contender: usize) -> Option<String> {
    let head = &evidence.run.contenders.get(contender)?.head;
    let field = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("server").then(|| value.trim())
    })?;
    let (name, how) = KNOWN.iter().find(|(name, _)| field.starts_with(name))?;
    // Started by a command line or elsewhere, our own server needs its flag, not a setting of the study.
    let server = &evidence.run.plan.contenders[contender].server;
    let how = match *name == OURS && matches!(server.as_str(), "command" | "url") {
        true => "`joust serve -s MaxKeepAliveRequests=0` lifts the limit",
        false => how,
    };
    let field: String = field.chars().take(FIELD_MAX).collect();
    Some(format!("its replies say `Server: {field}`, and {how}"))
}

#[cfg(test)]
mod tests {
    use record::RunRecord;

    use super::*;
    use crate::testdata;

    /// Contender 1 closes each connection after a given number of requests.
    fn limited_to(requests: u64) -> RunRecord {
        let mut run = testdata::run(&["a", "b"], 8);
        for visit in run.visits.iter_mut().filter(|visit| visit.contender == 1) {
            let load = visit.load.as_mut().unwrap();
            load.connects = load.requests.done / requests;
        }
        run
    }

    /// Each contender closes its connections after a given number of requests.
    fn limited_to_each(limits: &[u64]) -> RunRecord {
        let names = ["a", "b", "c"];
        let mut run = testdata::run(&names[..limits.len()], 8);
        for visit in &mut run.visits {
            let load = visit.load.as_mut().unwrap();
            load.connects = load.requests.done / limits[visit.contender];
        }
        run
    }

    #[test]
    fn only_pairs_with_unlike_limits_are_touched() {
        let touched = |limits: &[u64], a: usize, b: usize| {
            let found = crate::examine(&limited_to_each(limits));
            found.iter().any(|one| one.check == ITEM.name && one.touches_pair(a, b))
        };
        assert!(!touched(&[100, 100], 0, 1), "both reconnect as often: the same work");
        assert!(touched(&[100, 10], 0, 1));
        let three = [100, 100, u64::MAX];
        assert!(!touched(&three, 0, 1));
        assert!(touched(&three, 0, 2) && touched(&three, 1, 2));
        let seen = look(&Evidence::of(&limited_to_each(&three)));
        assert_eq!((seen.len(), &seen[0].contenders[..]), (1, &[0, 1][..]));
        assert!(seen[0].evidence.contains("a: ") && seen[0].evidence.contains("b: "), "{seen:?}");
        assert!(ITEM.remedy.contains("--no-keepalive"));
    }

    #[test]
    fn connections_that_are_kept_are_silent() {
        assert_eq!(look(&Evidence::of(&testdata::run(&["a", "b"], 8))), []);
    }

    #[test]
    fn a_limit_of_a_hundred_requests_fires_and_is_named() {
        let seen = look(&Evidence::of(&limited_to(100)));
        assert_eq!(seen.len(), 1);
        assert_eq!(
            (seen[0].contenders.as_slice(), seen[0].certainty),
            (&[1][..], Certainty::Confirmed)
        );
        let said = "closes each connection after 100 requests";
        assert!(seen[0].evidence.ends_with(said), "{}", seen[0].evidence);
    }

    #[test]
    fn a_server_that_its_replies_name_is_told_with_what_lifts_its_limit() {
        let told = |server: &str, field: &str| {
            let mut run = limited_to(100);
            run.contenders.resize_with(2, Default::default);
            run.plan.contenders[1].server = server.to_owned();
            run.contenders[1].head = format!("HTTP/1.1 200 OK\nserver: {field}\n");
            look(&Evidence::of(&run))[0].evidence.clone()
        };
        let cases = [
            ("command", "joust", "`joust serve -s MaxKeepAliveRequests=0` lifts the limit"),
            ("url", "joust", "`joust serve -s MaxKeepAliveRequests=0` lifts the limit"),
            ("joust", "joust", "`MaxKeepAliveRequests = 0` lifts the limit"),
            ("url", "Apache/2.4.57 (Debian)", "`MaxKeepAliveRequests 0` lifts the limit"),
            ("nginx", "nginx/1.22.1", "`keepalive_requests 4294967295` lifts the limit"),
            ("command", "lighttpd/1.4.69", "server.max-keep-alive-requests = 65535"),
            ("command", "SimpleHTTP/0.6 Python/3.11.2", "HTTP/1.0 and keeps none"),
        ];
        for (server, field, how) in cases {
            let told = told(server, field);
            assert!(told.contains("closes each connection after 100 requests; its"), "{told}");
            assert!(told.contains(&format!("`Server: {field}`")) && told.contains(how), "{told}");
        }
        assert!(told("url", "thing/1").ends_with("after 100 requests"), "nothing is guessed");
    }

    #[test]
    fn a_limit_is_counted_where_nearly_all_connections_had_as_many_replies() {
        let ended = |counts: &[(u64, u64)]| {
            let mut run = limited_to(100);
            for visit in run.visits.iter_mut().filter(|visit| visit.contender == 1) {
                let ends = &mut visit.load.as_mut().unwrap().connection_ends;
                for &(replies, connections) in counts {
                    (0..connections).for_each(|_| ends.record(replies, false));
                }
            }
            look(&Evidence::of(&run))[0].evidence.clone()
        };
        for limit in [100, 1000, 137] {
            let said = ended(&[(limit, 40), (3, 1)]);
            let counted = format!(
                "{} requests a connection: 320 of 328 connections that it ended had that number",
                words::grouped(limit)
            );
            assert!(said.contains(&counted), "{said}");
        }
        let unlike = ended(&[(100, 20), (57, 20)]);
        assert!(unlike.ends_with("closes each connection after 100 requests"), "{unlike}");
    }

    #[test]
    fn the_limit_is_the_roundest_number_that_the_counts_allow() {
        // Of 224 connections 16 were cut by the end.
        assert_eq!(limit(21_950, 224, 208), 100);
        assert_eq!(limit(1089, 1089, 1073), 1);
        assert_eq!(limit(30_000, 34, 24), 1000);
        assert_eq!(limit(13_100, 101, 100), 130);
        // Replies that broke off are no requests that were done.
        assert_eq!(limit(10, 100, 90), 1);
    }

    #[test]
    fn a_server_that_keeps_no_connection_is_told_as_such() {
        let seen = look(&Evidence::of(&limited_to(1)));
        assert!(seen[0].evidence.ends_with("after one request"), "{}", seen[0].evidence);
    }

    #[test]
    fn one_connection_lost_in_a_visit_is_silent() {
        let mut run = testdata::run(&["a", "b"], 8);
        run.visits[1].load.as_mut().unwrap().connects += 1;
        assert_eq!(look(&Evidence::of(&run)), []);
    }

    #[test]
    fn the_most_that_lighttpd_can_keep_is_enough() {
        let mut run = testdata::run(&["a", "b"], 8);
        for load in run.visits.iter_mut().filter_map(|visit| visit.load.as_mut()) {
            load.requests.done = 65_535 * 64 * 2;
            load.connects = 128;
        }
        assert_eq!(look(&Evidence::of(&run)), []);
    }

    #[test]
    fn where_the_plan_may_be_why_it_is_suspected_and_merged_loads_are_left_out() {
        let mut run = limited_to(1);
        for load in run.visits.iter_mut().filter_map(|visit| visit.load.as_mut()) {
            let other = load.plan.origin().clone();
            load.plan.origins.push(other);
        }
        let seen = look(&Evidence::of(&run));
        assert_eq!(seen[0].certainty, Certainty::Suspected);
        assert!(seen[0].evidence.ends_with("changed between 2 origins"), "{seen:?}");
        let mut load = testdata::load();
        load.connects = load.requests.done;
        let is_seen = |load: &record::LoadRecord| {
            crate::examine_load(load).iter().any(|one| one.check == ITEM.name)
        };
        assert!(is_seen(&load));
        load.requests.failed = load.requests.done;
        assert!(!is_seen(&load), "each was lost with its request");
        load.requests.failed = 0;
        load.parts = vec![record::LoadPart {
            name: "a.json".to_owned(),
            began_unix_ms: Some(7),
            start: units::Nanos::ZERO,
            seconds: 1.0,
            started: 200,
            ok: 200,
            rate_per_s: 200.0,
            findings: Vec::new(),
            acting: Vec::new(),
        }];
        assert!(
            !is_seen(&load),
            "two loads of two and three connections, each of which kept its own"
        );
    }

    #[test]
    fn without_keep_alive_there_is_nothing_to_honour() {
        let mut run = limited_to(1);
        run.plan.cells[0].workload.keep_alive = false;
        assert_eq!(look(&Evidence::of(&run)), []);
    }
}
