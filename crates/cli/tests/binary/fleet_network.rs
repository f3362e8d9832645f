//! Fleets whose broker, controller, agents and server are machines of their own, as network namespaces on one bridge: a
//! link that fails in both directions or one, another monotonic clock, a full disk. The truth is the access log of the
//! server, which names each client's address. Needs root. Start reading at [`Net::new`].

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use record::{FleetAgent, FleetUse, LoadRecord};

use crate::fleet::{Ours, all_at_once, ended, record_of, until};

/// Networks of this process so far.
static NETS: AtomicU32 = AtomicU32::new(0);

/// A bridge in a namespace, and machines on it: the broker is 1, the server 2, the controller 3, agents from 11 on.
struct Net {
    prefix: String,
    nodes: Vec<u32>,
    folder: tempfile::TempDir,
    /// Ended before the namespaces go.
    processes: Vec<Ours>,
}

const BROKER: u32 = 1;
const SERVER: u32 = 2;
const CONTROLLER: u32 = 3;
const AGENT: u32 = 11;

fn ip(args: &[&str]) {
    let output = Command::new("ip").args(args).output().expect("ip runs");
    assert!(output.status.success(), "ip {args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

impl Net {
    /// `None` where this machine cannot, which is noted.
    fn new(agents: u32) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            skips::note("network namespaces need root");
            return None;
        }
        if Command::new("nats-server").arg("--version").output().is_err() {
            skips::note("nats-server is not installed (scripts/peers.sh brings it)");
            return None;
        }
        let number = NETS.fetch_add(1, Ordering::Relaxed);
        let prefix = format!("jf{}-{number}", std::process::id());
        let mut net = Self {
            prefix,
            nodes: Vec::new(),
            folder: tempfile::tempdir().unwrap(),
            processes: Vec::new(),
        };
        let switch = net.namespace(0);
        ip(&["netns", "add", &switch]);
        net.nodes.push(0);
        ip(&["-n", &switch, "link", "add", "bridge", "type", "bridge"]);
        ip(&["-n", &switch, "link", "set", "bridge", "up"]);
        let agents: Vec<u32> = (AGENT..AGENT + agents).collect();
        for node in [BROKER, SERVER, CONTROLLER].into_iter().chain(agents.iter().copied()) {
            net.add(node);
        }
        net.start_broker();
        net.start_server();
        let config = net.folder.path().join("agent.toml");
        std::fs::write(&config, "targets = [\"10.77.0.0/24\"]\n").unwrap();
        for node in agents {
            net.start_agent(node, &[], &net.folder.path().join("spool"));
        }
        Some(net)
    }

    fn namespace(&self, node: u32) -> String {
        format!("{}-{node}", self.prefix)
    }

    fn add(&mut self, node: u32) {
        let (own, switch) = (self.namespace(node), self.namespace(0));
        ip(&["netns", "add", &own]);
        self.nodes.push(node);
        let port = format!("port{node}");
        ip(&[
            "-n", &own, "link", "add", "eth0", "type", "veth", "peer", "name", &port, "netns",
            &switch,
        ]);
        ip(&["-n", &switch, "link", "set", &port, "master", "bridge", "up"]);
        ip(&["-n", &own, "addr", "add", &format!("10.77.0.{node}/24"), "dev", "eth0"]);
        ip(&["-n", &own, "link", "set", "eth0", "up"]);
        ip(&["-n", &own, "link", "set", "lo", "up"]);
    }

    /// A program on a machine, started through others (`unshare`).
    fn on(&self, node: u32, through: &[&str], program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace(node)]).args(through).arg(program);
        command.stdin(Stdio::null());
        command
    }

    fn log(&self, name: &str) -> std::fs::File {
        std::fs::File::create(self.folder.path().join(name)).unwrap()
    }

    fn start_broker(&mut self) {
        let mut broker = self.on(BROKER, &[], "nats-server");
        broker.args(["-a", "0.0.0.0", "-p", "4222", "-js", "-sd"]);
        broker.arg(self.folder.path().join("jetstream"));
        let child = broker.stdout(Stdio::null()).stderr(self.log("nats.log")).spawn().unwrap();
        self.processes.push(Ours(child));
    }

    fn start_server(&mut self) {
        let log = self.folder.path().join("access.log");
        let mut server = self.on(SERVER, &[], env!("CARGO_BIN_EXE_joust"));
        server.args(["serve", "--fixed", "64B", "--listen", "0.0.0.0:80", "--access-log"]);
        let server = server.arg(&log).stdout(Stdio::null()).stderr(self.log("serve.log")).spawn();
        self.processes.push(Ours(server.unwrap()));
    }

    fn start_agent(&mut self, node: u32, through: &[&str], spool: &std::path::Path) {
        let mut agent = self.on(node, through, env!("CARGO_BIN_EXE_joust"));
        agent.args(["agent", "--join", "nats://10.77.0.1:4222", "--name", &format!("a{node}")]);
        agent.arg("--config").arg(self.folder.path().join("agent.toml"));
        agent.arg("--spool").arg(spool);
        let log = self.log(&format!("agent{node}.log"));
        self.processes.push(Ours(agent.stderr(log).spawn().unwrap()));
    }

    /// `joust load --fleet` of so many agents.
    fn load(&self, agents: u32, args: &[&str]) -> Child {
        self.load_through(&[], agents, args)
    }

    /// The same, started through others.
    fn load_through(&self, through: &[&str], agents: u32, args: &[&str]) -> Child {
        let mut agents_answer = self.on(CONTROLLER, &[], env!("CARGO_BIN_EXE_joust"));
        agents_answer.args(["fleet", "agents", "--fleet", "nats://10.77.0.1:4222"]);
        let remark = format!("{agents} agents answered.");
        until("all agents answer", || {
            String::from_utf8_lossy(&agents_answer.output().unwrap().stdout).contains(&remark)
        });
        let mut load = self.on(CONTROLLER, through, env!("CARGO_BIN_EXE_joust"));
        load.args(["load", "http://10.77.0.2/", "--fleet", "nats://10.77.0.1:4222", "--json"]);
        load.arg(self.json()).args(args);
        load.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    fn json(&self) -> PathBuf {
        self.folder.path().join("load.json")
    }

    fn record(&self) -> LoadRecord {
        record_of(&self.json())
    }

    /// Requests that the server answered to that machine.
    fn answered_to(&self, node: u32) -> u64 {
        let client = format!("10.77.0.{node} ");
        let log =
            std::fs::read_to_string(self.folder.path().join("access.log")).unwrap_or_default();
        log.lines().filter(|line| line.starts_with(&client)).count() as u64
    }

    /// Until that machine has so many answers.
    fn wait_for(&self, node: u32, answers: u64) {
        until("answers", || self.answered_to(node) >= answers);
    }

    fn link(&self, node: u32, state: &str) {
        ip(&["-n", &self.namespace(0), "link", "set", &format!("port{node}"), state]);
    }

    /// Ends the server in order, so that its log is whole.
    fn end_server(&mut self) {
        self.processes[1].signal("TERM");
        until("the server has ended", || matches!(self.processes[1].0.try_wait(), Ok(Some(_))));
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        self.processes.clear();
        for node in self.nodes.drain(..) {
            let name = format!("{}-{node}", self.prefix);
            let _ = Command::new("ip").args(["netns", "del", &name]).status();
        }
    }
}

fn agent(record: &LoadRecord, node: u32) -> &FleetAgent {
    let name = format!("a{node}");
    let fleet = record.fleet.as_ref().expect("a fleet made it");
    fleet.agents.iter().find(|agent| agent.name == name).expect("it has a share")
}

/// Requests of each agent that are known.
fn known(record: &LoadRecord, node: u32) -> u64 {
    let name = format!("a{node}");
    record.parts.iter().find(|part| part.name == name).expect("it has a part").started
}

fn a_link_that_is_down_for_a_while_loses_nothing() {
    let Some(mut net) = Net::new(2) else { return };
    let load = net.load(2, &["-c", "4", "-d", "10", "--rate", "100/s", "--on-loss", "continue"]);
    net.wait_for(AGENT, 60);
    // To the broker and the controller alone: requests to the server go on.
    let own = net.namespace(AGENT);
    let cut = "add table inet cut; add chain inet cut out { type filter hook output priority 0; }; \
               add rule inet cut out ip daddr 10.77.0.1 drop";
    assert!(nft(&own, cut));
    std::thread::sleep(Duration::from_secs(4));
    assert!(nft(&own, "delete table inet cut"));
    let (code, report, errors) = ended(load);
    assert_eq!(code, Some(0), "{report} {errors}");
    assert!(errors.contains("agent a11 was not heard for some seconds"), "{errors}");
    net.end_server();
    let record = net.record();
    for node in [AGENT, AGENT + 1] {
        assert_eq!((known(&record, node), net.answered_to(node)), (500, 500), "a{node}");
    }
    let fleet = record.fleet.as_ref().unwrap();
    assert!(fleet.is_whole() && is_within_the_error(fleet), "{fleet:?}");
}

/// Two agents began as near to each other as their clocks are known; each may have woken up late by some.
fn is_within_the_error(fleet: &FleetUse) -> bool {
    let error = fleet.clock_error().unwrap();
    fleet.skew.unwrap() <= error + error
}

fn nft(namespace: &str, rules: &str) -> bool {
    let run = Command::new("ip").args(["netns", "exec", namespace, "nft", rules]).status();
    run.is_ok_and(|status| status.success())
}

fn an_agent_that_is_cut_off_ends_by_its_dead_man_timer_and_what_it_did_is_known_later() {
    for direction in ["output", "input"] {
        let Some(mut net) = Net::new(2) else { return };
        let load =
            ["-c", "4", "-d", "18", "--rate", "100/s", "--on-loss", "continue", "--dead-man", "4s"];
        let load = net.load(2, &load);
        net.wait_for(AGENT, 100);
        let before = net.answered_to(AGENT);
        let own = net.namespace(AGENT);
        let address = if direction == "output" { "daddr" } else { "saddr" };
        let cut = format!(
            "add table inet cut; add chain inet cut way {{ type filter hook {direction} priority 0; }}; \
             add rule inet cut way ip {address} 10.77.0.1 drop"
        );
        assert!(nft(&own, &cut));
        std::thread::sleep(Duration::from_secs(8));
        // 4 s at 50 requests/s, and what is known late of when it was cut off.
        let after = net.answered_to(AGENT);
        assert!(after - before < 50 * 6, "{direction}: it went on: {before}, {after}");
        std::thread::sleep(Duration::from_secs(1));
        assert_eq!(net.answered_to(AGENT), after, "{direction}: it has ended");
        assert!(nft(&own, "delete table inet cut"));
        let (code, report, errors) = ended(load);
        assert_eq!(code, Some(3), "{direction}: {report} {errors}");
        net.end_server();
        let record = net.record();
        assert_eq!(known(&record, AGENT + 1), 900);
        // All that it did came from its spool; what it did not is a gap.
        assert_eq!(known(&record, AGENT), net.answered_to(AGENT), "{direction}: {report}");
        let gaps = &agent(&record, AGENT).gaps;
        assert!(gaps.last().is_some_and(|gap| gap.until.0 == 18_000_000_000), "{gaps:?}");
        assert!(report.contains("INCOMPLETE"), "{report}");
    }
}

fn a_link_that_stays_down_is_named_with_the_time_that_is_in_doubt() {
    let Some(mut net) = Net::new(2) else { return };
    let load =
        ["-c", "4", "-d", "12", "--rate", "100/s", "--on-loss", "continue", "--dead-man", "5s"];
    let load = net.load(2, &load);
    net.wait_for(AGENT, 100);
    net.link(AGENT, "down");
    let (code, report, errors) = ended(load);
    assert_eq!(code, Some(3), "{report} {errors}");
    assert!(report.contains("a11: it was lost, nothing is known from"), "{report}");
    net.end_server();
    let record = net.record();
    let lost = agent(&record, AGENT);
    let [gap] = &lost.gaps[..] else { panic!("{lost:?}") };
    // 5 s after it heard its controller last, which was at most 2 s after its last window.
    let doubt = gap.may_load_until.expect("nobody knows whether it went on");
    assert!(doubt > gap.from && doubt.0 <= gap.from.0 + 9_000_000_000, "{gap:?}");
    // A link that is down stops its requests too: in flight was one a connection.
    let others = known(&record, AGENT + 1);
    let (known, answered) = (known(&record, AGENT), net.answered_to(AGENT));
    assert!(known <= answered + 4 && answered <= known + 110, "{known}, {answered}");
    assert_eq!(others, 600);
}

fn an_agent_with_another_monotonic_clock_begins_with_the_others() {
    let Some(mut net) = Net::new(1) else { return };
    net.add(AGENT + 1);
    let through = ["unshare", "--time", "--monotonic", "86400", "--fork", "--kill-child"];
    net.start_agent(AGENT + 1, &through, &net.folder.path().join("spool"));
    let (code, report, errors) = ended(net.load(2, &["-c", "4", "-d", "3", "--rate", "100/s"]));
    assert_eq!(code, Some(0), "{report} {errors}");
    let record = net.record();
    let fleet = record.fleet.as_ref().unwrap();
    assert!(is_within_the_error(fleet) && fleet.clock_error().unwrap().0 < 5_000_000, "{fleet:?}");
    assert_eq!(record.requests.started, 300);
    net.end_server();
    assert_eq!(net.answered_to(AGENT) + net.answered_to(AGENT + 1), 300);
}

fn an_agent_that_is_stopped_for_longer_than_its_dead_man_timer_loads_no_longer_and_says_what_it_did()
 {
    // The second is lost before it goes on.
    for others_do in [250, 600] {
        let Some(mut net) = Net::new(2) else { return };
        let load =
            ["-c", "4", "-d", "20", "--rate", "100/s", "--on-loss", "continue", "--dead-man", "3s"];
        let load = net.load(2, &load);
        net.wait_for(AGENT, 60);
        let stopped = &net.processes[2];
        stopped.signal("STOP");
        let (before, others) = (net.answered_to(AGENT), net.answered_to(AGENT + 1));
        // 50/s: it is stopped for 5 or 12 s.
        net.wait_for(AGENT + 1, others + others_do);
        let after = net.answered_to(AGENT);
        // 3 s of 50/s, counted from when it heard its controller last, and what was not in the log yet.
        assert!(after - before < 50 * 5, "it went on: {before}, {after}");
        net.processes[2].signal("CONT");
        let (code, report, errors) = ended(load);
        assert_eq!(code, Some(3), "{report} {errors}");
        net.end_server();
        let record = net.record();
        assert_eq!(net.answered_to(AGENT), after, "it began again");
        let known = [known(&record, AGENT), known(&record, AGENT + 1)];
        assert_eq!(known, [after, 1_000], "{report}");
        let gaps = &agent(&record, AGENT).gaps;
        assert!(gaps.last().is_some_and(|gap| gap.until.0 == 20_000_000_000), "{gaps:?}");
        assert!(report.contains("INCOMPLETE"), "{report}");
    }
}

/// The first has been up for a day longer than the second, so the instants of its clock are of the future.
fn a_controller_with_another_monotonic_clock_takes_a_run_over() {
    let Some(mut net) = Net::new(2) else { return };
    let through = ["unshare", "--time", "--monotonic", "86400", "--fork", "--kill-child"];
    let load = ["-c", "4", "-d", "14", "--rate", "100/s", "--dead-man", "5s"];
    let load = Ours(net.load_through(&through, 2, &load));
    net.wait_for(AGENT, 60);
    let mut status = net.on(CONTROLLER, &[], env!("CARGO_BIN_EXE_joust"));
    status.args(["fleet", "status", "--fleet", "nats://10.77.0.1:4222"]);
    let status = String::from_utf8(status.output().unwrap().stdout).unwrap();
    let run = status.split_whitespace().find(|word| word.starts_with('r') && word.contains('-'));
    let run = run.unwrap_or_else(|| panic!("no run: {status}"));
    drop(load);
    let mut collect = net.on(CONTROLLER, &[], env!("CARGO_BIN_EXE_joust"));
    collect.args(["fleet", "collect", run, "--fleet", "nats://10.77.0.1:4222", "--json"]);
    let collect =
        collect.arg(net.json()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (code, report, errors) = ended(collect);
    assert_eq!(code, Some(0), "{report} {errors}");
    net.end_server();
    let record = net.record();
    for node in [AGENT, AGENT + 1] {
        assert_eq!((known(&record, node), net.answered_to(node)), (700, 700), "a{node}");
    }
    let fleet = record.fleet.as_ref().unwrap();
    assert!(fleet.is_whole() && fleet.clock_error().unwrap().0 < 50_000_000, "{fleet:?}");
}

fn a_full_disk_under_a_spool_is_told_and_the_result_is_whole() {
    let Some(mut net) = Net::new(0) else { return };
    net.add(AGENT);
    // Two pages: room for a few messages.
    let full = net.folder.path().join("full");
    std::fs::create_dir(&full).unwrap();
    let mount = format!("mount -t tmpfs -o size=8k none {0} && exec \"$0\" \"$@\"", full.display());
    let through = ["unshare", "--mount", "sh", "-c", &mount];
    net.start_agent(AGENT, &through, &full);
    let (code, report, errors) = ended(net.load(1, &["-c", "4", "-d", "6", "--rate", "2000/s"]));
    assert_eq!(code, Some(0), "{report} {errors}");
    assert!(errors.contains("agent a11 cannot keep its results: No space left"), "{errors}");
    assert_eq!(net.record().requests.started, 12_000);
}

/// As those of [`crate::fleet`].
#[test]
fn fleets_in_a_network() {
    all_at_once(&[
        (
            "a_link_that_is_down_for_a_while_loses_nothing",
            a_link_that_is_down_for_a_while_loses_nothing as fn(),
        ),
        (
            "an_agent_that_is_cut_off_ends_by_its_dead_man_timer_and_what_it_did_is_known_later",
            an_agent_that_is_cut_off_ends_by_its_dead_man_timer_and_what_it_did_is_known_later
                as fn(),
        ),
        (
            "a_link_that_stays_down_is_named_with_the_time_that_is_in_doubt",
            a_link_that_stays_down_is_named_with_the_time_that_is_in_doubt as fn(),
        ),
        (
            "an_agent_with_another_monotonic_clock_begins_with_the_others",
            an_agent_with_another_monotonic_clock_begins_with_the_others as fn(),
        ),
        (
            "an_agent_that_is_stopped_for_longer_than_its_dead_man_timer_loads_no_longer_and_says_what_it_did",
            an_agent_that_is_stopped_for_longer_than_its_dead_man_timer_loads_no_longer_and_says_what_it_did
                as fn(),
        ),
        (
            "a_controller_with_another_monotonic_clock_takes_a_run_over",
            a_controller_with_another_monotonic_clock_takes_a_run_over as fn(),
        ),
        (
            "a_full_disk_under_a_spool_is_told_and_the_result_is_whole",
            a_full_disk_under_a_spool_is_told_and_the_result_is_whole as fn(),
        ),
    ]);
}
