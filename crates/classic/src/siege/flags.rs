//! siege's flags: the command line with siege's error messages, applied over its configuration file. Owns every letter
//! and name of its option list. Start reading at [`parse`].
//!
//! siege reads its arguments twice, the first time only for -R. So it prints its message about an unknown argument
//! twice, and continues.

use super::conf;
use super::settings::{CONTENT_TYPE, FOR_EVER, Reps, Settings};
use super::style::Style;
use super::text::{self, NotifyLevel, fatal, notify};
use crate::command::{Call, ExitMessage, Getopt, Item, Order, Takes, Texts, atoi};

/// siege's own option string.
pub(super) const LETTERS: &str = "VhvqCDNFpgl::ibr:t:f:d:c:m:H:R:A:T:j";

/// The long names with their letters.
pub(super) const NAMES: &[(&str, char)] = &[
    ("version", 'V'),
    ("help", 'h'),
    ("verbose", 'v'),
    ("quiet", 'q'),
    ("config", 'C'),
    ("debug", 'D'),
    ("get", 'g'),
    ("print", 'p'),
    ("concurrent", 'c'),
    ("no-parser", 'N'),
    ("no-follow", 'F'),
    ("internet", 'i'),
    ("benchmark", 'b'),
    ("reps", 'r'),
    ("time", 't'),
    ("delay", 'd'),
    ("log", 'l'),
    ("file", 'f'),
    ("rc", 'R'),
    ("mark", 'm'),
    ("header", 'H'),
    ("user-agent", 'A'),
    ("content-type", 'T'),
    ("json-output", 'j'),
];

/// Total length of all -H lines.
const HEADERS_MAX: usize = 2048;

/// Longest user agent and content type.
const NAME_MAX: usize = 255;

/// The settings, and what siege has printed until they are complete.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TypedFlags {
    pub(super) settings: Settings,
    pub(super) said: Texts,
}

fn takes(letter: char) -> Takes {
    let behind = LETTERS.split_once(letter).map_or("", |(_, behind)| behind);
    match behind {
        _ if behind.starts_with("::") => Takes::Perhaps,
        _ if behind.starts_with(':') => Takes::Value,
        _ => Takes::Nothing,
    }
}

/// Parses the arguments.
///
/// # Errors
/// What siege prints instead of running.
pub(super) fn parse(call: &Call<'_>) -> Result<TypedFlags, ExitMessage> {
    let names: Vec<(&str, Takes)> =
        NAMES.iter().map(|(name, letter)| (*name, takes(*letter))).collect();
    let walk = || Getopt::new(LETTERS, Order::Permuted, call.args).with_names(&names);
    let mut said = Texts::default();
    let mut rc = None;
    for item in walk() {
        if let Some(complaint) = item.gnu_complaint(call.program) {
            said = said.and_err(complaint);
        }
        if let Some(('R', value)) = option(&item) {
            rc = value;
            break;
        }
    }
    let style = Style::named(call.own.value("--version-style"));
    let mut settings = conf::load(call, rc, style).map_err(|error| behind(&said, error))?;
    let mut getopt = walk();
    for item in getopt.by_ref() {
        match option(&item) {
            Some((letter, value)) => take(&mut settings, letter, value.unwrap_or_default())
                .map_err(|error| behind(&said, error))?,
            None => said = said.and_err(item.gnu_complaint(call.program).unwrap_or_default()),
        }
    }
    if let Some(url) = getopt.operands().pop() {
        settings.url = Some(url);
    }
    if settings.get && settings.url.is_none() {
        let text = "ERROR: -g/--get requires a commandline URL\n";
        return Err(ExitMessage { texts: said.and_out(text), code: 1 });
    }
    finish(settings, said)
}

/// A letter and its value, given by letter or by name.
fn option(item: &Item) -> Option<(char, Option<String>)> {
    match item {
        Item::Letter(letter, value) => Some((*letter, value.clone())),
        Item::Name(name, value) => {
            let known = NAMES.iter().find(|(other, _)| other == name);
            known.map(|(_, letter)| (*letter, value.clone()))
        }
        _ => None,
    }
}

/// The earlier output followed by a last message.
fn behind(said: &Texts, mut last: ExitMessage) -> ExitMessage {
    last.texts.0.splice(0..0, said.0.iter().cloned());
    last
}

fn take(to: &mut Settings, letter: char, value: String) -> Result<(), ExitMessage> {
    match letter {
        'V' => return Err(ExitMessage { texts: Texts::err(text::version(to)), code: 0 }),
        'h' => return Err(ExitMessage { texts: text::help(to), code: 0 }),
        'D' => to.debug = true,
        'C' => (to.show_config, to.get) = (true, false),
        'c' => to.users = atoi(&value),
        'i' => to.internet = true,
        'b' => to.bench = true,
        'd' => to.delay = conf::atof(&value).max(0.0),
        'g' => to.get = true,
        'p' => (to.print, to.users, to.reps) = (true, 1, Reps::Times(1)),
        'l' => {
            to.logging = true;
            if !value.is_empty() {
                to.log_file = value;
            }
        }
        'm' => (to.mark, to.logging) = (Some(value), true),
        'q' => to.quiet = true,
        'v' => to.verbose = true,
        'r' if value.eq_ignore_ascii_case("once") => to.reps = Reps::Once,
        'r' => to.reps = conf::reps(atoi(&value)),
        't' => to.seconds = conf::seconds(&value),
        'f' => to.file = value,
        'A' => to.agent = value.chars().take(NAME_MAX).collect(),
        'T' if value.is_empty() => to.content_type = CONTENT_TYPE.to_owned(),
        'T' => to.content_type = value.chars().take(NAME_MAX).collect(),
        'N' => to.parser = false,
        'F' => to.follow = false,
        // It was read before the file.
        'R' => {}
        'H' if !value.contains(':') => return Err(fatal("no ':' in http-header")),
        'H' if value.len() + to.extra.len() + 3 > HEADERS_MAX => {
            return Err(fatal("header is too large"));
        }
        'H' => to.extra += &format!("{value}\r\n"),
        'j' => to.json = true,
        _ => unreachable!("a letter of the option string that nobody takes: {letter}"),
    }
    Ok(())
}

fn finish(mut settings: Settings, mut said: Texts) -> Result<TypedFlags, ExitMessage> {
    settings.settle();
    if settings.conflicts() {
        let text = "CONFIG conflict: selected time and repetition based testing";
        let seconds = settings.seconds;
        let instead = format!("defaulting to time-based testing: {seconds} seconds\n");
        said = said.and_err(notify(NotifyLevel::Error, text)).and_err(instead);
        settings.reps = Reps::Times(FOR_EVER);
    }
    if settings.show_config {
        return Err(ExitMessage { texts: said.and_out(text::config(&settings)), code: 0 });
    }
    if settings.users > settings.users_max {
        said = said.and_out(text::capped(settings.users_max));
        settings.users = settings.users_max;
    }
    if settings.users < 0 {
        let n = settings.users;
        let why =
            format!("unable to allocate memory for {n} simulated browser: Cannot allocate memory");
        return Err(behind(&said, fatal(&why)));
    }
    Ok(TypedFlags { settings, said })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::command::testing::{World, args};
    use crate::command::{Chosen, Stream};

    fn parsed(words: &[String]) -> Result<TypedFlags, ExitMessage> {
        let world = World {
            files: [("rc", &b"parser = true\n"[..]), ("few", b"limit = -5\n")].into(),
            variables: [("SIEGERC", "rc")].into(),
            ..World::default()
        };
        parse(&Call { program: "siege", args: words, own: &Chosen::default(), world: &world })
    }

    const URL: &str = "http://h:81/x";

    #[test]
    fn every_option_of_siege_s_list_is_handled() {
        let plain = parsed(&args(URL)).unwrap().settings;
        let letters: BTreeSet<char> = LETTERS.chars().filter(|letter| *letter != ':').collect();
        assert_eq!(letters, NAMES.iter().map(|(_, letter)| *letter).collect());
        for (name, letter) in NAMES {
            let value = match letter {
                'H' => "A:b",
                'R' => "/nonexistent",
                _ => "7",
            };
            let (short, long) = match takes(*letter) {
                Takes::Nothing => (format!("-{letter}"), format!("--{name}")),
                _ => (format!("-{letter}{value}"), format!("--{name}={value}")),
            };
            let [short, long] = [short, long].map(|word| parsed(&[word, URL.to_owned()]));
            assert_eq!(short, long, "-{letter} and --{name}");
            match short {
                Ok(typed) => assert_ne!(typed.settings, plain, "-{letter} does nothing"),
                Err(said) => assert!("VhCR".contains(*letter), "-{letter}: {said:?}"),
            }
        }
    }

    /// siege reads them once for -R, and then for all.
    #[test]
    fn what_it_does_not_know_it_complains_of_twice_and_goes_on() {
        let typed = parsed(&args("-Q --foo http://h/ -c3")).unwrap();
        let once = "siege: invalid option -- 'Q'\nsiege: unrecognized option '--foo'\n";
        assert_eq!(typed.said.on(Stream::Err), once.repeat(2));
        assert_eq!((typed.settings.users, typed.settings.url.as_deref()), (3, Some("http://h/")));
    }

    #[test]
    fn what_ends_it_at_once_ends_as_in_siege() {
        let ended = |line: &str| {
            let said = parsed(&args(line)).expect_err(line);
            (said.texts.on(Stream::Err), said.texts.on(Stream::Out), said.code)
        };
        let fatal = |text: &str| (notify(NotifyLevel::Fatal, text), String::new(), 1);
        assert_eq!(ended("-H x http://h/"), fatal("no ':' in http-header"));
        let long = format!("-H a:{} http://h/", "x".repeat(HEADERS_MAX));
        assert_eq!(ended(&long), fatal("header is too large"));
        let none = "unable to allocate memory for -5 simulated browser: Cannot allocate memory";
        let (err, out, code) = ended("-R few http://h/");
        assert_eq!((err, code), (notify(NotifyLevel::Fatal, none), 1));
        assert!(out.contains("capped at -5."), "{out}");
        assert_eq!(ended("-g").1, "ERROR: -g/--get requires a commandline URL\n");
        assert!(ended("-R /none").0.contains("\nsiege: could not open /none\n"));
    }

    #[test]
    fn time_and_repetitions_together_are_a_conflict_that_time_wins() {
        let typed = parsed(&args("-t 2S -r 3 http://h/")).unwrap();
        assert!(typed.said.on(Stream::Err).contains("CONFIG conflict"));
        assert_eq!(typed.settings.reps, Reps::Times(FOR_EVER));
        assert_eq!(typed.settings.duration(), Some(2));
        let capped = parsed(&args("-c 300 http://h/")).unwrap();
        assert_eq!(capped.settings.users, 255);
        assert!(capped.said.on(Stream::Out).contains("capped at 255.  To increase"));
    }
}
