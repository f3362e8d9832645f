//! Owns what a page says of the servers themselves: which were left out, the settings that decide whether they can be
//! compared, commands, configurations and first replies. Must not know layout. Start reading at [`parity`].

use record::RunRecord;
use serde::Serialize;

use crate::figures::{NONE, listed};
use crate::wording::{name_of, plain};

#[derive(Serialize)]
pub(crate) struct Skipped {
    pub(crate) name: String,
    pub(crate) reason: String,
    pub(crate) remedy: String,
}

#[derive(Serialize)]
pub(crate) struct Parity {
    pub(crate) setting: String,
    /// One value if all contenders agree.
    pub(crate) values: Vec<ParityValue>,
}

#[derive(Serialize)]
pub(crate) struct ParityValue {
    pub(crate) value: String,
    pub(crate) who: String,
}

#[derive(Serialize)]
pub(crate) struct ContenderSettings {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) command: String,
    pub(crate) changed: String,
    pub(crate) body: String,
    pub(crate) files: Vec<File>,
    pub(crate) head: String,
}

#[derive(Serialize)]
pub(crate) struct File {
    pub(crate) name: String,
    pub(crate) text: String,
}

pub(crate) fn skipped(record: &RunRecord) -> Vec<Skipped> {
    let shown = |skipped: &record::Skipped| Skipped {
        name: plain(&skipped.name),
        reason: plain(&skipped.reason),
        remedy: plain(&skipped.remedy),
    };
    record.skipped.iter().map(shown).collect()
}

/// Every setting that any contender has: each value, and who has it.
pub(crate) fn parity(record: &RunRecord) -> Vec<Parity> {
    let mut names: Vec<&String> = record.contenders.iter().flat_map(|c| c.parity.keys()).collect();
    names.sort();
    names.dedup();
    let row = |setting: &String| {
        let mut values: Vec<(String, Vec<String>)> = Vec::new();
        for (index, facts) in record.contenders.iter().enumerate() {
            let value = facts.parity.get(setting).map_or_else(|| NONE.to_owned(), |v| plain(v));
            let name = name_of(&record.plan.contenders, index);
            match values.iter_mut().find(|(known, _)| *known == value) {
                Some((_, who)) => who.push(name),
                None => values.push((value, vec![name])),
            }
        }
        let agreed = values.len() == 1;
        let who = |names: Vec<String>| if agreed { "all".to_owned() } else { listed(&names) };
        let values =
            values.into_iter().map(|(value, names)| ParityValue { value, who: who(names) });
        Parity { setting: plain(setting), values: values.collect() }
    };
    names.into_iter().map(row).collect()
}

pub(crate) fn settings(record: &RunRecord) -> Vec<ContenderSettings> {
    let shown = |(contender, facts): (&record::Contender, &record::ContenderFacts)| {
        let changed: Vec<String> = contender
            .settings
            .iter()
            .map(|(name, value)| plain(&format!("{name} = {value}")))
            .collect();
        ContenderSettings {
            name: plain(&contender.name),
            version: plain(&facts.version),
            command: plain(&facts.command),
            changed: changed.join(", "),
            body: match facts.body_sha256.as_str() {
                "" => "it never answered".to_owned(),
                sha256 => format!("SHA-256 {}", plain(sha256)),
            },
            files: facts
                .files
                .iter()
                .map(|(name, text)| File { name: plain(name), text: plain_lines(text) })
                .collect(),
            head: plain_lines(facts.head.trim_end()),
        }
    };
    record.plan.contenders.iter().zip(&record.contenders).map(shown).collect()
}

/// Text of several lines without other control characters.
fn plain_lines(text: &str) -> String {
    let spaced = text.replace('\t', "    ");
    spaced.lines().map(plain).collect::<Vec<_>>().join("\n")
}
