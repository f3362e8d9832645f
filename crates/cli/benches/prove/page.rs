//! The page with the proof, and whether it holds. Start reading at [`Proof::page`].

use std::fmt::Write as _;

use super::Effort;
use super::beside::{Outcome, machine};
use super::clean::{Alarms, Neighbour};
use super::trial::Found;

/// Share of the trials in which a check must fire, confirmed.
const POWER_MIN: f64 = 0.95;
/// How far the share at half strength may be from half of that at full strength, as a part of it.
const DOSE_MAX: f64 = 0.2;
/// Alarms of one check in clean visits, and clean visits with any alarm.
const CHECK_MAX: f64 = 1.0 / 200.0;
const VISITS_MAX: f64 = 1.0 / 20.0;
/// Part of a core that reading counters may take.
const COST_MAX: f64 = 0.01;

/// Everything that was measured.
pub struct Proof {
    machine: String,
    seeds: u64,
    pub found: Vec<Found>,
    pub alarms: Vec<Alarms>,
}

impl Proof {
    pub fn begin(effort: &Effort) -> Self {
        let machine = machine::machine(&["nginx-light", "lighttpd", "apache2-bin"]);
        Self { machine, seeds: effort.seeds, found: Vec::new(), alarms: Vec::new() }
    }

    /// As Markdown.
    pub fn page(&self) -> String {
        let mut text = format!(
            "# What the doctor finds, and what it misses\n\n\
             Made by `make prove`, which plants each artifact and measures the doctor itself. Machine: {}. Seeds: \
             1 to {}.\n\n## Power\n\nEach artifact is planted once a seed. *Confirmed*: trials in which the check \
             found it with two witnesses; at least 95 % are asked. *Share*: how much of what was measured it says \
             is touched; at half strength it must be half of that at full strength, within 20 %.\n\n\
             | check | planted | confirmed | suspected only | share planted | reported | reported at half strength | other checks that act |\n\
             |---|---|---|---|---|---|---|---|\n",
            self.machine, self.seeds
        );
        for found in &self.found {
            let others: Vec<String> =
                found.others.iter().map(|(name, n)| format!("`{name}` {n}")).collect();
            let others = if others.is_empty() { "none".to_owned() } else { others.join(", ") };
            writeln!(
                text,
                "| `{}` | {} | {} of {}{} | {} | {} | {} | {}{} | {others} |",
                found.check,
                found.what,
                found.confirmed,
                found.trials,
                mark(!has_power(found)),
                found.suspected,
                percent(found.share_planted),
                percent(found.share_full),
                percent(found.share_half),
                mark(!follows_dose(found)),
            )
            .expect(IN_MEMORY);
        }
        text += "\n## False alarms\n\nReal servers (nginx, lighttpd, Apache event, joust reactor), each against itself, every visit \
                 examined alone. At most 1 in 200 a check and 1 in 20 visits altogether are allowed.\n\n\
                 | neighbour | clean visits | with an alarm | alarms by check | notes by check | runs | findings of whole runs that act | cost of reading counters |\n\
                 |---|---|---|---|---|---|---|---|\n";
        for alarms in &self.alarms {
            let name = match alarms.neighbour {
                Neighbour::None => "none",
                Neighbour::Busy => "a CPU busy, every second second",
            };
            let list = |counts: &std::collections::BTreeMap<String, u64>| {
                let parts: Vec<String> =
                    counts.iter().map(|(name, n)| format!("{name} {n}")).collect();
                if parts.is_empty() { "none".to_owned() } else { parts.join(", ") }
            };
            writeln!(
                text,
                "| {name} | {} | {}{} | {} | {} | {} | {} | {:.2} % of a core{} |",
                alarms.visits,
                alarms.visits_with,
                mark(!is_quiet(alarms)),
                list(&alarms.by_check),
                list(&alarms.notes),
                alarms.runs,
                list(&alarms.of_runs),
                100.0 * alarms.cost,
                mark(alarms.cost > COST_MAX),
            )
            .expect(IN_MEMORY);
        }
        text += "\nA figure marked **!** misses what is asked of it.\n";
        text
    }

    /// # Errors
    /// What was asked for and not reached.
    pub fn verdict(&self) -> Outcome<()> {
        let weak = self.found.iter().filter(|found| !has_power(found) || !follows_dose(found));
        let weak: Vec<&str> = weak.map(|found| found.check).collect();
        let loud = self.alarms.iter().any(|alarms| !is_quiet(alarms) || alarms.cost > COST_MAX);
        match (weak.as_slice(), loud) {
            ([], false) => Ok(()),
            (weak, loud) => Err(format!(
                "not reached: {}{}",
                weak.join(", "),
                if loud { "; too many false alarms, or too dear" } else { "" }
            )
            .into()),
        }
    }
}

const IN_MEMORY: &str = "writing to memory does not fail";

/// One line while the proof goes on.
pub fn line(found: &Found) -> String {
    format!(
        "{}: confirmed {} of {}, suspected {}; share {} planted, {} reported, {} at half; others {:?}",
        found.check,
        found.confirmed,
        found.trials,
        found.suspected,
        percent(found.share_planted),
        percent(found.share_full),
        percent(found.share_half),
        found.others,
    )
}

/// The same of clean visits.
pub fn alarms_line(alarms: &Alarms) -> String {
    format!(
        "clean visits {} ({:?}): {} with an alarm {:?}; notes {:?}; {} runs {:?}; cost {:.2} %",
        alarms.visits,
        alarms.neighbour,
        alarms.visits_with,
        alarms.by_check,
        alarms.notes,
        alarms.runs,
        alarms.of_runs,
        100.0 * alarms.cost,
    )
}

fn has_power(found: &Found) -> bool {
    found.confirmed as f64 >= POWER_MIN * found.trials as f64
}

/// True where the artifact has no dose.
fn follows_dose(found: &Found) -> bool {
    match (found.share_full, found.share_half) {
        (Some(full), Some(half)) => (half - full / 2.0).abs() <= DOSE_MAX * full / 2.0,
        (None, Some(_)) => false,
        (_, None) => found.share_planted.is_none_or(|_| found.share_full.is_some()),
    }
}

fn is_quiet(alarms: &Alarms) -> bool {
    let visits = alarms.visits as f64;
    let most = alarms.by_check.values().max().copied().unwrap_or(0);
    most as f64 <= CHECK_MAX * visits && alarms.visits_with as f64 <= VISITS_MAX * visits
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), |share| format!("{:.2} %", 100.0 * share))
}

fn mark(is_missed: bool) -> &'static str {
    if is_missed { " **!**" } else { "" }
}
