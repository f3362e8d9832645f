//! `joust run` without a study file: the contenders and flags of the command line become a study, which is saved in the
//! results folder. Owns the flags, the first lines that announce the run, and the last line of a pair. Start reading at
//! [`of`].

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use lab::gate::{GateAnswer, gate};
use lab::look::{LookError, look};
use lab::study::brief::{Brief, BriefError, Who, Wishes};
use lab::study::{self, Form};
use miette::miette;
use record::{Plan, RunRecord, Skipped};
use units::{Bytes, Nanos, PerSecond};

use crate::trouble::{Ended, Trouble};

/// Name of the study file in the results folder.
pub const STUDY: &str = "study.toml";

/// The text below the options.
pub const AT_LENGTH: &str = "\
CONTENDER is one of three: the name of a server (`joust servers` lists them), with settings in brackets if \
you like, as in 'nginx[worker_processes=2,sendfile=off]'; a command that contains {port}, and {docroot} for the \
folder to serve; or the http:// URL of a running server. joust first starts each contender alone to see what it \
serves, then compares them. The folder of results gets a study file (study.toml) that repeats the run.
STUDY is a single word that names an existing file or ends in .toml; all other words are contenders. Without \
any, joust runs the built-in study `quick`.

Examples:
  joust run nginx lighttpd
  joust run nginx 'python3 -m http.server {port} -d {docroot}'
  joust run 'joust[model=prefork]' 'joust[model=reactor]' -c 100 --page 100KB -d 2m
  joust run http://127.0.0.1:8080/ http://127.0.0.1:8081/ --rate 500/s
  joust run --base './server-old {port}' --candidate './server-new {port}'

Exit codes:
  0   success; with --candidate: it is not worse than the base by more than the margin (2 %)
  1   failure, as when a contender does not answer
  2   usage error
  3   interrupted, every verdict is withheld, or a contender never answered; with --candidate: undecided or
      withheld
  99  with --candidate: it is worse than the base by more than the margin

Ctrl-C ends the run after the current visit: the finished visits are kept and marked incomplete, and \
--resume DIR continues the run. A second Ctrl-C ends at once.

A run in joust-results/ is added to the history there (see `joust history`). With --out, or --resume of a \
folder elsewhere, it is not; `joust history add DIR` adds it.";

/// Flags beside contenders.
#[derive(clap::Args)]
#[command(next_help_heading = "Without a study file")]
pub struct Flags {
    /// Contender to compare --candidate with
    #[arg(
        long,
        value_name = "CONTENDER",
        requires = "candidate",
        conflicts_with_all = ["words", "resume", "repeat_of"]
    )]
    base: Option<String>,
    /// Contender that may replace --base; exit code 99 if it is worse
    #[arg(long, value_name = "CONTENDER", requires = "base")]
    candidate: Option<String>,
    /// Number of connections [default: 10; 4 without keep-alive]
    #[arg(short, long, value_name = "N")]
    connections: Option<u64>,
    /// Size of the page that contenders serve from {docroot} [default: 3361]
    #[arg(long, value_name = "BYTES")]
    page: Option<Bytes>,
    /// Path to request [default: the page, or / if a contender serves something else]
    #[arg(long, value_name = "PATH")]
    target: Option<String>,
    /// Open loop: send requests at this rate whatever the servers do, as in 500/s
    #[arg(short, long, value_parser = load::parse_rate)]
    rate: Option<PerSecond>,
    /// Open a connection for each request; automatic if a contender closes after each reply
    #[arg(long)]
    no_keepalive: bool,
    /// Metrics that get a verdict, the primary one first: throughput, server_cpu, p50, p99, memory
    #[arg(long, value_name = "METRIC", value_delimiter = ',')]
    metric: Vec<String>,
    /// Set any other key of the study, as in visit.measure=1s or margin=5%
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

impl Flags {
    /// The first of these flags that was given, and the key of a study file that does the same.
    fn typed(&self) -> Option<(&'static str, &'static str)> {
        let all = [
            (self.connections.is_some(), "-c", "connections in [workload]"),
            (self.page.is_some(), "--page", "page in [workload]"),
            (self.target.is_some(), "--target", "target in [workload]"),
            (self.rate.is_some(), "--rate", "rate in [workload]"),
            (self.no_keepalive, "--no-keepalive", "keep_alive in [workload]"),
            (!self.metric.is_empty(), "--metric", "metrics"),
            (!self.set.is_empty(), "--set", "the key itself"),
        ];
        all.into_iter().find(|(is_typed, ..)| *is_typed).map(|(_, flag, key)| (flag, key))
    }
}

/// Whether the arguments name a study file: a single one that exists or has the suffix of one.
pub fn is_study(words: &[String]) -> bool {
    matches!(words, [word] if word.ends_with(".toml") || Path::new(word).is_file())
}

/// The comparison on the command line; `None` if it names a study file or nothing.
pub fn of(
    words: &[String],
    flags: &Flags,
    (budget, seed): (Option<Nanos>, Option<u64>),
) -> Result<Option<Brief>, Trouble> {
    let who = match (&flags.base, &flags.candidate) {
        (Some(base), Some(candidate)) => {
            Who::Pair { base: base.clone(), candidate: candidate.clone() }
        }
        _ if words.is_empty() || is_study(words) => {
            return flags.typed().map_or(Ok(None), |(flag, key)| {
                let help = match words {
                    [] => format!("name them, as in `joust run nginx lighttpd {flag} …`"),
                    _ => format!("in the study file, set {key}"),
                };
                let message = format!("{flag} needs contenders on the command line");
                Err(Trouble::usage(miette!(help = help, "{message}")))
            });
        }
        _ => Who::Listed(words.to_vec()),
    };
    let wishes = Wishes {
        connections: flags.connections,
        budget,
        page: flags.page,
        target: flags.target.clone(),
        rate: flags.rate,
        no_keep_alive: flags.no_keepalive,
        metrics: flags.metric.clone(),
        set: flags.set.clone(),
        seed,
        cwd: std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/")),
        line: line(),
    };
    Brief::new(&who, wishes).map(Some).map_err(|error| match words {
        [one] if !one.contains(['{', '[', ' ', ':']) => neither(one, error),
        _ => usage(error),
    })
}

fn usage(BriefError { message, help }: BriefError) -> Trouble {
    Trouble::usage(miette!(help = help, "{message}"))
}

/// The error for a single argument that is not a file: a mistyped study or a mistyped contender.
fn neither(word: &str, error: BriefError) -> Trouble {
    let path = Path::new(word);
    if word == "quick" {
        return Trouble::usage(miette!(
            help = "`joust run` without STUDY runs `quick`",
            "cannot read {word}: it is not a file"
        ));
    }
    if lab::adapters::named(word).is_ok() {
        return usage(error);
    }
    let near = super::shipped(path);
    let near = if near.is_file() { Some(near.display().to_string()) } else { super::near(path) };
    let near = near.map_or(String::new(), |near| format!(" (did you mean {near}?)"));
    Trouble::usage(miette!(
        help = format!(
            "a study must be an existing file, or end in .toml{near}; for a contender: {}",
            error.help
        ),
        "{}, and it is not a study file",
        error.message
    ))
}

/// The command line, quoted for a shell.
fn line() -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,%@+".contains(c);
    let word = |word: String| match !word.is_empty() && word.chars().all(is_plain) {
        true => word,
        false => format!("'{}'", word.replace('\'', r"'\''")),
    };
    let words = std::env::args_os().skip(1).map(|one| word(one.to_string_lossy().into_owned()));
    std::iter::once("joust".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

/// The plan, parsed from its text like a study file.
pub fn plan(brief: &Brief, form: Form) -> Result<Plan, Trouble> {
    let plan = study::parse(STUDY, &brief.text(), form);
    plan.map_err(|error| Trouble::usage(super::pointing(error)))
}

/// Fails if a contender is not installed: a named contender is never left out.
pub fn all_here(left_out: &[Skipped]) -> Result<(), Trouble> {
    left_out.first().map_or(Ok(()), |Skipped { reason, remedy, .. }| {
        Err(Trouble::failed(miette!(help = format!("to get it: {remedy}"), "{reason}")))
    })
}

/// Requests a page from each contender alone, to learn how all of them can be loaded.
pub fn look_at_all(
    brief: &mut Brief,
    plan: &Plan,
    (joust, interrupt): (&Path, &AtomicBool),
    quiet: bool,
) -> Result<(), Trouble> {
    let bar = crate::progress::Waiting::new(quiet);
    let looked = look(plan, joust, interrupt, &mut |name| {
        bar.says(format!("starting {name} to see what it serves"));
    });
    drop(bar);
    let looked = looked.map_err(not_as_wanted)?;
    let all = plan.contenders.iter().zip(&looked);
    let closing = all.filter(|(_, seen)| !seen.keeps_alive).map(|(one, _)| one.name.clone());
    brief.close_as(closing.collect());
    Ok(())
}

fn not_as_wanted(error: LookError) -> Trouble {
    match error {
        LookError::Lab(error) => super::trouble(error),
        LookError::Interrupted => Trouble { ended: Ended::Incomplete, report: miette!("{error}") },
        LookError::Unlike { .. } => Trouble::failed(miette!(
            help = "add {docroot} to a command, so that it serves joust's page, or name a path that all \
                    answer alike with --target",
            "{error}"
        )),
        LookError::Contender { help: "", .. } => Trouble::failed(miette!("{error}")),
        LookError::Contender { help, .. } => Trouble::failed(miette!(help = help, "{error}")),
    }
}

/// What the run does, what joust had to choose, and the study file that repeats it.
pub fn first_lines(brief: &Brief, plan: &Plan, study: &Path) -> Vec<String> {
    let names = brief.names();
    let (last, others) = names.split_last().expect("there are at least two");
    let work = &plan.cells[0].workload;
    let page = match work.is_page() {
        true => format!("a page of {}", work.page),
        false => format!("the path {}", work.target),
    };
    let kept = if work.keep_alive { "with keep-alive" } else { "without keep-alive" };
    let pace = work.rate.map_or(String::new(), |rate| format!(" at {rate}"));
    let mut lines = vec![format!(
        "Comparing {} and {last} ({} contenders): {page}, {} connections {kept}{pace}, {} at most.",
        others.join(", "),
        names.len(),
        work.connections,
        plan.budget
    )];
    if let [first, ..] = brief.closing() {
        lines.push(format!(
            "Without keep-alive for all contenders, because {first} closes each connection after its reply."
        ));
    }
    let bound = brief.bound_to_loopback();
    if !bound.is_empty() {
        lines.push(format!(
            "Over loopback for all contenders, because {} cannot run in a network namespace.",
            bound.join(", ")
        ));
    }
    lines.extend(brief.note_on_p99(plan));
    lines.push(format!("Study file that repeats this run: {}", study.display()));
    lines
}

/// The exit code of a pair, and the line that says why.
pub fn judged(run: &RunRecord) -> (Ended, String) {
    let gate = gate(&run.plan, &run.verdicts);
    let quantity = run.plan.metrics[0].info().quantity;
    let margin = run.plan.margin;
    let figure = match gate.ratio {
        Some((ratio, _, high)) if high.is_infinite() => {
            format!("{quantity} is at least {ratio:.3}x that of the base")
        }
        Some((ratio, low, _)) if low <= 0.0 => {
            format!("{quantity} is at most {ratio:.3}x that of the base")
        }
        Some((ratio, low, high)) => {
            format!("{quantity} is {ratio:.3}x [{low:.3}, {high:.3}] that of the base")
        }
        None => quantity.to_owned(),
    };
    let (ended, said) = match gate.answer {
        GateAnswer::Worse => {
            (Ended::GoalBroken, format!("a regression: {figure}, worse by more than {margin}"))
        }
        GateAnswer::NotWorse => {
            (Ended::Well, format!("no regression: {figure}, not worse by more than {margin}"))
        }
        GateAnswer::Undecided => (
            Ended::Incomplete,
            format!(
                "undecided: {figure} may or may not be worse by more than {margin}; allow more time \
                 (-d) or a wider margin (--set margin=5%)"
            ),
        ),
        GateAnswer::Withheld { reason } => {
            (Ended::Incomplete, format!("no verdict on {figure}: {reason}"))
        }
    };
    (ended, format!("{said} (exit code {})", ended as u8))
}
