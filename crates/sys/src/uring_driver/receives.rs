//! The entry that receives, and where the kernel puts the stamp. Owns the message header that entries with stamps name.
//! Start reading at [`repeated`].
//!
//! Without stamps an entry names only the shared buffers. With stamps, the stamp is in the buffer before the bytes.

use std::ptr;

use io_uring::types::{Fd, RecvMsgOut};
use io_uring::{opcode, squeue};

use crate::stamps::CONTROL_BYTES;
use crate::uring::buffers::{Filled, GROUP};
use units::Nanos;

/// The header of multishot receives with stamps; the kernel reads it when a receive is submitted.
pub(super) struct Header(Box<libc::msghdr>);

impl Header {
    /// A header for all slots.
    pub(super) fn new() -> Self {
        Self(Box::new(libc::msghdr {
            msg_name: ptr::null_mut(),
            msg_namelen: 0,
            msg_iov: ptr::null_mut(),
            msg_iovlen: 0,
            msg_control: ptr::null_mut(),
            msg_controllen: CONTROL_BYTES,
            msg_flags: 0,
        }))
    }

    /// The stamp in a buffer that a multishot receive filled.
    pub(super) fn in_buffer(&self, buffer: &[u8]) -> Option<Nanos> {
        let message = RecvMsgOut::parse(buffer, &self.0).ok()?;
        crate::stamps::wall(message.control_data())
    }
}

/// Bytes before the payload in a buffer of a multishot receive with stamps.
const PREFIX_BYTES: u32 = 16 + CONTROL_BYTES as u32;

/// The payload that a receive put into a buffer; the kernel reports that it filled `n_bytes`.
pub(super) fn filled(stamped: bool, id: u16, n_bytes: u32) -> Filled {
    let from = if stamped { PREFIX_BYTES } else { 0 };
    Filled { id, from: from as u16, n_bytes: n_bytes.saturating_sub(from) }
}

/// The multishot receive entry. It names the shared buffers and, while it is submitted, the header.
pub(super) fn repeated(fd: Fd, header: Option<&Header>) -> squeue::Entry {
    match header {
        None => opcode::RecvMulti::new(fd, GROUP).build(),
        Some(header) => opcode::RecvMsgMulti::new(fd, &raw const *header.0, GROUP).build(),
    }
}
