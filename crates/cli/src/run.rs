//! `joust run`: makes a plan from a study, runs it, and writes a folder of reports and an exit code.

mod brief;
#[cfg(feature = "fleet")]
mod fleet;
mod watch;

use std::path::{Path, PathBuf};

use lab::LabError;
use lab::journal::{self, Earlier};
use lab::results::ResultsFolder;
use lab::runner::{self, Outcome, RunOptions};
use lab::study::brief::Brief;
use lab::study::{self, Form, StudyError};
use miette::{IntoDiagnostic as _, LabeledSpan, NamedSource, Report, miette};
use record::{Ending, Plan, RunRecord};
use report::{OUTPUTS, Options, Written};
use units::Nanos;

use crate::output;
use crate::run_file::{self, resume_command};
use crate::screen::Wish;
use crate::trouble::{Ended, Trouble};
use watch::RunScreen;

/// Most studies that are listed after a mistyped name.
const STUDIES_NAMED_MAX: usize = 20;

/// Compare web servers head to head: by default those on this machine, in 90 seconds
#[derive(clap::Args)]
#[command(after_help = brief::AT_LENGTH)]
pub struct Args {
    /// A study file (TOML), or at least two contenders: servers, commands with {port}, URLs
    #[arg(value_name = "STUDY | CONTENDER", conflicts_with_all = ["resume", "repeat_of"])]
    words: Vec<String>,
    #[command(flatten)]
    brief: brief::Flags,
    /// Continue a run that was interrupted or killed; nothing is measured twice
    #[arg(long, value_name = "DIR", conflicts_with_all = ["repeat_of", "out", "seed", "only", "short"])]
    resume: Option<PathBuf>,
    /// Measure as many blocks again for a finished run, and judge old and new blocks together
    #[arg(long, value_name = "RUN", conflicts_with_all = ["seed", "only", "short"])]
    repeat_of: Option<PathBuf>,
    /// Folder for the results [default: joust-results/DATE-STUDY/]
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Time limit for the whole run, as in 30 (seconds) or 2m [default: the study's budget; without a study
    /// 45 s, plus 15 s for each contender after the third]
    #[arg(short = 'd', long, value_name = "TIME", value_parser = Nanos::from_flag)]
    budget: Option<Nanos>,
    /// Seed for the order of visits [default: the study's]
    #[arg(long)]
    seed: Option<u64>,
    /// Run the study's short form, a first look that takes minutes
    #[arg(long)]
    short: bool,
    /// Run only these contenders
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    only: Vec<String>,
    /// Print the plan, its duration and what is not installed here; run nothing
    #[arg(long)]
    check: bool,
    /// Print the JSON Schema of study files, for editors; run nothing
    #[arg(long, conflicts_with = "check")]
    schema: bool,
    #[cfg(feature = "fleet")]
    #[command(flatten)]
    fleet: fleet::FleetFlags,
    /// Print only the last line
    #[arg(short, long)]
    quiet: bool,
    /// A progress bar instead of the live screen
    #[arg(long)]
    plain: bool,
}

pub fn main(args: &Args) -> Result<Ended, Trouble> {
    if args.schema {
        let schema = serde_json::to_string_pretty(&study::schema()).into_diagnostic();
        output::stdout((schema.map_err(Trouble::failed)? + "\n").as_bytes())?;
        return Ok(Ended::Well);
    }
    let earlier = earlier(args)?;
    let mut brief = brief::of(&args.words, &args.brief, (args.budget, args.seed))?;
    let mut plan = plan(args, earlier.as_ref(), brief.as_ref())?;
    let joust_binary = std::env::current_exe().into_diagnostic().map_err(Trouble::failed)?;
    runner::check_settings(&plan, &joust_binary).map_err(trouble)?;
    if args.check {
        let (here, left_out) = runner::here(&plan, &joust_binary).map_err(trouble)?;
        let here = report::LocalPlan { plan: here.as_ref(), left_out: &left_out };
        output::stdout(
            report::plan_text(&plan, here, &crate::terminal::report_options()).as_bytes(),
        )?;
        return Ok(Ended::Well);
    }
    let interrupt = sys::interrupt::install().into_diagnostic().map_err(Trouble::failed)?;
    if brief.is_some() {
        brief::all_here(&runner::here(&plan, &joust_binary).map_err(trouble)?.1)?;
    }
    let allowed = sys::affinity::allowed().into_diagnostic().map_err(Trouble::failed)?;
    #[cfg(feature = "fleet")]
    let elsewhere = fleet::elsewhere(&args.fleet)?;
    #[cfg(not(feature = "fleet"))]
    let elsewhere = None;
    // The folder comes first: a missing permission should be reported before minutes are spent.
    let folder = folder(args, &plan)?;
    if let Some(brief) = &mut brief {
        brief::look_at_all(brief, &plan, (&joust_binary, interrupt), args.quiet)?;
        plan = self::plan(args, None, Some(brief))?;
        begin(brief, &plan, &folder, args.quiet)?;
    }
    let options = RunOptions {
        joust_binary,
        joust_version: env!("CARGO_PKG_VERSION").to_owned(),
        journal: Some(folder.path().to_owned()),
        earlier,
        elsewhere,
    };
    let wish = Wish { quiet: args.quiet, plain: args.plain };
    let mut screen = RunScreen::new(wish, interrupt);
    let run = runner::run(plan, &options, &mut screen, interrupt).map_err(|error| {
        // It failed before anything was measured, so there is nothing new to continue from.
        if options.earlier.is_none() {
            folder.remove(journal::NAME);
            if brief.is_some() {
                folder.remove(brief::STUDY);
            }
        }
        trouble(error)
    })?;
    drop(screen);
    if options.elsewhere.is_some() {
        // No server runs any more that this could disturb. Where it is refused, reports take longer.
        sys::affinity::pin(&allowed).ok();
    }
    if run.visits.is_empty() && matches!(run.ending, Ending::Incomplete { .. }) {
        return Ok(nothing_measured(&folder, options.earlier.is_none(), brief.is_some()));
    }
    finish(run, &folder, args)
}

/// Saves the run, shows it, and adds it to the history.
fn finish(mut run: RunRecord, folder: &ResultsFolder, args: &Args) -> Result<Ended, Trouble> {
    let quiet = args.quiet;
    let again = resume_command(folder.path());
    #[cfg(feature = "fleet")]
    let again = again + &args.fleet.again();
    if let Ending::Incomplete { reason } = &mut run.ending {
        reason.push_str(&format!("; `{again}` continues it"));
    }
    let saved = save(folder, &run);
    if saved.is_ok() {
        folder.remove(journal::NAME);
    }
    if matches!(run.ending, Ending::Incomplete { .. }) || saved.is_err() {
        crate::terminal::say(&format!(
            "joust: the finished visits are kept; `{again}` continues the run"
        ));
    }
    // Shown even if it could not be saved: on a full disk this is all that is left of the run.
    if !quiet || saved.is_err() {
        let text = report::output("text").and_then(|text| text.run.as_ref());
        let text = text.expect("text shows runs");
        output::stdout(&text.bytes(&run, &crate::terminal::report_options()))?;
    }
    saved?;
    #[cfg(feature = "history-database")]
    crate::history::remember(&folder.path().join("run.json"), &run);
    output::stdout(format!("{}\n", folder.path().display()).as_bytes())?;
    ended(&run, is_pair(&run.plan))
}

/// Ends a run that was interrupted before its first visit: nothing is kept, so nothing can be continued. Only
/// what this run wrote is removed: a study file in the folder may be the user's own.
fn nothing_measured(folder: &ResultsFolder, is_new: bool, has_written_study: bool) -> Ended {
    if is_new {
        folder.remove(journal::NAME);
        if has_written_study {
            folder.remove(brief::STUDY);
        }
    }
    crate::terminal::say("joust: interrupted before anything was measured; nothing is kept");
    Ended::Incomplete
}

/// Whether the run compares a candidate with a base. It is decided by the names, so that a resumed run and a study file
/// count too.
fn is_pair(plan: &Plan) -> bool {
    plan.contenders.iter().map(|one| one.name.as_str()).eq(["base", "candidate"])
}

/// The exit code of a run; of a pair with the line that says why.
fn ended(run: &RunRecord, is_pair: bool) -> Result<Ended, Trouble> {
    if is_pair && !matches!(run.ending, Ending::Incomplete { .. }) {
        let (ended, line) = brief::judged(run);
        output::stdout(format!("{line}\n").as_bytes())?;
        return Ok(ended);
    }
    Ok(match runner::outcome(run) {
        Outcome::Complete => Ended::Well,
        Outcome::Incomplete | Outcome::AllWithheld => Ended::Incomplete,
        Outcome::NotMeasured(names) => {
            crate::terminal::say(&format!(
                "joust: no visit of {} was measured, so its verdicts are withheld (exit code 3)",
                names.join(", ")
            ));
            Ended::Incomplete
        }
    })
}

/// Saves the study of a brief in the results folder, and announces what follows.
fn begin(brief: &Brief, plan: &Plan, folder: &ResultsFolder, quiet: bool) -> Result<(), Trouble> {
    let study = folder.create(brief::STUDY, brief.text().as_bytes()).map_err(trouble)?;
    let lines = if quiet { Vec::new() } else { brief::first_lines(brief, plan, &study) };
    // Wrapped at words: a terminal would break a line inside one.
    let width = crate::terminal::report_options().width;
    lines
        .iter()
        .flat_map(|line| report::wrapped(line, width))
        .for_each(|line| crate::terminal::say(&line));
    Ok(())
}

/// The run that this one continues.
fn earlier(args: &Args) -> Result<Option<Earlier>, Trouble> {
    let earlier = match (&args.resume, &args.repeat_of) {
        (Some(folder), _) => journal::go_on(folder),
        (None, Some(run)) => journal::repeat(run),
        (None, None) => return Ok(None),
    };
    earlier.map(Some).map_err(trouble)
}

fn plan(args: &Args, earlier: Option<&Earlier>, brief: Option<&Brief>) -> Result<Plan, Trouble> {
    if let Some(Earlier { journal, before }) = earlier {
        let too_small =
            args.budget.and_then(|more| study::budget_holds_no_block(&journal.plan, more));
        if let Some(reason) = too_small {
            return Err(Trouble::usage(miette!(help = "raise --budget", "{reason}")));
        }
        let mut plan = journal.plan.clone();
        // A budget on the command line is for the rest of the run.
        plan.budget = args.budget.map_or(plan.budget, |more| before.elapsed + more);
        return Ok(plan);
    }
    let read = |form| match (brief, args.words.first()) {
        (Some(brief), _) => brief::plan(brief, form),
        (None, Some(path)) => study::read(path.as_ref(), form).map_err(trouble),
        (None, None) => Ok(study::quick()),
    };
    let mut plan = read(if args.short { Form::Short } else { Form::Full })?;
    if args.short && plan == read(Form::Full)? {
        crate::terminal::say(&format!(
            "joust: study {} has no short form (neither [short] nor an axis with `short`), so --short \
             changes nothing",
            plan.name
        ));
    }
    plan.budget = args.budget.unwrap_or(plan.budget);
    plan.seed = args.seed.unwrap_or(plan.seed);
    if brief.is_some() && !args.only.is_empty() {
        return Err(Trouble::usage(miette!(
            help = "leave --only out, and name only the contenders that you want",
            "--only needs a study file, but the contenders are on the command line"
        )));
    }
    if !args.only.is_empty() {
        keep_only(&mut plan, &args.only)?;
    }
    if let Some(reason) = study::budget_too_small(&plan) {
        return Err(Trouble::usage(miette!(help = "raise --budget (-d)", "{reason}")));
    }
    Ok(plan)
}

fn keep_only(plan: &mut Plan, names: &[String]) -> Result<(), Trouble> {
    let has = |plan: &Plan, name: &String| plan.contenders.iter().any(|c| c.name == *name);
    if let Some(unknown) = names.iter().find(|name| !has(plan, name)) {
        let known: Vec<&str> = plan.contenders.iter().map(|c| c.name.as_str()).collect();
        return Err(Trouble::usage(miette!(
            help = format!("its contenders are {}", known.join(", ")),
            "study {} has no contender `{unknown}`",
            plan.name
        )));
    }
    plan.keep(|contender| names.contains(&contender.name));
    if plan.contenders.len() < 2 {
        return Err(Trouble::usage(miette!(
            "--only must name at least 2 contenders, got {}",
            plan.contenders.len()
        )));
    }
    Ok(())
}

fn folder(args: &Args, plan: &Plan) -> Result<ResultsFolder, Trouble> {
    let made = match (&args.out, &args.resume) {
        (_, Some(path)) => ResultsFolder::named(path),
        (Some(path), None) => ResultsFolder::fresh(path),
        (None, None) => {
            ResultsFolder::dated(run_file::RESULTS.as_ref(), jiff::Zoned::now().date(), &plan.name)
        }
    };
    made.map_err(trouble)
}

/// The run file comes first: if the disk is full, a report can be made from it later.
fn save(folder: &ResultsFolder, run: &RunRecord) -> Result<(), Trouble> {
    folder.write("run.json", run.to_sealed_json().as_bytes()).map_err(trouble)?;
    for output in OUTPUTS.iter().filter(|output| output.written == Written::WithEveryRun) {
        let Some(render) = &output.run else { continue };
        let name = format!("report.{}", output.extension);
        folder.write(&name, &render.bytes(run, &Options::default())).map_err(trouble)?;
    }
    Ok(())
}

fn trouble(error: LabError) -> Trouble {
    match error {
        LabError::Study(error) => Trouble::usage(pointing(error)),
        LabError::Read { ref path, .. } => Trouble::usage(match (near(path), studies_near(path)) {
            (Some(near), _) => miette!(help = format!("did you mean {near}?"), "{error}"),
            (None, Some(names)) => miette!(help = format!("TOML files there: {names}"), "{error}"),
            (None, None) => miette!(
                help = "STUDY must be a file, as in studies/tools.toml; without it the built-in study `quick` runs",
                "{error}"
            ),
        }),
        LabError::Taken { .. } => Trouble::usage(miette!(
            help = "name another folder with --out; --resume FOLDER continues an interrupted run, \
                    --repeat-of FOLDER adds blocks to a finished one",
            "{error}"
        )),
        LabError::NoBlock { .. } => Trouble::usage(miette!(
            help = "raise the budget (-d), name fewer contenders, or shorten `warm_up` and `measure` in \
                    [visit] of a study file",
            "{error}"
        )),
        LabError::OutOfReach { .. } => Trouble::usage(miette!(
            help =
                "start it yourself at the address of --address, and name its URL as the contender",
            "{error}"
        )),
        LabError::Earlier { .. } | LabError::Refused { .. } => Trouble::usage(miette!("{error}")),
        error => Trouble::failed(miette!("{error}")),
    }
}

/// The path of a study that comes with joust, seen from its folder.
fn shipped(name: &Path) -> PathBuf {
    Path::new("studies").join(name).with_extension("toml")
}

/// The study in the folder of a path, or in studies/, with the name closest to a mistyped one.
fn near(path: &Path) -> Option<String> {
    let typed = path.file_stem()?.to_str()?;
    let folders = [path.parent().unwrap_or(Path::new("")), Path::new("studies")];
    folders.into_iter().find_map(|folder| {
        let files = studies_in(folder);
        let stems: Vec<&str> = files.iter().filter_map(|name| name.strip_suffix(".toml")).collect();
        let near = lab::nearest(typed, stems)?;
        Some(folder.join(format!("{near}.toml")).display().to_string())
    })
}

/// Names of the TOML files of a folder, sorted.
fn studies_in(folder: &Path) -> Vec<String> {
    let here = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let files = std::fs::read_dir(here).into_iter().flatten().flatten();
    let names = files.filter_map(|file| file.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(".toml")).collect();
    names.sort();
    names
}

/// The studies in the folder of a path, if there are any: one of them was probably meant.
fn studies_near(path: &Path) -> Option<String> {
    let mut names = studies_in(path.parent().unwrap_or(Path::new("")));
    if names.len() > STUDIES_NAMED_MAX {
        names.truncate(STUDIES_NAMED_MAX);
        names.push("…".to_owned());
    }
    (!names.is_empty()).then(|| names.join(", "))
}

/// The error with the relevant lines of the study.
fn pointing(error: StudyError) -> Report {
    let StudyError { file, text, span, message, help } = error;
    let label = LabeledSpan::at(span, "here");
    let diagnostic = miette::MietteDiagnostic { help, ..miette::MietteDiagnostic::new(message) };
    Report::new(diagnostic.with_label(label)).with_source_code(NamedSource::new(file, text))
}
