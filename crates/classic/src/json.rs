//! Owns the reading of JSON from words, with braces as white space: the names and numbers that come next. Start reading
//! at [`numbers`].

use crate::words::Cursor;

/// Longest name with spaces in it: oha's error messages are names.
const NAME_WORDS_MAX: usize = 60;

/// The next names with their numbers; those without a number ("null") are left out.
pub(crate) fn numbers(at: &mut Cursor<'_, '_>) -> Vec<(String, f64)> {
    let mut found = Vec::new();
    while let Some((name, value)) = entry(at) {
        found.extend(value.map(|value| (name, value)));
    }
    found
}

/// Skips names with word values, such as `"type": "trend"`, and names of nested objects.
pub(crate) fn skip_words(at: &mut Cursor<'_, '_>, objects: &[&str]) {
    loop {
        let mut ahead = at.clone();
        let Some(name) = name(&mut ahead) else { return };
        if !objects.contains(&name.as_str()) {
            let is_word =
                ahead.word().is_some_and(|value| value.starts_with('"') && !value.ends_with(':'));
            if !is_word {
                return;
            }
        }
        *at = ahead;
    }
}

fn entry(at: &mut Cursor<'_, '_>) -> Option<(String, Option<f64>)> {
    let mut ahead = at.clone();
    let name = name(&mut ahead)?;
    let value = ahead.number();
    if value.is_none() {
        let nothing = ahead.word()?.trim_end_matches(',');
        matches!(nothing, "null" | "NaN" | "0s").then_some(())?;
    }
    *at = ahead;
    Some((name, value))
}

/// The name of an entry.
fn name(at: &mut Cursor<'_, '_>) -> Option<String> {
    let mut name = at.word()?.strip_prefix('"')?.to_owned();
    for _ in 0..NAME_WORDS_MAX {
        if let Some(whole) = name.strip_suffix("\":") {
            return Some(whole.to_owned());
        }
        name.push(' ');
        name.push_str(at.word()?);
    }
    None
}
