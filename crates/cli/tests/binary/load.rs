//! `joust load` against `joust serve`: the record it prints, and that both count the same.

use serde_json::Value;

use crate::{Server, lines, output, stdout};

const FIGURES: [&str; 8] = ["mean", "sd", "min", "p50", "p90", "p99", "p999", "max"];

/// The record of a load that ends with 0. An open loop may also end with 4, if a busy machine did not reach its rate;
/// its record is complete.
pub(crate) fn record(args: &[&str]) -> Value {
    let output = output(args);
    let rates = ["-r", "--rate", "--ramp", "--stages", "--replay", "--as-recorded"];
    let has_rate = args.iter().any(|arg| rates.contains(arg));
    let code = output.status.code();
    assert!(code == Some(0) || (code == Some(4) && has_rate), "{code:?}: {}", crate::said(&output));
    serde_json::from_str(&stdout(&output)).expect("stdout is one JSON object")
}

#[test]
fn the_record_has_every_promised_field() {
    let server = Server::start(&["--fixed", "3361"]);
    let record = record(&["load", &server.url, "-c", "4", "-n", "500", "-t", "2", "--json", "-"]);
    let top = [
        "format",
        "engine",
        "connections",
        "threads",
        "seconds",
        "requests",
        "errors",
        "status",
        "bytes",
        "rate_per_s",
        "cpu_us_per_request",
    ];
    for field in top {
        assert!(!record[field].is_null(), "{field} is missing or null");
    }
    for field in ["started", "done", "ok", "failed", "unanswered"] {
        assert!(record["requests"][field].is_u64(), "requests.{field}");
    }
    for latency in ["connect_ms", "first_byte_ms", "service_ms", "response_ms"] {
        let object = record[latency].as_object().expect(latency);
        FIGURES
            .iter()
            .for_each(|figure| assert!(object.contains_key(*figure), "{latency}.{figure}"));
    }
    assert!(record["service_ms"]["p99"].is_number(), "500 samples bear a p99");
    assert!(record["service_ms"]["p999"].is_null(), "500 samples bear no p99.9");
    assert_eq!(record["requests"]["ok"], 500);
    assert_eq!(record["status"]["200"], 500);
    assert_eq!(record["bytes"]["body"], 500 * 3361);
}

#[test]
fn counts_agree_with_the_access_log_exactly() {
    let dir = tempfile::tempdir().unwrap();
    for model in ["reactor", "reactors", "prefork", "worker", "pool"] {
        let log = dir.path().join(model);
        let path = log.to_str().unwrap();
        let server = Server::start(&["--fixed", "100", "--model", model, "--access-log", path]);
        let record = record(&["load", &server.url, "-c", "8", "-d", "300ms", "--json", "-"]);
        assert_eq!(server.drain(), Some(0), "{model}");
        let requests = &record["requests"];
        assert_eq!(requests["failed"], 0, "{model}: {}", record["errors"]);
        let logged = requests["done"].as_u64().unwrap() + requests["unanswered"].as_u64().unwrap();
        let logged = logged + record["probes"].as_u64().unwrap();
        assert_eq!(lines(&log) as u64, logged, "{model}");
    }
}

#[test]
fn a_server_that_dies_in_the_middle_fails_the_load_and_is_said_first() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("access.log");
    let args = ["--fixed", "100", "--access-log", log.to_str().unwrap()];
    let mut server = Server::start(&args);
    let mut load = crate::joust(&["load", &server.url, "-c", "4", "-d", "6s"]);
    let mut load = load.stdout(std::process::Stdio::piped()).spawn().unwrap();
    // Lines reach the file within a second of the first request.
    while lines(&log) == 0 && load.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    let output = load.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    let text = stdout(&output);
    let said = text.find("no reply came in the last").expect("the silence is said");
    assert!(said < text.find("requests/s").unwrap(), "{text}");
}

#[test]
fn a_load_that_spins_counts_the_same_and_says_so() {
    let server = Server::start(&["--fixed", "100"]);
    let args = ["load", &server.url, "-c", "2", "-n", "200", "--busy-poll", "--json", "-"];
    let record = record(&args);
    assert_eq!(record["requests"]["ok"], 200);
    assert_eq!(record["plan"]["busy_poll"], true);
}

#[test]
fn without_keep_alive_each_request_has_its_connection() {
    let server = Server::start(&["--fixed", "100"]);
    let record =
        record(&["load", &server.url, "-c", "2", "-n", "60", "--no-keepalive", "--json", "-"]);
    assert_eq!(record["requests"]["ok"], 60);
    assert_eq!(record["connects"], 60);
}

#[test]
fn fields_method_and_body_go_out_as_typed() {
    let server = Server::start(&["--fixed", "100"]);
    let head = record(&["load", &server.url, "-n", "3", "-c", "1", "-X", "HEAD", "--json", "-"]);
    assert_eq!(head["requests"]["ok"], 3);
    assert_eq!(head["bytes"]["body"], 0);
    let args = ["-H", "If-None-Match: *", "--json", "-"];
    let fresh = [&["load", &server.url, "-n", "3", "-c", "1"], &args[..]].concat();
    assert_eq!(self::record(&fresh)["status"]["304"], 3);
}

#[test]
fn the_report_is_for_people_and_names_the_rate() {
    let server = Server::start(&["--fixed", "100"]);
    let output = output(&["load", &server.url, "-n", "400", "-c", "2"]);
    let text = stdout(&output);
    assert!(text.contains("requests/s"), "{text}");
    assert!(text.contains("p99"), "{text}");
}
