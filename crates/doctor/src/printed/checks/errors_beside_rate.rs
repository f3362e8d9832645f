//! Owns the check that errors beside the rate are seen. Start reading at [`look`].

use record::{Question, Severity};

use crate::printed::check::{Conclusion, Effect, PrintedCheck, Seen};
use crate::printed::failures::{failing, is_mute};
use crate::printed::row::Printed;

/// See the module.
pub(crate) const ITEM: PrintedCheck = PrintedCheck {
    name: "errors_beside_rate",
    severity: Severity::Note,
    question: Question::DidItError,
    title: "requests failed beside the rate",
    meaning: "the rate is that of good replies, but the server was in trouble: it may have refused work, and clients waited",
    detection: "Replies with a bad status, or requests without a reply, are more than 0.001 % of all (RFC 9411), and the rate leaves them out",
    remedy: "find why the server refuses (its error log), and repeat",
    example: "siege: Transactions: 1556 hits, Failed transactions: 1027",
    source: "RFC 9411, section 6.3; JoeDog/siege, src/main.c",
    touches: &[(Conclusion::Rate, Effect::InDoubt), (Conclusion::Latency, Effect::InDoubt)],
    look,
};

fn look(printed: &Printed) -> Vec<Seen> {
    failing(printed, "errors stand beside the rate", |row, share| {
        !is_mute(row, share) && !row.has_errors_in_rate
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::printed::testdata::{AB, evidence, of, printed};

    #[test]
    fn good_replies_are_silent() {
        assert_eq!(look(&printed(AB)), []);
    }

    #[test]
    fn a_board_leaves_errors_out_of_its_rate() {
        let row = r#"[{"framework": "c", "rps": 100, "avg_latency": "1.28ms", "p99_latency": "3ms",
            "duration": "5s", "status_2xx": 500, "status_4xx": 100}]"#;
        let told = "c: errors stand beside the rate: 100 errors, 16.7 % of the requests";
        assert_eq!(evidence(&look(&of(&[("x.json", row)]))), [told]);
    }
}
