//! `joust load --metrics-listen`: what a reader of Prometheus gets while a load runs, of one machine and of a fleet.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use crate::fleet::{Fleet, until};
use crate::{Server, joust, output, said};

/// Where a load serves its figures, as it says.
fn address(load: &mut Child) -> String {
    let stderr = load.stderr.as_mut().expect("stderr is piped");
    let mut lines = BufReader::new(stderr).lines().map_while(Result::ok);
    let line = lines.find(|line| line.contains("metrics at http://")).expect("it says where");
    let at = line.split("http://").nth(1).unwrap();
    at.trim_end_matches("/metrics").to_owned()
}

/// The reply to a request line; empty if there is none.
fn asked(at: &str, line: &str) -> String {
    let Ok(mut stream) = TcpStream::connect(at) else { return String::new() };
    let sent = stream.write_all(format!("{line} HTTP/1.1\r\nHost: {at}\r\n\r\n").as_bytes());
    let mut reply = String::new();
    let _ = sent.and_then(|()| stream.read_to_string(&mut reply));
    reply
}

/// The value of a sample.
fn value(reply: &str, sample: &str) -> Option<f64> {
    let line = reply.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '))?;
    line.parse().ok()
}

#[test]
fn figures_of_a_load_are_served_while_it_runs() {
    let server = Server::start(&["--fixed", "64B"]);
    let args = ["load", &server.url, "--rate", "200/s", "-d", "60", "--metrics-listen"];
    let mut load = joust(&args);
    load.args(["127.0.0.1:0", "--json", "-"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut load = load.spawn().unwrap();
    let at = address(&mut load);
    let ok = "joust_requests_total{outcome=\"ok\"}";
    until("requests are counted", || value(&asked(&at, "GET /metrics"), ok) > Some(400.0));
    let reply = asked(&at, "GET /metrics");
    assert!(reply.starts_with("HTTP/1.1 200 OK\r\nContent-Type: application/openmetrics-text;"));
    assert!(reply.ends_with("# EOF\n"), "{reply}");
    let of = |sample: &str| value(&reply, sample).unwrap_or_else(|| panic!("{sample}: {reply}"));
    assert!(of("joust_requests_started_total") >= of(ok));
    let [p50, p99] =
        ["0.5", "0.99"].map(|q| of(&format!("joust_response_seconds{{quantile=\"{q}\"}}")));
    assert!(0.0 < p50 && p50 <= p99 && p99 <= of("joust_response_max_seconds"), "{reply}");
    assert!(of("joust_rate_requests_per_second") > 0.0);
    assert!(!reply.contains("agent"), "{reply}");
    assert!(asked(&at, "GET /").starts_with("HTTP/1.1 404"));
    assert!(asked(&at, "POST /metrics").starts_with("HTTP/1.1 405"));
    // The port is taken, which is said before anything is sent.
    let taken = output(&["load", &server.url, "-n", "1", "--metrics-listen", &at]);
    assert_eq!(taken.status.code(), Some(1));
    assert!(said(&taken).contains(&format!("--metrics-listen: cannot listen on {at}")));
    // A reader that asks nothing does not hold up the end.
    let _idle = TcpStream::connect(&at).unwrap();
    let pid = load.id().to_string();
    assert!(
        std::process::Command::new("kill").args(["-s", "INT", &pid]).status().unwrap().success()
    );
    let ended = load.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(3));
    assert!(TcpStream::connect(&at).is_err(), "nobody listens any more");
}

#[test]
fn figures_of_a_fleet_name_its_agents() {
    let Some(fleet) = Fleet::start(2) else { return };
    let load = ["-c", "4", "-d", "60", "--rate", "100/s", "--metrics-listen", "127.0.0.1:0"];
    let mut load = fleet.load(&load);
    let at = address(&mut load);
    let state = |agent: u32, state: &str| {
        let sample = format!(
            "joust_agent_state{{agent=\"a{agent}\",share=\"{agent}/2\",state=\"{state}\"}}"
        );
        value(&asked(&at, "GET /metrics"), &sample) == Some(1.0)
    };
    until("both run", || state(1, "running") && state(2, "running"));
    let sample = |name: &str| format!("joust_agent_{name}{{agent=\"a1\",share=\"1/2\"}}");
    let figures = ["rate_requests_per_second", "lateness_seconds", "clock_error_seconds"];
    until("it has figures", || {
        let reply = asked(&at, "GET /metrics");
        figures.iter().all(|name| value(&reply, &sample(name)).is_some())
    });
    fleet.agents[0].signal("STOP");
    until("it is suspect", || state(1, "suspect"));
    let reply = asked(&at, "GET /metrics");
    let heard = ["joust_agents_expected", "joust_agents_heard", "joust_agents_failed"];
    assert_eq!(heard.map(|name| value(&reply, name)), [Some(2.0), Some(1.0), Some(0.0)]);
    fleet.agents[0].signal("CONT");
    until("it runs again", || state(1, "running"));
    let pid = load.id().to_string();
    assert!(
        std::process::Command::new("kill").args(["-s", "INT", &pid]).status().unwrap().success()
    );
    assert_eq!(load.wait_with_output().unwrap().status.code(), Some(3));
    fleet.wait_for_no_load();
}
