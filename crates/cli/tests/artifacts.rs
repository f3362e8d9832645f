//! Artifacts that once went unnoticed, planted in a live server: each must be found, confirmed, and act on the verdict.
//! `make prove` measures how often; here the gate tries each. It is a separate program that runs one trial at a time:
//! other tests would keep the CPUs busy, and then the doctor stays silent without a second witness. Start reading at
//! [`findings`].

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use record::{Finding, LoadRecord, RunRecord, Severity};

/// Trials of a plant on CPUs that nobody else uses: one fails sometimes all the same.
const TRIALS: usize = 3;
/// With those in which others use the CPUs, after which it is tried again later.
const TRIALS_IN_ALL: usize = 10;
const PAUSE: Duration = Duration::from_secs(3);
/// Cores that others may use in a trial that counts.
const OTHER_CORES_MAX: f64 = 0.05;

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

/// The acting finding of a check, in the first trial that has it. `None` if the machine was too busy to try it.
fn found(check: &str, fault: &[&str], load: &[&str]) -> Option<Finding> {
    first_of(check, TRIALS, || {
        let all = findings(fault, load);
        acting(&all, check).cloned().ok_or_else(|| format!("{all:#?}"))
    })
}

/// What the first trial that succeeds gives. A trial that fails counts only if other programs and the hypervisor left
/// the CPUs to it; `None` if they hardly ever did, which is noted as skipped.
fn first_of<T>(
    check: &str,
    trials: usize,
    mut trial: impl FnMut() -> Result<T, String>,
) -> Option<T> {
    let _alone = alone();
    let mut failed = Vec::new();
    for _ in 0..TRIALS_IN_ALL {
        let before = OtherCpu::now();
        match trial() {
            Ok(value) => return Some(value),
            Err(why) if before.cores_since() <= OTHER_CORES_MAX => failed.push(why),
            Err(_) => std::thread::sleep(PAUSE),
        }
        assert!(failed.len() < trials, "{check} in none of {trials} trials: {failed:#?}");
    }
    skips::note(format_args!("{check}: others used the CPUs in most of {TRIALS_IN_ALL} trials"));
    None
}

/// CPU time that neither we nor the programs we started used, until an instant.
struct OtherCpu {
    used: Duration,
    at: Instant,
}

impl OtherCpu {
    fn now() -> Self {
        let ours = [UsageWho::RUSAGE_SELF, UsageWho::RUSAGE_CHILDREN].map(|who| {
            let usage = getrusage(who).expect("getrusage never fails for these");
            usage.user_time() + usage.system_time()
        });
        let ours = ours.iter().map(|time| time.num_microseconds()).sum::<i64>().unsigned_abs();
        let text = std::fs::read_to_string("/proc/stat").expect("/proc is mounted");
        let all = text.lines().next().expect("its first line is of all CPUs");
        // proc_stat(5), in ticks of 10 ms: user, nice, system, idle, iowait, irq, softirq, steal. Interrupts count as
        // nobody's: some kernels charge those of our own load to no process.
        let ticks = all.split_whitespace().skip(1).map(|ticks| ticks.parse::<u64>().unwrap());
        let busy: u64 =
            ticks.take(8).enumerate().map(|(i, n)| if matches!(i, 3..=6) { 0 } else { n }).sum();
        let used = Duration::from_millis(busy * 10).saturating_sub(Duration::from_micros(ours));
        Self { used, at: Instant::now() }
    }

    fn cores_since(&self) -> f64 {
        let used = Self::now().used.saturating_sub(self.used);
        used.as_secs_f64() / self.at.elapsed().as_secs_f64()
    }
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
    let Some(stalls) = stalls else { return };
    assert!(stalls.share.is_some_and(|share| share.0 > 0.5), "nearly every reply: {stalls:?}");
}

#[test]
fn replies_that_are_held_and_released_together_are_confirmed() {
    let bursts = found("bursts_of_replies", &["--fault", "batch=50ms"], &TWO_SECONDS);
    let Some(bursts) = bursts else { return };
    assert!(bursts.share.is_some_and(|share| share.0 > 0.5), "most of the time: {bursts:?}");
}

#[test]
fn a_hundredth_of_the_replies_held_for_200_ms_is_confirmed_with_its_share() {
    let stalls = found("stalls_of_a_fixed_time", &["--fault", "stall=1%,200ms"], &TWO_SECONDS);
    let Some(stalls) = stalls else { return };
    let share = stalls.share.expect("a share of the requests").0;
    assert!((0.005..0.02).contains(&share), "planted 1 %: {stalls:?}");
}

#[test]
fn bodies_that_turn_to_zeros_are_confirmed_with_their_share() {
    let load = ["-n", "6000", "--verify", "hash=100%"];
    let zeros = found("bodies_change_under_load", &["--fault", "body=zeros,after:3000"], &load);
    let Some(zeros) = zeros else { return };
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

/// A run of a clean server and one with that fault withholds every verdict for that check, or says why not. Of so many
/// blocks, however long they take on a busy machine.
fn is_withheld(check: &str, fault: &str, blocks: u32, words: &[&str]) -> Result<(), String> {
    let (least, most) = (format!("blocks.min={blocks}"), format!("blocks.max={blocks}"));
    let exactly = ["--set", &least, "--set", &most, "-d", "300"];
    let run = compared(fault, &[&exactly, words].concat());
    let why = || format!("{fault}: {:#?} {:#?}", run.findings, run.verdicts);
    withholds(&run, check).then_some(()).ok_or_else(why)
}

#[test]
fn a_warm_up_inside_the_measurement_withholds_the_verdict() {
    let words = ["--set", "visit.measure=1s"];
    let trial = || is_withheld("warm_up_inside", "--fault warmup=2000,5ms", 5, &words);
    first_of("warm_up_inside", 1, trial);
}

#[test]
fn a_server_whose_every_second_start_is_slow_withholds_the_verdict() {
    let words = ["--set", "visit.measure=150ms"];
    let trial = || is_withheld("two_clusters", "--fault mode=pid,cost:300us,seed=$n", 24, &words);
    first_of("two_clusters", 1, trial);
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
        let words = ["--set", "visit.measure=1s", "-c", "20"];
        let _alone = alone();
        is_withheld(check, &format!("--fault {fault}"), 3, &words).unwrap();
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
