//! Owns the check that a load ran long enough to be one. Start reading at [`look`].

use record::{Certainty, Question, Severity};

use crate::printed::check::{Conclusion, Effect, PrintedCheck, Seen};
use crate::printed::row::{Printed, Row};
use crate::printed::words as rows_words;
use crate::words;

/// See the module.
pub(crate) const ITEM: PrintedCheck = PrintedCheck {
    name: "load_too_short",
    severity: Severity::Void,
    question: Question::DoesItReproduce,
    title: "the load was too short",
    meaning: "starting and ending are a large part of it: connecting, cold caches, connections that are done early",
    detection: "Less than 1 s, or fewer than 30 requests a connection (n = c is one each), or less than 20 mean \
                latencies",
    remedy: "ask for 10 s or more, and for at least 100 requests a connection",
    example: "ab -n 100 -c 100",
    source: "specification of the doctor, C6: shares of first and last requests at 30 a connection are 3 % each",
    touches: &[(Conclusion::Rate, Effect::Void), (Conclusion::Latency, Effect::InDoubt)],
    look,
};

/// A load that is ordered to take 1 s may print a little less.
const SECONDS_MIN: f64 = 0.95;
const REQUESTS_A_CONNECTION_MIN: f64 = 30.0;
const LATENCIES_MIN: f64 = 20.0;

fn look(printed: &Printed) -> Vec<Seen> {
    let judged = printed.rows.iter().filter(|row| row.duration.is_some() || row.complete.is_some());
    let judged = judged.count();
    let short: Vec<(usize, String)> =
        printed.indexed().filter_map(|(at, row)| Some((at, why(row)?))).collect();
    let Some((_, first)) = short.first() else { return Vec::new() };
    let rows: Vec<usize> = short.iter().map(|(at, _)| *at).collect();
    let example = if rows.len() > 1 { " in the first of them" } else { "" };
    let evidence = format!("{} {first}{example}", rows_words::subject(printed, &rows, judged));
    vec![Seen { certainty: Certainty::Confirmed, rows, share: None, evidence }]
}

fn why(row: &Row) -> Option<String> {
    let duration = row.duration.filter(|_| !row.is_aborted());
    if let Some(time) = duration.filter(|time| time.high < SECONDS_MIN) {
        return Some(format!("it took {}", rows_words::time(time.value)));
    }
    let each = row.complete.zip(row.connections).and_then(|(all, n)| all.over(n));
    if let Some(each) =
        each.filter(|each| each.high < REQUESTS_A_CONNECTION_MIN && each.value > 0.0)
    {
        let (all, n) = (row.complete?.value as u64, row.connections?.value as u64);
        return Some(format!(
            "{} on {} are {:.1} each",
            words::count(all, "request"),
            words::count(n, "connection"),
            each.value
        ));
    }
    let latencies = duration.zip(row.total().mean).and_then(|(time, mean)| time.over(mean));
    let latencies = latencies.filter(|n| n.high < LATENCIES_MIN)?;
    Some(format!("it took {:.1} mean latencies", latencies.value))
}

impl Row {
    /// Whether the tool gave up, which another check tells.
    fn is_aborted(&self) -> bool {
        self.report.as_ref().is_some_and(|report| report.aborted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::printed::testdata::{AB, WRK, evidence, printed, with};

    #[test]
    fn long_loads_are_silent() {
        for text in [AB, WRK] {
            assert_eq!(look(&printed(text)), []);
        }
    }

    #[test]
    fn what_is_too_short_is_told() {
        let text = with(AB, "20.000 seconds", "0.072 seconds");
        assert_eq!(evidence(&look(&printed(&text))), ["paste (ab): it took 72ms"]);
        let text = with(AB, "Complete requests:      200000", "Complete requests:      64");
        assert_eq!(
            evidence(&look(&printed(&text))),
            ["paste (ab): 64 requests on 64 connections are 1.0 each"]
        );
        let text = with(WRK, "1.28ms    0.31ms   2.41ms", "1.28s    310.00ms   2.41s");
        assert_eq!(evidence(&look(&printed(&text))), ["paste (wrk): it took 7.8 mean latencies"]);
    }
}
