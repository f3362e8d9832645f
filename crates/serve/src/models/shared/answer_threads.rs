//! Threads that answer for an event loop: it reads and parses, they build the answer and send it,
//! blocking where they must, and give the connection back. Owns the two queues between them; must not
//! know what a loop does. Start reading at [`AnswerThreads::work`].
//!
//! Cost of a handing-over: a lock and mostly a wake-up there, and the same back, where one wake-up
//! brings all that have been answered since the last. A connection is moved, never shared, so that
//! nothing else is locked. It stays in the loop's poll set: what arrives meanwhile waits for it.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::event::PollFlags;
use sys::clock;
use sys::wake::Wake;

use super::handoff::{HandoffQueue, Taken};
use super::socket_io::{self, AfterCall, InputState, SPIN, Step};
use crate::service::Service;
use site::exchange::{Exchange, Spare};

/// A connection on its way.
pub(crate) struct AnswerJob<'s> {
    /// Where the loop has it.
    pub(crate) index: u32,
    pub(crate) socket: OwnedFd,
    pub(crate) exchange: Box<Exchange<'s>>,
}

/// The threads' side of a loop.
pub(crate) struct AnswerThreads<'s> {
    service: &'s Service,
    queue: HandoffQueue<AnswerJob<'s>>,
    /// Who answers.
    threads: usize,
    /// Connections that may be on their way at once.
    jobs_max: usize,
    /// Those that are to go back to the loop.
    done: Mutex<VecDeque<AnswerJob<'s>>>,
    /// Rung where there is the first of them.
    returns: Wake,
    /// Rung when all is to end at once.
    ends: Wake,
}

impl<'s> AnswerThreads<'s> {
    /// Of so many threads, for at most `jobs_max` connections at once, in work or waiting for it.
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

    /// How many answer.
    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// Connections that may be on their way at once; the loop counts them.
    pub(crate) fn jobs_max(&self) -> usize {
        self.jobs_max
    }

    /// Hands over a connection that is asked for something.
    pub(crate) fn submit(&self, job: AnswerJob<'s>) {
        self.queue.push(job);
    }

    /// What the loop watches: readable while there is something for [`AnswerThreads::take_back`].
    pub(crate) fn returns(&self) -> &Wake {
        &self.returns
    }

    /// Moves all connections that have been answered to `done`.
    pub(crate) fn take_back(&self, done: &mut VecDeque<AnswerJob<'s>>) {
        // Before they are taken: one that comes in between rings again.
        self.returns.hush();
        done.append(&mut self.lock_done());
    }

    /// Has all threads end, as soon as they have cut what they are at.
    pub(crate) fn close(&self) {
        self.ends.ring();
        self.queue.close_and_wait();
    }

    /// A thread: answers one connection after the other.
    pub(crate) fn work(&self) {
        let _seat = self.service.board.sit();
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
        // A thread that panicked left it whole: a job is moved in or out in one step.
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers all that has been read whole, and sends it; the thread waits for the client.
    fn answer(&self, job: &mut AnswerJob<'s>) {
        let AnswerJob { socket, exchange, .. } = job;
        exchange.answer(clock::monotonic());
        // What else the client sends is the loop's to read.
        let mut input = InputState::Empty;
        loop {
            let after_call = || AfterCall { now: clock::monotonic(), ending: false };
            let (flags, until) =
                match socket_io::advance(socket.as_fd(), exchange, &mut input, after_call) {
                    Step::Read | Step::Close(_) => return,
                    Step::Turn => continue,
                    Step::Gateway => {
                        // What else the client sends is taken in while a program answers.
                        input = InputState::MayHave;
                        if socket_io::wait_for_gateway(
                            socket.as_fd(),
                            exchange,
                            Some(self.ends.as_fd()),
                        ) {
                            return exchange.lost(clock::monotonic());
                        }
                        continue;
                    }
                    Step::Write => (PollFlags::OUT, exchange.deadline()),
                    Step::Hold(until) => (PollFlags::empty(), until.saturating_sub(SPIN)),
                };
            let left = until.saturating_sub(clock::monotonic());
            if socket_io::wait_beside(socket.as_fd(), flags, self.ends.as_fd(), left) {
                return exchange.lost(clock::monotonic());
            }
            if flags.is_empty() {
                socket_io::spin_until(until.saturating_add(SPIN));
            }
            // Does nothing before the deadline.
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
