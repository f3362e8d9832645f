//! What the states of a run share: addresses, stopped threads, the error that ends the run. Owns the locks; none of
//! them is held while Lua runs. Start reading at [`Shared`].

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use mlua::Lua;

use super::panicked;
use crate::command::{ExitMessage, Network, Surroundings, Texts, strerror};
use crate::wrk::figures::Figures;
use crate::wrk::stats::Stats;
use crate::wrk::url::port_of;

pub(super) struct Shared {
    /// Whether the environment sets the module path (LUA_PATH), which Lua itself then reads.
    pub(super) has_own_path: bool,
    network: Arc<dyn Network>,
    threads: Mutex<Vec<Lua>>,
    /// The address of each thread; `None` before its setup.
    places: Mutex<Vec<Option<SocketAddr>>>,
    stopped: Vec<AtomicBool>,
    is_over: AtomicBool,
    failure: Mutex<Option<ExitMessage>>,
    /// Why the last attempted connection failed.
    refusal: Mutex<String>,
    figures: Mutex<Figures>,
}

impl Shared {
    pub(super) fn new(world: &dyn Surroundings, n_threads: usize) -> Self {
        Self {
            has_own_path: world.variable("LUA_PATH").is_some(),
            network: world.network(),
            threads: Mutex::default(),
            places: Mutex::new(vec![None; n_threads]),
            stopped: (0..n_threads).map(|_| AtomicBool::new(false)).collect(),
            is_over: AtomicBool::new(false),
            failure: Mutex::default(),
            refusal: Mutex::default(),
            figures: Mutex::default(),
        }
    }

    pub(super) fn add_thread(&self, lua: &Lua) {
        locked(&self.threads).push(lua.clone());
    }

    /// The state of a thread, if it has one.
    pub(super) fn thread(&self, number: usize) -> Option<Lua> {
        locked(&self.threads).get(number).cloned()
    }

    pub(super) fn forget(&self) {
        locked(&self.threads).clear();
    }

    pub(super) fn place(&self, number: usize) -> Option<SocketAddr> {
        locked(&self.places).get(number).copied().flatten()
    }

    pub(super) fn move_thread(&self, number: usize, place: SocketAddr) {
        if let Some(slot) = locked(&self.places).get_mut(number) {
            *slot = Some(place);
        }
    }

    /// If there is none, wrk ends, whoever called.
    pub(super) fn lookup(&self, host: &str, service: &str) -> Result<Vec<SocketAddr>, String> {
        let found = match port_of(service) {
            Some(port) => self.network.lookup(host, port).map_err(|error| reason(&error)),
            None => Err("Servname not supported for ai_socktype".to_owned()),
        };
        found.map_err(|why| {
            let text = format!("unable to resolve {host}:{service} {why}");
            self.fail(ExitMessage { texts: Texts::err(format!("{text}\n")), code: 1 });
            text
        })
    }

    pub(super) fn connect(&self, place: SocketAddr) -> bool {
        let made = self.network.connect(place);
        if let Err(error) = &made {
            *locked(&self.refusal) = strerror(error);
        }
        made.is_ok()
    }

    pub(super) fn refusal(&self) -> String {
        locked(&self.refusal).clone()
    }

    pub(super) fn stop(&self, number: usize) {
        if let Some(stopped) = self.stopped.get(number) {
            stopped.store(true, Ordering::Relaxed);
        }
    }

    /// A stop() before the load begins has no effect.
    pub(super) fn begin(&self) {
        self.stopped.iter().for_each(|stopped| stopped.store(false, Ordering::Relaxed));
    }

    /// Whether a thread should send no more requests.
    pub(super) fn is_stopped(&self, number: usize) -> bool {
        let stopped = self.stopped.get(number).is_some_and(|it| it.load(Ordering::Relaxed));
        stopped || self.is_over.load(Ordering::Relaxed)
    }

    pub(super) fn are_all_stopped(&self) -> bool {
        self.stopped.iter().all(|stopped| stopped.load(Ordering::Relaxed))
    }

    /// Ends the run; the first message counts.
    pub(super) fn fail(&self, said: ExitMessage) {
        locked(&self.failure).get_or_insert(said);
        self.is_over.store(true, Ordering::Relaxed);
    }

    pub(super) fn failure(&self) -> Option<ExitMessage> {
        locked(&self.failure).clone()
    }

    /// The result of a call into Lua: even a successful call may have ended wrk.
    pub(super) fn outcome<T>(&self, result: Result<T, String>) -> Result<T, ExitMessage> {
        match self.failure() {
            Some(said) => Err(said),
            None => result.map_err(|why| panicked(&why)),
        }
    }

    pub(super) fn show(&self, figures: Figures) {
        *locked(&self.figures) = figures;
    }

    /// By their name in the prelude.
    pub(super) fn with_stats<T>(&self, name: &str, of: impl FnOnce(&Stats) -> T) -> T {
        let figures = locked(&self.figures);
        of(if name == "latency" { &figures.latency } else { &figures.rates })
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("nobody panics while it is held")
}

/// The resolver's own message, without the prefix that Rust adds.
fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    let prefix = "failed to lookup address information: ";
    text.strip_prefix(prefix).unwrap_or(&text).to_owned()
}
