//! Artifacts that once passed unseen, planted in a live server: each must be found, confirmed, and act on what is
//! said. `make prove` measures how often; this is the gate's one trial of each. Start reading at [`findings`].

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use record::{Finding, LoadRecord, RunRecord, Severity};

use crate::{Server, joust, output, said, stdout};

/// What a load of a server with that fault finds.
fn findings(fault: &[&str], load: &[&str]) -> Vec<Finding> {
    let clean = ["--fixed", "3361", "--set", "MaxKeepAliveRequests=0"];
    let server = Server::start(&[&clean, fault].concat());
    let args = ["load", &server.url, "-c", "20", "--quiet", "--json", "-"];
    let output = output(&[&args, load].concat());
    let record = LoadRecord::from_json(&stdout(&output));
    record.unwrap_or_else(|error| panic!("{error}: {}", said(&output))).findings
}

/// The finding of a check that withholds or bounds.
fn acting<'f>(findings: &'f [Finding], check: &str) -> Option<&'f Finding> {
    let acts = |one: &&Finding| one.acts(Severity::Void) || one.acts(Severity::Bound);
    findings.iter().filter(acts).find(|one| one.check == check)
}

const TWO_SECONDS: [&str; 2] = ["-d", "2s"];

#[test]
fn stalls_of_nagles_algorithm_are_confirmed_by_delayed_acknowledgements() {
    let found = findings(&["--fault", "nodelay=off"], &TWO_SECONDS);
    let stalls = acting(&found, "delayed_ack").unwrap_or_else(|| panic!("{found:#?}"));
    assert!(stalls.share.is_some_and(|share| share.0 > 0.5), "nearly every reply: {stalls:?}");
}

#[test]
fn replies_that_are_held_and_released_together_are_confirmed() {
    let found = findings(&["--fault", "batch=50ms"], &TWO_SECONDS);
    assert!(acting(&found, "bursts_of_replies").is_some(), "{found:#?}");
}

#[test]
fn a_hundredth_of_the_replies_held_for_200_ms_is_confirmed_with_its_share() {
    let found = findings(&["--fault", "stall=1%,200ms"], &TWO_SECONDS);
    let stalls = acting(&found, "stalls_of_a_fixed_time").unwrap_or_else(|| panic!("{found:#?}"));
    let share = stalls.share.expect("a share of the requests").0;
    assert!((0.005..0.02).contains(&share), "planted 1 %: {stalls:?}");
}

#[test]
fn bodies_that_turn_to_zeros_are_confirmed_with_their_share() {
    let found =
        findings(&["--fault", "body=zeros,after:3000"], &["-n", "6000", "--verify", "hash=100%"]);
    let zeros = acting(&found, "bodies_change_under_load").unwrap_or_else(|| panic!("{found:#?}"));
    // Three are fetched before the load.
    assert!(zeros.share.is_some_and(|share| (share.0 - 0.5).abs() < 0.01), "{zeros:?}");
}

#[test]
fn a_server_without_a_fault_has_none_of_these() {
    let found = findings(&[], &TWO_SECONDS);
    for check in
        ["delayed_ack", "bursts_of_replies", "stalls_of_a_fixed_time", "bodies_change_under_load"]
    {
        assert!(!found.iter().any(|one| one.check == check), "{found:#?}");
    }
}

/// A script that starts our server; `fault` is a word of the shell.
fn starter(dir: &Path, name: &str, fault: &str) -> String {
    let path = dir.join(name);
    let joust = env!("CARGO_BIN_EXE_joust");
    let text = format!(
        "#!/bin/sh\nn=$(od -An -N1 -tu1 /dev/urandom | tr -d ' ')\nexec {joust} serve --fixed 3361 \
         --set MaxKeepAliveRequests=0 --listen 127.0.0.1:$1 {fault}\n"
    );
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    format!("{} {{port}}", path.display())
}

/// A run of a clean server and one with that fault.
fn compared(fault: &str, words: &[&str]) -> RunRecord {
    let dir = tempfile::tempdir().unwrap();
    let (clean, faulty) = (starter(dir.path(), "clean", ""), starter(dir.path(), "faulty", fault));
    let args = ["run", &clean, &faulty, "--set", "keep_disturbed=true", "--quiet", "--out", "out"];
    let run = joust(&[&args, words].concat()).current_dir(dir.path()).output().unwrap();
    let text = std::fs::read_to_string(dir.path().join("out/run.json"));
    RunRecord::from_json(&text.unwrap_or_else(|error| panic!("{error}: {}", said(&run)))).unwrap()
}

/// Whether the run withholds every verdict on its pair for that check.
fn withholds(run: &RunRecord, check: &str) -> bool {
    acting(&run.findings, check).is_some_and(|one| one.contenders.contains(&1))
        && !run.verdicts.is_empty()
        && run.verdicts.iter().all(|pair| matches!(pair.verdict, record::Verdict::Withheld { .. }))
}

#[test]
fn a_warm_up_inside_the_measurement_withholds_the_verdict() {
    let words = ["--set", "blocks.min=5", "--set", "blocks.max=5", "--set", "visit.measure=1s"];
    let run = compared("--fault warmup=2000,5ms", &[&words[..], &["-d", "40"]].concat());
    assert!(withholds(&run, "warm_up_inside"), "{:#?} {:#?}", run.findings, run.verdicts);
}

#[test]
fn a_server_whose_every_second_start_is_slow_withholds_the_verdict() {
    let words =
        ["--set", "blocks.min=24", "--set", "blocks.max=24", "--set", "visit.measure=150ms"];
    let run =
        compared("--fault mode=pid,cost:300us,seed=$n", &[&words[..], &["-d", "60"]].concat());
    assert!(withholds(&run, "two_clusters"), "{:#?} {:#?}", run.findings, run.verdicts);
}
