//! Owns what the checks of TCP share: the times of a contender over all its visits, what the kernel counted
//! meanwhile, and which times TCP's timers make. Must not know what a check makes of it. Start reading at
//! [`Times`].
//!
//! TCP waits for fixed times (include/net/tcp.h): 200 ms before a segment is sent again, doubled each time; 1 s
//! before a SYN is; 40 ms before an acknowledgement is sent alone. A request that met such a timer is late
//! by it, whatever the server does. The times alone prove nothing: a server may sleep for 200 ms.
//! So a check takes a counter of the kernel beside them.

use record::{LoadRecord, NetworkSide, ServerAddress, Visit};
use stats::Histogram;
use units::Nanos;

use crate::modes::{self, Mode};
use crate::{Evidence, timers, words};

/// Times after which TCP has sent a segment again: after 200 ms, doubled each time, and after sums of these; 1 s
/// where the handshake had been repeated. A probe for a lost tail may come first, so that multiples of 200 ms are
/// among them.
const RETRANSMITTED_AFTER_MS: [u64; 9] = [200, 400, 600, 800, 1000, 1400, 1600, 3000, 6200];
/// How much later than the timer a reply may be, as a ratio: timers count ticks of 1 to 10 ms, and the reply still
/// takes its time.
const LATE_MAX: f64 = 1.12;
/// What a delayed acknowledgement makes of a reply. The timer is of 40 ms and counts ticks of 4 ms; where CPUs are busy
/// it runs late: measured on two CPUs with fourteen threads that wanted to run, 40 to 115 ms.
const DELAYED_ACK: (Nanos, Nanos) =
    (Nanos::from_millis(timers::DELAYED_ACK_MS - 1), Nanos::from_millis(120));
/// Most of it: five times as many replies end in this as in the stretch before it, as wide in its logarithm.
const RISE: (Nanos, Nanos) = (DELAYED_ACK.0, Nanos::from_millis(60));
const BEFORE_RISE: Nanos = Nanos::from_micros(25_400);
const RISE_MIN: f64 = 5.0;
/// Until when the timer fires where CPUs have time: some replies at least are in by then, or a server that takes 50 ms
/// for its body would look like it.
const ON_TIME: Nanos = Nanos::from_millis(46);
/// Of the late replies, the part that must be on time.
const ON_TIME_MIN: f64 = 0.05;
/// Minimum number of late replies.
const LATE_MIN: u64 = 20;
/// Of stalls, the part that a counter must have moved by to explain them: what is counted once may have stalled
/// two requests, or a request may have met two.
pub(crate) const EXPLAINED_MIN: f64 = 0.5;

/// Times of a contender's requests and connections over all its visits, their warm-up included.
#[derive(Debug, Default)]
pub(crate) struct Times {
    /// Time to connect.
    pub(crate) connect: Histogram,
    /// Sent to first byte, good replies.
    pub(crate) first_byte: Histogram,
    /// Sent to done, good replies.
    pub(crate) service: Histogram,
}

impl Times {
    /// Of a contender.
    pub(crate) fn of(evidence: &Evidence, contender: usize) -> Self {
        let mut sum = Self::default();
        for (_, load) in evidence.loads(contender) {
            sum.connect.merge(&load.latencies.connect);
            sum.first_byte.merge(&load.latencies.first_byte);
            sum.service.merge(&load.latencies.service);
        }
        sum
    }

    /// Modes that TCP's retransmission timer may have made, before the first byte and over all. They
    /// are looked for in either: a stall of the body is no part of the time to the first byte.
    pub(crate) fn retransmitted(&self) -> Stalls {
        let of = |histogram| {
            modes::far(histogram)
                .into_iter()
                .filter(|mode| is_retransmission(mode.middle))
                .collect()
        };
        Stalls { first_byte: of(&self.first_byte), service: of(&self.service) }
    }
}

/// Whether TCP's retransmission timer makes such times.
pub(crate) fn is_retransmission(time: Nanos) -> bool {
    let millis = time.as_millis_f64();
    RETRANSMITTED_AFTER_MS
        .iter()
        .any(|&after| (after as f64 * 0.99..=after as f64 * LATE_MAX).contains(&millis))
}

/// Whether a delayed acknowledgement makes such times.
pub(crate) fn is_delayed_ack(time: Nanos) -> bool {
    (DELAYED_ACK.0..=DELAYED_ACK.1).contains(&time)
}

/// Modes of stalled requests.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Stalls {
    /// In the time to the first byte.
    pub(crate) first_byte: Vec<Mode>,
    /// In the whole service time.
    pub(crate) service: Vec<Mode>,
}

impl Stalls {
    /// Requests that stalled before their first byte.
    pub(crate) fn before_body(&self) -> u64 {
        self.first_byte.iter().map(|mode| mode.count).sum()
    }

    /// Requests that stalled anywhere.
    pub(crate) fn all(&self) -> u64 {
        self.service.iter().map(|mode| mode.count).sum::<u64>().max(self.before_body())
    }

    /// Times of the modes, the largest first: "200 ms and 600 ms".
    pub(crate) fn middles(&self) -> String {
        let modes = if self.service.is_empty() { &self.first_byte } else { &self.service };
        let each: Vec<String> = modes.iter().take(3).map(|mode| millis(mode.middle)).collect();
        words::list(&each)
    }
}

/// Requests that waited for a delayed acknowledgement behind their first byte.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct DelayedAcks {
    /// Half of them took this or less.
    pub(crate) middle: Nanos,
    /// How many had their first byte long before the last one.
    pub(crate) stalled: u64,
    /// Acknowledgements that the client's network sent late; `None`: it could not be read.
    pub(crate) counted: Option<u64>,
    /// Whether they stand apart from longer times too, as on idle CPUs.
    pub(crate) is_narrow: bool,
}

impl DelayedAcks {
    /// What Nagle's algorithm and a delayed acknowledgement make together. Nagle's algorithm only holds a
    /// segment while an earlier one is not acknowledged: the head of the reply. So the first byte is early, and
    /// a server that takes 42 ms to answer is none of this.
    pub(crate) fn of(evidence: &Evidence, contender: usize, times: &Times) -> Option<Self> {
        let (from, until) = DELAYED_ACK;
        let count = |until| modes::count_between(&times.service, from, until);
        let late = count(until);
        let stalled = late.saturating_sub(modes::count_between(&times.first_byte, from, until));
        let before = modes::count_between(&times.service, BEFORE_RISE, from);
        let rises = count(RISE.1) as f64 >= RISE_MIN * before as f64;
        let is_behind = stalled >= LATE_MIN && stalled as f64 >= EXPLAINED_MIN * late as f64;
        if !rises || !is_behind || (count(ON_TIME) as f64) < ON_TIME_MIN * late as f64 {
            return None;
        }
        Some(Self {
            middle: modes::middle_between(&times.service, from, until)?,
            stalled,
            counted: moved(evidence, contender, Of::Client, "TcpExt.DelayedACKs"),
            is_narrow: modes::in_band(&times.service, RISE.0, RISE.1).is_some(),
        })
    }

    /// Whether a mode of service times is theirs.
    pub(crate) fn are(&self, mode: &Mode) -> bool {
        self.are_counted() && (DELAYED_ACK.0..DELAYED_ACK.1).contains(&mode.middle)
    }

    /// Whether the kernel counted them too.
    pub(crate) fn are_counted(&self) -> bool {
        self.counted.is_some_and(|counted| explains(counted, self.stalled))
    }
}

/// Whether a counter moved by enough to have caused these stalls.
pub(crate) fn explains(counted: u64, stalls: u64) -> bool {
    counted > 0 && counted as f64 >= EXPLAINED_MIN * stalls as f64
}

/// Whose counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Of {
    /// The client's network, or the one that both share.
    Client,
    /// The server's network, or the one that both share.
    Server,
    /// Both added up.
    Either,
}

/// What a counter of the network changed by over all visits of a contender. `None`: it could not be read in one.
pub(crate) fn moved(evidence: &Evidence, contender: usize, of: Of, counter: &str) -> Option<u64> {
    let mut sum = 0;
    let mut visits = 0;
    for (visit, _) in evidence.loads(contender) {
        let series = &visit.surroundings.as_ref()?.series;
        let change = match of {
            Of::Client => series.network_change(NetworkSide::Client, counter)?,
            Of::Server => series.network_change(NetworkSide::Server, counter)?,
            Of::Either => {
                let sides = ["client", "server", "both"].map(|side| format!("{side}.{counter}"));
                let known: Vec<i64> = sides.iter().filter_map(|side| series.change(side)).collect();
                (!known.is_empty()).then(|| known.iter().sum())?
            }
        };
        sum += u64::try_from(change).unwrap_or(0);
        visits += 1;
    }
    (visits > 0).then_some(sum)
}

/// The highest value that a gauge of the network had, where it moved; `None`: it did not, or could not be read.
pub(crate) fn highest(evidence: &Evidence, contender: usize, counter: &str) -> Option<u64> {
    let of_visit = |(visit, _): (&Visit, &LoadRecord)| {
        let series = &visit.surroundings.as_ref()?.series;
        let sides = ["client", "server", "both"].into_iter();
        sides.filter_map(|side| series.counters.get(&format!("{side}.{counter}"))).map(top).max()
    };
    evidence.loads(contender).filter_map(of_visit).max()
}

fn top(course: &record::Course) -> u64 {
    let values = course.steps.iter().scan(course.first as i64, |value, step| {
        *value += step;
        Some(*value)
    });
    values.max().unwrap_or(0).max(course.first as i64) as u64
}

/// SYNs, and last segments of handshakes, that the server's kernel dropped because a queue of connections was full.
/// Each overflow is a drop, too; an overflow alone is known on old kernels.
pub(crate) fn listen_drops(evidence: &Evidence, contender: usize) -> Option<u64> {
    let of = |counter| moved(evidence, contender, Of::Server, counter);
    of("TcpExt.ListenOverflows").max(of("TcpExt.ListenDrops"))
}

/// Segments that were sent again while a contender was loaded, those of handshakes left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Retransmissions {
    /// Segments of either side, or of the client alone where nothing else is known.
    pub(crate) segments: u64,
    /// Whether those that the server sent are among them.
    pub(crate) server_known: bool,
    /// Probes for a lost tail.
    pub(crate) probes: u64,
    /// Retransmission timeouts.
    pub(crate) timeouts: u64,
}

impl Retransmissions {
    /// Of a contender; `None`: nobody counted.
    pub(crate) fn of(evidence: &Evidence, contender: usize) -> Option<Self> {
        let kernel = |counter| moved(evidence, contender, Of::Either, counter);
        let own = evidence.loads(contender).map(|(_, load)| &load.tcp);
        let (looked_at, sent_again) = own.fold((0, 0), |(looked_at, segments), tcp| {
            (looked_at + tcp.looked_at, segments + tcp.retransmitted)
        });
        let handshakes = kernel("TcpExt.TCPSynRetrans").unwrap_or(0);
        let segments = match kernel("Tcp.RetransSegs") {
            Some(all) => all.saturating_sub(handshakes),
            None if looked_at > 0 => sent_again.saturating_sub(handshakes),
            None => return None,
        };
        let is_counted = kernel("Tcp.RetransSegs").is_some();
        Some(Self {
            segments,
            server_known: is_counted && is_server_counted(evidence, contender),
            probes: kernel("TcpExt.TCPLossProbes").unwrap_or(0),
            timeouts: kernel("TcpExt.TCPTimeouts").unwrap_or(0).saturating_sub(handshakes),
        })
    }
}

/// Whether the server's own counters are among those that were read: it has a network on this machine, or is reached
/// over loopback.
fn is_server_counted(evidence: &Evidence, contender: usize) -> bool {
    evidence.loads(contender).all(|(visit, load)| {
        let series = visit.surroundings.as_ref().map(|around| &around.series);
        let has_network = series.is_some_and(|series| series.sources.contains("server.Tcp"));
        let is_local = load.plan.origins.iter().all(|origin| match &origin.place {
            ServerAddress::Inet(address) => address.ip().is_loopback(),
            ServerAddress::Unix(_) => true,
        });
        has_network || is_local
    })
}

/// A time in whole milliseconds, as in a sentence.
pub(crate) fn millis(time: Nanos) -> String {
    format!("{} ms", words::grouped(time.as_millis_f64().round() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_of_the_retransmission_timer_are_known() {
        for (millis, is_one) in
            [(190, false), (200, true), (212, true), (240, false), (300, false), (602, true)]
        {
            assert_eq!(is_retransmission(Nanos::from_millis(millis)), is_one, "{millis} ms");
        }
    }

    #[test]
    fn a_gauge_is_read_at_its_top() {
        let course = record::Course { first: 3, steps: vec![4, -6, 2] };
        assert_eq!(top(&course), 7);
        assert_eq!(top(&record::Course { first: 3, steps: vec![-1] }), 3);
    }
}
