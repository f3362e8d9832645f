//! Owns the check that a load of several agents is all there. Start reading at [`look`].
//!
//! Tools that spread a load over machines show the sum of what arrived: of an agent that was killed, cut off or started
//! again they show less, or count it twice, and say nothing. Agents here number their windows and state their totals,
//! so that what is missing is known.

use record::{Certainty, FleetAgent, FleetUse, Question, Severity};

use super::Check;
use crate::{Evidence, Observation, words};

/// A part of a fleet's result is missing.
pub(crate) const ITEM: Check = Check {
    name: "fleet_incomplete",
    severity: Severity::Void,
    question: Question::DidItEvenHappen,
    spares_like_pairs: false,
    title: "a part of the fleet's load is missing",
    meaning: "the load was smaller than planned, or its result is known in part: rates are too low, and percentiles are \
              those of the agents that are left",
    remedy: "look at what happened to the agents that are named; where one can be reached again, `joust fleet collect \
             RUN` adds what it has kept; otherwise run again",
    detection: "A window of an agent did not come, an agent's totals and its windows differ, or the load ended before \
                its time",
    example: "`joust load --fleet`, and kill -9 one of four agents",
    source: "https://github.com/locustio/locust/issues/2008",
    needs: &[],
    look,
};

fn look(evidence: &Evidence) -> Vec<Observation> {
    let fleets = evidence.contenders().flat_map(|contender| {
        let loads = evidence.loads(contender);
        loads.filter_map(move |(_, load)| Some((contender, load.fleet.as_deref()?)))
    });
    let incomplete = fleets.filter(|(_, fleet)| !fleet.is_whole());
    incomplete
        .map(|(contender, fleet)| Observation {
            certainty: Certainty::Confirmed,
            share: Some(1.0 - fleet.coverage()),
            contenders: vec![contender],
            evidence: format!("{}: {}", evidence.name(contender), said(fleet)),
        })
        .collect()
}

fn said(fleet: &FleetUse) -> String {
    let mut said = vec![format!(
        "INCOMPLETE: {} of {} windows are known ({})",
        words::grouped(fleet.windows_known),
        words::grouped(fleet.windows),
        words::percent(fleet.coverage()),
    )];
    said.extend(fleet.ended_early.iter().map(|why| format!("it ended early: {why}")));
    said.extend(fleet.agents.iter().filter_map(of_agent));
    if fleet.conflicts > 0 {
        let conflicts = words::count(fleet.conflicts, "message");
        said.push(format!("{conflicts} had the number of another one"));
    }
    said.join("; ")
}

fn of_agent(agent: &FleetAgent) -> Option<String> {
    let mut said: Vec<String> = agent.trouble.iter().cloned().collect();
    for gap in &agent.gaps {
        let (from, until) = (gap.from, gap.until);
        said.push(match gap.may_load_until {
            Some(doubt) => format!(
                "nothing is known from {from} to {until}, and it may have loaded until {doubt}"
            ),
            None => format!("no window from {from} to {until}"),
        });
    }
    if said.is_empty() && !agent.is_whole {
        said.push("its totals and its windows differ".to_owned());
    }
    (!said.is_empty()).then(|| format!("{}: {}", agent.name, said.join(", ")))
}

#[cfg(test)]
mod tests {
    use record::{FleetGap, Share};
    use units::Nanos;

    use super::*;
    use crate::testdata;

    fn agent(name: &str, gaps: Vec<FleetGap>) -> FleetAgent {
        FleetAgent {
            name: name.to_owned(),
            share: Share::WHOLE,
            clock_error: Some(Nanos::from_micros(40)),
            begun: Some(Nanos::ZERO),
            is_whole: gaps.is_empty(),
            late_windows: 0,
            trouble: (!gaps.is_empty()).then(|| "it was lost".to_owned()),
            gaps,
        }
    }

    fn seen(windows_known: u64, gaps: Vec<FleetGap>) -> Vec<Observation> {
        let mut run = testdata::run(&["a"], 1);
        run.visits[0].load.as_mut().unwrap().fleet = Some(Box::new(FleetUse {
            run: "r".to_owned(),
            agents: vec![agent("one", Vec::new()), agent("two", gaps)],
            windows: 80,
            windows_known,
            skew: Some(Nanos::from_micros(30)),
            ended_early: None,
            conflicts: 0,
        }));
        look(&Evidence::of(&run))
    }

    #[test]
    fn a_whole_fleet_is_silent_and_a_lost_agent_is_told_with_what_is_in_doubt() {
        assert_eq!(seen(80, Vec::new()), []);
        let secs = Nanos::from_secs;
        let gap = FleetGap { from: secs(20), until: secs(40), may_load_until: Some(secs(35)) };
        let seen = seen(60, vec![gap]);
        assert_eq!((seen.len(), seen[0].certainty), (1, Certainty::Confirmed));
        let text = "a: INCOMPLETE: 60 of 80 windows are known (75 %); two: it was lost, nothing is known from 20s to \
                    40s, and it may have loaded until 35s";
        assert_eq!(seen[0].evidence, text);
        assert_eq!(seen[0].share, Some(0.25));
    }

    #[test]
    fn a_load_of_one_machine_is_not_judged() {
        assert_eq!(look(&Evidence::of(&testdata::run(&["a"], 2))), []);
    }
}
