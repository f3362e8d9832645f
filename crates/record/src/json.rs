//! How a record lies in a file: one JSON object that names its format and version first.

use serde::Serialize;
use serde::de::{Deserialize, DeserializeOwned};

/// Why a file could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A line of a file that is written line by line.
    #[error(
        "line {line} of it is damaged ({cause}): remove that line and those behind it to use the others"
    )]
    Line {
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        cause: serde_json::Error,
    },
    /// Not JSON, or not of this shape.
    #[error("not a file of joust's: {0}")]
    Shape(#[from] serde_json::Error),
    /// Of a format or version that this joust does not know.
    #[error("its format is `{found}`, not `{wanted}`: use the joust that wrote it, or a newer one")]
    Version {
        /// What the file says of itself.
        found: String,
        /// What was asked for.
        wanted: &'static str,
    },
    /// A visit, named by all that tells it from others, is there more than once.
    #[error("it has a visit twice: was the file edited?")]
    Twice,
    /// A part speaks of a contender or a cell that the plan does not have, or the plan of one without
    /// facts.
    #[error("{part} does not fit the plan's contenders and cells: was the file edited?")]
    Misfit {
        /// Which part: "a visit".
        part: &'static str,
    },
}

/// One object on one line, ending in a newline.
pub(crate) fn write(record: &impl Serialize) -> String {
    let mut text = serde_json::to_string(record).expect("plain data serialises");
    text.push('\n');
    text
}

/// The format of the record of a load. It stands here because upgrades of run files write it too.
pub(crate) const LOAD_FORMAT: &str = "joust-load/2";

/// Changes a record of an older format, in place, to the one that is wanted.
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
    // Two passes: a file of another version must be refused by its version, whatever its shape.
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
