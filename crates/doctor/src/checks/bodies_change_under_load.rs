//! Owns the check that bodies under load are those that were sent before it. Start reading at [`look`].
//!
//! A server whose cache, disk or backend fails under load may go on answering with status 200 and
//! the right length. Tools that check only these count such replies as good, and they are
//! often faster. The generator hashes a sample of the bodies of each visit and compares them with what
//! the same contender answered when it was asked alone. One that differs is enough, since a SHA-256 does not
//! differ by chance. Loads by other tools are not verified, so this check ignores them.

use record::{BodiesVerified, Certainty, Question, Severity, Visit, WrongBody};

use super::Check;
use crate::{Evidence, Observation, words};

/// See the module.
pub(crate) const ITEM: Check = Check {
    name: "bodies_change_under_load",
    severity: Severity::Void,
    question: Question::DidItError,
    spares_like_pairs: false,
    title: "bodies under load differ from those before it",
    meaning: "the server did not send what it was asked for, so its speed says nothing about that work",
    remedy: "check the server's log and caches; compare what it sends under load with what it sends \
             alone (`curl -s URL | sha256sum`). If the page is meant to change, write verify = \"off\" in \
             [workload]",
    detection: "The generator hashes a sample of the bodies of each visit and compares them with the body \
             that the same contender sent before the load. One that differs confirms it; bodies that were not \
             hashed count as good",
    example: "`joust serve --fixed 3361 --fault body=zeros,after:3000`: status and length stay right, the \
             contents are zeros",
    source: "RFC 9110, section 15.3.1",
    needs: &[],
    look,
};

/// Hex digits that tell two bodies apart for a reader.
const DIGITS: usize = 12;

fn look(evidence: &Evidence) -> Vec<Observation> {
    evidence.contenders().filter_map(|contender| look_at(evidence, contender)).collect()
}

fn look_at(evidence: &Evidence, contender: usize) -> Option<Observation> {
    let counts = || evidence.run.measured(contender).flat_map(each);
    let sum = |of: fn(&BodiesVerified) -> u64| counts().map(|(_, bodies)| of(bodies)).sum::<u64>();
    let (visit, first) =
        counts().find_map(|(visit, bodies)| Some((visit, bodies.first.as_ref()?)))?;
    let evidence = format!(
        "{}: {} of {} verified bodies differ from the one before the load; the first {}",
        evidence.name(contender),
        words::grouped(sum(|bodies| bodies.differ)),
        words::grouped(sum(|bodies| bodies.verified)),
        place(evidence, visit, first),
    );
    Some(Observation {
        share: Some(
            sum(|bodies| bodies.differ) as f64 / sum(|bodies| bodies.verified).max(1) as f64,
        ),
        certainty: Certainty::Confirmed,
        contenders: vec![contender],
        evidence,
    })
}

/// What each load of a visit verified: the one that was measured, or those of a search.
fn each(visit: &Visit) -> impl Iterator<Item = (&Visit, &BodiesVerified)> {
    let load = visit.load.iter().map(|load| &load.bodies_verified);
    let tries = visit.search.iter().flat_map(|search| &search.tries);
    load.chain(tries.map(|tried| &tried.bodies_verified)).map(move |bodies| (visit, bodies))
}

/// Where a body that differs was seen, and what it was.
fn place(evidence: &Evidence, visit: &Visit, first: &WrongBody) -> String {
    let block = match evidence.is_alone() {
        true => String::new(),
        false => format!(" of block {}", visit.block + 1),
    };
    let digits = |sha256: &str| sha256.get(..DIGITS).unwrap_or(sha256).to_owned();
    format!(
        "{} into the load{block}, after {} ({}): SHA-256 {} instead of {}",
        first.at,
        words::count(first.replies_before, "request"),
        first.request,
        digits(&first.got),
        digits(&first.expected),
    )
}

#[cfg(test)]
mod tests {
    use record::RunRecord;
    use units::Nanos;

    use super::*;
    use crate::testdata;

    /// A run whose visits all verified 400 bodies, all of them right.
    fn verified() -> RunRecord {
        let mut run = testdata::run(&["a", "b"], 8);
        for load in run.visits.iter_mut().filter_map(|visit| visit.load.as_mut()) {
            load.bodies_verified.verified = 400;
        }
        run
    }

    #[test]
    fn bodies_that_are_right_and_loads_that_verified_none_are_silent() {
        assert_eq!(look(&Evidence::of(&verified())), []);
        assert_eq!(look(&Evidence::of(&testdata::run(&["a", "b"], 8))), []);
    }

    #[test]
    fn a_single_body_that_differs_fires_for_its_contender_with_the_first_of_them() {
        let mut run = verified();
        for block in [5, 7] {
            let is_it = |visit: &&mut Visit| (visit.contender, visit.block) == (1, block);
            let visit = run.visits.iter_mut().find(is_it).unwrap();
            let first = WrongBody {
                at: Nanos::from_millis(130),
                request: "GET /index.html".to_owned(),
                replies_before: 3012,
                expected: "ab".repeat(32),
                got: "00".repeat(32),
            };
            let load = visit.load.as_mut().unwrap();
            load.bodies_verified = BodiesVerified { verified: 400, differ: 70, first: Some(first) };
        }
        let seen = look(&Evidence::of(&run));
        assert_eq!(seen.len(), 1);
        assert_eq!(
            (seen[0].contenders.as_slice(), seen[0].certainty),
            (&[1][..], Certainty::Confirmed)
        );
        assert_eq!(
            seen[0].evidence,
            "b: 140 of 3,200 verified bodies differ from the one before the load; the first 130ms \
             into the load of block 6, after 3,012 requests (GET /index.html): SHA-256 000000000000 instead of \
             abababababab"
        );
    }
}
