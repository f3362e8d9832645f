//! Owns the check that contenders do the same work: they sent the same body. Must not know how it was
//! fetched. Start reading at [`look`].
//!
//! One contender with compression on, an error page or another file sends fewer bytes and looks fast.
//! The bodies compared were fetched alone before the run, so that no first answer under load becomes
//! the norm (ab's "failed requests" are those whose length differs from the first one).

use std::collections::BTreeMap;

use record::{Certainty, Severity};

use super::Check;
use crate::{Evidence, Seen, words};

/// See the module.
pub(crate) const ITEM: Check = Check {
    name: "different_bodies",
    severity: Severity::Void,
    title: "contenders sent different bodies",
    meaning: "they did not do the same work, so their speeds are not comparable",
    remedy: "compare what each sends (`curl -sD- URL` beside the head in the run file), switch off \
             compression and page rewriting, and point all to the same file",
    needs: &[],
    look,
};

/// Hex digits that tell two bodies apart for a reader.
const DIGITS: usize = 12;

fn look(evidence: &Evidence) -> Vec<Seen> {
    let mut by_body: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    // A contender that never answered has no body; that is said by its visits.
    let answered = evidence.run.contenders.iter().enumerate();
    for (contender, facts) in answered.filter(|(_, facts)| !facts.body_sha256.is_empty()) {
        by_body.entry(&facts.body_sha256).or_default().push(contender);
    }
    if by_body.len() < 2 {
        return Vec::new();
    }
    let touched = outside_the_majority(&by_body);
    let bodies = by_body.iter().map(|(sha256, contenders)| {
        let digits = sha256.get(..DIGITS).unwrap_or(sha256);
        format!("{digits} from {}", evidence.names(contenders))
    });
    let bodies: Vec<String> = bodies.collect();
    let evidence =
        format!("{} different bodies (SHA-256): {}", by_body.len(), words::list(&bodies));
    vec![Seen { certainty: Certainty::Confirmed, contenders: touched, evidence }]
}

/// Those whose body is not that of more than half; all, where no body has more than half.
fn outside_the_majority(by_body: &BTreeMap<&str, Vec<usize>>) -> Vec<usize> {
    let all: usize = by_body.values().map(Vec::len).sum();
    let minorities = by_body.values().filter(|contenders| contenders.len() * 2 <= all);
    let mut touched: Vec<usize> = minorities.flatten().copied().collect();
    touched.sort_unstable();
    touched
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata;

    fn run_with_bodies(bodies: &[&str]) -> Vec<Seen> {
        let names = ["a", "b", "c", "d"];
        let mut run = testdata::run(&names[..bodies.len()], 8);
        for (facts, body) in run.contenders.iter_mut().zip(bodies) {
            facts.body_sha256 = (*body).to_owned();
        }
        look(&Evidence::of(&run))
    }

    #[test]
    fn equal_bodies_are_silent() {
        assert_eq!(run_with_bodies(&["11", "11", "11"]), []);
    }

    #[test]
    fn the_one_that_differs_from_the_others_is_touched() {
        let seen = run_with_bodies(&["11", "22", "11"]);
        assert_eq!(seen[0].contenders, [1]);
        assert_eq!(seen[0].certainty, Certainty::Confirmed);
        let text = "2 different bodies (SHA-256): 11 from a and c and 22 from b";
        assert_eq!(seen[0].evidence, text);
    }

    #[test]
    fn without_a_majority_all_are_touched() {
        assert_eq!(run_with_bodies(&["11", "22"])[0].contenders, [0, 1]);
        assert_eq!(run_with_bodies(&["11", "22", "22", "11"])[0].contenders, [0, 1, 2, 3]);
        assert_eq!(run_with_bodies(&["11", "22", "33", "33"])[0].contenders, [0, 1, 2, 3]);
    }

    #[test]
    fn who_never_answered_has_no_body_to_differ() {
        assert_eq!(run_with_bodies(&["11", "", "11"]), []);
    }
}
