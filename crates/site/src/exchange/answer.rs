//! From a request to its answer: what lies at the path, what the method, the conditions and the ranges make
//! of it, and the head that says so. Owns every status the server sends. Start reading at
//! [`Answerer::answer`].
//!
//! Cost of a small file that is requested again on a connection: one comparison of the path. The answer is ready for
//! the whole second, head and body in one piece. Nothing is copied or allocated, and no memory is written that other
//! threads use.

use std::io::Write as _;
use std::sync::Arc;

use units::Nanos;
use wire::cgi::CgiHead;
use wire::range::Selection;
use wire::target::SafePath;
use wire::{Fields, ResponseHead, reason_phrase};

use super::conditions::{self, ConditionalRequest, Outcome};
use super::head_edit::edit_head;
use super::journal::{Journal, LoggedAnswer};
use super::output::Output;
use super::ranges::{self, Multipart};
use super::rendered_time::RenderedTime;
use super::request_summary::{Method, RequestSummary, SelectedFields};
use crate::Site;
use crate::fault::Flaws;
use crate::hosts::{ClockReading, Decision, Found, Representation, Stored, Verdict, escape_path};
use crate::log::line;
use crate::status;

/// The methods that a file allows.
const ALLOW: &[u8] = b"Allow: GET, HEAD, OPTIONS\r\n";

/// For content that exists in several codings.
const VARY: &[u8] = b"Vary: Accept-Encoding\r\n";

const WRITES: &str = "a Vec takes every write";

/// What a connection needs to answer.
pub(super) struct Answerer<'a> {
    pub(super) site: &'a Site,
    pub(super) client: std::net::SocketAddr,
    /// Requests of the connection before this one.
    pub(super) requests_before: u32,
    /// When the request was complete.
    pub(super) complete: Nanos,
    /// Bytes of the connection up to the end of the request.
    pub(super) taken: u64,
    pub(super) output: &'a mut Output,
    pub(super) journal: &'a mut Journal,
    pub(super) rendered_time: &'a RenderedTime,
    pub(super) last_file: &'a mut LastFile,
    /// What was decided from the head.
    pub(super) decision: &'a Decision,
    /// Whether the answer may be sent by itself: no further request is in the input.
    pub(super) is_last: bool,
    /// The planted faults of the answer; `None`: no fault is planted.
    pub(super) flaws: Option<&'a mut Flaws>,
    pub(super) now: Nanos,
}

/// The last file that a connection sent, so that asking for it again costs no lock and no lookup.
#[derive(Debug, Default)]
pub(super) struct LastFile {
    /// Path and query as the client sent them.
    target: Vec<u8>,
    /// What was decided from the head that asked for it.
    decision: Decision,
    /// `None` while it is being answered with.
    found: Option<Arc<Representation>>,
    /// Until when it may be sent without a lookup in the site.
    fresh_until: Nanos,
    /// The file that is being sent is the last one again.
    is_repeated: bool,
}

impl LastFile {
    /// Takes it out: changing its reference count would write to memory that all threads share.
    fn take(
        &mut self,
        target: &[u8],
        decision: &Decision,
        now: Nanos,
    ) -> Option<Arc<Representation>> {
        let is_it = now < self.fresh_until
            && self.target == target
            && self.decision.finds_the_same(decision);
        let found = self.found.take().filter(|_| is_it);
        self.is_repeated = found.is_some();
        found
    }

    /// Notes where the file that is put back was found, and until when it is fresh.
    fn is_of(&mut self, target: &[u8], decision: &Decision, fresh_until: Nanos) {
        self.fresh_until = fresh_until;
        self.decision.clone_from(decision);
        self.target.clear();
        self.target.extend_from_slice(target);
    }

    /// Keeps only fresh content, or an idle connection would hold a page in memory that it never sends again. Keeps no
    /// open file: the site bounds how many are open, and finding one again costs little compared with sending it.
    fn put_back(&mut self, found: Arc<Representation>, now: Nanos) {
        let keeps = now < self.fresh_until && matches!(found.stored(), Stored::Memory(_));
        self.found = keeps.then_some(found);
    }
}

/// What the answer says of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Connection {
    /// Whether it stays open.
    pub(super) keeps: bool,
    /// Value of a `Keep-Alive` field: seconds, and further requests if they are counted. Only for a client that said
    /// `keep-alive`, as Apache does.
    pub(super) keep_alive: Option<(u64, Option<u32>)>,
}

/// For the answer to a request that could not be read.
pub(super) const UNREAD: Connection = Connection { keeps: false, keep_alive: None };

/// For a client of HTTP/1.1 that says nothing of the connection, which stays open.
const KEPT: Connection = Connection { keeps: true, keep_alive: None };

/// How much of an answer is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    Whole,
    /// To HEAD.
    HeadOnly,
}

/// Where the head of an answer is that a log line describes.
#[derive(Debug, Clone, Copy)]
enum AnswerHead<'a> {
    /// In the output's buffer, from there on.
    BeginsAt(usize),
    /// It was sent already; this is a copy.
    Was(&'a [u8]),
}

/// What was put into the output.
#[derive(Debug, Clone, Copy)]
pub(super) struct WrittenAnswer {
    pub(super) status: u16,
    /// Bytes of its body; 0 for HEAD.
    pub(super) body_bytes: u64,
}

impl Answerer<'_> {
    /// Puts the answer to a request into the output, and its line into the journal. `head` is the request's, as
    /// received.
    pub(super) fn answer(&mut self, head: &[u8], summary: &RequestSummary, conn: Connection) {
        let start = self.output.buffer.len();
        let written = match self.flaws.take() {
            None => self.correct_answer(head, summary, conn),
            Some(flaws) => self.flawed_answer(flaws, head, summary, conn),
        };
        self.note(head, start, written, conn);
    }

    /// The answer, without its line in the journal.
    pub(super) fn correct_answer(
        &mut self,
        head: &[u8],
        summary: &RequestSummary,
        conn: Connection,
    ) -> WrittenAnswer {
        match (summary.method, self.status_asked(head, summary)) {
            (Method::Get, Some(form)) => self.status(form, Extent::Whole, conn),
            (Method::Head, Some(form)) => self.status(form, Extent::HeadOnly, conn),
            (method, _) => self.answer_of_site(method, head, summary, conn),
        }
    }

    /// Whether the request asks for the status page, and in which form. This comes before any rule, except that a
    /// malformed host is refused first. Without a path for the status, nothing is looked at.
    fn status_asked(&self, head: &[u8], summary: &RequestSummary) -> Option<status::Form> {
        if !self.site.board.is_watched() || self.decision.verdict == Verdict::Malformed {
            return None;
        }
        let target = summary.target.in_head(head);
        status::form_asked(&self.site.config.status, self.client.ip(), target, head)
    }

    fn answer_of_site(
        &mut self,
        method: Method,
        head: &[u8],
        summary: &RequestSummary,
        conn: Connection,
    ) -> WrittenAnswer {
        match method {
            method if self.decision.verdict != Verdict::Serve => self.verdict(method, conn),
            Method::Get => self.content(head, summary, Extent::Whole, conn),
            Method::Head => {
                let written = self.content(head, summary, Extent::HeadOnly, conn);
                WrittenAnswer { body_bytes: 0, ..written }
            }
            Method::Options => self.options(conn),
            Method::NotAllowed => self.page(405, ALLOW, Extent::Whole, conn),
            Method::Unknown => self.page(501, b"", Extent::Whole, conn),
        }
    }

    /// The answer that the rules decided on.
    fn verdict(&mut self, method: Method, conn: Connection) -> WrittenAnswer {
        let extent = if method == Method::Head { Extent::HeadOnly } else { Extent::Whole };
        let decision = self.decision;
        let written = match &decision.verdict {
            Verdict::Tell(status, fields) => self.page(*status, fields.as_bytes(), extent, conn),
            Verdict::Deny(status) => self.page(*status, b"", extent, conn),
            Verdict::Malformed | Verdict::Serve => self.page(400, b"", extent, conn),
        };
        if extent == Extent::HeadOnly {
            WrittenAnswer { body_bytes: 0, ..written }
        } else {
            written
        }
    }

    /// Refuses a request that could not be read, or did not arrive in time; the connection ends. `head` is what arrived
    /// of it; `text` is the body if the status alone does not say what is wrong.
    pub(super) fn refuse(&mut self, status: u16, text: Option<&str>, head: &[u8]) {
        let start = self.output.buffer.len();
        let written = match text {
            None => self.page(status, b"", Extent::Whole, UNREAD),
            Some(text) => self.text(status, text, UNREAD),
        };
        self.note(head, start, written, UNREAD);
    }

    /// An error of a gateway, after which the connection may go on.
    pub(super) fn fail(
        &mut self,
        status: u16,
        head: &[u8],
        summary: &RequestSummary,
        conn: Connection,
    ) {
        let start = self.output.buffer.len();
        let written = self.error(status, summary, conn);
        self.note(head, start, written, conn);
    }

    /// An error of the server that may be over soon.
    pub(super) fn error(
        &mut self,
        status: u16,
        summary: &RequestSummary,
        conn: Connection,
    ) -> WrittenAnswer {
        let fields: &[u8] = if status == 503 { b"Retry-After: 1\r\n" } else { b"" };
        let extent = if summary.method == Method::Head { Extent::HeadOnly } else { Extent::Whole };
        let written = self.page(status, fields, extent, conn);
        let body_bytes = if extent == Extent::HeadOnly { 0 } else { written.body_bytes };
        WrittenAnswer { status, body_bytes }
    }

    /// The head of an answer that a gateway makes. `length` is that of its body, if known.
    pub(super) fn relay_head(
        &mut self,
        answer: &CgiHead,
        length: Option<u64>,
        is_chunked: bool,
        conn: Connection,
    ) {
        let out = &mut self.output.buffer;
        self.output.head_at = out.len();
        let mut head = ResponseHead::with_reason(out, answer.status, &answer.reason);
        if let Some(length) = length {
            head.content_length(length);
        }
        if is_chunked {
            head.chunked();
        }
        out.extend_from_slice(self.rendered_time.fields());
        out.extend_from_slice(&answer.fields);
        self.end_head(conn);
    }

    /// A copy of the head that was written last, if the log needs it once the answer is sent; otherwise empty.
    pub(super) fn head_for_log(&self) -> Box<[u8]> {
        let log = self.site.log.of(self.decision.host());
        match log.is_some_and(|log| log.format().tells_answer()) {
            true => self.output.buffer[self.output.head_at..].into(),
            false => Box::default(),
        }
    }

    /// Puts the line of an answer that a gateway made into the journal, once all of the answer is in the output.
    /// `answer` is its head, as [`Answerer::head_for_log`] gave it.
    pub(super) fn note_relayed(
        &mut self,
        head: &[u8],
        answer: &[u8],
        written: WrittenAnswer,
        conn: Connection,
    ) {
        self.note_as(head, AnswerHead::Was(answer), written, conn);
    }

    /// Answers a request with the whole content of another target of this server.
    pub(super) fn answer_instead(
        &mut self,
        target: &[u8],
        head: &[u8],
        summary: &RequestSummary,
        conn: Connection,
    ) {
        let extent = if summary.method == Method::Head { Extent::HeadOnly } else { Extent::Whole };
        let start = self.output.buffer.len();
        let mut written = self.content_at(target, None, extent, conn);
        if extent == Extent::HeadOnly {
            written.body_bytes = 0;
        }
        self.note(head, start, written, conn);
    }

    /// Puts the line of an answer into the journal, which begins at `start` of the output's buffer.
    fn note(&mut self, head: &[u8], start: usize, written: WrittenAnswer, conn: Connection) {
        self.note_as(head, AnswerHead::BeginsAt(start), written, conn);
    }

    fn note_as(
        &mut self,
        head: &[u8],
        answer: AnswerHead<'_>,
        written: WrittenAnswer,
        conn: Connection,
    ) {
        let logs = &self.site.log;
        let Some(zone) = logs.zone() else { return };
        let WrittenAnswer { status, body_bytes } = written;
        let answered =
            LoggedAnswer { body_bytes, ends_at: self.output.ends_at(), keeps: conn.keeps };
        let bytes_in = self.journal.bytes_in(self.taken);
        let host = self.decision.host();
        let Some(log) = logs.of(host) else { return self.journal.skip(answered) };
        let line = line::LogEntry {
            client: self.client,
            local: self.site.address(),
            time: self.rendered_time.logged(),
            second: self.rendered_time.second(),
            zone,
            head,
            user: self.decision.user.as_ref().map(|user| user.as_bytes()),
            answer: match answer {
                AnswerHead::BeginsAt(start) => self.output.since(start),
                AnswerHead::Was(bytes) => bytes,
            },
            status,
            requests_before: self.requests_before,
            bytes_in,
        };
        self.journal.begin(host, log.format(), &line, answered, self.complete);
    }

    /// GET and HEAD.
    fn content(
        &mut self,
        head: &[u8],
        summary: &RequestSummary,
        extent: Extent,
        conn: Connection,
    ) -> WrittenAnswer {
        let conditional = summary.is_conditional.then(|| ConditionalRequest {
            selected: summary.fields.in_head(head),
            fields: Fields::of_head(head),
        });
        let target = self.decision.target(summary.target.in_head(head));
        self.content_at(target, conditional.as_ref(), extent, conn)
    }

    /// The status page, which is true only at this instant.
    fn status(&mut self, form: status::Form, extent: Extent, conn: Connection) -> WrittenAnswer {
        let body = status::render(&self.site.server, &self.site.board, form, self.now);
        self.begin_head(200);
        let out = &mut self.output.buffer;
        write!(
            out,
            "Cache-Control: no-store\r\nContent-Type: {}\r\nContent-Length: {}\r\n",
            form.content_type(),
            body.len()
        )
        .expect(WRITES);
        self.end_head(conn);
        if extent == Extent::Whole {
            self.output.buffer.extend_from_slice(body.as_bytes());
        }
        let body_bytes = if extent == Extent::Whole { body.len() as u64 } else { 0 };
        WrittenAnswer { status: 200, body_bytes }
    }

    fn content_at(
        &mut self,
        target: &[u8],
        conditional: Option<&ConditionalRequest<'_>>,
        extent: Extent,
        conn: Connection,
    ) -> WrittenAnswer {
        match self.find(target) {
            Ok(of) => {
                let written = self.representation(&of, extent, conditional, conn);
                self.last_file.put_back(of, self.now);
                written
            }
            Err(Missing::Moved(location)) => self.page(301, location.as_bytes(), extent, conn),
            Err(Missing::NotAcceptable) => self.page(406, VARY, extent, conn),
            Err(Missing::Status(status)) => self.page(status, b"", extent, conn),
        }
    }

    /// What lies at the target.
    fn find(&mut self, target: &[u8]) -> Result<Arc<Representation>, Missing> {
        if let Some(found) = self.last_file.take(target, self.decision, self.now) {
            return Ok(found);
        }
        self.output.prepared = None;
        let text = std::str::from_utf8(target).expect("a target that was checked is ASCII");
        let path = SafePath::new(text).map_err(|_| Missing::Status(400))?;
        let time = ClockReading { now: self.now, now_s: self.rendered_time.second() };
        let found = self.site.hosts.find(path.path(), self.decision, time);
        Err(match found {
            Found::Here(found, fresh_until) => {
                self.last_file.is_of(target, self.decision, fresh_until);
                return Ok(found);
            }
            Found::NeedsSlash => Missing::Moved(location(&path)),
            Found::NotFound => Missing::Status(404),
            Found::Forbidden => Missing::Status(403),
            Found::NotAcceptable => Missing::NotAcceptable,
            // A target beyond the limit was refused before, so nothing lies there: 404, as in nginx. Targets of 8000
            // bytes are to be supported (RFC 9112, 3).
            Found::TooLong => Missing::Status(404),
            Found::Busy => Missing::Status(503),
            Found::Failed => Missing::Status(500),
        })
    }

    /// A content, or the answer that conditions and ranges make of it.
    fn representation(
        &mut self,
        of: &Arc<Representation>,
        extent: Extent,
        conditional: Option<&ConditionalRequest<'_>>,
        conn: Connection,
    ) -> WrittenAnswer {
        if let Some(conditional) = conditional {
            let validators = of.validators();
            match conditions::evaluate(conditional, validators) {
                Outcome::Go => {}
                Outcome::NotModified => return self.not_modified(of, conn),
                Outcome::Failed => return self.page(412, b"", extent, conn),
            }
            let SelectedFields { if_range, range, .. } = conditional.selected;
            // Content without validators has no ranges.
            let counts = validators.is_some_and(|current| {
                conditions::range_counts(if_range, current, self.rendered_time.second())
            });
            // Range is defined for GET alone (RFC 9110, 14.2).
            if counts
                && extent == Extent::Whole
                && let Some(value) = range.value()
            {
                let count_max = self.site.config.limits.ranges_max as usize;
                match ranges::select(value, count_max, of.size()) {
                    Selection::Whole => {}
                    // A multipart body is not itself in that coding, but its head would say that it is.
                    Selection::Parts(parts) if parts.len() > 1 && of.coding().is_some() => {}
                    Selection::Unsatisfiable => return self.unsatisfiable(of, conn),
                    Selection::Parts(parts) => return self.partial(of, parts, conn),
                }
            }
        }
        let written = WrittenAnswer { status: 200, body_bytes: of.size() };
        let is_usual = extent == Extent::Whole && conn == KEPT && self.last_file.is_repeated;
        if is_usual && self.send_prepared(of) {
            return written;
        }
        let start = self.output.buffer.len();
        self.output.head_at = start;
        self.output.buffer.extend_from_slice(self.rendered_time.ok());
        self.output.buffer.extend_from_slice(of.fields_of_whole());
        self.end_head(conn);
        if extent == Extent::Whole && of.size() > 0 {
            self.output.body(of, 0..of.size());
        }
        if is_usual && self.output.has_room() {
            let answer = &self.output.buffer[start..];
            self.output.prepared =
                Some(of.prepare(self.rendered_time.second(), &self.decision.edits, answer));
        }
        written
    }

    /// Sends the prepared answer of this second. Returns false if there is none.
    fn send_prepared(&mut self, of: &Representation) -> bool {
        let second = self.rendered_time.second();
        let kept = &mut self.output.prepared;
        let edits = &self.decision.edits;
        if kept.as_ref().is_none_or(|kept| !kept.is_of(second, edits)) {
            *kept = of.prepared(second, edits);
        }
        self.output.send_prepared(self.is_last)
    }

    fn not_modified(&mut self, of: &Representation, conn: Connection) -> WrittenAnswer {
        self.begin_head(304);
        self.output.buffer.extend_from_slice(of.fields());
        self.end_head(conn);
        WrittenAnswer { status: 304, body_bytes: 0 }
    }

    fn unsatisfiable(&mut self, of: &Representation, conn: Connection) -> WrittenAnswer {
        let size = format!("Content-Range: bytes */{}\r\n", of.size());
        self.page(416, size.as_bytes(), Extent::Whole, conn)
    }

    /// One range, or several as a multipart body.
    fn partial(
        &mut self,
        of: &Arc<Representation>,
        mut ranges: Vec<std::ops::Range<u64>>,
        conn: Connection,
    ) -> WrittenAnswer {
        self.begin_head(206);
        self.output.buffer.extend_from_slice(of.fields());
        let out = &mut self.output.buffer;
        if let [range] = &mut ranges[..] {
            let (range, length) = (range.clone(), range.end - range.start);
            write!(
                out,
                "Content-Range: bytes {}-{}/{}\r\nContent-Length: {length}\r\nContent-Type: {}\r\n",
                range.start,
                range.end - 1,
                of.size(),
                of.content_type(),
            )
            .expect(WRITES);
            if let Some(coding) = of.coding() {
                write!(out, "Content-Encoding: {}\r\n", coding.name()).expect(WRITES);
            }
            self.end_head(conn);
            self.output.body(of, range);
            return WrittenAnswer { status: 206, body_bytes: length };
        }
        let Multipart { parts, length, boundary } =
            Multipart::new(of, ranges, self.now.0 ^ self.rendered_time.second());
        write!(
            out,
            "Content-Length: {length}\r\nContent-Type: multipart/byteranges; boundary={boundary}\r\n"
        )
        .expect(WRITES);
        self.end_head(conn);
        self.output.parts(parts);
        WrittenAnswer { status: 206, body_bytes: length }
    }

    fn options(&mut self, conn: Connection) -> WrittenAnswer {
        self.begin_head(204);
        self.output.buffer.extend_from_slice(ALLOW);
        self.end_head(conn);
        WrittenAnswer { status: 204, body_bytes: 0 }
    }

    /// A page that names the status; `fields` are whole lines.
    fn page(
        &mut self,
        status: u16,
        fields: &[u8],
        extent: Extent,
        conn: Connection,
    ) -> WrittenAnswer {
        let time = ClockReading { now: self.now, now_s: self.rendered_time.second() };
        if let Some(page) = self.site.hosts.error_page(status, self.decision, time) {
            return self.error_page(&page, status, fields, extent, conn);
        }
        // Legible on a phone, and dark if the reader's system is.
        const BEFORE: &str = "<!DOCTYPE html>\n<html lang=\"en\">\n\
            <meta name=\"viewport\" content=\"width=device-width\">\n\
            <meta name=\"color-scheme\" content=\"light dark\">\n";
        const AROUND: usize = BEFORE.len() + "<title></title>\n<h1></h1>\n".len();
        let reason = reason_phrase(status);
        let title_len = "404 ".len() + reason.len();
        let body_bytes = (AROUND + 2 * title_len) as u64;
        self.begin_head(status);
        let out = &mut self.output.buffer;
        out.extend_from_slice(fields);
        out.extend_from_slice(b"Content-Type: text/html; charset=utf-8\r\n");
        write!(out, "Content-Length: {body_bytes}\r\n").expect(WRITES);
        self.end_head(conn);
        if extent == Extent::Whole {
            let out = &mut self.output.buffer;
            let title = format_args!("{status} {reason}");
            writeln!(out, "{BEFORE}<title>{title}</title>\n<h1>{title}</h1>").expect(WRITES);
        }
        WrittenAnswer { status, body_bytes }
    }

    /// Sends a page of the site as an error page. Its validators belong to the page with another status, so they are
    /// left out.
    fn error_page(
        &mut self,
        page: &Arc<Representation>,
        status: u16,
        fields: &[u8],
        extent: Extent,
        conn: Connection,
    ) -> WrittenAnswer {
        self.begin_head(status);
        let (size, media) = (page.size(), page.content_type());
        let out = &mut self.output.buffer;
        out.extend_from_slice(fields);
        write!(out, "Content-Length: {size}\r\nContent-Type: {media}\r\n").expect(WRITES);
        self.end_head(conn);
        if extent == Extent::Whole && size > 0 {
            self.output.body(page, 0..size);
        }
        WrittenAnswer { status, body_bytes: size }
    }

    fn text(&mut self, status: u16, text: &str, conn: Connection) -> WrittenAnswer {
        self.begin_head(status);
        let out = &mut self.output.buffer;
        out.extend_from_slice(b"Content-Type: text/plain; charset=utf-8\r\n");
        write!(out, "Content-Length: {}\r\n", text.len()).expect(WRITES);
        self.end_head(conn);
        self.output.buffer.extend_from_slice(text.as_bytes());
        WrittenAnswer { status, body_bytes: text.len() as u64 }
    }

    fn begin_head(&mut self, status: u16) {
        let out = &mut self.output.buffer;
        self.output.head_at = out.len();
        ResponseHead::new(out, status);
        out.extend_from_slice(self.rendered_time.fields());
    }

    /// Ends the head: the fields about the connection, and the empty line.
    fn end_head(&mut self, conn: Connection) {
        let head_at = self.output.head_at;
        let out = &mut self.output.buffer;
        for edit in self.site.hosts.edits(self.decision) {
            edit_head(out, head_at, edit);
        }
        match (conn.keeps, conn.keep_alive) {
            (false, _) => out.extend_from_slice(b"Connection: close\r\n"),
            (true, None) => {}
            (true, Some((seconds, further))) => {
                let further = further.map(|n| format!(", max={n}")).unwrap_or_default();
                write!(out, "Keep-Alive: timeout={seconds}{further}\r\nConnection: keep-alive\r\n")
                    .expect(WRITES);
            }
        }
        out.extend_from_slice(b"\r\n");
    }
}

/// Why there is no content at a target.
enum Missing {
    /// It is a directory, and the request lacks the final slash; the `Location` field.
    Moved(String),
    /// There is content, but in no coding that the client accepts.
    NotAcceptable,
    Status(u16),
}

/// `Location` with the slash that a directory needs. The path begins with exactly one slash, so that it is never taken
/// for the name of another host (`//host/`), and it is escaped, so that it is one line.
fn location(path: &SafePath<'_>) -> String {
    let mut line = String::from("Location: ");
    escape_path(path.path(), &mut line);
    line.push('/');
    if let Some(query) = path.query() {
        line.push('?');
        line.push_str(query);
    }
    line.push_str("\r\n");
    line
}
