//! Owns what else happens during a visit: CPU time of processes that belong neither to the server nor to the
//! load, and clocks that were set or stopped. It does not judge: `calibration` does.
//!
//! Foreign CPU time is the sum, over all other processes, of their own ticks and those of their ended children. A
//! child that ends passes its time to its parent, so none is lost. Reading it means a walk over /proc, before and
//! after the load. The kernel's own work for the load, in its threads `ksoftirqd`, is not foreign.
//! Start reading at [`BeforeLoad::now`].

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use record::{Calm, Foreign, MachineSeries};
use sys::clock;
use units::{Nanos, Share};

use crate::proc_stat;

/// How often the three clocks are read, to get one reading that has them close together.
const CLOCK_TRIES: u32 = 5;

/// Clocks and CPU times before a load.
#[derive(Debug)]
pub(crate) struct BeforeLoad {
    clocks: Clocks,
    others: BTreeMap<u32, Ticks>,
}

/// CPU time of a process, in ticks.
#[derive(Debug, Default, Clone, Copy)]
struct Ticks {
    own: u64,
    /// Of its ended children, including what they used before the load.
    reaped: u64,
}

impl BeforeLoad {
    /// The state now. The time of `ours` and of their children is not foreign.
    pub(crate) fn now(ours: &BTreeSet<u32>) -> Self {
        Self { others: others(ours), clocks: Clocks::read() }
    }

    /// What happened since then; `calibration` is passed through.
    pub(crate) fn since(
        &self,
        ours: &BTreeSet<u32>,
        series: &MachineSeries,
        calibration: Option<Nanos>,
    ) -> Calm {
        let clocks = Clocks::read();
        let (suspended, clock_step_ns) = clocks.jumps_since(&self.clocks);
        Calm {
            calibration,
            steal: steal(series),
            foreign: Some(foreign(&self.others, &others(ours))),
            throttled: throttled(series),
            clock_step_ns,
            suspended,
            wall: clocks.monotonic.saturating_sub(self.clocks.monotonic),
        }
    }
}

/// Three clocks, read as nearly at one instant as possible.
#[derive(Debug, Clone, Copy)]
struct Clocks {
    monotonic: Nanos,
    boot: Nanos,
    wall: Nanos,
}

impl Clocks {
    /// The quickest of several tries, because other processes may run in between.
    fn read() -> Self {
        let once = |_| {
            let monotonic = clock::monotonic();
            let clocks = Self { monotonic, boot: clock::boottime(), wall: clock::wall() };
            (clock::monotonic() - monotonic, clocks)
        };
        let tries = (0..CLOCK_TRIES).map(once).min_by_key(|(took, _)| *took);
        tries.expect("there is at least one try").1
    }

    /// How long the machine slept since `before`, and by how much the wall clock was set, in nanoseconds.
    fn jumps_since(&self, before: &Self) -> (Nanos, i64) {
        let since = |after: Nanos, before: Nanos| after.0 as i64 - before.0 as i64;
        let boot = since(self.boot, before.boot);
        let slept = (boot - since(self.monotonic, before.monotonic)).max(0);
        // The wall clock runs during sleep, as the clock since boot does.
        (Nanos(slept as u64), since(self.wall, before.wall) - boot)
    }
}

/// Ticks of each process that is not ours.
fn others(ours: &BTreeSet<u32>) -> BTreeMap<u32, Ticks> {
    let Ok(processes) = fs::read_dir("/proc") else { return BTreeMap::new() };
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse::<u32>().ok();
    let pids = processes.flatten().filter_map(number).filter(|pid| !ours.contains(pid));
    let ticks = |pid| {
        let stat = proc_stat::stat(pid)?;
        // A child of ours that started meanwhile, such as another load tool.
        let is_ours = ours.contains(&stat.parent) || does_our_packets(pid, stat.parent);
        (!is_ours).then_some((pid, Ticks { own: stat.own_ticks, reaped: stat.reaped_ticks }))
    };
    pids.filter_map(ticks).collect()
}

/// Whether it is a kernel thread that receives packets when there are many. On a network without other traffic those
/// are the load's.
fn does_our_packets(pid: u32, parent: u32) -> bool {
    /// The parent of all kernel threads. In a container another process may have that number, but its children have
    /// other names.
    const KTHREADD: u32 = 2;
    let name = || fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    parent == KTHREADD && name().starts_with("ksoftirqd/")
}

fn foreign(before: &BTreeMap<u32, Ticks>, after: &BTreeMap<u32, Ticks>) -> Foreign {
    let tick_ns = 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1);
    let was = |pid: &u32| before.get(pid).copied().unwrap_or_default();
    let used = |(pid, ticks): (&u32, &Ticks)| (ticks.own.saturating_sub(was(pid).own), *pid);
    let own: u64 = after.iter().map(|one| used(one).0).sum();
    let handed = |(pid, ticks): (&u32, &Ticks)| ticks.reaped.saturating_sub(was(pid).reaped);
    let handed: u64 = after.iter().map(handed).sum();
    // An ended process passed its whole time to its parent, including the time before the load, which is subtracted.
    // But a process that no parent waits for, such as a kernel worker, passed nothing on: subtracting its time would
    // hide what others used.
    let ended = before.iter().filter(|(pid, _)| !after.contains_key(pid));
    let ended: u64 = ended.map(|(_, ticks)| ticks.own + ticks.reaped).sum();
    let most = after.iter().map(used).max().filter(|(ticks, _)| *ticks > 0);
    let named = |(ticks, pid): (u64, u32)| {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
        Some((name.trim().to_owned(), Nanos(ticks * tick_ns)))
    };
    let cpu = Nanos((own + handed.saturating_sub(ended)) * tick_ns);
    Foreign { cpu, most: most.and_then(named) }
}

/// The share of steal in all CPU time; `None` if no CPU counts it.
fn steal(series: &MachineSeries) -> Option<Share> {
    let (mut steal, mut all) = (0, 0);
    let mut cpus = series.sources.iter().filter(|source| source.starts_with("cpu.")).peekable();
    cpus.peek()?;
    for cpu in cpus {
        steal += series.change(&format!("{cpu}.steal_ticks"))?;
        for part in ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"] {
            all += series.change(&format!("{cpu}.{part}_ticks"))?;
        }
    }
    (all > 0).then(|| Share(steal as f64 / all as f64))
}

fn throttled(series: &MachineSeries) -> Option<(u64, Nanos)> {
    let change = |counter| series.change(counter).map(|change| change.max(0) as u64);
    Some((change("quota.throttled")?, Nanos::from_micros(change("quota.throttled_us")?)))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use record::Course;

    use super::*;

    fn clocks(monotonic: u64, boot: u64, wall: u64) -> Clocks {
        let [monotonic, boot, wall] = [monotonic, boot, wall].map(Nanos::from_millis);
        Clocks { monotonic, boot, wall }
    }

    #[test]
    fn a_lid_that_was_shut_and_a_clock_that_was_set_are_told_apart() {
        let before = clocks(1000, 5000, 1_000_000);
        let later = |ms: u64, slept: u64, set: u64| {
            clocks(1000 + ms, 5000 + ms + slept, 1_000_000 + ms + slept + set)
        };
        assert_eq!(later(700, 0, 0).jumps_since(&before), (Nanos::ZERO, 0));
        assert_eq!(later(700, 9000, 0).jumps_since(&before), (Nanos::from_secs(9), 0));
        assert_eq!(later(700, 0, 250).jumps_since(&before), (Nanos::ZERO, 250_000_000));
        let back = clocks(1700, 5700, 999_700);
        assert_eq!(back.jumps_since(&before), (Nanos::ZERO, -1_000_000_000));
        // The kernel's own clocks, which nobody sets while tests run.
        let now = Clocks::read();
        let (slept, step) = Clocks::read().jumps_since(&now);
        assert!(slept < Nanos::from_secs(1) && step.unsigned_abs() < 1_000_000_000);
    }

    #[test]
    fn a_stranger_that_works_is_seen_and_named_and_ours_are_not() {
        let me = BTreeSet::from([std::process::id()]);
        let nobody = BTreeSet::new();
        let (before, before_me) = (BeforeLoad::now(&nobody), BeforeLoad::now(&me));
        let mut stranger =
            Command::new("/bin/sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        while proc_stat::stat(stranger.id()).unwrap().own_ticks < 3 {
            std::thread::yield_now();
        }
        let series = MachineSeries::default();
        let seen = before.since(&nobody, &series, None).foreign.unwrap();
        assert!(seen.cpu > Nanos::from_millis(20) && seen.most.is_some(), "{seen:?}");
        // Excluding us excludes our child too: only what others did meanwhile is left.
        let ours = before_me.since(&me, &series, None).foreign.unwrap();
        stranger.kill().unwrap();
        stranger.wait().unwrap();
        assert!(ours.cpu < seen.cpu, "{ours:?} of {seen:?}");
    }

    #[test]
    fn time_that_a_child_hands_to_its_parent_is_counted_once() {
        let ticks = |own, reaped| Ticks { own, reaped };
        let before = BTreeMap::from([(10, ticks(100, 400)), (11, ticks(300, 0))]);
        // 11 used 20 more and ended; 10 waited for it.
        let after = BTreeMap::from([(10, ticks(100, 720))]);
        let seen = foreign(&before, &after);
        assert_eq!((seen.cpu, seen.most), (Nanos::from_millis(200), None));
        // A process that nobody waited for takes its time along: nothing is seen, and nothing is negative.
        assert_eq!(foreign(&before, &BTreeMap::from([(10, ticks(100, 400))])).cpu, Nanos::ZERO);
    }

    #[test]
    fn one_that_ends_and_hands_on_nothing_does_not_hide_who_works() {
        let ticks = |own| Ticks { own, reaped: 0 };
        // A worker of the kernel, hours old, ends while a compiler uses 50 ticks.
        let before = BTreeMap::from([(10, ticks(9000)), (11, ticks(300))]);
        let after = BTreeMap::from([(11, ticks(350))]);
        assert_eq!(foreign(&before, &after).cpu, Nanos::from_millis(500));
    }

    #[test]
    fn steal_and_throttling_are_read_from_the_series() {
        let course = |change| Course { first: 0, steps: vec![change] };
        let mut series = MachineSeries::default();
        assert_eq!((steal(&series), throttled(&series)), (None, None));
        series.sources = ["cpu.0", "cpu.1", "quota"].map(str::to_owned).into();
        assert_eq!(throttled(&series), Some((0, Nanos::ZERO)));
        let counters = [
            ("cpu.0.user_ticks", 60),
            ("cpu.1.idle_ticks", 36),
            ("cpu.1.steal_ticks", 4),
            ("quota.throttled", 3),
            ("quota.throttled_us", 70_000),
        ];
        let counters = counters.map(|(name, change)| (name.to_owned(), course(change)));
        series.counters = counters.into();
        assert_eq!(steal(&series), Some(Share(0.04)));
        assert_eq!(throttled(&series), Some((3, Nanos::from_millis(70))));
    }
}
