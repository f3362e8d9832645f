//! `make bench-fleet`: what the controller's sums cost. Simulated agents send a window each second, out of order, one in
//! a hundred twice; only taking the messages is timed. Prints time and peak memory of the process, and fails above 5 s
//! or 500 MB. Start reading at [`main`]; `JOUST_BENCH_AGENTS` and `JOUST_BENCH_WINDOWS` change the size.

#![expect(clippy::print_stdout, reason = "a bench prints its figures")]

use std::error::Error;
use std::time::{Duration, Instant};

use joust_fleet::ids::Id;
use joust_fleet::message::{AgentTotals, Content, Sender, Window};
use joust_fleet::tally::{Expected, Taken, Tally};
use record::Interval;
use units::Nanos;

const SECONDS_MAX: f64 = 5.0;
const MEMORY_MAX_MB: f64 = 500.0;
/// Requests of an agent in a window.
const REQUESTS: u64 = 1_000;
/// Windows of other shapes, which agents send in turn: making a new one each time would take longer than the bench.
const SHAPES: u64 = 64;

fn main() -> Result<(), Box<dyn Error>> {
    // `cargo test --benches` calls every bench with --test; a speed measurement is not a test.
    if std::env::args().any(|arg| arg == "--test") {
        return Ok(());
    }
    let (agents, windows) =
        (setting("JOUST_BENCH_AGENTS", 1_000), setting("JOUST_BENCH_WINDOWS", 600));
    let run: Id = "r-1".parse()?;
    let ids: Result<Vec<Id>, _> = (0..agents).map(|n| format!("a-{n}").parse()).collect();
    let ids = ids?;
    let shapes: Vec<Interval> = (0..SHAPES).map(interval).collect();
    let expected = Expected {
        run: run.clone(),
        agents: ids.iter().cloned().collect(),
        epochs: [1].into(),
        windows: windows as u32,
    };
    let mut tally = Tally::new(expected);
    let (mut spent, mut bytes, mut again) = (Duration::ZERO, 0, 0);
    for window in 0..windows {
        let mut messages = Vec::with_capacity(ids.len());
        for (n, agent) in ids.iter().enumerate() {
            let number = window as u32;
            let mut happened = shapes[(n as u64 + 7 * window) as usize % shapes.len()].clone();
            happened.start = Nanos::from_secs(window);
            let content = Content::Window(Box::new(Window { number, in_flight: 3, happened }));
            let clock_error = Nanos::from_micros(50);
            let from = Sender {
                run: run.clone(),
                agent: agent.clone(),
                epoch: 1,
                seq: window,
                clock_error,
            };
            messages.push(from.frame(&content.encode()));
        }
        // A step that is prime to the number of agents visits each once, in an order that is not theirs.
        let step = if agents % 7 == 0 { 11 } else { 7 };
        let begun = Instant::now();
        for n in 0..messages.len() {
            let message = &messages[(n * step as usize) % messages.len()];
            bytes += message.len();
            tally.take(message, false)?;
            if n % 100 == 0 {
                again += u64::from(tally.take(message, true)? == Taken::Again);
            }
        }
        spent += begun.elapsed();
    }
    check(&mut tally, &ids, windows)?;
    let (seconds, megabytes) = (spent.as_secs_f64(), peak_megabytes()?);
    let each = bytes as u64 / (agents * windows).max(1);
    println!(
        "{agents} agents x {windows} windows of {each} bytes, {again} of them twice: {seconds:.2} s, at most {megabytes:.0} MB"
    );
    if seconds > SECONDS_MAX || megabytes > MEMORY_MAX_MB {
        return Err(format!("asked are {SECONDS_MAX} s and {MEMORY_MAX_MB} MB").into());
    }
    Ok(())
}

/// Nothing is missing and nothing counted twice.
fn check(tally: &mut Tally, ids: &[Id], windows: u64) -> Result<(), Box<dyn Error>> {
    let agents = ids.len() as u64;
    let totals = AgentTotals {
        messages: windows,
        windows: windows as u32,
        started: windows * (REQUESTS + 1),
        done: windows * REQUESTS,
        interrupted: false,
    };
    let whole = ids.iter().filter(|id| tally.is_whole(id, totals)).count() as u64;
    let requests: u64 = tally.windows().map(|(_, sum)| sum.ok).sum();
    if (whole, requests) != (agents, agents * windows * REQUESTS) || !tally.coverage().is_whole() {
        return Err(format!("{whole} agents are whole, {requests} requests are there").into());
    }
    Ok(())
}

/// A window whose service times lie around half a millisecond, with a tail.
fn interval(seed: u64) -> Interval {
    let mut happened = Interval::new(Nanos::ZERO, Nanos::from_secs(1));
    let mut random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    for n in 0..REQUESTS {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let tail = if n % 100 == 0 { 5_000_000 } else { 1 };
        let service = Nanos(200_000 + random % 600_000 + random % tail);
        happened.service.record(service);
        happened.response.record(Nanos(service.0 + random % 50_000));
    }
    (happened.ok, happened.started, happened.bytes_read) = (REQUESTS, REQUESTS + 1, 200 * REQUESTS);
    happened.status = [(200, REQUESTS)].into();
    happened
}

fn peak_megabytes() -> Result<f64, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")).ok_or("no VmHWM")?;
    Ok(kilobytes.parse::<f64>()? / 1024.0)
}

fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}
