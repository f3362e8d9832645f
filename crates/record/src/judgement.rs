//! Owns whether a load met a goal. Start reading at [`Goal::judge`].

use serde::{Deserialize, Serialize};
use stats::{Histogram, samples_needed};
use units::{Nanos, PerSecond, Share};

use crate::goal::{Goal, LatencyFigure, RequestSpan};
use crate::load::LoadRecord;

/// A goal, and what a load achieved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// The goal.
    pub goal: Goal,
    /// Whether it was met; `None` if the sample is empty or too small to say.
    pub met: Option<bool>,
    /// What was measured: milliseconds, a share from 0 to 1, or requests/s; `None` if there is no such figure.
    pub value: Option<f64>,
    /// What was measured, or why there is no answer, in words: "p99 of response is 4.21ms".
    pub text: String,
}

impl Judgement {
    /// Whether it is known to be met.
    pub fn is_met(&self) -> bool {
        self.met == Some(true)
    }
}

impl Goal {
    /// Whether a load met it.
    ///
    /// A request that was given up during its wait (timed out, unanswered at the end, left in the queue or dropped from
    /// it) has an unknown but long latency: percentiles and the maximum count it as longer than any limit. Without
    /// this, a server that answers half of its requests would meet every goal. Other failures have an end, and belong
    /// to `errors`. A goal on `errors` is about what happened, not about what may happen, so no sample is too small for
    /// it.
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
                    // A sample shows that bodies are wrong, but not how many: there are at least those that it found.
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
            // Longer than any limit: the goal is broken, and infinity has no place in a file.
            Ok(value) if value.is_infinite() => (
                Some(false),
                None,
                format!("{what} is above any limit: too many requests timed out or had no reply"),
            ),
            Ok(value) => (Some(holds(value)), Some(value), format!("{what} is {}", show(value))),
            Err(why) => (None, None, format!("{what} is not known: {why}")),
        };
        Judgement { goal: self, met, value, text }
    }
}

const NOTHING_DUE: &str = "nothing was measured";

impl LoadRecord {
    /// Requests without success: failed, unanswered, dropped, or left in the queue.
    pub fn bad(&self) -> u64 {
        self.requests.failed + self.requests.unanswered + self.never_begun()
    }

    /// All due requests, started or not.
    pub fn due(&self) -> u64 {
        let asked = self.open_loop.map_or(0, |open| open.due);
        asked.max(self.requests.started + self.never_begun())
    }

    fn never_begun(&self) -> u64 {
        self.open_loop.map_or(0, |open| open.dropped + open.left)
    }
}

/// A distribution, and how many requests are missing from it because they were given up.
struct Measured<'a> {
    spans: &'a Histogram,
    given_up: u64,
}

impl<'a> Measured<'a> {
    fn of(load: &'a LoadRecord, phase: RequestSpan) -> Self {
        let (spans, errors) = (&load.latencies, load.errors);
        let unanswered = load.requests.unanswered;
        let no_first_byte = unanswered + errors.timeout_waiting;
        let no_end = no_first_byte + errors.timeout_reading;
        let (spans, given_up) = match phase {
            RequestSpan::Response => {
                let no_connection = errors.connect_timeout + errors.tls_timeout;
                (&spans.response, no_end + no_connection + load.never_begun())
            }
            RequestSpan::Service => (&spans.service, no_end),
            RequestSpan::FirstByte => (&spans.first_byte, no_first_byte),
            RequestSpan::Queue => (&spans.queue, load.never_begun()),
            RequestSpan::Connect => (&spans.connect, errors.connect_timeout),
        };
        Self { spans, given_up }
    }

    /// In milliseconds; infinite if the figure is among requests that were given up; `Err` says why there is none.
    fn figure(&self, figure: LatencyFigure) -> Result<f64, String> {
        let (n, all) = (self.spans.count(), self.spans.count() + self.given_up);
        let too_few = |needed: u64| format!("{all} of the {needed} samples that it needs");
        let millis = |span: Option<Nanos>| span.map(Nanos::as_millis_f64).ok_or(too_few(1));
        match figure {
            // Requests that were given up have no number that a mean could use.
            LatencyFigure::Mean => millis(self.spans.mean()),
            LatencyFigure::Max if self.given_up > 0 => Ok(f64::INFINITY),
            LatencyFigure::Max => millis(self.spans.max()),
            LatencyFigure::Percentile(percentile) => {
                let q = percentile / 100.0;
                let needed = samples_needed(q);
                if all < needed {
                    return Err(too_few(needed));
                }
                // The rank among all requests, converted to a quantile of those that have a span.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LoadPlan, OpenLoop};

    fn goal(text: &str) -> Goal {
        text.parse().unwrap()
    }

    /// A thousand good requests: request n took n ms, from 1 to 1000, in 10 s.
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
        assert!(judged.text.contains("above any limit"), "{}", judged.text);
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
