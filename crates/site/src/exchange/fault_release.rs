//! Planted faults between the making of an answer and its sending. Owns what
//! the exchange asks them, and when; see also `fault`. Start reading at [`Exchange::plan_answer`].
//!
//! Without planted faults, each of these costs one branch.

use units::Nanos;

use super::output::Output;
use super::{Close, Exchange, State, Want};
use crate::fault::{AnsweredBefore, Faults, Release};

impl Exchange<'_> {
    /// Whether another answer may be queued behind what is to be sent. With faults none may: each answer is held for a
    /// time of its own.
    pub(super) fn has_room(&self) -> bool {
        self.output.has_room() && (self.site.faults.is_none() || self.output.is_empty())
    }

    /// Asks the planted faults what happens to the answer that is about to be made. Once for each answer.
    pub(super) fn plan_answer(&mut self) {
        if let Some(faults) = &self.site.faults {
            self.release =
                faults.plan(self.complete, AnsweredBefore { on_connection: self.requests });
        }
    }

    /// The answer was made and the next state is set: applies the planted faults to both.
    pub(super) fn plan_release(&mut self) {
        if self.site.faults.is_some() {
            self.release.place(|| self.output.body_at());
            self.end_if_planned();
        }
    }

    /// Closes the connection after this answer, without announcing it, if a planted fault says so.
    pub(super) fn end_if_planned(&mut self) {
        if self.release.flaws.ends && matches!(self.state, State::Head(_)) {
            self.state = State::Close(Close::Linger);
        }
    }

    /// From when on the output may be sent, `now` or later.
    pub(super) fn released(&self, now: Nanos) -> Nanos {
        match &self.site.faults {
            Some(faults) if !self.output.is_empty() => {
                self.release.next(faults, self.output.sent(), now)
            }
            _ => now,
        }
    }

    /// What is wanted while there is output.
    pub(super) fn to_send(&self, now: impl FnOnce() -> Nanos) -> Want<'_> {
        match &self.site.faults {
            None => self.output.next(),
            Some(faults) => want_released(&self.output, &self.release, faults, now()),
        }
    }
}

/// The part of the output, which is not empty, that may be sent now.
pub(super) fn want_released<'a>(
    output: &'a Output,
    release: &Release,
    faults: &Faults,
    now: Nanos,
) -> Want<'a> {
    let sent = output.sent();
    let until = release.next(faults, sent, now);
    if until > now {
        return Want::Hold(until);
    }
    match (output.next(), release.bytes_max(sent, now)) {
        (Want::Write { head, .. } | Want::File { head, .. }, Some(most)) => {
            Want::Write { head: &head[..most], body: &[] }
        }
        (all, _) => all,
    }
}
