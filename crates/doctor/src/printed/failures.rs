//! Owns what is counted as failed in a row, whatever the tool calls it. Start reading at [`failed_share`].

use record::Certainty;

use super::check::Seen;
use super::row::{Printed, Row};
use super::words as rows_words;
use crate::words;

/// Share of failed requests that RFC 9411 lets pass.
pub(super) const FAILED_SHARE_MAX: f64 = 1e-5;

/// Rows with more failures than may pass, among them those that `is_of_kind` takes by row and share, told in a
/// sentence; nothing where there is none. The share is that of the only row.
pub(super) fn failing(
    printed: &Printed,
    what: &str,
    is_of_kind: fn(&Row, f64) -> bool,
) -> Vec<Seen> {
    let counted = printed.rows.iter().filter(|row| failed_share(row).is_some()).count();
    let hits: Vec<(usize, f64)> = printed
        .indexed()
        .filter_map(|(at, row)| Some((at, failed_share(row)?)))
        .filter(|(at, share)| *share > FAILED_SHARE_MAX && is_of_kind(&printed.rows[*at], *share))
        .collect();
    if hits.is_empty() {
        return Vec::new();
    }
    let rows: Vec<usize> = hits.iter().map(|(at, _)| *at).collect();
    let shares: Vec<f64> = hits.iter().map(|(_, share)| *share).collect();
    let told: Vec<String> = hits
        .iter()
        .map(|&(at, share)| format!("{} {}", printed.rows[at].name, words::percent(share)))
        .collect();
    let all = rows.iter().map(|&at| errors(&printed.rows[at])).fold(0, u64::saturating_add);
    let evidence = format!(
        "{} {what}: {}, {} of the requests{}",
        rows_words::subject(printed, &rows, counted),
        words::count(all, "error"),
        rows_words::percent_range(&shares),
        rows_words::examples(&told),
    );
    let share = (rows.len() == 1).then(|| shares[0]);
    vec![Seen { certainty: Certainty::Confirmed, rows, share, evidence }]
}

/// Whether it answered with nothing but errors: of a board, its rate is 0 then.
pub(super) fn is_mute(row: &Row, share: f64) -> bool {
    share >= 1.0 || row.rate.is_some_and(|rate| rate.value < 1.0)
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
    kinds.iter().filter_map(|kind| report.errors.get(*kind).copied()).fold(0, u64::saturating_add)
}

/// Share of failed ones; `None` where nothing is counted.
pub(super) fn failed_share(row: &Row) -> Option<f64> {
    let complete = row.complete?.value;
    (row.bad_status.is_some() || row.failed.is_some()).then_some(())?;
    let bad = errors(row) as f64;
    // Replies with a bad status are among the complete ones, as far as tools and boards say.
    let all = complete.max(row.bad_status.unwrap_or(0) as f64).max(1.0);
    Some((bad / all).min(1.0))
}
