//! Owns the check that an open loop sent the rate that it was asked for. Start reading at [`look`].
//!
//! At a given rate two servers are compared by their latencies, and the rate is the same for both only if it
//! was sent. Where all connections were busy, or the generator was, fewer requests reached the server: its
//! latencies are those of a smaller load, and the requests that were dropped are in none of them. What is
//! missing by chance at the end is not counted ([`record::LoadRecord::rate_missed`], which the search for a
//! rate uses too).

use record::{Certainty, LoadRecord, Question, Severity};

use super::{Check, silent_at_end};
use crate::{Evidence, Observation, words};

/// The target rate was not reached.
pub const ITEM: Check = Check {
    name: "rate_not_reached",
    severity: Severity::Void,
    question: Question::DidItEvenHappen,
    spares_like_pairs: false,
    title: "the target rate was not reached",
    meaning: "fewer requests were sent than asked for, so the latencies are those of a smaller load",
    remedy: "ask for a lower rate, use more connections (-c), or give the generator more CPUs (-t, --cpus); \
             where the server is at its limit, `joust load --search` finds the highest rate",
    detection: "Less than 99 % of the requests that were due were started, and more than the last few are \
             missing, or any was dropped from the full queue. In a run that holds for half of the visits",
    example: "`joust load --rate 100000 URL` against a server that answers 20,000 a second",
    source: "https://github.com/envoyproxy/nighthawk/blob/main/docs/root/overview.md",
    needs: &[],
    look,
};

/// A rate was missed for want of connections where one could not be made for each group of this many requests that
/// are missing: each is waited for before it is tried again, while others queue.
const MISSING_PER_UNCONNECTED: u64 = 10;

fn look(evidence: &Evidence) -> Vec<Observation> {
    evidence.contenders().filter_map(|contender| look_at(evidence, contender)).collect()
}

fn look_at(evidence: &Evidence, contender: usize) -> Option<Observation> {
    let loads = || evidence.loads(contender).map(|(_, load)| load);
    let missed = || loads().filter_map(|load| Some((load.rate_missed()?, load)));
    let (n_missed, n_all) = (missed().count(), loads().count());
    if n_missed == 0 || 2 * n_missed < n_all {
        return None;
    }
    let sum = |of: fn(&record::RateMissed) -> u64| missed().map(|(one, _)| of(&one)).sum::<u64>();
    let (due, begun, dropped) = (sum(|one| one.due), sum(|one| one.begun), sum(|one| one.dropped));
    let (_, worst) = missed().max_by_key(|(one, _)| one.due - one.begun)?;
    let is_late = worst.open_loop.is_some_and(|open| open.overdue > 0);
    let dropped = match dropped {
        0 => String::new(),
        n => format!(", {} dropped because the queue was full", words::grouped(n)),
    };
    let visits = match n_all {
        1 => String::new(),
        n => format!(" in {n_missed} of {}", words::count(n as u64, "visit")),
    };
    let evidence = format!(
        "{}: target rate not reached: started{} {} of {} ({}){visits}{dropped}; {}",
        evidence.name(contender),
        if is_late { " on time" } else { "" },
        words::grouped(begun),
        words::count(due, "scheduled request"),
        words::percent(begun as f64 / due as f64),
        why(worst),
    );
    Some(Observation {
        share: Some(1.0 - begun as f64 / due as f64),
        certainty: Certainty::Confirmed,
        contenders: vec![contender],
        evidence,
    })
}

/// What was in the way.
fn why(load: &LoadRecord) -> String {
    let errors = &load.errors;
    let unconnected = errors.connect_refused
        + errors.connect_failed
        + errors.connect_timeout
        + errors.tls_timeout;
    let missing = load.rate_missed().map_or(0, |missed| missed.due - missed.begun);
    if !load.generator_limits().is_empty() {
        "the generator could not send more".to_owned()
    } else if silent_at_end::silence(load).is_some() {
        "the server crashed or hung".to_owned()
    } else if unconnected.saturating_mul(MISSING_PER_UNCONNECTED) >= missing {
        format!(
            "{} could not connect, and others waited for a connection: check that the server is up all \
             the time and its backlog is long enough",
            words::count(unconnected, "request")
        )
    } else {
        "all connections were busy".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use record::{OpenLoop, RunRecord, ThreadUse};
    use units::Nanos;

    use super::*;
    use crate::testdata;

    /// Contender 1 begins fewer than 50,000 requests in each of some of its 8 visits, as given.
    fn begun(n_begun: u64, visits: usize) -> RunRecord {
        let mut run = testdata::run(&["a", "b"], 8);
        for load in run.visits.iter_mut().filter_map(|visit| visit.load.as_mut()) {
            let due = load.requests.started;
            load.open_loop = Some(OpenLoop { due, ..OpenLoop::default() });
        }
        let of_b = run.visits.iter_mut().filter(|visit| visit.contender == 1);
        for load in of_b.take(visits).filter_map(|visit| visit.load.as_mut()) {
            let open = load.open_loop.as_mut().unwrap();
            (open.due, open.left) = (50_000, 50_000 - n_begun);
            load.requests.started = n_begun;
        }
        run
    }

    #[test]
    fn a_rate_that_was_kept_is_silent_and_one_that_was_missed_says_by_how_much() {
        assert_eq!(look(&Evidence::of(&begun(50_000, 8))), []);
        assert_eq!(look(&Evidence::of(&testdata::run(&["a"], 2))), [], "a closed loop has no rate");
        let seen = look(&Evidence::of(&begun(40_000, 8)));
        assert_eq!((seen.len(), seen[0].contenders.as_slice()), (1, &[1][..]));
        let text = "b: target rate not reached: started 320,000 of 400,000 scheduled requests (80 %) in 8 of 8 visits; all \
                    connections were busy";
        assert_eq!(seen[0].evidence, text);
    }

    #[test]
    fn half_of_the_visits_decide_and_the_share_follows_the_dose() {
        assert_eq!(look(&Evidence::of(&begun(40_000, 3))), []);
        let share = |n| look(&Evidence::of(&begun(n, 4)))[0].share.unwrap();
        assert!((share(40_000) - 0.2).abs() < 1e-9 && (share(45_000) - 0.1).abs() < 1e-9);
    }

    #[test]
    fn what_was_in_the_way_is_told() {
        let said = |change: fn(&mut LoadRecord)| {
            let mut run = begun(40_000, 8);
            run.visits.iter_mut().filter_map(|visit| visit.load.as_mut()).for_each(change);
            look(&Evidence::of(&run))[0].evidence.clone()
        };
        let refused = said(|load| load.errors.connect_refused = 1_000);
        assert!(
            refused.contains("1,000 requests could not connect, and others waited"),
            "{refused}"
        );
        let busy = said(|load| {
            let wall = Nanos::from_secs(1);
            load.client.threads = vec![ThreadUse { cpu: wall, wall, pinned_to: None }];
        });
        assert!(busy.ends_with("the generator could not send more"), "{busy}");
        let dropped = said(|load| load.open_loop.as_mut().unwrap().dropped = 7);
        assert!(dropped.contains("56 dropped because the queue was full"), "{dropped}");
        let late = said(|load| load.open_loop.as_mut().unwrap().overdue = 7);
        assert!(late.contains("started on time 3"), "{late}");
    }
}
