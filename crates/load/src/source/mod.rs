//! Files of requests, as other tools write them. Owns the list of formats and what they have in common. Must not know
//! what a load does with the requests, and opens files only through [`Files`].
//! Start reading at [`read`]. To add a format: its file here, and a line in [`FORMATS`].

mod access_log;
mod curl;
mod har;
mod harvest;
mod http_load;
mod jsonl;
mod pairs;
mod shell;
mod siege;
mod vegeta;

use std::io::{self, Read as _};
use std::path::PathBuf;

use base64::Engine as _;
use units::Nanos;

pub use harvest::{BODY_BYTES_MAX, Fault, REQUESTS_MAX, SourceError};

/// One request of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedRequest {
    /// Absolute: `http://` or `https://`.
    pub url: String,
    /// Method ("GET").
    pub method: String,
    /// Header fields, name and value, in order.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: Vec<u8>,
    /// How often it is chosen, relative to the others, at least 1.
    pub weight: u32,
    /// When it is due, counted from the first request.
    pub at: Option<Nanos>,
    /// Whether it may have placeholders: recorded requests have none.
    pub templated: bool,
}

impl ListedRequest {
    /// `GET url`, once.
    pub(crate) fn get(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            method: "GET".to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
            weight: 1,
            at: None,
            templated: false,
        }
    }

    /// Whether there is a field of that name, in any case.
    fn has_field(&self, name: &str) -> bool {
        self.headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name))
    }
}

/// The requests of a file, in its order; if they have times, in the order of those.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// At least one. All of them have a time, or none has.
    pub asked: Vec<ListedRequest>,
    /// Which parts of the file are not in the requests, one line for each kind, for the user.
    pub notes: Vec<String>,
}

/// What a format reads in addition to its text.
pub struct Base<'a> {
    /// Name of the file, for messages.
    pub name: &'a str,
    /// URL of the server, for targets that name none (`/a?b`).
    pub url: Option<&'a str>,
    /// The files that the text names.
    pub files: &'a dyn Files,
    /// Variables that the text does not set itself: the environment, where siege looks them up.
    pub variables: &'a dyn Fn(&str) -> Option<String>,
}

/// Files by the names that a file of requests gives them.
pub trait Files {
    /// The bytes of a file, or an error if there are more than `bytes_max`.
    ///
    /// # Errors
    /// It cannot be read, or is too large ([`io::ErrorKind::FileTooLarge`]).
    fn read(&self, name: &str, bytes_max: u64) -> io::Result<Vec<u8>>;
}

/// Files relative to a folder: that of the file of requests, or the current one for a pasted line.
#[derive(Debug, Clone)]
pub struct Folder(pub PathBuf);

impl Files for Folder {
    fn read(&self, name: &str, bytes_max: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let file = std::fs::File::open(self.0.join(name))?;
        file.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > bytes_max {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(bytes)
    }
}

/// A format for requests.
pub struct Format {
    /// Name, as it is typed.
    pub name: &'static str,
    /// What it is, in a line of help.
    pub about: &'static str,
    /// Whether a text seems to have this format; tried in the order of [`FORMATS`].
    pub looks_like: fn(&str) -> bool,
    /// Reads a text.
    pub read: fn(&str, &Base<'_>) -> Result<Listing, SourceError>,
}

/// All formats. A stricter one comes before one that would also accept its texts.
pub static FORMATS: &[&Format] = &[
    &har::FORMAT,
    &vegeta::FORMAT,
    &jsonl::FORMAT,
    &curl::FORMAT,
    &access_log::FORMAT,
    &http_load::FORMAT,
    &siege::FORMAT,
];

/// Reads requests from a text in `format`, or in the first format that it looks like.
///
/// # Errors
/// A part of the text cannot be read; the error names its line. A file is read completely or not at all.
pub fn read(text: &str, format: Option<&str>, base: &Base<'_>) -> Result<Listing, SourceError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let refuse = |fault| SourceError::new(base, None, fault);
    let found = match format {
        Some(name) => FORMATS.iter().find(|format| format.name == name),
        None => FORMATS.iter().find(|format| (format.looks_like)(text)),
    };
    let names = || FORMATS.iter().map(|format| format.name).collect::<Vec<_>>().join(", ");
    match (found, format) {
        (Some(format), _) => (format.read)(text, base),
        (None, Some(name)) => {
            Err(refuse(Fault::NoFormat { name: name.to_owned(), names: names() }))
        }
        (None, None) if text.trim().is_empty() => Err(refuse(Fault::Empty)),
        (None, None) => Err(refuse(Fault::Unlike(names()))),
    }
}

/// The value of `Authorization` for a name and a password, "user:pass" (RFC 7617).
pub fn basic_auth(user_and_password: &str) -> String {
    format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(user_and_password))
}

/// The lines of a text that are neither empty nor a comment, trimmed, each with its number from 1.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let numbered = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    numbered.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

/// The first line that is neither empty nor a comment, or an empty text.
fn first_line(text: &str) -> &str {
    lines(text).next().map_or("", |(_, line)| line)
}

/// Whether a line looks like a JSON object.
fn is_object(line: &str) -> bool {
    line.starts_with('{') && line.ends_with('}')
}

/// Whether a text is a URL with a scheme that joust speaks.
fn is_absolute(url: &str) -> bool {
    let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
    scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
}

/// A target that may stand in a request line: spaces, control characters, quotes and bytes outside ASCII are
/// percent-encoded, and nothing else changes.
fn escaped(target: &[u8]) -> String {
    let mut out = String::with_capacity(target.len());
    for &byte in target {
        if byte.is_ascii_graphic() && byte != b'"' {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// A name or a value as forms send it (URL standard, application/x-www-form-urlencoded).
fn form_encoded(text: impl AsRef<[u8]>) -> String {
    let mut out = String::new();
    for &byte in text.as_ref() {
        match byte {
            b' ' => out.push('+'),
            byte if byte.is_ascii_alphanumeric() || b"*-._".contains(&byte) => {
                out.push(char::from(byte));
            }
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
pub(crate) mod testing {
    //! A setting for the tests of formats: a few files, one variable, a base URL.

    use super::*;

    struct Shelf;

    impl Files for Shelf {
        fn read(&self, name: &str, bytes_max: u64) -> io::Result<Vec<u8>> {
            let bytes = match name {
                "body.bin" => b"line\r\none\0".to_vec(),
                "a/b.json" => b"{\"n\":{seq}}".to_vec(),
                _ => return Err(io::ErrorKind::NotFound.into()),
            };
            if bytes.len() as u64 > bytes_max {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            Ok(bytes)
        }
    }

    pub(crate) fn try_read(text: &str, format: Option<&str>) -> Result<Listing, SourceError> {
        let variables = |name: &str| (name == "HOME_PORT").then(|| "8080".to_owned());
        let url = Some("http://base:81/ignored?x");
        read(text, format, &Base { name: "file", url, files: &Shelf, variables: &variables })
    }

    /// The requests of a text in that format; also checks that the format is recognised.
    pub(crate) fn listed(text: &str, format: &str) -> Listing {
        let found = FORMATS.iter().find(|format| (format.looks_like)(text)).map(|f| f.name);
        assert_eq!(found, Some(format), "{text}");
        try_read(text, Some(format)).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Requests as lines: method, URL, fields, body.
    pub(crate) fn shown(listing: &Listing) -> Vec<String> {
        let show = |asked: &ListedRequest| {
            let mut line = format!("{} {}", asked.method, asked.url);
            for (name, value) in &asked.headers {
                line += &format!(" | {name}: {value}");
            }
            if !asked.body.is_empty() {
                line += &format!(" || {}", asked.body.escape_ascii());
            }
            line
        };
        listing.asked.iter().map(show).collect()
    }

    /// Checks that each text is refused, with a message that contains the text beside it.
    pub(crate) fn refuses(format: &str, cases: &[(&str, &str)]) {
        for (text, part) in cases {
            let error = try_read(text, Some(format)).expect_err(text).to_string();
            assert!(error.contains(part), "{text:?}: {error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::testing::{listed, try_read};
    use super::*;

    #[test]
    fn names_are_unique_and_an_unknown_one_names_the_others() {
        let error = try_read("http://a/", Some("wget")).unwrap_err().to_string();
        for (index, format) in FORMATS.iter().enumerate() {
            assert!(error.contains(format.name), "{error}");
            assert!(FORMATS[..index].iter().all(|other| other.name != format.name));
        }
        let error = try_read("what is this?", None).unwrap_err().to_string();
        assert!(error.contains("siege"), "{error}");
        assert!(try_read(" \n", None).unwrap_err().to_string().contains("no request"));
    }

    /// RFC 7617, 2 and 2.1.
    #[test]
    fn basic_credentials_are_those_of_the_rfc() {
        assert_eq!(basic_auth("Aladdin:open sesame"), "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
        assert_eq!(basic_auth("test:123£"), "Basic dGVzdDoxMjPCow==");
    }

    #[test]
    fn files_are_read_beside_the_file_that_names_them_and_only_up_to_the_bound() {
        let dir = std::env::temp_dir().join(format!("joust-source-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("body"), b"12345").unwrap();
        let folder = Folder(dir.clone());
        let read = (folder.read("body", 5), folder.read("body", 4), folder.read("none", 4));
        std::fs::remove_dir_all(&dir).unwrap();
        assert_eq!(read.0.unwrap(), b"12345");
        assert_eq!(read.1.unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(read.2.unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn times_count_from_the_first_and_order_the_requests() {
        let text =
            "{\"url\":\"/b\",\"at\":5.5}\n{\"url\":\"/a\",\"at\":4}\n{\"url\":\"/c\",\"at\":5.5}";
        let listing = listed(text, "jsonl");
        let due: Vec<_> = listing.asked.iter().map(|a| (&*a.url, a.at.unwrap().0)).collect();
        let second = 1_500_000_000;
        let expected =
            [("http://base:81/a", 0), ("http://base:81/b", second), ("http://base:81/c", second)];
        assert_eq!(due, expected);
    }

    fn scraps() -> impl Strategy<Value = String> {
        let scrap = prop::sample::select(vec![
            "GET ",
            "POST ",
            "http://a/",
            "/x",
            " ",
            "\n",
            "\r\n",
            "\"",
            "'",
            "$'",
            "$(",
            "${",
            "}",
            "A=",
            "$(A)",
            "\\",
            "\\x",
            "\\u00",
            "{",
            "[",
            "]",
            ":",
            "@",
            "@<<",
            "-d",
            " -H ",
            "curl ",
            "--json",
            "{\"url\":",
            "{\"log\":",
            "null",
            "1e400",
            "#",
            "<",
            "é",
            "%",
            "\0",
            "127.0.0.1 - - [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.0\" 200 1",
            "=",
            ";",
            "-",
            "{\"log\":{\"entries\":[{\"request\":{\"method\":\"GET\",\"url\":\"http://a/\"}}]}}",
        ]);
        prop::collection::vec(scrap, 0..16).prop_map(|scraps| scraps.concat())
    }

    proptest! {
        #[test]
        fn no_text_makes_a_format_panic_or_give_what_cannot_be_sent(
            text in prop_oneof![any::<String>(), scraps()],
        ) {
            for name in FORMATS.iter().map(|format| Some(format.name)).chain([None]) {
                let Ok(listing) = try_read(&text, name) else { continue };
                prop_assert!(!listing.asked.is_empty());
                for asked in listing.asked {
                    prop_assert!(is_absolute(&asked.url) && asked.weight > 0, "{:?}", asked);
                    prop_assert!(asked.url.bytes().all(|b| b.is_ascii_graphic()), "{:?}", asked);
                    let is_text = |value: &str| !value.contains(['\r', '\n', '\0']);
                    prop_assert!(asked.headers.iter().all(|(n, v)| is_text(n) && is_text(v)));
                }
            }
        }
    }
}
