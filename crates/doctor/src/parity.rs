//! Owns what must be alike for two servers to do the same work, and in which of it a run's
//! contenders differ. Must not know how a switch was read. Start reading at [`differences`].

use std::collections::BTreeMap;

use record::ContenderFacts;

/// A switch of a server that decides how much work a request is.
#[derive(Debug, Clone, Copy)]
pub struct Switch {
    /// Its key in [`ContenderFacts::parity`].
    pub name: &'static str,
    rule: Rule,
}

/// When two values are the same work.
#[derive(Debug, Clone, Copy)]
enum Rule {
    /// When this of them is equal.
    Of(fn(&str) -> String),
    /// When they are numbers that are at most so far above the least of all.
    Near(u64),
}

/// Requests on a connection from which on a limit is of no interest: see the check
/// `keep_alive_not_honoured`.
const REQUESTS_ENOUGH: u64 = 10_000;
/// Seconds an idle connection is kept from which on a longer time is of no interest: none that a load
/// holds is idle for as long.
const TIMEOUT_ENOUGH_S: f64 = 5.0;
/// Bytes by which heads may differ: the server's name, an ETag, the spelling of a field.
const HEADER_MORE_MAX: u64 = 256;

/// Every switch that is compared, by name. What one adapter alone reads back beside these is shown
/// and not compared.
pub static SWITCHES: &[Switch] = &[
    Switch { name: "access_log", rule: Rule::Of(as_it_is) },
    Switch { name: "backlog", rule: Rule::Of(as_it_is) },
    Switch { name: "compression", rule: Rule::Of(as_it_is) },
    Switch { name: "etag", rule: Rule::Of(as_it_is) },
    Switch { name: "header_bytes", rule: Rule::Near(HEADER_MORE_MAX) },
    Switch { name: "http_version", rule: Rule::Of(as_it_is) },
    Switch { name: "keep_alive", rule: Rule::Of(as_it_is) },
    Switch { name: "keep_alive_requests", rule: Rule::Of(requests) },
    Switch { name: "keep_alive_timeout", rule: Rule::Of(timeout) },
    Switch { name: "sendfile", rule: Rule::Of(first_word) },
    Switch { name: "tls", rule: Rule::Of(as_it_is) },
    Switch { name: "workers", rule: Rule::Of(as_it_is) },
];

/// The word for a value that nobody could read. It is compared with nothing.
pub const UNKNOWN: &str = "unknown";

/// A switch in which contenders differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Its name.
    pub switch: &'static str,
    /// Each value, as read back, with the indices of the contenders that have it; the commonest
    /// first.
    pub values: Vec<(String, Vec<usize>)>,
}

/// The switches in which contenders differ and of which the study does not say that they shall.
/// `declared`: names of switches, each alone or with its reason ("backlog: Caddy has no setting for
/// it"). A contender that never answered has nothing to differ in.
pub fn differences(contenders: &[ContenderFacts], declared: &[String]) -> Vec<Difference> {
    let is_declared =
        |switch: &&Switch| declared.iter().any(|said| declared_name(said) == switch.name);
    SWITCHES
        .iter()
        .filter(|switch| !is_declared(switch))
        .filter_map(|switch| switch.difference(contenders))
        .collect()
}

/// The switch that a declaration is about: what stands before its reason.
pub fn declared_name(declared: &str) -> &str {
    declared.split(':').next().unwrap_or_default().trim()
}

impl Switch {
    fn difference(&self, contenders: &[ContenderFacts]) -> Option<Difference> {
        let read: Vec<(usize, &str)> = contenders
            .iter()
            .enumerate()
            .filter_map(|(index, facts)| Some((index, facts.parity.get(self.name)?.as_str())))
            .filter(|(_, value)| *value != UNKNOWN)
            .collect();
        let least = read.iter().filter_map(|(_, value)| value.parse().ok()).min();
        let mut groups: BTreeMap<String, (&str, Vec<usize>)> = BTreeMap::new();
        for (index, value) in read {
            groups.entry(self.essence(value, least)).or_insert((value, Vec::new())).1.push(index);
        }
        if groups.len() < 2 {
            return None;
        }
        let mut values: Vec<(String, Vec<usize>)> =
            groups.into_values().map(|(value, who)| (value.to_owned(), who)).collect();
        values.sort_by_key(|(_, who)| (std::cmp::Reverse(who.len()), who[0]));
        Some(Difference { switch: self.name, values })
    }

    /// What of a value counts; `least` is the least of those that are numbers.
    fn essence(&self, value: &str, least: Option<u64>) -> String {
        let above = || value.parse::<u64>().ok()?.checked_sub(least?);
        match self.rule {
            Rule::Of(essence) => essence(value),
            Rule::Near(most) if above().is_some_and(|above| above <= most) => "near".to_owned(),
            Rule::Near(_) => value.to_owned(),
        }
    }
}

fn as_it_is(value: &str) -> String {
    value.to_owned()
}

/// "on (from 48 KB)" is on.
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
    let digits: String = value.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    let unit = value[digits.len()..].trim();
    let unit_s = match unit {
        "ms" => 0.001,
        "s" | "" => 1.0,
        "min" | "m" => 60.0,
        "h" => 3600.0,
        _ => return value.to_owned(),
    };
    match digits.parse::<f64>() {
        Ok(number) if number * unit_s >= TIMEOUT_ENOUGH_S => "long enough".to_owned(),
        _ => value.to_owned(),
    }
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
        differences(&all, &[])
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
        assert_eq!(differences(&all, &[]).len(), 1);
        for said in ["sendfile", "sendfile: that is the question"] {
            assert_eq!(differences(&all, &[said.to_owned()]), []);
        }
        assert_eq!(differences(&all, &["send".to_owned()]).len(), 1, "a part of a name is none");
    }

    #[test]
    fn what_nobody_could_read_differs_from_nothing() {
        assert_eq!(of("sendfile", &["on", UNKNOWN, "on (from 48 KB)"]), []);
        let never_answered = [facts(&[("tls", "off")]), ContenderFacts::default()];
        assert_eq!(differences(&never_answered, &[]), []);
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
    fn what_is_not_among_the_switches_is_not_compared() {
        let all = [facts(&[("user", "www-data")]), facts(&[("user", "nobody")])];
        assert_eq!(differences(&all, &[]), []);
    }
}
