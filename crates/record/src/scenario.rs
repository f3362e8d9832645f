//! Users whose next request depends on earlier answers: redirects that are followed, parts of a page, a Lua program. A
//! scenario says what a list of requests cannot. Owns the interface between the code that makes the load and the code
//! that plays the users; must not know either. Start reading at [`Users`].
//!
//! Cost: a call and a copy of the bytes for each request, and a copy of heads and bodies if they are wanted. A load
//! without a scenario pays nothing.

use std::ops::Range;

use units::Nanos;

use crate::{Origin, Outcome, Sample};

/// Plays all users of a load. Each connection of the plan is a user: it sends requests, waits until all of them have
/// been answered or have failed, may pause, and sends again.
pub trait Scenario: Sync {
    /// The users of one thread, created on that thread before the load begins.
    fn users(&self, seats: Seats) -> Box<dyn Users + '_>;
}

/// The users that a thread has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seats {
    /// Index of the thread, from 0.
    pub thread: u32,
    /// The number of its first user, as in [`Sample::conn`].
    pub first: u32,
    /// Number of users.
    pub n: u32,
}

/// The users of one thread. A user is identified by its number in the load, [`Sample::conn`].
pub trait Users {
    /// The parts of a reply that are kept for [`Users::request_ended`].
    fn wants(&self) -> Wants;

    /// How a user begins.
    fn first(&mut self, _user: u32) -> Turn {
        Turn::after(Nanos::ZERO)
    }

    /// A user's next requests, all to one origin. Several requests are sent at once and answered in order. A user
    /// without requests leaves, unless it calls [`Asking::again`].
    fn ask(&mut self, user: u32, asking: &mut Asking);

    /// A request has ended, successfully or not. The returned turn counts only if no other request of that user is in
    /// flight.
    fn request_ended(&mut self, answer: &Answer<'_>) -> Turn;
}

/// The parts of a reply that are kept.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Wants {
    /// The head, from the status line to the empty line.
    pub heads: bool,
    /// The body, after removal of chunk framing.
    pub bodies: WantedBodies,
    /// Most bytes of a body that are kept; further ones are only counted. `None`: the whole body, however long the
    /// server makes it.
    pub bytes_max: Option<usize>,
}

/// Which bodies are kept.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum WantedBodies {
    /// None.
    #[default]
    None,
    /// Those of type `text/html`.
    Html,
    /// All.
    All,
}

/// What a user does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// Sends again after that pause.
    After(Nanos),
    /// Leaves. The load ends when all have left.
    Leaves,
    /// Its request continues: the next request, a single one sent at once, belongs to the one that was answered. The
    /// two count as one request, from the first `sent` to the last `done`.
    GoesOn,
    /// Its request has failed with this outcome, whatever the answer was; it sends again at once.
    Fails(Outcome),
}

impl Turn {
    /// Sends again after that pause.
    pub fn after(pause: Nanos) -> Self {
        Self::After(pause)
    }
}

/// A request that has ended.
#[derive(Debug, Clone, Copy)]
pub struct Answer<'a> {
    /// Its user ([`Sample::conn`]), its number ([`Sample::request`]), and its outcome.
    pub sample: &'a Sample,
    /// The head of a complete reply, if wanted.
    pub head: &'a [u8],
    /// Its body, if wanted.
    pub body: &'a [u8],
}

/// The requests that a user sends at once.
#[derive(Debug, Default)]
pub struct Asking {
    /// Their origin: one of the plan, or one of those added after them.
    pub origin: u32,
    /// Newly named origins, in the order of their numbers.
    added: Vec<Origin>,
    n_origins: u32,
    bytes: Vec<u8>,
    requests: Vec<UserRequest>,
    again: Option<Nanos>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserRequest {
    /// Its place in the bytes.
    pub bytes: Range<usize>,
    /// Whether the method is HEAD: then the reply has no body.
    pub is_head: bool,
    /// What [`Sample::request`] will be.
    pub number: u32,
}

impl Asking {
    /// For a load with that many origins.
    pub fn new(n_origins: u32) -> Self {
        Self { n_origins, ..Self::default() }
    }

    /// Adds a request; the bytes are head and body as sent. `number` comes back in [`Sample::request`].
    pub fn request(&mut self, bytes: &[u8], number: u32) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        let is_head = bytes.starts_with(b"HEAD ");
        self.requests.push(UserRequest { bytes: start..self.bytes.len(), is_head, number });
    }

    /// Adds an origin, for this and all later requests of the thread; returns its number.
    pub fn add_origin(&mut self, origin: Origin) -> u32 {
        self.added.push(origin);
        self.n_origins += 1;
        self.n_origins - 1
    }

    /// Sends nothing this time, and has another turn after that pause. The pause must be above zero: a user who never
    /// sends would block all others.
    pub fn again(&mut self, pause: Nanos) {
        self.again = Some(pause);
    }

    /// The pause after which a user without requests has another turn; `None`: it leaves.
    pub fn comes_again(&self) -> Option<Nanos> {
        self.again
    }

    /// The requests added so far.
    pub fn requests(&self) -> &[UserRequest] {
        &self.requests
    }

    /// The bytes of all requests.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Takes the origins that were added since the last call.
    pub fn take_added(&mut self) -> impl Iterator<Item = Origin> {
        self.added.drain(..)
    }

    /// Clears it for the next user.
    pub fn clear(&mut self) {
        self.origin = 0;
        self.bytes.clear();
        self.requests.clear();
        self.again = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ServerAddress;

    #[test]
    fn requests_lie_behind_one_another_and_origins_are_numbered_behind_the_plans() {
        let mut asking = Asking::new(2);
        asking.request(b"GET / HTTP/1.1\r\n\r\n", 7);
        asking.request(b"HEAD /b HTTP/1.1\r\n\r\n", 8);
        let [first, second] = asking.requests() else { panic!("two") };
        assert_eq!((first.number, first.is_head, second.is_head), (7, false, true));
        assert_eq!(&asking.bytes()[second.bytes.clone()], b"HEAD /b HTTP/1.1\r\n\r\n");
        assert_eq!(first.bytes.end, second.bytes.start);
        let place = ServerAddress::Inet(([127, 0, 0, 1], 80).into());
        let origin = Origin { place, host: "b".to_owned(), tls_name: None };
        assert_eq!((asking.add_origin(origin.clone()), asking.add_origin(origin)), (2, 3));
        assert_eq!((asking.take_added().count(), asking.take_added().count()), (2, 0));
        asking.again(Nanos(7));
        assert_eq!(asking.comes_again(), Some(Nanos(7)));
        asking.clear();
        assert!(asking.requests().is_empty() && asking.bytes().is_empty());
        assert_eq!(asking.comes_again(), None);
    }
}
