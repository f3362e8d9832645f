//! Computes the figures of 0.5 from the samples of a load, counted as it counts. Owns its means, deviations and
//! percentiles. Start reading at [`Figures::new`].

use record::{Carrier, LoadRecord, Outcome, Sample};
use units::Nanos;

use super::super::workers::{Counts, Rules};

/// The percentiles that are printed.
pub(super) const PERCENTS: [u64; 8] = [50, 66, 75, 80, 90, 95, 98, 99];

/// What 0.5 counts and measures.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Figures {
    pub(super) counts: Counts,
    /// Requests that were sent on a connection that had carried one before.
    pub(super) kept_alive: u64,
    /// Microseconds.
    pub(super) elapsed: u64,
    pub(super) connect: Row,
    pub(super) first_byte: Row,
    pub(super) response: Row,
    /// Response time, including connecting if a connection was made for the request.
    pub(super) total: Row,
    /// Response times in rising order, for -e.
    pub(super) sorted: Vec<u64>,
}

/// A distribution as 0.5 prints it, in whole microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Row {
    pub(super) n: u64,
    /// Truncated to a whole number.
    pub(super) mean: u64,
    /// Of a sample (n - 1), around the truncated mean.
    pub(super) sd: f64,
    pub(super) min: u64,
    /// Those of [`PERCENTS`].
    pub(super) percentiles: [u64; 8],
    pub(super) max: u64,
}

impl Figures {
    /// What 0.5 would have counted for this load.
    pub(super) fn new(record: &LoadRecord) -> Self {
        let mut counts = Counts { started: record.requests.started, ..Counts::default() };
        let (mut connect, mut first_byte) = (Vec::new(), Vec::new());
        let (mut response, mut total) = (Vec::new(), Vec::new());
        let mut kept_alive = 0;
        for sample in record.raw.iter().filter(|sample| sample.outcome != Outcome::Unanswered) {
            counts.add(Rules::New, sample, b"");
            let connecting = connecting(sample);
            connect.extend(connecting);
            let is_kept = sample.carrier == Carrier::Reused && sample.sent > Nanos::ZERO;
            kept_alive += u64::from(is_kept);
            let since_sent = |instant: Nanos| match sample.sent {
                Nanos::ZERO => 0,
                sent => micros(instant.saturating_sub(sent)),
            };
            first_byte.push(since_sent(sample.first_byte));
            let all = since_sent(sample.done);
            response.push(all);
            total.push(all + connecting.unwrap_or(0));
        }
        let (connect, first_byte) = (Row::of(&mut connect, true), Row::of(&mut first_byte, false));
        let (sorted, total) = (Row::of(&mut response, false), Row::of(&mut total, false));
        let elapsed = ((record.seconds * 1e6).round() as u64).max(1);
        let response_row = sorted;
        Self {
            counts,
            kept_alive,
            elapsed,
            connect,
            first_byte,
            response: response_row,
            total,
            sorted: response,
        }
    }
}

/// Time to connect, if a connection was made for the request.
fn connecting(sample: &Sample) -> Option<u64> {
    let is_made = sample.carrier != Carrier::Reused && sample.sent > Nanos::ZERO;
    is_made.then(|| micros(sample.sent.saturating_sub(sample.due)))
}

fn micros(span: Nanos) -> u64 {
    span.0 / 1000
}

impl Row {
    /// Sorts the spans. For an even number the median is the lower of the two in the middle. The other percentiles use
    /// the next value above, except those of connecting, which use the same rule as the median.
    pub(super) fn of(spans: &mut [u64], connects: bool) -> Self {
        spans.sort_unstable();
        let n = spans.len();
        let (Some(min), Some(max)) = (spans.first(), spans.last()) else { return Self::default() };
        let mean = spans.iter().sum::<u64>() / n as u64;
        let squares: f64 = spans.iter().map(|span| (*span as f64 - mean as f64).powi(2)).sum();
        let sd = (squares / (n.max(2) - 1) as f64).sqrt();
        let is_even = usize::from(n.is_multiple_of(2));
        let percentiles = PERCENTS.map(|percent| {
            let below = if percent == 50 || connects { is_even } else { 0 };
            spans[(n * percent as usize / 100).saturating_sub(below).min(n - 1)]
        });
        Self { n: n as u64, mean, sd, min: *min, percentiles, max: *max }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_0_5() {
        let row = |n: u64, connects| Row::of(&mut (1..=n).rev().collect::<Vec<_>>(), connects);
        let of_100 = row(100, false);
        assert_eq!((of_100.min, of_100.mean, of_100.max, of_100.n), (1, 50, 100, 100));
        assert_eq!(of_100.percentiles, [50, 67, 76, 81, 91, 96, 99, 100]);
        assert_eq!(row(100, true).percentiles, [50, 66, 75, 80, 90, 95, 98, 99]);
        assert_eq!(row(5, false).percentiles[0], 3);
        assert_eq!((row(1, true).percentiles, row(1, true).sd), ([1; 8], 0.0));
        // Around 2, which is 2.5 truncated: 1 + 0 + 1 + 4 over 3.
        assert!((row(4, false).sd - 2f64.sqrt()).abs() < 1e-12);
        assert_eq!(row(0, true), Row::default());
    }
}
