//! Owns the words of a verdict: the six wordings, and the sentences that say which way round a
//! ratio is and which side is better. Must not know how they are laid out or coloured.
//! Start reading at [`verdict`], then [`Reading`].

use record::{Contender, Estimate, Metric, PairVerdict, ShortOf, Verdict};

use crate::figures::{ratio, ratio_with_interval};

/// Beyond it a number of blocks is no plan, and its digits are noise.
const BLOCKS_COUNTED_MAX: u32 = 999;

/// The verdict in one of the six wordings of METHODOLOGY.md; no other form exists.
pub fn verdict(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Ratio { ratio, low, high } => ratio_with_interval(*ratio, *low, *high),
        Verdict::NoDifference { margin } => format!("no difference of {margin} or more"),
        Verdict::Undecided { more_blocks: Some(more @ ..=BLOCKS_COUNTED_MAX), .. } => {
            let plural = if *more == 1 { "" } else { "s" };
            format!("undecided: about {more} more block{plural} needed")
        }
        Verdict::Undecided { .. } => {
            format!("undecided: more than {BLOCKS_COUNTED_MAX} more blocks needed")
        }
        Verdict::AtLeast { ratio: bound, .. } => format!("at least {}", ratio(*bound)),
        Verdict::AtMost { ratio: bound, .. } => format!("at most {}", ratio(*bound)),
        Verdict::Withheld { reason } => format!("withheld: {reason}"),
    }
}

/// Which end of a metric's scale is the good one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Better {
    More,
    Less,
}

/// How a metric is spoken of.
#[derive(Debug)]
pub(crate) struct MetricWords {
    /// Heading: "Throughput".
    pub(crate) title: &'static str,
    /// What a ratio is a ratio of, in the middle of a sentence: "CPU time per request".
    pub(crate) quantity: &'static str,
    pub(crate) better: Better,
    /// "most requests/s first".
    pub(crate) best_first: &'static str,
}

impl MetricWords {
    /// "more is better" or "less is better".
    pub(crate) fn direction(&self) -> &'static str {
        match self.better {
            Better::More => "more is better",
            Better::Less => "less is better",
        }
    }
}

/// What a ratio of a metric is a ratio of, in the middle of a sentence.
pub fn quantity(metric: Metric) -> &'static str {
    words(metric).quantity
}

/// The words of a metric.
pub(crate) fn words(metric: Metric) -> &'static MetricWords {
    match metric {
        Metric::Throughput => &MetricWords {
            title: "Throughput",
            quantity: "requests/s",
            better: Better::More,
            best_first: "most first",
        },
        Metric::ServerCpu => &MetricWords {
            title: "Server CPU time per request",
            quantity: "server CPU time per request",
            better: Better::Less,
            best_first: "least first",
        },
        Metric::P50 => &MetricWords {
            title: "Median service time",
            quantity: "median service time",
            better: Better::Less,
            best_first: "shortest first",
        },
        Metric::P99 => &MetricWords {
            title: "99th percentile of service time",
            quantity: "p99 service time",
            better: Better::Less,
            best_first: "shortest first",
        },
        Metric::Capacity => &MetricWords {
            title: "Capacity",
            quantity: "the highest rate that holds (requests/s)",
            better: Better::More,
            best_first: "most first",
        },
        Metric::Memory => &MetricWords {
            title: "Peak memory",
            quantity: "peak memory",
            better: Better::Less,
            best_first: "least first",
        },
    }
}

/// A pair's verdict, turned so that it reads well: the side with more of the metric comes first,
/// where one has more.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reading {
    pub(crate) metric: Metric,
    /// Index of the contender that the sentence is about.
    pub(crate) this: usize,
    /// Index of the one it is held against.
    pub(crate) that: usize,
    /// In the direction this over that; finite throughout.
    pub(crate) verdict: Verdict,
    /// In the same direction; finite throughout.
    pub(crate) estimate: Option<Estimate>,
    /// Where the pair has fewer blocks than the study asks for.
    pub(crate) short_of: Option<ShortOf>,
}

impl Reading {
    /// Reads a verdict of a run file.
    pub(crate) fn new(pair: &PairVerdict) -> Self {
        let stored = Self {
            metric: pair.metric,
            this: pair.a,
            that: pair.b,
            verdict: finite_verdict(&pair.verdict),
            estimate: pair.estimate.filter(finite_estimate),
            short_of: pair.short_of,
        };
        match stored.verdict {
            Verdict::Ratio { ratio, .. } if ratio < 1.0 => stored.turned(),
            Verdict::AtMost { .. } => stored.turned(),
            _ => stored,
        }
    }

    /// The same, that over this.
    pub(crate) fn turned(self) -> Self {
        let verdict = self.verdict.turned();
        let estimate = self.estimate.map(|e| Estimate {
            ratio: 1.0 / e.ratio,
            low: 1.0 / e.high,
            high: 1.0 / e.low,
            ..e
        });
        Self { this: self.that, that: self.this, verdict, estimate, ..self }
    }

    /// Whether it is about these two, either way round.
    pub(crate) fn is_between(&self, left: usize, right: usize) -> bool {
        [(left, right), (right, left)].contains(&(self.this, self.that))
    }

    /// Index of the side that is better, where the verdict says so.
    pub(crate) fn ahead(&self) -> Option<usize> {
        let more = match self.verdict {
            Verdict::Ratio { low, .. } if low > 1.0 => self.this,
            Verdict::Ratio { high, .. } if high < 1.0 => self.that,
            Verdict::AtLeast { ratio, .. } if ratio > 1.0 => self.this,
            Verdict::AtMost { ratio, .. } if ratio < 1.0 => self.that,
            _ => return None,
        };
        let less = if more == self.this { self.that } else { self.this };
        Some(match words(self.metric).better {
            Better::More => more,
            Better::Less => less,
        })
    }

    /// The verdict as one sentence, without a full stop, that says which side is better.
    pub(crate) fn sentence(&self, contenders: &[Contender]) -> String {
        let name = |index: usize| name_of(contenders, index);
        let (this, that, said) = (name(self.this), name(self.that), verdict(&self.verdict));
        let words = words(self.metric);
        match self.verdict {
            Verdict::Ratio { .. } | Verdict::AtLeast { .. } | Verdict::AtMost { .. } => {
                let so = match self.ahead() {
                    Some(index) => format!("so {} is ahead", name(index)),
                    None => "and neither is proved ahead".to_owned(),
                };
                let (quantity, direction) = (words.quantity, words.direction());
                format!("{this}: {said} the {quantity} of {that} ({direction}, {so})")
            }
            Verdict::NoDifference { .. } => {
                format!("{this} and {that}: {said} in {}", words.quantity)
            }
            Verdict::Undecided { .. } | Verdict::Withheld { .. } => {
                format!("{this} and {that}, {}: {said}", words.quantity)
            }
        }
    }
}

/// Name of a contender, or its number where a file names one that does not exist.
pub(crate) fn name_of(contenders: &[Contender], index: usize) -> String {
    contenders.get(index).map_or_else(|| format!("contender {index}"), |c| plain(&c.name))
}

/// Text from outside (names, logs, versions) without control characters: they could move the cursor
/// of a terminal or break a well-formed page.
pub(crate) fn plain(text: &str) -> String {
    let shown = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    text.chars().map(shown).collect()
}

/// A ratio is positive and finite; a file that says otherwise gets no number printed.
fn usable(values: &[f64]) -> bool {
    values.iter().all(|value| value.is_finite() && *value > 0.0)
}

fn finite_verdict(verdict: &Verdict) -> Verdict {
    let usable = match *verdict {
        Verdict::Ratio { ratio, low, high } => usable(&[ratio, low, high]),
        Verdict::AtLeast { ratio, .. } | Verdict::AtMost { ratio, .. } => usable(&[ratio]),
        Verdict::NoDifference { margin } | Verdict::Undecided { margin, .. } => {
            usable(&[margin.0]) || margin.0 == 0.0
        }
        Verdict::Withheld { ref reason } => return Verdict::Withheld { reason: plain(reason) },
    };
    if usable {
        verdict.clone()
    } else {
        Verdict::Withheld { reason: "the ratio is not a finite number".to_owned() }
    }
}

fn finite_estimate(estimate: &Estimate) -> bool {
    usable(&[estimate.ratio, estimate.low, estimate.high])
}

#[cfg(test)]
mod tests {
    use record::BoundCause;
    use units::Share;

    use super::*;

    fn pair(metric: Metric, verdict: Verdict) -> PairVerdict {
        PairVerdict { cell: 0, metric, a: 0, b: 1, estimate: None, verdict, short_of: None }
    }

    fn bound(ratio: f64) -> Verdict {
        Verdict::AtLeast { ratio, cause: BoundCause::Ceiling }
    }

    fn contenders() -> Vec<Contender> {
        let named = |name: &str| Contender { name: name.to_owned(), ..Contender::default() };
        vec![named("joust reactor"), named("apache event")]
    }

    #[test]
    fn six_wordings_and_no_others() {
        let margin = Share(0.02);
        let cases = [
            (Verdict::Ratio { ratio: 1.32, low: 1.28, high: 1.36 }, "1.32x [1.28, 1.36]"),
            (Verdict::NoDifference { margin }, "no difference of 2 % or more"),
            (
                Verdict::Undecided { more_blocks: Some(14), margin },
                "undecided: about 14 more blocks needed",
            ),
            (
                Verdict::Undecided { more_blocks: Some(140_584), margin },
                "undecided: more than 999 more blocks needed",
            ),
            (
                Verdict::Undecided { more_blocks: None, margin },
                "undecided: more than 999 more blocks needed",
            ),
            (bound(1.25), "at least 1.25x"),
            (bound(1.25).turned(), "at most 0.80x"),
            (Verdict::Withheld { reason: "bodies differ".into() }, "withheld: bodies differ"),
        ];
        for (said, text) in cases {
            assert_eq!(verdict(&said), text);
        }
    }

    #[test]
    fn less_cpu_time_is_better_and_the_greater_ratio_is_read() {
        let stored = pair(Metric::ServerCpu, Verdict::Ratio { ratio: 0.4, low: 0.32, high: 0.5 });
        let reading = Reading::new(&stored);
        assert_eq!((reading.this, reading.that, reading.ahead()), (1, 0, Some(0)));
        assert_eq!(
            reading.sentence(&contenders()),
            "apache event: 2.50x [2.00, 3.12] the server CPU time per request of joust reactor \
             (less is better, so joust reactor is ahead)"
        );
    }

    #[test]
    fn more_requests_are_better() {
        let stored = pair(Metric::Throughput, Verdict::Ratio { ratio: 1.5, low: 1.4, high: 1.6 });
        assert_eq!(Reading::new(&stored).ahead(), Some(0));
    }

    #[test]
    fn an_interval_over_one_puts_nobody_ahead() {
        let stored = pair(Metric::P99, Verdict::Ratio { ratio: 1.05, low: 0.9, high: 1.2 });
        let reading = Reading::new(&stored);
        assert_eq!(reading.ahead(), None);
        assert!(reading.sentence(&contenders()).contains("neither is proved ahead"));
    }

    #[test]
    fn a_bound_is_read_from_the_side_that_has_more() {
        let stored = pair(Metric::Throughput, bound(1.25));
        let reading = Reading::new(&stored);
        let mirror = PairVerdict { a: 1, b: 0, verdict: stored.verdict.turned(), ..stored };
        assert_eq!(mirror.verdict, Verdict::AtMost { ratio: 0.8, cause: BoundCause::Ceiling });
        assert_eq!(Reading::new(&mirror), reading);
        assert_eq!((reading.clone().turned().ahead(), reading.ahead()), (Some(0), Some(0)));
        assert_eq!(
            reading.sentence(&contenders()),
            "joust reactor: at least 1.25x the requests/s of apache event \
             (more is better, so joust reactor is ahead)"
        );
    }

    #[test]
    fn what_is_no_ratio_is_withheld() {
        for ratio in [f64::NAN, f64::INFINITY, 0.0, -1.0] {
            let stored = pair(Metric::P50, Verdict::Ratio { ratio, low: 1.0, high: 2.0 });
            assert!(matches!(Reading::new(&stored).verdict, Verdict::Withheld { .. }), "{ratio}");
        }
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(plain("a\u{1b}[2Jb"), "a\u{fffd}[2Jb");
    }
}
