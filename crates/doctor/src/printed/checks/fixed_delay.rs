//! Owns the check that a delay was not all that was measured. Start reading at [`look`].

use record::{Certainty, Question, Severity};

use crate::printed::check::{Conclusion, Effect, PrintedCheck, Seen};
use crate::printed::row::Printed;
use crate::printed::words;

/// See the module.
pub(crate) const ITEM: PrintedCheck = PrintedCheck {
    name: "fixed_delay",
    severity: Severity::Void,
    question: Question::WhyNotDouble,
    title: "a fixed delay is all that was measured",
    meaning: "the time of n requests is ceil(n / connections) delays, so the rate follows from the delay and says \
              nothing of the server",
    detection: "Of one server and workload at three numbers of connections or more, the largest four times the \
                smallest: the mean latency is the same within 2 % and at least 5 ms, and the rate grows with the \
                connections",
    remedy: "shorten the delay or raise the connections until the rate no longer grows, and report that",
    example: "a CGI that sleeps 0.5 s: 10 connections 20 requests a second, 100 connections 200",
    source: "Gregg, Systems Performance, chapter 12 (why not double?)",
    touches: &[(Conclusion::Rate, Effect::Void), (Conclusion::Ranking, Effect::Void)],
    look,
};

const LATENCY_APART_MAX: f64 = 0.02;
const LATENCY_SECONDS_MIN: f64 = 0.005;
const CONNECTIONS_TIMES_MIN: f64 = 4.0;
const LOADS_MIN: usize = 3;

fn look(printed: &Printed) -> Vec<Seen> {
    let groups = printed.groups(|one, other| one.is_of_same_server(other));
    groups.into_iter().filter_map(|group| look_at(printed, group)).collect()
}

fn look_at(printed: &Printed, group: Vec<usize>) -> Option<Seen> {
    let mut loads: Vec<(f64, f64, f64)> = Vec::new();
    for &at in &group {
        let row = &printed.rows[at];
        loads.push((row.connections?.value, row.total().mean?.value, row.rate?.value));
    }
    loads.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut numbers: Vec<f64> = loads.iter().map(|load| load.0).collect();
    numbers.dedup();
    let (first, last) = (loads.first()?, loads.last()?);
    let least = loads.iter().map(|load| load.1).fold(f64::INFINITY, f64::min);
    let most = loads.iter().map(|load| load.1).fold(0.0, f64::max);
    let grows = (last.2 / first.2) / (last.0 / first.0);
    let is_seen = numbers.len() >= LOADS_MIN
        && first.0 > 0.0
        && last.0 >= CONNECTIONS_TIMES_MIN * first.0
        && least >= LATENCY_SECONDS_MIN
        && most <= least * (1.0 + LATENCY_APART_MAX)
        && (grows - 1.0).abs() < 2.0 * LATENCY_APART_MAX;
    let row = &printed.rows[group[0]];
    let evidence = format!(
        "{}: from {} to {} connections the mean latency stays at {} and the rate grows from {} to {}",
        row.server.as_deref().unwrap_or(&row.name),
        first.0,
        last.0,
        words::time(least),
        words::rate(first.2),
        words::rate(last.2),
    );
    let seen = Seen { certainty: Certainty::Suspected, rows: group, share: None, evidence };
    is_seen.then_some(seen)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::printed::testdata::{evidence, printed};

    #[test]
    fn a_server_that_slows_down_is_silent() {
        let text =
            "server,connections,req/s,mean (ms)\na,10,1960,5.1\na,20,3700,5.4\na,80,9000,8.9\n";
        assert_eq!(look(&printed(text)), []);
    }

    #[test]
    fn a_rate_that_follows_the_connections_is_a_delay() {
        let text =
            "server,connections,req/s,mean (ms)\na,10,19.9,501\na,20,39.8,502\na,80,159,503\n";
        let told = "a: from 10 to 80 connections the mean latency stays at 501ms and the rate grows from 19.9/s to 159/s";
        assert_eq!(evidence(&look(&printed(text))), [told]);
    }
}
