//! What the unit tests of this crate share.

use toml::de::DeTable;
use units::Bytes;

use crate::config::{Content, SiteConfig, TABLES};

/// 3,361 bytes for every path.
pub(crate) fn config() -> SiteConfig {
    SiteConfig::new(Content::Fixed(Bytes(3361)))
}

/// The configuration of a directory with these tables, written as in a file.
pub(crate) fn config_with(directory: &str, tables: &str) -> SiteConfig {
    let mut config = SiteConfig::new(Content::Directory(directory.into()));
    for (name, value) in DeTable::parse(tables).unwrap().get_ref() {
        let table = TABLES.iter().find(|table| table.name == name.get_ref()).unwrap();
        table.read(&mut config, value).unwrap();
    }
    config
}
