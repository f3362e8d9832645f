//! Owns what a server does for a request, seen as its system calls: whether it opens the file for each request, reads
//! the file's state, in how many writes it replies. Its configuration states an intention; this shows what happens.
//! Start reading at [`observe`].
//!
//! It runs before anything is measured, and never during a measurement: a traced server is many times slower.

use std::collections::BTreeMap;

/// Requests that are made while it is watched, one connection after another.
pub(crate) const REQUESTS: u64 = 50;
/// Calls that are rarer than this per request belong to the connection or to a timer.
const SHARE_MIN: f64 = 0.05;

const OPENS: &[&str] = &["open", "openat", "openat2"];
const STATES: &[&str] = &["access", "fstat", "lstat", "newfstatat", "stat", "statx"];
const WRITES: &[&str] = &["sendfile", "sendmmsg", "sendmsg", "sendto", "splice", "write", "writev"];

/// Calls per request, by name.
#[derive(Debug, Clone, PartialEq)]
pub struct Calls(BTreeMap<&'static str, f64>);

/// Traces processes while `ask` requests a page; `ask` returns the number of its requests.
///
/// # Errors
/// Why they could not be watched, in words.
pub(crate) fn observe(
    processes: &[u32],
    ask: impl FnOnce() -> Option<u64>,
) -> Result<Calls, String> {
    let (calls, answered) = sys::syscalls::counted(processes, ask)
        .map_err(|error| format!("its processes cannot be traced ({error})"))?;
    match answered {
        None | Some(0) => Err("it did not answer while it was traced".to_owned()),
        Some(answered) => Ok(Calls::of(calls, answered)),
    }
}

impl Calls {
    fn of(calls: BTreeMap<&'static str, u64>, requests: u64) -> Self {
        let share = |(name, count): (&'static str, u64)| (name, count as f64 / requests as f64);
        Self(calls.into_iter().map(share).filter(|(_, share)| *share >= SHARE_MIN).collect())
    }

    /// Rows of the parity table, by name; each says what was seen per request.
    pub(crate) fn rows(&self) -> [(&'static str, String); 4] {
        let each = |(name, share): (&&str, &f64)| format!("{name} {share:.1}");
        let all: Vec<String> = self.0.iter().map(each).collect();
        [
            ("seen_calls", if all.is_empty() { "none".to_owned() } else { all.join(", ") }),
            ("seen_file_opens", self.sum(OPENS)),
            ("seen_file_states", self.sum(STATES)),
            ("seen_writes", self.sum(WRITES)),
        ]
    }

    /// How often those calls are made per request, in total. Work that goes through an io_uring shows in no call.
    fn sum(&self, names: &[&str]) -> String {
        let counts = names.iter().filter_map(|name| self.0.get(name));
        // The sum of no numbers is -0.0.
        let sum = counts.fold(0.0, |sum, count| sum + count);
        let hidden =
            if self.0.contains_key("io_uring_enter") { ", others by io_uring" } else { "" };
        format!("{sum:.1} a request{hidden}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_told_for_a_request_and_those_of_the_connection_are_left_out() {
        let counted = [("accept4", 1), ("newfstatat", 50), ("openat", 49), ("sendfile", 50)];
        let calls = Calls::of([&counted[..], &[("writev", 51)]].concat().into_iter().collect(), 50);
        let rows = calls.rows().map(|(_, value)| value);
        assert_eq!(
            rows,
            [
                "newfstatat 1.0, openat 1.0, sendfile 1.0, writev 1.0",
                "1.0 a request",
                "1.0 a request",
                "2.0 a request"
            ]
        );
        let ring = Calls::of([("io_uring_enter", 50)].into(), 50);
        assert_eq!(ring.rows()[3].1, "0.0 a request, others by io_uring");
        assert_eq!(Calls::of(BTreeMap::new(), 5).rows()[0].1, "none");
    }

    #[test]
    fn who_cannot_be_watched_or_did_not_answer_says_so() {
        let gone = observe(&[u32::MAX / 2], || Some(1)).unwrap_err();
        assert!(gone.starts_with("its processes cannot be traced"), "{gone}");
    }
}
