//! Owns a whole run: what is installed, the session on this machine, findings and verdicts, the record of it
//! all. Start reading at [`run`].

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use record::{
    Analysis, Contender, CpuLayout, Ending, Facts, Integrity, Journal, Plan, RunRecord, Setup,
    Skipped, UserSkip, Verdict, Workload,
};

use crate::adapters::{self, Missing, Search};
use crate::analysis::analyse;
use crate::clients;
use crate::elsewhere::Elsewhere;
use crate::error::LabError;
use crate::facts;
use crate::journal::{Earlier, GENERATORS, Keeping, check_generators, check_machine, check_setup};
use crate::machine::{GoingOn, Installed, Machine, MachineLayout, Tool, Tools};
use crate::session::{EarlierVisits, Stage as _, Watch, play};
use crate::study;
use crate::trial;
use crate::verdict::verdicts_after_skips;

/// What a run needs in addition to its plan.
#[derive(Debug, Default, Clone)]
pub struct RunOptions {
    /// Our own program, for contenders whose server is `joust`.
    pub joust_binary: PathBuf,
    /// Version of joust, for the record.
    pub joust_version: String,
    /// Folder in which visits are kept while the run goes on; `None`: they are not kept.
    pub journal: Option<PathBuf>,
    /// The run that this one continues; its plan must be the given one.
    pub earlier: Option<Earlier>,
    /// Who makes the load, if other machines do.
    pub elsewhere: Option<Arc<Elsewhere>>,
}

/// How a run ended, for an exit code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It reached its planned end, and there are verdicts.
    Complete,
    /// It was interrupted or failed.
    Incomplete,
    /// It reached its end, but every verdict is withheld.
    AllWithheld,
    /// It reached its end, but these contenders have no measured visit: their verdicts are withheld.
    NotMeasured(Vec<String>),
}

/// The outcome of a run.
pub fn outcome(run: &RunRecord) -> Outcome {
    let is_withheld = |verdict: &Verdict| matches!(verdict, Verdict::Withheld { .. });
    let all = run.plan.contenders.iter().enumerate();
    let absent = all.filter(|(index, _)| run.measured(*index).next().is_none());
    let absent: Vec<String> = absent.map(|(_, one)| one.name.clone()).collect();
    match run.ending {
        Ending::Incomplete { .. } => Outcome::Incomplete,
        _ if run.verdicts.iter().all(|pair| is_withheld(&pair.verdict)) => Outcome::AllWithheld,
        _ if !absent.is_empty() => Outcome::NotMeasured(absent),
        _ => Outcome::Complete,
    }
}

/// Lets each server check the settings that are passed on to it, before anything is started.
///
/// # Errors
/// [`LabError::Refused`] with the server's words.
pub fn check_settings(plan: &Plan, joust_binary: &Path) -> Result<(), LabError> {
    let search = Search::new(joust_binary);
    for contender in &plan.contenders {
        let adapter = adapters::named(&contender.server)?;
        // A server that is not installed is left out, with a message.
        let Ok(found) = adapter.installed(&search) else { continue };
        if let Some(mut said) = adapter.refusal(&found, &contender.settings) {
            if let Some(key) = study::workload_key_near(&contender.settings, &said) {
                said.push_str(&format!(". The nearest key of [workload] is {key}"));
            }
            let (contender, server) = (contender.name.clone(), adapter.name);
            return Err(LabError::Refused { contender, server, said });
        }
    }
    Ok(())
}

/// The part of a plan that can run on this machine (`None` if that is too little to compare), and what would be left
/// out.
///
/// # Errors
/// The plan names an unknown server or load tool.
pub fn here(plan: &Plan, joust_binary: &Path) -> Result<(Option<Plan>, Vec<Skipped>), LabError> {
    match present(plan.clone(), &Search::new(joust_binary)) {
        Ok(present) => Ok((Some(present.plan), present.skipped)),
        Err(LabError::TooFew { skipped, .. }) => Ok((None, skipped)),
        Err(error) => Err(error),
    }
}

/// Carries out an experiment on this machine. Contenders whose servers are not installed are left out and listed.
/// Whatever it returns, no server is left running. `interrupt` ends it in order; the record contains what was
/// measured until then.
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
    let begun = sys::clock::monotonic();
    let search = Search::new(&options.joust_binary);
    let Present { plan, tools, installed, mut skipped } = present(plan, &search)?;
    let mut started = jiff::Zoned::now().strftime("%Y-%m-%dT%H:%M:%S%:z").to_string();
    let mut facts = facts::gather();
    if let Some(elsewhere) = &options.elsewhere {
        let about = format!("{}; servers at {}", elsewhere.about, elsewhere.address);
        facts.named.insert(GENERATORS.to_owned(), about);
        only_our_generator(&plan, &tools)?;
    }
    let mut before = EarlierVisits::default();
    let ground = MachineLayout::of(&plan, &installed, options.elsewhere.clone())?;
    let setup = Setup {
        joust: options.joust_version.clone(),
        versions: installed.iter().map(|one| one.found.version.clone()).collect(),
        layout: ground.layout.clone(),
    };
    if let Some(Earlier { journal, before: made }) = options.earlier.clone() {
        check_machine(&journal, &facts)?;
        check_generators(&journal, &facts)?;
        check_installed(&plan, &journal.plan)?;
        check_setup(&journal, &setup, ground.place.kind())?;
        (started, skipped, before) = (journal.started, journal.skipped, made);
    }
    watch.placed(&ground.layout);
    watch.planned(&plan, &skipped);
    adapters::notes(&plan).iter().for_each(|note| watch.message(note));
    let journal = Journal {
        format: Journal::FORMAT.to_owned(),
        started: started.clone(),
        plan: plan.clone(),
        facts: facts.clone(),
        skipped: skipped.clone(),
        setup,
        visits: before.visits.clone(),
        skips: before.skips.clone(),
    };
    let folder = options.journal.as_deref();
    let keeping = folder.map(|folder| Keeping::begin(folder, &journal)).transpose()?;
    // The time before the first server counts too: looking for programs takes a second if one is a JVM's.
    let elapsed = before.elapsed + (sys::clock::monotonic() - begun);
    let so_far = RunRecord {
        plan: plan.clone(),
        layout: ground.layout.clone(),
        ..nothing_yet(&options.joust_version, facts.clone())
    };
    let so_far = Some(Box::new(so_far));
    let going_on = GoingOn { elapsed, keeping, tools, ground, so_far };
    let mut machine = Machine::new(&plan, &installed, interrupt, going_on)?;
    let layout = machine.layout().clone();
    let played = play(&plan, before, &mut machine, watch, interrupt)?;
    let seconds = machine.now().as_secs_f64();
    drop(machine);
    let mut record = RunRecord {
        started,
        seconds,
        ending: played.ending,
        plan,
        layout,
        contenders: played.contenders,
        skipped,
        visits: played.visits,
        ..nothing_yet(&options.joust_version, facts)
    };
    conclude(&mut record);
    Ok(record)
}

/// Other machines have our generator alone.
fn only_our_generator(plan: &Plan, tools: &Tools) -> Result<(), LabError> {
    match tools.keys().next() {
        None => Ok(()),
        Some(tool) => Err(LabError::Elsewhere(format!(
            "study {} loads with {tool}, which agents do not run: leave it out",
            plan.name
        ))),
    }
}

/// A record without a visit.
fn nothing_yet(joust: &str, facts: Facts) -> RunRecord {
    RunRecord {
        format: RunRecord::FORMAT.to_owned(),
        joust: joust.to_owned(),
        started: String::new(),
        seconds: 0.0,
        ending: Ending::Blocks,
        plan: Plan::default(),
        facts,
        layout: CpuLayout::default(),
        contenders: Vec::new(),
        skipped: Vec::new(),
        visits: Vec::new(),
        findings: Vec::new(),
        verdicts: Vec::new(),
        analysis: Analysis::default(),
        integrity: Integrity::default(),
    }
}

/// Computes rates, findings, verdicts and analysis from the counts of a record: after a run, and
/// wherever a run file is shown, so that no conclusion is taken from the file.
pub fn conclude(record: &mut RunRecord) {
    let RunRecord { plan, visits, .. } = record;
    visits.iter_mut().for_each(|visit| trial::rate_anew(plan, visit));
    record.findings = doctor::examine(record);
    let known = 0..record.plan.contenders.len();
    assert!(
        record.findings.iter().all(|one| one.contenders.iter().all(|index| known.contains(index))),
        "findings name contenders of the plan"
    );
    let skips: Vec<UserSkip> = record.user_skips().collect();
    record.verdicts = verdicts_after_skips(&record.plan, &record.visits, &record.findings, &skips);
    record.analysis = analyse(&record.plan, &record.visits, &record.findings, &record.verdicts);
}

/// Refuses to resume if a contender or a load tool of the earlier part is missing: visits name contenders and cells
/// by their index in the plan.
fn check_installed(present: &Plan, planned: &Plan) -> Result<(), LabError> {
    if present.cells.len() != planned.cells.len() {
        let reason =
            "a load tool that took part is no longer installed: install it again".to_owned();
        return Err(LabError::Earlier { path: PathBuf::from(&planned.name), reason });
    }
    let is_missing =
        |one: &&Contender| !present.contenders.iter().any(|other| other.name == one.name);
    planned.contenders.iter().find(is_missing).map_or(Ok(()), |missing| {
        let reason = format!(
            "{} took part, but {} is no longer installed: install it again",
            missing.name, missing.server
        );
        Err(LabError::Earlier { path: PathBuf::from(&planned.name), reason })
    })
}

/// The part of a plan that can be run.
struct Present {
    plan: Plan,
    tools: Tools,
    installed: Vec<Installed>,
    skipped: Vec<Skipped>,
}

/// Leaves out what is not installed. Servers are looked for even if no load tool is left, so that everything that is
/// missing is reported at once.
fn present(plan: Plan, search: &Search) -> Result<Present, LabError> {
    let (plan, tools, without_tool) = with_tools(plan, search)?;
    let nobody_asks = plan.cells.is_empty();
    let (plan, installed, mut skipped) = installed(plan, search)?;
    skipped.extend(without_tool);
    if nobody_asks || plan.contenders.len() < 2 {
        let names = plan.contenders.into_iter().map(|contender| contender.name);
        let present = if nobody_asks { Vec::new() } else { names.collect() };
        return Err(LabError::TooFew { present, skipped });
    }
    Ok(Present { plan, tools, installed, skipped })
}

/// The load tools that the plan names, without the cells and contenders whose tool is not installed.
fn with_tools(mut plan: Plan, search: &Search) -> Result<(Plan, Tools, Vec<Skipped>), LabError> {
    let of_cells = plan.cells.iter().map(|cell| &cell.workload.client);
    let of_contenders = plan.contenders.iter().filter_map(|one| one.work.client.as_ref());
    let mut names: Vec<String> = of_cells.chain(of_contenders).cloned().collect();
    names.sort();
    names.dedup();
    let (mut tools, mut skipped) = (Tools::new(), Vec::new());
    for name in names.into_iter().filter(|name| name != Workload::OURS) {
        let client = clients::named(&name)?;
        match client.find(search) {
            Some(found) => drop(tools.insert(name, Tool { client, found })),
            None => skipped.push(Skipped {
                reason: format!("{name} is not installed"),
                remedy: client.remedy(),
                name: format!("client {name}"),
            }),
        }
    }
    let is_there = |client: &String| client == Workload::OURS || tools.contains_key(client);
    plan.keep(|contender| contender.work.client.as_ref().is_none_or(is_there));
    plan.keep_cells(|cell| is_there(&cell.workload.client));
    Ok((plan, tools, skipped))
}

/// Divides the contenders into those whose server is installed and those that are left out.
fn installed(
    mut plan: Plan,
    search: &Search,
) -> Result<(Plan, Vec<Installed>, Vec<Skipped>), LabError> {
    let (mut installed, mut skipped) = (Vec::new(), Vec::new());
    for contender in &plan.contenders {
        let adapter = adapters::named(&contender.server)?;
        match adapter.installed_with(search, &contender.settings) {
            Ok(found) => installed.push(Installed { adapter, found }),
            Err(Missing { reason, remedy }) => {
                skipped.push(Skipped { name: contender.name.clone(), reason, remedy });
            }
        }
    }
    plan.keep(|contender| skipped.iter().all(|left_out| left_out.name != contender.name));
    Ok((plan, installed, skipped))
}

#[cfg(test)]
mod tests {
    use record::{Cell, PairVerdict, Visit, VisitState};

    use super::*;

    #[test]
    fn a_run_with_a_contender_that_was_never_measured_is_not_complete() {
        let named = |name: &str| Contender { name: name.into(), ..Contender::default() };
        let visit =
            |contender: usize, state: VisitState| Visit { contender, state, ..Visit::default() };
        let failed = VisitState::Failed { reason: "it died".into(), log_tail: String::new() };
        let decided = PairVerdict {
            cell: 0,
            metric: record::Metric::Throughput,
            a: 0,
            b: 1,
            estimate: None,
            verdict: Verdict::NoDifference { margin: units::Share(0.02) },
            short_of: None,
        };
        let mut run = RunRecord {
            format: RunRecord::FORMAT.to_owned(),
            joust: String::new(),
            started: String::new(),
            seconds: 1.0,
            ending: Ending::Blocks,
            plan: Plan { contenders: ["a", "b", "c"].map(named).into(), ..Plan::default() },
            facts: record::Facts::default(),
            layout: record::CpuLayout::default(),
            contenders: Vec::new(),
            skipped: Vec::new(),
            visits: vec![visit(0, VisitState::Measured), visit(1, VisitState::Measured)],
            findings: Vec::new(),
            verdicts: vec![decided],
            analysis: Analysis::default(),
            integrity: Integrity::default(),
        };
        run.visits.push(visit(2, failed));
        assert_eq!(outcome(&run), Outcome::NotMeasured(vec!["c".to_owned()]));
        run.visits.push(visit(2, VisitState::Measured));
        assert_eq!(outcome(&run), Outcome::Complete);
        run.ending = Ending::Incomplete { reason: String::new() };
        assert_eq!(outcome(&run), Outcome::Incomplete);
    }

    #[test]
    fn a_run_does_not_go_on_without_a_contender_or_a_cell_that_it_had() {
        let named = |name: &str| Contender { name: name.into(), ..Contender::default() };
        let planned = Plan {
            contenders: vec![named("a"), named("b")],
            cells: vec![Cell::default(), Cell::default()],
            ..Plan::default()
        };
        check_installed(&planned, &planned).unwrap();
        let (mut fewer, mut narrower) = (planned.clone(), planned.clone());
        fewer.contenders.pop();
        narrower.cells.pop();
        for (present, says) in [(fewer, "b took part"), (narrower, "load tool that took part")] {
            let error = check_installed(&present, &planned).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn what_is_not_here_is_left_out_of_a_plan_and_named() {
        let one = |name: &str, server: &str| Contender {
            name: name.into(),
            server: server.into(),
            ..Contender::default()
        };
        let plan = |contenders| Plan {
            contenders,
            cells: vec![Cell::only(Workload::default())],
            ..Plan::default()
        };
        let nowhere = Path::new("/nonexistent/joust");
        let names = |skipped: Vec<Skipped>| -> Vec<String> {
            skipped.into_iter().map(|one| one.name).collect()
        };
        let running = [one("a", "url"), one("b", "url")];
        let three = plan([&running[..], &[one("c", "joust")]].concat());
        let (left, skipped) = here(&three, nowhere).unwrap();
        assert_eq!(left.unwrap().contenders, running);
        assert_eq!(names(skipped), ["c"]);
        let two = plan(vec![one("a", "url"), one("c", "joust")]);
        let (left, skipped) = here(&two, nowhere).unwrap();
        assert_eq!((left, names(skipped)), (None, vec!["c".to_owned()]));
    }
}
