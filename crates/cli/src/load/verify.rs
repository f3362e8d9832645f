//! `--verify`: how far bodies are compared, and with what. Owns the parsing of the flag, and rejects a load whose
//! bodies cannot be compared or are not the ones that the flag names. Start reading at [`VerifyBodies`].

use std::fs::File;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use load::{Oracle, Unverified, WhyUnverified};
use miette::miette;
use record::{Bodies, ExpectedBody, LoadPlan};
use units::Share;

use crate::trouble::Trouble;

/// The typed value.
#[derive(Debug, Clone, PartialEq)]
pub struct VerifyBodies {
    pub bodies: Bodies,
    wanted: Wanted,
    /// As typed, for messages.
    flag: String,
}

/// What every body must equal.
#[derive(Debug, Clone, PartialEq)]
enum Wanted {
    /// The answer to the request before the load.
    Fetched,
    /// A body with that SHA-256, in lower-case hex.
    Sha256(String),
    /// The bytes of that file.
    File(PathBuf),
}

/// The flag, checked against a plan, with its file read.
pub struct CheckedVerify<'a> {
    flag: &'a str,
    compares: bool,
    wanted: Option<WantedBody<'a>>,
}

enum WantedBody<'a> {
    Sha256(&'a str),
    File(&'a Path, ExpectedBody),
}

const FORMS: &str = "write none, length, hash, hash with a share (hash=1%), hash with a SHA-256 of 64 hex digits \
     (hash=2cf2...,share=1%), or file with a path (file=index.html)";

/// How to check replies whose bodies are unknown before the load.
const OTHER_CHECKS: &str =
    "--expect-body and --expect-length check such replies; leave --verify out";

impl FromStr for VerifyBodies {
    type Err = String;

    fn from_str(typed: &str) -> Result<Self, String> {
        let (bodies, wanted) = match typed.split_once('=') {
            None if typed == "none" => (Bodies::None, Wanted::Fetched),
            None if typed == "length" => (Bodies::Length, Wanted::Fetched),
            None if typed == "hash" => (Bodies::Sample, Wanted::Fetched),
            Some(("hash", value)) => hash(value)?,
            Some(("file", value)) => {
                let (path, bodies) = with_share(value)?;
                if path.is_empty() {
                    return Err(FORMS.to_owned());
                }
                (bodies, Wanted::File(path.into()))
            }
            _ => return Err(FORMS.to_owned()),
        };
        Ok(Self { bodies, wanted, flag: format!("--verify {typed}") })
    }
}

/// The text after `hash=`: a share, or a SHA-256 with or without one.
fn hash(value: &str) -> Result<(Bodies, Wanted), String> {
    let (first, bodies) = with_share(value)?;
    if first.len() == 64 && first.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Ok((bodies, Wanted::Sha256(first.to_ascii_lowercase())));
    }
    // A word this long was meant to be a hash.
    if first.len() > 20 || value.contains(',') {
        return Err(FORMS.to_owned());
    }
    Ok((Bodies::Hash(share(first)?), Wanted::Fetched))
}

/// `VALUE`, or `VALUE,share=SHARE`.
fn with_share(typed: &str) -> Result<(&str, Bodies), String> {
    match typed.rsplit_once(",share=") {
        Some((value, typed)) => Ok((value, Bodies::Hash(share(typed)?))),
        None => Ok((typed, Bodies::Sample)),
    }
}

fn share(typed: &str) -> Result<f64, String> {
    typed.parse::<Share>().map(|share| share.0).map_err(|error| format!("{error}; {FORMS}"))
}

impl VerifyBodies {
    /// Rejects what the plan alone rules out, before any connection is made; reads the file.
    pub fn check(&self, plan: &LoadPlan) -> Result<CheckedVerify<'_>, Trouble> {
        let compares = !matches!(self.bodies, Bodies::None);
        if compares {
            let unverifiable = load::unverifiable(plan);
            if unverifiable.len() == plan.requests.len() {
                return Err(Trouble::usage(nothing_to_compare(&self.flag, &unverifiable)));
            }
        }
        let wanted = match &self.wanted {
            Wanted::Fetched => None,
            Wanted::Sha256(sha256) => Some(WantedBody::Sha256(sha256)),
            Wanted::File(path) => Some(WantedBody::File(path, self.read(path, plan)?)),
        };
        Ok(CheckedVerify { flag: &self.flag, compares, wanted })
    }

    fn read(&self, path: &Path, plan: &LoadPlan) -> Result<ExpectedBody, Trouble> {
        if plan.requests.len() > 1 {
            return Err(Trouble::usage(miette!(
                help = "leave =PATH out: --verify hash compares each body with the reply that its own \
                        request had before the load",
                "{} must be used with one request, got {}",
                self.flag,
                plan.requests.len()
            )));
        }
        File::open(path).and_then(load::expected_body).map_err(|error| {
            Trouble::usage(miette!(
                help = "name a file that holds the body, byte for byte",
                "--verify: cannot read {}: {error}",
                path.display()
            ))
        })
    }
}

/// If the flag was not typed, a changing body is only reported, and is not an error.
pub fn say_what_changes(oracle: &Oracle, say: &dyn Fn(&str)) {
    for one in &oracle.unverified {
        if matches!(one.why, WhyUnverified::Changes { .. }) {
            say(&format!("the body of one request is not compared: {one}"));
        }
    }
}

/// The error that no body of the load would be compared.
fn nothing_to_compare(flag: &str, unverified: &[Unverified]) -> miette::Report {
    let first = unverified.first().expect("a plan has a request");
    let more = match unverified.len() {
        1 => String::new(),
        n => format!(" (and {} more)", n - 1),
    };
    let help = match first.why {
        WhyUnverified::Redirect(_) => "name the URL that the redirect leads to",
        WhyUnverified::Status(_) => "correct the URL, or allow the status (--expect-status)",
        _ => OTHER_CHECKS,
    };
    miette!(help = help, "{flag} cannot compare any body of this load: {first}{more}")
}

impl CheckedVerify<'_> {
    /// Rejects a load whose bodies cannot be compared, or are not the ones that the flag names. The plan contains the
    /// answers to its requests.
    pub fn enforce(
        &self,
        plan: &LoadPlan,
        oracle: &Oracle,
        say: &dyn Fn(&str),
    ) -> Result<(), Trouble> {
        if !self.compares {
            return Ok(());
        }
        let (n_unverified, n_requests) = (oracle.unverified.len(), plan.requests.len());
        if n_unverified == n_requests {
            return Err(Trouble::failed(nothing_to_compare(self.flag, &oracle.unverified)));
        }
        if let Some(first) = oracle.unverified.first() {
            if self.wanted.is_some() {
                return Err(Trouble::failed(miette!(
                    help = OTHER_CHECKS,
                    "{} needs the body of every request, but one is unknown: {first}",
                    self.flag
                )));
            }
            say(&format!(
                "{} compares the bodies of {} of {n_requests} requests; not of {first}",
                self.flag,
                n_requests - n_unverified
            ));
        }
        let Some(wanted) = &self.wanted else { return Ok(()) };
        for request in &plan.requests {
            let Some(found) = &request.expected else { continue };
            wanted.enforce(&plan.name_of(request), found)?;
        }
        Ok(())
    }
}

impl WantedBody<'_> {
    fn enforce(&self, name: &str, found: &ExpectedBody) -> Result<(), Trouble> {
        let ExpectedBody { length, sha256 } = found;
        match self {
            Self::Sha256(wanted) if sha256 == wanted => Ok(()),
            Self::File(_, wanted) if found == wanted => Ok(()),
            Self::Sha256(wanted) => Err(Trouble::failed(miette!(
                help = "give the SHA-256 of the right body (`curl -s URL | sha256sum`), or leave it \
                        out: --verify hash compares with what is answered before the load",
                "{name} is answered with {length} of SHA-256 {sha256}, but --verify names {wanted}"
            ))),
            Self::File(path, wanted) => Err(Trouble::failed(miette!(
                help = "compare them: `curl -s URL | cmp - FILE`; the body counts as it is sent, so \
                        a Content-Encoding makes it another one",
                "{name} is answered with {length} of SHA-256 {sha256}, but {} has {} of SHA-256 {}",
                path.display(),
                wanted.length,
                wanted.sha256
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_told_from_a_share_and_a_file() {
        let hex = "2CF24DBA5FB0A30E26E83B2AC5B9E29E1B161E5C1FA7425E73043362938B9824";
        let lower = || Wanted::Sha256(hex.to_ascii_lowercase());
        let file = |path: &str| Wanted::File(path.into());
        let cases = [
            ("none".to_owned(), Bodies::None, Wanted::Fetched),
            ("length".to_owned(), Bodies::Length, Wanted::Fetched),
            ("hash".to_owned(), Bodies::Sample, Wanted::Fetched),
            ("hash=1%".to_owned(), Bodies::Hash(0.01), Wanted::Fetched),
            ("hash=0.5".to_owned(), Bodies::Hash(0.5), Wanted::Fetched),
            (format!("hash={hex}"), Bodies::Sample, lower()),
            (format!("hash={hex},share=10%"), Bodies::Hash(0.1), lower()),
            ("file=a,b=c.html".to_owned(), Bodies::Sample, file("a,b=c.html")),
            ("file=a.html,share=100%".to_owned(), Bodies::Hash(1.0), file("a.html")),
        ];
        for (typed, bodies, wanted) in cases {
            let flag = format!("--verify {typed}");
            assert_eq!(typed.parse(), Ok(VerifyBodies { bodies, wanted, flag }), "{typed}");
        }
        let refused = [
            "md5".to_owned(),
            "hash=".to_owned(),
            "hash=lots".to_owned(),
            "hash=1%,share=1%".to_owned(),
            format!("hash={}", &hex[1..]),
            format!("hash={hex},1%"),
            format!("hash={hex},share=lots"),
            "file".to_owned(),
            "file=".to_owned(),
            "file=,share=1%".to_owned(),
            "file=a,share=2".to_owned(),
        ];
        for typed in refused {
            let error = typed.parse::<VerifyBodies>().unwrap_err();
            assert!(error.contains("hash=1%"), "{typed}: {error}");
        }
    }
}
