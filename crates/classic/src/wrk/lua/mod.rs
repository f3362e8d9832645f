//! wrk's scripts. Owns the Lua states, one per thread and one for setup() and done(), and what passes between them.
//! Start reading at [`Scripts::prepare`].
//!
//! The order is wrk's: the script runs in the first state, and looks up the address there. Then, for each thread, the
//! script runs in the thread's state, setup() is called in the first and init() in the thread's. During the load Lua is
//! only called for what a script can change ([`Asks`]).
//!
//! Cost of a request that a script makes: a call into LuaJIT and back (about a microsecond), and the work of the
//! script.

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

/// All Lua states of one run.
pub(super) struct Scripts {
    main: State,
    threads: Vec<State>,
    shared: Arc<Shared>,
    asks: Asks,
    /// The first request of each thread, empty if only its own request() knows it; and its address.
    firsts: Vec<Vec<u8>>,
    places: Vec<SocketAddr>,
    counts: Mutex<Option<ScriptCounts>>,
}

/// What the script decides about a load: its functions, as they were when it began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Asks {
    /// `request`: the request.
    pub(super) requests: bool,
    /// `delay`: a pause before each request.
    pub(super) delay: bool,
    /// `response`: it wants to see the replies.
    pub(super) response: bool,
    /// `done`.
    pub(super) done: bool,
    /// Requests that are sent at once.
    pub(super) pipeline: usize,
}

impl Scripts {
    /// Creates all states, up to the point where the first request could be sent. `complaints` collects Lua's errors of
    /// a script that does not load, which does not stop wrk.
    ///
    /// # Errors
    /// What wrk prints instead of running.
    pub(super) fn prepare(
        flags: &Flags,
        script: Option<&Script>,
        world: &dyn Surroundings,
        complaints: &mut String,
    ) -> Result<Self, ExitMessage> {
        // Without a script all threads send the same, and their states are never used.
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
                // init() may have changed this thread's `wrk`, for example the path.
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

    /// A thread's first request, which is the only one unless [`Asks::requests`].
    pub(super) fn first(&self, thread: usize) -> &[u8] {
        self.of::<Vec<u8>>(&self.firsts, thread)
    }

    /// A thread's own item; without a script the first one is used for all.
    fn of<'a, T>(&self, each: &'a [T], thread: usize) -> &'a T {
        each.get(thread).unwrap_or(&each[0])
    }

    /// The address of each thread.
    pub(super) fn places(&self) -> &[SocketAddr] {
        &self.places
    }

    /// Whether every thread sends the same request as often as it can, and nothing else: then a plan is enough.
    pub(super) fn is_static(&self) -> bool {
        let Asks { requests, delay, response, pipeline, .. } = self.asks;
        let is_one_place = self.places.windows(2).all(|pair| pair[0] == pair[1]);
        let is_one_request = self.firsts.windows(2).all(|pair| pair[0] == pair[1]);
        let is_one = is_one_place && is_one_request && pipeline == 1;
        !requests && !delay && !response && is_one
    }

    /// The error that ends wrk, if any.
    pub(super) fn failure(&self) -> Option<ExitMessage> {
        self.shared.failure()
    }

    /// The users' counts, if there were users.
    pub(super) fn counts(&self) -> Option<ScriptCounts> {
        let mut counts = self.counts.lock().expect("nobody panics with it").clone()?;
        counts.is_stopped = self.shared.are_all_stopped();
        Some(counts)
    }

    /// Flushes what scripts have printed: C's buffer is separate from ours.
    pub(super) fn flush(&self) {
        self.main.flush();
    }

    /// Calls done(), if it exists.
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
        // The states hold the shared data, which holds the states; this breaks the cycle.
        self.shared.forget();
    }
}

/// LuaJIT's message for an uncaught error, which ends the process.
fn panicked(why: &str) -> ExitMessage {
    let text = format!("PANIC: unprotected error in call to Lua API ({why})\n");
    ExitMessage { texts: Texts::err(text), code: 1 }
}
