//! Owns the check that the server set the pace, not the generator. Start reading at [`look`].
//!
//! The utilisation law: each request needs S seconds of a resource, so at X requests/s the resource
//! is busy the share X S of the time, and X can be at most 1 / S. In a closed loop X rises until some
//! resource is always busy; that one, the busiest, sets X, and a cheaper server would not be seen to
//! be faster. So the generator was the limit if its busiest CPU was (nearly) always busy, and
//! busier than the server's. Then the server could do at least what was measured.
//!
//! - The generator: its busiest CPU after the cut. Threads pinned to one CPU are added up.
//!   An interval holds the sum over threads; how unevenly they shared it is taken from the whole load.
//! - The server: its process tree over the CPUs that it could use, which is no more than it has
//!   threads: one thread on two CPUs is at its limit at 50 % of both.
//!
//! Both are medians over visits. Where both must share their CPUs, a request's cost is the sum, and
//! each contender's rate is a bound as soon as those CPUs are busy.

use record::{Certainty, GeneratorLimit, Limit, Question, Severity};

use super::Check;
use crate::busy::{BUSY_MIN, medians};
use crate::{Evidence, Observation, words};

/// See the module.
pub(crate) const ITEM: Check = Check {
    name: "generator_limit",
    severity: Severity::Bound,
    question: Question::WhyNotDouble,
    spares_like_pairs: false,
    title: "the load generator was the limit, not the server",
    meaning: "the server could have done more, so its rate is a lower bound, and latency under this \
              load includes the generator's own queue",
    remedy: "give the generator more CPUs than the server ([workload] threads, -t, on a larger machine), \
             or compare server CPU time per request, which does not depend on it",
    detection: "CPU time over wall time of the generator's busiest CPU and of the server's, medians over \
             visits. It is confirmed where the generator is at 85 % or more and busier than the server. Where \
             nothing is known of the server, 85 % alone confirms it",
    example: "`joust load -t 1 -c 100` against a server with many cores",
    source: "Jain, The Art of Computer Systems Performance Analysis, chapter 33 (utilisation law)",
    needs: &[],
    look,
};

fn look(evidence: &Evidence) -> Vec<Observation> {
    let found: Vec<Observation> =
        evidence.contenders().filter_map(|contender| searched(evidence, contender)).collect();
    if !found.is_empty() {
        return found;
    }
    let judge = if evidence.run.layout.shared { shared } else { apart };
    let look = |contender| judge(evidence, contender).or_else(|| by_itself(evidence, contender));
    evidence.contenders().filter_map(look).collect()
}

/// Nobody knows how busy the server was (it runs elsewhere, or the load was no part of a run): the generator
/// is judged by what it knows of itself, as in a search for a rate. What else can bound it has checks of
/// its own (`late_sends`, `local_ports_exhausted`, `file_descriptors_exhausted`).
fn by_itself(evidence: &Evidence, contender: usize) -> Option<Observation> {
    let loads = || {
        let unknown = evidence.loads(contender).filter(|(visit, _)| visit.server.is_none());
        unknown.map(|(_, load)| load)
    };
    let is_busy = |limit| matches!(limit, GeneratorLimit::Busy { .. });
    let limited = || loads().filter(|load| load.generator_limits().into_iter().any(is_busy));
    let (n_limited, n_all) = (limited().count(), loads().count());
    if 2 * n_limited <= n_all {
        return None;
    }
    let load = limited().max_by(|a, b| a.client.busiest().total_cmp(&b.client.busiest()))?;
    let so = match (load.open_loop, load.rate_missed()) {
        (None, _) => "the rate is a lower bound",
        (Some(_), Some(_)) => "the server got no more requests than that",
        (Some(_), None) => "latencies include the generator's own delay",
    };
    let visits = match n_all {
        1 => String::new(),
        n => format!(" in {n_limited} of {}", words::count(n as u64, "visit")),
    };
    let evidence = format!(
        "{}: the generator's busiest thread used {} of its CPU{visits}, so {so}",
        evidence.name(contender),
        words::percent(load.client.busiest()),
    );
    Some(Observation {
        certainty: Certainty::Confirmed,
        contenders: vec![contender],
        evidence,
        ..Observation::default()
    })
}

/// A search records its limit; most of a contender's searches must have ended at the generator.
fn searched(evidence: &Evidence, contender: usize) -> Option<Observation> {
    let searches = evidence.run.measured(contender).filter_map(|visit| visit.search.as_ref());
    let (mut limited, mut all) = (0usize, 0usize);
    for search in searches {
        all += 1;
        // Where every rate held, the highest that the generator makes held too.
        limited += usize::from(matches!(search.limit, Limit::Generator | Limit::NotReached));
    }
    let evidence = format!(
        "{}: {limited} of {all} searches for the highest rate ended at the generator's own limit",
        evidence.name(contender)
    );
    let seen = Observation {
        share: None,
        certainty: Certainty::Confirmed,
        contenders: vec![contender],
        evidence,
    };
    (2 * limited > all).then_some(seen)
}

/// Each has CPUs of its own.
fn apart(evidence: &Evidence, contender: usize) -> Option<Observation> {
    let (client, server) = medians(evidence, contender)?;
    if client < BUSY_MIN || client <= server {
        return None;
    }
    let evidence = format!(
        "{}: the generator's CPU was busy {} of the time, the server's {} (medians over visits)",
        evidence.name(contender),
        words::percent(client),
        words::percent(server),
    );
    Some(Observation {
        share: None,
        certainty: Certainty::Confirmed,
        contenders: vec![contender],
        evidence,
    })
}

/// Both run on the same CPUs.
fn shared(evidence: &Evidence, contender: usize) -> Option<Observation> {
    let (client, server) = medians(evidence, contender)?;
    if client + server < BUSY_MIN {
        return None;
    }
    let evidence = format!(
        "{}: generator and server shared their CPUs; the generator took {} and the server {} \
         (medians over visits)",
        evidence.name(contender),
        words::percent(client),
        words::percent(server),
    );
    Some(Observation {
        share: None,
        certainty: Certainty::Confirmed,
        contenders: vec![contender],
        evidence,
    })
}

#[cfg(test)]
mod tests {
    use record::ThreadUse;
    use units::Nanos;

    use super::*;
    use crate::testdata;

    #[test]
    fn a_busy_generator_beside_an_idle_server_fires_with_both_figures() {
        let mut run = testdata::run(&["a", "b"], 8);
        testdata::limit(&mut run, 1, 0.97, 0.4);
        let seen = look(&Evidence::of(&run));
        assert_eq!(seen.len(), 1);
        assert_eq!(
            (seen[0].contenders.as_slice(), seen[0].certainty),
            (&[1][..], Certainty::Confirmed)
        );
        let text = "b: the generator's CPU was busy 97 % of the time, the server's 40 % (medians \
                    over visits)";
        assert_eq!(seen[0].evidence, text);
    }

    #[test]
    fn a_busier_server_is_its_own_limit() {
        let mut run = testdata::run(&["a", "b"], 8);
        testdata::limit(&mut run, 0, 0.9, 0.99);
        testdata::limit(&mut run, 1, 0.6, 0.2);
        assert_eq!(look(&Evidence::of(&run)), []);
    }

    #[test]
    fn one_odd_visit_is_not_the_median() {
        let mut run = testdata::run(&["a", "b"], 8);
        testdata::limit(&mut run, 0, 0.97, 0.4);
        let clean = testdata::run(&["a", "b"], 8);
        run.visits[2..].clone_from_slice(&clean.visits[2..]);
        assert_eq!(look(&Evidence::of(&run)), []);
    }

    #[test]
    fn a_server_of_one_thread_on_two_cpus_is_busy_by_its_thread() {
        let mut run = testdata::run(&["a", "b"], 8);
        testdata::limit(&mut run, 0, 0.9, 0.48);
        for server in run.visits.iter_mut().filter_map(|visit| visit.server.as_mut()) {
            (server.cpus, server.threads) = (2, 1);
            server.cpu = Nanos(server.cpu.0 * 2);
        }
        assert_eq!(look(&Evidence::of(&run)), []);
    }

    #[test]
    fn one_busy_thread_among_idle_ones_is_seen_and_so_are_two_on_one_cpu() {
        let thread = |busy: f64, cpu: u32| ThreadUse {
            cpu: Nanos((busy * 1e9) as u64),
            wall: Nanos::from_secs(1),
            pinned_to: Some(cpu),
        };
        for threads in [vec![thread(0.95, 0), thread(0.05, 1)], vec![thread(0.5, 0); 2]] {
            let mut run = testdata::run(&["a", "b"], 8);
            // Their sum, in each interval.
            testdata::limit(&mut run, 0, 1.0, 0.4);
            for visit in run.visits.iter_mut().filter(|visit| visit.contender == 0) {
                visit.load.as_mut().unwrap().client.threads.clone_from(&threads);
            }
            assert_eq!(look(&Evidence::of(&run)).len(), 1, "{threads:?}");
        }
    }

    #[test]
    fn on_shared_cpus_the_sum_counts() {
        let mut run = testdata::run(&["a", "b"], 8);
        run.layout.shared = true;
        testdata::limit(&mut run, 0, 0.3, 0.65);
        testdata::limit(&mut run, 1, 0.1, 0.3);
        let seen = look(&Evidence::of(&run));
        assert_eq!(seen.len(), 1);
        assert!(seen[0].evidence.contains("took 30 % and the server 65 %"), "{}", seen[0].evidence);
    }

    #[test]
    fn what_was_not_counted_is_not_judged() {
        let mut run = testdata::run(&["a", "b"], 8);
        testdata::limit(&mut run, 0, 0.97, 0.4);
        for visit in &mut run.visits {
            visit.server = None;
            visit.load.as_mut().unwrap().client.threads.clear();
        }
        assert_eq!(look(&Evidence::of(&run)), []);
    }

    #[test]
    fn beside_a_server_of_which_nothing_is_known_the_generator_is_judged_by_itself() {
        let mut run = testdata::run(&["a", "b"], 8);
        testdata::limit(&mut run, 0, 0.97, 0.4);
        run.visits.iter_mut().for_each(|visit| visit.server = None);
        let seen = look(&Evidence::of(&run));
        assert_eq!((seen.len(), seen[0].contenders.as_slice()), (1, &[0][..]));
        let text = "a: the generator's busiest thread used 97 % of its CPU in 8 of 8 visits, so the rate is a \
                    lower bound";
        assert_eq!(seen[0].evidence, text);
        let half = run.visits.iter_mut().filter(|visit| visit.contender == 0).take(4);
        half.for_each(|visit| visit.load.as_mut().unwrap().client.threads.clear());
        assert_eq!(look(&Evidence::of(&run)), [], "half of them are not most");
    }

    #[test]
    fn a_load_alone_says_what_a_busy_generator_spoils() {
        let said = |open_loop| {
            let mut load = testdata::load();
            let wall = units::Nanos::from_secs(1);
            load.client.threads = vec![ThreadUse { cpu: wall, wall, pinned_to: None }];
            load.open_loop = open_loop;
            let found = crate::examine_load(&load);
            let found = found.iter().find(|one| one.check == ITEM.name).unwrap();
            found.evidence.clone()
        };
        let text = "the server: the generator's busiest thread used 100 % of its CPU, so the rate is a lower \
                    bound";
        assert_eq!(said(None), text);
        let open = record::OpenLoop { due: 45_000, ..Default::default() };
        assert!(said(Some(open)).ends_with("the generator's own delay"));
        let missed = record::OpenLoop { due: 90_000, left: 45_000, ..Default::default() };
        assert!(said(Some(missed)).ends_with("the server got no more requests than that"));
    }
}
