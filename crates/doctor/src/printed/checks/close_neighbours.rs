//! Owns the check that a ranking is wider than the noise of its runs. Start reading at [`look`].

use record::{Certainty, Question, Severity};

use crate::printed::check::{Conclusion, Effect, PrintedCheck, Seen};
use crate::printed::row::{Origin, Printed};
use crate::printed::words as rows_words;
use crate::words;

/// See the module.
pub(crate) const ITEM: PrintedCheck = PrintedCheck {
    name: "close_neighbours",
    severity: Severity::Note,
    question: Question::DoesItReproduce,
    title: "neighbours in rank are closer than the noise of runs",
    meaning: "measured again, they change places as often as not",
    detection: "Servers with one row each, of which neighbours in rank differ by less than 3.5 %: half of the re-runs \
                of an unchanged entry of HttpArena's board differ by more, and one in ten by more than 24 %. Servers \
                with several rows each: neighbours whose ranges overlap",
    remedy: "ask for repetitions in random order, and intervals; take neighbours as one rank",
    example: "402,360 and 387,711 requests a second, each the best of three",
    source: "56 re-runs of unchanged entries of HttpArena: median change 3.5 %, 90th percentile 24 %",
    touches: &[(Conclusion::Ranking, Effect::InDoubt)],
    look,
};

/// Median change of a re-run.
const TYPICAL_SHARE: f64 = 0.035;
/// 90th percentile of the change of a re-run.
const LARGE_SHARE: f64 = 0.24;

fn look(printed: &Printed) -> Vec<Seen> {
    let loads = printed.groups(|one, other| one.is_same_load(other) && one.origin == other.origin);
    loads.into_iter().filter_map(|load| look_at(printed, &load)).collect()
}

/// A server's runs.
struct Runs<'a> {
    server: &'a str,
    rows: Vec<usize>,
    low: f64,
    high: f64,
}

fn look_at(printed: &Printed, load: &[usize]) -> Option<Seen> {
    let mut all: Vec<Runs> = Vec::new();
    for &at in load {
        let row = &printed.rows[at];
        let (Some(server), Some(rate)) = (row.server.as_deref(), row.rate) else { continue };
        if rate.value <= 0.0 || row.load.closed == Some(false) {
            continue;
        }
        let runs = match all.iter_mut().position(|runs| runs.server == server) {
            Some(known) => &mut all[known],
            None => {
                all.push(Runs { server, rows: Vec::new(), low: f64::INFINITY, high: 0.0 });
                all.last_mut().expect("it was pushed just now")
            }
        };
        runs.rows.push(at);
        (runs.low, runs.high) = (runs.low.min(rate.value), runs.high.max(rate.value));
    }
    all.sort_by(|one, other| other.high.total_cmp(&one.high));
    let is_repeated = all.iter().any(|runs| runs.rows.len() > 1);
    let closer = |share: f64| -> Vec<usize> {
        let pairs = all.windows(2).enumerate();
        pairs
            .filter(|(_, pair)| pair[0].low < pair[1].high * (1.0 + share))
            .map(|(at, _)| at)
            .collect()
    };
    let near = closer(if is_repeated { 0.0 } else { TYPICAL_SHARE });
    if near.is_empty() {
        return None;
    }
    let pairs = all.len() - 1;
    let of_pairs = format!("{} of {}", near.len(), words::count(pairs as u64, "pair"));
    let evidence = match is_repeated {
        true => format!("{of_pairs} of neighbours in rank have runs that overlap"),
        false => format!(
            "{of_pairs} of neighbours in rank differ by less than 3.5 %, which is what half of all re-runs differ by, \
             and {} by less than 24 %, what one re-run in ten does",
            closer(LARGE_SHARE).len()
        ),
    };
    let first = &all[near[0]];
    let example = format!(
        " (for example {} {} and {} {})",
        first.server,
        rows_words::rate(first.high),
        all[near[0] + 1].server,
        rows_words::rate(all[near[0] + 1].high),
    );
    let is_measured = is_repeated || printed.rows[load[0]].origin == Origin::League;
    let certainty = if is_measured { Certainty::Confirmed } else { Certainty::Suspected };
    let mut rows: Vec<usize> =
        near.iter().flat_map(|&at| all[at].rows.iter().chain(&all[at + 1].rows)).copied().collect();
    rows.sort_unstable();
    rows.dedup();
    Some(Seen { certainty, rows, share: None, evidence: evidence + &example })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::printed::testdata::{evidence, printed};

    #[test]
    fn servers_far_apart_are_silent() {
        assert_eq!(look(&printed("server,req/s\na,10001\nb,13007\nc,21001\n")), []);
        assert_eq!(look(&printed("server,req/s\na,10001\na,10099\nb,13007\nb,12100\n")), []);
    }

    #[test]
    fn near_neighbours_are_counted() {
        let seen = look(&printed("server,req/s\na,10001\nb,10207\nc,12001\nd,41003\n"));
        let told = "1 of 3 pairs of neighbours in rank differ by less than 3.5 %, which is what half of all re-runs \
                    differ by, and 2 by less than 24 %, what one re-run in ten does (for example b 10.2k/s and a 10k/s)";
        assert_eq!(evidence(&seen), [told]);
        assert_eq!(seen[0].rows, [0, 1]);
    }

    #[test]
    fn repetitions_speak_for_themselves() {
        let seen = look(&printed("server,req/s\na,10001\na,12007\nb,11003\nb,14009\n"));
        assert!(
            evidence(&seen)[0]
                .starts_with("1 of 1 pair of neighbours in rank have runs that overlap")
        );
        assert_eq!(seen[0].certainty, Certainty::Confirmed);
    }
}
