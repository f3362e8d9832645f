//! `make bench-fidelity`: is every latency figure right? A server that holds each request for a known
//! time, and notes how long it really held it, is loaded; each figure of the generator is set beside
//! the server's own. Right is within 2 % or 100 us, whichever is more: what lies between the two
//! clocks is one trip through loopback and one wake-up on either side.
//!
//! Start reading at [`main`]. Server and generator are pinned to CPUs of their own.

#![allow(clippy::print_stdout, reason = "a bench is a program of its own, and prints its table")]

use std::error::Error;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
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
    let (mut right, mut all) = (0, 0);
    for (hold, keep_alive) in CASES {
        let (ours, theirs) = measure(hold, keep_alive, client, server)?;
        let mode = if keep_alive { "keep-alive" } else { "a connection each" };
        println!("held for {hold}, {mode}: {} requests", theirs.count());
        for (name, ours, theirs) in figures(&ours, &LatencyMillis::from(&theirs)) {
            let error_ms = (ours - theirs).abs();
            let is_right = error_ms <= (theirs * SHARE_MAX).max(TIME_MAX.as_millis_f64());
            let says = if is_right { "right" } else { "OFF" };
            println!("  {name:<5} load {ours:>9.3} ms   server {theirs:>9.3} ms   {says}");
            right += u32::from(is_right);
            all += 1;
        }
    }
    println!("{right} of {all} figures are within 2 % or 100 us of the server's own");
    Ok(())
}

/// Loads a server that holds each request; the generator's figures, and the server's own.
fn measure(
    hold: Nanos,
    keep_alive: bool,
    client: u32,
    server: u32,
) -> Result<(LatencyMillis, Histogram), Box<dyn Error>> {
    let held = Arc::new(Mutex::new(Histogram::new()));
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let addr = listener.local_addr()?;
    let kept = held.clone();
    std::thread::spawn(move || -> std::io::Result<()> {
        affinity::pin(&[server])?;
        // One connection at a time: a second one would wait for the first, and nobody would know.
        loop {
            serve(listener.accept()?.0, hold, &kept)?;
        }
    });
    let options = LoadOptions {
        connections: 1,
        keep_alive,
        requests: Some((4_000_000_000 / hold.0).max(400)),
        cpus: vec![client],
        ..LoadOptions::new(format!("http://{addr}/"))
    };
    let interrupt = AtomicBool::new(false);
    let record = run(&options.plan()?, &Control::new(&interrupt))?;
    let held = held.lock().map_err(|_| "the server panicked")?.clone();
    Ok((record.service_ms, held))
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

/// Name and value of each figure that both have.
fn figures(ours: &LatencyMillis, theirs: &LatencyMillis) -> Vec<(&'static str, f64, f64)> {
    let rows = [
        ("mean", ours.mean, theirs.mean),
        ("min", ours.min, theirs.min),
        ("p50", ours.p50, theirs.p50),
        ("p90", ours.p90, theirs.p90),
        ("p99", ours.p99, theirs.p99),
        ("p99.9", ours.p999, theirs.p999),
        ("max", ours.max, theirs.max),
    ];
    rows.into_iter().filter_map(|(name, ours, theirs)| Some((name, ours?, theirs?))).collect()
}
