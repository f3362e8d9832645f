//! The entries that receive: which there are, and where the kernel puts the stamp of each. Owns the
//! message headers that entries with stamps name; must not know when to receive. Start reading at
//! [`entry`].
//!
//! Without stamps no memory is named but the shared buffers. With them each slot has a header for its
//! single receives, and the repeated ones put the stamp before the bytes into the buffer.

use std::ptr;

use io_uring::types::{Fd, RecvMsgOut};
use io_uring::{opcode, squeue};

use crate::driver::Slot;
use crate::shared::{HEAD_BYTES, Receive};
use crate::stamps::{CONTROL_BYTES, Control};
use crate::uring::buffers::{Filled, GROUP};
use units::Nanos;

/// IORING_RECVSEND_POLL_FIRST: nothing will be there yet, so that trying would be in vain.
const POLL_FIRST: u16 = 1;

/// The headers of messages, where stamps are asked for.
pub(super) struct Headers {
    /// Read by the kernel when a repeated receive is handed over.
    all: Box<libc::msghdr>,
    of_slots: Box<[Header]>,
}

/// The header of a slot's single receive; its pointers lead to its own fields, so it never moves.
struct Header {
    message: libc::msghdr,
    part: libc::iovec,
    control: Control,
}

impl Headers {
    /// For so many slots.
    pub(super) fn new(n_slots: u32) -> Self {
        let mut all = Box::new(no_message());
        all.msg_controllen = CONTROL_BYTES;
        let header = || Header {
            message: no_message(),
            part: libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 },
            control: Control::default(),
        };
        Self { all, of_slots: (0..n_slots).map(|_| header()).collect() }
    }

    /// Prepares a slot's header and gives its address.
    fn prepare(&mut self, slot: Slot, n_bytes: usize) -> *mut libc::msghdr {
        let header = &mut self.of_slots[slot.0 as usize];
        header.part.iov_len = n_bytes;
        header.control = Control::default();
        header.message.msg_iov = &raw mut header.part;
        header.message.msg_iovlen = 1;
        header.message.msg_control = (&raw mut header.control).cast();
        header.message.msg_controllen = CONTROL_BYTES;
        &raw mut header.message
    }

    /// The stamp that came with the last single receive of a slot.
    pub(super) fn of_slot(&self, slot: Slot) -> Option<Nanos> {
        crate::stamps::wall(&self.of_slots[slot.0 as usize].control.0)
    }

    /// The stamp in a buffer that a repeated receive filled.
    pub(super) fn in_buffer(&self, buffer: &[u8]) -> Option<Nanos> {
        let message = RecvMsgOut::parse(buffer, &self.all).ok()?;
        crate::stamps::wall(message.control_data())
    }
}

/// Bytes before the payload in a buffer of a repeated receive with stamps.
const PREFIX_BYTES: u32 = 16 + CONTROL_BYTES as u32;

/// The bytes that a receive put into a buffer, of which the kernel says that it filled `n_bytes`.
pub(super) fn filled(receive: Receive, stamped: bool, id: u16, n_bytes: u32) -> Filled {
    let from = if stamped && receive == Receive::All { PREFIX_BYTES } else { 0 };
    Filled { id, from: from as u16, n_bytes: n_bytes.saturating_sub(from) }
}

/// The entry that receives: [`Receive::All`] again and again (multishot), the others once. MSG_WAITALL
/// would make a discard one completion, but the kernel then takes too much: what MSG_TRUNC threw away
/// does not count when it goes on (the iterator does not move in `io_recv`, io_uring/net.c). Tried on
/// 6.18: a receive of 100,000 bytes took 40,000, then 70,000, and did not end. Memory that it names: the shared buffers; with `headers` the slot's
/// header, until the completion.
pub(super) fn entry(
    receive: Receive,
    slot: Slot,
    fd: Fd,
    headers: Option<&mut Headers>,
) -> squeue::Entry {
    let select = squeue::Flags::BUFFER_SELECT;
    match (receive, headers) {
        (Receive::All, None) => opcode::RecvMulti::new(fd, GROUP).build(),
        (Receive::All, Some(headers)) => {
            opcode::RecvMsgMulti::new(fd, &raw const *headers.all, GROUP).build()
        }
        (Receive::Head, None) => opcode::Recv::new(fd, ptr::null_mut(), HEAD_BYTES as u32)
            .buf_group(GROUP)
            .ioprio(POLL_FIRST)
            .build()
            .flags(select),
        (Receive::Head, Some(headers)) => {
            let message = headers.prepare(slot, HEAD_BYTES);
            opcode::RecvMsg::new(fd, message)
                .buf_group(GROUP)
                .ioprio(POLL_FIRST)
                .build()
                .flags(select)
        }
        // With MSG_TRUNC nothing is written to the buffer: null, so that whatever did would fail.
        (Receive::Discard(n_bytes), None) => {
            opcode::Recv::new(fd, ptr::null_mut(), n_bytes as u32).flags(libc::MSG_TRUNC).build()
        }
        (Receive::Discard(n_bytes), Some(headers)) => {
            let message = headers.prepare(slot, n_bytes);
            opcode::RecvMsg::new(fd, message).flags(libc::MSG_TRUNC as u32).build()
        }
    }
}

/// A header without name, bytes or control messages.
fn no_message() -> libc::msghdr {
    libc::msghdr {
        msg_name: ptr::null_mut(),
        msg_namelen: 0,
        msg_iov: ptr::null_mut(),
        msg_iovlen: 0,
        msg_control: ptr::null_mut(),
        msg_controllen: 0,
        msg_flags: 0,
    }
}
