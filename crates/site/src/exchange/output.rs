//! The bytes of a connection that are to be sent. Owns their order: a buffer of heads and small bodies, then a part of
//! a file; several ranges repeat both. Start reading at [`Output::next`].
//!
//! A body of a few KiB is copied behind its head: a copy of 4 KiB takes 60 ns, and the second part of a gathering write
//! takes about as much in the kernel. Copied answers of pipelined requests also leave in one write. An answer that is
//! sent again within a second is not even copied: it is ready in one piece that all connections share, so it stays in
//! the processor's cache.

use std::io;
use std::ops::Range;
use std::os::fd::AsFd as _;
use std::sync::Arc;

use rustix::io::pread;

use super::Want;
use crate::hosts::{Prepared, Representation, Stored};

/// The largest body that is copied behind its head.
pub(super) const COPIED_MAX: u64 = 8 * 1024;

/// While more than this lies in the buffer, no further pipelined request is answered.
const BATCH_MAX: usize = 64 * 1024;

/// Capacity that a buffer may keep from one connection to the next.
const KEPT_MAX: usize = 32 * 1024;

/// What is to be sent.
#[derive(Debug, Default)]
pub(super) struct Output {
    /// Sent first.
    pub(super) buffer: Vec<u8>,
    /// Where in it the head that is being written begins.
    pub(super) head_at: usize,
    /// Bytes of `buffer` that were sent.
    buffer_sent: usize,
    /// Sent after it.
    body: Option<Span>,
    /// Sent after those.
    parts: Option<Parts>,
    /// The prepared answer with the connection's last content, if there is one. It is kept after it was sent, since the
    /// next answer is most often the same.
    pub(super) prepared: Option<Arc<Prepared>>,
    /// What of it is to be sent. If this is not empty, nothing else is to be sent.
    prepared_left: Range<usize>,
    /// Bytes sent since the connection began.
    sent: u64,
}

/// A part of a representation, never empty.
#[derive(Debug)]
struct Span {
    of: Arc<Representation>,
    range: Range<u64>,
}

/// The parts of a multipart body that follow.
#[derive(Debug)]
pub(super) struct Parts {
    /// The representation that they are parts of.
    pub(super) of: Arc<Representation>,
    /// Head (boundary and fields) and range of each part, the next one last.
    pub(super) left: Vec<(String, Range<u64>)>,
    /// What ends the body.
    pub(super) end: String,
}

/// Buffers that no connection uses at the moment.
#[derive(Debug)]
pub(super) struct Outputs {
    /// At most `most`, each of at most [`KEPT_MAX`] bytes.
    buffers: Vec<Vec<u8>>,
    most: usize,
}

impl Outputs {
    /// Keeps at most `most` buffers.
    pub(super) fn new(most: usize) -> Self {
        Self { buffers: Vec::new(), most }
    }
}

impl Output {
    /// Empties it for another connection.
    pub(super) fn reset(&mut self) {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        buffer.shrink_to(KEPT_MAX);
        let prepared = self.prepared.take();
        *self = Self { buffer, prepared, ..Self::default() };
    }

    /// Takes a buffer out of `spare`, unless it has one.
    #[inline]
    pub(super) fn lend(&mut self, spare: &mut Outputs) {
        if self.buffer.capacity() == 0
            && let Some(buffer) = spare.buffers.pop()
        {
            self.buffer = buffer;
        }
    }

    /// Gives its buffer to `spare` if there is nothing in it. A buffer that has grown, or that finds no place there, is
    /// freed.
    #[inline]
    pub(super) fn take_back(&mut self, spare: &mut Outputs) {
        if self.buffer.is_empty() && self.buffer.capacity() > 0 {
            let buffer = std::mem::take(&mut self.buffer);
            if buffer.capacity() <= KEPT_MAX && spare.buffers.len() < spare.most {
                spare.buffers.push(buffer);
            }
        }
    }

    /// Whether everything was sent.
    pub(super) fn is_empty(&self) -> bool {
        self.buffer.is_empty() && self.body.is_none() && self.prepared_left.is_empty()
    }

    /// Whether another answer may be put behind what is here.
    pub(super) fn has_room(&self) -> bool {
        self.body.is_none() && self.prepared_left.is_empty() && self.buffer.len() < BATCH_MAX
    }

    /// Bytes sent since the connection began.
    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    /// What [`Output::sent`] will be when everything that is here now has been sent.
    pub(super) fn ends_at(&self) -> u64 {
        let of_buffer = (self.buffer.len() - self.buffer_sent) as u64;
        let length = |range: &Range<u64>| range.end - range.start;
        let of_body = self.body.as_ref().map_or(0, |span| length(&span.range));
        let of_parts = self.parts.as_ref().map_or(0, |parts| {
            let left = parts.left.iter().map(|(head, range)| head.len() as u64 + length(range));
            left.sum::<u64>() + parts.end.len() as u64
        });
        self.sent + of_buffer + of_body + of_parts + self.prepared_left.len() as u64
    }

    /// The answer that was put here last, at `start` of the buffer: its head at least.
    pub(super) fn since(&self, start: usize) -> &[u8] {
        match &self.prepared {
            Some(prepared) if !self.prepared_left.is_empty() => prepared.bytes(),
            _ => self.buffer.get(start..).unwrap_or_default(),
        }
    }

    /// Puts a part of a representation behind the buffer, copied if it is small and in memory. Nothing may lie behind
    /// the buffer yet.
    pub(super) fn body(&mut self, of: &Arc<Representation>, range: Range<u64>) {
        assert!(self.body.is_none(), "a body is put behind another");
        match of.stored() {
            Stored::Memory(content) if range.end - range.start <= COPIED_MAX => {
                self.buffer.extend_from_slice(&content[range.start as usize..range.end as usize]);
            }
            _ => self.body = Some(Span { of: Arc::clone(of), range }),
        }
    }

    /// Sends the prepared answer, if there is one; it is copied if other answers leave with it.
    pub(super) fn send_prepared(&mut self, is_last: bool) -> bool {
        let is_alone = is_last && self.is_empty();
        match &self.prepared {
            Some(prepared) if is_alone => self.prepared_left = 0..prepared.bytes().len(),
            Some(prepared) => self.buffer.extend_from_slice(prepared.bytes()),
            None => return false,
        }
        true
    }

    /// Puts the parts of a multipart body behind the buffer.
    pub(super) fn parts(&mut self, parts: Parts) {
        self.parts = Some(parts);
        self.begin_part();
    }

    /// What to send next. There must be something.
    pub(super) fn next(&self) -> Want<'_> {
        if let Some(prepared) = self.prepared.as_ref().filter(|_| !self.prepared_left.is_empty()) {
            return Want::Write { head: &prepared.bytes()[self.prepared_left.clone()], body: &[] };
        }
        let head = &self.buffer[self.buffer_sent..];
        let Some(Span { of, range }) = &self.body else { return Want::Write { head, body: &[] } };
        match of.stored() {
            Stored::Memory(content) => {
                Want::Write { head, body: &content[range.start as usize..range.end as usize] }
            }
            Stored::File(file) => {
                let len = range.end - range.start;
                Want::File { head, fd: file.as_fd(), offset: range.start, len }
            }
        }
    }

    /// For the only answer here, of which nothing was sent yet: what [`Output::sent`] will be once its head has been
    /// sent; `None` if it is all head. A head lies in one piece.
    pub(super) fn body_at(&self) -> Option<u64> {
        let (Want::Write { head, .. } | Want::File { head, .. }) = self.next() else { return None };
        let end = head.windows(4).position(|bytes| bytes == b"\r\n\r\n")? + 4;
        let at = self.sent + end as u64;
        (at < self.ends_at()).then_some(at)
    }

    /// Makes the only answer here, of which nothing was sent yet, changeable. Its head begins in the buffer at the
    /// first position returned, and what follows the head at the second.
    pub(super) fn open(&mut self) -> (usize, usize) {
        if let Some(prepared) = self.prepared.as_ref().filter(|_| !self.prepared_left.is_empty()) {
            self.buffer.extend_from_slice(prepared.bytes());
            self.prepared_left = 0..0;
        }
        let start = self.buffer_sent;
        let head = self.buffer[start..].windows(4).position(|bytes| bytes == b"\r\n\r\n");
        (start, start + head.expect("an answer has a head") + 4)
    }

    /// The body of that answer, which has no parts.
    ///
    /// # Errors
    /// Its file cannot be read, or is shorter by now.
    pub(super) fn body_bytes(&self, body_at: usize) -> io::Result<Vec<u8>> {
        let mut bytes = self.buffer[body_at..].to_vec();
        let Some(Span { of, range }) = &self.body else { return Ok(bytes) };
        match of.stored() {
            Stored::Memory(content) => {
                bytes.extend_from_slice(&content[range.start as usize..range.end as usize]);
            }
            Stored::File(file) => {
                let mut filled = bytes.len();
                bytes.resize(filled + (range.end - range.start) as usize, 0);
                let mut offset = range.start;
                while filled < bytes.len() {
                    let count = pread(file, &mut bytes[filled..], offset)?;
                    if count == 0 {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                    filled += count;
                    offset += count as u64;
                }
            }
        }
        Ok(bytes)
    }

    /// Removes the body of that answer.
    pub(super) fn drop_body(&mut self, body_at: usize) {
        self.buffer.truncate(body_at);
        self.body = None;
        self.parts = None;
    }

    /// `count` bytes of it were sent.
    pub(super) fn took(&mut self, count: usize) {
        self.sent += count as u64;
        if !self.prepared_left.is_empty() {
            assert!(count <= self.prepared_left.len(), "more was sent than there was");
            self.prepared_left.start += count;
            return;
        }
        let of_buffer = count.min(self.buffer.len() - self.buffer_sent);
        self.buffer_sent += of_buffer;
        let of_body = (count - of_buffer) as u64;
        if let Some(span) = &mut self.body {
            span.range.start += of_body;
            assert!(span.range.start <= span.range.end, "more was sent than there was");
            if !span.range.is_empty() {
                return;
            }
            self.body = None;
        }
        if self.buffer_sent == self.buffer.len() {
            self.buffer.clear();
            self.buffer_sent = 0;
            self.begin_part();
        }
    }

    /// Queues the next parts: all small ones up to the first that is not small, and that one. After the last part it
    /// queues the end of the body.
    fn begin_part(&mut self) {
        let Some(mut parts) = self.parts.take() else { return };
        while let Some((head, range)) = parts.left.pop() {
            self.buffer.extend_from_slice(head.as_bytes());
            self.body(&parts.of, range);
            if !self.has_room() {
                self.parts = Some(parts);
                return;
            }
        }
        self.buffer.extend_from_slice(parts.end.as_bytes());
    }
}
