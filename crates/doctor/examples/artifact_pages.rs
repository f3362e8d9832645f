//! Writes the pages of `docs/artifacts` from the texts of the checks, and removes those of checks that are gone:
//! `cargo run -p joust-doctor --example artifact_pages`.

use std::path::Path;
use std::{fs, io};

fn main() -> io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/artifacts");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(folder.join("printed"))?;
    for (name, text) in joust_doctor::manual::pages() {
        fs::write(folder.join(name), text)?;
    }
    Ok(())
}
