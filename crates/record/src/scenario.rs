//! Users whose next request depends on what they were answered: redirects that are followed, parts of
//! a page, a program in Lua. Where a list of requests cannot say what is asked, a scenario does. Owns the
//! shape of the talk between who makes the load and who plays the users; must not know either.
//! Start reading at [`Users`].
//!
//! Cost: a call and a copy of its bytes for each request, and of heads and bodies where they are wanted.
//! A load without a scenario has none of it.

use std::ops::Range;

use units::Nanos;

use crate::{Origin, Outcome, Sample};

/// Plays all users of a load. Each connection of the plan is a user; it asks, waits until all that it
/// asked is answered or has failed, perhaps pauses, and asks again.
pub trait Scenario: Sync {
    /// Those of one thread, made on that thread before the load begins.
    fn users(&self, seats: Seats) -> Box<dyn Users + '_>;
}

/// Which users a thread has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seats {
    /// Index of the thread, from 0.
    pub thread: u32,
    /// The number of its first user; [`Sample::conn`] has these numbers.
    pub first: u32,
    /// How many it has.
    pub n: u32,
}

/// The users of one thread. A user is named by its number in the load, [`Sample::conn`].
pub trait Users {
    /// What of a reply is to be kept for [`Users::request_ended`].
    fn wants(&self) -> Wants;

    /// How a user begins.
    fn first(&mut self, _user: u32) -> Turn {
        Turn::after(Nanos::ZERO)
    }

    /// What a user asks now, all of it to one origin. Several requests are sent at once, and answered
    /// in order. One who asks nothing leaves, unless it comes again ([`Asking::again`]).
    fn ask(&mut self, user: u32, asking: &mut Asking);

    /// A request has ended, well or not. What is given back counts where nothing more of that user is
    /// out.
    fn request_ended(&mut self, answer: &Answer<'_>) -> Turn;
}

/// What of a reply is kept.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Wants {
    /// The head, from the status line to the empty line.
    pub heads: bool,
    /// The body, after removal of chunk framing.
    pub bodies: WantedBodies,
    /// Most bytes of a body; what is behind them is counted and not kept. `None`: all of it, as a server
    /// without an end has it too.
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
    /// Asks again after that pause.
    After(Nanos),
    /// Leaves. The load is over when all have left.
    Leaves,
    /// Its request goes on: what it asks next, one request and at once, belongs to the one that was
    /// answered. The two count as one request, from the first `sent` to the last `done`.
    GoesOn,
    /// Its request has failed by that, whatever it was answered; it asks again at once.
    Fails(Outcome),
}

impl Turn {
    /// Asks again after that pause.
    pub fn after(pause: Nanos) -> Self {
        Self::After(pause)
    }
}

/// A request that has ended.
#[derive(Debug, Clone, Copy)]
pub struct Answer<'a> {
    /// Whose it was ([`Sample::conn`]), which ([`Sample::request`]), and what came of it.
    pub sample: &'a Sample,
    /// The head of a complete reply, if wanted.
    pub head: &'a [u8],
    /// Its body, if wanted.
    pub body: &'a [u8],
}

/// Requests that a user asks at once.
#[derive(Debug, Default)]
pub struct Asking {
    /// Which origin they go to: of the plan, and behind them those that were added.
    pub origin: u32,
    /// Origins that nobody has named yet, in the order of their numbers.
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
    /// For a load with so many origins.
    pub fn new(n_origins: u32) -> Self {
        Self { n_origins, ..Self::default() }
    }

    /// Asks this, head and body as they are sent. `number` comes back in [`Sample::request`].
    pub fn request(&mut self, bytes: &[u8], number: u32) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        let is_head = bytes.starts_with(b"HEAD ");
        self.requests.push(UserRequest { bytes: start..self.bytes.len(), is_head, number });
    }

    /// Adds an origin, for this and all later requests of the thread; gives its number.
    pub fn add_origin(&mut self, origin: Origin) -> u32 {
        self.added.push(origin);
        self.n_origins += 1;
        self.n_origins - 1
    }

    /// Asks nothing this time, and has another turn after that pause, which is to be more than none:
    /// a user who never asks would keep all others from asking.
    pub fn again(&mut self, pause: Nanos) {
        self.again = Some(pause);
    }

    /// After which pause a user who asked nothing has another turn; `None`: it leaves.
    pub fn comes_again(&self) -> Option<Nanos> {
        self.again
    }

    /// What was asked.
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

    /// Makes room for the next user's.
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
