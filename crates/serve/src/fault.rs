//! Planted faults: a server that is wrong on purpose and by a known amount, so that what measures it
//! can be proved. Owns what a fault may do to a response, how one is typed, and the one stream of
//! chance; must not know sockets, nor who waits while a response is held.
//! Start reading at `Effect`, then `delay`, the shortest.
//!
//! A hold counts from the completion of the request at the server, which is the return of the receive
//! that completed it, to the call that sends the answer. What the server's own work takes lies within
//! that time, so that a hold adds to the network and the client, not to the server. Without any fault
//! all this costs a request 3 ns, some branches that are always taken alike (`exchange_rate`, 37 to 40).
//!
//! Adding a fault: one file with an `ITEM`, and its line in `ALL`; what it does at a new point of a
//! response is a new method of `Effect` that does nothing for the others.

mod delay;
mod draw;
mod pause;
mod spec;
mod stall;

use std::fmt;
use std::io;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use sys::process::SharedCells;
use units::Nanos;

pub(crate) use draw::Draw;
use spec::Spec;

use crate::models::edits;

/// The longest that the faults of a server together delay or stall a response, and that one pause
/// lasts.
pub const HOLD_MAX: Nanos = Nanos::from_secs(60);

/// Faults that a server may have.
pub const FAULTS_MAX: usize = 16;

/// What a fault does, at each point of a response where one can do something. The methods that it
/// leaves out do nothing.
pub(crate) trait Effect: fmt::Debug + Send + Sync {
    /// How long this response is held.
    fn hold(&self, _draw: Draw) -> Hold {
        Hold::default()
    }

    /// The first instant not before `at` at which bytes may leave. Both count from the start of the
    /// server.
    fn clear(&self, at: Nanos) -> Nanos {
        at
    }

    /// Whether it makes the server stand still again and again, which only one fault may.
    fn recurs(&self) -> bool {
        false
    }
}

/// How long a response is held.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Hold {
    /// All of it, from the completion of its request.
    pub(crate) head: Nanos,
    /// What follows its head, from the end of that.
    pub(crate) body: Nanos,
}

/// A fault that can be typed.
struct Kind {
    /// What stands before the first `=`.
    name: &'static str,
    /// All of the forms that it has.
    forms: &'static str,
    /// Reads what stands behind the `=`, or says what is wrong with it.
    read: fn(&mut Spec<'_>) -> Result<Arc<dyn Effect>, String>,
}

/// Every fault.
static ALL: &[&Kind] = &[&delay::ITEM, &stall::ITEM, &pause::ITEM];

/// A fault as it was typed, and what it does.
#[derive(Debug, Clone)]
pub struct Fault {
    typed: String,
    effect: Arc<dyn Effect>,
}

impl FromStr for Fault {
    type Err = String;

    fn from_str(typed: &str) -> Result<Self, String> {
        let typed = typed.trim();
        let (name, _) = typed.split_once('=').unwrap_or((typed, ""));
        let Some(kind) = ALL.iter().find(|kind| kind.name == name.trim()) else {
            let nearest = ALL.iter().map(|kind| kind.name).min_by_key(|known| edits(name, known));
            let forms: Vec<&str> = ALL.iter().map(|kind| kind.forms).collect();
            return Err(format!(
                "there is no fault `{name}`; the nearest is `{}` (all: {})",
                nearest.unwrap_or_default(),
                forms.join("; ")
            ));
        };
        let mut spec = Spec::of(typed);
        let read = (kind.read)(&mut spec).and_then(|effect| spec.end().map(|()| effect));
        let effect =
            read.map_err(|reason| format!("`{typed}`: {reason}; write it as {}", kind.forms))?;
        Ok(Self { typed: typed.to_owned(), effect })
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
        return Err(format!("{} faults are more than {FAULTS_MAX}: leave some out", faults.len()));
    }
    let mut recurring = faults.iter().filter(|fault| fault.effect.recurs());
    match (recurring.next(), recurring.next()) {
        (Some(first), Some(second)) => Err(format!(
            "`{first}` and `{second}` together might let nothing leave for ever: leave one of them \
             out; pause=at:TIME,for:TIME may be given several times"
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
    /// One cell: responses that were given their holds so far. Every process and thread draws from the
    /// one stream, so that the n-th response of the server is held alike under every model. After
    /// 2^32 the stream begins again.
    responses: SharedCells,
}

impl Faults {
    /// Those faults in a server that starts at `start`; `None` where there are none.
    ///
    /// # Errors
    /// ENOMEM.
    pub fn plant(faults: &[Fault], start: Nanos) -> io::Result<Option<Self>> {
        if faults.is_empty() {
            return Ok(None);
        }
        Ok(Some(Self { planted: faults.to_vec(), start, responses: SharedCells::new(1)? }))
    }

    /// When the next response of the server may leave, whose request was complete at `complete` and
    /// whose body, if there is any, begins at the byte `body_at` of its connection.
    pub(crate) fn next_response(
        &self,
        complete: Nanos,
        body_at: impl FnOnce() -> Option<u64>,
    ) -> Release {
        let number = u64::from(self.responses[0].fetch_add(1, Relaxed));
        let mut sum = Hold::default();
        for (place, fault) in self.planted.iter().enumerate() {
            let Hold { head, body } = fault.effect.hold(Draw { number, place: place as u64 });
            sum.head = sum.head.saturating_add(head);
            sum.body = sum.body.saturating_add(body);
        }
        let after = |hold: Nanos| complete.saturating_add(hold.min(HOLD_MAX));
        let head = after(sum.head);
        let body = after(sum.head.saturating_add(sum.body));
        let body = if body > head { body_at().map(|at| (at, body)) } else { None };
        Release { head, body }
    }

    /// The first instant not before `at` that lies in no pause.
    fn clear(&self, at: Nanos) -> Nanos {
        let mut clear = at.saturating_sub(self.start);
        // Each round but the last leaves a pause that comes once behind, or the one that recurs, which
        // ends in a gap of its own: two rounds for each fault are enough.
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

/// When the parts of a response may leave.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Release {
    head: Nanos,
    /// A part that is held longer: bytes of the connection before it, and until when.
    body: Option<(u64, Nanos)>,
}

impl Release {
    /// The first instant not before `now` at which a byte may leave of a connection that has sent
    /// `sent` bytes.
    pub(crate) fn next(&self, faults: &Faults, sent: u64, now: Nanos) -> Nanos {
        let due = match self.body {
            Some((at, until)) if sent >= at => until,
            _ => self.head,
        };
        faults.clear(due.max(now))
    }

    /// How many bytes may leave then, which are all of the head; `None`: any number.
    pub(crate) fn bytes_max(&self, sent: u64, now: Nanos) -> Option<usize> {
        let (at, _) = self.body.filter(|(at, until)| sent < *at && now < *until)?;
        Some((at - sent) as usize)
    }
}
