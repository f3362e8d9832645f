//! `make bench-fleet`: the same load by one agent under a controller and by `joust load` alone, alternating, many times;
//! the ratio is paired by block and printed with its interval. Also what goes over the broker, by its own count. Agent and
//! generator share one CPU, as they share a machine; server, controller and broker have the other, which is not the limit.
//!
//! Start reading at [`main`]; `JOUST_BENCH_BLOCKS` and `JOUST_BENCH_SECONDS` shorten it.

mod pairs;

use std::error::Error;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pairs::Figure;
use record::LoadRecord;

type Outcome<T> = Result<T, Box<dyn Error>>;

const JOUST: &str = env!("CARGO_BIN_EXE_joust");
const SERVER_CPU: &str = "0";
const CLIENT_CPU: &str = "1";

const FIGURES: [Figure<LoadRecord>; 2] = [
    ("requests/s", |record| record.rate_per_s),
    ("threads' CPU us/request", |record| record.cpu_us_per_request.unwrap_or(f64::NAN)),
];

fn main() -> Outcome<()> {
    // `cargo test --benches` calls every bench with --test; a speed measurement is not a test.
    if std::env::args().any(|arg| arg == "--test") {
        return Ok(());
    }
    if std::thread::available_parallelism()?.get() < 2 {
        return Err("this bench needs two CPUs, one for the server, one for the generator".into());
    }
    let folder = tempfile::tempdir()?;
    let (port, monitor) = (free_port()?, free_port()?);
    let nats = ["-c", SERVER_CPU, "nats-server", "-a", "127.0.0.1", "-js"];
    let mut nats = command("taskset", &nats);
    nats.args(["-p", &port.to_string(), "-m", &monitor.to_string()]);
    let _broker = Ours(nats.arg("-sd").arg(folder.path()).stderr(Stdio::null()).spawn()?);
    wait_for(port)?;
    let url = format!("nats://127.0.0.1:{port}");
    let agent = ["-c", CLIENT_CPU, JOUST, "agent", "--join", &url, "--name", "one", "--spool"];
    let spool = folder.path().join("spool");
    let _agent = Ours(command("taskset", &agent).arg(spool).stderr(Stdio::null()).spawn()?);
    let serve = ["serve", "--listen", "127.0.0.1:0", "--fixed", "3361", "--cpus", SERVER_CPU];
    // Apache's default of 100 requests would make reconnecting part of the load.
    let mut serve = command(JOUST, &serve);
    serve.args(["--set", "MaxKeepAliveRequests=0"]);
    let mut server = serve.stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    BufReader::new(server.stdout.take().ok_or("stdout is piped")?).read_line(&mut line)?;
    let _server = Ours(server);
    let at = line.find("http://").ok_or_else(|| format!("no address in `{line}`"))?;
    let target = line[at..].trim();
    println!("{} blocks of 2 x {} s; ratios are fleet over alone\n", blocks(), seconds());
    let (mut measured, mut traffic) = (Vec::new(), Vec::new());
    for block in 0..blocks() {
        let fleet_first = pairs::first_comes_first(block);
        let mut load = |on_fleet: bool| {
            if !on_fleet {
                return load(target, None);
            }
            let mut watched = Watched::begin(monitor)?;
            let record = load(target, Some(&url))?;
            traffic.push(watched.end()?);
            Ok(record)
        };
        let (first, second) = (load(fleet_first)?, load(!fleet_first)?);
        measured.push(if fleet_first { (first, second) } else { (second, first) });
    }
    FIGURES.iter().try_for_each(|figure| pairs::show(figure, ["fleet", "alone"], &measured))?;
    let median = |of: fn(&Traffic) -> f64| {
        let all: Vec<f64> = traffic.iter().map(of).collect();
        stats::median(&all).unwrap_or(f64::NAN) / 1000.0
    };
    println!(
        "{:<26} {:>8.2} KB a second and agent while the load runs, in and out; {:.0} KB in all, with plan and record",
        "broker's traffic",
        median(|one| one.per_s),
        median(|one| one.whole),
    );
    Ok(())
}

fn load(target: &str, fleet: Option<&String>) -> Outcome<LoadRecord> {
    let duration = format!("{}s", seconds());
    // On a fleet this process is the controller.
    let cpu = if fleet.is_some() { SERVER_CPU } else { CLIENT_CPU };
    let args = ["-c", cpu, JOUST, "load", target, "--json", "-", "-q", "-c", "100", "-d"];
    let mut load = command("taskset", &args);
    load.arg(duration).args(fleet.into_iter().flat_map(|url| ["--fleet", url]));
    let output = load.stderr(Stdio::piped()).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    Ok(LoadRecord::from_json(&String::from_utf8(output.stdout)?)?)
}

/// Bytes over the broker.
struct Traffic {
    /// A second, while a load runs: the median of its seconds.
    per_s: f64,
    whole: f64,
}

/// A thread that reads the broker's counters once a second.
struct Watched {
    ended: Arc<AtomicBool>,
    reader: Option<JoinHandle<Vec<f64>>>,
}

impl Watched {
    fn begin(monitor: u16) -> Outcome<Self> {
        broker_bytes(monitor)?;
        let ended = Arc::<AtomicBool>::default();
        let is_over = ended.clone();
        let reader = std::thread::spawn(move || {
            let mut readings = Vec::new();
            while !is_over.load(Ordering::Relaxed) {
                readings.extend(broker_bytes(monitor).ok());
                std::thread::sleep(Duration::from_secs(1));
            }
            readings.extend(broker_bytes(monitor).ok());
            readings
        });
        Ok(Self { ended, reader: Some(reader) })
    }

    fn end(&mut self) -> Outcome<Traffic> {
        self.ended.store(true, Ordering::Relaxed);
        let readings = self.reader.take().ok_or("it ended")?.join().map_err(|_| "it panicked")?;
        let steps: Vec<f64> = readings.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let per_s = stats::median(&steps).ok_or("too few readings")?;
        Ok(Traffic { per_s, whole: steps.iter().sum() })
    }
}

/// Bytes that clients sent and got, by the broker's own count.
fn broker_bytes(monitor: u16) -> Outcome<f64> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, monitor))?;
    stream.write_all(b"GET /varz HTTP/1.0\r\n\r\n")?;
    let mut reply = String::new();
    stream.read_to_string(&mut reply)?;
    let (_, body) = reply.split_once("\r\n\r\n").ok_or("no body")?;
    let value: serde_json::Value = serde_json::from_str(body)?;
    let bytes = |name: &str| value[name].as_f64().ok_or_else(|| format!("no {name}"));
    Ok(bytes("in_bytes")? + bytes("out_bytes")?)
}

fn command(program: &str, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null());
    command
}

fn free_port() -> Outcome<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

fn wait_for(port: u16) -> Outcome<()> {
    let begun = Instant::now();
    while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
        if begun.elapsed() > Duration::from_secs(20) {
            return Err("nats-server does not listen".into());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// A process that ends with the bench.
struct Ours(Child);

impl Drop for Ours {
    fn drop(&mut self) {
        // These fail if it has already ended, which is fine.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn blocks() -> u32 {
    setting("JOUST_BENCH_BLOCKS", 12)
}

fn seconds() -> u32 {
    setting("JOUST_BENCH_SECONDS", 5)
}

fn setting(name: &str, otherwise: u32) -> u32 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}
