//! Planted faults: a server that is wrong on purpose and by a known amount, so that tools that measure can be tested
//! against it. Owns what a fault may do to a response, how one is typed, and the one stream of random numbers.
//! docs/faults.md says what a user sees of each. Start reading at `Effect`, then `delay`, the shortest.
//!
//! A hold lasts from the completion of the request at the server, which is the return of the receive that completed it,
//! to the call that sends the answer. The server's own work lies within that time, so a hold adds to the time of the
//! network and the client, not to the server's. Without any fault all this costs a request 3 ns: a few branches that
//! always go the same way (`exchange_rate`, 37 to 40).
//!
//! Adding a fault: one file with an `ITEM`, and its line in `ALL`. If the fault acts at a new point of a response, that
//! is a new method of `Effect`, which does nothing for the others.

mod batch;
mod body;
mod churn;
mod delay;
mod draw;
mod empty_first;
mod encoding;
mod keepalive;
mod length;
mod mode;
mod nodelay;
mod pause;
mod queue;
mod slots;
mod spec;
mod stall;
mod status;
mod warmup;

use std::fmt;
use std::io;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use sys::clock;
use sys::process::{self, SharedCells, Signal};
use units::Nanos;

pub(crate) use draw::Draw;
use queue::Queue;
use spec::Spec;

use crate::nearest::nearest;

/// The longest time for which all faults of a server together delay or stall a response. Also the longest wait for a
/// slot before that, and the longest pause or batch.
pub const HOLD_MAX: Nanos = Nanos::from_secs(60);

/// Faults that a server may have.
pub const FAULTS_MAX: usize = 16;

/// What a fault does at each point of a response. The methods that it leaves out do nothing.
pub(crate) trait Effect: fmt::Debug + Send + Sync {
    /// What is wrong with this response, besides its timing.
    fn flaw(&self, _draw: Draw, _answered: AnsweredBefore, _flaws: &mut Flaws) {}

    /// How long this response is held.
    fn hold(&self, _draw: Draw) -> Hold {
        Hold::default()
    }

    /// When an answer that is ready at `at` may begin to leave: `at` or later. Both count from the start of the server.
    fn align(&self, at: Nanos) -> Nanos {
        at
    }

    /// Additional CPU time of a request.
    fn cost(&self) -> Nanos {
        Nanos::ZERO
    }

    /// Answers after which a process ends.
    fn lifetime(&self) -> Option<u32> {
        None
    }

    /// How many requests may be held at once in the whole server.
    fn slots(&self) -> Option<u32> {
        None
    }

    /// Whether connections are without TCP_NODELAY.
    fn is_nodelay_off(&self) -> bool {
        false
    }

    /// When bytes may leave: `at` or later. Both count from the start of the server.
    fn clear(&self, at: Nanos) -> Nanos {
        at
    }

    /// Whether it pauses the server again and again, which only one fault may do.
    fn recurs(&self) -> bool {
        false
    }
}

/// What came before a response.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnsweredBefore {
    /// Requests of its connection that were answered.
    pub(crate) on_connection: u32,
}

/// What is wrong with a response, besides its timing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Flaws {
    /// It has this error status instead.
    pub(crate) status: Option<u16>,
    /// Its body is empty.
    pub(crate) is_empty: bool,
    /// Its body is in gzip.
    pub(crate) is_coded: bool,
    /// Its body is zeros, as many as the bytes it should have.
    pub(crate) is_zeroed: bool,
    /// It is one byte shorter than its length says.
    pub(crate) is_short: bool,
    /// Its head is sent separately.
    pub(crate) is_split: bool,
    /// The connection is closed after it, whatever it says.
    pub(crate) ends: bool,
}

/// How long a response is held.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Hold {
    /// All of it, from the completion of its request on.
    pub(crate) head: Nanos,
    /// What follows the head, from the end of that time on.
    pub(crate) body: Nanos,
}

/// A fault that can be typed.
struct FaultKind {
    /// The word before the first `=`.
    name: &'static str,
    /// All its forms.
    forms: &'static str,
    /// It can be planted only once.
    is_unique: bool,
    /// Reads what follows the `=`, or says what is wrong with it.
    read: fn(&mut Spec<'_>) -> Result<Arc<dyn Effect>, String>,
}

/// Every fault.
static ALL: &[&FaultKind] = &[
    &delay::ITEM,
    &stall::ITEM,
    &pause::ITEM,
    &batch::ITEM,
    &slots::ITEM,
    &status::ITEM,
    &length::ITEM,
    &body::ITEM,
    &empty_first::ITEM,
    &encoding::ITEM,
    &keepalive::ITEM,
    &churn::ITEM,
    &nodelay::ITEM,
    &mode::ITEM,
    &warmup::ITEM,
];

/// A fault as it was typed, and what it does.
#[derive(Debug, Clone)]
pub struct Fault {
    typed: String,
    /// The name of its kind, if that can be planted only once.
    unique: Option<&'static str>,
    effect: Arc<dyn Effect>,
}

impl FaultKind {
    /// The first of its forms, as it can be typed.
    fn example(&self) -> &'static str {
        let ends = [" or ", ", with ", " ("].map(|end| self.forms.find(end));
        &self.forms[..ends.into_iter().flatten().min().unwrap_or(self.forms.len())]
    }
}

impl Fault {
    /// One of each kind, as it can be typed: for a help text.
    pub fn examples() -> impl Iterator<Item = &'static str> {
        ALL.iter().map(|kind| kind.example())
    }
}

impl FromStr for Fault {
    type Err = String;

    fn from_str(typed: &str) -> Result<Self, String> {
        let typed = typed.trim();
        let (name, _) = typed.split_once('=').unwrap_or((typed, ""));
        let Some(kind) = ALL.iter().find(|kind| kind.name == name.trim()) else {
            let nearest = nearest(name, ALL.iter().map(|kind| kind.name));
            let forms: Vec<&str> = ALL.iter().map(|kind| kind.forms).collect();
            return Err(format!(
                "unknown fault `{name}`; did you mean `{}`? (all: {})",
                nearest.unwrap_or_default(),
                forms.join("; ")
            ));
        };
        let mut spec = Spec::of(typed);
        let read = (kind.read)(&mut spec).and_then(|effect| spec.end().map(|()| effect));
        let effect =
            read.map_err(|reason| format!("`{typed}`: {reason}; write it as {}", kind.forms))?;
        let unique = kind.is_unique.then_some(kind.name);
        Ok(Self { typed: typed.to_owned(), unique, effect })
    }
}

/// As it was typed.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.typed)
    }
}

/// Refuses faults that cannot be planted together, with the reason and the way out.
pub(crate) fn check(faults: &[Fault]) -> Result<(), String> {
    if faults.len() > FAULTS_MAX {
        return Err(format!("at most {FAULTS_MAX} faults can be planted, got {}", faults.len()));
    }
    for (place, fault) in faults.iter().enumerate() {
        let is_same = |other: &&Fault| fault.unique.is_some() && other.unique == fault.unique;
        if let Some(other) = faults[..place].iter().find(is_same) {
            return Err(format!("`{other}` and `{fault}` exclude each other: remove one of them"));
        }
    }
    let mut recurring = faults.iter().filter(|fault| fault.effect.recurs());
    match (recurring.next(), recurring.next()) {
        (Some(first), Some(second)) => Err(format!(
            "`{first}` and `{second}` together might block all answers for ever: remove one of them; pause=at:TIME,for:TIME can be repeated"
        )),
        _ => Ok(()),
    }
}

/// The faults of a running server, shared by all its threads and processes.
#[derive(Debug)]
pub struct Faults {
    planted: Vec<Fault>,
    /// What pauses count from.
    start: Nanos,
    /// One cell: how many responses were planned so far. All processes and threads draw from the one stream, so that
    /// the n-th response of the server is held for the same time under every model. After 2^32 the stream begins again.
    responses: SharedCells,
    /// The queue, if the number of requests in progress is limited.
    queue: Option<Queue>,
    /// Additional CPU time of each request.
    cost: Nanos,
    /// Answers after which a process ends; 0: never.
    lifetime: u32,
    /// Answers of this process; not shared. A child begins with the count of its parent, which answers nothing.
    answers: AtomicU32,
    /// This process may end without ending the server.
    is_child: AtomicBool,
}

impl Faults {
    /// Plants the faults in a server that starts at `start`; `None` if there are none.
    ///
    /// # Errors
    /// ENOMEM.
    pub fn plant(faults: &[Fault], start: Nanos) -> io::Result<Option<Self>> {
        if faults.is_empty() {
            return Ok(None);
        }
        let effects = || faults.iter().map(|fault| &fault.effect);
        Ok(Some(Self {
            start,
            responses: SharedCells::new(1)?,
            queue: effects().find_map(|effect| effect.slots()).map(Queue::new).transpose()?,
            cost: effects().map(|effect| effect.cost()).fold(Nanos::ZERO, Nanos::saturating_add),
            lifetime: effects().find_map(|effect| effect.lifetime()).unwrap_or(0),
            answers: AtomicU32::new(0),
            is_child: AtomicBool::new(false),
            planted: faults.to_vec(),
        }))
    }

    /// The calling process is a child that its model replaces when it ends.
    pub fn enter_child(&self) {
        self.is_child.store(true, Relaxed);
    }

    /// What the faults do to the next response of the server, whose request was complete at `complete`. Call it
    /// once for each response, before the response is made.
    pub(crate) fn plan(&self, complete: Nanos, answered: AnsweredBefore) -> Release {
        burn(self.cost);
        let number = u64::from(self.responses[0].fetch_add(1, Relaxed));
        let (mut sum, mut flaws) = (Hold::default(), Flaws::default());
        for (place, fault) in self.planted.iter().enumerate() {
            let draw = Draw { number, place: place as u64 };
            let Hold { head, body } = fault.effect.hold(draw);
            sum.head = sum.head.saturating_add(head).min(HOLD_MAX);
            sum.body = sum.body.saturating_add(body).min(HOLD_MAX - sum.head);
            fault.effect.flaw(draw, answered, &mut flaws);
        }
        flaws.ends |= self.wears_out();
        let begin = match &self.queue {
            _ if flaws.status.is_some() => None,
            None => Some(complete),
            Some(queue) => queue.enter(complete, sum.head.saturating_add(sum.body), HOLD_MAX),
        };
        let Some(begin) = begin else {
            let status = flaws.status.or(Some(503));
            let head = self.aligned(complete);
            return Release {
                head,
                body_until: head,
                body_at: None,
                flaws: Flaws { status, ..flaws },
            };
        };
        let head = begin.saturating_add(sum.head);
        let body_until = self.aligned(head.saturating_add(sum.body));
        Release { head: self.aligned(head), body_until, body_at: None, flaws }
    }

    /// Counts an answer of this process. Returns whether it must be the last of its connection, because the process
    /// ends.
    fn wears_out(&self) -> bool {
        if self.lifetime == 0 {
            return false;
        }
        let answers = self.answers.fetch_add(1, Relaxed) + 1;
        if !self.is_child.load(Relaxed) {
            return answers.is_multiple_of(self.lifetime);
        }
        if answers >= self.lifetime {
            // The signal with which its parent would end it. It is sent again with each further answer, because a
            // signal that arrives just before a call blocks is lost.
            process::signal(rustix::process::getpid(), Signal::TERM);
        }
        answers == self.lifetime
    }

    /// When an answer that is ready at `at` may begin to leave.
    fn aligned(&self, at: Nanos) -> Nanos {
        let since = at.saturating_sub(self.start);
        let aligned = self.planted.iter().fold(since, |at, fault| fault.effect.align(at));
        at.max(self.start.saturating_add(aligned))
    }

    /// The first instant, `at` or later, that lies in no pause.
    fn clear(&self, at: Nanos) -> Nanos {
        let mut clear = at.saturating_sub(self.start);
        // Each round but the last passes a pause that comes once, or the one that recurs, which ends in a gap of its
        // own. So two rounds for each fault are enough.
        for _ in 0..2 * FAULTS_MAX {
            let before = clear;
            clear = self.planted.iter().fold(clear, |at, fault| fault.effect.clear(at));
            if clear == before {
                break;
            }
        }
        at.max(self.start.saturating_add(clear))
    }
}

/// Whether connections of a server with these faults have TCP_NODELAY.
pub fn has_nodelay(faults: &[Fault]) -> bool {
    !faults.iter().any(|fault| fault.effect.is_nodelay_off())
}

/// Burns this much CPU time of the calling thread.
fn burn(cost: Nanos) {
    if cost > Nanos::ZERO {
        let end = clock::thread_cpu().saturating_add(cost);
        while clock::thread_cpu() < end {
            std::hint::spin_loop();
        }
    }
}

/// What the faults do to a response, and when its parts may leave.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Release {
    head: Nanos,
    /// Not before `head`.
    body_until: Nanos,
    /// Bytes of the connection up to the end of the head, if the rest leaves later or separately.
    body_at: Option<u64>,
    /// What else is wrong with it.
    pub(crate) flaws: Flaws,
}

impl Release {
    /// Takes note of the answer that was made: its body, if there is any, begins at the byte `body_at` of
    /// its connection.
    pub(crate) fn place(&mut self, body_at: impl FnOnce() -> Option<u64>) {
        let is_parted = self.body_until > self.head || self.flaws.is_split;
        self.body_at = if is_parted { body_at() } else { None };
    }

    /// When a connection that has sent `sent` bytes may send another: `now` or later.
    pub(crate) fn next(&self, faults: &Faults, sent: u64, now: Nanos) -> Nanos {
        let due = match self.body_at {
            Some(at) if sent >= at => self.body_until,
            _ => self.head,
        };
        faults.clear(due.max(now))
    }

    /// How many bytes may leave at `now`, all of them of the head; `None`: any number.
    pub(crate) fn bytes_max(&self, sent: u64, now: Nanos) -> Option<usize> {
        let at = self.body_at.filter(|&at| sent < at)?;
        (now < self.body_until || self.flaws.is_split).then_some((at - sent) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_every_kind_can_be_typed() {
        for example in Fault::examples() {
            assert!(example.parse::<Fault>().is_ok(), "{example}");
        }
    }
}
