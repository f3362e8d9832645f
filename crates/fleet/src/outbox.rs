//! Messages of a run on their way to the broker, in order, each until it is acknowledged. Owns the thread that sends,
//! so that neither a load nor the agent waits for the broker. Start reading at [`Outbox::begin`].

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use crate::broker::Broker;

/// Most messages that wait, some hours of windows: the oldest go first. All of them are in the spool, from which they
/// are sent when they are asked for.
const WAITING_MAX: usize = 16_384;
/// Time between two tries.
const AGAIN: Duration = Duration::from_millis(500);

/// A message with its id.
type Waiting = (String, Vec<u8>);

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Waiting>,
    is_closed: bool,
}

/// A queue towards the broker, until it is dropped.
#[derive(Debug)]
pub struct Outbox {
    queue: Arc<(Mutex<Queue>, Condvar)>,
}

impl Outbox {
    /// Starts the thread; all messages go to one subject.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn begin(broker: Arc<Broker>, subject: String) -> std::io::Result<Self> {
        let queue = Arc::<(Mutex<Queue>, Condvar)>::default();
        let shared = queue.clone();
        thread::Builder::new().name("outbox".to_owned()).spawn(move || {
            while let Some((id, bytes)) = first(&shared) {
                if broker.store(&subject, &id, bytes).is_ok() {
                    let mut queue = shared.0.lock().expect("nobody panics with it");
                    // It may have been pushed out meanwhile.
                    if queue.waiting.front().is_some_and(|(first, _)| *first == id) {
                        queue.waiting.pop_front();
                    }
                } else {
                    thread::sleep(AGAIN);
                }
            }
        })?;
        Ok(Self { queue })
    }

    /// Adds a message, once: one that waits already is not added.
    pub fn push(&self, id: String, bytes: Vec<u8>) {
        let mut queue = self.queue.0.lock().expect("nobody panics with it");
        if queue.waiting.iter().any(|(waiting, _)| *waiting == id) {
            return;
        }
        if queue.waiting.len() == WAITING_MAX {
            queue.waiting.pop_front();
        }
        queue.waiting.push_back((id, bytes));
        self.queue.1.notify_one();
    }

    /// Messages that wait.
    pub fn len(&self) -> usize {
        self.queue.0.lock().expect("nobody panics with it").waiting.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Drop for Outbox {
    fn drop(&mut self) {
        self.queue.0.lock().expect("nobody panics with it").is_closed = true;
        self.queue.1.notify_one();
    }
}

/// The first message, once there is one; `None` when no more will come.
fn first(queue: &(Mutex<Queue>, Condvar)) -> Option<Waiting> {
    let mut held = queue.0.lock().expect("nobody panics with it");
    loop {
        if held.is_closed {
            return None;
        }
        if let Some(first) = held.waiting.front() {
            return Some(first.clone());
        }
        held = queue.1.wait(held).expect("nobody panics with it");
    }
}
