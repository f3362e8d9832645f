//! How the files of a host are shown: what is hidden, their media types, and the codings they are sent in. Owns the
//! tables `[types]` and `[compression]`. Start reading at [`Presentation`].

use std::collections::BTreeMap;

use super::table::{Table, shown_as, taken_as};
use super::text::check_media;
use crate::coding::Compression;

/// How files are shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Presentation {
    /// Patterns of hidden names, such as `*~`; names that begin with a dot are hidden as well.
    pub hide: Vec<String>,
    /// Names that are shown although they begin with a dot, such as `.well-known`.
    pub show: Vec<String>,
    /// Charset of text; empty: none is sent.
    pub charset: String,
    /// Media type of a file whose extension is unknown.
    pub default_type: String,
    /// Media types by extension, in lower case; they take precedence over the built-in ones.
    pub types: BTreeMap<String, String>,
    /// Codings; `None`: every file is sent as it is.
    pub compression: Option<Compression>,
}

impl Default for Presentation {
    fn default() -> Self {
        Self {
            hide: Vec::new(),
            show: Vec::new(),
            charset: "utf-8".to_owned(),
            default_type: "application/octet-stream".to_owned(),
            types: BTreeMap::new(),
            compression: None,
        }
    }
}

/// `[types]`, checked.
pub(super) fn check_types(types: &BTreeMap<String, String>) -> Result<(), String> {
    types.iter().try_for_each(|(extension, media)| {
        check_media(media)?;
        match media.contains('/') && !extension.contains(['.', '/']) {
            true => Ok(()),
            false => Err(format!(
                "`{extension} = {media}` is not valid: write it as in `webp = \"image/webp\"`"
            )),
        }
    })
}

/// `[types]`.
pub(super) static TYPES: Table = Table {
    name: "types",
    is_list: false,
    take: |config, value| {
        config.presentation.types = taken_as(value, check_types)?;
        Ok(())
    },
    show: |config| match config.presentation.types.is_empty() {
        true => None,
        false => Some(shown_as("types", &config.presentation.types)),
    },
    example: || shown_as("types", &BTreeMap::from([("gmi", "text/gemini")])),
};

/// `[compression]`.
pub(super) static COMPRESSION: Table = Table {
    name: "compression",
    is_list: false,
    take: |config, value| {
        config.presentation.compression = Some(taken_as(value, Compression::check)?);
        Ok(())
    },
    show: |config| {
        config.presentation.compression.as_ref().map(|table| shown_as("compression", table))
    },
    example: || shown_as("compression", &Compression::default()),
};
