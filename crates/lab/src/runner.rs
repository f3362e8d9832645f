//! Owns a whole run: what is installed, the session on this machine, findings and verdicts, the
//! record of it all. Must not know rendering, folders of results or argv. Start reading at [`run`].

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use record::{Analysis, Ending, Plan, RunRecord, Skipped, Verdict};

use crate::adapters::{self, Missing, Search};
use crate::analysis::analyse;
use crate::error::LabError;
use crate::facts;
use crate::machine::{Installed, Machine};
use crate::session::{Before, Stage as _, Watch, play};
use crate::verdict::verdicts;

/// What a run needs to be told beside its plan.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// Our own program, for contenders whose server is `joust`.
    pub joust_binary: PathBuf,
    /// Version of joust, for the record.
    pub joust_version: String,
}

/// How a run has to be judged by whoever started it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It came to its planned end, and something can be said.
    Complete,
    /// It was broken off.
    Incomplete,
    /// It came to its end, but every verdict is withheld.
    AllWithheld,
}

/// The outcome of a run.
pub fn outcome(run: &RunRecord) -> Outcome {
    let is_withheld = |verdict: &Verdict| matches!(verdict, Verdict::Withheld { .. });
    match run.ending {
        Ending::Incomplete { .. } => Outcome::Incomplete,
        _ if run.verdicts.iter().all(|pair| is_withheld(&pair.verdict)) => Outcome::AllWithheld,
        _ => Outcome::Complete,
    }
}

/// Carries out an experiment on this machine. Contenders whose servers are not installed are left
/// out and listed. When it returns no server is left, whatever it returns; `interrupt` ends it in
/// order, and what was measured until then is in the record.
///
/// # Errors
/// [`LabError::TooFew`] and [`LabError::NoneAnswers`]: nothing to compare; else the harness failed
/// before anything was measured.
pub fn run(
    plan: Plan,
    options: &RunOptions,
    watch: &mut dyn Watch,
    interrupt: &AtomicBool,
) -> Result<RunRecord, LabError> {
    let (plan, installed, skipped) = installed(plan, &Search::new(&options.joust_binary))?;
    let started = jiff::Zoned::now().strftime("%Y-%m-%dT%H:%M:%S%:z").to_string();
    watch.planned(&plan, &skipped);
    adapters::notes(&plan).iter().for_each(|note| watch.message(note));
    let facts = facts::gather();
    let mut machine = Machine::new(&plan, &installed, interrupt, doctor::needs())?;
    let layout = machine.layout().clone();
    let played = play(&plan, Before::default(), &mut machine, watch, interrupt)?;
    let seconds = machine.now().as_secs_f64();
    drop(machine);
    let mut record = RunRecord {
        format: RunRecord::FORMAT.to_owned(),
        joust: options.joust_version.clone(),
        started,
        seconds,
        ending: played.ending,
        plan,
        facts,
        layout,
        contenders: played.contenders,
        skipped,
        visits: played.visits,
        findings: Vec::new(),
        verdicts: Vec::new(),
        analysis: Analysis::default(),
    };
    conclude(&mut record);
    Ok(record)
}

/// Makes findings, verdicts and analysis anew of what a record holds: after a run, or when the checks have
/// been changed since.
pub fn conclude(record: &mut RunRecord) {
    record.findings = doctor::examine(record);
    record.verdicts = verdicts(&record.plan, &record.visits, &record.findings);
    record.analysis = analyse(&record.plan, &record.visits, &record.verdicts);
}

/// Divides the contenders into those whose server is installed and those that are left out.
fn installed(
    mut plan: Plan,
    search: &Search,
) -> Result<(Plan, Vec<Installed>, Vec<Skipped>), LabError> {
    let (mut present, mut installed, mut skipped) = (Vec::new(), Vec::new(), Vec::new());
    for contender in plan.contenders {
        let adapter = adapters::named(&contender.server)?;
        match adapter.installed(search) {
            Ok(found) => {
                installed.push(Installed { adapter, found });
                present.push(contender);
            }
            Err(Missing { reason, remedy }) => {
                skipped.push(Skipped { name: contender.name, reason, remedy });
            }
        }
    }
    if present.len() < 2 {
        let present = present.into_iter().map(|contender| contender.name).collect();
        return Err(LabError::TooFew { present, skipped });
    }
    plan.contenders = present;
    Ok((plan, installed, skipped))
}
