//! The body of a request: removed from the input, and discarded or kept for a gateway. Owns its bounds, and what
//! happens when one is exceeded. Start reading at [`Exchange::begin_body`].

use units::Nanos;
use wire::{BodyDecoder, BodyLimits, Framing, Piece};

use super::request_summary::RequestSummary;
use super::{Close, Exchange, State};
use crate::gateway::Failure;

/// A body that is removed from the input: discarded, or kept for a gateway.
#[derive(Debug)]
pub(super) struct Body {
    decoder: BodyDecoder,
    /// Bytes of the head before it in the input.
    head_len: usize,
    pub(super) began: Nanos,
    /// Bytes of the body, without framing.
    pub(super) data: u64,
    /// The bound on `data`.
    data_max: u64,
}

impl Exchange<'_> {
    /// Begins to read the body of the current request. Returns false if it is refused.
    pub(super) fn begin_body(&mut self, now: Nanos) -> bool {
        let RequestSummary { head_len, framing, expects_continue: expects, .. } = self.summary;
        let length = match framing {
            Framing::Length(length) => length,
            _ => 0,
        };
        let data_max = match &self.call {
            Some(call) => call.gateway().body_bytes_max(),
            None => self.site.config.limits.body_bytes_max,
        };
        if length > data_max {
            self.refuse(413, now);
            return false;
        }
        // Not needed if the body has begun to arrive (RFC 9110, 10.1.1).
        if expects && self.input.bytes().len() == head_len {
            self.output.buffer.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
        let decoder = BodyDecoder::new(framing, BodyLimits::DEFAULT);
        self.state = State::Body(Body { decoder, head_len, began: now, data: 0, data_max });
        true
    }

    /// Discards what has arrived of a body. Returns false if more bytes are needed, or the body is refused.
    pub(super) fn drop_body(&mut self, now: Nanos) -> bool {
        let State::Body(body) = &mut self.state else { return false };
        let bytes = &self.input.bytes()[body.head_len..];
        let mut used = 0;
        // Everything is decoded before the rest is moved. Moving it for each chunk, which may be one byte, would let a
        // client keep us busy.
        let end = loop {
            let (count, piece) = match body.decoder.decode(&bytes[used..]) {
                Ok(decoded) => decoded,
                Err(_) => break End::Refused(400),
            };
            used += count;
            let data = match piece {
                Piece::Data(data) => data,
                Piece::NeedMore => break End::NeedsMore,
                Piece::Done => break End::Whole,
            };
            body.data += data.len() as u64;
            if body.data > body.data_max {
                break End::Refused(413);
            }
            if let Some(call) = self.call.as_deref_mut()
                && let Err(failure) = call.collect(data)
            {
                break End::Failed(failure);
            }
        };
        let head_len = body.head_len;
        self.input.drop_after(head_len, used);
        match end {
            End::Whole => self.state = State::Answer,
            End::NeedsMore if self.half_closed => self.state = State::Close(Close::Normal),
            End::NeedsMore => {}
            End::Refused(status) => self.refuse(status, now),
            End::Failed(failure) => {
                self.note_failure(&failure);
                self.refuse(failure.status, now);
            }
        }
        matches!(self.state, State::Answer)
    }
}

/// The result of decoding the bytes that have arrived.
enum End {
    Whole,
    NeedsMore,
    Refused(u16),
    Failed(Failure),
}
