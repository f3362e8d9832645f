//! Visits without a planted fault: real servers, each against itself, alone and beside a busy neighbour. Start reading
//! at [`alarms`].

use std::collections::BTreeMap;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use record::{Certainty, Finding, RunRecord, Severity, Visit};
use units::Nanos;

use super::Effort;
use super::beside::{Outcome, process};
use super::runs;

/// Servers that are compared with themselves, as contenders of `joust run`.
const SERVERS: [&str; 4] = [
    "nginx[keepalive_requests=4294967295]",
    "lighttpd",
    "apache[mpm=event,MaxKeepAliveRequests=0]",
    "joust[model=reactor,MaxKeepAliveRequests=0]",
];
/// Blocks of each run: two visits each.
const BLOCKS: u64 = 5;

/// Most failed runs before the bench gives up.
const FAILED_MAX: u32 = 3;

/// Other load on the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Neighbour {
    None,
    /// A process that uses a whole CPU for a second in every two, alternating between the CPUs.
    Busy,
}

/// Alarms without a planted fault.
pub struct Alarms {
    pub neighbour: Neighbour,
    pub visits: u64,
    /// Findings of visits that withhold or bound, or would if they were confirmed, by check.
    pub by_check: BTreeMap<String, u64>,
    /// Visits with at least one of those.
    pub visits_with: u64,
    /// Notes, by check: they have no effect on verdicts.
    pub notes: BTreeMap<String, u64>,
    /// Runs, and findings of whole runs that act, by check.
    pub runs: u64,
    pub of_runs: BTreeMap<String, u64>,
    /// CPU time of reading counters, divided by the time in which they were read.
    pub cost: f64,
}

/// Runs each server against itself until there are enough visits.
pub fn alarms(neighbour: Neighbour, effort: &Effort) -> Outcome<Alarms> {
    let _busy = (neighbour == Neighbour::Busy).then(Busy::start).transpose()?;
    let mut alarms = Alarms {
        neighbour,
        visits: 0,
        by_check: BTreeMap::new(),
        visits_with: 0,
        notes: BTreeMap::new(),
        runs: 0,
        of_runs: BTreeMap::new(),
        cost: 0.0,
    };
    let (mut read_for, mut watched) = (Nanos::ZERO, Nanos::ZERO);
    let mut seed = 0;
    let mut failed = 0;
    while alarms.visits < effort.visits {
        let server = SERVERS[seed as usize % SERVERS.len()];
        seed += 1;
        let blocks = format!("blocks.max={BLOCKS}");
        let least = format!("blocks.min={BLOCKS}");
        let words = [
            "--set",
            &blocks,
            "--set",
            &least,
            "--set",
            "keep_disturbed=true",
            "--set",
            "visit.measure=1s",
        ];
        let run = match runs::run(&[server, server], &words, seed, effort) {
            Ok(run) => run,
            Err(error) if failed < FAILED_MAX => {
                eprintln!("a run of {server} was not made: {error}");
                failed += 1;
                continue;
            }
            Err(error) => return Err(error),
        };
        alarms.runs += 1;
        for finding in run.findings.iter().filter(|one| super::trial::acts(one)) {
            *alarms.of_runs.entry(finding.check.clone()).or_default() += 1;
        }
        for visit in measured(&run) {
            alarms.add(&run, visit);
            if let Some(around) = &visit.surroundings {
                let roll = around.processes.map_or(Nanos::ZERO, |processes| processes.cost);
                read_for = read_for + around.series.cost + roll;
                watched += around.series.length();
            }
        }
    }
    alarms.cost = read_for.as_secs_f64() / watched.as_secs_f64().max(1e-9);
    Ok(alarms)
}

fn measured(run: &RunRecord) -> impl Iterator<Item = &Visit> {
    (0..run.plan.contenders.len()).flat_map(|contender| run.measured(contender))
}

impl Alarms {
    /// Examines one visit as if the run had no other: its warm-up is cut, as in every run.
    fn add(&mut self, run: &RunRecord, visit: &Visit) {
        if visit.load.is_none() {
            return;
        }
        self.visits += 1;
        let found = doctor::examine(&RunRecord { visits: vec![visit.clone()], ..run.clone() });
        let (notes, alarms): (Vec<&Finding>, Vec<&Finding>) =
            found.iter().partition(|one| one.severity == Severity::Note);
        self.visits_with += u64::from(!alarms.is_empty());
        for finding in alarms {
            let sure = match finding.certainty {
                Certainty::Confirmed => "",
                Certainty::Suspected => " (suspected)",
            };
            let check = format!("{}{sure}", finding.check);
            println!("  alarm: {check}: {}", finding.evidence);
            *self.by_check.entry(check).or_default() += 1;
        }
        for finding in notes {
            *self.notes.entry(finding.check.clone()).or_default() += 1;
        }
    }
}

/// A process that sometimes uses a CPU.
struct Busy(Child);

impl Busy {
    fn start() -> Outcome<Self> {
        const LOOP: &str = "while :; do \
            taskset -c 0 timeout 1 sh -c 'while :; do :; done'; sleep 1; \
            taskset -c 1 timeout 1 sh -c 'while :; do :; done'; sleep 1; done";
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "TERM", "sh", "-c", LOOP]).stdin(Stdio::null());
        let busy = Self(command.spawn()?);
        thread::sleep(Duration::from_millis(100));
        Ok(busy)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        process::end(&mut self.0);
    }
}
