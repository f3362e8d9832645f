//! Owns the topic of how many files and sockets a process, and the whole machine, may have open. Start reading at
//! [`look`].

use super::{MachineState, MachineTexts, Mend, Topic};
use crate::words::grouped;

/// See the module.
pub(super) const ITEM: Topic = Topic {
    name: "file_descriptors",
    title: "open files and sockets: soft and hard limit, fs.nr_open, fs.file-max",
    effect: "each connection takes one on both ends; when they run out, connections fail or wait in the backlog",
    needs: &[LIMITS, FILE_MAX, NR_OPEN],
    needs_twice: &[],
    look,
};

const LIMITS: &str = "/proc/self/limits";
const FILE_MAX: &str = "/proc/sys/fs/file-max";
const NR_OPEN: &str = "/proc/sys/fs/nr_open";
/// Ten thousand connections, and what a server has open besides.
const WANTED_MIN: u64 = 10_240;
/// What systemd gives as the hard limit of a service.
const WANTED: u64 = 524_288;

fn look(texts: &MachineTexts) -> Result<MachineState, String> {
    let limits = texts.text(LIMITS)?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    let line = line.ok_or_else(|| format!("{LIMITS} has no line Max open files"))?;
    let mut numbers = line.split_whitespace().map(number);
    let (Some(Some(soft)), Some(Some(hard))) = (numbers.next(), numbers.next()) else {
        return Err(format!("{LIMITS}: the limits of open files are no numbers: {line:?}"));
    };
    let shown = |found: Result<u64, String>| found.map_or_else(|why| why, count);
    let (file_max, nr_open) = (texts.number(FILE_MAX), texts.number(NR_OPEN));
    let seen = format!(
        "soft limit {}, hard limit {}; the most for a process (nr_open): {}; for the machine (file-max): {}",
        count(soft),
        count(hard),
        shown(nr_open.clone()),
        shown(file_max.clone()),
    );
    if let Ok(today) = file_max
        && today < WANTED_MIN
    {
        return MachineState::worth_changing(seen, Mend::sysctl("fs.file-max", today, WANTED));
    }
    if hard >= WANTED_MIN {
        let raised =
            if soft < hard { "; joust raises its own soft limit to the hard one" } else { "" };
        return MachineState::fine(format!("{seen}{raised}"));
    }
    let most = nr_open.unwrap_or(WANTED).min(WANTED);
    let run = format!("prlimit --pid $PPID --nofile={most}:{most}");
    let back = format!("prlimit --pid $PPID --nofile={soft}:{hard}");
    let mend = Mend {
        advice: "as root, in the shell that then starts joust".to_owned(),
        ..Mend::command(run, &format!("{soft}:{hard}"), Some(back))
    };
    MachineState::worth_changing(seen, mend)
}

fn number(text: &str) -> Option<u64> {
    if text == "unlimited" { Some(u64::MAX) } else { text.parse().ok() }
}

/// The kernel's "no limit" is a number that nobody reads.
fn count(n: u64) -> String {
    if n > u64::from(u32::MAX) { "no limit".to_owned() } else { grouped(n) }
}

#[cfg(test)]
mod tests {
    use super::super::planted;
    use super::*;

    #[test]
    fn the_hard_limit_counts_and_the_soft_one_is_told() {
        let others = [(FILE_MAX, "9223372036854775807"), (NR_OPEN, "1048576")];
        let with = |line| [&[(LIMITS, line)][..], &others].concat();
        let seen = planted::fine(&ITEM, &with("Max open files    1024    524288    files"));
        assert!(seen.starts_with("soft limit 1,024, hard limit 524,288; "), "{seen}");
        assert!(seen.contains("(file-max): no limit; joust raises"), "{seen}");
        let (_, run) = planted::mended(&ITEM, &with("Max open files    1024    4096    files"));
        assert_eq!(run, "prlimit --pid $PPID --nofile=524288:524288");
    }

    #[test]
    fn few_files_of_the_whole_machine_are_worth_changing() {
        let line = "Max open files    1024    524288    files";
        let files = [(LIMITS, line), (FILE_MAX, "8000"), (NR_OPEN, "1048576")];
        assert_eq!(planted::mended(&ITEM, &files).1, "sysctl -w fs.file-max=\"524288\"");
    }
}
