//! Owns the check that what is called speed is made of good replies. Start reading at [`look`].

use record::{Certainty, Question, Severity};

use crate::printed::check::{Conclusion, Effect, PrintedCheck, Seen};
use crate::printed::row::{Printed, Row};
use crate::printed::words as rows_words;
use crate::words;

/// See the module.
pub(crate) const ITEM: PrintedCheck = PrintedCheck {
    name: "errors_in_rate",
    severity: Severity::Void,
    question: Question::DidItError,
    title: "errors count as speed, or nothing but errors was answered",
    meaning: "an error is often cheaper than the work, so the server looks faster than it is, or another thing was \
              measured",
    detection: "Replies with a bad status, or requests without a reply, are more than 0.001 % of all (RFC 9411); ab's \
                replies of another length than the first are the matter of inverted_failures",
    remedy: "find why the server refuses (its error log), and repeat; compare good replies only",
    example: "wrk against a path that does not exist: Non-2xx or 3xx responses: 25532, Requests/sec: 25039.03",
    source: "RFC 9411, section 6.3; wg/wrk, src/wrk.c (response_complete counts every status)",
    touches: &[(Conclusion::Rate, Effect::AtMost), (Conclusion::Latency, Effect::InDoubt)],
    look,
};

/// Share of failed requests that RFC 9411 lets pass.
const FAILED_SHARE_MAX: f64 = 1e-5;

fn look(printed: &Printed) -> Vec<Seen> {
    let counted = printed.rows.iter().filter(|row| bad(row).is_some()).count();
    let kinds = [
        seen(printed, counted, "answered with errors only", |row, share| {
            share >= 1.0 || is_mute(row)
        }),
        seen(printed, counted, "count errors in the rate", |row, share| {
            share < 1.0 && !is_mute(row) && row.has_errors_in_rate
        }),
        seen(printed, counted, "had errors beside the rate", |row, share| {
            share < 1.0 && !is_mute(row) && !row.has_errors_in_rate
        }),
    ];
    kinds.into_iter().flatten().collect()
}

/// Errors, though its rate is 0.
fn is_mute(row: &Row) -> bool {
    row.rate.is_some_and(|rate| rate.high < 1.0)
}

fn seen(
    printed: &Printed,
    counted: usize,
    what: &str,
    is_of_kind: impl Fn(&Row, f64) -> bool,
) -> Option<Seen> {
    let hits: Vec<(usize, f64)> = printed
        .indexed()
        .filter_map(|(at, row)| Some((at, bad(row)?)))
        .filter(|(at, share)| *share > FAILED_SHARE_MAX && is_of_kind(&printed.rows[*at], *share))
        .collect();
    if hits.is_empty() {
        return None;
    }
    let rows: Vec<usize> = hits.iter().map(|(at, _)| *at).collect();
    let shares: Vec<f64> = hits.iter().map(|(_, share)| *share).collect();
    let told: Vec<String> = hits
        .iter()
        .map(|&(at, share)| format!("{} {}", printed.rows[at].name, words::percent(share)))
        .collect();
    let all: u64 = rows.iter().map(|&at| errors(&printed.rows[at])).sum();
    let evidence = format!(
        "{} {what}: {}, {} of the requests{}",
        rows_words::subject(printed, &rows, counted),
        words::count(all, "error"),
        rows_words::percent_range(&shares),
        rows_words::examples(&told),
    );
    let share = (rows.len() == 1).then(|| shares[0]);
    Some(Seen { certainty: Certainty::Confirmed, rows, share, evidence })
}

/// Replies with a bad status, and requests without a reply.
fn errors(row: &Row) -> u64 {
    let failed = match row.tool() {
        // Failures of ab are lengths; of these tools they are the bad statuses, counted again.
        Some("ab" | "h2load" | "weighttp" | "http_load") => 0,
        _ => row.failed.unwrap_or(0),
    };
    row.bad_status.unwrap_or(0).saturating_add(failed).saturating_add(socket_errors(row))
}

/// Connections that broke, by wrk's count, and requests that had no reply, by that of others.
fn socket_errors(row: &Row) -> u64 {
    let Some(report) = row.report.as_ref() else { return 0 };
    let kinds: &[&str] = match report.tool {
        "wrk" | "wrk2" => &["connect", "read", "write", "timeout"],
        "ab" => &["Connect", "Receive", "Exceptions", "Write"],
        "h2load" => &["errored", "timeout"],
        "weighttp" => &["errored", "errs"],
        _ => &[],
    };
    kinds.iter().filter_map(|kind| report.errors.get(*kind)).sum()
}

/// Share of bad ones; `None` where nothing is counted.
fn bad(row: &Row) -> Option<f64> {
    let complete = row.complete?.value;
    (row.bad_status.is_some() || row.failed.is_some()).then_some(())?;
    let bad = errors(row) as f64;
    // Replies with a bad status are among the complete ones, as far as tools and boards say.
    let all = complete.max(row.bad_status.unwrap_or(0) as f64).max(1.0);
    Some((bad / all).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::printed::testdata::{AB, WRK, evidence, of, printed, with};

    #[test]
    fn good_replies_are_silent() {
        for text in [AB, WRK] {
            assert_eq!(look(&printed(text)), []);
        }
    }

    #[test]
    fn wrks_bad_statuses_are_in_its_rate() {
        let text = with(WRK, "Requests/sec:", "  Non-2xx or 3xx responses: 25000\nRequests/sec:");
        let seen = look(&printed(&text));
        let told = "paste (wrk): count errors in the rate: 25,000 errors, 5 % of the requests";
        assert_eq!(evidence(&seen), [told]);
        assert_eq!(seen[0].share, Some(0.05));
    }

    #[test]
    fn a_rate_of_nothing_but_errors_is_told_apart() {
        let row = |name: &str, rps: u64, good: u64, bad: u64| {
            format!(
                r#"{{"framework": "{name}", "rps": {rps}, "avg_latency": "1.28ms", "p99_latency": "3ms",
                "connections": 512, "duration": "5s", "status_2xx": {good}, "status_4xx": {bad}}}"#
            )
        };
        let rows = [row("a", 100, 500, 0), row("b", 0, 0, 3000), row("c", 100, 500, 100)];
        let seen = look(&of(&[("x.json", &format!("[{}]", rows.join(",")))]));
        let told = [
            "b, 1 of 3 rows: answered with errors only: 3,000 errors, 100 % of the requests",
            "c, 1 of 3 rows: had errors beside the rate: 100 errors, 16.7 % of the requests",
        ];
        assert_eq!(evidence(&seen), told);
    }
}
