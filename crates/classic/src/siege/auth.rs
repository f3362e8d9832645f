//! Credentials: which login answers a challenge, and with which header value. Owns Basic and Digest. Start reading at
//! [`Asker::answer`].

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as STANDARD;
use md5::{Digest as _, Md5};

/// A login from the configuration file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Login {
    user: String,
    password: String,
    /// "any" if none was given.
    realm: String,
}

impl Login {
    /// `user:password[:realm]`.
    pub(super) fn new(text: &str) -> Self {
        let mut parts = text.splitn(3, ':').map(str::to_owned);
        let mut next = || parts.next().unwrap_or_default();
        let (user, password, realm) = (next(), next(), next());
        let realm = if realm.is_empty() { "any".to_owned() } else { realm };
        Self { user, password, realm }
    }

    /// As -C prints it.
    pub(super) fn shown(&self) -> String {
        format!("{}:{}:{}", self.user, self.password, self.realm)
    }

    /// The login for a realm, else the one for any realm.
    fn find<'a>(logins: &'a [Self], realm: Option<&str>) -> Option<&'a Self> {
        let of = |name: &str| logins.iter().find(|login| login.realm.eq_ignore_ascii_case(name));
        realm.and_then(of).or_else(|| of("any"))
    }
}

/// A challenge of a server or a proxy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Challenge {
    is_digest: bool,
    is_ntlm: bool,
    pub(super) realm: Option<String>,
    nonce: String,
    opaque: Option<String>,
    qop: Option<String>,
    algorithm: Option<String>,
}

impl Challenge {
    /// From the values of all fields with that name: Digest or NTLM have precedence over Basic.
    pub(super) fn read<'a>(values: impl Iterator<Item = &'a str>) -> Self {
        let mut read = Self::default();
        for value in values {
            let (scheme, rest) = value.split_once(' ').unwrap_or((value, ""));
            read.is_digest |= scheme.eq_ignore_ascii_case("digest");
            read.is_ntlm |= scheme.eq_ignore_ascii_case("ntlm");
            for (name, value) in parameters(rest) {
                let slot = match name.to_ascii_lowercase().as_str() {
                    "realm" => &mut read.realm,
                    "opaque" => &mut read.opaque,
                    "qop" => &mut read.qop,
                    "algorithm" => &mut read.algorithm,
                    "nonce" => {
                        read.nonce = value;
                        continue;
                    }
                    _ => continue,
                };
                *slot = Some(value);
            }
        }
        read
    }

    /// The algorithm of a digest, if siege does not support it: it only supports MD5.
    pub(super) fn unknown_algorithm(&self) -> Option<&str> {
        let known = ["MD5", "MD5-sess"];
        let is_known = |name: &&str| known.iter().any(|known| known.eq_ignore_ascii_case(name));
        self.algorithm.as_deref().filter(|name| self.is_digest && !is_known(name))
    }
}

/// `name="value"` and `name=value`, separated by commas.
fn parameters(text: &str) -> Vec<(&str, String)> {
    let mut found = Vec::new();
    let mut left = text;
    while let Some((name, behind)) = left.split_once('=') {
        let (value, rest) = match behind.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => behind.split_once(',').unwrap_or((behind, "")),
        };
        found.push((name.trim_matches([' ', ',']), value.trim().to_owned()));
        left = rest;
    }
    found
}

/// A user's answers to all challenges of one kind: the server's or the proxy's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Asker {
    line: Credentials,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum Credentials {
    #[default]
    None,
    Basic(String),
    Digest {
        login: Login,
        challenge: Challenge,
        used: u32,
    },
}

impl Asker {
    /// Accepts a challenge; returns whether it can be answered. Only Digest can fail.
    pub(super) fn answer(&mut self, logins: &[Login], mut challenge: Challenge) -> bool {
        let login = Login::find(logins, challenge.realm.as_deref());
        if challenge.is_digest {
            let Some(login) = login.cloned() else { return false };
            if challenge.unknown_algorithm().is_some() {
                self.line = Credentials::None;
                return true;
            }
            challenge.algorithm.get_or_insert_with(|| "MD5".to_owned());
            self.line = Credentials::Digest { login, challenge, used: 0 };
        } else if let Some(login) = login.filter(|_| !challenge.is_ntlm) {
            let encoded = STANDARD.encode(format!("{}:{}", login.user, login.password));
            self.line = Credentials::Basic(encoded);
        }
        true
    }

    /// The value of the field for the next request, if there is one.
    pub(super) fn value(&mut self, method: &str, target: &str, nonce: u64) -> Option<String> {
        match &mut self.line {
            Credentials::None => None,
            Credentials::Basic(encoded) => Some(format!("Basic {encoded}")),
            Credentials::Digest { login, challenge, used } => {
                *used += 1;
                Some(digest(login, challenge, *used, method, target, nonce))
            }
        }
    }
}

/// MD5, in hexadecimal digits.
fn hashed(text: &str) -> String {
    Md5::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn digest(
    login: &Login,
    challenge: &Challenge,
    count: u32,
    method: &str,
    target: &str,
    nonce: u64,
) -> String {
    let Login { user, password, .. } = login;
    let Challenge { nonce: server, opaque, qop, algorithm, .. } = challenge;
    let realm = challenge.realm.as_deref().unwrap_or_default();
    let algorithm = algorithm.as_deref().unwrap_or("MD5");
    let opaque = opaque.as_ref().map(|opaque| format!(", opaque=\"{opaque}\"")).unwrap_or_default();
    let (own, count) = (format!("{nonce:016x}"), format!("{count:08x}"));
    let mut secret = hashed(&format!("{user}:{realm}:{password}"));
    if algorithm.eq_ignore_ascii_case("MD5-sess") {
        secret = hashed(&format!("{secret}:{server}:{own}"));
    }
    let asked = hashed(&format!("{method}:{target}"));
    let begin = format!(
        "Digest username=\"{user}\", realm=\"{realm}\", nonce=\"{server}\", uri=\"{target}\", \
         algorithm={algorithm}"
    );
    if qop.is_none() {
        let response = hashed(&format!("{secret}:{server}:{asked}"));
        // Without a comma before it, as in siege.
        return format!("{begin} response=\"{response}\"{opaque}");
    }
    let response = hashed(&format!("{secret}:{server}:{count}:{own}:auth:{asked}"));
    format!("{begin}, response=\"{response}\"{opaque}, qop=auth, nc={count}, cnonce=\"{own}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn challenge(value: &str) -> Challenge {
        Challenge::read([value].into_iter())
    }

    #[test]
    fn a_login_answers_its_realm_and_one_without_a_realm_any() {
        let logins = [Login::new("a:b:R"), Login::new("c:d")];
        let said = |value: &str| {
            let mut asker = Asker::default();
            assert!(asker.answer(&logins, challenge(value)));
            asker.value("GET", "/", 0)
        };
        assert_eq!(said("Basic realm=\"r\"").as_deref(), Some("Basic YTpi"));
        assert_eq!(said("Basic realm=\"other\"").as_deref(), Some("Basic Yzpk"));
        assert_eq!(said("NTLM"), None);
        let mut asker = Asker::default();
        assert!(!asker.answer(&logins[..1], challenge("Digest realm=\"x\", nonce=\"n\"")));
    }

    #[test]
    fn a_digest_that_is_not_md5_is_not_answered_with_one_that_is() {
        let logins = [Login::new("a:b")];
        for (name, is_known) in [("MD5", true), ("md5-sess", true), ("SHA-256", false)] {
            let value = format!("Digest realm=\"R\", nonce=\"n\", qop=\"auth\", algorithm={name}");
            let challenge = challenge(&value);
            assert_eq!(challenge.unknown_algorithm().is_none(), is_known, "{name}");
            let mut asker = Asker::default();
            assert!(asker.answer(&logins, challenge));
            assert_eq!(asker.value("GET", "/", 0).is_some(), is_known, "{name}");
        }
    }

    /// Any challenge can be read.
    #[test]
    fn a_broken_challenge_is_as_much_of_one_as_there_is() {
        for value in
            ["", "Digest", "Digest =", "Digest realm", "Digest realm=\"R", "Digest nonce=,="]
        {
            let mut asker = Asker::default();
            assert!(asker.answer(&[Login::new("a:b")], challenge(value)), "{value}");
            let line = asker.value("GET", "/", 0).unwrap();
            assert_eq!(line.starts_with("Digest "), value.starts_with("Digest"), "{value}: {line}");
        }
        assert_eq!(challenge("Digest realm=\"R").realm.as_deref(), Some("R"));
    }

    /// The example of RFC 2617, 3.5, with its client nonce.
    #[test]
    fn a_digest_is_computed_as_the_standard_says() {
        let value = "Digest realm=\"testrealm@host.com\", qop=\"auth,auth-int\", \
            nonce=\"dcd98b7102dd2f0e8b11d0f600bfb0c093\", opaque=\"5ccc\"";
        let mut asker = Asker::default();
        let logins = [Login::new("Mufasa:Circle Of Life")];
        assert!(asker.answer(&logins, challenge(value)));
        let said = asker.value("GET", "/dir/index.html", 0x0a4f_113b).unwrap();
        let secret = hashed("Mufasa:testrealm@host.com:Circle Of Life");
        let asked = hashed("GET:/dir/index.html");
        let whole = format!(
            "{secret}:dcd98b7102dd2f0e8b11d0f600bfb0c093:00000001:000000000a4f113b:auth:{asked}"
        );
        assert!(said.contains(&format!("response=\"{}\"", hashed(&whole))), "{said}");
        assert!(said.ends_with("qop=auth, nc=00000001, cnonce=\"000000000a4f113b\""), "{said}");
        let again = asker.value("GET", "/", 1).unwrap();
        assert!(again.contains("nc=00000002"), "{again}");
    }
}
