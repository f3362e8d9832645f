//! Owns the check that heads of replies end their lines as the standard says. Start reading at [`look`].
//!
//! A recipient may take a line feed alone as the end of a line (RFC 9112, 2.2), and the generator does. So the
//! figures stand; but a strict client or proxy refuses such a reply, and some proxies and servers that
//! disagree about it can be made to see two messages where the other sees one.

use record::{Certainty, Question, Severity};

use super::Check;
use crate::{Evidence, Observation, words};

/// See the module.
pub(crate) const ITEM: Check = Check {
    name: "bare_line_feeds",
    severity: Severity::Note,
    question: Question::DidItError,
    spares_like_pairs: false,
    title: "replies end lines with a bare LF",
    meaning: "RFC 9112 requires CRLF, and a strict client or proxy refuses such a reply",
    remedy: "end each line of a reply's head with CRLF: mostly it is a program (CGI) that writes the lines",
    detection: "The generator counts heads in which a line ends in LF without CR. One is enough",
    example: "a CGI program that prints `Content-Type: text/plain\\n\\n` behind a server that passes it on as \
             it is",
    source: "RFC 9112, section 2.2",
    needs: &[],
    look,
};

fn look(evidence: &Evidence) -> Vec<Observation> {
    evidence.contenders().filter_map(|contender| look_at(evidence, contender)).collect()
}

fn look_at(evidence: &Evidence, contender: usize) -> Option<Observation> {
    let (mut bare, mut done) = (0, 0);
    for (_, load) in evidence.loads(contender) {
        bare += load.bare_lf_replies;
        done += load.requests.done;
    }
    (bare > 0).then(|| Observation {
        share: Some((bare as f64 / done.max(1) as f64).min(1.0)),
        certainty: Certainty::Confirmed,
        contenders: vec![contender],
        evidence: format!(
            "{}: {} of {} replies have lines that end in a bare LF",
            evidence.name(contender),
            words::count(bare, "head"),
            words::grouped(done),
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata;

    #[test]
    fn heads_with_a_bare_lf_are_counted_and_others_are_silent() {
        let mut run = testdata::run(&["a", "b"], 2);
        assert_eq!(look(&Evidence::of(&run)), []);
        for visit in run.visits.iter_mut().filter(|visit| visit.contender == 1) {
            visit.load.as_mut().unwrap().bare_lf_replies = 600;
        }
        let seen = look(&Evidence::of(&run));
        assert_eq!((seen.len(), seen[0].contenders.as_slice()), (1, &[1][..]));
        let text = "b: 1,200 heads of 90,000 replies have lines that end in a bare LF";
        assert_eq!(seen[0].evidence, text);
    }
}
