//! Owns the check that an open loop sent its requests when they were due. Start reading at [`look`].
//!
//! A timer that fires late, a sleep that is rounded up to a tick, or a generator without CPU time sends a request
//! late although a connection is free. The response time counts from the instant at which the request was due, so
//! it holds that delay. What is a delay that matters, `record` knows ([`record::GeneratorLimit::Late`]).

use record::{Certainty, GeneratorLimit, LoadRecord, Question, Severity};

use super::Check;
use crate::{Evidence, Observation, words};

/// See the module.
pub(crate) const ITEM: Check = Check {
    name: "late_sends",
    severity: Severity::Note,
    question: Question::WhyNotDouble,
    spares_like_pairs: false,
    title: "requests were sent later than they were due",
    meaning: "response times hold the generator's own delay, which the server has nothing to do with",
    remedy: "give the generator a CPU of its own (--cpus), more threads (-t), or let it spin while it waits \
             (--busy-poll); read the service time, which begins when a request is sent",
    detection: "In an open loop, requests for which a connection was free were sent at least 0.2 ms late, and \
                that is a quarter of the response time or more, at the median or at p99. It is confirmed where \
                that holds for half of the loads",
    example: "`joust load --rate 50k` on a CPU that the server needs too",
    source: "timerfd_create(2); prctl(2), PR_SET_TIMERSLACK",
    needs: &[],
    look,
};

fn look(evidence: &Evidence) -> Vec<Observation> {
    evidence.contenders().filter_map(|contender| look_at(evidence, contender)).collect()
}

fn look_at(evidence: &Evidence, contender: usize) -> Option<Observation> {
    let open = evidence.loads(contender).filter(|(_, load)| load.open_loop.is_some());
    let loads: Vec<&LoadRecord> = open.map(|(_, load)| load).collect();
    let late: Vec<(f64, f64, f64)> = loads.iter().filter_map(|load| lateness(load)).collect();
    let ratio = |one: &(f64, f64, f64)| one.1 / one.2;
    let &(quantile, late_ms, response_ms) =
        late.iter().max_by(|a, b| ratio(a).total_cmp(&ratio(b)))?;
    let certainty = match 2 * late.len() >= loads.len() {
        true => Certainty::Confirmed,
        false => Certainty::Suspected,
    };
    let evidence = format!(
        "{}: in {} of {} requests were sent late; at worst by {late_ms:.3} ms of a response time of \
         {response_ms:.3} ms, both at p{}",
        evidence.name(contender),
        late.len(),
        words::count(loads.len() as u64, "load"),
        quantile * 100.0,
    );
    let share = Some((late_ms / response_ms).min(1.0));
    Some(Observation { share, certainty, contenders: vec![contender], evidence })
}

/// Quantile, delay and response time in milliseconds, where the delay matters.
fn lateness(load: &LoadRecord) -> Option<(f64, f64, f64)> {
    load.generator_limits().into_iter().find_map(|limit| match limit {
        GeneratorLimit::Late { quantile, late_ms, response_ms } => {
            Some((quantile, late_ms, response_ms))
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use record::{LatencyMillis, OpenLoop};

    use super::*;
    use crate::testdata;

    /// Open loops of b, of which some of eight were late, by a part of 4 ms at p99.
    fn seen(visits: usize, late: f64) -> Vec<Observation> {
        let mut run = testdata::run(&["a", "b"], 8);
        let of_b = run.visits.iter_mut().filter(|visit| visit.contender == 1);
        for (n, load) in of_b.filter_map(|visit| visit.load.as_mut()).enumerate() {
            let p99 = if n < visits { late } else { 0.05 };
            let millis =
                |p99| LatencyMillis { p50: Some(0.01), p99: Some(p99), ..Default::default() };
            load.response_ms = millis(4.0);
            load.open_loop = Some(OpenLoop { late_ms: millis(p99), ..OpenLoop::default() });
        }
        look(&Evidence::of(&run))
    }

    #[test]
    fn closed_loops_and_open_ones_on_time_are_silent() {
        assert_eq!(look(&Evidence::of(&testdata::run(&["a", "b"], 8))), []);
        assert_eq!(seen(8, 0.5), []);
    }

    #[test]
    fn half_of_the_loads_confirm_it_and_the_share_follows_the_delay() {
        let full = seen(8, 3.2);
        assert_eq!(
            (full.len(), full[0].certainty, full[0].share),
            (1, Certainty::Confirmed, Some(0.8))
        );
        assert_eq!(seen(8, 1.6)[0].share, Some(0.4));
        assert_eq!(seen(3, 3.2)[0].certainty, Certainty::Suspected);
        let text = "b: in 8 of 8 loads requests were sent late; at worst by 3.200 ms of a response time of \
                    4.000 ms, both at p99";
        assert_eq!(full[0].evidence, text);
    }
}
