//! When requests of `joust load` are due: every arrival law by its flag, and the search for the
//! highest rate that holds. Start reading at [`every_law_has_its_flag`].

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::sync::Mutex;
use std::time::Duration;

use serde_json::Value;

use crate::load::record;
use crate::planted::{Planted, reply};
use crate::{Server, joust, output, said, stdout};

#[test]
fn every_law_has_its_flag() {
    let dir = tempfile::tempdir().unwrap();
    let instants = dir.path().join("instants.txt");
    std::fs::write(&instants, "0\n10ms\n20ms\n20ms\n50ms\n").unwrap();
    let instants = instants.to_str().unwrap();
    let server = Server::start(&["--fixed", "100"]);
    // Flags, the law in the plan, and the approximate number of due requests.
    let laws: [(&[&str], &str, (u64, u64)); 9] = [
        (&["-n", "50"], "closed", (50, 50)),
        (&["-n", "20", "--think", "1ms"], "think", (20, 20)),
        (&["-n", "20", "--think", "exp:1ms"], "exponential", (20, 20)),
        (&["-r", "200/s", "-d", "300ms"], "constant", (60, 61)),
        (&["-r", "200/s", "--arrivals", "poisson", "-d", "300ms"], "poisson", (25, 110)),
        (&["-r", "200/s", "--arrivals", "jitter", "-d", "300ms"], "jitter", (59, 62)),
        (&["--ramp", "0/s:400/s:300ms", "-d", "300ms"], "ramp", (59, 62)),
        (&["--stages", "100/s:100ms,0/s:50ms,300/s:100ms"], "stages", (39, 42)),
        (&["--replay", instants, "--speed", "5"], "replay", (5, 5)),
    ];
    for (flags, law, (least, most)) in laws {
        let all = [&["load", &server.url, "--queue", "1000", "--json", "-"], flags].concat();
        let is_closed = law == "closed" || flags.contains(&"--think");
        let without_queue = [&["load", &server.url, "--json", "-"], flags].concat();
        let record = record(if is_closed { &without_queue } else { &all });
        let pacing = record["plan"]["pacing"].to_string();
        assert!(pacing.contains(law), "{flags:?}: {pacing}");
        let n_due = match &record["open_loop"] {
            Value::Null => record["requests"]["started"].as_u64(),
            open => open["due"].as_u64(),
        };
        assert_eq!(record["open_loop"].is_null(), is_closed, "{flags:?}");
        let n_due = n_due.unwrap();
        assert!((least..=most).contains(&n_due), "{flags:?}: {n_due} requests were due");
    }
}

#[test]
fn a_replay_is_at_its_instants_and_goes_faster_by_the_factor() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("requests.jsonl");
    let line = |target, at| format!("{{\"url\": \"{target}\", \"at\": {at}}}\n");
    std::fs::write(&log, [line("/a", 0.0), line("/b", 0.4), line("/c", 1.0)].concat()).unwrap();
    let server = Planted::start(|_| reply("", "x"));
    let args = ["--from", log.to_str().unwrap(), "--as-recorded", "--speed", "10"];
    let more = ["-c", "1", "--verify", "none", "--json", "-"];
    let record = record(&[&["load", &server.url("/")], &args[..], &more[..]].concat());
    let dues = record["raw"].as_array().unwrap().iter().map(|one| one["due"].as_u64().unwrap());
    assert_eq!(dues.collect::<Vec<_>>(), [0, 40_000_000, 100_000_000]);
    let seen = server.seen();
    let lines: Vec<&str> = seen.iter().map(|seen| seen.line()).collect();
    assert_eq!(lines, ["GET /a", "GET /b", "GET /c"]);
}

#[test]
fn the_same_seed_gives_the_same_instants() {
    let server = Server::start(&["--fixed", "100"]);
    let dues = |seed: &str| {
        let args = ["--arrivals", "poisson", "-r", "500/s", "-n", "40", "--json", "-"];
        let record = record(&[&["load", &server.url, "--seed", seed], &args[..]].concat());
        let mut dues: Vec<u64> =
            record["raw"].as_array().unwrap().iter().map(|o| o["due"].as_u64().unwrap()).collect();
        dues.sort_unstable();
        dues
    };
    assert_eq!(dues("7"), dues("7"));
    assert_ne!(dues("7"), dues("8"));
}

#[test]
fn a_rate_that_is_not_reached_ends_with_4_and_nothing_is_skipped_silently() {
    let server = Server::start(&["--fixed", "100"]);
    let args = ["-r", "10M/s", "-d", "200ms", "--queue", "1000", "--json", "-"];
    let output = output(&[&["load", &server.url], &args[..]].concat());
    assert_eq!(output.status.code(), Some(4), "{}", said(&output));
    let record: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let of = |name: &str| record["open_loop"][name].as_u64().unwrap();
    assert!(of("dropped") > 0 && of("queue_max") <= 1000, "{}", record["open_loop"]);
    let begun = record["requests"]["started"].as_u64().unwrap();
    assert_eq!(of("due"), begun + of("dropped") + of("left"));
}

/// 10 ms per request, one at a time: at most 100 per second.
#[test]
fn a_search_finds_the_limit_of_a_server_that_has_a_known_one() {
    let one_at_a_time = Mutex::new(());
    let server = Planted::start(move |_| {
        let _held = one_at_a_time.lock();
        std::thread::sleep(Duration::from_millis(10));
        reply("", "x")
    });
    let args = ["--search", "p50<40ms", "-d", "500ms", "--precision", "30%", "--tries", "14"];
    let url = server.url("/");
    let args = [&["load", &url, "-c", "50"], &args[..], &["--json", "-"]].concat();
    let output = output(&args);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let found: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let good = found["highest_good"].as_f64().expect("some rate holds");
    let bad = found["lowest_bad"].as_f64().expect("some rate does not");
    // Above: half a second's queue may hide the limit. Below: a machine may sleep longer than
    // requested.
    assert!(good < bad && good < 140.0 && bad > 50.0, "[{good}, {bad}]");
    assert!(found["tries"].as_array().unwrap().len() <= 14);
}

/// At most 100 requests per try: too few for p99.9 at every rate.
#[test]
fn a_search_whose_tries_are_too_short_says_so_and_calls_no_rate_bad() {
    let server = Server::start(&["--fixed", "100"]);
    let args = ["--search", "p99.9<1h", "-d", "100ms", "--rate-max", "1k/s", "--json", "-"];
    let output = output(&[&["load", &server.url], &args[..]].concat());
    let said = said(&output);
    assert!(output.status.code() == Some(1) && said.contains("longer tries (-d)"), "{said}");
    let found: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!((&found["limit"], &found["lowest_bad"]), (&"samples".into(), &Value::Null));
    let rates: Vec<f64> =
        found["tries"].as_array().unwrap().iter().map(|t| t["rate"].as_f64().unwrap()).collect();
    assert!(rates.is_sorted() && rates.last() == Some(&1000.0), "{rates:?}");
}

#[test]
fn a_search_whose_server_is_gone_ends_and_keeps_what_it_found() {
    let server = Server::start(&["--fixed", "100"]);
    let dir = tempfile::tempdir().unwrap();
    let found = dir.path().join("found.json");
    let args = ["--search", "p99<1h", "-d", "300ms", "--json", found.to_str().unwrap()];
    let mut search = joust(&[&["load", &server.url], &args[..]].concat())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(search.stderr.take().unwrap()).lines().map(Result::unwrap);
    said.find(|line| line.contains("p99 of response")).expect("a try is told");
    drop(server);
    let rest = said.collect::<String>();
    assert_eq!(search.wait().unwrap().code(), Some(1), "{rest}");
    assert!(rest.contains("cannot connect"), "{rest}");
    let found: Value = serde_json::from_str(&std::fs::read_to_string(&found).unwrap()).unwrap();
    assert_eq!(found["ending"], "interrupted");
    let tries = found["tries"].as_array().unwrap().len();
    assert!((1..40).contains(&tries), "{tries}");
}

#[test]
fn ten_requests_at_a_rate_are_no_faster_than_it() {
    let server = Server::start(&["--fixed", "100"]);
    let args = ["-r", "50/s", "-n", "10", "--slo", "rate>51/s", "--json", "-"];
    let output = output(&[&["load", &server.url], &args[..]].concat());
    assert_eq!(output.status.code(), Some(99), "{}", said(&output));
    let record: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(record["open_loop"]["asked_per_s"], 50.0);
    assert!(record["rate_per_s"].as_f64().unwrap() <= 50.0, "{}", record["rate_per_s"]);
}
