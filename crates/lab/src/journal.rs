//! Owns the file that keeps a run's visits while it runs, and how a run is resumed from that file. Start reading at
//! [`go_on`].

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use record::{
    CpuLayout, Ending, Facts, Integrity, Journal, NetworkKind, RunRecord, Setup, UserSkip, Visit,
};
use units::Nanos;

use crate::error::LabError;
use crate::session::EarlierVisits;

/// Name of the file in a folder of results. It is removed when the run is saved.
pub const NAME: &str = "journal.jsonl";
/// Facts that must be the same for visits to be compared.
const SAME: [&str; 4] = ["cpu_model", "cpus", "kernel", "memory"];

/// A journal that is being written, one line per visit, so that a killed run loses one visit.
#[derive(Debug)]
pub(crate) struct Keeping {
    path: PathBuf,
    file: File,
}

impl Keeping {
    /// Creates it in `folder`, with the existing visits.
    pub(crate) fn begin(folder: &Path, journal: &Journal) -> Result<Self, LabError> {
        let path = folder.join(NAME);
        let visits = journal.visits.iter().map(Journal::line);
        let skips = journal.skips.iter().copied().map(Journal::skip_line);
        let text = visits.chain(skips).fold(journal.head(), |text, line| text + &line);
        // Written under another name, then renamed: the journal that a run resumes from is whole or untouched.
        let beside = folder.join(format!(".{NAME}.new"));
        let file = File::create(&beside).and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            fs::rename(&beside, &path)?;
            Ok(file)
        });
        let file = file.map_err(|cause| {
            let _ = fs::remove_file(&beside);
            LabError::Write { path: path.clone(), cause }
        })?;
        Ok(Self { path, file })
    }

    /// Adds a visit without a sync to the disk. It must survive a killed process, not a power cut, and a sync would
    /// keep the disk busy during the next visit.
    pub(crate) fn keep(&mut self, visit: &Visit) -> Result<(), LabError> {
        self.add(&Journal::line(visit))
    }

    /// Adds a contender that the user had skipped.
    pub(crate) fn keep_skip(&mut self, skip: UserSkip) -> Result<(), LabError> {
        self.add(&Journal::skip_line(skip))
    }

    fn add(&mut self, line: &str) -> Result<(), LabError> {
        let written = self.file.write_all(line.as_bytes());
        written.map_err(|cause| LabError::Write { path: self.path.clone(), cause })
    }
}

/// An earlier run that this one completes or extends.
#[derive(Debug, Clone, PartialEq)]
pub struct Earlier {
    /// What it planned and measured. Its plan is the one to carry out.
    pub journal: Journal,
    /// Where to continue.
    pub before: EarlierVisits,
}

/// What is left to do of a run that was killed or interrupted; `folder` is its folder of results.
///
/// # Errors
/// [`LabError::Earlier`]: there is no journal, it cannot be read, or the run is complete.
pub fn go_on(folder: &Path) -> Result<Earlier, LabError> {
    let refused = |reason: String| LabError::Earlier { path: folder.to_owned(), reason };
    let journal = match fs::read_to_string(folder.join(NAME)) {
        Ok(text) => Journal::read(&text).map_err(|error| LabError::Earlier {
            path: folder.join(NAME),
            reason: error.to_string(),
        })?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let run = read_run(folder)?;
            if !matches!(run.ending, Ending::Incomplete { .. }) {
                return Err(refused("it has ended; --repeat-of measures more of it".to_owned()));
            }
            Journal::of(&run)
        }
        Err(error) => return Err(refused(error.to_string())),
    };
    let block = journal.visits.iter().map(|visit| visit.block).max().unwrap_or(0);
    let elapsed = elapsed(&journal);
    let (visits, skips) = (journal.visits.clone(), journal.skips.clone());
    let before = EarlierVisits { visits, elapsed, block, floor: 0, skips };
    Ok(Earlier { journal, before })
}

/// Repeats the plan of that run: as many blocks again, judged together with the existing visits. Contenders that the
/// user had skipped take part again: their pairs rest on the blocks that have both. `folder` is its folder of results,
/// or its run file.
///
/// # Errors
/// [`LabError::Earlier`]: there is no run file, or it cannot be read.
pub fn repeat(folder: &Path) -> Result<Earlier, LabError> {
    let mut journal = Journal::of(&read_run(folder)?);
    let block = journal.visits.iter().map(|visit| visit.block + 1).max().unwrap_or(0);
    let elapsed = elapsed(&journal);
    journal.plan.blocks.max = journal.plan.blocks.max.saturating_add(block);
    journal.plan.budget = journal.plan.budget.saturating_add(elapsed);
    // The study's own minimum stays in the plan: repeating a run does not make its blocks too few.
    let floor = journal.plan.blocks.min.saturating_add(block);
    journal.skips.clear();
    let visits = journal.visits.clone();
    let before = EarlierVisits { visits, elapsed, block, floor, skips: Vec::new() };
    Ok(Earlier { journal, before })
}

fn read_run(path: &Path) -> Result<RunRecord, LabError> {
    let file = if path.is_dir() { path.join("run.json") } else { path.to_owned() };
    let refused = |reason: String| LabError::Earlier { path: file.clone(), reason };
    let text = fs::read_to_string(&file).map_err(|error| refused(error.to_string()))?;
    let run = RunRecord::from_json(&text).map_err(|error| refused(error.to_string()))?;
    // New visits would be saved together with these, as if all of them had been measured.
    match run.integrity {
        Integrity::Changed => Err(refused(
            "this file was changed after it was measured, so its visits cannot be combined with new ones"
                .to_owned(),
        )),
        Integrity::Intact | Integrity::Unknown => Ok(run),
    }
}

/// Approximate time that the visits took: to the end of the last one.
fn elapsed(journal: &Journal) -> Nanos {
    let last = journal.visits.iter().map(|visit| visit.started).max();
    last.map_or(Nanos::ZERO, |last| last + journal.plan.visit.load())
}

/// Refuses to resume a run of another machine, or of this machine with another kernel.
///
/// # Errors
/// [`LabError::Earlier`], which names what differs.
pub(crate) fn check_machine(earlier: &Journal, now: &Facts) -> Result<(), LabError> {
    let fact = |facts: &Facts, name: &str| facts.named.get(name).cloned().unwrap_or_default();
    let differing = SAME.into_iter().find(|name| fact(&earlier.facts, name) != fact(now, name));
    let Some(name) = differing else { return Ok(()) };
    let (then, now) = (fact(&earlier.facts, name), fact(now, name));
    let reason = format!(
        "its {name} was `{then}`, this machine's is `{now}`: visits of two machines cannot be compared; \
         start a new run"
    );
    Err(LabError::Earlier { path: PathBuf::from(&earlier.plan.name), reason })
}

/// The fact that names who makes the load, if other machines do.
pub(crate) const GENERATORS: &str = "generators";

/// Refuses to resume from visits whose load came from elsewhere than it would now.
///
/// # Errors
/// [`LabError::Earlier`], which names both.
pub(crate) fn check_generators(earlier: &Journal, now: &Facts) -> Result<(), LabError> {
    let of = |facts: &Facts| facts.named.get(GENERATORS).cloned();
    let (then, now) = (of(&earlier.facts), of(now));
    if then == now {
        return Ok(());
    }
    let here = || "this machine".to_owned();
    let reason = format!(
        "its load came from {} and would now come from {}: continue it with the --fleet, --address and agents that it \
         had, or start a new run",
        then.unwrap_or_else(here),
        now.unwrap_or_else(here)
    );
    Err(LabError::Earlier { path: PathBuf::from(&earlier.plan.name), reason })
}

/// Refuses to resume from visits that were made with another joust, other server versions, on other CPUs or over
/// another network: ratios would mix both.
///
/// # Errors
/// [`LabError::Earlier`], which names what differs.
pub(crate) fn check_setup(
    earlier: &Journal,
    now: &Setup,
    network: NetworkKind,
) -> Result<(), LabError> {
    let refused = |what: &str, then: &str, now: &str| LabError::Earlier {
        path: PathBuf::from(&earlier.plan.name),
        reason: format!(
            "{what} was `{then}` and is now `{now}`: visits of the two cannot be combined; start a \
             new run"
        ),
    };
    let then = &earlier.setup;
    if !then.joust.is_empty() && then.joust != now.joust {
        return Err(refused("joust, which makes the load,", &then.joust, &now.joust));
    }
    for (contender, (then, now)) in
        earlier.plan.contenders.iter().zip(then.versions.iter().zip(&now.versions))
    {
        // If only its replies name a server's version, it is unknown before the server is started.
        if !then.is_empty() && !now.is_empty() && then != now {
            return Err(refused(&contender.name, then, now));
        }
    }
    if then.layout != CpuLayout::default() && then.layout != now.layout {
        let cpus = |layout: &CpuLayout| {
            format!("server on {:?}, generator on {:?}", layout.server, layout.client)
        };
        return Err(refused("the division of CPUs", &cpus(&then.layout), &cpus(&now.layout)));
    }
    let over = |kind| match kind {
        NetworkKind::Veth => "network namespaces",
        NetworkKind::Loopback => "loopback",
        NetworkKind::Machines => "generators on other machines",
    };
    let mut made = earlier.visits.iter().filter_map(|visit| visit.surroundings.as_ref());
    match made.find(|around| around.network.kind != network) {
        Some(around) => {
            Err(refused("the network of visits", over(around.network.kind), over(network)))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use record::{Contender, Network, Plan, Surroundings};

    use super::*;

    fn setup() -> Setup {
        Setup {
            joust: "0.1.0".to_owned(),
            versions: vec!["nginx/1.22.1".to_owned(), String::new()],
            layout: CpuLayout { server: vec![1], client: vec![0], shared: false },
        }
    }

    fn journal() -> Journal {
        let named = |name: &str| Contender { name: name.to_owned(), ..Contender::default() };
        let network = Network { kind: NetworkKind::Veth, ..Network::default() };
        let around = Box::new(Surroundings { network, ..Surroundings::default() });
        Journal {
            format: Journal::FORMAT.to_owned(),
            started: String::new(),
            plan: Plan { contenders: vec![named("a"), named("b")], ..Plan::default() },
            facts: Facts::default(),
            skipped: Vec::new(),
            setup: setup(),
            visits: vec![
                Visit::default(),
                Visit { surroundings: Some(around), ..Visit::default() },
            ],
            skips: Vec::new(),
        }
    }

    #[test]
    fn what_is_the_same_or_was_not_known_is_gone_on_with() {
        check_setup(&journal(), &setup(), NetworkKind::Veth).unwrap();
        let unknown = Journal { setup: Setup::default(), visits: Vec::new(), ..journal() };
        check_setup(&unknown, &setup(), NetworkKind::Loopback).unwrap();
        let named = Setup { versions: vec!["nginx/1.22.1".into(), "x/2".into()], ..setup() };
        check_setup(&journal(), &named, NetworkKind::Veth).unwrap();
    }

    #[test]
    fn visits_of_another_setup_are_not_judged_with_those_to_come() {
        let layout = CpuLayout { client: vec![2], ..setup().layout };
        let others = [
            (Setup { joust: "0.2.0".into(), ..setup() }, "0.2.0"),
            (Setup { versions: vec!["nginx/1.24.0".into(), "".into()], ..setup() }, "nginx/1.24.0"),
            (Setup { layout, ..setup() }, "generator on [2]"),
        ];
        for (now, says) in others {
            let error = check_setup(&journal(), &now, NetworkKind::Veth).unwrap_err().to_string();
            assert!(error.contains(says) && error.contains("start a new run"), "{error}");
        }
        let error = check_setup(&journal(), &setup(), NetworkKind::Loopback).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("`network namespaces` and is now `loopback`"), "{error}");
    }
}
