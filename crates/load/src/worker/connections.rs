//! What a worker does to one connection: connect, shake hands, send, receive, leave. Owns the path of bytes to the
//! driver and back. Start reading at [`Worker::take`].

use rand::SeedableRng as _;
use rand_pcg::Pcg64Mcg;
use sys::driver::{Driver, Leave, Slot, What};
use units::Nanos;
use wire::tls::TlsError;

use super::{BACKOFF, BACKOFF_MS, CONTINUE, TIMEOUT, Worker};
use crate::conn::{ConnState, NextStep, ReceiveResult};
use crate::prepared::Fill;

impl<D: Driver> Worker<'_, D> {
    /// Takes a completion; `ended` gets what it ended.
    #[inline]
    pub(super) fn take(&mut self, slot: Slot, what: What) {
        let index = slot.0 as usize;
        let heard = match what {
            What::Received if self.conns[index].tls.is_some() => return self.decrypt(slot),
            What::Received => {
                let at = self.driver.arrived().unwrap_or(self.now);
                let bytes = self.driver.received();
                self.conns[index].received(bytes, at, &mut self.common, &mut self.batch.ended)
            }
            What::Discarded(n_bytes) => {
                let at = self.driver.arrived().unwrap_or(self.now);
                self.conns[index].discarded(n_bytes, at, &mut self.common, &mut self.batch.ended)
            }
            What::Connected => return self.connected(slot),
            What::Closed => {
                let conn = &mut self.conns[index];
                if conn.state() == ConnState::Handshaking
                    && let (Some(secure), Some(client)) = (&mut self.secure, &conn.tls)
                    && let Err(error) = client.end()
                {
                    secure.failed(&error);
                }
                ReceiveResult::then(conn.closed(self.now, &mut self.common, &mut self.batch.ended))
            }
            What::Failed(failure) => {
                let conn = &mut self.conns[index];
                ReceiveResult::then(conn.failed(
                    failure,
                    self.now,
                    &mut self.common,
                    &mut self.batch.ended,
                ))
            }
        };
        self.settle(slot, heard);
    }

    /// Does what the received bytes, their end or their absence require.
    #[inline]
    pub(super) fn settle(&mut self, slot: Slot, heard: ReceiveResult) {
        let ReceiveResult { first_byte, continues, discard, then } = heard;
        if then != NextStep::Keep {
            match then {
                NextStep::Tunnelled => self.established(slot),
                _ => self.leave(slot, then),
            }
            return;
        }
        if discard > 0 {
            self.driver.discard(slot, discard);
        }
        if continues {
            self.send_body(slot);
        }
        if !self.batch.ended.is_empty() {
            if self.conns[slot.0 as usize].is_held_back() {
                self.batch.held_back = Some(slot);
            }
            // The next reply, if there is one, has its own timeout from now on.
            if self.conns[slot.0 as usize].n_sent() > 0 {
                self.timeouts.arm(slot, TIMEOUT, self.now);
            } else {
                self.timeouts.disarm(slot);
            }
        } else if first_byte && !self.conns[slot.0 as usize].awaits_continue {
            // An interim reply other than 100 does not end the wait for 100.
            self.timeouts.arm(slot, TIMEOUT, self.now);
        }
    }

    /// Starts connecting.
    pub(super) fn connect(&mut self, slot: Slot) {
        let conn = &mut self.conns[slot.0 as usize];
        conn.connects(self.driver.now());
        let routes = &self.destinations.routes[conn.origin as usize];
        let route = &routes[(self.share.first_conn + slot.0) as usize % routes.len()];
        self.driver.connect(slot, route);
        self.timeouts.arm(slot, TIMEOUT, self.now);
    }

    fn connected(&mut self, slot: Slot) {
        let conn = &mut self.conns[slot.0 as usize];
        let tunnel = &self.destinations.tunnels[conn.origin as usize];
        if tunnel.is_empty() {
            return self.established(slot);
        }
        conn.tunnels();
        self.driver.send(slot, tunnel);
    }

    /// Connected to the server, directly or through a tunnel: the connect timeout is over.
    fn established(&mut self, slot: Slot) {
        let now = self.driver.arrived().unwrap_or(self.now);
        let conn = &mut self.conns[slot.0 as usize];
        self.recorder.connected(now.saturating_sub(conn.stage_began));
        let name = self.destinations.origins[conn.origin as usize].tls_name.as_deref();
        let (Some(secure), Some(name)) = (&mut self.secure, name) else {
            conn.connected(None, now);
            return self.send(slot);
        };
        match secure.client(name) {
            Ok(client) => {
                conn.connected(Some(client), now);
                self.timeouts.arm(slot, TIMEOUT, now);
                self.send_records(slot);
            }
            Err(error) => self.tls_failed(slot, &error),
        }
    }

    /// Bytes of TLS came.
    fn decrypt(&mut self, slot: Slot) {
        let at = self.driver.arrived().unwrap_or(self.now);
        let conn = &mut self.conns[slot.0 as usize];
        let client = conn.tls.as_mut().expect("only called for TLS");
        self.buffers.plain.clear();
        let fed = client.feed(self.driver.received(), &mut self.buffers.plain);
        if client.has_output() {
            self.send_records(slot);
        }
        let conn = &mut self.conns[slot.0 as usize];
        if fed.as_ref().is_ok_and(|event| event.handshake_done_now)
            && let (Some(secure), Some(client)) = (&mut self.secure, &conn.tls)
        {
            let handshake = secure.handshaken(client);
            self.recorder.handshaken(handshake, at.saturating_sub(conn.stage_began));
            conn.handshaken();
            self.send(slot);
        }
        if !self.buffers.plain.is_empty() {
            let conn = &mut self.conns[slot.0 as usize];
            let heard =
                conn.received(&self.buffers.plain, at, &mut self.common, &mut self.batch.ended);
            let is_left = heard.then != NextStep::Keep;
            self.settle(slot, heard);
            if is_left {
                return;
            }
        }
        match fed {
            Err(error) => self.tls_failed(slot, &error),
            Ok(event) if event.peer_closed => {
                let conn = &mut self.conns[slot.0 as usize];
                let then = conn.closed(self.now, &mut self.common, &mut self.batch.ended);
                self.settle(slot, ReceiveResult::then(then));
            }
            Ok(_) => {}
        }
    }

    #[cold]
    fn tls_failed(&mut self, slot: Slot, error: &TlsError) {
        if let Some(secure) = &mut self.secure {
            secure.failed(error);
        }
        let then =
            self.conns[slot.0 as usize].fail(record::Outcome::Tls, self.now, &mut self.batch.ended);
        self.settle(slot, ReceiveResult::then(then));
    }

    /// Sends the last request that was held back in case another followed on its connection.
    #[inline]
    pub(super) fn send_unsent(&mut self) {
        if let Some(slot) = self.batch.unsent.take() {
            self.send(slot);
        }
    }

    /// Sends the request that was held back until the previous reply was complete.
    #[inline]
    pub(super) fn send_held_back(&mut self) {
        if let Some(slot) = self.batch.held_back.take() {
            self.send(slot);
        }
    }

    /// Sends every request of the connection that may be sent and has not been.
    #[inline]
    pub(super) fn send(&mut self, slot: Slot) {
        let sent = self.driver.now();
        let conn = &mut self.conns[slot.0 as usize];
        let Some(out) = conn.next_to_send(sent, &self.common) else { return };
        let is_oldest = conn.n_sent() == 1;
        if conn.user.is_some() {
            self.send_asked(slot, out, sent);
            self.timeouts.arm(slot, TIMEOUT, sent);
            return;
        }
        let prepared = &self.requests.prepared[out.request as usize];
        let is_alone = conn.tls.is_none() && self.plan.pipeline == 1;
        match prepared.bytes() {
            Some(bytes) if is_alone && !self.common.cookies && !self.plan.expect_continue => {
                self.driver.send(slot, bytes);
                self.recorder.sent(bytes.len() as u64);
            }
            _ => self.send_rendered(slot, out.request, sent),
        }
        if is_oldest && !self.conns[slot.0 as usize].awaits_continue {
            self.timeouts.arm(slot, TIMEOUT, sent);
        }
    }

    /// Sends requests whose bytes change, several requests at once, or requests through TLS.
    fn send_rendered(&mut self, slot: Slot, first: u32, sent: Nanos) {
        self.buffers.rendered.clear();
        let conn = &mut self.conns[slot.0 as usize];
        let mut next = Some(first);
        while let Some(request) = next {
            let prepared = &self.requests.prepared[request as usize];
            let from = self.buffers.rendered.len();
            let seq = self.share.turn.index_of(conn.number(&mut self.requests.n_rendered));
            let mut fill = Fill {
                seq,
                random: &mut random_of(self.plan.seed, seq),
                columns: &self.plan.columns,
                cookies: if self.common.cookies { conn.jar.value() } else { None },
            };
            let head_len = prepared.render(&mut fill, &mut self.buffers.rendered);
            if prepared.expects_continue() {
                // The body is rendered now, together with its head, and kept until it is needed.
                conn.held_body.clear();
                conn.held_body.extend_from_slice(&self.buffers.rendered[from + head_len..]);
                self.buffers.rendered.truncate(from + head_len);
                conn.awaits_continue = true;
                break;
            }
            next = conn.next_to_send(sent, &self.common).map(|out| out.request);
        }
        if conn.awaits_continue {
            self.timeouts.arm(slot, CONTINUE, sent);
        }
        self.send_plain(slot);
    }

    /// Sends `rendered`, through TLS if it is used.
    pub(super) fn send_plain(&mut self, slot: Slot) {
        self.recorder.sent(self.buffers.rendered.len() as u64);
        match &mut self.conns[slot.0 as usize].tls {
            None => self.driver.send(slot, &self.buffers.rendered),
            Some(client) => {
                // Fails only after an error that the next feed also reports.
                client.send(&self.buffers.rendered).ok();
                self.send_records(slot);
            }
        }
    }

    /// Sends what TLS has to send.
    fn send_records(&mut self, slot: Slot) {
        let Some(client) = &mut self.conns[slot.0 as usize].tls else { return };
        self.buffers.records.clear();
        client.take_output(&mut self.buffers.records);
        if !self.buffers.records.is_empty() {
            self.driver.send(slot, &self.buffers.records);
        }
    }

    /// Sends the body that waited for `100 Continue`.
    pub(super) fn send_body(&mut self, slot: Slot) {
        let conn = &mut self.conns[slot.0 as usize];
        if std::mem::take(&mut conn.awaits_continue) {
            self.buffers.rendered.clear();
            self.buffers.rendered.append(&mut conn.held_body);
            self.send_plain(slot);
            self.timeouts.arm(slot, TIMEOUT, self.now);
        }
    }

    /// The connection is no longer of use. Three kinds of requests move to the next one: those not answered although
    /// the server closed in order, those that are sent once more, and those that were never sent.
    pub(super) fn leave(&mut self, slot: Slot, then: NextStep) {
        match self.close(slot, then) {
            Some(level) => {
                let level = usize::from(level).min(BACKOFF_MS.len() - 1);
                self.timeouts.arm(slot, BACKOFF + level, self.now);
            }
            None => {
                self.timeouts.disarm(slot);
                if self.conns[slot.0 as usize].has_request() {
                    self.connect(slot);
                }
            }
        }
    }

    /// Closes the connection; returns the backoff that its slot must wait.
    pub(super) fn close(&mut self, slot: Slot, then: NextStep) -> Option<u8> {
        let conn = &mut self.conns[slot.0 as usize];
        if conn.is_connected() && self.recorder.disconnected() {
            self.recorder.looked_at(self.driver.tcp_info(slot));
        }
        if let Some(end) = conn.take_server_end() {
            self.recorder.ended_by_server(end);
        }
        let says_goodbye = then == NextStep::Close && conn.state() == ConnState::Up;
        if let Some(client) = conn.tls.as_mut().filter(|_| says_goodbye) {
            client.close();
            self.send_records(slot);
        }
        let how = if then == NextStep::Abandon { Leave::Abrupt } else { Leave::Orderly };
        self.driver.close(slot, how);
        self.conns[slot.0 as usize].down(then)
    }
}

/// The random numbers for the placeholders of one request: the same each time it is sent.
fn random_of(seed: u64, seq: u64) -> Pcg64Mcg {
    // Neighbours in a sequence of seeds give unrelated numbers: `seed_from_u64` scatters them.
    Pcg64Mcg::seed_from_u64(seed ^ seq.rotate_left(32))
}

impl ReceiveResult {
    fn then(then: NextStep) -> Self {
        Self { then, ..Self::default() }
    }
}
