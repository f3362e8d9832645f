//! `joust run --fleet`: servers here, their load from agents. The truth is the access log of each server. Start reading
//! at [`a_study_is_loaded_by_agents_and_every_request_is_in_the_servers_logs`].

use std::path::Path;
use std::process::{Command, Stdio};

use record::{NetworkKind, RunRecord, VisitState};

use crate::fleet::{Fleet, until};
use crate::{joust, said};

const STUDY: &str = r#"
name = "agents"
question = "Which is faster, loaded by agents?"
metrics = ["throughput"]
budget = "600s"
keep_disturbed = true

[workload]
page = 100
connections = 8

[blocks]
min = 2
max = 2

[visit]
warm_up = "200ms"
measure = "2s"

[[contender]]
name = "reactor"
server = "joust"
settings = { model = "reactor", access-log = "common" }

[[contender]]
name = "pool"
server = "joust"
settings = { model = "pool", access-log = "common" }
"#;

/// Runs the study in a folder with these flags.
fn run(folder: &Path, flags: &[&str]) -> std::process::Output {
    std::fs::write(folder.join("study.toml"), STUDY).unwrap();
    let args = [&["run", "study.toml", "--quiet", "--out", "out"][..], flags].concat();
    joust(&args).current_dir(folder).output().unwrap()
}

#[test]
fn a_study_is_loaded_by_agents_and_every_request_is_in_the_servers_logs() {
    let Some(fleet) = Fleet::start(2) else { return };
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &["--fleet", &fleet.url(), "--address", "127.0.0.1"]);
    // Two blocks decide nothing (3); but nothing may fail (1).
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}", said(&output));
    let text = std::fs::read_to_string(folder.path().join("out/run.json")).unwrap();
    let run = RunRecord::from_json(&text).unwrap();
    assert!(run.facts.named["generators"].starts_with("2 agents: a1, a2"), "{:?}", run.facts);
    let visits: Vec<_> =
        run.visits.iter().filter(|one| one.state == VisitState::Measured).collect();
    assert!(visits.len() >= 2, "{}", said(&output));
    for visit in visits {
        let load = visit.load.as_ref().expect("it was loaded");
        load.balance().unwrap();
        let fleet = load.fleet.as_deref().expect("by a fleet");
        assert!(fleet.is_whole() && fleet.agents.len() == 2, "{fleet:?}");
        assert_eq!(load.parts.len(), 2, "both have a share");
        assert_eq!(visit.logged, Some(load.requests.done), "each request is a line of the log");
        assert!(visit.rate_per_s.is_some_and(|rate| rate > 0.0));
        let server = visit.server.expect("the server's processes were watched");
        assert!(server.cpu.0 > 0 && server.requests > 0, "{server:?}");
        // The window of the server's use is that of the load, without agreeing and collecting.
        let load_s = load.seconds;
        assert!(server.wall.as_secs_f64() > 1.8 && server.wall.as_secs_f64() < load_s + 1.0);
        let around = visit.surroundings.as_ref().expect("the machine was watched");
        assert_eq!(around.network.kind, NetworkKind::Machines);
        assert!(around.series.counters.keys().any(|name| name.starts_with("server.")));
        let watched = around.series.length().as_secs_f64();
        assert!(watched > 2.0 && watched < load_s + 2.0, "{:?}", around.series.at);
    }
    // Blocks that are loaded by others would be judged together with these.
    let args = ["run", "--repeat-of", "out", "--out", "more", "--quiet"];
    let output = joust(&args).current_dir(folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    let words = "its load came from 2 agents: a1, a2; servers at 127.0.0.1 and would now come from this machine";
    assert!(said(&output).contains(words), "{}", said(&output));
}

/// CPU time of a process so far, in ticks of 10 ms; `None` if it has ended.
fn ticks(pid: &str) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields = stat.rsplit_once(") ")?.1.split(' ').skip(11).take(2);
    Some(fields.filter_map(|field| field.parse::<u64>().ok()).sum())
}

#[test]
fn a_visit_whose_load_lost_a_part_is_made_again() {
    let Some(fleet) = Fleet::start(2) else { return };
    let folder = tempfile::tempdir().unwrap();
    let study = STUDY.replace(r#"measure = "2s""#, r#"measure = "8s""#);
    std::fs::write(folder.path().join("study.toml"), study).unwrap();
    let args = ["run", "study.toml", "--plain", "--out", "out", "--fleet", &fleet.url()];
    let run = joust(&args)
        .args(["--address", "127.0.0.1"])
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The process of the load is a child of the agent; before the start it does next to nothing.
    let children = format!("/proc/{0}/task/{0}/children", fleet.agents[0].0.id());
    let mut worker = String::new();
    until("the agent loads", || {
        worker = std::fs::read_to_string(&children).unwrap_or_default().trim().to_owned();
        ticks(&worker).is_some_and(|ticks| ticks > 40)
    });
    assert!(Command::new("kill").args(["-s", "KILL", &worker]).status().unwrap().success());
    let output = run.wait_with_output().unwrap();
    let said = said(&output);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{said}");
    assert!(said.contains("the visit is made again: a part of the load is missing"), "{said}");
    assert!(said.contains("a1 failed: the process of the load was killed"), "{said}");
    let text = std::fs::read_to_string(folder.path().join("out/run.json")).unwrap();
    let run = RunRecord::from_json(&text).unwrap();
    let fleets = run.visits.iter().filter_map(|visit| visit.load.as_ref()?.fleet.as_deref());
    assert!(run.visits.len() >= 4 && fleets.clone().count() == run.visits.len());
    assert!(fleets.clone().all(|fleet| fleet.is_whole()), "no part of a visit is missing");
}

#[test]
fn what_a_fleet_cannot_load_is_refused_before_anything_is_started() {
    let Some(fleet) = Fleet::start(1) else { return };
    let folder = tempfile::tempdir().unwrap();
    let url = fleet.url();
    let refused = |flags: &[&str], words: &str| {
        let output = run(folder.path(), flags);
        assert_eq!(output.status.code(), Some(2), "{flags:?}: {}", said(&output));
        assert!(said(&output).contains(words), "{flags:?}: {}", said(&output));
        assert!(!folder.path().join("out").exists(), "{flags:?}");
    };
    refused(&["--fleet", &url], "--address");
    refused(&["--address", "127.0.0.1"], "--fleet");
    refused(&["--fleet", &url, "--address", "192.0.2.1"], "must be an address of this machine");
    refused(&["--fleet", &url, "--address", "0.0.0.0"], "must be one address of this machine");
    refused(&["--fleet", &url, "--address", "127.0.0.1", "--dead-man", "1s"], "at least 3s");
    refused(&["--fleet", &url, "--address", "127.0.0.1", "--check"], "--check");
    let commands = STUDY
        .replace(r#"server = "joust""#, r#"server = "command""#)
        .replace(r#"model = "reactor", access-log = "common""#, r#"command = "/bin/true {port}""#)
        .replace(r#"model = "pool", access-log = "common""#, r#"command = "/bin/true -{port}""#);
    std::fs::write(folder.path().join("study.toml"), commands).unwrap();
    let output = joust(&["run", "study.toml", "--out", "out", "--fleet", &url])
        .args(["--address", "127.0.0.1"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(
        said(&output).contains("loopback only, and not from other machines"),
        "{}",
        said(&output)
    );
    assert!(!folder.path().join("out").exists(), "nothing is left");
}
