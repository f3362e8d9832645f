//! Owns the check that an open loop at a constant rate did not send its requests in bursts. Start reading at
//! [`look`].
//!
//! Clients that tick together (a timer each, all begun at once; several agents with one clock) ask 64 times at once
//! and then not at all. The mean rate is as asked, and the latencies are those of a queue that no user makes. In bins
//! in which five requests are due, an even rate puts four to six; a burst puts all of its own into one.
//! A generator that was stopped for a moment makes one burst; it is told from a tick by how many requests are in
//! bursts. Requests by chance (Poisson) are asked for, and not judged.

use record::{Certainty, LoadRecord, Pacing, Question, Severity, Visit};
use units::Nanos;

use super::Check;
use crate::timeline::Timeline;
use crate::{Evidence, Observation, words};

/// See the module.
pub(crate) const ITEM: Check = Check {
    name: "synchronised_arrivals",
    severity: Severity::Void,
    question: Question::DidItEvenHappen,
    spares_like_pairs: false,
    title: "a constant rate was sent in bursts",
    meaning: "latencies are those of a queue that the generator makes, not of the rate that was asked for",
    remedy: "spread the clients (--arrivals poisson or jitter), give the generator a CPU of its own, or begin agents at \
             different instants",
    detection: "Of requests at a constant rate, 25 % or more were sent in bins with three times as many as are due \
                there, in 20 such bins or more. Confirmed where replies came as unevenly (index of dispersion above 5)",
    example: "64 connections, each with its own timer of 100 ms, all begun at once",
    source: "fortio, README, -uniform and -jitter; Cox and Lewis, The Statistical Analysis of Series of Events, 1966",
    needs: &[],
    look,
};

/// Requests that are due in a bin.
const DUE_IN_BIN: f64 = 5.0;
/// A bin with this many times the usual number is a burst. Of a Poisson process one bin in 4,000 has.
const BURST_MIN: f64 = 3.0;
/// Share of the requests in bursts: one that a stopped generator made is less.
const IN_BURSTS_MIN: f64 = 0.25;
/// Bursts that make a pattern.
const BURSTS_MIN: usize = 20;
/// Index of dispersion of the replies from which they came in bursts, too.
const DISPERSION_MIN: f64 = 5.0;

fn look(evidence: &Evidence) -> Vec<Observation> {
    evidence.contenders().filter_map(|contender| look_at(evidence, contender)).collect()
}

fn look_at(evidence: &Evidence, contender: usize) -> Option<Observation> {
    let all: Vec<Bursts> =
        evidence.loads(contender).filter_map(|(visit, load)| bursts(visit, load)).collect();
    let sum = |of: fn(&Bursts) -> u64| all.iter().map(of).sum::<u64>();
    let (inside, sent) = (sum(|one| one.inside), sum(|one| one.sent));
    let number: usize = all.iter().map(|one| one.number).sum();
    let share = inside as f64 / sent.max(1) as f64;
    if share < IN_BURSTS_MIN || number < BURSTS_MIN {
        return None;
    }
    let dispersion =
        stats::median(&all.iter().filter_map(|one| one.dispersion).collect::<Vec<_>>());
    let replies = dispersion.filter(|&dispersion| dispersion > DISPERSION_MIN);
    let evidence = format!(
        "{}: {} of {} sampled requests ({}) were sent in {}, {:.0} at once instead of evenly{}",
        evidence.name(contender),
        words::grouped(inside),
        words::grouped(sent),
        words::percent(share),
        words::count(number as u64, "burst"),
        inside as f64 / number as f64,
        replies.map_or(String::new(), |it| format!(
            "; replies have an index of dispersion of {it:.0}"
        )),
    );
    let certainty = if replies.is_some() { Certainty::Confirmed } else { Certainty::Suspected };
    Some(Observation { share: Some(share), certainty, contenders: vec![contender], evidence })
}

/// Requests of one load that were sent in bursts.
#[derive(Debug, Clone, Copy)]
struct Bursts {
    /// In the raw log.
    sent: u64,
    /// Of them: in bursts.
    inside: u64,
    number: usize,
    /// Of replies, in bins as long.
    dispersion: Option<f64>,
}

/// `None` where the rate is not constant by plan, or nothing was sampled.
fn bursts(visit: &Visit, load: &LoadRecord) -> Option<Bursts> {
    let rate = match load.plan.pacing {
        Pacing::Constant { rate } | Pacing::Jitter { rate } => rate.0,
        _ => return None,
    };
    let stride = load.raw_stride.max(1) as f64;
    let bin = Nanos::from_secs_f64(DUE_IN_BIN * stride / rate);
    let sent = load.raw.iter().map(|sample| sample.sent).filter(|&at| at >= visit.cut && at.0 > 0);
    let mut bins: std::collections::BTreeMap<u64, u64> = Default::default();
    sent.for_each(|at| *bins.entry(at.0 / bin.0.max(1)).or_default() += 1);
    let is_burst = |count: &&u64| **count as f64 >= BURST_MIN * DUE_IN_BIN;
    let timeline = Timeline::measured(visit, load);
    let dispersion = timeline.map(|timeline| {
        let joined = timeline.joined((bin.0 / timeline.bin.0).max(1) as usize);
        let mean = joined.iter().sum::<f64>() / joined.len().max(1) as f64;
        let squares = joined.iter().map(|count| (count - mean).powi(2)).sum::<f64>();
        squares / joined.len().max(1) as f64 / mean.max(1e-9)
    });
    Some(Bursts {
        sent: bins.values().sum(),
        inside: bins.values().filter(is_burst).sum(),
        number: bins.values().filter(is_burst).count(),
        dispersion,
    })
    .filter(|one| one.sent > 0)
}

#[cfg(test)]
mod tests {
    use record::{Completions, OpenLoop, RunRecord};
    use units::PerSecond;

    use super::*;
    use crate::testdata;

    const RATE: f64 = 1_000.0;

    /// One load at 1,000 requests/s, of which the share `together` is sent by clients that tick each 50 ms.
    fn sent(together: f64, pacing: Pacing) -> RunRecord {
        let mut run = testdata::run(&["a"], 1);
        run.visits[0].cut = Nanos::ZERO;
        let load = run.visits[0].load.as_mut().unwrap();
        load.seconds = 4.0;
        load.plan.stop.duration = Some(Nanos::from_secs(4));
        load.plan.pacing = pacing;
        load.open_loop = Some(OpenLoop::default());
        load.completions = Completions::new();
        for n in 0..4_000_u64 {
            let due = 1_000_000 * n + 1;
            let ticks = (n % 100) as f64 >= 100.0 * (1.0 - together);
            let at = Nanos(if ticks { due / 50_000_000 * 50_000_000 + 1 } else { due });
            let done = at + Nanos::from_micros(300);
            load.completions.record(done);
            load.raw.push(testdata::sample(0, at, done));
        }
        run
    }

    const CONSTANT: Pacing = Pacing::Constant { rate: PerSecond(RATE) };

    #[test]
    fn even_requests_and_other_laws_are_silent() {
        assert_eq!(look(&Evidence::of(&testdata::run(&["a", "b"], 8))), []);
        assert_eq!(look(&Evidence::of(&sent(0.0, CONSTANT))), []);
        assert_eq!(look(&Evidence::of(&sent(1.0, Pacing::Poisson { rate: PerSecond(RATE) }))), []);
    }

    #[test]
    fn a_generator_that_stopped_now_and_then_is_no_tick() {
        let mut run = sent(0.0, CONSTANT);
        for sample in &mut run.visits[0].load.as_mut().unwrap().raw {
            // For 20 ms of each second nothing leaves.
            let into = sample.sent.0 % 1_000_000_000;
            if into < 20_000_000 {
                sample.sent = Nanos(sample.sent.0 - into + 20_000_000);
            }
        }
        assert_eq!(look(&Evidence::of(&run)), []);
    }

    #[test]
    fn clients_that_tick_together_fire_by_their_share() {
        let seen = |together| look(&Evidence::of(&sent(together, CONSTANT)));
        let (full, half) = (seen(1.0), seen(0.5));
        assert_eq!((full.len(), full[0].certainty), (1, Certainty::Confirmed));
        let ratio = half[0].share.unwrap() / full[0].share.unwrap();
        assert!((ratio - 0.5).abs() < 0.1, "{ratio}");
        assert!(full[0].evidence.contains("in 80 bursts, 50 at once"), "{}", full[0].evidence);
    }
}
