//! Requests as JSON lines, joust's own way: one object a line. Start reading at [`Line`].

use base64::Engine as _;
use serde::Deserialize;
use units::Nanos;

use super::harvest::{Fault, Harvest, instant, json_line};
use super::pairs::Pairs;
use super::{Base, Format, ListedRequest, Listing, SourceError, first_line, is_object, lines};

/// JSON lines.
pub(super) static FORMAT: Format = Format {
    name: "jsonl",
    about: "JSON lines: {\"method\",\"url\",\"headers\",\"body\"|\"body_base64\"|\"body_file\",\
            \"weight\",\"at\"}",
    looks_like: |text| is_object(first_line(text)),
    read,
};

/// An object. An unknown key is refused, because it is probably mistyped.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    url: String,
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    headers: Option<Pairs>,
    #[serde(default)]
    body: Option<String>,
    #[serde(default)]
    body_base64: Option<String>,
    #[serde(default)]
    body_file: Option<String>,
    #[serde(default)]
    weight: Option<u32>,
    #[serde(default)]
    at: Option<At>,
    /// Whether placeholders are intended; by default, if there are any.
    #[serde(default)]
    templated: Option<bool>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum At {
    Seconds(f64),
    Text(String),
}

fn read(text: &str, base: &Base<'_>) -> Result<Listing, SourceError> {
    let mut harvest = Harvest::new(base);
    for (number, line) in lines(text) {
        let pushed = push(line, &mut harvest);
        pushed.map_err(|fault| SourceError::new(base, Some(number), fault))?;
    }
    harvest.finish()
}

fn push(line: &str, harvest: &mut Harvest<'_>) -> Result<(), Fault> {
    let line: Line = serde_json::from_str(line).map_err(json_line)?;
    let body = match (line.body, line.body_base64, line.body_file) {
        (None, None, None) => Vec::new(),
        (Some(text), None, None) => text.into_bytes(),
        (None, Some(code), None) => base64::engine::general_purpose::STANDARD
            .decode(code)
            .map_err(|error| Fault::Format(format!("`body_base64` is no base64: {error}")))?,
        (None, None, Some(name)) => harvest.file(&name)?,
        _ => {
            let text = "two bodies: give one of `body`, `body_base64` and `body_file`";
            return Err(Fault::Format(text.to_owned()));
        }
    };
    let weight = line.weight.unwrap_or(1);
    if weight == 0 {
        return Err(Fault::Format("a weight is at least 1: leave the line out instead".to_owned()));
    }
    let asked = ListedRequest {
        method: line.method.unwrap_or_else(|| if body.is_empty() { "GET" } else { "POST" }.into()),
        headers: line.headers.map(|pairs| pairs.0).unwrap_or_default(),
        body,
        weight,
        at: line.at.map(at).transpose()?,
        ..ListedRequest::get(line.url)
    };
    match line.templated {
        Some(templated) => harvest.push(ListedRequest { templated, ..asked }),
        None => harvest.push_written(asked),
    }
}

/// Seconds, a duration with its unit, or a date and time.
fn at(at: At) -> Result<Nanos, Fault> {
    let found = match &at {
        // 292 years of nanoseconds: sums of such times do not overflow.
        At::Seconds(secs) => (0.0..9e9).contains(secs).then(|| Nanos::from_secs_f64(*secs)),
        At::Text(text) => {
            text.parse().ok().or_else(|| text.parse::<jiff::Timestamp>().ok().and_then(instant))
        }
    };
    let shown = match at {
        At::Seconds(secs) => secs.to_string(),
        At::Text(text) => text,
    };
    found.ok_or_else(|| {
        Fault::Format(format!(
            "`at` is `{}`: write seconds (1.5), a duration (\"1500ms\") or a date and time \
             (\"2026-01-31T12:00:00.5Z\")",
            shown.escape_debug()
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{listed, refuses, shown};

    #[test]
    fn every_key_says_what_it_says() {
        let text = "{\"url\": \"/a\"}\n\n# comment\n\
            {\"url\":\"http://h/\",\"body\":\"{seq}\",\"weight\":3}\n\
            {\"url\":\"http://h/\",\"body\":\"{seq}\",\"templated\":false}\n\
            {\"method\":\"PUT\",\"url\":\"http://h/b\",\"headers\":[[\"A\",\"1\"],[\"A\",\"2\"]],\
             \"body_base64\":\"AAH/\"}\n\
            {\"url\":\"http://h/c\",\"headers\":{\"A\":\"{rand}\"},\"body_file\":\"body.bin\"}\n";
        let listing = listed(text, "jsonl");
        let expected = [
            "GET http://base:81/a",
            "POST http://h/ || {seq}",
            "POST http://h/ || {seq}",
            "PUT http://h/b | A: 1 | A: 2 || \\x00\\x01\\xff",
            "POST http://h/c | A: {rand} || line\\r\\none\\x00",
        ];
        assert_eq!(shown(&listing), expected);
        let facts: Vec<_> = listing.asked.iter().map(|a| (a.weight, a.templated)).collect();
        assert_eq!(facts, [(1, false), (3, true), (1, false), (1, false), (1, true)]);
    }

    #[test]
    fn times_are_seconds_durations_or_dates() {
        let of = |at: &str| {
            let text = format!("{{\"url\":\"/\",\"at\":{at}}}");
            listed(&format!("{{\"url\":\"/\",\"at\":0}}\n{text}"), "jsonl").asked[1].at.unwrap().0
        };
        assert_eq!(of("1.5"), 1_500_000_000);
        assert_eq!(of("\"20ms\""), 20_000_000);
        assert_eq!(of("\"1970-01-01T00:00:01.25+00:00\""), 1_250_000_000);
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_its_line() {
        refuses(
            "jsonl",
            &[
                ("{\"url\":\"/\"}\n{\"uri\":\"/\"}", "file:2: unknown field `uri`"),
                ("{\"url\":\"/\",\"body\":\"\",\"body_file\":\"x\"}", "two bodies"),
                ("{\"url\":\"/\",\"weight\":0}", "at least 1"),
                ("{\"url\":\"/\",\"at\":-1}", "seconds (1.5)"),
                ("{\"url\":\"/\",\"at\":\"soon\"}", "`soon`"),
                ("{\"url\":\"/\",\"headers\":{\"A\":\"b\\nC: d\"}}", "not a header field"),
                ("{\"url\":\"/a b\"}", "percent-encode"),
                ("{\"url\":\"/\",\"method\":\"\"}", "not a method"),
                ("[]", "file:1: invalid length 0"),
            ],
        );
    }
}
