//! Owns the check that no row holds the figures of another. Start reading at [`look`].
//!
//! Two rows that agree in figures with d digits together do so by chance in one of 10^(d - k) pairs, where k figures
//! agree: the first digit of a figure tells little. Rows that agree more often than chance can were copied.

use record::{Certainty, Question, Severity};

use crate::printed::check::{Conclusion, Effect, PrintedCheck, Seen};
use crate::printed::figure::Figure;
use crate::printed::row::{Printed, Row};
use crate::words;

/// See the module.
pub(crate) const ITEM: PrintedCheck = PrintedCheck {
    name: "copied_figures",
    severity: Severity::Void,
    question: Question::DidItEvenHappen,
    title: "two rows have the same figures",
    meaning: "one row was copied from the other, so one of the two was not measured or is lost",
    detection: "Rate, mean, deviation, maximum, percentiles and bytes that are the same to the last digit in two rows, \
                where all pairs of rows together would agree so by chance in less than 1 of 1,000 tables. Confirmed \
                below 1 in a million",
    remedy: "ask for the raw output of both runs",
    example: "nginx and lighttpd both with 31,847.23 requests a second and a maximum of 41.07 ms",
    source: "birthday problem",
    touches: &[(Conclusion::Rate, Effect::Void), (Conclusion::Latency, Effect::Void)],
    look,
};

/// Largest number of such pairs that chance may make in a table.
const BY_CHANCE_MAX: f64 = 1e-3;
/// The same, from which it is certain.
const BY_CHANCE_CONFIRMS: f64 = 1e-6;

fn look(printed: &Printed) -> Vec<Seen> {
    let rows: Vec<(usize, Vec<(&str, Figure)>)> =
        printed.indexed().map(|(at, row)| (at, figures(row))).collect();
    let pairs = (rows.len() * rows.len().saturating_sub(1) / 2) as f64;
    let mut seen = Vec::new();
    for (first, (at, one)) in rows.iter().enumerate() {
        for (other_at, other) in &rows[first + 1..] {
            let same: Vec<&(&str, Figure)> =
                one.iter().filter(|figure| other.contains(figure)).collect();
            let by_chance: f64 =
                pairs * same.iter().map(|(_, figure)| chance(*figure)).product::<f64>();
            if same.is_empty() || by_chance >= BY_CHANCE_MAX {
                continue;
            }
            let names: Vec<&str> = same.iter().map(|(name, _)| *name).collect();
            let evidence = format!(
                "{} and {} are the same in {}{}",
                printed.rows[*at].name,
                printed.rows[*other_at].name,
                words::list(&names),
                if names.len() == one.len() && one.len() > 1 {
                    ", which is all that is printed"
                } else {
                    ""
                },
            );
            let certainty = match by_chance < BY_CHANCE_CONFIRMS {
                true => Certainty::Confirmed,
                false => Certainty::Suspected,
            };
            seen.push(Seen { certainty, rows: vec![*at, *other_at], share: None, evidence });
        }
    }
    seen
}

/// Figures that do not follow from one another, and are not ordered; equal ones in one row count once.
fn figures(row: &Row) -> Vec<(&'static str, Figure)> {
    let total = row.total();
    let connect = row.phase("connect");
    let named = [
        ("rate", row.rate),
        ("mean", total.mean),
        ("standard deviation", total.sd),
        ("maximum", total.max),
        ("p99", row.percentile(99.0)),
        ("p90", row.percentile(90.0)),
        ("maximum of connecting", connect.max),
        ("server CPU", row.server_cpus_busy),
    ];
    let mut kept: Vec<(&str, Figure)> = Vec::new();
    for (name, figure) in named {
        let Some(figure) = figure.filter(|figure| figure.value > 0.0) else { continue };
        // Of a rate in a closed loop the mean follows.
        let follows = name == "mean" && row.rate.is_some_and(|rate| rate.value > 0.0);
        let is_known = kept.iter().any(|(_, known)| known.value == figure.value);
        if !follows && !is_known {
            kept.push((name, figure));
        }
    }
    kept
}

/// Chance that another row has the very figure: as many as can be told apart within a factor of ten, less one digit,
/// since figures of one table lie near each other.
fn chance(figure: Figure) -> f64 {
    let steps = figure.value / (figure.high - figure.low).max(figure.value * 1e-9);
    (10.0 / steps.min(1e6)).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::printed::testdata::{WRK, evidence, of, printed, with};

    #[test]
    fn rows_of_their_own_are_silent() {
        let text = "server,req/s,max (ms)\na,31847.23,41.07\nb,30011.90,41.07\nc,32123.55,30.11\n";
        assert_eq!(look(&printed(text)), []);
        // Round figures agree often.
        assert_eq!(look(&printed("server,req/s,max (ms)\na,32000,40\nb,32000,40\n")), []);
    }

    #[test]
    fn a_copied_cell_is_suspected_and_a_copied_row_certain() {
        let text = "server,req/s,max (ms)\na,31847.23,41.07\nb,31847.23,39.12\n";
        let seen = look(&printed(text));
        assert_eq!(evidence(&seen), ["a and b are the same in rate"]);
        assert_eq!(seen[0].certainty, Certainty::Suspected);
        let text = "server,req/s,max (ms)\na,31847.23,41.07\nb,31847.23,41.07\n";
        let seen = look(&printed(text));
        assert_eq!(
            evidence(&seen),
            ["a and b are the same in rate and maximum, which is all that is printed"]
        );
        assert_eq!(seen[0].certainty, Certainty::Confirmed);
    }

    #[test]
    fn one_report_under_two_names_is_a_copy() {
        let report = with(WRK, "50000.00", "50003.17");
        assert_eq!(look(&of(&[("a.txt", &report), ("b.txt", &report)])).len(), 1);
    }
}
