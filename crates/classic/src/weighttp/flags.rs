//! The flags of weighttp 0.4: the command line, parsed in its order, with its error messages. Owns every letter of its
//! option string, and the request made from them. Start reading at [`parse`].

use std::net::SocketAddr;

use crate::command::{Call, ExitMessage, Getopt, Item, Order, Texts, atoi};

/// weighttp's own option string.
pub(super) const LETTERS: &str = ":hv6kn:t:c:H:";

/// What it prints first.
pub(super) const BANNER: &str =
    "weighttp 0.4 - a lightweight and simple webserver benchmarking tool\n\n";

const USER_AGENT: &str = "User-Agent: weighttp/0.4";

/// The parsed command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Flags {
    pub(super) requests: u64,
    /// 1 to 255.
    pub(super) threads: u32,
    /// 1 to 65535.
    pub(super) clients: u32,
    pub(super) keep_alive: bool,
    pub(super) ipv6: bool,
    /// Header lines of -H, as typed.
    pub(super) headers: Vec<String>,
    pub(super) url: Url,
}

/// A URL as weighttp parses it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Url {
    /// weighttp rejects TLS; joust does not.
    pub(super) is_tls: bool,
    pub(super) host: String,
    pub(super) port: u16,
    /// From the first slash on.
    pub(super) path: String,
}

/// The flags during parsing.
struct TypedFlags {
    requests: u64,
    threads: u8,
    clients: u16,
    keep_alive: bool,
    ipv6: bool,
    headers: Vec<String>,
}

/// Parses the arguments.
///
/// # Errors
/// What weighttp prints instead of running.
pub(super) fn parse(call: &Call<'_>) -> Result<Flags, ExitMessage> {
    let none = Vec::new();
    let mut typed = TypedFlags {
        requests: 0,
        threads: 1,
        clients: 1,
        keep_alive: false,
        ipv6: false,
        headers: none,
    };
    let mut getopt = Getopt::new(LETTERS, Order::Permuted, call.args);
    for item in getopt.by_ref() {
        match item {
            Item::Letter('h', _) => return Err(said(Texts::out(BANNER.to_owned() + HELP), 0)),
            Item::Letter('v', _) => return Err(said(Texts::out(BANNER), 0)),
            Item::Letter(letter, value) => typed.take(letter, value.unwrap_or_default()),
            Item::NoValue(letter) => {
                return Err(helped(&format!("option requires an argument: -{letter}")));
            }
            Item::UnknownLetter('?') => {
                return Err(said(Texts::out(BANNER.to_owned() + HELP), 1));
            }
            Item::UnknownLetter(letter) => {
                return Err(helped(&format!("unkown option: -{letter}")));
            }
            _ => unreachable!("weighttp has no long names"),
        }
    }
    let operands = getopt.operands();
    match operands.as_slice() {
        [] => Err(helped("missing url argument")),
        [url] => typed.finish(url),
        _ => Err(helped("too many arguments")),
    }
}

fn said(texts: Texts, code: u8) -> ExitMessage {
    ExitMessage { texts, code }
}

/// An error message, then weighttp's usage.
fn helped(complaint: &str) -> ExitMessage {
    said(Texts::out(BANNER).and_err(format!("error: {complaint}\n\n")).and_out(HELP), 1)
}

/// An error message for a problem other than the arguments.
pub(super) fn fatal(complaint: &str) -> ExitMessage {
    said(Texts::out(BANNER).and_err(format!("error: {complaint}\n")), 1)
}

const HELP: &str = "weighttp <options> <url>
  -n num   number of requests    (mandatory)
  -t num   threadcount           (default: 1)
  -c num   concurrent clients    (default: 1)
  -k       keep alive            (default: no)
  -6       use ipv6              (default: no)
  -H str   add header to request
  -h       show help and exit
  -v       show version and exit

example: weighttpd -n 10000 -c 10 -t 2 -k -H \"User-Agent: foo\" localhost/index.html

";

impl TypedFlags {
    fn take(&mut self, letter: char, value: String) {
        match letter {
            '6' => self.ipv6 = true,
            'k' => self.keep_alive = true,
            'n' => self.requests = count(&value),
            // Truncated to the width of weighttp's variables: 257 threads become 1.
            't' => self.threads = atoi(&value) as u8,
            'c' => self.clients = atoi(&value) as u16,
            'H' => self.headers.push(value),
            _ => unreachable!("a letter of the option string that nobody takes: {letter}"),
        }
    }

    fn finish(self, url: &str) -> Result<Flags, ExitMessage> {
        let Self { requests, threads, clients, keep_alive, ipv6, headers } = self;
        let zero = [
            (u64::from(threads), "thread count"),
            (u64::from(clients), "number of concurrent clients"),
            (requests, "number of requests"),
        ];
        if let Some((_, what)) = zero.iter().find(|(number, _)| *number == 0) {
            return Err(helped(&format!("{what} has to be > 0")));
        }
        let (threads, clients) = (u32::from(threads), u32::from(clients));
        if requests == u64::MAX || threads > clients || u64::from(clients) > requests {
            return Err(helped("insane arguments"));
        }
        let url = parse_url(url)?;
        let mut hosts = headers.iter().filter_map(|line| line.strip_prefix("Host:"));
        if let Some(host) = hosts.next() {
            if hosts.next().is_some() {
                return Err(fatal("Duplicate Host header"));
            }
            if host.strip_prefix(' ').unwrap_or(host).is_empty() {
                return Err(fatal("Invalid Host header"));
            }
        }
        Ok(Flags { requests, threads, clients, keep_alive, ipv6, headers, url })
    }
}

/// Only digits; anything else becomes the largest number, which is then rejected.
fn count(text: &str) -> u64 {
    text.bytes()
        .try_fold(0u64, |sum, digit| {
            let digit = digit.is_ascii_digit().then(|| digit - b'0')?;
            Some(sum.wrapping_mul(10).wrapping_add(digit.into()))
        })
        .unwrap_or(u64::MAX)
}

/// The first colon ends the host, wherever it is.
fn parse_url(whole: &str) -> Result<Url, ExitMessage> {
    let (is_tls, rest) = scheme(whole);
    let (host, port, path) = match rest.split_once(':') {
        Some((host, behind)) => {
            let slash = behind.find('/').unwrap_or(behind.len());
            (host, atoi(&behind[..slash]) as u16, &behind[slash..])
        }
        None => {
            let slash = rest.find('/').unwrap_or(rest.len());
            (&rest[..slash], default_port(is_tls), &rest[slash..])
        }
    };
    if port == 0 {
        return Err(fatal("could not parse url"));
    }
    let path = if path.is_empty() { "/" } else { path };
    Ok(Url { is_tls, host: host.to_owned(), port, path: path.to_owned() })
}

/// Whether a URL is https, and the text after its optional scheme.
pub(super) fn scheme(url: &str) -> (bool, &str) {
    match url.strip_prefix("https://") {
        Some(rest) => (true, rest),
        None => (false, url.strip_prefix("http://").unwrap_or(url)),
    }
}

/// The default port.
pub(super) fn default_port(is_tls: bool) -> u16 {
    if is_tls { 443 } else { 80 }
}

/// A host in the form of the Host field.
pub(super) fn host_field(is_tls: bool, host: &str, port: u16) -> String {
    if port == default_port(is_tls) { host.to_owned() } else { format!("{host}:{port}") }
}

impl Flags {
    /// The request, byte for byte.
    pub(super) fn request(&self) -> Vec<u8> {
        let Url { is_tls, host, port, path } = &self.url;
        let host = host_field(*is_tls, host, *port);
        let typed = self.headers.iter().find_map(|line| line.strip_prefix("Host:"));
        let host = typed.map_or(host.as_str(), |host| host.strip_prefix(' ').unwrap_or(host));
        let others = || self.headers.iter().filter(|line| !line.starts_with("Host:"));
        let own = (!others().any(|line| line.starts_with("User-Agent:"))).then_some(USER_AGENT);
        let lines = own.into_iter().chain(others().map(String::as_str));
        let lines: String = lines.map(|line| format!("{line}\r\n")).collect();
        let connection = if self.keep_alive { "keep-alive" } else { "close" };
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: {host}\r\n{lines}Connection: {connection}\r\n\r\n"
        );
        head.into_bytes()
    }

    /// The first address of the requested IP version.
    ///
    /// # Errors
    /// What weighttp prints if there is none.
    pub(super) fn resolve(&self, call: &Call<'_>) -> Result<SocketAddr, ExitMessage> {
        let host = &self.url.host;
        let found = call.world.resolve(host, self.url.port).unwrap_or_default();
        let addr = found.into_iter().find(|addr| addr.is_ipv6() == self.ipv6);
        addr.ok_or_else(|| fatal(&format!("could not resolve hostname: {host}")))
    }
}

#[cfg(test)]
mod tests {
    use crate::command::Chosen;
    use crate::command::Stream;
    use crate::command::testing::{World, args};

    use super::*;

    fn parsed(line: &str) -> Result<Flags, ExitMessage> {
        let (args, world) = (args(line), World::default());
        parse(&Call { program: "weighttp", args: &args, own: &Chosen::default(), world: &world })
    }

    fn request(words: &[&str]) -> String {
        let args: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let world = World::default();
        let flags = parse(&Call {
            program: "weighttp",
            args: &args,
            own: &Chosen::default(),
            world: &world,
        })
        .unwrap();
        String::from_utf8(flags.request()).unwrap()
    }

    #[test]
    fn https_is_taken_where_weighttp_refuses_it() {
        let request = |line| {
            let flags = parsed(line).unwrap();
            (flags.url.is_tls, flags.url.port, String::from_utf8(flags.request()).unwrap())
        };
        let (is_tls, port, head) = request("-n 5 https://h/x");
        assert_eq!((is_tls, port), (true, 443));
        assert!(head.starts_with("GET /x HTTP/1.1\r\nHost: h\r\n"), "{head}");
        let (is_tls, port, head) = request("-n 5 https://h:80/");
        assert!(is_tls && port == 80 && head.contains("Host: h:80\r\n"), "{head}");
        assert!(request("-n 5 http://h:443/").2.contains("Host: h:443\r\n"));
    }

    #[test]
    fn every_letter_of_the_option_string_is_handled() {
        let plain = parsed("-n 9 -c 3 h").unwrap();
        for (at, letter) in LETTERS.char_indices().filter(|(_, letter)| *letter != ':') {
            let takes_value = LETTERS[at + 1..].starts_with(':');
            let value = match letter {
                'n' => "8",
                _ if takes_value => "2",
                _ => "",
            };
            match parsed(&format!("-n 9 -c 3 -{letter} {value} h")) {
                Ok(flags) => assert_ne!(flags, plain, "-{letter} changes nothing"),
                Err(said) => {
                    let out = said.texts.on(Stream::Out);
                    assert!("hv".contains(letter) && said.code == 0 && out.starts_with(BANNER));
                    assert_eq!(out.len() > BANNER.len(), letter == 'h');
                }
            }
        }
    }

    #[test]
    fn complaints_are_those_of_weighttp() {
        let with_help = [
            ("-n", "option requires an argument: -n"),
            ("-n 5 -x h", "unkown option: -x"),
            ("--help", "unkown option: --"),
            ("-n 5", "missing url argument"),
            ("-n 5 a b", "too many arguments"),
            ("h", "number of requests has to be > 0"),
            ("-n 5 -t 0 h", "thread count has to be > 0"),
            ("-n 5 -t 256 h", "thread count has to be > 0"),
            ("-n 5 -c x h", "number of concurrent clients has to be > 0"),
            ("-n 5x h", "insane arguments"),
            ("-n 5 -c 6 h", "insane arguments"),
            ("-n 5 -t 2 h", "insane arguments"),
        ];
        for (line, text) in with_help {
            let said = parsed(line).expect_err(line);
            assert_eq!(said.texts.on(Stream::Err), format!("error: {text}\n\n"), "{line}");
            assert_eq!((said.texts.on(Stream::Out), said.code), (format!("{BANNER}{HELP}"), 1));
        }
        let alone = [
            ("-n 5 h:0/", "could not parse url"),
            ("-n 5 h/a:b", "could not parse url"),
            ("-n 5 -H Host: h", "Invalid Host header"),
            ("-n 5 -H Host:a -H Host:b h", "Duplicate Host header"),
        ];
        for (line, text) in alone {
            let said = parsed(line).expect_err(line);
            assert_eq!(said.texts.on(Stream::Err), format!("error: {text}\n"), "{line}");
            assert_eq!((said.texts.on(Stream::Out), said.code), (BANNER.to_owned(), 1));
        }
    }

    #[test]
    fn the_request_is_weighttp_s() {
        assert_eq!(
            request(&["-n", "1", "http://h:81/x?y"]),
            "GET /x?y HTTP/1.1\r\nHost: h:81\r\nUser-Agent: weighttp/0.4\r\nConnection: close\r\n\r\n"
        );
        assert_eq!(
            request(&["h", "-kn1", "-H", "X: a b", "-H", "Host: z", "-H", "User-Agent: me"]),
            "GET / HTTP/1.1\r\nHost: z\r\nX: a b\r\nUser-Agent: me\r\nConnection: keep-alive\r\n\r\n"
        );
        let lower = request(&["-n1", "h", "-H", "host: z"]);
        assert!(
            lower.starts_with("GET / HTTP/1.1\r\nHost: h\r\n") && lower.contains("\r\nhost: z\r\n")
        );
    }

    /// A quirk: counts are truncated to 8 and 16 bits.
    #[test]
    fn counts_are_as_wide_as_weighttp_s() {
        let flags = parsed("-n 70000 -t 257 -c 65537 h").unwrap();
        assert_eq!((flags.threads, flags.clients), (1, 1));
    }

    #[test]
    fn addresses_are_of_the_version_that_is_asked_for() {
        let world = World::default();
        let resolve = |line: &str| {
            let args = args(line);
            let call =
                Call { program: "weighttp", args: &args, own: &Chosen::default(), world: &world };
            parse(&call).unwrap().resolve(&call).map_err(|said| said.texts.on(Stream::Err))
        };
        assert_eq!(resolve("-n 1 h").unwrap(), ([127, 0, 0, 1], 80).into());
        let unresolved = |host: &str| Err(format!("error: could not resolve hostname: {host}\n"));
        assert_eq!(resolve("-6 -n 1 h"), unresolved("h"));
        assert_eq!(resolve("-n 1 x.invalid"), unresolved("x.invalid"));
    }
}
