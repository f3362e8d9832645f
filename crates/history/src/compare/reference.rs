//! Owns which contender did not change between two runs, so that others can be compared with it, and what changed in a
//! contender. Must not know figures. Start reading at [`choose`].

use record::RunRecord;

use super::{Pair, contender_name};
use crate::configuration::hash;

/// Servers whose version does not identify the code: our own is rebuilt under the same version every day, and the
/// others have only what they report about themselves.
const CODE_UNKNOWN: [&str; 3] = ["joust", "command", "url"];

/// The reference for figures within a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    /// A contender of both runs whose version and configuration are the same, if there is one.
    Found,
    /// The contender of that name.
    Named(String),
    /// Nothing.
    None,
}

/// Why two runs could not be compared as requested.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompareError {
    /// No contender of that name was measured in both runs.
    #[error("no contender `{name}` is in both runs and was asked the same: those are {}", there.join(", "))]
    NoReference {
        /// The name.
        name: String,
        /// The contenders that both runs measured.
        there: Vec<String>,
    },
    /// The named contender changed between the runs.
    #[error(
        "`{name}` is not the same in both runs ({}), so it cannot take the machine out of a ratio",
        differs.join("; ")
    )]
    Changed {
        /// The name.
        name: String,
        /// What changed.
        differs: Vec<String>,
    },
}

/// The chosen reference.
pub(super) struct Chosen {
    pub(super) name: Option<String>,
    /// What the ratios are of, and why.
    pub(super) why: String,
}

/// Chooses the reference: the study's own if it did not change, else the unchanged contender that is in most cells.
pub(super) fn choose(
    base: &RunRecord,
    candidate: &RunRecord,
    matched: &[Pair],
    wanted: &Reference,
) -> Result<Chosen, CompareError> {
    match wanted {
        Reference::None => Ok(plain("as was asked")),
        Reference::Named(name) => named(base, candidate, matched, name),
        Reference::Found => Ok(match found(base, candidate, matched) {
            Some(name) => over(name),
            None => plain(
                "there is no other server in both runs whose version and configuration are known to \
                 be the same",
            ),
        }),
    }
}

fn named(
    base: &RunRecord,
    candidate: &RunRecord,
    matched: &[Pair],
    name: &str,
) -> Result<Chosen, CompareError> {
    let is_it = |pair: &&Pair| contender_name(candidate, pair.candidate) == name;
    let Some(pair) = matched.iter().find(is_it) else {
        let mut there: Vec<String> = Vec::new();
        for pair in matched {
            let name = contender_name(candidate, pair.candidate).to_owned();
            if !there.contains(&name) {
                there.push(name);
            }
        }
        return Err(CompareError::NoReference { name: name.to_owned(), there });
    };
    match differences(base, candidate, *pair) {
        differs if differs.is_empty() => Ok(over(name.to_owned())),
        differs => Err(CompareError::Changed { name: name.to_owned(), differs }),
    }
}

fn found(base: &RunRecord, candidate: &RunRecord, matched: &[Pair]) -> Option<String> {
    let cells = |contender: usize| {
        matched.iter().filter(|pair| pair.candidate.contender == contender).count()
    };
    let is_unchanged = |&contender: &usize| {
        let server = candidate.plan.contenders[contender].server.as_str();
        let mut pairs = matched.iter().filter(|pair| pair.candidate.contender == contender);
        let has_version = !candidate.contenders[contender].version.is_empty();
        let is_known = has_version && !CODE_UNKNOWN.contains(&server);
        is_known && pairs.next().is_some_and(|&pair| differences(base, candidate, pair).is_empty())
    };
    let unchanged: Vec<usize> = (0..candidate.plan.contenders.len()).filter(is_unchanged).collect();
    let own = candidate.plan.reference.filter(|one| unchanged.contains(one));
    // Reversed, because `max_by_key` returns the last maximum and the first is wanted.
    let most = || unchanged.iter().copied().rev().max_by_key(|&one| cells(one));
    let chosen = own.or_else(most)?;
    // A reference needs another contender to compare with it.
    let has_others = matched.iter().any(|pair| pair.candidate.contender != chosen);
    has_others.then(|| candidate.plan.contenders[chosen].name.clone())
}

fn over(name: String) -> Chosen {
    let why = format!(
        "each ratio is of a contender over {name} in the same blocks, candidate over base: version and \
         configuration of {name} are the same in both runs, so what the machine did differently to both \
         cancels out (memory is compared by itself)"
    );
    Chosen { name: Some(name), why }
}

fn plain(because: &str) -> Chosen {
    let why = format!(
        "each ratio is of a contender's own figures, candidate over base, because {because}: what the \
         machine did differently between the runs is in it, and the interval does not know of that"
    );
    Chosen { name: None, why }
}

/// What changed in a contender.
pub(super) fn differences(base: &RunRecord, candidate: &RunRecord, pair: Pair) -> Vec<String> {
    let (one, other) = (pair.base.contender, pair.candidate.contender);
    let (planned, now) = (&base.plan.contenders[one], &candidate.plan.contenders[other]);
    let mut differs = Vec::new();
    let mut push = |what: &str, one: &str, other: &str| {
        if one != other {
            differs.push(format!("{what}: {one} to {other}"));
        }
    };
    push("server", &planned.server, &now.server);
    push("version", &base.contenders[one].version, &candidate.contenders[other].version);
    let names: std::collections::BTreeSet<&String> =
        planned.settings.keys().chain(now.settings.keys()).collect();
    for name in names {
        let value = |settings: &record::Settings| {
            settings.get(name).map_or_else(|| "not set".to_owned(), ToString::to_string)
        };
        push(name, &value(&planned.settings), &value(&now.settings));
    }
    if differs.is_empty() && hash(base, one) != hash(candidate, other) {
        differs.push("its configuration".to_owned());
    }
    differs
}
