//! One loop and a pool of threads: the threaded lighttpd. The loop accepts, reads and parses; a thread
//! builds the answer and sends it, blocking where it must, and gives the connection back. Owns the
//! model's settings, start and end; must not know how the loop works (`looped`) or the threads
//! (`answer_threads`).
//!
//! After an experiment with lighttpd 1.4.49 of 2018 that moved the answering of static files to a pool
//! of threads. Its source is not public, so names and defaults are ours, in lighttpd's way; what is
//! documented of such servers is the half-sync/half-async pattern (D. Schmidt and C. Cranor, PLoP 1995)
//! and, with a loop of their own a thread, Flash's AMPED helpers (V. Pai et al., USENIX 1999).
//! Start reading at [`run`].

use sys::epoll::Epoll;
use sys::listener::{self, Mode};
use sys::signals::Signals;
use sys::socket;

use super::reactor::CONNECTIONS_MAX_DEFAULT;
use super::shared::answer_threads::AnswerThreads;
use super::shared::loop_group::StopSources;
use super::shared::looped::{Loop, Overflow, Rules};
use super::shared::socket_io::ACCEPTS_MAX;
use super::{Declared, Model, SettingKind, SettingSpec, Settings, THREAD_STACK_BYTES, system};
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
            about: "requests that may wait for a thread; past it nothing is accepted until one is taken",
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
    check,
    available: super::everywhere,
    run,
};

fn check(settings: &Settings) -> Result<(), String> {
    let (threads, conns) = (settings.count(THREADS), settings.count(CONNECTIONS_MAX));
    if threads > conns {
        return Err(format!(
            "{THREADS} {threads} is above {CONNECTIONS_MAX} {conns}: a thread answers one connection, \
             so {} of them could never have any; lower {THREADS} or raise {CONNECTIONS_MAX}",
            threads - conns
        ));
    }
    Ok(())
}

fn run(service: &Service) -> Result<(), ServeError> {
    // Where it is refused, fewer connections fit, which accepting reports.
    let _ = socket::raise_file_limit();
    // Before the threads: they inherit the mask, and signals are the loop's.
    let signals = Signals::new().map_err(system("cannot take signals as a file"))?;
    listener::set_mode(&service.listener, Mode::NonBlocking)
        .map_err(system("cannot make the listener non-blocking"))?;
    let settings = &service.settings;
    let rules = Rules {
        conns_max: settings.count(CONNECTIONS_MAX) as usize,
        round_max: ACCEPTS_MAX,
        overflow: Overflow::Wait,
        is_shared: false,
    };
    let (threads, queued_max) =
        (settings.count(THREADS) as usize, settings.count(QUEUE_MAX) as usize);
    let answer_threads = AnswerThreads::new(service, threads, threads + queued_max)
        .map_err(system("cannot create what wakes the threads"))?;
    let mut reactor = Loop::<Epoll>::new(service, &service.listener, rules, Some(&answer_threads))
        .map_err(system("cannot create the poll set"))?;
    std::thread::scope(|scope| {
        let started = (0..settings.count(THREADS)).try_for_each(|number| {
            let builder = std::thread::Builder::new().stack_size(THREAD_STACK_BYTES);
            let builder = builder.name(format!("answers {number}"));
            builder.spawn_scoped(scope, || answer_threads.work()).map(|_| ())
        });
        let served = match started {
            Ok(()) => reactor
                .serve(StopSources { signals: Some(&signals), group: None })
                .map_err(system("cannot wait for events")),
            Err(error) => Err(system("cannot start the threads of server.worker-threads")(error)),
        };
        answer_threads.close();
        served
    })
}
