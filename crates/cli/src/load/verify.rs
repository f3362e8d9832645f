//! `--verify`: how far bodies are compared, and with what. Owns the reading of the flag and the refusal
//! of a body that is not the one it names; must not know how bodies are hashed.
//! Start reading at [`VerifyBodies`].

use std::str::FromStr;

use miette::miette;
use record::{Bodies, LoadPlan};
use units::Share;

use crate::trouble::Trouble;

/// What was typed.
#[derive(Debug, Clone, PartialEq)]
pub struct VerifyBodies {
    pub bodies: Bodies,
    /// SHA-256 that every body must have, in lower-case hex.
    sha256: Option<String>,
}

const FORMS: &str = "write none, length, hash, hash with a share (hash=1%), or hash with a SHA-256 of 64 hex digits \
     (hash=2cf2...,share=1%)";

impl FromStr for VerifyBodies {
    type Err = String;

    fn from_str(typed: &str) -> Result<Self, String> {
        let of = |bodies| Ok(Self { bodies, sha256: None });
        let value = match typed.split_once('=') {
            None if typed == "none" => return of(Bodies::None),
            None if typed == "length" => return of(Bodies::Length),
            None if typed == "hash" => return of(Bodies::Sample),
            Some(("hash", value)) => value,
            _ => return Err(FORMS.to_owned()),
        };
        let (first, rest) = value.split_once(',').unwrap_or((value, ""));
        if first.len() != 64 || !first.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            // A word as long as this was meant as a hash.
            return if first.len() > 20 || !rest.is_empty() {
                Err(FORMS.to_owned())
            } else {
                of(Bodies::Hash(share(first)?))
            };
        }
        let bodies = match rest.strip_prefix("share=") {
            Some(typed) => Bodies::Hash(share(typed)?),
            None if rest.is_empty() => Bodies::Sample,
            None => return Err(FORMS.to_owned()),
        };
        Ok(Self { bodies, sha256: Some(first.to_ascii_lowercase()) })
    }
}

fn share(typed: &str) -> Result<f64, String> {
    typed.parse::<Share>().map(|share| share.0).map_err(|error| format!("{error}; {FORMS}"))
}

impl VerifyBodies {
    /// Refuses a load of requests that are not answered with the body that was named, before it
    /// begins. The plan has what they were answered with.
    pub fn hold(&self, plan: &LoadPlan) -> Result<(), Trouble> {
        let Some(wanted) = &self.sha256 else { return Ok(()) };
        for request in &plan.requests {
            let name = plan.name_of(request);
            match &request.expected {
                Some(body) if body.sha256 == *wanted => {}
                Some(body) => {
                    return Err(Trouble::failed(miette!(
                        help = "give the SHA-256 of the right body (`curl -s URL | sha256sum`), or \
                                leave it out: --verify hash compares with what is answered before \
                                the load",
                        "{name} is answered with {} of SHA-256 {}, but --verify names {wanted}",
                        body.length,
                        body.sha256
                    )));
                }
                None => {
                    return Err(Trouble::failed(miette!(
                        help = "it must be a GET without placeholders that is answered with the same \
                                body each time, with an expected status and without a redirect",
                        "the body of {name} cannot be held against the SHA-256 that --verify names"
                    )));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_told_from_a_share() {
        let hex = "2CF24DBA5FB0A30E26E83B2AC5B9E29E1B161E5C1FA7425E73043362938B9824";
        let lower = Some(hex.to_ascii_lowercase());
        let cases = [
            ("none".to_owned(), Bodies::None, None),
            ("length".to_owned(), Bodies::Length, None),
            ("hash".to_owned(), Bodies::Sample, None),
            ("hash=1%".to_owned(), Bodies::Hash(0.01), None),
            ("hash=0.5".to_owned(), Bodies::Hash(0.5), None),
            (format!("hash={hex}"), Bodies::Sample, lower.clone()),
            (format!("hash={hex},share=10%"), Bodies::Hash(0.1), lower),
        ];
        for (typed, bodies, sha256) in cases {
            assert_eq!(typed.parse(), Ok(VerifyBodies { bodies, sha256 }), "{typed}");
        }
        let refused = [
            "md5".to_owned(),
            "hash=".to_owned(),
            "hash=lots".to_owned(),
            "hash=1%,share=1%".to_owned(),
            format!("hash={}", &hex[1..]),
            format!("hash={hex},1%"),
            format!("hash={hex},share=lots"),
        ];
        for typed in refused {
            let error = typed.parse::<VerifyBodies>().unwrap_err();
            assert!(error.contains("hash=1%"), "{typed}: {error}");
        }
    }
}
