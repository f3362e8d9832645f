//! Users that a scenario plays: what they ask is begun, what became of it they are told, and they pause
//! or leave. Owns their turns; must not know what they do. Start reading at [`Worker::start_user`].
//!
//! One place a user, however many requests it asks at once; the place is free again when all of them
//! have ended.

use record::{Answer, Seats, Turn, Users};
use sys::driver::{Driver, Slot};
use units::Nanos;
use wire::RequestKind;

use super::places::routes;
use super::{BACKOFF, Drive, Worker};
use crate::conn::{Begun, Out};
use crate::free::{Free, FreePlaces};
use crate::proxy;
use crate::user::Kept;

/// A place for each user that does not leave before it began, from when it begins; and how many left.
pub(super) fn places(
    users: &mut dyn Users,
    seats: Seats,
    begins: &impl Fn(Slot) -> Nanos,
) -> (FreePlaces, u32) {
    let mut places = FreePlaces::new(0, 1, |_| Nanos::ZERO);
    let mut n_left = 0;
    for index in 0..seats.n {
        match users.first(seats.first + index) {
            Turn::After(pause) => {
                let slot = Slot(index);
                places.put(Free { slot, from: begins(slot).saturating_add(pause) });
            }
            Turn::Leaves => n_left += 1,
            Turn::GoesOn | Turn::Fails(_) => unreachable!("nothing was asked that could go on"),
        }
    }
    (places, n_left)
}

/// The method of a request, as it stands in its first line.
fn method(request: &[u8]) -> &[u8] {
    request.split(|byte| *byte == b' ').next().unwrap_or_default()
}

impl<D: Driver> Worker<'_, D> {
    /// A user has its turn.
    pub(super) fn start_user(&mut self, free: Free, due: Nanos) {
        self.ask_user(free.slot);
        let n_asked = self.asking.requests().len() as u64;
        if n_asked == 0 {
            match self.asking.comes_again() {
                Some(pause) => {
                    let from = self.now.saturating_add(pause);
                    self.free.put(Free { slot: free.slot, from });
                }
                None => self.n_left += 1,
            }
            return;
        }
        self.quota = self.quota.saturating_sub(n_asked);
        self.n_out += n_asked;
        for _ in 0..n_asked {
            self.recorder.started();
        }
        let begun = self.begin_asked(free.slot, due);
        self.follow(begun, free, due);
    }

    /// Requests that go on are asked at once, whatever else is due.
    pub(super) fn start_going_on(&mut self) {
        self.send_unsent();
        while let Some(slot) = self.going_on.pop() {
            self.was_busy = true;
            self.ask_user(slot);
            assert_eq!(self.asking.requests().len(), 1, "a request goes on as one");
            let user = self.conns[slot.0 as usize].user.as_ref().expect("made with the connection");
            let due = user.chain.due();
            let begun = self.begin_asked(slot, due);
            self.carry_on(begun, slot);
            self.send_unsent();
        }
    }

    /// Lets a user say what it asks.
    fn ask_user(&mut self, slot: Slot) {
        let users = self.users.as_mut().expect("only called where there are users");
        self.asking.clear();
        users.ask(self.share.first_conn + slot.0, &mut self.asking);
        for origin in self.asking.take_added() {
            self.routes.push(routes(self.plan, &origin));
            self.tunnels.push(proxy::connect_request(self.plan, &origin));
            self.origins.push(origin);
        }
    }

    /// Begins what a user asked, at least one request.
    fn begin_asked(&mut self, slot: Slot, due: Nanos) -> Begun {
        let conn = &mut self.conns[slot.0 as usize];
        let user = conn.user.as_mut().expect("made with the connection");
        user.asked.clear();
        user.asked.extend_from_slice(self.asking.bytes());
        let mut begun = None;
        for asked in self.asking.requests() {
            let kind = if asked.is_head { RequestKind::Head } else { RequestKind::Other };
            let mut out = Out::new(due, asked.number, kind);
            out.asked = (asked.bytes.start as u32, asked.bytes.end as u32);
            let asked_bytes = &self.asking.bytes()[asked.bytes.clone()];
            out.may_retry = self.plan.retry && record::is_idempotent(method(asked_bytes));
            match begun {
                None => begun = Some(conn.begin(out, self.asking.origin, &self.common)),
                Some(_) => conn.begin_behind(out),
            }
        }
        begun.expect("at least one was asked")
    }

    /// Sends what a user asked, as far as it may go on this connection; `first` is counted as sent.
    pub(super) fn send_asked(&mut self, slot: Slot, first: Out, sent: Nanos) {
        self.rendered.clear();
        let conn = &mut self.conns[slot.0 as usize];
        let mut next = Some(first);
        while let Some(Out { asked: (start, end), .. }) = next {
            let user = conn.user.as_ref().expect("made with the connection");
            self.rendered.extend_from_slice(&user.asked[start as usize..end as usize]);
            next = conn.next_to_send(sent, &self.common);
        }
        self.send_plain(slot);
    }

    /// Counts what ended, tells it, and gives the user its next turn.
    pub(super) fn end_of_users(&mut self, slot: Slot) {
        let time = self.time();
        let users = self.users.as_mut().expect("only called where there are users");
        let conn = &mut self.conns[slot.0 as usize];
        let chain = &mut conn.user.as_mut().expect("made with the connection").chain;
        let mut kept = self.common.kept.drain(..).peekable();
        let mut turn = Turn::Leaves;
        for (index, mut sample) in self.ended.drain(..).enumerate() {
            sample.conn = self.share.first_conn + slot.0;
            let of_it = kept.next_if(|(place, _)| *place == index);
            let Kept { head, body } = of_it.map(|(_, kept)| kept).unwrap_or_default();
            turn = users.heard(&Answer { sample: &sample, head: &head, body: &body });
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
            self.n_out -= 1;
        }
        if conn.has_request() {
            return;
        }
        let pause = match (turn, &mut self.drive) {
            (Turn::Leaves, _) => {
                self.n_left += 1;
                return;
            }
            (Turn::GoesOn, _) => {
                self.going_on.push(slot);
                return;
            }
            (Turn::After(pause), Drive::Closed(rest)) => pause.saturating_add(rest.next()),
            (Turn::Fails(_), Drive::Closed(rest)) => rest.next(),
            (Turn::After(pause), Drive::Open(_)) => pause,
            (Turn::Fails(_), Drive::Open(_)) => Nanos::ZERO,
        };
        if self.timeouts.is_resting(slot, BACKOFF) {
            self.parked[slot.0 as usize] += 1;
        } else {
            self.free.put(Free { slot, from: self.now.saturating_add(pause) });
        }
    }
}
