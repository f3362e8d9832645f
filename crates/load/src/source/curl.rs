//! curl command lines, as pasted from a terminal or a browser's "Copy as cURL". Owns curl's flags. Start
//! reading at [`FLAGS`]. Source: curl 8.14, curl(1) and `src/tool_getparam.c`.
//!
//! The result is the request of the line, without the fields that curl adds by itself (User-Agent, Accept): they name
//! the client, and that is not curl. An unknown flag is refused by name, because ignoring it would change the
//! request.

use super::harvest::{Fault, Harvest};
use super::shell::{self, Command};
use super::{
    Base, Format, ListedRequest, Listing, SourceError, basic_auth, first_line, form_encoded,
};
use crate::placeholders;

/// curl command lines.
pub(super) static FORMAT: Format = Format {
    name: "curl",
    about: "curl command lines, as a browser copies them (\"Copy as cURL (bash)\")",
    looks_like: |text| {
        first_line(text).trim_start_matches("$ ").split_whitespace().next() == Some("curl")
    },
    read,
};

/// A flag of curl.
struct Flag {
    long: &'static str,
    short: Option<char>,
    does: Does,
}

/// What a flag does. All but the last three and those without a value take one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Does {
    Url,
    Method,
    Header,
    Data(Data),
    UrlQuery,
    User,
    Bearer,
    Cookie,
    Agent,
    Referer,
    Range,
    Head,
    Get,
    Compressed,
    GlobOff,
    /// Does not affect the request, with or without a value.
    Nothing(Takes),
    /// Ignored, with a note to the user.
    Noted(Takes, &'static str),
    /// Refused, with the way out.
    Refused(&'static str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takes {
    Nothing,
    Value,
}

/// Ways to give a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Data {
    /// `@file` without its line ends.
    Text,
    /// As it is.
    Raw,
    /// `@file` as it is.
    Binary,
    /// Percent-encoded.
    Encoded,
    /// As binary, and says that it is JSON.
    Json,
}

use Data::{Binary, Encoded, Json, Raw, Text};
use Does::{Noted, Nothing, Refused};
use Takes::{Nothing as Alone, Value};

const AUTH: &str = "only Basic and Bearer are answered: give the field Authorization by -H";
const ELSEWHERE: &str = "is a matter of the connection: give it to the load, not in the request";
const FORM: &str =
    "save the body with its boundary, and give --data-binary @file and -H Content-Type";
const UPLOAD: &str = "write -X PUT --data-binary @file";
const VERSION: &str = "the version of HTTP is the load's";

const fn flag(short: Option<char>, long: &'static str, does: Does) -> Flag {
    Flag { long, short, does }
}

/// The flags that are known.
static FLAGS: &[Flag] = &[
    flag(None, "url", Does::Url),
    flag(Some('X'), "request", Does::Method),
    flag(Some('H'), "header", Does::Header),
    flag(Some('d'), "data", Does::Data(Text)),
    flag(None, "data-ascii", Does::Data(Text)),
    flag(None, "data-raw", Does::Data(Raw)),
    flag(None, "data-binary", Does::Data(Binary)),
    flag(None, "data-urlencode", Does::Data(Encoded)),
    flag(None, "json", Does::Data(Json)),
    flag(None, "url-query", Does::UrlQuery),
    flag(Some('u'), "user", Does::User),
    flag(None, "oauth2-bearer", Does::Bearer),
    flag(Some('b'), "cookie", Does::Cookie),
    flag(Some('A'), "user-agent", Does::Agent),
    flag(Some('e'), "referer", Does::Referer),
    flag(Some('r'), "range", Does::Range),
    flag(Some('I'), "head", Does::Head),
    flag(Some('G'), "get", Does::Get),
    flag(None, "compressed", Does::Compressed),
    flag(Some('g'), "globoff", Does::GlobOff),
    flag(Some('s'), "silent", Nothing(Alone)),
    flag(Some('S'), "show-error", Nothing(Alone)),
    flag(Some('v'), "verbose", Nothing(Alone)),
    flag(Some('i'), "include", Nothing(Alone)),
    flag(None, "show-headers", Nothing(Alone)),
    flag(Some('f'), "fail", Nothing(Alone)),
    flag(None, "fail-with-body", Nothing(Alone)),
    flag(Some('#'), "progress-bar", Nothing(Alone)),
    flag(None, "no-progress-meter", Nothing(Alone)),
    flag(Some('N'), "no-buffer", Nothing(Alone)),
    flag(Some('O'), "remote-name", Nothing(Alone)),
    flag(Some('J'), "remote-header-name", Nothing(Alone)),
    flag(Some('q'), "disable", Nothing(Alone)),
    flag(None, "basic", Nothing(Alone)),
    flag(None, "path-as-is", Nothing(Alone)),
    flag(None, "tcp-nodelay", Nothing(Alone)),
    flag(Some('o'), "output", Nothing(Value)),
    flag(Some('w'), "write-out", Nothing(Value)),
    flag(Some('D'), "dump-header", Nothing(Value)),
    flag(None, "stderr", Nothing(Value)),
    flag(None, "trace", Nothing(Value)),
    flag(None, "trace-ascii", Nothing(Value)),
    flag(Some('L'), "location", Noted(Alone, "redirects are not followed")),
    flag(None, "location-trusted", Noted(Alone, "redirects are not followed")),
    flag(None, "max-redirs", Noted(Value, "redirects are not followed")),
    flag(Some('c'), "cookie-jar", Noted(Value, "no file of cookies is written")),
    flag(Some('j'), "junk-session-cookies", Noted(Alone, "no file of cookies is read")),
    flag(Some('k'), "insecure", Noted(Alone, ELSEWHERE)),
    flag(None, "resolve", Noted(Value, ELSEWHERE)),
    flag(None, "connect-to", Noted(Value, ELSEWHERE)),
    flag(None, "unix-socket", Noted(Value, ELSEWHERE)),
    flag(None, "interface", Noted(Value, ELSEWHERE)),
    flag(None, "cacert", Noted(Value, ELSEWHERE)),
    flag(Some('E'), "cert", Noted(Value, ELSEWHERE)),
    flag(None, "key", Noted(Value, ELSEWHERE)),
    flag(Some('4'), "ipv4", Noted(Alone, ELSEWHERE)),
    flag(Some('6'), "ipv6", Noted(Alone, ELSEWHERE)),
    flag(Some('m'), "max-time", Noted(Value, "how long a reply may take is the load's")),
    flag(None, "connect-timeout", Noted(Value, "how long connecting may take is the load's")),
    flag(None, "retry", Noted(Value, "nothing is asked twice because it failed")),
    flag(None, "retry-delay", Noted(Value, "nothing is asked twice because it failed")),
    flag(None, "retry-all-errors", Noted(Alone, "nothing is asked twice because it failed")),
    flag(None, "limit-rate", Noted(Value, "bytes are taken as fast as they come")),
    flag(Some('0'), "http1.0", Noted(Alone, VERSION)),
    flag(None, "http1.1", Noted(Alone, VERSION)),
    flag(None, "http2", Noted(Alone, VERSION)),
    flag(None, "http2-prior-knowledge", Noted(Alone, VERSION)),
    flag(None, "http3", Noted(Alone, VERSION)),
    flag(Some('F'), "form", Refused(FORM)),
    flag(None, "form-string", Refused(FORM)),
    flag(Some('T'), "upload-file", Refused(UPLOAD)),
    flag(Some('x'), "proxy", Refused("a load goes to the server itself: leave it out")),
    flag(None, "socks5", Refused("a load goes to the server itself: leave it out")),
    flag(None, "socks5-hostname", Refused("a load goes to the server itself: leave it out")),
    flag(None, "digest", Refused(AUTH)),
    flag(None, "ntlm", Refused(AUTH)),
    flag(None, "negotiate", Refused(AUTH)),
    flag(None, "anyauth", Refused(AUTH)),
    flag(Some('n'), "netrc", Refused("give name and password by -u")),
    flag(
        None,
        "aws-sigv4",
        Refused("a signature holds for minutes: sign outside, and give it by -H"),
    ),
    flag(Some('K'), "config", Refused("write its flags into the line")),
    flag(Some(':'), "next", Refused("write the next request as another curl line")),
    flag(Some('Z'), "parallel", Refused("how many go at once is the load's: leave it out")),
];

fn read(text: &str, base: &Base<'_>) -> Result<Listing, SourceError> {
    let refuse = |line, fault| SourceError::new(base, Some(line), fault);
    let commands =
        shell::commands(text).map_err(|error| refuse(error.line, Fault::Format(error.what)))?;
    let mut harvest = Harvest::new(base);
    for command in &commands {
        let requests = requests(command, &mut harvest);
        let pushed = requests.and_then(|requests| {
            requests.into_iter().try_for_each(|asked| harvest.push_written(asked))
        });
        pushed.map_err(|fault| refuse(command.line, fault))?;
    }
    harvest.finish()
}

/// What the flags of a line mean.
#[derive(Default)]
struct Line {
    urls: Vec<String>,
    method: Option<String>,
    /// Name and value; no value if curl must not send the field.
    headers: Vec<(String, Option<String>)>,
    /// From its own flag; a field that was written out takes precedence.
    authorization: Option<String>,
    body: Option<Vec<u8>>,
    query: Vec<u8>,
    is_json: bool,
    is_head: bool,
    is_get: bool,
    has_glob_off: bool,
}

fn requests(command: &Command, harvest: &mut Harvest<'_>) -> Result<Vec<ListedRequest>, Fault> {
    let mut words = command.words.iter().map(Vec::as_slice).peekable();
    words.next_if_eq(&&b"$"[..]);
    if words.next() != Some(b"curl") {
        return refused("a line begins with `curl`: this one does not");
    }
    let mut line = Line::default();
    let mut has_flags = true;
    while let Some(word) = words.next() {
        if !has_flags || !word.starts_with(b"-") || word == b"-" {
            line.urls.push(text(word)?);
        } else if word == b"--" {
            has_flags = false;
        } else if let Some(name) = word.strip_prefix(b"--") {
            let name = text(name)?;
            let flag = FLAGS.iter().find(|flag| flag.long == name);
            let flag = flag.ok_or_else(|| unknown(&format!("--{name}")))?;
            let value = if flag.takes_value() { words.next() } else { None };
            line.apply(flag, value, harvest)?;
        } else {
            let mut rest = &word[1..];
            while let Some((&letter, after)) = rest.split_first() {
                let letter = char::from(letter);
                let flag = FLAGS.iter().find(|flag| flag.short == Some(letter));
                let flag = flag.ok_or_else(|| unknown(&format!("-{}", letter.escape_debug())))?;
                rest = after;
                let mut value = None;
                if flag.takes_value() {
                    value = if rest.is_empty() { words.next() } else { Some(rest) };
                    rest = &[];
                }
                line.apply(flag, value, harvest)?;
            }
        }
    }
    line.finish()
}

fn refused<T>(text: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::Format(text.into()))
}

fn unknown(name: &str) -> Fault {
    Fault::Format(format!(
        "curl's flag `{}` is not known here: leave it out if it has no part in the request, and \
         write short flags and long ones in full",
        name.escape_debug()
    ))
}

fn text(word: &[u8]) -> Result<String, Fault> {
    String::from_utf8(word.to_vec()).map_err(|_| {
        let word = word.escape_ascii();
        Fault::Format(format!("`{word}` is not UTF-8: only a body may be something else"))
    })
}

impl Flag {
    fn takes_value(&self) -> bool {
        match self.does {
            Does::Head | Does::Get | Does::Compressed | Does::GlobOff | Refused(_) => false,
            Nothing(takes) | Noted(takes, _) => takes == Value,
            _ => true,
        }
    }
}

impl Line {
    fn apply(
        &mut self,
        flag: &Flag,
        value: Option<&[u8]>,
        harvest: &mut Harvest<'_>,
    ) -> Result<(), Fault> {
        let name = flag.long;
        if flag.takes_value() && value.is_none() {
            return refused(format!(
                "`--{name}` has no value after it: was the line copied whole?"
            ));
        }
        let value = value.unwrap_or_default();
        let field = |name: &str, value: String| (name.to_owned(), Some(value));
        match flag.does {
            Does::Url => self.urls.push(text(value)?),
            Does::Method => self.method = Some(text(value)?),
            Does::Header => self.headers.push(header(&text(value)?)?),
            Does::Data(way) => self.data(way, value, harvest)?,
            Does::UrlQuery => {
                let part = match value.strip_prefix(b"+") {
                    Some(raw) => raw.to_vec(),
                    None => encoded(value, harvest)?,
                };
                join(&mut self.query, &part);
            }
            Does::User => {
                let user = text(value)?;
                if !user.contains(':') {
                    return refused(format!(
                        "`-u {user}` has no password: write -u {user}:PASSWORD"
                    ));
                }
                self.authorization = Some(basic_auth(&user));
            }
            Does::Bearer => self.authorization = Some(format!("Bearer {}", text(value)?)),
            Does::Cookie if !value.contains(&b'=') => {
                let file = value.escape_ascii();
                return refused(format!(
                    "`-b {file}` names a file of cookies: write them out, as in -b 'name=value'"
                ));
            }
            Does::Cookie => self.cookie(&text(value)?),
            Does::Agent => self.headers.push(field("User-Agent", text(value)?)),
            Does::Referer => {
                let value = text(value)?;
                let value = value.strip_suffix(";auto").unwrap_or(&value);
                self.headers.push(field("Referer", value.to_owned()));
            }
            Does::Range => self.headers.push(field("Range", format!("bytes={}", text(value)?))),
            Does::Head => self.is_head = true,
            Does::Get => self.is_get = true,
            Does::Compressed => {
                self.headers.push(field("Accept-Encoding", "deflate, gzip, br, zstd".to_owned()));
            }
            Does::GlobOff => self.has_glob_off = true,
            Nothing(_) => {}
            Noted(_, why) => harvest.note(format!("curl's --{name} is passed over: {why}")),
            Refused(why) => return refused(format!("curl's --{name} cannot be followed: {why}")),
        }
        Ok(())
    }

    /// Several `-b` make one field.
    fn cookie(&mut self, cookies: &str) {
        let is_cookie = |(name, _): &&mut (String, Option<String>)| name == "Cookie";
        match self.headers.iter_mut().find(is_cookie) {
            Some((_, Some(value))) => *value += &format!("; {cookies}"),
            _ => self.headers.push(("Cookie".to_owned(), Some(cookies.to_owned()))),
        }
    }

    fn data(&mut self, way: Data, value: &[u8], harvest: &Harvest<'_>) -> Result<(), Fault> {
        let named = value.strip_prefix(b"@").filter(|_| matches!(way, Text | Binary | Json));
        let part = match named {
            _ if way == Encoded => encoded(value, harvest)?,
            Some(name) => {
                let mut bytes = file(name, harvest)?;
                if way == Text {
                    bytes.retain(|byte| !b"\r\n\0".contains(byte));
                }
                bytes
            }
            None => value.to_vec(),
        };
        self.is_json |= way == Json;
        match &mut self.body {
            None => self.body = Some(part),
            Some(body) if way == Json => body.extend_from_slice(&part),
            Some(body) => {
                body.push(b'&');
                body.extend_from_slice(&part);
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Vec<ListedRequest>, Fault> {
        if self.urls.is_empty() {
            return refused("this curl line has no URL: was it copied whole?");
        }
        if self.is_head && self.body.is_some() && !self.is_get {
            return refused("-I and a body: curl sends one or the other; leave one out");
        }
        if self.is_get {
            join(&mut self.query, &self.body.take().unwrap_or_default());
        }
        let method = match (self.method, &self.body) {
            (Some(method), _) => method,
            (None, Some(_)) => "POST".to_owned(),
            (None, None) if self.is_head => "HEAD".to_owned(),
            (None, None) => "GET".to_owned(),
        };
        let has = |name: &str| self.headers.iter().any(|(n, _)| n.eq_ignore_ascii_case(name));
        let mut fields = Vec::new();
        fields.extend(self.authorization.as_deref().map(|value| ("Authorization", value)));
        if self.is_json && !self.is_get {
            fields.extend([("Content-Type", "application/json"), ("Accept", "application/json")]);
        } else if self.body.is_some() {
            fields.push(("Content-Type", "application/x-www-form-urlencoded"));
        }
        fields.retain(|(name, _)| !has(name));
        let given = self.headers.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let ours = fields.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
        let headers: Vec<(String, String)> = given.chain(ours).collect();
        let query = text(&self.query)?;
        let body = self.body.unwrap_or_default();
        let with_query = |url: String| {
            if !self.has_glob_off {
                check_pattern(&url)?;
            }
            let url = queried(url, &query);
            let (method, headers, body) = (method.clone(), headers.clone(), body.clone());
            Ok(ListedRequest { method, headers, body, ..ListedRequest::get(url) })
        };
        self.urls.into_iter().map(with_query).collect()
    }
}

/// `Name: value`; `Name;` is a field with an empty value, and `Name:` one that must not be sent.
fn header(text: &str) -> Result<(String, Option<String>), Fault> {
    if text.starts_with('@') {
        return refused(format!("`-H {text}` names a file of fields: write them out"));
    }
    match text.split_once(':') {
        Some((name, value)) if value.trim().is_empty() => Ok((name.trim().to_owned(), None)),
        Some((name, value)) => Ok((name.trim().to_owned(), Some(value.trim().to_owned()))),
        None => match text.trim_end().strip_suffix(';') {
            Some(name) => Ok((name.to_owned(), Some(String::new()))),
            None => Err(Fault::Field(text.escape_debug().to_string())),
        },
    }
}

fn file(name: &[u8], harvest: &Harvest<'_>) -> Result<Vec<u8>, Fault> {
    match name {
        b"-" => refused("`@-` is what curl reads from its input: write the name of a file"),
        name => harvest.file(&text(name)?),
    }
}

/// `content`, `=content`, `name=content`, `@file` or `name@file` (--data-urlencode).
fn encoded(value: &[u8], harvest: &Harvest<'_>) -> Result<Vec<u8>, Fault> {
    let Some(at) = value.iter().position(|byte| b"=@".contains(byte)) else {
        return Ok(component(value));
    };
    let (name, content) = (&value[..at], &value[at + 1..]);
    let content = match value[at] {
        b'@' => component(&file(content, harvest)?),
        _ => component(content),
    };
    let separator: &[u8] = if name.is_empty() { b"" } else { b"=" };
    Ok([name, separator, &content].concat())
}

/// As in forms, except that `~` stays and `*` does not.
fn component(value: &[u8]) -> Vec<u8> {
    form_encoded(value).replace('*', "%2A").replace("%7E", "~").into_bytes()
}

fn join(query: &mut Vec<u8>, part: &[u8]) {
    if !query.is_empty() && !part.is_empty() {
        query.push(b'&');
    }
    query.extend_from_slice(part);
}

fn queried(url: String, query: &str) -> String {
    // A fragment is never sent, and the query would be appended after it.
    let url = url.split('#').next().unwrap_or_default();
    match query {
        "" => url.to_owned(),
        query if !url.contains('?') => format!("{url}?{query}"),
        query if url.ends_with(['?', '&']) => format!("{url}{query}"),
        query => format!("{url}&{query}"),
    }
}

/// curl makes several URLs of `{a,b}` and `[1-9]`. Placeholders and IPv6 addresses are not such patterns.
fn check_pattern(url: &str) -> Result<(), Fault> {
    let pieces =
        placeholders::split(url.as_bytes()).map_err(|error| Fault::Format(error.to_string()))?;
    let is_pattern = |text: &[u8]| {
        let text =
            text.strip_prefix(b"http://[").or(text.strip_prefix(b"https://[")).unwrap_or(text);
        text.contains(&b'{') || text.contains(&b'[')
    };
    let has_pattern = pieces.iter().any(|piece| match piece {
        placeholders::TemplatePiece::Text(text) => is_pattern(text),
        placeholders::TemplatePiece::Hole(_) => false,
    });
    if has_pattern {
        return refused(format!(
            "curl would make several URLs of the braces or brackets in `{url}`: write a line for \
             each, or -g if they stand for themselves"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};
    use std::process::{Command as Process, Stdio};
    use std::thread;

    use super::super::testing::{listed, refuses, shown};
    use super::*;

    fn one(line: &str) -> String {
        let listing = listed(line, "curl");
        assert_eq!(listing.asked.len(), 1, "{line}");
        shown(&listing).remove(0)
    }

    #[test]
    fn what_a_browser_copies_is_what_it_asked() {
        let line = "curl 'https://shop.test/api?q=1' \\\n  -X 'POST' \\\n  \
            -H 'accept: */*' \\\n  -H 'content-type: application/json' \\\n  \
            -b 's=1; t=2' \\\n  -H 'user-agent: Mozilla/5.0 (X11)' \\\n  \
            --data-raw $'{\"it\\'s\":\"\\u00e9\"}' \\\n  --compressed";
        let expected = "POST https://shop.test/api?q=1 | accept: */* | content-type: \
            application/json | Cookie: s=1; t=2 | user-agent: Mozilla/5.0 (X11) | Accept-Encoding: \
            deflate, gzip, br, zstd || {\\\"it\\'s\\\":\\\"\\xc3\\xa9\\\"}";
        assert_eq!(one(line), expected);
    }

    /// Flags, and the request of `curl FLAGS http://h/`.
    fn cases() -> Vec<(&'static str, String)> {
        let form = "Content-Type: application/x-www-form-urlencoded";
        let field = |field: &str| format!("GET http://h/ | {field}");
        vec![
            ("-d a=b -d c=d", format!("POST http://h/ | {form} || a=b&c=d")),
            ("-d @body.bin", format!("POST http://h/ | {form} || lineone")),
            ("--data-binary @body.bin", format!("POST http://h/ | {form} || line\\r\\none\\x00")),
            ("--data-raw @body.bin", format!("POST http://h/ | {form} || @body.bin")),
            ("--data-urlencode 'a=b c&~*'", format!("POST http://h/ | {form} || a=b+c%26~%2A")),
            (
                "--data-urlencode '=b c' --data-urlencode d",
                format!("POST http://h/ | {form} || b+c&d"),
            ),
            (
                "--data-urlencode n@body.bin",
                format!("POST http://h/ | {form} || n=line%0D%0Aone%00"),
            ),
            ("-d '' ", format!("POST http://h/ | {form}")),
            ("-d a -H 'Content-Type: x/y'", "POST http://h/ | Content-Type: x/y || a".to_owned()),
            ("-d a -H content-type:", "POST http://h/ || a".to_owned()),
            ("-G -d a=b -d c", "GET http://h/?a=b&c".to_owned()),
            ("-IG -d a=b", "HEAD http://h/?a=b".to_owned()),
            ("--url-query 'a=b c' --url-query +d", "GET http://h/?a=b+c&d".to_owned()),
            (
                "--json '{\"a\"' --json ':1}'",
                "POST http://h/ | Content-Type: application/json | Accept: application/json \
                 || {\\\"a\\\":1}"
                    .to_owned(),
            ),
            ("-XPUT -d a", format!("PUT http://h/ | {form} || a")),
            ("-I", "HEAD http://h/".to_owned()),
            ("-X DELETE", "DELETE http://h/".to_owned()),
            (
                "-u Aladdin:'open sesame'",
                field("Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="),
            ),
            ("-u a:b -H 'authorization: Own'", field("authorization: Own")),
            ("--oauth2-bearer t0k", field("Authorization: Bearer t0k")),
            ("-A 'me 1' -e 'http://r/;auto'", field("User-Agent: me 1 | Referer: http://r/")),
            ("-b a=1 -b 'b=2; c=3'", field("Cookie: a=1; b=2; c=3")),
            ("-H 'X-Empty;' -H 'X-Gone:' -HA:b", field("X-Empty:  | A: b")),
            ("-r 0-99", field("Range: bytes=0-99")),
        ]
    }

    #[test]
    fn methods_fields_queries_and_bodies_are_as_expected() {
        for (flags, expected) in cases() {
            assert_eq!(one(&format!("curl {flags} http://h/")), expected, "{flags}");
        }
    }

    /// A request as it arrived, in the form of `shown`, with sorted fields. Leaves out what curl says of itself and
    /// what framing requires.
    fn received(stream: &mut TcpStream) -> Option<String> {
        let mut bytes = Vec::new();
        let head = loop {
            let mut buf = [0; 4096];
            let n_read = stream.read(&mut buf).ok().filter(|&n| n > 0)?;
            bytes.extend_from_slice(&buf[..n_read]);
            if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
                break String::from_utf8(bytes.drain(..at + 4).collect()).ok()?;
            }
        };
        let mut lines = head.trim_end().split("\r\n");
        let mut words = lines.next()?.split(' ');
        let (method, target) = (words.next()?, words.next()?);
        let (mut fields, mut length) = (String::new(), 0);
        for (name, value) in lines.filter_map(|line| line.split_once(':')) {
            match (name, value.trim()) {
                ("Content-Length", digits) => length = digits.parse().ok()?,
                ("Host", _) | ("Accept", "*/*") => {}
                ("User-Agent", agent) if agent.starts_with("curl/") => {}
                // Older versions join cookies without the space of RFC 6265, 4.2.1.
                ("Cookie", cookies) => {
                    let cookies: Vec<&str> = cookies.split(';').map(str::trim).collect();
                    fields += &format!(" | Cookie: {}", cookies.join("; "));
                }
                (name, value) => fields += &format!(" | {name}: {value}"),
            }
        }
        let held = bytes.len();
        bytes.resize(length, 0);
        stream.read_exact(&mut bytes[held..]).ok()?;
        stream.write_all(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n").ok()?;
        let body = format!(" || {}", bytes.escape_ascii());
        Some(sorted(&format!("{method} http://h{target}{fields}{body}")))
    }

    /// Sorts the fields, because curl has its own order.
    fn sorted(line: &str) -> String {
        let (head, body) = line.split_once(" || ").unwrap_or((line, ""));
        let mut fields: Vec<&str> = head.split(" | ").map(str::trim).collect();
        fields[1..].sort_unstable();
        format!("{} || {body}", fields.join(" | "))
    }

    /// The outside oracle: what this machine's curl sends for the same flags.
    #[test]
    fn curl_sends_the_same() {
        const UNKNOWN_FLAG: i32 = 2;
        let is_there = |name: &str| Process::new(name).arg("--version").output().is_ok();
        if !is_there("curl") || !is_there("bash") {
            return skips::note("there is no curl to ask, or no bash to start it");
        }
        let folder = std::env::temp_dir().join(format!("joust-curl-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("body.bin"), b"line\r\none\0").unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        for (flags, expected) in cases() {
            let line = format!("curl -q -s --noproxy '*' --max-time 60 {flags} http://{addr}/");
            let listener = listener.try_clone().unwrap();
            let server = thread::spawn(move || received(&mut listener.accept().unwrap().0));
            let mut bash = Process::new("bash");
            bash.args(["--norc", "-c", &line]).current_dir(&folder).stdout(Stdio::null());
            let status = bash.status().unwrap();
            if status.code() == Some(UNKNOWN_FLAG) {
                drop(TcpStream::connect(addr));
                skips::note(format_args!("this curl is too old for {flags}"));
            }
            let sent = server.join().unwrap();
            if status.success() {
                assert_eq!(sent, Some(sorted(&expected)), "{flags}");
            } else {
                assert_eq!(status.code(), Some(UNKNOWN_FLAG), "{line}");
            }
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_is_of_the_connection_is_noted_and_what_is_of_the_output_is_not() {
        let listing = listed(
            "curl -sSLko /dev/null -w '%{http_code}' --max-time 5 --resolve h:80:127.0.0.1 http://h/ \\\n\
             -- -odd\ncurl -L a:81/{seq} && curl -g 'http://h/[1]{a}' 'http://[::1]/'",
            "curl",
        );
        let expected = [
            "GET http://h/",
            "GET http://-odd",
            "GET http://a:81/{seq}",
            "GET http://h/[1]{a}",
            "GET http://[::1]/",
        ];
        assert_eq!(shown(&listing), expected);
        let noted: Vec<_> = listing.notes.iter().map(|n| n.split(' ').nth(1).unwrap()).collect();
        assert_eq!(noted, ["--location", "--insecure", "--max-time", "--resolve"]);
        assert!(listing.asked[2].templated && !listing.asked[3].templated);
    }

    #[test]
    fn what_cannot_be_followed_is_refused_by_name() {
        refuses(
            "curl",
            &[
                (
                    "curl http://h/\ncurl --frobnicate http://h/",
                    "file:2: curl's flag `--frobnicate`",
                ),
                ("curl -sy http://h/", "`-y`"),
                ("curl -F a=b http://h/", "--form cannot be followed"),
                ("curl -T f http://h/", "-X PUT"),
                ("curl -u me http://h/", "no password"),
                ("curl -b jar http://h/", "file of cookies"),
                ("curl http://h/ -H", "no value after it"),
                ("curl -s", "no URL"),
                ("curl http://h/ -d @-", "from its input"),
                ("curl http://h/ -d @none", "cannot read `none`"),
                ("curl 'http://h/{a,b}'", "several URLs"),
                ("curl 'http://h/[1-9]'", "several URLs"),
                ("curl http://h/ | jq .", "`|` stands outside"),
                ("curl http://h/ -H 'A: b", "not closed"),
                ("curl $'http://h/\\xff'", "not UTF-8"),
                ("curl -I -d a http://h/", "one or the other"),
                ("wget http://h/", "begins with `curl`"),
            ],
        );
    }

    #[test]
    fn each_flag_stands_in_the_table_once() {
        for (index, flag) in FLAGS.iter().enumerate() {
            for other in &FLAGS[..index] {
                assert_ne!(flag.long, other.long);
                assert!(flag.short.is_none() || flag.short != other.short, "-{:?}", flag.short);
            }
        }
    }
}
