//! Runs the command line of a classic tool: from the arguments to a plan, and from the results to the tool's output.
//! Owns the types that every tool fills in. Start reading at [`CommandOutcome`].
//!
//! The program around it (`cli`) calls a tool's function with the arguments, executes the [`Run`], and calls its
//! [`Printer`] before, during and after the load. All access to the outside goes through [`Surroundings`], so that a
//! test can replace it.

mod account;
mod explain;
mod getopt;
pub(crate) mod notes;
mod own;

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use record::{LoadPlan, LoadRecord, Scenario};
use units::Nanos;

pub use account::{RequestAccount, close};
pub use explain::explain;
pub use getopt::{Getopt, Item, Order, Takes};
pub use own::{Chosen, OwnFlag};

/// The command line and its environment.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// The name by which the tool was called, as in its messages ("ab", "./ab").
    pub program: &'a str,
    /// The arguments after it, without those that are joust's own.
    pub args: &'a [String],
    /// joust's own flags on the tool's command line, as typed.
    pub own: &'a Chosen,
    /// Access to the outside.
    pub world: &'a dyn Surroundings,
}

/// The only access of a command line to the outside.
pub trait Surroundings {
    /// An environment variable; one that is not UTF-8 counts as not set.
    fn variable(&self, name: &str) -> Option<String>;

    /// The content of a file.
    ///
    /// # Errors
    /// Those of the kernel.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// Whether the path exists, as a file or anything else.
    fn exists(&self, path: &Path) -> bool;

    /// The addresses of a host in the resolver's order, at least one.
    ///
    /// # Errors
    /// The resolver knows none.
    fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>>;

    /// Whether a stream goes to a terminal.
    fn is_terminal(&self, stream: Stream) -> bool;

    /// Number of files that this process may have open at once, with its limit raised as far as possible.
    fn files_max(&self) -> u64;

    /// The network, for a user's script that needs it during the load.
    fn network(&self) -> Arc<dyn Network>;

    /// The wall clock, for messages during the load.
    fn clock(&self) -> Clock;
}

/// Returns the time of the wall clock.
pub type Clock = Arc<dyn Fn() -> LocalTime + Send + Sync>;

/// What a user's script may request from the network, besides the load itself.
pub trait Network: Send + Sync {
    /// The addresses of a host in the resolver's order.
    ///
    /// # Errors
    /// The resolver knows none; with its message.
    fn lookup(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>>;

    /// Whether a connection can be made; it is closed at once.
    ///
    /// # Errors
    /// Those of the kernel.
    fn connect(&self, addr: SocketAddr) -> io::Result<()>;
}

/// A standard stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// What a command line asks for.
pub enum CommandOutcome {
    /// Only a message: usage, a version, why a flag is rejected.
    Exit(ExitMessage),
    /// A load.
    Run(Box<Run>),
}

/// A message, and the exit code after it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExitMessage {
    /// In order of printing.
    pub texts: Texts,
    /// Exit code.
    pub code: u8,
}

/// Texts with the streams that they go to, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Texts(pub Vec<(Stream, String)>);

impl Texts {
    /// A text on standard output.
    pub fn out(text: impl Into<String>) -> Self {
        Self::default().and_out(text)
    }

    /// A text on standard error.
    pub fn err(text: impl Into<String>) -> Self {
        Self::default().and_err(text)
    }

    /// Adds a text on standard output.
    #[must_use]
    pub fn and_out(mut self, text: impl Into<String>) -> Self {
        self.0.push((Stream::Out, text.into()));
        self
    }

    /// Adds a text on standard error.
    #[must_use]
    pub fn and_err(mut self, text: impl Into<String>) -> Self {
        self.0.push((Stream::Err, text.into()));
        self
    }

    /// All text for one stream.
    pub fn on(&self, stream: Stream) -> String {
        self.0.iter().filter(|(to, _)| *to == stream).map(|(_, text)| text.as_str()).collect()
    }

    /// Ends with that exit code.
    pub fn ending(self, code: u8) -> CommandOutcome {
        CommandOutcome::Exit(ExitMessage { texts: self, code })
    }
}

/// A requested load.
pub struct Run {
    /// The plan. If the report needs single requests, `raw_max` covers all of them.
    pub plan: LoadPlan,
    /// Known differences from the original, before the load; see [`Closing::footnotes`].
    pub footnotes: Vec<String>,
    /// Prints the output.
    pub printer: Box<dyn Printer>,
    /// Plays the users, if their requests depend on answers; then the requests of the plan are only representative.
    pub scenario: Option<Box<dyn Scenario>>,
}

/// What a tool prints about a load, over its course.
pub trait Printer {
    /// Before the first request.
    fn opening(&mut self) -> Texts;

    /// After each interval of the load, some ten times a second.
    fn progress(&mut self, _so_far: &Progress) -> Texts {
        Texts::default()
    }

    /// When it is over.
    fn closing(&mut self, finished: &Finished<'_>) -> Closing;

    /// After all that is printed: what a user's script still has to do. `None`: nothing, and the exit code stays.
    fn afterwards(&mut self) -> Option<ExitMessage> {
        None
    }
}

/// The progress of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Requests that were started.
    pub started: u64,
    /// Requests that have ended, successfully or not.
    pub done: u64,
    /// Time since the start.
    pub elapsed: Nanos,
}

/// A finished load.
#[derive(Clone, Copy)]
pub struct Finished<'a> {
    /// What was measured.
    pub record: &'a LoadRecord,
    /// When it began, since 1970.
    pub began: Nanos,
    /// Converts an instant since 1970 to wall-clock time.
    pub local_time: &'a dyn Fn(Nanos) -> LocalTime,
}

/// A time of the wall clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the definitions")]
pub struct LocalTime {
    pub year: i32,
    /// 1 to 12.
    pub month: u8,
    /// 1 to 31.
    pub day: u8,
    /// 0 is Sunday.
    pub weekday: u8,
    pub hour: u8,
    pub minute: u8,
    pub second: u8,
}

impl LocalTime {
    /// The format of ctime(3), without the newline: `Sun Nov 22 08:55:23 2026`.
    pub fn ctime(&self) -> String {
        const DAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
        const MONTHS: [&str; 12] =
            ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
        let Self { year, month, day, weekday, hour, minute, second } = self;
        let (weekday, month) = (DAYS[usize::from(*weekday)], MONTHS[usize::from(*month) - 1]);
        format!("{weekday} {month} {day:02} {hour:02}:{minute:02}:{second:02} {year}")
    }
}

/// The end of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Closing {
    /// The report.
    pub texts: Texts,
    /// Files that the tool writes.
    pub files: Vec<OutFile>,
    /// Exit code.
    pub code: u8,
    /// What the original gets wrong or hides, and what differs here: a sentence each, in lower case and without a full
    /// stop. They go to standard error, never into the report.
    pub footnotes: Vec<String>,
    /// How the report accounts for the requests of the load; `None` only without a report.
    pub tally: Option<RequestAccount>,
}

/// A file that a tool writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutFile {
    /// Its path.
    pub path: PathBuf,
    /// Its content.
    pub bytes: Vec<u8>,
    /// Whether to append to an existing file.
    pub appends: bool,
    /// The tool's message if writing fails: the text before a colon and the reason.
    pub complaint: String,
    /// The exit code if writing fails; 0: as if it had succeeded.
    pub code: u8,
}

/// The text of a system error like strerror(3): without the number that Rust adds.
pub fn strerror(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

/// atoi(3): a number at the start of a text, or 0. As in glibc, it is read with 64 bits, limited to the largest, and
/// cut to 32, so that 4294967297 is 1.
pub fn atoi(text: &str) -> i32 {
    let text = text.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '\x0b');
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let digits = digits.bytes().take_while(u8::is_ascii_digit).map(|digit| i64::from(digit - b'0'));
    // The sign is applied to each digit, because the least number has no positive counterpart.
    let sign = if is_negative { -1 } else { 1 };
    digits.fold(0i64, |sum, digit| sum.saturating_mul(10).saturating_add(sign * digit)) as i32
}

#[cfg(test)]
pub(crate) mod testing {
    use std::collections::BTreeMap;

    use record::{AtEnd, Carrier, Outcome, Sample};

    use super::*;

    /// A world with some files and variables; every host is 127.0.0.1, except for names that end in `.invalid`.
    #[derive(Default)]
    pub(crate) struct World {
        pub(crate) files: BTreeMap<&'static str, &'static [u8]>,
        pub(crate) variables: BTreeMap<&'static str, &'static str>,
        pub(crate) terminal: bool,
    }

    impl Surroundings for World {
        fn variable(&self, name: &str) -> Option<String> {
            self.variables.get(name).map(|value| (*value).to_owned())
        }

        fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
            let file = path.to_str().and_then(|path| self.files.get(path));
            file.map(|bytes| bytes.to_vec()).ok_or(io::Error::from_raw_os_error(2))
        }

        fn exists(&self, path: &Path) -> bool {
            self.read(path).is_ok()
        }

        fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
            if host.ends_with(".invalid") {
                return Err(io::Error::other("Name or service not known"));
            }
            Ok(vec![SocketAddr::new(host.parse().unwrap_or([127, 0, 0, 1].into()), port)])
        }

        fn files_max(&self) -> u64 {
            1024
        }

        fn is_terminal(&self, _: Stream) -> bool {
            self.terminal
        }

        fn network(&self) -> Arc<dyn Network> {
            Arc::new(Hosts)
        }

        fn clock(&self) -> Clock {
            Arc::new(|| LocalTime {
                year: 2026,
                month: 1,
                day: 1,
                weekday: 4,
                hour: 0,
                minute: 0,
                second: 0,
            })
        }
    }

    /// Every host is 127.0.0.1, except for names that end in `.invalid`, and nobody listens on port 1.
    struct Hosts;

    impl Network for Hosts {
        fn lookup(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
            World::default().resolve(host, port)
        }

        fn connect(&self, addr: SocketAddr) -> io::Result<()> {
            if addr.port() == 1 { Err(io::Error::from_raw_os_error(111)) } else { Ok(()) }
        }
    }

    /// A request that was started `at`, connected in `connect`, and answered after `wait` and `rest`, all in
    /// microseconds.
    pub(crate) fn sample(at: u64, connect: u64, wait: u64, rest: u64) -> Sample {
        Sample {
            due: Nanos::from_micros(at),
            sent: Nanos::from_micros(at + connect),
            first_byte: Nanos::from_micros(at + connect + wait),
            done: Nanos::from_micros(at + connect + wait + rest),
            bytes_read: 150,
            bytes_body: 50,
            status: 200,
            outcome: Outcome::Ok,
            conn: 0,
            bytes_head: 100,
            carrier: Carrier::Fresh,
            request: 0,
            at_end: AtEnd::Last,
        }
    }

    /// Words of a command line.
    pub(crate) fn args(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn a_world_has_what_it_was_given() {
        let world =
            World { variables: [("HOME", "/root")].into(), terminal: true, ..World::default() };
        assert_eq!(world.variable("HOME").as_deref(), Some("/root"));
        assert!(world.is_terminal(Stream::Out) && world.resolve("x.invalid", 1).is_err());
        assert_eq!(world.resolve("::1", 1).unwrap(), ["[::1]:1".parse().unwrap()]);
    }

    #[test]
    fn ctime_is_that_of_the_c_library() {
        let time =
            LocalTime { year: 2026, month: 11, day: 2, weekday: 1, hour: 8, minute: 5, second: 9 };
        assert_eq!(time.ctime(), "Mon Nov 02 08:05:09 2026");
    }

    #[test]
    fn an_error_of_the_system_loses_its_number() {
        assert_eq!(strerror(&io::Error::from_raw_os_error(2)), "No such file or directory");
        assert_eq!(strerror(&io::Error::other("x")), "x");
    }

    #[test]
    fn a_number_is_read_as_c_reads_it() {
        let read = ["12x", " +3", "-4", "x", "", "-", "\u{a0}5"].map(atoi);
        assert_eq!(read, [12, 3, -4, 0, 0, 0, 0]);
        // The results of a C program compiled on this machine.
        let too_much =
            ["4294967297", "99999999999", "99999999999999999999", "-99999999999999999999"];
        assert_eq!(too_much.map(atoi), [1, 1_215_752_191, -1, 0]);
    }
}
