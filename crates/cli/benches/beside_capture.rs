//! `make bench-fidelity`, second part: do the generator's figures match the wire? `joust serve` holds each response for
//! a planted time. Meanwhile `tshark` captures loopback, as an independent clock that knows nothing of either, and the
//! figures of `joust load` are compared with those of the same requests. Then an open loop at half of the server's
//! capacity: how late it sends, by its own count and by the wire, and whether Poisson arrivals are Poisson on the wire.
//!
//! A figure is right within 1 % or 20 us, whichever is more, for mean and p99 of service time. A request is stamped
//! before the system call that sends it, and reaches the wire during that call. A minimal client measures that delay on
//! this machine in its present state. Start reading at [`main`]. Needs tshark and root (capturing), and two CPUs.

#[path = "beside/http.rs"]
mod http;

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{BufRead as _, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{setsockopt, sockopt};
use nix::unistd::Pid;
use serde_json::Value;
use sys::{affinity, clock};

type Outcome<T> = Result<T, Box<dyn Error>>;

const JOUST: &str = env!("CARGO_BIN_EXE_joust");
const SERVER_CPU: &str = "0";
const CLIENT_CPU: u32 = 1;

const N_CONNECTIONS: usize = 8;

/// A figure is right within this share, or within that many milliseconds.
const SHARE_MAX: f64 = 0.01;
const MS_MAX: f64 = 0.020;

/// Largest acceptable median lateness of an open loop, in milliseconds.
const LATE_MS_MAX: f64 = 0.050;

/// What the server does to each response, requests per second, and seconds.
const HELD: [(&str, u32, u32); 4] = [
    ("delay=1ms", 500, 6),
    ("delay=5ms", 200, 6),
    ("delay=20ms", 200, 6),
    ("delay=exp:2ms", 200, 10),
];

/// The kinds of stamps.
const STAMPS: [(&str, &[&str]); 4] = [
    ("io_uring, kernel stamps", &["--engine", "uring", "--stamps", "kernel"]),
    ("epoll, kernel stamps", &["--engine", "epoll", "--stamps", "kernel"]),
    ("io_uring, busy polling", &["--engine", "uring", "--busy-poll"]),
    ("io_uring", &["--engine", "uring"]),
];

fn main() -> Outcome<()> {
    // `cargo test --benches` calls every bench with --test; a speed measurement is not a test.
    if std::env::args().any(|arg| arg == "--test") {
        return Ok(());
    }
    service_times()?;
    open_loops()
}

fn service_times() -> Outcome<()> {
    println!("service time by joust load and by the wire (ms), right within 1 % or 20 us:");
    for (fault, per_s, seconds) in HELD {
        let [connections, rate, duration] =
            [N_CONNECTIONS.to_string(), format!("{per_s}/s"), format!("{seconds}s")];
        for (name, flags) in STAMPS {
            let server = Server::start(&["--fault", fault])?;
            let mut arguments = vec!["-c", &connections, "--rate", &rate, "-d", &duration];
            arguments.extend(flags);
            let (record, wire) = measure(&server, &arguments)?;
            let ours = &record["service_ms"];
            let wire = sorted(wire.iter().map(|one| one.service_ms).collect());
            let figures =
                [("mean", mean(&wire)), ("p50", at(&wire, 0.50)), ("p99", at(&wire, 0.99))];
            print!("  {fault:<14} {name:<24} n {:>5}", wire.len());
            for (figure, wire_ms) in figures {
                let ours = ours[figure].as_f64().ok_or("too few samples for a figure")?;
                let is_right = (ours - wire_ms).abs() <= (wire_ms * SHARE_MAX).max(MS_MAX);
                let verdict = if is_right { "right" } else { "OFF" };
                print!(
                    "   {figure} {ours:.3} / {wire_ms:.3} {:+.0} us {verdict}",
                    1e3 * (ours - wire_ms)
                );
            }
            println!();
        }
        let server = Server::start(&["--fault", fault])?;
        let before_wire = sorted(bare(&server, per_s, seconds)?);
        println!(
            "  {fault:<14} {:<24} n {:>5}   mean {:.0} us   p50 {:.0} us   p99 {:.0} us",
            "a bare send to the wire",
            before_wire.len(),
            mean(&before_wire),
            at(&before_wire, 0.50),
            at(&before_wire, 0.99)
        );
    }
    Ok(())
}

/// A client that only sends, at the same rate, on as many connections. Returns how long, in us, each request took from
/// just before write(2) to the wire.
fn bare(server: &Server, per_s: u32, seconds: u32) -> Outcome<Vec<f64>> {
    let addr = server.addr;
    // On a connection of its own, before the capture.
    let reply_bytes = http::reply_bytes(addr, "/")?;
    let n_requests = (per_s * seconds) as usize;
    let sending =
        move || send_bare(addr, per_s, n_requests, reply_bytes).map_err(|error| error.to_string());
    let (stamps, wire) = captured(server, || {
        // A thread of its own, because it stays pinned to its CPU.
        let sent = std::thread::spawn(sending).join().map_err(|_| "the bare client panicked")?;
        Ok(sent?)
    })?;
    if wire.len() != stamps.len() {
        return Err(format!("{} bare requests, {} on the wire", stamps.len(), wire.len()).into());
    }
    let on_wire = sorted(wire.iter().map(|one| one.sent_s).collect());
    Ok(on_wire.iter().zip(&stamps).map(|(wire_s, stamp_s)| 1e6 * (wire_s - stamp_s)).collect())
}

/// When each request was sent, in seconds of the wall clock.
fn send_bare(
    addr: SocketAddr,
    per_s: u32,
    n_requests: usize,
    reply_bytes: usize,
) -> Outcome<Vec<f64>> {
    // More than the wake-up time of a virtual machine.
    const AWAKE_BEFORE: Duration = Duration::from_micros(200);
    affinity::pin(&[CLIENT_CPU])?;
    let mut sockets = Vec::new();
    for _ in 0..N_CONNECTIONS {
        let socket = TcpStream::connect(addr)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(Duration::from_secs(5)))?;
        // The kernel stamps packets on entry as long as some socket asks for it; otherwise the capture stamps them
        // later. The loads with kernel stamps did ask, so this client does too.
        setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
        sockets.push(socket);
    }
    let request = http::request(addr, "/");
    let mut reply = vec![0; reply_bytes];
    let begun = Instant::now();
    let mut stamps = Vec::new();
    for turn in 0..n_requests {
        if turn >= N_CONNECTIONS {
            sockets[turn % N_CONNECTIONS].read_exact(&mut reply)?;
        }
        let due = begun + Duration::from_secs(1) * turn as u32 / per_s;
        let asleep = due.saturating_duration_since(Instant::now() + AWAKE_BEFORE);
        std::thread::sleep(asleep);
        while Instant::now() < due {
            std::hint::spin_loop();
        }
        let stamp = clock::wall();
        sockets[turn % N_CONNECTIONS].write_all(&request)?;
        stamps.push(stamp.as_secs_f64());
    }
    for socket in &mut sockets {
        socket.read_exact(&mut reply)?;
    }
    Ok(stamps)
}

fn open_loops() -> Outcome<()> {
    let server = Server::start(&[])?;
    let closed = load(&server, &["-c", "50", "-d", "3s"])?;
    let capacity = closed["rate_per_s"].as_f64().ok_or("no rate")?;
    let rate = format!("{:.0}/s", capacity / 2.0);
    println!("\nopen loop at half of {capacity:.0}/s:");
    for arrivals in ["constant", "poisson"] {
        let record =
            load(&server, &["-c", "50", "--rate", &rate, "--arrivals", arrivals, "-d", "5s"])?;
        let open = &record["open_loop"];
        let late = open["late_ms"]["p50"].as_f64().ok_or("no lateness")?;
        println!(
            "  {arrivals:<9} late by {:.1} us (median), p99 {:.1} us: {}; asked {:.0}/s, begun {:.0}/s",
            1e3 * late,
            1e3 * open["late_ms"]["p99"].as_f64().unwrap_or(f64::NAN),
            if late <= LATE_MS_MAX { "right" } else { "OFF" },
            open["asked_per_s"].as_f64().unwrap_or(f64::NAN),
            open["begun_per_s"].as_f64().unwrap_or(f64::NAN),
        );
    }
    poisson(&server)
}

/// Arrivals of a Poisson process have exponential gaps. On the wire two sends are never closer than one send takes
/// (some 8 us), which would show in 20,000 gaps of a fast process. So the wire is tested at a rate where that affects
/// one gap in a thousand. The due instants have no such limit: they are tested at the
/// fast rate.
fn poisson(server: &Server) -> Outcome<()> {
    let fast = ["-c", "50", "--rate", "2000/s", "--arrivals", "poisson", "-d", "10s"];
    let record = load(server, &[&fast[..], &["--raw", "100000"]].concat())?;
    let raw = record["raw"].as_array().ok_or("no raw log")?;
    let due = raw.iter().filter_map(|sample| Some(sample["due"].as_f64()? / 1e9)).collect();
    show_gaps("due at 2000/s", 2000.0, due)?;
    let slow = ["-c", "50", "--rate", "200/s", "--arrivals", "poisson", "-d", "15s"];
    let (_, wire) = measure(server, &slow)?;
    show_gaps("sent at 200/s, on the wire", 200.0, wire.iter().map(|one| one.sent_s).collect())
}

fn show_gaps(what: &str, rate: f64, instants: Vec<f64>) -> Outcome<()> {
    let instants = sorted(instants);
    let gaps: Vec<f64> = instants.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let test = stats::anderson_darling_exponential(&gaps, rate).ok_or("too few gaps")?;
    println!(
        "  Poisson {what}: {} gaps, mean {:.1} us, Anderson-Darling A2 {:.2}, p {:.3}: {}",
        gaps.len(),
        1e6 * mean(&gaps),
        test.a2,
        test.p,
        if test.p >= 0.01 { "right" } else { "OFF" },
    );
    Ok(())
}

/// One request on the wire.
struct OnWire {
    /// When its first byte was seen, in seconds.
    sent_s: f64,
    /// From there to the last byte of the reply.
    service_ms: f64,
}

/// A load, and the same requests from a capture of it.
fn measure(server: &Server, arguments: &[&str]) -> Outcome<(Value, Vec<OnWire>)> {
    let (record, wire) = captured(server, || load(server, arguments))?;
    let done = record["requests"]["ok"].as_u64().unwrap_or(0);
    if wire.len() as u64 != done {
        return Err(format!("{done} requests by joust, {} on the wire", wire.len()).into());
    }
    Ok((record, wire))
}

/// The result of `done`, and the server's requests from a capture of it.
fn captured<T>(server: &Server, done: impl FnOnce() -> Outcome<T>) -> Outcome<(T, Vec<OnWire>)> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("wire.pcapng");
    let capture = Capture::start(server.addr, &file)?;
    let outcome = done()?;
    capture.stop()?;
    Ok((outcome, requests(&file, server.addr.port())?))
}

fn load(server: &Server, arguments: &[&str]) -> Outcome<Value> {
    let url = format!("http://{}/", server.addr);
    let mut command = Command::new(JOUST);
    command.args(["load", &url, "--quiet", "--json", "-", "--verify", "none"]);
    let output = command.args(["--cpus", &CLIENT_CPU.to_string()]).args(arguments).output()?;
    if output.stdout.is_empty() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Pairs each request with the reply that follows it on its connection.
fn requests(file: &Path, port: u16) -> Outcome<Vec<OnWire>> {
    let output = Command::new("tshark")
        .args(["-r".as_ref(), file.as_os_str()])
        .args(["-Y", "tcp.len > 0", "-T", "fields"])
        .args(["-e", "frame.time_epoch", "-e", "tcp.stream", "-e", "tcp.dstport"])
        .output()?;
    let mut open: BTreeMap<u32, (f64, Option<f64>)> = BTreeMap::new();
    let mut done = Vec::new();
    let finished = |(sent_s, last): (f64, Option<f64>)| {
        last.map(|last| OnWire { sent_s, service_ms: 1e3 * (last - sent_s) })
    };
    for line in output.stdout.lines() {
        let line = line?;
        let mut fields = line.split('\t');
        let mut field = || fields.next().ok_or("tshark printed another table");
        let (time, stream, to): (f64, u32, u16) =
            (field()?.parse()?, field()?.parse()?, field()?.parse()?);
        if to == port {
            done.extend(open.insert(stream, (time, None)).and_then(finished));
        } else if let Some((_, last)) = open.get_mut(&stream) {
            *last = Some(time);
        }
    }
    done.extend(open.into_values().filter_map(finished));
    Ok(done)
}

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn at(sorted: &[f64], q: f64) -> f64 {
    let rank = (q * sorted.len() as f64).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}

/// tshark, capturing one port of loopback.
struct Capture(Child);

impl Capture {
    fn start(addr: SocketAddr, file: &Path) -> Outcome<Self> {
        let filter = format!("tcp port {}", addr.port());
        // 200 bytes of each segment contain its headers; more would cost the server's CPU.
        let child = Command::new("dumpcap")
            .args(["-q", "-i", "lo", "-s", "200", "-B", "64", "-f", &filter, "-w"])
            .arg(file)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("cannot start dumpcap ({error}): apt-get install tshark"))?;
        let capture = Self(child);
        let begun = Instant::now();
        // The file's header is written when the capture runs.
        while std::fs::metadata(file).map_or(true, |file| file.len() == 0) {
            if begun.elapsed() > Duration::from_secs(10) {
                return Err("dumpcap captures nothing: is this root?".into());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        std::thread::sleep(Duration::from_millis(300));
        Ok(capture)
    }

    fn stop(mut self) -> Outcome<()> {
        // Packets that it has not read yet would be missing.
        std::thread::sleep(Duration::from_millis(1500));
        kill(Pid::from_raw(self.0.id().cast_signed()), Signal::SIGINT)?;
        self.0.wait()?;
        Ok(())
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        // This fails if it has already ended, which is fine.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Our own server, with a planted fault.
struct Server {
    child: Child,
    addr: SocketAddr,
}

impl Server {
    fn start(arguments: &[&str]) -> Outcome<Self> {
        let addr = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let child = Command::new(JOUST)
            .args(["serve", "--model", "reactor", "--fixed", "1000", "--cpus", SERVER_CPU])
            .args(["--listen", &addr.to_string(), "--set", "MaxKeepAliveRequests=0"])
            .args(arguments)
            .stdout(Stdio::null())
            .spawn()?;
        let server = Self { child, addr };
        let begun = Instant::now();
        while TcpStream::connect(addr).is_err() {
            if begun.elapsed() > Duration::from_secs(5) {
                return Err(format!("the server does not listen on {addr}").into());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // This fails if it has already ended, which is fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
