//! Owns the check that more connections do not each get more. Start reading at [`look`].

use record::{Certainty, Question, Severity};

use crate::printed::check::{Conclusion, Effect, PrintedCheck, Seen};
use crate::printed::row::{Printed, Row};
use crate::printed::words;

/// See the module.
pub(crate) const ITEM: PrintedCheck = PrintedCheck {
    name: "superlinear",
    severity: Severity::Note,
    question: Question::DoesItReproduce,
    title: "each connection gets more when there are more of them",
    meaning: "X(N) <= N X(1): the smaller load was slowed by something else, as sleeping CPUs, a cold start or the \
              other machine's work",
    detection: "Two rows of one server and workload in which N connections have more than N times the rate of one, or \
                per connection 10 % more than with fewer",
    remedy: "warm the server up, set the performance governor, and measure the smaller load again",
    example: "1 connection 4,000 requests a second, 8 connections 60,000",
    source: "Gunther, Guerrilla Capacity Planning (superlinear speed-up); cpuidle, docs.kernel.org",
    touches: &[(Conclusion::Rate, Effect::InDoubt)],
    look,
};

/// More a connection than with fewer of them: noise of single runs is some per cent.
const MORE_SHARE: f64 = 0.10;

fn look(printed: &Printed) -> Vec<Seen> {
    let groups = printed.groups(|one, other| one.is_of_same_server(other));
    groups.into_iter().filter_map(|group| look_at(printed, &group)).collect()
}

fn look_at(printed: &Printed, group: &[usize]) -> Option<Seen> {
    let of = |at: usize| -> Option<(f64, &Row)> {
        let row = &printed.rows[at];
        let connections = row.connections.filter(|n| n.value >= 1.0)?;
        (row.load.closed != Some(false)).then_some((connections.value, row))
    };
    let mut rows: Vec<(usize, f64, &Row)> =
        group.iter().filter_map(|&at| of(at).map(|(n, row)| (at, n, row))).collect();
    rows.sort_by(|one, other| one.1.total_cmp(&other.1));
    let pairs = rows.iter().enumerate().flat_map(|(at, few)| {
        rows[at + 1..].iter().filter(|many| many.1 > few.1).map(move |many| (few, many))
    });
    let excess = |few: &(usize, f64, &Row), many: &(usize, f64, &Row)| -> Option<f64> {
        let (least, most) = (many.2.rate?.low / many.1, few.2.rate?.high / few.1);
        (most > 0.0 && least > most * (1.0 + MORE_SHARE)).then(|| least / most)
    };
    let worst = pairs
        .filter_map(|(few, many)| Some((excess(few, many)?, few, many)))
        .max_by(|one, other| one.0.total_cmp(&other.0))?;
    let (_, few, many) = worst;
    let value = |row: &Row| row.rate.map_or(0.0, |rate| rate.value);
    let evidence = format!(
        "{}: {} with {} and {} with {}: {:.2} times as much each",
        few.2.server.as_deref().unwrap_or(&few.2.name),
        words::rate(value(few.2)),
        crate::words::count(few.1 as u64, "connection"),
        words::rate(value(many.2)),
        many.1,
        (value(many.2) / many.1) / (value(few.2) / few.1),
    );
    Some(Seen { certainty: Certainty::Suspected, rows: vec![few.0, many.0], share: None, evidence })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::printed::testdata::{evidence, printed};

    const SOUND: &str =
        "server,connections,req/s\na,1,4001\na,8,30011\na,64,91003\nb,1,5003\nb,8,30001\n";

    #[test]
    fn loads_that_saturate_are_silent() {
        assert_eq!(look(&printed(SOUND)), []);
    }

    #[test]
    fn more_than_n_times_is_seen_for_that_server_only() {
        let seen = look(&printed(&SOUND.replace("a,8,30011", "a,8,60013")));
        assert_eq!(
            evidence(&seen),
            ["a: 4001/s with 1 connection and 60k/s with 8: 1.87 times as much each"]
        );
        assert_eq!(seen[0].rows, [0, 1]);
    }
}
