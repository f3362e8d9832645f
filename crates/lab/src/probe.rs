//! Owns one request made alone, to see whether a server answers and with what: the same request that a load would
//! make, on a connection of its own.

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;

use load::{FetchError, Fetched};
use record::{LoadPlan, LoadStop, Origin, ServerAddress};
use units::Nanos;

/// Where a server is, and its name in requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// Its address.
    pub socket: SocketAddr,
    /// The Host field: an address, or the name that was resolved, with the port.
    pub host: String,
}

impl From<SocketAddr> for Address {
    fn from(socket: SocketAddr) -> Self {
        Self { socket, host: socket.to_string() }
    }
}

impl Address {
    /// As a load has it.
    pub fn origin(&self) -> Origin {
        Origin { place: ServerAddress::Inet(self.socket), host: self.host.clone(), tls_name: None }
    }

    /// A load of `requests` for `target`, one after the other on one connection; each phase of each
    /// may take `timeout`.
    pub(crate) fn plan(&self, target: &str, requests: u64, timeout: Nanos) -> LoadPlan {
        LoadPlan {
            origins: vec![self.origin()],
            connections: 1,
            keep_alive: requests > 1,
            stop: LoadStop { requests: Some(requests), duration: None },
            timeout,
            raw_max: 0,
            ..LoadPlan::get(self.socket, target)
        }
    }
}

/// Where a reply redirects a request for `target`, and what a study has to ask for instead; `None` if it is no
/// redirect.
pub(crate) fn redirect(reply: &Fetched, target: &str) -> Option<String> {
    if !record::is_redirect(reply.status) {
        return None;
    }
    let field = |line: &str| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("location").then(|| value.trim().to_owned())
    };
    let location = reply.head.lines().find_map(field)?;
    let way_out = match leads_to(target, &location).filter(|path| path != target) {
        Some(path) => format!("ask for that: `[workload] target = \"{path}\"`"),
        None => "studies follow no redirects".to_owned(),
    };
    Some(format!("it redirects {target} to `{location}` ({}); {way_out}", reply.status))
}

/// The path that a Location means over plain HTTP (RFC 3986, 5.2, without `..`); `None` if there is none.
fn leads_to(target: &str, location: &str) -> Option<String> {
    let path = match location.split_once("://") {
        Some(("http", rest)) => rest.find('/').map_or("/", |at| &rest[at..]).to_owned(),
        Some(_) => return None,
        None if location.starts_with("//") || location.contains("..") => return None,
        None if location.starts_with('/') => location.to_owned(),
        None => {
            let folder = &target[..=target.rfind('/')?];
            format!("{folder}{}", location.strip_prefix("./").unwrap_or(location))
        }
    };
    path.chars().all(|c| c.is_ascii_graphic()).then_some(path)
}

/// Asks for `target`; each phase of the request may take `timeout`.
///
/// # Errors
/// There was no complete reply. A status of any kind is no error.
pub(crate) fn get(address: &Address, target: &str, timeout: Nanos) -> Result<Fetched, FetchError> {
    load::fetch(&address.plan(target, 1, timeout))
}

/// As [`get`], but gives up soon after `interrupt`.
///
/// # Errors
/// As there, and [`FetchError::Interrupted`].
pub(crate) fn get_until(
    address: &Address,
    target: &str,
    timeout: Nanos,
    interrupt: &AtomicBool,
) -> Result<Fetched, FetchError> {
    load::fetch_until(&address.plan(target, 1, timeout), interrupt)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_names_its_location_and_the_target_that_it_means() {
        let told = |status, location: &str| {
            let head =
                format!("HTTP/1.1 {status} Moved\nlocation: {location}\nContent-Length: 0\n");
            redirect(&Fetched { status, head, body: Vec::new() }, "/index.html")
        };
        // Go's FileServer.
        let go =
            "it redirects /index.html to `./` (301); ask for that: `[workload] target = \"/\"`";
        assert_eq!(told(301, "./").unwrap(), go);
        let cases = [
            ("/", Some("/")),
            ("/home/", Some("/home/")),
            ("home.html", Some("/home.html")),
            ("http://a.test", Some("/")),
            ("http://a.test:8080/x?y=1", Some("/x?y=1")),
            ("https://a.test/", None),
            ("//a.test/x", None),
            ("../x", None),
            // A redirect to itself.
            ("/index.html", None),
        ];
        for (location, target) in cases {
            let told = told(302, location).unwrap();
            assert!(told.contains(&format!("to `{location}` (302)")), "{told}");
            match target {
                Some(path) => assert!(told.contains(&format!("target = \"{path}\"")), "{told}"),
                None => assert!(told.ends_with("studies follow no redirects"), "{told}"),
            }
        }
        assert_eq!(told(404, "/"), None);
        assert_eq!(told(304, "/"), None);
    }
}
