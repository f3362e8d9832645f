//! Owns the check that a percentile is not another figure under its name. Start reading at [`look`].

use record::{Certainty, Question, Severity};

use crate::printed::check::{Conclusion, Effect, PrintedCheck, Seen};
use crate::printed::figure::Figure;
use crate::printed::row::{Printed, Row};
use crate::printed::words;

/// See the module.
pub(crate) const ITEM: PrintedCheck = PrintedCheck {
    name: "percentile_is_mean",
    severity: Severity::Void,
    question: Question::DidItEvenHappen,
    title: "a percentile is the mean or the maximum under another name",
    meaning: "whoever made the table put one figure into two columns; the tail was never measured, or is not shown",
    detection: "A percentile of 90 % or more is printed as the very mean, or as the very maximum although there were \
                100 requests beyond it, to three digits. Confirmed from three rows on, or where the maximum or the \
                deviation shows that latencies differ",
    remedy: "ask for the raw output: wrk prints percentiles only with --latency, others in their histogram",
    example: "avg_latency 8.16ms, p99_latency 8.16ms",
    source: "wrk prints no percentiles without --latency (wg/wrk, README)",
    touches: &[(Conclusion::Latency, Effect::Void)],
    look,
};

/// Lowest percentile that cannot be the mean of latencies that differ by much.
const PERCENT_MIN: f64 = 90.0;
/// To which share a figure has to be known: three digits.
const KNOWN_SHARE: f64 = 0.011;
/// Requests beyond a percentile, from which its being the maximum is no accident.
const BEYOND_MIN: f64 = 100.0;
/// From this number of rows on it is the way the table was made.
const ROWS_CONFIRM: usize = 3;

fn look(printed: &Printed) -> Vec<Seen> {
    let mean = seen(printed, "the mean", is_mean);
    let max = seen(printed, "the maximum", is_max);
    mean.into_iter().chain(max).collect()
}

fn seen(
    printed: &Printed,
    what: &str,
    which: fn(&Row, f64, Figure) -> Option<bool>,
) -> Option<Seen> {
    let mut judged = 0;
    let mut hits: Vec<(usize, f64, bool)> = Vec::new();
    for (at, row) in printed.indexed() {
        let tail =
            row.percentiles.iter().filter(|(percent, _)| (PERCENT_MIN..100.0).contains(percent));
        let tail: Vec<_> = tail.collect();
        judged += usize::from(!tail.is_empty());
        let hit = tail.iter().find_map(|(percent, time)| {
            which(row, *percent, *time).map(|is_certain| (at, *percent, is_certain))
        });
        hits.extend(hit);
    }
    let (_, percent, _) = *hits.first()?;
    let rows: Vec<usize> = hits.iter().map(|(at, ..)| *at).collect();
    let is_certain = hits.len() >= ROWS_CONFIRM || hits.iter().any(|(.., is_certain)| *is_certain);
    let certainty = if is_certain { Certainty::Confirmed } else { Certainty::Suspected };
    let first = &printed.rows[rows[0]];
    let value = first.percentile(percent).map_or(0.0, |time| time.value);
    let evidence = format!(
        "{} p{percent} is printed as {what}{}",
        words::subject(printed, &rows, judged),
        match rows.len() {
            1 => format!(" ({})", words::time(value)),
            _ => format!(" (for example {} of {})", words::time(value), first.name),
        }
    );
    Some(Seen { certainty, rows, share: None, evidence })
}

fn is_same(one: Figure, other: Figure) -> bool {
    one.value == other.value && one.is_within(KNOWN_SHARE)
}

/// Whether it is the mean; inside, whether latencies are known to differ.
fn is_mean(row: &Row, _: f64, time: Figure) -> Option<bool> {
    let total = row.total();
    is_same(time, total.mean?).then(|| {
        let longer = total.max.is_some_and(|max| max.low > 1.5 * time.high);
        let spread = total.sd.is_some_and(|sd| sd.low > 0.1 * time.high);
        longer || spread
    })
}

/// Whether it is the maximum; ab and its like in whole milliseconds are known to too few digits.
fn is_max(row: &Row, percent: f64, time: Figure) -> Option<bool> {
    let total = row.total();
    let beyond = row.complete?.value * (1.0 - percent / 100.0);
    // Latencies that are all alike have one figure for all.
    let differ = total.mean.is_some_and(|mean| 1.2 * mean.high < time.low);
    (is_same(time, total.max?) && beyond >= BEYOND_MIN && differ).then_some(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::printed::testdata::{AB, WRK, evidence, printed, with};

    #[test]
    fn other_figures_are_silent() {
        for text in [AB, WRK] {
            assert_eq!(look(&printed(text)), []);
        }
        // To one digit, equality says nothing.
        assert_eq!(look(&printed("server,req/s,mean (ms),p99 (ms)\na,100,5,5\n")), []);
    }

    #[test]
    fn a_column_of_means_is_confirmed_by_its_rows() {
        let table = "server,req/s,mean (ms),p99 (ms)\na,100,5.09,5.09\nb,90,6.10,6.10\nc,80,7.41,7.41\nd,70,8.1,9.3\n";
        let seen = look(&printed(table));
        assert_eq!(
            evidence(&seen),
            ["3 of 4 rows: p99 is printed as the mean (for example 5.09ms of a)"]
        );
        assert_eq!(seen[0].certainty, Certainty::Confirmed);
        let one = look(&printed("server,req/s,mean (ms),p99 (ms)\na,100,5.09,5.09\n"));
        assert_eq!(one[0].certainty, Certainty::Suspected);
    }

    #[test]
    fn a_tail_of_thousands_does_not_end_at_its_percentile() {
        let seen = look(&printed(&with(WRK, "     99%    2.20ms", "     99%    2.41ms")));
        assert_eq!(evidence(&seen), ["paste (wrk): p99 is printed as the maximum (2.41ms)"]);
    }
}
