//! `joust load --metrics-listen`: the figures of a load while it runs, over HTTP, for Prometheus. Owns the socket and
//! its thread; `report` writes the text. Start reading at [`Metrics::begin`].
//!
//! One reader at a time, each with two seconds: readers come every few seconds, and none may hold up another one or the
//! end of the load. The load only queues its intervals.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use miette::miette;
use record::{Interval, LoadPlan};
use report::LiveMetrics;
use report::live::AgentFigures;

use crate::screen::Aside;
use crate::trouble::Trouble;

/// How often the thread looks for a reader and for the end.
const LOOK: Duration = Duration::from_millis(50);
/// Longest time for one reader.
const READER_MAX: Duration = Duration::from_secs(2);
/// Largest head of a request.
const HEAD_MAX: usize = 8 << 10;
/// Type of the text (OpenMetrics 1.0).
const TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A server of figures, until it is dropped.
pub struct Metrics {
    shared: Arc<Mutex<LiveMetrics>>,
    aside: Mutex<Aside>,
    over: Arc<AtomicBool>,
    server: Option<JoinHandle<()>>,
}

impl Metrics {
    /// Listens, if that was asked for, and says where.
    pub fn begin(
        at: Option<SocketAddr>,
        plan: &LoadPlan,
        say: &dyn Fn(&str),
    ) -> Result<Option<Self>, Trouble> {
        let Some(at) = at else { return Ok(None) };
        let cannot = |error: io::Error| {
            Trouble::failed(miette!(
                help = "name an address of this machine and a free port; port 0 picks one",
                "--metrics-listen: cannot listen on {at}: {error}"
            ))
        };
        let listener = TcpListener::bind(at).map_err(cannot)?;
        listener.set_nonblocking(true).map_err(cannot)?;
        let at = listener.local_addr().map_err(cannot)?;
        let shared = Arc::new(Mutex::new(LiveMetrics::new(plan)));
        let over = Arc::new(AtomicBool::new(false));
        let (own, is_over) = (shared.clone(), over.clone());
        let server = thread::Builder::new().name("metrics".to_owned());
        let server = server.spawn(move || serve(&listener, &own, &is_over)).map_err(cannot)?;
        let own = shared.clone();
        let add = move || {
            move |interval: &Interval| own.lock().expect("nobody panics with it").add(interval)
        };
        let aside = Mutex::new(Aside::begin(add).map_err(cannot)?);
        say(&format!("metrics at http://{at}/metrics"));
        Ok(Some(Self { shared, aside, over, server: Some(server) }))
    }

    /// Another load begins: counts begin at 0 again.
    pub fn begins(&self, plan: &LoadPlan) {
        *self.shared.lock().expect("nobody panics with it") = LiveMetrics::new(plan);
    }

    /// Adds an interval that is over on all threads.
    pub fn add(&self, interval: &Interval) {
        self.aside.lock().expect("nobody panics with it").add(interval);
    }

    /// Takes in how the agents of a fleet stand.
    pub fn set_agents(&self, agents: &[AgentFigures]) {
        self.shared.lock().expect("nobody panics with it").set_agents(agents);
    }
}

impl Drop for Metrics {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(server) = self.server.take() {
            // The panic hook has reported any panic in it.
            let _ = server.join();
        }
    }
}

fn serve(listener: &TcpListener, shared: &Mutex<LiveMetrics>, over: &AtomicBool) {
    while !over.load(Ordering::Relaxed) {
        match listener.accept() {
            // Who goes away early gets nothing, and that is all.
            Ok((reader, _)) => drop(answer(reader, shared)),
            // Nobody is there, or no descriptor is left for a while.
            Err(_) => thread::sleep(LOOK),
        }
    }
}

fn answer(mut reader: TcpStream, shared: &Mutex<LiveMetrics>) -> io::Result<()> {
    reader.set_nonblocking(false)?;
    reader.set_write_timeout(Some(READER_MAX))?;
    let head = head(&mut reader)?;
    let mut words = head.split_ascii_whitespace();
    let (status, body) = match (words.next(), words.next()) {
        (Some("GET"), Some("/metrics")) => {
            ("200 OK", shared.lock().expect("nobody panics with it").text())
        }
        (Some("GET"), _) => ("404 Not Found", "The figures are at /metrics.\n".to_owned()),
        _ => ("405 Method Not Allowed", "Only GET is answered.\n".to_owned()),
    };
    let kind = if status.starts_with("200") { TYPE } else { "text/plain" };
    let length = body.len();
    let reply = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    reader.write_all(reply.as_bytes())
}

/// The head of a request, up to its empty line.
fn head(reader: &mut TcpStream) -> io::Result<String> {
    let (begun, mut head) = (Instant::now(), Vec::new());
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let left = READER_MAX.saturating_sub(begun.elapsed());
        if left.is_zero() || head.len() > HEAD_MAX {
            return Err(io::ErrorKind::TimedOut.into());
        }
        reader.set_read_timeout(Some(left))?;
        let mut part = [0; 1024];
        match reader.read(&mut part)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            n => head.extend_from_slice(&part[..n]),
        }
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}
