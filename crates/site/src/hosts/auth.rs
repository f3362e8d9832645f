//! Basic authentication (RFC 7617) against a file of bcrypt hashes, as `htpasswd -B` writes it. Owns the
//! file, and the passwords that were verified recently. Start reading at [`Guard::pass`].
//!
//! A bcrypt hash takes long by design: 50 ms and more, in which an event loop serves nobody else. So a password that
//! was verified is remembered until the file changes, as a hash under a key of this process. An unknown name takes as
//! long as a known one. All verification together takes at most a quarter of a thread; beyond that a client is told to
//! come again in a second (503).

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};
use sys::file::Facts;
use units::Nanos;
use wire::Request;

use super::FRESH_FOR;
use crate::SiteError;
use crate::config::AuthConfig;

/// Credentials that are remembered, of each sort.
const REMEMBERED_MAX: usize = 1024;

/// Bytes of a password file.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// Each verification is followed by a rest this many times as long, on average.
const REST_FACTOR: u64 = 4;

/// How far verification may run ahead of that average.
const AHEAD_MAX: Nanos = Nanos::from_secs(4);

/// Demands a name and a password.
#[derive(Debug)]
pub(super) struct Guard {
    path: PathBuf,
    users: Vec<String>,
    challenge: String,
    /// The key of this process, which makes what is remembered useless elsewhere.
    key: [u8; 32],
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Metadata of the file when it was read; `None`: it could not be read.
    facts: Option<Facts>,
    /// When the file was last looked at.
    asked: Nanos,
    hashes: HashMap<String, String>,
    verified: HashSet<[u8; 32]>,
    refused: HashSet<[u8; 32]>,
    /// The instant up to which verification has used its share.
    spent_until: Nanos,
}

/// Whether a request may pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Passed {
    /// It may until that instant, when the file is looked at again.
    Yes { user: String, until: Nanos },
    /// It may not.
    No,
    /// Too many clients try.
    Busy,
    /// The file cannot be read.
    Broken,
}

impl Guard {
    /// # Errors
    /// A file that cannot be read, or has a hash that is not bcrypt's.
    pub(super) fn open(config: &AuthConfig) -> Result<Self, SiteError> {
        let broken = |reason: String| SiteError::Passwords { path: config.file.clone(), reason };
        let (facts, hashes) = read(&config.file).map_err(broken)?;
        let mut key = [0; 32];
        rustix::rand::getrandom(&mut key, rustix::rand::GetRandomFlags::empty())
            .map_err(|error| broken(format!("cannot get random bytes: {error}")))?;
        let AuthConfig { realm, users, .. } = config;
        Ok(Self {
            path: config.file.clone(),
            users: users.clone(),
            challenge: format!("WWW-Authenticate: Basic realm=\"{realm}\", charset=\"UTF-8\"\r\n"),
            key,
            state: Mutex::new(State {
                facts: Some(facts),
                asked: Nanos::ZERO,
                hashes,
                verified: HashSet::new(),
                refused: HashSet::new(),
                spent_until: Nanos::ZERO,
            }),
        })
    }

    /// The field line of a 401.
    pub(super) fn challenge(&self) -> &str {
        &self.challenge
    }

    /// Whether the client has proved who it is.
    pub(super) fn pass(&self, request: &Request<'_>, now: Nanos) -> Passed {
        let mut values = request.fields.all("authorization");
        let (Some(value), None) = (values.next(), values.next()) else { return Passed::No };
        let Some((user, password)) = credentials(value) else { return Passed::No };
        let mut state = self.state();
        if !state.is_current(&self.path, now) {
            return Passed::Broken;
        }
        let digest = self.digest(&user, &password);
        let is_right = match (state.verified.contains(&digest), state.refused.contains(&digest)) {
            (true, _) => true,
            (_, true) => false,
            _ => match state.verify(&user, &password, now) {
                Some(is_right) => {
                    state.remember(digest, is_right);
                    is_right
                }
                None => return Passed::Busy,
            },
        };
        if is_right && (self.users.is_empty() || self.users.contains(&user)) {
            Passed::Yes { user, until: state.asked.saturating_add(FRESH_FOR) }
        } else {
            Passed::No
        }
    }

    fn digest(&self, user: &str, password: &[u8]) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(self.key);
        hash.update((user.len() as u64).to_le_bytes());
        hash.update(user);
        hash.update(password);
        hash.finalize().into()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Reads the file again if it has changed. Returns false if it cannot be read.
    fn is_current(&mut self, path: &PathBuf, now: Nanos) -> bool {
        if now < self.asked.saturating_add(FRESH_FOR) && self.asked > Nanos::ZERO {
            return self.facts.is_some();
        }
        self.asked = now;
        let facts = File::open(path).and_then(Facts::of).ok();
        if facts.is_some() && facts == self.facts {
            return true;
        }
        self.verified.clear();
        self.refused.clear();
        match read(path) {
            Ok((facts, hashes)) => (self.facts, self.hashes) = (Some(facts), hashes),
            Err(_) => self.facts = None,
        }
        self.facts.is_some()
    }

    /// Whether the password is the user's; `None`: verification has used its share of the time.
    fn verify(&mut self, user: &str, password: &[u8], now: Nanos) -> Option<bool> {
        if self.spent_until > now.saturating_add(AHEAD_MAX) {
            return None;
        }
        let began = sys::clock::monotonic();
        // An unknown name is checked against another's hash, so that it takes as long.
        let known = self.hashes.get(user);
        let hash = known.or_else(|| self.hashes.values().next());
        // A password that bcrypt refuses (with a NUL in it) is nobody's.
        let fits = hash.is_some_and(|hash| bcrypt::verify(password, hash).unwrap_or(false));
        let took = sys::clock::monotonic().saturating_sub(began);
        let rest = Nanos(took.0.saturating_mul(REST_FACTOR));
        self.spent_until = self.spent_until.max(now).saturating_add(rest);
        Some(fits && known.is_some())
    }

    fn remember(&mut self, digest: [u8; 32], is_right: bool) {
        let set = if is_right { &mut self.verified } else { &mut self.refused };
        if set.len() >= REMEMBERED_MAX {
            set.clear();
        }
        set.insert(digest);
    }
}

/// Name and password (RFC 7617, 2).
fn credentials(value: &[u8]) -> Option<(String, Vec<u8>)> {
    let (scheme, rest) = value.split_at_checked(6)?;
    if !scheme.eq_ignore_ascii_case(b"basic ") {
        return None;
    }
    let decoded = STANDARD.decode(rest.trim_ascii()).ok()?;
    let colon = decoded.iter().position(|&byte| byte == b':')?;
    let user = String::from_utf8(decoded[..colon].to_vec()).ok()?;
    Some((user, decoded[colon + 1..].to_vec()))
}

/// Names and hashes.
fn read(path: &PathBuf) -> Result<(Facts, HashMap<String, String>), String> {
    let failed = |error: std::io::Error| error.to_string();
    let file = File::open(path).map_err(failed)?;
    let facts = Facts::of(&file).map_err(failed)?;
    let mut text = String::new();
    file.take(FILE_BYTES_MAX).read_to_string(&mut text).map_err(failed)?;
    let mut hashes = HashMap::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let entry = line.split_once(':').filter(|(user, hash)| {
            let is_bcrypt = ["$2y$", "$2a$", "$2b$"].iter().any(|kind| hash.starts_with(kind));
            !user.is_empty() && is_bcrypt && hash.parse::<bcrypt::HashParts>().is_ok()
        });
        let Some((user, hash)) = entry else {
            return Err(format!("line {} must be NAME:HASH with a bcrypt hash", number + 1));
        };
        hashes.insert(user.to_owned(), hash.to_owned());
    }
    Ok((facts, hashes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_read_as_rfc_7617_says() {
        type Pair = (&'static str, &'static [u8]);
        let cases: [(&str, Option<Pair>); 7] = [
            ("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==", Some(("Aladdin", b"open sesame"))),
            ("basic dGVzdDoxMjPCow==", Some(("test", "123\u{a3}".as_bytes()))),
            ("Basic YTpiOmM=", Some(("a", b"b:c"))),
            ("Basic YQ==", None),
            ("Basic !", None),
            ("Bearer YTpi", None),
            ("Basic", None),
        ];
        for (value, expected) in cases {
            let expected = expected.map(|(user, password)| (user.to_owned(), password.to_vec()));
            assert_eq!(credentials(value.as_bytes()), expected, "{value}");
        }
    }

    #[test]
    fn a_file_with_another_hash_is_refused_by_its_line() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "# staff\n\na:$apr1$x$y\n").unwrap();
        let error = read(&file.path().to_owned()).unwrap_err();
        assert!(error.contains("line 3"), "{error}");
    }
}
