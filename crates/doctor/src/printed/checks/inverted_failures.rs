//! Owns the check that ab's first reply, which is its norm for all others, was one of the good ones. Start reading
//! at [`look`].

use classic::DocumentLength;
use record::{Certainty, Question, Severity};

use crate::printed::check::{Conclusion, Effect, PrintedCheck, Seen};
use crate::printed::row::{Printed, Row};
use crate::words;

/// See the module.
pub(crate) const ITEM: PrintedCheck = PrintedCheck {
    name: "inverted_failures",
    severity: Severity::Void,
    question: Question::DidItError,
    title: "the first reply was the odd one, so the good ones count as failed",
    meaning: "ab takes the length of the first reply for that of all; if that one was wrong, 'failed' and \
              'complete' have changed places",
    detection: "More than half of ab's replies failed for their length. Confirmed where the others make one whole \
                length: (HTML transferred - good x Document Length) / failed is a whole number",
    remedy: "fetch the document alone and compare its length with Document Length; pages that differ by nature \
             need ab -l",
    example: "Document Length: 0 bytes, Complete requests: 2000, Failed requests: 1999 (Length: 1999)",
    source: "httpd, support/ab.c (read_connection: the first reply sets doclen)",
    touches: &[(Conclusion::Rate, Effect::InDoubt), (Conclusion::Latency, Effect::InDoubt)],
    look,
};

/// Share of replies of another length from which the first one was the odd one.
const FAILED_SHARE_MIN: f64 = 0.5;

fn look(printed: &Printed) -> Vec<Seen> {
    printed.indexed().filter_map(|(at, row)| look_at(at, row)).collect()
}

fn look_at(at: usize, row: &Row) -> Option<Seen> {
    let report = row.report.as_ref().filter(|report| report.tool == "ab")?;
    let Some(DocumentLength::Fixed(norm)) = report.document_length else { return None };
    let complete = report.requests.complete?;
    let failed = report.errors.get("Length").copied().or(report.requests.failed)?;
    let share = failed as f64 / complete as f64;
    if failed == 0 || failed > complete || share <= FAILED_SHARE_MIN {
        return None;
    }
    let of_good = (complete - failed).saturating_mul(norm.0);
    let of_failed = report.traffic.bodies.and_then(|all| all.0.checked_sub(of_good));
    let length = of_failed.map(|bytes| bytes as f64 / failed as f64).filter(|length| *length > 0.0);
    // Of the norm's own length none would have failed.
    let is_whole = length.is_some_and(|length| length.fract() == 0.0 && length != norm.0 as f64);
    let evidence = format!(
        "{}: {} of {} replies 'failed' by their length ({}), measured by the first, which had {}{}",
        row.name,
        words::grouped(failed),
        words::grouped(complete),
        words::percent(share),
        words::count(norm.0, "byte"),
        match length {
            Some(length) if is_whole => {
                format!("; they have {} each", words::count(length as u64, "byte"))
            }
            Some(length) => format!("; they have {length:.1} bytes in the mean"),
            None => String::new(),
        }
    );
    let certainty = if is_whole { Certainty::Confirmed } else { Certainty::Suspected };
    Some(Seen { certainty, rows: vec![at], share: Some(share), evidence })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::printed::testdata::{AB, evidence, printed, with};

    fn planted(length: u64, failed: u64, bodies: u64) -> String {
        let text = with(
            AB,
            "Document Length:        3361 bytes",
            &format!("Document Length: {length} bytes"),
        );
        let lines = format!(
            "Failed requests:        {failed}\n   (Connect: 0, Receive: 0, Length: {failed}, Exceptions: 0)"
        );
        let text = with(&text, "Failed requests:        0", &lines);
        with(&text, "672200000 bytes", &format!("{bodies} bytes"))
    }

    #[test]
    fn none_and_few_failures_are_silent() {
        assert_eq!(look(&printed(AB)), []);
        assert_eq!(look(&printed(&planted(3361, 2000, 672_000_000))), []);
    }

    #[test]
    fn an_empty_first_reply_inverts_the_counts() {
        let seen = look(&printed(&planted(0, 199_999, 3361 * 199_999)));
        let told = "paste (ab): 199,999 of 200,000 replies 'failed' by their length (more than 99.9 %), measured by \
                    the first, which had 0 bytes; they have 3,361 bytes each";
        assert_eq!(evidence(&seen), [told]);
        assert_eq!(seen[0].certainty, Certainty::Confirmed);
    }

    #[test]
    fn pages_of_all_lengths_are_suspected_only() {
        let seen = look(&printed(&planted(3361, 150_000, 612_200_123)));
        assert_eq!(seen[0].certainty, Certainty::Suspected);
        let own = look(&printed(&planted(3361, 150_000, 672_200_000)));
        assert_eq!(own[0].certainty, Certainty::Suspected);
    }
}
