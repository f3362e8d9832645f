//! Writing siege's report and parsing it back, and its users in conversations without a socket.

use std::collections::BTreeMap;

use proptest::prelude::*;
use record::{Answer, Asking, LoadRecord, Sample, Seats, Turn};
use units::Nanos;

use super::figures::{Figures, UserTotals};
use super::settings::Settings;
use super::style::Style;
use super::text;
use super::{command, flags, read};
use crate::command::testing::{self, World, args};
use crate::command::{Call, Chosen, CommandOutcome, Finished, LocalTime, Run, Stream};

const URLS: &[u8] = b"http://h/0\nhttp://h/1\nhttp://h/2\nhttp://h/3\n";

/// With a file of four URLs, and the given configuration file.
fn run_with(conf: &'static str, line: &str) -> Run {
    let files: BTreeMap<&str, &[u8]> = [("rc", conf.as_bytes()), ("urls", URLS)].into();
    let world = World { files, ..World::default() };
    let args = args(&format!("-R rc {line}"));
    let own = Chosen::default();
    match command(&Call { program: "siege", args: &args, own: &own, world: &world }) {
        CommandOutcome::Run(run) => *run,
        CommandOutcome::Exit(said) => panic!("{line}: {said:?}"),
    }
}

/// A server's answer: a status, header lines, a body.
type Answered = (u16, &'static str, &'static str);

/// Plays the users against answers by target; returns the requests (the first line and whether it had a field) in
/// order, and the final output.
fn play(run: &mut Run, answers: impl Fn(&str, &str) -> Answered) -> (Vec<String>, String, String) {
    let n = run.plan.connections;
    let scenario = run.scenario.take().expect("siege plays its users");
    let mut users = scenario.users(Seats { thread: 0, first: 0, n });
    let (mut asked, mut asking) = (Vec::new(), Asking::new(1));
    for user in 0..n {
        let mut turn = users.first(user);
        // Limits a test whose user never ends.
        for _ in 0..200 {
            let Turn::After(_) = turn else { break };
            asking.clear();
            users.ask(user, &mut asking);
            if asking.requests().is_empty() {
                turn = asking.comes_again().map_or(Turn::Leaves, Turn::After);
                continue;
            }
            let text = String::from_utf8_lossy(asking.bytes()).into_owned();
            let target = text.split(' ').nth(1).unwrap_or_default().to_owned();
            asked.push(format!("{user} {}", text.lines().next().unwrap_or_default()));
            let (status, fields, body) = answers(&target, &text);
            let head = format!("HTTP/1.1 {status} X\r\n{fields}\r\n");
            let mut sample = sample(user, status, body.len() as u64);
            if fields.contains("chunked") {
                sample.bytes_read += FRAMING;
            }
            let (head, body) = (head.as_bytes(), body.as_bytes());
            turn = users.request_ended(&Answer { sample: &sample, head, body });
        }
    }
    let local_time =
        |_| LocalTime { year: 2026, month: 1, day: 2, weekday: 5, hour: 3, minute: 4, second: 5 };
    let record = LoadRecord { seconds: 1.0, ..LoadRecord::empty(run.plan.clone()) };
    let finished = Finished { record: &record, began: Nanos::ZERO, local_time: &local_time };
    let closing = run.printer.closing(&finished);
    (asked, closing.texts.on(Stream::Out), closing.texts.on(Stream::Err))
}

/// What a user was answered.
fn sample(user: u32, status: u16, body: u64) -> Sample {
    let sample = testing::sample(1_000, 1_000, 1_000, 1_000);
    Sample { bytes_read: 100 + body, bytes_body: body, status, conn: user, ..sample }
}

/// Counts of a report: hits, successful, failed.
fn counts(report: &str) -> [u64; 3] {
    let report = read::read_reports(report).expect("a report of siege").remove(0);
    let requests = report.requests;
    [requests.complete, requests.succeeded, requests.failed]
        .map(|count| count.expect("it is there"))
}

const OK: Answered = (200, "", "x");

/// Assumed bytes of framing around the chunks of a body.
const FRAMING: u64 = 6;

#[test]
fn users_begin_at_places_of_their_own_and_go_round() {
    let walk = |line: &str| play(&mut run_with("", line), |_, _| OK).0.join(",");
    let expected = "0 GET /0 HTTP/1.0,0 GET /1 HTTP/1.0,0 GET /2 HTTP/1.0,\
        1 GET /2 HTTP/1.0,1 GET /3 HTTP/1.0,1 GET /0 HTTP/1.0";
    assert_eq!(walk("-c2 -r3 -f urls"), expected);
    let once = walk("-c2 -r once -f urls");
    assert_eq!(once.matches("GET /3").count(), 2, "each user goes through all of it: {once}");
    assert!(once.starts_with("0 GET /0") && once.contains("1 GET /0"), "{once}");
    assert_eq!(walk("-c2 -r0 -f urls"), "");
    assert_eq!(walk("-c1 -t1S -f urls").split(',').count(), 200, "a time has no repetitions");
    assert_eq!(walk("-c1 -t1S -r once -f urls").split(',').count(), 4, "but once is once");
    assert_eq!(walk("-c1 -t1S -r0 -f urls"), "");
}

/// Invalid ports and unknown names are not requested, nor is another server instead.
#[test]
fn who_cannot_be_asked_fails_the_url_and_the_user_goes_on_later() {
    let port = "invalid port number 65536 in sock.c:142";
    let name = "Name or service not known";
    for (url, why) in [("http://h:65536/", port), ("http://x.invalid/", name)] {
        let mut run = run_with("failures = 0\n", &format!("-c2 -r3 {url}"));
        let (asked, _, err) = play(&mut run, |_, _| OK);
        assert_eq!((asked.len(), counts(&err)), (0, [0, 0, 6]), "{url}");
        assert_eq!(err.matches(why).count(), 6, "{url}: {err}");
    }
    let run = run_with("", "-c1 -t9S -d0.5 http://h:0/");
    let scenario = run.scenario.expect("siege plays its users");
    let mut users = scenario.users(Seats { thread: 0, first: 0, n: 1 });
    let mut asking = Asking::new(1);
    assert_eq!(users.first(0), Turn::After(Nanos::ZERO));
    users.ask(0, &mut asking);
    let pause = asking.comes_again().expect("there is time left");
    assert!(pause > Nanos::from_millis(1) && pause < Nanos::from_millis(500), "{pause:?}");
}

#[test]
fn what_is_explained_is_a_url_and_no_file() {
    let run = run_with("", "-c2 -r once -f urls");
    let line = crate::command::explain(&run.plan);
    assert!(line.starts_with("joust load http://h/0 -c 2 -n 8 "), "{line}");
}

#[test]
fn a_redirect_to_nowhere_fails_its_chain() {
    for to in ["http://hh:0/", "http://x.invalid/", "mailto:a@b.test"] {
        let head = format!("Location: {to}\r\n");
        let head: &'static str = head.leak();
        let mut run = run_with("", "-c1 -r2 http://h/a");
        let (asked, _, err) = play(&mut run, |_, _| (302, head, ""));
        assert_eq!((asked.len(), counts(&err)), (2, [0, 2, 2]), "{to}");
    }
}

#[test]
fn a_pause_of_any_length_is_one() {
    let mut run = run_with("", "-c1 -r2 -d99999999999999999999 http://h/a");
    let (asked, ..) = play(&mut run, |_, _| OK);
    assert_eq!(asked.len(), 2);
}

#[test]
fn without_chunks_their_framing_is_part_of_the_body() {
    let bytes = |conf, fields| {
        let (_, out, _) =
            play(&mut run_with(conf, "-c1 -r1 http://h/a"), |_, _| (200, fields, "x"));
        out.split_once(" bytes").map(|(line, _)| line.rsplit(' ').next().unwrap().to_owned())
    };
    let chunked = "Transfer-Encoding: chunked\r\n";
    let as_read = "verbose = true\nchunked = true\n";
    let raw = "verbose = true\nchunked = false\n";
    assert_eq!(bytes(as_read, chunked).as_deref(), Some("1"));
    assert_eq!(bytes(raw, chunked).as_deref(), Some("7"), "what was read behind the head");
    assert_eq!(bytes(raw, "").as_deref(), Some("1"));
}

#[test]
fn a_proxy_is_answered_with_its_own_logins() {
    let conf = "proxy-host = p\nlogin = a:b\nproxy-login = u:p:R\n";
    let field = "Proxy-Authenticate: Basic realm=\"R\"\r\n";
    let mut run = run_with(conf, "-c1 -r1 http://h/a");
    let (asked, _, err) =
        play(&mut run, |_, text| match text.contains("Proxy-Authorization: Basic dTpw\r\n") {
            true => OK,
            false => (407, field, ""),
        });
    assert_eq!((asked.len(), counts(&err)), (2, [2, 2, 0]));
}

/// Rounding makes the first URL half as frequent, and the last one and a half times as frequent.
#[test]
fn at_random_the_first_url_comes_half_as_often_and_the_last_half_as_often_again() {
    let (asked, ..) = play(&mut run_with("", "-c40 -r100 -i -f urls"), |_, _| OK);
    let share = |target: &str| {
        let of_it = asked.iter().filter(|line| line.contains(&format!("GET {target} "))).count();
        of_it as f64 / asked.len() as f64
    };
    for (target, expected) in [("/0", 0.125), ("/1", 0.25), ("/2", 0.25), ("/3", 0.375)] {
        assert!((share(target) - expected).abs() < 0.03, "{target}: {}", share(target));
    }
}

#[test]
fn a_chain_of_redirects_counts_whole_or_not_at_all() {
    let to = |end: Answered| {
        let mut run = run_with("", "-c1 -r1 http://h/a");
        let (asked, _, err) = play(&mut run, |target, _| match target {
            "/a" => (302, "Location: b\r\n", ""),
            "/b" => (301, "Location: http://i.test/c\r\n", ""),
            _ => end,
        });
        assert_eq!(asked.len(), 3, "{asked:?}");
        counts(&err)
    };
    assert_eq!(to(OK), [3, 3, 0]);
    assert_eq!(to((503, "", "")), [0, 2, 1], "the quirk: two were answered well, none is a hit");
    assert_eq!(to((404, "", "")), [3, 2, 0], "the quirk: neither successful nor failed");
    let mut run = run_with("", "-c1 -r1 --no-follow http://h/a");
    let (asked, _, err) = play(&mut run, |_, _| (302, "Location: /b\r\n", ""));
    assert_eq!((asked.len(), counts(&err)), (1, [1, 1, 0]));
}

#[test]
fn statuses_count_as_siege_counts_them() {
    let of =
        |status| counts(&play(&mut run_with("", "-c1 -r1 http://h/a"), |_, _| (status, "", "x")).2);
    for status in [200, 204, 304, 308] {
        assert_eq!(of(status), [1, 1, 0], "{status}");
    }
    for status in [400, 403, 404, 510] {
        assert_eq!(of(status), [1, 0, 0], "{status}");
    }
    for status in [408, 500, 503, 509] {
        assert_eq!(of(status), [0, 0, 1], "{status}");
    }
    assert_eq!(of(418), [1, 0, 1], "siege's own word for what is no HTTP");
}

#[test]
fn a_challenge_is_answered_five_times_in_all_and_every_time_is_a_transaction() {
    let mut run = run_with("login = u:p:R\n", "-c1 -r1 http://h/a");
    let field = "WWW-Authenticate: Basic realm=\"R\"\r\n";
    let (asked, _, err) = play(&mut run, |_, text| match text.contains("Basic dTpw\r\n") {
        true => OK,
        false => (401, field, ""),
    });
    assert_eq!((asked.len(), counts(&err)), (2, [2, 2, 0]));
    let mut run = run_with("", "-c1 -r1 http://h/a");
    let (asked, _, err) = play(&mut run, |_, _| (401, field, ""));
    assert_eq!((asked.len(), counts(&err)), (5, [5, 5, 0]), "no login, and it asks all the same");
    let mut run = run_with("", "-c1 -r1 http://h/a");
    let digest = "WWW-Authenticate: Digest realm=\"R\", nonce=\"n\"\r\n";
    let (asked, _, err) = play(&mut run, |_, _| (401, digest, ""));
    assert_eq!((asked.len(), counts(&err)), (1, [0, 1, 1]));
    assert!(err.contains("in the following realm: 'R'"), "{err}");
}

#[test]
fn parts_of_a_page_are_fetched_last_first_and_not_from_hosts_left_out() {
    let page = "<img src=/a><img src=/b><script src=//ads.test/c></script><img src=/a>";
    let html = "Content-Type: text/html; charset=x\r\n";
    let conf = "parser = true\nnofollow = ads.test\n";
    let fetch = |conf, line| {
        let (asked, _, err) = play(&mut run_with(conf, line), |target, _| match target {
            "/" => (200, html, page),
            _ => OK,
        });
        (asked.join(","), counts(&err))
    };
    let (asked, counted) = fetch(conf, "-c1 -r1 http://hh/");
    assert_eq!(asked, "0 GET / HTTP/1.0,0 GET /b HTTP/1.0,0 GET /a HTTP/1.0");
    assert_eq!(counted, [3, 3, 0]);
    assert_eq!(fetch(conf, "-c1 -r1 --no-parser http://hh/").1, [1, 1, 0]);
}

#[test]
fn cookies_are_each_user_s_own_and_may_be_forgotten_when_the_file_begins_anew() {
    let cookies = |conf, line| {
        let seen = std::cell::RefCell::new(Vec::new());
        play(&mut run_with(conf, line), |target, text| {
            seen.borrow_mut().push(text.contains("Cookie: a=1\r\n"));
            if target == "/0" { (200, "Set-Cookie: a=1\r\n", "") } else { OK }
        });
        seen.into_inner()
    };
    let all = [false, true, true, true, true];
    assert_eq!(cookies("", "-c1 -r5 -f urls"), all);
    assert!(!cookies("expire-session = true\n", "-c1 -r5 -f urls")[4]);
    assert_eq!(cookies("cookies = false\n", "-c1 -r5 -f urls"), [false; 5]);
    assert_eq!(cookies("", "-c2 -r2 -f urls"), [false, true, false, false]);
}

#[test]
fn after_so_many_failures_all_leave() {
    let mut run = run_with("failures = 3\n", "-c2 -r10 http://h/");
    let (asked, _, err) = play(&mut run, |_, _| (500, "", ""));
    assert_eq!(asked.len(), 4, "the second user notices after its first");
    assert!(err.starts_with("siege aborted due to excessive socket failure; you\n"), "{err}");
}

#[test]
fn a_pause_is_whole_seconds_from_one_on_and_in_no_response_time() {
    let pauses = |line: &str| {
        let run = run_with("", line);
        let scenario = run.scenario.expect("siege plays its users");
        let mut users = scenario.users(Seats { thread: 0, first: 0, n: 1 });
        let mut asking = Asking::new(1);
        assert_eq!(users.first(0), Turn::after(Nanos::ZERO), "none before the first");
        let mut pauses = Vec::new();
        for _ in 0..50 {
            asking.clear();
            users.ask(0, &mut asking);
            let sample = sample(0, 200, 0);
            let Turn::After(pause) =
                users.request_ended(&Answer { sample: &sample, head: b"", body: b"" })
            else {
                panic!("it has not done them all")
            };
            pauses.push(pause);
        }
        pauses
    };
    let whole = pauses("-c1 -r99 -d3 http://h/");
    assert!(whole.iter().all(|pause| pause.0.is_multiple_of(1_000_000_000)), "{whole:?}");
    assert!(
        whole.iter().all(|pause| *pause <= Nanos::from_secs(3)) && whole.iter().any(|p| p.0 > 0)
    );
    let parts = pauses("-c1 -r99 -d0.5 http://h/");
    assert!(parts.iter().all(|pause| *pause < Nanos::from_millis(500)));
    assert!(parts.iter().any(|pause| *pause > Nanos::from_millis(250)), "{parts:?}");
    assert!(pauses("-c1 -r99 -d3 -b http://h/").iter().all(|pause| pause.0 == 0));
}

#[test]
fn what_joust_does_not_do_is_refused_with_its_reason() {
    let refused = |conf: &'static str, url: &str| {
        let world = World { files: [("rc", conf.as_bytes())].into(), ..World::default() };
        let args = args(&format!("-R rc {url}"));
        let own = Chosen::default();
        match command(&Call { program: "siege", args: &args, own: &own, world: &world }) {
            CommandOutcome::Exit(said) => (said.texts.on(Stream::Err), said.code),
            CommandOutcome::Run(_) => panic!("{url} is carried out"),
        }
    };
    let text = "siege: ftp://h/x is not supported: joust supports only HTTP\n".to_owned();
    assert_eq!(refused("", "ftp://h/x"), (text, 1));
    assert!(refused("proxy-host = p\n", "https://h/").0.contains("makes no tunnel"));
    assert!(refused("ssl-ciphers = X\n", "http://h/").0.contains("safe cipher suites"));
}

fn settings(style: Style, debug: bool) -> Settings {
    Settings { debug, ..Settings::empty(style) }
}

#[test]
fn the_older_layout_has_seconds_and_the_newer_milliseconds() {
    let tally = UserTotals {
        hits: 200,
        succeeded: 199,
        failed: 1,
        bytes: 671_089,
        time: 0.07,
        longest: 0.00621,
        shortest: Some(0.00008),
        ..UserTotals::default()
    };
    let report = |style| {
        let figures = Figures::new(style, &tally, Nanos::from_millis(20));
        text::report(&settings(style, false), &figures)
    };
    let expected = "\nTransactions:\t\t      200    hits\nAvailability:\t\t       99.50 %\n\
        Elapsed time:\t\t        0.02 secs\nData transferred:\t        0.64 MB\n\
        Response time:\t\t        0.35 ms\nTransaction rate:\t    10000.00 trans/sec\n\
        Throughput:\t\t       32.00 MB/sec\nConcurrency:\t\t        3.50\n\
        Successful transactions:      199\nFailed transactions:\t        1\n\
        Longest transaction:\t        6.21 ms\nShortest transaction:\t        0.08 ms\n \n";
    assert_eq!(report(Style::Millis), expected);
    let older = report(Style::Seconds);
    assert!(older.contains("Transactions:\t\t         200 hits\n"), "{older}");
    assert!(
        older.ends_with(
            "Longest transaction:\t        0.01\nShortest transaction:\t        0.00\n \n"
        )
    );
}

fn tallies() -> impl Strategy<Value = (UserTotals, u64)> {
    let counts = (0..100_000_u64, 0..100_000_u64, 0..5_000_u64, 0..1_000_000_000_u64);
    let times = (0.0..5_000.0_f64, 0.0..30.0_f64, 0.0..30.0_f64, 0..600_000_u64);
    (counts, times).prop_map(
        |((hits, succeeded, failed, bytes), (time, longest, shortest, took))| {
            let shortest = Some(shortest.min(longest));
            let tally = UserTotals {
                hits,
                succeeded,
                failed,
                bytes,
                time,
                longest,
                shortest,
                ..UserTotals::default()
            };
            (tally, took)
        },
    )
}

/// Two decimals.
fn close(read: Option<f64>, written: f64, what: &str) -> Result<(), TestCaseError> {
    let read = read.unwrap_or(f64::NAN);
    prop_assert!(
        (read - written).abs() <= 0.00501 + written.abs() * 1e-9,
        "{what}: {read}, {written}"
    );
    Ok(())
}

proptest! {
    /// In either layout, and as JSON.
    #[test]
    fn what_is_written_is_read_back(
        (tally, took) in tallies(),
        is_new in any::<bool>(),
        is_json in any::<bool>(),
        debug in any::<bool>(),
    ) {
        let style = if is_new { Style::Millis } else { Style::Seconds };
        let settings = settings(style, debug);
        let figures = Figures::new(style, &tally, Nanos::from_millis(took));
        let written = match is_json {
            true => text::json(&settings, &figures),
            false => text::report(&settings, &figures),
        };
        let mut reports = read::read_reports(&written).expect("it is a report of siege");
        prop_assert_eq!(reports.len(), 1);
        let report = reports.remove(0);
        prop_assert_eq!(&report.missing, &Vec::<&str>::new());
        prop_assert_eq!(report.requests.complete, Some(figures.hits));
        prop_assert_eq!(report.requests.succeeded, Some(figures.succeeded));
        prop_assert_eq!(report.requests.failed, Some(figures.failed));
        close(report.availability.map(|share| share.0 * 100.0), figures.availability, "availability")?;
        close(report.duration.map(|span| span.0 as f64 / 1e9), figures.elapsed, "elapsed")?;
        close(report.rate.map(|rate| rate.0), figures.rate, "rate")?;
        close(report.concurrency_mean, figures.concurrency, "concurrency")?;
        // In the printed unit.
        let unit = if is_new && !is_json { 1e6 } else { 1e9 };
        let total = report.times.total;
        for (read, written, what) in [
            (total.mean, figures.response, "mean"),
            (total.max, figures.longest, "longest"),
            (total.min, figures.shortest, "shortest"),
        ] {
            close(read.map(|span| span.0 as f64 / unit), written * 1e9 / unit, what)?;
        }
    }
}

#[test]
fn what_siege_ships_is_used_where_nobody_has_a_file() {
    let world = World::default();
    let args = args("http://h/");
    let own = Chosen::default();
    let call = Call { program: "siege", args: &args, own: &own, world: &world };
    let settings = flags::parse(&call).expect("a command line").settings;
    assert!(settings.json && settings.quiet && settings.parser && settings.is_http11);
    assert_eq!((settings.users, settings.users_max), (25, 255));
}
