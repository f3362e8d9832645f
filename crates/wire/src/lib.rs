//! Owns HTTP/1.0 and HTTP/1.1 messages in both roles, and the client's side of TLS, without I/O: bytes go in, events
//! come out, and heads are rendered into buffers. Must not know sockets, time, threads or files.
//!
//! | role | start at |
//! |---|---|
//! | client: read replies, pipelined, split anywhere | [`ReplyParser`] |
//! | client: TLS 1.2 and 1.3, full and resumed | [`tls::TlsClient`] |
//! | server: read a request head, strictly | [`RequestParser`] |
//! | both: take the framing off a body | [`BodyDecoder`] |
//! | both: write heads | [`RequestHead`], [`ResponseHead`] |
//! | server: a target becomes a path that cannot climb | [`target::SafePath`] |
//! | server: header values that decide | [`range`], [`etag`], [`tokens`] |
//!
//! httparse tokenises heads. What it tolerates (bare LF, empty lines before the head, targets that no URI allows) is
//! rejected here, because attackers can exploit two readers with different tolerances (request smuggling). Only a bare
//! LF in the head of a reply is accepted, and reported: no other reader comes after a client.

#![warn(clippy::cast_lossless)]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation, clippy::cast_sign_loss))]

pub mod body;
pub mod cgi;
pub mod etag;
pub mod fastcgi;
mod framing;
mod head;
pub mod range;
mod reply;
mod request;
mod status;
pub mod target;
pub mod tls;
pub mod tokens;
mod write;

pub use body::{BodyDecoder, BodyFault, BodyLimits, Piece};
pub use framing::{Framing, FramingFault};
pub use head::{FIELDS_MAX, FieldIter, Fields, HeadFault, Version};
pub use reply::{
    Eof, Event, ReplyError, ReplyHead, ReplyLimits, ReplyParser, ReplyTotals, RequestKind, Step,
};
pub use request::{Request, RequestError, RequestLimits, RequestParser};
pub use status::reason_phrase;
pub use write::{
    LAST_CHUNK, RequestHead, RequestLayout, ResponseHead, WriteError, write_chunk_head,
};
