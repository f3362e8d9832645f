//! `-checksum`: a user of http_load that requests URLs at random and sums up each body. Owns the sum and the data kept
//! of each fetch. Start reading at [`Checksums`].

use std::sync::{Arc, Mutex, PoisonError};

use rand::RngExt as _;
use rand_pcg::Pcg64Mcg;
use record::{Answer, Asking, RequestPlan, Scenario, Seats, Turn, Users, WantedBodies, Wants};
use units::Nanos;

use super::flags::End;
use super::random::random;

/// All users; http_load has one thread.
pub(super) struct Checksums {
    requests: Vec<Ready>,
    /// Most fetches to start.
    n_max: u64,
    found: Found,
}

/// A request, ready to be sent.
struct Ready {
    origin: u32,
    bytes: Vec<u8>,
}

/// The finished fetches, by their number.
#[derive(Debug, Clone, Default)]
pub(super) struct Found(Arc<Mutex<Vec<Fetched>>>);

/// One fetch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Fetched {
    /// Index of the URL.
    pub(super) url: u32,
    /// Checksum of the received body.
    pub(super) checksum: u16,
}

impl Found {
    /// The fetches so far.
    pub(super) fn take(&self) -> Vec<Fetched> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Notes the request of a URL; returns the number of the fetch.
    fn asked(&self, url: u32) -> u32 {
        let mut fetched = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        fetched.push(Fetched { url, checksum: 0 });
        fetched.len() as u32 - 1
    }

    fn heard(&self, number: u32, checksum: u16) {
        let mut fetched = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(fetched) = fetched.get_mut(number as usize) {
            fetched.checksum = checksum;
        }
    }
}

impl Checksums {
    pub(super) fn of(requests: &[RequestPlan], end: End) -> Self {
        let ready = |request: &RequestPlan| Ready {
            origin: request.origin,
            bytes: request.verbatim.clone().expect("http_load's requests are verbatim"),
        };
        let n_max = match end {
            End::Fetches(n) => n.into(),
            End::Seconds(_) => u64::MAX,
        };
        Self { requests: requests.iter().map(ready).collect(), n_max, found: Found::default() }
    }

    /// The place where finished fetches are stored.
    pub(super) fn found(&self) -> Found {
        self.found.clone()
    }
}

impl Scenario for Checksums {
    fn users(&self, seats: Seats) -> Box<dyn Users + '_> {
        // All users begin at once.
        Box::new(Readers { all: self, random: random(), n_begun: u64::from(seats.n) })
    }
}

struct Readers<'a> {
    all: &'a Checksums,
    random: Pcg64Mcg,
    /// Fetches that were requested, including those that users are about to request.
    n_begun: u64,
}

impl Users for Readers<'_> {
    fn wants(&self) -> Wants {
        Wants { bodies: WantedBodies::All, ..Wants::default() }
    }

    fn ask(&mut self, _user: u32, asking: &mut Asking) {
        let url = self.random.random_range(0..self.all.requests.len() as u32);
        let ready = &self.all.requests[url as usize];
        asking.origin = ready.origin;
        asking.request(&ready.bytes, self.all.found.asked(url));
    }

    fn request_ended(&mut self, answer: &Answer<'_>) -> Turn {
        self.all.found.heard(answer.sample.request, checksum(answer.body));
        if self.n_begun == self.all.n_max {
            return Turn::Leaves;
        }
        self.n_begun += 1;
        Turn::after(Nanos::ZERO)
    }
}

/// The sum is rotated by one bit before each byte is added; bytes are signed, as in C on x86.
fn checksum(body: &[u8]) -> u16 {
    body.iter().fold(0, |sum: u16, byte| {
        sum.rotate_right(1).wrapping_add_signed(i16::from(byte.cast_signed()))
    })
}

#[cfg(test)]
mod tests {
    use record::{LoadPlan, Outcome, Sample};

    use super::*;

    /// Computed by hand: 0x61; then 0x8030 + 0x62; then 0x4049 + 0x63.
    #[test]
    fn the_sum_rotates_and_bytes_have_a_sign() {
        assert_eq!([&b""[..], b"a", b"ab", b"abc"].map(checksum), [0, 0x61, 0x8092, 0x40ac]);
        assert_eq!(checksum(b"\xff"), 0xffff);
        assert_ne!(checksum(b"ab"), checksum(b"ba"), "their order counts");
    }

    #[test]
    fn as_many_are_fetched_as_were_asked_for() {
        let plan = LoadPlan::get(([127, 0, 0, 1], 80).into(), "/");
        let request = RequestPlan { verbatim: Some(b"x".to_vec()), ..plan.requests[0].clone() };
        let scenario = Checksums::of(&[request.clone(), request], End::Fetches(5));
        let mut users = scenario.users(Seats { thread: 0, first: 0, n: 2 });
        let (mut asking, mut waiting) = (Asking::new(1), vec![0, 1]);
        while let Some(user) = waiting.pop() {
            asking.clear();
            users.ask(user, &mut asking);
            let sample = sample(user, asking.requests()[0].number);
            let answer = Answer { sample: &sample, head: b"", body: b"abc" };
            if users.request_ended(&answer) != Turn::Leaves {
                waiting.push(user);
            }
        }
        let found = scenario.found().take();
        assert_eq!(found.len(), 5);
        assert!(found.iter().all(|fetched| fetched.checksum == 0x40ac));
        assert!((0..2).all(|url| found.iter().any(|fetched| fetched.url == url)), "{found:?}");
    }

    fn sample(conn: u32, request: u32) -> Sample {
        let at = Nanos::ZERO;
        Sample {
            due: at,
            sent: at,
            first_byte: at,
            done: at,
            bytes_read: 0,
            bytes_body: 0,
            status: 200,
            outcome: Outcome::Ok,
            conn,
            bytes_head: 0,
            carrier: record::Carrier::Fresh,
            at_end: record::AtEnd::Last,
            request,
        }
    }
}
