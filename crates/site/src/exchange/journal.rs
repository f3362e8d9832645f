//! The lines of the access logs that wait for their answers to be sent. Owns the link between bytes sent and lines due;
//! see also `log::line`. Start reading at [`Journal::begin`]. With all logs off, nothing here has an effect.

use units::Nanos;

use crate::log::line::{self, Placeholder, Sent};
use crate::log::{AccessLogs, LogFormat};

/// Lines of answers that were not sent whole yet, in the order of the answers.
#[derive(Debug, Default)]
pub(super) struct Journal {
    /// The texts of the lines in `due`, one after another.
    texts: Vec<u8>,
    /// What is missing in them, in order.
    placeholders: Vec<Placeholder>,
    due: Vec<Due>,
    /// How many lines of `due` were written.
    written: usize,
    /// A line, while it is put together.
    line: Vec<u8>,
    /// Bytes of the connection up to the end of the last request, and (`ended`) up to the end of its answer.
    taken: u64,
    ended: u64,
}

/// A line without the values that are known only when the answer was sent.
#[derive(Debug, Clone, Copy)]
struct Due {
    /// The host in whose log it is written.
    host: usize,
    /// Where its text ends; it begins where that of the one before ends.
    text_end: usize,
    /// The same for `placeholders`.
    placeholders_end: usize,
    /// When its request was complete.
    began: Nanos,
    /// Bytes of the connection before its answer.
    begins_at: u64,
    answered: LoggedAnswer,
}

/// What the journal knows of an answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct LoggedAnswer {
    /// Bytes of its body that are to be sent, and which come last; 0 for HEAD.
    pub(super) body_bytes: u64,
    /// Bytes of the connection after which it is sent whole.
    pub(super) ends_at: u64,
    /// The connection stays open after it.
    pub(super) keeps: bool,
}

impl Journal {
    /// Forgets what was not written, for another connection.
    pub(super) fn reset(&mut self) {
        self.clear();
        (self.taken, self.ended) = (0, 0);
    }

    fn clear(&mut self) {
        self.texts.clear();
        self.placeholders.clear();
        self.due.clear();
        self.written = 0;
    }

    /// The bytes of the request that ends `taken` bytes after the connection's beginning.
    pub(super) fn bytes_in(&mut self, taken: u64) -> u64 {
        taken.saturating_sub(std::mem::replace(&mut self.taken, taken))
    }

    /// Whether no line waits.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.due.is_empty()
    }

    /// Notes an answer that no log has a line for.
    pub(super) fn skip(&mut self, answered: LoggedAnswer) {
        self.ended = answered.ends_at;
    }

    /// Notes an answer. Its line is written to the log of that host once the answer is sent.
    pub(super) fn begin(
        &mut self,
        host: usize,
        format: &LogFormat,
        told: &line::LogEntry<'_>,
        answered: LoggedAnswer,
        now: Nanos,
    ) {
        line::begin(format, told, &mut self.texts, &mut self.placeholders);
        let (text_end, placeholders_end) = (self.texts.len(), self.placeholders.len());
        let begins_at = std::mem::replace(&mut self.ended, answered.ends_at);
        self.due.push(Due { host, text_end, placeholders_end, began: now, begins_at, answered });
    }

    /// Writes the lines of the answers that lie within the first `sent` bytes of the connection.
    #[inline]
    pub(super) fn sent(&mut self, sent: u64, logs: &AccessLogs) {
        if self.due.is_empty() {
            return;
        }
        while let Some(due) = self.due.get(self.written).filter(|due| due.answered.ends_at <= sent)
        {
            self.write(*due, sent, logs);
        }
        if self.written == self.due.len() {
            self.clear();
        }
    }

    /// The connection ended after `sent` bytes: unfinished answers are logged with what was sent of them.
    pub(super) fn cut(&mut self, sent: u64, logs: &AccessLogs) {
        while let Some(&due) = self.due.get(self.written) {
            self.write(due, sent, logs);
        }
        self.clear();
    }

    fn write(&mut self, due: Due, sent: u64, logs: &AccessLogs) {
        let log = logs.of(due.host).expect("a line is begun only where there is a log");
        let before = self.written.checked_sub(1).map(|before| self.due[before]);
        let (mut from, placeholders_start) =
            before.map_or((0, 0), |due| (due.text_end, due.placeholders_end));
        let LoggedAnswer { body_bytes, ends_at, keeps } = due.answered;
        let missing = ends_at.saturating_sub(sent);
        let sent = Sent {
            body_bytes: body_bytes.saturating_sub(missing),
            bytes: ends_at.min(sent).saturating_sub(due.begins_at),
            elapsed: log.time().map_or(Nanos::ZERO, |now| now.saturating_sub(due.began)),
            is_whole: missing == 0,
            keeps,
        };
        self.line.clear();
        for placeholder in &self.placeholders[placeholders_start..due.placeholders_end] {
            self.line.extend_from_slice(&self.texts[from..placeholder.at]);
            line::fill(placeholder.late, &sent, &mut self.line);
            from = placeholder.at;
        }
        self.line.extend_from_slice(&self.texts[from..due.text_end]);
        self.line.push(b'\n');
        logs.append(log, &self.line);
        self.written += 1;
    }
}
