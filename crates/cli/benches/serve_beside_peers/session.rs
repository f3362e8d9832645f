//! The session of one row: blocks of runs in random order, each measured in the same way. Must not
//! know how figures are shown. Start reading at [`meet`].

use std::process::{Command, Stdio};

use rand::SeedableRng as _;
use rand::seq::SliceRandom as _;
use rand_pcg::Pcg64;

use super::beside::server::Server;
use super::beside::{CLIENT_CPU, Outcome, SEED, process};
use super::contenders::Contender;
use super::servers::{self, Site};
use super::{Row, Settings};

/// The results of one run of one server.
#[derive(Clone, Copy)]
pub struct Shown {
    pub requests_per_s: f64,
    /// CPU time of all processes of the server, by the kernel's count.
    pub cpu_us_per_request: f64,
    /// That CPU time divided by the time of the load.
    pub server_busy: f64,
    pub p99_ms: f64,
}

/// One run of each server, ours first, then the opponents in the order of the row.
pub type Block = Vec<Shown>;

/// All servers of a row, ours first.
pub fn contenders(row: &Row) -> Vec<&'static Contender> {
    std::iter::once(row.ours).chain(row.opponents.iter().map(|it| it.contender)).collect()
}

/// Starts the row's servers, warms each, and runs all blocks.
pub fn meet(row: &Row, settings: &Settings) -> Outcome<Vec<Block>> {
    let site = Site::new(row.page)?;
    let contenders = contenders(row);
    let mut servers = Vec::new();
    for contender in &contenders {
        eprintln!("{}: {} starts", row.name, contender.name);
        let server = servers::start(contender, &site, settings)?;
        load(row, contender, &server, settings, contender.warm_up)?;
        servers.push(server);
    }
    let mut rng = Pcg64::seed_from_u64(SEED);
    let mut order: Vec<usize> = (0..servers.len()).collect();
    let mut blocks = Vec::new();
    for number in 1..=settings.blocks {
        eprintln!("{}: block {number} of {}", row.name, settings.blocks);
        order.shuffle(&mut rng);
        let mut block = vec![None; servers.len()];
        for &index in &order {
            let (contender, server) = (contenders[index], &servers[index]);
            block[index] = Some(load(row, contender, server, settings, settings.seconds)?);
        }
        blocks.push(block.into_iter().map(|shown| shown.expect("each ran once")).collect());
    }
    Ok(blocks)
}

fn load(
    row: &Row,
    contender: &Contender,
    server: &Server,
    settings: &Settings,
    seconds: u32,
) -> Outcome<Shown> {
    let mut command = Command::new("taskset");
    command.args(["-c", CLIENT_CPU]).arg(&settings.joust).args(["load", &server.url()]);
    command.args(["--quiet", "--json", "-", "-t", "1", "-d", &format!("{seconds}s")]);
    command.args(["-c", &row.connections.to_string()]);
    if !row.keep_alive {
        command.arg("--no-keepalive");
    }
    let before = process::cpu_seconds(server.pid())?;
    let output = command.stdin(Stdio::null()).output()?;
    let cpu = process::cpu_seconds(server.pid())? - before;
    let wrong = |what: &str| {
        let errors = String::from_utf8_lossy(&output.stderr);
        format!("{}, {}: {what}\n{errors}", row.name, contender.name)
    };
    let record: serde_json::Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| wrong(&format!("{}; {error}", output.status)))?;
    let figure = |value: &serde_json::Value| value.as_f64().ok_or_else(|| wrong("no figure"));
    let (done, ok) = (figure(&record["requests"]["done"])?, figure(&record["requests"]["ok"])?);
    if ok < done || ok == 0.0 {
        return Err(wrong(&format!("{ok} of {done} requests were answered well")).into());
    }
    // Answers after the window cost the server as much.
    let answered = ok + figure(&record["requests"]["drained"])?;
    Ok(Shown {
        requests_per_s: figure(&record["rate_per_s"])?,
        cpu_us_per_request: 1e6 * cpu / answered,
        server_busy: cpu / figure(&record["seconds"])?,
        p99_ms: figure(&record["response_ms"]["p99"])?,
    })
}
