//! The entry that receives, and where the kernel puts the stamp. Owns the message header that entries with
//! stamps name. Start reading at [`repeated`].
//!
//! Without stamps no memory is named but the shared buffers. With them the stamp stands before the bytes in
//! the buffer.

use std::ptr;

use io_uring::types::{Fd, RecvMsgOut};
use io_uring::{opcode, squeue};

use crate::stamps::CONTROL_BYTES;
use crate::uring::buffers::{Filled, GROUP};
use units::Nanos;

/// The header of repeated receives, where stamps are asked for: read by the kernel when one is handed
/// over.
pub(super) struct Header(Box<libc::msghdr>);

impl Header {
    /// One for all slots.
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

    /// The stamp in a buffer that a repeated receive filled.
    pub(super) fn in_buffer(&self, buffer: &[u8]) -> Option<Nanos> {
        let message = RecvMsgOut::parse(buffer, &self.0).ok()?;
        crate::stamps::wall(message.control_data())
    }
}

/// Bytes before the payload in a buffer of a repeated receive with stamps.
const PREFIX_BYTES: u32 = 16 + CONTROL_BYTES as u32;

/// The bytes that a receive put into a buffer, of which the kernel says that it filled `n_bytes`.
pub(super) fn filled(stamped: bool, id: u16, n_bytes: u32) -> Filled {
    let from = if stamped { PREFIX_BYTES } else { 0 };
    Filled { id, from: from as u16, n_bytes: n_bytes.saturating_sub(from) }
}

/// The entry that receives again and again (multishot). Memory that it names: the shared buffers; the
/// header, when it is handed over.
pub(super) fn repeated(fd: Fd, header: Option<&Header>) -> squeue::Entry {
    match header {
        None => opcode::RecvMulti::new(fd, GROUP).build(),
        Some(header) => opcode::RecvMsgMulti::new(fd, &raw const *header.0, GROUP).build(),
    }
}
