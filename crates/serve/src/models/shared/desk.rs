//! Where the threads of a process hand each other connections. Owns the queue, who sleeps at it, and
//! how threads are seen off; must not know what is handed over. Start reading at [`Desk::put`] and
//! [`Desk::take`].
//!
//! First in, first out, as the queues of Apache (fdqueue.c) and of Tomcat (LinkedBlockingQueue) are;
//! of the threads that sleep the one that has slept longest is woken (futex(2) wakes in order).
//! A lock that nobody holds costs no system call; waking costs one, and is done only where somebody
//! sleeps and nobody else is on the way: the woken thread wakes the next one if there is more to do
//! (as LinkedBlockingQueue does). So a burst does not wake more threads than there turn out to be
//! work for when they run.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sys::signals::{self, ThreadId};

/// How long workers that were interrupted have until they are again.
pub(crate) const HURRY: Duration = Duration::from_millis(20);

/// Hands things from whoever has them to idle workers.
pub(crate) struct Desk<T> {
    inner: Mutex<Inner<T>>,
    /// Something was put down, or the desk was closed.
    work: Condvar,
    /// A worker became idle, or left.
    idler: Condvar,
    /// Connections are finished, none is kept alive.
    ending: AtomicBool,
}

struct Inner<T> {
    items: VecDeque<T>,
    /// Workers that are at [`Desk::take`], or nearly.
    idle: usize,
    /// Those of them that sleep, and those that were woken and do not run yet.
    asleep: usize,
    waking: usize,
    /// Somebody sleeps at [`Desk::wait_for_idler`] or [`Desk::see_off`].
    awaited: bool,
    /// Workers that have not left.
    threads: Vec<ThreadId>,
    closed: bool,
}

/// What comes of taking.
pub(crate) enum Taken<T> {
    /// This.
    Item(T),
    /// Nothing came in time.
    Nothing,
    /// Nothing will come any more.
    Closed,
}

impl<T> Default for Desk<T> {
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
        let (work, idler) = (Condvar::new(), Condvar::new());
        Self { inner: Mutex::new(inner), work, idler, ending: AtomicBool::new(false) }
    }
}

impl<T> Inner<T> {
    /// Workers that are idle and have nothing coming.
    fn idlers(&self) -> usize {
        self.idle.saturating_sub(self.items.len())
    }
}

impl<T> Desk<T> {
    fn lock(&self) -> MutexGuard<'_, Inner<T>> {
        // A worker that panicked holds no connection of another's and leaves the counts whole.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For whoever is idle next.
    pub(crate) fn put(&self, item: T) {
        let mut inner = self.lock();
        inner.items.push_back(item);
        self.wake_one(inner);
    }

    /// For a worker that is idle now and has nothing coming.
    ///
    /// # Errors
    /// The item itself, where there is no such worker.
    pub(crate) fn put_to_idler(&self, item: T) -> Result<(), T> {
        let mut inner = self.lock();
        if inner.idlers() == 0 {
            return Err(item);
        }
        inner.items.push_back(item);
        self.wake_one(inner);
        Ok(())
    }

    fn wake_one(&self, mut inner: MutexGuard<'_, Inner<T>>) {
        let wakes = !inner.items.is_empty() && inner.waking == 0 && inner.asleep > 0;
        inner.waking += usize::from(wakes);
        // Before the lock is let go, the woken thread would only wait for it.
        drop(inner);
        if wakes {
            self.work.notify_one();
        }
    }

    /// The next thing, waiting for it for as long as `patience`, or for ever.
    pub(crate) fn take(&self, patience: Option<Duration>) -> Taken<T> {
        self.be_idle();
        self.take_as_idle(patience)
    }

    /// Counts a worker as idle from now on: it has only to tidy up before [`Desk::take_as_idle`].
    pub(crate) fn be_idle(&self) {
        let mut inner = self.lock();
        inner.idle += 1;
        self.tell(inner);
    }

    /// As [`Desk::take`], after [`Desk::be_idle`].
    pub(crate) fn take_as_idle(&self, patience: Option<Duration>) -> Taken<T> {
        let mut inner = self.lock();
        let mut in_time = true;
        loop {
            if let Some(item) = inner.items.pop_front() {
                inner.idle -= 1;
                self.wake_one(inner);
                return Taken::Item(item);
            }
            if inner.closed || !in_time {
                inner.idle -= 1;
                return if inner.closed { Taken::Closed } else { Taken::Nothing };
            }
            inner.asleep += 1;
            inner = match patience {
                None => self.work.wait(inner).unwrap_or_else(PoisonError::into_inner),
                Some(patience) => {
                    let waited = self.work.wait_timeout(inner, patience);
                    let (inner, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
                    in_time = !timeout.timed_out();
                    inner
                }
            };
            inner.asleep -= 1;
            // One that was not woken but came by itself may take the place of one that was, which
            // then finds nothing, or takes what is put down next.
            inner.waking = inner.waking.saturating_sub(1);
        }
    }

    /// Workers that are idle and have nothing coming.
    pub(crate) fn idlers(&self) -> usize {
        self.lock().idlers()
    }

    /// Waits until there is such a worker, for a while at most; returns whether there is.
    pub(crate) fn wait_for_idler(&self, most: Duration) -> bool {
        self.wait_while(most, |inner| inner.idlers() == 0)
    }

    /// Waits until something is so that may be so when a worker has left or after [`Desk::nudge`], for
    /// a while at most; returns whether it is.
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
            let waited = self.idler.wait_timeout_while(inner, most, waits);
            (inner, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
        !is_so(&mut inner)
    }

    /// Has whoever waits look again.
    pub(crate) fn nudge(&self) {
        self.tell(self.lock());
    }

    fn tell(&self, mut inner: MutexGuard<'_, Inner<T>>) {
        if std::mem::take(&mut inner.awaited) {
            drop(inner);
            self.idler.notify_all();
        }
    }

    /// Counts the calling thread as a worker until what is returned is dropped.
    pub(crate) fn sign_in(&self) -> Present<'_, T> {
        let thread = signals::this_thread();
        self.lock().threads.push(thread);
        Present { desk: self, thread }
    }

    /// Whether connections are to be finished.
    pub(crate) fn is_ending(&self) -> bool {
        self.ending.load(Relaxed)
    }

    /// Has the workers keep no connection alive. Those that wait for a client are interrupted; to be
    /// called again until they heed it, for a signal that comes before the call is lost.
    pub(crate) fn hurry(&self) {
        self.hurry_all(&self.lock());
    }

    fn hurry_all(&self, inner: &Inner<T>) {
        self.ending.store(true, Relaxed);
        for thread in &inner.threads {
            signals::interrupt(*thread);
        }
    }

    /// Takes nothing more, and waits until every worker has finished what it has and left.
    pub(crate) fn see_off(&self) {
        let mut inner = self.lock();
        inner.closed = true;
        self.work.notify_all();
        while !inner.threads.is_empty() {
            self.hurry_all(&inner);
            inner.awaited = true;
            let waited = self.idler.wait_timeout(inner, HURRY);
            (inner, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// A worker that has not left; leaves when dropped, in a panic too, so that nobody waits for it.
pub(crate) struct Present<'a, T> {
    desk: &'a Desk<T>,
    thread: ThreadId,
}

impl<T> Drop for Present<'_, T> {
    fn drop(&mut self) {
        let mut inner = self.desk.lock();
        inner.threads.retain(|thread| *thread != self.thread);
        inner.awaited = false;
        self.desk.idler.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[test]
    fn nothing_is_lost_and_nothing_handed_over_twice() {
        let desk = Desk::default();
        let sum = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while let Taken::Item(n) = desk.take(None) {
                        sum.fetch_add(n, Relaxed);
                    }
                });
            }
            for n in 1..=20_000 {
                desk.put(n);
                if n % 64 == 0 {
                    assert!(desk.wait_for_idler(Duration::from_secs(60)));
                }
            }
            desk.see_off();
        });
        // Closing does not take away what was put down before.
        assert_eq!(sum.load(Relaxed), 20_000 * 20_001 / 2);
    }

    #[test]
    fn an_idler_that_has_something_coming_is_none() {
        let desk = Desk::default();
        assert_eq!(desk.put_to_idler(1), Err(1));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while let Taken::Item(_) = desk.take(None) {
                    desk.wait_while(Duration::from_secs(60), |inner| !inner.closed);
                }
            });
            assert!(desk.wait_for_idler(Duration::from_secs(60)));
            assert_eq!((desk.put_to_idler(1), desk.put_to_idler(2)), (Ok(()), Err(2)));
            desk.lock().closed = true;
            desk.see_off();
            desk.idler.notify_all();
        });
    }

    #[test]
    fn who_is_patient_for_a_time_leaves_after_it() {
        let desk: Desk<u8> = Desk::default();
        assert!(matches!(desk.take(Some(Duration::from_millis(1))), Taken::Nothing));
        desk.put(1);
        assert!(matches!(desk.take(Some(Duration::from_millis(1))), Taken::Item(1)));
        assert_eq!(desk.idlers(), 0);
    }
}
