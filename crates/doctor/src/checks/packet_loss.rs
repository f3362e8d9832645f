//! Owns the check that no packets were lost between client and server. Start reading at [`look`].
//!
//! A lost segment is sent again after 200 ms at least where nothing follows that would tell of the loss: the one
//! segment of a request, the last one of a reply. So a loss of 1 % adds 2 ms to a mean of less than one, and most
//! of the difference between two servers is how many segments each needs. A faulty cable, a duplex mismatch, a full
//! queue of an interface and a policer look like that.
//!
//! Where it happens tells which way the packets were lost: a request before the first byte, a reply behind it too.
//! The step at 200 ms alone is a pattern that a server can make, too (`stalls_of_a_fixed_time`); segments that were
//! sent again are the second witness. What a full queue of connections dropped is `request_retransmitted`.

use record::{Certainty, Question, Severity};

use super::Check;
use crate::transport::{self, Retransmissions, Stalls, Times};
use crate::{Evidence, Observation, counters, modes, words};

/// See the module.
pub(crate) const ITEM: Check = Check {
    name: "packet_loss",
    severity: Severity::Void,
    question: Question::DidItError,
    spares_like_pairs: false,
    title: "packets were lost and sent again",
    meaning: "requests waited for TCP's timer of 200 ms and more, whatever the server did",
    remedy: "repair the link (cable, duplex, offloads: ethtool -S), or compare over a pair of virtual interfaces on \
             one machine, as `joust run` does by itself",
    detection: "Times to first byte or done have a narrow mode at 200 ms, its doubles or their sums (p < 1e-6), and \
             segments that were sent again, SYNs left out, explain a tenth of it; from half of it on it is confirmed",
    example: "tc qdisc add dev lo root netem loss 1%, and `joust load -c 20`",
    source: "RFC 6298; RFC 8985 (probes for a lost tail); https://docs.kernel.org/networking/snmp_counter.html",
    needs: &[&counters::NETSTAT, &counters::SNMP, &counters::INTERFACES],
    look,
};

/// Of the stalls, the part that segments sent again explain at least: less is chance.
const EXPLAINED_SOME: f64 = 0.1;
/// Counters of an interface that tell of a loss.
const LOSSES: [&str; 5] = ["rx_errors", "tx_errors", "rx_dropped", "tx_dropped", "collisions"];

fn look(evidence: &Evidence) -> Vec<Observation> {
    evidence.contenders().filter_map(|contender| look_at(evidence, contender)).collect()
}

fn look_at(evidence: &Evidence, contender: usize) -> Option<Observation> {
    let again = Retransmissions::of(evidence, contender)?;
    let times = Times::of(evidence, contender);
    let stalls = times.retransmitted();
    let waited = stalls.all();
    let is_explained = again.segments as f64 >= EXPLAINED_SOME * waited as f64;
    let drops = transport::listen_drops(evidence, contender).unwrap_or(0);
    if waited == 0 || again.segments == 0 || !is_explained || transport::explains(drops, waited) {
        return None;
    }
    let share = waited as f64 / times.service.count().max(1) as f64;
    let probes = match again.probes {
        0 => String::new(),
        probes => format!(", {} for a lost tail", words::count(probes, "probe")),
    };
    let timeouts =
        format!("{}{}", words::count(again.timeouts, "timeout"), time_lost(evidence, contender));
    let sent = words::count(again.segments, "segment");
    let evidence = format!(
        "{}: {} of the requests ({}) took {}, as TCP's timer makes it: {}; {sent} sent again{probes}, {timeouts}{}",
        evidence.name(contender),
        words::percent(share),
        words::grouped(waited),
        stalls.middles(),
        by_phase(&times, &stalls),
        interfaces(evidence, contender),
    );
    let certainty = match transport::explains(again.segments, waited) {
        true => Certainty::Confirmed,
        false => Certainty::Suspected,
    };
    Some(Observation { certainty, share: Some(share), contenders: vec![contender], evidence })
}

/// How likely a request is to stall before its first byte, and a reply behind it.
fn by_phase(times: &Times, stalls: &Stalls) -> String {
    let all = times.service.count().max(1) as f64;
    let before = stalls.before_body();
    let behind = stalls.all().saturating_sub(before);
    let moments =
        stalls.service.first().and_then(|mode| modes::shares_by_moments(&times.service, mode));
    let moments = moments.map_or(String::new(), |(by_mean, by_sd)| {
        let (by_mean, by_sd) = (words::percent(by_mean), words::percent(by_sd));
        format!(" (the mean tells of {by_mean}, the standard deviation of {by_sd})")
    });
    let share = |count: u64| words::percent(count as f64 / all);
    format!("{} before the first byte and {} behind it{moments}", share(before), share(behind))
}

/// What connections spent waiting for timeouts, where the kernel keeps that.
fn time_lost(evidence: &Evidence, contender: usize) -> String {
    let lost = evidence.loads(contender).filter_map(|(_, load)| load.tcp.timeout_time);
    match lost.map(|time| time.0).sum() {
        0 => String::new(),
        lost => format!(" of the client that cost {}", units::Nanos(lost)),
    }
}

/// What interfaces dropped, by name.
fn interfaces(evidence: &Evidence, contender: usize) -> String {
    let mut found: Vec<(String, i64)> = Vec::new();
    for (visit, _) in evidence.loads(contender) {
        let Some(around) = &visit.surroundings else { continue };
        for (name, course) in &around.series.counters {
            let is_loss = LOSSES.iter().any(|loss| name.ends_with(&format!(".{loss}")));
            let lost: i64 = course.steps.iter().sum();
            let Some((_, name)) = name.split_once(".dev.").filter(|_| is_loss && lost > 0) else {
                continue;
            };
            match found.iter_mut().find(|(known, _)| known == name) {
                Some((_, sum)) => *sum += lost,
                None => found.push((name.to_owned(), lost)),
            }
        }
    }
    found.iter().map(|(name, lost)| format!("; {name} {lost}")).collect()
}

#[cfg(test)]
mod tests {
    use record::RunRecord;

    use super::*;
    use crate::testdata::{self, Phase};

    /// In each visit of b some of a thousand requests, as given, stalled in either phase, and counters moved.
    fn planted(before: u64, behind: u64, counters: &[(&str, i64)]) -> RunRecord {
        let mut run = testdata::run(&["a", "b"], 8);
        for visit in run.visits.iter_mut().filter(|visit| visit.contender == 1) {
            let load = visit.load.as_mut().unwrap();
            testdata::stall(load, before, 203, Phase::FirstByte);
            testdata::stall(load, behind, 203, Phase::Body);
            testdata::count(visit, counters);
        }
        run
    }

    #[test]
    fn lost_segments_are_confirmed_and_their_share_is_the_dose() {
        for stalled in [3_u64, 6, 12] {
            let again = ("server.Tcp.RetransSegs", 2 * stalled as i64);
            let seen = look(&Evidence::of(&planted(stalled, stalled, &[again])));
            assert_eq!(seen.len(), 1);
            assert_eq!(
                (seen[0].certainty, &seen[0].contenders[..]),
                (Certainty::Confirmed, &[1][..])
            );
            let dose = 2.0 * stalled as f64 / (900 + 2 * stalled) as f64;
            assert!((seen[0].share.unwrap() / dose - 1.0).abs() < 0.05, "{seen:?}");
        }
        let again = [("server.Tcp.RetransSegs", 14), ("server.dev.eth0.tx_dropped", 2)];
        let seen = look(&Evidence::of(&planted(5, 5, &again)));
        let said = &seen[0].evidence;
        assert!(said.starts_with("b: 1.1 % of the requests (80) took 205 ms"), "{said}");
        assert!(said.contains("0.55 % before the first byte and 0.55 % behind it"), "{said}");
        assert!(said.ends_with("; eth0.tx_dropped 16"), "{said}");
    }

    #[test]
    fn a_pattern_without_its_counter_is_silent() {
        assert_eq!(look(&Evidence::of(&planted(9, 9, &[]))), []);
        assert_eq!(look(&Evidence::of(&planted(9, 9, &[("client.Tcp.RetransSegs", 1)]))), []);
        let mut unknown = planted(9, 9, &[]);
        unknown.visits.iter_mut().for_each(|visit| visit.surroundings = None);
        assert_eq!(look(&Evidence::of(&unknown)), []);
    }

    #[test]
    fn some_segments_sent_again_are_a_suspicion() {
        let seen = look(&Evidence::of(&planted(9, 9, &[("client.Tcp.RetransSegs", 4)])));
        assert_eq!(seen[0].certainty, Certainty::Suspected);
    }

    #[test]
    fn segments_sent_again_without_late_requests_and_full_queues_are_silent() {
        assert_eq!(look(&Evidence::of(&planted(0, 0, &[("server.Tcp.RetransSegs", 40)]))), []);
        let full = [("client.Tcp.RetransSegs", 9), ("server.TcpExt.ListenDrops", 9)];
        assert_eq!(look(&Evidence::of(&planted(9, 0, &full))), []);
    }
}
