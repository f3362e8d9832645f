//! `make bench-fidelity`: is every latency figure right? A server that holds each request for a known
//! time, and notes how long it really held it, is loaded; each figure of the generator is set beside
//! the server's own. Right is within 2 % or 100 us, whichever is more. What lies between the two
//! clocks is one trip through loopback and one wake-up on either side; how much of it is the machine's
//! shows a bare loop of blocking calls, without a line of the generator, in the column beside.
//!
//! Start reading at [`main`]. Server and generator are pinned to CPUs of their own.

#![allow(clippy::print_stdout, reason = "a bench is a program of its own, and prints its table")]

use std::error::Error;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use joust_load::{Control, LoadOptions, run};
use record::LatencyMillis;
use stats::Histogram;
use sys::{affinity, clock};
use units::Nanos;

const REPLY: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

/// Within this share, or this time, a figure is right.
const SHARE_MAX: f64 = 0.02;
const TIME_MAX: Nanos = Nanos::from_micros(100);

/// How long the server holds each request, and whether connections are used again.
const CASES: [(Nanos, bool); 5] = [
    (Nanos::from_millis(1), true),
    (Nanos::from_millis(5), true),
    (Nanos::from_millis(20), true),
    (Nanos::from_millis(100), true),
    (Nanos::from_millis(20), false),
];

fn main() -> Result<(), Box<dyn Error>> {
    // `cargo test --benches` calls every bench with --test; a loaded machine is no test's fault.
    if std::env::args().any(|arg| arg == "--test") {
        return Ok(());
    }
    let cpus = affinity::allowed()?;
    let (&client, &server) = (cpus.first().ok_or("no CPU")?, cpus.last().ok_or("no CPU")?);
    let (mut right, mut right_spun, mut right_bare, mut all) = (0, 0, 0, 0);
    for (hold, keep_alive) in CASES {
        let case = Case { keep_alive, cpu: client };
        let ours = measure(hold, server, |addr, n| generator(addr, n, case, false))?;
        let spun = measure(hold, server, |addr, n| generator(addr, n, case, true))?;
        let bare = measure(hold, server, |addr, n| bare_loop(addr, n, case))?;
        let mode = if keep_alive { "keep-alive" } else { "a connection each" };
        println!("held for {hold}, {mode}: off by (us, - where the sample is too small)");
        for (name, of) in FIGURES {
            let (Some(ours), Some(bare)) = (ours.off(of), bare.off(of)) else { continue };
            let Some(spun) = spun.off(of) else { continue };
            println!("  {name:<6} joust load {ours}   --busy-poll {spun}   bare loop {bare}");
            right_spun += u32::from(spun.is_right);
            right += u32::from(ours.is_right);
            right_bare += u32::from(bare.is_right);
            all += 1;
        }
    }
    println!(
        "within 2 % or 100 us, of {all} figures: joust load {right}, with --busy-poll {right_spun}, a \
         bare loop {right_bare}"
    );
    Ok(())
}

/// A figure of a distribution.
type Figure = fn(&LatencyMillis) -> Option<f64>;

const FIGURES: [(&str, Figure); 7] = [
    ("mean", |of| of.mean),
    ("min", |of| of.min),
    ("p50", |of| of.p50),
    ("p90", |of| of.p90),
    ("p99", |of| of.p99),
    ("p99.9", |of| of.p999),
    ("max", |of| of.max),
];

/// What a client saw, and what the server did.
struct Seen {
    client: LatencyMillis,
    server: LatencyMillis,
}

/// How far a client's figure lies from the server's.
struct Off {
    micros: f64,
    is_right: bool,
}

impl Seen {
    fn off(&self, of: Figure) -> Option<Off> {
        let (client, server) = (of(&self.client)?, of(&self.server)?);
        let limit = (server * SHARE_MAX).max(TIME_MAX.as_millis_f64());
        Some(Off { micros: (client - server) * 1e3, is_right: (client - server).abs() <= limit })
    }
}

impl std::fmt::Display for Off {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:>8.0} {:<5}", self.micros, if self.is_right { "right" } else { "OFF" })
    }
}

/// Has a client ask a server that holds each request.
fn measure(
    hold: Nanos,
    cpu: u32,
    client: impl FnOnce(SocketAddr, u64) -> Result<LatencyMillis, Box<dyn Error>>,
) -> Result<Seen, Box<dyn Error>> {
    let held = Arc::new(Mutex::new(Histogram::new()));
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let addr = listener.local_addr()?;
    let kept = held.clone();
    std::thread::spawn(move || -> std::io::Result<()> {
        affinity::pin(&[cpu])?;
        // One connection at a time: a second one would wait for the first, and nobody would know.
        loop {
            serve(listener.accept()?.0, hold, &kept)?;
        }
    });
    let client = client(addr, (4_000_000_000 / hold.0).max(400))?;
    let held = held.lock().map_err(|_| "the server panicked")?;
    Ok(Seen { client, server: LatencyMillis::from(&*held) })
}

/// How a client asks, and where it runs.
#[derive(Clone, Copy)]
struct Case {
    keep_alive: bool,
    cpu: u32,
}

fn generator(
    addr: SocketAddr,
    requests: u64,
    case: Case,
    busy_poll: bool,
) -> Result<LatencyMillis, Box<dyn Error>> {
    let mut options = LoadOptions::new(format!("http://{addr}/"));
    options.draft.connections = 1;
    options.draft.keep_alive = case.keep_alive;
    options.draft.busy_poll = busy_poll;
    options.draft.stop.requests = Some(requests);
    options.draft.cpus = vec![case.cpu];
    let interrupt = AtomicBool::new(false);
    Ok(run(&options.plan()?, &Control::new(&interrupt))?.service_ms)
}

/// The least that a client can do: write, block in read, look at the clock.
fn bare_loop(addr: SocketAddr, requests: u64, case: Case) -> Result<LatencyMillis, Box<dyn Error>> {
    let asking = move || -> std::io::Result<LatencyMillis> {
        affinity::pin(&[case.cpu])?;
        let connect = || TcpStream::connect(addr).inspect(|stream| drop(stream.set_nodelay(true)));
        let (mut stream, mut seen) = (connect()?, Histogram::new());
        for n in 0..requests {
            if !case.keep_alive && n > 0 {
                stream = connect()?;
            }
            let sent = clock::monotonic();
            stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")?;
            stream.read_exact(&mut [0; REPLY.len()])?;
            seen.record(clock::monotonic() - sent);
        }
        Ok(LatencyMillis::from(&seen))
    };
    Ok(std::thread::spawn(asking).join().map_err(|_| "the bare loop panicked")??)
}

fn serve(mut stream: TcpStream, hold: Nanos, held: &Mutex<Histogram>) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut request = [0; 4096];
    while stream.read(&mut request)? > 0 {
        let begun = clock::monotonic();
        // A sleep ends late by the timer's slack; waiting awake does not.
        while clock::monotonic() - begun < hold {
            std::hint::spin_loop();
        }
        held.lock().expect("no thread panics with it").record(clock::monotonic() - begun);
        stream.write_all(REPLY)?;
    }
    Ok(())
}
