//! Replies that lead elsewhere. Owns what a record says of them, not how a redirect is followed. Start reading at
//! [`Redirects`].

use serde::{Deserialize, Serialize};

/// Whether a status makes a client follow a redirect by itself (RFC 9110, 15.4). 300 and 304 do not.
pub fn is_redirect(status: u16) -> bool {
    matches!(status, 301 | 302 | 303 | 307 | 308)
}

/// Redirects of a load.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Redirects {
    /// Redirects that were followed, each within its request: no other count includes them, and their bytes and time
    /// are part of the request's.
    pub followed: u64,
    /// The first redirect that was received.
    pub first: Option<Redirect>,
}

/// One redirect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redirect {
    /// 301, 302, 303, 307 or 308.
    pub status: u16,
    /// The field Location, as received; bytes that are not UTF-8 are replaced.
    pub location: String,
}

impl Redirects {
    /// Adds the redirects of another thread, or of another agent.
    pub fn merge(&mut self, other: &Self) {
        self.followed += other.followed;
        if self.first.is_none() {
            self.first.clone_from(&other.first);
        }
    }
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
