//! `make bench-load`: our load generator beside wrk, on the same server, in turn, many times.
//! Server on one CPU, generator on the other. Each block runs both in random order; the ratio is
//! paired by block and quoted with its interval. CPU time is the kernel's own count for the child
//! (wait4), so start-up and output of both are in it.
//!
//! Start reading at [`main`]; `JOUST_BENCH_BLOCKS` and `JOUST_BENCH_SECONDS` shorten it.

use std::error::Error;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;

type Outcome<T> = Result<T, Box<dyn Error>>;

const JOUST: &str = env!("CARGO_BIN_EXE_joust");

/// A generator: how it is called, and how many requests its report says were answered.
struct Generator {
    name: &'static str,
    command: fn(&Workload, &str) -> Command,
    answered: fn(&str) -> Option<f64>,
}

/// One row of the bench.
struct Workload {
    name: &'static str,
    page: u32,
    connections: u32,
}

/// What one run of one generator showed.
struct Shown {
    requests_per_s: f64,
    cpu_us_per_request: f64,
}

const WORKLOADS: &[Workload] = &[
    Workload { name: "3361 B, 100 connections, keep-alive", page: 3361, connections: 100 },
    Workload { name: "100 KB, 20 connections, keep-alive", page: 100_000, connections: 20 },
];

const OURS: Generator = Generator {
    name: "joust load",
    command: |workload, url| {
        let mut command = Command::new(JOUST);
        command.args(["load", url, "--quiet", "--json", "-", "-t", "1", "--cpus", CLIENT_CPU]);
        command.args(["-c", &workload.connections.to_string(), "-d", &format!("{}s", seconds())]);
        command
    },
    answered: |text| {
        serde_json::from_str::<serde_json::Value>(text).ok()?["requests"]["ok"].as_f64()
    },
};

const WRK: Generator = Generator {
    name: "wrk",
    command: |workload, url| {
        let mut command = Command::new("taskset");
        command.args(["-c", CLIENT_CPU, "wrk", "-t", "1", url]);
        command.args(["-c", &workload.connections.to_string(), "-d", &format!("{}s", seconds())]);
        command
    },
    answered: |text| {
        let line = text.lines().find(|line| line.contains(" requests in "))?;
        line.split_whitespace().next()?.parse().ok()
    },
};

const SERVER_CPU: &str = "0";
const CLIENT_CPU: &str = "1";

fn main() -> Outcome<()> {
    // `cargo test --benches` calls every bench with --test; speed is no test.
    if std::env::args().any(|arg| arg == "--test") {
        return Ok(());
    }
    if std::thread::available_parallelism()?.get() < 2 {
        return Err(
            "this bench needs two CPUs, one for the server and one for the generator".into()
        );
    }
    println!("{} blocks of {} s each; ratios are joust load over wrk\n", blocks(), seconds());
    WORKLOADS.iter().try_for_each(compare)
}

fn compare(workload: &Workload) -> Outcome<()> {
    let server = Server::start(workload.page)?;
    let (mut rate, mut cpu) = (Vec::new(), Vec::new());
    for block in 0..blocks() {
        // A coin without a generator of random numbers: the low bit of a hash of the block.
        let ours_first = (block.wrapping_mul(2_654_435_761) >> 16) & 1 == 0;
        let (ours, wrk) = if ours_first {
            let ours = run(&OURS, workload, &server.url)?;
            (ours, run(&WRK, workload, &server.url)?)
        } else {
            let wrk = run(&WRK, workload, &server.url)?;
            (run(&OURS, workload, &server.url)?, wrk)
        };
        rate.push((ours.requests_per_s, wrk.requests_per_s));
        cpu.push((ours.cpu_us_per_request, wrk.cpu_us_per_request));
    }
    println!("{}", workload.name);
    show("requests/s", &rate)?;
    show("generator CPU us/request", &cpu)
}

fn show(what: &str, pairs: &[(f64, f64)]) -> Outcome<()> {
    let paired = stats::Paired::of(pairs, SEED)?;
    let interval = paired.interval.ok_or("one block has no interval: ask for more")?;
    let median = |side: fn(&(f64, f64)) -> f64| {
        stats::median(&pairs.iter().map(side).collect::<Vec<_>>()).unwrap_or(f64::NAN)
    };
    println!(
        "  {what:<26} joust load {:>9.2}   wrk {:>9.2}   ratio {:.3} [{:.3}, {:.3}]",
        median(|pair| pair.0),
        median(|pair| pair.1),
        paired.ratio,
        interval.low,
        interval.high,
    );
    Ok(())
}

/// Seed of the bootstrap.
const SEED: u64 = 1;

fn run(generator: &Generator, workload: &Workload, url: &str) -> Outcome<Shown> {
    let before = children_cpu_us()?;
    let begun = Instant::now();
    let output = (generator.command)(workload, url).stdin(Stdio::null()).output()?;
    let seconds = begun.elapsed().as_secs_f64();
    let text = String::from_utf8_lossy(&output.stdout);
    let answered = (generator.answered)(&text).filter(|answered| *answered > 0.0);
    let answered = answered.ok_or_else(|| {
        let errors = String::from_utf8_lossy(&output.stderr);
        format!("{} printed no count of requests:\n{text}{errors}", generator.name)
    })?;
    Ok(Shown {
        requests_per_s: answered / seconds,
        cpu_us_per_request: (children_cpu_us()? - before) / answered,
    })
}

/// CPU time of all children that have ended, in microseconds.
fn children_cpu_us() -> Outcome<f64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    Ok((usage.user_time().num_microseconds() + usage.system_time().num_microseconds()) as f64)
}

/// Our own server with a page in memory: the calibrated opponent, so that the generator is the limit.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(page: u32) -> Outcome<Self> {
        let addr = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let child = Command::new("taskset")
            .args(["-c", SERVER_CPU, JOUST, "serve", "--model", "reactor"])
            .args(["--fixed", &page.to_string(), "--listen", &addr.to_string()])
            // Apache's default of 100 requests would make reconnecting part of the load.
            .args(["--set", "MaxKeepAliveRequests=0"])
            .stdout(Stdio::null())
            .spawn()?;
        let server = Self { child, url: format!("http://{addr}/") };
        server.wait_until_ready(addr)?;
        Ok(server)
    }

    fn wait_until_ready(&self, addr: SocketAddr) -> Outcome<()> {
        let begun = Instant::now();
        while TcpStream::connect(addr).is_err() {
            if begun.elapsed() > Duration::from_secs(5) {
                return Err(
                    format!("{} does not listen on {addr}", Path::new(JOUST).display()).into()
                );
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Killing what has already ended fails, which is what we want here.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn blocks() -> u32 {
    setting("JOUST_BENCH_BLOCKS", 12)
}

fn seconds() -> u32 {
    setting("JOUST_BENCH_SECONDS", 3)
}

fn setting(name: &str, unless_set: u32) -> u32 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(unless_set)
}
