//! The session of one row: blocks of runs in random order, each measured in the same way. Must not
//! know how figures are shown. Start reading at [`meet`].

use std::process::Stdio;
use std::time::Instant;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use rand::SeedableRng as _;
use rand::seq::SliceRandom as _;
use rand_pcg::Pcg64;

use crate::beside::{process, server::Server};
use crate::generators::{Call, Generator, OURS};
use crate::servers;
use crate::{Outcome, Row, SEED, Settings};

/// The results of one run of one generator.
#[derive(Clone, Copy)]
pub struct Shown {
    pub requests_per_s: f64,
    /// CPU time of the whole process by the kernel's count, including start-up and report.
    pub cpu_us_per_request: f64,
    /// CPU time of the server divided by the lifetime of the generator's process.
    pub server_busy: f64,
    /// The same for the generator itself.
    pub own_busy: f64,
    /// Connections of this machine in TIME_WAIT at the start: each may hold a port.
    pub time_wait: f64,
}

/// One run of each generator, ours first, then the opponents in the order of the row.
pub type Block = Vec<Shown>;

/// All generators of a row, ours first.
pub fn generators(row: &Row) -> Vec<&'static Generator> {
    std::iter::once(&OURS).chain(row.opponents.iter().map(|opponent| opponent.generator)).collect()
}

/// Starts the row's server and runs all blocks on it.
pub fn meet(row: &Row, settings: &Settings) -> Outcome<Vec<Block>> {
    let server = servers::start(row, settings)?;
    let generators = generators(row);
    let mut rng = Pcg64::seed_from_u64(SEED);
    let mut order: Vec<usize> = (0..generators.len()).collect();
    let mut blocks = Vec::new();
    for number in 1..=settings.blocks {
        eprintln!("{}: block {number} of {}", row.name, settings.blocks);
        order.shuffle(&mut rng);
        let mut block = vec![None; generators.len()];
        for &index in &order {
            block[index] = Some(run(generators[index], row, &server, settings)?);
        }
        blocks.push(block.into_iter().map(|shown| shown.expect("each ran once")).collect());
    }
    Ok(blocks)
}

fn run(generator: &Generator, row: &Row, server: &Server, settings: &Settings) -> Outcome<Shown> {
    let call = Call {
        joust: &settings.joust,
        earlier: settings.earlier.as_deref(),
        bench: &settings.bench,
        addr: server.addr,
        path: server.path,
        url: server.url(),
        connections: row.connections.to_string(),
        seconds: settings.seconds,
        keep_alive: row.keep_alive,
    };
    let time_wait = time_wait()?;
    let (own_before, server_before) = (children_cpu_us()?, process::cpu_seconds(server.pid())?);
    let begun = Instant::now();
    let output = (generator.command)(&call).stdin(Stdio::null()).output().map_err(|error| {
        format!("{} does not start: {error}; scripts/peers.sh brings it", generator.name)
    })?;
    let lived = begun.elapsed().as_secs_f64();
    let own_cpu_us = children_cpu_us()? - own_before;
    let server_cpu = process::cpu_seconds(server.pid())? - server_before;
    let text = String::from_utf8_lossy(&output.stdout);
    let wrong = |what: &str| {
        let errors = String::from_utf8_lossy(&output.stderr);
        format!("{}, {}: {what}:\n{text}{errors}", row.name, generator.name)
    };
    if !output.status.success() {
        return Err(wrong(&output.status.to_string()).into());
    }
    let report = (generator.read)(&text).filter(|report| report.answered > 0.0);
    let report = report.ok_or_else(|| wrong("no count of requests"))?;
    if report.failed > 0.0 {
        return Err(wrong(&format!("{} requests failed", report.failed)).into());
    }
    Ok(Shown {
        requests_per_s: report.requests_per_s,
        cpu_us_per_request: own_cpu_us / report.answered,
        server_busy: server_cpu / lived,
        own_busy: own_cpu_us / 1e6 / lived,
        time_wait,
    })
}

/// CPU time of all ended children, in microseconds. The server is still running.
fn children_cpu_us() -> Outcome<f64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    Ok((usage.user_time().num_microseconds() + usage.system_time().num_microseconds()) as f64)
}

fn time_wait() -> Outcome<f64> {
    let text = std::fs::read_to_string("/proc/net/sockstat")?;
    let mut words = text.split_whitespace().skip_while(|word| *word != "tw");
    Ok(words.nth(1).ok_or("/proc/net/sockstat has no tw")?.parse()?)
}
