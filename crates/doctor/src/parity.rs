//! Owns the switches that must be alike for two servers to do the same work, and those in which the contenders
//! of a run differ or may differ. Start reading at [`Switch`] and [`differences`].

use std::collections::BTreeMap;

use record::{ContenderFacts, Plan};
use units::Bytes;

/// When two values are the same work.
#[derive(Debug, Clone, Copy)]
enum Rule {
    /// If this function gives the same for both.
    Of(fn(&str) -> String),
    /// If they are numbers at most this far above the smallest of all.
    Near(u64),
}

/// Requests on a connection from which on a limit does not matter: see the check
/// `keep_alive_not_honoured`.
const REQUESTS_ENOUGH: u64 = 10_000;
/// Seconds an idle connection is kept from which on a longer time does not matter: no connection of a load
/// is idle for that long.
const TIMEOUT_ENOUGH_S: f64 = 5.0;
/// Bytes by which heads may differ: the server's name, an ETag, the spelling of a field.
const HEADER_MORE_MAX: u64 = 256;

/// Seconds a file is kept from which on a longer time does not matter: looking it up once a second is
/// one request among thousands.
const FILE_KEPT_ENOUGH_S: f64 = 1.0;

/// The closed list: the enum, its names and rules, and the struct of which every adapter fills every field.
/// A new line does not compile until each adapter answers it.
macro_rules! switches {
    ($($(#[$about:meta])* $variant:ident $name:ident $rule:expr;)*) => {
        /// A switch of a server that decides how much work a request is. Reports show what an adapter reads back
        /// beside these, but do not compare it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Switch { $($(#[$about])* $variant,)* }

        impl Switch {
            /// All of them, by name.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Its key in [`ContenderFacts::parity`].
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => stringify!($name),)* }
            }

            fn rule(self) -> Rule {
                match self { $(Self::$variant => $rule,)* }
            }
        }

        /// What is known of a server: an answer to every switch.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct Answers { $($(#[$about])* pub $name: Answer,)* }

        impl Answers {
            /// As a record has them.
            pub fn into_table(self) -> BTreeMap<String, String> {
                [$((stringify!($name).to_owned(), self.$name.to_string()),)*].into()
            }

            /// Each of them not known, for this reason.
            pub fn unknown(why: &'static str) -> Self {
                Self { $($name: Answer::Unknown(why),)* }
            }
        }
    };
}

switches! {
    /// Whether each request is logged ("off").
    AccessLog access_log Rule::Of(as_it_is);
    /// What listen(2) was given ("511").
    Backlog backlog Rule::Of(as_it_is);
    /// Whether replies are compressed for clients that accept it ("off", "gzip").
    Compression compression Rule::Of(as_it_is);
    /// Whether a reply has an ETag.
    Etag etag Rule::Of(as_it_is);
    /// What of a file is kept from request to request, and how long: "off"; "on (descriptor, 60 s)" where it
    /// is not opened again, "on (content, 1 s)" where it is not read again either. Each up to a size:
    /// see [`at_page`].
    FileCache file_cache Rule::Of(file_cache);
    /// Bytes of a reply's head.
    HeaderBytes header_bytes Rule::Near(HEADER_MORE_MAX);
    /// Version of HTTP in a reply ("1.1").
    HttpVersion http_version Rule::Of(as_it_is);
    /// Whether a connection carries more than one request.
    KeepAlive keep_alive Rule::Of(as_it_is);
    /// How many requests ("unlimited", "100", "at least 1000").
    KeepAliveRequests keep_alive_requests Rule::Of(requests);
    /// How long an idle connection is kept ("5 s").
    KeepAliveTimeout keep_alive_timeout Rule::Of(timeout);
    /// Whether files go from the page cache to the socket within the kernel ("off; above 64 KiB: on").
    Sendfile sendfile Rule::Of(first_word);
    /// Whether TCP sends less than a segment at once ("on").
    TcpNodelay tcp_nodelay Rule::Of(first_word);
    /// Whether head and file are put into full segments, by TCP_CORK or MSG_MORE ("on (with sendfile)").
    TcpNopush tcp_nopush Rule::Of(first_word);
    /// Whether TLS is spoken.
    Tls tls Rule::Of(as_it_is);
    /// The processes, threads or loops that work on requests ("4 event loops").
    Workers workers Rule::Of(as_it_is);
}

/// What is known of one switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Its value.
    Is(String),
    /// It cannot be known here, for this reason.
    Unknown(&'static str),
}

impl<T: Into<String>> From<T> for Answer {
    fn from(value: T) -> Self {
        Self::Is(value.into())
    }
}

impl std::fmt::Display for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Is(value) => f.write_str(value),
            Self::Unknown(why) => write!(f, "{UNKNOWN}: {why}"),
        }
    }
}

/// The beginning of a value that could not be read; a colon and the reason may follow.
const UNKNOWN: &str = "unknown";

/// Whether this value of a record could not be read. It is not compared.
pub fn is_unknown(value: &str) -> bool {
    value.strip_prefix(UNKNOWN).is_some_and(|rest| rest.is_empty() || rest.starts_with(": "))
}

/// A switch in which contenders differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Its name.
    pub switch: &'static str,
    /// Each value, as read back, with the indices of the contenders that have it; the commonest
    /// first.
    pub values: Vec<(String, Vec<usize>)>,
}

/// The switches in which contenders differ and which the study does not declare.
/// `declared`: names of switches, each alone or with its reason ("backlog: Caddy has no setting for
/// it"). `pages`: the size of the page that each contender is asked for, see [`pages_asked`]. A contender
/// that never answered has nothing to differ in.
pub fn differences(
    contenders: &[ContenderFacts],
    declared: &[String],
    pages: &[Option<Bytes>],
) -> Vec<Difference> {
    assert_eq!(contenders.len(), pages.len(), "each contender is asked for something");
    undeclared(declared).filter_map(|switch| switch.difference(contenders, pages)).collect()
}

/// The size of the page that each contender is asked for in a cell; `None` where it is asked for something
/// else, whose size nobody knows.
pub fn pages_asked(plan: &Plan, cell: usize) -> Vec<Option<Bytes>> {
    let page = |contender: usize| {
        let work = plan.work(cell, contender);
        work.is_page().then_some(work.page)
    };
    (0..plan.contenders.len()).map(page).collect()
}

/// What separates the value for small pages from the size up to which it holds.
const ABOVE: &str = "; above ";

/// What a value says of pages of a size. A value may hold up to a size, and be another above it:
/// "off; above 64 KiB: on". Where the size is not known it is that of small pages.
pub fn at_page(value: &str, page: Option<Bytes>) -> &str {
    let Some((small, large)) = value.split_once(ABOVE) else { return value };
    let Some((size, large)) = large.split_once(": ") else { return value };
    match (size.parse::<Bytes>(), page) {
        (Ok(size), Some(page)) if page > size => large,
        (Ok(_), _) => small,
        (Err(_), _) => value,
    }
}

/// What is not known of contenders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    /// Switches that are known of others.
    pub switches: Vec<&'static str>,
    /// The reasons, if known.
    pub reasons: Vec<String>,
    /// Indices of the contenders of which exactly these are not known.
    pub contenders: Vec<usize>,
}

/// The switches that are known of some contenders and not of others, so it is open whether these
/// differ. Switches that the study declares are left out, and so is a contender that never
/// answered.
pub fn unknowns(contenders: &[ContenderFacts], declared: &[String]) -> Vec<Unknown> {
    let known = |facts: &ContenderFacts, switch: Switch| {
        facts.parity.get(switch.name()).is_some_and(|value| !is_unknown(value))
    };
    let asked: Vec<Switch> = undeclared(declared)
        .filter(|&switch| contenders.iter().any(|facts| known(facts, switch)))
        .collect();
    let mut all: Vec<Unknown> = Vec::new();
    for (index, facts) in contenders.iter().enumerate().filter(|(_, one)| !one.parity.is_empty()) {
        let open: Vec<Switch> =
            asked.iter().copied().filter(|&switch| !known(facts, switch)).collect();
        let switches: Vec<&'static str> = open.iter().map(|switch| switch.name()).collect();
        let mut reasons: Vec<String> =
            open.iter().filter_map(|&switch| switch.reason(facts)).collect();
        reasons.sort_unstable();
        reasons.dedup();
        let is_same = |one: &&mut Unknown| one.switches == switches && one.reasons == reasons;
        match all.iter_mut().find(is_same) {
            _ if switches.is_empty() => {}
            Some(same) => same.contenders.push(index),
            None => all.push(Unknown { switches, reasons, contenders: vec![index] }),
        }
    }
    all
}

fn undeclared(declared: &[String]) -> impl Iterator<Item = Switch> {
    let is_declared =
        |switch: Switch| declared.iter().any(|said| declared_name(said) == switch.name());
    Switch::ALL.iter().copied().filter(move |&switch| !is_declared(switch))
}

/// The switch that a declaration is about: what stands before its reason.
pub fn declared_name(declared: &str) -> &str {
    declared.split(':').next().unwrap_or_default().trim()
}

impl Switch {
    /// Why its value could not be read.
    fn reason(self, facts: &ContenderFacts) -> Option<String> {
        Some(facts.parity.get(self.name())?.strip_prefix(UNKNOWN)?.strip_prefix(": ")?.to_owned())
    }

    fn difference(
        self,
        contenders: &[ContenderFacts],
        pages: &[Option<Bytes>],
    ) -> Option<Difference> {
        let read: Vec<(usize, &str)> = contenders
            .iter()
            .enumerate()
            .filter_map(|(index, facts)| Some((index, facts.parity.get(self.name())?.as_str())))
            .filter(|(_, value)| !is_unknown(value))
            .collect();
        let least = read.iter().filter_map(|(_, value)| value.parse().ok()).min();
        let mut groups: BTreeMap<String, (&str, Vec<usize>)> = BTreeMap::new();
        for (index, value) in read {
            let essence = self.essence(at_page(value, pages[index]), least);
            groups.entry(essence).or_insert((value, Vec::new())).1.push(index);
        }
        if groups.len() < 2 {
            return None;
        }
        let mut values: Vec<(String, Vec<usize>)> =
            groups.into_values().map(|(value, who)| (value.to_owned(), who)).collect();
        values.sort_by_key(|(_, who)| (std::cmp::Reverse(who.len()), who[0]));
        Some(Difference { switch: self.name(), values })
    }

    /// The part of a value that is compared; `least` is the smallest of those that are numbers.
    fn essence(self, value: &str, least: Option<u64>) -> String {
        let above = || value.parse::<u64>().ok()?.checked_sub(least?);
        match self.rule() {
            Rule::Of(essence) => essence(value),
            Rule::Near(most) if above().is_some_and(|above| above <= most) => "near".to_owned(),
            Rule::Near(_) => value.to_owned(),
        }
    }
}

fn as_it_is(value: &str) -> String {
    value.to_owned()
}

/// "off (writev)" is off. "on (from 48 KB)", as older run files have it, is on.
fn first_word(value: &str) -> String {
    value.split(' ').next().unwrap_or_default().to_owned()
}

/// A bare number; anything else stands for itself.
fn requests(value: &str) -> String {
    let digits = value.strip_prefix("at least ").unwrap_or(value);
    match digits.parse::<u64>() {
        Ok(number) if number < REQUESTS_ENOUGH && digits == value => value.to_owned(),
        // "at least": it was asked no further, and nothing says that there is a limit.
        Ok(_) => "enough".to_owned(),
        Err(_) if value == "unlimited" => "enough".to_owned(),
        Err(_) => value.to_owned(),
    }
}

/// "5 s", "60s", "500ms".
fn timeout(value: &str) -> String {
    match seconds(value) {
        Some(time_s) if time_s >= TIMEOUT_ENOUGH_S => "long enough".to_owned(),
        _ => value.to_owned(),
    }
}

/// "on (descriptor, 60 s)" and "on (descriptor, 1 s)" are the same work; "on (content, 1 s)" is less.
fn file_cache(value: &str) -> String {
    let parts =
        value.strip_prefix("on (").and_then(|rest| rest.strip_suffix(')')?.split_once(", "));
    match parts {
        Some((kept, time)) if seconds(time).is_some_and(|time_s| time_s >= FILE_KEPT_ENOUGH_S) => {
            kept.to_owned()
        }
        _ => value.to_owned(),
    }
}

fn seconds(time: &str) -> Option<f64> {
    let digits: String = time.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    let unit_s = match time[digits.len()..].trim() {
        "ms" => 0.001,
        "s" | "" => 1.0,
        "min" | "m" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    Some(digits.parse::<f64>().ok()? * unit_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(pairs: &[(&str, &str)]) -> ContenderFacts {
        let parity = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        ContenderFacts { parity: parity.collect(), ..ContenderFacts::default() }
    }

    fn of(name: &'static str, values: &[&str]) -> Vec<Difference> {
        let all: Vec<_> = values.iter().map(|value| facts(&[(name, value)])).collect();
        differences(&all, &[], &[None; 8][..all.len()])
    }

    #[test]
    fn a_switch_that_differs_is_named_with_who_has_which() {
        let seen = of("backlog", &["511", "4096", "511"]);
        let values = vec![("511".to_owned(), vec![0, 2]), ("4096".to_owned(), vec![1])];
        assert_eq!(seen, [Difference { switch: "backlog", values }]);
        assert_eq!(of("backlog", &["511", "511"]), []);
    }

    #[test]
    fn what_the_study_declares_is_no_finding_with_or_without_its_reason() {
        let all = [facts(&[("sendfile", "on"), ("tls", "off")]), facts(&[("sendfile", "off")])];
        assert_eq!(differences(&all, &[], &[None; 2]).len(), 1);
        for said in ["sendfile", "sendfile: that is the question"] {
            assert_eq!(differences(&all, &[said.to_owned()], &[None; 2]), []);
        }
        let part = ["send".to_owned()];
        assert_eq!(differences(&all, &part, &[None; 2]).len(), 1, "a part of a name is none");
    }

    #[test]
    fn what_nobody_could_read_differs_from_nothing() {
        assert_eq!(of("sendfile", &["on", UNKNOWN, "unknown: why", "on (from 48 KB)"]), []);
        let never_answered = [facts(&[("tls", "off")]), ContenderFacts::default()];
        assert_eq!(differences(&never_answered, &[], &[None; 2]), []);
    }

    #[test]
    fn a_limit_that_no_visit_reaches_is_no_difference() {
        let silent = ["unlimited", "65535", "4294967295", "at least 1000"];
        assert_eq!(of("keep_alive_requests", &silent), []);
        assert_eq!(of("keep_alive_requests", &["unlimited", "100"]).len(), 1);
        assert_eq!(of("keep_alive_timeout", &["5 s", "75 s", "2 min", "60s"]), []);
        assert_eq!(of("keep_alive_timeout", &["5 s", "500ms"]).len(), 1);
        assert_eq!(of("keep_alive_timeout", &["5 s", "1 s"]).len(), 1);
    }

    #[test]
    fn heads_differ_when_that_is_more_than_a_name_and_a_date() {
        assert_eq!(of("header_bytes", &["180", "230"]), []);
        assert_eq!(of("header_bytes", &["180", "900"]).len(), 1);
    }

    #[test]
    fn a_file_that_is_kept_is_compared_by_what_of_it_is_kept() {
        let descriptors =
            ["on (descriptor, 1 s)", "on (descriptor, 60 s)", "on (descriptor, 2 min)"];
        assert_eq!(of("file_cache", &descriptors), []);
        assert_eq!(of("file_cache", &["off", "off"]), []);
        for other in
            ["off", "on (content, 1 s)", "on (descriptor, 100ms)", "on (descriptor, a turn)"]
        {
            assert_eq!(of("file_cache", &["on (descriptor, 1 s)", other]).len(), 1, "{other}");
        }
    }

    #[test]
    fn what_is_known_of_others_and_not_of_one_is_named_with_its_reason() {
        let answers = Answers::unknown("its settings are its own");
        let hidden = ContenderFacts {
            parity: Answers { tls: "off".into(), ..answers }.into_table(),
            ..ContenderFacts::default()
        };
        let known = facts(&[("tls", "off"), ("file_cache", "off"), ("sendfile", "on")]);
        // As in a file of before the list was closed: a word without a reason, and a switch that is absent.
        let old = facts(&[("tls", "off"), ("sendfile", UNKNOWN)]);
        let all = [known.clone(), hidden.clone(), hidden.clone(), old, ContenderFacts::default()];
        let open = |reasons: &[&str], contenders: &[usize]| Unknown {
            switches: vec!["file_cache", "sendfile"],
            reasons: reasons.iter().map(|&one| one.to_owned()).collect(),
            contenders: contenders.to_vec(),
        };
        let found = unknowns(&all, &[]);
        assert_eq!(found, [open(&["its settings are its own"], &[1, 2]), open(&[], &[3])]);
        let declared = ["file_cache".to_owned(), "sendfile: that is the question".to_owned()];
        assert_eq!(unknowns(&all, &declared), []);
        assert_eq!(
            unknowns(&[hidden.clone(), hidden], &[]),
            [],
            "nobody knows: nothing to be held against"
        );
        assert_eq!(unknowns(&[known.clone(), known], &[]), []);
    }

    #[test]
    fn every_switch_has_a_key_of_its_own_and_they_are_in_order() {
        let names: Vec<&str> = Switch::ALL.iter().map(|switch| switch.name()).collect();
        assert!(names.is_sorted_by(|a, b| a < b), "{names:?}");
        let table = Answers::unknown("why").into_table();
        assert!(table.keys().map(String::as_str).eq(names));
    }

    #[test]
    fn what_is_not_among_the_switches_is_not_compared() {
        let all = [facts(&[("user", "www-data")]), facts(&[("user", "nobody")])];
        assert_eq!(differences(&all, &[], &[None; 2]), []);
    }

    #[test]
    fn a_value_that_holds_up_to_a_size_is_compared_at_the_page_that_is_asked_for() {
        let (small, large) = (Some(Bytes(3361)), Some(Bytes(100_000)));
        let ours = "on (content, 1 s); above 64 KiB: on (descriptor, 1 s)";
        let differ = |name: &str, values: [&str; 2], page| {
            let all = values.map(|value| facts(&[(name, value)]));
            !differences(&all, &[], &[page; 2]).is_empty()
        };
        for (name, values, at_small, at_large) in [
            ("sendfile", ["off; above 64 KiB: on", "off (writev)"], false, true),
            ("sendfile", ["off; above 64 KiB: on", "on"], true, false),
            ("sendfile", ["off; above 64 KiB: on", "off; above 48 KiB: on"], false, false),
            ("file_cache", [ours, "on (content, 5 s); above 48 KiB: off"], false, true),
            ("file_cache", [ours, "on (descriptor, 60 s)"], true, false),
            // As run files of before have it.
            ("sendfile", ["on (from 64 KB)", "off"], true, true),
        ] {
            assert_eq!(differ(name, values, small), at_small, "{name} {values:?} small");
            assert_eq!(differ(name, values, large), at_large, "{name} {values:?} large");
            assert_eq!(differ(name, values, None), at_small, "{name} {values:?} of unknown size");
        }
        assert_eq!(
            at_page(ours, Some(Bytes(65_536))),
            "on (content, 1 s)",
            "up to the size itself"
        );
        assert_eq!(at_page(ours, Some(Bytes(65_537))), "on (descriptor, 1 s)");
        assert_eq!(at_page("off; above all: x", large), "off; above all: x", "no size");
    }

    #[test]
    fn two_contenders_are_compared_each_at_its_own_page() {
        let value = "off; above 64 KiB: on";
        let all = [facts(&[("sendfile", value)]), facts(&[("sendfile", value)])];
        assert_eq!(differences(&all, &[], &[Some(Bytes(10)), Some(Bytes(100_000))]).len(), 1);
    }
}
