//! A goal: a bound that a load is to keep, as a person writes it ("p99<5ms"), and whether it was kept.
//! Owns its text form and its judgement. Must not know who asked, or how the answer is shown.
//! Start reading at [`Goal`], then [`Goal::judge`].

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use stats::{Histogram, samples_needed};
use units::{Nanos, PerSecond, Share};

use crate::load::LoadRecord;

/// A bound that a load is to keep. Its text form is the one in files and on command lines.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Goal {
    /// `p99<5ms`, `service.mean<=2ms`: a figure of a latency is below a limit.
    Latency {
        /// Of which span of a request.
        phase: Phase,
        /// Which figure of its distribution.
        figure: Figure,
        /// Whether the limit itself will do.
        edge: Edge,
        /// The limit.
        limit: Nanos,
    },
    /// `errors<0.1%`: the share of what was due that came to nothing good.
    Errors {
        /// Whether the limit itself will do.
        edge: Edge,
        /// The limit.
        limit: Share,
    },
    /// `rate>1k/s`, or `throughput`: goodput is above a limit.
    Rate {
        /// Whether the limit itself will do.
        edge: Edge,
        /// The limit.
        limit: PerSecond,
    },
}

/// Which span of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Due to done. What a user waits for, and so the one that is meant where none is named.
    Response,
    /// Sent to done.
    Service,
    /// Sent to first byte.
    FirstByte,
    /// Due to sent.
    Queue,
    /// Connecting.
    Connect,
}

/// Which figure of a distribution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Figure {
    /// Arithmetic mean.
    Mean,
    /// Longest.
    Max,
    /// This percentile, above 0 and below 100.
    Percentile(f64),
}

/// Whether a limit belongs to what is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edge {
    /// `<` or `>`.
    Excluded,
    /// `<=` or `>=`.
    Included,
}

/// A goal, and what a load came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// The goal.
    pub goal: Goal,
    /// Whether it was met; `None` where the sample is too small to say, or empty.
    pub met: Option<bool>,
    /// What was measured: milliseconds, a share from 0 to 1, or requests/s; `None` where there is no
    /// such figure.
    pub value: Option<f64>,
    /// What was measured, or why nothing can be said, in words: "p99 of response is 4.21ms".
    pub text: String,
}

impl Judgement {
    /// Whether it is known to be met.
    pub fn is_met(&self) -> bool {
        self.met == Some(true)
    }
}

/// Why a goal was refused; the text shows forms that work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{typed}` is no goal: {why}; write it as in p99<5ms, service.p99.9<=20ms, mean<2ms, max<1s, \
     errors<0.1% or rate>1k/s"
)]
pub struct GoalError {
    typed: String,
    why: String,
}

/// Reads goals separated by commas: `p99<10ms,errors<0.1%`.
///
/// # Errors
/// [`GoalError`] of the first that is none; an empty list has none.
pub fn parse_goals(text: &str) -> Result<Vec<Goal>, GoalError> {
    text.split(',').map(str::parse).collect()
}

impl Goal {
    /// Whether a load kept it.
    ///
    /// A request that was given up while it was waited for (timed out, unanswered at the end, left in
    /// the queue or dropped from it) has no latency that is known, but it is long: percentiles and the
    /// maximum count it as longer than any limit. Were it left out, a server that answers half of what
    /// it is asked would keep every goal. Other failures have an end, and belong to `errors`. A goal
    /// on `errors` is about what happened, not about what may happen: no sample is too small for it.
    pub fn judge(&self, load: &LoadRecord) -> Judgement {
        match *self {
            Self::Latency { phase, figure, edge, limit } => {
                let measured = Measured::of(load, phase);
                self.verdict(
                    measured.figure(figure),
                    |millis| edge.is_below(millis, limit.as_millis_f64()),
                    span,
                    &format!("{figure} of {phase}"),
                )
            }
            Self::Errors { edge, limit } => {
                let (bad, due) = (load.bad(), load.due());
                let bodies = &load.bodies_verified;
                let share = if due == 0 {
                    Err(NOTHING_DUE.to_owned())
                } else if bodies.differ > 0
                    && bodies.verified < load.requests.done
                    && edge.is_below(bad as f64 / due as f64, limit.0)
                {
                    // A sample tells that bodies are wrong, not how many: at least what it found.
                    Err(format!(
                        "{} of {} bodies in the sample differ, so the share of errors is not known: \
                         verify all (--verify hash=100%)",
                        bodies.differ, bodies.verified
                    ))
                } else {
                    Ok(bad as f64 / due as f64)
                };
                self.verdict(
                    share,
                    |share| edge.is_below(share, limit.0),
                    |share| format!("{} ({bad} of {due})", Share(share)),
                    "the share of errors",
                )
            }
            Self::Rate { edge, limit } => {
                let rate = if load.seconds > 0.0 {
                    Ok(load.rate_per_s)
                } else {
                    Err(NOTHING_DUE.to_owned())
                };
                self.verdict(
                    rate,
                    |rate| edge.is_below(limit.0, rate),
                    |rate| PerSecond(rate).to_string(),
                    "the rate",
                )
            }
        }
    }

    fn verdict(
        self,
        measured: Result<f64, String>,
        holds: impl Fn(f64) -> bool,
        show: impl Fn(f64) -> String,
        what: &str,
    ) -> Judgement {
        let (met, value, text) = match measured {
            // Longer than any limit: known to be broken, and no number for a file.
            Ok(value) if value.is_infinite() => {
                (Some(false), None, format!("{what} lies among requests that were given up"))
            }
            Ok(value) => (Some(holds(value)), Some(value), format!("{what} is {}", show(value))),
            Err(why) => (None, None, format!("{what} is not known: {why}")),
        };
        Judgement { goal: self, met, value, text }
    }
}

const NOTHING_DUE: &str = "nothing was measured";

impl LoadRecord {
    /// Requests that came to nothing good: failed, unanswered, dropped, or left in the queue.
    pub fn bad(&self) -> u64 {
        self.requests.failed + self.requests.unanswered + self.never_begun()
    }

    /// Everything that was due, begun or not.
    pub fn due(&self) -> u64 {
        let asked = self.open_loop.map_or(0, |open| open.due);
        asked.max(self.requests.started + self.never_begun())
    }

    fn never_begun(&self) -> u64 {
        self.open_loop.map_or(0, |open| open.dropped + open.left)
    }
}

/// A distribution, and how many have no place in it since they were given up.
struct Measured<'a> {
    spans: &'a Histogram,
    given_up: u64,
}

impl<'a> Measured<'a> {
    fn of(load: &'a LoadRecord, phase: Phase) -> Self {
        let (spans, errors) = (&load.latencies, load.errors);
        let unanswered = load.requests.unanswered;
        let no_first_byte = unanswered + errors.timeout_waiting;
        let no_end = no_first_byte + errors.timeout_reading;
        let (spans, given_up) = match phase {
            Phase::Response => {
                let no_connection = errors.connect_timeout + errors.tls_timeout;
                (&spans.response, no_end + no_connection + load.never_begun())
            }
            Phase::Service => (&spans.service, no_end),
            Phase::FirstByte => (&spans.first_byte, no_first_byte),
            Phase::Queue => (&spans.queue, load.never_begun()),
            Phase::Connect => (&spans.connect, errors.connect_timeout),
        };
        Self { spans, given_up }
    }

    /// In milliseconds; infinite among those that were given up; `Err` says why there is none.
    fn figure(&self, figure: Figure) -> Result<f64, String> {
        let (n, all) = (self.spans.count(), self.spans.count() + self.given_up);
        let too_few = |needed: u64| format!("{all} of the {needed} samples that it needs");
        let millis = |span: Option<Nanos>| span.map(Nanos::as_millis_f64).ok_or(too_few(1));
        match figure {
            // Given up or not is no number that a mean could be taken of.
            Figure::Mean => millis(self.spans.mean()),
            Figure::Max if self.given_up > 0 => Ok(f64::INFINITY),
            Figure::Max => millis(self.spans.max()),
            Figure::Percentile(percentile) => {
                let q = percentile / 100.0;
                let needed = samples_needed(q);
                if all < needed {
                    return Err(too_few(needed));
                }
                // The rank among all, as a quantile of those that have a span.
                let rank = (q * all as f64).ceil();
                if rank > n as f64 {
                    return Ok(f64::INFINITY);
                }
                let q = if self.given_up == 0 { q } else { rank / n as f64 };
                Ok(self.spans.quantile_unchecked(q).as_millis_f64())
            }
        }
    }
}

fn span(millis: f64) -> String {
    Nanos::from_secs_f64(millis / 1e3).to_string()
}

impl Edge {
    /// Whether `value` lies below `limit`, or at it where that is allowed.
    fn is_below(self, value: f64, limit: f64) -> bool {
        match self {
            Self::Excluded => value < limit,
            Self::Included => value <= limit,
        }
    }

    fn after(self, sign: char) -> String {
        match self {
            Self::Excluded => sign.to_string(),
            Self::Included => format!("{sign}="),
        }
    }
}

const PHASES: [(&str, Phase); 5] = [
    ("response", Phase::Response),
    ("service", Phase::Service),
    ("first_byte", Phase::FirstByte),
    ("queue", Phase::Queue),
    ("connect", Phase::Connect),
];

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, _) =
            PHASES.iter().find(|(_, phase)| phase == self).expect("every phase is there");
        f.pad(name)
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mean => f.write_str("mean"),
            Self::Max => f.write_str("max"),
            Self::Percentile(percentile) => write!(f, "p{percentile}"),
        }
    }
}

impl FromStr for Goal {
    type Err = GoalError;

    fn from_str(text: &str) -> Result<Self, GoalError> {
        read(text).map_err(|why| GoalError { typed: text.trim().to_owned(), why })
    }
}

fn read(text: &str) -> Result<Goal, String> {
    let at = text.find(['<', '>']).ok_or("it has no < and no >")?;
    let (name, (sign, rest)) = (text[..at].trim(), text[at..].split_at(1));
    let (edge, limit) = match rest.strip_prefix('=') {
        Some(limit) => (Edge::Included, limit),
        None => (Edge::Excluded, rest),
    };
    let goal = match name {
        "errors" => {
            let limit: Share = parsed(limit)?;
            if edge == Edge::Excluded && limit.0 == 0.0 {
                return Err("no share is below 0; none at all is errors<=0%".to_owned());
            }
            Goal::Errors { edge, limit }
        }
        "rate" | "throughput" => Goal::Rate { edge, limit: parsed(limit)? },
        latency => {
            let (phase, figure) = latency_of(latency)?;
            Goal::Latency { phase, figure, edge, limit: parsed(limit)? }
        }
    };
    let wanted = if matches!(goal, Goal::Rate { .. }) { ">" } else { "<" };
    if sign == wanted {
        Ok(goal)
    } else {
        Err(format!("{name} is to be {}", if wanted == "<" { "below (<)" } else { "above (>)" }))
    }
}

fn parsed<T: FromStr<Err = units::ParseError>>(text: &str) -> Result<T, String> {
    text.trim().parse().map_err(|error: units::ParseError| error.to_string())
}

/// `p99.9` has a point of its own: only what begins with a letter's word and a point names a phase.
fn latency_of(name: &str) -> Result<(Phase, Figure), String> {
    let is_word = |text: &str| text.chars().all(|c| c.is_ascii_alphabetic() || c == '_');
    let Some((word, rest)) = name.split_once('.').filter(|(word, _)| is_word(word)) else {
        return Ok((Phase::Response, figure(name)?));
    };
    let known = PHASES.iter().find(|(phase, _)| *phase == word);
    let (_, phase) = known.ok_or_else(|| {
        let names: Vec<&str> = PHASES.iter().map(|(name, _)| *name).collect();
        format!("`{word}` is none of {}", names.join(", "))
    })?;
    Ok((*phase, figure(rest)?))
}

fn figure(name: &str) -> Result<Figure, String> {
    match name {
        "mean" => Ok(Figure::Mean),
        "max" => Ok(Figure::Max),
        "median" => Ok(Figure::Percentile(50.0)),
        _ => {
            let digits = |text: &&str| text.chars().all(|c| c.is_ascii_digit() || c == '.');
            let percentile = name.strip_prefix('p').filter(digits).and_then(|p| p.parse().ok());
            percentile.filter(|p| *p > 0.0 && *p < 100.0).map(Figure::Percentile).ok_or_else(|| {
                format!(
                    "`{name}` is no figure: mean, median, max, or a percentile from p1 to p99.999"
                )
            })
        }
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Latency { phase, figure, edge, limit } => {
                if phase != Phase::Response {
                    write!(f, "{phase}.")?;
                }
                write!(f, "{figure}{}{}", edge.after('<'), exact_span(limit))
            }
            Self::Errors { edge, limit } => {
                write!(f, "errors{}{}", edge.after('<'), exact_share(limit))
            }
            Self::Rate { edge, limit } => {
                write!(f, "rate{}{}", edge.after('>'), exact_rate(limit))
            }
        }
    }
}

/// In the largest unit that is not larger than the span: all its digits, since a limit is what was
/// typed and not a figure to be rounded.
fn exact_span(span: Nanos) -> String {
    let units = [("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1.0)];
    let (unit, scale) =
        units.into_iter().find(|(_, scale)| span.0 as f64 >= *scale).unwrap_or(("s", 1e9));
    format!("{}{unit}", span.0 as f64 / scale)
}

fn exact_share(share: Share) -> String {
    // Twelve digits: 100 x 0.003 is 0.3 and not 0.30000000000000004.
    let percent = format!("{}%", (share.0 * 1e14).round() / 1e12);
    if percent.parse() == Ok(share) { percent } else { share.0.to_string() }
}

fn exact_rate(rate: PerSecond) -> String {
    let thousands = format!("{}k/s", rate.0 / 1e3);
    if rate.0 >= 1e3 && thousands.parse() == Ok(rate) { thousands } else { format!("{}/s", rate.0) }
}

impl From<Goal> for String {
    fn from(goal: Goal) -> Self {
        goal.to_string()
    }
}

impl TryFrom<String> for Goal {
    type Error = GoalError;

    fn try_from(text: String) -> Result<Self, GoalError> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LoadPlan, OpenLoop};

    fn goal(text: &str) -> Goal {
        text.parse().unwrap()
    }

    #[test]
    fn goals_are_read_and_printed_in_one_form() {
        let cases = [
            ("p99<5ms", "p99<5ms"),
            ("response.p99<5ms", "p99<5ms"),
            (" p99.9 <= 20ms ", "p99.9<=20ms"),
            ("median<1500us", "p50<1.5ms"),
            ("mean<2ms", "mean<2ms"),
            ("max<1s", "max<1s"),
            ("service.p99.99<2m", "service.p99.99<120s"),
            ("first_byte.p50<0.25ms", "first_byte.p50<250us"),
            ("connect.p99<1ms", "connect.p99<1ms"),
            ("queue.max<=0ns", "queue.max<=0s"),
            ("errors<0.01%", "errors<0.01%"),
            ("errors<=0", "errors<=0%"),
            ("errors<0.003", "errors<0.3%"),
            ("rate>1k/s", "rate>1k/s"),
            ("throughput>=1234.5/s", "rate>=1.2345k/s"),
            ("rate>500", "rate>500/s"),
        ];
        for (typed, printed) in cases {
            let goal = goal(typed);
            assert_eq!(goal.to_string(), printed, "{typed}");
            assert_eq!(printed.parse(), Ok(goal), "{typed}");
            let json = serde_json::to_string(&goal).unwrap();
            assert_eq!(json, format!("\"{printed}\""));
            assert_eq!(serde_json::from_str::<Goal>(&json).unwrap(), goal);
        }
    }

    #[test]
    fn what_is_no_goal_is_refused_with_the_reason_and_a_form_that_works() {
        let cases = [
            ("", "no < and no >"),
            ("p99=5ms", "no < and no >"),
            ("p99>5ms", "below (<)"),
            ("rate<1k/s", "above (>)"),
            ("errors>1%", "below (<)"),
            ("p99<5", "write it with a unit"),
            ("p100<5ms", "percentile"),
            ("p0<5ms", "percentile"),
            ("p-1<5ms", "percentile"),
            ("pnan<5ms", "percentile"),
            ("<5ms", "percentile"),
            ("latency.p99<5ms", "response, service, first_byte"),
            ("errors<0", "errors<=0%"),
            ("errors<2", "2%"),
            ("rate>fast", "500/s"),
            ("p99<<5ms", "duration"),
        ];
        for (typed, why) in cases {
            let error = typed.parse::<Goal>().expect_err(typed).to_string();
            assert!(error.contains(why) && error.contains("p99<5ms"), "{typed}: {error}");
        }
    }

    #[test]
    fn a_list_is_separated_by_commas() {
        let goals = parse_goals("p99<10ms, errors<0.1%").unwrap();
        assert_eq!(goals, [goal("p99<10ms"), goal("errors<0.1%")]);
        assert!(parse_goals("p99<10ms,").is_err());
        assert!(parse_goals("").is_err());
    }

    /// A thousand good requests: the n-th took n ms, from 1 to 1000, in 10 s.
    fn load() -> LoadRecord {
        let mut load = LoadRecord::empty(LoadPlan::get(([127, 0, 0, 1], 80).into(), "/"));
        for n in 1..=1000 {
            load.latencies.response.record(Nanos::from_millis(n));
            load.latencies.service.record(Nanos::from_micros(n));
        }
        (load.requests.started, load.requests.done, load.requests.ok) = (1000, 1000, 1000);
        (load.seconds, load.rate_per_s) = (10.0, 100.0);
        load
    }

    fn met(load: &LoadRecord, text: &str) -> Option<bool> {
        goal(text).judge(load).met
    }

    #[test]
    fn a_goal_is_judged_by_its_own_quantity() {
        let load = load();
        let cases = [
            ("p99<1s", true),
            ("p99<980ms", false),
            ("p50<=502ms", true),
            ("p50<499ms", false),
            ("service.p99<1ms", true),
            ("service.mean<501us", true),
            ("mean<500ms", false),
            ("max<=1001ms", true),
            ("max<999ms", false),
            ("errors<=0", true),
            ("errors<0.1%", true),
            ("rate>=100/s", true),
            ("rate>100/s", false),
        ];
        for (text, expected) in cases {
            assert_eq!(met(&load, text), Some(expected), "{text}");
        }
        let judged = goal("p50<1s").judge(&load);
        assert!((judged.value.unwrap() - 500.0).abs() < 1.0, "{judged:?}");
        assert_eq!(judged.text, "p50 of response is 500ms");
    }

    #[test]
    fn too_small_a_sample_is_neither_met_nor_broken() {
        for text in ["p99.9<1h", "connect.p50<1s", "queue.mean<1s"] {
            let judged = goal(text).judge(&load());
            assert_eq!((judged.met, judged.value, judged.is_met()), (None, None, false), "{text}");
            assert!(judged.text.contains("samples that it needs"), "{}", judged.text);
        }
        let nothing = LoadRecord::empty(load().plan);
        for text in ["p99<1s", "errors<1%", "rate>1/s"] {
            assert_eq!(met(&nothing, text), None, "{text}");
        }
    }

    #[test]
    fn what_was_given_up_is_longer_than_any_limit() {
        let mut load = load();
        load.requests.unanswered = 5;
        load.requests.started = 1005;
        assert_eq!(met(&load, "p99<998ms"), Some(true));
        assert_eq!(met(&load, "p99<990ms"), Some(false), "its rank has moved");
        load.requests.unanswered = 20;
        let judged = goal("p99<1h").judge(&load);
        assert_eq!((judged.met, judged.value), (Some(false), None));
        assert!(judged.text.contains("given up"), "{}", judged.text);
        assert_eq!(met(&load, "max<1h"), Some(false));
        assert_eq!(met(&load, "p50<512ms"), Some(true));
    }

    #[test]
    fn a_sample_of_bodies_that_differ_leaves_a_goal_on_errors_open_unless_it_is_broken_already() {
        let mut sampled = load();
        assert_eq!(met(&sampled, "errors<50%"), Some(true));
        sampled.bodies_verified.verified = 2;
        sampled.bodies_verified.differ = 1;
        assert_eq!(met(&sampled, "errors<50%"), None);
        (sampled.requests.failed, sampled.requests.ok) = (600, 400);
        assert_eq!(met(&sampled, "errors<50%"), Some(false));
    }

    #[test]
    fn errors_are_a_share_of_all_that_was_due() {
        let mut load = load();
        load.open_loop = Some(OpenLoop { due: 1100, dropped: 60, left: 40, ..OpenLoop::default() });
        (load.requests.failed, load.requests.ok) = (10, 990);
        let judged = goal("errors<10.1%").judge(&load);
        assert_eq!((judged.met, judged.value), (Some(true), Some(0.1)));
        assert_eq!(judged.text, "the share of errors is 10 % (110 of 1100)");
        assert_eq!(met(&load, "p99<1h"), Some(false), "what was dropped waited for nothing");
        assert_eq!(met(&load, "service.p99<1h"), Some(true), "but the server never saw it");
    }
}
