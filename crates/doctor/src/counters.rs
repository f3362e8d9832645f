//! Owns the kernel's counters: where each lies, when it is read, and how its text is taken apart. A check names
//! the sources that it needs; whoever measures reads their files before, during and after a load, and hands the
//! text to [`CounterSource::parse`] when the load is over. Start reading at [`CounterSource`].
//!
//! Counters of the network are per network namespace, so that where client and server have one each, what moved
//! is told apart by side ([`record::MachineSeries::network_change`]).

use std::collections::BTreeMap;

/// Counters by name ("server.TcpExt.ListenOverflows").
pub type Counters = BTreeMap<String, u64>;

/// One file of the kernel, or one in each of several places.
#[derive(Debug)]
pub struct CounterSource {
    /// File: below `/proc/PID/net` for a network, else absolute.
    pub file: &'static str,
    /// Where it is read.
    pub scope: CounterScope,
    /// Most bytes of it that are read.
    pub bytes_max: usize,
    /// Where it is a list with what is wanted in front; `None`: it is read at once.
    pub front: Option<Front>,
    /// How its text is taken apart; the first argument is what its counters' names begin with.
    pub parse: fn(&str, &str, &mut Counters),
    /// What the names of its counters begin with, where it has no side of a network.
    pub name: &'static str,
}

/// A list that is read line by line, up to the first line that is not wanted. Read at once, the kernel would make a
/// whole page of it, however few lines are wanted.
#[derive(Debug, Clone, Copy)]
pub struct Front {
    /// Bytes of a line, its end included.
    pub line_bytes: usize,
    /// Whether a line still belongs to it; the first line is a head, and does.
    pub is_wanted: fn(&str) -> bool,
}

/// Where a source is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CounterScope {
    /// In the network of the client and in that of the server; names begin with "client", "server", or "both"
    /// where they share one.
    EachNetwork,
    /// Once.
    Machine,
    /// In each cgroup that the measuring process is in, up to the root; the sum counts.
    OwnCgroups,
}

/// Whole files of the kernel are some kilobytes long.
const WHOLE: usize = 1 << 20;

const NETWORK: CounterSource = CounterSource {
    file: "",
    scope: CounterScope::EachNetwork,
    bytes_max: WHOLE,
    front: None,
    parse: pairs,
    name: "",
};
const MACHINE: CounterSource = CounterSource { scope: CounterScope::Machine, ..NETWORK };

/// TCP's extended counters: "server.TcpExt.ListenOverflows", "client.TcpExt.TCPTimeouts".
pub static NETSTAT: CounterSource = CounterSource { file: "netstat", ..NETWORK };
/// TCP's and IP's counters: "client.Tcp.RetransSegs", "client.Tcp.ActiveOpens".
pub static SNMP: CounterSource = CounterSource { file: "snmp", ..NETWORK };
/// Sockets by state: "client.sockstat.TCP_tw".
pub static SOCKSTAT: CounterSource = CounterSource { file: "sockstat", parse: sockets, ..NETWORK };
/// Bytes, packets, errors and drops of each interface: "server.dev.eth0.rx_bytes".
pub static INTERFACES: CounterSource = CounterSource { file: "dev", parse: interfaces, ..NETWORK };
/// The longest queue of connections that wait to be accepted: "server.listeners.queue_max" (a gauge).
///
/// Listeners stand in front. Behind the last one the kernel looks for the next socket of the network in its table of
/// all: 2 ms on a machine of 23 GB where there is none, and less the more connections are open.
pub static LISTENERS: CounterSource = CounterSource {
    file: "tcp",
    bytes_max: 16_384,
    // net/ipv4/tcp_ipv4.c, TMPSZ.
    front: Some(Front { line_bytes: 150, is_wanted: is_listener }),
    parse: listeners,
    ..NETWORK
};
/// What each CPU's network backlog did: "softnet.0.dropped".
pub static SOFTNET: CounterSource = CounterSource {
    file: "/proc/thread-self/net/softnet_stat",
    parse: softnet,
    name: "softnet",
    ..MACHINE
};
/// Time in which something waited for a CPU: "pressure.cpu.some_us".
pub static PRESSURE_CPU: CounterSource =
    CounterSource { file: "/proc/pressure/cpu", parse: pressure, name: "pressure.cpu", ..MACHINE };
/// The same for a disk: "pressure.io.some_us".
pub static PRESSURE_IO: CounterSource =
    CounterSource { file: "/proc/pressure/io", parse: pressure, name: "pressure.io", ..MACHINE };
/// The same for memory: "pressure.memory.some_us".
pub static PRESSURE_MEMORY: CounterSource = CounterSource {
    file: "/proc/pressure/memory",
    parse: pressure,
    name: "pressure.memory",
    ..MACHINE
};
/// What each CPU did, in ticks ("cpu.0.steal_ticks"), and "stat.ctxt", "stat.processes".
pub static STAT: CounterSource = CounterSource { file: "/proc/stat", parse: stat, ..MACHINE };
/// Pages: "vmstat.pswpin", "vmstat.pgmajfault", "vmstat.oom_kill".
pub static VMSTAT: CounterSource =
    CounterSource { file: "/proc/vmstat", parse: vmstat, name: "vmstat", ..MACHINE };
/// Interrupts served in software, by CPU: "softirqs.0.NET_RX".
pub static SOFTIRQS: CounterSource =
    CounterSource { file: "/proc/softirqs", parse: softirqs, name: "softirqs", ..MACHINE };
/// What the table of connections of a firewall dropped, all CPUs together: "server.conntrack.drop",
/// "server.conntrack.insert_failed".
pub static CONNTRACK_STATISTICS: CounterSource =
    CounterSource { file: "stat/nf_conntrack", parse: conntrack, ..NETWORK };
/// Entries of the connection table and its maximum: "conntrack.count", "conntrack.max".
pub static CONNTRACK_COUNT: CounterSource = CounterSource {
    file: "/proc/sys/net/netfilter/nf_conntrack_count",
    parse: number,
    name: "conntrack.count",
    ..MACHINE
};
/// See [`CONNTRACK_COUNT`].
pub static CONNTRACK_MAX: CounterSource = CounterSource {
    file: "/proc/sys/net/netfilter/nf_conntrack_max",
    parse: number,
    name: "conntrack.max",
    ..MACHINE
};
/// How often and how long a quota of CPU time stopped us: "quota.throttled", "quota.periods",
/// "quota.throttled_us".
pub static QUOTA: CounterSource = CounterSource {
    file: "cpu.stat",
    scope: CounterScope::OwnCgroups,
    parse: quota,
    name: "quota",
    ..NETWORK
};

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

/// "  eth0: 1 2 3 ...": eight columns received, eight sent.
fn interfaces(side: &str, text: &str, counters: &mut Counters) {
    const COLUMNS: [(usize, &str); 9] = [
        (0, "rx_bytes"),
        (1, "rx_packets"),
        (2, "rx_errors"),
        (3, "rx_dropped"),
        (8, "tx_bytes"),
        (9, "tx_packets"),
        (10, "tx_errors"),
        (11, "tx_dropped"),
        (13, "collisions"),
    ];
    for (name, rest) in text.lines().filter_map(|line| line.split_once(':')) {
        let values: Vec<&str> = rest.split_whitespace().collect();
        for (column, counter) in COLUMNS {
            if let Some(value) = values.get(column).and_then(|value| value.parse().ok()) {
                counters.insert(format!("{side}.dev.{}.{counter}", name.trim()), value);
            }
        }
    }
}

/// Lines of sockets in state 0A (LISTEN), of which `tx_queue:rx_queue` ends in the connections that wait to be
/// accepted (net/ipv4/tcp_ipv4.c, `get_tcp4_sock`).
fn listeners(side: &str, text: &str, counters: &mut Counters) {
    let waiting = text.lines().filter(|line| is_listener(line)).filter_map(|line| {
        let queues = line.split_whitespace().nth(4)?;
        u64::from_str_radix(queues.split_once(':')?.1, 16).ok()
    });
    if let Some(longest) = waiting.max() {
        counters.insert(format!("{side}.listeners.queue_max"), longest);
    }
}

fn is_listener(line: &str) -> bool {
    line.split_whitespace().nth(3) == Some("0A")
}

/// A head with the columns, then a line a CPU, in hexadecimal.
fn conntrack(side: &str, text: &str, counters: &mut Counters) {
    const WANTED: [&str; 2] = ["drop", "insert_failed"];
    let mut lines = text.lines();
    let columns: Vec<&str> = lines.next().unwrap_or_default().split_whitespace().collect();
    for line in lines {
        for (column, value) in columns.iter().zip(line.split_whitespace()) {
            if let (true, Ok(value)) = (WANTED.contains(column), u64::from_str_radix(value, 16)) {
                *counters.entry(format!("{side}.conntrack.{column}")).or_default() += value;
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

/// "pswpin 0": of some two hundred lines, those that checks ask for.
fn vmstat(name: &str, text: &str, counters: &mut Counters) {
    const WANTED: [&str; 4] = ["pswpin", "pswpout", "pgmajfault", "oom_kill"];
    for (key, value) in text.lines().filter_map(|line| line.split_once(' ')) {
        if let (true, Ok(value)) = (WANTED.contains(&key), value.trim().parse()) {
            counters.insert(format!("{name}.{key}"), value);
        }
    }
}

/// A head with the CPUs, then "NET_RX: 1 2": a column a CPU.
fn softirqs(name: &str, text: &str, counters: &mut Counters) {
    const WANTED: [&str; 2] = ["NET_RX", "NET_TX"];
    let mut lines = text.lines();
    let cpus: Vec<&str> = lines.next().unwrap_or_default().split_whitespace().collect();
    for (kind, values) in lines.filter_map(|line| line.split_once(':')) {
        let kind = kind.trim();
        if !WANTED.contains(&kind) {
            continue;
        }
        for (cpu, value) in cpus.iter().zip(values.split_whitespace()) {
            if let Ok(value) = value.parse() {
                let cpu = cpu.trim_start_matches("CPU");
                counters.insert(format!("{name}.{cpu}.{kind}"), value);
            }
        }
    }
}

/// A file that holds one number.
fn number(name: &str, text: &str, counters: &mut Counters) {
    if let Ok(value) = text.trim().parse() {
        counters.insert(name.to_owned(), value);
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

    fn parsed(source: &CounterSource, name: &str, text: &str) -> Vec<(String, u64)> {
        let mut counters = Counters::new();
        (source.parse)(name, text, &mut counters);
        counters.into_iter().collect()
    }

    fn named(expected: &[(&str, u64)]) -> Vec<(String, u64)> {
        expected.iter().map(|&(name, value)| (name.to_owned(), value)).collect()
    }

    #[test]
    fn what_the_kernel_writes_is_taken_apart() {
        let snmp = "Tcp: MaxConn RetransSegs\nTcp: -1 12\nUdp: InDatagrams\nUdp: 3\n";
        let expected = named(&[("server.Tcp.RetransSegs", 12), ("server.Udp.InDatagrams", 3)]);
        assert_eq!(parsed(&SNMP, "server", snmp), expected);
        let sockstat = "sockets: used 16\nTCP: inuse 1 orphan 0\n";
        let expected = [
            ("both.sockstat.TCP_inuse", 1),
            ("both.sockstat.TCP_orphan", 0),
            ("both.sockstat.sockets_used", 16),
        ];
        assert_eq!(parsed(&SOCKSTAT, "both", sockstat), named(&expected));
        let psi = "some avg10=1.50 avg60=0.00 avg300=0.00 total=8152\nfull avg10=0 total=7\n";
        let expected = named(&[("pressure.cpu.full_us", 7), ("pressure.cpu.some_us", 8152)]);
        assert_eq!(parsed(&PRESSURE_CPU, PRESSURE_CPU.name, psi), expected);
        let text = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu1 1 2 3 4 5 6 7 8 0 0\nctxt 99\nintr 5 0 0\n";
        let counters = parsed(&STAT, "", text);
        assert_eq!(counters.len(), 9, "{counters:?}");
        assert!(counters.contains(&("cpu.1.steal_ticks".to_owned(), 8)));
        assert!(counters.contains(&("stat.ctxt".to_owned(), 99)));
        let text = "pgfault 7\npgmajfault 3\npswpin 1\n";
        let expected = named(&[("vmstat.pgmajfault", 3), ("vmstat.pswpin", 1)]);
        assert_eq!(parsed(&VMSTAT, "vmstat", text), expected);
        let text = "        CPU0       CPU1\n  TIMER: 1 2\n NET_RX: 30 40\n";
        let expected = named(&[("softirqs.0.NET_RX", 30), ("softirqs.1.NET_RX", 40)]);
        assert_eq!(parsed(&SOFTIRQS, "softirqs", text), expected);
        assert_eq!(parsed(&CONNTRACK_MAX, "conntrack.max", "9\n"), named(&[("conntrack.max", 9)]));
    }

    #[test]
    fn interfaces_and_the_longest_queue_of_a_listener_are_read() {
        let text = "Inter-|   Receive  |  Transmit\n face |bytes packets\n  eth0: 10 2 3 4 0 0 0 0 50 6 7 8 0 9 0 0\n";
        let seen = parsed(&INTERFACES, "server", text);
        for expected in named(&[
            ("server.dev.eth0.rx_bytes", 10),
            ("server.dev.eth0.tx_bytes", 50),
            ("server.dev.eth0.tx_dropped", 8),
            ("server.dev.eth0.collisions", 9),
        ]) {
            assert!(seen.contains(&expected), "{expected:?} in {seen:?}");
        }
        let text = "  sl  local_address rem_address   st tx_queue rx_queue\n   \
                    0: 0100007F:1F90 00000000:0000 0A 00000000:0000001F 00:00000000 00000000\n   \
                    1: 0100007F:1F91 00000000:0000 0A 00000000:00000002 00:00000000 00000000\n   \
                    2: 0100007F:1F90 0100007F:9999 01 00000000:00000FFF 00:00000000 00000000\n";
        assert_eq!(parsed(&LISTENERS, "both", text), named(&[("both.listeners.queue_max", 31)]));
    }

    #[test]
    fn drops_of_the_connection_table_are_summed_over_cpus() {
        let text = "entries  found insert_failed drop early_drop\n\
                    0000000a  00000000 00000001 0000000f 00000002\n\
                    0000000a  00000000 00000000 00000001 00000000\n";
        let expected = [("both.conntrack.drop", 16), ("both.conntrack.insert_failed", 1)];
        assert_eq!(parsed(&CONNTRACK_STATISTICS, "both", text), named(&expected));
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
        assert_eq!(parsed(&SOFTNET, "softnet", text), named(&expected));
        let mut counters = Counters::new();
        // Two levels of cgroups, one of either version: summed.
        quota("quota", "nr_periods 4\nnr_throttled 1\nthrottled_usec 70\n", &mut counters);
        quota("quota", "nr_periods 2\nnr_throttled 2\nthrottled_time 30000\n", &mut counters);
        let sums: Vec<(String, u64)> = counters.into_iter().collect();
        let expected = [("quota.periods", 6), ("quota.throttled", 3), ("quota.throttled_us", 100)];
        assert_eq!(sums, named(&expected));
    }
}
