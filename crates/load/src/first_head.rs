//! The head of the first reply of a thread, for reports that print what the server says about itself.

/// The head of the first reply of a thread, if the plan asks for it.
#[derive(Default)]
pub(crate) struct FirstHead {
    pub(crate) bytes: Vec<u8>,
    is_complete: bool,
}

impl FirstHead {
    /// Whether it has not come yet.
    pub(crate) fn is_awaited(&self) -> bool {
        !self.is_complete
    }

    /// The head, if it has come.
    pub(crate) fn into_text(self) -> Option<String> {
        self.is_complete.then(|| String::from_utf8_lossy(&self.bytes).into_owned())
    }

    /// Bytes that are not HTTP. If they contain an empty line they still have a head, because a client that reads
    /// only that far takes them for a reply.
    #[cold]
    pub(crate) fn see_garbage(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        let ends = [&b"\r\n\r\n"[..], b"\n\n"]
            .into_iter()
            .filter_map(|end| memchr::memmem::find(&self.bytes, end).map(|at| at + end.len()));
        if let Some(end) = ends.min() {
            self.bytes.truncate(end);
            self.is_complete = true;
        }
    }

    /// The next bytes of a possible first reply; `head_ended`: its head ended with them.
    pub(crate) fn see(&mut self, bytes: &[u8], head_ended: bool) {
        self.bytes.extend_from_slice(bytes);
        self.is_complete = head_ended;
    }
}
