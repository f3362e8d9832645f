//! Requests as they are found, within bounds. Owns the checks that all formats share, and the errors. Start reading
//! at [`Harvest`].

use std::io;

use units::Nanos;

use super::{Base, ListedRequest, Listing, is_absolute};
use crate::placeholders;

/// Most requests of a file.
pub const REQUESTS_MAX: usize = 1_000_000;

/// Most bytes of all bodies of a file of requests, 1 GiB.
pub const BODY_BYTES_MAX: u64 = 1 << 30;

/// Why a file of requests is refused.
#[derive(Debug, thiserror::Error)]
#[error("{}: {fault}", place(.file, .line))]
pub struct SourceError {
    /// Name of the file.
    pub file: String,
    /// Its line, from 1, if one line is at fault.
    pub line: Option<usize>,
    /// What is wrong.
    pub fault: Fault,
}

fn place(file: &str, line: &Option<usize>) -> String {
    line.map_or_else(|| file.to_owned(), |line| format!("{file}:{line}"))
}

impl SourceError {
    pub(super) fn new(base: &Base<'_>, line: Option<usize>, fault: Fault) -> Self {
        Self { file: base.name.to_owned(), line, fault }
    }
}

/// What is wrong with a file of requests.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// No such format.
    #[error("unknown format `{name}`: use one of {names}")]
    NoFormat {
        /// What was typed.
        name: String,
        /// All names.
        names: String,
    },
    /// The text has no known format.
    #[error("cannot tell the format of the file: name it, one of {0}")]
    Unlike(String),
    /// There are no requests.
    #[error("the file has no requests: give at least one")]
    Empty,
    /// Too many requests.
    #[error("more than {REQUESTS_MAX} requests: give fewer lines, and weights where lines repeat")]
    TooMany,
    /// Too many bytes in bodies.
    #[error("the bodies have more than {BODY_BYTES_MAX} bytes in all: send fewer or smaller ones")]
    TooLarge,
    /// A body's file.
    #[error("cannot read `{name}`: {source}; names are relative to the folder of this file")]
    File {
        /// As written.
        name: String,
        /// What the system said.
        source: io::Error,
    },
    /// A target without a server.
    #[error("`{0}` names no server: give the URL of one, as in http://127.0.0.1:8080")]
    Relative(String),
    /// Another scheme.
    #[error("`{0}`: joust speaks http and https; write http://host:port/path")]
    Scheme(String),
    /// A URL with characters that no URL may contain.
    #[error("`{0}` has a space, a control character or a byte outside ASCII: percent-encode it")]
    Url(String),
    /// An invalid method.
    #[error("`{0}` is not a method: write it as in GET or PROPFIND")]
    Method(String),
    /// An invalid field.
    #[error("`{0}` is not a header field: write it as in `Accept: text/html`, on one line")]
    Field(String),
    /// Some requests have a time, some have none.
    #[error("only some requests have a time: give every request one, or none at all")]
    SomeTimes,
    /// Invalid JSON, or another document.
    #[error("{0}: not a complete HTTP Archive as browsers save it")]
    Json(serde_json::Error),
    /// What the format does not allow, and the way out.
    #[error("{0}")]
    Format(String),
}

/// Requests as they are found.
pub(super) struct Harvest<'a> {
    base: &'a Base<'a>,
    asked: Vec<ListedRequest>,
    notes: Vec<String>,
    n_bytes: u64,
}

impl<'a> Harvest<'a> {
    pub(super) fn new(base: &'a Base<'a>) -> Self {
        Self { base, asked: Vec::new(), notes: Vec::new(), n_bytes: 0 }
    }

    /// Notes what part of the text is not in the requests; each note appears once.
    pub(super) fn note(&mut self, note: impl Into<String>) {
        let note = note.into();
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// The bytes of a file that the text names.
    pub(super) fn file(&self, name: &str) -> Result<Vec<u8>, Fault> {
        let left = BODY_BYTES_MAX - self.n_bytes;
        self.base.files.read(name, left).map_err(|source| match source.kind() {
            io::ErrorKind::FileTooLarge => Fault::TooLarge,
            _ => Fault::File { name: name.to_owned(), source },
        })
    }

    /// Takes a request, if it can be sent.
    pub(super) fn push(&mut self, mut asked: ListedRequest) -> Result<(), Fault> {
        if self.asked.len() == REQUESTS_MAX {
            return Err(Fault::TooMany);
        }
        self.n_bytes += asked.body.len() as u64;
        if self.n_bytes > BODY_BYTES_MAX {
            return Err(Fault::TooLarge);
        }
        asked.url = absolute(asked.url, self.base.url)?;
        let is_token = |text: &str| {
            let is_allowed = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
            !text.is_empty() && text.bytes().all(is_allowed)
        };
        if !is_token(&asked.method) {
            return Err(Fault::Method(asked.method.escape_debug().to_string()));
        }
        let is_value = |text: &str| text.bytes().all(|b| !b.is_ascii_control() || b == b'\t');
        if let Some((name, value)) =
            asked.headers.iter().find(|(name, value)| !is_token(name) || !is_value(value))
        {
            return Err(Fault::Field(format!("{name}: {value}").escape_debug().to_string()));
        }
        self.asked.push(asked);
        Ok(())
    }

    /// As [`Harvest::push`], for text written by hand, in which placeholders are intended.
    pub(super) fn push_written(&mut self, mut asked: ListedRequest) -> Result<(), Fault> {
        let is_templated = |text: &[u8]| placeholders::is_templated(text);
        asked.templated = is_templated(asked.url.as_bytes())
            || is_templated(&asked.body)
            || asked.headers.iter().any(|(_, value)| is_templated(value.as_bytes()));
        self.push(asked)
    }

    /// What was found, in the order of its times, which are now relative to the first.
    pub(super) fn finish(mut self) -> Result<Listing, SourceError> {
        let refuse = |fault| Err(SourceError::new(self.base, None, fault));
        let n_timed = self.asked.iter().filter(|asked| asked.at.is_some()).count();
        if self.asked.is_empty() {
            return refuse(Fault::Empty);
        }
        if n_timed != 0 && n_timed != self.asked.len() {
            return refuse(Fault::SomeTimes);
        }
        // A log is in the order in which replies ended; requests are made in the order of their times.
        self.asked.sort_by_key(|asked| asked.at);
        let first = self.asked.first().and_then(|asked| asked.at).unwrap_or(Nanos::ZERO);
        for asked in &mut self.asked {
            asked.at = asked.at.map(|at| at.saturating_sub(first));
        }
        Ok(Listing { asked: self.asked, notes: self.notes })
    }
}

/// The URL with a server: its own, or that of the base for a target; http if there is no scheme.
fn absolute(url: String, base: Option<&str>) -> Result<String, Fault> {
    let shown = || url.escape_debug().to_string();
    if url.is_empty() || !url.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Fault::Url(shown()));
    }
    if url.starts_with('/') {
        let base = base.ok_or_else(|| Fault::Relative(shown()))?;
        let (scheme, rest) = base.split_once("://").unwrap_or(("http", base));
        let server = rest.split(['/', '?', '#']).next().unwrap_or_default();
        return absolute(format!("{scheme}://{server}{url}"), None);
    }
    match url.split_once("://") {
        _ if is_absolute(&url) => Ok(url),
        Some((scheme, _)) if !scheme.contains(['/', '?', '#']) => Err(Fault::Scheme(shown())),
        _ => Ok(format!("http://{url}")),
    }
}

/// What is wrong with a line of JSON, whose own count of lines is always 1.
pub(super) fn json_line(error: serde_json::Error) -> Fault {
    let text = error.to_string();
    let what = text.rsplit_once(" at line ").map_or(&*text, |(what, _)| what);
    Fault::Format(format!(
        "{what} (column {}): write one object a line, as in {{\"method\": \"GET\", \"url\": \"/\"}}",
        error.column()
    ))
}

/// An instant in nanoseconds since 1970, as times are before [`Harvest::finish`].
pub(super) fn instant(time: jiff::Timestamp) -> Option<Nanos> {
    u64::try_from(time.as_nanosecond()).ok().map(Nanos)
}

#[cfg(test)]
mod tests {
    use super::super::testing::try_read;
    use super::*;

    fn push(asked: ListedRequest, url: Option<&str>) -> Result<String, Fault> {
        let files = super::super::Folder("/".into());
        let base = Base { name: "f", url, files: &files, variables: &|_| None };
        let mut harvest = Harvest::new(&base);
        harvest.push(asked)?;
        Ok(harvest.finish().unwrap().asked.remove(0).url)
    }

    #[test]
    fn urls_become_absolute_or_are_refused() {
        let cases = [
            ("http://a/b", None, "http://a/b"),
            ("HTTPS://a", None, "HTTPS://a"),
            ("a:81/b?u=ftp://x", None, "http://a:81/b?u=ftp://x"),
            ("/b?c", Some("https://[::1]:82/d/e"), "https://[::1]:82/b?c"),
            ("/", Some("h"), "http://h/"),
        ];
        for (url, base, expected) in cases {
            assert_eq!(push(ListedRequest::get(url), base).unwrap(), expected);
        }
        let refused = |url, base| push(ListedRequest::get(url), base).unwrap_err();
        assert!(matches!(refused("/b", None), Fault::Relative(_)));
        assert!(matches!(refused("/b", Some("ftp://x")), Fault::Scheme(_)));
        assert!(matches!(refused("ftp://a/b", None), Fault::Scheme(_)));
        assert!(matches!(refused("", None), Fault::Url(_)));
        assert!(matches!(refused("http://a/b c", None), Fault::Url(_)));
        assert!(matches!(refused("http://a/b\r\nX: y", None), Fault::Url(_)));
    }

    #[test]
    fn what_no_request_can_have_is_refused() {
        let field = |name: &str, value: &str| ListedRequest {
            headers: vec![(name.to_owned(), value.to_owned())],
            ..ListedRequest::get("http://a/")
        };
        for (name, value) in [("A b", "c"), ("", "c"), ("A", "b\r\nC: d"), ("A", "\0")] {
            assert!(matches!(push(field(name, value), None), Err(Fault::Field(_))), "{name}");
        }
        let asked = ListedRequest { method: "G T".to_owned(), ..ListedRequest::get("http://a/") };
        assert!(matches!(push(asked, None), Err(Fault::Method(_))));
        let error = try_read("{\"url\":\"/\",\"at\":1}\n{\"url\":\"/\"}", None).unwrap_err();
        assert!(matches!(error.fault, Fault::SomeTimes));
        assert_eq!(error.to_string().split(':').next(), Some("file"));
    }

    #[test]
    fn requests_and_bodies_are_bounded() {
        let lines = |n: usize| "/\n".repeat(n);
        assert_eq!(
            try_read(&lines(REQUESTS_MAX), Some("siege")).unwrap().asked.len(),
            REQUESTS_MAX
        );
        let error = try_read(&lines(REQUESTS_MAX + 1), Some("siege")).unwrap_err();
        assert!(matches!(error.fault, Fault::TooMany) && error.line == Some(REQUESTS_MAX + 1));
        let base = Base {
            name: "f",
            url: None,
            files: &super::super::Folder("/".into()),
            variables: &|_| None,
        };
        let mut harvest = Harvest::new(&base);
        harvest.n_bytes = BODY_BYTES_MAX - 2;
        let body =
            |n: usize| ListedRequest { body: vec![b'x'; n], ..ListedRequest::get("http://a/") };
        harvest.push(body(2)).unwrap();
        assert!(matches!(harvest.push(body(1)), Err(Fault::TooLarge)));
    }
}
