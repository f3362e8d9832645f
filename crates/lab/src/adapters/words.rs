//! Owns how a line of text is split into the words of a command. No shell is involved: nothing is expanded, and one
//! word never becomes two.

/// Splits a line into words at white space; '...' and "..." hold a word together.
///
/// # Errors
/// A quote that is not closed, in words.
pub(crate) fn words(line: &str) -> Result<Vec<String>, String> {
    let (mut words, mut word) = (Vec::new(), None::<String>);
    let mut quote = None;
    for c in line.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            None if c == '\'' || c == '"' => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c.is_whitespace() => words.extend(word.take()),
            Some(_) | None => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    match quote {
        Some(open) => Err(format!("the quote {open} in `{line}` is not closed")),
        None => Ok(words),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_hold_words_together_and_nothing_is_expanded() {
        let parted = words(r#"sh -c 'exec "$0" a'  "b c"d "" $HOME"#).unwrap();
        assert_eq!(parted, ["sh", "-c", r#"exec "$0" a"#, "b cd", "", "$HOME"]);
        assert_eq!(words("  ").unwrap(), [""; 0]);
        assert!(words("a 'b").unwrap_err().contains("not closed"));
    }
}
