//! Owns the check that a server under full load was busy. Start reading at [`look`].

use record::{Certainty, Question, Severity};

use crate::printed::check::{Conclusion, Effect, PrintedCheck, Seen};
use crate::printed::row::Printed;
use crate::printed::words;

/// See the module.
pub(crate) const ITEM: PrintedCheck = PrintedCheck {
    name: "idle_server",
    severity: Severity::Bound,
    question: Question::WhyNotDouble,
    title: "the server stood idle under full load",
    meaning: "something else was the limit (the client, a lock, too few workers, a backend), so the rate says little of \
              the server's cost a request",
    detection: "In a load that is to keep the server busy, it used less than half of the CPUs that it had; a \
                published board's servers have 64",
    remedy: "ask for CPU time a request, and for a load at which the server's CPUs are busy",
    example: "98,987 requests a second with cpu 448 % of 6,400 %",
    source: "Gregg, The USE Method",
    touches: &[(Conclusion::Rate, Effect::AtLeast), (Conclusion::Ranking, Effect::InDoubt)],
    look,
};

/// Share of its CPUs below which a server had room for as much again.
const BUSY_SHARE_MIN: f64 = 0.5;

fn look(printed: &Printed) -> Vec<Seen> {
    let judged: Vec<(usize, f64)> = printed
        .indexed()
        .filter(|(_, row)| row.load.full)
        .filter_map(|(at, row)| Some((at, row.server_cpus_busy?.high / row.server_cpus?)))
        .collect();
    let mut idle: Vec<(usize, f64)> =
        judged.iter().copied().filter(|(_, share)| *share < BUSY_SHARE_MIN).collect();
    if idle.is_empty() {
        return Vec::new();
    }
    idle.sort_by(|one, other| one.1.total_cmp(&other.1));
    let rows: Vec<usize> = idle.iter().map(|(at, _)| *at).collect();
    let shares: Vec<f64> = idle.iter().map(|(_, share)| *share).collect();
    let told: Vec<String> = idle
        .iter()
        .map(|(at, share)| {
            format!("{} {}", printed.rows[*at].name, words::percent_range(&[*share]))
        })
        .collect();
    let evidence = format!(
        "{} the server used {} of its CPUs{}",
        words::subject(printed, &rows, judged.len()),
        words::percent_range(&shares),
        words::examples(&told),
    );
    vec![Seen { certainty: Certainty::Confirmed, rows, share: None, evidence }]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::printed::testdata::{evidence, of};

    fn board(cpus: &[f64]) -> String {
        let row = |(at, cpu): (usize, &f64)| {
            format!(
                r#"{{"framework": "s{at}", "rps": 1000{at}, "avg_latency": "1ms", "p99_latency": "2ms", "cpu": "{cpu:.1}%"}}"#
            )
        };
        format!("[{}]", cpus.iter().enumerate().map(row).collect::<Vec<_>>().join(","))
    }

    #[test]
    fn busy_servers_are_silent() {
        assert_eq!(look(&of(&[("baseline-512.json", &board(&[6400.0, 3300.0]))])), []);
        // No claim of full load.
        assert_eq!(look(&of(&[("latency-512.json", &board(&[400.0]))])), []);
    }

    #[test]
    fn idle_ones_are_counted_with_their_share() {
        let seen = look(&of(&[("baseline-512.json", &board(&[6400.0, 1600.0, 448.0]))]));
        assert_eq!(
            evidence(&seen),
            ["2 of 3 rows: the server used 7 % to 25 % of its CPUs (s2 7 %, s1 25 %)"]
        );
    }
}
