//! `make bench-screen`: the same load with and without the live screen, alternating, many times. The screen is drawn on
//! a real pseudo-terminal that is read immediately. The server has one CPU; generator and screen share the other, where
//! the screen would do harm. The ratio is paired by block and printed with its interval: the interval must contain 1.
//!
//! Start reading at [`main`]; `JOUST_BENCH_BLOCKS` and `JOUST_BENCH_SECONDS` shorten it.

#[path = "../tests/binary/pty.rs"]
mod pty;

mod pairs;

use std::error::Error;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use pairs::Figure;
use pty::OnTerminal;
use record::LoadRecord;

type Outcome<T> = Result<T, Box<dyn Error>>;

const JOUST: &str = env!("CARGO_BIN_EXE_joust");
const SERVER_CPU: &str = "0";
const CLIENT_CPU: &str = "1";
/// Rows and columns of the terminal: a large window.
const SIZE: (u16, u16) = (50, 160);

/// The results of one load.
struct Shown {
    record: LoadRecord,
    /// CPU time of the whole process, including start, screen and report.
    process_cpu_us: f64,
}

const FIGURES: [Figure<Shown>; 4] = [
    ("requests/s", |shown| shown.record.rate_per_s),
    ("p99 of service in ms", |shown| shown.record.service_ms.p99.unwrap_or(f64::NAN)),
    ("threads' CPU us/request", |shown| shown.record.cpu_us_per_request.unwrap_or(f64::NAN)),
    ("process's CPU us/request", |shown| shown.process_cpu_us / shown.record.requests.done as f64),
];

fn main() -> Outcome<()> {
    // `cargo test --benches` calls every bench with --test; a speed measurement is not a test.
    if std::env::args().any(|arg| arg == "--test") {
        return Ok(());
    }
    if std::thread::available_parallelism()?.get() < 2 {
        return Err("this bench needs two CPUs, one for the server, one for the generator".into());
    }
    println!(
        "{} blocks of 2 x {} s; ratios are with the screen over --quiet\n",
        blocks(),
        seconds()
    );
    let server = Server::start()?;
    let mut measured = Vec::new();
    for block in 0..blocks() {
        let screen_first = pairs::first_comes_first(block);
        let first = load(&server.url, screen_first)?;
        let second = load(&server.url, !screen_first)?;
        measured.push(if screen_first { (first, second) } else { (second, first) });
    }
    FIGURES.iter().try_for_each(|figure| pairs::show(figure, ["screen", "quiet"], &measured))
}

/// One load on a terminal; without the screen it has the terminal too, and does not use it.
fn load(url: &str, with_screen: bool) -> Outcome<Shown> {
    let duration = format!("{}s", seconds());
    let mut args = vec!["load", url, "--json", "-", "-c", "100", "-t", "1", "-d", &duration];
    args.extend(["--cpus", CLIENT_CPU]);
    if !with_screen {
        args.push("--quiet");
    }
    let (rows, columns) = SIZE;
    let before = children_cpu_us()?;
    let output = OnTerminal::start(rows, columns, JOUST, &args)?.output()?;
    let drawn = String::from_utf8_lossy(&output.stderr);
    if drawn.contains("Requests/s") != with_screen {
        return Err(format!("with_screen is {with_screen}, and drawn was {drawn:?}").into());
    }
    let process_cpu_us = children_cpu_us()? - before;
    let record = LoadRecord::from_json(&String::from_utf8(output.stdout)?)?;
    Ok(Shown { record, process_cpu_us })
}

/// CPU time of all ended children.
fn children_cpu_us() -> Outcome<f64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    Ok((usage.user_time().num_microseconds() + usage.system_time().num_microseconds()) as f64)
}

/// Our own server with a page in memory, so that the generator is the limit.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start() -> Outcome<Self> {
        let mut child = Command::new(JOUST)
            .args(["serve", "--listen", "127.0.0.1:0", "--fixed", "3361", "--cpus", SERVER_CPU])
            // Apache's default of 100 requests would make reconnecting part of the load.
            .args(["--set", "MaxKeepAliveRequests=0"])
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        let out = child.stdout.take().expect("stdout is piped");
        BufReader::new(out).read_line(&mut line)?;
        let at = line.find("http://").ok_or_else(|| format!("no address in `{line}`"))?;
        Ok(Self { url: line[at..].trim().to_owned(), child })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // This fails if it has already ended, which is fine.
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
