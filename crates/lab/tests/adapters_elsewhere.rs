//! Servers that the lab knows nothing of: any program, and one that runs already. A stand-in plays
//! them, so no server need be installed.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use joust_lab::adapters::{self, Search};
use joust_lab::oracle;
use joust_lab::runner::{RunOptions, run};
use joust_lab::server::{self, Running, Start};
use joust_lab::session::Watch;
use joust_lab::study::{self, Form};
use record::{SettingValue, Settings, VisitState};
use units::{Bytes, Nanos};

/// Generous: the machine may be busy with other things.
const PATIENCE: Nanos = Nanos::from_secs(60);

fn stand_in() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/planted_server.pl")
}

/// The stand-in as one would type it.
fn command(port: &str, model: &str) -> String {
    let program = stand_in();
    let program = program.display();
    format!("perl '{program}' serve {{docroot}} --listen 127.0.0.1:{port} --model {model}")
}

fn settings(pairs: &[(&str, &str)]) -> Settings {
    let text = |value: &str| SettingValue::Text(value.to_owned());
    pairs.iter().map(|(name, value)| ((*name).to_owned(), text(value))).collect()
}

struct Bench {
    scratch: server::Scratch,
    docroot: PathBuf,
}

impl Bench {
    fn new() -> Self {
        let scratch = server::scratch().unwrap();
        let docroot = server::site(scratch.path(), &[Bytes(3361)]).unwrap();
        Self { scratch, docroot }
    }

    fn start(
        &self,
        name: &str,
        pairs: &[(&str, &str)],
        timeout: Nanos,
    ) -> Result<Running, server::ServerError> {
        let adapter = adapters::named(name).unwrap();
        let found = adapter.installed(&Search::new("/nonexistent/joust")).unwrap();
        Running::start(&Start {
            adapter,
            found: &found,
            settings: &settings(pairs),
            docroot: &self.docroot,
            cpus: &[],
            connections: 4,
            scratch: self.scratch.path(),
            target: "/index.html",
            timeout,
            interrupt: &joust_lab::server::UNINTERRUPTED,
        })
    }

    fn left_files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.scratch.path()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name != "site" && name != "lock").collect()
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn exists(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

#[test]
fn a_command_is_started_asked_and_ended() {
    let bench = Bench::new();
    let port = free_port().to_string();
    let told = command("{port}", "steady");
    let fixed = command(&port, "steady");
    for pairs in [&[("command", told.as_str())][..], &[("command", &fixed), ("port", &port)]] {
        let running = bench.start("command", pairs, PATIENCE).unwrap();
        let pids = running.tree().unwrap().pids();
        let facts = running.facts();
        assert!(facts.command.contains("planted_server.pl"), "{}", facts.command);
        assert_eq!(facts.version, "(its replies do not name it)");
        assert_eq!(facts.parity["keep_alive"], "on");
        // The stand-in sends a body to HEAD: what GET shows stands.
        assert_eq!(facts.parity["keep_alive_requests"], "at least 4");
        assert_eq!(facts.parity["backlog"], "64", "what it gave listen(2)");
        for switch in ["access_log", "file_cache", "sendfile", "workers"] {
            let value = &facts.parity[switch];
            assert!(value.starts_with("unknown: a program of your own"), "{switch}: {value}");
        }
        let addr = running.addr();
        assert!(!running.stop().unwrap().forced);
        assert_eq!(pids.iter().find(|&&pid| exists(pid)), None);
        assert!(TcpListener::bind(addr).is_ok());
        assert_eq!(bench.left_files(), [""; 0]);
    }
}

#[test]
fn a_server_that_says_that_it_is_not_ready_yet_is_waited_for() {
    let bench = Bench::new();
    let line = command("{port}", "starting");
    let running = bench.start("command", &[("command", &line)], PATIENCE).unwrap();
    assert!(running.ready_after() > Nanos::from_millis(1500), "{}", running.ready_after());
    running.stop().unwrap();
}

#[test]
fn a_fixed_port_that_is_taken_is_named_with_the_way_to_find_out_by_whom() {
    let bench = Bench::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let pairs = [("command", command(&port, "steady")), ("port", port.clone())];
    let pairs = pairs.each_ref().map(|(name, value)| (*name, value.as_str()));
    let error = bench.start("command", &pairs, PATIENCE).unwrap_err().to_string();
    assert!(error.contains(&format!("port {port}")) && error.contains("ss -ltnp"), "{error}");
    assert_eq!(bench.left_files(), [""; 0]);
}

#[test]
fn a_command_that_never_listens_or_dies_is_ended_and_its_last_words_shown() {
    let bench = Bench::new();
    let mute = [("command", "sh -c 'echo planted: waiting; sleep 600' {port}")];
    let error = bench.start("command", &mute, Nanos::from_millis(300)).unwrap_err();
    assert!(matches!(error, server::ServerError::NotReady { .. }), "{error}");
    assert!(error.log_tail().contains("planted: waiting"), "{error}");
    let stillborn = command("{port}", "stillborn");
    let error = bench.start("command", &[("command", &stillborn)], PATIENCE).unwrap_err();
    assert!(matches!(error, server::ServerError::Died { .. }), "{error}");
    assert!(error.log_tail().contains("planted: no such device"), "{error}");
    let missing = [("command", "/nonexistent/server {port}")];
    let error = bench.start("command", &missing, PATIENCE).unwrap_err().to_string();
    assert!(error.contains("/nonexistent/server"), "{error}");
    let unready = [("command", command("{port}", "steady")), ("ready", "/".to_owned())];
    let unready = unready.each_ref().map(|(name, value)| (*name, value.as_str()));
    bench.start("command", &unready, PATIENCE).unwrap().stop().unwrap();
    assert_eq!(bench.left_files(), [""; 0]);
}

/// One that does not look after its children, and one that will not hear.
#[test]
fn children_that_a_server_leaves_are_ended_by_force() {
    let bench = Bench::new();
    let program = command("{port}", "steady");
    for line in [
        format!("sh -c 'sleep 600 & exec \"$@\"' sh {program}"),
        format!("sh -c 'setsid sleep 600 & exec \"$@\"' sh {program}"),
        format!("sh -c 'trap \"\" TERM; \"$@\"; sleep 600' sh {program}"),
    ] {
        let running = bench.start("command", &[("command", &line)], PATIENCE).unwrap();
        let (addr, pids) = (running.addr(), running.tree().unwrap().pids());
        assert!(pids.len() > 1, "{line}: {pids:?}");
        assert!(running.stop().unwrap().forced, "{line}");
        assert_eq!(pids.iter().find(|&&pid| exists(pid)), None, "{line}");
        assert!(TcpListener::bind(addr).is_ok());
    }
    assert_eq!(bench.left_files(), [""; 0]);
}

#[test]
fn the_signal_to_end_is_the_one_that_was_set() {
    let bench = Bench::new();
    let line = format!("sh -c 'trap \"\" TERM; exec \"$@\"' sh {}", command("{port}", "steady"));
    let pairs = [("command", line.as_str()), ("stop", "INT")];
    let running = bench.start("command", &pairs, PATIENCE).unwrap();
    assert!(!running.stop().unwrap().forced, "it ignores SIGTERM, and SIGINT ends it");
}

#[test]
fn a_server_that_runs_already_is_asked_and_left_alone() {
    let bench = Bench::new();
    let line = command("{port}", "steady");
    let own = bench.start("command", &[("command", &line)], PATIENCE).unwrap();
    let port = own.addr().port();
    let url = format!("http://localhost:{port}");
    let elsewhere = bench.start("url", &[("url", &url)], PATIENCE).unwrap();
    assert_eq!((elsewhere.addr(), elsewhere.pid()), (own.addr(), None));
    assert!(elsewhere.tree().is_none());
    assert_eq!(
        elsewhere.address().host,
        format!("localhost:{port}"),
        "virtual hosts are asked by name"
    );
    let facts = elsewhere.facts();
    assert_eq!((facts.command.as_str(), facts.files.len()), ("", 0));
    assert_eq!(facts.parity["keep_alive"], "on");
    assert!(facts.parity["backlog"].starts_with("unknown: it runs elsewhere"));
    assert_eq!(elsewhere.log_tail(), "(it runs elsewhere: its log is there)");
    elsewhere.stop().unwrap();
    assert!(oracle::ask(own.addr(), "/index.html", PATIENCE).is_ok(), "it still answers");
    own.stop().unwrap();
}

#[test]
fn a_page_in_the_url_is_what_is_asked_for() {
    let bench = Bench::new();
    let line = command("{port}", "steady");
    let own = bench.start("command", &[("command", &line)], PATIENCE).unwrap();
    let url = format!("http://{}/a/page?x=1", own.addr());
    let elsewhere = bench.start("url", &[("url", &url)], PATIENCE).unwrap();
    assert_eq!(elsewhere.target("/index.html"), "/a/page?x=1");
    assert_eq!(own.target("/index.html"), "/index.html");
    let mut plan = record::LoadPlan::get(SocketAddr::from(([127, 0, 0, 1], 9)), "/index.html");
    elsewhere.aim(&mut plan);
    assert_eq!(
        (plan.url.as_str(), plan.requests[0].target.as_str()),
        (url.as_str(), "/a/page?x=1")
    );
    assert_eq!(plan.origin().place, record::ServerAddress::Inet(own.addr()));
}

#[test]
fn a_server_elsewhere_that_is_not_there_is_named() {
    let bench = Bench::new();
    let error = bench.start("url", &[("url", "http://no-such-host.invalid:80")], PATIENCE);
    let error = error.unwrap_err().to_string();
    assert!(error.contains("cannot resolve no-such-host.invalid:80"), "{error}");
    let url = format!("http://127.0.0.1:{}", free_port());
    let error = bench.start("url", &[("url", &url)], Nanos::from_millis(50)).unwrap_err();
    assert!(error.to_string().contains("nothing listens there"), "{error}");
}

#[test]
fn another_page_with_a_200_is_seen_before_any_load() {
    let bench = Bench::new();
    let mut references = Vec::new();
    for model in ["steady", "other", "stranger"] {
        let line = command("{port}", model);
        let running = bench.start("command", &[("command", &line)], PATIENCE).unwrap();
        let reference = oracle::ask(running.addr(), "/index.html", PATIENCE).unwrap();
        references.push(reference);
        running.stop().unwrap();
    }
    let [steady, other, stranger] = references.try_into().unwrap();
    assert_eq!(steady.sha256, other.sha256);
    assert_ne!(steady.sha256, stranger.sha256);
    assert_eq!(steady.bytes, stranger.bytes, "as long, and yet another page");
}

/// What was said.
#[derive(Default)]
struct Heard(Vec<String>);

impl Watch for Heard {
    fn message(&mut self, text: &str) {
        self.0.push(text.to_owned());
    }
}

#[test]
fn a_run_measures_a_server_elsewhere_without_figures_of_its_processes() {
    let bench = Bench::new();
    let line = command("{port}", "steady");
    let own = bench.start("command", &[("command", &line)], PATIENCE).unwrap();
    let text = format!(
        "name = \"elsewhere\"\nquestion = \"Does it hold?\"\nbudget = \"10m\"\nkeep_disturbed = true\n\
         [workload]\npage = 3361\nconnections = 4\ntimeout = \"30s\"\n[blocks]\nmin = 2\nmax = 2\n\
         [visit]\nwarm_up = \"50ms\"\nmeasure = \"100ms\"\n\
         [[contender]]\nname = \"here\"\nserver = \"command\"\nsettings.command = \"{}\"\n\
         [[contender]]\nname = \"there\"\nserver = \"url\"\nsettings.url = \"http://{}\"\n",
        command("{port}", "steady"),
        own.addr(),
    );
    let plan = study::parse("elsewhere.toml", &text, Form::Full).unwrap();
    let options = RunOptions {
        joust_binary: "/nonexistent".into(),
        joust_version: "t".into(),
        ..RunOptions::default()
    };
    let mut heard = Heard::default();
    let run = run(plan, &options, &mut heard, &AtomicBool::new(false)).unwrap();
    assert_eq!(run.visits.len(), 4);
    for visit in &run.visits {
        assert_eq!(visit.state, VisitState::Measured);
        assert!(visit.rate_per_s.unwrap() > 0.0);
        assert_eq!(visit.server.is_some(), visit.contender == 0);
    }
    assert_eq!(run.contenders[0].body_sha256, run.contenders[1].body_sha256);
    assert_eq!(heard.0, [""; 0], "a loopback address wants no note");
    own.stop().unwrap();
}
