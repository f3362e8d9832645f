//! vegeta's targets, in its HTTP format and its JSON format. Start reading at [`FORMAT`]. Source:
//! tsenart/vegeta 12, `lib/targets.go` and README.

use std::iter::Peekable;

use base64::Engine as _;
use serde::Deserialize;

use super::harvest::{Fault, Harvest, json_line};
use super::pairs::Pairs;
use super::{
    Base, Format, ListedRequest, Listing, SourceError, first_line, is_absolute, is_object, lines,
};

/// vegeta's targets.
pub(super) static FORMAT: Format = Format {
    name: "vegeta",
    about: "vegeta's targets: `METHOD URL`, fields, `@bodyfile`, an empty line; or its JSON",
    looks_like,
    read,
};

/// A target in JSON, one a line; the body is base64.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Target {
    method: String,
    url: String,
    #[serde(default)]
    body: Option<String>,
    #[serde(default)]
    header: Option<Pairs>,
}

/// JSON lines are vegeta's if one has a `header`, in the singular, and all before it could be vegeta's: vegeta leaves
/// out what is empty. If none has one, both formats mean the same, except for bodies.
fn looks_like(text: &str) -> bool {
    let first = first_line(text);
    if !is_object(first) {
        return is_request_line(first);
    }
    let mut targets = lines(text).map_while(|(_, line)| serde_json::from_str::<Target>(line).ok());
    targets.any(|target| target.header.is_some())
}

fn is_request_line(line: &str) -> bool {
    line.split_once(' ').is_some_and(|(method, url)| {
        let url = url.trim();
        is_method(method) && (url.starts_with('/') || is_absolute(url))
    })
}

fn is_method(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_uppercase())
}

fn read(text: &str, base: &Base<'_>) -> Result<Listing, SourceError> {
    let mut harvest = Harvest::new(base);
    if is_object(first_line(text)) {
        for (number, line) in lines(text) {
            let pushed = from_json(line).and_then(|asked| harvest.push_written(asked));
            pushed.map_err(|fault| SourceError::new(base, Some(number), fault))?;
        }
        return harvest.finish();
    }
    let mut lines = text.lines().enumerate().map(|(index, line)| (index + 1, line)).peekable();
    while let Some((number, line)) = lines.next() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let mut at = number;
        let asked = from_lines(line, &mut lines, &mut at, &harvest);
        let pushed = asked.and_then(|asked| harvest.push_written(asked));
        pushed.map_err(|fault| SourceError::new(base, Some(at), fault))?;
    }
    harvest.finish()
}

fn from_json(line: &str) -> Result<ListedRequest, Fault> {
    let target: Target = serde_json::from_str(line).map_err(json_line)?;
    let body = target.body.unwrap_or_default();
    let body = base64::engine::general_purpose::STANDARD.decode(body).map_err(|error| {
        Fault::Format(format!("`body` is no base64 ({error}): vegeta's JSON has its bodies so"))
    })?;
    let headers = target.header.map(|pairs| pairs.0).unwrap_or_default();
    Ok(ListedRequest { method: target.method, headers, body, ..ListedRequest::get(target.url) })
}

/// A target from its request line to an empty line, the body, or the next request line. `at` is the
/// number of the line that was read last.
fn from_lines<'a>(
    line: &str,
    lines: &mut Peekable<impl Iterator<Item = (usize, &'a str)>>,
    at: &mut usize,
    harvest: &Harvest<'_>,
) -> Result<ListedRequest, Fault> {
    let (method, url) = line.split_once(' ').filter(|(method, _)| is_method(method)).ok_or_else(|| {
        Fault::Format(format!(
            "`{}` is no target: write METHOD URL, as in GET http://127.0.0.1/, and an empty line \
             between targets",
            line.escape_debug()
        ))
    })?;
    let mut asked = ListedRequest { method: method.to_owned(), ..ListedRequest::get(url.trim()) };
    while let Some((number, line)) = lines.next_if(|(_, line)| !is_request_line(line.trim())) {
        *at = number;
        let line = line.trim();
        if line.is_empty() {
            break;
        }
        if line.starts_with('#') {
            continue;
        }
        if let Some(name) = line.strip_prefix('@') {
            asked.body = match name.strip_prefix("<<") {
                Some(tag) => here_document(tag, lines)?,
                None => harvest.file(name)?,
            };
            break;
        }
        let (name, value) = line.split_once(':').ok_or_else(|| Fault::Field(line.to_owned()))?;
        asked.headers.push((name.trim().to_owned(), value.trim().to_owned()));
    }
    Ok(asked)
}

/// The lines up to one that is `tag` alone.
fn here_document<'a>(
    tag: &str,
    lines: &mut impl Iterator<Item = (usize, &'a str)>,
) -> Result<Vec<u8>, Fault> {
    let mut body = Vec::new();
    for (_, line) in lines {
        if line == tag {
            return Ok(body);
        }
        body.extend_from_slice(line.as_bytes());
        body.push(b'\n');
    }
    Err(Fault::Format(format!(
        "the body after `@<<{tag}` does not end: put `{tag}` alone on a line"
    )))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{listed, refuses, shown};

    /// The examples of vegeta's README.
    #[test]
    fn the_targets_of_the_readme_read_as_vegeta_reads_them() {
        let text = "GET http://goku:9090/path/to/dragon?item=ball\nGET http://user:9090/a\n\
            HEAD http://goku:9090/path/to/success\n\n# get a dragon ball\n\
            POST http://goku:9090/things\nX-Account-ID: 8675309\n# between\nA:b\n@a/b.json\n\
            DELETE http://goku:9090/path\nConfirmation-Token: 90215\n\n\
            PATCH http://goku:9090/x\n@<<END\nline one\n\nGET line\nEND\nGET http://goku:9090/last";
        let expected = [
            "GET http://goku:9090/path/to/dragon?item=ball",
            "GET http://user:9090/a",
            "HEAD http://goku:9090/path/to/success",
            "POST http://goku:9090/things | X-Account-ID: 8675309 | A: b || {\\\"n\\\":{seq}}",
            "DELETE http://goku:9090/path | Confirmation-Token: 90215",
            "PATCH http://goku:9090/x || line one\\n\\nGET line\\n",
            "GET http://goku:9090/last",
        ];
        assert_eq!(shown(&listed(text, "vegeta")), expected);
    }

    /// From the manual of `vegeta -format=json`.
    #[test]
    fn json_targets_have_base64_bodies_and_lists_of_values() {
        let text = "{\"method\":\"POST\",\"url\":\"http://goku:9090/1\",\"body\":\"UFVOQ0gh\",\
            \"header\":{\"Content-Type\":[\"text/plain\"],\"A\":[\"b\",\"c\"]}}\n\
            {\"method\":\"GET\",\"url\":\"http://goku:9090/2\"}\n";
        let expected = [
            "POST http://goku:9090/1 | Content-Type: text/plain | A: b | A: c || PUNCH!",
            "GET http://goku:9090/2",
        ];
        assert_eq!(shown(&listed(text, "vegeta")), expected);
    }

    #[test]
    fn json_targets_are_known_by_any_header_among_them() {
        let bare = "{\"method\":\"GET\",\"url\":\"http://goku:9090/1\"}\n";
        let text = format!(
            "{}{{\"method\":\"GET\",\"url\":\"http://goku:9090/2\",\"header\":{{\"A\":[\"b\"]}}}}\n{bare}",
            bare.repeat(3)
        );
        assert_eq!(listed(&text, "vegeta").asked.len(), 5);
        assert_eq!(listed(&bare.repeat(2), "jsonl").asked.len(), 2);
        listed(&format!("{{\"url\":\"http://a/\",\"weight\":2}}\n{bare}"), "jsonl");
    }

    #[test]
    fn what_is_no_target_is_refused_with_its_line() {
        refuses(
            "vegeta",
            &[
                ("GET http://a/\n\nget http://b/", "file:3: `get http://b/` is no target"),
                ("GET http://a/\nnonsense", "file:2: `nonsense` is not a header field"),
                ("GET http://a/\n@none", "file:2: cannot read `none`"),
                ("PUT http://a/\n@<<E\nx", "does not end"),
                ("{\"method\":\"GET\",\"url\":\"/\",\"body\":\"?\"}", "no base64"),
                ("{\"method\":\"GET\"}", "file:1: missing field `url`"),
            ],
        );
    }
}
