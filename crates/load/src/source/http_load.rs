//! http_load's list of URLs: one absolute URL a line, nothing else. Start reading at [`FORMAT`]. Source:
//! `http_load.c`, 12mar2006, `read_url_file`.

use super::harvest::Harvest;
use super::{Base, Format, ListedRequest, Listing, SourceError, is_absolute};

/// http_load's list of URLs.
pub(super) static FORMAT: Format =
    Format { name: "http_load", about: "a list of absolute URLs, one a line", looks_like, read };

fn looks_like(text: &str) -> bool {
    let is_url = |line: &str| is_absolute(line) && !line.contains([' ', '\t', '$']);
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty()).peekable();
    lines.peek().is_some() && lines.all(is_url)
}

/// Skips empty lines, at which http_load would end with `unknown protocol`.
fn read(text: &str, base: &Base<'_>) -> Result<Listing, SourceError> {
    let mut harvest = Harvest::new(base);
    for (index, line) in text.lines().enumerate() {
        if !line.trim().is_empty() {
            let pushed = harvest.push_written(ListedRequest::get(line.trim()));
            pushed.map_err(|fault| SourceError::new(base, Some(index + 1), fault))?;
        }
    }
    harvest.finish()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{listed, refuses, shown};

    #[test]
    fn each_line_is_a_url() {
        let text = "http://localhost/index.html\r\n\nhttps://localhost:8443/a?b={seq}\n";
        let listing = listed(text, "http_load");
        let expected = ["GET http://localhost/index.html", "GET https://localhost:8443/a?b={seq}"];
        assert_eq!(shown(&listing), expected);
        assert_eq!([listing.asked[0].templated, listing.asked[1].templated], [false, true]);
    }

    #[test]
    fn what_is_no_url_is_refused_with_its_line() {
        refuses(
            "http_load",
            &[("http://a/\nhttp://a/ b", "file:2: `http://a/ b`"), ("", "no request")],
        );
    }
}
