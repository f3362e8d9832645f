//! A thread that shows intervals, so that the load never waits for a slow terminal or pipe. Its end takes a bounded
//! time. Start reading at [`Aside::begin`].

use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use record::Interval;

/// How long the end of a load waits for its output to be read, and the polling interval.
pub const FAREWELL_MAX: Duration = Duration::from_secs(2);
const FAREWELL_LOOK: Duration = Duration::from_millis(5);

/// Most intervals that wait to be shown (5 seconds of them); further ones are merged with the next.
const WAITING_MAX: usize = 50;

/// A thread that shows intervals, until it is dropped.
pub struct Aside {
    /// `None` asks the thread to end.
    intervals: Option<SyncSender<Interval>>,
    /// Intervals that did not fit, merged.
    left_over: Option<Interval>,
    thread: Option<JoinHandle<()>>,
}

impl Aside {
    /// Calls `show` on the new thread, because what it returns may not be `Send`.
    ///
    /// # Errors
    /// No thread could be started.
    pub fn begin<S: FnMut(&Interval)>(
        show: impl FnOnce() -> S + Send + 'static,
    ) -> std::io::Result<Self> {
        let (sender, receiver) = sync_channel::<Interval>(WAITING_MAX);
        let thread = thread::Builder::new().name("progress".to_owned()).spawn(move || {
            let mut show = show();
            receiver.iter().for_each(|interval| show(&interval));
        })?;
        Ok(Self { intervals: Some(sender), left_over: None, thread: Some(thread) })
    }

    /// Queues the interval.
    pub fn add(&mut self, interval: &Interval) {
        let next = match self.left_over.take() {
            None => interval.clone(),
            Some(mut before) => {
                before.merge(interval);
                before.length = interval.end().saturating_sub(before.start);
                before
            }
        };
        let Some(sender) = &self.intervals else { return };
        // A panic in the thread has already been reported; the load continues without it.
        if let Err(TrySendError::Full(next)) = sender.try_send(next) {
            self.left_over = Some(next);
        }
    }
}

impl Aside {
    /// Waits until all intervals are shown, for at most [`FAREWELL_MAX`]; returns whether they were.
    pub fn end(mut self) -> bool {
        self.finish()
    }

    fn finish(&mut self) -> bool {
        let Some(thread) = self.thread.take() else { return true };
        let begun = Instant::now();
        let left = || FAREWELL_MAX.saturating_sub(begun.elapsed());
        while let Some(next) = self.left_over.take()
            && let Some(sender) = &self.intervals
        {
            match sender.try_send(next) {
                Err(TrySendError::Full(next)) if left() > Duration::ZERO => {
                    self.left_over = Some(next);
                    thread::sleep(FAREWELL_LOOK);
                }
                _ => break,
            }
        }
        self.intervals = None;
        join_within(thread, left())
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        self.finish();
    }
}

/// Waits for a thread to end, and returns whether it did. A thread that hangs in a write that nobody reads is
/// abandoned. The panic hook has reported any panic in it.
pub fn join_within(thread: JoinHandle<()>, most: Duration) -> bool {
    let looks = most.as_millis() / FAREWELL_LOOK.as_millis();
    let ends = (0..looks.max(1)).any(|look| {
        if look > 0 {
            thread::sleep(FAREWELL_LOOK);
        }
        thread.is_finished()
    });
    if ends {
        let _ = thread.join();
    }
    ends
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Barrier, Mutex};

    use units::Nanos;

    use super::*;

    fn interval(n: u64) -> Interval {
        let mut interval = Interval::new(Nanos(n * 100), Nanos(100));
        interval.ok = 1;
        interval
    }

    #[test]
    fn a_terminal_that_takes_nothing_holds_nobody_up_and_nothing_is_lost() {
        let seen = Arc::new(Mutex::new((0, Nanos::ZERO)));
        let gate = Arc::new(Barrier::new(2));
        let (to, closed) = (seen.clone(), gate.clone());
        let mut aside = Aside::begin(move || {
            closed.wait();
            move |interval: &Interval| {
                let mut seen = to.lock().unwrap();
                *seen = (seen.0 + interval.ok, interval.end());
            }
        })
        .unwrap();
        // None of these is taken before the last one was queued.
        let n_given = 10 * WAITING_MAX as u64;
        (0..n_given).for_each(|n| aside.add(&interval(n)));
        gate.wait();
        assert!(aside.left_over.is_some());
        assert!(aside.end(), "what found no room is shown at the end");
        assert_eq!(*seen.lock().unwrap(), (n_given, Nanos(n_given * 100)));
    }

    #[test]
    fn a_thread_that_hangs_is_left_alone() {
        let (hold, held) = sync_channel::<()>(0);
        let thread = thread::spawn(move || held.recv().unwrap_or_default());
        assert!(!join_within(thread, Duration::from_millis(20)));
        drop(hold);
    }
}
