//! What every model answers, as data: a request, the source that demands its answer, and the answer. Owns the site that
//! the cases are about and the judging of answers. Start reading at [`all`]; a runner sends [`Case::input`], reads to
//! the end, and [`Case::judge`]s.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, SystemTime};

mod rows;

/// Every case, in the order of the tables.
pub(crate) fn all() -> impl Iterator<Item = &'static Case> {
    rows::TABLES.iter().copied().flatten()
}

/// One case.
pub(crate) struct Case {
    /// The fact it proves.
    pub(crate) name: &'static str,
    /// What demands it.
    pub(crate) cites: &'static str,
    /// Bytes to send; `{etag}` stands for the entity tag of /ten.txt.
    pub(crate) request: &'static [u8],
    /// The answers, in order.
    pub(crate) replies: &'static [Reply],
    /// What becomes of the connection.
    pub(crate) then: Then,
}

/// An answer.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) fields: &'static [Field],
    pub(crate) body: Body,
}

/// A fact about a head.
#[derive(Debug)]
pub(crate) enum Field {
    Is(&'static str, &'static str),
    Begins(&'static str, &'static str),
    Has(&'static str),
    Lacks(&'static str),
}

/// A fact about a body.
#[derive(Debug)]
pub(crate) enum Body {
    Is(&'static [u8]),
    Holds(&'static [&'static str]),
    /// Bytes of /large.bin: the offset of the first, and how many.
    Large(usize, usize),
    /// A length is stated and nothing is sent: HEAD. `None`: any length.
    Told(Option<u64>),
    /// Neither length nor bytes: 1xx, 204, 304.
    None,
}

/// What becomes of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    /// It answers another request.
    Kept,
    /// The server closes it.
    Closed,
}

/// What follows the request of a case whose connection is kept.
const PROBE: &[u8] = b"GET /probe.txt HTTP/1.1\r\nHost: probe\r\nConnection: close\r\n\r\n";
const PROBED: Reply =
    Reply { status: 200, fields: &[Field::Is("connection", "close")], body: Body::Is(b"probed\n") };

/// The modification of every file of the site: the example of RFC 9110, 5.6.7.
const MODIFIED_S: u64 = 784_111_777;
pub(crate) const LARGE_LEN: usize = 200_000;

/// Byte `at` of /large.bin.
pub(crate) fn large_byte(at: usize) -> u8 {
    (at % 251) as u8
}

/// Makes the site in an empty directory: `site` in it is what is served, the rest is what must not be.
pub(crate) fn make_site(outer: &Path) {
    let site = outer.join("site");
    for directory in ["dir", "bare", ".git", "sp ace"] {
        fs::create_dir_all(site.join(directory)).unwrap();
    }
    let large: Vec<u8> = (0..LARGE_LEN).map(large_byte).collect();
    let files: [(&str, &[u8]); 12] = [
        ("index.html", b"<h1>home</h1>\n"),
        ("dir/index.htm", b"<h1>dir</h1>\n"),
        ("ten.txt", b"0123456789"),
        ("probe.txt", b"probed\n"),
        ("empty.txt", b""),
        ("style.css", b"body{}\n"),
        ("no-extension", b"\x00\x01"),
        ("sp ace/a b.txt", b"spaced\n"),
        ("50%.txt", b"percent\n"),
        (".hidden", b"hidden\n"),
        (".git/config", b"hidden\n"),
        ("large.bin", &large),
    ];
    fs::write(outer.join("secret"), "secret\n").unwrap();
    for (name, content) in files {
        let path = site.join(name);
        fs::write(&path, content).unwrap();
        let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(MODIFIED_S);
        fs::File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
    }
    symlink("ten.txt", site.join("inside")).unwrap();
    symlink("../secret", site.join("outside")).unwrap();
    symlink("/etc/passwd", site.join("absolute")).unwrap();
    symlink("..", site.join("up")).unwrap();
}

impl Case {
    /// What to send. `etag` is that of /ten.txt, with its quotes.
    pub(crate) fn input(&self, etag: &str) -> Vec<u8> {
        let mut input = Vec::new();
        let mut rest = self.request;
        while let Some(at) = find(rest, b"{etag}") {
            input.extend_from_slice(&rest[..at]);
            input.extend_from_slice(etag.as_bytes());
            rest = &rest[at + b"{etag}".len()..];
        }
        input.extend_from_slice(rest);
        if self.then == Then::Kept {
            input.extend_from_slice(PROBE);
        }
        input
    }

    /// Whether `output`, all that the server sent before it closed, is what must come back.
    pub(crate) fn judge(&self, output: &[u8]) -> Result<(), String> {
        let probed = (self.then == Then::Kept).then_some(&PROBED);
        let mut rest = output;
        for (index, reply) in self.replies.iter().chain(probed).enumerate() {
            rest = reply.judge(rest).map_err(|fault| {
                format!(
                    "{} ({}): reply {}: {fault}\nsent: {}\ngot: {}",
                    self.name,
                    self.cites,
                    index + 1,
                    self.request.escape_ascii(),
                    output[..output.len().min(2000)].escape_ascii()
                )
            })?;
        }
        if rest.is_empty() {
            Ok(())
        } else {
            Err(format!("{}: more came: {}", self.name, rest.escape_ascii()))
        }
    }
}

impl Reply {
    /// Checks the reply at the start of `bytes`; returns what follows it.
    fn judge<'a>(&self, mut bytes: &'a [u8]) -> Result<&'a [u8], String> {
        const GO_ON: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
        // Whether it comes depends on how the request was divided; a client must accept it (RFC 9110, 15.2).
        bytes = bytes.strip_prefix(GO_ON).unwrap_or(bytes);
        let end = find(bytes, b"\r\n\r\n").ok_or("no complete head")? + 4;
        let head = std::str::from_utf8(&bytes[..end]).map_err(|_| "the head is not ASCII")?;
        let body = &bytes[end..];
        let status = head.get(9..12).and_then(|digits| digits.parse().ok());
        if !head.starts_with("HTTP/1.1 ") || status != Some(self.status) {
            return Err(format!("expected status {}", self.status));
        }
        for field in self.fields {
            field.judge(head)?;
        }
        if self.status >= 200 {
            Field::Has("date").judge(head)?;
            Field::Is("server", "joust").judge(head)?;
        }
        let told = values(head, "content-length").next().and_then(|value| value.parse().ok());
        let len = match self.body {
            Body::Told(len) if len.is_none_or(|len| told == Some(len)) && told.is_some() => 0,
            Body::Told(len) => return Err(format!("expected Content-Length {len:?}")),
            Body::None if told.is_none() => 0,
            Body::None => return Err("expected no Content-Length".to_owned()),
            _ => usize::try_from(told.ok_or("no Content-Length")?).unwrap(),
        };
        let (body, rest) = body.split_at_checked(len).ok_or("the body is cut")?;
        self.body.judge(body)?;
        Ok(rest)
    }
}

impl Field {
    fn judge(&self, head: &str) -> Result<(), String> {
        let one = |name| {
            let mut all = values(head, name);
            all.next().filter(|_| all.next().is_none())
        };
        let holds = match self {
            Self::Is(name, value) => one(name).is_some_and(|found| found == *value),
            Self::Begins(name, value) => one(name).is_some_and(|found| found.starts_with(value)),
            Self::Has(name) => one(name).is_some(),
            Self::Lacks(name) => values(head, name).next().is_none(),
        };
        if holds { Ok(()) } else { Err(format!("expected {self:?}")) }
    }
}

impl Body {
    fn judge(&self, body: &[u8]) -> Result<(), String> {
        let holds = match self {
            Self::Is(expected) => body == *expected,
            Self::Holds(parts) => parts.iter().all(|part| find(body, part.as_bytes()).is_some()),
            Self::Large(from, len) => {
                body.len() == *len && body.iter().zip(*from..).all(|(b, at)| *b == large_byte(at))
            }
            Self::Told(_) | Self::None => body.is_empty(),
        };
        if holds { Ok(()) } else { Err(format!("expected {self:?}")) }
    }
}

/// Values of the fields of that name (in lower case) in a head.
fn values<'a>(head: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let fields = head.lines().skip(1).filter_map(|line| line.split_once(':'));
    fields.filter(move |(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}

fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|window| window == part)
}
