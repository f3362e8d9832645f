//! Owns the check that the network was not what set the pace. Start reading at [`look`].
//!
//! Behind a link of 50 Mbit/s every server that is fast enough sends 50 Mbit/s. Its rate then says what the link
//! carries, and the server could do at least that. How a link is told from a fixed delay: [`crate::ceiling`].

use record::{Certainty, Question, Severity};

use super::Check;
use crate::ceiling::{self, AtLink};
use crate::counters::{INTERFACES, STAT};
use crate::{Evidence, Observation, words};

/// See the module.
pub(crate) const ITEM: Check = Check {
    name: "link_ceiling",
    severity: Severity::Bound,
    question: Question::DidItBreakALimit,
    spares_like_pairs: false,
    title: "the network was the limit, not the server",
    meaning: "the server could have sent more, so its rate is a lower bound, and latency under this load is the queue \
              before the network",
    remedy: "ask for a smaller page, use a faster network or loopback, or compare server CPU time per request",
    detection: "Bytes a second vary by less than 1 % between visits, requests queue, and no CPU is above 70 %. \
                Confirmed where the interface counts 97 to 101 % of a round speed (98.5 to 100.5 % where no other \
                contender has it), suspected where unlike contenders are within 1 %",
    example: "`tc qdisc add dev lo root tbf rate 50mbit burst 64kb latency 50ms`",
    source: "tc-tbf(8); proc_net(5), dev",
    needs: &[&INTERFACES, &STAT],
    look,
};

fn look(evidence: &Evidence) -> Vec<Observation> {
    ceiling::at_link(evidence).into_iter().map(|one| seen(evidence, &one)).collect()
}

fn seen(evidence: &Evidence, one: &AtLink) -> Observation {
    let near = one.speed.map(|speed| {
        format!(", {} of {}", words::percent(speed.used.min(1.0)), bits(speed.bits_per_s))
    });
    let others: Vec<usize> =
        one.equals.iter().copied().filter(|&other| other != one.contender).collect();
    let equal = (!others.is_empty()).then(|| format!(", as {}", evidence.names(&others)));
    Observation {
        share: one.speed.map(|speed| speed.used.min(1.0)),
        certainty: if one.is_sure { Certainty::Confirmed } else { Certainty::Suspected },
        contenders: vec![one.contender],
        evidence: format!(
            "{}: it sent {} in every visit{}{}, and no CPU was seen to be the limit",
            evidence.name(one.contender),
            bits(8.0 * one.bytes_per_s),
            near.unwrap_or_default(),
            equal.unwrap_or_default(),
        ),
    }
}

/// A speed: "50 Mbit/s", "2.5 Gbit/s".
pub(super) fn bits(bits_per_s: f64) -> String {
    let (scaled, unit) = match bits_per_s {
        _ if bits_per_s >= 1e9 => (bits_per_s / 1e9, "Gbit/s"),
        _ => (bits_per_s / 1e6, "Mbit/s"),
    };
    let text = format!("{scaled:.1}");
    format!("{} {unit}", text.strip_suffix(".0").unwrap_or(&text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata;

    #[test]
    fn a_server_that_is_its_own_limit_is_silent() {
        assert_eq!(look(&Evidence::of(&testdata::run(&["a", "b"], 8))), []);
        let mut run = testdata::behind_a_link(50e6, 8);
        testdata::limit(&mut run, 0, 0.3, 0.9);
        testdata::limit(&mut run, 1, 0.3, 0.9);
        assert_eq!(look(&Evidence::of(&run)), []);
    }

    #[test]
    fn servers_behind_a_link_are_told_with_its_speed() {
        let seen = look(&Evidence::of(&testdata::behind_a_link(50e6, 8)));
        assert_eq!((seen.len(), seen[0].certainty), (2, Certainty::Confirmed));
        let text = "a: it sent 49.8 Mbit/s in every visit, 99.6 % of 50 Mbit/s, as b, and no CPU was seen to be the limit";
        assert_eq!(seen[0].evidence, text);
    }

    #[test]
    fn the_fast_side_alone_is_a_bound() {
        let mut run = testdata::behind_a_link(50e6, 8);
        // b is slower, and its own limit.
        for visit in run.visits.iter_mut().filter(|visit| visit.contender == 1) {
            let series = &mut visit.surroundings.as_mut().unwrap().series;
            series.counters.values_mut().for_each(|course| {
                course.steps.iter_mut().for_each(|step| *step = *step * 37 / 100);
            });
        }
        testdata::limit(&mut run, 1, 0.3, 0.95);
        let seen = look(&Evidence::of(&run));
        assert_eq!((seen.len(), seen[0].contenders.as_slice()), (1, &[0][..]));
        assert_eq!(seen[0].certainty, Certainty::Confirmed);
    }

    #[test]
    fn a_level_rate_at_no_speed_of_a_link_is_suspected_where_unlike_servers_have_it() {
        let mut run = testdata::behind_a_link(61e6, 8);
        let seen = look(&Evidence::of(&run));
        assert!(seen.iter().all(|one| one.certainty == Certainty::Suspected) && seen.len() == 2);
        run.plan.contenders[1].settings = run.plan.contenders[0].settings.clone();
        assert_eq!(look(&Evidence::of(&run)), [], "one server, twice");
    }

    #[test]
    fn a_fixed_delay_is_no_link() {
        let mut run = testdata::behind_a_link(50e6, 8);
        for load in run.visits.iter_mut().filter_map(|visit| visit.load.as_mut()) {
            load.latencies.service.clear();
            (0..1_000).for_each(|n| {
                load.latencies.service.record(units::Nanos::from_micros(5_000 + n % 100));
            });
        }
        assert_eq!(look(&Evidence::of(&run)), []);
    }
}
