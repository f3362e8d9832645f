//! How single values of a configuration are written and checked, whichever table they stand in.

use std::path::PathBuf;

use units::Nanos;

/// The largest content that is served from memory. It is made as a whole at the start, so a mistyped unit must not ask
/// for more than the machine has.
pub const FIXED_BYTES_MAX: u64 = 1 << 30;

/// The file that an option such as `--access-log FILE|off` names.
pub fn log_file(typed: &str) -> Option<PathBuf> {
    (typed != "off").then(|| typed.into())
}

/// A text as TOML.
pub fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// A time without rounding, in the largest unit that divides it.
pub fn exact(time: Nanos) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1000, "us"), (1, "ns")];
    let (scale, unit) =
        units.into_iter().find(|(scale, _)| time.0.is_multiple_of(*scale)).expect("1 divides all");
    format!("{}{unit}", time.0 / scale)
}

/// Refuses texts that are not file names, or that contain a path.
pub fn check_file_names(names: &[String]) -> Result<(), String> {
    match names.iter().find(|name| name.is_empty() || name.contains(['/', '\0'])) {
        Some(name) => Err(format!("`{name}` must be a file name without a path")),
        None => Ok(()),
    }
}

/// Refuses a text that cannot be sent as a media type or charset.
pub fn check_media(text: &str) -> Result<(), String> {
    let is_fine = |byte: u8| byte == b' ' || (byte.is_ascii_graphic() && byte != b',');
    match text.bytes().all(is_fine) {
        true => Ok(()),
        false => Err(format!("`{}` cannot be sent in a header field", text.escape_debug())),
    }
}
