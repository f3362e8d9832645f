//! What a program gets to know of its request (RFC 3875, 4.1): the variables of its environment, or the parameters of a
//! FastCGI application, which are the same. Owns which variables there are. Start reading at [`Environment::of`].
//!
//! Nothing of the server's own environment is passed on. A field of the request becomes `HTTP_NAME` only if its name
//! consists of letters, digits and `-`. Otherwise `_` and `-` would give the same variable, and a client could set what
//! a proxy before us removed. `Proxy` is never passed on: HTTP_PROXY is a setting of programs ("httpoxy",
//! CVE-2016-5385). Nor are Authorization and Proxy-Authorization, unless that is asked for.

use std::ffi::CStr;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use wire::Fields;
use wire::target::divide_absolute;

use super::script::Script;
use super::{Gateway, Requested};
use crate::config::GatewayKind;

/// Where programs look for programs, unless `env` says otherwise.
pub(super) const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Fields that have a variable of their own, or that programs must not get.
const NOT_PASSED: [&str; 4] = ["Content-Type", "Content-Length", "Transfer-Encoding", "Proxy"];

/// Fields that hold secrets of the client.
const SECRET: [&str; 2] = ["Authorization", "Proxy-Authorization"];

/// Variables, in order.
#[derive(Debug, Default)]
pub(super) struct Environment {
    /// All of them as `NAME=VALUE` and NUL.
    bytes: Vec<u8>,
    /// Where in it each begins, where its `=` stands, and where it ends (its NUL).
    places: Vec<[usize; 3]>,
}

/// What a request is about, as far as no file and no field says it.
#[derive(Debug)]
pub(super) struct About<'a> {
    pub(super) gateway: &'a Gateway,
    /// Directory of the site.
    pub(super) document_root: &'a Path,
    pub(super) script: &'a Script,
    pub(super) requested: &'a Requested<'a>,
    /// Path and query that led to the script: the client's, or of a redirect within the server.
    pub(super) target: &'a [u8],
    /// It came here by a redirect within the server, so that it is GET, without a body.
    pub(super) is_redirected: bool,
    /// Bytes of the body; `None`: there is none.
    pub(super) content_length: Option<u64>,
    /// The server's end of the connection.
    pub(super) server: SocketAddr,
}

impl Environment {
    /// All variables of a request.
    pub(super) fn of(about: &About<'_>) -> Self {
        let mut variables = Self::default();
        let Line { method, authority, uri, fields } = Line::of(about.requested.head);
        variables.of_server(about, authority.or(fields.get("host")));
        variables.of_client(about.requested.client);
        if let Some(user) = about.requested.user {
            variables.set("AUTH_TYPE", "Basic");
            variables.set("REMOTE_USER", user);
        }
        let method = if about.is_redirected && method != b"HEAD" { b"GET" } else { method };
        variables.set("REQUEST_METHOD", method);
        variables.set("REQUEST_URI", uri);
        let query = about.target.iter().position(|&byte| byte == b'?');
        variables.set("QUERY_STRING", query.map_or(&b""[..], |at| &about.target[at + 1..]));
        variables.of_script(about);
        if let Some(length) = about.content_length {
            variables.set("CONTENT_LENGTH", length.to_string());
        }
        if let Some(kind) = fields.get("content-type").filter(|_| !about.is_redirected) {
            variables.set("CONTENT_TYPE", kind);
        }
        variables.of_fields(fields, about.gateway.config.pass_authorization);
        if let Some(authority) = authority {
            variables.set("HTTP_HOST", authority);
        }
        variables.set("PATH", PATH);
        for (name, value) in &about.gateway.config.env {
            variables.set(name, value);
        }
        variables
    }

    /// Each as `NAME=VALUE`.
    pub(super) fn strings(&self) -> impl Iterator<Item = &CStr> {
        self.places.iter().map(|&[start, _, end]| {
            CStr::from_bytes_with_nul(&self.bytes[start..=end])
                .expect("no value holds a NUL, and each ends with one")
        })
    }

    /// Name and value of each.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.places
            .iter()
            .map(|&[start, equals, end]| (&self.bytes[start..equals], &self.bytes[equals + 1..end]))
    }

    /// Sets a variable; replaces one of the same name.
    fn set(&mut self, name: &str, value: impl AsRef<[u8]>) {
        let is_it =
            |&[start, equals, _]: &[usize; 3]| self.bytes[start..equals] == *name.as_bytes();
        if let Some(at) = self.places.iter().position(is_it) {
            self.places.remove(at);
        }
        let value = value.as_ref();
        let start = self.bytes.len();
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(b'=');
        // Checked heads and paths hold no NUL, and a setting with one was refused.
        self.bytes.extend(value.iter().filter(|&&byte| byte != 0));
        self.places.push([start, start + name.len(), self.bytes.len()]);
        self.bytes.push(0);
    }

    fn of_server(&mut self, about: &About<'_>, host: Option<&[u8]>) {
        let address = about.server.ip().to_canonical().to_string();
        self.set("GATEWAY_INTERFACE", "CGI/1.1");
        self.set("SERVER_SOFTWARE", "joust");
        self.set("SERVER_PROTOCOL", about.requested.version.as_str());
        let name = host.map(without_port).filter(|name| !name.is_empty());
        self.set("SERVER_NAME", name.unwrap_or(address.as_bytes()));
        self.set("SERVER_ADDR", &address);
        self.set("SERVER_PORT", about.server.port().to_string());
        self.set("DOCUMENT_ROOT", about.document_root.as_os_str().as_bytes());
        self.set("REQUEST_SCHEME", if about.requested.is_secure { "https" } else { "http" });
        if about.requested.is_secure {
            self.set("HTTPS", "on");
        }
    }

    fn of_client(&mut self, client: SocketAddr) {
        self.set("REMOTE_ADDR", client.ip().to_canonical().to_string());
        self.set("REMOTE_PORT", client.port().to_string());
    }

    fn of_script(&mut self, about: &About<'_>) {
        let Script { url, info, file, .. } = about.script;
        self.set("SCRIPT_NAME", url);
        if let Some(file) = file {
            self.set("SCRIPT_FILENAME", file.to_bytes());
        }
        // Empty and absent mean the same (4.1), and Python's wsgiref.validate fails on an absent one.
        self.set("PATH_INFO", info.as_deref().unwrap_or_default());
        if let Some(info) = info {
            let root = about.document_root.as_os_str().as_bytes();
            let root = root.strip_suffix(b"/").unwrap_or(root);
            self.set("PATH_TRANSLATED", [root, info].concat());
        }
        let gateway = &about.gateway.config;
        if gateway.kind == GatewayKind::FastCgi || gateway.interpreter.is_some() {
            // php-cgi runs nothing without it (cgi.force_redirect): it shows that a server called it.
            self.set("REDIRECT_STATUS", "200");
        }
    }

    /// The fields of the request; values of one name as one list (RFC 3875, 4.1.18).
    fn of_fields(&mut self, fields: Fields<'_>, pass_authorization: bool) {
        let mut variables: Vec<(String, Vec<u8>)> = Vec::new();
        for (name, value) in fields {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
            let is_one_of = |names: &[&str]| names.iter().any(|n| n.eq_ignore_ascii_case(name));
            let is_secret = !pass_authorization && is_one_of(&SECRET);
            if !name.bytes().all(is_plain) || is_one_of(&NOT_PASSED) || is_secret {
                continue;
            }
            let name = format!("HTTP_{}", name.replace('-', "_").to_ascii_uppercase());
            match variables.iter_mut().find(|(known, _)| *known == name) {
                Some((_, list)) => {
                    // Cookies are no list (RFC 9113, 8.2.3).
                    let between = if name == "HTTP_COOKIE" { "; " } else { ", " };
                    list.extend_from_slice(between.as_bytes());
                    list.extend_from_slice(value);
                }
                None => variables.push((name, value.to_owned())),
            }
        }
        for (name, value) in &variables {
            self.set(name, value);
        }
    }
}

/// The parts of a checked head.
struct Line<'a> {
    method: &'a [u8],
    /// The authority of a target in absolute form, which takes precedence over Host (RFC 9112, 3.2.2).
    authority: Option<&'a [u8]>,
    /// Path and query as received.
    uri: &'a [u8],
    fields: Fields<'a>,
}

impl<'a> Line<'a> {
    fn of(head: &'a [u8]) -> Self {
        let head = head.strip_prefix(b"\r\n").unwrap_or(head);
        let mut words = head.splitn(3, |&byte| byte == b' ');
        let [method, target] = [(); 2].map(|()| words.next().unwrap_or_default());
        let absolute = std::str::from_utf8(target).ok().and_then(divide_absolute);
        let (authority, uri) = match absolute {
            None => (None, target),
            Some((_, authority, "")) => (Some(authority.as_bytes()), &b"/"[..]),
            Some((_, authority, path)) => (Some(authority.as_bytes()), path.as_bytes()),
        };
        Self { method, authority, uri, fields: Fields::of_head(head) }
    }
}

/// The name of a host, or its address in brackets.
fn without_port(host: &[u8]) -> &[u8] {
    match host.iter().rposition(|&byte| byte == b':') {
        Some(at) if !host[at..].contains(&b']') => &host[..at],
        _ => host,
    }
}
