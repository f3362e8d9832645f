//! Fleets whose broker is killed in each phase of a run, and runs that another controller takes over. The truth is the
//! access log of the server. Start reading at [`fleets_that_fail_in_each_phase`].

use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::Duration;

use crate::fleet::{Fleet, Ours, all_at_once, ended, until};

/// Requests before a load, which learn the body.
const PROBES: u64 = 3;

impl Fleet {
    /// `kill -9` of the broker, and another one at once.
    fn broker_dies_and_comes_back(&mut self) {
        drop(self.broker.take());
        self.start_broker();
    }

    /// `joust fleet collect`, whose record goes where that of a load does.
    fn collect(&self, run: &str) -> Child {
        let mut collect = self.command(&["collect", run]);
        collect.arg("--json").arg(self.json());
        collect.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// What was reported is what the server's log has; `known`: how the load ended.
    fn is_true(&mut self, (code, report, errors): (Option<i32>, String, String)) -> Option<i32> {
        self.wait_for_no_load();
        let answered = self.answered();
        match code {
            Some(0) => {
                let record = self.record();
                assert!(record.fleet.as_ref().unwrap().is_whole(), "{report}");
                assert_eq!(answered, record.requests.started + PROBES, "{report} {errors}");
                assert_eq!(std::fs::read_dir(self.spool()).unwrap().count(), 0, "{errors}");
            }
            // No agent began.
            Some(1) => {
                assert!(errors.contains("the load did not begin"), "{errors}");
                assert_eq!(answered, PROBES, "{errors}");
            }
            Some(3) => {
                assert!(report.contains("INCOMPLETE"), "{report}");
                let record = self.record();
                let known = record.requests.started + PROBES;
                let agents = &record.fleet.as_ref().unwrap().agents;
                let all_whole = agents.iter().all(|agent| agent.is_whole);
                assert!(known == answered || known < answered && !all_whole, "{known}, {answered}");
            }
            other => panic!("exit code {other:?}: {report} {errors}"),
        }
        code
    }
}

fn a_broker_that_is_killed_while_plans_are_fetched_is_waited_for() {
    let Some(mut fleet) = Fleet::start(2) else { return };
    let load = fleet.load(&["-c", "4", "-d", "3", "--rate", "100/s"]);
    until("an agent has its order", || fleet.agents_said(": share ") > 0);
    fleet.broker_dies_and_comes_back();
    let ended = ended(load);
    let errors = ended.2.clone();
    assert_eq!(fleet.is_true(ended), Some(0), "{errors}");
}

/// Whether the load begins depends on how soon the broker is back: but all agents begin, or what each did is told.
fn a_broker_that_is_killed_before_the_start_is_no_riddle() {
    let Some(mut fleet) = Fleet::start(2) else { return };
    let load = fleet.load(&["-c", "4", "-d", "4", "--rate", "100/s", "--dead-man", "3s"]);
    until("both are ready", || fleet.agents_said(": ready") == 2);
    fleet.broker_dies_and_comes_back();
    let ended = ended(load);
    fleet.is_true(ended);
}

fn a_broker_that_is_away_from_before_the_start_until_long_after_it_begins_nothing_by_halves() {
    let Some(mut fleet) = Fleet::start(2) else { return };
    let load = fleet.load(&["-c", "4", "-d", "20", "--rate", "100/s", "--dead-man", "3s"]);
    until("both are ready", || fleet.agents_said(": ready") == 2);
    drop(fleet.broker.take());
    // Longer than from the last order to the start, and than the dead-man timer.
    std::thread::sleep(Duration::from_secs(8));
    let logged = fleet.logged();
    assert!(logged <= PROBES as usize + 7 * 100, "it went on: {logged}");
    fleet.start_broker();
    let ended = ended(load);
    assert_ne!(ended.0, Some(0), "{} {}", ended.1, ended.2);
    fleet.is_true(ended);
}

fn a_broker_that_is_killed_while_results_are_collected_loses_nothing() {
    let Some(mut fleet) = Fleet::start(2) else { return };
    let load = fleet.load(&["-c", "4", "-d", "4", "--rate", "100/s"]);
    // Before the last windows are sent, and until all of it is over on the agents.
    fleet.wait_for_requests(330);
    drop(fleet.broker.take());
    until("both loads are over", || fleet.agents_said("the load is over") == 2);
    fleet.start_broker();
    let ended = ended(load);
    let (report, errors) = (ended.1.clone(), ended.2.clone());
    assert_eq!(fleet.is_true(ended), Some(0), "{report} {errors}");
    let record = fleet.record();
    assert_eq!(record.requests.started, 400);
}

fn a_run_is_taken_over_from_a_controller_that_was_killed() {
    let Some(mut fleet) = Fleet::start(2) else { return };
    let load = Ours(fleet.load(&["-c", "4", "-d", "8", "--rate", "100/s", "--dead-man", "6s"]));
    fleet.wait_for_requests(100);
    let run = fleet.run();
    drop(load);
    let ended = ended(fleet.collect(&run));
    let (report, errors) = (ended.1.clone(), ended.2.clone());
    assert_eq!(fleet.is_true(ended), Some(0), "{report} {errors}");
    assert_eq!(fleet.record().requests.started, 800);
}

fn of_two_controllers_the_later_one_has_the_run_and_the_result() {
    let Some(mut fleet) = Fleet::start(2) else { return };
    let first = fleet.load(&["-c", "4", "-d", "8", "--rate", "100/s"]);
    fleet.wait_for_requests(100);
    let run = fleet.run();
    let second = fleet.collect(&run);
    let (code, report, errors) = ended(first);
    assert_eq!(code, Some(1), "{report} {errors}");
    assert!(errors.contains(&format!("run {run} is commanded by another controller")), "{errors}");
    let ended = ended(second);
    let (report, errors) = (ended.1.clone(), ended.2.clone());
    assert_eq!(fleet.is_true(ended), Some(0), "{report} {errors}");
    assert_eq!(fleet.record().requests.started, 800);
    // It was whole, so nothing is left to collect.
    let again = fleet.command(&["collect", &run]).output().unwrap();
    assert!(crate::said(&again).contains("nothing to collect"), "{}", crate::said(&again));
}

fn agents_that_have_no_share_stay_out_of_it() {
    let Some(mut fleet) = Fleet::start(3) else { return };
    let (code, _, errors) = ended(fleet.load(&["-c", "2", "-d", "1"]));
    assert_eq!(code, Some(2), "{errors}");
    assert!(errors.contains("2 connections cannot be divided among 3 agents"), "{errors}");
    let load = ["-c", "2", "-d", "2", "--rate", "100/s", "--agents", "2"];
    let ended = ended(fleet.load(&load));
    let (report, errors) = (ended.1.clone(), ended.2.clone());
    assert!(report.contains("of 2 agents: a1 and a2; coverage 100 %"), "{report}");
    assert_eq!((fleet.agents_said(": share "), fleet.agents_said("of 2")), (2, 2));
    assert_eq!(ended.0, Some(0), "{report} {errors}");
    assert_eq!(fleet.record().requests.started, 200);
    // The refused one had sent its probes before agents were asked.
    assert_eq!(fleet.answered(), 200 + 2 * PROBES);
}

/// A control group (version 1) whose processes get so little CPU time of each 100 ms.
struct Quota(PathBuf);

impl Quota {
    fn new(name: &str, micros: u32) -> Option<Self> {
        let quota = Self(PathBuf::from("/sys/fs/cgroup/cpu").join(name));
        let set = std::fs::create_dir(&quota.0)
            .and_then(|()| std::fs::write(quota.0.join("cpu.cfs_period_us"), "100000"))
            .and_then(|()| std::fs::write(quota.0.join("cpu.cfs_quota_us"), micros.to_string()));
        if let Err(error) = set {
            skips::note(format!("no quota of CPU time can be set (cgroup v1): {error}"));
            return None;
        }
        Some(quota)
    }

    fn take(&self, pid: &str) {
        std::fs::write(self.0.join("cgroup.procs"), pid).unwrap();
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        let root = self.0.parent().unwrap().join("cgroup.procs");
        for pid in std::fs::read_to_string(self.0.join("cgroup.procs")).unwrap_or_default().lines()
        {
            let _ = std::fs::write(&root, pid);
        }
        let _ = std::fs::remove_dir(&self.0);
    }
}

fn an_agent_that_gets_too_little_cpu_time_is_named_as_the_limit() {
    let Some(mut fleet) = Fleet::start(1) else { return };
    let Some(quota) = Quota::new(&format!("joust-{}", std::process::id()), 5_000) else { return };
    let url = fleet.url();
    fleet.agent(&["--join", &url, "--name", "a2"]);
    quota.take(&fleet.agents[1].0.id().to_string());
    fleet.wait_for(2);
    // More than a twentieth of a CPU can send.
    let load = ["-c", "4", "-d", "8", "--rate", "8000/s", "--clock-error", "1s"];
    let (code, report, errors) = ended(fleet.load(&load));
    assert!(matches!(code, Some(0 | 4)), "{report} {errors}");
    let record = fleet.record();
    assert!(record.fleet.as_ref().unwrap().is_whole(), "{report}");
    assert_eq!(fleet.answered(), record.requests.started + PROBES, "{report}");
    assert!(report.contains("a2: the quota stopped us in"), "{report}");
    assert!(!report.contains("a1: the quota stopped us in"), "{report}");
}

/// As those of [`crate::fleet`].
#[test]
fn fleets_that_fail_in_each_phase() {
    all_at_once(&[
        (
            "a_broker_that_is_killed_while_plans_are_fetched_is_waited_for",
            a_broker_that_is_killed_while_plans_are_fetched_is_waited_for as fn(),
        ),
        (
            "a_broker_that_is_killed_before_the_start_is_no_riddle",
            a_broker_that_is_killed_before_the_start_is_no_riddle as fn(),
        ),
        (
            "a_broker_that_is_away_from_before_the_start_until_long_after_it_begins_nothing_by_halves",
            a_broker_that_is_away_from_before_the_start_until_long_after_it_begins_nothing_by_halves
                as fn(),
        ),
        (
            "a_broker_that_is_killed_while_results_are_collected_loses_nothing",
            a_broker_that_is_killed_while_results_are_collected_loses_nothing as fn(),
        ),
        (
            "a_run_is_taken_over_from_a_controller_that_was_killed",
            a_run_is_taken_over_from_a_controller_that_was_killed as fn(),
        ),
        (
            "of_two_controllers_the_later_one_has_the_run_and_the_result",
            of_two_controllers_the_later_one_has_the_run_and_the_result as fn(),
        ),
        (
            "an_agent_that_gets_too_little_cpu_time_is_named_as_the_limit",
            an_agent_that_gets_too_little_cpu_time_is_named_as_the_limit as fn(),
        ),
        (
            "agents_that_have_no_share_stay_out_of_it",
            agents_that_have_no_share_stay_out_of_it as fn(),
        ),
    ]);
}
