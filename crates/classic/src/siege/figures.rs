//! siege's figures, from what its users received. Owns its way of counting, and its clock of 10 ms. Start reading at
//! [`UserTotals`].

use record::Sample;
use units::Nanos;

use super::style::Style;

/// A step of siege's clock, times(2).
const TICK: u64 = 10_000_000;

/// The counts of all users together.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct UserTotals {
    /// Transactions.
    pub(super) hits: u64,
    /// Replies below 400, and 401 and 407.
    pub(super) succeeded: u64,
    /// Replies with 200.
    pub(super) ok: u64,
    pub(super) failed: u64,
    /// Of bodies.
    pub(super) bytes: u64,
    /// Total time of all replies, by siege's clock.
    pub(super) time: f64,
    pub(super) longest: f64,
    pub(super) shortest: Option<f64>,
    /// What the report hides.
    pub(super) hidden: Hidden,
    /// Requests with a result.
    pub(super) heard: u64,
}

/// What siege counts and does not print.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Hidden {
    /// Complete replies with 500 to 509 or 408.
    pub(super) server_errors: u64,
    /// Other replies from 400 on.
    pub(super) client_errors: u64,
    /// Requests without a reply, and replies without a body if those are configured to fail.
    pub(super) without_reply: u64,
    /// Replies that were cut off, but count as whole ones.
    pub(super) cut: u64,
    /// Requests that followed a redirect, repeated one with credentials, or fetched a part of a page.
    pub(super) further: u64,
    /// Parts of pages that were not fetched, because too many of them were waiting.
    pub(super) left_out: u64,
    /// Pauses between URLs, of all users together.
    pub(super) paused: Nanos,
}

/// Seconds between two instants, by siege's clock or exactly.
pub(super) fn seconds(style: Style, from: Nanos, to: Nanos) -> f64 {
    match style {
        Style::Seconds => (to.0 / TICK).saturating_sub(from.0 / TICK) as f64 / 100.0,
        Style::Millis => to.saturating_sub(from).0 as f64 / 1e9,
    }
}

impl UserTotals {
    /// Each request has a status of one kind, or none.
    pub(super) fn account(&self, left_out: u64) -> crate::command::RequestAccount {
        let Hidden { server_errors, client_errors, without_reply, .. } = self.hidden;
        let by_outcome = self.succeeded + server_errors + client_errors + without_reply;
        crate::command::RequestAccount { counted: self.heard, by_outcome, left_out }
    }

    /// Counts a reply; its transaction is decided later.
    pub(super) fn add(&mut self, style: Style, sample: &Sample, status: u16, bytes: u64) -> f64 {
        let time = seconds(style, sample.due, sample.done);
        self.time += time;
        self.bytes += bytes;
        self.longest = self.longest.max(time);
        self.shortest = Some(self.shortest.map_or(time, |shortest| shortest.min(time)));
        if status < 400 || status == 401 || status == 407 {
            self.succeeded += 1;
        } else if is_server_error(status) {
            self.hidden.server_errors += 1;
        } else {
            self.hidden.client_errors += 1;
        }
        self.ok += u64::from(status == 200);
        time
    }
}

/// Statuses that make a transaction fail.
pub(super) fn is_server_error(status: u16) -> bool {
    status == 408 || (500..=509).contains(&status)
}

/// The figures of a report.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Figures {
    pub(super) hits: u64,
    /// In percent.
    pub(super) availability: f64,
    pub(super) elapsed: f64,
    pub(super) megabytes: f64,
    pub(super) response: f64,
    pub(super) rate: f64,
    pub(super) throughput: f64,
    pub(super) concurrency: f64,
    pub(super) succeeded: u64,
    pub(super) ok: u64,
    pub(super) failed: u64,
    pub(super) longest: f64,
    pub(super) shortest: f64,
    /// Total seconds, for the log.
    pub(super) time: f64,
}

impl Figures {
    /// For a load with that duration.
    pub(super) fn new(style: Style, tally: &UserTotals, took: Nanos) -> Self {
        let elapsed = seconds(style, Nanos::ZERO, took);
        let hits = tally.hits as f64;
        let of = |value: f64, by: f64| if by == 0.0 || value == 0.0 { 0.0 } else { value / by };
        let megabytes = tally.bytes as f64 / 1_048_576.0;
        Self {
            hits: tally.hits,
            availability: of(hits, hits + tally.failed as f64) * 100.0,
            elapsed,
            megabytes,
            response: of(tally.time, hits),
            rate: of(hits, elapsed),
            throughput: of(megabytes, elapsed),
            concurrency: of(tally.time, elapsed),
            succeeded: tally.succeeded,
            ok: tally.ok,
            failed: tally.failed,
            longest: tally.longest,
            // There is none without a success.
            shortest: tally.shortest.filter(|_| tally.succeeded > 0).unwrap_or(0.0),
            time: tally.time,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_has_steps_of_ten_milliseconds_unless_it_is_the_newer_one() {
        let at = |micros| Nanos::from_micros(micros);
        assert_eq!(seconds(Style::Seconds, at(1_000), at(9_900)), 0.0);
        assert_eq!(seconds(Style::Seconds, at(9_900), at(10_100)), 0.01, "a step lies between");
        assert_eq!(seconds(Style::Millis, at(1_000), at(9_900)), 0.0089);
    }

    #[test]
    fn nothing_done_is_nothing_and_no_division() {
        let nothing = Figures::new(Style::Seconds, &UserTotals::default(), Nanos::ZERO);
        let all = [nothing.availability, nothing.response, nothing.rate, nothing.concurrency];
        assert_eq!(all, [0.0; 4]);
        let failed = UserTotals { failed: 3, hits: 1, ..UserTotals::default() };
        assert_eq!(Figures::new(Style::Seconds, &failed, Nanos::ZERO).availability, 25.0);
    }
}
