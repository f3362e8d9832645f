//! Owns the check that a server answered with more than errors. Start reading at [`look`].

use record::{Question, Severity};

use crate::printed::check::{Conclusion, Effect, PrintedCheck, Seen};
use crate::printed::failures::{failing, is_mute};
use crate::printed::row::Printed;

/// See the module.
pub(crate) const ITEM: PrintedCheck = PrintedCheck {
    name: "nothing_but_errors",
    severity: Severity::Void,
    question: Question::DidItError,
    title: "nothing but errors was answered",
    meaning: "another thing was measured than the work: a page of an error",
    detection: "Every reply has a bad status or every request failed; or the rate is 0 though thousands of errors were answered",
    remedy: "try the URL by hand (curl -i), correct it or the server, and repeat",
    example: "wrk against a path that does not exist: Non-2xx or 3xx responses: 25532 of 25532 requests",
    source: "RFC 9411, section 6.3",
    touches: &[
        (Conclusion::Rate, Effect::Void),
        (Conclusion::Latency, Effect::Void),
        (Conclusion::Ranking, Effect::Void),
    ],
    look,
};

fn look(printed: &Printed) -> Vec<Seen> {
    failing(printed, "nothing but errors was answered", is_mute)
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
    fn a_rate_of_nothing_but_errors_is_told_apart() {
        let row = |name: &str, rps: u64, good: u64, bad: u64| {
            format!(
                r#"{{"framework": "{name}", "rps": {rps}, "avg_latency": "1.28ms", "p99_latency": "3ms",
                "connections": 512, "duration": "5s", "status_2xx": {good}, "status_4xx": {bad}}}"#
            )
        };
        let rows = [row("a", 100, 500, 0), row("b", 0, 0, 3000), row("c", 100, 500, 100)];
        let seen = look(&of(&[("x.json", &format!("[{}]", rows.join(",")))]));
        assert_eq!(
            evidence(&seen),
            [
                "b, 1 of 3 rows: nothing but errors was answered: 3,000 errors, 100 % of the requests"
            ]
        );
    }
}
