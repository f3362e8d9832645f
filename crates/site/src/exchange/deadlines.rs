//! How long each wait of a connection may take, and what happens then. Owns every deadline but those of gateways (see
//! `gateway_relay`). Start reading at [`Exchange::timed_out`].

use units::Nanos;

use super::{Close, Exchange, State};

impl Exchange<'_> {
    /// When the current wait ends; see [`Exchange::timed_out`].
    pub fn deadline(&self) -> Nanos {
        self.deadline
    }

    /// The time is `now`. If that is past the deadline: an idle connection is closed, a request that
    /// is under way is refused (408), an answer that the client does not take is cut.
    pub fn timed_out(&mut self, now: Nanos) {
        if now < self.deadline {
            return;
        }
        // The client is not late: a planted fault holds the answer, and that time does not count.
        if self.released(now) > now {
            return self.rearm(now);
        }
        let is_sending = self.tls.as_ref().is_some_and(|tls| tls.is_sending());
        if !self.output.is_empty() || is_sending {
            self.lost(now);
            self.state = State::Close(Close::Reset);
        } else if self.is_idle() || matches!(self.state, State::Close(_) | State::Handshake(_)) {
            self.state = State::Close(Close::Normal);
        } else if matches!(self.state, State::Gateway) {
            self.gateway_timed_out(now);
        } else {
            self.complete = now;
            self.refuse(408, now);
        }
        self.rearm(now);
    }

    /// Sets the deadline of the current wait.
    pub(super) fn rearm(&mut self, now: Nanos) {
        let limits = &self.site.config.limits;
        let (from, length) = match &self.state {
            _ if !self.output.is_empty() => (self.released(now), limits.write_timeout),
            State::Head(None) => (now, self.site.config.keep_alive.timeout),
            State::Head(Some(began)) => (*began, limits.head_timeout),
            State::Body(body) => {
                let earned_s = body.data / u64::from(limits.body_rate_min.max(1));
                (body.began, limits.body_timeout.saturating_add(Nanos::from_secs(earned_s)))
            }
            State::Answer => (now, limits.head_timeout),
            State::Gateway => (self.gateway_deadline(now), Nanos::ZERO),
            State::Handshake(began) => (*began, limits.handshake_timeout),
            // An alert or close_notify may still have to leave.
            State::Close(_) if self.tls.is_some() => (now, limits.write_timeout),
            State::Close(_) => (now, Nanos::MAX),
        };
        self.deadline = from.saturating_add(length);
    }
}
