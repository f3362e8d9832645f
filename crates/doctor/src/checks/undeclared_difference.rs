//! Owns the check that contenders differ only in what the study is about: keep-alive and its limits, backlog,
//! logs, sendfile, compression, TLS, version of HTTP, workers, size of the head. Start reading at [`look`].
//!
//! Two servers with their default configurations are a comparison of defaults. If that is the
//! question, the study declares it, and this check is silent.

use record::{Certainty, Question, Severity};

use super::Check;
use crate::{Evidence, Observation, parity, words};

/// See the module.
pub(crate) const ITEM: Check = Check {
    name: "undeclared_difference",
    severity: Severity::Note,
    question: Question::DoesItMatter,
    spares_like_pairs: false,
    title: "contenders differ in a switch that the study does not declare",
    meaning: "part of the difference may come from the switch, not from the server",
    remedy: "give the switch the same value for all (`joust servers NAME` lists the settings), or declare \
             it: declared = [\"SWITCH: why\"] in the study",
    detection: "Settings that each server answers for itself are compared, switch by switch",
    example: "Apache keeps connections for 100 requests by default, nginx for 1,000",
    source: "https://httpd.apache.org/docs/2.4/mod/directives.html; https://nginx.org/en/docs/dirindex.html",
    needs: &[],
    look,
};

fn look(evidence: &Evidence) -> Vec<Observation> {
    let plan = &evidence.run.plan;
    let pages = parity::pages_asked(plan, 0);
    let found = parity::differences(&evidence.run.contenders, &plan.declared, &pages);
    found.iter().map(|difference| seen(*evidence, difference)).collect()
}

fn seen(evidence: Evidence<'_>, difference: &parity::Difference) -> Observation {
    let value =
        |(value, who): &(String, Vec<usize>)| format!("{value} for {}", evidence.names(who));
    let values: Vec<String> = difference.values.iter().map(value).collect();
    let mut contenders: Vec<usize> =
        difference.values.iter().flat_map(|(_, who)| who).copied().collect();
    contenders.sort_unstable();
    let switch = difference.switch.replace('_', " ");
    let evidence = format!("{switch}: {}", words::list(&values));
    Observation { share: None, certainty: Certainty::Confirmed, contenders, evidence }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata;

    fn with_backlogs(backlogs: &[&str]) -> Vec<Observation> {
        let names = ["a", "b", "c"];
        let mut run = testdata::run(&names[..backlogs.len()], 8);
        for (facts, backlog) in run.contenders.iter_mut().zip(backlogs) {
            facts.parity.insert("backlog".to_owned(), (*backlog).to_owned());
        }
        look(&Evidence::of(&run))
    }

    #[test]
    fn contenders_that_are_alike_are_silent() {
        assert_eq!(with_backlogs(&["511", "511", "511"]), []);
        assert_eq!(look(&Evidence::of(&testdata::run(&["a", "b"], 8))), []);
    }

    #[test]
    fn a_difference_that_the_study_declares_is_silent() {
        let mut run = testdata::run(&["a", "b"], 8);
        for (facts, backlog) in run.contenders.iter_mut().zip(["511", "4096"]) {
            facts.parity.insert("backlog".to_owned(), backlog.to_owned());
        }
        assert_eq!(look(&Evidence::of(&run)).len(), 1);
        run.plan.declared = vec!["backlog: it cannot be set everywhere".to_owned()];
        assert_eq!(look(&Evidence::of(&run)), []);
    }

    #[test]
    fn what_begins_at_a_larger_page_than_is_asked_for_is_no_difference() {
        let mut run = testdata::run(&["a", "b"], 8);
        for (facts, sendfile) in run.contenders.iter_mut().zip(["off; above 64 KiB: on", "off"]) {
            facts.parity.insert("sendfile".to_owned(), sendfile.to_owned());
        }
        assert_eq!(look(&Evidence::of(&run)), []);
        run.plan.cells[0].workload.page = units::Bytes(100_000);
        assert_eq!(look(&Evidence::of(&run)).len(), 1);
    }

    #[test]
    fn a_switch_that_differs_fires_with_who_has_what() {
        let seen = with_backlogs(&["511", "4096", "511"]);
        assert_eq!(seen.len(), 1);
        assert_eq!(seen[0].contenders, [0, 1, 2]);
        assert_eq!(seen[0].evidence, "backlog: 511 for a and c and 4096 for b");
    }
}
