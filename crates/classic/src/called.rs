//! Owns the command lines before reports in a text: `$ ab -n 1000 -c 10 http://host/`. They contain what a report
//! leaves out: the number of connections, and whether they are kept alive. Must not know how a report is read. Start
//! reading at [`commands`].

use std::ops::Range;

use units::{Nanos, PerSecond};

use crate::numbers::{self, Comma, count};
use crate::report::{Ordered, Report};
use crate::words::Word;

/// Longest command line that is read.
const COMMAND_WORDS_MAX: usize = 80;
/// Distance up to which a command line at a prompt belongs to the next report, whatever precedes it.
const NEXT_BYTES_MAX: usize = 400;
/// Largest distance between a command line and its report.
const NEAR_BYTES_MAX: usize = 2000;

/// A command line in a text.
#[derive(Debug, Clone)]
pub(crate) struct Called {
    /// Bytes of the clean text.
    pub(crate) place: Range<usize>,
    /// What it asks for.
    pub(crate) ordered: Ordered,
    /// Whether it begins its line, or follows a prompt sign.
    at_prompt: bool,
}

/// The meaning of a flag.
#[derive(Debug, Clone, Copy)]
enum Means {
    Requests,
    Concurrency,
    Threads,
    /// The duration. A number without a unit is in units of this many seconds.
    Duration(f64),
    Rate,
    KeepAlive(bool),
    /// Number of requests per user.
    Repetitions,
    Url,
    /// Something else, with a value.
    Other,
}

/// The command line of a tool.
struct Style {
    tool: &'static str,
    programs: &'static [&'static str],
    /// Relevant flags, and those with a value: their names, and their meanings.
    flags: &'static [(&'static str, Means)],
    /// Whether flags of one letter may be combined after one hyphen.
    clusters: bool,
    /// Whether connections are kept alive, and how many there are, if no flag says it.
    keep_alive: Option<bool>,
    concurrency: Option<u64>,
}

const STYLES: &[Style] = &[
    Style {
        tool: "ab",
        programs: &["ab", "abs", "ab2", "zb", "apachebench"],
        flags: &[
            ("-n", Means::Requests),
            ("-c", Means::Concurrency),
            ("-t", Means::Duration(1.0)),
            ("-k", Means::KeepAlive(true)),
            ("-s -b -T -p -u -v -x -y -z -C -H -P -A -g -X -e -B -m -Z -f -E -R -W", Means::Other),
        ],
        clusters: true,
        keep_alive: Some(false),
        concurrency: Some(1),
    },
    Style {
        tool: "siege",
        programs: &["siege", "bombardment"],
        flags: &[
            ("-c --concurrent", Means::Concurrency),
            ("-r --reps", Means::Repetitions),
            ("-t --time", Means::Duration(60.0)),
            ("-g --get -u --url", Means::Url),
            (
                "-d --delay -f --file -R --rc -H --header -A --user-agent -T --content-type -m \
                 --mark",
                Means::Other,
            ),
        ],
        clusters: true,
        keep_alive: None,
        concurrency: None,
    },
    WRK,
    Style { tool: "wrk2", programs: &["wrk", "wrk2"], ..WRK },
    Style {
        tool: "h2load",
        programs: &["h2load"],
        flags: &[
            ("-n --requests", Means::Requests),
            ("-c --clients", Means::Concurrency),
            ("-t --threads", Means::Threads),
            ("-D --duration", Means::Duration(1.0)),
            (
                "-m -w -W -f -H -i -p -r -d -T -N -B --header --rps --max-concurrent-streams \
                 --warm-up-time --input-file --data --base-uri --rate --rate-period --ciphers \
                 --alpn-list --npn-list --log-file --connect-to",
                Means::Other,
            ),
        ],
        clusters: true,
        keep_alive: None,
        concurrency: None,
    },
    Style {
        tool: "hey",
        programs: &["hey", "boom"],
        flags: &[
            ("-n", Means::Requests),
            ("-c", Means::Concurrency),
            ("-z", Means::Duration(f64::NAN)),
            ("-disable-keepalive", Means::KeepAlive(false)),
            ("-q -m -H -t -A -d -D -T -U -a -x -host -cpus -o", Means::Other),
        ],
        clusters: false,
        keep_alive: Some(true),
        concurrency: Some(50),
    },
    Style {
        tool: "oha",
        programs: &["oha"],
        flags: &[
            ("-n", Means::Requests),
            ("-c", Means::Concurrency),
            ("-z", Means::Duration(f64::NAN)),
            ("-q", Means::Rate),
            ("--disable-keepalive", Means::KeepAlive(false)),
            (
                "-p -m -H -t -A -d -D -T -a -r -o -u --burst-delay --burst-rate --max-repeat \
                 --fps --http-version --host --redirect --cacert --cert --key --connect-to \
                 --unix-socket --db-url --output --output-format --time-unit --proxy",
                Means::Other,
            ),
        ],
        clusters: false,
        keep_alive: Some(true),
        concurrency: Some(50),
    },
    Style {
        tool: "http_load",
        programs: &["http_load"],
        flags: &[
            ("-parallel -p", Means::Concurrency),
            ("-fetches -f", Means::Requests),
            ("-seconds -s", Means::Duration(1.0)),
            ("-rate -r", Means::Rate),
            ("-proxy -timeout -cipher -sip", Means::Other),
        ],
        clusters: false,
        keep_alive: None,
        concurrency: None,
    },
    Style {
        tool: "weighttp",
        programs: &["weighttp"],
        flags: &[
            ("-n", Means::Requests),
            ("-c", Means::Concurrency),
            ("-t", Means::Threads),
            ("-k", Means::KeepAlive(true)),
            ("-H -m -b -i -C -A -F -T -p", Means::Other),
        ],
        clusters: true,
        keep_alive: None,
        concurrency: None,
    },
    Style {
        tool: "k6",
        programs: &["k6"],
        flags: &[
            ("-u --vus", Means::Concurrency),
            ("-d --duration", Means::Duration(f64::NAN)),
            (
                "-i --iterations -e --env -o --out -s --stage --rps --tag --summary-export \
                 --summary-trend-stats --summary-mode --summary-time-unit --log-output -c \
                 --config -m --max",
                Means::Other,
            ),
        ],
        clusters: false,
        keep_alive: None,
        concurrency: None,
    },
];

const WRK: Style = Style {
    tool: "wrk",
    programs: &["wrk"],
    flags: &[
        ("-c --connections", Means::Concurrency),
        ("-t --threads", Means::Threads),
        ("-d --duration", Means::Duration(1.0)),
        ("-R --rate", Means::Rate),
        ("-s --script -H --header -T --timeout", Means::Other),
    ],
    clusters: true,
    keep_alive: None,
    concurrency: None,
};

/// The command lines of a tool in a text, in order.
pub(crate) fn commands(words: &[Word], tool: &str) -> Vec<Called> {
    let Some(style) = STYLES.iter().find(|style| style.tool == tool) else { return Vec::new() };
    let mut found = Vec::new();
    let mut at = 0;
    while at < words.len() {
        match style.command(words, at) {
            Some((called, next)) => {
                found.push(called);
                at = next;
            }
            None => at += 1,
        }
    }
    found
}

/// Which of the command lines before a report belongs to it. One that contradicts the report does not. If several
/// differ, only one directly before the report at a prompt does.
pub(crate) fn the_one(before: Vec<Called>, report: &Report) -> Option<Called> {
    let last = before.last()?.place.clone();
    let mut fitting: Vec<Called> =
        before.into_iter().filter(|called| agrees(&called.ordered, report)).collect();
    let nearest = fitting.pop()?;
    let between = report.place.start.saturating_sub(nearest.place.end);
    let is_next = nearest.place == last && nearest.at_prompt && between <= NEXT_BYTES_MAX;
    let alone = fitting.iter().all(|other| other.ordered == nearest.ordered);
    ((is_next || alone) && between <= NEAR_BYTES_MAX).then_some(nearest)
}

/// Whether a command line does not contradict the report.
fn agrees(ordered: &Ordered, report: &Report) -> bool {
    let same =
        |one: Option<u64>, other: Option<u64>| one.is_none() || other.is_none() || one == other;
    // http_load prints how many connections there were, which may be fewer than requested.
    let reached = report.tool == "http_load";
    let urls = ordered.url.as_deref().zip(report.url.as_deref());
    (reached || same(ordered.concurrency, report.concurrency))
        && same(ordered.threads, report.threads)
        && urls.is_none_or(|(one, other)| plain_url(one) == plain_url(other))
}

/// A URL without parts that a tool may add to it.
fn plain_url(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let host = host.trim_end_matches(":80").trim_end_matches(":443");
    format!("{host}/{path}")
}

/// Adds what the command line asked for and the report does not say.
pub(crate) fn complete(report: &mut Report, ordered: Ordered) {
    report.concurrency = report.concurrency.or(ordered.concurrency);
    report.threads = report.threads.or(ordered.threads);
    let url = ordered.url.clone().filter(|url| url.contains("://"));
    report.url = report.url.take().or(url);
    report.ordered = ordered;
}

/// The state of reading a command line.
struct Walk<'t, 'w> {
    words: &'w [Word<'t>],
    at: usize,
    ordered: Ordered,
    repetitions: Option<u64>,
    /// Whether anything relevant was read.
    says: bool,
}

impl Style {
    /// The command line that begins with a word, and the index of the word after it.
    fn command(&self, words: &[Word], start: usize) -> Option<(Called, usize)> {
        let name = words[start].text.trim_start_matches(['$', '%', '#', '(', '"', '\'']);
        let name = name.rsplit(['/', '\\']).next()?;
        self.programs.contains(&name.trim_end_matches(".exe")).then_some(())?;
        let mut walk = Walk {
            words,
            at: start + 1,
            ordered: Ordered::default(),
            repetitions: None,
            says: false,
        };
        while walk.at < words.len().min(start + COMMAND_WORDS_MAX) {
            if walk.ends() || self.word(&mut walk).is_none() {
                break;
            }
        }
        walk.says.then_some(())?;
        let Walk { at: next, mut ordered, repetitions, .. } = walk;
        if ordered.url.is_some() {
            ordered.keep_alive = ordered.keep_alive.or(self.keep_alive);
            ordered.concurrency = ordered.concurrency.or(self.concurrency);
        }
        if let (Some(users), Some(each)) = (ordered.concurrency, repetitions) {
            ordered.requests = users.checked_mul(each);
        }
        let line: Vec<&str> = words[start..next].iter().map(|word| word.text).collect();
        ordered.command = Some(line.join(" "));
        let prompt = start.checked_sub(1).map(|before| words[before].text);
        let at_prompt = words[start].starts_line
            || prompt.is_some_and(|prompt| prompt.ends_with(['$', '%', '#', '>']));
        let place = words[start].place.start..words[next - 1].place.end;
        Some((Called { place, ordered, at_prompt }, next))
    }

    /// Reads a flag with its value, or an operand; `None` where the command line has ended.
    fn word(&self, walk: &mut Walk<'_, '_>) -> Option<()> {
        let word = walk.words[walk.at].text;
        if word == "\\" {
            walk.at += 1;
            return Some(());
        }
        if !word.starts_with('-') {
            return self.operand(walk, word);
        }
        let (name, glued) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (word, None),
        };
        // A word processor may turn two hyphens into one, or one into two.
        let known =
            self.means(|known| known.trim_start_matches('-') == name.trim_start_matches('-'));
        walk.at += 1;
        match known {
            Some(Means::KeepAlive(keep)) => {
                walk.ordered.keep_alive = Some(keep);
                walk.says = true;
            }
            Some(means) => {
                let value = match glued {
                    Some(value) => value.to_owned(),
                    None => walk.value()?,
                };
                walk.take(means, &value);
            }
            None if self.clusters && glued.is_none() => self.cluster(walk, word)?,
            None => {}
        }
        Some(())
    }

    /// The meaning of the flag whose name matches.
    fn means(&self, is: impl Fn(&str) -> bool) -> Option<Means> {
        let flag = self.flags.iter().find(|(names, _)| names.split(' ').any(&is));
        flag.map(|(_, means)| *means)
    }

    /// Letters after one hyphen, the last perhaps with its value: `-kc10`.
    fn cluster(&self, walk: &mut Walk<'_, '_>, word: &str) -> Option<()> {
        let letters = word.strip_prefix('-')?;
        if letters.starts_with('-') {
            return Some(());
        }
        for (at, letter) in letters.char_indices() {
            let name = format!("-{letter}");
            let known = self.means(|known| known == name);
            match known {
                Some(Means::KeepAlive(keep)) => {
                    walk.ordered.keep_alive = Some(keep);
                    walk.says = true;
                }
                Some(means) => {
                    let rest = &letters[at + letter.len_utf8()..];
                    let value = if rest.is_empty() { walk.value()? } else { rest.to_owned() };
                    walk.take(means, &value);
                    return Some(());
                }
                None => {}
            }
        }
        Some(())
    }

    fn operand(&self, walk: &mut Walk<'_, '_>, word: &str) -> Option<()> {
        let is_run = self.tool == "k6" && word == "run";
        let operand = unquoted(word);
        let is_url = operand.contains("://")
            || operand.starts_with("localhost")
            || operand.contains(['.', ':']) && operand.contains('/');
        // A script or a list of addresses also ends the command line.
        let is_file = walk.says && matches!(self.tool, "k6" | "http_load") && operand.contains('.');
        if is_url && walk.ordered.url.is_none() {
            walk.ordered.url = Some(operand.to_owned());
            walk.says = true;
        } else if !is_run && !is_file {
            return None;
        }
        walk.at += 1;
        Some(())
    }
}

impl Walk<'_, '_> {
    /// Whether the shell ends the command line here.
    fn ends(&self) -> bool {
        let word = &self.words[self.at];
        let redirects = word.text.starts_with(['>', '<', '&', ';']) || word.text.starts_with("2>");
        // After the URL a new line begins something else, unless it begins with a flag.
        let behind = word.starts_line && self.ordered.url.is_some() && !word.text.starts_with('-');
        redirects || word.after_bar || behind
    }

    /// The value in the next word, or in the next words between quotes.
    fn value(&mut self) -> Option<String> {
        let first = self.words.get(self.at)?.text;
        self.at += 1;
        let Some(quote) = first.chars().next().filter(|c| "'\"".contains(*c)) else {
            return Some(first.to_owned());
        };
        let mut value = first.to_owned();
        let mut closed = first.len() > 1 && first.ends_with(quote);
        while !closed {
            let word = self.words.get(self.at)?.text;
            self.at += 1;
            value.push(' ');
            value.push_str(word);
            closed = word.ends_with(quote) || value.len() > NEXT_BYTES_MAX;
        }
        Some(value)
    }

    fn take(&mut self, means: Means, value: &str) {
        let value = unquoted(value);
        let to = &mut self.ordered;
        let told = match means {
            Means::Requests => set(&mut to.requests, many(value)),
            Means::Concurrency => set(&mut to.concurrency, many(value)),
            Means::Threads => set(&mut to.threads, many(value)),
            Means::Repetitions => set(&mut self.repetitions, many(value)),
            Means::Duration(unit) => set(&mut to.duration, duration(value, unit)),
            Means::Rate => set(&mut to.rate, many(value).map(|rate| PerSecond(rate as f64))),
            Means::Url => set(&mut to.url, Some(value.to_owned())),
            Means::Other | Means::KeepAlive(_) => false,
        };
        self.says |= told;
    }
}

fn set<T>(slot: &mut Option<T>, value: Option<T>) -> bool {
    let told = value.is_some();
    *slot = value;
    told
}

fn unquoted(word: &str) -> &str {
    let word = word.trim_start_matches(|c| "\"'`(".contains(c));
    word.trim_end_matches(|c| "\"'`,;).\\".contains(c))
}

/// A count, as wrk accepts it with a letter for thousands or millions.
fn many(value: &str) -> Option<u64> {
    let (digits, scale) = match value.as_bytes().last()? {
        b'k' => (&value[..value.len() - 1], 1000),
        b'M' => (&value[..value.len() - 1], 1_000_000),
        _ => (value, 1),
    };
    count(digits)?.checked_mul(scale)
}

fn duration(value: &str, unit: f64) -> Option<Nanos> {
    let secs = match count(value) {
        Some(number) => number as f64 * unit,
        None => numbers::span(&value.to_ascii_lowercase(), Comma::Unknown)?.value,
    };
    secs.is_finite().then(|| Nanos::from_secs_f64(secs))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clean::Clean;
    use crate::words::words;

    fn all(text: &str, tool: &str) -> Vec<Ordered> {
        let clean = Clean::new(text);
        commands(&words(clean.text()), tool).into_iter().map(|called| called.ordered).collect()
    }

    fn one(text: &str, tool: &str) -> Ordered {
        let mut found = all(text, tool);
        assert_eq!(found.len(), 1, "{text}");
        found.remove(0)
    }

    #[test]
    fn ab_is_read_with_its_flags_together_apart_and_wrapped() {
        for text in [
            "$ ab -k -n 1000 -c 10 http://host/",
            "me@pc:~$ /usr/bin/ab -kc10 -n 1000 http://host/ | tee out.txt",
            "we ran `ab -n 1000 -H \"Accept: a b\" -kc 10 http://host/`.",
            "> ab –n 1000 –c 10\n> -k http://host/\n> This is ApacheBench, Version 2.3",
        ] {
            let read = one(text, "ab");
            assert_eq!((read.requests, read.concurrency), (Some(1000), Some(10)), "{text}");
            assert_eq!(
                (read.keep_alive, read.url.as_deref()),
                (Some(true), Some("http://host/")),
                "{text}"
            );
        }
        let plain = one("ab -t 60 http://host/", "ab");
        assert_eq!((plain.keep_alive, plain.concurrency), (Some(false), Some(1)));
        assert_eq!(plain.duration, Some(Nanos::from_secs(60)));
    }

    #[test]
    fn every_tool_has_its_own_words() {
        let siege = one("siege -c50 -r 20 -b http://h/", "siege");
        assert_eq!((siege.concurrency, siege.requests), (Some(50), Some(1000)));
        assert_eq!(one("siege -c 5 -t2M http://h/", "siege").duration, Some(Nanos::from_secs(120)));
        let wrk = one("./wrk -t2 -c100 -d30s -R2k --latency http://h/", "wrk2");
        assert_eq!(
            (wrk.threads, wrk.concurrency, wrk.rate),
            (Some(2), Some(100), Some(PerSecond(2000.0)))
        );
        let hey = one("hey -z 10s -disable-keepalive http://h/", "hey");
        assert_eq!((hey.keep_alive, hey.concurrency), (Some(false), Some(50)));
        assert_eq!(hey.duration, Some(Nanos::from_secs(10)));
        let load = one("http_load -parallel 11 -fetches 1000 urls.txt", "http_load");
        assert_eq!((load.concurrency, load.requests), (Some(11), Some(1000)));
        assert_eq!(
            one("k6 run --vus 10 --duration 1m30s s.js", "k6").duration,
            Some(Nanos::from_secs(90))
        );
    }

    #[test]
    fn prose_about_a_tool_is_no_command_line() {
        for text in
            ["ab is a tool of Apache", "with ab and siege", "ab", "ab -", "ab -c", "ab -n -c -k"]
        {
            assert!(all(text, "ab").iter().all(|ordered| ordered.url.is_none()), "{text}");
        }
        assert!(all("we like ab, and http_load too", "ab").is_empty());
    }
}
