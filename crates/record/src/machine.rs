//! The conditions of a visit: its network, the machine's counters during it, the state that was prepared before it, and
//! whether the machine was disturbed. Start reading at [`Surroundings`].

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos, Share};

/// Everything around a visit that is not the load itself.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Surroundings {
    /// The network between client and server.
    pub network: Network,
    /// The state that was prepared before.
    pub prepared: Prepared,
    /// The machine's counters while the load ran.
    pub series: MachineSeries,
    /// The server's processes while the load ran; `None` if the load never began.
    pub processes: Option<ProcessesUse>,
    /// Signs of disturbance, judged or not.
    pub calm: Calm,
    /// Why the figures of this visit are not reliable; `None`: no disturbance was seen.
    pub disturbance: Option<Disturbance>,
}

/// The network between client and server.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Network {
    /// Its kind.
    pub kind: NetworkKind,
    /// Largest packet in bytes, headers of IP included.
    pub mtu: u32,
    /// Why it is not a veth pair, if so.
    pub reason: Option<String>,
    /// Settings of the client's network that differ from the machine's ("net.ipv4.tcp_tw_reuse" to "1").
    pub client_settings: BTreeMap<String, String>,
}

/// The kinds of network.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NetworkKind {
    /// A network namespace each, joined by a pair of virtual Ethernet interfaces.
    Veth,
    /// The machine's own loopback interface.
    #[default]
    Loopback,
    /// The networks between this machine and others, which make the load.
    Machines,
}

/// The state before a visit, as equal as possible for all visits.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prepared {
    /// Sockets in TIME_WAIT that the client's and server's network had; `None` where unknown.
    pub time_wait: Option<u64>,
    /// How long the visit waited for that number to fall.
    pub waited: Nanos,
    /// Number and bytes of the site's files that were read beforehand, so that they are in the page cache.
    pub warmed: (u32, Bytes),
    /// Bytes of the variable that pads the server's environment.
    pub padding: u32,
    /// The randomly chosen port of the server; 0 if none was chosen.
    #[serde(default)]
    pub port: u16,
}

/// Counters of the machine, read several times around and during a visit. Only those that changed are kept.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineSeries {
    /// When each reading was made, since the first one.
    pub at: Vec<Nanos>,
    /// What could be read ("server.TcpExt", "pressure.cpu"). A counter of these sources that is not in `counters` did
    /// not change; one of other sources is unknown.
    pub sources: BTreeSet<String>,
    /// Name ("server.TcpExt.ListenOverflows") to its course, in the unit of the kernel.
    pub counters: BTreeMap<String, Course>,
    /// CPU time that the readings took while the load ran.
    pub cost: Nanos,
}

/// The course of one counter.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Course {
    /// Its first value.
    pub first: u64,
    /// The change up to the next reading, and so on; a gauge may fall.
    pub steps: Vec<i64>,
}

/// Whose network a counter is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetworkSide {
    /// The load's.
    Client,
    /// The server's.
    Server,
}

impl MachineSeries {
    /// The change of a network counter ("TcpExt.ListenOverflows") over the visit, on one side, or on both together if
    /// they share the machine's network. 0: it did not change; `None`: it could not be read.
    pub fn network_change(&self, side: NetworkSide, counter: &str) -> Option<i64> {
        let own = match side {
            NetworkSide::Client => "client",
            NetworkSide::Server => "server",
        };
        [own, "both"].into_iter().find_map(|side| self.change(&format!("{side}.{counter}")))
    }

    /// The change of a counter ("softnet.1.dropped") over the visit. 0: it did not change; `None`: it could not be
    /// read.
    pub fn change(&self, counter: &str) -> Option<i64> {
        let (source, _) = counter.rsplit_once('.')?;
        if !self.sources.contains(source) {
            return None;
        }
        Some(self.counters.get(counter).map_or(0, |course| course.steps.iter().sum()))
    }

    /// Time between the first reading and the last one.
    pub fn length(&self) -> Nanos {
        self.at.last().copied().unwrap_or_default()
    }
}

/// The server's processes during a load, besides their CPU time and memory.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessesUse {
    /// Processes that appeared in that time, as seen at the readings.
    pub born: u32,
    /// Processes that disappeared.
    pub died: u32,
    /// Voluntary context switches (a thread waited) of the processes that are there at the end.
    pub switches_voluntary: u64,
    /// Involuntary context switches (another thread had to run).
    pub switches_forced: u64,
    /// Pages that had to be read from a disk.
    pub faults_major: u64,
    /// Descriptors of the process that came nearest to its limit of open files, at that reading; `None` if no process
    /// has a limit or it could not be read.
    #[serde(default)]
    pub descriptors: Option<Descriptors>,
    /// CPU time that the readings took.
    pub cost: Nanos,
}

/// Open files of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Descriptors {
    /// Descriptors that it had open.
    pub open: u32,
    /// Its soft limit (RLIMIT_NOFILE).
    pub limit: u32,
}

impl Descriptors {
    /// How many more it may open.
    pub fn left(self) -> u32 {
        self.limit.saturating_sub(self.open)
    }
}

/// The signs that distinguish a calm machine from a disturbed one.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calm {
    /// How long the calibration workload, a fixed piece of work, took on the server's CPU just before; `None` if the
    /// run had none.
    #[serde(rename = "canary")]
    pub calibration: Option<Nanos>,
    /// Share of the CPUs' time that the hypervisor gave to others.
    pub steal: Option<Share>,
    /// CPU time of processes that are neither the server's nor the load's.
    pub foreign: Option<Foreign>,
    /// Number of periods in which a CPU quota stopped us, and for how long.
    pub throttled: Option<(u64, Nanos)>,
    /// By how much the wall clock was set forward or back, in nanoseconds.
    pub clock_step_ns: i64,
    /// How long the machine slept.
    pub suspended: Nanos,
    /// Time that passed, sleep excluded.
    pub wall: Nanos,
}

/// CPU use of other processes.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Foreign {
    /// CPU time, all of them together.
    pub cpu: Nanos,
    /// The process that used most, and how much.
    pub most: Option<(String, Nanos)>,
}

/// Why a visit is disturbed: the strongest reason that was seen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case")]
#[expect(missing_docs, reason = "the words of `Display` say what each number is")]
pub enum Disturbance {
    /// The machine slept.
    Suspended { slept: Nanos },
    /// The wall clock was set.
    ClockStep { step_ns: i64 },
    /// A quota of CPU time stopped us.
    Throttled { periods: u64, stopped: Nanos },
    /// The hypervisor gave our CPUs to others.
    Steal { share: Share },
    /// Another process used CPU time.
    ForeignCpu { share_of_a_core: Share, most: Option<String> },
    /// The calibration workload took longer than usual.
    #[serde(rename = "slow_canary")]
    SlowCalibration { took: Nanos, usual: Nanos },
}

impl Disturbance {
    /// Whether it happens independently of the server. A quota or a hypervisor stops servers that use much CPU time, so
    /// repeating such visits would select the better ones of the heaviest user.
    pub fn is_from_outside(&self) -> bool {
        !matches!(self, Self::Throttled { .. } | Self::Steal { .. })
    }

    /// Its cause, without numbers.
    pub fn cause(&self) -> &'static str {
        match self {
            Self::Suspended { .. } => "the machine slept",
            Self::ClockStep { .. } => "the clock was set",
            Self::Throttled { .. } => "a quota of CPU time stopped us",
            Self::Steal { .. } => "the hypervisor gave our CPUs to others",
            Self::ForeignCpu { .. } => "other processes used the CPUs",
            Self::SlowCalibration { .. } => "the machine was slow",
        }
    }
}

impl fmt::Display for Disturbance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Suspended { slept } => write!(f, "the machine slept for {slept}"),
            Self::ClockStep { step_ns } => {
                let way = if *step_ns < 0 { "back" } else { "forward" };
                write!(f, "the clock was set {way} by {}", Nanos(step_ns.unsigned_abs()))
            }
            Self::Throttled { periods, stopped } => write!(
                f,
                "a quota of CPU time stopped us in {periods} periods, for {stopped} in all"
            ),
            Self::Steal { share } => {
                write!(f, "the hypervisor gave {share} of our CPUs' time to others")
            }
            Self::ForeignCpu { share_of_a_core, most } => {
                write!(f, "other processes used {share_of_a_core} of a core")?;
                most.as_ref().map_or(Ok(()), |name| write!(f, ", most of it `{name}`"))
            }
            Self::SlowCalibration { took, usual } => write!(
                f,
                "the machine was slow: the calibration workload took {took}, in this run usually {usual}"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_did_not_move_is_zero_and_what_was_not_read_is_unknown() {
        let course = Course { first: 7, steps: vec![0, 3, -1] };
        let series = MachineSeries {
            at: vec![Nanos(0), Nanos(5), Nanos(9)],
            sources: ["server.TcpExt", "softnet.1"].map(str::to_owned).into(),
            counters: [("server.TcpExt.ListenDrops".to_owned(), course)].into(),
            cost: Nanos(1),
        };
        assert_eq!(series.network_change(NetworkSide::Server, "TcpExt.ListenDrops"), Some(2));
        assert_eq!(series.network_change(NetworkSide::Server, "TcpExt.ListenOverflows"), Some(0));
        assert_eq!(series.network_change(NetworkSide::Client, "TcpExt.ListenDrops"), None);
        assert_eq!(series.change("softnet.1.dropped"), Some(0));
        assert_eq!(series.change("softnet.2.dropped"), None);
        assert_eq!(series.length(), Nanos(9));
    }

    #[test]
    fn counters_of_a_shared_network_are_of_either_side() {
        let course = Course { first: 0, steps: vec![4] };
        let series = MachineSeries {
            sources: ["both.Tcp".to_owned()].into(),
            counters: [("both.Tcp.RetransSegs".to_owned(), course)].into(),
            ..MachineSeries::default()
        };
        for side in [NetworkSide::Client, NetworkSide::Server] {
            assert_eq!(series.network_change(side, "Tcp.RetransSegs"), Some(4));
        }
    }
}
