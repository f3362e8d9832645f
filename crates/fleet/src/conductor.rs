//! The controller's part in a run: what each agent still owes, and so what is sent. Owns the phases and their
//! deadlines, not how anything is sent. Start reading at [`Conductor::orders`].
//!
//! ```text
//! preparing -> arming -> committing -> running -> stopping -> collecting -> over
//! ```
//!
//! Orders are not remembered as sent: whoever has not answered as its phase asks is told again, so that a lost
//! message costs a round and no more. Every phase has a deadline; none waits for ever. Nothing begins unless every
//! agent has armed the same instant.

use std::collections::BTreeMap;

use record::Share;
use serde::{Deserialize, Serialize};
use units::Nanos;

use crate::ids::Id;
use crate::message::AgentTotals;
use crate::order::{Answer, Command, Order, SeatTimes};

/// What happens when an agent is lost while a load runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnLoss {
    /// The load is ended on all agents.
    Abort,
    /// The others go on, and the result says what is missing.
    Continue,
}

/// Times of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunTimes {
    /// For all agents to be ready.
    pub prepare: Nanos,
    /// From arming to the start.
    pub lead: Nanos,
    /// How long before the start all must have armed.
    pub margin: Nanos,
    /// How long after its planned end a load may still take.
    pub grace: Nanos,
    /// For all agents to have ended and sent everything.
    pub collect: Nanos,
    /// Silence from which an agent is suspect.
    pub suspect: Nanos,
    /// Silence from which it is lost.
    pub lost: Nanos,
    /// The agents' dead-man timer: a lost one may load for this long after it was heard.
    pub dead_man: Nanos,
    /// Largest error of an agent's run clock with which a load may begin.
    pub clock_error_max: Nanos,
}

impl Default for RunTimes {
    fn default() -> Self {
        Self {
            prepare: Nanos::from_secs(60),
            lead: Nanos::from_secs(2),
            margin: Nanos::from_millis(500),
            grace: Nanos::from_secs(5),
            collect: Nanos::from_secs(60),
            suspect: Nanos::from_secs(3),
            lost: Nanos::from_secs(10),
            dead_man: Nanos::from_secs(15),
            clock_error_max: Nanos::from_millis(5),
        }
    }
}

/// Where a run is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// Agents fetch the plan.
    Preparing,
    /// They are told when it begins.
    Arming {
        /// On the run clock.
        at: Nanos,
    },
    /// They are told that it does begin then.
    Committing {
        /// On the run clock.
        at: Nanos,
    },
    /// The load.
    Running {
        /// When it began, on the run clock.
        at: Nanos,
    },
    /// It is being ended, and why.
    Stopping {
        /// A sentence.
        why: String,
        /// When it began; `None` if it did not.
        at: Option<Nanos>,
    },
    /// Messages that are missing are waited for.
    Collecting {
        /// Why it ended early; `None` if it ended as planned.
        why: Option<String>,
    },
    /// Nothing more is sent.
    Over {
        /// Why it ended early; `None` if it ended as planned.
        why: Option<String>,
    },
}

/// How an agent stands with the controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It was heard a short time ago.
    Heard,
    /// It was silent for a while.
    Suspect,
    /// It was silent for so long that it counts as lost; it may load until its dead-man timer ends.
    Lost {
        /// When it was last heard, on the run clock.
        since: Nanos,
    },
}

/// An agent of the run.
#[derive(Debug, Clone)]
struct Member {
    share: Share,
    heard: Nanos,
    last: Option<Answer>,
    /// Messages of it that are to be sent again.
    missing: Vec<u64>,
    is_whole: bool,
    is_released: bool,
}

/// The controller's part in a run.
#[derive(Debug)]
pub struct Conductor {
    run: Id,
    epoch: u64,
    plan: String,
    duration: Nanos,
    times: RunTimes,
    on_loss: OnLoss,
    phase: Phase,
    since: Nanos,
    /// Of the controller that commands now, if it is another one.
    fenced_by: Option<u64>,
    /// From another controller: how much of the load is left is not known.
    has_taken_over: bool,
    members: BTreeMap<Id, Member>,
}

impl Conductor {
    /// A run of these agents, each once and with its share; `plan` is its digest.
    pub fn new(
        (run, epoch): (Id, u64),
        (plan, duration): (String, Nanos),
        agents: &[Id],
        (times, on_loss): (RunTimes, OnLoss),
        now: Nanos,
    ) -> Self {
        assert!(!agents.is_empty(), "a run has agents");
        let of = agents.len() as u32;
        let member = |index| Member {
            share: Share { index, of },
            heard: now,
            last: None,
            missing: Vec::new(),
            is_whole: false,
            is_released: false,
        };
        let members: BTreeMap<Id, Member> = agents.iter().cloned().zip((0..).map(member)).collect();
        assert_eq!(agents.len(), BTreeMap::len(&members), "each agent has one share");
        let phase = Phase::Preparing;
        Self {
            run,
            epoch,
            plan,
            duration,
            times,
            on_loss,
            phase,
            since: now,
            fenced_by: None,
            has_taken_over: false,
            members,
        }
    }

    /// The same for a controller that takes over from one that is gone. `at`: when the load began or was to begin, on
    /// this controller's clock; without it the run is ended.
    #[must_use]
    pub fn taking_over(self, at: Option<Nanos>) -> Self {
        let phase = match at {
            Some(at) => Phase::Running { at },
            None => Phase::Stopping {
                why: "its controller was lost before the load began".to_owned(),
                at: None,
            },
        };
        Self { phase, has_taken_over: true, ..self }
    }

    /// Where the run is.
    pub fn phase(&self) -> &Phase {
        &self.phase
    }

    /// How an agent stands; `None` for a stranger.
    pub fn standing(&self, agent: &Id, now: Nanos) -> Option<Standing> {
        self.members.get(agent).map(|member| self.times.standing(member.heard, now))
    }

    /// Takes an agent's answer.
    pub fn answered(&mut self, agent: &Id, answer: Answer, now: Nanos) {
        let Some(member) = self.members.get_mut(agent) else { return };
        member.heard = now;
        if let Answer::Fenced { by } = answer {
            self.fenced_by = Some(by);
        }
        if answer == Answer::Free && matches!(self.phase, Phase::Collecting { .. }) {
            member.is_released |= member.is_whole;
        }
        // What is over stays so: an answer may have been on the way for long.
        if !matches!(member.last, Some(Answer::Finished(_))) {
            member.last = Some(answer);
        }
    }

    /// All of an agent's messages are here.
    pub fn collected(&mut self, agent: &Id) {
        if let Some(member) = self.members.get_mut(agent) {
            member.is_whole = true;
        }
    }

    /// These messages of an agent have not come; it is asked for them once.
    pub fn lacks(&mut self, agent: &Id, missing: Vec<u64>) {
        if let Some(member) = self.members.get_mut(agent) {
            member.missing = missing;
        }
    }

    /// When an agent was heard last, on the run clock.
    pub fn heard(&self, agent: &Id) -> Option<Nanos> {
        self.members.get(agent).map(|member| member.heard)
    }

    /// Whether another controller commands now.
    pub fn is_replaced(&self) -> bool {
        self.fenced().is_some()
    }

    /// What an agent said last.
    pub fn last(&self, agent: &Id) -> Option<&Answer> {
        self.members.get(agent)?.last.as_ref()
    }

    /// What an agent says that it sent, once its load is over.
    pub fn totals(&self, agent: &Id) -> Option<AgentTotals> {
        match self.members.get(agent)?.last {
            Some(Answer::Finished(totals)) => Some(totals),
            _ => None,
        }
    }

    /// Ends the run early.
    pub fn stop(&mut self, why: &str, now: Nanos) {
        if !matches!(
            self.phase,
            Phase::Stopping { .. } | Phase::Collecting { .. } | Phase::Over { .. }
        ) {
            let at = self.begun();
            self.enter(Phase::Stopping { why: why.to_owned(), at }, now);
        }
    }

    /// Moves on as far as answers and time allow, and returns what to send now, to whom.
    pub fn orders(&mut self, now: Nanos) -> Vec<(Id, Command)> {
        // Each step enters a later phase, of which there are seven.
        while let Some(next) = self.next(now) {
            self.enter(next, now);
        }
        let owed = self.members.iter().filter_map(|(id, member)| {
            let order = self.owed(member, now)?;
            Some((id.clone(), Command { run: self.run.clone(), epoch: self.epoch, order }))
        });
        let owed = owed.collect();
        self.members.values_mut().for_each(|member| member.missing.clear());
        owed
    }

    fn enter(&mut self, phase: Phase, now: Nanos) {
        self.phase = phase;
        self.since = now;
    }

    /// When the load began or may have begun.
    fn begun(&self) -> Option<Nanos> {
        match self.phase {
            Phase::Committing { at } | Phase::Running { at } => Some(at),
            _ => None,
        }
    }

    /// The phase after this one, once it is due.
    fn next(&self, now: Nanos) -> Option<Phase> {
        let waited = now.saturating_sub(self.since);
        // Another controller commands: nothing more is sent from here.
        if let Some(why) = self.fenced().filter(|_| !matches!(self.phase, Phase::Over { .. })) {
            return Some(Phase::Over { why: Some(why) });
        }
        if let Some(why) = self.trouble(now) {
            return Some(Phase::Stopping { why, at: self.begun() });
        }
        match &self.phase {
            Phase::Preparing => {
                if self.all(|answer| *answer == Answer::Ready) {
                    return Some(Phase::Arming { at: now + self.times.lead });
                }
                let late = self.those_not(|answer| *answer == Answer::Ready);
                (waited > self.times.prepare)
                    .then(|| self.stopping(format!("not ready in time: {late}")))
            }
            Phase::Arming { at } => {
                let is_armed = |answer: &Answer| *answer == Answer::Armed { at: *at };
                if self.all(is_armed) {
                    return Some(Phase::Committing { at: *at });
                }
                let late = self.those_not(is_armed);
                (now + self.times.margin > *at)
                    .then(|| self.stopping(format!("not armed in time: {late}")))
            }
            Phase::Committing { at } => {
                if self.all(has_begun) {
                    return Some(Phase::Running { at: *at });
                }
                let late = self.those_not(has_begun);
                (now > *at + self.times.margin)
                    .then(|| self.stopping(format!("did not begin in time: {late}")))
            }
            Phase::Running { at } => self.after_running(*at, now),
            Phase::Stopping { why, at } => self.after_stopping(why, *at, now),
            Phase::Collecting { why } => self.after_collecting(why.as_ref(), now),
            Phase::Over { .. } => None,
        }
    }

    fn after_running(&self, at: Nanos, now: Nanos) -> Option<Phase> {
        // One that is lost may come back: until the planned end it is waited for, if that is known.
        let planned = at + self.duration;
        let is_over = |member: &Member| {
            is_finished(member)
                || member.last.as_ref().is_some_and(has_left)
                || ((now > planned || self.has_taken_over) && self.is_lost(member, now))
        };
        let is_sent = |member: &Member| is_over(member) || member.last == Some(Answer::Reporting);
        let all = |is: &dyn Fn(&Member) -> bool| self.members.values().all(is);
        if all(&is_over) || (all(&is_sent) && now > planned + self.times.collect) {
            return Some(Phase::Collecting { why: None });
        }
        if all(&is_sent) {
            return None;
        }
        let late = self.those_not(|answer| {
            matches!(answer, Answer::Finished(_) | Answer::Reporting) || has_left(answer)
        });
        // Agents have ended their loads by then; what they say of it may take as long as any message may.
        (now > planned + self.times.grace + self.times.lost)
            .then(|| self.stopping(format!("did not end in time: {late}")))
    }

    fn after_stopping(&self, why: &str, at: Option<Nanos>, now: Nanos) -> Option<Phase> {
        let waited = now.saturating_sub(self.since);
        // Nobody that was to load may still do so.
        let is_still = |member: &Member| {
            let last = member.last.as_ref();
            last.is_some_and(|last| has_left(last) || *last == Answer::Reporting)
                || is_finished(member)
        };
        let has_begun = at.is_some()
            || self.members.values().any(|one| one.last.as_ref().is_some_and(has_begun));
        let is_safe = !has_begun || waited > self.times.dead_man + self.times.grace;
        let all_still = self.members.values().all(is_still);
        (all_still || (is_safe && waited > self.times.lost))
            .then(|| Phase::Collecting { why: Some(why.to_owned()) })
    }

    fn after_collecting(&self, why: Option<&String>, now: Nanos) -> Option<Phase> {
        let waited = now.saturating_sub(self.since);
        let is_done = |member: &Member| {
            let is_free = matches!(
                member.last,
                None | Some(Answer::Free | Answer::Busy(_) | Answer::Fenced { .. })
            );
            let is_gone = waited > self.times.lost && self.is_lost(member, now);
            member.is_released || is_free || is_gone
        };
        (self.members.values().all(is_done) || waited > self.times.collect)
            .then(|| Phase::Over { why: why.cloned() })
    }

    fn stopping(&self, why: String) -> Phase {
        Phase::Stopping { why, at: self.begun() }
    }

    fn fenced(&self) -> Option<String> {
        let by = self.fenced_by?;
        Some(format!("another controller took over, with fencing number {by}"))
    }

    fn is_lost(&self, member: &Member, now: Nanos) -> bool {
        matches!(self.times.standing(member.heard, now), Standing::Lost { .. })
    }

    /// Why the run cannot go on.
    fn trouble(&self, now: Nanos) -> Option<String> {
        let is_before = matches!(
            self.phase,
            Phase::Preparing | Phase::Arming { .. } | Phase::Committing { .. }
        );
        let is_running = matches!(self.phase, Phase::Running { .. });
        if !is_before && !is_running {
            return None;
        }
        self.members.iter().find_map(|(id, member)| {
            let why = match &member.last {
                Some(Answer::Failed(why)) => format!("{id} failed: {why}"),
                Some(Answer::Busy(run)) => format!("{id} works for another run, {run}"),
                Some(Answer::TooLate { by }) => format!("{id} was told too late, by {by}"),
                // It was in the run and has forgotten it: its process ended, or its dead-man timer.
                Some(Answer::Free) => format!("{id} left the run"),
                _ => match self.times.standing(member.heard, now) {
                    Standing::Lost { since } if is_before || self.on_loss == OnLoss::Abort => {
                        format!("{id} was lost: not heard for {}", now.saturating_sub(since))
                    }
                    _ => return None,
                },
            };
            let goes_on = is_running && self.on_loss == OnLoss::Continue;
            (!goes_on && !is_finished(member)).then_some(why)
        })
    }

    fn all(&self, is: impl Fn(&Answer) -> bool) -> bool {
        self.members.values().all(|member| member.last.as_ref().is_some_and(&is))
    }

    fn those_not(&self, is: impl Fn(&Answer) -> bool) -> String {
        let not = self.members.iter().filter(|(_, m)| !m.last.as_ref().is_some_and(&is));
        not.map(|(id, _)| id.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// What an agent is to be told in this phase, again and again until it has answered.
    fn owed(&self, member: &Member, now: Nanos) -> Option<Order> {
        let last = member.last.as_ref();
        // What is in flight had its time.
        let at_once = now.saturating_sub(self.since) > self.times.grace;
        match &self.phase {
            Phase::Preparing => (last != Some(&Answer::Ready)).then(|| Order::Prepare {
                plan: self.plan.clone(),
                share: member.share,
                duration: self.duration,
                times: self.times.of_agents(),
                clock_error_max: self.times.clock_error_max,
            }),
            Phase::Arming { at } => {
                (last != Some(&Answer::Armed { at: *at })).then_some(Order::Arm { at: *at })
            }
            Phase::Committing { at } => {
                (!last.is_some_and(has_begun)).then_some(Order::Commit { at: *at })
            }
            // Nothing: an agent keeps to its plan by itself, and its beat tells how it stands.
            Phase::Running { .. } | Phase::Over { .. } => None,
            Phase::Stopping { at, .. } => match (at, last) {
                (
                    _,
                    Some(Answer::Free | Answer::Reporting | Answer::Finished(_) | Answer::Busy(_)),
                ) => None,
                (None, Some(Answer::Failed(_))) => Some(Order::Release),
                // What it has sent is collected first.
                (Some(_), Some(Answer::Failed(_))) => None,
                (None, Some(last)) if has_begun(last) => Some(Order::Stop { at_once }),
                (None, _) => Some(Order::Cancel),
                (Some(_), _) => Some(Order::Stop { at_once }),
            },
            Phase::Collecting { .. } if member.is_whole => {
                (!member.is_released).then_some(Order::Release)
            }
            Phase::Collecting { .. } => {
                let seqs = member.missing.clone();
                (!seqs.is_empty()).then_some(Order::Resend { seqs })
            }
        }
    }
}

impl RunTimes {
    /// Those after which an agent ends by itself.
    pub fn of_agents(&self) -> SeatTimes {
        SeatTimes { dead_man: self.dead_man, grace: self.grace }
    }

    fn standing(&self, heard: Nanos, now: Nanos) -> Standing {
        match now.saturating_sub(heard) {
            silent if silent > self.lost => Standing::Lost { since: heard },
            silent if silent > self.suspect => Standing::Suspect,
            _ => Standing::Heard,
        }
    }
}

fn is_finished(member: &Member) -> bool {
    matches!(member.last, Some(Answer::Finished(_)))
}

fn has_begun(answer: &Answer) -> bool {
    matches!(answer, Answer::Committed | Answer::Running | Answer::Reporting | Answer::Finished(_))
}

/// An agent that holds nothing of this run any more.
fn has_left(answer: &Answer) -> bool {
    matches!(answer, Answer::Free | Answer::Busy(_) | Answer::Failed(_) | Answer::Fenced { .. })
}
