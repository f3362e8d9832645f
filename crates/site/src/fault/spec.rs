//! The words of a fault as it is typed: `NAME=VALUE,NAME:VALUE,...`. Start reading at [`Spec`].

use units::{Nanos, Share};

use super::HOLD_MAX;

/// The seed of a fault that names none.
const SEED: u64 = 1;

/// The words of a fault that have not been read yet.
pub(super) struct Spec<'t> {
    words: Vec<&'t str>,
}

impl<'t> Spec<'t> {
    /// All words after the first `=` of `typed`.
    pub(super) fn of(typed: &'t str) -> Self {
        let (_, rest) = typed.split_once('=').unwrap_or_default();
        Self { words: rest.split(',').map(str::trim).filter(|word| !word.is_empty()).collect() }
    }

    /// The first word, which has no name; `what` says what it should be.
    pub(super) fn first(&mut self, what: &str) -> Result<&'t str, String> {
        match self.words.is_empty() {
            true => Err(format!("{what} is missing")),
            false => Ok(self.words.remove(0)),
        }
    }

    /// The value of the word of that name: what follows its `:` or `=`.
    pub(super) fn named(&mut self, name: &str) -> Option<&'t str> {
        let value = |word: &&'t str| named(word).filter(|(of, _)| *of == name);
        let at = self.words.iter().position(|word| value(word).is_some())?;
        named(self.words.remove(at)).map(|(_, value)| value)
    }

    /// The time of that name.
    pub(super) fn time(&mut self, name: &str) -> Result<Option<Nanos>, String> {
        self.named(name).map(|typed| time(typed, HOLD_MAX)).transpose()
    }

    /// `seed=NUMBER`, or the default seed.
    pub(super) fn seed(&mut self) -> Result<u64, String> {
        self.seed_given().map(|seed| seed.unwrap_or(SEED))
    }

    /// `seed=NUMBER`.
    pub(super) fn seed_given(&mut self) -> Result<Option<u64>, String> {
        let typed = self.named("seed");
        let read = |typed: &str| {
            typed.parse().map_err(|_| format!("the seed `{typed}` is not a whole number"))
        };
        typed.map(read).transpose()
    }

    /// Refuses words that were not read.
    pub(super) fn end(&self) -> Result<(), String> {
        self.words.first().map_or(Ok(()), |word| Err(format!("`{word}` has no meaning here")))
    }
}

/// A word with a name.
fn named(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once([':', '='])?;
    Some((name.trim(), value.trim()))
}

/// A time above 0 and at most `most`.
pub(super) fn time(typed: &str, most: Nanos) -> Result<Nanos, String> {
    let time: Nanos = typed.parse().map_err(|error: units::ParseError| error.to_string())?;
    match time {
        Nanos::ZERO => Err(format!("the time must be longer than 0, got `{typed}`")),
        time if time > most => Err(format!("`{typed}` is longer than {most}")),
        time => Ok(time),
    }
}

/// A share above 0 and at most 1.
pub(super) fn share(typed: &str) -> Result<f64, String> {
    let share = typed.parse::<Share>().map_err(|error| error.to_string())?.0;
    match share > 0.0 && share <= 1.0 {
        true => Ok(share),
        false => Err(format!("the share `{typed}` is not above 0 and at most 100%")),
    }
}

/// A whole number from 1 to `most`.
pub(super) fn count(typed: &str, most: u32) -> Result<u32, String> {
    let count = typed.parse().ok().filter(|count| (1..=most).contains(count));
    count.ok_or_else(|| format!("the number must be whole, from 1 to {most}, got `{typed}`"))
}
