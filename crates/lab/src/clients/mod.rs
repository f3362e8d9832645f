//! Owns what the lab knows of each load tool that can replace the generator in a study: where it is found, how an
//! order becomes its command line, and what it cannot do. Must not know processes (that is `run`), nor how a report
//! is read (that is the crate `classic`): it turns an order into a command line.
//! Start reading at [`Client`]; one more tool is one more file and one line in [`ALL`].

mod ab;
mod h2load;
mod hey;
mod http_load;
mod httperf;
mod run;
mod siege;
mod weighttp;
mod wrk;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use units::{Nanos, PerSecond};

use crate::adapters::{Found, Search, version_printed};
use crate::nearest::suggestion;
pub use run::{Bench, ClientRun, GRACE, run};

/// Every client, ours first.
pub static ALL: &[&Client] = &[
    &LOAD,
    &ab::ITEM,
    &siege::ITEM,
    &wrk::ITEM,
    &h2load::ITEM,
    &hey::ITEM,
    &httperf::ITEM,
    &weighttp::ITEM,
    &http_load::ITEM,
];

/// Our own generator, which runs inside this process and is not started by [`run`].
static LOAD: Client = Client {
    name: "load",
    about: "joust's own generator: every phase of every request timed, closed and open loop",
    package: "",
    kind: ClientKind::Ours,
};

/// What loads a server in a study.
#[derive(Debug)]
pub struct Client {
    /// Name in study files ("wrk").
    pub name: &'static str,
    /// What it is, in a sentence.
    pub about: &'static str,
    /// The Debian package that contains it; empty for ours, and for tools that Debian does not have.
    pub package: &'static str,
    /// Whether it is a program, and how it takes an order.
    pub kind: ClientKind,
}

/// How a client is run.
#[derive(Debug)]
pub enum ClientKind {
    /// Our own generator, in this process.
    Ours,
    /// A program.
    Program(Program),
}

/// How a load tool takes an order.
#[derive(Debug)]
pub struct Program {
    /// Looks for it.
    pub find: fn(&Search) -> Option<Found>,
    /// Makes its command line from an order.
    ///
    /// # Errors
    /// What it cannot do, and the way out.
    pub say: fn(&Order) -> Result<Said, String>,
    /// The tool in `classic` that reads its report, and what it counts differently.
    pub reads: &'static str,
    /// Whether it accepts only a number of requests; then a short first run shows how many fit into the duration.
    pub counts_only: bool,
}

/// A load in terms that all tools share.
#[derive(Debug, Clone, PartialEq)]
pub struct Order {
    /// The server.
    pub addr: SocketAddr,
    /// What is asked for ("/index.html").
    pub target: String,
    /// Connections at once.
    pub connections: u32,
    /// Threads of the tool.
    pub threads: u32,
    /// Whether a connection serves more than one request.
    pub keep_alive: bool,
    /// How long the load lasts; with `requests`, the longest time that they may take.
    pub duration: Nanos,
    /// This many requests instead of a duration.
    pub requests: Option<u64>,
    /// How long a reply may take.
    pub timeout: Nanos,
    /// Requests at this rate, whether or not replies come (open loop).
    pub rate: Option<PerSecond>,
}

impl Order {
    fn url(&self) -> String {
        format!("http://{}{}", self.addr, self.target)
    }

    /// The duration in the steps that a tool takes.
    fn whole_secs(&self, tool: &str) -> Result<u64, String> {
        let secs = self.duration.0 / 1_000_000_000;
        if self.duration == Nanos::from_secs(secs) && secs > 0 {
            return Ok(secs);
        }
        Err(format!(
            "{tool} takes whole seconds, not {}: set a duration of 1s or more",
            self.duration
        ))
    }

    /// The timeout, rounded up to the steps of a tool; never shorter than requested.
    fn timeout_secs(&self) -> u64 {
        self.timeout.0.div_ceil(1_000_000_000).max(1)
    }

    fn no_rate(&self, tool: &str, why: &str) -> Result<(), String> {
        match self.rate {
            None => Ok(()),
            Some(rate) => Err(format!(
                "{tool} cannot ask {rate} whether or not replies come: {why}; leave out the rate, or \
                 take the client `load`"
            )),
        }
    }

    fn one_thread(&self, tool: &str) -> Result<(), String> {
        match self.threads {
            0 | 1 => Ok(()),
            more => Err(format!("{tool} has one thread, not {more}: set threads to 1")),
        }
    }

    /// Tools that divide requests among threads or connections need at least one for each.
    fn at_least(&self, what: &str, count: u64, of: &str, each: u64) -> Result<(), String> {
        match count >= each {
            true => Ok(()),
            false => {
                Err(format!("{count} {what} are fewer than {each} {of}: ask for {each} or more"))
            }
        }
    }
}

/// An order, expressed for one tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Said {
    /// What follows the program's name.
    pub arguments: Vec<String>,
    /// Files to write into its folder first, by name; the tool is started in that folder.
    pub files: Vec<(String, String)>,
    /// What it does differently from the order.
    pub notes: Vec<String>,
}

impl Said {
    fn new(arguments: &[&str]) -> Self {
        Self {
            arguments: arguments.iter().map(|word| (*word).to_owned()).collect(),
            ..Self::default()
        }
    }

    fn with(mut self, option: &str, value: impl ToString) -> Self {
        self.arguments.extend([option.to_owned(), value.to_string()]);
        self
    }

    fn word(mut self, word: impl ToString) -> Self {
        self.arguments.push(word.to_string());
        self
    }

    fn word_if(self, wanted: bool, word: &str) -> Self {
        if wanted { self.word(word) } else { self }
    }

    fn note(mut self, note: impl ToString) -> Self {
        self.notes.push(note.to_string());
        self
    }
}

impl Client {
    /// Its program; `None` if it is not installed, or is our own generator.
    pub fn find(&self, search: &Search) -> Option<Found> {
        match &self.kind {
            ClientKind::Ours => None,
            ClientKind::Program(program) => (program.find)(search),
        }
    }

    /// Makes the tool's command line from an order.
    ///
    /// # Errors
    /// What it cannot do, why, and the way out. Our own generator is not asked in this way.
    pub fn say(&self, order: &Order) -> Result<Said, ClientError> {
        let refused = |reason| ClientError::Refused { client: self.name, reason };
        match &self.kind {
            ClientKind::Ours => Err(refused("it runs inside joust, and is not started".to_owned())),
            ClientKind::Program(program) => (program.say)(order).map_err(refused),
        }
    }

    /// What the tool counts differently from us, one sentence each; empty for our own.
    pub fn counts_differently(&self) -> &'static [&'static str] {
        match &self.kind {
            ClientKind::Ours => &[],
            ClientKind::Program(program) => {
                classic::named(program.reads).map_or(&[], |tool| tool.counts_differently)
            }
        }
    }

    /// The command that installs it.
    pub fn remedy(&self) -> String {
        match (&self.kind, self.package) {
            (ClientKind::Ours, _) => "it is part of joust".to_owned(),
            (_, "") => format!(
                "Debian has no package of {0}: build it, into /usr/local/bin/{0}",
                self.name
            ),
            (_, package) => format!("apt-get install {package}"),
        }
    }
}

/// The client of that name.
///
/// # Errors
/// There is no client of that name; the text names the nearest.
pub fn named(name: &str) -> Result<&'static Client, ClientError> {
    ALL.iter().copied().find(|client| client.name == name).ok_or_else(|| {
        let names: Vec<&str> = ALL.iter().map(|client| client.name).collect();
        ClientError::Unknown { name: name.to_owned(), suggestion: suggestion(name, &names) }
    })
}

/// Why a client could not load a server.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No client has this name.
    #[error("no client is called `{name}`: {suggestion}")]
    Unknown {
        /// As given.
        name: String,
        /// What may have been meant.
        suggestion: String,
    },
    /// It cannot do what was asked.
    #[error("{client}: {reason}")]
    Refused {
        /// Name of the client.
        client: &'static str,
        /// What it cannot do, why, and the way out.
        reason: String,
    },
    /// The system did not let it be started or watched.
    #[error("{client} cannot be run: {what} {}: {source}", path.display())]
    System {
        /// Name of the client.
        client: &'static str,
        /// What was tried ("starting").
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// It did not end, and was killed.
    #[error(
        "{client} had not ended after {longest}, and was killed (`{command}`); it printed:\n{tail}"
    )]
    TooLong {
        /// Name of the client.
        client: &'static str,
        /// What it was told.
        command: String,
        /// How long it had.
        longest: Nanos,
        /// The end of what it printed.
        tail: String,
    },
    /// It ended without a report.
    #[error("{client} ended with {ended} and without a report (`{command}`); it printed:\n{tail}")]
    NoReport {
        /// Name of the client.
        client: &'static str,
        /// What it was told.
        command: String,
        /// How it ended.
        ended: String,
        /// The end of what it printed.
        tail: String,
    },
}

/// The program of that name, with the version that it prints after `marker`; the version is empty if it prints none.
fn found(search: &Search, name: &str, flag: &str, marker: &str) -> Option<Found> {
    let binary = search.program(name)?;
    let version = version_printed(&binary, flag, marker).unwrap_or_default();
    let version = version.split_whitespace().next().unwrap_or_default().to_owned();
    Some(Found { binary, version })
}

/// A program that cannot print its version.
fn found_silent(search: &Search, name: &str) -> Option<Found> {
    Some(Found { binary: search.program(name)?, version: String::new() })
}

/// A command line as one could type it.
fn typed(program: &Path, arguments: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    let word = |word: &str| match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    };
    let program = program.to_string_lossy();
    let words = std::iter::once(&*program).chain(arguments.iter().map(String::as_str));
    words.map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order() -> Order {
        Order {
            addr: "127.0.0.1:8080".parse().unwrap(),
            target: "/index.html".to_owned(),
            connections: 8,
            threads: 1,
            keep_alive: true,
            duration: Nanos::from_secs(2),
            requests: None,
            timeout: Nanos::from_millis(1500),
            rate: None,
        }
    }

    fn command(name: &str, order: &Order) -> String {
        let said = named(name).unwrap().say(order).unwrap();
        typed(Path::new(name), &said.arguments)
    }

    #[test]
    fn an_order_becomes_the_command_line_of_each_tool() {
        let two = Order { threads: 2, ..order() };
        let close = Order { keep_alive: false, ..order() };
        let at_rate = Order { rate: Some(PerSecond(100.0)), ..close.clone() };
        let counted = Order { requests: Some(400), ..order() };
        let url = "http://127.0.0.1:8080/index.html";
        let cases = [
            ("ab", &order(), format!("ab -q -r -c 8 -s 2 -k -t 2 -n 1000000 {url}")),
            ("ab", &counted, format!("ab -q -r -c 8 -s 2 -k -n 400 {url}")),
            ("siege", &order(), format!("siege -R siege.conf -b -c 8 -t 2S {url}")),
            ("siege", &counted, format!("siege -R siege.conf -b -c 8 -r 50 {url}")),
            ("wrk", &two, format!("wrk --latency -t 2 -c 8 -d 2s --timeout 2s {url}")),
            (
                "wrk",
                &close,
                format!("wrk --latency -t 1 -c 8 -d 2s --timeout 2s -H 'Connection: close' {url}"),
            ),
            ("h2load", &two, format!("h2load --h1 -t 2 -c 8 -N 2s -D 2000ms {url}")),
            (
                "hey",
                &close,
                format!(
                    "hey -c 8 -cpus 1 -t 2 -disable-compression -disable-redirects -z 2000ms \
                     -disable-keepalive {url}"
                ),
            ),
            (
                "httperf",
                &at_rate,
                "httperf --hog --server 127.0.0.1 --port 8080 --uri /index.html --timeout 1.500 \
                 --rate 100 --num-conns 200 --num-calls 1"
                    .to_owned(),
            ),
            ("weighttp", &counted, format!("weighttp -n 400 -c 8 -t 1 -k {url}")),
            ("http_load", &at_rate, "http_load -rate 100 -timeout 2 -seconds 2 urls".to_owned()),
            ("http_load", &close, "http_load -parallel 8 -timeout 2 -seconds 2 urls".to_owned()),
        ];
        for (name, order, expected) in cases {
            assert_eq!(command(name, order), expected, "{name}");
        }
    }

    #[test]
    fn what_a_tool_cannot_do_is_refused_with_the_reason() {
        let short = Order { duration: Nanos::from_millis(1500), ..order() };
        let two = Order { threads: 2, ..order() };
        let at_rate = Order { rate: Some(PerSecond(100.0)), ..order() };
        let counted = Order { requests: Some(401), ..order() };
        let few = Order { requests: Some(4), ..order() };
        let many_threads = Order { threads: 9, ..order() };
        let uneven = Order { rate: Some(PerSecond(600.0)), keep_alive: false, ..order() };
        let cases = [
            ("load", &order(), "inside joust"),
            ("ab", &short, "whole seconds"),
            ("ab", &two, "one thread"),
            ("ab", &at_rate, "open loop"),
            ("ab", &few, "fewer than 8 connections"),
            ("siege", &short, "whole seconds"),
            ("siege", &counted, "does not divide"),
            ("siege", &at_rate, "open loop"),
            ("wrk", &short, "whole seconds"),
            ("wrk", &counted, "only a duration"),
            ("wrk", &many_threads, "fewer than 9 threads"),
            ("wrk", &at_rate, "wrk2"),
            ("h2load", &at_rate, "--rps"),
            ("hey", &at_rate, "-q"),
            ("httperf", &order(), "holds no number of connections"),
            ("httperf", &at_rate, "as fast as replies come"),
            ("httperf", &two, "one thread"),
            ("weighttp", &order(), "only a number of requests"),
            ("weighttp", &at_rate, "open loop"),
            ("http_load", &order(), "new connection"),
            ("http_load", &uneven, "whole number of milliseconds"),
        ];
        for (name, order, reason) in cases {
            let error = named(name).unwrap().say(order).unwrap_err().to_string();
            assert!(error.starts_with(name) && error.contains(reason), "{error}");
        }
    }

    #[test]
    fn every_client_is_found_by_name_and_every_tool_is_read() {
        for client in ALL {
            assert_eq!(named(client.name).unwrap().name, client.name);
            assert!(!client.remedy().is_empty());
            if let ClientKind::Program(program) = &client.kind {
                assert!(classic::named(program.reads).is_some(), "{}", client.name);
                assert!(!client.counts_differently().is_empty(), "{}", client.name);
            }
        }
        let error = named("h2laod").unwrap_err().to_string();
        assert_eq!(error, "no client is called `h2laod`: did you mean `h2load`?");
    }

    #[test]
    fn a_command_can_be_typed_again() {
        let arguments = ["-H", "Connection: close", "it's", ""].map(str::to_owned);
        assert_eq!(
            typed(Path::new("/usr/bin/wrk"), &arguments),
            r"/usr/bin/wrk -H 'Connection: close' 'it'\''s' ''"
        );
    }
}
