//! Owns the words of a verdict: the six wordings, what is said of each metric, and which way round a
//! pair is read. Must not know how they are laid out or coloured.
//! Start reading at [`verdict`], then [`Reading`].

use record::{Contender, Estimate, Metric, PairVerdict, ShortOf, Verdict};

use crate::figures::{counted, ratio_down, ratio_up, ratio_with_interval};

/// Beyond this, a number of blocks is not a useful plan, and its digits are noise.
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
        Verdict::AtLeast { ratio: bound, .. } => format!("at least {}", ratio_down(*bound)),
        Verdict::AtMost { ratio: bound, .. } => format!("at most {}", ratio_up(*bound)),
        Verdict::Withheld { reason } => format!("withheld: {reason}"),
    }
}

/// A pair's verdict, turned so that the better side comes first: the side that is proved ahead, otherwise the side
/// with the better figure. Its ratio says how many times better the first side is, for any metric. If less is better,
/// that is how many times as much the second side needs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reading {
    pub(crate) metric: Metric,
    /// Index of the contender that comes first.
    pub(crate) this: usize,
    /// Index of the contender that it is compared with.
    pub(crate) that: usize,
    /// How many times better `this` is than `that`; always finite.
    pub(crate) verdict: Verdict,
    /// In the same direction; always finite.
    pub(crate) estimate: Option<Estimate>,
    /// Present if the pair has fewer blocks than the study asks for.
    pub(crate) short_of: Option<ShortOf>,
}

impl Reading {
    /// Reads a verdict of a run file.
    pub(crate) fn new(pair: &PairVerdict) -> Self {
        let (this, that) = match pair.metric.more_is_better() {
            true => (pair.a, pair.b),
            // If less is better, the ratio of a over b says how much better b is.
            false => (pair.b, pair.a),
        };
        let stored = Self {
            metric: pair.metric,
            this,
            that,
            verdict: finite_verdict(&pair.verdict),
            estimate: pair.estimate.filter(finite_estimate),
            short_of: pair.short_of,
        };
        let is_behind = match stored.verdict {
            Verdict::Ratio { ratio, .. } => ratio < 1.0,
            Verdict::AtLeast { .. } => false,
            Verdict::AtMost { .. } => true,
            _ => stored.estimate.is_some_and(|estimate| estimate.ratio < 1.0),
        };
        if is_behind { stored.turned() } else { stored }
    }

    /// The same pair with that contender first, which is one of the two, whichever is better.
    pub(crate) fn seen_by(self, contender: usize) -> Self {
        if self.this == contender { self } else { self.turned() }
    }

    /// The same pair in the other direction.
    fn turned(self) -> Self {
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

    /// Index of the better side, which is the first, if the verdict proves it.
    pub(crate) fn ahead(&self) -> Option<usize> {
        self.at_least().map(|_| self.this)
    }

    /// By what factor at least the first is better, if it is proved ahead.
    pub(crate) fn at_least(&self) -> Option<f64> {
        let near_end = match self.verdict {
            Verdict::Ratio { low, .. } => low,
            Verdict::AtLeast { ratio, .. } => ratio,
            _ => return None,
        };
        (near_end > 1.0).then_some(near_end)
    }

    /// Ratio and interval, whatever the verdict: `1.02x [0.97, 1.08]`.
    pub(crate) fn ratio_and_interval(&self) -> Option<String> {
        match (&self.verdict, self.estimate) {
            (Verdict::Ratio { ratio, low, high }, _) => {
                Some(ratio_with_interval(*ratio, *low, *high))
            }
            (_, estimate) => estimate.map(|e| ratio_with_interval(e.ratio, e.low, e.high)),
        }
    }

    /// The same, and what is short: `1.02x [0.97, 1.08], 3 blocks of 8`.
    pub(crate) fn measured(&self) -> Option<String> {
        let mut ratio = self.ratio_and_interval()?;
        let is_beyond_one = |one: Estimate| one.low > 1.0 || one.high < 1.0;
        if matches!(self.verdict, Verdict::Undecided { .. })
            && self.estimate.is_some_and(is_beyond_one)
        {
            ratio.push_str(", p after Holm not below 0.02");
        }
        Some(self.short().map_or_else(|| ratio.clone(), |short| format!("{ratio}, {short}")))
    }

    /// `3 blocks of 8`: it has fewer blocks than the study asks for.
    pub(crate) fn short(&self) -> Option<String> {
        let ShortOf { blocks, of } = self.short_of?;
        Some(format!("{} of {of}", counted(blocks.into(), "block")))
    }
}

/// Name of a contender, or its number if a file names one that does not exist.
pub(crate) fn name_of(contenders: &[Contender], index: usize) -> String {
    contenders.get(index).map_or_else(|| format!("contender {index}"), |c| plain(&c.name))
}

/// Text from outside (names, logs, versions) without control characters: they could move the cursor
/// of a terminal, turn the order of what follows around, or break a well-formed page.
pub(crate) fn plain(text: &str) -> String {
    let shown = |c: char| if c.is_control() || turns(c) { '\u{fffd}' } else { c };
    text.chars().map(shown).collect()
}

/// Whether it changes the direction of text, or begins a new line without being a control character (Unicode Standard
/// Annex 9 and section 23.2).
fn turns(c: char) -> bool {
    matches!(
        c,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    )
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
    fn less_cpu_time_is_better_and_the_better_side_is_read_first() {
        let stored = pair(Metric::ServerCpu, Verdict::Ratio { ratio: 0.4, low: 0.32, high: 0.5 });
        let reading = Reading::new(&stored);
        assert_eq!((reading.this, reading.that, reading.ahead()), (0, 1, Some(0)));
        assert_eq!(reading.ratio_and_interval().unwrap(), "2.50x [2.00, 3.12]");
        assert_eq!(reading.at_least(), Some(2.0));
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
        assert_eq!((reading.ahead(), reading.this), (None, 1), "a took longer: b comes first");
    }

    #[test]
    fn who_was_seen_ahead_comes_first_where_nothing_is_proved() {
        let margin = Share(0.02);
        let estimate =
            Estimate { ratio: 0.8, low: 0.5, high: 1.25, blocks: 3, sd_ln: 0.1, p_holm: 0.5 };
        let verdict = Verdict::Undecided { more_blocks: None, margin };
        let short_of = Some(ShortOf { blocks: 3, of: 8 });
        let stored =
            PairVerdict { estimate: Some(estimate), short_of, ..pair(Metric::P50, verdict) };
        let reading = Reading::new(&stored);
        assert_eq!((reading.this, reading.ahead()), (0, None), "the shorter time");
        assert_eq!(reading.measured().unwrap(), "1.25x [0.80, 2.00], 3 blocks of 8");
    }

    #[test]
    fn a_bound_is_read_from_the_side_that_is_better() {
        let stored = pair(Metric::Throughput, bound(1.25));
        let reading = Reading::new(&stored);
        let mirror = PairVerdict { a: 1, b: 0, verdict: stored.verdict.turned(), ..stored };
        assert_eq!(mirror.verdict, Verdict::AtMost { ratio: 0.8, cause: BoundCause::Ceiling });
        assert_eq!(Reading::new(&mirror), reading);
        assert_eq!((reading.ahead(), reading.at_least()), (Some(0), Some(1.25)));
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
        assert_eq!(plain("a\u{202e}b\u{2028}c"), "a\u{fffd}b\u{fffd}c");
    }
}
