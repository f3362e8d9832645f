//! Threads that answer for an event loop. The loop reads and parses; they build the answer, send it
//! with blocking calls and give the connection back. Start reading at [`AnswerThreads::work`].
//!
//! Cost of a handoff: a lock and usually a wake-up, in each direction. One wake-up of the loop
//! brings all connections that were answered since the last. A connection is moved, not shared, so
//! nothing else is locked. It stays in the loop's poll set; new input waits until it is back.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use sys::clock;
use sys::wake::Wake;

use super::handoff::{HandoffQueue, Taken};
use super::socket_io::{self, AfterCall, InputState, Step};
use crate::service::Service;
use site::exchange::{Exchange, Spare};

/// A connection that is handed over.
pub(crate) struct AnswerJob<'s> {
    /// Its index in the loop.
    pub(crate) index: u32,
    pub(crate) socket: OwnedFd,
    pub(crate) exchange: Box<Exchange<'s>>,
}

/// The answer threads of one loop.
pub(crate) struct AnswerThreads<'s> {
    service: &'s Service,
    queue: HandoffQueue<AnswerJob<'s>>,
    /// How many threads answer.
    pub(crate) threads: usize,
    /// Connections that may be handed over at once; the loop counts them.
    pub(crate) jobs_max: usize,
    /// Answered connections that go back to the loop.
    done: Mutex<VecDeque<AnswerJob<'s>>>,
    /// Rung for the first of them: the loop watches it, and calls [`AnswerThreads::take_back`].
    pub(crate) returns: Wake,
    /// Rung to stop all threads at once.
    ends: Wake,
}

impl<'s> AnswerThreads<'s> {
    /// For `threads` threads, and at most `jobs_max` connections that wait or are in progress.
    pub(crate) fn new(service: &'s Service, threads: usize, jobs_max: usize) -> io::Result<Self> {
        let (returns, ends) = (Wake::new()?, Wake::new()?);
        Ok(Self {
            service,
            queue: HandoffQueue::default(),
            threads,
            jobs_max,
            done: Mutex::default(),
            returns,
            ends,
        })
    }

    /// Hands over a connection whose request is complete.
    pub(crate) fn submit(&self, job: AnswerJob<'s>) {
        self.queue.push(job);
    }

    /// Moves all answered connections to `done`.
    pub(crate) fn take_back(&self, done: &mut VecDeque<AnswerJob<'s>>) {
        // Before we take them: a connection that comes in between rings again.
        self.returns.hush();
        done.append(&mut self.lock_done());
    }

    /// Ends all threads. Each cuts the connection that it works on.
    pub(crate) fn close(&self) {
        self.ends.ring();
        self.queue.close_and_wait();
    }

    /// The life of a thread: answers one connection after the other.
    pub(crate) fn work(&self) {
        let _slot = self.service.board.claim_slot();
        let mut spare = Spare::default();
        while let Taken::Item(mut job) = self.queue.take(None) {
            job.exchange.lend(&mut spare);
            self.answer(&mut job);
            job.exchange.take_back(&mut spare);
            let mut done = self.lock_done();
            done.push_back(job);
            let is_first = done.len() == 1;
            drop(done);
            if is_first {
                self.returns.ring();
            }
            self.service.board.wait(clock::monotonic);
        }
    }

    fn lock_done(&self) -> MutexGuard<'_, VecDeque<AnswerJob<'s>>> {
        // A thread that panicked left it consistent: a job moves in or out in one step.
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers all complete requests and sends the answers. The thread waits for the client.
    fn answer(&self, job: &mut AnswerJob<'s>) {
        let AnswerJob { socket, exchange, .. } = job;
        exchange.answer(clock::monotonic());
        // The loop reads what else the client sends.
        let mut input = InputState::Empty;
        loop {
            let after_call = || AfterCall { now: clock::monotonic(), ending: false };
            let has_to_end =
                match socket_io::advance(socket.as_fd(), exchange, &mut input, after_call) {
                    Step::Read | Step::Close(_) => return,
                    Step::Turn => false,
                    Step::Gateway => {
                        // While a gateway answers, we read what else the client sends.
                        input = InputState::MayHave;
                        let ends = Some(self.ends.as_fd());
                        socket_io::wait_for_gateway(socket.as_fd(), exchange, ends)
                    }
                    Step::Write => {
                        let left = exchange.deadline().saturating_sub(clock::monotonic());
                        socket_io::wait_for_room(socket.as_fd(), &self.ends, left)
                    }
                    Step::Hold(until) => !socket_io::sleep_unless_rung(until, &self.ends),
                };
            if has_to_end {
                return exchange.lost(clock::monotonic());
            }
            // This does nothing before the deadline.
            exchange.timed_out(clock::monotonic());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::testing;

    fn job<'s>(service: &'s Service, index: u32) -> (UnixStream, AnswerJob<'s>) {
        let (client, socket) = UnixStream::pair().unwrap();
        socket.set_nonblocking(true).unwrap();
        let mut exchange = Exchange::new(service, service.address(), clock::monotonic());
        exchange.hold_answers();
        (client, AnswerJob { index, socket: socket.into(), exchange: Box::new(exchange) })
    }

    #[test]
    fn what_was_asked_is_answered_and_comes_back() {
        let service = Service::bind(testing::config()).unwrap();
        let answer_threads = AnswerThreads::new(&service, 1, 8).unwrap();
        let (mut client, mut job) = job(&service, 7);
        client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HT").unwrap();
        let after_call = || AfterCall { now: clock::monotonic(), ending: false };
        let mut input = InputState::MayHave;
        let step = socket_io::receive_request(
            job.socket.as_fd(),
            &mut job.exchange,
            &mut input,
            after_call,
        );
        assert_eq!(step, None, "it is to be answered");
        std::thread::scope(|scope| {
            scope.spawn(|| answer_threads.work());
            answer_threads.submit(job);
            let mut answer = vec![0; 15];
            client.read_exact(&mut answer).unwrap();
            assert_eq!(answer, b"HTTP/1.1 200 OK");
            let mut done = VecDeque::new();
            while done.is_empty() {
                answer_threads.take_back(&mut done);
            }
            assert_eq!(done[0].index, 7);
            answer_threads.close();
        });
    }

    #[test]
    fn a_client_that_takes_nothing_holds_no_thread_when_all_is_to_end() {
        let mut config = testing::config();
        config.site.content = site::config::Content::Fixed(units::Bytes(8 << 20));
        let service = Service::bind(config).unwrap();
        let answer_threads = AnswerThreads::new(&service, 1, 8).unwrap();
        let (mut client, mut job) = job(&service, 7);
        client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        let after_call = || AfterCall { now: clock::monotonic(), ending: false };
        socket_io::receive_request(
            job.socket.as_fd(),
            &mut job.exchange,
            &mut InputState::MayHave,
            after_call,
        );
        std::thread::scope(|scope| {
            scope.spawn(|| answer_threads.work());
            answer_threads.submit(job);
            client.read_exact(&mut [0; 15]).unwrap();
            answer_threads.close();
        });
    }
}
