//! Owns the conversion of a request target to a path that cannot leave the root: decoded once, dot segments resolved,
//! slashes merged. Start reading at [`SafePath::new`].

use std::borrow::Cow;

/// Why a target has no safe path. The status is 400 for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// Not a path: `*`, or without a slash in front.
    #[error("the target has no path that begins with a slash")]
    NoPath,
    /// RFC 3986, 2.1.
    #[error("a percent sign is not followed by two hexadecimal digits")]
    BadEscape,
    /// No file name contains it; C programs treat it as the end (CGI).
    #[error("the path has an encoded NUL")]
    Nul,
    /// It means a slash inside a name (RFC 3986, 2.2), which no file has. Decoding it would produce another path than
    /// the one that the rules matched (CVE-2026-6414).
    #[error("the path has an encoded slash")]
    EncodedSlash,
    /// `..` above the root (CVE-2021-41773).
    #[error("the path climbs above the root")]
    AboveRoot,
}

/// Scheme, authority, and path and query of a target in absolute form (RFC 9112, 3.2.2); `None`: it has another form.
pub fn divide_absolute(target: &str) -> Option<(&str, &str, &str)> {
    if target.starts_with('/') {
        return None;
    }
    let (scheme, rest) = target.split_once("://")?;
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    Some((scheme, authority, path))
}

/// A normalised path, and the query as it was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SafePath<'a> {
    path: Cow<'a, [u8]>,
    query: Option<&'a str>,
}

impl<'a> SafePath<'a> {
    /// From a target's path and query ([`crate::Request::path_and_query`]; an empty path is the root). Decodes once
    /// (`%2525` becomes `%25`), then resolves `.` and `..`, also encoded ones, and merges slashes, as nginx does.
    /// Nothing is copied if nothing changes.
    ///
    /// # Errors
    /// See [`TargetError`]; each is a 400.
    pub fn new(path_and_query: &'a str) -> Result<Self, TargetError> {
        let (path, query) = match path_and_query.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (path_and_query, None),
        };
        let path = match path.as_bytes() {
            b"" => Cow::Borrowed(&b"/"[..]),
            raw @ [b'/', ..] if is_normal(raw) => Cow::Borrowed(raw),
            [b'/', raw @ ..] => Cow::Owned(normalise(raw)?),
            _ => return Err(TargetError::NoPath),
        };
        Ok(Self { path, query })
    }

    /// The whole path. Begins with a slash; no segment is empty, `.` or `..`, except an empty last one, which means a
    /// directory. A segment may contain any byte but NUL.
    pub fn path(&self) -> &[u8] {
        &self.path
    }

    /// The path relative to the root, to be opened there: without leading and trailing slashes; empty for the root
    /// itself.
    pub fn relative(&self) -> &[u8] {
        let inner = &self.path[1..];
        inner.strip_suffix(b"/").unwrap_or(inner)
    }

    /// The path's segments, in order; none for the root.
    pub fn segments(&self) -> impl Iterator<Item = &[u8]> {
        self.relative().split(|&byte| byte == b'/').filter(|segment| !segment.is_empty())
    }

    /// Whether it ends in a slash.
    pub fn is_directory(&self) -> bool {
        self.path.ends_with(b"/")
    }

    /// The text after the question mark, not decoded.
    pub fn query(&self) -> Option<&'a str> {
        self.query
    }
}

/// Whether the path needs no change. A name that begins with a dot also takes the slow path.
fn is_normal(path: &[u8]) -> bool {
    !path.contains(&b'%') && !path.windows(2).any(|pair| matches!(pair, b"//" | b"/."))
}

/// `raw` is the path after its first slash.
fn normalise(raw: &[u8]) -> Result<Vec<u8>, TargetError> {
    let mut path = Vec::with_capacity(raw.len() + 1);
    let mut is_directory = true;
    for segment in raw.split(|&byte| byte == b'/') {
        let parent_len = path.len();
        path.push(b'/');
        decode_segment(segment, &mut path)?;
        let keeps = match &path[parent_len + 1..] {
            b"" | b"." => parent_len,
            b".." => {
                let parent = &path[..parent_len];
                parent.iter().rposition(|&byte| byte == b'/').ok_or(TargetError::AboveRoot)?
            }
            name => parent_len + 1 + name.len(),
        };
        is_directory = keeps <= parent_len;
        path.truncate(keeps);
    }
    if is_directory {
        path.push(b'/');
    }
    Ok(path)
}

/// Appends the segment with its escapes decoded once.
fn decode_segment(segment: &[u8], out: &mut Vec<u8>) -> Result<(), TargetError> {
    let mut rest = segment;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let &[high, low, ref after @ ..] = rest else { return Err(TargetError::BadEscape) };
        rest = after;
        match (hex_digit(high)? << 4) | hex_digit(low)? {
            0 => return Err(TargetError::Nul),
            b'/' => return Err(TargetError::EncodedSlash),
            decoded => out.push(decoded),
        }
    }
    Ok(())
}

fn hex_digit(byte: u8) -> Result<u8, TargetError> {
    match byte {
        b'0'..=b'9' => Ok(byte - b'0'),
        b'a'..=b'f' => Ok(byte - b'a' + 10),
        b'A'..=b'F' => Ok(byte - b'A' + 10),
        _ => Err(TargetError::BadEscape),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Cases of nginx's http_uri.t, httpd's mergeslashes.t, and of the CVEs named above.
    #[test]
    fn paths_are_decoded_once_and_cannot_climb() {
        let cases: [(&str, Result<&str, TargetError>); 34] = [
            ("/", Ok("/")),
            ("", Ok("/")),
            ("?q", Ok("/")),
            ("/a/b", Ok("/a/b")),
            ("/a/b/", Ok("/a/b/")),
            ("//", Ok("/")),
            ("/a//b///c", Ok("/a/b/c")),
            ("/.", Ok("/")),
            ("/./a/./b/.", Ok("/a/b/")),
            ("/a/../b", Ok("/b")),
            ("/a/..", Ok("/")),
            ("/a/b/..", Ok("/a/")),
            ("/a/b/../../c/", Ok("/c/")),
            ("/a//../b", Ok("/b")),
            ("/.hidden", Ok("/.hidden")),
            ("/...", Ok("/...")),
            ("/a%20b%2Bc", Ok("/a b+c")),
            ("/%61%2e%2E", Ok("/a..")),
            ("/a/%2e%2e/b", Ok("/b")),
            ("/%2525", Ok("/%25")),
            ("/%252e%252e/a", Ok("/%2e%2e/a")),
            ("/a%3Fb", Ok("/a?b")),
            ("/a\\..\\b", Ok("/a\\..\\b")),
            ("/..", Err(TargetError::AboveRoot)),
            ("/a/../..", Err(TargetError::AboveRoot)),
            ("/.%2e/etc/passwd", Err(TargetError::AboveRoot)),
            ("/cgi-bin/.%2e/.%2e/.%2e/etc", Err(TargetError::AboveRoot)),
            ("/%%32%65%%32%65/etc", Err(TargetError::BadEscape)),
            ("/a%2fb", Err(TargetError::EncodedSlash)),
            ("/a%2F..", Err(TargetError::EncodedSlash)),
            ("/a%00.html", Err(TargetError::Nul)),
            ("/a%", Err(TargetError::BadEscape)),
            ("/a%4", Err(TargetError::BadEscape)),
            ("*", Err(TargetError::NoPath)),
        ];
        for (target, expected) in cases {
            let path = SafePath::new(target).map(|path| path.path().to_vec());
            assert_eq!(path, expected.map(|path| path.as_bytes().to_vec()), "{target}");
        }
    }

    #[test]
    fn the_query_stays_apart_and_as_it_was_sent() {
        let path = SafePath::new("/a/%62/?x=%2e%2e/../%zz?y").unwrap();
        assert_eq!(path.query(), Some("x=%2e%2e/../%zz?y"));
        assert_eq!(path.relative(), b"a/b");
        assert_eq!(path.segments().collect::<Vec<_>>(), [b"a", b"b"]);
        assert!(path.is_directory());
        let root = SafePath::new("/").unwrap();
        assert_eq!((root.query(), root.relative(), root.segments().count()), (None, &b""[..], 0));
    }

    proptest! {
        #[test]
        fn no_path_has_a_segment_that_moves(target in "(/|\\.|%2e|%2E|%25|a|%41|%00|%2f|\\?){0,20}") {
            let target = format!("/{target}");
            if let Ok(path) = SafePath::new(&target) {
                prop_assert!(path.path().starts_with(b"/") && !path.path().contains(&0));
                let moves = |segment: &[u8]| matches!(segment, b"" | b"." | b"..");
                let inner = path.relative();
                prop_assert!(inner.is_empty() || !inner.split(|&b| b == b'/').any(moves));
            }
        }
    }
}
