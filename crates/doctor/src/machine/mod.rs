//! Owns what is worth knowing of a machine before anything is measured on it: one file a topic. Must not know how
//! a file is read: texts arrive in [`MachineTexts`], from whoever measures. To add a topic: a file here, `mod
//! name;` and `&name::ITEM` below. Start reading at [`Topic`].

mod accept_backlog;
mod address_layout;
mod clock_source;
mod connection_tracking;
mod cpu_quota;
mod cpu_set;
mod cpus;
mod file_descriptors;
mod frequency;
mod hardware_counters;
mod huge_pages;
mod idle_states;
mod interfaces;
mod local_ports;
mod loopback_mtu;
mod memory;
mod mitigations;
mod namespaces;
mod netdev_backlog;
mod netem;
mod other_load;
mod page_cache;
mod ptrace;
mod slow_start_after_idle;
mod smt;
mod steal;
mod swap;
mod syn_backlog;
mod texts;
mod time_wait_reuse;
mod timer_slack;
mod turbo;
mod virtualization;

#[cfg(test)]
mod planted;

use std::collections::BTreeSet;

pub use texts::{MachineTexts, OF_CGROUPS, Unread};

/// Every topic, in the order in which they are shown.
pub const TOPICS: &[&Topic] = &[
    &cpus::ITEM,
    &cpu_set::ITEM,
    &cpu_quota::ITEM,
    &smt::ITEM,
    &virtualization::ITEM,
    &steal::ITEM,
    &other_load::ITEM,
    &frequency::ITEM,
    &turbo::ITEM,
    &idle_states::ITEM,
    &mitigations::ITEM,
    &clock_source::ITEM,
    &timer_slack::ITEM,
    &memory::ITEM,
    &swap::ITEM,
    &page_cache::ITEM,
    &huge_pages::ITEM,
    &address_layout::ITEM,
    &file_descriptors::ITEM,
    &local_ports::ITEM,
    &time_wait_reuse::ITEM,
    &accept_backlog::ITEM,
    &syn_backlog::ITEM,
    &slow_start_after_idle::ITEM,
    &netdev_backlog::ITEM,
    &connection_tracking::ITEM,
    &interfaces::ITEM,
    &loopback_mtu::ITEM,
    &namespaces::ITEM,
    &netem::ITEM,
    &hardware_counters::ITEM,
    &ptrace::ITEM,
];

/// One thing about a machine that a measurement depends on.
#[derive(Debug)]
pub struct Topic {
    /// Its name, and that of its file ("accept_backlog").
    pub name: &'static str,
    /// What it is, in a few words.
    pub title: &'static str,
    /// What a bad state does to a measurement, in a sentence without its full stop.
    pub effect: &'static str,
    /// Files that it reads. A `*` stands for any name in a path. After [`OF_CGROUPS`]: a file of each cgroup that
    /// joust runs in.
    pub needs: &'static [&'static str],
    /// Those of them that are read twice, half a second apart.
    pub needs_twice: &'static [&'static str],
    /// How it is; `Err` says why that is not known.
    pub look: fn(&MachineTexts) -> Result<MachineState, String>,
}

/// How a topic is on a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MachineState {
    /// As a measurement wants it.
    Fine {
        /// What was read, in words with its figures.
        seen: String,
    },
    /// A measurement would be better, or mean more, otherwise.
    WorthChanging {
        /// What was read, in words with its figures.
        seen: String,
        /// How to change it.
        mend: Mend,
    },
}

/// How to change a state.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Mend {
    /// What to do, where no command does it; may be empty.
    pub advice: String,
    /// Commands that do it, for root.
    pub changes: Vec<Change>,
}

/// A command that changes a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The command.
    pub run: String,
    /// Today's value.
    pub today: String,
    /// The command that brings today's value back; `None`: there is none.
    pub back: Option<String>,
}

/// A topic with its state.
#[derive(Debug, Clone)]
pub struct MachineLine {
    /// The topic.
    pub topic: &'static Topic,
    /// Its state; `Err` says why it is not available.
    pub state: Result<MachineState, String>,
}

/// Every topic with its state on a machine.
pub fn look(texts: &MachineTexts) -> Vec<MachineLine> {
    TOPICS.iter().map(|topic| MachineLine { topic, state: (topic.look)(texts) }).collect()
}

/// Every file that a topic reads, each once.
pub fn needs() -> BTreeSet<&'static str> {
    TOPICS.iter().flat_map(|topic| topic.needs).copied().collect()
}

/// Those of them that are read twice.
pub fn needs_twice() -> BTreeSet<&'static str> {
    TOPICS.iter().flat_map(|topic| topic.needs_twice).copied().collect()
}

impl MachineState {
    fn fine(seen: impl Into<String>) -> Result<Self, String> {
        Ok(Self::Fine { seen: seen.into() })
    }

    fn worth_changing(seen: impl Into<String>, mend: Mend) -> Result<Self, String> {
        Ok(Self::WorthChanging { seen: seen.into(), mend })
    }
}

impl Mend {
    /// No command does it.
    fn advice(advice: impl Into<String>) -> Self {
        Self { advice: advice.into(), changes: Vec::new() }
    }

    /// A sysctl ("net.core.somaxconn") is set.
    fn sysctl(name: &str, today: impl std::fmt::Display, wanted: impl std::fmt::Display) -> Self {
        let set = |value: &str| format!("sysctl -w {name}=\"{value}\"");
        let today = today.to_string();
        Self::command(set(&wanted.to_string()), &today, Some(set(&today)))
    }

    /// A value is written to a file.
    fn write(path: &str, today: &str, wanted: &str) -> Self {
        let put = |value: &str| format!("echo \"{value}\" > {path}");
        Self::command(put(wanted), today, Some(put(today)))
    }

    fn command(run: String, today: &str, back: Option<String>) -> Self {
        let change = Change { run, today: today.to_owned(), back };
        Self { advice: String::new(), changes: vec![change] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_topic_says_what_it_is_and_what_it_does() {
        for topic in TOPICS {
            assert!(
                topic.name.chars().all(|c| c.is_ascii_lowercase() || c == '_'),
                "{}",
                topic.name
            );
            for text in [topic.title, topic.effect] {
                assert!(text.len() > 8 && !text.ends_with('.'), "{}: {text}", topic.name);
            }
            assert!(!topic.needs.is_empty(), "{} reads something", topic.name);
            assert!(topic.needs_twice.iter().all(|path| topic.needs.contains(path)));
        }
        let names: BTreeSet<&str> = TOPICS.iter().map(|topic| topic.name).collect();
        assert_eq!(names.len(), TOPICS.len(), "names are unique");
    }

    #[test]
    fn what_cannot_be_read_is_not_available_with_a_reason_and_never_fine() {
        for line in look(&MachineTexts::default()) {
            let why = line.state.expect_err(line.topic.name);
            assert!(why.len() > 10, "{}: {why}", line.topic.name);
        }
    }

    #[test]
    fn a_change_has_its_way_back() {
        let mend = Mend::sysctl("net.core.somaxconn", 128, 4096);
        assert_eq!(mend.changes[0].run, "sysctl -w net.core.somaxconn=\"4096\"");
        assert_eq!(mend.changes[0].back.as_deref(), Some("sysctl -w net.core.somaxconn=\"128\""));
        assert_eq!(mend.changes[0].today, "128");
    }
}
