//! What a search for the highest rate that holds tried and found. Owns the data; must not know how a
//! rate is chosen. Start reading at [`SearchRecord`].

use serde::{Deserialize, Serialize};
use units::{PerSecond, Share};

use crate::bodies::BodiesVerified;
use crate::goal::Goal;
use crate::json::ReadError;
use crate::judgement::Judgement;
use crate::load::LoadRecord;
use crate::load_plan::LoadPlan;

/// Fewest requests of which it means something that most failed.
const DUE_MIN: u64 = 10;

/// A search for the highest rate at which goals hold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SearchRecord {
    /// [`SearchRecord::FORMAT`].
    pub format: String,
    /// What is to hold.
    pub goals: Vec<Goal>,
    /// Lowest rate that might be tried, where one was set.
    pub low: Option<PerSecond>,
    /// Highest rate that might be tried, where one was set.
    pub high: Option<PerSecond>,
    /// How wide the interval may be: high / low - 1.
    pub precision: Share,
    /// Tries of one outcome that make it certain.
    pub repeats: u32,
    /// Most tries.
    pub tries_max: u32,
    /// Every try, in order.
    pub tries: Vec<Try>,
    /// Highest rate that held, of those below `lowest_bad`; `None` where none did.
    pub highest_good: Option<PerSecond>,
    /// Lowest rate that did not hold; `None` where all did.
    pub lowest_bad: Option<PerSecond>,
    /// What the upper end is the limit of.
    pub limit: Limit,
    /// How it ended.
    pub ending: SearchEnding,
    /// The plan of the first try, as its record has it; `None` before it.
    pub plan: Option<LoadPlan>,
}

/// One load at one rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Try {
    /// As asked.
    pub rate: PerSecond,
    /// What came of it.
    pub outcome: TryOutcome,
    /// Whether the generator was a limit: then a rate that did not hold says nothing of the server.
    pub is_generator_limit: bool,
    /// Each goal, in the order of the search.
    pub judgements: Vec<Judgement>,
    /// Requests due, by second; differs from `rate` by the chance of a random law.
    pub asked_per_s: f64,
    /// Requests begun, by second.
    pub begun_per_s: f64,
    /// Goodput.
    pub rate_per_s: f64,
    /// Response time.
    pub p50_ms: Option<f64>,
    /// Response time.
    pub p99_ms: Option<f64>,
    /// Requests that failed, were unanswered or never begun.
    pub bad: u64,
    /// Requests that were due.
    pub due: u64,
    /// By how many requests the queue grew, where it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_grew_by: Option<f64>,
    /// CPU time over wall time of the generator's busiest thread, 0 to 1.
    pub generator_busy: f64,
    /// Bodies whose hash was compared with that of the body before the search.
    #[serde(default)]
    pub bodies_verified: BodiesVerified,
}

/// What came of a try.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TryOutcome {
    /// The rate was reached, every goal met, and the queue did not grow.
    Held,
    /// A goal was broken.
    Broken,
    /// The rate was not reached, whatever the goals say of what was.
    RateMissed,
    /// The queue grew during the try: the server does less than it was asked, and was not given the time
    /// to show it.
    QueueGrew,
    /// More than half of the requests failed, and no goal says how many may.
    MostlyFailed,
    /// No goal was broken, but the sample was too small for one: not known, and not good.
    TooFewSamples,
}

/// What the upper end of the interval is the limit of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// The server, or the connections that it was given.
    Server,
    /// The generator: the server may hold more.
    Generator,
    /// The length of a try: one end is missing, and some rates had too few requests to judge the goals
    /// by.
    Samples,
    /// Nothing was met: all rates that were tried held.
    NotReached,
}

/// How a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchEnding {
    /// Both ends are certain, and as near to each other as was asked.
    Narrow,
    /// Both ends are certain; between them rates met the goals in some tries only, or had too few
    /// requests to be judged, in a band too wide for the precision that was asked.
    Noisy,
    /// Every rate held, up to the highest that might be tried.
    AllGood,
    /// No rate held, down to the lowest that might be tried or that has enough requests in a try.
    NoneGood,
    /// The most tries were made before both ends were certain.
    Tries,
    /// It was interrupted.
    Interrupted,
}

impl Try {
    /// Of a load at that rate.
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

    /// Whether a longer try, or a higher rate, would tell more: there were too few requests.
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

    /// Rates above `lowest_bad` that held in every try: a server that is worse at a lower rate, or
    /// a machine that was disturbed.
    pub fn good_above(&self) -> Vec<PerSecond> {
        let Some(bad) = self.lowest_bad else { return Vec::new() };
        let ambiguous = self.ambiguous();
        let above = self.tries.iter().filter(|t| t.is_good() && t.rate > bad).map(|t| t.rate);
        let mut rates: Vec<PerSecond> = above.filter(|rate| !ambiguous.contains(rate)).collect();
        rates.sort_by(|a, b| a.0.total_cmp(&b.0));
        rates.dedup();
        rates
    }

    /// Highest rate, of those below `lowest_bad`, at which most tries had too few requests to be judged.
    pub fn highest_sparse(&self) -> Option<PerSecond> {
        let is_below = |tried: &&Try| self.lowest_bad.is_none_or(|bad| tried.rate < bad);
        let is_most = |rate: &PerSecond| {
            let at = self.tries.iter().filter(|tried| tried.rate == *rate);
            2 * at.clone().filter(|tried| tried.is_sparse()).count() > at.count()
        };
        let rates = self.tries.iter().filter(is_below).map(|tried| tried.rate).filter(is_most);
        rates.max_by(|a, b| a.0.total_cmp(&b.0))
    }

    /// What is known where no rate held: of those rates only at which a try had enough requests.
    pub fn none_held(&self) -> String {
        match (self.lowest_bad, self.highest_sparse()) {
            (Some(bad), None) => format!("met at no rate that was tried, down to {bad}"),
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
                "judged at no rate that was tried, up to {sparse}: tries had too few requests"
            ),
            (None, None) if self.tries.is_empty() => "tried at no rate".to_owned(),
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
