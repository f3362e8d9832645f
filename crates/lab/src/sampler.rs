//! Owns the reading of the machine's counters while a server is loaded: 5 times a second, by a thread on the
//! generator's CPUs, from files that stay open; parsed only when the load is over. The result includes the cost of
//! the readings. Must not know what a counter means: the doctor does.
//! Start reading at [`Sampler::start`]; [`Sampler::around`] is for a load that is not part of a run.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::net::UdpSocket;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use doctor::counters::{CounterScope, CounterSource, Counters, Front};
use record::{Course, LoadPlan, MachineSeries, NetworkKind, ProcessesUse, ServerAddress};
use sys::{affinity, clock};
use units::Nanos;

use crate::cgroup;
use crate::netns::Net;
use crate::processes::Roll;
use crate::tree::Tree;

/// Time between two readings.
const STEP: Nanos = Nanos::from_millis(200);
/// Most readings. In loads longer than two minutes they are further apart, so that the texts kept for parsing are
/// bounded. If the length of a load is unknown, every other reading is dropped at the bound.
const READINGS_MAX: u64 = 600;

/// The network of the thread that reads.
const OWN_NETWORK: &str = "/proc/thread-self/net";

/// What is read, and from where.
#[derive(Debug)]
pub struct Watched<'a> {
    /// The network of client and server.
    pub net: &'a Net,
    /// The server's processes; `None` if it runs elsewhere.
    pub tree: Option<&'a Tree>,
    /// How long the load is planned to take.
    pub length: Nanos,
    /// CPUs of the reading thread: the generator's, so that it costs the server none.
    pub cpus: &'a [u32],
}

/// A thread that reads the counters.
#[derive(Debug)]
pub struct Sampler {
    end_now: Sender<()>,
    thread: JoinHandle<(MachineSeries, Option<ProcessesUse>)>,
}

impl Sampler {
    /// Makes the first reading, and continues on its own thread.
    ///
    /// # Errors
    /// No thread left.
    pub fn start(watched: &Watched) -> io::Result<Self> {
        let (net, tree) = (watched.net.clone(), watched.tree.cloned());
        let is_servers_alone = net.facts().kind == NetworkKind::Machines;
        Self::spawn(watched.cpus, watched.length, move || {
            if is_servers_alone {
                return CounterReadings::open(tree, &[("server", OWN_NETWORK.to_owned())]);
            }
            // If that fails, the client's counters are those of the machine, under the same names.
            let is_apart = net.client().is_some_and(|client| client.enter().is_ok());
            let networks = match tree.as_ref().filter(|_| is_apart) {
                Some(tree) => {
                    let servers = format!("/proc/{}/net", tree.root());
                    vec![("client", OWN_NETWORK.to_owned()), ("server", servers)]
                }
                None => vec![("both", OWN_NETWORK.to_owned())],
            };
            CounterReadings::open(tree, &networks)
        })
    }

    /// The same around a load that is not part of a run, in the network of the calling process. That is the network
    /// of client and server, or of the client alone if the load goes to another machine.
    ///
    /// # Errors
    /// No thread left.
    pub fn around(plan: &LoadPlan) -> io::Result<Self> {
        let side = if goes_elsewhere(plan) { "client" } else { "both" };
        let length = plan.stop.duration.unwrap_or_default();
        Self::spawn(&plan.cpus, length, move || {
            CounterReadings::open(None, &[(side, OWN_NETWORK.to_owned())])
        })
    }

    fn spawn(
        cpus: &[u32],
        length: Nanos,
        open: impl FnOnce() -> CounterReadings + Send + 'static,
    ) -> io::Result<Self> {
        let (end_now, ended) = channel();
        let (ready, begun) = channel();
        let cpus = cpus.to_vec();
        let mut step = STEP.max(Nanos(length.0 / READINGS_MAX));
        let read = move || {
            if !cpus.is_empty() {
                // If that fails, the reading is still right, but may cost the server CPU time.
                let _ = affinity::pin(&cpus);
            }
            let mut readings = open();
            readings.read();
            readings.begin();
            // The receiver waits for this.
            let _ = ready.send(());
            while wait(step, &ended) {
                readings.read();
                if readings.at.len() as u64 > READINGS_MAX {
                    readings.thin();
                    step = Nanos(2 * step.0);
                }
            }
            readings.read();
            readings.finish()
        };
        let thread = std::thread::Builder::new().name("sampler".to_owned()).spawn(read)?;
        // The panic of a thread shows in `finish`.
        let _ = begun.recv();
        Ok(Self { end_now, thread })
    }

    /// Makes the last reading and returns all of them; nothing if the thread panicked, which is our fault and not the
    /// visit's.
    pub fn finish(self) -> (MachineSeries, Option<ProcessesUse>) {
        let _ = self.end_now.send(());
        self.thread.join().unwrap_or_default()
    }
}

/// False if the end was requested.
fn wait(step: Nanos, ended: &Receiver<()>) -> bool {
    matches!(ended.recv_timeout(Duration::from(step)), Err(RecvTimeoutError::Timeout))
}

/// More than any file of counters has, except on a machine with hundreds of CPUs.
const BUFFER_BYTES: usize = 32_768;

#[derive(Debug)]
struct CounterFile {
    /// Prefix of the names of its counters.
    name: String,
    source: &'static CounterSource,
    file: File,
    /// Number of wanted lines of a list, head included, once that is known.
    front_lines: Option<usize>,
    /// One per reading; empty if it could not be read.
    texts: Vec<Vec<u8>>,
}

impl CounterFile {
    /// Its text, with as little work for the kernel as possible: this happens during a measurement.
    fn read(&mut self, buffer: &mut Vec<u8>) -> io::Result<Vec<u8>> {
        self.file.rewind()?;
        match self.source.front {
            Some(front) => self.read_front(front, buffer),
            None => self.read_whole(buffer),
        }
    }

    fn read_whole(&mut self, buffer: &mut Vec<u8>) -> io::Result<Vec<u8>> {
        buffer.resize(BUFFER_BYTES, 0);
        let mut text = Vec::new();
        while text.len() < self.source.bytes_max {
            let read = self.file.read(buffer)?;
            text.extend_from_slice(&buffer[..read]);
            if read == 0 {
                break;
            }
        }
        text.truncate(self.source.bytes_max);
        Ok(text)
    }

    /// The first time, reads up to a line that is not wanted. Later, reads only as many lines as were wanted then,
    /// because the kernel may search long for the line after those.
    fn read_front(&mut self, front: Front, buffer: &mut Vec<u8>) -> io::Result<Vec<u8>> {
        buffer.resize(front.line_bytes, 0);
        let mut text = Vec::new();
        let mut lines = 0;
        while text.len() < self.source.bytes_max && self.front_lines != Some(lines) {
            let read = self.file.read(buffer)?;
            let is_head = lines == 0;
            let line = &buffer[..read];
            if read == 0 || !(is_head || (front.is_wanted)(&String::from_utf8_lossy(line))) {
                break;
            }
            text.extend_from_slice(line);
            lines += 1;
        }
        self.front_lines.get_or_insert(lines);
        Ok(text)
    }
}

#[derive(Debug)]
struct CounterReadings {
    buffer: Vec<u8>,
    sources: Vec<CounterFile>,
    at: Vec<Nanos>,
    roll: Option<Roll>,
    /// CPU time of the thread before the load began, minus what the roll had cost until then.
    cpu_before: Nanos,
    began: Nanos,
}

impl CounterReadings {
    /// For these networks: whose each one is, and where its files lie.
    fn open(tree: Option<Tree>, networks: &[(&str, String)]) -> Self {
        let mut wanted: Vec<(String, PathBuf, &'static CounterSource)> = Vec::new();
        for source in doctor::needs() {
            match source.scope {
                CounterScope::EachNetwork => wanted.extend(networks.iter().map(|(side, dir)| {
                    ((*side).to_owned(), format!("{dir}/{}", source.file).into(), source)
                })),
                CounterScope::Machine => {
                    wanted.push((source.name.to_owned(), source.file.into(), source));
                }
                CounterScope::OwnCgroups => {
                    let files = cgroup::quota_files().into_iter();
                    wanted.extend(files.map(|path| (source.name.to_owned(), path, source)));
                }
            }
        }
        let opened = wanted.into_iter().filter_map(|(name, path, source)| {
            let file = File::open(path).ok()?;
            Some(CounterFile { name, source, file, front_lines: None, texts: Vec::new() })
        });
        let sources = opened.collect();
        let (at, began) = (Vec::new(), clock::monotonic());
        let (buffer, roll) = (Vec::with_capacity(BUFFER_BYTES), tree.map(Roll::call));
        Self { buffer, sources, at, roll, cpu_before: Nanos::ZERO, began }
    }

    /// From here on readings cost CPU time during the load.
    fn begin(&mut self) {
        let looked = self.roll.as_ref().map_or(Nanos::ZERO, Roll::cost);
        self.cpu_before = clock::thread_cpu().saturating_sub(looked);
    }

    fn read(&mut self) {
        self.at.push(clock::monotonic() - self.began);
        for source in &mut self.sources {
            // A file that cannot be read gives an empty text.
            let text = source.read(&mut self.buffer).unwrap_or_default();
            source.texts.push(text);
        }
        if let Some(roll) = &mut self.roll {
            roll.look();
        }
    }

    /// Drops every other reading; the first one stays.
    fn thin(&mut self) {
        fn every_other<T>(all: &mut Vec<T>) {
            let mut index = 0_usize;
            all.retain(|_| {
                index += 1;
                index % 2 == 1
            });
        }
        every_other(&mut self.at);
        self.sources.iter_mut().for_each(|source| every_other(&mut source.texts));
    }

    fn finish(self) -> (MachineSeries, Option<ProcessesUse>) {
        let processes = self.roll.map(Roll::finish);
        let looked = processes.map_or(Nanos::ZERO, |processes| processes.cost);
        let cost = (clock::thread_cpu() - self.cpu_before).saturating_sub(looked);
        let readings: Vec<Counters> =
            (0..self.at.len()).map(|n| counters(&self.sources, n)).collect();
        (series(self.at, &readings, cost), processes)
    }
}

/// Whether a server of the load, or the proxy before it, runs on another machine: its address cannot be bound here.
fn goes_elsewhere(plan: &LoadPlan) -> bool {
    let is_elsewhere = |address: std::net::IpAddr| {
        !address.is_loopback() && UdpSocket::bind((address, 0)).is_err()
    };
    match &plan.proxy {
        Some(proxy) => is_elsewhere(proxy.addr.ip()),
        None => plan.origins.iter().any(|origin| match &origin.place {
            ServerAddress::Inet(address) => is_elsewhere(address.ip()),
            ServerAddress::Unix(_) => false,
        }),
    }
}

fn counters(sources: &[CounterFile], reading: usize) -> Counters {
    let mut counters = Counters::new();
    for source in sources {
        let text = String::from_utf8_lossy(&source.texts[reading]);
        (source.source.parse)(&source.name, &text, &mut counters);
    }
    counters
}

/// Keeps the counters that changed.
fn series(at: Vec<Nanos>, readings: &[Counters], cost: Nanos) -> MachineSeries {
    let names: BTreeSet<&String> = readings.iter().flat_map(BTreeMap::keys).collect();
    let source = |name: &&String| Some(name.rsplit_once('.')?.0.to_owned());
    let sources = names.iter().filter_map(source).collect();
    let course = |name: &String| {
        // A counter that is missing from a reading has not changed; one that appears later begins there.
        let mut values = readings.iter().map(|reading| reading.get(name).copied());
        let first = readings.iter().find_map(|reading| reading.get(name).copied())?;
        let mut last = values.next().flatten().unwrap_or(first);
        let steps = values.map(|value| {
            let value = value.unwrap_or(last);
            let step = value.wrapping_sub(last) as i64;
            last = value;
            step
        });
        let steps: Vec<i64> = steps.collect();
        steps.iter().any(|&step| step != 0).then_some(Course { first, steps })
    };
    let moved = names.iter().filter_map(|&name| Some((name.clone(), course(name)?)));
    let counters = moved.collect();
    MachineSeries { at, sources, counters, cost }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(expected: &[(&str, u64)]) -> Vec<(String, u64)> {
        expected.iter().map(|&(name, value)| (name.to_owned(), value)).collect()
    }

    #[test]
    fn only_what_moved_is_kept_and_a_gauge_may_fall() {
        let reading = |values: &[(&str, u64)]| named(values).into_iter().collect::<Counters>();
        let readings = [
            reading(&[("a.same", 5), ("a.up", 1), ("b.gauge", 9)]),
            reading(&[("a.same", 5), ("a.up", 4), ("c.late", 7)]),
            reading(&[("a.same", 5), ("a.up", 4), ("b.gauge", 6), ("c.late", 8)]),
        ];
        let series = series(vec![Nanos(0), Nanos(1), Nanos(2)], &readings, Nanos(3));
        let kept: Vec<&str> = series.counters.keys().map(String::as_str).collect();
        assert_eq!(kept, ["a.up", "b.gauge", "c.late"]);
        assert_eq!(series.counters["a.up"], Course { first: 1, steps: vec![3, 0] });
        assert_eq!(series.counters["b.gauge"], Course { first: 9, steps: vec![0, -3] });
        assert_eq!(series.counters["c.late"], Course { first: 7, steps: vec![0, 1] });
        assert_eq!(series.change("a.same"), Some(0));
        assert_eq!(series.change("d.none"), None);
    }

    #[test]
    fn around_a_load_the_network_is_of_both_sides_or_of_the_client_alone() {
        use record::NetworkSide::{Client, Server};
        let here = LoadPlan::get(([127, 0, 0, 1], 80).into(), "/");
        // An address from a block for documentation (RFC 5737): no machine has it.
        let elsewhere = LoadPlan::get(([192, 0, 2, 1], 80).into(), "/");
        for (plan, server_is_known) in [(here, true), (elsewhere, false)] {
            let sampler = Sampler::around(&plan).unwrap();
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            drop(std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap());
            let (series, processes) = sampler.finish();
            assert!(series.network_change(Client, "Tcp.ActiveOpens") >= Some(1), "{series:?}");
            let of_server = series.network_change(Server, "Tcp.ActiveOpens");
            assert_eq!(of_server.is_some(), server_is_known);
            assert_eq!((processes, series.at.len()), (None, 2));
        }
    }

    #[test]
    fn of_all_sockets_the_listeners_are_read() {
        use std::net::{TcpListener, TcpStream};
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let waiting = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let source = &doctor::counters::LISTENERS;
        let file = File::open(format!("{OWN_NETWORK}/{}", source.file)).unwrap();
        let mut file = CounterFile {
            name: "both".to_owned(),
            source,
            file,
            front_lines: None,
            texts: Vec::new(),
        };
        let mut read = || String::from_utf8(file.read(&mut Vec::new()).unwrap()).unwrap();
        let text = read();
        let states = |text: &str| -> Vec<String> {
            let state = |line: &str| line.split_whitespace().nth(3).map(str::to_owned);
            text.lines().skip(1).filter_map(state).collect()
        };
        assert!(!states(&text).is_empty(), "our own listener");
        assert!(states(&text).iter().all(|state| state == "0A"), "{text}");
        // Later readings end there, however many connections exist by then.
        assert!(!states(&read()).is_empty());
        let mut counters = Counters::new();
        (source.parse)("both", &text, &mut counters);
        assert!(counters["both.listeners.queue_max"] >= 1, "{text}");
        drop(waiting);
    }

    #[test]
    fn a_load_of_unknown_length_keeps_readings_of_its_whole_time() {
        let mut readings = CounterReadings::open(None, &[("both", OWN_NETWORK.to_owned())]);
        (0..5).for_each(|_| readings.read());
        let at = readings.at.clone();
        readings.thin();
        assert_eq!(readings.at, [at[0], at[2], at[4]]);
        assert!(readings.sources.iter().all(|source| source.texts.len() == 3));
        readings.read();
        assert_eq!(readings.finish().0.at.len(), 4);
    }

    #[test]
    fn connections_are_counted_on_the_side_where_they_are_made() {
        use std::net::{TcpListener, TcpStream};
        let net = Net::fresh();
        // A process on the server's side, whose network is read by its number.
        let started = net.at_server(|| std::process::Command::new("/bin/sleep").arg("600").spawn());
        let mut sleeper = started.unwrap().unwrap();
        let tree = Tree::new(sleeper.id(), None);
        let (length, cpus) = (Nanos::from_secs(3600), affinity::allowed().unwrap());
        let watched = Watched { net: &net, tree: Some(&tree), length, cpus: &cpus };
        let sampler = Sampler::start(&watched).unwrap();
        let listener = net.at_server(|| TcpListener::bind((net.server_address(), 0)).unwrap());
        let listener = listener.unwrap();
        let addr = listener.local_addr().unwrap();
        for _ in 0..3 {
            drop(net.at_client(|| TcpStream::connect(addr).unwrap()).unwrap());
        }
        let (series, _) = sampler.finish();
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
        let change = |side, counter| series.network_change(side, counter).unwrap();
        let asked = change(record::NetworkSide::Client, "Tcp.ActiveOpens");
        let taken = change(record::NetworkSide::Server, "Tcp.PassiveOpens");
        if net.client().is_some() {
            assert_eq!((asked, taken), (3, 3));
            assert_eq!(change(record::NetworkSide::Server, "Tcp.ActiveOpens"), 0);
        } else {
            // Other processes on this machine connect, too.
            assert!(asked >= 3 && taken >= 3);
        }
        assert!(series.at.len() >= 2 && series.cost > Nanos::ZERO, "{series:?}");
        assert!(series.counters.len() < 200, "only what moved: {}", series.counters.len());
    }
}
