//! TLS between a connection and its socket: what arrives is decrypted into the input, what is in the output
//! is encrypted before it is sent. Owns the encrypted bytes, and when a piece of the output counts as sent.
//! Start reading at [`Exchange::want_secure`].
//!
//! The output is encrypted piece by piece, and a piece is removed from the output only when all of it has left. So the
//! log, the deadlines and planted faults see what they see without TLS, in steps of one piece. The kernel cannot send a
//! file, since it does not encrypt, so the model reads a piece of it (`Want::Load`).
//!
//! A connection keeps 4 KB for what it receives, and what rustls keeps; the memory of pieces is released when an answer
//! has been sent. A connection without TLS pays for one comparison in each of `want`, `received`, `wrote`.

use units::Nanos;
use wire::tls::TlsServer;

use super::input::Input;
use super::{Close, Exchange, State, Want};
use crate::Site;
use crate::log::Level;

/// Encrypted bytes that one read takes at first: a client's hello, or a few requests.
const ROOM_FIRST: usize = 4096;

/// The same after a read that filled all of it: one record (RFC 8446, 5.1).
const ROOM_MAX: usize = 17 * 1024;

/// Bytes of the output that are encrypted at once: two records. A slow client holds twice that, plain and
/// encrypted.
const PIECE_MAX: usize = 32 * 1024;

/// Capacity that the buffer of encrypted bytes keeps between two answers.
const KEPT_MAX: usize = 8 * 1024;

/// The answer to a client that speaks HTTP without TLS.
const CLEARTEXT: &str =
    "This port speaks HTTPS, and the request came in plain HTTP: ask with https:// instead.\n";

/// The TLS of one connection.
#[derive(Debug)]
pub(super) struct TlsLayer {
    conn: TlsServer,
    /// Where encrypted bytes are received; its length is the room.
    room: Vec<u8>,
    /// Decrypted bytes that found no room in the input yet. At most those of one read and of one record
    /// that was begun before.
    plain: Vec<u8>,
    /// How many of them are in the input.
    plain_used: usize,
    /// Encrypted bytes to be sent.
    sealed: Vec<u8>,
    sealed_sent: usize,
    /// Bytes of the output that are in `sealed`; 0: it holds only messages of TLS itself.
    covers: usize,
    /// A piece of the file that is being sent; empty: none was read.
    piece: Vec<u8>,
    /// The client has said that it sends no more, or TCP has ended.
    has_ended: bool,
    /// Nothing more is encrypted: close_notify or an alert already was, or the connection is lost.
    is_shut: bool,
}

/// What a connection needs now, without the buffers for it.
enum Plan {
    Read,
    Send,
    Load,
    Gateway,
    Hold(Nanos),
    Close(Close),
}

impl TlsLayer {
    /// For a connection of this site, if the site uses TLS.
    pub(super) fn of(site: &Site) -> Option<Box<Self>> {
        let tls = site.tls.as_ref()?;
        Some(Box::new(Self {
            conn: tls.accept((site.wall_s)(), |reason| {
                site.errors.note(Level::Error, format_args!("{reason}"));
            }),
            room: vec![0; ROOM_FIRST],
            plain: Vec::new(),
            plain_used: 0,
            sealed: Vec::new(),
            sealed_sent: 0,
            covers: 0,
            piece: Vec::new(),
            has_ended: false,
            is_shut: false,
        }))
    }

    /// Whether encrypted bytes wait to be sent.
    pub(super) fn is_sending(&self) -> bool {
        !self.sealed.is_empty()
    }

    /// Whether nothing waits, in either direction.
    pub(super) fn is_idle(&self) -> bool {
        !self.is_sending() && self.plain.is_empty()
    }

    /// Room for bytes that the client sends while its answer is being made; empty while earlier bytes wait for their
    /// place.
    pub(super) fn room(&mut self) -> &mut [u8] {
        if self.plain.is_empty() { &mut self.room } else { &mut [] }
    }

    /// Leaves out close_notify: it would say that the answer is complete, and it is not (RFC 9112, 9.8).
    pub(super) fn omit_end(&mut self) {
        self.is_shut = true;
    }

    /// Nothing is sent any more.
    pub(super) fn abandon(&mut self) {
        self.is_shut = true;
        self.sealed = Vec::new();
        self.sealed_sent = 0;
        self.covers = 0;
        self.piece = Vec::new();
    }

    /// Moves decrypted bytes into the input, as many as it has room for; returns how many.
    fn fill(&mut self, input: &mut Input) -> usize {
        input.make_room();
        let left = &self.plain[self.plain_used..];
        let room = input.room();
        let count = left.len().min(room.len());
        room[..count].copy_from_slice(&left[..count]);
        input.filled(count);
        self.plain_used += count;
        if self.plain_used == self.plain.len() {
            self.plain.clear();
            self.plain.shrink_to(ROOM_FIRST);
            self.plain_used = 0;
        }
        count
    }

    /// Encrypts these bytes of the output. False: the connection has failed.
    fn seal(&mut self, head: &[u8], body: &[u8]) -> bool {
        let head = &head[..head.len().min(PIECE_MAX)];
        let body = &body[..body.len().min(PIECE_MAX - head.len())];
        self.covers = head.len() + body.len();
        self.conn.send(head, body).is_ok()
    }

    fn take_output(&mut self) {
        self.conn.take_output(&mut self.sealed);
    }
}

impl<'s> Exchange<'s> {
    /// [`Exchange::want`] of a connection with TLS.
    #[inline(never)]
    pub(super) fn want_secure(&mut self, now: impl FnOnce() -> Nanos) -> Want<'_> {
        let plan = self.plan_secure(now);
        let tls = self.tls.as_deref_mut().expect("this is a connection with TLS");
        match plan {
            Plan::Read => Want::Read(&mut tls.room),
            Plan::Send => Want::Write { head: &tls.sealed[tls.sealed_sent..], body: &[] },
            Plan::Gateway => Want::Gateway,
            Plan::Hold(until) => Want::Hold(until),
            Plan::Close(close) => Want::Close(close),
            Plan::Load => match self.output.next() {
                Want::File { head, fd, offset, len } => {
                    let most = len.min((PIECE_MAX - head.len().min(PIECE_MAX / 2)) as u64);
                    tls.piece.resize(most as usize, 0);
                    Want::Load { fd, offset, into: &mut tls.piece }
                }
                _ => unreachable!("only a file is loaded"),
            },
        }
    }

    /// Encrypts the next piece of the output if none is on its way, and returns what is to be done.
    fn plan_secure(&mut self, now: impl FnOnce() -> Nanos) -> Plan {
        let Self { tls, output, state, site, release, .. } = self;
        let tls = tls.as_deref_mut().expect("this is a connection with TLS");
        if tls.is_sending() {
            return Plan::Send;
        }
        if !output.is_empty() {
            let next = match &site.faults {
                None => output.next(),
                Some(faults) => super::fault_release::want_released(output, release, faults, now()),
            };
            let is_sealed = match next {
                Want::Hold(until) => return Plan::Hold(until),
                Want::Write { head, body } => tls.seal(head, body),
                Want::File { .. } if tls.piece.is_empty() => return Plan::Load,
                Want::File { head, .. } => {
                    let mut piece = std::mem::take(&mut tls.piece);
                    let is_sealed = tls.seal(head, &piece);
                    piece.clear();
                    tls.piece = piece;
                    is_sealed
                }
                Want::Read(_) | Want::Load { .. } | Want::Gateway | Want::Close(_) => {
                    unreachable!("what is to be sent is sent")
                }
            };
            if !is_sealed {
                self.lost(self.complete);
                return Plan::Close(Close::Normal);
            }
        } else if let State::Close(close) = *state {
            // A connection that is reset, or lost, has nothing more to say.
            if close != Close::Reset && !std::mem::replace(&mut tls.is_shut, true) {
                tls.conn.close();
                self.deadline = now().saturating_add(site.config.limits.write_timeout);
            }
        }
        let tls = self.tls.as_deref_mut().expect("this is a connection with TLS");
        tls.take_output();
        match self.state {
            _ if tls.is_sending() => Plan::Send,
            State::Close(close) => Plan::Close(close),
            State::Gateway => Plan::Gateway,
            _ => Plan::Read,
        }
    }

    /// `count` bytes were read into the slice of [`Want::Load`]; 0: the file has become shorter. Then the answer cannot
    /// be completed, and only the end of the connection can tell the client so.
    pub fn loaded(&mut self, count: usize, now: Nanos) {
        match &mut self.tls {
            Some(tls) if count > 0 => tls.piece.truncate(count),
            _ => self.lost(now),
        }
    }

    /// [`Exchange::received`] of a connection with TLS.
    #[inline(never)]
    pub(super) fn received_secure(&mut self, count: usize, now: Nanos) {
        if !matches!(self.state, State::Gateway) {
            self.complete = now;
        }
        let Some(tls) = self.tls.as_deref_mut() else { return };
        if count == 0 {
            tls.has_ended = true;
            return self.advance_secure(now);
        }
        // No record of TLS begins with a letter, and every request of HTTP does.
        let is_handshaking = matches!(self.state, State::Handshake(_));
        if is_handshaking && tls.room[0].is_ascii_alphabetic() {
            return self.refuse_cleartext(count, now);
        }
        let fed = tls.conn.feed(&tls.room[..count], &mut tls.plain);
        if count == tls.room.len() && count < ROOM_MAX {
            tls.room.resize(ROOM_MAX, 0);
        }
        match fed {
            Ok(event) => {
                tls.has_ended |= event.peer_closed;
                if event.handshake_done_now {
                    self.state = State::Head(Some(now));
                }
                self.advance_secure(now);
            }
            Err(error) => {
                let peer = self.peer;
                self.site.errors.note(Level::Info, format_args!("TLS of {peer}: {error}"));
                // Only the alert is sent. The client's next bytes must not cause a reset, which would take the alert
                // from it.
                tls.take_output();
                tls.is_shut = true;
                tls.plain.clear();
                if let State::Gateway = self.state {
                    return self.lost(now);
                }
                self.state = State::Close(Close::Linger);
                self.rearm(now);
            }
        }
    }

    /// [`Exchange::wrote`] of a connection with TLS.
    #[inline(never)]
    pub(super) fn wrote_secure(&mut self, count: usize, now: Nanos) {
        let Some(tls) = self.tls.as_deref_mut() else { return };
        tls.sealed_sent += count;
        assert!(tls.sealed_sent <= tls.sealed.len(), "more was sent than there was");
        if tls.sealed_sent < tls.sealed.len() {
            return self.rearm(now);
        }
        tls.sealed.clear();
        tls.sealed_sent = 0;
        let covered = std::mem::take(&mut tls.covers);
        if covered > 0 {
            self.has_sent(covered, now);
        }
        if self.output.is_empty() {
            if let Some(tls) = self.tls.as_deref_mut() {
                tls.sealed.shrink_to(KEPT_MAX);
                tls.piece = Vec::new();
            }
            self.advance_secure(now);
        } else {
            self.rearm(now);
        }
    }

    /// Continues after a step has ended, with TLS or without.
    pub(super) fn go_on(&mut self, now: Nanos) {
        if self.tls.is_some() { self.advance_secure(now) } else { self.advance(now) }
    }

    /// Continues with the decrypted bytes, as far as they and the room for answers allow.
    fn advance_secure(&mut self, now: Nanos) {
        loop {
            let Some(tls) = self.tls.as_deref_mut() else { return };
            let moved = tls.fill(&mut self.input);
            self.bytes_in += moved as u64;
            self.half_closed |= tls.has_ended && tls.plain.is_empty();
            if self.half_closed && matches!(self.state, State::Handshake(_)) {
                self.state = State::Close(Close::Normal);
            }
            if let State::Gateway = self.state {
                return self.received_meanwhile(now);
            }
            self.advance(now);
            if moved == 0 || !self.has_room() || matches!(self.state, State::Close(_)) {
                return;
            }
        }
    }

    /// The client does not speak TLS. It gets an answer that it understands.
    fn refuse_cleartext(&mut self, count: usize, now: Nanos) {
        let Some(tls) = self.tls.take() else { return };
        let count = count.min(self.input.room().len());
        self.input.room()[..count].copy_from_slice(&tls.room[..count]);
        self.input.filled(count);
        self.refuse_saying(400, Some(CLEARTEXT), now);
        self.rearm(now);
    }
}
