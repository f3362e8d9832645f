//! One thread with one event loop: lighttpd, and one worker of nginx. Start reading at [`ITEM`],
//! then `shared/event_loop.rs`.
//!
//! After lighttpd 1.4 (src/server.c, src/network.c, src/fdevent_impl.c). `poller` is its
//! `server.event-handler`, with the same default, epoll. A round accepts up to 100 connections, and
//! a turn writes at most 256 KiB. At `server.max-connections` the listener leaves the poll set. It
//! returns when a connection ends; lighttpd waits until a tenth of its descriptors is free. A.
//! Chandra and D. Mosberger, "Scalability of Linux event-dispatch mechanisms" (USENIX 2001), is the
//! classic comparison of pollers.

use std::sync::Arc;

use sys::epoll::Epoll;
use sys::listener::Mode;
use sys::socket;
use sys::watch::{PollSet, SELECT_FILES_MAX, SelectSet, Watch};

use super::shared::event_loop::{Loop, Rules};
use super::shared::loop_group::StopSources;
use super::shared::{begin, system};
use super::{Declared, Model, PreparedModel, SettingKind, SettingSpec, Settings};
use crate::ServeError;
use crate::service::Service;

const CONNECTIONS_MAX: &str = "server.max-connections";
const POLLER: &str = "poller";

/// Default number of connections of one loop.
pub(super) const CONNECTIONS_MAX_DEFAULT: u64 = 16_384;

/// Of the files that select can watch, how many are reserved for the listener, logs and content.
const SELECT_RESERVE: usize = 124;

/// The model.
pub(super) static ITEM: Model = Model {
    name: "reactor",
    about: "one thread, one loop for all connections (lighttpd, one worker of nginx)",
    settings: &[
        SettingSpec {
            name: POLLER,
            kind: SettingKind::Word { default: "epoll", allowed: &["epoll", "poll", "select"] },
            about: "what the loop waits with (lighttpd's server.event-handler)",
        },
        SettingSpec {
            name: CONNECTIONS_MAX,
            kind: SettingKind::CountOrAuto { min: 1, max: 1_000_000 },
            about: "connections held at once; auto: 16384, with select 900 (lighttpd's own default is \
                    a third of server.max-fds, 1365)",
        },
    ],
    declares: Declared {
        accept_order: "the one loop takes them in order of arrival, up to 100 a round",
        keep_alive_holder: "the loop",
        backlog: "the kernel's queue, ListenBacklog connections",
        concurrency: "one request in progress; server.max-connections and open files bound the rest",
        saturation: "requests wait in the sockets, connections past the bound in the backlog",
    },
    two_at_once: Some(&["server.max-connections=2"]),
    prepare,
};

#[derive(Debug)]
struct Reactor {
    poller: Poller,
    conns_max: usize,
}

/// What the loop waits with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Poller {
    Epoll,
    Poll,
    Select,
}

fn prepare(settings: &Settings) -> Result<Arc<dyn PreparedModel>, String> {
    let poller = match settings.word(POLLER) {
        "poll" => Poller::Poll,
        "select" => Poller::Select,
        _ => Poller::Epoll,
    };
    let fit = SELECT_FILES_MAX - SELECT_RESERVE;
    let conns_max = match (settings.size_or_auto(CONNECTIONS_MAX), poller) {
        (Some(conns), Poller::Select) if conns > fit => {
            return Err(format!(
                "{CONNECTIONS_MAX} must be at most {fit} with poller = select, got {conns}: an fd_set holds \
                 the files numbered 0 to {}, and {SELECT_RESERVE} of them are for what is served; lower it, \
                 or choose poller = poll or epoll",
                SELECT_FILES_MAX - 1
            ));
        }
        (Some(conns), _) => conns,
        (None, Poller::Select) => fit,
        (None, _) => CONNECTIONS_MAX_DEFAULT as usize,
    };
    Ok(Arc::new(Reactor { poller, conns_max }))
}

impl PreparedModel for Reactor {
    fn run(&self, service: &Service) -> Result<(), ServeError> {
        match self.poller {
            // A file with a higher number could not be watched, so we make none.
            Poller::Select => socket::lower_file_limit(SELECT_FILES_MAX as u64)
                .map_err(system("cannot bound the number of open files, which select needs"))?,
            // As servers of many connections do (nginx worker_rlimit_nofile, lighttpd
            // server.max-fds). If the kernel refuses, fewer connections fit, and the error log says
            // so when accept fails.
            Poller::Epoll | Poller::Poll => _ = socket::raise_file_limit(),
        }
        match self.poller {
            Poller::Epoll => self.run_with::<Epoll>(service),
            Poller::Poll => self.run_with::<PollSet>(service),
            Poller::Select => self.run_with::<SelectSet>(service),
        }
    }
}

impl Reactor {
    fn run_with<W: Watch>(&self, service: &Service) -> Result<(), ServeError> {
        let signals = begin(service, Mode::NonBlocking)?;
        let rules = Rules::of_one_loop(self.conns_max);
        let mut reactor = Loop::<W>::new(service, &service.listener, rules, None)
            .map_err(system("cannot create the poll set"))?;
        let sources = StopSources { signals: Some(&signals), group: None };
        reactor.serve(sources).map_err(system("cannot wait for events"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_connections_than_select_can_watch_are_refused_with_the_number_that_fits() {
        let mut settings = Settings::defaults(ITEM.settings);
        settings.set(CONNECTIONS_MAX, "901").unwrap();
        for (poller, holds) in [("epoll", true), ("poll", true), ("select", false)] {
            settings.set(POLLER, poller).unwrap();
            assert_eq!(prepare(&settings).is_ok(), holds, "{poller}");
        }
        let refusal = prepare(&settings).unwrap_err();
        assert!(refusal.contains("901") && refusal.contains("at most 900"), "{refusal}");
        settings.set(CONNECTIONS_MAX, "900").unwrap();
        assert!(prepare(&settings).is_ok());
        settings.set(CONNECTIONS_MAX, "auto").unwrap();
        assert!(prepare(&settings).is_ok());
    }
}
