//! Owns the texts that topics read: what each file said, or why it could not be read. Start reading at
//! [`MachineTexts`].

use std::collections::BTreeMap;

/// A need that begins so is a file of each cgroup that joust runs in, up to the root ("cgroup:cpu.max"). The
/// keys of its texts begin so too, before the path.
pub const OF_CGROUPS: &str = "cgroup:";

/// What the files of a machine said.
#[derive(Debug, Default, Clone)]
pub struct MachineTexts {
    /// Path to text.
    pub first: BTreeMap<String, Result<String, Unread>>,
    /// The same half a second later, of files that are read twice.
    pub second: BTreeMap<String, Result<String, Unread>>,
}

/// Why a file has no text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unread {
    /// There is none.
    Absent,
    /// Any other reason, as the system words it.
    Because(String),
}

/// CPU time since the machine started, in ticks.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct CpuTicks {
    /// Of all CPUs together, all kinds of time.
    pub all: u64,
    /// That the hypervisor gave to others.
    pub steal: u64,
    /// Number of CPUs.
    pub cpus: u64,
}

impl MachineTexts {
    /// The text of a file, without space around it.
    ///
    /// # Errors
    /// It could not be read; the text says which file and why.
    pub(super) fn text(&self, path: &str) -> Result<&str, String> {
        match self.first.get(path) {
            Some(Ok(text)) => Ok(text.trim()),
            Some(Err(Unread::Because(why))) => Err(format!("{path} could not be read: {why}")),
            Some(Err(Unread::Absent)) | None => Err(format!("there is no {path} here")),
        }
    }

    /// Whether it is certain that there is no such file.
    pub(super) fn is_absent(&self, path: &str) -> bool {
        self.first.get(path) == Some(&Err(Unread::Absent))
    }

    /// The number that a file holds.
    ///
    /// # Errors
    /// It could not be read, or holds no number.
    pub(super) fn number(&self, path: &str) -> Result<u64, String> {
        let text = self.text(path)?;
        text.parse().map_err(|_| format!("{path} holds no number: {text:?}"))
    }

    /// Path and text of each file that a pattern means. A `*` stands for any name.
    pub(super) fn matching<'a>(
        &'a self,
        pattern: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a str)> {
        texts_of(&self.first, pattern)
    }

    /// The same at the second reading.
    pub(super) fn again<'a>(
        &'a self,
        pattern: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a str)> {
        texts_of(&self.second, pattern)
    }

    /// Path and text of a file in each cgroup that joust runs in.
    pub(super) fn of_cgroups<'a>(
        &'a self,
        file: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a str)> {
        let path = move |(key, text): (&'a String, &'a Result<String, Unread>)| {
            let path = key.strip_prefix(OF_CGROUPS)?;
            let is_it = path.rsplit('/').next() == Some(file);
            Some((path, text.as_ref().ok()?.trim())).filter(|_| is_it)
        };
        self.first.iter().filter_map(path)
    }

    /// The value of a line "NAME: VALUE".
    pub(super) fn field(&self, path: &str, name: &str) -> Result<&str, String> {
        let value = |line: &'_ str| {
            line.split_once(':').filter(|(found, _)| found.trim() == name).map(|_| ())
        };
        let line = self.text(path)?.lines().find(|line| value(line).is_some());
        let line = line.ok_or_else(|| format!("{path} has no line {name}"))?;
        Ok(line.split_once(':').map_or("", |(_, value)| value.trim()))
    }

    /// A line of /proc/meminfo, in bytes.
    pub(super) fn memory(&self, name: &str) -> Result<u64, String> {
        let text = self.field("/proc/meminfo", name)?;
        let kib = text.split(' ').next().and_then(|number| number.parse::<u64>().ok());
        let kib = kib.ok_or_else(|| format!("/proc/meminfo: {name} is no number: {text:?}"))?;
        Ok(kib * 1024)
    }

    /// Whether joust has a capability of the kernel, by its number (capabilities(7)).
    pub(super) fn has_capability(&self, number: u32) -> Result<bool, String> {
        let text = self.field("/proc/self/status", "CapEff")?;
        let set = u64::from_str_radix(text, 16);
        let set = set.map_err(|_| format!("/proc/self/status: CapEff is no number: {text:?}"))?;
        Ok(set >> number & 1 == 1)
    }

    /// CPU time between the two readings.
    pub(super) fn cpu_ticks(&self) -> Result<CpuTicks, String> {
        let before = cpu_ticks(self.text("/proc/stat")?);
        let after = self.again("/proc/stat").next().and_then(|(_, text)| cpu_ticks(text));
        let (Some(before), Some(after)) = (before, after) else {
            return Err("/proc/stat could not be read twice".to_owned());
        };
        let all = after.all.saturating_sub(before.all);
        let steal = after.steal.saturating_sub(before.steal);
        match all {
            0 => Err("/proc/stat counted no time between two readings".to_owned()),
            _ => Ok(CpuTicks { all, steal, cpus: after.cpus }),
        }
    }
}

fn texts_of<'a>(
    texts: &'a BTreeMap<String, Result<String, Unread>>,
    pattern: &'a str,
) -> impl Iterator<Item = (&'a str, &'a str)> {
    let found = texts.iter().filter(move |(path, _)| fits(path, pattern));
    found.filter_map(|(path, text)| Some((path.as_str(), text.as_ref().ok()?.trim())))
}

/// Whether a path is meant by a pattern. In one name of it there may be one `*`.
fn fits(path: &str, pattern: &str) -> bool {
    let (names, wanted) = (path.split('/'), pattern.split('/'));
    let fits_name = |(name, wanted): (&str, &str)| match wanted.split_once('*') {
        None => name == wanted,
        Some((head, tail)) => {
            name.len() >= head.len() + tail.len() && name.starts_with(head) && name.ends_with(tail)
        }
    };
    names.clone().count() == wanted.clone().count() && names.zip(wanted).all(fits_name)
}

/// The line of all CPUs in /proc/stat (proc_stat(5)); guest time is part of user time.
fn cpu_ticks(text: &str) -> Option<CpuTicks> {
    const STEAL: usize = 7;
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let kinds: Vec<u64> = line.split_whitespace().map_while(|n| n.parse().ok()).take(8).collect();
    let is_cpu = |line: &&str| {
        line.strip_prefix("cpu").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let cpus = text.lines().filter(is_cpu).count() as u64;
    Some(CpuTicks { all: kinds.iter().sum(), steal: *kinds.get(STEAL)?, cpus })
}

/// Numbers of a list of the kernel: "0-2,5" is 0, 1, 2 and 5.
pub(super) fn listed(text: &str) -> Vec<u32> {
    /// More than any machine has.
    const NUMBERS_MAX: usize = 8192;
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse::<u32>().ok()?..=last.trim().parse::<u32>().ok()?)
    };
    text.split(',').filter_map(range).flatten().take(NUMBERS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_means_names_but_not_folders() {
        assert!(fits("/sys/cpu3/gov", "/sys/cpu*/gov"));
        assert!(fits("/proc/17/stat", "/proc/*/stat"));
        assert!(!fits("/sys/cpu3/x/gov", "/sys/cpu*/gov"));
        assert!(!fits("/sys/cp/gov", "/sys/cpu*/gov"));
        assert_eq!(listed("0-2,5"), [0, 1, 2, 5]);
    }

    #[test]
    fn why_a_file_has_no_text_is_told() {
        let mut texts = MachineTexts::default();
        texts.first.insert("/a".to_owned(), Err(Unread::Absent));
        texts.first.insert("/b".to_owned(), Err(Unread::Because("permission denied".to_owned())));
        assert_eq!(texts.text("/a").unwrap_err(), "there is no /a here");
        assert_eq!(texts.text("/b").unwrap_err(), "/b could not be read: permission denied");
        assert!(texts.is_absent("/a") && !texts.is_absent("/b") && !texts.is_absent("/c"));
    }

    #[test]
    fn ticks_are_those_between_the_readings() {
        let mut texts = MachineTexts::default();
        let text = |steal: u32| format!("cpu  1 0 0 9 0 0 0 {steal} 5 5\ncpu0 1\ncpu1 0\n");
        texts.first.insert("/proc/stat".to_owned(), Ok(text(0)));
        texts.second.insert("/proc/stat".to_owned(), Ok(text(40)));
        let seen = texts.cpu_ticks().unwrap();
        assert_eq!(seen, CpuTicks { all: 40, steal: 40, cpus: 2 });
    }
}
