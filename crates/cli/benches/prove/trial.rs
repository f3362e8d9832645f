//! One trial of a plant: a server with the artifact, a load on it, and what the doctor found. Start reading at
//! [`prove`].

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use record::{Certainty, Finding, LoadRecord};

use super::Effort;
use super::beside::{Outcome, process};
use super::namespace::Namespace;
use super::plants::{During, Plant, Way};

/// Length of each load.
const LENGTH: Duration = Duration::from_secs(2);
/// Where the server listens in its namespace.
const ADDRESS: &str = "127.0.0.1:8080";

/// The result of all trials of a plant.
pub struct Found {
    pub check: &'static str,
    pub what: &'static str,
    pub trials: u64,
    /// Trials in which the check fired, confirmed.
    pub confirmed: u64,
    /// Trials in which it only suspected something.
    pub suspected: u64,
    /// The planted share, if it is known.
    pub share_planted: Option<f64>,
    /// Mean of the shares reported at full strength.
    pub share_full: Option<f64>,
    /// The same at half strength.
    pub share_half: Option<f64>,
    /// Other checks that acted, by name and number of trials.
    pub others: Vec<(String, u64)>,
}

/// Plants it once for each seed at full strength, then at half.
pub fn prove(plant: &Plant, effort: &Effort) -> Found {
    let full = findings(&plant.full, effort);
    let half = plant.half.as_ref().map(|half| findings(half, effort));
    Found {
        share_planted: plant.share,
        share_half: half.as_ref().and_then(|half| mean_share(plant.check, half)),
        ..summed(plant.check, plant.what, &full)
    }
}

/// Summarises the trials at full strength.
pub fn summed(check: &'static str, what: &'static str, trials: &[Vec<Finding>]) -> Found {
    let with = |certainty: Certainty| {
        let fired = |all: &&Vec<Finding>| {
            all.iter().any(|one| one.check == check && one.certainty == certainty)
        };
        trials.iter().filter(fired).count() as u64
    };
    let mut others: Vec<(String, u64)> = Vec::new();
    for finding in trials.iter().flatten().filter(|one| one.check != check && acts(one)) {
        match others.iter_mut().find(|(known, _)| *known == finding.check) {
            Some((_, count)) => *count += 1,
            None => others.push((finding.check.clone(), 1)),
        }
    }
    Found {
        check,
        what,
        trials: trials.len() as u64,
        confirmed: with(Certainty::Confirmed),
        suspected: with(Certainty::Suspected),
        share_planted: None,
        share_full: mean_share(check, trials),
        share_half: None,
        others,
    }
}

/// Whether it withholds or bounds.
pub fn acts(finding: &Finding) -> bool {
    finding.acts(record::Severity::Void) || finding.acts(record::Severity::Bound)
}

fn mean_share(check: &str, trials: &[Vec<Finding>]) -> Option<f64> {
    let of = |all: &Vec<Finding>| {
        let own = all.iter().find(|one| one.check == check && one.share.is_some())?;
        own.share.map(|share| share.0)
    };
    let shares: Vec<f64> = trials.iter().filter_map(of).collect();
    (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64)
}

fn findings(way: &Way, effort: &Effort) -> Vec<Vec<Finding>> {
    (1..=effort.seeds).map(|seed| or_none(load(way, seed, effort), |load| load.findings)).collect()
}

/// The findings of a trial. A failed trial is reported and counts as having found nothing.
pub fn or_none<T>(trial: Outcome<T>, findings: impl FnOnce(T) -> Vec<Finding>) -> Vec<Finding> {
    match trial {
        Ok(record) => findings(record),
        Err(error) => {
            eprintln!("a trial was not made: {error}");
            Vec::new()
        }
    }
}

/// One load on a server with the artifact.
pub fn load(way: &Way, seed: u64, effort: &Effort) -> Outcome<LoadRecord> {
    let namespace = Namespace::make(way.setup, way.after)?;
    let words = |words: &[&str]| -> Vec<String> {
        words.iter().map(|word| word.replace("{seed}", &seed.to_string())).collect()
    };
    let started_by = |by: &[&str]| match by {
        [] => namespace.command(&effort.joust),
        [by, rest @ ..] => {
            let mut command = namespace.command(by);
            command.args(rest).arg(&effort.joust);
            command
        }
    };
    let own = words(way.serve);
    let mut server = started_by(way.serve_by);
    server.args(["serve", "--listen", ADDRESS, "-s", "MaxKeepAliveRequests=0"]);
    server.args(unless(&own, &["--fixed"], ["--fixed", "3361"])).args(own);
    let mut server = Serving::start(&mut server)?;
    let own = words(way.load);
    let mut load = started_by(way.load_by);
    load.args(["load", "--quiet", "--json", "-", "--seed", &seed.to_string()]);
    let length = format!("{}ms", LENGTH.as_millis());
    load.args(unless(&own, &["-n", "-d"], ["-d", &length]));
    load.args(unless(&own, &["-c"], ["-c", "20"]));
    load.args(own).arg(format!("http://{ADDRESS}/"));
    let child = load.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    disturb(server.pid, child.id(), way.during);
    let done = child.wait_with_output()?;
    server.end();
    let text = String::from_utf8(done.stdout)?;
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    LoadRecord::from_json(&text).map_err(|error| format!("joust load: {error}: {said}").into())
}

/// `default`, unless one of `names` is among the plant's own arguments.
fn unless<'a>(own: &[String], names: &[&str], default: [&'a str; 2]) -> Vec<&'a str> {
    let is_set = own.iter().any(|word| names.contains(&word.as_str()));
    if is_set { Vec::new() } else { default.to_vec() }
}

/// Applies the plant's disturbance to the server and the generator.
fn disturb(server: u32, generator: u32, during: During) {
    match during {
        During::Nothing => {}
        During::ServerStops { millis, times } => stop(server, millis, times),
        During::LoadStops { millis, times } => stop(generator, millis, times),
        During::ServerDies => {
            thread::sleep(LENGTH / 2);
            signal(server, Signal::SIGKILL);
        }
    }
}

fn stop(pid: u32, millis: u64, times: u32) {
    for _ in 0..times {
        thread::sleep((LENGTH / (times + 1)).saturating_sub(Duration::from_millis(millis)));
        signal(pid, Signal::SIGSTOP);
        thread::sleep(Duration::from_millis(millis));
        signal(pid, Signal::SIGCONT);
    }
}

/// Signals a child that nobody has waited for yet, so its number is not reused. If it has ended, the load shows it.
fn signal(pid: u32, signal: Signal) {
    let _ = kill(Pid::from_raw(pid as i32), signal);
}

/// A `joust serve` that runs until this is dropped.
pub struct Serving {
    child: Child,
    pid: u32,
}

impl Serving {
    /// Starts it and waits for its first line, which it prints when it listens.
    pub fn start(command: &mut Command) -> Outcome<Self> {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let pid = child.id();
        let out = child.stdout.take().ok_or("no stdout")?;
        let err = child.stderr.take().ok_or("no stderr")?;
        let serving = Self { child, pid };
        let (listens, heard) = std::sync::mpsc::channel();
        for stream in [Box::new(out) as Box<dyn std::io::Read + Send>, Box::new(err)] {
            let listens = listens.clone();
            // Reads to the end: a full pipe would block the server.
            thread::spawn(move || {
                for line in BufReader::new(stream).lines().map_while(Result::ok) {
                    // Nobody reads the lines after the first.
                    let _ = listens.send(line);
                }
            });
        }
        drop(listens);
        heard.recv_timeout(Duration::from_secs(10)).map_err(|_| "joust serve did not begin")?;
        Ok(serving)
    }

    fn end(&mut self) {
        process::end(&mut self.child);
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.end();
    }
}
