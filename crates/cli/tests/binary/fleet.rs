//! Fleets with a real broker, agents and a controller as processes: what is measured, and what is said when one of them
//! is killed, stopped or refused. The truth is the access log of the server. Start reading at [`Fleet::start`].

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use record::LoadRecord;

use crate::{Server, joust, lines, said, stdout};

/// Longest wait for anything.
const LONG: Duration = Duration::from_secs(60);

pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < LONG, "it never came to be: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The record in a file, which adds up.
pub(crate) fn record_of(path: &Path) -> LoadRecord {
    let record = LoadRecord::from_json(&std::fs::read_to_string(path).unwrap()).unwrap();
    record.balance().unwrap();
    record
}

/// Runs tests that mostly wait at once, and fails with the names of those that failed.
pub(crate) fn all_at_once(tests: &[(&'static str, fn())]) {
    let failed: Vec<&str> = std::thread::scope(|scope| {
        let begin = |&(name, test): &(&'static str, fn())| {
            let run = std::thread::Builder::new().name(name.to_owned()).spawn_scoped(scope, test);
            (name, run.expect("a thread starts"))
        };
        let running: Vec<_> = tests.iter().map(begin).collect();
        let ended =
            running.into_iter().filter_map(|(name, run)| run.join().is_err().then_some(name));
        ended.collect()
    });
    assert!(failed.is_empty(), "failed: {failed:?}");
}

/// A process that is ended with the test.
pub(crate) struct Ours(pub(crate) Child);

impl Ours {
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.0.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A broker, its agents and a server with an access log.
pub(crate) struct Fleet {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) port: u16,
    pub(crate) broker: Option<Ours>,
    pub(crate) agents: Vec<Ours>,
    pub(crate) server: Option<Server>,
}

impl Fleet {
    /// `None` where no broker is on this machine, which is noted.
    pub(crate) fn start(agents: usize) -> Option<Self> {
        if Command::new("nats-server").arg("--version").output().is_err() {
            skips::note("nats-server is not installed (scripts/peers.sh brings it)");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("access.log");
        let server = Server::start(&["--fixed", "64B", "--access-log", log.to_str().unwrap()]);
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let mut fleet =
            Self { folder, port, broker: None, agents: Vec::new(), server: Some(server) };
        fleet.start_broker();
        for number in 1..=agents {
            let name = format!("a{number}");
            fleet.agent(&["--join", &fleet.url(), "--name", &name]);
        }
        fleet.wait_for(agents);
        Some(fleet)
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    pub(crate) fn start_broker(&mut self) {
        let mut broker = Command::new("nats-server");
        broker.args(["-a", "127.0.0.1", "-p", &self.port.to_string(), "-js", "-sd"]);
        broker.arg(self.folder.path().join("jetstream"));
        let log = std::fs::File::create(self.folder.path().join("nats.log")).unwrap();
        let child = broker.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap();
        self.broker = Some(Ours(child));
        until("the broker listens", || {
            TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_ok()
        });
    }

    pub(crate) fn agent(&mut self, args: &[&str]) {
        let spool = self.spool();
        let log = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.folder.path().join("agents.log"))
            .unwrap();
        let mut agent = joust(&["agent", "--spool", spool.to_str().unwrap()]);
        let child = agent.args(args).stderr(log).spawn().unwrap();
        self.agents.push(Ours(child));
    }

    pub(crate) fn spool(&self) -> PathBuf {
        self.folder.path().join("spool")
    }

    /// Until so many agents answer.
    pub(crate) fn wait_for(&self, agents: usize) {
        let remark = format!("{agents} agents answered.");
        until("all agents answer", || {
            stdout(&joust(&["fleet", "agents", "--fleet", &self.url()]).output().unwrap())
                .contains(&remark)
        });
    }

    /// `joust load --fleet`, whose record goes to a file.
    pub(crate) fn load(&self, args: &[&str]) -> Child {
        let json = self.json();
        let url = &self.server.as_ref().unwrap().url;
        joust(&["load", url, "--fleet", &self.url(), "--json", json.to_str().unwrap()])
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    pub(crate) fn json(&self) -> PathBuf {
        self.folder.path().join("load.json")
    }

    pub(crate) fn record(&self) -> LoadRecord {
        record_of(&self.json())
    }

    /// Lines of the server's log; it goes on.
    pub(crate) fn logged(&self) -> usize {
        lines(&self.folder.path().join("access.log"))
    }

    /// Until requests come.
    pub(crate) fn wait_for_requests(&self, more_than: usize) {
        until("requests come", || self.logged() > more_than);
    }

    /// All requests that the server ever answered: it is ended.
    pub(crate) fn answered(&mut self) -> u64 {
        assert_eq!(self.server.take().unwrap().drain(), Some(0));
        self.logged() as u64
    }

    /// The broker again, with the files of `joust fleet init`, and their folder.
    pub(crate) fn secured(&mut self) -> PathBuf {
        let made = self.folder.path().join("made");
        let init = ["fleet", "init", made.to_str().unwrap(), "--host", "127.0.0.1", "--port"];
        drop(self.broker.take());
        let init = joust(&init).arg(self.port.to_string()).output().unwrap();
        assert_eq!(init.status.code(), Some(0), "{}", said(&init));
        let broker = Command::new("nats-server")
            .args(["-c", "nats.conf"])
            .current_dir(&made)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        self.broker = Some(Ours(broker));
        made
    }

    /// How often agents have said that.
    pub(crate) fn agents_said(&self, text: &str) -> usize {
        let log = std::fs::read_to_string(self.folder.path().join("agents.log"));
        log.unwrap_or_default().matches(text).count()
    }

    /// `joust fleet COMMAND`.
    pub(crate) fn command(&self, command: &[&str]) -> Command {
        let mut joust = joust(&[&["fleet"], command].concat());
        joust.args(["--fleet", &self.url()]);
        joust
    }

    /// The name of the only run that the broker knows.
    pub(crate) fn run(&self) -> String {
        let status = stdout(&self.command(&["status"]).output().unwrap());
        let run =
            status.split_whitespace().find(|word| word.starts_with('r') && word.contains('-'));
        run.unwrap_or_else(|| panic!("no run: {status}")).to_owned()
    }

    /// Until no agent has a process of a load.
    pub(crate) fn wait_for_no_load(&self) {
        for Ours(agent) in &self.agents {
            let pid = agent.id();
            let children = format!("/proc/{pid}/task/{pid}/children");
            until("no process of a load is left", || {
                std::fs::read_to_string(&children).unwrap().trim().is_empty()
            });
        }
    }
}

/// How a load ended: exit code, report, messages.
pub(crate) fn ended(load: Child) -> (Option<i32>, String, String) {
    let output = load.wait_with_output().unwrap();
    let report = stdout(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    (output.status.code(), report, said(&output))
}

/// Whether a process with all of these in its command line runs.
fn runs(texts: &[&str]) -> bool {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    all.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok()).any(|line| {
        let line = String::from_utf8_lossy(&line);
        texts.iter().all(|text| line.contains(text))
    })
}

fn a_fleet_gives_the_result_of_one_machine() {
    let Some(mut fleet) = Fleet::start(3) else { return };
    let load = ["-c", "12", "-d", "3", "--rate", "300/s", "--raw", "5000"];
    let (code, report, errors) = ended(fleet.load(&load));
    assert_eq!(code, Some(0), "{report} {errors}");
    let together = fleet.record();
    let of_fleet = together.fleet.as_ref().unwrap();
    assert!(of_fleet.is_whole() && of_fleet.agents.len() == 3, "{of_fleet:?}");
    assert_eq!((of_fleet.windows, of_fleet.windows_known), (9, 9));
    assert!(report.contains("of 3 agents: a1, a2 and a3; coverage 100 %"), "{report}");
    let (skew, error) = (of_fleet.skew.unwrap(), of_fleet.clock_error().unwrap());
    let said = format!("within {skew} of each other (clocks known to {error})");
    assert!(report.contains(&said), "{said}: {report}");
    // The same instants as one machine's, to the nanosecond.
    let one = joust(&["load", &fleet.server.as_ref().unwrap().url, "--json", "-", "-q"])
        .args(load)
        .output()
        .unwrap();
    let one = LoadRecord::from_json(&stdout(&one)).unwrap();
    let due = |record: &LoadRecord| {
        let mut due: Vec<u64> = record.raw.iter().map(|sample| sample.due.0).collect();
        due.sort_unstable();
        due
    };
    assert_eq!((together.requests.started, together.raw_stride), (900, 1));
    assert_eq!(due(&together), due(&one));
    assert_eq!((together.connections, together.plan.connections), (12, 12));
    let sent = together.requests.started + together.probes + one.requests.started + one.probes;
    assert_eq!(fleet.answered(), sent);
    assert_eq!(std::fs::read_dir(fleet.spool()).unwrap().count(), 0, "what is collected goes");
}

fn an_agent_that_is_killed_is_missed_and_nothing_is_counted_twice() {
    for (policy, alone) in [("abort", false), ("continue", true)] {
        let Some(mut fleet) = Fleet::start(3) else { return };
        let load =
            ["-c", "6", "-d", "14", "--rate", "200/s", "--dead-man", "4s", "--on-loss", policy];
        let load = fleet.load(&load);
        fleet.wait_for_requests(300);
        fleet.agents[1].signal("KILL");
        let (code, report, errors) = ended(load);
        assert_eq!(code, Some(3), "{report} {errors}");
        assert!(report.contains("INCOMPLETE") && report.contains("a2: it was lost"), "{report}");
        let record = fleet.record();
        let of_fleet = record.fleet.as_ref().unwrap();
        let missing = |name: &str| {
            let agent = of_fleet.agents.iter().find(|agent| agent.name == name).unwrap();
            !agent.gaps.is_empty()
        };
        assert_eq!([missing("a1"), missing("a2"), missing("a3")], [!alone, true, !alone]);
        // Its load ended with it: what it started since its last window was answered, and is not known.
        assert_eq!(record.connections, 6);
        let known = record.requests.started + record.probes;
        let answered = fleet.answered();
        assert!(known <= answered && answered < known + 200, "{known} of {answered}");
    }
}

fn an_agent_that_is_stopped_for_a_while_sends_what_it_has_measured() {
    let Some(mut fleet) = Fleet::start(2) else { return };
    let load = ["-c", "4", "-d", "9", "--rate", "100/s", "--on-loss", "continue"];
    let load = fleet.load(&load);
    fleet.wait_for_requests(100);
    fleet.agents[0].signal("STOP");
    std::thread::sleep(Duration::from_secs(4));
    fleet.agents[0].signal("CONT");
    let (code, report, errors) = ended(load);
    assert_eq!(code, Some(0), "{report} {errors}");
    assert!(errors.contains("agent a1 was not heard for some seconds"), "{errors}");
    let record = fleet.record();
    assert_eq!(record.requests.started, 900);
    assert_eq!(fleet.answered(), 900 + record.probes);
}

fn a_broker_that_is_killed_and_comes_back_loses_nothing() {
    let Some(mut fleet) = Fleet::start(2) else { return };
    let load = fleet.load(&["-c", "4", "-d", "8", "--rate", "100/s"]);
    fleet.wait_for_requests(150);
    drop(fleet.broker.take());
    std::thread::sleep(Duration::from_secs(2));
    fleet.start_broker();
    let (code, report, errors) = ended(load);
    assert_eq!(code, Some(0), "{report} {errors}");
    assert!(errors.contains("the connection to the broker is lost"), "{errors}");
    let record = fleet.record();
    assert!(record.fleet.as_ref().unwrap().is_whole());
    assert_eq!(fleet.answered(), record.requests.started + record.probes);
}

fn a_controller_that_is_killed_leaves_agents_that_end_and_a_run_that_can_be_collected() {
    let Some(mut fleet) = Fleet::start(2) else { return };
    let load = ["-c", "4", "-d", "60", "--rate", "100/s", "--dead-man", "3s"];
    let load = Ours(fleet.load(&load));
    fleet.wait_for_requests(150);
    drop(load);
    let at_its_end = fleet.logged();
    let mut before = at_its_end;
    until("nothing loads any more", || {
        std::thread::sleep(Duration::from_millis(1_500));
        std::mem::replace(&mut before, fleet.logged()) == fleet.logged()
    });
    // 3 s of 100/s until the timer, and one for what was not in the log yet.
    assert!(fleet.logged() - at_its_end < 450, "{} after {at_its_end}", fleet.logged());
    let run = fleet.run();
    let json = fleet.json();
    let collect =
        ["fleet", "collect", &run, "--fleet", &fleet.url(), "--json", json.to_str().unwrap()];
    let collected = joust(&collect).output().unwrap();
    assert_eq!(collected.status.code(), Some(3), "{}", said(&collected));
    let record = fleet.record();
    assert!(
        record.interrupted && record.fleet.as_ref().unwrap().agents.iter().all(|one| one.is_whole)
    );
    assert_eq!(fleet.answered(), record.requests.started + 3, "three probes before the load");
}

fn what_is_not_permitted_is_refused_and_nothing_is_sent() {
    let Some(mut fleet) = Fleet::start(0) else { return };
    let path = fleet.folder.path().join("agent.toml");
    let cases = [
        ("targets = [\"10.0.0.0/8:80\"]", "may not be loaded from here"),
        ("targets = [\"127.0.0.1\"]\nrate_max = 10", "rate_max"),
        ("targets = [\"127.0.0.1\"]\ntrust = [\"UABC\"]", "is not signed"),
    ];
    for (text, why) in cases {
        std::fs::write(&path, text).unwrap();
        let config = path.to_str().unwrap();
        fleet.agents.clear();
        fleet.wait_for(0);
        fleet.agent(&["--join", &fleet.url(), "--name", "strict", "--config", config]);
        fleet.wait_for(1);
        let (code, report, errors) = ended(fleet.load(&["-d", "2", "--rate", "100/s"]));
        assert_eq!(code, Some(1), "{report} {errors}");
        assert!(
            errors.contains("the load did not begin: strict failed") && errors.contains(why),
            "{errors}"
        );
        fleet.wait_for_no_load();
    }
    let (code, _, errors) = ended(fleet.load(&["-d", "2", "--agents", "2"]));
    assert_eq!(code, Some(1));
    assert!(errors.contains("1 of 2 agents answered"), "{errors}");
    assert_eq!(fleet.answered(), 3 * 4, "probes alone");
}

fn an_agent_works_for_one_run_at_a_time() {
    let Some(fleet) = Fleet::start(1) else { return };
    let first = fleet.load(&["-d", "6", "--rate", "50/s"]);
    fleet.wait_for_requests(20);
    let (code, _, errors) = ended(fleet.load(&["-d", "1", "--rate", "50/s"]));
    assert_eq!(code, Some(1));
    assert!(errors.contains("a1 works for another run"), "{errors}");
    let (code, report, errors) = ended(first);
    assert_eq!(code, Some(0), "{report} {errors}");
}

fn a_fleet_on_this_machine_comes_and_goes_with_one_command() {
    if Command::new("nats-server").arg("--version").output().is_err() {
        return skips::note("nats-server is not installed (scripts/peers.sh brings it)");
    }
    let mut up = joust(&["fleet", "up", "--local", "2"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(up.stdout.take().unwrap()), &mut line)
        .unwrap();
    let up = Ours(up);
    let url = line.split(": ").next().unwrap().to_owned();
    assert!(url.starts_with("nats://127.0.0.1:"), "{line}");
    let server = Server::start(&["--fixed", "64B"]);
    let load =
        joust(&["load", &server.url, "--fleet", &url, "-d", "2", "-c", "4"]).output().unwrap();
    assert_eq!(load.status.code(), Some(0), "{}", said(&load));
    // Its agents have the address in their command line, the broker its folder.
    let folder = "joust-fleet-";
    let port = url.rsplit(':').next().unwrap();
    assert!(runs(&[&url]) && runs(&["nats-server", folder, port]));
    up.signal("INT");
    until("all of it is gone", || !runs(&[&url]) && !runs(&["nats-server", folder, port]));
}

fn keys_and_certificates_of_init_admit_who_should_be_and_nobody_else() {
    let Some(mut fleet) = Fleet::start(0) else { return };
    let made = fleet.secured();
    let config = made.join("agent.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text.replace("targets = []", "targets = [\"127.0.0.1\"]")).unwrap();
    for name in ["s1", "s2"] {
        fleet.agent(&["--config", config.to_str().unwrap(), "--name", name]);
    }
    let place = made.to_str().unwrap().to_owned();
    let found = |place: &str| joust(&["fleet", "agents", "--fleet", place]).output().unwrap();
    until("both answer", || stdout(&found(&place)).contains("2 agents answered."));
    let url = fleet.server.as_ref().unwrap().url.clone();
    let load =
        joust(&["load", &url, "--fleet", &place, "-d", "2", "--rate", "100/s"]).output().unwrap();
    assert_eq!(load.status.code(), Some(0), "{}", said(&load));
    // Who trusts the broker and has no key does not come in.
    let text = std::fs::read_to_string(made.join("controller.toml")).unwrap();
    let stranger = made.join("stranger.toml");
    let without =
        text.lines().filter(|line| !line.starts_with("nkey")).collect::<Vec<_>>().join("\n");
    std::fs::write(&stranger, without).unwrap();
    let refused = found(stranger.to_str().unwrap());
    assert_eq!(refused.status.code(), Some(1), "{}", stdout(&refused));
    assert!(said(&refused).to_lowercase().contains("authorization"), "{}", said(&refused));
    // An agent's key finds nobody and writes nothing: it commands nobody.
    let thief = made.join("thief.toml");
    std::fs::write(&thief, text.replace("controller.nk", "agent.nk")).unwrap();
    let stolen = thief.to_str().unwrap();
    assert!(stdout(&found(stolen)).contains("0 agents answered."));
    let status = joust(&["fleet", "status", "--fleet", stolen]).output().unwrap();
    assert_eq!(status.status.code(), Some(1), "{}", stdout(&status));
    // A controller that signs with another key is not obeyed.
    let other = made.join("other.toml");
    std::fs::write(&other, text.replace("sign.nk", "controller.nk")).unwrap();
    let load = ["load", &url, "--fleet", other.to_str().unwrap(), "-d", "1", "--rate", "100/s"];
    let load = joust(&load).output().unwrap();
    assert!(said(&load).contains("which `trust` in agent.toml does not name"), "{}", said(&load));
}

/// They mostly wait, so all of them run at once.
#[test]
fn fleets_on_this_machine() {
    all_at_once(&[
        (
            "a_fleet_gives_the_result_of_one_machine",
            a_fleet_gives_the_result_of_one_machine as fn(),
        ),
        (
            "an_agent_that_is_killed_is_missed_and_nothing_is_counted_twice",
            an_agent_that_is_killed_is_missed_and_nothing_is_counted_twice as fn(),
        ),
        (
            "an_agent_that_is_stopped_for_a_while_sends_what_it_has_measured",
            an_agent_that_is_stopped_for_a_while_sends_what_it_has_measured as fn(),
        ),
        (
            "a_broker_that_is_killed_and_comes_back_loses_nothing",
            a_broker_that_is_killed_and_comes_back_loses_nothing as fn(),
        ),
        (
            "a_controller_that_is_killed_leaves_agents_that_end_and_a_run_that_can_be_collected",
            a_controller_that_is_killed_leaves_agents_that_end_and_a_run_that_can_be_collected
                as fn(),
        ),
        (
            "what_is_not_permitted_is_refused_and_nothing_is_sent",
            what_is_not_permitted_is_refused_and_nothing_is_sent as fn(),
        ),
        ("an_agent_works_for_one_run_at_a_time", an_agent_works_for_one_run_at_a_time as fn()),
        (
            "a_fleet_on_this_machine_comes_and_goes_with_one_command",
            a_fleet_on_this_machine_comes_and_goes_with_one_command as fn(),
        ),
        (
            "keys_and_certificates_of_init_admit_who_should_be_and_nobody_else",
            keys_and_certificates_of_init_admit_who_should_be_and_nobody_else as fn(),
        ),
    ]);
}
