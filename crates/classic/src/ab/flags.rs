//! ab's flags: the command line, parsed in ab's order, with ab's error messages. Owns every letter of its option
//! string. Start reading at [`parse`].

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as STANDARD;
use record::TlsVersions;

use crate::command::{Call, ExitMessage, Getopt, Item, Order, Surroundings, Texts, atoi, strerror};

/// ab's own option string, TLS included.
pub(super) const LETTERS: &str = "n:c:t:s:b:T:p:u:v:lrkVhwiIx:y:z:C:H:P:A:g:X:de:SqB:m:Z:f:E:";

/// EINVAL: ab's exit code after its usage.
const USAGE: u8 = 22;

const CONCURRENCY_MAX: i32 = 200_000;

/// The number of requests that `-t` sets, overriding an earlier `-n`.
const TIMED_REQUESTS: i32 = 50_000;

/// Most requests: for each one a sample of 64 bytes is kept, as ab keeps one of 32.
const REQUESTS_MAX: i32 = 10_000_000;

/// Longest credentials, encoded: ab's buffer.
const CREDENTIALS_MAX: usize = 1024;

/// The parsed command line.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Flags {
    pub(super) requests: u32,
    pub(super) concurrency: u32,
    /// Seconds; 0: no limit; below 0 the run ends before it begins.
    pub(super) time_limit: i32,
    /// Seconds.
    pub(super) timeout: u32,
    pub(super) bind: Option<String>,
    pub(super) method: String,
    pub(super) body: Option<Vec<u8>>,
    pub(super) content_type: String,
    pub(super) verbosity: i32,
    pub(super) any_length: bool,
    pub(super) goes_on: bool,
    pub(super) keep_alive: bool,
    pub(super) sends_name: bool,
    pub(super) quiet: bool,
    pub(super) percentiles: bool,
    pub(super) confidence: bool,
    pub(super) html: Option<Html>,
    pub(super) cookie: Option<String>,
    pub(super) n_cookies: usize,
    /// Header lines of -A and -P, whole.
    pub(super) auth: Vec<String>,
    /// Header lines of -H, as typed.
    pub(super) headers: Vec<String>,
    pub(super) gnuplot: Option<PathBuf>,
    pub(super) csv: Option<PathBuf>,
    /// Host and port of -X.
    pub(super) proxy: Option<(String, u16)>,
    pub(super) versions: TlsVersions,
    pub(super) certificate: Option<PathBuf>,
    pub(super) url: Url,
}

/// Attributes of the tables of -w: for table, row and cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Html {
    pub(super) table: String,
    pub(super) row: String,
    pub(super) cell: String,
}

impl Default for Html {
    fn default() -> Self {
        let none = String::new;
        Self { table: none(), row: none(), cell: "bgcolor=white".to_owned() }
    }
}

/// A URL as ab parses it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Url {
    /// As typed.
    pub(super) whole: String,
    pub(super) is_tls: bool,
    /// Without brackets.
    pub(super) host: String,
    pub(super) port: u16,
    /// From the first slash on.
    pub(super) path: String,
    /// The value of the Host field.
    pub(super) host_field: String,
}

impl Flags {
    /// Requests between two lines of progress; `None`: no progress is printed.
    pub(super) fn heartbeat(&self) -> Option<u64> {
        let requests = u64::from(self.requests);
        (!self.quiet && requests > 150).then_some((requests / 10).max(100))
    }
}

/// Parses the arguments.
///
/// # Errors
/// What ab prints instead of running.
pub(super) fn parse(call: &Call<'_>) -> Result<Flags, ExitMessage> {
    let mut typed = TypedFlags::new();
    let mut getopt = Getopt::new(LETTERS, Order::Apr, call.args);
    let mut complaint = None;
    for item in getopt.by_ref() {
        match item {
            Item::Letter(letter, value) => {
                typed.take(letter, value.unwrap_or_default(), call)?;
            }
            wrong => {
                complaint = wrong.apr_complaint(call.program);
                break;
            }
        }
    }
    let operands = getopt.operands();
    let [url] = operands.as_slice() else {
        let wrong = format!("{}: wrong number of arguments\n", call.program);
        return Err(usage(call, &(complaint.unwrap_or_default() + &wrong)));
    };
    let Some(url) = parse_url(url) else {
        return Err(usage(call, &format!("{}: invalid URL\n", call.program)));
    };
    typed.finish(url, call)
}

fn said(texts: Texts, code: u8) -> ExitMessage {
    ExitMessage { texts, code }
}

/// An error message, then ab's usage.
fn usage(call: &Call<'_>, complaint: &str) -> ExitMessage {
    let program = call.program;
    let synopsis = format!("Usage: {program} [options] [http[s]://]hostname[:port]/path\n");
    said(Texts::err(format!("{complaint}{synopsis}{}", include_str!("usage.txt"))), USAGE)
}

/// Like ab's err(): the text, an empty line, exit code 1.
fn fatal(text: &str) -> ExitMessage {
    said(Texts::err(format!("{text}\n\n")), 1)
}

/// A flag that joust does not support, and why.
fn refused(call: &Call<'_>, flag: &str, why: &str) -> ExitMessage {
    said(Texts::err(format!("{}: {flag} is not supported: {why}\n", call.program)), USAGE)
}

/// The flags during parsing.
struct TypedFlags {
    flags: Flags,
    requests: i32,
    concurrency: i32,
    time_limit: i32,
    method: Option<&'static str>,
    custom: Option<String>,
    buffers: bool,
    ciphers: bool,
    old_tls: Option<String>,
}

impl TypedFlags {
    fn new() -> Self {
        let flags = Flags {
            requests: 1,
            concurrency: 1,
            time_limit: 0,
            timeout: 30,
            bind: None,
            method: String::new(),
            body: None,
            content_type: "text/plain".to_owned(),
            verbosity: 0,
            any_length: false,
            goes_on: false,
            keep_alive: false,
            sends_name: true,
            quiet: false,
            percentiles: true,
            confidence: true,
            html: None,
            cookie: None,
            n_cookies: 0,
            auth: Vec::new(),
            headers: Vec::new(),
            gnuplot: None,
            csv: None,
            proxy: None,
            versions: TlsVersions::Both,
            certificate: None,
            url: Url::default(),
        };
        Self {
            flags,
            requests: 1,
            concurrency: 1,
            time_limit: 0,
            method: None,
            custom: None,
            buffers: false,
            ciphers: false,
            old_tls: None,
        }
    }

    fn take(&mut self, letter: char, value: String, call: &Call<'_>) -> Result<(), ExitMessage> {
        let flags = &mut self.flags;
        match letter {
            'n' => {
                self.requests = atoi(&value);
                if self.requests <= 0 {
                    return Err(fatal("Invalid number of requests"));
                }
            }
            'c' => self.concurrency = atoi(&value),
            't' => {
                self.time_limit = atoi(&value);
                self.requests = TIMED_REQUESTS;
            }
            // A negative timeout makes poll(2) wait for ever.
            's' => flags.timeout = u32::try_from(atoi(&value)).unwrap_or(u32::MAX),
            'b' => self.buffers |= atoi(&value) != 0,
            'v' => flags.verbosity = atoi(&value),
            'l' => flags.any_length = true,
            'r' => flags.goes_on = true,
            'k' => flags.keep_alive = true,
            'q' => flags.quiet = true,
            'd' => flags.percentiles = false,
            'S' => flags.confidence = false,
            'I' => flags.sends_name = false,
            'T' => flags.content_type = value,
            'g' => flags.gnuplot = Some(value.into()),
            'e' => flags.csv = Some(value.into()),
            'B' => flags.bind = Some(value),
            'C' => {
                flags.cookie = Some(value);
                flags.n_cookies += 1;
            }
            'H' => flags.headers.push(value),
            'X' => {
                // Like strchr: the first colon counts, and without one the port is 0.
                let (host, port) = value.split_once(':').unwrap_or((&value, "0"));
                flags.proxy = Some((host.to_owned(), atoi(port) as u16));
            }
            'E' => flags.certificate = Some(value.into()),
            'Z' => self.ciphers = true,
            _ => return self.take_further(letter, &value, call),
        }
        Ok(())
    }

    /// Methods, credentials, tables, and flags that end ab at once.
    fn take_further(
        &mut self,
        letter: char,
        value: &str,
        call: &Call<'_>,
    ) -> Result<(), ExitMessage> {
        match letter {
            'i' => self.set_method("HEAD")?,
            'p' | 'u' => {
                self.set_method(if letter == 'p' { "POST" } else { "PUT" })?;
                self.flags.body = Some(read_body(value, call.world)?);
            }
            'm' => (self.custom, self.method) = (Some(value.to_owned()), Some("custom")),
            'A' => {
                let too_long = "Authentication credentials too long";
                let auth = credentials("Authorization", value, too_long)?;
                self.flags.auth.push(auth);
            }
            'P' => {
                let too_long = "Proxy credentials too long";
                let auth = credentials("Proxy-Authorization", value, too_long)?;
                self.flags.auth.push(auth);
            }
            'w' => drop(self.flags.html.get_or_insert_default()),
            'x' => value.clone_into(&mut self.flags.html.get_or_insert_default().table),
            'y' => value.clone_into(&mut self.flags.html.get_or_insert_default().row),
            'z' => value.clone_into(&mut self.flags.html.get_or_insert_default().cell),
            'f' => self.set_versions(value),
            'h' => return Err(usage(call, "")),
            'V' => return Err(said(Texts::out(banner(self.flags.html.is_some())), 0)),
            _ => unreachable!("a letter of the option string that nobody takes: {letter}"),
        }
        Ok(())
    }

    fn set_method(&mut self, method: &'static str) -> Result<(), ExitMessage> {
        if self.method.is_some() {
            return Err(fatal(&format!("Cannot mix {method} with other methods")));
        }
        self.method = Some(method);
        Ok(())
    }

    /// Compares prefixes, case-insensitively; an unknown value changes nothing, as in ab.
    fn set_versions(&mut self, value: &str) {
        let begins = |with: &str| {
            value.get(..with.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(with))
        };
        let flags = &mut self.flags;
        self.old_tls = None;
        if begins("ALL") {
            flags.versions = TlsVersions::Both;
        } else if begins("TLS1.2") {
            flags.versions = TlsVersions::Only12;
        } else if begins("TLS1.3") {
            flags.versions = TlsVersions::Only13;
        } else if begins("SSL") || begins("TLS1") {
            self.old_tls = Some(value.to_owned());
        }
    }

    /// Checks that need all flags, in ab's order.
    fn finish(self, url: Url, call: &Call<'_>) -> Result<Flags, ExitMessage> {
        let Self { mut flags, requests, concurrency, time_limit, .. } = self;
        let program = call.program;
        if !(0..=CONCURRENCY_MAX).contains(&concurrency) {
            let range = format!("{program}: Invalid Concurrency [Range 0..{CONCURRENCY_MAX}]\n");
            return Err(usage(call, &range));
        }
        if concurrency > requests {
            let text = "Cannot use concurrency level greater than total number of requests";
            return Err(usage(call, &format!("{program}: {text}\n")));
        }
        if requests > REQUESTS_MAX {
            let why = format!("joust keeps every request for this report, {REQUESTS_MAX} at most");
            return Err(refused(call, &format!("-n {requests}"), &why));
        }
        if self.buffers {
            let why = "the kernel adapts the size of socket buffers by itself; leave it out";
            return Err(refused(call, "-b", why));
        }
        if url.is_tls && self.ciphers {
            let why = "joust's TLS (rustls) has its own list of safe cipher suites; leave it out";
            return Err(refused(call, "-Z", why));
        }
        if url.is_tls
            && let Some(version) = &self.old_tls
        {
            let why = "joust's TLS (rustls) speaks TLS1.2 and TLS1.3; take one of them or ALL";
            return Err(refused(call, &format!("-f {version}"), why));
        }
        (flags.requests, flags.concurrency) = (requests as u32, concurrency as u32);
        flags.time_limit = time_limit;
        flags.method = self
            .custom
            .filter(|_| self.method == Some("custom"))
            .unwrap_or_else(|| self.method.unwrap_or("GET").to_owned());
        flags.url = url;
        Ok(flags)
    }
}

/// What ab prints first, and all that -V prints.
pub(super) fn banner(is_html: bool) -> String {
    let text = "This is ApacheBench, Version 2.3 <$Revision$>\n\
        Copyright 1996 Adam Twiss, Zeus Technology Ltd, http://www.zeustech.net/\n\
        Licensed to The Apache Software Foundation, http://www.apache.org/\n";
    if !is_html {
        return format!("{text}\n");
    }
    let lines = text.replace("<$Revision$>", "<i>&lt;$Revision$&gt;</i>");
    let lines: String = lines.lines().map(|line| format!(" {line}<br>\n")).collect();
    format!("<p>\n{lines}</p>\n<p>\n")
}

fn read_body(path: &str, world: &dyn Surroundings) -> Result<Vec<u8>, ExitMessage> {
    world.read(Path::new(path)).map_err(|error| {
        let why = strerror(&error);
        // Opening a directory succeeds; only reading it fails.
        let what = match error.kind() {
            std::io::ErrorKind::IsADirectory => "read POST data file".to_owned(),
            _ => format!("open POST data file ({path})"),
        };
        said(Texts::err(format!("ab: Could not {what}: {why}\n")), 1)
    })
}

/// A header line with `user:password` encoded; leading white space is removed.
fn credentials(field: &str, value: &str, too_long: &str) -> Result<String, ExitMessage> {
    let value = value.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '\x0b');
    let encoded = STANDARD.encode(value);
    if encoded.len() + 1 > CREDENTIALS_MAX {
        return Err(fatal(too_long));
    }
    Ok(format!("{field}: Basic {encoded}"))
}

/// Like ab: an optional scheme, a host, an optional port, and a slash. `None`: ab rejects the URL.
fn parse_url(whole: &str) -> Option<Url> {
    let (is_tls, rest) = match (whole.strip_prefix("http://"), whole.strip_prefix("https://")) {
        (Some(rest), _) if !rest.is_empty() => (false, rest),
        (_, Some(rest)) if !rest.is_empty() => (true, rest),
        _ => (false, whole),
    };
    let slash = rest.find('/')?;
    let (authority, path) = rest.split_at(slash);
    let (host, port) = match authority.strip_prefix('[') {
        Some(inside) => {
            let (host, behind) = inside.split_once(']')?;
            let port = behind.strip_prefix(':').map(parse_port);
            (host, port.unwrap_or_else(|| behind.is_empty().then_some(0))?)
        }
        None => match authority.rsplit_once(':') {
            Some((host, digits)) if !digits.is_empty() && is_number(digits) => {
                (host, parse_port(digits)?)
            }
            _ => (authority, 0),
        },
    };
    if host.is_empty() {
        return None;
    }
    let own_port = if is_tls { 443 } else { 80 };
    let port = if port == 0 { own_port } else { port };
    let shown = if authority.starts_with('[') { format!("[{host}]") } else { host.to_owned() };
    let host_field = if port == own_port { shown } else { format!("{shown}:{port}") };
    let (whole, host, path) = (whole.to_owned(), host.to_owned(), path.to_owned());
    Some(Url { whole, is_tls, host, port, path, host_field })
}

fn is_number(digits: &str) -> bool {
    digits.bytes().all(|digit| digit.is_ascii_digit())
}

/// 1 to 65535.
fn parse_port(digits: &str) -> Option<u16> {
    digits.parse().ok().filter(|port| *port > 0)
}

#[cfg(test)]
mod tests {
    use crate::command::testing::{World, args};
    use crate::command::{Chosen, Stream};

    use super::*;

    fn parsed(line: &str) -> Result<Flags, ExitMessage> {
        let world = World { files: [("body", &b"a=1"[..])].into(), ..World::default() };
        let args = args(line);
        parse(&Call { program: "ab", args: &args, own: &Chosen::default(), world: &world })
    }

    fn complaint(line: &str) -> (String, u8) {
        let said = parsed(line).expect_err(line);
        (said.texts.on(Stream::Err).lines().next().unwrap_or_default().to_owned(), said.code)
    }

    const URL: &str = "http://h:81/x?y";

    #[test]
    fn every_letter_of_the_option_string_is_handled_or_refused_with_a_reason() {
        let plain = parsed(URL).unwrap();
        for (at, letter) in LETTERS.char_indices().filter(|(_, letter)| *letter != ':') {
            let takes_value = LETTERS[at + 1..].starts_with(':');
            let value = match letter {
                'p' | 'u' => "body",
                'f' => "TLS1.3",
                'c' => "1",
                _ => "7",
            };
            let line =
                if takes_value { format!("-{letter} {value}") } else { format!("-{letter}") };
            match parsed(&format!("{line} https://h/")) {
                Ok(flags) if letter != 'c' => {
                    let flags = Flags { url: plain.url.clone(), ..flags };
                    assert_ne!(flags, plain, "-{letter} changes nothing");
                }
                Ok(_) => {}
                Err(said) if "hV".contains(letter) => assert!(said.texts.0.len() == 1),
                Err(said) => {
                    let text = said.texts.on(Stream::Err);
                    let begin = format!("ab: -{letter} is not supported: ");
                    assert!(text.starts_with(&begin) && text.lines().count() == 1, "{text}");
                }
            }
        }
    }

    #[test]
    fn a_time_limit_sets_the_requests_and_a_number_behind_it_sets_them_again() {
        assert_eq!(parsed(&format!("-n 1000 -t 5 {URL}")).unwrap().requests, 50_000);
        let flags = parsed(&format!("-t 5 -n 1000 {URL}")).unwrap();
        assert_eq!((flags.requests, flags.time_limit), (1000, 5));
        assert_eq!(parsed(&format!("-t -1 {URL}")).unwrap().time_limit, -1);
    }

    #[test]
    fn a_timeout_below_zero_is_none() {
        let timeout = |line: &str| parsed(&format!("{line} {URL}")).unwrap().timeout;
        assert_eq!(["-s -1", "-s 0", "-s 7"].map(timeout), [u32::MAX, 0, 7]);
    }

    #[test]
    fn complaints_are_those_of_ab_in_its_order() {
        let cases = [
            ("", "ab: wrong number of arguments", 22),
            ("-n 0 http://h/", "Invalid number of requests", 1),
            ("-n x -Q", "Invalid number of requests", 1),
            ("-Q http://h/", "ab: illegal option -- Q", 22),
            ("-n", "ab: option requires an argument -- n", 22),
            ("http://h/ -n 3", "ab: wrong number of arguments", 22),
            ("http://h", "ab: invalid URL", 22),
            ("-c 9 http://h", "ab: invalid URL", 22),
            ("-c -1 http://h/", "ab: Invalid Concurrency [Range 0..200000]", 22),
            (
                "-n 2 -c 3 http://h/",
                "ab: Cannot use concurrency level greater than total number of requests",
                22,
            ),
            (
                "-p none http://h/",
                "ab: Could not open POST data file (none): No such file or directory",
                1,
            ),
            ("-i -p body http://h/", "Cannot mix POST with other methods", 1),
            ("-m X -i http://h/", "Cannot mix HEAD with other methods", 1),
            (
                "-f SSL3 https://h/",
                "ab: -f SSL3 is not supported: joust's TLS (rustls) speaks TLS1.2 and TLS1.3; take one of them or ALL",
                22,
            ),
        ];
        for (line, text, code) in cases {
            assert_eq!(complaint(line), (text.to_owned(), code), "{line}");
        }
        assert!(parsed("-i -m X http://h/").is_ok_and(|flags| flags.method == "X"));
        assert!(parsed("-f SSL3 -f all http://h/").is_ok());
        assert!(parsed("-Z x http://h/").is_ok(), "without TLS it changes nothing");
    }

    #[test]
    fn a_url_is_taken_apart_as_ab_does() {
        let url = |text| parse_url(text).map(|u| (u.is_tls, u.host, u.port, u.path, u.host_field));
        let parts = |tls, host: &str, port, path: &str, field: &str| {
            Some((tls, host.to_owned(), port, path.to_owned(), field.to_owned()))
        };
        assert_eq!(url("http://h/x?y#z"), parts(false, "h", 80, "/x?y#z", "h"));
        assert_eq!(url("h:80/"), parts(false, "h", 80, "/", "h"));
        assert_eq!(url("https://h:80/"), parts(true, "h", 80, "/", "h:80"));
        assert_eq!(url("https://h:443/"), parts(true, "h", 443, "/", "h"));
        assert_eq!(url("http://[::1]:81/"), parts(false, "::1", 81, "/", "[::1]:81"));
        assert_eq!(url("http://a:b/"), parts(false, "a:b", 80, "/", "a:b"));
        for wrong in ["http://h", "http:///x", "http://h:99999/", "http://[::1/", "http://h:0/"] {
            assert_eq!(url(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn credentials_are_encoded_without_the_space_before_them() {
        let flags = parsed(&format!("-A u:p -P x:yz {URL}")).unwrap();
        assert_eq!(
            flags.auth,
            ["Authorization: Basic dTpw", "Proxy-Authorization: Basic eDp5eg=="]
        );
        let long = format!("-A {} {URL}", "x".repeat(800));
        assert_eq!(complaint(&long), ("Authentication credentials too long".to_owned(), 1));
    }

    #[test]
    fn progress_is_told_every_tenth_but_at_most_every_hundred() {
        let every = |line: &str| parsed(&format!("{line} {URL}")).unwrap().heartbeat();
        let cases = ["-n 150", "-n 151", "-n 5009", "-q -n 5000"].map(every);
        assert_eq!(cases, [None, Some(100), Some(500), None]);
    }
}
