//! An agent's part in a run: what it answers to each order, and what it does. Owns the states, not how a load is
//! made or a message sent: what is to be done is returned. Start reading at [`Seat::obey`].
//!
//! ```text
//! free -> preparing -> ready -> armed -> committed -> running -> finished -> free
//! ```
//!
//! An agent begins only with both orders in hand, `Arm` and `Commit`, and by its own clock. It needs nobody to end:
//! when nothing came from its controller for as long as its dead-man timer allows, and at the planned end plus a
//! grace, its load is over, whatever the network does.

use std::collections::BTreeMap;

use units::Nanos;

use crate::ids::Id;
use crate::message::AgentTotals;
use crate::order::{Answer, Command, Order, SeatTimes};

/// How long a run whose load is over keeps others out, unless it is released before.
const COLLECTED_FOR: Nanos = Nanos::from_secs(60);

/// What an agent has to do now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deed {
    /// Fetch and check a plan; [`Seat::prepared`] tells how that ended.
    Prepare(Order),
    /// Start the load at this instant of the agent's own clock.
    Begin {
        /// On the agent's clock.
        at: Nanos,
    },
    /// End the load; [`Seat::finished`] tells when it has ended.
    End {
        /// Whether what is in flight is given up.
        at_once: bool,
    },
    /// Send these messages again.
    Resend(Vec<u64>),
    /// Give up what was prepared.
    Forget,
    /// Delete the spool.
    Delete,
}

/// Where an agent is in a run.
#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    Preparing,
    Ready,
    Armed {
        run_at: Nanos,
        at: Nanos,
    },
    Committed {
        at: Nanos,
    },
    /// `ending`: since when it is being ended.
    Running {
        at: Nanos,
        ending: Option<Nanos>,
    },
    Reporting,
    Finished {
        totals: AgentTotals,
        since: Nanos,
    },
    Failed(String),
}

/// An agent's part in a run.
#[derive(Debug, Default)]
pub struct Seat {
    held: Option<Held>,
    /// Runs that were here and are over, each with the highest fencing number that commanded it: a message that was
    /// long on its way, and a controller that was replaced, do not begin one again.
    ended: BTreeMap<Id, u64>,
}

/// The run that an agent works for.
#[derive(Debug)]
struct Held {
    run: Id,
    epoch: u64,
    /// The order that began it.
    prepare: Order,
    duration: Nanos,
    times: SeatTimes,
    heard: Nanos,
    state: State,
}

impl Seat {
    /// Answers an order. `now` is on the agent's clock, and `to_agent` says when an instant of the run clock is on it;
    /// `None` while the run clock is not known well enough.
    pub fn obey(
        &mut self,
        command: &Command,
        now: Nanos,
        to_agent: impl Fn(Nanos) -> Option<Nanos>,
    ) -> (Answer, Option<Deed>) {
        let Some(held) = &mut self.held else { return self.begin(command, now) };
        if held.run != command.run {
            // A run that is over does not keep others out: what was not collected of it stays on disk.
            // One whose result is being collected does, for a while.
            let is_over = match held.state {
                State::Finished { since, .. } => now.saturating_sub(since) > COLLECTED_FOR,
                State::Failed(_) => true,
                _ => false,
            };
            if is_over {
                return self.begin(command, now);
            }
            return match command.order {
                // It is not here, which is what these ask for.
                Order::Cancel | Order::Release | Order::Resend { .. } | Order::Stop { .. } => {
                    (Answer::Free, None)
                }
                _ => (Answer::Busy(held.run.clone()), None),
            };
        }
        if command.epoch < held.epoch {
            return (Answer::Fenced { by: held.epoch }, None);
        }
        held.epoch = command.epoch;
        held.heard = now;
        held.start_if_due(now);
        if matches!(command.order, Order::Prepare { .. }) && command.order != held.prepare {
            let why = "it was given another share or plan of this run before".to_owned();
            return (Answer::Failed(why), None);
        }
        match (&command.order, &held.state) {
            // A stop before the start takes back the commitment.
            (
                Order::Cancel | Order::Stop { .. },
                State::Preparing | State::Ready | State::Armed { .. } | State::Committed { .. },
            ) => {
                self.leave();
                (Answer::Free, Some(Deed::Forget))
            }
            (Order::Cancel | Order::Release, State::Failed(_))
            | (Order::Release, State::Finished { .. }) => {
                self.leave();
                (Answer::Free, Some(Deed::Delete))
            }
            (Order::Arm { at }, State::Ready | State::Armed { .. }) => held.arm(*at, now, to_agent),
            (Order::Commit { at }, State::Armed { run_at, at: own }) => {
                held.commit(*at, (*run_at, *own), now)
            }
            (Order::Stop { at_once }, State::Running { at, ending }) => {
                let is_new = *at_once || ending.is_none();
                held.state = State::Running { at: *at, ending: Some(ending.unwrap_or(now)) };
                (Answer::Running, is_new.then_some(Deed::End { at_once: *at_once }))
            }
            (Order::Resend { seqs }, state) => (state.answer(), Some(Deed::Resend(seqs.clone()))),
            // Anything else has been done, or comes too late: what is now is the answer.
            (_, state) => (state.answer(), None),
        }
    }

    fn begin(&mut self, command: &Command, now: Nanos) -> (Answer, Option<Deed>) {
        let Order::Prepare { duration, times, .. } = command.order else {
            return (Answer::Free, None);
        };
        if let Some(by) = self.ended.get(&command.run) {
            let answer =
                if command.epoch < *by { Answer::Fenced { by: *by } } else { Answer::Free };
            return (answer, None);
        }
        self.leave();
        self.held = Some(Held {
            run: command.run.clone(),
            epoch: command.epoch,
            prepare: command.order.clone(),
            duration,
            times,
            heard: now,
            state: State::Preparing,
        });
        (Answer::Preparing, Some(Deed::Prepare(command.order.clone())))
    }

    /// The run that it holds is over.
    fn leave(&mut self) {
        if let Some(held) = self.held.take() {
            self.ended.insert(held.run, held.epoch);
        }
    }

    /// How preparing ended.
    pub fn prepared(&mut self, run: &Id, result: Result<(), String>) {
        if let Some(held) = self.held.as_mut().filter(|held| held.run == *run)
            && held.state == State::Preparing
        {
            held.state = result.map_or_else(State::Failed, |()| State::Ready);
        }
    }

    /// The load is over, and its result is being sent: nothing ends it any more.
    pub fn reporting(&mut self, run: &Id) {
        if let Some(held) = self.held.as_mut().filter(|held| held.run == *run)
            && matches!(held.state, State::Committed { .. } | State::Running { .. })
        {
            held.state = State::Reporting;
        }
    }

    /// All is sent, or its worker ended without a result.
    pub fn finished(&mut self, run: &Id, result: Result<AgentTotals, String>, now: Nanos) {
        if let Some(held) = self.held.as_mut().filter(|held| held.run == *run) {
            held.state =
                result.map_or_else(State::Failed, |totals| State::Finished { totals, since: now });
        }
    }

    /// The controller was heard, by an order or its beat.
    pub fn heard(&mut self, run: &Id, epoch: u64, now: Nanos) {
        if let Some(held) = self.held.as_mut().filter(|held| held.run == *run)
            && epoch >= held.epoch
        {
            held.epoch = epoch;
            // A beat that was long on its way does not take back what came after it was sent.
            held.heard = held.heard.max(now);
        }
    }

    /// What is to be done because time has passed.
    pub fn tick(&mut self, now: Nanos) -> Option<Deed> {
        let held = self.held.as_mut()?;
        let times = held.times;
        let is_alone = now > held.heard.saturating_add(times.dead_man);
        held.start_if_due(now);
        match held.state {
            State::Preparing | State::Ready | State::Armed { .. } | State::Committed { .. }
                if is_alone =>
            {
                self.leave();
                Some(Deed::Forget)
            }
            State::Running { at, ending } => {
                let planned = at.saturating_add(held.duration);
                let end = ending.map_or(planned, |since| since.min(planned));
                if now > end.saturating_add(times.grace) {
                    return Some(Deed::End { at_once: true });
                }
                (is_alone && ending.is_none()).then(|| {
                    held.state = State::Running { at, ending: Some(now) };
                    Deed::End { at_once: false }
                })
            }
            _ => None,
        }
    }

    /// The run that it works for, and what it would answer.
    pub fn standing(&self) -> Option<(&Id, Answer)> {
        self.held.as_ref().map(|held| (&held.run, held.state.answer()))
    }

    /// The fencing number of who commands a run here; 0 if it is not the one that is held.
    pub fn epoch(&self, run: &Id) -> u64 {
        self.held.as_ref().filter(|held| held.run == *run).map_or(0, |held| held.epoch)
    }

    /// Until when its load may run at most, on the agent's clock: the controller was heard, and the plan has an end.
    pub fn deadline(&self) -> Option<Nanos> {
        let held = self.held.as_ref()?;
        let alone = held.heard.saturating_add(held.times.dead_man);
        let (State::Committed { at } | State::Running { at, .. }) = held.state else {
            return None;
        };
        let end = at.saturating_add(held.duration).saturating_add(held.times.grace);
        // Before the start the timer is the seat's.
        Some(alone.max(at).min(end))
    }

    /// Whether its load may be running.
    pub fn is_loading(&self) -> bool {
        matches!(self.held, Some(Held { state: State::Running { .. }, .. }))
    }
}

impl Held {
    fn start_if_due(&mut self, now: Nanos) {
        if let State::Committed { at } = self.state
            && now >= at
        {
            self.state = State::Running { at, ending: None };
        }
    }

    fn arm(
        &mut self,
        run_at: Nanos,
        now: Nanos,
        to_agent: impl Fn(Nanos) -> Option<Nanos>,
    ) -> (Answer, Option<Deed>) {
        let Some(at) = to_agent(run_at) else {
            return (Answer::Ready, None);
        };
        if at <= now {
            return (Answer::TooLate { by: now.saturating_sub(at) }, None);
        }
        self.state = State::Armed { run_at, at };
        (Answer::Armed { at: run_at }, None)
    }

    fn commit(
        &mut self,
        ordered: Nanos,
        (run_at, at): (Nanos, Nanos),
        now: Nanos,
    ) -> (Answer, Option<Deed>) {
        if ordered != run_at {
            // Of another try: the one that is armed now is not committed to.
            return (Answer::Armed { at: run_at }, None);
        }
        if at <= now {
            return (Answer::TooLate { by: now.saturating_sub(at) }, None);
        }
        self.state = State::Committed { at };
        (Answer::Committed, Some(Deed::Begin { at }))
    }
}

impl State {
    fn answer(&self) -> Answer {
        match self {
            Self::Preparing => Answer::Preparing,
            Self::Ready => Answer::Ready,
            Self::Armed { run_at, .. } => Answer::Armed { at: *run_at },
            Self::Committed { .. } => Answer::Committed,
            Self::Running { .. } => Answer::Running,
            Self::Reporting => Answer::Reporting,
            Self::Finished { totals, .. } => Answer::Finished(*totals),
            Self::Failed(why) => Answer::Failed(why.clone()),
        }
    }
}
