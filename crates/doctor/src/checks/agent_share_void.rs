//! Owns the check that an agent's own machine voided its share of a fleet's load. Start reading at [`look`].
//!
//! The counters of an agent's machine come to the controller with its record, and are examined there for each share
//! alone. In the sum of all agents they would be lost.

use std::collections::BTreeMap;

use record::{Certainty, Question, Severity};

use super::Check;
use crate::{Evidence, Observation};

/// A share is void.
pub(crate) const ITEM: Check = Check {
    name: "agent_share_void",
    severity: Severity::Void,
    question: Question::DidItEvenHappen,
    spares_like_pairs: false,
    title: "the share of an agent is void",
    meaning: "the sum of all agents holds figures that are not the server's: of a machine that swapped, dropped \
              packets, or was stopped by a quota",
    remedy: "mend what the finding names on the machine of that agent, or leave the agent out (--agents)",
    detection: "Each agent's record is examined with the counters of its own machine, by the checks of what happens on a \
                generator: CPU quota, swapping, late sends, no ports or descriptors left, and the like. One of them \
                confirms there what voids a load",
    example: "`joust load --fleet` with one of the agents in a cgroup whose CPU quota is a tenth of a core",
    source: "docs/fleet.md",
    needs: &[],
    look: |evidence| look(evidence, Severity::Void),
};

/// Where a finding was seen on an agent.
#[derive(Default)]
struct SeenIn {
    visits: usize,
    /// The first evidence.
    evidence: String,
}

/// Findings of that severity on shares, by contender.
pub(super) fn look(evidence: &Evidence, severity: Severity) -> Vec<Observation> {
    evidence.contenders().filter_map(|contender| look_at(evidence, contender, severity)).collect()
}

fn look_at(evidence: &Evidence, contender: usize, severity: Severity) -> Option<Observation> {
    let mut seen: BTreeMap<(&str, &str), SeenIn> = BTreeMap::new();
    let (mut visits, mut touched) = (0usize, 0usize);
    for (_, load) in evidence.loads(contender) {
        visits += 1;
        let mut is_touched = false;
        for part in &load.parts {
            for one in part.acting.iter().filter(|one| one.severity == severity) {
                is_touched = true;
                let entry = seen.entry((&part.name, &one.check)).or_default();
                entry.visits += 1;
                if entry.evidence.is_empty() {
                    entry.evidence.clone_from(&one.evidence);
                }
            }
        }
        touched += usize::from(is_touched);
    }
    let said = seen.iter().map(|((agent, check), SeenIn { visits: in_visits, evidence })| {
        let often =
            if visits > 1 { format!(" in {in_visits} of {visits} visits") } else { String::new() };
        format!("agent {agent}{often}: {check} ({evidence})")
    });
    let said: Vec<String> = said.collect();
    (!said.is_empty()).then(|| Observation {
        certainty: Certainty::Confirmed,
        share: Some(touched as f64 / visits as f64),
        contenders: vec![contender],
        evidence: format!("{}: {}", evidence.name(contender), said.join("; ")),
    })
}

#[cfg(test)]
mod tests {
    use record::{LoadPart, PartFinding};
    use units::Nanos;

    use super::*;
    use crate::testdata;

    fn part(name: &str, acting: Vec<PartFinding>) -> LoadPart {
        LoadPart {
            name: name.to_owned(),
            began_unix_ms: None,
            start: Nanos::ZERO,
            seconds: 1.0,
            started: 1,
            ok: 1,
            rate_per_s: 1.0,
            findings: Vec::new(),
            acting,
        }
    }

    fn finding(check: &str, severity: Severity) -> PartFinding {
        PartFinding { check: check.to_owned(), severity, evidence: "3 times".to_owned() }
    }

    #[test]
    fn what_an_agents_machine_did_is_told_once_for_each_agent_and_by_severity() {
        let mut run = testdata::run(&["a", "b"], 4);
        let loads = run.visits.iter_mut().filter(|visit| visit.contender == 0);
        for load in loads.filter_map(|visit| visit.load.as_mut()) {
            load.parts = vec![part("one", Vec::new()), part("two", Vec::new())];
        }
        assert_eq!(look(&Evidence::of(&run), Severity::Void), []);
        let first = run.visits.iter_mut().find(|visit| visit.contender == 0).unwrap();
        let of_two = &mut first.load.as_mut().unwrap().parts[1];
        of_two.acting =
            vec![finding("cpu_quota", Severity::Void), finding("late_sends", Severity::Bound)];
        let seen = look(&Evidence::of(&run), Severity::Void);
        assert_eq!((seen.len(), &seen[0].contenders), (1, &vec![0]));
        assert_eq!(seen[0].evidence, "a: agent two in 1 of 4 visits: cpu_quota (3 times)");
        assert_eq!(seen[0].share, Some(0.25));
        let bound = look(&Evidence::of(&run), Severity::Bound);
        assert_eq!(bound[0].evidence, "a: agent two in 1 of 4 visits: late_sends (3 times)");
    }
}
