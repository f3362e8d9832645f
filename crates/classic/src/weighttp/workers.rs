//! weighttp's threads and their clients: who asks when, and what is counted of it. Owns the division of
//! requests among threads, what weighttp takes for a success and for an error; must not know what it
//! prints of that. Start reading at [`Workers`].
//!
//! Before the start each thread gets its part of the connections and its part of the requests, and what is
//! left over goes to the first ones. In a thread the requests are one pool for all its connections; a
//! thread that is done leaves its connections idle while others go on.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use record::{Answer, Asking, AtEnd, Outcome, Sample, Scenario, Seats, Turn, Users, Wants};
use units::Nanos;

/// Lines of error that are kept until they are said.
const ERRORS_MAX: usize = 10_000;

/// Longest head that 0.4 reads.
const HEAD_MAX: usize = 32 * 1024;

/// Part `index` of `total` in `n_parts`, what is left over to the first ones.
pub(super) fn part(total: u64, n_parts: u32, index: u32) -> u64 {
    let n_parts = u64::from(n_parts);
    total / n_parts + u64::from(u64::from(index) < total % n_parts)
}

/// Which of the two counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rules {
    /// 0.4; whether with -k.
    Old { keep_alive: bool },
    /// 0.5.
    New,
}

/// All threads.
pub(super) struct Workers {
    request: Vec<u8>,
    requests: u64,
    threads: u32,
    rules: Rules,
    shared: Arc<Shared>,
}

/// What threads tell while they run, and at their end.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// Requests that the first thread has done.
    pub(super) done_by_first: AtomicU64,
    counts: Mutex<Counts>,
    errors: Mutex<Errors>,
}

#[derive(Debug, Default)]
struct Errors {
    lines: Vec<String>,
    n: usize,
}

/// What is counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) started: u64,
    pub(super) done: u64,
    pub(super) succeeded: u64,
    pub(super) failed: u64,
    /// Of them: no reply, or none that weighttp can read.
    pub(super) errored: u64,
    /// 2xx to 5xx; in 0.4 what is below 200 is among the second.
    pub(super) classes: [u64; 4],
    pub(super) bytes: u64,
    /// What came behind heads, whatever its framing; in 0.4 of those that succeeded.
    pub(super) bodies: u64,
    /// For footnotes: of bodies that 0.4 takes for heads; when each thread was done; lines of error that
    /// were left out.
    pub(super) failed_bodies: u64,
    pub(super) ends: Vec<Nanos>,
    pub(super) unsaid: u64,
}

impl Workers {
    pub(super) fn new(request: Vec<u8>, requests: u64, threads: u32, rules: Rules) -> Self {
        Self { request, requests, threads, rules, shared: Arc::default() }
    }

    /// What threads tell.
    pub(super) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }
}

impl Shared {
    /// What was counted, when all threads have ended.
    pub(super) fn counts(&self) -> Counts {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        counts.unsaid = errors.n.saturating_sub(ERRORS_MAX) as u64;
        counts
    }

    /// Lines of error since the last call.
    pub(super) fn take_errors(&self) -> String {
        let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        errors.lines.drain(..).map(|line| format!("error: {line}\n")).collect()
    }

    fn complain(&self, line: &str) {
        let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        errors.n += 1;
        if errors.n <= ERRORS_MAX {
            errors.lines.push(line.to_owned());
        }
    }
}

impl Scenario for Workers {
    fn users(&self, seats: Seats) -> Box<dyn Users + '_> {
        let todo = part(self.requests, self.threads, seats.thread);
        // All begin at once; there are never more of them than requests.
        Box::new(Worker {
            all: self,
            seats,
            todo,
            n_begun: seats.n.into(),
            counts: Counts::default(),
        })
    }
}

/// One thread.
struct Worker<'a> {
    all: &'a Workers,
    seats: Seats,
    todo: u64,
    /// Requests that were asked, and those that clients are about to ask.
    n_begun: u64,
    counts: Counts,
}

impl Users for Worker<'_> {
    fn wants(&self) -> Wants {
        Wants { heads: matches!(self.all.rules, Rules::Old { .. }), ..Wants::default() }
    }

    fn ask(&mut self, _user: u32, asking: &mut Asking) {
        self.counts.started += 1;
        asking.request(&self.all.request, 0);
    }

    fn heard(&mut self, answer: &Answer<'_>) -> Turn {
        self.counts.add(self.all.rules, answer.sample, answer.head);
        if let Some(line) = complaint(answer.sample) {
            self.all.shared.complain(line);
        }
        if self.seats.thread == 0 {
            self.all.shared.done_by_first.store(self.counts.done, Ordering::Relaxed);
        }
        if self.n_begun == self.todo {
            return Turn::Leaves;
        }
        self.n_begun += 1;
        Turn::after(Nanos::ZERO)
    }
}

impl Drop for Worker<'_> {
    fn drop(&mut self) {
        let mut all = self.all.shared.counts.lock().unwrap_or_else(PoisonError::into_inner);
        all.merge(&self.counts);
    }
}

impl Counts {
    /// A request has ended.
    pub(super) fn add(&mut self, rules: Rules, sample: &Sample, head: &[u8]) {
        self.done += 1;
        self.bytes += sample.bytes_read;
        let body = match sample.bytes_head {
            0 => 0,
            head => sample.bytes_read - u64::from(head),
        };
        match self.ends.last_mut() {
            Some(end) => *end = sample.done,
            None => self.ends.push(sample.done),
        }
        let is_whole = sample.outcome == Outcome::Ok;
        let is_read = match rules {
            Rules::Old { keep_alive } => is_whole && is_readable(head, keep_alive),
            Rules::New => is_whole,
        };
        let is_class = self.classify(rules, sample.status, !is_whole || is_read);
        let is_success = is_read && is_class && sample.status < 400;
        match is_success {
            true => {
                self.succeeded += 1;
                self.bodies += body;
            }
            false => {
                self.failed += 1;
                self.failed_bodies += body;
                self.errored += u64::from(!is_read || !is_class);
            }
        }
    }

    /// Counts the status; whether weighttp knows such a one.
    fn classify(&mut self, rules: Rules, status: u16, is_seen: bool) -> bool {
        let index = match (status / 100, rules) {
            (0, _) => return false,
            (1, Rules::Old { .. }) => 1,
            (class @ 2..=5, _) => usize::from(class) - 2,
            _ => return false,
        };
        self.classes[index] += u64::from(is_seen);
        true
    }

    fn merge(&mut self, other: &Self) {
        self.started += other.started;
        self.done += other.done;
        self.succeeded += other.succeeded;
        self.failed += other.failed;
        self.errored += other.errored;
        self.classes.iter_mut().zip(other.classes).for_each(|(sum, more)| *sum += more);
        self.bytes += other.bytes;
        self.bodies += other.bodies;
        self.failed_bodies += other.failed_bodies;
        self.ends.extend(&other.ends);
    }
}

/// Whether 0.4 can read a reply with that head: of HTTP/1.1, not too long, and with -k of a length that is
/// told beforehand.
fn is_readable(head: &[u8], keep_alive: bool) -> bool {
    let has = |name: &str| {
        head.split(|byte| *byte == b'\n').any(|line| {
            line.get(..name.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(name.as_bytes()))
        })
    };
    head.starts_with(b"HTTP/1.1 ")
        && head.len() <= HEAD_MAX
        && (!keep_alive || has("content-length:") || has("transfer-encoding:"))
}

/// What weighttp says on stderr; of an orderly end inside a reply it is silent.
pub(super) fn complaint(sample: &Sample) -> Option<&'static str> {
    let is_lost = sample.at_end == AtEnd::Lost;
    Some(match sample.outcome {
        Outcome::ConnectRefused => "connect() failed: Connection refused (111)",
        Outcome::ConnectFailed => "connect() failed: Connection reset by peer (104)",
        Outcome::ConnectTimeout => "connect() failed: Connection timed out (110)",
        Outcome::PortExhausted => "connect() failed: Cannot assign requested address (99)",
        Outcome::FdExhausted => "socket() failed: Too many open files (24)",
        Outcome::ResetBeforeFirstByte | Outcome::ResetAfterFirstByte if is_lost => {
            "read() failed: Connection reset by peer (104)"
        }
        _ => return None,
    })
}

#[cfg(test)]
pub(super) mod tests {
    use record::Carrier;

    use super::*;

    pub(in crate::weighttp) fn sample(status: u16, outcome: Outcome) -> Sample {
        let has_reply = status > 0;
        Sample {
            due: Nanos::ZERO,
            sent: Nanos::from_micros(10),
            first_byte: Nanos::from_micros(30),
            done: Nanos::from_micros(40),
            bytes_read: if has_reply { 150 } else { 0 },
            bytes_body: if has_reply { 50 } else { 0 },
            status,
            outcome,
            conn: 0,
            bytes_head: if has_reply { 100 } else { 0 },
            carrier: Carrier::Fresh,
            at_end: if has_reply { AtEnd::Kept } else { AtEnd::Lost },
            request: 0,
        }
    }

    const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n";

    fn counted(rules: Rules, replies: &[(Sample, &[u8])]) -> Counts {
        let mut counts = Counts::default();
        replies.iter().for_each(|(sample, head)| counts.add(rules, sample, head));
        counts
    }

    /// The quirk: what is left over goes to the first threads.
    #[test]
    fn requests_are_divided_before_the_start() {
        let parts = |total, n| (0..n).map(|index| part(total, n, index)).collect::<Vec<_>>();
        assert_eq!(parts(11, 3), [4, 4, 3]);
        assert_eq!(parts(2, 2), [1, 1]);
        assert!((1..60).all(|c| {
            (c..60).all(|n| (1..=c as u32).all(|t| (0..t).all(|i| part(c, t, i) <= part(n, t, i))))
        }));
    }

    #[test]
    fn each_thread_asks_its_own_part() {
        let workers = Workers::new(b"GET".to_vec(), 7, 2, Rules::Old { keep_alive: true });
        for (thread, first, n) in [(0, 0, 2), (1, 2, 1)] {
            let mut users = workers.users(Seats { thread, first, n });
            let mut waiting: Vec<u32> = (first..first + n).collect();
            while let Some(user) = waiting.pop() {
                let mut asking = Asking::new(1);
                users.ask(user, &mut asking);
                assert_eq!(asking.bytes(), b"GET");
                let answer = Answer { sample: &sample(200, Outcome::Ok), head: HEAD, body: b"" };
                if users.heard(&answer) != Turn::Leaves {
                    waiting.push(user);
                }
            }
        }
        let counts = workers.shared().counts();
        assert_eq!((counts.started, counts.done, counts.succeeded), (7, 7, 7));
        assert_eq!((counts.bytes, counts.bodies, counts.ends.len()), (7 * 150, 7 * 50, 2));
        assert_eq!(workers.shared().done_by_first.load(Ordering::Relaxed), 4);
    }

    /// The quirk: bytes of a reply that failed count as those of heads.
    #[test]
    fn success_is_a_whole_reply_below_400() {
        let ok = |status| sample(status, Outcome::Ok);
        let replies = [(ok(200), HEAD), (ok(302), HEAD), (ok(404), HEAD), (ok(503), HEAD)];
        let counts = counted(Rules::Old { keep_alive: true }, &replies);
        assert_eq!((counts.succeeded, counts.failed, counts.errored), (2, 2, 0));
        assert_eq!(counts.classes, [1, 1, 1, 1]);
        assert_eq!((counts.bytes, counts.bodies, counts.failed_bodies), (600, 100, 100));
    }

    #[test]
    fn what_0_4_cannot_read_is_an_error() {
        let ok = || sample(200, Outcome::Ok);
        let old: &[u8] = b"HTTP/1.0 200 OK\r\nContent-Length: 50\r\n\r\n";
        let endless: &[u8] = b"HTTP/1.1 200 OK\r\nServer: x\r\n\r\n";
        let chunked: &[u8] = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        let replies = [(ok(), old), (ok(), endless), (ok(), chunked)];
        let errored = |rules| counted(rules, &replies).errored;
        assert_eq!(errored(Rules::Old { keep_alive: true }), 2);
        assert_eq!(errored(Rules::Old { keep_alive: false }), 1, "its end is the connection's");
        assert_eq!(errored(Rules::New), 0);
        let counts = counted(Rules::Old { keep_alive: true }, &replies);
        assert_eq!((counts.classes, counts.failed), ([1, 0, 0, 0], 2));
        let lost = sample(0, Outcome::ConnectRefused);
        let counts = counted(Rules::New, &[(lost, b"")]);
        assert_eq!((counts.failed, counts.errored, counts.classes), (1, 1, [0; 4]));
        assert_eq!(complaint(&lost), Some("connect() failed: Connection refused (111)"));
    }
}
