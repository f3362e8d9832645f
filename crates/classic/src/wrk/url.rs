//! A URL as wrk parses it (like http_parser). Start reading at [`Url::parse`].

/// A URL.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Url {
    /// As typed.
    pub(super) whole: String,
    /// As typed: `HTTP` stays upper case.
    pub(super) scheme: String,
    /// Without brackets.
    pub(super) host: String,
    /// As typed; `None`: that of the scheme.
    pub(super) port: Option<String>,
    /// From the path to the end, with query and fragment. `/` if there is no path, even if there is a query.
    pub(super) path: String,
}

impl Url {
    /// `None`: wrk rejects the URL.
    pub(super) fn parse(whole: &str) -> Option<Self> {
        let (scheme, rest) = whole.split_once("://")?;
        if scheme.is_empty() || !scheme.bytes().all(|byte| byte.is_ascii_alphabetic()) {
            return None;
        }
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, behind) = rest.split_at(end);
        let (_user, place) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (host, port) = match place.strip_prefix('[') {
            Some(inside) => {
                let (host, behind) = inside.split_once(']')?;
                let is_address = |c: char| c.is_ascii_hexdigit() || ":.%".contains(c);
                (host.chars().all(is_address).then_some(host)?, behind)
            }
            None => {
                let colon = place.find(':').unwrap_or(place.len());
                let (host, behind) = place.split_at(colon);
                let is_name = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
                (host.chars().all(is_name).then_some(host)?, behind)
            }
        };
        let port = match port.strip_prefix(':') {
            Some(digits) => Some(digits),
            None => port.is_empty().then_some(None)?,
        };
        if let Some(digits) = port {
            let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
            (is_number && digits.parse::<u16>().is_ok()).then_some(())?;
        }
        let is_printed = |byte: u8| byte > b' ' && byte != 0x7f;
        if host.is_empty() || !behind.bytes().all(is_printed) {
            return None;
        }
        Some(Self {
            whole: whole.to_owned(),
            scheme: scheme.to_owned(),
            host: host.to_owned(),
            port: port.map(str::to_owned),
            path: if behind.starts_with('/') { behind } else { "/" }.to_owned(),
        })
    }

    /// Whether it uses TLS.
    pub(super) fn is_tls(&self) -> bool {
        self.scheme.starts_with("https")
    }

    /// The service to look up: the port number, or the name of the scheme.
    pub(super) fn service(&self) -> &str {
        self.port.as_deref().unwrap_or(&self.scheme)
    }
}

/// The port of a service; the known names are the schemes that are common in URLs.
pub(super) fn port_of(service: &str) -> Option<u16> {
    match service {
        "http" => Some(80),
        "https" => Some(443),
        "ftp" => Some(21),
        digits => digits.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_taken_apart_as_wrk_does() {
        let url = |text: &str| {
            let url = Url::parse(text)?;
            Some((url.host.clone(), url.service().to_owned(), url.path, url.scheme == "https"))
        };
        let parts = |host: &str, service: &str, path: &str, is_tls| {
            Some((host.to_owned(), service.to_owned(), path.to_owned(), is_tls))
        };
        assert_eq!(url("http://h/a?b#c"), parts("h", "http", "/a?b#c", false));
        assert_eq!(url("https://h:81"), parts("h", "81", "/", true));
        assert_eq!(url("http://h?x=1"), parts("h", "http", "/", false));
        assert_eq!(url("http://[::1]:81/x"), parts("::1", "81", "/x", false));
        assert_eq!(url("http://a:b@h/"), parts("h", "http", "/", false));
        assert_eq!(url("HTTP://h/"), parts("h", "HTTP", "/", false));
        let wrong = ["h/", "http://", "foo", "http://h:99999/", "http://h:x/", "http://[::1/"];
        for text in wrong.into_iter().chain(["://h/", "http://h/a b", "http://a b/", "http://h:/"])
        {
            assert_eq!(url(text), None, "{text}");
        }
        assert_eq!(["http", "8080", "HTTP", "x"].map(port_of), [Some(80), Some(8080), None, None]);
    }
}
