//! weighttp's threads and their clients: who sends when, and what is counted. Owns the division of requests among
//! threads, and what weighttp treats as a success or an error. Start reading at [`Workers`].
//!
//! Before the start each thread gets its part of the connections and of the requests; the remainder goes to the first
//! threads. Within a thread all connections share one pool of requests. A thread that is done leaves its connections
//! idle while others continue.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use record::{
    Answer, Asking, AtEnd, Carrier, LoadRecord, Outcome, Sample, Scenario, Seats, Turn, Users,
    Wants,
};
use units::Nanos;

use crate::command::RequestAccount;

/// Most error lines that are kept until they are printed.
const ERRORS_MAX: usize = 10_000;

/// Longest head that 0.4 reads.
const HEAD_MAX: usize = 32 * 1024;

/// Part `index` of `total` in `n_parts`; the remainder goes to the first parts.
pub(super) fn part(total: u64, n_parts: u32, index: u32) -> u64 {
    let n_parts = u64::from(n_parts);
    total / n_parts + u64::from(u64::from(index) < total % n_parts)
}

/// The version whose rules count.
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

/// What threads report while they run, and at their end.
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

/// The counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) started: u64,
    pub(super) done: u64,
    pub(super) succeeded: u64,
    pub(super) failed: u64,
    /// Of them: no reply, or none that weighttp can read.
    pub(super) errored: u64,
    /// 2xx to 5xx; in 0.4 statuses below 200 count as the second.
    pub(super) classes: [u64; 4],
    pub(super) bytes: u64,
    /// Bytes after the heads, including any framing; in 0.4 those of successful requests.
    pub(super) bodies: u64,
    /// For footnotes: body bytes that 0.4 counts as heads; when each thread was done; error lines that were left out.
    pub(super) failed_bodies: u64,
    pub(super) ends: Vec<Nanos>,
    pub(super) unsaid: u64,
    /// Of `done`: those that 0.4 would have sent without success, and that were not sent here; and replies
    /// that no figure includes, because 0.4 would not have sent their requests.
    pub(super) in_vain: u64,
    pub(super) left_out: u64,
}

impl Workers {
    pub(super) fn new(request: Vec<u8>, requests: u64, threads: u32, rules: Rules) -> Self {
        Self { request, requests, threads, rules, shared: Arc::default() }
    }

    /// The shared state of the threads.
    pub(super) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }
}

impl Shared {
    /// The counts, when all threads have ended.
    pub(super) fn counts(&self) -> Counts {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        counts.unsaid = errors.n.saturating_sub(ERRORS_MAX) as u64;
        counts
    }

    /// Error lines since the last call.
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
    /// Requests that were sent, including those that clients are about to send.
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

    fn request_ended(&mut self, answer: &Answer<'_>) -> Turn {
        if self.is_in_vain(answer.sample) && !self.send_in_vain() {
            self.counts.left_out += 1;
        } else {
            self.counts.add(self.all.rules, answer.sample, answer.head);
        }
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

impl Worker<'_> {
    /// Whether 0.4 would have sent a request before this one on a connection that the server was closing: it sends its
    /// next one at once, without checking. Here the request went out on a new connection.
    fn is_in_vain(&self, sample: &Sample) -> bool {
        self.all.rules == Rules::Old { keep_alive: true } && sample.carrier == Carrier::Replacing
    }

    /// Counts the request that 0.4 would have sent without success, and returns whether it would have had another.
    fn send_in_vain(&mut self) -> bool {
        let counts = &mut self.counts;
        counts.done += 1;
        counts.failed += 1;
        counts.errored += 1;
        counts.in_vain += 1;
        let has_another = self.n_begun < self.todo;
        if has_another {
            self.n_begun += 1;
            counts.started += 1;
        }
        has_another
    }
}

impl Drop for Worker<'_> {
    fn drop(&mut self) {
        let mut all = self.all.shared.counts.lock().unwrap_or_else(PoisonError::into_inner);
        all.merge(&self.counts);
    }
}

impl Counts {
    /// Adds a request that has ended.
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
            Rules::Old { .. } => is_whole && is_readable(head),
            Rules::New => is_whole,
        };
        // The status counts as soon as it is read, whatever happens to the rest. Replies that broke off have no stored
        // head: they are assumed to be HTTP/1.1.
        let is_seen = rules == Rules::New || head.is_empty() || head.starts_with(VERSION);
        let is_class = self.classify(rules, sample.status, is_seen);
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

    /// Counts the status; returns whether weighttp knows it.
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
        self.in_vain += other.in_vain;
        self.left_out += other.left_out;
    }

    /// Each request of the load succeeded, failed, or is unfinished.
    pub(super) fn tally(&self, record: &LoadRecord) -> RequestAccount {
        let left_out = self.left_out + record.requests.unanswered;
        let by_outcome = (self.succeeded + self.failed).saturating_sub(self.in_vain);
        RequestAccount { counted: self.done - self.in_vain, by_outcome, left_out }
    }
}

/// The beginning of a reply that 0.4 can read.
const VERSION: &[u8] = b"HTTP/1.1 ";

/// Whether 0.4 can read a reply with that head: HTTP/1.1, not too long, and with a length given in the head, with -k or
/// without. A 204 has none, and fails. 0.4 recognises fields by their names, a colon and a space, and gives up on an
/// unknown Connection or coding.
fn is_readable(head: &[u8]) -> bool {
    let (mut length, mut is_chunked) = (None, false);
    for line in head.split(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let value = |name: &str| {
            let begins = begins_with(line, name);
            begins.then(|| &line[name.len()..])
        };
        if let Some(value) = value("content-length: ") {
            length = value.iter().all(u8::is_ascii_digit).then_some(());
        } else if let Some(value) = value("connection: ") {
            if !begins_with(value, "close") && !begins_with(value, "keep-alive") {
                return false;
            }
        } else if let Some(value) = value("transfer-encoding: ") {
            if !begins_with(value, "chunked") {
                return false;
            }
            is_chunked = true;
        }
    }
    head.starts_with(VERSION) && head.len() <= HEAD_MAX && (is_chunked || length.is_some())
}

fn begins_with(text: &[u8], begin: &str) -> bool {
    text.get(..begin.len()).is_some_and(|text| text.eq_ignore_ascii_case(begin.as_bytes()))
}

/// weighttp's message on stderr; there is none for an orderly end inside a reply.
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

    /// A quirk: the remainder goes to the first threads.
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
                if users.request_ended(&answer) != Turn::Leaves {
                    waiting.push(user);
                }
            }
        }
        let counts = workers.shared().counts();
        assert_eq!((counts.started, counts.done, counts.succeeded), (7, 7, 7));
        assert_eq!((counts.bytes, counts.bodies, counts.ends.len()), (7 * 150, 7 * 50, 2));
        assert_eq!(workers.shared().done_by_first.load(Ordering::Relaxed), 4);
    }

    /// A quirk: bytes of a failed reply count as those of heads.
    #[test]
    fn success_is_a_whole_reply_below_400() {
        let ok = |status| sample(status, Outcome::Ok);
        let replies = [(ok(200), HEAD), (ok(302), HEAD), (ok(404), HEAD), (ok(503), HEAD)];
        let counts = counted(Rules::Old { keep_alive: true }, &replies);
        assert_eq!((counts.succeeded, counts.failed, counts.errored), (2, 2, 0));
        assert_eq!(counts.classes, [1, 1, 1, 1]);
        assert_eq!((counts.bytes, counts.bodies, counts.failed_bodies), (600, 100, 100));
    }

    /// A quirk: 0.4 counts a status when it has read the first line.
    #[test]
    fn the_status_of_a_reply_that_broke_off_counts() {
        let broken = sample(200, Outcome::ResetAfterFirstByte);
        for rules in [Rules::Old { keep_alive: true }, Rules::New] {
            let counts = counted(rules, &[(broken, b"")]);
            assert_eq!((counts.classes, counts.succeeded), ([1, 0, 0, 0], 0), "{rules:?}");
            assert_eq!((counts.failed, counts.errored), (1, 1), "{rules:?}");
        }
    }

    #[test]
    fn a_204_and_a_field_that_0_4_does_not_know_are_errors() {
        let heads: [(&[u8], bool); 7] = [
            (b"HTTP/1.1 204 No Content\r\nServer: x\r\n\r\n", false),
            (b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", true),
            (b"HTTP/1.1 200 OK\r\nContent-Length:5\r\n\r\n", false),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 5x\r\n\r\n", false),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: Upgrade\r\n\r\n", false),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: CLOSE\r\n\r\n", true),
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", false),
        ];
        for (head, reads) in heads {
            assert_eq!(is_readable(head), reads, "{}", String::from_utf8_lossy(head));
        }
    }

    /// Each connection is closed unannounced after 10 replies: 0.4 sends an eleventh request, which fails.
    #[test]
    fn a_request_on_a_connection_that_the_server_closed_is_a_failed_one() {
        let of = |keep_alive| {
            let workers = Workers::new(b"GET".to_vec(), 200, 1, Rules::Old { keep_alive });
            let mut users = workers.users(Seats { thread: 0, first: 0, n: 4 });
            let mut asked = [0; 4];
            let mut waiting: Vec<u32> = (0..4).rev().collect();
            while let Some(user) = waiting.pop() {
                users.ask(user, &mut Asking::new(1));
                let n = &mut asked[user as usize];
                let carrier = match *n {
                    0 => Carrier::Fresh,
                    n if n % 10 == 0 => Carrier::Replacing,
                    _ => Carrier::Reused,
                };
                *n += 1;
                let sample = Sample { carrier, ..sample(200, Outcome::Ok) };
                let answer = Answer { sample: &sample, head: HEAD, body: b"" };
                if users.request_ended(&answer) != Turn::Leaves {
                    waiting.insert(0, user);
                }
            }
            drop(users);
            (workers.shared().counts(), asked.iter().sum::<u64>())
        };
        let (counts, n_sent) = of(true);
        assert_eq!((counts.started, counts.done, counts.failed), (200, 200, 16));
        assert_eq!(counts.done - counts.in_vain + counts.left_out, n_sent);
        assert_eq!(of(false).0.failed, 0, "without -k none is kept");
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
        assert_eq!(errored(Rules::Old { keep_alive: false }), 2, "without -k too");
        assert_eq!(errored(Rules::New), 0);
        let counts = counted(Rules::Old { keep_alive: true }, &replies);
        assert_eq!((counts.classes, counts.failed), ([2, 0, 0, 0], 2));
        let lost = sample(0, Outcome::ConnectRefused);
        let counts = counted(Rules::New, &[(lost, b"")]);
        assert_eq!((counts.failed, counts.errored, counts.classes), (1, 1, [0; 4]));
        assert_eq!(complaint(&lost), Some("connect() failed: Connection refused (111)"));
    }
}
