//! Owns the shape in which a load is given to programs, beside that of a run. Start reading at [`LoadFigures`].

use std::collections::BTreeMap;

use record::{Judgement, LoadRecord, RequestCounts};
use serde::Serialize;

use crate::figures::rounded;
use crate::json_run::{FORMAT, FindingFacts};
use crate::measured::{Measured, of_load};
use crate::sheets::word;
use crate::wording::plain;

/// A load.
#[derive(Serialize)]
pub(crate) struct LoadFigures {
    #[serde(flatten)]
    head: LoadHead,
    figures: Vec<Measured>,
    goals: Vec<GoalFacts>,
    findings: Vec<FindingFacts>,
}

/// Which load it is, and its counts.
#[derive(Serialize)]
pub(crate) struct LoadHead {
    format: &'static str,
    kind: &'static str,
    url: String,
    engine: String,
    /// Start by the clock of its machine; null in older files.
    began_unix_ms: Option<u64>,
    /// Length of the window.
    seconds: Option<f64>,
    connections: u32,
    threads: u32,
    is_interrupted: bool,
    requests: RequestCounts,
    /// Failed requests by kind; a kind that did not occur is left out.
    failed_by_kind: BTreeMap<String, u64>,
    /// Complete replies by status.
    status: BTreeMap<u16, u64>,
    bytes_read: u64,
    bytes_written: u64,
    /// Of an open loop: the requested rate, requests/s; null in a closed loop.
    asked_per_s: Option<f64>,
}

/// A goal, and whether it was met.
#[derive(Serialize)]
pub(crate) struct GoalFacts {
    pub(crate) goal: String,
    /// Null: the sample is too small to say.
    pub(crate) met: Option<bool>,
    /// Milliseconds, a share from 0 to 1, or requests/s.
    value: Option<f64>,
    pub(crate) text: String,
}

impl LoadFigures {
    pub(crate) fn of(record: &LoadRecord) -> Self {
        Self {
            head: LoadHead::of(record),
            figures: of_load(record),
            goals: goals(record),
            findings: record.findings.iter().map(FindingFacts::of_load).collect(),
        }
    }
}

impl LoadHead {
    pub(crate) fn of(record: &LoadRecord) -> Self {
        let occurred = record.errors.each().filter(|(_, count)| *count > 0);
        let kinds = occurred.filter_map(|(kind, count)| Some((word(&kind)?, count)));
        Self {
            format: FORMAT,
            kind: "load",
            url: plain(&record.plan.url),
            engine: plain(&record.engine),
            began_unix_ms: record.began_unix_ms,
            seconds: rounded(record.seconds),
            connections: record.connections,
            threads: record.threads,
            is_interrupted: record.interrupted,
            requests: record.requests,
            failed_by_kind: kinds.collect(),
            status: record.status.clone(),
            bytes_read: record.bytes.read,
            bytes_written: record.bytes.written,
            asked_per_s: record.open_loop.and_then(|open| rounded(open.asked_per_s)),
        }
    }
}

/// The goals of a load's plan, judged.
pub(crate) fn goals(record: &LoadRecord) -> Vec<GoalFacts> {
    let facts = |judged: Judgement| GoalFacts {
        goal: judged.goal.to_string(),
        met: judged.met,
        value: judged.value.and_then(rounded),
        text: plain(&judged.text),
    };
    record.plan.goals.iter().map(|goal| facts(goal.judge(record))).collect()
}
