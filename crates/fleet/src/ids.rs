//! Names of runs and agents, which are parts of subjects and file names: what a broker or a shell would read
//! otherwise is refused. Start reading at [`Id`].

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Longest name, in bytes.
pub const ID_MAX: usize = 64;

/// The name of a run or an agent: 1 to 64 of the letters a to z, digits and hyphens, of which the first is no hyphen.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Id(String);

/// A name that is not one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a name must have 1 to {ID_MAX} of the letters a to z, digits and hyphens, and must not begin with a hyphen, got `{0}`"
)]
pub struct IdError(String);

impl Id {
    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for Id {
    type Error = IdError;

    fn try_from(text: String) -> Result<Self, IdError> {
        text.parse()
    }
}

impl From<Id> for String {
    fn from(id: Id) -> Self {
        id.0
    }
}

impl FromStr for Id {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let is_allowed = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
        let is_option = text.starts_with('-');
        if (1..=ID_MAX).contains(&text.len()) && text.bytes().all(is_allowed) && !is_option {
            Ok(Self(text.to_owned()))
        } else {
            Err(IdError(text.chars().take(ID_MAX + 1).collect()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_broker_or_a_shell_would_read_is_refused() {
        for good in ["a", "db-1", "r-20261125-134512-9f3c"] {
            assert_eq!(good.parse::<Id>().unwrap().as_str(), good);
        }
        let long = "a".repeat(ID_MAX + 1);
        for bad in ["", "a.b", "*", ">", "A", "a b", "../a", "ä", &long] {
            assert!(bad.parse::<Id>().is_err(), "{bad}");
        }
    }
}
