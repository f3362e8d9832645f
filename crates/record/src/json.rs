//! The file form of a record: one JSON object that names its format and version first.

use serde::Serialize;
use serde::de::{Deserialize, DeserializeOwned};

/// Why a file could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A line of a file that is written line by line.
    #[error("line {line} is damaged ({cause}): remove it and all lines after it to use the rest")]
    Line {
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        cause: serde_json::Error,
    },
    /// Not JSON, or not of this shape.
    #[error("not a joust file: {0}")]
    Shape(#[from] serde_json::Error),
    /// A format or version that this joust does not know.
    #[error("its format is `{found}`, not `{wanted}`: use the joust that wrote it, or a newer one")]
    Version {
        /// The format that the file names.
        found: String,
        /// The format that was expected.
        wanted: &'static str,
    },
    /// A visit is there more than once, by the fields that identify it.
    #[error("it contains a visit twice: was the file edited?")]
    Twice,
    /// A part refers to a contender or a cell that the plan does not have, or the plan has a contender without facts.
    #[error("{part} does not fit the plan's contenders and cells: was the file edited?")]
    Misfit {
        /// The part: "a visit".
        part: &'static str,
    },
}

/// One object on one line, ending in a newline.
pub(crate) fn write(record: &impl Serialize) -> String {
    let mut text = serde_json::to_string(record).expect("plain data serialises");
    text.push('\n');
    text
}

/// The format of a load's record. It is defined here because upgrades of run files write it too.
pub(crate) const LOAD_FORMAT: &str = "joust-load/2";

/// Upgrades a record of an older format in place.
pub(crate) type Upgrade = fn(&mut serde_json::Value);

/// Reads a record of the format `wanted`, or of an older one for which there is an upgrade.
pub(crate) fn read<T: DeserializeOwned>(
    text: &str,
    wanted: &'static str,
    older: &[(&str, Upgrade)],
) -> Result<T, ReadError> {
    #[derive(serde::Deserialize)]
    struct Head {
        format: String,
    }
    // Two passes: a file of another version must be rejected by its version, whatever its shape.
    let head = Head::deserialize(&mut serde_json::Deserializer::from_str(text))?;
    if let Some((_, upgrade)) = older.iter().find(|(format, _)| head.format == *format) {
        let mut record: serde_json::Value = serde_json::from_str(text)?;
        upgrade(&mut record);
        record["format"] = wanted.into();
        return Ok(serde_json::from_value(record)?);
    }
    if head.format != wanted {
        return Err(ReadError::Version { found: head.format, wanted });
    }
    Ok(serde_json::from_str(text)?)
}
