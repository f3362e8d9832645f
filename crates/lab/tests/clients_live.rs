//! Real load tools against our own server, whose access log is the other count: what a tool reports
//! is what the server answered, but for what the tool is known to count differently. What is not
//! installed is skipped, with the reason, and counted.

use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use joust_lab::adapters::{self, Found, Search};
use joust_lab::clients::{self, Bench, Client, ClientError, ClientKind, ClientRun, GRACE, Order};
use joust_lab::server::{self, Running, Scratch, Start};
use record::{SettingValue, Settings};
use units::{Bytes, Nanos, PerSecond};

/// Generous: the machine may be busy with other things.
const PATIENCE: Nanos = Nanos::from_secs(60);
const CONNECTIONS: u32 = 4;
/// Stands where the address of a server comes.
const NOWHERE: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 1));

/// Says it even where the test passes: the harness holds back only what the print macros write.
fn say(line: std::fmt::Arguments<'_>) {
    std::io::stderr().write_all(format!("{line}\n").as_bytes()).unwrap();
}

/// Our own binary, where `cargo test --workspace` has put it: beside the folder of this test.
fn search() -> Search {
    let test = std::env::current_exe().unwrap();
    Search::new(test.ancestors().nth(2).unwrap().join("joust"))
}

/// Lets a tool load a fresh server; the run, and how many requests the server wrote into its log: it
/// writes a line for each, the last of them when it ends.
fn load(client: &'static Client, found: &Found, order: &Order) -> (ClientRun, u64) {
    let adapter = adapters::named("joust").unwrap();
    let joust = (adapter.find)(&search()).unwrap();
    let scratch = server::scratch().unwrap();
    let docroot = server::site(scratch.path(), &[Bytes(3361)]).unwrap();
    let common = SettingValue::Text("common".to_owned());
    let running = Running::start(&Start {
        adapter,
        found: &joust,
        settings: &Settings::from([("access-log".to_owned(), common)]),
        docroot: &docroot,
        cpus: &[],
        connections: 64,
        scratch: scratch.path(),
        target: "/index.html",
        timeout: PATIENCE,
        interrupt: &joust_lab::server::UNINTERRUPTED,
    });
    let running = running.unwrap();
    let bench = Bench { cpus: &[], scratch: scratch.path(), grace: PATIENCE };
    let order = Order { addr: running.addr(), ..order.clone() };
    let ran = clients::run(client, found, &order, &bench).unwrap();
    // With the server its folder goes: its log is counted when it has ended.
    let stopped = running.stop().unwrap();
    assert!(!stopped.forced);
    (ran, stopped.logged.unwrap())
}

/// Whether our own server has been built, without which there is nothing to load.
fn has_server() -> bool {
    let adapter = adapters::named("joust").unwrap();
    let found = (adapter.find)(&search()).is_some();
    if !found {
        skips::note(format_args!("joust itself is not built ({})", adapter.remedy()));
    }
    found
}

fn order(addr: SocketAddr) -> Order {
    Order {
        addr,
        target: "/index.html".to_owned(),
        connections: CONNECTIONS,
        threads: 1,
        keep_alive: true,
        duration: Nanos::from_secs(1),
        requests: None,
        timeout: Nanos::from_secs(10),
        rate: None,
    }
}

/// The closest to `order` that the tool can do.
fn for_client(client: &Client, order: Order) -> Order {
    match client.name {
        "httperf" => Order { rate: Some(PerSecond(200.0)), keep_alive: false, ..order },
        "http_load" => Order { keep_alive: false, ..order },
        _ => order,
    }
}

/// Every program among the clients that is here, and how many are not.
fn installed() -> (Vec<(&'static Client, Found)>, u32) {
    let (mut here, mut skipped) = (Vec::new(), 0);
    for client in clients::ALL.iter().filter(|client| matches!(client.kind, ClientKind::Program(_)))
    {
        match client.find(&search()) {
            Some(found) => here.push((*client, found)),
            None => {
                skipped += 1;
                skips::note(format_args!("{} is not here ({})", client.name, client.remedy()));
            }
        }
    }
    (here, skipped)
}

/// What every run must hold, whatever the tool is.
fn check(ran: &ClientRun) {
    let name = ran.tool;
    assert_eq!(ran.report.missing, [""; 0], "{name}:\n{}", ran.text);
    assert_eq!(ran.exit, "exit status 0", "{name}:\n{}", ran.text);
    assert!(ran.cpu > Nanos::ZERO && ran.max_rss > Bytes(100_000), "{name}: {ran:?}");
    let duration = ran.report.duration.unwrap();
    assert!(ran.wall.saturating_add(Nanos::from_millis(10)) >= duration, "{name}: {ran:?}");
    let cpus = std::thread::available_parallelism().unwrap().get() as u64;
    assert!(ran.cpu.0 <= ran.wall.0 * cpus + 100_000_000, "{name}: {ran:?}");
    let kept = ran.tool_run();
    assert_eq!(kept.claimed.requests_done, ran.report.requests.complete);
    assert!(!kept.counts_differently.is_empty() && kept.report.len() > 100, "{name}");
    assert!(kept.command.contains("127.0.0.1") || name == "http_load", "{}", kept.command);
    assert!(
        !["ab", "siege", "wrk", "h2load", "httperf"].contains(&name) || !kept.version.is_empty()
    );
}

#[test]
fn what_a_tool_reports_is_what_the_server_answered() {
    if !has_server() {
        return;
    }
    let (here, skipped) = installed();
    for (client, found) in &here {
        let order = for_client(client, order(NOWHERE));
        let (ran, answered) = load(client, found, &order);
        check(&ran);
        let requests = &ran.report.requests;
        let (complete, failed) = (requests.complete.unwrap(), requests.failed.unwrap_or(0));
        let what =
            format!("{}: {complete} done, {failed} failed, {answered} answered", client.name);
        say(format_args!("{what}, {} of CPU", ran.cpu));
        assert!(complete > 0, "{what}:\n{}", ran.text);
        // What is out when the load ends may be answered and is counted by none of them; some send
        // one on each connection after that.
        let out = 2 * u64::from(CONNECTIONS) + 1;
        assert!(answered + failed >= complete, "{what}:\n{}", ran.text);
        assert!(answered <= complete + failed + out, "{what}:\n{}", ran.text);
        assert_eq!(requests.non_2xx.unwrap_or(0), 0, "{what}");
    }
    say(format_args!("{} tools, {skipped} skipped", here.len()));
}

#[test]
fn a_number_of_requests_is_made_exactly() {
    if !has_server() {
        return;
    }
    let (here, skipped) = installed();
    let mut ran_exactly = 0;
    for (client, found) in &here {
        let close = Order { keep_alive: false, requests: Some(400), ..order(NOWHERE) };
        let order = for_client(client, close);
        if let Err(error) = client.say(&order) {
            assert_eq!(client.name, "wrk", "{error}");
            continue;
        }
        let (ran, answered) = load(client, found, &order);
        check(&ran);
        assert_eq!((ran.report.requests.complete, answered), (Some(400), 400), "{}", ran.text);
        ran_exactly += 1;
    }
    say(format_args!("{ran_exactly} tools with a number of requests, {skipped} skipped"));
}

/// Names in a scratch folder beside its lock.
fn left(scratch: &Scratch) -> Vec<String> {
    let entries = std::fs::read_dir(scratch.path()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name != "lock").collect()
}

#[test]
fn a_tool_that_does_not_end_is_ended_and_leaves_nothing() {
    let ab = clients::named("ab").unwrap();
    let Some(found) = ab.find(&search()) else { return };
    let scratch = server::scratch().unwrap();
    // Takes connections and never says a word.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let order = Order {
        requests: Some(4),
        duration: Nanos::from_millis(50),
        ..order(silent.local_addr().unwrap())
    };
    let order = Order { timeout: Nanos::from_millis(50), ..order };
    let bench = Bench { cpus: &[], scratch: scratch.path(), grace: Nanos::ZERO };
    let error = clients::run(ab, &found, &order, &bench).unwrap_err();
    assert!(matches!(error, ClientError::TooLong { .. }), "{error}");
    assert!(error.to_string().contains("100ms") && error.to_string().contains("-n 4"), "{error}");
    assert_eq!(left(&scratch), [""; 0]);
    // By its command line: tests beside this one run an ab of their own.
    let port = silent.local_addr().unwrap().port().to_string();
    let still = |pid: u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(&port)
    };
    let ours = server::running().into_iter().find(|&pid| still(pid));
    assert_eq!(ours, None, "ab is still there");
}

#[test]
fn a_tool_without_a_report_and_one_that_is_not_there_are_named() {
    let scratch = server::scratch().unwrap();
    let bench = Bench { cpus: &[], scratch: scratch.path(), grace: GRACE };
    let shut = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let wrk = clients::named("wrk").unwrap();
    if let Some(found) = wrk.find(&search()) {
        let error = clients::run(wrk, &found, &order(shut), &bench).unwrap_err().to_string();
        assert!(error.contains("exit status 1") && error.contains("unable to connect"), "{error}");
    }
    let gone = Found { binary: "/nonexistent/wrk".into(), version: String::new() };
    let error = clients::run(wrk, &gone, &order(shut), &bench).unwrap_err().to_string();
    assert!(error.contains("starting /nonexistent/wrk"), "{error}");
    let load = clients::named("load").unwrap();
    let error = clients::run(load, &gone, &order(shut), &bench).unwrap_err().to_string();
    assert!(error.contains("inside joust"), "{error}");
    assert_eq!(left(&scratch), [""; 0]);
}

/// A program that answers as weighttp 0.4 does, at 5000 requests/s, without making any.
fn pretended_weighttp(dir: &Path) -> Found {
    let binary = dir.join("weighttp");
    let script = "#!/bin/sh\nn=$2\necho \"finished in $((n / 5000)) sec, $((n % 5000 / 5)) millisec \
                  and 0 microsec, 5000 req/s, 10 kbyte/s\"\n\
                  echo \"requests: $n total, $n started, $n done, $n succeeded, 0 failed, 0 errored\"\n\
                  echo \"status codes: $n 2xx, 0 3xx, 0 4xx, 0 5xx\"\n\
                  echo \"traffic: 9 bytes total, 4 bytes http, 5 bytes data\"\n";
    std::fs::write(&binary, script).unwrap();
    std::fs::set_permissions(&binary, std::fs::Permissions::from_mode(0o755)).unwrap();
    Found { binary, version: "0.4".to_owned() }
}

#[test]
fn a_tool_that_knows_no_duration_gets_the_requests_that_fit_into_it() {
    let weighttp = clients::named("weighttp").unwrap();
    let scratch = server::scratch().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let found = pretended_weighttp(dir.path());
    let bench = Bench { cpus: &[], scratch: scratch.path(), grace: PATIENCE };
    let order = Order { duration: Nanos::from_secs(3), ..order(NOWHERE) };
    let ran = clients::run(weighttp, &found, &order, &bench).unwrap();
    assert_eq!(ran.report.requests.complete, Some(15_000));
    assert!(ran.command.contains("-n 15000 -c 4 -t 1 -k"), "{}", ran.command);
    assert!(ran.notes.last().unwrap().contains("1000 requests at 5000/s"), "{:?}", ran.notes);
    let told = clients::run(weighttp, &found, &Order { requests: Some(7), ..order }, &bench);
    assert_eq!(told.unwrap().report.requests.complete, Some(7));
}
