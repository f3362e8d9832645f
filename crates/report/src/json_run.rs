//! Owns the shape in which a run is given to programs. A name in it is never removed and never changes its meaning
//! under the same [`FORMAT`]. Start reading at [`RunFigures`].

use record::{Ending, Finding, PairVerdict, RunRecord, Severity, VisitState};
use serde::Serialize;

use crate::cells::{CellView, cells};
use crate::figures::rounded;
use crate::headline::headline;
use crate::integrity::changed;
use crate::measured::{self, Measured};
use crate::pairs_csv::said;
use crate::sheets::word;
use crate::trust::trust;
use crate::wording::{Reading, name_of, plain, verdict};

/// Name and version of the shape, of runs and of loads.
pub(crate) const FORMAT: &str = "joust-figures/1";

/// A run.
#[derive(Serialize)]
pub(crate) struct RunFigures {
    #[serde(flatten)]
    head: RunHead,
    cells: Vec<CellFigures>,
    findings: Vec<FindingFacts>,
}

/// Which run it is, and how far it can be trusted.
#[derive(Serialize)]
pub(crate) struct RunHead {
    format: &'static str,
    kind: &'static str,
    joust: String,
    study: String,
    question: String,
    started: String,
    seconds: Option<f64>,
    seed: u64,
    /// Differences below this share do not matter.
    margin: Option<f64>,
    trust: Trust,
}

/// How far the run can be trusted.
#[derive(Serialize)]
struct Trust {
    is_complete: bool,
    /// Why the run ended: "narrow", "blocks", "budget" or "incomplete".
    ended: Option<String>,
    /// Why it is not complete.
    incomplete_reason: Option<String>,
    /// Whether the run file was changed after it was measured; null if it cannot be told.
    is_changed: Option<bool>,
    visits: usize,
    visits_disturbed: usize,
    visits_failed: usize,
    blocks_max: u32,
    /// Confirmed findings that withhold verdicts.
    findings_void: usize,
    /// Confirmed findings that make a throughput a bound.
    findings_bound: usize,
    /// The same in words.
    text: String,
}

/// A cell.
#[derive(Serialize)]
struct CellFigures {
    name: String,
    /// The answer in words.
    headline: Vec<String>,
    contenders: Vec<ContenderFigures>,
    pairs: Vec<PairFigures>,
}

/// A contender of a cell.
#[derive(Serialize)]
struct ContenderFigures {
    name: String,
    version: String,
    visits_measured: usize,
    visits_begun: usize,
    requests_done: Option<u64>,
    requests_failed: Option<u64>,
    figures: Vec<Measured>,
}

/// A pair on one metric; the ratio is a over b, as the run file has it.
#[derive(Serialize)]
pub(crate) struct PairFigures {
    pub(crate) metric: &'static str,
    pub(crate) a: String,
    pub(crate) b: String,
    /// "ratio", "at_least", "at_most", "no_difference", "undecided" or "withheld".
    pub(crate) says: &'static str,
    /// The better side, if the verdict proves one.
    better: Option<String>,
    /// In words, from the better side; "1.32x [1.28, 1.36]".
    text: String,
    pub(crate) ratio: Option<f64>,
    /// The 95 % interval.
    pub(crate) low: Option<f64>,
    pub(crate) high: Option<f64>,
    /// The bound of "at_least" and "at_most".
    bound: Option<f64>,
    p_holm: Option<f64>,
    blocks: Option<u32>,
    /// Blocks that it should have at least, if it has fewer.
    short_of_blocks: Option<u32>,
    more_blocks: Option<u32>,
    reason: Option<String>,
}

/// A finding of the doctor.
#[derive(Serialize)]
pub(crate) struct FindingFacts {
    check: String,
    severity: Option<String>,
    certainty: Option<String>,
    /// Null: all cells.
    cell: Option<String>,
    /// Empty: all contenders.
    contenders: Vec<String>,
    share: Option<f64>,
    evidence: String,
    meaning: String,
    remedy: String,
}

impl RunFigures {
    pub(crate) fn of(record: &RunRecord) -> Self {
        let finding = |finding| FindingFacts::of(finding, record);
        Self {
            head: RunHead::of(record),
            cells: cells(record).iter().map(|view| CellFigures::of(view, record)).collect(),
            findings: record.findings.iter().map(finding).collect(),
        }
    }
}

impl RunHead {
    pub(crate) fn of(record: &RunRecord) -> Self {
        Self {
            format: FORMAT,
            kind: "run",
            joust: plain(&record.joust),
            study: plain(&record.plan.name),
            question: plain(&record.plan.question),
            started: plain(&record.started),
            seconds: rounded(record.seconds),
            seed: record.plan.seed,
            margin: rounded(record.plan.margin.0),
            trust: Trust::of(record),
        }
    }
}

impl Trust {
    fn of(record: &RunRecord) -> Self {
        let count =
            |is: fn(&VisitState) -> bool| record.visits.iter().filter(|one| is(&one.state)).count();
        let acting = |severity| record.findings.iter().filter(|one| one.acts(severity)).count();
        let (ended, incomplete_reason) = match &record.ending {
            Ending::Narrow => ("narrow", None),
            Ending::Blocks => ("blocks", None),
            Ending::Budget => ("budget", None),
            Ending::Stopped { .. } => ("stopped", None),
            Ending::Incomplete { reason } => ("incomplete", Some(plain(reason))),
        };
        let is_known = record.integrity != record::Integrity::Unknown;
        Self {
            is_complete: incomplete_reason.is_none(),
            ended: Some(ended.to_owned()),
            incomplete_reason,
            is_changed: is_known.then(|| changed(record).is_some()),
            visits: record.visits.len(),
            visits_disturbed: count(|state| *state == VisitState::Disturbed),
            visits_failed: count(|state| matches!(state, VisitState::Failed { .. })),
            blocks_max: record.plan.blocks.max,
            findings_void: acting(Severity::Void),
            findings_bound: acting(Severity::Bound),
            text: trust(record, None),
        }
    }
}

impl CellFigures {
    fn of(view: &CellView, record: &RunRecord) -> Self {
        let metrics = measured::metrics(record, view);
        let contender = |standing: &crate::standing::Standing| {
            let counts = standing.failed_of_done();
            let facts = view.run.contenders.get(standing.index);
            ContenderFigures {
                name: standing.name.clone(),
                version: facts.map_or_else(String::new, |facts| plain(&facts.version)),
                visits_measured: standing.visits_measured,
                visits_begun: standing.visits_begun,
                requests_done: counts.map(|(_, done)| done),
                requests_failed: counts.map(|(failed, _)| failed),
                figures: measured::of_contender(view, standing, &metrics),
            }
        };
        let lines = headline(&view.run, &view.standings, &view.ranking);
        Self {
            name: view.name.clone(),
            headline: lines.into_iter().map(|line| line.text).collect(),
            contenders: view.standings.iter().map(contender).collect(),
            pairs: view.run.verdicts.iter().map(|pair| PairFigures::of(pair, &view.run)).collect(),
        }
    }
}

impl PairFigures {
    /// `run` is the run that the pair's indices are of.
    pub(crate) fn of(pair: &PairVerdict, run: &RunRecord) -> Self {
        let name = |index| name_of(&run.plan.contenders, index);
        let reading = Reading::new(pair);
        let worded = said(&pair.verdict);
        let estimate = pair.estimate.as_ref();
        let figure = |of: fn(&record::Estimate) -> f64| estimate.map(of).and_then(rounded);
        Self {
            metric: pair.metric.info().name,
            a: name(pair.a),
            b: name(pair.b),
            says: worded.says,
            better: reading.ahead().map(name),
            text: verdict(&reading.verdict),
            ratio: figure(|one| one.ratio),
            low: figure(|one| one.low),
            high: figure(|one| one.high),
            bound: worded.bound.and_then(rounded),
            p_holm: figure(|one| one.p_holm),
            blocks: estimate.map(|one| one.blocks).or(pair.short_of.map(|short| short.blocks)),
            short_of_blocks: pair.short_of.map(|short| short.of),
            more_blocks: worded.more_blocks,
            reason: Some(plain(worded.reason)).filter(|reason| !reason.is_empty()),
        }
    }
}

impl FindingFacts {
    pub(crate) fn of(finding: &Finding, run: &RunRecord) -> Self {
        let cell = finding.cell.and_then(|index| run.plan.cells.get(index));
        let name = |&index: &usize| name_of(&run.plan.contenders, index);
        Self {
            cell: cell.map(|cell| plain(&cell.name)),
            contenders: finding.contenders.iter().map(name).collect(),
            ..Self::of_load(finding)
        }
    }

    /// A finding about the only server.
    pub(crate) fn of_load(finding: &Finding) -> Self {
        Self {
            check: plain(&finding.check),
            severity: word(&finding.severity),
            certainty: word(&finding.certainty),
            cell: None,
            contenders: Vec::new(),
            share: finding.share.and_then(|share| rounded(share.0)),
            evidence: plain(finding.seen()),
            meaning: plain(&finding.meaning),
            remedy: plain(&finding.remedy),
        }
    }
}
