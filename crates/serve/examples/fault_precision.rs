//! Measures how late a planted delay ends, beyond the time of an answer without one, as seen by a client that never
//! sleeps. `cargo run --release -p joust-serve --examples` builds the server it starts, then `fault_precision MODEL
//! DELAY [CONNECTIONS]`, as in `fault_precision reactor 5ms 50`. The server runs on the first available CPU, the client
//! on the last. Owns nothing that is used elsewhere.

use std::error::Error;
use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use units::Nanos;

const ROUNDS: usize = 1000;
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [model, delay, conns @ ..] = args.as_slice() else {
        return Err("fault_precision MODEL DELAY [CONNECTIONS]".into());
    };
    let count: usize = conns.first().map_or(Ok(1), |typed| typed.parse())?;
    let held: Nanos = delay.parse()?;
    let plain = measure(model, None, count)?;
    let delayed = measure(model, Some(delay), count)?;
    let mut out = std::io::stdout();
    writeln!(out, "{model}, {count} connections, us:    p1      p50      p90      p99      max")?;
    line(&mut out, "without a fault", &plain, Nanos::ZERO)?;
    line(&mut out, "delayed, beyond it", &delayed, held)?;
    Ok(())
}

fn line(
    out: &mut impl std::io::Write,
    name: &str,
    sorted: &[Nanos],
    less: Nanos,
) -> std::io::Result<()> {
    write!(out, "{name:<24}")?;
    for share in [0.01, 0.5, 0.9, 0.99, 1.0] {
        let at = ((sorted.len() - 1) as f64 * share) as usize;
        let micros = sorted[at].as_micros_f64() - less.as_micros_f64();
        write!(out, " {micros:8.1}")?;
    }
    writeln!(out)
}

/// Times from a send to the last byte of its answer, sorted. One request at a time on each
/// connection, all of them sent one after another and then awaited in that order.
fn measure(model: &str, delay: Option<&str>, count: usize) -> Result<Vec<Nanos>, Box<dyn Error>> {
    let cpus = sys::affinity::allowed()?;
    sys::affinity::pin(&cpus[..1])?;
    let (mut server, address) = start(model, delay)?;
    sys::affinity::pin(&cpus[cpus.len() - 1..])?;
    let connect = |_| {
        let stream = TcpStream::connect(&address)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        Ok(stream)
    };
    let mut conns: Vec<TcpStream> =
        (0..count).map(connect).collect::<Result<_, std::io::Error>>()?;
    let mut times = Vec::new();
    for round in 0..ROUNDS / count.min(10) {
        let mut sent = Vec::with_capacity(count);
        for conn in &mut conns {
            sent.push(sys::clock::monotonic());
            conn.write_all(REQUEST)?;
        }
        for (conn, sent) in conns.iter_mut().zip(&sent) {
            await_answer(conn)?;
            if round >= 10 {
                times.push(sys::clock::monotonic() - *sent);
            }
        }
    }
    server.kill()?;
    server.wait()?;
    times.sort_unstable();
    Ok(times)
}

fn start(model: &str, delay: Option<&str>) -> Result<(Child, String), Box<dyn Error>> {
    let settings = ["MaxKeepAliveRequests=0"];
    let mut server = Command::new(std::env::current_exe()?.with_file_name("serve_model"))
        .args([model, "--fixed=100", "off"])
        .args(settings)
        .args(delay.map(|delay| format!("--fault=delay={delay}")))
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    BufReader::new(server.stdout.take().ok_or("no output")?).read_line(&mut line)?;
    Ok((server, line.trim().to_owned()))
}

fn await_answer(conn: &mut TcpStream) -> Result<(), Box<dyn Error>> {
    let mut buf = [0; 4096];
    loop {
        match conn.read(&mut buf) {
            Ok(0) => return Err("the server has closed the connection".into()),
            // An answer of some 300 bytes comes in one piece.
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::hint::spin_loop(),
            Err(error) => return Err(error.into()),
        }
    }
}
