//! Owns the check for measurements in which each request waits equally long, and nothing works. Start reading at
//! [`look`].
//!
//! A program that sleeps half a second, and a client that counts requests: the rate is connections over half a
//! second, whoever serves them. Where that holds for all contenders, they are compared by their sleep. Where the
//! study itself asks for a sleep it is what is to be measured, and the check is silent.
//!
//! Replies that are held until the next multiple of a time take equally long too, but for the first ones: those
//! are another check's (`bursts_of_replies`).

use record::{Certainty, LoadRecord, Question, Severity, Visit};
use units::Nanos;

use super::Check;
use crate::cpus::busy_cores;
use crate::{Evidence, Observation, words};

/// See the module.
pub(crate) const ITEM: Check = Check {
    name: "fixed_delay_dominates",
    severity: Severity::Void,
    question: Question::DoesItMatter,
    spares_like_pairs: false,
    title: "each request took the same time, and nothing worked meanwhile",
    meaning: "the rate is connections over a fixed delay, whatever the servers can do",
    remedy: "ask for something that is work, shorten the delay, or raise the number of connections until a CPU \
             is busy; compare what is left when the delay is taken off",
    detection: "For every contender the service times of its visits differ by less than 1 % of their mean (a \
             coefficient of variation, from the quantiles 5 % to 95 %), of at least 1 ms, the shortest is not \
             far below, and server and generator keep less than 0.3 cores busy, which confirms it",
    example: "`joust serve --fixed 3361 --fault delay=500ms`",
    source: "Little, A Proof for the Queuing Formula L = λW, 1961",
    needs: &[&crate::counters::STAT],
    look,
};

/// Shorter waits are those of a scheduler and a network.
const MEAN_MIN: Nanos = Nanos::from_millis(1);
/// Coefficient of variation of a sleep that a timer ends; one of work has ten times that.
const VARIATION_MAX: f64 = 0.01;
/// Quantiles that lie this far apart in standard deviations of a normal law.
const OUTER: (f64, f64) = (0.05, 0.95);
const OUTER_APART: f64 = 3.29;
/// The shortest request over the mean: the delay is in each.
const SHORTEST_MIN: f64 = 0.8;
/// Where requests wait, hardly anything works.
const BUSY_CORES_MAX: f64 = 0.3;

/// All contenders, or none.
fn look(evidence: &Evidence) -> Vec<Observation> {
    let contenders: Vec<usize> =
        evidence.contenders().filter(|one| evidence.loads(*one).next().is_some()).collect();
    let each = contenders.iter().map(|&one| delayed(evidence, one));
    let Some(each) = each.collect::<Option<Vec<Delayed>>>().filter(|each| !each.is_empty()) else {
        return Vec::new();
    };
    let said = contenders.iter().zip(&each).map(|(&contender, one)| {
        format!(
            "{}: each request took {}, of which {} was in every one",
            evidence.name(contender),
            one.mean,
            words::percent(one.share)
        )
    });
    let is_idle = each.iter().all(|one| one.is_idle == Some(true));
    let share = each.iter().map(|one| one.share).sum::<f64>() / each.len() as f64;
    vec![Observation {
        certainty: if is_idle { Certainty::Confirmed } else { Certainty::Suspected },
        share: Some(share),
        evidence: said.collect::<Vec<_>>().join(". "),
        contenders,
    }]
}

#[derive(Debug)]
struct Delayed {
    mean: Nanos,
    /// The shortest time over the mean.
    share: f64,
    /// `None` where no CPU time is known.
    is_idle: Option<bool>,
}

fn delayed(evidence: &Evidence, contender: usize) -> Option<Delayed> {
    let visits: Vec<(&Visit, &LoadRecord)> = evidence.loads(contender).collect();
    let mut means = Vec::new();
    let mut shares = Vec::new();
    let mut is_idle = Some(true);
    for (visit, load) in &visits {
        let work = evidence.run.plan.work(visit.cell, contender);
        if work.sleep.is_some() || load.open_loop.is_some() {
            return None;
        }
        let service = visit.service_after_cut()?;
        let mean = service.mean().filter(|mean| *mean >= MEAN_MIN)?;
        let mean_s = mean.as_secs_f64();
        let (low, high) = (service.quantile(OUTER.0)?, service.quantile(OUTER.1)?);
        let variation = high.saturating_sub(low).as_secs_f64() / OUTER_APART / mean_s;
        let shortest = load.latencies.service.min()?.as_secs_f64() / mean_s;
        if variation > VARIATION_MAX || shortest < SHORTEST_MIN {
            return None;
        }
        means.push(mean_s);
        shares.push(shortest.min(1.0));
        let busy = busy_cores(visit, load);
        if busy.is_some_and(|busy| busy >= BUSY_CORES_MAX) {
            return None;
        }
        is_idle = is_idle.filter(|_| busy.is_some());
    }
    let mean = Nanos::from_secs_f64(stats::median(&means)?);
    Some(Delayed { mean, share: stats::median(&shares)?, is_idle })
}

#[cfg(test)]
mod tests {
    use record::RunRecord;

    use super::*;
    use crate::simulated::Loop;
    use crate::testdata;

    fn seen(run: &RunRecord) -> Vec<Observation> {
        look(&Evidence::of(run))
    }

    fn delayed_by(millis: u64) -> Loop {
        let calm = Loop { hiccups_per_s: 0.0, ..Loop::clean(16, 100_000.0) };
        Loop { delay: Nanos::from_millis(millis), length: Nanos::from_secs(2), ..calm }
    }

    fn both(a: Loop, b: Loop) -> RunRecord {
        let mut run = Loop::run(&[a, b], &["a", "b"], 4, 1);
        (0..2).for_each(|one| testdata::limit(&mut run, one, 0.01, 0.01));
        run
    }

    #[test]
    fn a_delay_of_all_contenders_is_confirmed() {
        let seen = seen(&both(delayed_by(100), delayed_by(150)));
        assert_eq!((seen.len(), seen[0].certainty), (1, Certainty::Confirmed));
        assert_eq!(seen[0].contenders, [0, 1]);
        assert!(seen[0].evidence.starts_with("a: each request took 10"), "{}", seen[0].evidence);
        assert!(seen[0].share.unwrap() > 0.95);
    }

    #[test]
    fn a_delay_of_one_contender_is_a_difference_between_them() {
        assert_eq!(seen(&both(delayed_by(100), Loop::clean(16, 20_000.0))), []);
    }

    #[test]
    fn work_a_busy_cpu_and_a_sleep_that_is_asked_for_are_silent() {
        assert_eq!(seen(&testdata::run(&["a", "b"], 8)), []);
        let mut busy = both(delayed_by(100), delayed_by(100));
        testdata::limit(&mut busy, 1, 0.1, 0.4);
        assert_eq!(seen(&busy), []);
        let mut asked = both(delayed_by(100), delayed_by(100));
        asked.plan.cells[0].workload.sleep = Some(Nanos::from_millis(100));
        assert_eq!(seen(&asked), []);
    }

    #[test]
    fn replies_that_are_held_are_another_check_s() {
        let held = Loop { batch: Nanos::from_millis(100), delay: Nanos::ZERO, ..delayed_by(0) };
        assert_eq!(seen(&both(held, held)), []);
    }

    #[test]
    fn where_no_cpu_time_is_known_it_is_suspected() {
        let mut run = both(delayed_by(100), delayed_by(100));
        run.visits.iter_mut().for_each(|visit| visit.server = None);
        assert_eq!(seen(&run)[0].certainty, Certainty::Suspected);
    }
}
