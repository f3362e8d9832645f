//! Owns the reading of the machine's counters while a server is loaded: 5 times a second, by a thread
//! on the generator's CPUs, from files that stay open; parsed only when the load is over.
//! The result has the cost of the readings. What a counter means is the doctor's business.
//! Start reading at [`Sampler::start`].

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use record::{Course, MachineSeries, ProcessesUse};
use sys::{affinity, clock};
use units::Nanos;

use crate::cgroup;
use crate::netns::Net;
use crate::processes::Roll;
use crate::tree::Tree;

/// Time between two readings.
const STEP: Nanos = Nanos::from_millis(200);
/// Maximum of readings: in loads longer than two minutes they are further apart, so that the texts kept until
/// parsing are bounded.
const READINGS_MAX: u64 = 600;

/// What is read, and from where.
#[derive(Debug)]
pub struct Watched<'a> {
    /// The network of client and server.
    pub net: &'a Net,
    /// The server's processes; `None` where it runs elsewhere.
    pub tree: Option<&'a Tree>,
    /// How long the load is planned to take.
    pub length: Nanos,
    /// CPUs of the reading thread: the generator's, so that it costs the server none.
    pub cpus: &'a [u32],
}

/// A thread that reads.
#[derive(Debug)]
pub struct Sampler {
    end_now: Sender<()>,
    thread: JoinHandle<(MachineSeries, Option<ProcessesUse>)>,
}

impl Sampler {
    /// Makes the first reading and goes on from a thread of its own.
    ///
    /// # Errors
    /// No thread left.
    pub fn start(watched: &Watched) -> io::Result<Self> {
        let (end_now, ended) = channel();
        let (ready, begun) = channel();
        let (net, tree) = (watched.net.clone(), watched.tree.cloned());
        let cpus = watched.cpus.to_vec();
        let step = STEP.max(Nanos(watched.length.0 / READINGS_MAX));
        let read = move || {
            if !cpus.is_empty() {
                // If that fails, the reading is still right, but may cost the server CPU time.
                let _ = affinity::pin(&cpus);
            }
            // If that fails, the client's counters are those of the machine, under the same name.
            let entered = net.client().is_some_and(|client| client.enter().is_ok());
            let mut readings = CounterReadings::open(tree, entered);
            readings.read();
            // The receiver waits until it has come.
            let _ = ready.send(());
            while readings.at.len() as u64 <= READINGS_MAX && wait(step, &ended) {
                readings.read();
            }
            // At the bound there is only the end to wait for; it has come, or the sender is gone.
            readings.read();
            readings.finish()
        };
        let thread = std::thread::Builder::new().name("sampler".to_owned()).spawn(read)?;
        // The panic of a thread shows in `finish`.
        let _ = begun.recv();
        Ok(Self { end_now, thread })
    }

    /// Makes the last reading and returns all; nothing if the thread panicked, which is a
    /// fault of ours but not of the visit.
    pub fn finish(self) -> (MachineSeries, Option<ProcessesUse>) {
        let _ = self.end_now.send(());
        self.thread.join().unwrap_or_default()
    }
}

/// False when the end was asked for.
fn wait(step: Nanos, ended: &Receiver<()>) -> bool {
    matches!(ended.recv_timeout(Duration::from(step)), Err(RecvTimeoutError::Timeout))
}

/// How a file is taken apart: adds its counters under the name that it was opened by.
type Parse = fn(&str, &str, &mut Counters);
type Counters = BTreeMap<String, u64>;

#[derive(Debug)]
struct CounterFile {
    name: String,
    parse: Parse,
    file: File,
    /// One a reading; what could not be read is empty.
    texts: Vec<Vec<u8>>,
}

#[derive(Debug)]
struct CounterReadings {
    sources: Vec<CounterFile>,
    at: Vec<Nanos>,
    roll: Option<Roll>,
    cpu_before: Nanos,
    began: Nanos,
}

impl CounterReadings {
    fn open(tree: Option<Tree>, is_apart: bool) -> Self {
        let cpu_before = clock::thread_cpu();
        let ours = "/proc/thread-self/net".to_owned();
        let networks = match tree.as_ref().filter(|_| is_apart) {
            Some(tree) => vec![("client", ours), ("server", format!("/proc/{}/net", tree.root()))],
            None => vec![("both", ours)],
        };
        let mut wanted: Vec<(String, PathBuf, Parse)> = Vec::new();
        for (side, dir) in networks {
            for (file, parse) in
                [("netstat", pairs as Parse), ("snmp", pairs), ("sockstat", sockets)]
            {
                wanted.push((side.to_owned(), format!("{dir}/{file}").into(), parse));
            }
        }
        wanted.push(("softnet".to_owned(), "/proc/thread-self/net/softnet_stat".into(), softnet));
        for kind in ["cpu", "io", "memory"] {
            let path = format!("/proc/pressure/{kind}").into();
            wanted.push((format!("pressure.{kind}"), path, pressure));
        }
        wanted.push((String::new(), "/proc/stat".into(), stat));
        for path in cgroup::quota_files() {
            wanted.push(("quota".to_owned(), path, quota));
        }
        let opened = wanted.into_iter().filter_map(|(name, path, parse)| {
            Some(CounterFile { name, parse, file: File::open(path).ok()?, texts: Vec::new() })
        });
        let sources = opened.collect();
        let (at, began) = (Vec::new(), clock::monotonic());
        Self { sources, at, roll: tree.map(Roll::call), cpu_before, began }
    }

    fn read(&mut self) {
        self.at.push(clock::monotonic() - self.began);
        for source in &mut self.sources {
            let mut text = Vec::new();
            let read = source.file.rewind().and_then(|()| source.file.read_to_end(&mut text));
            if read.is_err() {
                text.clear();
            }
            source.texts.push(text);
        }
        if let Some(roll) = &mut self.roll {
            roll.look();
        }
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

fn counters(sources: &[CounterFile], reading: usize) -> Counters {
    let mut counters = Counters::new();
    for source in sources {
        let text = String::from_utf8_lossy(&source.texts[reading]);
        (source.parse)(&source.name, &text, &mut counters);
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

/// Pairs of lines, "Tcp: ActiveOpens PassiveOpens" and "Tcp: 3 4" (/proc/net/netstat, snmp).
fn pairs(side: &str, text: &str, counters: &mut Counters) {
    let lines: Vec<&str> = text.lines().collect();
    for pair in lines.chunks_exact(2) {
        let (Some((of, names)), Some((_, values))) =
            (pair[0].split_once(": "), pair[1].split_once(": "))
        else {
            continue;
        };
        for (name, value) in names.split(' ').zip(values.split(' ')) {
            // Tcp's MaxConn is -1: no limit.
            if let Ok(value) = value.parse() {
                counters.insert(format!("{side}.{of}.{name}"), value);
            }
        }
    }
}

/// "TCP: inuse 1 orphan 0 tw 3": name and value in turn.
fn sockets(side: &str, text: &str, counters: &mut Counters) {
    for (of, rest) in text.lines().filter_map(|line| line.split_once(": ")) {
        let words: Vec<&str> = rest.split_whitespace().collect();
        for pair in words.chunks_exact(2) {
            if let Ok(value) = pair[1].parse() {
                counters.insert(format!("{side}.sockstat.{of}_{}", pair[0]), value);
            }
        }
    }
}

/// A line a CPU, in hexadecimal; the columns are counted in net/core/net-procfs.c.
fn softnet(name: &str, text: &str, counters: &mut Counters) {
    const COLUMNS: [(usize, &str); 5] = [
        (0, "processed"),
        (1, "dropped"),
        (2, "time_squeeze"),
        (9, "received_rps"),
        (10, "limited"),
    ];
    const CPU: usize = 12;
    for (line, words) in text.lines().enumerate() {
        let hexadecimal = |word: &str| u64::from_str_radix(word, 16).ok();
        let values: Vec<u64> = words.split_whitespace().map_while(hexadecimal).collect();
        // Before Linux 5.10 the CPU's number was not there.
        let cpu = values.get(CPU).copied().unwrap_or(line as u64);
        for (column, counter) in COLUMNS {
            if let Some(&value) = values.get(column) {
                counters.insert(format!("{name}.{cpu}.{counter}"), value);
            }
        }
    }
}

/// "some avg10=0.00 avg60=0.00 avg300=0.00 total=0": the totals, in microseconds.
fn pressure(name: &str, text: &str, counters: &mut Counters) {
    for line in text.lines() {
        let kind = line.split(' ').next().unwrap_or_default();
        let total = line.rsplit_once("total=").and_then(|(_, total)| total.parse().ok());
        if let Some(total) = total {
            counters.insert(format!("{name}.{kind}_us"), total);
        }
    }
}

/// The lines of /proc/stat that say what each CPU did, in ticks, and how often processes were
/// switched and made.
fn stat(_: &str, text: &str, counters: &mut Counters) {
    const COLUMNS: [&str; 8] =
        ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"];
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap_or_default();
        if let Some(cpu) = name.strip_prefix("cpu").filter(|cpu| !cpu.is_empty()) {
            for (column, value) in COLUMNS.iter().zip(words) {
                if let Ok(value) = value.parse() {
                    counters.insert(format!("cpu.{cpu}.{column}_ticks"), value);
                }
            }
        } else if matches!(name, "ctxt" | "processes")
            && let Some(value) = words.next().and_then(|value| value.parse().ok())
        {
            counters.insert(format!("stat.{name}"), value);
        }
    }
}

/// `cpu.stat` of either version, summed over the cgroups that we are in.
fn quota(name: &str, text: &str, counters: &mut Counters) {
    for (key, value) in text.lines().filter_map(|line| line.split_once(' ')) {
        let Ok(value) = value.trim().parse::<u64>() else { continue };
        let (counter, value) = match key {
            "nr_periods" => ("periods", value),
            "nr_throttled" => ("throttled", value),
            "throttled_usec" => ("throttled_us", value),
            // Version 1 has nanoseconds.
            "throttled_time" => ("throttled_us", value / 1000),
            _ => continue,
        };
        *counters.entry(format!("{name}.{counter}")).or_default() += value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(parse: Parse, name: &str, text: &str) -> Vec<(String, u64)> {
        let mut counters = Counters::new();
        parse(name, text, &mut counters);
        counters.into_iter().collect()
    }

    fn named(expected: &[(&str, u64)]) -> Vec<(String, u64)> {
        expected.iter().map(|&(name, value)| (name.to_owned(), value)).collect()
    }

    #[test]
    fn what_the_kernel_writes_is_taken_apart() {
        let snmp = "Tcp: MaxConn RetransSegs\nTcp: -1 12\nUdp: InDatagrams\nUdp: 3\n";
        let expected = named(&[("server.Tcp.RetransSegs", 12), ("server.Udp.InDatagrams", 3)]);
        assert_eq!(parsed(pairs, "server", snmp), expected);
        let sockstat = "sockets: used 16\nTCP: inuse 1 orphan 0\n";
        let expected = [
            ("both.sockstat.TCP_inuse", 1),
            ("both.sockstat.TCP_orphan", 0),
            ("both.sockstat.sockets_used", 16),
        ];
        assert_eq!(parsed(sockets, "both", sockstat), named(&expected));
        let psi = "some avg10=1.50 avg60=0.00 avg300=0.00 total=8152\nfull avg10=0 total=7\n";
        let expected = named(&[("pressure.cpu.full_us", 7), ("pressure.cpu.some_us", 8152)]);
        assert_eq!(parsed(pressure, "pressure.cpu", psi), expected);
        let text = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu1 1 2 3 4 5 6 7 8 0 0\nctxt 99\nintr 5 0 0\n";
        let counters = parsed(stat, "", text);
        assert_eq!(counters.len(), 9, "{counters:?}");
        assert!(counters.contains(&("cpu.1.steal_ticks".to_owned(), 8)));
        assert!(counters.contains(&("stat.ctxt".to_owned(), 99)));
    }

    #[test]
    fn columns_of_softnet_and_both_units_of_throttling_are_right() {
        let text = "0000000e 00000002 00000003 0 0 0 0 0 0 00000004 00000005 0 00000007 0 0\n";
        let expected = [
            ("softnet.7.dropped", 2),
            ("softnet.7.limited", 5),
            ("softnet.7.processed", 14),
            ("softnet.7.received_rps", 4),
            ("softnet.7.time_squeeze", 3),
        ];
        assert_eq!(parsed(softnet, "softnet", text), named(&expected));
        let mut counters = Counters::new();
        // Two levels of cgroups, one of either version: summed.
        quota("quota", "nr_periods 4\nnr_throttled 1\nthrottled_usec 70\n", &mut counters);
        quota("quota", "nr_periods 2\nnr_throttled 2\nthrottled_time 30000\n", &mut counters);
        let sums: Vec<(String, u64)> = counters.into_iter().collect();
        let expected = [("quota.periods", 6), ("quota.throttled", 3), ("quota.throttled_us", 100)];
        assert_eq!(sums, named(&expected));
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
            // Others on this machine connect, too.
            assert!(asked >= 3 && taken >= 3);
        }
        assert!(series.at.len() >= 2 && series.cost > Nanos::ZERO, "{series:?}");
        assert!(series.counters.len() < 200, "only what moved: {}", series.counters.len());
    }
}
