//! Measures what an exchange costs besides its system calls: it answers a request again and again in memory. `cargo run
//! --release -p joust-serve --example exchange_rate [DIR/FILE|-] [FORMAT]`. Without a file, or with a hyphen, it serves
//! a fixed page of 3,361 bytes; with a format, it writes an access log to /dev/null. Owns nothing that is used
//! elsewhere.

use std::error::Error;
use std::io::Write as _;
use std::path::PathBuf;

use joust_serve::{Config, Service, models};
use site::config::{Content, LogFormat};
use site::exchange::{Exchange, Want};
use units::{Bytes, Nanos};

const ROUNDS: u32 = 1_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).filter(|name| name != "-").map(PathBuf::from);
    let (content, name) = match &file {
        None => (Content::Fixed(Bytes(3361)), "page.html"),
        Some(path) => {
            let name = path.file_name().and_then(|name| name.to_str()).ok_or("DIR/FILE")?;
            (Content::Directory(path.parent().ok_or("DIR/FILE")?.to_owned()), name)
        }
    };
    let mut config = Config::new(models::ALL[0], content);
    config.listen.set_port(0);
    config.site.keep_alive.requests_max = 0;
    if let Some(format) = std::env::args().nth(2) {
        config.site.access_log.file = Some("/dev/null".into());
        config.site.access_log.format = LogFormat::read(&format)?;
    }
    let service = Service::bind(config)?;
    let request = format!(
        "GET /{name} HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nUser-Agent: joust\r\nAccept: */*\r\n\r\n"
    );
    let start = sys::clock::monotonic();
    let mut exchange = Exchange::new(&service, ([127, 0, 0, 1], 1).into(), start);
    let cpu = sys::clock::thread_cpu();
    let mut bytes = 0;
    for round in 0..ROUNDS {
        // A request every 10 us of the exchange's time, so that freshness runs out as in use.
        let now = start.saturating_add(Nanos::from_micros(10 * u64::from(round)));
        answer(&mut exchange, request.as_bytes(), now, &mut bytes);
    }
    let cpu = sys::clock::thread_cpu().saturating_sub(cpu);
    let each = cpu.0 as f64 / f64::from(ROUNDS);
    writeln!(
        std::io::stdout(),
        "{each:.0} ns a request, {} bytes an answer",
        bytes / u64::from(ROUNDS)
    )?;
    Ok(())
}

fn answer(exchange: &mut Exchange<'_>, request: &[u8], now: Nanos, bytes: &mut u64) {
    match exchange.want(|| now) {
        Want::Read(room) => room[..request.len()].copy_from_slice(request),
        other => panic!("an idle exchange reads, but this one wants {other:?}"),
    }
    exchange.received(request.len(), now);
    while !exchange.is_idle() {
        let taken = match exchange.want(|| now) {
            Want::Write { head, body } => head.len() + body.len(),
            Want::File { head, len, .. } => head.len() + len as usize,
            other => panic!("an answer is written, but this one wants {other:?}"),
        };
        exchange.wrote(taken, now);
        *bytes += taken as u64;
    }
}
