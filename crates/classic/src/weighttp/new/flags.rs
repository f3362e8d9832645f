//! The flags of weighttp 0.5: the command line, parsed in its order, with its error messages. Owns every letter of its
//! option string. Start reading at [`parse`].

use std::path::{Path, PathBuf};

use units::Nanos;

use crate::command::{Call, ExitMessage, Getopt, Item, Order, Texts, strerror};

/// weighttp's own option string.
pub(super) const LETTERS: &str = ":hVikqdlr6FSa:m:n:t:c:b:e:p:s:u:A:B:C:H:K:P:T:X:";

/// What it prints first, unless -q.
pub(super) const BANNER: &str =
    "\nweighttp 0.5 - lightweight and simple webserver benchmarking tool\n\n";

/// The number of requests that -s and -a set if there is none.
const CUT_OFF_REQUESTS: u64 = 50_000;

/// Seconds after which a request counts as hung when the load is interrupted, unless -s.
const CUT_OFF: u64 = 4;

/// Most requests: a sample of each is kept.
const REQUESTS_MAX: u64 = 10_000_000;

/// Most requests in a pipeline, as in `joust load`: memory for them is allocated in advance.
const PIPELINE_MAX: i32 = 1000;

/// Most seconds of -a: a year.
const SECONDS_MAX: u64 = 365 * 24 * 3600;

/// Most headers, and most cookies.
const LINES_MAX: usize = 64;

/// The parsed command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Flags {
    pub(super) requests: u64,
    pub(super) threads: u32,
    pub(super) clients: u32,
    pub(super) keep_alive: bool,
    /// Requests that may be in flight on a connection at once, at least 1.
    pub(super) pipeline: u32,
    pub(super) ipv6: bool,
    pub(super) quiet: bool,
    /// Whether mean and median are compared.
    pub(super) warns: bool,
    pub(super) method: String,
    pub(super) body: Option<Vec<u8>>,
    pub(super) content_type: Option<String>,
    pub(super) headers: Vec<String>,
    pub(super) cookies: Vec<String>,
    pub(super) authorization: Option<String>,
    pub(super) proxy_authorization: Option<String>,
    /// `host[:port]`, or a path.
    pub(super) proxy: Option<String>,
    /// Local addresses, separated by commas.
    pub(super) bind: Option<String>,
    pub(super) csv: Option<PathBuf>,
    /// Seconds after which a request without a reply counts as hung, and not as aborted, when the load is interrupted.
    pub(super) cut_off: u64,
    /// The latest end of the load.
    pub(super) time_limit: Option<Nanos>,
    /// Whether percentiles besides the median are printed.
    pub(super) extended: bool,
    /// As typed.
    pub(super) url: String,
}

/// Parses the arguments.
///
/// # Errors
/// What weighttp prints instead of running.
pub(super) fn parse(call: &Call<'_>) -> Result<Flags, ExitMessage> {
    let mut typed = TypedFlags::new();
    let mut getopt = Getopt::new(LETTERS, Order::Permuted, call.args);
    for item in getopt.by_ref() {
        match item {
            Item::Letter(letter, value) => typed.take(letter, value.unwrap_or_default())?,
            Item::NoValue(letter) => {
                return Err(fatal(&format!("option requires an argument: -{letter}")));
            }
            Item::UnknownLetter('?') => typed.helps = true,
            Item::UnknownLetter(letter) => {
                return Err(fatal(&format!("unknown option: -{letter}")));
            }
            _ => unreachable!("weighttp has no long names"),
        }
    }
    if typed.helps || typed.tells_version {
        let help = if typed.helps { HELP } else { "" };
        return Err(ExitMessage { texts: Texts::out(format!("{BANNER}{help}")), code: 0 });
    }
    match getopt.operands().as_slice() {
        [] => Err(typed.complaint("missing URI argument")),
        [url] => typed.finish(url, call),
        _ => Err(typed.complaint("too many arguments")),
    }
}

/// Banner, usage, then an error message, even with -q.
pub(super) fn fatal(complaint: &str) -> ExitMessage {
    let texts = Texts::out(format!("{BANNER}{HELP}")).and_err(format!("\nerror: {complaint}\n\n"));
    ExitMessage { texts, code: 1 }
}

/// A message after all flags were read: the banner has been printed by then, unless -q.
pub(super) fn behind_banner(quiet: bool, mut said: ExitMessage) -> ExitMessage {
    if !quiet {
        said.texts.0.insert(0, (crate::command::Stream::Out, BANNER.to_owned()));
    }
    said
}

/// A flag that joust does not support, and why.
fn refused(flag: &str, why: &str) -> ExitMessage {
    ExitMessage { texts: Texts::err(format!("error: {flag} is not supported: {why}\n")), code: 1 }
}

const HELP: &str = "weighttp <options> <URI>
  -n num     number of requests      (mandatory)
  -t num     thread count            (default: 1)
  -c num     concurrent clients      (default: 1)
  -k         keep alive              (default: no)
  -K num     num pipelined requests  (default: 1)
  -6         use ipv6                (default: no)
  -i         use HTTP HEAD method    (default: GET)
  -m method  use custom HTTP method  (default: GET)
  -H str     add header to request (\"label: value\"); repeatable
  -b size    socket buffer sizes (SO_SNDBUF, SO_RCVBUF)
  -B addr    local address to bind to when making outgoing connections
  -C cookie  add cookie to request (\"cookie-name=value\"); repeatable
  -F         use TCP Fast Open (RFC 7413)
  -T type    Content-Type header to use for POST/PUT data,
             e.g. application/x-www-form-urlencoded
                                     (default: text/plain)
  -A string  add Basic WWW Authorization   (str is username:password)
  -P string  add Basic Proxy-Authorization (str is username:password)
  -X proxy   proxy:port or unix domain socket path beginning w/ '/'
  -p file    make HTTP POST request using file contents for body
  -u file    make HTTP PUT request using file contents for body
  -e file    write percentiles to file (CSV)
  -a secs    end after this time, with a report
  -s secs    longer waits are hung, others aborted, where interrupted
                                     (default: 4)
  -S         do not compare median and mean
  -d         do not show extended percentiles
  -l         (ignored; compatibility with Apache Bench (ab))
  -r         (ignored; compatibility with Apache Bench (ab))
  -q         quiet: do not show version header or progress
  -h         show help and exit
  -V         show version and exit

example: 
  weighttpd -n 500000 -c 100 -t 2 -K 64 http://localhost/index.html

";

/// The flags during parsing.
struct TypedFlags {
    flags: Flags,
    threads: i32,
    clients: i32,
    pipeline: i32,
    method: Option<String>,
    heads: bool,
    helps: bool,
    tells_version: bool,
    has_cut_off: bool,
    body_file: Option<String>,
}

impl TypedFlags {
    fn new() -> Self {
        let flags = Flags {
            requests: 0,
            threads: 1,
            clients: 1,
            keep_alive: false,
            pipeline: 1,
            ipv6: false,
            quiet: false,
            warns: true,
            method: String::new(),
            body: None,
            content_type: None,
            headers: Vec::new(),
            cookies: Vec::new(),
            authorization: None,
            proxy_authorization: None,
            proxy: None,
            bind: None,
            csv: None,
            cut_off: CUT_OFF,
            time_limit: None,
            extended: true,
            url: String::new(),
        };
        Self {
            flags,
            threads: 1,
            clients: 1,
            pipeline: 0,
            method: None,
            heads: false,
            helps: false,
            tells_version: false,
            has_cut_off: false,
            body_file: None,
        }
    }

    fn take(&mut self, letter: char, value: String) -> Result<(), ExitMessage> {
        let flags = &mut self.flags;
        match letter {
            '6' => flags.ipv6 = true,
            'k' => flags.keep_alive = true,
            'q' => flags.quiet = true,
            'S' => flags.warns = false,
            'd' => flags.extended = false,
            'l' | 'r' => {}
            'h' => self.helps = true,
            'V' => self.tells_version = true,
            'n' => flags.requests = strtoul(&value),
            't' => self.threads = strtoul(&value) as i32,
            'c' => self.clients = strtoul(&value) as i32,
            'K' => {
                self.pipeline = strtoul(&value) as i32;
                flags.keep_alive |= self.pipeline >= 2;
            }
            's' => (flags.cut_off, self.has_cut_off) = (strtoul(&value), true),
            'a' => {
                let seconds = strtoul(&value).min(SECONDS_MAX);
                flags.time_limit = (seconds > 0).then(|| Nanos::from_secs(seconds));
                self.has_cut_off = true;
            }
            'e' => flags.csv = Some(value.into()),
            'A' => flags.authorization = Some(value),
            'P' => flags.proxy_authorization = Some(value),
            'B' => flags.bind = Some(value),
            'T' => flags.content_type = Some(value),
            'X' => flags.proxy = Some(value),
            'C' if flags.cookies.len() == LINES_MAX => return Err(fatal("too many cookies")),
            'C' => flags.cookies.push(value),
            'H' if flags.headers.len() == LINES_MAX => return Err(fatal("too many headers")),
            'H' => flags.headers.push(value),
            _ => return self.take_further(letter, value),
        }
        Ok(())
    }

    /// Methods, and rejected flags.
    fn take_further(&mut self, letter: char, value: String) -> Result<(), ExitMessage> {
        match letter {
            'i' => self.heads = true,
            'm' => {
                self.heads = value.eq_ignore_ascii_case("HEAD");
                self.method = Some(value);
            }
            'p' | 'u' => {
                let method = if letter == 'p' { "POST" } else { "PUT" };
                (self.method, self.heads) = (Some(method.to_owned()), false);
                self.body_file = Some(value);
            }
            'F' => {
                let why = "joust does not use TCP Fast Open: without a cookie from the server the request \
                           would be sent twice";
                return Err(refused("-F", why));
            }
            'b' => {
                let why = "the kernel adapts the size of socket buffers by itself; leave it out";
                return Err(refused("-b", why));
            }
            _ => unreachable!("a letter of the option string that nobody takes: {letter}"),
        }
        Ok(())
    }

    /// An error message about the command line.
    fn complaint(&self, complaint: &str) -> ExitMessage {
        behind_banner(self.flags.quiet, fatal(complaint))
    }

    fn finish(mut self, url: &str, call: &Call<'_>) -> Result<Flags, ExitMessage> {
        let (threads, clients) = (i64::from(self.threads), i64::from(self.clients));
        if self.has_cut_off && self.flags.requests == 0 {
            self.flags.requests = CUT_OFF_REQUESTS;
        }
        let requests = self.flags.requests;
        let complaints = [
            (requests == 0, "num of requests has to be > 0"),
            (requests == u64::MAX, "invalid req_count"),
            (threads <= 0, "thread count has to be > 0"),
            (threads.unsigned_abs() > requests, "thread_count > req_count"),
            (clients <= 0, "num of concurrent clients has to be > 0"),
            (clients.unsigned_abs() > requests, "concur_count > req_count"),
            (threads > clients, "thread_count > concur_count"),
        ];
        if let Some((_, complaint)) = complaints.iter().find(|(is_wrong, _)| *is_wrong) {
            return Err(self.complaint(complaint));
        }
        if requests > REQUESTS_MAX {
            let why =
                format!("weighttp and joust keep every request, joust {REQUESTS_MAX} at most");
            return Err(refused(&format!("-n {requests}"), &why));
        }
        if self.pipeline > PIPELINE_MAX {
            let why = format!(
                "each connection allocates memory for that many; the maximum is {PIPELINE_MAX}"
            );
            return Err(refused(&format!("-K {}", self.pipeline), &why));
        }
        if let Some(file) = &self.body_file {
            let body = call.world.read(Path::new(file)).map_err(|error| {
                let (number, why) = (error.raw_os_error().unwrap_or(0), strerror(&error));
                self.complaint(&format!("open({file}): ({number}) {why}"))
            })?;
            self.flags.body = Some(body);
        }
        let mut flags = self.flags;
        (flags.threads, flags.clients) = (threads as u32, clients as u32);
        flags.pipeline = self.pipeline.max(1).unsigned_abs();
        let usual = if self.heads { "HEAD" } else { "GET" };
        flags.method = self.method.unwrap_or_else(|| usual.to_owned());
        url.clone_into(&mut flags.url);
        Ok(flags)
    }
}

/// strtoul(3) with base 10: text that is not a number is 0.
fn strtoul(text: &str) -> u64 {
    let text = text.trim_start();
    let digits = text.strip_prefix('+').unwrap_or(text);
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    if end == 0 { 0 } else { digits[..end].parse().unwrap_or(u64::MAX) }
}

#[cfg(test)]
mod tests {
    use crate::command::Chosen;
    use crate::command::Stream;
    use crate::command::testing::{World, args};

    use super::*;

    fn parsed(line: &str) -> Result<Flags, ExitMessage> {
        let world = World { files: [("body", &b"a=1"[..])].into(), ..World::default() };
        let args = args(line);
        parse(&Call { program: "weighttp", args: &args, own: &Chosen::default(), world: &world })
    }

    #[test]
    fn every_letter_of_the_option_string_is_handled_ignored_or_refused_with_a_reason() {
        let plain = parsed("-n 9 -c 3 h").unwrap();
        for (at, letter) in LETTERS.char_indices().filter(|(_, letter)| *letter != ':') {
            let takes_value = LETTERS[at + 1..].starts_with(':');
            let value = match letter {
                'p' | 'u' => "body",
                'n' => "8",
                _ if takes_value => "2",
                _ => "",
            };
            match parsed(&format!("-n 9 -c 3 -{letter} {value} h")) {
                Ok(flags) => assert_eq!(flags == plain, "lr".contains(letter), "-{letter}"),
                Err(said) if "hV".contains(letter) => {
                    assert!(said.code == 0 && said.texts.on(Stream::Out).starts_with(BANNER));
                }
                Err(said) => {
                    let text = said.texts.on(Stream::Err);
                    let begin = format!("error: -{letter} is not supported: ");
                    assert!(text.starts_with(&begin) && text.lines().count() == 1, "{text}");
                }
            }
        }
    }

    #[test]
    fn complaints_are_those_of_0_5() {
        let lines = [
            ("-n", "option requires an argument: -n"),
            ("-n 5 -x h", "unknown option: -x"),
            ("-n 5", "missing URI argument"),
            ("-n 5 a b", "too many arguments"),
            ("h", "num of requests has to be > 0"),
            ("-n 5 -t 0 h", "thread count has to be > 0"),
            ("-n 5 -c 9 h", "concur_count > req_count"),
            ("-n 5 -c 2 -t 3 h", "thread_count > concur_count"),
            ("-n 5 -p none h", "open(none): (2) No such file or directory"),
        ];
        for (line, text) in lines {
            let said = parsed(line).expect_err(line);
            assert_eq!(said.texts.on(Stream::Err), format!("\nerror: {text}\n\n"), "{line}");
            assert!(said.code == 1 && said.texts.on(Stream::Out).contains(HELP));
        }
    }

    #[test]
    fn a_pipeline_is_kept_alive_and_a_cut_off_brings_requests() {
        let flags = parsed("-n 9 -K 2 h").unwrap();
        assert_eq!((flags.pipeline, flags.keep_alive), (2, true));
        assert!(!parsed("-n 9 -K 1 h").unwrap().keep_alive);
        let said = parsed("-n 9 -K 2147483647 h").unwrap_err().texts.on(Stream::Err);
        assert!(said.contains("-K 2147483647 is not supported: "), "{said}");
        let flags = parsed("-s 7 h").unwrap();
        assert_eq!((flags.requests, flags.cut_off), (50_000, 7));
        assert_eq!(parsed("-n 9 h").unwrap().cut_off, 4);
        let flags = parsed("-a 3 h").unwrap();
        assert_eq!((flags.requests, flags.time_limit), (50_000, Some(Nanos::from_secs(3))));
        assert_eq!(parsed("-n 9 -a 0 h").unwrap().time_limit, None);
        let methods = ["-i", "-m head", "-m X -i", "-i -p body"];
        let methods = methods.map(|line| parsed(&format!("-n 1 {line} h")).unwrap().method);
        assert_eq!(methods, ["HEAD", "head", "X", "POST"]);
    }
}
