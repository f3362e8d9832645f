//! Owns the check that every switch that decides the work of a request is known of every contender. Start reading at
//! [`look`].
//!
//! Of a program that a study starts by its command line, and of a server that runs already, only what is visible
//! from outside is known. It may have a file cache or a log that the others do not have.

use record::{Certainty, Question, Severity};

use super::Check;
use crate::{Evidence, Observation, parity, words};

/// See the module.
pub(crate) const ITEM: Check = Check {
    name: "unknown_switch",
    severity: Severity::Note,
    question: Question::DoesItMatter,
    spares_like_pairs: false,
    title: "a switch is known of other contenders but not of this one",
    meaning: "it is open whether it does the same work per request as the others",
    remedy: "run it with an adapter, which reads its configuration (`joust servers` lists them), or find the \
             value and declare it: declared = [\"SWITCH: what it is\"] in the study",
    detection: "A server does not say how a switch of the parity table is set",
    example: "a contender that is only a command line",
    source: "RFC 9110",
    needs: &[],
    look,
};

fn look(evidence: &Evidence) -> Vec<Observation> {
    let found = parity::unknowns(&evidence.run.contenders, &evidence.run.plan.declared);
    found.into_iter().map(|unknown| seen(*evidence, unknown)).collect()
}

fn seen(evidence: Evidence<'_>, unknown: parity::Unknown) -> Observation {
    let switches: Vec<String> =
        unknown.switches.iter().map(|switch| switch.replace('_', " ")).collect();
    let why = match unknown.reasons.is_empty() {
        true => String::new(),
        false => format!(" ({})", words::list(&unknown.reasons)),
    };
    let names = evidence.names(&unknown.contenders);
    let evidence = format!("not known of {names}: {}{why}", words::list(&switches));
    Observation {
        share: None,
        certainty: Certainty::Confirmed,
        contenders: unknown.contenders,
        evidence,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata;

    fn with_caches(caches: &[&str]) -> record::RunRecord {
        let names = ["a", "b", "c"];
        let mut run = testdata::run(&names[..caches.len()], 8);
        for (facts, cache) in run.contenders.iter_mut().zip(caches) {
            facts.parity.insert("file_cache".to_owned(), (*cache).to_owned());
        }
        run
    }

    #[test]
    fn what_is_known_of_all_or_of_none_is_silent() {
        for caches in [["off", "off"], ["off", "on (content, 1 s)"], ["unknown", "unknown: why"]] {
            assert_eq!(look(&Evidence::of(&with_caches(&caches))), []);
        }
        assert_eq!(look(&Evidence::of(&testdata::run(&["a", "b"], 8))), []);
    }

    #[test]
    fn what_is_not_known_of_one_alone_is_named_unless_the_study_declares_it() {
        let mut run = with_caches(&["off", "unknown: it runs elsewhere", "off"]);
        let seen = look(&Evidence::of(&run));
        assert_eq!(seen.len(), 1);
        assert_eq!(seen[0].contenders, [1]);
        assert_eq!(seen[0].evidence, "not known of b: file cache (it runs elsewhere)");
        run.plan.declared = vec!["file_cache: it has none".to_owned()];
        assert_eq!(look(&Evidence::of(&run)), []);
    }
}
