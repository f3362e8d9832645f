//! wrk's flags: the command line, with wrk's error messages. Owns every letter and name of its options. Start reading
//! at [`parse`].

use std::path::PathBuf;

use super::units::{scan_metric, scan_time};
use super::url::Url;
use crate::command::{Call, ExitMessage, Getopt, Item, Order, Takes, Texts};

/// wrk's own option string. It contains `r`, which nothing handles: it ends in the usage.
pub(super) const LETTERS: &str = "t:c:d:s:H:T:Lrv?";

/// Its long options, with the letter of each.
pub(super) const NAMES: [(&str, Takes); 9] = [
    ("connections", Takes::Value),
    ("duration", Takes::Value),
    ("threads", Takes::Value),
    ("script", Takes::Value),
    ("header", Takes::Value),
    ("latency", Takes::Nothing),
    ("timeout", Takes::Value),
    ("help", Takes::Nothing),
    ("version", Takes::Nothing),
];
const LETTER_OF: [char; 9] = ['c', 'd', 't', 's', 'H', 'L', 'T', 'h', 'v'];

/// Most connections: each takes memory before the first request.
const CONNECTIONS_MAX: u64 = 1_000_000;

/// Most threads: each has its own histograms, some 270 KB each, and perhaps a Lua state.
const THREADS_MAX: u64 = 1024;

/// The parsed command line.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Flags {
    pub(super) connections: u32,
    /// 1 to `connections`.
    pub(super) threads: u32,
    /// Seconds, at least 1.
    pub(super) duration: u64,
    /// Seconds from which a latency is dropped.
    pub(super) timeout: u64,
    pub(super) script: Option<PathBuf>,
    /// Of -H, as typed.
    pub(super) headers: Vec<String>,
    pub(super) latency: bool,
    /// Whether to print the version first.
    pub(super) version: bool,
    pub(super) url: Url,
    /// The URL as typed and the arguments after it, which a script's init receives.
    pub(super) operands: Vec<String>,
}

impl Flags {
    /// wrk gives each thread the same number and opens no more.
    pub(super) fn connections_a_thread(&self) -> u32 {
        self.connections / self.threads
    }
}

/// Parses the arguments.
///
/// # Errors
/// What wrk prints instead of running.
pub(super) fn parse(call: &Call<'_>) -> Result<Flags, ExitMessage> {
    let mut typed = TypedFlags::default();
    let mut getopt = Getopt::new(LETTERS, Order::Permuted, call.args).with_names(&NAMES);
    for item in getopt.by_ref() {
        let complaint = item.gnu_complaint(call.program).unwrap_or_default();
        let (letter, value) = match item {
            Item::Letter(letter, value) => (letter, value),
            Item::Name(name, value) => {
                let at = NAMES.iter().position(|(other, _)| *other == name);
                (LETTER_OF[at.expect("getopt gives names of the list")], value)
            }
            // Other items end in the usage.
            _ => ('?', None),
        };
        let value = value.unwrap_or_default();
        typed.take(letter, value).ok_or_else(|| usage(&typed, &complaint))?;
    }
    let operands = getopt.operands();
    typed.finish(operands, call)
}

/// The flags during parsing.
struct TypedFlags {
    connections: u64,
    threads: u64,
    duration: u64,
    timeout: u64,
    script: Option<PathBuf>,
    headers: Vec<String>,
    latency: bool,
    /// How often it was given.
    version: usize,
}

impl Default for TypedFlags {
    fn default() -> Self {
        Self {
            connections: 10,
            threads: 2,
            duration: 10,
            timeout: 2,
            script: None,
            headers: Vec::new(),
            latency: false,
            version: 0,
        }
    }
}

impl TypedFlags {
    /// `None`: wrk prints its usage.
    fn take(&mut self, letter: char, value: String) -> Option<()> {
        match letter {
            'c' => self.connections = scan_metric(&value)?,
            't' => self.threads = scan_metric(&value)?,
            'd' => self.duration = scan_time(&value)?,
            'T' => self.timeout = scan_time(&value)?,
            's' => self.script = Some(value.into()),
            'H' => self.headers.push(value),
            'L' => self.latency = true,
            'v' => self.version += 1,
            _ => return None,
        }
        Some(())
    }

    /// Checks that need all flags, in wrk's order.
    fn finish(self, operands: Vec<String>, call: &Call<'_>) -> Result<Flags, ExitMessage> {
        let Some(typed_url) = operands.first().filter(|_| self.threads > 0 && self.duration > 0)
        else {
            return Err(usage(&self, ""));
        };
        let Some(url) = Url::parse(typed_url) else {
            return Err(usage(&self, &format!("invalid URL: {typed_url}\n")));
        };
        if self.connections == 0 || self.connections < self.threads {
            return Err(usage(&self, "number of connections must be >= threads\n"));
        }
        for (flag, number, most) in [
            ("-c", self.connections, CONNECTIONS_MAX),
            ("-t", self.threads, THREADS_MAX),
            // Nanoseconds must fit 64 bits.
            ("-d", self.duration, u64::MAX / 2_000_000_000),
        ] {
            if number > most {
                let program = call.program;
                let text = format!("{program}: {flag} {number} is not supported: at most {most}\n");
                return Err(ExitMessage { texts: Texts::err(text), code: 1 });
            }
        }
        Ok(Flags {
            connections: self.connections as u32,
            threads: self.threads as u32,
            duration: self.duration,
            timeout: self.timeout,
            script: self.script,
            headers: self.headers,
            latency: self.latency,
            version: self.version > 0,
            url,
            operands,
        })
    }
}

/// What `-v` prints.
pub(super) const VERSION: &str = "wrk 4.1.0 [epoll] Copyright (C) 2012 Will Glozer\n";

/// An error message, then wrk's usage.
fn usage(typed: &TypedFlags, complaint: &str) -> ExitMessage {
    let texts = Texts::out(VERSION.repeat(typed.version)).and_err(complaint);
    ExitMessage { texts: texts.and_out(include_str!("usage.txt")), code: 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::testing::{World, args};
    use crate::command::{Chosen, Stream};

    fn parsed(line: &str) -> Result<Flags, ExitMessage> {
        let args = args(line);
        parse(&Call {
            program: "wrk",
            args: &args,
            own: &Chosen::default(),
            world: &World::default(),
        })
    }

    const URL: &str = "http://h:81/x?y";

    #[test]
    fn every_letter_and_name_of_the_options_is_handled_or_ends_in_the_usage_as_in_wrk() {
        let plain = parsed(URL).unwrap();
        let letters = LETTERS.char_indices().filter(|(_, letter)| *letter != ':');
        let letters = letters
            .map(|(at, letter)| (format!("-{letter}"), letter, LETTERS[at + 1..].starts_with(':')));
        let names = NAMES
            .iter()
            .zip(LETTER_OF)
            .map(|((name, takes), letter)| (format!("--{name}"), letter, *takes == Takes::Value));
        for (typed, letter, takes_value) in letters.chain(names) {
            let value = if takes_value { " 3" } else { "" };
            match parsed(&format!("{typed}{value} {URL}")) {
                Ok(flags) => assert_ne!(flags, plain, "{typed} changes nothing"),
                Err(said) => {
                    assert!("rh?".contains(letter), "{typed}: {said:?}");
                    assert_eq!(said.texts.on(Stream::Out), include_str!("usage.txt"), "{typed}");
                    assert_eq!((said.texts.on(Stream::Err).as_str(), said.code), ("", 1));
                }
            }
        }
    }

    #[test]
    fn complaints_are_those_of_wrk_in_its_order() {
        let cases = [
            ("", ""),
            ("-c", "wrk: option requires an argument -- 'c'\n"),
            ("-Q", "wrk: invalid option -- 'Q'\n"),
            ("-h", "wrk: invalid option -- 'h'\n"),
            (
                "--t 1 http://h/",
                "wrk: option '--t' is ambiguous; possibilities: '--threads' '--timeout'\n",
            ),
            ("--latency=3 http://h/", "wrk: option '--latency' doesn't allow an argument\n"),
            ("-c x http://h/", ""),
            ("-d 0 http://h/", ""),
            ("-t 0 http://h/", ""),
            ("-t 0 foo", ""),
            ("foo -c 0", "invalid URL: foo\n"),
            ("-c 0 http://h/", "number of connections must be >= threads\n"),
            ("-c 1 http://h/", "number of connections must be >= threads\n"),
        ];
        for (line, complaint) in cases {
            let said = parsed(line).expect_err(line);
            assert_eq!((said.texts.on(Stream::Err).as_str(), said.code), (complaint, 1), "{line}");
            assert_eq!(said.texts.on(Stream::Out), include_str!("usage.txt"), "{line}");
        }
        let said = parsed("-v --version").unwrap_err();
        assert!(said.texts.on(Stream::Out).starts_with(&VERSION.repeat(2)));
        for line in ["-c -1 http://h/", "-t 2k -c 2k http://h/", "-d -1 http://h/"] {
            let said = parsed(line).expect_err(line);
            let flag = &line[..2];
            let text = said.texts.on(Stream::Err);
            assert!(
                text.starts_with(&format!("wrk: {flag} ")) && text.contains("at most"),
                "{text}"
            );
        }
    }

    #[test]
    fn flags_may_stand_behind_the_url_and_what_is_behind_two_dashes_is_the_script_s() {
        let flags =
            parsed("-t1 http://h/ -c 3 -d 1m -T 2 -H A:b -s x.lua -L -- one -d --two").unwrap();
        assert_eq!((flags.threads, flags.connections, flags.duration), (1, 3, 60));
        assert_eq!((flags.timeout, flags.latency, flags.script), (2, true, Some("x.lua".into())));
        assert_eq!(flags.operands, ["http://h/", "one", "-d", "--two"]);
        assert_eq!(parsed("-c 7 -t 3 http://h/").unwrap().connections_a_thread(), 2);
    }
}
