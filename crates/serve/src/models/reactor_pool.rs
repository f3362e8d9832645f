//! An event loop and a pool of threads: the threaded lighttpd. The loop accepts, reads and parses.
//! A thread builds the answer, sends it with blocking calls, and gives the connection back. Start
//! reading at [`ReactorPool`], then `shared/event_loop.rs` and `shared/answer_threads.rs`.
//!
//! After an experiment of 2018 with lighttpd 1.4.49, which let a pool of threads answer for static
//! files. Its source is not public, so names and defaults are ours, in lighttpd's style. Documented
//! relatives are the half-sync/half-async pattern (D. Schmidt and C. Cranor, PLoP 1995) and Flash's
//! AMPED helpers (V. Pai et al., USENIX 1999).

use std::sync::Arc;

use sys::epoll::Epoll;
use sys::listener::Mode;
use sys::socket;

use super::reactor::CONNECTIONS_MAX_DEFAULT;
use super::shared::answer_threads::AnswerThreads;
use super::shared::event_loop::{Loop, Rules};
use super::shared::loop_group::StopSources;
use super::shared::{begin, serving_thread, system};
use super::{Declared, Model, PreparedModel, SettingKind, SettingSpec, Settings};
use crate::ServeError;
use crate::service::Service;

const CONNECTIONS_MAX: &str = "server.max-connections";
const THREADS: &str = "server.worker-threads";
const QUEUE_MAX: &str = "server.max-queue";

/// The model.
pub(super) static ITEM: Model = Model {
    name: "reactor-pool",
    about: "one loop that reads, a pool of threads that answer (a threaded lighttpd)",
    settings: &[
        SettingSpec {
            name: THREADS,
            kind: SettingKind::Count { default: 4, min: 1, max: 1024 },
            about: "threads that build and send answers",
        },
        SettingSpec {
            name: QUEUE_MAX,
            kind: SettingKind::Count { default: 1024, min: 1, max: 1_000_000 },
            about: "requests that may wait for a thread; beyond it nothing is accepted until one is taken",
        },
        SettingSpec {
            name: CONNECTIONS_MAX,
            kind: SettingKind::Count { default: CONNECTIONS_MAX_DEFAULT, min: 1, max: 1_000_000 },
            about: "connections held at once (lighttpd's own default is a third of server.max-fds, 1365)",
        },
    ],
    declares: Declared {
        accept_order: "the one loop takes them in order of arrival, up to 100 a round",
        keep_alive_holder: "the loop; no thread",
        backlog: "the kernel's queue, ListenBacklog connections",
        concurrency: "server.worker-threads answers; a client that reads slowly holds its thread",
        saturation: "requests wait for a thread, up to server.max-queue; then, and past \
                     server.max-connections, connections wait in the backlog",
    },
    two_at_once: Some(&["server.max-connections=2", "server.worker-threads=1"]),
    prepare,
};

#[derive(Debug)]
struct ReactorPool {
    threads: usize,
    queued_max: usize,
    conns_max: usize,
}

fn prepare(settings: &Settings) -> Result<Arc<dyn PreparedModel>, String> {
    let [threads, queued_max, conns_max] =
        [THREADS, QUEUE_MAX, CONNECTIONS_MAX].map(|name| settings.size(name));
    if threads > conns_max {
        return Err(format!(
            "{THREADS} must be at most {CONNECTIONS_MAX} ({conns_max}), got {threads}: a thread answers one \
             connection, so {} of them would never have any; lower {THREADS} or raise {CONNECTIONS_MAX}",
            threads - conns_max
        ));
    }
    Ok(Arc::new(ReactorPool { threads, queued_max, conns_max }))
}

impl PreparedModel for ReactorPool {
    fn run(&self, service: &Service) -> Result<(), ServeError> {
        // If the kernel refuses, fewer connections fit, and the error log says so when accept
        // fails.
        let _ = socket::raise_file_limit();
        let signals = begin(service, Mode::NonBlocking)?;
        let rules = Rules::of_one_loop(self.conns_max);
        let jobs_max = self.threads + self.queued_max;
        let answer_threads = AnswerThreads::new(service, self.threads, jobs_max)
            .map_err(system("cannot create the eventfds of the answer threads"))?;
        let mut reactor =
            Loop::<Epoll>::new(service, &service.listener, rules, Some(&answer_threads))
                .map_err(system("cannot create the poll set"))?;
        std::thread::scope(|scope| {
            let started = (0..self.threads).try_for_each(|number| {
                let builder = serving_thread().name(format!("answers {number}"));
                builder.spawn_scoped(scope, || answer_threads.work()).map(|_| ())
            });
            let served = match started {
                Ok(()) => reactor
                    .serve(StopSources { signals: Some(&signals), group: None })
                    .map_err(system("cannot wait for events")),
                Err(error) => {
                    Err(system("cannot start the threads of server.worker-threads")(error))
                }
            };
            answer_threads.close();
            served
        })
    }
}
