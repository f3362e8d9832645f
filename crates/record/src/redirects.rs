//! Replies that lead elsewhere, and the proxy that requests go through. Owns what a plan and a record
//! say of them; must not know how a redirect is followed. Start reading at [`Redirects`].

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// Whether a status asks the client to look elsewhere by itself (RFC 9110, 15.4). 300 and 304 do not.
pub fn is_redirect(status: u16) -> bool {
    matches!(status, 301 | 302 | 303 | 307 | 308)
}

/// Redirects of a load.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Redirects {
    /// Redirects that were followed, each within its request: they are in no other count, and their
    /// bytes and time are in those of the request.
    pub followed: u64,
    /// The first redirect that came.
    pub first: Option<Redirect>,
}

/// One redirect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redirect {
    /// 301, 302, 303, 307 or 308.
    pub status: u16,
    /// The field Location, as it came; what is not UTF-8 is replaced.
    pub location: String,
}

impl Redirects {
    /// Adds what another thread, or another agent, saw.
    pub fn merge(&mut self, other: &Self) {
        self.followed += other.followed;
        if self.first.is_none() {
            self.first.clone_from(&other.first);
        }
    }
}

/// A proxy that all requests go through.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proxy {
    /// Where it listens.
    pub addr: SocketAddr,
    /// As typed, without a password ("proxy.example:3128").
    pub host: String,
    /// Value of Proxy-Authorization. In a record it is not kept.
    pub authorization: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_redirect_of_several_threads_stays_and_counts_add_up() {
        let redirect = |location: &str| Redirect { status: 302, location: location.to_owned() };
        let mut sum = Redirects { followed: 2, first: None };
        sum.merge(&Redirects { followed: 3, first: Some(redirect("/a")) });
        sum.merge(&Redirects { followed: 1, first: Some(redirect("/b")) });
        assert_eq!(sum, Redirects { followed: 6, first: Some(redirect("/a")) });
        let followed: Vec<u16> = (200..400).filter(|status| is_redirect(*status)).collect();
        assert_eq!(followed, [301, 302, 303, 307, 308]);
    }
}
