//! Listings of directories, as a page and as JSON. Owns their look and their escaping: as HTML for the text, as
//! percent-encoding for the link. Start reading at [`Listing::of`].

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io;

use jiff::Timestamp;
use sys::file::{Facts, FileKind, Opened};
use units::Bytes;

use super::hide::Hide;
use super::representation::{About, Representation};

/// A client that prefers JSON gets it.
const VARY: &str = "Accept";

const WRITES: &str = "a String takes every write";

/// In the colours of the reader's system; a long name is broken, so that it does not widen the page.
const STYLE: &str = "\
:root{color-scheme:light dark}\
body{font:15px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem}\
h1{font-size:1.4rem}h1,a{overflow-wrap:anywhere}\
table{border-collapse:collapse;width:100%}\
th,td{padding:.2rem .8rem .2rem 0;text-align:left;vertical-align:top;border-bottom:1px solid #8884;font-variant-numeric:tabular-nums}\
th+th,td+td{white-space:nowrap;width:1%}th:last-child,td:last-child{text-align:right;padding-right:0}\
@media(max-width:45rem){body{margin:1rem auto;font-size:13px}}";

/// What a line is about.
struct Line {
    name: Vec<u8>,
    facts: Facts,
}

/// The entries of a directory that may be seen, directories first, by name.
pub(super) struct Listing {
    lines: Vec<Line>,
    /// Entries beyond the bound, which are counted, not shown.
    left_out: u64,
}

impl Listing {
    /// `entries_max` entries of a directory.
    ///
    /// # Errors
    /// The directory could not be read.
    pub(super) fn of(opened: &Opened, hide: &Hide, entries_max: usize) -> io::Result<Self> {
        let (mut lines, mut left_out) = (Vec::new(), 0);
        opened.each_entry(|name, facts| {
            let name = name.to_bytes();
            if hide.hides(name) || facts.kind == FileKind::Other {
                return true;
            }
            if lines.len() < entries_max {
                lines.push(Line { name: name.to_vec(), facts });
            } else {
                left_out += 1;
            }
            true
        })?;
        lines.sort_by(|left, right| left.rank().cmp(&right.rank()));
        Ok(Self { lines, left_out })
    }

    /// The page for the normalised `path`, which ends in a slash.
    pub(super) fn html(&self, path: &[u8]) -> Representation {
        let page = render(&self.lines, path, self.left_out);
        Representation::page(page.into_bytes(), About::html(VARY))
    }

    /// The same as JSON: `href` leads to an entry whatever bytes its name has.
    pub(super) fn json(&self, path: &[u8]) -> Representation {
        let entries: Vec<_> = self.lines.iter().map(Line::json).collect();
        let document = serde_json::json!({
            "path": String::from_utf8_lossy(path),
            "entries": entries,
            "left_out": self.left_out,
        });
        let content_type = Cow::Borrowed("application/json");
        let about = About { content_type, ..About::html(VARY) };
        Representation::page(format!("{document:#}\n").into_bytes(), about)
    }
}

impl Line {
    fn rank(&self) -> (bool, &[u8]) {
        (self.facts.kind != FileKind::Directory, &self.name)
    }

    fn json(&self) -> serde_json::Value {
        let is_directory = self.facts.kind == FileKind::Directory;
        let mut href = String::from("./");
        escape_path(&self.name, &mut href);
        if is_directory {
            href.push('/');
        }
        serde_json::json!({
            "name": String::from_utf8_lossy(&self.name),
            "href": href,
            "type": if is_directory { "directory" } else { "file" },
            "size": (!is_directory).then_some(self.facts.size),
            "modified": self.modified().to_string(),
        })
    }

    fn modified(&self) -> Timestamp {
        Timestamp::from_second(self.facts.modified_s.cast_signed()).unwrap_or_default()
    }
}

fn render(lines: &[Line], path: &[u8], left_out: u64) -> String {
    let mut title = String::new();
    escape_html(&String::from_utf8_lossy(path), &mut title);
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>Index of {title}</title>\n<style>{STYLE}</style>\n\
         <h1>Index of {title}</h1>\n<table>\n<tr><th>Name<th>Modified (UTC)<th>Size\n"
    );
    if path != b"/" {
        page.push_str("<tr><td><a href=\"../\">../</a><td><td>\n");
    }
    lines.iter().for_each(|line| render_line(line, &mut page));
    page.push_str("</table>\n");
    if left_out > 0 {
        writeln!(page, "<p>and {left_out} more that are not shown").expect(WRITES);
    }
    page
}

fn render_line(line: &Line, page: &mut String) {
    let slash = if line.facts.kind == FileKind::Directory { "/" } else { "" };
    // Without `./` a name such as `javascript:x` would be a link of another scheme.
    page.push_str("<tr><td><a href=\"./");
    escape_path(&line.name, page);
    write!(page, "{slash}\">").expect(WRITES);
    escape_html(&String::from_utf8_lossy(&line.name), page);
    let at = line.modified();
    write!(page, "{slash}</a><td>{}<td>", at.strftime("%Y-%m-%d %H:%M:%S")).expect(WRITES);
    if line.facts.kind == FileKind::File {
        write!(page, "{}", Bytes(line.facts.size)).expect(WRITES);
    }
    page.push('\n');
}

/// As text of an element or of an attribute in quotes.
fn escape_html(text: &str, out: &mut String) {
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            letter => out.push(letter),
        }
    }
}

/// As the path of a URL. Percent-encodes what RFC 3986, 3.3 does not allow in a segment, and the quote and ampersand,
/// which also have a meaning in HTML.
pub(crate) fn escape_path(path: &[u8], out: &mut String) {
    for &byte in path {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' => out.push(char::from(byte)),
            b'-' | b'.' | b'_' | b'~' | b'/' | b'!' | b'$' | b'(' | b')' | b'*' | b'+' | b','
            | b'=' | b':' | b'@' => out.push(char::from(byte)),
            _ => write!(out, "%{byte:02X}").expect(WRITES),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &[u8], kind: FileKind) -> Line {
        let facts = Facts {
            kind,
            size: 3361,
            modified_s: 784_111_777,
            modified_ns: 0,
            inode: 1,
            device: 1,
        };
        Line { name: name.to_vec(), facts }
    }

    #[test]
    fn a_name_can_neither_run_nor_leave_its_line() {
        let hostile: [&[u8]; 4] = [
            b"<script>alert(1)</script>",
            b"\"onload=x",
            b"javascript:alert(1)",
            b"a\r\nb&c%2fd\xff",
        ];
        let lines: Vec<Line> = hostile.iter().map(|name| file(name, FileKind::File)).collect();
        let page = render(&lines, b"/<b>&/", 0);
        assert!(!page.contains("<script") && !page.contains("<b>") && !page.contains("\"onload"));
        assert!(page.contains("href=\"./javascript:alert(1)\""), "{page}");
        assert!(page.contains("href=\"./a%0D%0Ab%26c%252fd%FF\""), "{page}");
        assert!(page.contains("Index of /&lt;b&gt;&amp;/"));
    }

    #[test]
    fn what_is_left_out_is_counted() {
        let page = render(&[file(b"a", FileKind::File)], b"/", 7);
        assert!(page.contains("and 7 more") && !page.contains("../"), "{page}");
        assert!(page.contains("1994-11-06 08:49:37<td>3361 B"), "{page}");
    }
}
