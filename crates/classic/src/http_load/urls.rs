//! http_load's input files: URLs, and source addresses (-sip). Owns the parsing of a line. Start reading at
//! [`read_urls`].

use std::net::Ipv4Addr;
use std::path::Path;

use super::flags::fatal;
use crate::command::{Call, ExitMessage, Texts, atoi, strerror};

/// A line of the URL file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Url {
    /// As written there, for messages.
    pub(super) whole: String,
    pub(super) is_tls: bool,
    pub(super) host: String,
    pub(super) port: u16,
    /// From the first slash on.
    pub(super) path: String,
}

/// The URLs of a file, at least one.
///
/// # Errors
/// What http_load prints about the file or the first line that is not a URL. An empty file ends http_load by a division
/// by zero.
pub(super) fn read_urls(path: &Path, call: &Call<'_>) -> Result<Vec<Url>, ExitMessage> {
    let mut urls = Vec::new();
    for line in lines(path, call)? {
        let Some(url) = parse(&line) else {
            return Err(fatal(call, &format!("unknown protocol - {line}")));
        };
        urls.push(url);
    }
    if urls.is_empty() {
        return Err(fatal(call, &format!("no URL in {}", path.display())));
    }
    Ok(urls)
}

/// The addresses of a file; if there are none, the kernel chooses.
///
/// # Errors
/// What http_load prints about the file or the first line that is not an address.
pub(super) fn read_addresses(path: &Path, call: &Call<'_>) -> Result<Vec<Ipv4Addr>, ExitMessage> {
    let parse = |line: String| {
        line.parse().map_err(|_| fatal(call, &format!("cannot convert source IP address {line}")))
    };
    lines(path, call)?.into_iter().map(parse).collect()
}

/// Lines without their newline, otherwise unchanged: an empty line counts, and a carriage return stays.
fn lines(path: &Path, call: &Call<'_>) -> Result<Vec<String>, ExitMessage> {
    let name = path.display();
    let bytes = call.world.read(path).map_err(|error| {
        let texts = Texts::err(format!("{name}: {}\n", strerror(&error)));
        ExitMessage { texts, code: 1 }
    })?;
    let text = String::from_utf8(bytes)
        .map_err(|_| fatal(call, &format!("{name} is not UTF-8: write URLs percent-encoded")))?;
    let text = text.strip_suffix('\n').unwrap_or(&text);
    let lines = text.split('\n').map(str::to_owned).collect();
    Ok(if text.is_empty() { Vec::new() } else { lines })
}

fn parse(line: &str) -> Option<Url> {
    let (is_tls, rest) = match (line.strip_prefix("http://"), line.strip_prefix("https://")) {
        (Some(rest), _) => (false, rest),
        (_, Some(rest)) => (true, rest),
        _ => return None,
    };
    let end = rest.find([':', '/']).unwrap_or(rest.len());
    let (host, behind) = rest.split_at(end);
    let slash = behind.find('/').unwrap_or(behind.len());
    let (port, path) = behind.split_at(slash);
    let port = match port.strip_prefix(':') {
        Some(digits) => atoi(digits) as u16,
        None => {
            if is_tls {
                443
            } else {
                80
            }
        }
    };
    let path = if path.is_empty() { "/" } else { path };
    let (whole, host, path) = (line.to_owned(), host.to_owned(), path.to_owned());
    Some(Url { whole, is_tls, host, port, path })
}

#[cfg(test)]
mod tests {
    use crate::command::Chosen;
    use crate::command::Stream;
    use crate::command::testing::World;

    use super::*;

    fn read<T>(
        file: &'static [u8],
        read: fn(&Path, &Call<'_>) -> Result<T, ExitMessage>,
    ) -> Result<T, String> {
        let world = World { files: [("f", file)].into(), ..World::default() };
        let call = Call { program: "http_load", args: &[], own: &Chosen::default(), world: &world };
        read(Path::new("f"), &call).map_err(|said| {
            assert_eq!(said.code, 1);
            said.texts.on(Stream::Err)
        })
    }

    #[test]
    fn a_url_is_taken_apart_as_http_load_does() {
        let parts = |line| parse(line).map(|url| (url.is_tls, url.host, url.port, url.path));
        let is =
            |tls, host: &str, port, path: &str| Some((tls, host.to_owned(), port, path.to_owned()));
        assert_eq!(parts("http://h/a?b:c"), is(false, "h", 80, "/a?b:c"));
        assert_eq!(parts("https://h"), is(true, "h", 443, "/"));
        assert_eq!(parts("http://h:81x/a"), is(false, "h", 81, "/a"));
        assert_eq!(parts("http://h:81"), is(false, "h", 81, "/"));
        assert_eq!(parts("http://h/a\r"), is(false, "h", 80, "/a\r"), "as it stands there");
        assert_eq!((parts("h/a"), parts(""), parts("HTTP://h/")), (None, None, None));
    }

    #[test]
    fn a_file_has_a_url_a_line_and_nothing_else() {
        let urls = |file| read(file, read_urls);
        assert_eq!(urls(b"http://a/\nhttp://b/").unwrap().len(), 2);
        let unknown = Err("http_load: unknown protocol - \n".to_owned());
        assert_eq!(urls(b"http://a/\n\nhttp://b/\n"), unknown);
        assert_eq!(urls(b"# x\n").unwrap_err(), "http_load: unknown protocol - # x\n");
        assert_eq!(urls(b"").unwrap_err(), "http_load: no URL in f\n");
        assert_eq!(
            urls(b"http://\xff\n").unwrap_err(),
            "http_load: f is not UTF-8: write URLs percent-encoded\n"
        );
    }

    #[test]
    fn source_addresses_are_of_version_4() {
        let addresses = |file| read(file, read_addresses);
        assert_eq!(addresses(b"127.0.0.1\n127.0.0.2\n").unwrap().len(), 2);
        assert_eq!(
            addresses(b"127.0.0.1\n::1\n").unwrap_err(),
            "http_load: cannot convert source IP address ::1\n"
        );
    }
}
