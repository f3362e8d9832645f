//! Owns goals: bounds that a load has to meet, as a person writes them ("p99<5ms"). `judgement.rs` decides whether a
//! load met one. Start reading at [`Goal`].

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use units::{Nanos, PerSecond, Share};

/// A bound that a load has to meet. Its text form is the one in files and on command lines.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Goal {
    /// `p99<5ms`, `service.mean<=2ms`: a figure of a latency is below a limit.
    Latency {
        /// The span of a request.
        phase: RequestSpan,
        /// The figure of its distribution.
        figure: LatencyFigure,
        /// Whether the limit itself is allowed.
        edge: LimitEdge,
        /// The limit.
        limit: Nanos,
    },
    /// `errors<0.1%`: the share of the due requests that failed or were never answered.
    Errors {
        /// Whether the limit itself is allowed.
        edge: LimitEdge,
        /// The limit.
        limit: Share,
    },
    /// `rate>1k/s`, or `throughput`: goodput is above a limit.
    Rate {
        /// Whether the limit itself is allowed.
        edge: LimitEdge,
        /// The limit.
        limit: PerSecond,
    },
}

/// A span of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestSpan {
    /// Due to done. It is what a user waits for, and the default if no span is named.
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

/// A figure of a distribution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LatencyFigure {
    /// Arithmetic mean.
    Mean,
    /// Longest.
    Max,
    /// This percentile, above 0 and below 100.
    Percentile(f64),
}

/// Whether the limit itself is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitEdge {
    /// `<` or `>`.
    Excluded,
    /// `<=` or `>=`.
    Included,
}

/// Why a goal was refused; the text shows forms that work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{typed}` is not a valid goal: {why}; examples: p99<5ms, service.p99.9<=20ms, mean<2ms, max<1s, \
     errors<0.1%, rate>1k/s"
)]
pub struct GoalError {
    typed: String,
    why: String,
}

/// Reads goals separated by commas: `p99<10ms,errors<0.1%`.
///
/// # Errors
/// [`GoalError`] of the first invalid goal; an empty list contains one.
pub fn parse_goals(text: &str) -> Result<Vec<Goal>, GoalError> {
    text.split(',').map(str::parse).collect()
}

impl LimitEdge {
    /// Whether `value` is below `limit`, or equal to it if that is allowed.
    pub(crate) fn is_below(self, value: f64, limit: f64) -> bool {
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

const SPANS: [(&str, RequestSpan); 5] = [
    ("response", RequestSpan::Response),
    ("service", RequestSpan::Service),
    ("first_byte", RequestSpan::FirstByte),
    ("queue", RequestSpan::Queue),
    ("connect", RequestSpan::Connect),
];

impl fmt::Display for RequestSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, _) =
            SPANS.iter().find(|(_, phase)| phase == self).expect("every phase is there");
        f.pad(name)
    }
}

impl fmt::Display for LatencyFigure {
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
    let at = text.find(['<', '>']).ok_or("it needs < or >")?;
    let (name, (sign, rest)) = (text[..at].trim(), text[at..].split_at(1));
    let (edge, limit) = match rest.strip_prefix('=') {
        Some(limit) => (LimitEdge::Included, limit),
        None => (LimitEdge::Excluded, rest),
    };
    let goal = match name {
        "errors" => {
            let limit: Share = parsed(limit)?;
            if edge == LimitEdge::Excluded && limit.0 == 0.0 {
                return Err(
                    "a share cannot be below 0; to allow no errors, write errors<=0%".to_owned()
                );
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
        Err(format!(
            "{name} needs {} limit ({wanted})",
            if wanted == "<" { "an upper" } else { "a lower" }
        ))
    }
}

fn parsed<T: FromStr<Err = units::ParseError>>(text: &str) -> Result<T, String> {
    text.trim().parse().map_err(|error: units::ParseError| error.to_string())
}

/// `p99.9` contains a point too: only a word of letters before a point names a phase.
fn latency_of(name: &str) -> Result<(RequestSpan, LatencyFigure), String> {
    let is_word = |text: &str| text.chars().all(|c| c.is_ascii_alphabetic() || c == '_');
    let Some((word, rest)) = name.split_once('.').filter(|(word, _)| is_word(word)) else {
        return Ok((RequestSpan::Response, figure(name)?));
    };
    let known = SPANS.iter().find(|(phase, _)| *phase == word);
    let (_, phase) = known.ok_or_else(|| {
        let names: Vec<&str> = SPANS.iter().map(|(name, _)| *name).collect();
        format!("unknown span `{word}`; the spans are {}", names.join(", "))
    })?;
    Ok((*phase, figure(rest)?))
}

fn figure(name: &str) -> Result<LatencyFigure, String> {
    match name {
        "mean" => Ok(LatencyFigure::Mean),
        "max" => Ok(LatencyFigure::Max),
        "median" => Ok(LatencyFigure::Percentile(50.0)),
        _ => {
            let digits = |text: &&str| text.chars().all(|c| c.is_ascii_digit() || c == '.');
            let percentile = name.strip_prefix('p').filter(digits).and_then(|p| p.parse().ok());
            percentile.filter(|p| *p > 0.0 && *p < 100.0).map(LatencyFigure::Percentile).ok_or_else(|| {
                format!(
                    "unknown figure `{name}`: use mean, median, max, or a percentile from p1 to p99.999"
                )
            })
        }
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Latency { phase, figure, edge, limit } => {
                if phase != RequestSpan::Response {
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

/// In the largest unit that is not larger than the span, with all its digits: a limit is what was typed, and must not
/// be rounded.
fn exact_span(span: Nanos) -> String {
    let units = [("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1.0)];
    let (unit, scale) =
        units.into_iter().find(|(_, scale)| span.0 as f64 >= *scale).unwrap_or(("s", 1e9));
    format!("{}{unit}", span.0 as f64 / scale)
}

fn exact_share(share: Share) -> String {
    // Twelve digits, so that 100 x 0.003 is 0.3 and not 0.30000000000000004.
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
            ("", "needs < or >"),
            ("p99=5ms", "needs < or >"),
            ("p99>5ms", "an upper limit (<)"),
            ("rate<1k/s", "a lower limit (>)"),
            ("errors>1%", "an upper limit (<)"),
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
}
