//! http_load's flags: the command line, parsed in http_load's order, with its error messages. Owns every flag. Start
//! reading at [`parse`].

use std::path::PathBuf;

use crate::command::{Call, ExitMessage, Texts, atoi};

/// Every flag in the order of http_load's comparisons, and whether a value follows. A flag may be abbreviated to any
/// prefix; the first match counts.
pub(super) const FLAGS: [(&str, bool); 13] = [
    ("-checksum", false),
    ("-throttle", false),
    ("-Throttle", true),
    ("-verbose", false),
    ("-timeout", true),
    ("-jitter", false),
    ("-parallel", true),
    ("-rate", true),
    ("-fetches", true),
    ("-seconds", true),
    ("-sip", true),
    ("-cipher", true),
    ("-proxy", true),
];

const RATE_MAX: i32 = 1000;

/// Most fetches: a sample of each is kept.
const FETCHES_MAX: i32 = 10_000_000;

const TIMEOUT: i32 = 60;

/// The parsed command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Flags {
    pub(super) start: Start,
    pub(super) end: End,
    pub(super) checksum: bool,
    pub(super) verbose: bool,
    /// Seconds without a byte.
    pub(super) timeout: u32,
    pub(super) sip_file: Option<PathBuf>,
    pub(super) cipher: Option<String>,
    /// Host and port.
    pub(super) proxy: Option<(String, u16)>,
    pub(super) url_file: PathBuf,
}

/// What starts a fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// The end of another: this many run at once.
    Parallel(u32),
    /// A timer.
    Rate(Timer),
}

/// The timer of -rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Timer {
    /// Fetches a second, as typed.
    pub(super) typed: u32,
    pub(super) jitters: bool,
}

/// Standard input, output and error: these files are not available for connections.
const FILES_OF_ITS_OWN: u64 = 3;

/// What ends the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Fetches(u32),
    Seconds(u32),
}

impl Timer {
    /// Its period: whole milliseconds, so most rates differ from the typed one.
    pub(super) fn period_ms(self) -> u32 {
        1000 / self.typed
    }

    /// Shortest and longest interval of -jitter: also whole milliseconds, so short periods jitter to one side only.
    pub(super) fn jitter_ms(self) -> (u32, u32) {
        let period = self.period_ms();
        (period * 9 / 10, period * 11 / 10)
    }

    /// Mean rate of fetches per second.
    pub(super) fn rate(self) -> f64 {
        if self.jitters {
            let (low, high) = self.jitter_ms();
            return 2000.0 / f64::from(low + high);
        }
        1000.0 / f64::from(self.period_ms())
    }
}

/// The flags during parsing.
#[derive(Default)]
struct TypedFlags {
    parallel: u32,
    rate: u32,
    starts_by_rate: Option<bool>,
    end: Option<End>,
    checksum: bool,
    verbose: bool,
    jitter: bool,
    timeout: Option<i32>,
    sip_file: Option<PathBuf>,
    cipher: Option<String>,
    proxy: Option<(String, u16)>,
}

/// Parses the arguments.
///
/// # Errors
/// What http_load prints instead of running.
pub(super) fn parse(call: &Call<'_>) -> Result<Flags, ExitMessage> {
    let mut typed = TypedFlags::default();
    let mut args = call.args;
    while let [word, rest @ ..] = args
        && word.starts_with('-')
        && word != "-"
    {
        let fits = |(flag, has_value): &&(&str, bool)| {
            flag.starts_with(word.as_str()) && !(*has_value && rest.is_empty())
        };
        let Some((flag, has_value)) = FLAGS.iter().find(fits) else { return Err(usage(call)) };
        let (values, behind) = rest.split_at(usize::from(*has_value));
        typed.take(flag, values.first().map_or("", String::as_str), call)?;
        args = behind;
    }
    let [url_file] = args else { return Err(usage(call)) };
    typed.finish(url_file, call)
}

/// A line on stderr, and exit code 1.
pub(super) fn fatal(call: &Call<'_>, text: &str) -> ExitMessage {
    ExitMessage { texts: Texts::err(format!("{}: {text}\n", call.program)), code: 1 }
}

/// A flag that joust does not support, and why.
pub(super) fn refused(call: &Call<'_>, flag: &str, why: &str) -> ExitMessage {
    fatal(call, &format!("{flag} is not supported: {why}"))
}

fn usage(call: &Call<'_>) -> ExitMessage {
    let program = call.program;
    let text = format!(
        "usage:  {program} [-checksum] [-throttle] [-proxy host:port] [-verbose] [-timeout secs] \
         [-sip sip_file]\n            [-cipher str]\n            -parallel N | -rate N [-jitter]\n\
         \x20           -fetches N | -seconds N\n            url_file\n\
         One start specifier, either -parallel or -rate, is required.\n\
         One end specifier, either -fetches or -seconds, is required.\n"
    );
    ExitMessage { texts: Texts::err(text), code: 1 }
}

impl TypedFlags {
    fn take(&mut self, flag: &str, value: &str, call: &Call<'_>) -> Result<(), ExitMessage> {
        let at_least_1 = |name: &str| match atoi(value) {
            number if number < 1 => Err(fatal(call, &format!("{name} must be at least 1"))),
            number => Ok(number.unsigned_abs()),
        };
        match flag {
            "-checksum" => self.checksum = true,
            "-throttle" | "-Throttle" => {
                let why = "it simulates a reader of 3360 bytes a second, which joust does not; \
                           use tc (netem) to slow the network down";
                return Err(refused(call, flag, why));
            }
            "-verbose" => self.verbose = true,
            "-timeout" => self.timeout = Some(atoi(value)),
            "-jitter" => self.jitter = true,
            "-parallel" => {
                (self.starts_by_rate, self.parallel) = (Some(false), at_least_1("parallel")?);
                let parallel_max = call.world.files_max().saturating_sub(FILES_OF_ITS_OWN);
                if u64::from(self.parallel) > parallel_max {
                    return Err(fatal(call, &format!("parallel may be at most {parallel_max}")));
                }
            }
            "-rate" => {
                (self.starts_by_rate, self.rate) = (Some(true), at_least_1("rate")?);
                if atoi(value) > RATE_MAX {
                    return Err(fatal(call, &format!("rate may be at most {RATE_MAX}")));
                }
            }
            "-fetches" => {
                self.end = Some(End::Fetches(at_least_1("fetches")?));
                if atoi(value) > FETCHES_MAX {
                    let why = format!("joust keeps every fetch of it, {FETCHES_MAX} at most");
                    return Err(refused(call, &format!("-fetches {value}"), &why));
                }
            }
            "-seconds" => self.end = Some(End::Seconds(at_least_1("seconds")?)),
            "-sip" => self.sip_file = Some(value.into()),
            "-cipher" => self.cipher = Some(value.to_owned()),
            "-proxy" => {
                let (host, port) = value.split_once(':').unwrap_or((value, "80"));
                self.proxy = Some((host.to_owned(), atoi(port) as u16));
            }
            _ => unreachable!("a flag that nobody takes: {flag}"),
        }
        Ok(())
    }

    fn finish(self, url_file: &str, call: &Call<'_>) -> Result<Flags, ExitMessage> {
        let (Some(by_rate), Some(end)) = (self.starts_by_rate, self.end) else {
            return Err(usage(call));
        };
        if self.jitter && !by_rate {
            return Err(usage(call));
        }
        if self.checksum && by_rate {
            let why = "-checksum needs -parallel, where a user waits for its reply; \
                       with -rate only lengths are compared";
            return Err(refused(call, "-checksum with -rate", why));
        }
        let timer = Timer { typed: self.rate, jitters: self.jitter };
        let start = if by_rate { Start::Rate(timer) } else { Start::Parallel(self.parallel) };
        Ok(Flags {
            start,
            end,
            checksum: self.checksum,
            verbose: self.verbose,
            timeout: self.timeout.unwrap_or(TIMEOUT).max(0).unsigned_abs(),
            sip_file: self.sip_file,
            cipher: self.cipher,
            proxy: self.proxy,
            url_file: url_file.into(),
        })
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
        parse(&Call { program: "http_load", args: &args, own: &Chosen::default(), world: &world })
    }

    fn complaint(line: &str) -> (String, u8) {
        let said = parsed(line).expect_err(line);
        (said.texts.on(Stream::Err), said.code)
    }

    const REST: &str = "-rate 9 -fetches 3 urls";

    #[test]
    fn every_flag_is_handled_or_refused_with_a_reason() {
        for (flag, has_value) in FLAGS {
            let value = if has_value { "7" } else { "" };
            let rest = if flag == "-checksum" { "-parallel 9 -fetches 3 urls" } else { REST };
            // After the others, so that it takes effect.
            let line = rest.replace("urls", &format!("{flag} {value} urls"));
            match parsed(&line) {
                Ok(flags) => {
                    assert_ne!(flags, parsed(rest).unwrap(), "{flag} changes nothing");
                }
                Err(said) => {
                    let text = said.texts.on(Stream::Err);
                    let begin = format!("http_load: {flag} is not supported: ");
                    assert!(text.starts_with(&begin) && text.lines().count() == 1, "{text}");
                }
            }
        }
    }

    /// A quirk: `-p` is parallel, because that is compared before proxy; so with -s, -t and -c.
    #[test]
    fn a_flag_may_be_any_beginning_and_the_first_that_fits_is_meant() {
        let flags = parsed("-p 5 -s 2 -v -ti 9 -pro h:81 -si ips urls").unwrap();
        assert_eq!((flags.start, flags.end), (Start::Parallel(5), End::Seconds(2)));
        assert_eq!((flags.timeout, flags.verbose), (9, true));
        assert_eq!(flags.proxy, Some(("h".to_owned(), 81)));
        assert_eq!(flags.sip_file, Some("ips".into()));
        assert!(complaint("-t 9 -p 5 -s 2 urls").0.contains("-throttle is not supported"));
        assert!(parsed("-c -p 1 -f 2 urls").unwrap().checksum);
        assert_eq!(parsed("-ci x -p 1 -f 2 urls").unwrap().cipher.as_deref(), Some("x"));
        assert!(complaint("-ratex 5 -f 2 urls").0.starts_with("usage:  http_load [-checksum]"));
        assert!(complaint("-p 5 -f").0.starts_with("usage:"), "without a value it fits nothing");
        assert_eq!(parsed("-proxy h -p 1 -f 1 u").unwrap().proxy, Some(("h".to_owned(), 80)));
    }

    #[test]
    fn complaints_are_those_of_http_load() {
        let lines = [
            ("-parallel 0 -fetches 1 u", "http_load: parallel must be at least 1\n"),
            ("-parallel 1022 -fetches 1 u", "http_load: parallel may be at most 1021\n"),
            ("-parallel 2000000000 -fetches 1 u", "http_load: parallel may be at most 1021\n"),
            ("-rate x -fetches 1 u", "http_load: rate must be at least 1\n"),
            ("-rate 1001 -fetches 1 u", "http_load: rate may be at most 1000\n"),
            ("-rate 1 -fetches -2 u", "http_load: fetches must be at least 1\n"),
            ("-rate 1 -seconds 0 u", "http_load: seconds must be at least 1\n"),
        ];
        for (line, text) in lines {
            assert_eq!(complaint(line), (text.to_owned(), 1), "{line}");
        }
        let usage = complaint("");
        assert_eq!((usage.0.lines().count(), usage.1), (7, 1));
        assert!(usage.0.contains("\n            -parallel N | -rate N [-jitter]\n"));
        for line in
            ["-p 1 u", "-f 1 u", "-p 1 -f 1", "-p 1 -f 1 a b", "-p 1 -j -f 1 u", "- u", "-x"]
        {
            assert_eq!(complaint(line), usage, "{line}");
        }
    }

    /// A quirk: the timer only has whole milliseconds.
    #[test]
    fn periods_are_whole_milliseconds() {
        let timer = |typed, jitters| Timer { typed, jitters };
        let periods = [1, 3, 100, 333, 334, 500, 501, 600, 1000];
        let periods = periods.map(|typed| timer(typed, false).period_ms());
        assert_eq!(periods, [1000, 333, 10, 3, 2, 2, 1, 1, 1]);
        assert_eq!((timer(600, false).rate(), timer(600, true).rate()), (1000.0, 2000.0));
        assert_eq!(timer(600, true).jitter_ms(), (0, 1));
        assert_eq!((timer(200, true).jitter_ms(), timer(100, true).jitter_ms()), ((4, 5), (9, 11)));
    }

    #[test]
    fn of_several_starts_and_ends_the_last_holds() {
        let flags = parsed("-rate 5 -parallel 2 -fetches 3 -seconds 4 u").unwrap();
        assert_eq!((flags.start, flags.end), (Start::Parallel(2), End::Seconds(4)));
        assert!(complaint("-c -rate 5 -f 1 u").0.contains("-checksum with -rate is not supported"));
    }
}
