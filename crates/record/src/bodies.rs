//! Owns the count of bodies that were verified under load: hashed, and compared with the body of an earlier reply to
//! the same request. Start reading at [`BodiesVerified`].

use serde::{Deserialize, Serialize};
use units::Nanos;

/// Bodies of complete replies whose hash was compared. All zero if nothing was compared, and in older files.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BodiesVerified {
    /// Compared.
    pub verified: u64,
    /// Of them: those that differ. Each also counts as a failed request ([`crate::Outcome::WrongBody`]).
    pub differ: u64,
    /// The first that differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<WrongBody>,
}

/// A body that differs from the expected one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrongBody {
    /// When its reply was complete, since the start of the load.
    pub at: Nanos,
    /// The request ("GET /index.html").
    pub request: String,
    /// How many replies came before it on its thread.
    pub replies_before: u64,
    /// SHA-256 of the expected body, in hex.
    pub expected: String,
    /// SHA-256 of the received body, in hex.
    pub got: String,
}

impl BodiesVerified {
    /// Adds the counts of another part of the load, which began `later` than this one.
    pub fn merge(&mut self, other: &Self, later: Nanos) {
        self.verified += other.verified;
        self.differ += other.differ;
        let moved = |first: &WrongBody| WrongBody { at: first.at + later, ..first.clone() };
        let other = other.first.as_ref().map(moved);
        self.first = match (self.first.take(), other) {
            (Some(one), Some(two)) => Some(if two.at < one.at { two } else { one }),
            (one, two) => one.or(two),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_body_that_differs_is_the_first_of_all_parts() {
        let part = |at: Option<u64>| BodiesVerified {
            verified: 10,
            differ: u64::from(at.is_some()),
            first: at.map(|at| WrongBody {
                at: Nanos(at),
                request: "GET /".to_owned(),
                replies_before: at,
                expected: String::new(),
                got: String::new(),
            }),
        };
        let first = |parts: &[(Option<u64>, u64)]| {
            let mut sum = BodiesVerified::default();
            parts.iter().for_each(|(at, later)| sum.merge(&part(*at), Nanos(*later)));
            assert_eq!(sum.verified, 10 * parts.len() as u64);
            sum.first.map(|first| (first.at.0, first.replies_before))
        };
        assert_eq!(first(&[(None, 0), (None, 0)]), None);
        assert_eq!(first(&[(Some(5), 0), (Some(3), 0), (None, 0)]), Some((3, 3)));
        assert_eq!(first(&[(Some(5), 0), (Some(3), 4)]), Some((5, 5)));
    }
}
