//! Owns the check that ab received as many documents as it counts. Start reading at [`look`].

use classic::DocumentLength;
use record::{Certainty, Question, Severity};

use crate::printed::check::{Conclusion, Effect, PrintedCheck, Seen};
use crate::printed::row::{Printed, Row};
use crate::words;

/// See the module.
pub(crate) const ITEM: PrintedCheck = PrintedCheck {
    name: "documents_sent",
    severity: Severity::Void,
    question: Question::DidItEvenHappen,
    title: "bytes are not those of the documents counted",
    meaning: "replies were cut short, were another document, or the counts are of another run",
    detection: "ab without failed lengths: HTML transferred / Document Length is the number of complete requests, \
                and at most one more a connection, which was under way at the end",
    remedy: "fetch the document alone and compare its length; then repeat with a server that sends it whole",
    example: "2,000 complete requests of 3,361 bytes and none failed, but HTML transferred: 3361000 bytes",
    source: "httpd, support/ab.c (doclen is the length of the first reply)",
    touches: &[(Conclusion::Rate, Effect::Void), (Conclusion::Latency, Effect::Void)],
    look,
};

fn look(printed: &Printed) -> Vec<Seen> {
    printed.indexed().filter_map(|(at, row)| look_at(at, row)).collect()
}

fn look_at(at: usize, row: &Row) -> Option<Seen> {
    let report = row.report.as_ref().filter(|report| report.tool == "ab")?;
    let Some(DocumentLength::Fixed(length)) = report.document_length else { return None };
    let (complete, failed) = (report.requests.complete?, report.requests.failed?);
    let bodies = report.traffic.bodies?.0;
    // HEAD has no bodies, and a first reply without a body is the matter of `inverted_failures`.
    if failed > 0 || length.0 == 0 || bodies == 0 || complete == 0 {
        return None;
    }
    let sent = bodies as f64 / length.0 as f64;
    let most = complete.saturating_add(report.concurrency?);
    if bodies >= complete.saturating_mul(length.0) && sent <= most as f64 {
        return None;
    }
    let evidence = format!(
        "{}: {} bytes of documents are {:.2} documents of {} bytes, but {} were complete and none failed",
        row.name,
        words::grouped(bodies),
        sent,
        words::grouped(length.0),
        words::grouped(complete),
    );
    let share = Some(((sent - complete as f64).abs() / complete as f64).min(1.0));
    Some(Seen { certainty: Certainty::Confirmed, rows: vec![at], share, evidence })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::printed::testdata::{AB, evidence, printed, with};

    #[test]
    fn whole_documents_are_silent() {
        assert_eq!(look(&printed(AB)), []);
        // With -t, some are under way at the end.
        assert_eq!(look(&printed(&with(AB, "672200000 bytes", "672300830 bytes"))), []);
    }

    #[test]
    fn too_few_and_too_many_documents_are_seen() {
        let seen = look(&printed(&with(AB, "672200000 bytes", "611200000 bytes")));
        let told = "paste (ab): 611,200,000 bytes of documents are 181850.64 documents of 3,361 bytes, \
                    but 200,000 were complete and none failed";
        assert_eq!(evidence(&seen), [told]);
        assert_eq!(look(&printed(&with(AB, "672200000 bytes", "692200000 bytes"))).len(), 1);
    }
}
