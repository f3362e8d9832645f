//! URLs as siege parses, escapes and completes them, and the file that lists them. Owns their quirks. Start reading at
//! [`Url::new`].

use std::path::Path;

use super::conf::{begins, evaluate, pair};
use super::settings::Settings;
use super::text::{NotifyLevel, notify};
use crate::command::{Surroundings, strerror};

/// Longest line of a file.
const LINE_MAX: usize = 40_000;

/// Methods that may follow a URL; of several, the first in this list counts.
const METHODS: [&str; 5] = ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// File name suffixes: the content is sent trimmed (`+`) or unchanged. Files with other suffixes are trimmed too.
const KINDS: &str = "ai aif aifc aiff +asc au avi bcpio bin +c +cc ccad cdf class cpio cpt csh +css +csv \
    dcr dir dms doc drw dvi dwg dxf dxr eps +etx exe ez +f +f90 fli gif gtar gz +h hdf +hh hqx +htm \
    +html ice ief iges igs ips ipx jpe jpeg jpg js json kar latex lha lsp lzh +m man +md me mesh mid \
    midi mif mime mov movie mp2 mp3 mpe mpeg mpg mpga ms msh nc oda pbm pdb pdf pgm pgn png pnm pot \
    ppm pps ppt ppz pre prt ps qt ra ram ras rgb rm roff rpm +rtf +rtx scm set +sgm +sgml sh shar silo \
    sit skd skm skp skt smi smil snd sol spl src step stl stp sv4cpio sv4crc +svg swf t tar tcl tex \
    texi texinfo tif tiff tr tsi tsp +tsv +txt unv ustar vcd vda viv vivo vrml wav wrl xbm xlc xll xlm \
    xls xlw +xml xpm xwd xyz +yml zip";

/// The requested URL.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Url {
    /// Its index in the file, as printed with csv.
    pub(super) id: usize,
    /// With its scheme, escaped, without a method and what follows it.
    pub(super) whole: String,
    pub(super) scheme: Scheme,
    pub(super) method: Method,
    pub(super) host: String,
    /// As written: it may be invalid.
    pub(super) port: u32,
    /// The request target: path and query.
    pub(super) target: String,
    /// Up to the last slash of `target`, even one after a `?`.
    folder: String,
    pub(super) body: Vec<u8>,
    pub(super) content_type: String,
}

/// Which protocol.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Scheme {
    #[default]
    Http,
    Https,
    Ftp,
    /// A scheme that siege does not know.
    Unsupported,
}

/// A request's method, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Method(pub(super) &'static str);

impl Default for Method {
    fn default() -> Self {
        Self("GET")
    }
}

impl Method {
    /// Whether the request announces a body, even an empty one.
    pub(super) fn posts(self) -> bool {
        METHODS.contains(&self.0)
    }
}

impl Url {
    pub(super) fn new(text: &str, escapes: bool, content_type: &str) -> Self {
        let text = if escapes && !has_method(text) { escape(text) } else { text.to_owned() };
        let mut whole = match has_scheme(&text) {
            true => text,
            false if text.contains('/') => format!("http://{text}"),
            false => format!("http://{text}/"),
        };
        let mut url = Self::default();
        let found = METHODS.iter().find_map(|name| Some((*name, whole.find(&format!(" {name}"))?)));
        if let Some((name, at)) = found {
            let data = whole[at + 1 + name.len()..].trim_start();
            (url.method, url.body) = (Method(name), data.as_bytes().to_vec());
            content_type.clone_into(&mut url.content_type);
            whole.truncate(at);
        }
        let (scheme, skipped) = scheme(&whole);
        url.scheme = scheme;
        let mut left = whole.get(skipped..).unwrap_or_default();
        if let Some(at) = left.find(['@', '/', '?', '#', ';'])
            && left[at..].starts_with('@')
        {
            // Credentials are only used for FTP.
            left = &left[at + 1..];
        }
        left = left.strip_prefix("//").unwrap_or(left);
        // An IPv6 address keeps its brackets, as in the Host field.
        let closed = left.starts_with('[').then(|| left.find(']')).flatten();
        let end = closed.map(|at| at + 1).or_else(|| left.find(['/', '#', ':']));
        let end = end.unwrap_or(left.len());
        left[..end].clone_into(&mut url.host);
        left = left[end..].strip_prefix(':').unwrap_or(&left[end..]);
        let end = left.find(|c: char| !c.is_ascii_digit()).unwrap_or(left.len());
        let usual = if scheme == Scheme::Https { 443 } else { 80 };
        url.port = if end == 0 { usual } else { left[..end].parse().unwrap_or(u32::MAX) };
        left = &left[end..];
        let asked = left.split('#').next().unwrap_or_default().trim();
        (url.folder, url.target) = match left.rfind('/') {
            Some(at) if !left.starts_with('#') => (left[..=at].to_owned(), asked.to_owned()),
            _ => ("/".to_owned(), "/".to_owned()),
        };
        url.whole = whole;
        url
    }

    /// A typed URL: its body may be in a file. siege's messages are added to `said`.
    pub(super) fn typed(
        line: &str,
        id: usize,
        settings: &Settings,
        world: &dyn Surroundings,
        said: &mut String,
    ) -> Self {
        let mut url = Self::new(line, settings.escape, &settings.content_type);
        url.id = id;
        let body = String::from_utf8_lossy(&url.body).into_owned();
        if let Some(name) = body.strip_prefix('<') {
            let name = name.trim();
            url.body = match world.read(Path::new(name)) {
                Ok(bytes) if is_text(name) => bytes.trim_ascii().to_vec(),
                Ok(bytes) => bytes,
                Err(error) => {
                    let text = format!("unable to open file: {name}: {}", strerror(&error));
                    *said += &notify(NotifyLevel::Error, &text);
                    Vec::new()
                }
            };
        }
        url
    }

    /// Completes a URL from a page or a redirect, as siege does: by its form.
    pub(super) fn resolve(&self, named: &str) -> Self {
        let named = named.replace("&amp;", "&");
        let alone = || Self::new(&named, true, "");
        if named.contains(':') {
            let url = alone();
            if url.host.len() > 1 {
                return url;
            }
        }
        let as_this = |url: Self| Self { scheme: self.scheme, ..url };
        let is_relative = named.starts_with(['/', '.']);
        if !is_relative && named.contains('.') && named.contains('/') {
            let url = alone();
            if url.host.contains('.') {
                return as_this(url);
            }
        }
        if named.contains("localhost") {
            let url = alone();
            if url.host.len() == "localhost".len() {
                return as_this(url);
            }
        }
        let scheme = if self.scheme == Scheme::Https { "https" } else { "http" };
        let place = format!("{scheme}://{}:{}", self.host, self.port);
        let whole = if named.starts_with("//") {
            format!("{scheme}:{named}")
        } else if named.starts_with('/') {
            format!("{place}{named}")
        } else {
            // Both `./a` and `../a` lose their first two characters.
            let is_dotted = named.len() > 1 && named.starts_with('.');
            let below = if is_dotted { behind_two(&named) } else { named.clone() };
            format!("{place}{}{below}", self.folder)
        };
        as_this(Self::new(&whole, true, ""))
    }

    /// The form that is shown in a line of the load.
    pub(super) fn shown(&self, in_full: bool) -> &str {
        if self.method.0 == "GET" && !in_full { &self.target } else { &self.whole }
    }
}

/// Without the first two bytes. If that splits a character, its rest is percent-encoded.
fn behind_two(text: &str) -> String {
    if let Some(rest) = text.get(2..) {
        return rest.to_owned();
    }
    let end = text.ceil_char_boundary(2);
    let left: String = text.as_bytes()[2..end].iter().map(|b| format!("%{b:02X}")).collect();
    left + &text[end..]
}

/// As in RFC 2396, but without points: `localhost:80/` has a scheme, `127.0.0.1:80` has none.
fn has_scheme(text: &str) -> bool {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '+'));
    end.is_some_and(|end| end > 0 && text[end..].starts_with(':'))
}

fn scheme(whole: &str) -> (Scheme, usize) {
    match whole {
        _ if begins(whole, "http:") => (Scheme::Http, 7),
        _ if begins(whole, "https:") => (Scheme::Https, 8),
        _ if begins(whole, "ftp:") => (Scheme::Ftp, 6),
        _ => (Scheme::Unsupported, 0),
    }
}

/// If it has a method, nothing is escaped.
fn has_method(text: &str) -> bool {
    let others = ["GET", "HEAD", "TRACE", "CONNECT"];
    METHODS.iter().chain(&others).any(|name| text.contains(&format!(" {name}")))
}

/// Encodes spaces and similar characters (`%20`); decodes unnecessary escapes.
fn escape(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut escaped = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        let digits = bytes.get(at + 1..at + 3).filter(|d| d.iter().all(u8::is_ascii_hexdigit));
        let coded = digits.and_then(|d| u8::from_str_radix(std::str::from_utf8(d).ok()?, 16).ok());
        match coded.filter(|_| byte == b'%') {
            Some(coded) if !is_unsafe(coded) && !is_reserved(coded) => {
                escaped.push(coded);
                at += 2;
            }
            Some(_) => escaped.push(byte),
            None if is_unsafe(byte) && !is_reserved(byte) => {
                escaped.extend_from_slice(format!("%{byte:02X}").as_bytes());
            }
            None => escaped.push(byte),
        }
        at += 1;
    }
    String::from_utf8_lossy(&escaped).into_owned()
}

fn is_unsafe(byte: u8) -> bool {
    byte <= b' ' || byte >= 0x7f || b"\"#%:<>@[\\]^`{|}".contains(&byte)
}

fn is_reserved(byte: u8) -> bool {
    b"#&/:;=?@[]".contains(&byte)
}

fn is_text(name: &str) -> bool {
    let Some((_, end)) = name.rsplit_once('.') else { return true };
    let fits = |kind: &&str| kind.trim_start_matches('+') == end;
    KINDS.split_whitespace().find(fits).is_none_or(|kind| kind.starts_with('+'))
}

/// The non-empty lines of a file of URLs, with variables replaced.
pub(super) fn lines(bytes: &[u8], world: &dyn Surroundings) -> Vec<String> {
    let mut variables = Vec::new();
    let mut urls = Vec::new();
    for line in String::from_utf8_lossy(bytes).lines().filter(|line| line.len() < LINE_MAX) {
        let mut line = line;
        // A comment after words is only recognised if there is no slash.
        if line.contains(' ') && !line.contains('/') {
            line = line.split('#').next().unwrap_or_default();
        }
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        match line.split_once('=') {
            Some((name, _)) if name.chars().all(is_name) => {
                let (name, value) = pair(line);
                variables.push((name.to_owned(), value.to_owned()));
            }
            _ => urls.push(evaluate(&variables, world, line)),
        }
    }
    urls
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::testing::World;

    fn url(text: &str) -> Url {
        Url::new(text, true, "t/t")
    }

    #[test]
    fn urls_are_taken_apart_as_siege_does() {
        let parts = |text: &str| {
            let url = url(text);
            (url.scheme, url.host, url.port, url.target)
        };
        let http = |host: &str, port: u32, target: &str| {
            (Scheme::Http, host.to_owned(), port, target.to_owned())
        };
        assert_eq!(parts("127.0.0.1:81"), http("127.0.0.1", 81, "/"));
        assert_eq!(parts("h/a?b=c d#e"), http("h", 80, "/a?b=c%20d"));
        assert_eq!(parts("http://u:p@h/%41%2f"), http("h", 80, "/A%2f"));
        assert_eq!(parts("http://h:81?x=1").3, "/", "the quirk: no path, no query");
        assert_eq!(parts("https://h").2, 443);
        assert_eq!(parts("[::1]:81/a"), http("[::1]", 81, "/a"));
        assert_eq!(parts("http://[::1]/"), http("[::1]", 80, "/"));
        assert_eq!(parts("http://[::1").1, "[", "no bracket closes it");
        // Not another, valid port.
        assert_eq!(parts("http://h:65536/").2, 65536);
        assert_eq!(parts("http://h:99999999999/").2, u32::MAX);
        assert_eq!(parts("localhost:80/x").0, Scheme::Unsupported, "the quirk");
        assert_eq!(parts("ftp://h/").0, Scheme::Ftp);
    }

    #[test]
    fn a_method_and_its_data_follow_the_url() {
        let post = url("http://h/a b POST  x=1&y=2");
        assert_eq!((post.method.0, post.body.as_slice()), ("POST", &b"x=1&y=2"[..]));
        assert_eq!((post.whole.as_str(), post.content_type.as_str()), ("http://h/a b", "t/t"));
        assert_eq!(post.shown(false), "http://h/a b");
        assert!(url("h DELETE").method.posts() && !url("h").method.posts());
    }

    #[test]
    fn names_are_completed_by_their_looks() {
        let base = url("http://h.test:81/d/e/page?x=/y");
        let resolved = |named: &str| base.resolve(named).whole;
        assert_eq!(resolved("/a"), "http://h.test:81/a");
        assert_eq!(resolved("a.png"), "http://h.test:81/d/e/page?x=/a.png", "the quirk: behind ?");
        let base = url("http://h.test/d/page");
        let resolved = |named: &str| base.resolve(named).whole;
        assert_eq!(resolved("./a.png"), "http://h.test:80/d/a.png");
        assert_eq!(resolved("../a.png"), "http://h.test:80/d//a.png", "the quirk");
        assert_eq!(resolved("//i.test/a"), "http://i.test/a");
        assert_eq!(resolved(".\u{e9}\u{e9}"), "http://h.test:80/d/%A9%C3%A9", "half a character");
        assert_eq!(resolved("."), "http://h.test:80/d/.");
        assert_eq!(resolved("v1.2/a"), "http://v1.2/a", "the quirk: it looks like a host");
        assert_eq!(resolved("https://s.test/a&amp;b"), "https://s.test/a&b");
    }

    #[test]
    fn a_file_of_urls_has_comments_and_variables() {
        let text = b"# c\nX=b\nh/$(X)\n\nh POST a=1\n";
        assert_eq!(lines(text, &World::default()), ["h/b", "h POST a=1"]);
    }

    #[test]
    fn a_body_is_trimmed_where_its_file_is_text() {
        assert!(is_text("x.txt") && is_text("foot") && is_text("x.other"));
        assert!(!is_text("x.doc") && !is_text("x.json") && !is_text("x.t"));
    }
}
