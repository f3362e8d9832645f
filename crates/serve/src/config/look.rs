//! How the files of a host are shown: what is hidden, their media types, and the codings they travel
//! in. Owns the tables `[types]` and `[compression]`; must not know how a file is found.
//! Start reading at [`Look`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::tables::{Table, shown_as, taken_as};
use crate::site::Coding;

/// How files are shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// Names that are hidden, as in `*~`, beside those that begin with a dot.
    pub hide: Vec<String>,
    /// Names that are shown though they begin with a dot, as `.well-known`.
    pub show: Vec<String>,
    /// Charset of text; empty: none is said.
    pub charset: String,
    /// Media type of a file whose extension is unknown.
    pub default_type: String,
    /// Media types by extension, in lower case, before those that are known.
    pub types: BTreeMap<String, String>,
    /// Codings; `None`: every file is sent as it is.
    pub compression: Option<Compression>,
}

impl Default for Look {
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

/// `[compression]`: what is sent in a coding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Compression {
    /// Codings whose file is sent where it lies beside the plain one (`a.css.br` beside `a.css`) and is
    /// not older.
    pub precompressed: Vec<Coding>,
    /// Codings that a file is put into when it is asked for; the result is kept.
    pub codings: Vec<Coding>,
    /// Media types that are worth it; `text/*` is all text.
    pub types: Vec<String>,
    /// A smaller file stays as it is. A packet holds 1,460 bytes.
    pub bytes_min: u64,
    /// So does a larger one: nobody else is served while a loop is at it.
    pub bytes_max: u64,
    /// 1 to 9, as gzip's.
    pub gzip_level: u8,
    /// 0 to 11, as brotli's.
    pub brotli_level: u8,
    /// 1 to 19, as zstd's.
    pub zstd_level: u8,
}

impl Default for Compression {
    fn default() -> Self {
        const TYPES: [&str; 10] = [
            "text/*",
            "application/javascript",
            "application/json",
            "application/ld+json",
            "application/manifest+json",
            "application/wasm",
            "application/xml",
            "application/xhtml+xml",
            "application/rss+xml",
            "image/svg+xml",
        ];
        Self {
            precompressed: Coding::ALL.to_vec(),
            codings: Coding::ALL.to_vec(),
            types: TYPES.map(str::to_owned).to_vec(),
            bytes_min: 1024,
            bytes_max: 1024 * 1024,
            gzip_level: 6,
            brotli_level: 5,
            zstd_level: 6,
        }
    }
}

impl Compression {
    /// What cannot be.
    ///
    /// # Errors
    /// A level that a codec does not have, with those that it has; sizes that no file has.
    pub(super) fn check(&self) -> Result<(), String> {
        let levels = [
            ("gzip_level", self.gzip_level, 1, 9),
            ("brotli_level", self.brotli_level, 0, 11),
            ("zstd_level", self.zstd_level, 1, 19),
        ];
        if let Some((name, level, min, max)) =
            levels.into_iter().find(|(_, level, min, max)| level < min || level > max)
        {
            return Err(format!("`{name}` = {level} is not within {min} to {max}"));
        }
        if self.bytes_min > self.bytes_max {
            return Err(format!(
                "`bytes_min` ({}) is more than `bytes_max` ({}), so that no file is put into a coding: \
                 lower the first or raise the second",
                self.bytes_min, self.bytes_max
            ));
        }
        Ok(())
    }

    /// Whether a file of that media type and size is put into a coding when it is asked for.
    pub(crate) fn is_worth(&self, content_type: &str, size: u64) -> bool {
        let essence = content_type.split(';').next().unwrap_or_default().trim();
        let is_listed = self.types.iter().any(|listed| match listed.strip_suffix('*') {
            Some(start) => essence.starts_with(start),
            None => essence.eq_ignore_ascii_case(listed),
        });
        is_listed && (self.bytes_min..=self.bytes_max).contains(&size)
    }
}

/// Whether a text can stand as a media type or charset in a head.
pub(super) fn check_media(text: &str) -> Result<(), String> {
    let is_fine = |byte: u8| byte == b' ' || (byte.is_ascii_graphic() && byte != b',');
    match text.bytes().all(is_fine) {
        true => Ok(()),
        false => Err(format!("`{}` cannot stand in a head", text.escape_debug())),
    }
}

/// `[types]`, checked.
pub(super) fn check_types(types: &BTreeMap<String, String>) -> Result<(), String> {
    types.iter().try_for_each(|(extension, media)| {
        check_media(media)?;
        match media.contains('/') && !extension.contains(['.', '/']) {
            true => Ok(()),
            false => {
                Err(format!("write it as in `webp = \"image/webp\"`, not {extension} = {media}"))
            }
        }
    })
}

/// `[types]`.
pub(super) static TYPES: Table = Table {
    name: "types",
    is_list: false,
    take: |config, value| {
        config.look.types = taken_as(value, check_types)?;
        Ok(())
    },
    show: |config| match config.look.types.is_empty() {
        true => None,
        false => Some(shown_as("types", &config.look.types)),
    },
    example: || shown_as("types", &BTreeMap::from([("gmi", "text/gemini")])),
};

/// `[compression]`.
pub(super) static COMPRESSION: Table = Table {
    name: "compression",
    is_list: false,
    take: |config, value| {
        config.look.compression = Some(taken_as(value, Compression::check)?);
        Ok(())
    },
    show: |config| config.look.compression.as_ref().map(|table| shown_as("compression", table)),
    example: || shown_as("compression", &Compression::default()),
};
