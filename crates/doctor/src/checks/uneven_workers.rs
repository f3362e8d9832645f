//! Owns the check for connections that are served unequally. Start reading at [`look`].
//!
//! Workers that share a listener take connections as they come (epoll wakes the last one that went to sleep),
//! SO_REUSEPORT gives them out by a hash: with few connections one worker has five and another none. Connections
//! of a worker that has few get many replies. The rate hides it, and another set of ports gives another rate.
//!
//! It shows in the number of replies of each connection. Only where the record has a sample of every request can
//! these be counted: of every k-th of a server that answers in turn, all may be of the same few connections.

use std::collections::BTreeMap;

use record::{Certainty, LoadRecord, Outcome, Question, Severity, Visit};
use units::Nanos;

use super::Check;
use crate::timeline::end;
use crate::{Evidence, Observation, words};

/// See the module.
pub(crate) const ITEM: Check = Check {
    name: "uneven_workers",
    severity: Severity::Note,
    question: Question::DoesItReproduce,
    spares_like_pairs: false,
    title: "some connections got far more replies than others",
    meaning: "connections are spread unevenly over the workers, by chance of their ports or order, so the next \
              start has another rate",
    remedy: "use many connections for each worker (16 or more), and more fresh starts; compare with another \
             way to give out connections (nginx: reuseport, accept_mutex)",
    detection: "Where every request has a sample: the replies of connections differ by more than chance (χ², \
             p < 1e-6), and one has more than 1.5 times the mean, in half of the visits. It is confirmed if \
             median service times of these connections differ by 1.5 as well",
    example: "four workers with SO_REUSEPORT and eight connections",
    source: "https://blog.cloudflare.com/the-sad-state-of-linux-socket-balancing/",
    needs: &[],
    look,
};

/// Replies for each connection, on average, from which on the numbers can be compared.
const REPLIES_MIN: u64 = 20;
const CONNECTIONS_MIN: u32 = 4;
const MOST_OVER_MEAN_MIN: f64 = 1.5;
/// p < 1e-6, one-sided, as a quantile of the normal law.
const Z_MIN: f64 = 4.753;
/// Where connections got no reply at all, another check says so.
const UNSERVED_MAX: f64 = 0.05;

/// A visit in which connections were served unequally.
struct Uneven {
    most: u64,
    mean: f64,
    /// Median service time of the connection with fewest replies over that of the one with most.
    slower: f64,
}

fn look(evidence: &Evidence) -> Vec<Observation> {
    evidence.contenders().filter_map(|contender| look_at(evidence, contender)).collect()
}

fn look_at(evidence: &Evidence, contender: usize) -> Option<Observation> {
    let visits: Vec<(&Visit, &LoadRecord)> = evidence.loads(contender).collect();
    let uneven: Vec<Uneven> =
        visits.iter().filter_map(|(visit, load)| uneven(visit, load)).collect();
    if uneven.is_empty() || 2 * uneven.len() < visits.len() {
        return None;
    }
    let of = |part: fn(&Uneven) -> f64| {
        stats::median(&uneven.iter().map(part).collect::<Vec<f64>>()).unwrap_or_default()
    };
    let slower = of(|one| one.slower);
    let is_sure = slower >= MOST_OVER_MEAN_MIN;
    let evidence = format!(
        "{}: in {} of {} one connection got {:.1} times the mean of all; the one with fewest took {slower:.1} \
         times as long for each",
        evidence.name(contender),
        uneven.len(),
        words::count(visits.len() as u64, "visit"),
        of(|one| one.most as f64 / one.mean),
    );
    Some(Observation {
        certainty: if is_sure { Certainty::Confirmed } else { Certainty::Suspected },
        share: None,
        contenders: vec![contender],
        evidence,
    })
}

fn uneven(visit: &Visit, load: &LoadRecord) -> Option<Uneven> {
    let n = u64::from(load.connections);
    let is_unserved = load.requests.unanswered as f64 > UNSERVED_MAX * n as f64;
    let is_open = load.open_loop.is_some();
    if load.raw_stride != 1 || load.connections < CONNECTIONS_MIN || is_open || is_unserved {
        return None;
    }
    let mut times: BTreeMap<u32, Vec<f64>> = (0..load.connections).map(|n| (n, vec![])).collect();
    let measured = load.raw.iter().filter(|one| one.done >= visit.cut && one.done < end(load));
    for one in measured.filter(|one| one.outcome == Outcome::Ok) {
        let service: Nanos = one.done.saturating_sub(one.sent);
        times.entry(one.conn).or_default().push(service.as_secs_f64());
    }
    let replies: Vec<u64> = times.values().map(|of| of.len() as u64).collect();
    let all: u64 = replies.iter().sum();
    if all < REPLIES_MIN * n {
        return None;
    }
    let mean = all as f64 / n as f64;
    let squares: f64 = replies.iter().map(|&count| (count as f64 - mean).powi(2) / mean).sum();
    let most = times.values().max_by_key(|of| of.len())?;
    let fewest = times.values().min_by_key(|of| of.len())?;
    let is_far = most.len() as f64 > MOST_OVER_MEAN_MIN * mean;
    if !is_far || chi_squared_z(squares, n as f64 - 1.0) < Z_MIN {
        return None;
    }
    let slower =
        stats::median(fewest).zip(stats::median(most)).map_or(1.0, |(few, most)| few / most);
    Some(Uneven { most: most.len() as u64, mean, slower })
}

/// A value of χ² as a quantile of the normal law (Wilson and Hilferty 1931). At p = 1e-6 it is too small
/// by 3 % for four degrees of freedom, and by less for more.
fn chi_squared_z(value: f64, degrees: f64) -> f64 {
    let spread = 2.0 / (9.0 * degrees);
    ((value / degrees).cbrt() - (1.0 - spread)) / spread.sqrt()
}

#[cfg(test)]
mod tests {
    use record::RunRecord;

    use super::*;
    use crate::testdata;

    /// One load of eight connections, each of which is answered at its own interval, in microseconds.
    fn with(each_us: [u64; 8]) -> RunRecord {
        let mut run = testdata::run(&["a"], 1);
        let load = run.visits[0].load.as_mut().unwrap();
        load.connections = 8;
        load.raw_stride = 1;
        for (conn, step) in each_us.into_iter().enumerate() {
            let ends = (1..).map(|n| Nanos::from_micros(n * step));
            load.raw.extend(
                ends.take_while(|end| *end < Nanos::from_millis(900))
                    .map(|done| testdata::sample(conn as u32, Nanos(done.0 - step * 1000), done)),
            );
        }
        run
    }

    fn seen(run: &RunRecord) -> Vec<Observation> {
        look(&Evidence::of(run))
    }

    #[test]
    fn a_worker_with_one_connection_beside_one_with_seven_fires() {
        let mut each = [700; 8];
        each[3] = 100;
        let seen = seen(&with(each));
        assert_eq!((seen.len(), seen[0].certainty), (1, Certainty::Confirmed));
        let text = "a: in 1 of 1 visit one connection got 4.0 times the mean of all; the one with fewest took 7.0";
        assert!(seen[0].evidence.starts_with(text), "{}", seen[0].evidence);
    }

    #[test]
    fn connections_that_are_served_alike_and_samples_that_are_not_all_are_silent() {
        assert_eq!(seen(&with([500, 510, 490, 520, 480, 505, 495, 500])), []);
        let mut each = [700; 8];
        each[3] = 100;
        let mut some = with(each);
        some.visits[0].load.as_mut().unwrap().raw_stride = 4;
        assert_eq!(seen(&some), []);
        assert_eq!(seen(&testdata::run(&["a", "b"], 8)), []);
    }

    /// For even degrees of freedom the chance of a larger value has a closed form: e^-h times the first k terms
    /// of the series of e^h, for 2 k degrees and a value of 2 h.
    #[test]
    fn chi_squared_is_near_its_closed_form_and_never_more_sure() {
        for degrees in [4, 8, 64] {
            let chance = |value: f64| {
                let half = value / 2.0;
                let terms = (0..degrees / 2).scan(1.0, |term, n| {
                    let this = *term;
                    *term *= half / f64::from(n + 1);
                    Some(this)
                });
                (-half).exp() * terms.sum::<f64>()
            };
            let is_rare = |value: &f64| chance(*value) < 1e-6;
            let value = (0..40_000).map(|n| f64::from(n) / 100.0).find(is_rare).unwrap();
            let z = chi_squared_z(value, f64::from(degrees));
            assert!(z < Z_MIN && z > 0.96 * Z_MIN, "{degrees}: {z}");
        }
    }
}
