//! Computes ab's figures from the samples of a load, counted as ab counts. Owns what ab treats as complete, failed and
//! kept alive, its means and medians. Start reading at [`Figures::new`].

use record::{AtEnd, Carrier, LoadRecord, Outcome, Sample};
use units::Nanos;

use super::flags::Flags;
use crate::command::RequestAccount;

/// What ab counts and measures.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Figures {
    pub(super) done: u64,
    pub(super) failed: u64,
    pub(super) receive: u64,
    pub(super) length: u64,
    pub(super) exceptions: u64,
    pub(super) non_2xx: u64,
    pub(super) kept_alive: u64,
    /// Bytes of all replies, of their bodies including any framing, and of requests.
    pub(super) read: u64,
    pub(super) bodies: u64,
    pub(super) posted: u64,
    pub(super) document: u64,
    /// One for each finished request, in the order of ending.
    pub(super) times: Vec<Times>,
    /// Microseconds.
    pub(super) taken: u64,
    /// Why ab would have given up, if so.
    pub(super) fatal: Option<Fatal>,
    /// For footnotes: complete replies among those that failed by their length; requests that ab would have sent on a
    /// connection that the server had closed; bytes of framing in `bodies`; refused requests.
    pub(super) complete_of_other_length: u64,
    pub(super) sent_in_vain: u64,
    pub(super) framing: u64,
    /// Requests of the load that ab would not have counted.
    pub(super) left_out: u64,
    refused: u64,
}

/// Times of one request, in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Times {
    /// Since the load began.
    pub(super) start: u64,
    pub(super) connect: u64,
    pub(super) total: u64,
    pub(super) wait: u64,
}

/// An error at which ab gives up without a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fatal {
    /// No event for the time of -s.
    TimedOut,
    Refused,
    Reset,
    NoPort,
    NoFile,
    /// The address of -B is not this machine's.
    NoAddress,
}

impl Fatal {
    /// ab's message, and the error's number.
    pub(super) fn said(self) -> (&'static str, u32) {
        match self {
            Self::TimedOut => ("apr_pollset_poll: The timeout specified has expired", 70_007),
            Self::Refused => ("apr_socket_recv: Connection refused", 111),
            Self::Reset => ("apr_socket_recv: Connection reset by peer", 104),
            Self::NoPort => ("apr_socket_connect(): Cannot assign requested address", 99),
            Self::NoFile => ("socket: Too many open files", 24),
            Self::NoAddress => ("bind: Cannot assign requested address", 99),
        }
    }

    /// Whether -r makes ab continue after it.
    fn is_of_receiving(self) -> bool {
        matches!(self, Self::Refused | Self::Reset)
    }
}

impl Figures {
    /// What ab would have counted for this load.
    pub(super) fn new(flags: &Flags, record: &LoadRecord) -> Self {
        let mut figures = Self {
            posted: record.bytes.written,
            taken: (record.seconds * 1e6).round() as u64,
            ..Self::default()
        };
        let mut has_document = false;
        for sample in &record.raw {
            let sample = &as_ab_reads(sample, record);
            if sample.outcome == Outcome::Unanswered {
                figures.add_bytes(sample);
                figures.left_out += 1;
                continue;
            }
            if sample.carrier == Carrier::Replacing {
                figures.add_in_vain(flags, sample);
            }
            if figures.done == u64::from(flags.requests) {
                // This request replaces one that ab would have sent without success, so ab would not have sent it.
                figures.left_out += 1;
                continue;
            }
            figures.add_bytes(sample);
            if sample.is_lost() {
                let fatal = fatal(flags, sample.outcome);
                if !flags.goes_on || !fatal.is_of_receiving() {
                    figures.fatal = Some(fatal);
                    break;
                }
                figures.add_lost(flags, sample, fatal);
            } else {
                if !has_document {
                    figures.document = raw_body(sample);
                    has_document = true;
                }
                figures.add_reply(flags, sample);
            }
        }
        if record.interrupted {
            let last = record.raw.iter().map(|sample| sample.done).max();
            figures.taken = last.map_or(0, micros);
        }
        figures
    }

    /// Every request has its times; requests that ab would have sent without success are added to them.
    pub(super) fn tally(&self) -> RequestAccount {
        let by_outcome = self.times.len() as u64 - self.sent_in_vain;
        RequestAccount {
            counted: self.done - self.sent_in_vain,
            by_outcome,
            left_out: self.left_out,
        }
    }

    fn add_bytes(&mut self, sample: &Sample) {
        let body = raw_body(sample);
        self.read += sample.bytes_read;
        self.bodies += body;
        self.framing += body.saturating_sub(sample.bytes_body);
    }

    /// A reply, or the end of a connection, which ab counts as a reply of 0 bytes.
    fn add_reply(&mut self, flags: &Flags, sample: &Sample) {
        let body = raw_body(sample);
        if body != self.document && !flags.any_length {
            self.failed += 1;
            self.length += 1;
            self.complete_of_other_length += u64::from(sample.outcome.is_complete());
        }
        self.add_status(sample);
        if flags.keep_alive && sample.outcome.is_complete() && sample.at_end == AtEnd::Kept {
            self.kept_alive += 1;
        }
        self.finish(sample);
    }

    /// ab reads the status when it has the head, whatever happens to the rest.
    fn add_status(&mut self, sample: &Sample) {
        self.non_2xx += u64::from(sample.status > 0 && sample.status / 100 != 2);
    }

    /// With -r ab counts an error of receiving, one by length, and an exception, because it then reads the same
    /// connection again. It also connects twice, so that there is one exception for two refused connections.
    fn add_lost(&mut self, flags: &Flags, sample: &Sample, fatal: Fatal) {
        let body = raw_body(sample);
        self.add_status(sample);
        self.receive += 1;
        self.failed += 1;
        if body != self.document && !flags.any_length {
            self.failed += 1;
            self.length += 1;
        }
        if fatal == Fatal::Refused {
            self.refused += 1;
            // Two refused connections make one exception, even if only one more request was due.
            if self.refused % 2 == 1 {
                self.exceptions += 1;
                self.receive += 1;
                self.failed += 2;
            } else {
                self.receive -= 1;
                self.failed -= 1;
            }
        } else {
            self.exceptions += 1;
            self.failed += 1;
        }
        self.finish(sample);
    }

    /// ab sends its next request at once, even on a connection that the server is closing, and counts its end as a
    /// reply of 0 bytes. Here the request went out on a new connection instead.
    fn add_in_vain(&mut self, flags: &Flags, sample: &Sample) {
        if self.done == u64::from(flags.requests) {
            return;
        }
        self.sent_in_vain += 1;
        if self.document != 0 && !flags.any_length {
            self.failed += 1;
            self.length += 1;
        }
        self.times.push(Times { start: micros(sample.due), ..Times::default() });
        self.done += 1;
    }

    fn finish(&mut self, sample: &Sample) {
        let start = if sample.carrier == Carrier::Reused { sample.sent } else { sample.due };
        let connected = if sample.sent == Nanos::ZERO { start } else { sample.sent };
        self.times.push(Times {
            start: micros(start),
            connect: micros(connected.saturating_sub(start)),
            total: micros(sample.done.saturating_sub(start)),
            wait: match sample.first_byte {
                Nanos::ZERO => 0,
                first_byte => micros(first_byte.saturating_sub(sample.sent)),
            },
        });
        self.done += 1;
    }
}

/// To ab, bytes that are not HTTP have status 500 as soon as they contain an empty line. Without one ab waits for more,
/// and the end of the connection is a reply of 0 bytes. Only the first reply's head is kept, so it represents the
/// others. After a valid head ab ignores the framing.
fn as_ab_reads(sample: &Sample, record: &LoadRecord) -> Sample {
    let is_no_http = |sample: &Sample| {
        sample.outcome == Outcome::Protocol && sample.bytes_head == 0 && sample.status == 0
    };
    let Some(head) = record.first_head.as_ref().filter(|_| is_no_http(sample)) else {
        return *sample;
    };
    let bytes_read = u32::try_from(sample.bytes_read).unwrap_or(u32::MAX);
    let is_like_first = record.raw.first().is_some_and(is_no_http);
    let head_bytes = if is_like_first { head.len() as u32 } else { bytes_read };
    let bytes_head = head_bytes.min(bytes_read);
    let bytes_body = u64::from(bytes_read - bytes_head);
    Sample { status: 500, bytes_head, bytes_body, ..*sample }
}

/// Why ab would have given up after a request that lost the server.
fn fatal(flags: &Flags, outcome: Outcome) -> Fatal {
    match outcome {
        Outcome::ConnectTimeout
        | Outcome::TlsTimeout
        | Outcome::TimeoutWaiting
        | Outcome::TimeoutReading => Fatal::TimedOut,
        Outcome::ConnectRefused => Fatal::Refused,
        Outcome::FdExhausted => Fatal::NoFile,
        // A refusal and an unreachable network have outcomes of their own.
        Outcome::ConnectFailed if flags.bind.is_some() => Fatal::NoAddress,
        Outcome::PortExhausted => Fatal::NoPort,
        _ => Fatal::Reset,
    }
}

/// The body as received, including chunk framing: ab decodes nothing.
fn raw_body(sample: &Sample) -> u64 {
    match sample.bytes_head {
        0 => 0,
        head => sample.bytes_read - u64::from(head),
    }
}

fn micros(span: Nanos) -> u64 {
    span.0 / 1000
}

/// ab's rounding to milliseconds.
pub(super) fn round_ms(micros: u64) -> u64 {
    (micros + 500) / 1000
}

/// A distribution as in ab's table: means and medians in whole microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Row {
    pub(super) min: u64,
    pub(super) mean: u64,
    /// Standard deviation of the sample (n - 1), around the truncated mean.
    pub(super) sd: f64,
    pub(super) median: u64,
    pub(super) max: u64,
}

impl Row {
    /// For at least one span.
    pub(super) fn of(times: &[Times], span: impl Fn(&Times) -> u64) -> Self {
        let mut spans: Vec<u64> = times.iter().map(span).collect();
        spans.sort_unstable();
        let n = spans.len();
        let mean = spans.iter().sum::<u64>() / n as u64;
        let squares: f64 = spans.iter().map(|span| (*span as f64 - mean as f64).powi(2)).sum();
        // A quirk of ab: for an odd number above 1 the median is the mean of the middle value and the next, for an even
        // number the upper of the two.
        let median = match n {
            _ if n > 1 && n % 2 == 1 => (spans[n / 2] + spans[n / 2 + 1]) / 2,
            _ => spans[n / 2],
        };
        Self {
            min: spans[0],
            mean,
            sd: if n > 1 { (squares / (n - 1) as f64).sqrt() } else { 0.0 },
            median,
            max: spans[n - 1],
        }
    }
}

/// Total times in rising order.
pub(super) fn sorted_totals(times: &[Times]) -> Vec<u64> {
    let mut totals: Vec<u64> = times.iter().map(|times| times.total).collect();
    totals.sort_unstable();
    totals
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(spans: &[u64]) -> Row {
        let times: Vec<Times> =
            spans.iter().map(|&total| Times { total, ..Times::default() }).collect();
        Row::of(&times, |times| times.total)
    }

    #[test]
    fn the_median_is_ab_s_and_not_the_middle() {
        assert_eq!(row(&[5]).median, 5);
        assert_eq!(row(&[4, 1]).median, 4, "of two the upper");
        assert_eq!(row(&[9, 1, 3]).median, 6, "of three the mean of the second and the third");
        assert_eq!(row(&[1, 2, 7, 9]).median, 7, "of four the third");
    }

    #[test]
    fn the_deviation_is_that_of_a_sample_around_the_truncated_mean() {
        let row = row(&[1, 2]);
        assert_eq!((row.min, row.mean, row.max), (1, 1, 2));
        assert!((row.sd - 1.0).abs() < 1e-12, "{}", row.sd);
        assert_eq!(super::tests::row(&[7]).sd, 0.0);
    }

    #[test]
    fn milliseconds_are_rounded_half_up() {
        assert_eq!([499, 500, 1499, 1500].map(round_ms), [0, 1, 1, 2]);
    }
}
