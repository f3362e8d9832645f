//! Owns the check that contenders of one server differ in one setting at a time. Start reading at [`look`].
//!
//! Of two settings that were changed together nobody can say which one made the difference. Others of the study may
//! tell them apart: one that differs from the first by a part of the changes and from the second by the rest (a
//! factorial design). Two concurrency models are two servers, with settings that only one of them has.
//! What the study declares is meant to differ.

use std::collections::BTreeSet;

use record::{Certainty, Change, Contender, Question, Severity};

use super::Check;
use crate::{Evidence, Observation, words};

/// See the module.
pub(crate) const ITEM: Check = Check {
    name: "two_knobs_changed",
    severity: Severity::Note,
    question: Question::DoesItMatter,
    spares_like_pairs: false,
    title: "contenders of one server differ in more than one setting",
    meaning: "the difference cannot be given to one of the settings",
    remedy: "change one setting at a time, or add the contenders between (each with a part of the changes); or declare \
             it: declared = [\"SETTING: why\"] in the study",
    detection: "Settings and work of contenders of the same server and model are compared; more than one differs, and \
             no other contender lies between",
    example: "`MaxConnectionsPerChild` and `MaxSpareServers` of Apache raised in one step",
    source: "Montgomery, Design and Analysis of Experiments, chapter 5 (factorial designs)",
    needs: &[],
    look,
};

/// Settings that choose another program inside the server.
const MODELS: [&str; 2] = ["model", "mpm"];
/// Pairs that the evidence names.
const NAMED_MAX: usize = 3;

/// One for all pairs: what is wrong is the study.
fn look(evidence: &Evidence) -> Vec<Observation> {
    let plan = &evidence.run.plan;
    let pairs: Vec<(usize, usize, BTreeSet<String>)> = plan
        .pairs(0)
        .into_iter()
        .map(|(a, b)| (a, b, knobs(evidence, a, b)))
        .filter(|(a, b, knobs)| knobs.len() > 1 && !is_told_apart(evidence, *a, *b))
        .collect();
    if pairs.is_empty() {
        return Vec::new();
    }
    let said = |(a, b, knobs): &(usize, usize, BTreeSet<String>)| {
        let knobs: Vec<&String> = knobs.iter().collect();
        format!(
            "{}: differs from {} in {}",
            evidence.name(*b),
            evidence.name(*a),
            words::list(&knobs)
        )
    };
    let named: Vec<String> = pairs.iter().take(NAMED_MAX).map(said).collect();
    let more = match pairs.len() - named.len() {
        0 => String::new(),
        more => format!("; and {}", words::count(more as u64, "more pair")),
    };
    let contenders: BTreeSet<usize> = pairs.iter().flat_map(|(a, b, _)| [*a, *b]).collect();
    vec![Observation {
        certainty: Certainty::Confirmed,
        contenders: contenders.into_iter().collect(),
        evidence: format!("{}{more}", named.join("; ")),
        ..Observation::default()
    }]
}

/// What two contenders of one program differ in; nothing for two programs.
fn knobs(evidence: &Evidence, a: usize, b: usize) -> BTreeSet<String> {
    let plan = &evidence.run.plan;
    let (a, b) = (&plan.contenders[a], &plan.contenders[b]);
    let differ = |key: &str| a.settings.get(key) != b.settings.get(key);
    if a.server != b.server || MODELS.iter().any(|key| differ(key)) {
        return BTreeSet::new();
    }
    let settings = a.settings.keys().chain(b.settings.keys()).filter(|key| differ(key)).cloned();
    let work = changed(a, b).into_iter().map(str::to_owned);
    settings.chain(work).filter(|knob| !is_declared(&plan.declared, knob)).collect()
}

/// Fields of the work in which they differ.
fn changed(a: &Contender, b: &Contender) -> Vec<&'static str> {
    let (
        Change {
            target,
            sleep,
            page,
            connections,
            keep_alive,
            threads,
            timeout,
            rate,
            client,
            verify,
        },
        other,
    ) = (&a.work, &b.work);
    let fields = [
        ("target", *target != other.target),
        ("sleep", *sleep != other.sleep),
        ("page", *page != other.page),
        ("connections", *connections != other.connections),
        ("keep_alive", *keep_alive != other.keep_alive),
        ("threads", *threads != other.threads),
        ("timeout", *timeout != other.timeout),
        ("rate", *rate != other.rate),
        ("client", *client != other.client),
        ("verify", *verify != other.verify),
    ];
    fields.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name).collect()
}

/// "workers" and "workers: why" declare "workers".
fn is_declared(declared: &[String], knob: &str) -> bool {
    let name = |line: &String| line.split(':').next().unwrap_or_default().trim().to_owned();
    declared.iter().any(|line| name(line) == knob)
}

/// Whether another contender has a part of the changes and no other one.
fn is_told_apart(evidence: &Evidence, a: usize, b: usize) -> bool {
    let whole = knobs(evidence, a, b);
    evidence.contenders().filter(|&other| other != a && other != b).any(|other| {
        let is_same_server =
            evidence.run.plan.contenders[other].server == evidence.run.plan.contenders[a].server;
        let (first, second) = (knobs(evidence, a, other), knobs(evidence, other, b));
        let is_part = |part: &BTreeSet<String>| !part.is_empty() && part.len() < whole.len();
        is_same_server
            && is_part(&first)
            && is_part(&second)
            && first.is_disjoint(&second)
            && first.union(&second).eq(whole.iter())
    })
}

#[cfg(test)]
mod tests {
    use record::{RunRecord, SettingValue, Settings};

    use super::*;
    use crate::testdata;

    fn with(settings: &[&[(&str, i64)]]) -> RunRecord {
        let names = ["a", "b", "c", "d"];
        let mut run = testdata::run(&names[..settings.len()], 8);
        for (contender, own) in run.plan.contenders.iter_mut().zip(settings) {
            let value = |&(key, value): &(&str, i64)| (key.to_owned(), SettingValue::Number(value));
            contender.settings = own.iter().map(value).collect::<Settings>();
        }
        run
    }

    #[test]
    fn two_settings_changed_together_fire_with_their_names() {
        let run = with(&[&[("backlog", 1), ("workers", 1)], &[("backlog", 2), ("workers", 2)]]);
        let seen = look(&Evidence::of(&run));
        assert_eq!(seen.len(), 1);
        assert_eq!(seen[0].contenders, [0, 1]);
        assert_eq!(seen[0].evidence, "b: differs from a in backlog and workers");
    }

    #[test]
    fn one_setting_a_declared_one_other_servers_and_other_models_are_silent() {
        assert_eq!(look(&Evidence::of(&testdata::run(&["a", "b"], 8))), []);
        let one = with(&[&[("backlog", 1)], &[("backlog", 2)]]);
        assert_eq!(look(&Evidence::of(&one)), []);
        let mut two = with(&[&[("backlog", 1), ("workers", 1)], &[("backlog", 2), ("workers", 2)]]);
        two.plan.declared = vec!["workers: it goes with the backlog".to_owned()];
        assert_eq!(look(&Evidence::of(&two)), []);
        two.plan.declared.clear();
        two.plan.contenders[1].server = "nginx".to_owned();
        assert_eq!(look(&Evidence::of(&two)), []);
        let models = with(&[&[("model", 1), ("workers", 1)], &[("model", 2), ("workers", 2)]]);
        assert_eq!(look(&Evidence::of(&models)), []);
    }

    #[test]
    fn a_factorial_design_is_silent_and_half_of_one_is_enough() {
        let run = with(&[
            &[("backlog", 1), ("workers", 1)],
            &[("backlog", 2), ("workers", 2)],
            &[("backlog", 2), ("workers", 1)],
        ]);
        assert_eq!(look(&Evidence::of(&run)), []);
    }

    #[test]
    fn a_setting_and_another_work_are_two_knobs() {
        let mut run = with(&[&[("backlog", 1)], &[("backlog", 2)]]);
        run.plan.contenders[1].work.keep_alive = Some(false);
        assert_eq!(
            look(&Evidence::of(&run))[0].evidence,
            "b: differs from a in backlog and keep_alive"
        );
    }
}
