//! Owns the topic of what else uses the CPUs now. Start reading at [`look`].

use std::collections::BTreeMap;

use super::{MachineState, MachineTexts, Mend, Topic};
use crate::words;

/// See the module.
pub(super) const ITEM: Topic = Topic {
    name: "other_load",
    title: "other processes that use CPU time, over half a second now, and the load average",
    effect: "they take CPU time and cache from both sides; visits in which they take more than 2 % are made again",
    needs: &[LOAD, STATS, "/proc/self/stat", "/proc/stat"],
    needs_twice: &[STATS, "/proc/stat"],
    look,
};

const LOAD: &str = "/proc/loadavg";
const STATS: &str = "/proc/*/stat";
/// Share of the machine's CPU time, as the lab has it for a visit.
const OTHERS_MAX: f64 = 0.02;
/// A tick is 10 ms; fewer than these are rounding.
const TICKS_MIN: u64 = 3;
/// Processes that are named.
const NAMED_MAX: usize = 5;

fn look(texts: &MachineTexts) -> Result<MachineState, String> {
    let machine = texts.cpu_ticks()?;
    let own = texts.text("/proc/self/stat")?.split(' ').next().unwrap_or_default().to_owned();
    let before: BTreeMap<&str, Process> = texts.matching(STATS).filter_map(process).collect();
    let mut busy: Vec<(u64, String)> = texts
        .again(STATS)
        .filter_map(process)
        .filter(|(pid, _)| *pid != own)
        .filter_map(|(pid, now)| {
            let then = before.get(pid).map_or(0, |then| then.ticks);
            let ticks = now.ticks.saturating_sub(then);
            (ticks > 0).then(|| (ticks, format!("{} (process {pid})", now.name)))
        })
        .collect();
    busy.sort_by(|a, b| b.cmp(a));
    let ticks: u64 = busy.iter().map(|(ticks, _)| ticks).sum();
    let share = ticks as f64 / machine.all as f64;
    let load = texts.text(LOAD).map_or_else(|why| why, first_three);
    let of_one_cpu =
        |ticks: u64| words::percent(ticks as f64 / machine.all as f64 * machine.cpus as f64);
    let named: Vec<String> = busy
        .iter()
        .take(NAMED_MAX)
        .map(|(ticks, name)| format!("{name} {} of a CPU", of_one_cpu(*ticks)))
        .collect();
    let named = if named.is_empty() { String::new() } else { format!(": {}", named.join(", ")) };
    let seen = format!("{} of all CPU time{named}; load average {load}", words::percent(share));
    if share <= OTHERS_MAX || ticks < TICKS_MIN {
        return MachineState::fine(seen);
    }
    MachineState::worth_changing(seen, Mend::advice("wait until they are done, or stop them"))
}

struct Process {
    name: String,
    /// User and system time.
    ticks: u64,
}

/// A line of /proc/PID/stat (proc_pid_stat(5)) with its number.
fn process<'a>((path, text): (&'a str, &'a str)) -> Option<(&'a str, Process)> {
    // Fields behind the name, which may itself hold spaces and parentheses.
    const USER: usize = 11;
    let pid = path.split('/').nth(2).filter(|pid| pid.bytes().all(|c| c.is_ascii_digit()))?;
    let (head, fields) = text.rsplit_once(") ")?;
    let name = head.split_once('(')?.1.to_owned();
    let times: Vec<u64> =
        fields.split(' ').skip(USER).take(2).map_while(|field| field.parse().ok()).collect();
    (times.len() == 2).then(|| (pid, Process { name, ticks: times.iter().sum() }))
}

/// "0.10 0.20 0.30" of "0.10 0.20 0.30 1/200 4711".
fn first_three(text: &str) -> String {
    text.split(' ').take(3).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::planted;
    use super::*;

    fn look_at(ticks: u64) -> MachineState {
        let stat = |pid: u64, name: &str, ticks: u64| {
            format!("{pid} ({name}) S 1 1 1 0 -1 0 1 2 3 4 {ticks} 0 0 0 20 0 1 0 5 0 0")
        };
        let all = |ticks: u64| format!("cpu  {ticks} 0 0 0 0 0 0 0 0 0\ncpu0 1\ncpu1 1\n");
        let mut texts = planted::texts(&[
            (LOAD, "1.50 0.20 0.30 1/200 4711\n"),
            ("/proc/self/stat", &stat(7, "joust", 0)),
            ("/proc/7/stat", &stat(7, "joust", 0)),
            ("/proc/9/stat", &stat(9, "a) b", 100)),
            ("/proc/stat", &all(0)),
        ]);
        let second = [
            ("/proc/7/stat", stat(7, "joust", 50)),
            ("/proc/9/stat", stat(9, "a) b", 100 + ticks)),
            ("/proc/stat", all(100)),
        ];
        for (path, text) in second {
            texts.second.insert(path.to_owned(), Ok(text));
        }
        look(&texts).unwrap()
    }

    #[test]
    fn a_busy_neighbour_is_named_and_joust_itself_is_not() {
        let MachineState::WorthChanging { seen, .. } = look_at(20) else { panic!("it is seen") };
        let text =
            "20 % of all CPU time: a) b (process 9) 40 % of a CPU; load average 1.50 0.20 0.30";
        assert_eq!(seen, text);
    }

    #[test]
    fn rounding_is_no_load() {
        assert!(matches!(look_at(2), MachineState::Fine { .. }));
    }
}
