//! A queue through which the threads of a process hand each other connections, or anything else.
//! Also ends those threads. Start reading at [`HandoffQueue::push`] and [`HandoffQueue::take`].
//!
//! It is first in, first out, like the queues of Apache (fdqueue.c) and Tomcat
//! (LinkedBlockingQueue). Of sleeping threads it wakes the one that has slept longest (futex(2)
//! wakes in order). A free lock costs no system call. A wake-up costs one, so we make it only if a
//! thread sleeps and no other is about to run: a woken thread wakes the next one if there is more
//! to do (as LinkedBlockingQueue does). So a burst wakes no more threads than find work when they
//! run.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use site::board::Board;
use sys::signals::{self, ThreadId};

/// Time between two interruptions of workers that have not ended.
pub(crate) const INTERRUPT_EVERY: Duration = Duration::from_millis(20);

/// Hands items to idle workers.
pub(crate) struct HandoffQueue<T> {
    inner: Mutex<Inner<T>>,
    /// An item was pushed, or the queue was closed.
    work: Condvar,
    /// A worker became idle, or left.
    idle_or_left: Condvar,
    /// The server ends: workers finish their connections and keep none alive.
    ending: AtomicBool,
    /// Shows how many items wait.
    shown_on: Option<Board>,
}

struct Inner<T> {
    items: VecDeque<T>,
    /// Workers in [`HandoffQueue::take`] or about to call it.
    idle: usize,
    /// Of those, how many sleep, and how many were woken and do not run yet.
    asleep: usize,
    waking: usize,
    /// A thread sleeps in [`HandoffQueue::wait_for_idle_worker`] or
    /// [`HandoffQueue::close_and_wait`].
    awaited: bool,
    /// Registered workers that have not left.
    threads: Vec<ThreadId>,
    closed: bool,
}

/// What [`HandoffQueue::take`] returns.
pub(crate) enum Taken<T> {
    /// The next item.
    Item(T),
    /// No item came in time.
    Nothing,
    /// The queue is closed and empty.
    Closed,
}

impl<T> Default for HandoffQueue<T> {
    fn default() -> Self {
        let inner = Inner {
            items: VecDeque::new(),
            idle: 0,
            asleep: 0,
            waking: 0,
            awaited: false,
            threads: Vec::new(),
            closed: false,
        };
        let (work, idle_or_left) = (Condvar::new(), Condvar::new());
        let ending = AtomicBool::new(false);
        Self { inner: Mutex::new(inner), work, idle_or_left, ending, shown_on: None }
    }
}

impl<T> Inner<T> {
    /// Idle workers for which no item waits.
    fn idle_workers(&self) -> usize {
        self.idle.saturating_sub(self.items.len())
    }
}

impl<T> HandoffQueue<T> {
    /// A queue whose length the status page shows.
    pub(crate) fn shown_on(board: &Board) -> Self {
        Self { shown_on: Some(board.clone()), ..Self::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Inner<T>> {
        // A worker that panicked leaves the counts consistent.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an item for the next idle worker.
    pub(crate) fn push(&self, item: T) {
        let mut inner = self.lock();
        inner.items.push_back(item);
        self.items_changed(inner);
    }

    /// Adds an item only if a worker is idle and no other item waits for it.
    ///
    /// # Errors
    /// The item, if there is no such worker.
    pub(crate) fn push_to_idle(&self, item: T) -> Result<(), T> {
        let mut inner = self.lock();
        if inner.idle_workers() == 0 {
            return Err(item);
        }
        inner.items.push_back(item);
        self.items_changed(inner);
        Ok(())
    }

    /// After each change of the items: shows their number and wakes a thread for those that wait.
    fn items_changed(&self, mut inner: MutexGuard<'_, Inner<T>>) {
        // Under the lock: of two threads the one that changed the items last shows its number last.
        if let Some(board) = &self.shown_on {
            board.queue(inner.items.len());
        }
        let wakes = !inner.items.is_empty() && inner.waking == 0 && inner.asleep > 0;
        inner.waking += usize::from(wakes);
        // Notified under the lock, the woken thread would only wait for it.
        drop(inner);
        if wakes {
            self.work.notify_one();
        }
    }

    /// Takes the next item. Waits at most `max_wait`, or without limit.
    pub(crate) fn take(&self, max_wait: Option<Duration>) -> Taken<T> {
        let mut inner = self.lock();
        inner.idle += 1;
        if std::mem::take(&mut inner.awaited) {
            self.idle_or_left.notify_all();
        }
        self.take_locked(inner, max_wait)
    }

    /// Counts the worker as idle although it still has to tidy up before
    /// [`HandoffQueue::take_when_idle`].
    pub(crate) fn mark_idle(&self) {
        let mut inner = self.lock();
        inner.idle += 1;
        self.tell(inner);
    }

    /// Like [`HandoffQueue::take`], after [`HandoffQueue::mark_idle`].
    pub(crate) fn take_when_idle(&self, max_wait: Option<Duration>) -> Taken<T> {
        self.take_locked(self.lock(), max_wait)
    }

    fn take_locked(
        &self,
        mut inner: MutexGuard<'_, Inner<T>>,
        max_wait: Option<Duration>,
    ) -> Taken<T> {
        let mut in_time = true;
        loop {
            if let Some(item) = inner.items.pop_front() {
                inner.idle -= 1;
                self.items_changed(inner);
                return Taken::Item(item);
            }
            if inner.closed || !in_time {
                inner.idle -= 1;
                return if inner.closed { Taken::Closed } else { Taken::Nothing };
            }
            inner.asleep += 1;
            inner = match max_wait {
                None => self.work.wait(inner).unwrap_or_else(PoisonError::into_inner),
                Some(max_wait) => {
                    let waited = self.work.wait_timeout(inner, max_wait);
                    let (inner, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
                    in_time = !timeout.timed_out();
                    inner
                }
            };
            inner.asleep -= 1;
            // A thread that timed out may count down in place of one that was woken. That one then
            // finds nothing or takes the next item.
            inner.waking = inner.waking.saturating_sub(1);
        }
    }

    /// Idle workers for which no item waits.
    pub(crate) fn idle_workers(&self) -> usize {
        self.lock().idle_workers()
    }

    /// Waits for such a worker, at most `most`. Returns whether there is one.
    pub(crate) fn wait_for_idle_worker(&self, most: Duration) -> bool {
        self.wait_while(most, |inner| inner.idle_workers() == 0)
    }

    /// Waits at most `most` for a condition that changes when a worker leaves or
    /// [`HandoffQueue::wake_waiters`] is called. Returns whether it holds.
    pub(crate) fn wait_until(&self, most: Duration, is_so: impl Fn() -> bool) -> bool {
        self.wait_while(most, |_| !is_so())
    }

    fn wait_while(&self, most: Duration, mut is_so: impl FnMut(&mut Inner<T>) -> bool) -> bool {
        let mut inner = self.lock();
        if is_so(&mut inner) {
            let waits = |inner: &mut Inner<T>| {
                inner.awaited = is_so(inner);
                inner.awaited
            };
            let waited = self.idle_or_left.wait_timeout_while(inner, most, waits);
            (inner, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
        !is_so(&mut inner)
    }

    /// Makes waiting threads check their condition again.
    pub(crate) fn wake_waiters(&self) {
        self.tell(self.lock());
    }

    fn tell(&self, mut inner: MutexGuard<'_, Inner<T>>) {
        if std::mem::take(&mut inner.awaited) {
            drop(inner);
            self.idle_or_left.notify_all();
        }
    }

    /// Registers the calling thread as a worker until the returned value is dropped.
    pub(crate) fn register(&self) -> Registration<'_, T> {
        let thread = signals::this_thread();
        self.lock().threads.push(thread);
        Registration { queue: self, thread }
    }

    /// Whether workers are to finish their connections.
    pub(crate) fn is_ending(&self) -> bool {
        self.ending.load(Relaxed)
    }

    /// Tells workers to keep no connection alive and interrupts those that wait for a client. The
    /// caller repeats this until they have ended, because a signal just before a blocking call has
    /// no effect.
    pub(crate) fn interrupt_workers(&self) {
        self.interrupt_all(&self.lock());
    }

    fn interrupt_all(&self, inner: &Inner<T>) {
        self.ending.store(true, Relaxed);
        for thread in &inner.threads {
            signals::interrupt(*thread);
        }
    }

    /// Closes the queue and waits until every registered worker has finished its work and left.
    pub(crate) fn close_and_wait(&self) {
        let mut inner = self.lock();
        inner.closed = true;
        self.work.notify_all();
        while !inner.threads.is_empty() {
            self.interrupt_all(&inner);
            inner.awaited = true;
            let waited = self.idle_or_left.wait_timeout(inner, INTERRUPT_EVERY);
            (inner, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// A registered worker. It leaves when this is dropped, even in a panic, so that nobody waits for
/// it.
pub(crate) struct Registration<'a, T> {
    queue: &'a HandoffQueue<T>,
    thread: ThreadId,
}

impl<T> Drop for Registration<'_, T> {
    fn drop(&mut self) {
        let mut inner = self.queue.lock();
        inner.threads.retain(|thread| *thread != self.thread);
        inner.awaited = false;
        self.queue.idle_or_left.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[test]
    fn nothing_is_lost_and_nothing_handed_over_twice() {
        let queue = HandoffQueue::default();
        let sum = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while let Taken::Item(n) = queue.take(None) {
                        sum.fetch_add(n, Relaxed);
                    }
                });
            }
            for n in 1..=20_000 {
                queue.push(n);
                if n % 64 == 0 {
                    assert!(queue.wait_for_idle_worker(Duration::from_secs(60)));
                }
            }
            queue.close_and_wait();
        });
        // Closing keeps the items that were pushed before.
        assert_eq!(sum.load(Relaxed), 20_000 * 20_001 / 2);
    }

    #[test]
    fn an_empty_queue_is_shown_as_empty_whoever_changed_it_last() {
        let board = Board::new(true).unwrap();
        let queue = HandoffQueue::shown_on(&board);
        queue.push(0);
        assert_eq!(board.read().queue, 1);
        for _ in 0..200 {
            std::thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| (0..20).for_each(|n| queue.push(n)));
                    scope.spawn(|| {
                        (0..20).for_each(|_| assert!(matches!(queue.take(None), Taken::Item(_))))
                    });
                }
            });
            assert_eq!(board.read().queue, 1, "what was pushed first is what is left");
        }
    }

    #[test]
    fn a_worker_with_an_item_coming_is_not_idle() {
        let queue = HandoffQueue::default();
        assert_eq!(queue.push_to_idle(1), Err(1));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while let Taken::Item(_) = queue.take(None) {
                    queue.wait_while(Duration::from_secs(60), |inner| !inner.closed);
                }
            });
            assert!(queue.wait_for_idle_worker(Duration::from_secs(60)));
            assert_eq!((queue.push_to_idle(1), queue.push_to_idle(2)), (Ok(()), Err(2)));
            queue.lock().closed = true;
            queue.close_and_wait();
            queue.idle_or_left.notify_all();
        });
    }

    #[test]
    fn a_limited_wait_ends() {
        let queue: HandoffQueue<u8> = HandoffQueue::default();
        assert!(matches!(queue.take(Some(Duration::from_millis(1))), Taken::Nothing));
        queue.push(1);
        assert!(matches!(queue.take(Some(Duration::from_millis(1))), Taken::Item(1)));
        assert_eq!(queue.idle_workers(), 0);
    }
}
