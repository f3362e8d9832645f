//! The lines of the access log that wait for their answers to be sent. Owns the link between bytes
//! sent and lines due; must not know how a line looks (see `log::line`) or is written.
//! Start reading at [`Journal::begin`]. With the log off nothing here does anything.

use crate::config::LogFormat;
use crate::log::{AccessLog, line};

/// Lines of answers that were not sent whole yet, in the order of the answers.
#[derive(Debug, Default)]
pub(super) struct Journal {
    /// The texts of the lines in `due`, one after another.
    texts: Vec<u8>,
    due: Vec<Due>,
    /// Lines of `due` that were written.
    written: usize,
    /// A line, while it is put together.
    line: Vec<u8>,
}

/// A line without its result.
#[derive(Debug, Clone, Copy)]
struct Due {
    /// Where its text ends; it begins where that of the one before ends.
    text_end: usize,
    /// Where in it status and length go.
    result_at: usize,
    status: u16,
    body_bytes: u64,
    /// Bytes of the connection after which the answer is sent whole. Its body is the last of it.
    ends_at: u64,
}

/// What an answer is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Answered {
    pub(super) status: u16,
    /// Bytes of its body that are to be sent; 0 for HEAD.
    pub(super) body_bytes: u64,
    /// Bytes of the connection after which it is sent whole.
    pub(super) ends_at: u64,
}

impl Journal {
    /// Forgets what was not written.
    pub(super) fn reset(&mut self) {
        self.texts.clear();
        self.due.clear();
        self.written = 0;
    }

    /// Notes an answer; its line is written when it was sent. `fields` are Referer and User-Agent.
    pub(super) fn begin(
        &mut self,
        format: LogFormat,
        requested: line::Requested<'_>,
        fields: [Option<&[u8]>; 2],
        answered: Answered,
    ) {
        line::begin(&mut self.texts, requested);
        let result_at = self.texts.len();
        if format == LogFormat::Combined {
            line::combined(&mut self.texts, fields[0], fields[1]);
        }
        let Answered { status, body_bytes, ends_at } = answered;
        let text_end = self.texts.len();
        self.due.push(Due { text_end, result_at, status, body_bytes, ends_at });
    }

    /// Writes the lines of the answers that lie within the first `sent` bytes of the connection.
    #[inline]
    pub(super) fn sent(&mut self, sent: u64, log: &AccessLog) {
        if self.due.is_empty() {
            return;
        }
        while let Some(due) = self.due.get(self.written).filter(|due| due.ends_at <= sent) {
            self.write(*due, due.body_bytes, log);
        }
        if self.written == self.due.len() {
            self.reset();
        }
    }

    /// The connection ended after `sent` bytes: what was cut is noted with what was sent of it.
    pub(super) fn cut(&mut self, sent: u64, log: &AccessLog) {
        while let Some(&due) = self.due.get(self.written) {
            let missing = due.ends_at.saturating_sub(sent);
            self.write(due, due.body_bytes.saturating_sub(missing), log);
        }
        self.reset();
    }

    fn write(&mut self, due: Due, body_bytes: u64, log: &AccessLog) {
        let begins = self.written.checked_sub(1).map_or(0, |before| self.due[before].text_end);
        self.line.clear();
        self.line.extend_from_slice(&self.texts[begins..due.result_at]);
        line::result(&mut self.line, due.status, body_bytes);
        self.line.extend_from_slice(&self.texts[due.result_at..due.text_end]);
        self.line.push(b'\n');
        log.append(&self.line);
        self.written += 1;
    }
}
