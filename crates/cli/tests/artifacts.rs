//! Artifacts that once went unnoticed, planted in a live server: each must be found, confirmed, and act on the verdict.
//! `make prove` measures how often; here the gate tries each. It is a separate program that runs one trial at a time:
//! other tests would keep the CPUs busy, and then the doctor stays silent without a second witness. Start reading at
//! [`findings`].

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use record::{Finding, LoadRecord, RunRecord, Severity};

/// Trials of a plant; the machine of a gate is sometimes busy.
const TRIALS: u32 = 3;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Held for a whole test; a failed test leaves nothing that affects others.
fn alone() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A server of ours that ends with the trial.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(args: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_joust"));
        command.args(["serve", "--listen", "127.0.0.1:0"]).args(args).stdin(Stdio::null());
        let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
        let mut line = String::new();
        let out = child.stdout.take().expect("stdout is piped");
        BufReader::new(out).read_line(&mut line).expect("stdout is read");
        let at = line.find("http").unwrap_or_else(|| panic!("no address in `{line}`"));
        Self { child, url: line[at..].trim().to_owned() }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail if it has already ended, which is fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The findings of a load on a server with that fault.
fn findings(fault: &[&str], load: &[&str]) -> Vec<Finding> {
    let clean = ["--fixed", "3361", "--set", "MaxKeepAliveRequests=0"];
    let server = Server::start(&[&clean, fault].concat());
    let mut command = Command::new(env!("CARGO_BIN_EXE_joust"));
    command.args(["load", &server.url, "-c", "20", "--quiet", "--json", "-"]).args(load);
    let output = command.stdin(Stdio::null()).output().expect("the binary starts");
    let record = LoadRecord::from_json(&String::from_utf8_lossy(&output.stdout));
    let said = String::from_utf8_lossy(&output.stderr);
    record.unwrap_or_else(|error| panic!("{error}: {said}")).findings
}

/// The acting finding of a check, in the first trial that has it.
fn found(check: &str, fault: &[&str], load: &[&str]) -> Finding {
    let _alone = alone();
    let mut trials = Vec::new();
    for _ in 0..TRIALS {
        let all = findings(fault, load);
        if let Some(one) = acting(&all, check) {
            return one.clone();
        }
        trials.push(all);
    }
    panic!("{check} in none of {TRIALS} trials: {trials:#?}");
}

/// The finding of a check that withholds or bounds.
fn acting<'f>(findings: &'f [Finding], check: &str) -> Option<&'f Finding> {
    let acts = |one: &&Finding| one.acts(Severity::Void) || one.acts(Severity::Bound);
    findings.iter().filter(acts).find(|one| one.check == check)
}

const TWO_SECONDS: [&str; 2] = ["-d", "2s"];

#[test]
fn stalls_of_nagles_algorithm_are_confirmed_by_delayed_acknowledgements() {
    let stalls = found("delayed_ack", &["--fault", "nodelay=off"], &TWO_SECONDS);
    assert!(stalls.share.is_some_and(|share| share.0 > 0.5), "nearly every reply: {stalls:?}");
}

#[test]
fn replies_that_are_held_and_released_together_are_confirmed() {
    let bursts = found("bursts_of_replies", &["--fault", "batch=50ms"], &TWO_SECONDS);
    assert!(bursts.share.is_some_and(|share| share.0 > 0.5), "most of the time: {bursts:?}");
}

#[test]
fn a_hundredth_of_the_replies_held_for_200_ms_is_confirmed_with_its_share() {
    let stalls = found("stalls_of_a_fixed_time", &["--fault", "stall=1%,200ms"], &TWO_SECONDS);
    let share = stalls.share.expect("a share of the requests").0;
    assert!((0.005..0.02).contains(&share), "planted 1 %: {stalls:?}");
}

#[test]
fn bodies_that_turn_to_zeros_are_confirmed_with_their_share() {
    let load = ["-n", "6000", "--verify", "hash=100%"];
    let zeros = found("bodies_change_under_load", &["--fault", "body=zeros,after:3000"], &load);
    // Three are fetched before the load.
    assert!(zeros.share.is_some_and(|share| (share.0 - 0.5).abs() < 0.01), "{zeros:?}");
}

#[test]
fn a_server_without_a_fault_has_none_of_these() {
    let _alone = alone();
    let found = findings(&[], &TWO_SECONDS);
    for check in
        ["delayed_ack", "bursts_of_replies", "stalls_of_a_fixed_time", "bodies_change_under_load"]
    {
        assert!(!found.iter().any(|one| one.check == check), "{found:#?}");
    }
}

/// A script that starts our server; `fault` is a shell word.
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
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let (clean, faulty) = (starter(dir.path(), "clean", ""), starter(dir.path(), "faulty", fault));
    let args = ["run", &clean, &faulty, "--set", "keep_disturbed=true", "--quiet", "--out", "out"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_joust"));
    command.args(args).args(words).current_dir(dir.path()).stdin(Stdio::null());
    let run = command.output().expect("the binary starts");
    let said = String::from_utf8_lossy(&run.stderr);
    let text = std::fs::read_to_string(dir.path().join("out/run.json"));
    RunRecord::from_json(&text.unwrap_or_else(|error| panic!("{error}: {said}"))).unwrap()
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

/// Each of these would win, or draw, in a table of rates: an error or empty reply is cheaper than a page, and so is one
/// that is a tenth as long.
#[test]
fn no_server_wins_by_sending_something_else() {
    for fault in ["encoding=gzip", "empty-first"] {
        let said = refused(fault);
        assert!(said.contains("they do not serve the same page"), "{fault}: {said}");
    }
    for (check, fault) in [
        ("errors_as_speed", "status=503:5%"),
        ("bodies_change_under_load", "body=zeros,after:3000"),
    ] {
        let words = ["--set", "blocks.min=3", "--set", "blocks.max=3", "--set", "visit.measure=1s"];
        let run = compared(&format!("--fault {fault}"), &[&words[..], &["-c", "20"]].concat());
        assert!(withholds(&run, check), "{fault}: {:#?} {:#?}", run.findings, run.verdicts);
    }
}

/// The message of a run of a clean server and one with that fault, which measures nothing.
fn refused(fault: &str) -> String {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let clean = starter(dir.path(), "clean", "");
    let faulty = starter(dir.path(), "faulty", &format!("--fault {fault}"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_joust"));
    command.args(["run", &clean, &faulty, "--quiet", "--out", "out"]).current_dir(dir.path());
    let run = command.stdin(Stdio::null()).output().expect("the binary starts");
    assert!(!run.status.success());
    assert!(!dir.path().join("out/run.json").exists());
    String::from_utf8_lossy(&run.stderr).into_owned()
}
