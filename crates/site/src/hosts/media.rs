//! Media types by extension. Owns which type and charset a name gets. Start reading at [`content_type`].

use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use crate::config::Presentation;

/// The media type by extension; text has the charset of the configuration. The type of an unknown extension is not
/// guessed.
pub(super) fn content_type(name: &[u8], presentation: &Presentation) -> Cow<'static, str> {
    let path = Path::new(OsStr::from_bytes(name));
    let extension = path.extension().and_then(OsStr::to_str).unwrap_or_default();
    let own = presentation.types.get(&extension.to_ascii_lowercase());
    let essence: Cow<'static, str> = match own {
        Some(own) => Cow::Owned(own.clone()),
        None => match mime_guess::from_path(path).first_raw() {
            Some(known) => Cow::Borrowed(known),
            None => Cow::Owned(presentation.default_type.clone()),
        },
    };
    let is_text = essence.starts_with("text/") && !essence.contains("charset=");
    match is_text && !presentation.charset.is_empty() {
        true => Cow::Owned(format!("{essence}; charset={}", presentation.charset)),
        false => essence,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_media_type_follows_the_extension_and_text_has_the_charset() {
        let cases: [(&[u8], &str); 7] = [
            (b"index.html", "text/html; charset=utf-8"),
            (b"a/style.CSS", "text/css; charset=utf-8"),
            (b"app.js", "text/javascript; charset=utf-8"),
            (b"logo.svg", "image/svg+xml"),
            (b"photo.jpeg", "image/jpeg"),
            (b"data.json", "application/json"),
            (b"README", "application/octet-stream"),
        ];
        for (name, expected) in cases {
            assert_eq!(
                content_type(name, &Presentation::default()),
                expected,
                "{}",
                name.escape_ascii()
            );
        }
    }

    #[test]
    fn own_types_charset_and_default_go_first() {
        let look = Presentation {
            charset: String::new(),
            default_type: "text/plain".to_owned(),
            types: [("foo".to_owned(), "application/x-foo".to_owned())].into(),
            ..Presentation::default()
        };
        for (name, expected) in
            [("a.FOO", "application/x-foo"), ("a.html", "text/html"), ("a", "text/plain")]
        {
            assert_eq!(content_type(name.as_bytes(), &look), expected, "{name}");
        }
    }
}
