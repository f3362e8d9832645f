//! What a connection keeps for the user whom a scenario plays on it: its request, the wanted part of the reply, and
//! earlier replies to the same request. Owns no decision. Start reading at [`User`].

use record::{Carrier, Sample, WantedBodies};
use units::Nanos;
use wire::{Event, Fields};

/// What a connection keeps for the user that is played on it.
#[derive(Debug, Default)]
pub(crate) struct User {
    /// Its last request; [`crate::conn::PendingRequest::asked`] are positions in it.
    pub(crate) asked: Vec<u8>,
    /// The wanted part of the reply that is being read.
    pub(crate) kept: KeptReply,
    pub(crate) keeps_body: bool,
    /// Earlier replies to its request, before it went on.
    pub(crate) chain: RequestChain,
}

/// Replies to a request before its last one.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct RequestChain {
    /// The first of them; its bytes are those of all.
    first: Option<Sample>,
}

impl RequestChain {
    /// Adds a reply that was not the last.
    pub(crate) fn add(&mut self, hop: &Sample) {
        let first = self.first.get_or_insert(Sample { bytes_read: 0, bytes_body: 0, ..*hop });
        if hop.carrier == Carrier::Retried {
            first.carrier = Carrier::Retried;
        }
        first.bytes_read += hop.bytes_read;
        first.bytes_body += hop.bytes_body;
    }

    /// When the continuing request was due.
    pub(crate) fn due(&self) -> Nanos {
        self.first.map_or(Nanos::ZERO, |first| first.due)
    }

    /// The whole chain as one request, of which `last` is the end.
    pub(crate) fn close(&mut self, last: &mut Sample) {
        let Some(first) = self.first.take() else { return };
        last.sent = first.sent;
        if last.first_byte == Nanos::ZERO {
            last.first_byte = first.first_byte;
        }
        last.bytes_read += first.bytes_read;
        last.bytes_body += first.bytes_body;
        // A request counts as retried once, however many of its replies were.
        if last.carrier != Carrier::Retried {
            last.carrier = first.carrier;
        }
    }
}

/// What is kept of a reply.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct KeptReply {
    pub(crate) head: Vec<u8>,
    pub(crate) body: Vec<u8>,
}

impl User {
    /// Bytes that the parser took in one step, which may be of a head; `status` is 0 until it is
    /// complete.
    pub(crate) fn see_head(&mut self, bytes: &[u8], event: &Event<'_>, status: u16) {
        match event {
            Event::Interim { .. } => self.kept.head.clear(),
            Event::NeedMore | Event::Head { .. } if status == 0 => {
                self.kept.head.extend_from_slice(bytes);
            }
            _ => {}
        }
    }
}

/// Whether a body is kept.
pub(crate) fn is_wanted(bodies: WantedBodies, fields: Fields<'_>) -> bool {
    let is_html =
        |value: &[u8]| value.get(..9).is_some_and(|begin| begin.eq_ignore_ascii_case(b"text/html"));
    match bodies {
        WantedBodies::None => false,
        WantedBodies::Html => fields.get("content-type").is_some_and(is_html),
        WantedBodies::All => true,
    }
}
