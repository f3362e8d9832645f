//! Owns the check for replies that wait for a delayed acknowledgement. Start reading at [`look`].
//!
//! A server that sends head and body in two calls, without TCP_NODELAY, sends the head at once. Nagle's algorithm
//! holds the body until the head is acknowledged, and the client's kernel delays that acknowledgement by 40 ms (up
//! to 200 ms), as it hopes to send it with data. So each reply on a kept connection takes 40 to 44 ms, or a few
//! more where CPUs are busy, after the first few, for which the kernel acknowledges at once.
//!
//! Three things tell it from a server that takes 42 ms to answer: the first byte is early, few replies take a little
//! less than 40 ms, and the client's kernel counts about as many acknowledgements that it delayed.

use record::{Certainty, Question, Severity};

use super::Check;
use crate::transport::{DelayedAcks, Times};
use crate::{Evidence, Observation, counters, words};

/// See the module.
pub(crate) const ITEM: Check = Check {
    name: "delayed_ack",
    severity: Severity::Void,
    question: Question::DoesItMatter,
    spares_like_pairs: false,
    title: "replies waited for a delayed acknowledgement (Nagle's algorithm)",
    meaning: "40 ms of such a reply are a timer of the kernels, not the server's work",
    remedy: "set TCP_NODELAY in the server, or send head and body in one call (writev, MSG_MORE, TCP_CORK)",
    detection: "At least five times as many replies take 39 to 60 ms as take 25 to 39 ms, some of them at most 46 ms, half \
             of the late ones with an early first byte, and they are 0.1 % or more of all. It is confirmed where \
             DelayedACKs of the client's network is at least half as high",
    example: "`joust serve --fixed 3361 --fault nodelay=off`",
    source: "RFC 896; RFC 9293, 3.7.4; https://github.com/wg/wrk/issues/488",
    needs: &[&counters::NETSTAT],
    look,
};

/// Minimum share of the requests: fewer move no figure.
const SHARE_MIN: f64 = 0.001;

fn look(evidence: &Evidence) -> Vec<Observation> {
    evidence.contenders().filter_map(|contender| look_at(evidence, contender)).collect()
}

fn look_at(evidence: &Evidence, contender: usize) -> Option<Observation> {
    let times = Times::of(evidence, contender);
    let acks = DelayedAcks::of(evidence, contender, &times)?;
    let all = times.service.count();
    let share = acks.stalled as f64 / all.max(1) as f64;
    // What was counted and did not move is a witness against it; without it, the times must tell alone.
    let is_seen = if acks.counted.is_some() { acks.are_counted() } else { acks.is_narrow };
    if share < SHARE_MIN || !is_seen {
        return None;
    }
    let counted = match acks.counted {
        Some(counted) => {
            format!("the client's kernel delayed {}", words::count(counted, "acknowledgement"))
        }
        None => "delayed acknowledgements could not be counted".to_owned(),
    };
    let evidence = format!(
        "{}: {} of the requests ({}) took 39 ms or more, half of them at most {}, most of it behind their first byte; \
         {counted}",
        evidence.name(contender),
        words::percent(share),
        words::grouped(acks.stalled),
        acks.middle,
    );
    let certainty = if acks.are_counted() { Certainty::Confirmed } else { Certainty::Suspected };
    Some(Observation { certainty, share: Some(share), contenders: vec![contender], evidence })
}

#[cfg(test)]
mod tests {
    use record::RunRecord;

    use super::*;
    use crate::testdata::{self, Phase};

    const COUNTED: &str = "client.TcpExt.DelayedACKs";

    /// In each visit of b a given number of requests took 41 ms, and a given number of acknowledgements were late.
    fn planted(stalled: u64, phase: Phase, counted: i64) -> RunRecord {
        let mut run = testdata::run(&["a", "b"], 8);
        for visit in run.visits.iter_mut().filter(|visit| visit.contender == 1) {
            testdata::stall(visit.load.as_mut().unwrap(), stalled, 40, phase);
            testdata::count(visit, &[(COUNTED, counted)]);
        }
        run
    }

    #[test]
    fn stalls_behind_the_first_byte_are_confirmed_and_their_share_is_the_dose() {
        for stalled in [9, 90, 9_000] {
            let seen = look(&Evidence::of(&planted(stalled, Phase::Body, stalled as i64)));
            assert_eq!(seen.len(), 1, "{stalled}");
            assert_eq!(
                (seen[0].certainty, &seen[0].contenders[..]),
                (Certainty::Confirmed, &[1][..])
            );
            let dose = stalled as f64 / (900 + stalled) as f64;
            assert!((seen[0].share.unwrap() / dose - 1.0).abs() < 0.05, "{seen:?}");
            assert!(
                seen[0].evidence.contains("most of it behind their first byte; the client's"),
                "{seen:?}"
            );
        }
    }

    #[test]
    fn a_server_that_takes_42_ms_is_silent_though_its_own_kernel_delays_acknowledgements() {
        for stalled in [90, 90_000] {
            assert_eq!(
                look(&Evidence::of(&planted(stalled, Phase::FirstByte, stalled as i64))),
                []
            );
        }
    }

    #[test]
    fn a_late_timer_is_still_found_and_a_body_that_takes_50_ms_is_silent() {
        let seen = |from_ms: u64, until_ms: u64| {
            let mut run = planted(0, Phase::Body, 90);
            for visit in run.visits.iter_mut().filter(|visit| visit.contender == 1) {
                let load = visit.load.as_mut().unwrap();
                for n in 0..90 {
                    let millis = from_ms + n * (until_ms - from_ms) / 90;
                    testdata::stall(load, 1, millis, Phase::Body);
                }
            }
            look(&Evidence::of(&run))
        };
        assert_eq!(seen(40, 52).len(), 1);
        assert_eq!(seen(40, 110).len(), 1);
        assert_eq!(seen(50, 52), []);
    }

    #[test]
    fn a_counter_that_did_not_move_speaks_against_it_and_one_unread_leaves_a_suspicion() {
        assert_eq!(look(&Evidence::of(&planted(90, Phase::Body, 3))), []);
        let mut unknown = planted(90, Phase::Body, 0);
        unknown.visits.iter_mut().for_each(|visit| visit.surroundings = None);
        assert_eq!(look(&Evidence::of(&unknown))[0].certainty, Certainty::Suspected);
    }

    #[test]
    fn clean_runs_and_smooth_tails_are_silent() {
        assert_eq!(look(&Evidence::of(&testdata::run(&["a", "b"], 8))), []);
        let mut run = planted(0, Phase::Body, 900);
        for load in run.visits.iter_mut().filter_map(|visit| visit.load.as_mut()) {
            (1..200).for_each(|ms| testdata::stall(load, 3, ms, Phase::Body));
        }
        assert_eq!(look(&Evidence::of(&run)), []);
    }
}
