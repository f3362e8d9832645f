//! Users that a script plays: each connection sends what request() returns, and waits as delay() says. Owns their turns
//! and what wrk counts of them. Start reading at [`ScriptUsers`].

use std::sync::Arc;

use record::{Answer, Asking, Outcome, Scenario, Seats, Turn, Users, WantedBodies, Wants};
use units::Nanos;

use super::state::State;
use super::{Scripts, panicked, requests};
use crate::command::{ExitMessage, Texts};
use crate::wrk::script_counts::ScriptCounts;

/// All users of a load.
pub(crate) struct ScriptUsers {
    scripts: Arc<Scripts>,
    /// The number, in the plan, of each thread's origin.
    origins: Vec<u32>,
}

impl ScriptUsers {
    pub(crate) fn new(scripts: Arc<Scripts>, origins: Vec<u32>) -> Self {
        scripts.shared.begin();
        Self { scripts, origins }
    }
}

impl Scenario for ScriptUsers {
    fn users(&self, seats: Seats) -> Box<dyn Users + '_> {
        let thread = seats.thread as usize;
        Box::new(OfThread {
            scripts: &self.scripts,
            state: self.scripts.of(&self.scripts.threads, thread),
            thread,
            origin: *self.scripts.of(&self.origins, thread),
            first: seats.first,
            awaited: vec![Awaited::default(); seats.n as usize],
            counts: ScriptCounts::default(),
        })
    }
}

/// The users of one thread.
struct OfThread<'s> {
    scripts: &'s Scripts,
    state: &'s State,
    thread: usize,
    origin: u32,
    /// Number of the first user.
    first: u32,
    awaited: Vec<Awaited>,
    counts: ScriptCounts,
}

/// What a user waits for.
#[derive(Debug, Clone, Copy, Default)]
struct Awaited {
    n: usize,
    /// Whether all replies since its last turn were good.
    is_well: bool,
}

impl Users for OfThread<'_> {
    fn wants(&self) -> Wants {
        match self.scripts.asks.response {
            true => Wants { heads: true, bodies: WantedBodies::All, bytes_max: None },
            false => Wants::default(),
        }
    }

    fn first(&mut self, _user: u32) -> Turn {
        self.turn()
    }

    /// A user of a stopped thread sends nothing, and so leaves.
    fn ask(&mut self, user: u32, asking: &mut Asking) {
        if self.is_over() {
            return;
        }
        let asks = self.scripts.asks;
        let own;
        let bytes = if asks.requests {
            match self.state.ask() {
                Ok(bytes) => own = bytes,
                Err(why) => return self.scripts.shared.fail(panicked(&why)),
            }
            own.as_slice()
        } else {
            self.scripts.first(self.thread)
        };
        asking.origin = self.origin;
        let n = if asks.pipeline == 1 && !bytes.is_empty() {
            asking.request(bytes, 0);
            1
        } else {
            match requests::split(bytes) {
                Ok(places) => {
                    places.iter().for_each(|place| asking.request(&bytes[place.clone()], 0));
                    places.len()
                }
                // wrk would wait for replies to nothing, or for ever.
                Err(wrong) => {
                    let texts = Texts::err(format!("{wrong}\n"));
                    return self.scripts.shared.fail(ExitMessage { texts, code: 1 });
                }
            }
        };
        self.awaited[(user - self.first) as usize] = Awaited { n, is_well: true };
    }

    fn request_ended(&mut self, answer: &Answer<'_>) -> Turn {
        let sample = answer.sample;
        let is_well = sample.outcome == Outcome::Ok;
        if self.is_over() {
            self.counts.late += u64::from(is_well);
            return Turn::Leaves;
        }
        let awaited = &mut self.awaited[(sample.conn - self.first) as usize];
        awaited.n = awaited.n.saturating_sub(1);
        awaited.is_well &= is_well;
        let Awaited { n, is_well: are_all_well } = *awaited;
        if is_well {
            self.counts.complete += 1;
            self.counts.bad_status += u64::from(sample.status > 399);
            if n == 0 {
                self.counts.latency.service.record(sample.done.saturating_sub(sample.sent));
            }
            if self.scripts.asks.response
                && let Err(why) = self.state.answer(sample.status, answer.head, answer.body)
            {
                self.scripts.shared.fail(panicked(&why));
            }
            if self.is_over() {
                return Turn::Leaves;
            }
        }
        // After a lost connection wrk sends again at once.
        if n > 0 || !are_all_well { Turn::after(Nanos::ZERO) } else { self.turn() }
    }
}

impl OfThread<'_> {
    fn is_over(&self) -> bool {
        self.scripts.shared.is_stopped(self.thread)
    }

    /// The next turn, after the pause that the script requests.
    fn turn(&self) -> Turn {
        if !self.scripts.asks.delay {
            return Turn::after(Nanos::ZERO);
        }
        match self.state.pause() {
            // A negative or invalid number is no pause; and no pause is longer than any load.
            Ok(millis) => Turn::after(Nanos::from_secs_f64(millis.trunc() / 1e3)),
            Err(why) => {
                self.scripts.shared.fail(panicked(&why));
                Turn::Leaves
            }
        }
    }
}

impl Drop for OfThread<'_> {
    /// The thread's load has ended: its counts are added to those of the others.
    fn drop(&mut self) {
        let mut sum = self.scripts.counts.lock().expect("nobody panics with it");
        let sum = sum.get_or_insert_default();
        sum.complete += self.counts.complete;
        sum.late += self.counts.late;
        sum.bad_status += self.counts.bad_status;
        sum.latency.merge(&self.counts.latency);
    }
}
