//! The tries and the result of a search for the highest rate that holds. Owns the data; must not know how a rate is
//! chosen. Start reading at [`SearchRecord`].

use serde::{Deserialize, Serialize};
use units::{PerSecond, Share};

use crate::bodies::BodiesVerified;
use crate::goal::Goal;
use crate::json::ReadError;
use crate::judgement::Judgement;
use crate::load::LoadRecord;
use crate::load_plan::LoadPlan;

/// With fewer requests, "most failed" means nothing.
const DUE_MIN: u64 = 10;

/// A search for the highest rate at which goals hold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SearchRecord {
    /// [`SearchRecord::FORMAT`].
    pub format: String,
    /// The goals that must hold.
    pub goals: Vec<Goal>,
    /// Lowest rate that may be tried, if one was set.
    pub low: Option<PerSecond>,
    /// Highest rate that may be tried, if one was set.
    pub high: Option<PerSecond>,
    /// How wide the interval may be: high / low - 1.
    pub precision: Share,
    /// Number of equal outcomes that make an outcome certain.
    pub repeats: u32,
    /// Most tries.
    pub tries_max: u32,
    /// Every try, in order.
    pub tries: Vec<Try>,
    /// Highest rate that held, below `lowest_bad`; `None` if none did.
    pub highest_good: Option<PerSecond>,
    /// Lowest rate that did not hold; `None` if all did.
    pub lowest_bad: Option<PerSecond>,
    /// What limits the upper end.
    pub limit: Limit,
    /// How it ended.
    pub ending: SearchEnding,
    /// The plan of the first try, as its record has it; `None` before it.
    pub plan: Option<LoadPlan>,
}

/// One load at one rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Try {
    /// The requested rate.
    pub rate: PerSecond,
    /// Its outcome.
    pub outcome: TryOutcome,
    /// Whether the generator was a limit: then a rate that did not hold says nothing about the server.
    pub is_generator_limit: bool,
    /// Each goal, in the order of the search.
    pub judgements: Vec<Judgement>,
    /// Due requests per second; a random law makes it differ from `rate`.
    pub asked_per_s: f64,
    /// Started requests per second.
    pub begun_per_s: f64,
    /// Goodput.
    pub rate_per_s: f64,
    /// Median response time.
    pub p50_ms: Option<f64>,
    /// 99th percentile of response time.
    pub p99_ms: Option<f64>,
    /// Requests that failed, were unanswered or were never started.
    pub bad: u64,
    /// Requests that were due.
    pub due: u64,
    /// By how many requests the queue grew, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_grew_by: Option<f64>,
    /// CPU time over wall time of the generator's busiest thread, 0 to 1.
    pub generator_busy: f64,
    /// Bodies whose hash was compared with that of the body before the search.
    #[serde(default)]
    pub bodies_verified: BodiesVerified,
}

/// The outcome of a try.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TryOutcome {
    /// The rate was reached, every goal was met, and the queue did not grow.
    Held,
    /// A goal was broken.
    Broken,
    /// The rate was not reached, whatever the goals say about the requests that were made.
    RateMissed,
    /// The queue grew during the try: the server's capacity is below the rate, and the try was too short to show it
    /// otherwise.
    QueueGrew,
    /// More than half of the requests failed, and no goal sets a limit for failures.
    MostlyFailed,
    /// No goal was broken, but the sample was too small for one: unknown, and not counted as good.
    TooFewSamples,
}

/// What limits the upper end of the interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// The server, or its number of connections.
    Server,
    /// The generator: the server may be capable of more.
    Generator,
    /// The length of a try: one end is missing, and some rates had too few requests to judge the goals.
    Samples,
    /// No limit was reached: all rates that were tried held.
    NotReached,
}

/// How a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchEnding {
    /// Both ends are certain, and within the requested precision.
    Narrow,
    /// Both ends are certain. Between them rates met the goals only in some tries, or had too few requests to be
    /// judged, in a band wider than the requested precision.
    Noisy,
    /// Every rate held, up to the highest that may be tried.
    AllGood,
    /// No rate held, down to the lowest that may be tried or that has enough requests in a try.
    NoneGood,
    /// The maximum number of tries was made before both ends were certain.
    Tries,
    /// It was interrupted.
    Interrupted,
}

impl Try {
    /// The try of a load at that rate.
    pub fn of(rate: PerSecond, goals: &[Goal], load: &LoadRecord) -> Self {
        let judgements: Vec<Judgement> = goals.iter().map(|goal| goal.judge(load)).collect();
        let is_any = |met| judgements.iter().any(|judged| judged.met == met);
        let (bad, due) = (load.bad(), load.due());
        let says_how_many = goals.iter().any(|goal| matches!(goal, Goal::Errors { .. }));
        let mostly_failed = 2 * bad > due && !says_how_many;
        let growth = load.queue_growth();
        let outcome = if is_any(Some(false)) {
            TryOutcome::Broken
        } else if load.rate_missed().is_some() {
            TryOutcome::RateMissed
        } else if mostly_failed && due >= DUE_MIN {
            TryOutcome::MostlyFailed
        } else if growth.is_some() {
            TryOutcome::QueueGrew
        } else if mostly_failed || is_any(None) {
            TryOutcome::TooFewSamples
        } else {
            TryOutcome::Held
        };
        let open = load.open_loop.unwrap_or_default();
        Self {
            rate,
            outcome,
            is_generator_limit: !load.generator_limits().is_empty(),
            judgements,
            asked_per_s: open.asked_per_s,
            begun_per_s: open.begun_per_s,
            rate_per_s: load.rate_per_s,
            p50_ms: load.response_ms.p50,
            p99_ms: load.response_ms.p99,
            bad,
            due,
            queue_grew_by: growth.map(|growth| growth.requests),
            generator_busy: load.client.busiest(),
            bodies_verified: load.bodies_verified.clone(),
        }
    }

    /// Whether the rate held.
    pub fn is_good(&self) -> bool {
        self.outcome == TryOutcome::Held
    }

    /// Whether a longer try, or a higher rate, would help: there were too few requests.
    pub fn is_sparse(&self) -> bool {
        self.outcome == TryOutcome::TooFewSamples
    }
}

impl SearchRecord {
    /// Name and version of this format.
    pub const FORMAT: &'static str = "joust-search/1";

    /// Rates that held in one try and not in another, each once, in rising order.
    pub fn ambiguous(&self) -> Vec<PerSecond> {
        let known = || self.tries.iter().filter(|tried| !tried.is_sparse());
        let has = |rate, good| known().any(|t| t.rate == rate && t.is_good() == good);
        let mut rates: Vec<PerSecond> = self.tries.iter().map(|t| t.rate).collect();
        rates.sort_by(|a, b| a.0.total_cmp(&b.0));
        rates.dedup();
        rates.retain(|&rate| has(rate, true) && has(rate, false));
        rates
    }

    /// Rates above `lowest_bad` that held in every try: the server is worse at a lower rate, or the machine was
    /// disturbed.
    pub fn good_above(&self) -> Vec<PerSecond> {
        let Some(bad) = self.lowest_bad else { return Vec::new() };
        let ambiguous = self.ambiguous();
        let above = self.tries.iter().filter(|t| t.is_good() && t.rate > bad).map(|t| t.rate);
        let mut rates: Vec<PerSecond> = above.filter(|rate| !ambiguous.contains(rate)).collect();
        rates.sort_by(|a, b| a.0.total_cmp(&b.0));
        rates.dedup();
        rates
    }

    /// Highest rate below `lowest_bad` at which most tries had too few requests to be judged.
    pub fn highest_sparse(&self) -> Option<PerSecond> {
        let is_below = |tried: &&Try| self.lowest_bad.is_none_or(|bad| tried.rate < bad);
        let is_most = |rate: &PerSecond| {
            let at = self.tries.iter().filter(|tried| tried.rate == *rate);
            2 * at.clone().filter(|tried| tried.is_sparse()).count() > at.count()
        };
        let rates = self.tries.iter().filter(is_below).map(|tried| tried.rate).filter(is_most);
        rates.max_by(|a, b| a.0.total_cmp(&b.0))
    }

    /// The result if no rate held, based only on rates at which a try had enough requests.
    pub fn none_held(&self) -> String {
        match (self.lowest_bad, self.highest_sparse()) {
            (Some(bad), None) => format!("not met at any tried rate, down to {bad}"),
            (Some(bad), Some(sparse)) => format!(
                "missed at {bad}, and lower rates could not be judged: at {sparse} a try had \
                 too few requests"
            ),
            (None, Some(_)) if !self.ambiguous().is_empty() => {
                let rates: Vec<String> = self.ambiguous().iter().map(ToString::to_string).collect();
                format!(
                    "met in some tries and missed in others at {}; at other rates tries had too few requests",
                    rates.join(", ")
                )
            }
            (None, Some(sparse)) => format!(
                "not judged at any tried rate, up to {sparse}: the tries had too few requests"
            ),
            (None, None) if self.tries.is_empty() => "not tried: no rate was tried".to_owned(),
            (None, None) => {
                "met in some tries and missed in others at every rate that was tried".to_owned()
            }
        }
    }

    /// Whether both ends of the interval are certain.
    pub fn is_certain(&self) -> bool {
        !matches!(self.ending, SearchEnding::Tries | SearchEnding::Interrupted)
    }

    /// As JSON, one object, ending in a newline.
    pub fn to_json(&self) -> String {
        crate::json::write(self)
    }

    /// Reads what [`SearchRecord::to_json`] wrote.
    ///
    /// # Errors
    /// [`ReadError`]: not JSON, of another shape, or of a version that this joust does not know.
    pub fn from_json(text: &str) -> Result<Self, ReadError> {
        crate::json::read(text, Self::FORMAT, &[])
    }
}
