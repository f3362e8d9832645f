//! wrk's scripts. Owns the Lua states, one a thread and one for setup() and done(), and what passes between
//! them. Start reading at [`Scripts::prepare`].
//!
//! The order is wrk's: the script runs in the first state, the address is looked up there; then for
//! each thread it runs in its own state, setup() is called in the first and init() in that one.
//! What a script cannot change is no business of Lua's while the load is on ([`Asks`]).
//!
//! Cost of a request that a script makes: a call into LuaJIT and back (about a microsecond), and what
//! the script does.

mod carried;
mod requests;
mod shared;
mod state;
mod users;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use self::shared::Shared;
use self::state::State;
use super::figures::Figures;
use super::flags::Flags;
use super::script_counts::ScriptCounts;
use crate::command::{ExitMessage, Surroundings, Texts};

pub(super) use self::users::ScriptUsers;

/// A script as it was read.
pub(super) struct Script {
    /// As typed.
    pub(super) name: String,
    pub(super) source: Vec<u8>,
}

/// All that is Lua in one run.
pub(super) struct Scripts {
    main: State,
    threads: Vec<State>,
    shared: Arc<Shared>,
    asks: Asks,
    /// What each thread asks first, empty where only its own request() knows; and where it asks.
    firsts: Vec<Vec<u8>>,
    places: Vec<SocketAddr>,
    counts: Mutex<Option<ScriptCounts>>,
}

/// What of a load the script decides: its functions, as they were when it began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Asks {
    /// `request`: what is asked.
    pub(super) requests: bool,
    /// `delay`: a pause before each.
    pub(super) delay: bool,
    /// `response`: it wants to see what was answered.
    pub(super) response: bool,
    /// `done`.
    pub(super) done: bool,
    /// Requests that are sent at once.
    pub(super) pipeline: usize,
}

impl Scripts {
    /// All states, until the first request could be sent. `complaints` gathers what Lua says of a
    /// script that does not load, which does not keep wrk from its load.
    ///
    /// # Errors
    /// What wrk says instead of running.
    pub(super) fn prepare(
        flags: &Flags,
        script: Option<&Script>,
        world: &dyn Surroundings,
        complaints: &mut String,
    ) -> Result<Self, ExitMessage> {
        // Without a script all threads ask the same, and nobody sees their states.
        let n_threads = if script.is_some() { flags.threads as usize } else { 1 };
        let shared = Arc::new(Shared::new(world, n_threads));
        let mut start = || -> Result<State, ExitMessage> {
            let state = State::new(flags, &shared).map_err(|error| panicked(&error.to_string()))?;
            if let Some(Script { name, source }) = script {
                let ran = state.run(source, name);
                if let Some(said) = shared.failure() {
                    return Err(said);
                }
                if let Err(why) = ran {
                    complaints.push_str(&format!("{name}: {why}\n"));
                }
            }
            Ok(state)
        };
        let main = start()?;
        let url = &flags.url;
        let n_places = shared.outcome(main.resolve(&url.host, url.service()))?;
        if n_places == 0 {
            let (host, service, why) = (&url.host, url.service(), shared.refusal());
            let text = format!("unable to connect to {host}:{service} {why}\n");
            return Err(ExitMessage { texts: Texts::err(text), code: 1 });
        }
        let mut threads = Vec::with_capacity(n_threads);
        let (mut asks, mut firsts) = (Asks::default(), Vec::with_capacity(n_threads));
        for number in 0..n_threads {
            let state = start()?;
            shared.add_thread(state.lua());
            shared.outcome(main.setup(number))?;
            shared.outcome(state.init(number, &flags.operands))?;
            if number == 0 {
                let first = shared.outcome(state.ask())?;
                asks = Asks {
                    requests: state.has("request"),
                    delay: state.has("delay"),
                    response: state.has("response"),
                    done: false,
                    pipeline: requests::split(&first)
                        .map_err(|wrong| ExitMessage {
                            texts: Texts::err(format!("{wrong}\n")),
                            code: 1,
                        })?
                        .len(),
                };
                firsts.push(first);
            } else if asks.requests {
                // Only the first thread's request() is called before the load, as in wrk.
                firsts.push(Vec::new());
            } else {
                // What init() made of this thread's `wrk`: perhaps another path.
                firsts.push(shared.outcome(state.ask())?);
            }
            threads.push(state);
        }
        asks.done = main.has("done");
        let places = (0..n_threads).filter_map(|number| shared.place(number)).collect();
        let scripts =
            Self { main, threads, shared, asks, firsts, places, counts: Mutex::default() };
        Ok(scripts)
    }

    /// What a thread asks first, and always where [`Asks::requests`] is not.
    pub(super) fn first(&self, thread: usize) -> &[u8] {
        self.of::<Vec<u8>>(&self.firsts, thread)
    }

    /// A thread's own; without a script the first one's stands for all.
    fn of<'a, T>(&self, each: &'a [T], thread: usize) -> &'a T {
        each.get(thread).unwrap_or(&each[0])
    }

    /// Where each thread asks.
    pub(super) fn places(&self) -> &[SocketAddr] {
        &self.places
    }

    /// Whether every thread asks the same as often as it can, and nothing else is to be done: then a
    /// plan says it all.
    pub(super) fn is_static(&self) -> bool {
        let Asks { requests, delay, response, pipeline, .. } = self.asks;
        let is_one_place = self.places.windows(2).all(|pair| pair[0] == pair[1]);
        let is_one_request = self.firsts.windows(2).all(|pair| pair[0] == pair[1]);
        let is_one = is_one_place && is_one_request && pipeline == 1;
        !requests && !delay && !response && is_one
    }

    /// What happened that ends wrk.
    pub(super) fn failure(&self) -> Option<ExitMessage> {
        self.shared.failure()
    }

    /// What the users counted, where there were any.
    pub(super) fn counts(&self) -> Option<ScriptCounts> {
        let mut counts = self.counts.lock().expect("nobody panics with it").clone()?;
        counts.is_stopped = self.shared.are_all_stopped();
        Some(counts)
    }

    /// Writes out what scripts have printed: C's buffer is not ours.
    pub(super) fn flush(&self) {
        self.main.flush();
    }

    /// Calls done(), where there is one.
    pub(super) fn done(&self, figures: Figures) {
        if self.asks.done {
            let summary = self.main.summary(&figures);
            self.shared.show(figures);
            if let Err(why) = self.main.done(summary) {
                self.shared.fail(panicked(&why));
            }
        }
    }
}

impl Drop for Scripts {
    fn drop(&mut self) {
        // The states hold what they share, and that holds the states.
        self.shared.forget();
    }
}

/// What LuaJIT says of an error that nobody catches, as it ends the process.
fn panicked(why: &str) -> ExitMessage {
    let text = format!("PANIC: unprotected error in call to Lua API ({why})\n");
    ExitMessage { texts: Texts::err(text), code: 1 }
}
