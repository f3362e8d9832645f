//! A request as it is sent each time: fixed bytes, and holes that are filled anew. Start reading at [`Prepared`].
//!
//! Cost of one request: none without holes, since the same bytes are sent again. With holes: one copy of its bytes,
//! and a draw or a few divisions for each hole. Nothing is allocated while the buffer has room.

use std::ops::Range;

use rand::RngExt as _;
use rand_pcg::Pcg64Mcg;
use record::{Column, HttpVersion, LoadPlan, RequestPlan};
use wire::{RequestHead, RequestKind, RequestLayout, Version, WriteError};

use crate::placeholders::{Placeholder, PlaceholderError, TemplatePiece, split};
use crate::proxy;

/// The value of a placeholder while the head is checked; it is valid everywhere.
const SAMPLE: &str = "0";

/// Digits of the largest length.
const LENGTH_DIGITS_MAX: usize = 20;

/// Why a request of a plan cannot be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PrepareError {
    /// A part that no head may contain.
    #[error(transparent)]
    Head(#[from] WriteError),
    /// An invalid placeholder.
    #[error(transparent)]
    Placeholder(#[from] PlaceholderError),
    /// A column that the plan does not have.
    #[error("no values were read for `{{csv:{file}:{column}}}`: is the file there?")]
    NoColumn {
        /// File, as written.
        file: String,
        /// Column, as written.
        column: String,
    },
    /// A value that would end the field and begin another.
    #[error(
        "row {row} of column `{column}` of {file} has a control character (a line break, perhaps) \
         and cannot stand in the field `{field}`: remove it, or use the column in a body"
    )]
    Value {
        /// File, as written.
        file: String,
        /// Column, as written.
        column: String,
        /// Row of values, from 1.
        row: usize,
        /// Name of the field.
        field: String,
    },
    /// A fixed Content-Length for a body whose length changes.
    #[error(
        "the field `Content-Length` cannot be right for a body with placeholders: leave it out, joust \
         writes it"
    )]
    Length,
}

/// A request of a plan, ready to be sent repeatedly.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// The fixed bytes, without those of holes.
    text: Vec<u8>,
    /// Where values go, in rising order of position; the hole for cookies is always there.
    holes: Vec<Hole>,
    /// Bytes of `text` that belong to the head.
    head_len: usize,
    /// Whether nothing but cookies ever changes.
    is_fixed: bool,
    expects_continue: bool,
    is_idempotent: bool,
    kind: RequestKind,
    origin: u32,
}

/// A position before `text[at]`.
#[derive(Debug, Clone, Copy)]
struct Hole {
    at: usize,
    value: Value,
}

#[derive(Debug, Clone, Copy)]
enum Value {
    Seq,
    Rand {
        low: u64,
        high: u64,
    },
    /// Row `seq` of a column of the plan; after the last row it starts again.
    Csv {
        column: usize,
        /// Whether it is one component of a target.
        encoded: bool,
    },
    /// Digits of the length of the body.
    Length,
    /// A Cookie field, or the end of the existing one (RFC 6265, 5.4: never two).
    Cookies {
        is_joined: bool,
    },
}

/// The values for the holes of one request.
pub(crate) struct Fill<'a> {
    /// Number of the request, unique over all threads.
    pub(crate) seq: u64,
    /// For `{rand}`.
    pub(crate) random: &'a mut Pcg64Mcg,
    /// Columns of the plan from which the request was made.
    pub(crate) columns: &'a [Column],
    /// Value of a Cookie field to add; it has been checked.
    pub(crate) cookies: Option<&'a [u8]>,
}

/// The first request of a plan as it is sent, if it is always the same; otherwise `None`.
///
/// # Errors
/// A part of it cannot be sent as it is.
pub fn first_request(plan: &LoadPlan) -> Result<Option<Vec<u8>>, PrepareError> {
    Ok(Prepared::new(plan, &plan.requests[0])?.bytes().map(<[u8]>::to_vec))
}

impl Prepared {
    /// Renders the fixed part of a request of `plan`.
    ///
    /// # Errors
    /// A part of it cannot be sent as it is.
    pub(crate) fn new(plan: &LoadPlan, request: &RequestPlan) -> Result<Self, PrepareError> {
        if let Some(bytes) = &request.verbatim {
            return Ok(Self::verbatim(request, bytes));
        }
        let origin = &plan.origins[request.origin as usize];
        let proxy = proxy::of_plain(plan, origin);
        let whole = proxy.map(|_| format!("http://{}{}", origin.host, request.target));
        let target = pieces(request, whole.as_ref().unwrap_or(&request.target).as_bytes())?;
        let body = pieces(request, &request.body)?;
        let mut headers = Vec::with_capacity(request.headers.len() + 1);
        for (_, value) in &request.headers {
            headers.push(pieces(request, value.as_bytes())?);
        }
        let names = |name: &str| {
            request.headers.iter().position(|(other, _)| other.eq_ignore_ascii_case(name))
        };
        let body_varies = has_holes(&body);
        if body_varies && names("content-length").is_some() {
            return Err(PrepareError::Length);
        }
        let mut fields: Vec<(String, String)> = Vec::with_capacity(headers.capacity());
        for ((name, value), pieces) in request.headers.iter().zip(&headers) {
            check_values(plan, name, pieces)?;
            let value = if has_holes(pieces) { sample_text(pieces) } else { value.clone() };
            fields.push((name.clone(), value));
        }
        // HTTP/1.0 has no interim replies, so 100 would never come (RFC 9110, 10.1.1).
        let is_http11 = plan.version == HttpVersion::Http11;
        let asks = plan.expect_continue && is_http11 && !request.body.is_empty();
        if asks && names("expect").is_none() {
            fields.push(("Expect".to_owned(), "100-continue".to_owned()));
        }
        let authorization = proxy.and_then(|proxy| proxy.authorization.as_ref());
        if let Some(value) = authorization.filter(|_| names("proxy-authorization").is_none()) {
            fields.push(("Proxy-Authorization".to_owned(), value.clone()));
        }
        let head = RequestHead {
            version: if is_http11 { Version::Http11 } else { Version::Http10 },
            method: &request.method,
            target: &sample_text(&target),
            host: &origin.host,
            fields: &fields,
            body: &sample(&body),
            keep_alive: plan.keep_alive,
        };
        let (bytes, layout) = head.render_with_layout()?;
        let cookies = names("cookie").and_then(|index| layout.values[index].clone());
        let mut cut = HoleCutter::new(plan, &bytes, layout.head);
        cut.replace(layout.target.clone(), &target, true)?;
        cut.fields(&layout, &headers, cookies.as_ref())?;
        let whole_head = cut.end_head(&layout, body_varies, cookies.is_none());
        cut.replace(layout.head..bytes.len(), &body, false)?;
        Ok(Self {
            is_fixed: cut.holes.iter().all(|hole| matches!(hole.value, Value::Cookies { .. })),
            text: cut.text,
            holes: cut.holes,
            head_len: whole_head,
            expects_continue: asks,
            is_idempotent: request.is_idempotent(),
            kind: RequestKind::of(&request.method),
            origin: plan.carrier_of(request.origin),
        })
    }

    /// A request whose bytes are given.
    fn verbatim(request: &RequestPlan, bytes: &[u8]) -> Self {
        let end = memchr::memmem::find(bytes, b"\r\n\r\n");
        Self {
            text: bytes.to_vec(),
            holes: Vec::new(),
            head_len: end.map_or(bytes.len(), |at| at + 4),
            is_fixed: true,
            expects_continue: false,
            is_idempotent: request.is_idempotent(),
            kind: RequestKind::of(&request.method),
            origin: request.origin,
        }
    }

    /// The request without cookies, if it is always the same; the fast path sends these bytes.
    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        self.is_fixed.then_some(&self.text)
    }

    /// Whether the body waits for `100 Continue`.
    pub(crate) fn expects_continue(&self) -> bool {
        self.expects_continue
    }

    /// Whether it may be sent twice.
    pub(crate) fn is_idempotent(&self) -> bool {
        self.is_idempotent
    }

    /// What decides the framing of its replies.
    pub(crate) fn kind(&self) -> RequestKind {
        self.kind
    }

    /// Index of the origin whose connections carry it.
    pub(crate) fn origin(&self) -> u32 {
        self.origin
    }

    /// Appends the request to `out`; returns the length of its head, including the empty line.
    pub(crate) fn render(&self, fill: &mut Fill<'_>, out: &mut Vec<u8>) -> usize {
        let (start, mut done) = (out.len(), 0);
        let (mut length, mut body) = (None, None);
        for hole in &self.holes {
            if hole.at >= self.head_len && body.is_none() {
                out.extend_from_slice(&self.text[done..self.head_len]);
                (done, body) = (self.head_len, Some(out.len()));
            }
            out.extend_from_slice(&self.text[done..hole.at]);
            done = hole.at;
            match hole.value {
                Value::Length => length = Some(out.len()),
                value => push_value(value, fill, out),
            }
        }
        if body.is_none() {
            out.extend_from_slice(&self.text[done..self.head_len]);
            (done, body) = (self.head_len, Some(out.len()));
        }
        out.extend_from_slice(&self.text[done..]);
        let mut body = body.expect("the body was reached above");
        if let Some(place) = length {
            body += insert_number(out, place, (out.len() - body) as u64);
        }
        body - start
    }
}

/// Inserts digits into `out`; returns their count. They are known only after the text behind them is written, and
/// that text is mostly short.
fn insert_number(out: &mut Vec<u8>, place: usize, number: u64) -> usize {
    let end = out.len();
    push_number(out, number);
    let n_digits = out.len() - end;
    out[place..].rotate_right(n_digits);
    n_digits
}

fn push_number(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; LENGTH_DIGITS_MAX];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[start..]);
}

fn push_value(value: Value, fill: &mut Fill<'_>, out: &mut Vec<u8>) {
    match value {
        Value::Seq => push_number(out, fill.seq),
        Value::Rand { low, high } => push_number(out, fill.random.random_range(low..=high)),
        Value::Csv { column, encoded } => {
            let values = &fill.columns[column].values;
            let value = values[(fill.seq % values.len() as u64) as usize].as_bytes();
            if encoded { push_component(out, value) } else { out.extend_from_slice(value) }
        }
        Value::Cookies { is_joined } => {
            let Some(cookies) = fill.cookies.filter(|cookies| !cookies.is_empty()) else { return };
            let (before, after): (&[u8], &[u8]) =
                if is_joined { (b"; ", b"") } else { (b"Cookie: ", b"\r\n") };
            for part in [before, cookies, after] {
                out.extend_from_slice(part);
            }
        }
        Value::Length => unreachable!("the length is put in when the body is there"),
    }
}

/// Appends `value` as one component of a target. All but unreserved characters are percent-encoded (RFC 3986, 2.3),
/// so that no value can end the path, the query or the request line.
fn push_component(out: &mut Vec<u8>, value: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for &byte in value {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(byte);
        } else {
            out.extend([b'%', DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
        }
    }
}

fn pieces<'a>(
    request: &RequestPlan,
    text: &'a [u8],
) -> Result<Vec<TemplatePiece<'a>>, PlaceholderError> {
    if request.templated { split(text) } else { Ok(vec![TemplatePiece::Text(text)]) }
}

fn has_holes(pieces: &[TemplatePiece<'_>]) -> bool {
    pieces.iter().any(|piece| matches!(piece, TemplatePiece::Hole(_)))
}

/// The text with a sample in each hole.
fn sample(pieces: &[TemplatePiece<'_>]) -> Vec<u8> {
    let parts = pieces.iter().map(|piece| match piece {
        TemplatePiece::Text(text) => text,
        TemplatePiece::Hole(_) => SAMPLE.as_bytes(),
    });
    parts.collect::<Vec<_>>().concat()
}

/// As [`sample`], for text that was a string: placeholders are whole characters, so the result is one again.
fn sample_text(pieces: &[TemplatePiece<'_>]) -> String {
    String::from_utf8(sample(pieces)).expect("a string without its placeholders is a string")
}

/// Checks that no value of a column ends the field it goes into.
fn check_values(
    plan: &LoadPlan,
    field: &str,
    pieces: &[TemplatePiece<'_>],
) -> Result<(), PrepareError> {
    for piece in pieces {
        let TemplatePiece::Hole(Placeholder::Csv { file, column }) = piece else { continue };
        let values = &plan.columns[column_index(plan, file, column)?].values;
        let is_wrong = |value: &String| value.bytes().any(|b| b.is_ascii_control() && b != b'\t');
        if let Some(index) = values.iter().position(is_wrong) {
            return Err(PrepareError::Value {
                file: (*file).to_owned(),
                column: (*column).to_owned(),
                row: index + 1,
                field: field.to_owned(),
            });
        }
    }
    Ok(())
}

fn column_index(plan: &LoadPlan, file: &str, name: &str) -> Result<usize, PrepareError> {
    let is_it = |column: &Column| column.file == file && column.name == name;
    let index = plan.columns.iter().position(is_it).filter(|&i| !plan.columns[i].values.is_empty());
    let (file, column) = (file.to_owned(), name.to_owned());
    index.ok_or(PrepareError::NoColumn { file, column })
}

/// Takes the samples out of rendered bytes, from front to end, and notes the holes.
struct HoleCutter<'a> {
    plan: &'a LoadPlan,
    bytes: &'a [u8],
    head: usize,
    done: usize,
    text: Vec<u8>,
    holes: Vec<Hole>,
}

impl<'a> HoleCutter<'a> {
    fn new(plan: &'a LoadPlan, bytes: &'a [u8], head: usize) -> Self {
        let text = Vec::with_capacity(bytes.len());
        Self { plan, bytes, head, done: 0, text, holes: Vec::new() }
    }

    /// Keeps the bytes before `place`.
    fn keep_until(&mut self, place: usize) {
        self.text.extend_from_slice(&self.bytes[self.done..place]);
        self.done = place;
    }

    fn hole(&mut self, value: Value) {
        self.holes.push(Hole { at: self.text.len(), value });
    }

    /// Puts `pieces` in place of their sample.
    fn replace(
        &mut self,
        range: Range<usize>,
        pieces: &[TemplatePiece<'_>],
        encoded: bool,
    ) -> Result<(), PrepareError> {
        self.keep_until(range.start);
        for piece in pieces {
            match *piece {
                TemplatePiece::Text(text) => self.text.extend_from_slice(text),
                TemplatePiece::Hole(Placeholder::Seq) => self.hole(Value::Seq),
                TemplatePiece::Hole(Placeholder::Rand { low, high }) => {
                    self.hole(Value::Rand { low, high });
                }
                TemplatePiece::Hole(Placeholder::Csv { file, column }) => {
                    let column = column_index(self.plan, file, column)?;
                    self.hole(Value::Csv { column, encoded });
                }
            }
        }
        self.done = range.end;
        Ok(())
    }

    /// The values of fields; cookies join the existing Cookie field.
    fn fields(
        &mut self,
        layout: &RequestLayout,
        headers: &[Vec<TemplatePiece<'_>>],
        cookies: Option<&Range<usize>>,
    ) -> Result<(), PrepareError> {
        for (range, pieces) in layout.values.iter().zip(headers) {
            let Some(range) = range else { continue };
            self.replace(range.clone(), pieces, false)?;
            if cookies == Some(range) {
                self.hole(Value::Cookies { is_joined: true });
            }
        }
        Ok(())
    }

    /// The rest of the head; returns its length without holes.
    fn end_head(&mut self, layout: &RequestLayout, body_varies: bool, adds_cookies: bool) -> usize {
        if let Some(digits) = layout.length.clone().filter(|_| body_varies) {
            self.keep_until(digits.start);
            self.hole(Value::Length);
            self.done = digits.end;
        }
        if adds_cookies {
            self.keep_until(self.head - "\r\n".len());
            self.hole(Value::Cookies { is_joined: false });
        }
        self.keep_until(self.head);
        self.text.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::SeedableRng as _;
    use record::Origin;

    use super::*;

    fn plan() -> LoadPlan {
        let mut plan = LoadPlan::get("127.0.0.1:81".parse().unwrap(), "/");
        let values = ["ann", "b&b /é"].map(str::to_owned).to_vec();
        plan.columns.push(Column { file: "u.csv".to_owned(), name: "name".to_owned(), values });
        plan
    }

    fn request(target: &str, headers: &[(&str, &str)], body: &str) -> RequestPlan {
        RequestPlan {
            method: if body.is_empty() { "GET" } else { "POST" }.to_owned(),
            headers: headers.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect(),
            body: body.as_bytes().to_vec(),
            templated: true,
            ..RequestPlan::get(target)
        }
    }

    /// Head and body of the request as it is sent with number `seq`.
    fn sent(plan: &LoadPlan, request: &RequestPlan, seq: u64, cookies: &str) -> (String, String) {
        let prepared = Prepared::new(plan, request).unwrap();
        let mut random = Pcg64Mcg::seed_from_u64(1);
        let cookies = (!cookies.is_empty()).then_some(cookies.as_bytes());
        let mut fill = Fill { seq, random: &mut random, columns: &plan.columns, cookies };
        let mut out = b"earlier".to_vec();
        let head = prepared.render(&mut fill, &mut out);
        let text = String::from_utf8(out).unwrap().split_off("earlier".len());
        if let Some(bytes) = prepared.bytes().filter(|_| cookies.is_none()) {
            assert_eq!((text.as_bytes(), head), (bytes, prepared.head_len));
        }
        let (head, body) = text.split_at(head);
        (head.to_owned(), body.to_owned())
    }

    #[test]
    fn a_request_without_placeholders_is_always_the_same_bytes() {
        let plan = plan();
        let mut request = request("/a?{x}", &[("A", "{b}")], "{}");
        let expected =
            "POST /a?{x} HTTP/1.1\r\nHost: 127.0.0.1:81\r\nA: {b}\r\nContent-Length: 2\r\n\r\n{}";
        let prepared = Prepared::new(&plan, &request).unwrap();
        assert_eq!(prepared.bytes(), Some(expected.as_bytes()));
        assert_eq!(prepared.head_len, expected.len() - 2);
        sent(&plan, &request, 1, "");
        request.target = "/{seq}{rand:9-1}".to_owned();
        request.templated = false;
        let bytes = Prepared::new(&plan, &request).unwrap();
        assert!(bytes.bytes().unwrap().starts_with(b"POST /{seq}{rand:9-1} HTTP/1.1\r\n"));
    }

    #[test]
    fn a_verbatim_request_is_sent_as_it_stands() {
        let plan = plan();
        let bytes = "HEAD  /{seq} HTTP/1.0\nhost:x\r\nCONTENT-length: 7\r\n\r\nab";
        let whole = RequestPlan {
            method: "HEAD".to_owned(),
            verbatim: Some(bytes.as_bytes().to_vec()),
            ..request("/other", &[("A", "{seq}")], "other")
        };
        let prepared = Prepared::new(&plan, &whole).unwrap();
        assert_eq!(prepared.bytes(), Some(bytes.as_bytes()));
        assert_eq!(prepared.kind(), RequestKind::Head);
        let (head, body) = sent(&plan, &whole, 3, "c=1");
        assert_eq!((&*head, &*body), (&bytes[..bytes.len() - 2], "ab"));
    }

    #[test]
    fn placeholders_are_filled_and_the_length_is_that_of_the_body() {
        let plan = plan();
        let request = request(
            "/{seq}?n={csv:u.csv:name}&d={rand:7-7}",
            &[("X-User", "<{csv:u.csv:name}>"), ("X-Seq", "{seq}{seq}")],
            "{\"name\":\"{csv:u.csv:name}\",\"n\":{seq}}",
        );
        let (head, body) = sent(&plan, &request, 12, "");
        assert_eq!(body, "{\"name\":\"ann\",\"n\":12}");
        let expected = "POST /12?n=ann&d=7 HTTP/1.1\r\nHost: 127.0.0.1:81\r\nX-User: <ann>\r\n\
            X-Seq: 1212\r\nContent-Length: 21\r\n\r\n";
        assert_eq!(head, expected);
        let (head, body) = sent(&plan, &request, u64::MAX, "");
        assert_eq!(body, "{\"name\":\"b&b /é\",\"n\":18446744073709551615}");
        assert!(
            head.starts_with("POST /18446744073709551615?n=b%26b%20%2F%C3%A9&d=7 HTTP/1.1\r\n")
        );
        assert!(head.contains("X-User: <b&b /é>\r\n"), "{head}");
        assert!(head.ends_with(&format!("Content-Length: {}\r\n\r\n", body.len())), "{head}");
    }

    #[test]
    fn cookies_make_one_field_with_those_that_are_there() {
        let plan = plan();
        let with_none = request("/", &[("A", "b")], "");
        let (head, _) = sent(&plan, &with_none, 0, "c=1; d=2");
        let expected = "GET / HTTP/1.1\r\nHost: 127.0.0.1:81\r\nA: b\r\nCookie: c=1; d=2\r\n\r\n";
        assert_eq!(head, expected);
        let with_one = request("/", &[("cookie", "s={seq}"), ("A", "b")], "x");
        let (head, body) = sent(&plan, &with_one, 5, "c=1");
        let expected = "POST / HTTP/1.1\r\nHost: 127.0.0.1:81\r\ncookie: s=5; c=1\r\nA: b\r\n\
            Content-Length: 1\r\n\r\n";
        assert_eq!((&*head, &*body), (expected, "x"));
    }

    #[test]
    fn version_connection_origin_and_expect_are_those_of_the_plan() {
        let mut plan = plan();
        let place = plan.origins[0].place.clone();
        plan.origins.push(Origin { place, host: "two".to_owned(), tls_name: None });
        plan.expect_continue = true;
        let mut post = request("/{seq}", &[], "{seq}");
        post.origin = 1;
        let prepared = Prepared::new(&plan, &post).unwrap();
        assert!(prepared.expects_continue() && prepared.origin() == 1);
        let (head, _) = sent(&plan, &post, 100, "");
        let expected = "POST /100 HTTP/1.1\r\nHost: two\r\nExpect: 100-continue\r\n\
            Content-Length: 3\r\n\r\n";
        assert_eq!(head, expected);
        let get = RequestPlan { method: "HEAD".to_owned(), ..request("/", &[], "") };
        let prepared = Prepared::new(&plan, &get).unwrap();
        assert!(!prepared.expects_continue() && prepared.kind() == RequestKind::Head);
        plan.version = HttpVersion::Http10;
        let (head, _) = sent(&plan, &post, 1, "");
        let expected = "POST /1 HTTP/1.0\r\nHost: two\r\nConnection: keep-alive\r\n\
            Content-Length: 1\r\n\r\n";
        assert_eq!(head, expected);
        assert!(!Prepared::new(&plan, &post).unwrap().expects_continue());
        (plan.version, plan.keep_alive) = (HttpVersion::Http11, false);
        let own = request("/", &[("Connection", "{seq}"), ("A", "{seq}")], "");
        let (head, _) = sent(&plan, &own, 3, "");
        let expected = "GET / HTTP/1.1\r\nHost: 127.0.0.1:81\r\nA: 3\r\nConnection: close\r\n\r\n";
        assert_eq!(head, expected);
    }

    #[test]
    fn what_would_break_the_framing_is_refused_when_the_plan_is_made() {
        let mut plan = plan();
        let refused = |plan: &LoadPlan, request: RequestPlan| {
            Prepared::new(plan, &request).unwrap_err().to_string()
        };
        plan.columns[0].values[1] = "x\r\nEvil: y".to_owned();
        let error = refused(&plan, request("/", &[("A", "{csv:u.csv:name}")], ""));
        assert!(error.contains("row 2 of column `name` of u.csv"), "{error}");
        let in_target = request("/{csv:u.csv:name}", &[], "");
        assert!(sent(&plan, &in_target, 1, "").0.starts_with("GET /x%0D%0AEvil%3A%20y HTTP"));
        let error = refused(&plan, request("/{csv:u.csv:pass}", &[], ""));
        assert!(error.contains("{csv:u.csv:pass}"), "{error}");
        let error = refused(&plan, request("/", &[("content-length", "1")], "{seq}"));
        assert!(error.contains("placeholders"), "{error}");
        let error = refused(&plan, request("/", &[("content-length", "2")], "{}x"));
        assert!(error.contains("contradicts"), "{error}");
        assert!(refused(&plan, request("/{rand:2-1}", &[], "")).contains("{rand:2-1}"));
        assert!(refused(&plan, request("/ {seq}", &[], "")).contains("percent-encode"));
        assert!(refused(&plan, request("/", &[("A", "{seq}\n")], "")).contains("control"));
    }

    #[test]
    fn random_numbers_stay_between_their_ends_and_reach_both() {
        let plan = plan();
        let prepared = Prepared::new(&plan, &request("/{rand:3-5}", &[], "")).unwrap();
        let (mut random, mut seen) = (Pcg64Mcg::seed_from_u64(7), [0; 3]);
        let mut out = Vec::with_capacity(100);
        for seq in 0..3000 {
            out.clear();
            let columns = &plan.columns;
            prepared
                .render(&mut Fill { seq, random: &mut random, columns, cookies: None }, &mut out);
            seen[usize::from(out["GET /".len()] - b'3')] += 1;
        }
        assert!(seen.iter().all(|&n| (800..1200).contains(&n)), "{seen:?}");
        assert_eq!(out.capacity(), 100, "nothing is allocated while there is room");
    }

    proptest! {
        /// Taken apart at spaces and line ends, as a server would.
        #[test]
        fn whatever_is_filled_in_a_server_reads_one_whole_request(
            values in prop::collection::vec("\\PC{0,8}|[ -~]{0,300}", 1..4),
            body in "(a|\\{seq\\}|\\{csv:u\\.csv:name\\}|\\{rand\\}|\\{|\\}){0,6}",
            seq in any::<u64>(),
        ) {
            let mut plan = plan();
            plan.columns[0].values = values.clone();
            let post = request("/{csv:u.csv:name}?{seq}", &[("A", "x{csv:u.csv:name}")], &body);
            let (head, sent_body) = sent(&plan, &post, seq, "c=1");
            let value = &values[(seq % values.len() as u64) as usize];
            let lines: Vec<&str> = head.strip_suffix("\r\n\r\n").unwrap().split("\r\n").collect();
            prop_assert_eq!(lines[0].split(' ').count(), 3);
            prop_assert_eq!(lines[2], format!("A: x{value}"));
            let length = lines.iter().find_map(|line| line.strip_prefix("Content-Length: "));
            let length = length.map_or(0, |digits| digits.parse::<usize>().unwrap());
            prop_assert_eq!(length, sent_body.len());
            let n_lines = if body.is_empty() { 4 } else { 5 };
            prop_assert_eq!(lines.len(), n_lines);
        }
    }
}
