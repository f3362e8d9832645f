//! The body of a request: taken off the input, and dropped or kept for a gateway. Owns its bounds and what
//! becomes of one that breaks them; must not know what answers the request.
//! Start reading at [`Exchange::begin_body`].

use units::Nanos;
use wire::{BodyDecoder, BodyLimits, Framing, Piece};

use super::asked::Asked;
use super::{Close, Exchange, State};

/// A body that is taken off the input: dropped, or kept for a gateway.
#[derive(Debug)]
pub(super) struct Body {
    decoder: BodyDecoder,
    /// Bytes of the head before it in the input.
    head_len: usize,
    pub(super) began: Nanos,
    /// Bytes of the body, without framing.
    pub(super) data: u64,
    /// The most of them.
    data_max: u64,
}

impl Exchange<'_> {
    /// Begins with the body of what `asked` is of. False: it is refused.
    pub(super) fn begin_body(&mut self, now: Nanos) -> bool {
        let Asked { head_len, framing, expects_continue: expects, .. } = self.asked;
        let length = match framing {
            Framing::Length(length) => length,
            _ => 0,
        };
        let data_max = match &self.call {
            Some(call) => call.gateway().body_bytes_max(),
            None => self.service.config.limits.body_bytes_max,
        };
        if length > data_max {
            self.refuse(413, now);
            return false;
        }
        // Not needed where the body is coming already (RFC 9110, 10.1.1).
        if expects && self.input.bytes().len() == head_len {
            self.output.buffer.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
        let decoder = BodyDecoder::new(framing, BodyLimits::DEFAULT);
        self.state = State::Body(Body { decoder, head_len, began: now, data: 0, data_max });
        true
    }

    /// Drops what has come of a body. False: more bytes are needed, or it is refused.
    pub(super) fn drop_body(&mut self, now: Nanos) -> bool {
        let State::Body(body) = &mut self.state else { return false };
        let bytes = &self.input.bytes()[body.head_len..];
        let (used, piece) = match body.decoder.decode(bytes) {
            Ok(decoded) => decoded,
            Err(_) => {
                self.refuse(400, now);
                return false;
            }
        };
        let is_done = matches!(piece, Piece::Done);
        let mut kept = Ok(());
        if let Piece::Data(data) = piece {
            body.data += data.len() as u64;
            if let Some(call) = self.call.as_deref_mut().filter(|_| body.data <= body.data_max) {
                kept = call.collect(data);
            }
        }
        let is_too_large = body.data > body.data_max;
        let needs_more = matches!(piece, Piece::NeedMore);
        self.input.drop_after(body.head_len, used);
        if let Err(failure) = kept {
            self.note_failure(&failure);
            self.refuse(failure.status, now);
            return false;
        }
        if is_too_large {
            self.refuse(413, now);
        } else if is_done {
            self.state = State::Answer;
        } else if needs_more && self.half_closed {
            self.state = State::Close(Close::Normal);
        }
        !needs_more && !is_too_large
    }
}
