//! Owns the check that contenders do the same work: they sent the same body. Start reading at [`look`].
//!
//! A contender with compression on, an error page or another file sends fewer bytes and looks fast.
//! The bodies were fetched alone before the run, so that no first answer under load becomes
//! the norm (ab's "failed requests" are those whose length differs from the first one).
//!
//! Bodies are compared with the body of the study's reference or, without one, with the commonest body. Each other
//! body is a finding that touches its contenders. Two contenders with the same body did the same work, so their pair
//! stands ([`Check::spares_like_pairs`]).

use std::collections::BTreeMap;

use record::{Certainty, Question, Severity};

use super::Check;
use crate::{Evidence, Observation, words};

/// See the module.
pub(crate) const ITEM: Check = Check {
    name: "different_bodies",
    severity: Severity::Void,
    question: Question::DoesItMatter,
    spares_like_pairs: true,
    title: "contenders sent different bodies",
    meaning: "they did not do the same work, so their speeds are not comparable",
    remedy: "compare what each sends (`curl -sD- URL` with the head in the run file), switch off \
             compression and page rewriting, and let all serve the same file",
    detection: "Each contender is asked once, alone, before the run; bodies are compared by SHA-256 with \
             that of the reference or, without one, with the commonest",
    example: "`joust serve site --fault encoding=gzip` beside a server that sends the same file as it is",
    source: "RFC 9110, section 8.4",
    needs: &[],
    look,
};

/// Hex digits that tell two bodies apart for a reader.
const DIGITS: usize = 12;

fn look(evidence: &Evidence) -> Vec<Observation> {
    let mut by_body: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    // A contender that never answered has no body; its visits say so.
    let answered = evidence.run.contenders.iter().enumerate();
    for (contender, facts) in answered.filter(|(_, facts)| !facts.body_sha256.is_empty()) {
        by_body.entry(&facts.body_sha256).or_default().push(contender);
    }
    let norm = norm(&by_body, evidence.run.plan.reference);
    let unlike = by_body.iter().filter(|(body, _)| by_body.len() > 1 && norm != Some(**body));
    let seen = |(body, contenders): (&&str, &Vec<usize>)| {
        let others = by_body.iter().filter(|(other, _)| match norm {
            Some(norm) => **other == norm,
            None => *other != body,
        });
        let others: Vec<String> =
            others.map(|(body, contenders)| sent(evidence, body, contenders)).collect();
        Observation {
            share: None,
            certainty: Certainty::Confirmed,
            contenders: contenders.clone(),
            evidence: format!(
                "SHA-256 of the body: {}; {}",
                sent(evidence, body, contenders),
                words::list(&others)
            ),
        }
    };
    unlike.map(seen).collect()
}

fn sent(evidence: &Evidence, sha256: &str, contenders: &[usize]) -> String {
    format!("{} from {}", sha256.get(..DIGITS).unwrap_or(sha256), evidence.names(contenders))
}

/// The body that others are compared with; `None` where several are equally common and there is no reference.
fn norm<'a>(by_body: &BTreeMap<&'a str, Vec<usize>>, reference: Option<usize>) -> Option<&'a str> {
    let of_reference = by_body.iter().find(|(_, who)| reference.is_some_and(|r| who.contains(&r)));
    let most = by_body.values().map(Vec::len).max()?;
    let mut commonest = by_body.iter().filter(|(_, who)| who.len() == most);
    let (body, _) = of_reference.or_else(|| match (commonest.next(), commonest.next()) {
        (only, None) => only,
        _ => None,
    })?;
    Some(body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata;

    fn run_with_bodies(bodies: &[&str], reference: Option<usize>) -> Vec<Observation> {
        let names = ["a", "b", "c", "d"];
        let mut run = testdata::run(&names[..bodies.len()], 8);
        run.plan.reference = reference;
        for (facts, body) in run.contenders.iter_mut().zip(bodies) {
            facts.body_sha256 = (*body).to_owned();
        }
        look(&Evidence::of(&run))
    }

    fn touched(bodies: &[&str], reference: Option<usize>) -> Vec<Vec<usize>> {
        run_with_bodies(bodies, reference).into_iter().map(|seen| seen.contenders).collect()
    }

    #[test]
    fn equal_bodies_are_silent() {
        assert_eq!(run_with_bodies(&["11", "11", "11"], None), []);
        assert_eq!(run_with_bodies(&["11", "11", "11"], Some(1)), []);
        assert_eq!(run_with_bodies(&["", ""], Some(1)), []);
    }

    #[test]
    fn the_one_that_differs_from_the_others_is_touched() {
        let seen = run_with_bodies(&["11", "22", "11"], None);
        assert_eq!(seen[0].contenders, [1]);
        assert_eq!(seen[0].certainty, Certainty::Confirmed);
        assert_eq!(seen[0].evidence, "SHA-256 of the body: 22 from b; 11 from a and c");
    }

    #[test]
    fn the_reference_is_right_against_all_others() {
        assert_eq!(touched(&["11", "22", "22", "22"], Some(0)), [vec![1, 2, 3]]);
        assert_eq!(touched(&["11", "22", "33", "22"], Some(0)), [vec![1, 3], vec![2]]);
        assert_eq!(touched(&["", "22", "33", "22"], Some(0)), [vec![2]], "it never answered");
    }

    #[test]
    fn the_commonest_body_is_the_norm_and_of_two_as_common_neither() {
        assert_eq!(touched(&["11", "22", "33", "33"], None), [vec![0], vec![1]]);
        assert_eq!(touched(&["11", "22"], None), [vec![0], vec![1]]);
        assert_eq!(touched(&["11", "22", "22", "11"], None), [vec![0, 3], vec![1, 2]]);
        let seen = run_with_bodies(&["11", "22", "33"], None);
        let text = "SHA-256 of the body: 22 from b; 11 from a and 33 from c";
        assert_eq!(seen[1].evidence, text);
    }

    #[test]
    fn who_never_answered_has_no_body_to_differ() {
        assert_eq!(run_with_bodies(&["11", "", "11"], None), []);
    }
}
