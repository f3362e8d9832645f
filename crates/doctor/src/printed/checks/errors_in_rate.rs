//! Owns the check that what is called speed is made of good replies. Start reading at [`look`].

use record::{Question, Severity};

use crate::printed::check::{Conclusion, Effect, PrintedCheck, Seen};
use crate::printed::failures::{failing, is_mute};
use crate::printed::row::Printed;

/// See the module.
pub(crate) const ITEM: PrintedCheck = PrintedCheck {
    name: "errors_in_rate",
    severity: Severity::Void,
    question: Question::DidItError,
    title: "errors count as speed",
    meaning: "an error is often cheaper than the work, so the server looks faster than it is",
    detection: "Replies with a bad status, or requests without a reply, are more than 0.001 % of all (RFC 9411) and part of the rate; \
                ab's replies of another length than the first are the matter of inverted_failures",
    remedy: "find why the server refuses (its error log), and repeat; compare good replies only",
    example: "wrk with a few 503: Non-2xx or 3xx responses: 25000 of 500000 requests",
    source: "RFC 9411, section 6.3; wg/wrk, src/wrk.c (response_complete counts every status)",
    touches: &[(Conclusion::Rate, Effect::AtMost), (Conclusion::Latency, Effect::InDoubt)],
    look,
};

fn look(printed: &Printed) -> Vec<Seen> {
    failing(printed, "errors are part of the rate", |row, share| {
        !is_mute(row, share) && row.has_errors_in_rate
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::printed::testdata::{AB, WRK, evidence, printed, with};

    #[test]
    fn good_replies_are_silent() {
        for text in [AB, WRK] {
            assert_eq!(look(&printed(text)), []);
        }
    }

    #[test]
    fn wrks_bad_statuses_are_in_its_rate() {
        let text = with(WRK, "Requests/sec:", "  Non-2xx or 3xx responses: 25000\nRequests/sec:");
        let seen = look(&printed(&text));
        let told = "paste (wrk): errors are part of the rate: 25,000 errors, 5 % of the requests";
        assert_eq!(evidence(&seen), [told]);
        assert_eq!(seen[0].share, Some(0.05));
    }
}
