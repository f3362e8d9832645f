//! A request of siege, byte for byte. Owns the order and case of its fields. Start reading at [`bytes`].

use super::settings::Settings;
use super::urls::{Scheme, Url};

/// The parts of a request that depend on the user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Own {
    /// Values of the fields, if there are any.
    pub(super) authorization: Option<String>,
    pub(super) proxy_authorization: Option<String>,
    pub(super) cookie: Option<String>,
}

/// Path, or the whole URL for a proxy.
pub(super) fn target(settings: &Settings, url: &Url) -> String {
    if settings.proxy.is_none() {
        return url.target.clone();
    }
    format!("http://{}:{}{}", url.host, url.port, url.target)
}

/// Head and body.
pub(super) fn bytes(settings: &Settings, url: &Url, own: &Own) -> Vec<u8> {
    let is_old = !settings.is_http11 || settings.get || settings.print;
    let version = if is_old { "1.0" } else { "1.1" };
    let mut head = format!("{} {} HTTP/{version}\r\n", url.method.0, target(settings, url));
    let mut add = |name: &str, value: &str| head += &format!("{name}: {value}\r\n");
    if !settings.extra.to_ascii_lowercase().contains("host:") {
        let usual = if url.scheme == Scheme::Https { 443 } else { 80 };
        match url.port == usual {
            true => add("Host", &url.host),
            false => add("Host", &format!("{}:{}", url.host, url.port)),
        }
    }
    let fields = [
        ("Authorization", &own.authorization),
        ("Proxy-Authorization", &own.proxy_authorization),
        ("Cookie", &own.cookie),
    ];
    for (name, value) in fields {
        if let Some(value) = value {
            add(name, value);
        }
    }
    // Only if it is the first of them.
    if !super::conf::begins(&settings.extra, "Accept:") {
        add("Accept", "*/*");
    }
    add("Accept-Encoding", &settings.encoding);
    add("User-Agent", &settings.agent);
    head += &settings.extra;
    let mut add = |name: &str, value: &str| head += &format!("{name}: {value}\r\n");
    add("Connection", if settings.keep_alive { "keep-alive" } else { "close" });
    if url.method.posts() {
        add("Content-Type", &url.content_type);
        add("Content-Length", &url.body.len().to_string());
    }
    let mut bytes = (head + "\r\n").into_bytes();
    bytes.extend_from_slice(&url.body);
    bytes
}
