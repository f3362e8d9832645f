//! Owns the check that runs of one load are of one kind. Start reading at [`look`].

use record::{Certainty, Question, Severity};

use crate::checks::two_clusters;
use crate::printed::check::{Conclusion, Effect, PrintedCheck, Seen};
use crate::printed::row::Printed;
use crate::printed::words as rows_words;
use crate::words;

/// See the module.
pub(crate) const ITEM: PrintedCheck = PrintedCheck {
    name: "runs_in_two_clusters",
    severity: Severity::Void,
    question: Question::DoesItReproduce,
    title: "runs of one load fall into two clusters",
    meaning: "something that differs between runs decides the rate, so the server never runs at the mean",
    detection: "At least ten runs of one server and load, judged as visits of a run of joust are (two_clusters)",
    remedy: "find what differs between the runs of both clusters (a restart, another CPU, another file), and report \
             both",
    example: "ten runs near 30,000 requests a second and eight near 36,000",
    source: "Hartigan and Hartigan, The Dip Test of Unimodality, 1985",
    touches: &[(Conclusion::Rate, Effect::InDoubt), (Conclusion::Ranking, Effect::Void)],
    look,
};

fn look(printed: &Printed) -> Vec<Seen> {
    let runs = printed.groups(|one, other| {
        one.is_of_same_server(other) && one.is_same_load(other) && one.origin == other.origin
    });
    runs.into_iter().filter_map(|group| look_at(printed, group)).collect()
}

fn look_at(printed: &Printed, group: Vec<usize>) -> Option<Seen> {
    let rates = group.iter().filter_map(|&at| printed.rows[at].rate).map(|rate| rate.value);
    let logs: Vec<f64> = rates.filter(|rate| *rate > 0.0).map(f64::ln).collect();
    let split = two_clusters::split(&logs, 1)?;
    let row = &printed.rows[group[0]];
    let evidence = format!(
        "{}: {} near {} and {} near {}{}",
        row.server.as_deref().unwrap_or(&row.name),
        words::count(split.below, "run"),
        rows_words::rate(split.modes.low.centre.exp()),
        logs.len() as u64 - split.below,
        rows_words::rate(split.modes.high.centre.exp()),
        if split.nothing_between { ", none between" } else { "" },
    );
    let certainty = match split.nothing_between {
        true => Certainty::Confirmed,
        false => Certainty::Suspected,
    };
    Some(Seen { certainty, rows: group, share: None, evidence })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::printed::testdata::{evidence, printed};

    fn table(rates: &[f64]) -> String {
        let rows = rates.iter().map(|rate| format!("a,{rate:.2}\n"));
        std::iter::once("server,req/s\n".to_owned()).chain(rows).collect()
    }

    #[test]
    fn runs_of_one_kind_are_silent() {
        let one: Vec<f64> = (0..16).map(|n| 30_000.0 + 37.0 * f64::from(n % 7)).collect();
        assert_eq!(look(&printed(&table(&one))), []);
    }

    #[test]
    fn two_speeds_are_seen() {
        let two: Vec<f64> = (0..16)
            .map(|n| 30_000.0 + 6000.0 * f64::from(n % 2) + 31.0 * f64::from(n % 5))
            .collect();
        let seen = look(&printed(&table(&two)));
        assert_eq!(seen.len(), 1);
        assert!(evidence(&seen)[0].contains("8 runs near 30"), "{seen:?}");
    }
}
