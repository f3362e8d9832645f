//! A server that already runs, here or on another machine: the lab neither starts nor ends it, and knows nothing of
//! its processes. Only plain HTTP, as for all others.

use std::net::IpAddr;
use std::path::PathBuf;

use super::values::{SettingKind, SettingSpec, Values};
use super::{
    Adapter, AdapterError, Answers, Found, Parity, Reached, Rendered, Request, Role, SERVER,
    Search, shown,
};

/// A server elsewhere.
pub(super) static ITEM: Adapter = Adapter {
    name: "url",
    about: "a server that runs already: not started, no figures of its processes",
    find: |_: &Search| Some(Found { binary: PathBuf::new(), version: String::new() }),
    settings: SETTINGS,
    role: Role::RunsAlready,
    agree,
    configure,
    parity: |_, _| Parity {
        answers: Answers::unknown(HIDDEN),
        shown: shown([("user", "unknown".to_owned())]),
    },
    ways: &[],
    note,
    ..SERVER
};

/// Why its switches are not known.
const HIDDEN: &str = "it runs elsewhere: only what is visible from outside is known";

static SETTINGS: &[SettingSpec] = &[SettingSpec::new(
    "url",
    SettingKind::Word,
    "(must be given)",
    "Where it is: http://HOST:PORT, or with the path of a page to ask for in place of the study's. The \
     page must be as long as the study says.",
)];

/// The parts of a URL.
#[derive(Debug, PartialEq, Eq)]
struct Parts<'a> {
    /// Without brackets.
    host: &'a str,
    /// With port: "10.0.0.7:80", "[::1]:80".
    authority: String,
    /// The target that the URL names; `None` if the study names it.
    target: Option<&'a str>,
}

/// # Errors
/// What is wrong with it, and the way out.
fn parts(url: &str) -> Result<Parts<'_>, String> {
    let rest = match url.split_once("://") {
        Some(("http", rest)) => rest,
        Some(("https", _)) => {
            return Err(
                "studies speak plain HTTP: take http://, or `joust load` for https".to_owned()
            );
        }
        _ => return Err(format!("`url` must be http://HOST:PORT, got `{url}`")),
    };
    let (place, target) = match rest.find('/') {
        Some(at) => (&rest[..at], &rest[at..]),
        None => (rest, "/"),
    };
    let (host, port) = match place.strip_prefix('[') {
        Some(inside) => {
            let (host, behind) =
                inside.split_once(']').ok_or("the [ of its address is not closed")?;
            (host, behind.strip_prefix(':'))
        }
        None => place.split_once(':').map_or((place, None), |(host, port)| (host, Some(port))),
    };
    let port = port.unwrap_or("80");
    if host.is_empty() || host.contains(['@', '?', '#']) {
        return Err(format!("`{url}` has no host: write http://HOST:PORT"));
    }
    if port.parse::<u16>().is_ok_and(|port| port > 0) {
        let host_part = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        let authority = format!("{host_part}:{port}");
        return Ok(Parts { host, authority, target: (target != "/").then_some(target) });
    }
    Err(format!("the port must be from 1 to 65535, got `{port}`"))
}

fn agree(values: &Values) -> Result<(), AdapterError> {
    let refused = |reason| AdapterError::Disagree { server: ITEM.name, reason };
    let url = values.given("url").ok_or_else(|| {
        refused("it has no `url`: write settings.url = \"http://HOST:PORT\"".to_owned())
    })?;
    parts(url).map(drop).map_err(|reason| refused(format!("`url`: {reason}")))
}

fn configure(_: &Request, values: &Values) -> Rendered {
    let parts = parts(values.text("url")).expect("the URL was checked on reading");
    let reached =
        Reached::At { authority: parts.authority, target: parts.target.map(str::to_owned) };
    Rendered { reached, ..Rendered::of(Vec::new()) }
}

/// What to tell the user before a load leaves this machine; `None` if it does not.
fn note(values: &Values) -> Option<String> {
    let parts = parts(values.text("url")).ok()?;
    let is_here = parts.host.eq_ignore_ascii_case("localhost")
        || parts.host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
    (!is_here).then(|| {
        format!(
            "the load goes to {}, which is not a loopback address: load only machines that you may \
             load; the network between is part of what is measured",
            parts.authority
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart() {
        let all = parts("http://10.0.0.7:8080/a?b").unwrap();
        assert_eq!((all.host, all.authority.as_str()), ("10.0.0.7", "10.0.0.7:8080"));
        assert_eq!(all.target, Some("/a?b"));
        let bare = parts("http://example.org").unwrap();
        assert_eq!((bare.authority.as_str(), bare.target), ("example.org:80", None));
        let six = parts("http://[::1]:81/").unwrap();
        assert_eq!((six.host, six.authority.as_str(), six.target), ("::1", "[::1]:81", None));
    }

    #[test]
    fn what_is_no_url_is_refused_with_the_way_out() {
        for (url, words) in [
            ("https://a", "joust load"),
            ("example.org:80", "http://HOST:PORT"),
            ("http://", "no host"),
            ("http://a@b", "no host"),
            ("http://a:0", "from 1 to 65535"),
            ("http://a:x", "from 1 to 65535"),
            ("http://[::1", "not closed"),
        ] {
            let error = parts(url).unwrap_err();
            assert!(error.contains(words), "{url}: {error}");
        }
    }
}
