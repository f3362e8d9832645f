//! Owns the check that printed percentiles have requests behind them. Start reading at [`look`].

use record::{Certainty, Question, Severity};

use crate::printed::check::{Conclusion, Effect, PrintedCheck, Seen};
use crate::printed::row::Printed;
use crate::printed::words as rows_words;
use crate::words;

/// See the module.
pub(crate) const ITEM: PrintedCheck = PrintedCheck {
    name: "samples_for_percentile",
    severity: Severity::Note,
    question: Question::DidItBreakALimit,
    title: "a percentile of too few requests",
    meaning: "with too few requests it is a lower percentile under that name, and depends on a few outliers",
    detection: "Fewer than ln 0.025 / ln q requests for the quantile q: 368 for p99, 3,688 for p99.9",
    remedy: "ask for more requests, or a lower percentile",
    example: "ab -n 200, whose report has a line for 99 %",
    source: "Conover, Practical Nonparametric Statistics, section 3.2 (order statistics)",
    touches: &[(Conclusion::Latency, Effect::InDoubt)],
    look,
};

/// Lowest percentile that is looked at.
const PERCENT_MIN: f64 = 90.0;

fn look(printed: &Printed) -> Vec<Seen> {
    let mut judged = 0;
    let mut short: Vec<(usize, f64, u64, u64)> = Vec::new();
    for (at, row) in printed.indexed() {
        let Some(complete) = row.complete else { continue };
        let mut tail = row.percentiles.iter().map(|(percent, _)| *percent);
        let lowest = tail.find(|percent| {
            (PERCENT_MIN..100.0).contains(percent) && complete.high < needed(*percent) as f64
        });
        judged += usize::from(!row.percentiles.is_empty());
        short.extend(lowest.map(|percent| (at, percent, complete.value as u64, needed(percent))));
    }
    let Some(&(_, percent, has, needs)) = short.iter().min_by_key(|one| one.2) else {
        return Vec::new();
    };
    let rows: Vec<usize> = short.iter().map(|one| one.0).collect();
    let evidence = format!(
        "{} p{percent} is of {}, but {} are needed",
        rows_words::subject(printed, &rows, judged),
        words::count(has, "request"),
        words::grouped(needs),
    );
    vec![Seen { certainty: Certainty::Confirmed, rows, share: None, evidence }]
}

fn needed(percent: f64) -> u64 {
    stats::samples_needed(percent / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::printed::testdata::{AB, evidence, printed, with};

    #[test]
    fn enough_requests_are_silent() {
        assert_eq!(look(&printed(AB)), []);
    }

    #[test]
    fn two_hundred_requests_have_no_p99() {
        let text = with(AB, "Complete requests:      200000", "Complete requests:      180");
        let told = "paste (ab): p98 is of 180 requests, but 183 are needed";
        assert_eq!(evidence(&look(&printed(&text))), [told]);
    }
}
