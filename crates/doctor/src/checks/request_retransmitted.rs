//! Owns the check that no request was lost with the last segment of its handshake. Start reading at [`look`].
//!
//! If the queue of connections is full when a handshake's last ACK arrives, the server's kernel drops that
//! ACK. The client does not know: for it the connection is there, its time to connect is short, and it sends its
//! request. That is dropped too, and sent again after 200 ms, 400 ms more and so on, until there is room.
//! So the time to the first byte has a step at 200 ms and its sums, and the time to connect has none.
//!
//! Confirmed by two counters: the server's drops (ListenOverflows), and segments sent again which are no SYN.

use record::{Certainty, Question, Severity};

use super::Check;
use crate::transport::{self, Retransmissions, Times};
use crate::{Evidence, Observation, counters, words};

/// See the module.
pub(crate) const ITEM: Check = Check {
    name: "request_retransmitted",
    severity: Severity::Void,
    question: Question::DidItBreakALimit,
    spares_like_pairs: false,
    title: "requests were dropped with their handshake and sent again",
    meaning: "these requests waited for a timer of TCP, and the server never saw their first copy",
    remedy: "raise the server's backlog (listen, ListenBacklog) and net.core.somaxconn, let the server accept \
             sooner, or connect more slowly",
    detection: "The time to the first byte has a narrow mode at 200 ms, its doubles or their sums (p < 1e-6), or \
             requests had no reply at the end; ListenOverflows of the server and segments that were sent again, \
             SYNs left out, each explain half of those that waited",
    example: "a server with listen(fd, 1) that does not accept for 300 ms, and as many clients as its queue holds and \
             one more",
    source: "https://docs.kernel.org/networking/snmp_counter.html; tcp_abort_on_overflow in tcp(7)",
    needs: &[&counters::NETSTAT, &counters::SNMP],
    look,
};

/// Minimum number of requests that waited: fewer decide no verdict.
const WAITED_MIN: u64 = 5;

fn look(evidence: &Evidence) -> Vec<Observation> {
    evidence.contenders().filter_map(|contender| look_at(evidence, contender)).collect()
}

fn look_at(evidence: &Evidence, contender: usize) -> Option<Observation> {
    let drops = transport::listen_drops(evidence, contender).filter(|drops| *drops > 0)?;
    let again = Retransmissions::of(evidence, contender)?;
    let times = Times::of(evidence, contender);
    let stalls = times.retransmitted();
    let unanswered: u64 = evidence.loads(contender).map(|(_, load)| load.requests.unanswered).sum();
    let waited = stalls.before_body() + unanswered;
    let is_explained =
        transport::explains(drops, waited) && transport::explains(again.segments, waited);
    if waited < WAITED_MIN || !is_explained {
        return None;
    }
    let share = waited as f64 / (times.first_byte.count() + unanswered).max(1) as f64;
    let how_long = match stalls.before_body() {
        0 => "until the load ended".to_owned(),
        _ if unanswered > 0 => format!("{}, or until the load ended,", stalls.middles()),
        _ => stalls.middles(),
    };
    let evidence = format!(
        "{}: {} ({}) waited {} for their first byte; the server's kernel dropped {} of handshakes, and the client, \
         which held its connections for made, sent {} again that were no SYN",
        evidence.name(contender),
        words::count(waited, "request"),
        words::percent(share),
        how_long,
        words::count(drops, "segment"),
        words::count(again.segments, "segment"),
    );
    Some(Observation {
        certainty: Certainty::Confirmed,
        share: Some(share),
        contenders: vec![contender],
        evidence,
    })
}

#[cfg(test)]
mod tests {
    use record::RunRecord;

    use super::*;
    use crate::testdata;

    /// In each visit of b a given number of requests waited for 200 ms, and counters moved.
    fn planted(waited: u64, counters: &[(&str, i64)]) -> RunRecord {
        let mut run = testdata::run(&["a", "b"], 8);
        for visit in run.visits.iter_mut().filter(|visit| visit.contender == 1) {
            testdata::stall(visit.load.as_mut().unwrap(), waited, 202, testdata::Phase::FirstByte);
            testdata::count(visit, counters);
        }
        run
    }

    const DROPS: (&str, i64) = ("server.TcpExt.ListenOverflows", 9);
    const AGAIN: (&str, i64) = ("client.Tcp.RetransSegs", 9);

    #[test]
    fn both_counters_confirm_the_step_and_its_share_is_the_dose() {
        for waited in [5, 9] {
            let seen = look(&Evidence::of(&planted(waited, &[DROPS, AGAIN])));
            assert_eq!(seen.len(), 1);
            assert_eq!(
                (seen[0].certainty, &seen[0].contenders[..]),
                (Certainty::Confirmed, &[1][..])
            );
            let dose = waited as f64 / (900 + waited) as f64;
            assert!((seen[0].share.unwrap() / dose - 1.0).abs() < 0.05, "{seen:?}");
            assert!(seen[0].evidence.contains("waited 204 ms for their first byte"), "{seen:?}");
        }
    }

    #[test]
    fn requests_that_had_no_reply_at_the_end_waited_too() {
        let mut run = planted(0, &[DROPS, AGAIN]);
        for visit in run.visits.iter_mut().filter(|visit| visit.contender == 1) {
            visit.load.as_mut().unwrap().requests.unanswered = 8;
        }
        let seen = look(&Evidence::of(&run));
        assert!(
            seen[0].evidence.contains("waited until the load ended for their first"),
            "{seen:?}"
        );
        run.visits.iter_mut().for_each(|visit| visit.surroundings = None);
        assert_eq!(look(&Evidence::of(&run)), []);
    }

    #[test]
    fn one_witness_is_silent() {
        for counters in [&[][..], &[DROPS], &[AGAIN]] {
            assert_eq!(look(&Evidence::of(&planted(9, counters))), [], "{counters:?}");
        }
        assert_eq!(look(&Evidence::of(&planted(0, &[DROPS, AGAIN]))), []);
        // Repeated SYNs explain what was sent again.
        let syn = ("client.TcpExt.TCPSynRetrans", 9);
        assert_eq!(look(&Evidence::of(&planted(9, &[DROPS, AGAIN, syn]))), []);
    }
}
