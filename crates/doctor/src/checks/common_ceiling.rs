//! Owns the check that two unlike servers did not meet at a limit that both have in common. Start reading at
//! [`look`].
//!
//! If the generator, the network or a CPU that both sides share sets the pace, every server that is fast enough has the
//! same rate, and "no difference" is said of the limit. So two that are unlike, equal within 1 %, and were seen at such
//! a limit get no verdict. A server that is compared with itself is equal anyway, and nothing is said.

use record::{Certainty, Question, Severity};

use super::Check;
use super::link_ceiling::bits;
use crate::busy::{self, BUSY_MIN};
use crate::ceiling::{self, AtLink, unlike};
use crate::counters::{INTERFACES, STAT};
use crate::{Evidence, Observation, window, words};

/// See the module.
pub(crate) const ITEM: Check = Check {
    name: "common_ceiling",
    severity: Severity::Void,
    question: Question::WhyNotDouble,
    spares_like_pairs: false,
    title: "unlike servers met a common ceiling",
    meaning: "the limit that they share set both rates, so that they are equal says nothing about the servers",
    remedy: "raise the limit (a faster network, a smaller page, more CPUs for the generator) until the servers differ \
             or use up their own CPUs, or compare server CPU time per request",
    detection: "Contenders with different servers or settings are within 1 % of each other, in a closed loop, and \
                each was seen at the same limit: the network (link_ceiling), a generator that is busy for 85 % and \
                busier than the server, or CPUs that both sides share and use for 85 %",
    example: "nginx and Apache with a page of 20 KB behind a link of 50 Mbit/s",
    source: "Gregg, Evaluating the Evaluation: A Benchmarking Checklist, 2018",
    needs: &[&INTERFACES, &STAT],
    look,
};

/// Ratio of two medians, less one, up to which servers count as equal.
const EQUAL_MAX: f64 = 0.01;

fn look(evidence: &Evidence) -> Vec<Observation> {
    let limited: Vec<Limited> =
        evidence.contenders().filter_map(|contender| Limited::of(evidence, contender)).collect();
    let by_cpu = groups(evidence, &limited, |one| (one.contender, one.rate_per_s))
        .into_iter()
        .map(|group| by_cpu(evidence, &group));
    links(evidence).into_iter().chain(by_cpu).collect()
}

/// Those that are equal, each pair of them, with one that is unlike another. A contender may be in two groups: equal
/// to the one below it and to the one above, which are not equal to each other.
fn groups<'a, T>(evidence: &Evidence, all: &'a [T], of: fn(&T) -> (usize, f64)) -> Vec<Vec<&'a T>> {
    let mut order: Vec<&T> = all.iter().collect();
    order.sort_by(|a, b| of(a).1.total_cmp(&of(b).1));
    let (mut groups, mut reached): (Vec<Vec<&T>>, usize) = (Vec::new(), 0);
    for (lowest, one) in order.iter().enumerate() {
        let above = order[lowest..].iter();
        let equal: Vec<&T> =
            above.take_while(|other| of(other).1 / of(one).1 - 1.0 <= EQUAL_MAX).copied().collect();
        // One that reaches no further is a part of the group before.
        if lowest + equal.len() > reached {
            reached = lowest + equal.len();
            groups.push(equal);
        }
    }
    let is_mixed =
        |group: &Vec<&T>| group.iter().any(|one| unlike(evidence, of(one).0, of(group[0]).0));
    groups.retain(is_mixed);
    groups
}

fn links(evidence: &Evidence) -> Vec<Observation> {
    let at_link = ceiling::at_link(evidence);
    let groups = groups(evidence, &at_link, |one| (one.contender, one.bytes_per_s));
    groups.iter().map(|group| by_link(evidence, group)).collect()
}

fn by_link(evidence: &Evidence, group: &[&AtLink]) -> Observation {
    let mut contenders: Vec<usize> = group.iter().map(|one| one.contender).collect();
    contenders.sort_unstable();
    let is_sure = group.iter().all(|one| one.is_sure);
    let rates: Vec<f64> = group.iter().map(|one| one.bytes_per_s).collect();
    let rate = stats::median(&rates).unwrap_or_default();
    let speed = group.iter().find_map(|one| one.speed);
    let limit = match speed {
        Some(speed) => format!(
            ", {} of a link of {}",
            words::percent(speed.used.min(1.0)),
            bits(speed.bits_per_s)
        ),
        None => String::new(),
    };
    Observation {
        share: speed.map(|speed| speed.used.min(1.0)),
        certainty: if is_sure { Certainty::Confirmed } else { Certainty::Suspected },
        evidence: format!(
            "{}: common ceiling: within {} of each other they sent {}{limit}",
            evidence.names(&contenders),
            words::percent(EQUAL_MAX),
            bits(8.0 * rate),
        ),
        contenders,
    }
}

/// A contender whose rate was the generator's, or that of CPUs that both sides share.
struct Limited {
    contender: usize,
    rate_per_s: f64,
    client: f64,
    server: f64,
}

impl Limited {
    fn of(evidence: &Evidence, contender: usize) -> Option<Self> {
        let rates: Vec<f64> = evidence
            .loads(contender)
            .filter(|(_, load)| window::is_closed_loop(load))
            .filter_map(|(visit, _)| visit.rate_per_s)
            .collect();
        let rate_per_s = stats::median(&rates).filter(|rate| *rate > 0.0)?;
        let (client, server) = busy::medians(evidence, contender)?;
        let is_limit = match evidence.run.layout.shared {
            true => client + server >= BUSY_MIN,
            false => client >= BUSY_MIN && client > server,
        };
        is_limit.then_some(Self { contender, rate_per_s, client, server })
    }
}

fn by_cpu(evidence: &Evidence, group: &[&Limited]) -> Observation {
    let mut contenders: Vec<usize> = group.iter().map(|one| one.contender).collect();
    contenders.sort_unstable();
    let median = |of: fn(&Limited) -> f64| {
        stats::median(&group.iter().map(|one| of(one)).collect::<Vec<_>>()).unwrap_or_default()
    };
    let (client, server) = (median(|one| one.client), median(|one| one.server));
    let limit = match evidence.run.layout.shared {
        true => format!(
            "generator and server shared their CPUs and used {} of them",
            words::percent((client + server).min(1.0))
        ),
        false => format!(
            "the generator's CPU was busy {} of the time, the servers' {}",
            words::percent(client),
            words::percent(server)
        ),
    };
    Observation {
        share: Some(if evidence.run.layout.shared { (client + server).min(1.0) } else { client }),
        certainty: Certainty::Confirmed,
        evidence: format!(
            "{}: common ceiling: their rates are within {} of each other, and {limit}",
            evidence.names(&contenders),
            words::percent(EQUAL_MAX),
        ),
        contenders,
    }
}

#[cfg(test)]
mod tests {
    use record::RunRecord;

    use super::*;
    use crate::testdata;

    /// a and b at the generator's limit, b's rate higher by a factor.
    fn at_generator(more: f64) -> RunRecord {
        let mut run = testdata::run(&["a", "b"], 8);
        testdata::make_unlike(&mut run);
        (0..2).for_each(|contender| testdata::limit(&mut run, contender, 0.97, 0.5));
        for visit in run.visits.iter_mut().filter(|visit| visit.contender == 1) {
            visit.rate_per_s = visit.rate_per_s.map(|rate| rate * more);
        }
        run
    }

    #[test]
    fn unlike_servers_that_are_equal_at_the_generator_s_limit_are_told() {
        let seen = look(&Evidence::of(&at_generator(1.002)));
        assert_eq!((seen.len(), seen[0].certainty), (1, Certainty::Confirmed));
        assert_eq!(seen[0].contenders, [0, 1]);
        let text = "a and b: common ceiling: their rates are within 1 % of each other, and the generator's CPU was \
                    busy 97 % of the time, the servers' 50 %";
        assert_eq!(seen[0].evidence, text);
        assert_eq!(look(&Evidence::of(&at_generator(1.03))), [], "they differ");
    }

    #[test]
    fn a_server_against_itself_is_silent_at_any_limit() {
        let mut run = at_generator(1.0);
        run.plan.contenders[1].settings = run.plan.contenders[0].settings.clone();
        assert_eq!(look(&Evidence::of(&run)), []);
        let mut run = testdata::behind_a_link(50e6, 8);
        run.plan.contenders[1].settings = run.plan.contenders[0].settings.clone();
        assert_eq!(look(&Evidence::of(&run)), []);
    }

    #[test]
    fn equal_servers_that_used_up_their_own_cpus_are_silent() {
        let mut run = at_generator(1.0);
        (0..2).for_each(|contender| testdata::limit(&mut run, contender, 0.6, 0.98));
        assert_eq!(look(&Evidence::of(&run)), []);
    }

    #[test]
    fn two_behind_a_link_get_no_verdict() {
        let seen = look(&Evidence::of(&testdata::behind_a_link(50e6, 8)));
        let text = "a and b: common ceiling: within 1 % of each other they sent 49.8 Mbit/s, 99.6 % of a link of \
                    50 Mbit/s";
        assert_eq!(seen[0].evidence, text);
        assert_eq!((seen.len(), seen[0].certainty), (1, Certainty::Confirmed));
    }

    #[test]
    fn a_third_server_that_is_slower_is_not_touched_by_the_pair() {
        let mut run = testdata::run(&["a", "b", "c"], 8);
        testdata::make_unlike(&mut run);
        (0..2).for_each(|contender| testdata::limit(&mut run, contender, 0.97, 0.5));
        for visit in run.visits.iter_mut().filter(|visit| visit.contender == 2) {
            visit.rate_per_s = visit.rate_per_s.map(|rate| rate / 2.0);
        }
        let found = crate::examine(&run);
        let finding = found.iter().find(|one| one.check == ITEM.name).unwrap();
        assert!(finding.touches_pair(0, 1));
        assert!(!finding.touches_pair(0, 2) && !finding.touches_pair(1, 2), "{finding:?}");
    }

    #[test]
    fn cpus_that_are_shared_are_a_limit_too() {
        let mut run = at_generator(1.0);
        (0..2).for_each(|contender| testdata::limit(&mut run, contender, 0.5, 0.48));
        assert_eq!(look(&Evidence::of(&run)), []);
        run.layout.shared = true;
        let seen = look(&Evidence::of(&run));
        assert!(seen[0].evidence.contains("shared their CPUs and used 98 %"), "{seen:?}");
    }

    #[test]
    fn a_level_flow_does_not_hide_that_cpus_were_shared() {
        let mut run = testdata::behind_a_link(61e6, 8);
        (0..2).for_each(|contender| testdata::limit(&mut run, contender, 0.45, 0.48));
        run.layout.shared = true;
        let seen = look(&Evidence::of(&run));
        assert_eq!((seen.len(), seen[0].certainty), (1, Certainty::Confirmed));
        assert!(seen[0].evidence.contains("shared their CPUs and used 93 %"), "{seen:?}");
    }

    #[test]
    fn every_pair_of_equals_is_in_a_group_and_none_of_those_that_differ() {
        let mut run = testdata::run(&["a", "b", "c"], 8);
        testdata::make_unlike(&mut run);
        for contender in 0..3 {
            testdata::limit(&mut run, contender, 0.97, 0.5);
            for visit in run.visits.iter_mut().filter(|visit| visit.contender == contender) {
                visit.rate_per_s = Some([1000.0, 1009.0, 1018.0][contender]);
            }
        }
        let groups: Vec<Vec<usize>> =
            look(&Evidence::of(&run)).into_iter().map(|one| one.contenders).collect();
        assert_eq!(groups, [vec![0, 1], vec![1, 2]]);
    }

    #[test]
    fn rates_that_were_asked_for_are_equal_by_plan() {
        let mut run = at_generator(1.0);
        for load in run.visits.iter_mut().filter_map(|visit| visit.load.as_mut()) {
            load.open_loop = Some(record::OpenLoop::default());
        }
        assert_eq!(look(&Evidence::of(&run)), []);
    }
}
