//! The page with the proof, and whether the requirements are met. Start reading at [`Proof::page`].

use std::collections::BTreeMap;

use super::Effort;
use super::beside::{Outcome, machine};
use super::clean::{Alarms, Neighbour};
use super::trial::Found;
use super::{plants, runs};

/// Share of the trials in which a check must fire, confirmed.
const POWER_MIN: f64 = 0.95;
/// How far the share at half strength may be from half of that at full strength, relative to it.
const DOSE_MAX: f64 = 0.2;
/// Largest share of clean visits with an alarm of one check, and with any alarm.
const CHECK_MAX: f64 = 1.0 / 200.0;
const VISITS_MAX: f64 = 1.0 / 20.0;
/// Share of a core that reading counters may take.
const COST_MAX: f64 = 0.01;

/// All measurements.
pub struct Proof {
    machine: String,
    day: String,
    /// Rows of the previous page by key: those that are not measured again stay, with their date.
    older: BTreeMap<String, String>,
    pub found: Vec<Found>,
    pub alarms: Vec<Alarms>,
}

impl Proof {
    pub fn begin(effort: &Effort) -> Self {
        let machine = machine::machine(&["nginx-light", "lighttpd", "apache2-bin"]);
        let day = jiff::Zoned::now().date().to_string();
        let older = match (&effort.page, effort.only.is_empty()) {
            (Some(page), false) => rows(&std::fs::read_to_string(page).unwrap_or_default()),
            _ => BTreeMap::new(),
        };
        let (found, alarms) = (Vec::new(), Vec::new());
        Self { machine, day, older, found, alarms }
    }

    /// As Markdown.
    pub fn page(&self) -> String {
        let mut text = format!(
            "# What the doctor finds, and what it misses\n\n\
             Made by `make prove`, which plants each artifact and measures the doctor itself. Machine: {}. \
             `JOUST_PROVE_ONLY=NAME make prove` renews the rows of a check on the same machine; each row has its day \
             and its number of trials, whose seeds are 1 and up.\n\n\
             ## Power\n\nEach artifact is planted once a seed. *Confirmed*: trials in which the check \
             found it and was sure; at least 95 % are asked. *Share*: how much of what was measured it says \
             is touched; at half strength it must be half of that at full strength, within 20 %.\n\n\
             | check | planted | confirmed | suspected only | share planted | reported | reported at half strength | other checks that act | measured |\n\
             |---|---|---|---|---|---|---|---|---|\n",
            self.machine
        );
        let planted = plants::ALL.iter().map(|plant| (plant.check, plant.what));
        let planted = planted.chain(runs::ALL.iter().map(|plant| (plant.check, plant.what)));
        for (check, what) in planted {
            let found = self.found.iter().find(|found| (found.check, found.what) == (check, what));
            let key = format!("`{check}` | {what}");
            text += &self.renewed(&key, found.map(row));
        }
        text += "\n## False alarms\n\nReal servers (nginx, lighttpd, Apache event, joust reactor), each against itself, every visit \
                 examined alone. At most 1 in 200 a check and 1 in 20 visits altogether are allowed.\n\n\
                 | neighbour | clean visits | with an alarm | alarms by check | notes by check | runs | findings of whole runs that act | cost of reading counters | measured |\n\
                 |---|---|---|---|---|---|---|---|---|\n";
        for neighbour in [Neighbour::None, Neighbour::Busy] {
            let alarms = self.alarms.iter().find(|alarms| alarms.neighbour == neighbour);
            text += &self.renewed(neighbour_name(neighbour), alarms.map(alarms_row));
        }
        text += "\nA figure marked **!** misses what is asked of it.\n";
        text
    }

    /// A row that was measured now, else that of the previous page, else none.
    fn renewed(&self, key: &str, row: Option<String>) -> String {
        match row {
            Some(row) => format!("| {key} | {row} | {} |\n", self.day),
            None => self.older.get(key).map_or_else(String::new, |row| format!("{row}\n")),
        }
    }

    /// # Errors
    /// The requirements that were not met.
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

/// Rows of a page by key: the first cell for alarms, the first two for a plant.
fn rows(page: &str) -> BTreeMap<String, String> {
    let rows = page.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| ")?.split(" | ");
        let (first, second) = (cells.next()?, cells.next()?);
        let key =
            if first.starts_with('`') { format!("{first} | {second}") } else { first.to_owned() };
        Some((key, line.to_owned()))
    });
    rows.collect()
}

/// The cells between key and date.
fn row(found: &Found) -> String {
    let others: Vec<String> =
        found.others.iter().map(|(name, n)| format!("`{name}` {n}")).collect();
    let others = if others.is_empty() { "none".to_owned() } else { others.join(", ") };
    format!(
        "{} of {}{} | {} | {} | {} | {}{} | {others}",
        found.confirmed,
        found.trials,
        mark(!has_power(found)),
        found.suspected,
        percent(found.share_planted),
        percent(found.share_full),
        percent(found.share_half),
        mark(!follows_dose(found)),
    )
}

/// The same for clean visits.
fn alarms_row(alarms: &Alarms) -> String {
    let list = |counts: &BTreeMap<String, u64>| {
        let parts: Vec<String> = counts.iter().map(|(name, n)| format!("{name} {n}")).collect();
        if parts.is_empty() { "none".to_owned() } else { parts.join(", ") }
    };
    format!(
        "{} | {}{} | {} | {} | {} | {} | {:.2} % of a core{}",
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
}

fn neighbour_name(neighbour: Neighbour) -> &'static str {
    match neighbour {
        Neighbour::None => "none",
        Neighbour::Busy => "a CPU busy, every second second",
    }
}

/// One line of progress.
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

/// The same for clean visits.
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

/// True if the artifact has no dose.
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
