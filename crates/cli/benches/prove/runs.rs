//! Artifacts that only a run shows: differences between starts of a server, its processes, two contenders. Start
//! reading at [`prove`].

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use record::{Finding, RunRecord};

use super::Effort;
use super::beside::Outcome;
use super::namespace::Namespace;
use super::trial::{Found, Serving, or_none, summed};

/// An artifact of a run of two contenders.
pub struct RunPlant {
    pub check: &'static str,
    pub what: &'static str,
    /// The contenders, as arguments of `joust run`. `{seed}` is replaced by the number of the trial, `{joust}` by the
    /// program, `{by_chance}` by a script that starts it slow or not, at random.
    pub contenders: &'static [&'static str],
    /// Additional arguments of `joust run`.
    pub words: &'static [&'static str],
    /// A namespace in which servers are started and compared by their URLs; `None`: the lab starts the contenders, in
    /// its own namespaces.
    pub inside: Option<Inside>,
}

/// A network with servers that run before the run begins.
pub struct Inside {
    /// Shell commands that configure the network.
    pub setup: &'static [&'static str],
    /// Arguments of `joust serve`, for each server.
    pub servers: &'static [&'static [&'static str]],
}

const CLEAN: &str =
    "{joust} serve --fixed 3361 -s MaxKeepAliveRequests=0 --listen 127.0.0.1:{port}";

/// Every plant, by the name of its check.
pub const ALL: &[RunPlant] = &[
    RunPlant {
        check: "common_ceiling",
        what: "two unlike servers behind a link of 50 Mbit/s",
        contenders: &["http://127.0.0.1:8081/", "http://127.0.0.1:8082/"],
        words: &["--set", "blocks.max=5", "--set", "blocks.min=5", "--target", "/"],
        inside: Some(Inside {
            setup: &["tc qdisc add dev lo root tbf rate 50mbit burst 64kb latency 50ms"],
            servers: &[
                &["--model", "reactor", "--fixed", "20000", "--listen", "127.0.0.1:8081"],
                &["--model", "prefork", "--fixed", "20000", "--listen", "127.0.0.1:8082"],
            ],
        }),
    },
    RunPlant {
        check: "file_descriptors_exhausted",
        what: "one of two servers may open 64 files, and there are 100 connections",
        contenders: &[
            "prlimit --nofile=64 {joust} serve --fixed 3361 -s MaxKeepAliveRequests=0 --listen 127.0.0.1:{port}",
            CLEAN,
        ],
        words: &["-c", "100", "--set", "blocks.max=2", "--set", "blocks.min=2"],
        inside: None,
    },
    RunPlant {
        check: "process_churn",
        what: "Apache prefork with MaxConnectionsPerChild 100 and MaxSpareServers 2, beside its defaults",
        contenders: &[
            "apache[mpm=prefork,MaxConnectionsPerChild=100,MaxSpareServers=2]",
            "apache[mpm=prefork]",
        ],
        words: &[
            "-c",
            "16",
            "--set",
            "keep_alive=false",
            "--set",
            "blocks.max=3",
            "--set",
            "blocks.min=3",
            "--set",
            "visit.measure=1s",
        ],
        inside: None,
    },
    RunPlant {
        check: "two_clusters",
        what: "every second start costs 200 us more CPU time a request",
        contenders: &[CLEAN, "{by_chance} {port}"],
        words: &[
            "--set",
            "blocks.max=24",
            "--set",
            "blocks.min=24",
            "--set",
            "visit.measure=200ms",
        ],
        inside: None,
    },
    RunPlant {
        check: "warm_up_inside",
        what: "the first 3,000 answers take 5 ms longer",
        contenders: &[
            CLEAN,
            "{joust} serve --fixed 3361 -s MaxKeepAliveRequests=0 --listen 127.0.0.1:{port} --fault warmup=3000,5ms",
        ],
        words: &["--set", "blocks.max=4", "--set", "blocks.min=4", "--set", "visit.measure=2s"],
        inside: None,
    },
];

/// Runs it once for each seed.
pub fn prove(plant: &RunPlant, effort: &Effort) -> Found {
    let trials: Vec<Vec<Finding>> = (1..=effort.seeds)
        .map(|seed| {
            let run = match &plant.inside {
                None => run(plant.contenders, plant.words, seed, effort),
                Some(inside) => run_inside(inside, plant, seed, effort),
            };
            or_none(run, |run| run.findings)
        })
        .collect();
    summed(plant.check, plant.what, &trials)
}

fn run_inside(inside: &Inside, plant: &RunPlant, seed: u64, effort: &Effort) -> Outcome<RunRecord> {
    let namespace = Namespace::make(inside.setup, &[])?;
    let start = |words: &&[&str]| {
        let mut server = namespace.command(&effort.joust);
        server.args(["serve", "-s", "MaxKeepAliveRequests=0"]).args(*words);
        Serving::start(&mut server)
    };
    let _servers = inside.servers.iter().map(start).collect::<Outcome<Vec<Serving>>>()?;
    let command = namespace.command(&effort.joust);
    run_by(command, plant.contenders, plant.words, seed, effort)
}

/// One run; a minute at most.
pub fn run(contenders: &[&str], words: &[&str], seed: u64, effort: &Effort) -> Outcome<RunRecord> {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "TERM"]).arg(&effort.joust);
    run_by(command, contenders, words, seed, effort)
}

/// The same, with a command that starts joust.
fn run_by(
    mut command: Command,
    contenders: &[&str],
    words: &[&str],
    seed: u64,
    effort: &Effort,
) -> Outcome<RunRecord> {
    let dir = tempfile::tempdir()?;
    let out = dir.path().join("run");
    let joust = effort.joust.to_str().ok_or("the path of joust is no UTF-8")?;
    let by_chance = by_chance(dir.path(), joust)?;
    command.arg("run");
    for contender in contenders {
        let typed = contender.replace("{joust}", joust).replace("{seed}", &seed.to_string());
        command.arg(typed.replace("{by_chance}", &by_chance));
    }
    command.args(words).args(["--budget", "60", "--seed", &seed.to_string(), "--quiet", "--out"]);
    command.arg(&out).stdin(Stdio::null());
    let done = command.output()?;
    let text = std::fs::read_to_string(out.join("run.json")).map_err(|error| {
        format!("joust run: {error}: {}", String::from_utf8_lossy(&done.stderr).trim())
    })?;
    Ok(RunRecord::from_json(&text)?)
}

/// A process number is not random enough: it may be odd in every visit, if an even number of processes is started in
/// between.
fn by_chance(dir: &Path, joust: &str) -> Outcome<String> {
    let path = dir.join("by-chance");
    let text = format!(
        "#!/bin/sh\nn=$(od -An -N1 -tu1 /dev/urandom | tr -d ' ')\nexec {joust} serve --fixed 3361 \
         -s MaxKeepAliveRequests=0 --listen 127.0.0.1:$1 --fault mode=pid,cost:200us,seed=$n\n"
    );
    std::fs::write(&path, text)?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))?;
    Ok(path.to_str().ok_or("the folder for temporary files is no UTF-8")?.to_owned())
}
