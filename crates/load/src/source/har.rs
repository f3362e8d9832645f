//! What a browser recorded: HTTP Archive 1.2. Start reading at [`FORMAT`]. Source:
//! <http://www.softwareishard.com/blog/har-12-spec/>.
//!
//! A browser's connection is not ours: fields about it (Connection, HTTP/2's pseudo-fields, Content-Length, Host) are
//! left out and written anew.

use base64::Engine as _;
use serde::Deserialize;

use super::harvest::{Fault, Harvest, instant};
use super::{Base, Format, ListedRequest, Listing, SourceError, is_absolute};

/// HTTP Archive.
pub(super) static FORMAT: Format = Format {
    name: "har",
    about: "an HTTP Archive that a browser saved, asked again at its times",
    looks_like,
    read,
};

/// Fields of a connection or of framing (RFC 9110, 7.6.1), which are ours to write.
const OF_THE_CONNECTION: [&str; 11] = [
    "host",
    "connection",
    "content-length",
    "transfer-encoding",
    "keep-alive",
    "proxy-connection",
    "upgrade",
    "http2-settings",
    "te",
    "trailer",
    "expect",
];

#[derive(Deserialize)]
struct Archive {
    log: Log,
}

#[derive(Deserialize)]
struct Log {
    entries: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    started_date_time: Option<String>,
    request: Request,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    method: String,
    url: String,
    #[serde(default)]
    headers: Vec<Pair>,
    #[serde(default)]
    post_data: Option<PostData>,
}

#[derive(Deserialize)]
struct Pair {
    name: String,
    #[serde(default)]
    value: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PostData {
    #[serde(default)]
    mime_type: String,
    #[serde(default)]
    text: Option<String>,
    /// Not in the specification, but Chrome and Firefox write "base64" here.
    #[serde(default)]
    encoding: Option<String>,
    #[serde(default)]
    params: Vec<Pair>,
}

fn looks_like(text: &str) -> bool {
    let start: String = text.chars().filter(|c| !c.is_whitespace()).take(7).collect();
    start == "{\"log\":"
}

fn read(text: &str, base: &Base<'_>) -> Result<Listing, SourceError> {
    let refuse = |fault| SourceError::new(base, None, fault);
    let archive: Archive = serde_json::from_str(text).map_err(|error| {
        SourceError::new(base, Some(error.line()).filter(|&line| line > 0), Fault::Json(error))
    })?;
    let mut harvest = Harvest::new(base);
    let mut n_passed = 0u64;
    for (index, entry) in archive.log.entries.into_iter().enumerate() {
        if !is_absolute(&entry.request.url) {
            n_passed += 1;
            continue;
        }
        let asked = asked(entry).and_then(|asked| harvest.push(asked));
        asked.map_err(|fault| {
            refuse(Fault::Format(format!("entry {} of log.entries: {fault}", index + 1)))
        })?;
    }
    if n_passed > 0 {
        harvest.note(format!(
            "entries that are neither http nor https (data, blob, ws) and are passed over: {n_passed}"
        ));
    }
    harvest.finish()
}

fn asked(entry: Entry) -> Result<ListedRequest, Fault> {
    let request = entry.request;
    let at = entry.started_date_time.map(|text| {
        text.parse::<jiff::Timestamp>().ok().and_then(instant).ok_or_else(|| {
            Fault::Format(format!(
                "`{}` is no time: startedDateTime is written 2026-01-31T12:00:00.500Z",
                text.escape_debug()
            ))
        })
    });
    let is_ours = |name: &str| {
        name.starts_with(':') || OF_THE_CONNECTION.iter().any(|n| n.eq_ignore_ascii_case(name))
    };
    let fields = request.headers.into_iter().filter(|field| !is_ours(&field.name));
    let mut asked = ListedRequest {
        method: request.method,
        headers: fields.map(|field| (field.name, field.value)).collect(),
        at: at.transpose()?,
        // A fragment stays in the browser, but some tools record it.
        ..ListedRequest::get(request.url.split('#').next().unwrap_or_default())
    };
    if let Some(data) = request.post_data {
        if !data.mime_type.is_empty() && !asked.has_field("content-type") {
            asked.headers.push(("Content-Type".to_owned(), data.mime_type.clone()));
        }
        asked.body = body(data)?;
    }
    Ok(asked)
}

fn body(data: PostData) -> Result<Vec<u8>, Fault> {
    match (data.text, data.encoding.as_deref()) {
        (Some(text), Some("base64")) => base64::engine::general_purpose::STANDARD
            .decode(text)
            .map_err(|error| Fault::Format(format!("postData.text is no base64: {error}"))),
        (Some(text), None | Some("")) => Ok(text.into_bytes()),
        (Some(_), Some(other)) => Err(Fault::Format(format!(
            "postData.encoding is `{}`: it is base64, or not there",
            other.escape_debug()
        ))),
        (None, _) if data.mime_type.starts_with("multipart/") && !data.params.is_empty() => {
            Err(Fault::Format(
                "postData has the parts of a form and not its text, and their boundary is lost: \
                 record it with its text, or remove the entry"
                    .to_owned(),
            ))
        }
        (None, _) => {
            let pair = |pair: &Pair| {
                format!("{}={}", super::form_encoded(&pair.name), super::form_encoded(&pair.value))
            };
            Ok(data.params.iter().map(pair).collect::<Vec<_>>().join("&").into_bytes())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{listed, refuses, shown};

    /// The shape that Chrome saves, cut to what matters, and the parameters of the specification.
    #[test]
    fn an_archive_is_asked_again_without_what_was_the_browsers_connection() {
        let text = r##"{
          "log": {"version": "1.2", "creator": {"name": "WebInspector", "version": "537.36"},
            "pages": [], "entries": [
            {"startedDateTime": "2026-01-31T12:00:01.250Z", "time": 3.2, "request": {
              "method": "POST", "url": "https://shop.test/cart?a=%20#x", "httpVersion": "http/2.0",
              "headers": [{"name": ":authority", "value": "shop.test"},
                {"name": "content-length", "value": "5"}, {"name": "Host", "value": "shop.test"},
                {"name": "connection", "value": "keep-alive"},
                {"name": "content-type", "value": "application/json"},
                {"name": "cookie", "value": "s=1"}],
              "queryString": [], "cookies": [], "headersSize": -1, "bodySize": 5,
              "postData": {"mimeType": "application/json", "text": "{\"n\"}"}},
             "response": {"status": 200}},
            {"startedDateTime": "2026-01-31T13:00:01+01:00", "request": {
              "method": "GET", "url": "http://shop.test/{seq}", "headers": []}},
            {"startedDateTime": "2026-01-31T12:00:02Z", "request": {
              "method": "GET", "url": "data:image/png;base64,AA=="}},
            {"startedDateTime": "2026-01-31T12:00:03Z", "request": {
              "method": "POST", "url": "http://shop.test/form", "headers": [],
              "postData": {"mimeType": "application/x-www-form-urlencoded",
                "params": [{"name": "a b", "value": "c&d"}, {"name": "e"}]}}},
            {"startedDateTime": "2026-01-31T12:00:04Z", "request": {
              "method": "PUT", "url": "http://shop.test/raw", "headers": [],
              "postData": {"mimeType": "", "encoding": "base64", "text": "AP8="}}}
          ]}}"##;
        let listing = listed(text, "har");
        let expected = [
            "GET http://shop.test/{seq}",
            "POST https://shop.test/cart?a=%20 | content-type: application/json | cookie: s=1 \
             || {\\\"n\\\"}",
            "POST http://shop.test/form | Content-Type: application/x-www-form-urlencoded \
             || a+b=c%26d&e=",
            "PUT http://shop.test/raw || \\x00\\xff",
        ];
        assert_eq!(shown(&listing), expected);
        let at: Vec<u64> = listing.asked.iter().map(|a| a.at.unwrap().0 / 1_000_000).collect();
        assert_eq!(at, [0, 250, 2000, 3000]);
        assert!(listing.notes[0].ends_with(": 1") && !listing.asked[0].templated);
    }

    #[test]
    fn what_is_no_archive_is_refused() {
        let entry =
            |request: &str| format!("{{\"log\":{{\"entries\":[{{\"request\":{request}}}]}}}}");
        let cases = [
            ("{\"log\":\n{}}".to_owned(), "file:2: missing field `entries`"),
            ("{\"log\":{\"entries\":[]}}".to_owned(), "no request"),
            (entry("{\"method\":\"\",\"url\":\"http://a/\"}"), "entry 1 of log.entries: `` is no"),
            (
                entry(
                    "{\"method\":\"POST\",\"url\":\"http://a/\",\"postData\":{\"mimeType\":\
                     \"multipart/form-data\",\"params\":[{\"name\":\"a\"}]}}",
                ),
                "boundary is lost",
            ),
            (
                entry("{\"method\":\"GET\",\"url\":\"http://a/\"}")
                    .replace("\"request\"", "\"startedDateTime\":\"noon\",\"request\""),
                "`noon` is no time",
            ),
        ];
        for (text, part) in cases {
            refuses("har", &[(&text, part)]);
        }
    }
}
