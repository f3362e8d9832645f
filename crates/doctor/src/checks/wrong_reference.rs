//! Owns the check that the body which replies are compared with is the right one. Start reading at [`look`].
//!
//! ab takes the length of its first reply as the norm. Where that one was empty (a server that was still starting,
//! a cold cache), all good replies are "failed" and the broken ones are good. joust fetches the reference alone
//! before the load, so that it is rarely wrong; but a server can still answer otherwise when it is asked alone.
//! What tells the two apart is the majority: if nearly all bodies differ from the reference and are alike among
//! themselves, the odd one is the reference. A server that changes under load (`bodies_change_under_load`) has sent
//! the reference's body before.

use record::{Certainty, LoadRecord, Question, Severity};

use super::Check;
use crate::{Evidence, Observation, words};

/// See the module.
pub(crate) const ITEM: Check = Check {
    name: "wrong_reference",
    severity: Severity::Void,
    question: Question::DidItError,
    spares_like_pairs: false,
    title: "the body that replies are compared with is the odd one",
    meaning: "good replies are counted as failed, and what is counted as good may be broken",
    remedy: "fetch the body by itself several times (`curl -s URL | sha256sum`), wait until the server is ready, \
             and compare again; or compare nothing (--verify off, [workload] verify = \"off\")",
    detection: "99 % of the bodies under load differ from the one before it. It is confirmed where that one was \
                empty and the others are not, or where all others have one length or one hash",
    example: "`joust serve --fixed 3361 --fault empty-first` and `joust load --verify length`",
    source: "ApacheBench, support/ab.c: the first reply's length is the norm for `Failed requests`",
    needs: &[],
    look,
};

/// Share of the bodies that must differ. A fault that begins under load leaves some as they were.
const ODD_MIN: f64 = 0.99;
/// Fewer bodies are no majority.
const BODIES_MIN: u64 = 20;
/// Of no bytes (FIPS 180-4).
const SHA256_OF_NOTHING: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
/// Hex digits that tell two bodies apart for a reader.
const DIGITS: usize = 12;

fn look(evidence: &Evidence) -> Vec<Observation> {
    let look_at =
        |contender| by_length(evidence, contender).or_else(|| by_hash(evidence, contender));
    evidence.contenders().filter_map(look_at).collect()
}

/// Bodies of another length than the reference.
fn by_length(evidence: &Evidence, contender: usize) -> Option<Observation> {
    let loads: Vec<&LoadRecord> = evidence.loads(contender).map(|(_, load)| load).collect();
    let sum = |of: fn(&LoadRecord) -> u64| loads.iter().map(|load| of(load)).sum::<u64>();
    let (wrong, done) = (sum(|load| load.errors.wrong_length), sum(|load| load.requests.done));
    let share = wrong as f64 / done.max(1) as f64;
    if wrong < BODIES_MIN || share < ODD_MIN {
        return None;
    }
    let body = sum(|load| load.bytes.body);
    let expected = expected_length(evidence, contender, &loads);
    // Those that are as expected, if any, are no longer than the reference.
    let others = body.checked_sub((done - wrong) * expected.unwrap_or(0))?;
    let are_alike = others.is_multiple_of(wrong) && others > 0;
    let evidence = format!(
        "{}: {} of {} bodies have not the length of the body before the load{}; theirs is {}",
        evidence.name(contender),
        words::grouped(wrong),
        words::grouped(done),
        expected.map_or(String::new(), |length| format!(" ({})", words::count(length, "byte"))),
        match are_alike {
            true => format!("{} each", words::count(others / wrong, "byte")),
            false => format!("{} on average", words::count(others / wrong, "byte")),
        },
    );
    let is_sure = are_alike || (expected == Some(0) && others > 0);
    let certainty = if is_sure { Certainty::Confirmed } else { Certainty::Suspected };
    Some(Observation { share: Some(share), certainty, contenders: vec![contender], evidence })
}

/// Of the body before the load, where it is known.
fn expected_length(evidence: &Evidence, contender: usize, loads: &[&LoadRecord]) -> Option<u64> {
    let asked = loads.iter().flat_map(|load| load.plan.requests.first());
    let of_plan = asked.filter_map(|request| Some(request.expected.as_ref()?.length.0)).next();
    let facts = &evidence.run.contenders[contender];
    of_plan.or((facts.body_sha256 == SHA256_OF_NOTHING).then_some(0))
}

/// Bodies of the reference's length and another hash.
fn by_hash(evidence: &Evidence, contender: usize) -> Option<Observation> {
    let bodies: Vec<_> = evidence.loads(contender).map(|(_, load)| &load.bodies_verified).collect();
    let (verified, differ) = bodies
        .iter()
        .fold((0, 0), |(verified, differ), one| (verified + one.verified, differ + one.differ));
    let share = differ as f64 / verified.max(1) as f64;
    if verified < BODIES_MIN || share < ODD_MIN {
        return None;
    }
    let firsts: Vec<_> = bodies.iter().filter_map(|one| one.first.as_ref()).collect();
    let first = firsts.first()?;
    // One load names one body; several that name the same one agree.
    let agree = firsts.len() > 1 && firsts.iter().all(|other| other.got == first.got);
    let evidence = format!(
        "{}: {} of {} verified bodies differ from the one before the load (SHA-256 {}){}",
        evidence.name(contender),
        words::grouped(differ),
        words::grouped(verified),
        first.expected.get(..DIGITS).unwrap_or(&first.expected),
        match agree {
            true => format!(
                "; the first of all {} was the same, {}",
                words::count(firsts.len() as u64, "load"),
                first.got.get(..DIGITS).unwrap_or(&first.got)
            ),
            false => String::new(),
        },
    );
    let certainty = if agree { Certainty::Confirmed } else { Certainty::Suspected };
    Some(Observation { share: Some(share), certainty, contenders: vec![contender], evidence })
}

#[cfg(test)]
mod tests {
    use record::{BodiesVerified, ExpectedBody, RunRecord, WrongBody};
    use units::{Bytes, Nanos};

    use super::*;
    use crate::testdata;

    /// A reference of a given number of bytes beside bodies of 3,361, of which some of 1,000 count as wrong, as
    /// given.
    fn of_length(expected: u64, wrong: u64, body: u64) -> Vec<Observation> {
        let mut run = testdata::run(&["a", "b"], 4);
        for visit in run.visits.iter_mut().filter(|visit| visit.contender == 1) {
            let load = visit.load.as_mut().unwrap();
            (load.requests.done, load.errors.wrong_length) = (1_000, wrong);
            load.bytes.body = body;
            load.plan.requests[0].expected =
                Some(ExpectedBody { length: Bytes(expected), sha256: "ab".repeat(32) });
        }
        look(&Evidence::of(&run))
    }

    fn of_hash(verified: u64, differ: u64, got: &[&str]) -> RunRecord {
        let mut run = testdata::run(&["a", "b"], got.len() as u32);
        let of_b = run.visits.iter_mut().filter(|visit| visit.contender == 1);
        for (visit, got) in of_b.zip(got) {
            let first = WrongBody {
                at: Nanos(5),
                request: "GET /".to_owned(),
                replies_before: 0,
                expected: "ab".repeat(32),
                got: got.repeat(32),
            };
            visit.load.as_mut().unwrap().bodies_verified =
                BodiesVerified { verified, differ, first: (differ > 0).then_some(first) };
        }
        run
    }

    #[test]
    fn bodies_that_are_as_expected_and_a_few_that_are_not_are_silent() {
        assert_eq!(look(&Evidence::of(&testdata::run(&["a", "b"], 4))), []);
        assert_eq!(of_length(3361, 500, 3361 * 1_000), []);
        assert_eq!(
            look(&Evidence::of(&of_hash(400, 70, &["00", "00"]))),
            [],
            "it changed under load"
        );
        assert_eq!(look(&Evidence::of(&of_hash(10, 10, &["00"]))), []);
    }

    #[test]
    fn an_empty_reference_is_the_odd_one() {
        let seen = of_length(0, 1_000, 3361 * 1_000);
        assert_eq!((seen.len(), seen[0].certainty), (1, Certainty::Confirmed));
        let text = "b: 4,000 of 4,000 bodies have not the length of the body before the load (0 bytes); \
                    theirs is 3,361 bytes each";
        assert_eq!(seen[0].evidence, text);
        // Ten replies as empty as the reference.
        assert_eq!(of_length(0, 990, 3361 * 990)[0].certainty, Certainty::Confirmed);
    }

    #[test]
    fn bodies_of_many_lengths_are_no_norm() {
        assert_eq!(of_length(3361, 1_000, 3361 * 500 + 7)[0].certainty, Certainty::Suspected);
        assert_eq!(of_length(17, 1_000, 3361 * 1_000)[0].certainty, Certainty::Confirmed);
    }

    #[test]
    fn bodies_that_agree_with_each_other_confirm_it() {
        let certainty = |got: &[&str]| look(&Evidence::of(&of_hash(400, 399, got)))[0].certainty;
        assert_eq!(certainty(&["00", "00", "00"]), Certainty::Confirmed);
        assert_eq!(certainty(&["00", "11", "22"]), Certainty::Suspected);
        assert_eq!(certainty(&["00"]), Certainty::Suspected);
    }
}
