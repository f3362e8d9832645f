//! `{seq}`, `{rand}`, `{rand:LOW-HIGH}` and `{csv:FILE:COLUMN}` in a text. Owns how they are written. Start
//! reading at [`split`].

use record::RequestPlan;

/// Highest value of `{rand}`: the highest signed 64-bit integer, since its reader is mostly a database.
const RAND_MAX: u64 = i64::MAX as u64;

/// A piece of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TemplatePiece<'a> {
    /// Fixed text.
    Text(&'a [u8]),
    /// A value that differs from one sending to the next.
    Hole(Placeholder<'a>),
}

/// What stands between braces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placeholder<'a> {
    /// The number of the request in the load.
    Seq,
    /// A random whole number, both ends included; `low <= high`.
    Rand {
        /// Lowest.
        low: u64,
        /// Highest.
        high: u64,
    },
    /// A value of a column.
    Csv {
        /// File, as written.
        file: &'a str,
        /// Name or number of the column, as written, including `:all` after a number.
        column: &'a str,
    },
}

/// Follows the number of a column if the first row has values, too.
pub(crate) const ALL_ROWS: &str = "all";

/// Text that begins like a placeholder but is not one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a placeholder: write {{seq}}, {{rand}}, {{rand:1-100}} (low, then high) or \
     {{csv:FILE:COLUMN}}"
)]
pub struct PlaceholderError(pub(crate) String);

/// The pieces of `text`. Braces that begin no placeholder stay as they are.
///
/// # Errors
/// `{rand:` or `{csv:` is there, but what follows is invalid.
pub(crate) fn split(text: &[u8]) -> Result<Vec<TemplatePiece<'_>>, PlaceholderError> {
    let mut pieces = Vec::new();
    let (mut start, mut at) = (0, 0);
    while let Some(found) = text[at..].iter().position(|&byte| byte == b'{') {
        let open = at + found;
        at = open + 1;
        let inside = text[at..].iter().position(|byte| b"{}\r\n".contains(byte));
        let Some(end) = inside.map(|length| at + length).filter(|&end| text[end] == b'}') else {
            continue;
        };
        let Some(placeholder) = placeholder(&text[at..end])? else { continue };
        if start < open {
            pieces.push(TemplatePiece::Text(&text[start..open]));
        }
        pieces.push(TemplatePiece::Hole(placeholder));
        (start, at) = (end + 1, end + 1);
    }
    if start < text.len() {
        pieces.push(TemplatePiece::Text(&text[start..]));
    }
    Ok(pieces)
}

fn placeholder(inside: &[u8]) -> Result<Option<Placeholder<'_>>, PlaceholderError> {
    let Ok(text) = str::from_utf8(inside) else { return Ok(None) };
    let wrong = || PlaceholderError(format!("{{{text}}}"));
    let found = match text.split_once(':') {
        None if text == "seq" => Placeholder::Seq,
        None if text == "rand" => Placeholder::Rand { low: 0, high: RAND_MAX },
        Some(("rand", ends)) => {
            let (low, high) = ends.split_once('-').ok_or_else(wrong)?;
            let low = low.trim().parse().map_err(|_| wrong())?;
            let high = high.trim().parse().map_err(|_| wrong())?;
            if low > high {
                return Err(wrong());
            }
            Placeholder::Rand { low, high }
        }
        Some(("csv", place)) => {
            let (file, column) = file_and_column(place).ok_or_else(wrong)?;
            if file.is_empty() || column.is_empty() {
                return Err(wrong());
            }
            Placeholder::Csv { file, column }
        }
        _ => return Ok(None),
    };
    Ok(Some(found))
}

/// A file and its column. A file without a row of names is marked after the number: `u.csv:2:all`.
fn file_and_column(place: &str) -> Option<(&str, &str)> {
    let (file, column) = place.rsplit_once(':')?;
    let of_all = file.rsplit_once(':').filter(|(_, number)| {
        column == ALL_ROWS && !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
    });
    Some(of_all.map_or((file, column), |(file, _)| (file, &place[file.len() + 1..])))
}

/// Whether `text` has a placeholder, a mistaken one included.
pub(crate) fn is_templated(text: impl AsRef<[u8]>) -> bool {
    split(text.as_ref())
        .map_or(true, |pieces| pieces.iter().any(|piece| matches!(piece, TemplatePiece::Hole(_))))
}

/// The first piece of `text` that begins like a placeholder but is not one: an open brace, the word after it, and the
/// closing brace if there is one. JSON never matches, because there a quote follows a brace.
pub fn literal_braces(text: &str) -> Option<&str> {
    split(text.as_bytes()).ok()?.into_iter().find_map(|piece| {
        let TemplatePiece::Text(text) = piece else { return None };
        let text = str::from_utf8(text).expect("placeholders are whole characters");
        let of_a_word = |at: &usize| text[at + 1..].starts_with(char::is_alphabetic);
        let begun = &text[text.match_indices('{').map(|(at, _)| at).find(of_a_word)?..];
        let word = begun[1..].find(|c: char| !c.is_alphanumeric()).map_or(begun.len(), |at| at + 1);
        let is_closed = begun[word..].starts_with('}');
        Some(&begun[..word + usize::from(is_closed)])
    })
}

/// The columns, as file and column, that the placeholders of a request name; each once.
///
/// # Errors
/// A placeholder is mistaken.
pub fn columns_needed(request: &RequestPlan) -> Result<Vec<(String, String)>, PlaceholderError> {
    let mut needed = Vec::new();
    if !request.templated {
        return Ok(needed);
    }
    let values = request.headers.iter().map(|(_, value)| value.as_bytes());
    for text in [request.target.as_bytes(), &request.body].into_iter().chain(values) {
        for piece in split(text)? {
            let TemplatePiece::Hole(Placeholder::Csv { file, column }) = piece else { continue };
            let one = (file.to_owned(), column.to_owned());
            if !needed.contains(&one) {
                needed.push(one);
            }
        }
    }
    Ok(needed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn placeholders_are_found_and_other_braces_stay() {
        let csv = Placeholder::Csv { file: "a:b/u.csv", column: "name" };
        let cases: [(&str, &[TemplatePiece<'_>]); 6] = [
            ("", &[]),
            ("{}{ }{a}{SEQ}{{", &[TemplatePiece::Text(b"{}{ }{a}{SEQ}{{")]),
            ("{seq}", &[TemplatePiece::Hole(Placeholder::Seq)]),
            (
                "a{{rand:1-6}}",
                &[
                    TemplatePiece::Text(b"a{"),
                    TemplatePiece::Hole(Placeholder::Rand { low: 1, high: 6 }),
                    TemplatePiece::Text(b"}"),
                ],
            ),
            ("{csv:a:b/u.csv:name}", &[TemplatePiece::Hole(csv)]),
            (
                "{\"n\":{rand}}",
                &[
                    TemplatePiece::Text(b"{\"n\":"),
                    TemplatePiece::Hole(Placeholder::Rand {
                        low: 0,
                        high: 9_223_372_036_854_775_807,
                    }),
                    TemplatePiece::Text(b"}"),
                ],
            ),
        ];
        for (text, pieces) in cases {
            assert_eq!(split(text.as_bytes()).unwrap(), pieces, "{text}");
        }
    }

    #[test]
    fn a_placeholder_that_was_meant_and_mistyped_is_refused() {
        let column = |place| file_and_column(place).map(|(_, column)| column);
        assert_eq!(column("a:b/u.csv:2:all"), Some("2:all"));
        assert_eq!((column("u.csv:all"), column("b:u.csv:all")), (Some("all"), Some("all")));
        for text in ["{rand:}", "{rand:9-1}", "{rand:1}", "{rand:a-b}", "{csv:a}", "{csv::a}"] {
            assert!(split(text.as_bytes()).unwrap_err().to_string().contains(text), "{text}");
            assert!(is_templated(text));
        }
        assert!(!is_templated("{a} {\"rand\":1}") && is_templated("x{seq}y"));
    }

    #[test]
    fn braces_that_stay_are_found_with_their_word() {
        let cases = [
            ("/{foo}/{seq}", Some("{foo}")),
            ("/{seq}?a={rnd:1-6}", Some("{rnd")),
            ("/{seq", Some("{seq")),
            ("/a{", None),
            ("{\"a\":1}{{b", Some("{b")),
            ("/{é}", Some("{é}")),
            ("/{seq}/{rand:1-2}}", None),
            ("/plain", None),
        ];
        for (text, found) in cases {
            assert_eq!(literal_braces(text), found, "{text}");
        }
    }

    #[test]
    fn columns_are_named_once_and_only_where_there_are_placeholders() {
        let mut request = RequestPlan::get("/{csv:a.csv:x}{csv:a.csv:x}{seq}");
        request.headers.push(("A".to_owned(), "{csv:a.csv:2}".to_owned()));
        request.body = b"{csv:b.csv:x}".to_vec();
        assert_eq!(columns_needed(&request).unwrap(), []);
        request.templated = true;
        let needed = columns_needed(&request).unwrap();
        let needed: Vec<_> = needed.iter().map(|(f, c)| (f.as_str(), c.as_str())).collect();
        assert_eq!(needed, [("a.csv", "x"), ("b.csv", "x"), ("a.csv", "2")]);
    }

    proptest! {
        #[test]
        fn no_byte_of_a_text_is_lost(text in "([{}a:]|rand|\\{seq\\}|csv){0,12}") {
            if let Ok(pieces) = split(text.as_bytes()) {
                let mut joined = Vec::new();
                for piece in pieces {
                    match piece {
                        TemplatePiece::Text(text) => joined.extend_from_slice(text),
                        TemplatePiece::Hole(Placeholder::Seq) => joined.extend_from_slice(b"{seq}"),
                        TemplatePiece::Hole(Placeholder::Rand { .. }) => joined.extend_from_slice(b"{rand}"),
                        TemplatePiece::Hole(Placeholder::Csv { file, column }) =>
                            joined.extend_from_slice(format!("{{csv:{file}:{column}}}").as_bytes()),
                    }
                }
                prop_assert_eq!(joined, text.into_bytes());
            }
        }
    }
}
