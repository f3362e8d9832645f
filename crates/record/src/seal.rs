//! How a run file shows that it is unchanged: its last field is a digest of everything before it. Owns writing and
//! checking it; must not know what is in the record. Start reading at [`seal`].
//!
//! The digest is a check and not a signature: anyone who edits a file can recompute or remove it. So a matching digest
//! does not prove who wrote the file, but a digest that does not match proves a change.

use sha2::{Digest as _, Sha256};

use crate::hex::hex;

/// Begins the last field of a file. No other field has this name.
const FIELD: &str = ",\"file_sha256\":\"";
/// Ends it, and the file.
const END: &str = "\"}\n";

/// Whether a file is unchanged.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Integrity {
    /// Unknown: it has no digest, as in older versions, or was never in a file.
    #[default]
    Unknown,
    /// Its digest matches.
    Intact,
    /// Its digest does not match.
    Changed,
}

/// Adds the digest to an object that ends in `}` and a newline.
pub(crate) fn seal(object: &str) -> String {
    let open = object.strip_suffix("}\n").expect("a record is one object on one line");
    format!("{open}{FIELD}{}{END}", digest(open))
}

/// Compares the text of a file with its digest.
pub(crate) fn check(text: &str) -> Integrity {
    let Some((open, rest)) = text.rsplit_once(FIELD) else {
        // A reformatted file contains the field in another form.
        let name = FIELD.trim_matches([',', ':', '"']);
        let is_there = text.contains(&format!("\"{name}\""));
        return if is_there { Integrity::Changed } else { Integrity::Unknown };
    };
    if rest.strip_suffix(END) == Some(&digest(open)) {
        Integrity::Intact
    } else {
        Integrity::Changed
    }
}

fn digest(text: &str) -> String {
    hex(&Sha256::digest(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_changed_anywhere_says_so() {
        let file = seal("{\"format\":\"x/1\",\"rate\":1234.5}\n");
        assert_eq!(check(&file), Integrity::Intact);
        assert_eq!(check("{\"format\":\"x/1\",\"rate\":1234.5}\n"), Integrity::Unknown);
        for (from, to) in [
            ("1234.5", "3234.5"),
            ("1234.5", "1234.50"),
            (",\"rate\"", ", \"rate\""),
            ("\"file_sha256\":\"", "\"file_sha256\": \""),
            ("\"}\n", "0\"}\n"),
            ("\"}\n", "\"}"),
            ("\"}\n", "\",\"rate\":3}\n"),
        ] {
            let changed = file.replacen(from, to, 1);
            assert_ne!(changed, file);
            assert_eq!(check(&changed), Integrity::Changed, "{changed}");
        }
        for at in 0..file.len() {
            let mut bytes = file.clone().into_bytes();
            bytes[at] ^= 1;
            if let Ok(changed) = String::from_utf8(bytes) {
                assert_ne!(check(&changed), Integrity::Intact, "{changed}");
            }
        }
    }
}
