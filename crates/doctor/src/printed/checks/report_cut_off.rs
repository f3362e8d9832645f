//! Owns the check that a report is there as a whole. Start reading at [`look`].

use record::{Certainty, Question, Severity};

use crate::printed::check::{Conclusion, Effect, PrintedCheck, Seen};
use crate::printed::row::{Printed, Row};
use crate::words;

/// See the module.
pub(crate) const ITEM: PrintedCheck = PrintedCheck {
    name: "report_cut_off",
    severity: Severity::Note,
    question: Question::DidItEvenHappen,
    title: "a report is cut off, or its tool gave up",
    meaning: "what is missing cannot be checked, and may be what one should know: errors and the tail",
    detection: "Lines that every complete report of the tool has are missing, or it says that it gave up",
    remedy: "ask for the whole output, standard error too",
    example: "the last five lines of ab, from a screenshot",
    source: "the layouts of each tool (crate classic)",
    touches: &[(Conclusion::Rate, Effect::InDoubt), (Conclusion::Latency, Effect::InDoubt)],
    look,
};

/// Lines that are named; the others are counted.
const LINES_MAX: usize = 3;

fn look(printed: &Printed) -> Vec<Seen> {
    printed.indexed().filter_map(|(at, row)| look_at(at, row)).collect()
}

fn look_at(at: usize, row: &Row) -> Option<Seen> {
    let report = row.report.as_ref()?;
    let missing: Vec<String> = report.missing.iter().map(|line| format!("\"{line}\"")).collect();
    let told = match (report.aborted, missing.len()) {
        (true, _) => format!("{} gave up before its end", report.tool),
        (false, 0) => return None,
        (false, n) if n <= LINES_MAX => format!("it has no line {}", words::list(&missing)),
        (false, n) => {
            format!("it has no line {} and {} more", missing[..LINES_MAX].join(", "), n - LINES_MAX)
        }
    };
    let evidence = format!("{}: {told}", row.name);
    Some(Seen { certainty: Certainty::Confirmed, rows: vec![at], share: None, evidence })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::printed::testdata::{AB, WRK, evidence, printed};

    #[test]
    fn whole_reports_are_silent() {
        for text in [AB, WRK] {
            assert_eq!(look(&printed(text)), []);
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        let cut = &WRK[..WRK.find("Requests/sec").unwrap()];
        assert_eq!(
            evidence(&look(&printed(cut))),
            ["paste (wrk): it has no line \"Requests/sec: # Transfer/sec:\""]
        );
    }
}
