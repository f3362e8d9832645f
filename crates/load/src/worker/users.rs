//! Users that a scenario plays: their requests are begun, they are told how each ended, and they pause or leave. Owns
//! their turns. Start reading at [`Worker::start_user`].
//!
//! Each user has one place, however many requests it makes at once; the place is free again when all of them have
//! ended.

use record::{Answer, Asking, LoadPlan, Scenario, Seats, Turn, Users};
use sys::driver::{Driver, Slot};
use units::Nanos;
use wire::RequestKind;

use super::{BACKOFF, RequestLoop, Worker};
use crate::conn::{PendingRequest, StartAction};
use crate::free::{FreePlace, FreePlaces};
use crate::user::KeptReply;

/// Who plays the users, if anybody does, and the state of their turns.
pub(super) struct PlayedUsers<'a> {
    pub(super) played: Option<Box<dyn Users + 'a>>,
    /// The requests of the user whose turn it is.
    pub(super) asking: Asking,
    /// Users that have left.
    pub(super) n_left: u32,
    /// Slots whose request goes on, and is sent as soon as nothing more is known of them.
    pub(super) going_on: Vec<Slot>,
}

impl<'a> PlayedUsers<'a> {
    pub(super) fn new(plan: &LoadPlan, seats: Seats, scenario: Option<&'a dyn Scenario>) -> Self {
        let played = scenario.map(|scenario| scenario.users(seats));
        let n_slots = if played.is_some() { seats.n as usize } else { 0 };
        Self {
            played,
            asking: Asking::new(plan.origins.len() as u32),
            n_left: 0,
            going_on: Vec::with_capacity(n_slots),
        }
    }

    /// A place for each user that does not leave before it begins, from the time when it begins.
    pub(super) fn places(&mut self, seats: Seats, begins: &impl Fn(Slot) -> Nanos) -> FreePlaces {
        let users = self.played.as_mut().expect("only called where there are users");
        let mut places = FreePlaces::new(0, 1, |_| Nanos::ZERO);
        for index in 0..seats.n {
            match users.first(seats.first + index) {
                Turn::After(pause) => {
                    let slot = Slot(index);
                    places.put(FreePlace { slot, from: begins(slot).saturating_add(pause) });
                }
                Turn::Leaves => self.n_left += 1,
                Turn::GoesOn | Turn::Fails(_) => unreachable!("nothing was asked that could go on"),
            }
        }
        places
    }
}

/// The method of a request, as it stands in its first line.
fn method(request: &[u8]) -> &[u8] {
    request.split(|byte| *byte == b' ').next().unwrap_or_default()
}

impl<D: Driver> Worker<'_, D> {
    /// It is a user's turn.
    pub(super) fn start_user(&mut self, free: FreePlace, due: Nanos) {
        self.ask_user(free.slot);
        let n_asked = self.users.asking.requests().len() as u64;
        if n_asked == 0 {
            match self.users.asking.comes_again() {
                Some(pause) => {
                    let from = self.now.saturating_add(pause);
                    self.places.free.put(FreePlace { slot: free.slot, from });
                }
                None => self.users.n_left += 1,
            }
            return;
        }
        self.budget.quota = self.budget.quota.saturating_sub(n_asked);
        self.budget.n_out += n_asked;
        for _ in 0..n_asked {
            self.recorder.started();
        }
        let begun = self.begin_asked(free.slot, due);
        self.follow(begun, free, due);
    }

    /// Requests that go on are sent at once, whatever else is due.
    pub(super) fn start_going_on(&mut self) {
        self.send_unsent();
        while let Some(slot) = self.users.going_on.pop() {
            self.waiting.was_busy = true;
            self.ask_user(slot);
            assert_eq!(self.users.asking.requests().len(), 1, "a request goes on as one");
            let user = self.conns[slot.0 as usize].user.as_ref().expect("made with the connection");
            let due = user.chain.due();
            let begun = self.begin_asked(slot, due);
            self.carry_on(begun, slot);
            self.send_unsent();
        }
    }

    /// Lets a user say what to request.
    fn ask_user(&mut self, slot: Slot) {
        let users = self.users.played.as_mut().expect("only called where there are users");
        self.users.asking.clear();
        users.ask(self.share.first_conn + slot.0, &mut self.users.asking);
        for origin in self.users.asking.take_added() {
            self.destinations.add(self.plan, origin);
        }
    }

    /// Begins the requests of a user, at least one.
    fn begin_asked(&mut self, slot: Slot, due: Nanos) -> StartAction {
        let conn = &mut self.conns[slot.0 as usize];
        let user = conn.user.as_mut().expect("made with the connection");
        user.asked.clear();
        user.asked.extend_from_slice(self.users.asking.bytes());
        let mut begun = None;
        for asked in self.users.asking.requests() {
            let kind = if asked.is_head { RequestKind::Head } else { RequestKind::Other };
            let mut out = PendingRequest::new(due, asked.number, kind);
            out.asked = (asked.bytes.start as u32, asked.bytes.end as u32);
            let asked_bytes = &self.users.asking.bytes()[asked.bytes.clone()];
            out.may_retry = self.plan.retry && record::is_idempotent(method(asked_bytes));
            match begun {
                None => begun = Some(conn.begin(out, self.users.asking.origin, &self.common)),
                Some(_) => conn.begin_behind(out),
            }
        }
        begun.expect("at least one was asked")
    }

    /// Sends a user's requests, as far as this connection allows; `first` is counted as sent.
    pub(super) fn send_asked(&mut self, slot: Slot, first: PendingRequest, sent: Nanos) {
        self.buffers.rendered.clear();
        let conn = &mut self.conns[slot.0 as usize];
        let mut next = Some(first);
        while let Some(PendingRequest { asked: (start, end), .. }) = next {
            let user = conn.user.as_ref().expect("made with the connection");
            self.buffers.rendered.extend_from_slice(&user.asked[start as usize..end as usize]);
            next = conn.next_to_send(sent, &self.common);
        }
        self.send_plain(slot);
    }

    /// Counts what ended, tells the user, and gives it its next turn.
    pub(super) fn end_of_users(&mut self, slot: Slot) {
        let time = self.time();
        let users = self.users.played.as_mut().expect("only called where there are users");
        let conn = &mut self.conns[slot.0 as usize];
        let chain = &mut conn.user.as_mut().expect("made with the connection").chain;
        let mut kept = self.common.kept.drain(..).peekable();
        let mut turn = Turn::Leaves;
        for (index, mut sample) in self.batch.ended.drain(..).enumerate() {
            sample.conn = self.share.first_conn + slot.0;
            let of_it = kept.next_if(|(place, _)| *place == index);
            let KeptReply { head, body } = of_it.map(|(_, kept)| kept).unwrap_or_default();
            turn = users.request_ended(&Answer { sample: &sample, head: &head, body: &body });
            match turn {
                Turn::GoesOn => {
                    chain.add(&sample);
                    self.recorder.followed();
                    continue;
                }
                Turn::Fails(outcome) => sample.outcome = outcome,
                Turn::After(_) | Turn::Leaves => {}
            }
            chain.close(&mut sample);
            self.recorder.ended(&sample, time);
            if self.plan.lost_max.is_some() && sample.is_lost() {
                self.stops.lost.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            }
            self.budget.n_out -= 1;
        }
        if conn.has_request() {
            return;
        }
        let pause = match (turn, &mut self.request_loop) {
            (Turn::Leaves, _) => {
                self.users.n_left += 1;
                return;
            }
            (Turn::GoesOn, _) => {
                self.users.going_on.push(slot);
                return;
            }
            (Turn::After(pause), RequestLoop::Closed(rest)) => pause.saturating_add(rest.next()),
            (Turn::Fails(_), RequestLoop::Closed(rest)) => rest.next(),
            (Turn::After(pause), RequestLoop::Open(_)) => pause,
            (Turn::Fails(_), RequestLoop::Open(_)) => Nanos::ZERO,
        };
        if self.timeouts.is_resting(slot, BACKOFF) {
            self.places.parked[slot.0 as usize] += 1;
        } else {
            self.places.free.put(FreePlace { slot, from: self.now.saturating_add(pause) });
        }
    }
}
