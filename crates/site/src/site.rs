//! What all connections of a server share: the hosts and their files, gateways, logs, TLS, planted faults
//! and the status board. Owns the order in which they are opened. Start reading at [`Site::open`].

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use sys::clock;
use units::Nanos;
use wire::tls::TicketKeys;

use crate::SiteError;
use crate::board::Board;
use crate::config::{HostConfig, SiteConfig};
use crate::fault::Faults;
use crate::gateway::Gateways;
use crate::hosts::Hosts;
use crate::log::{AccessLogs, ErrorLog, Reopen};
use crate::server::Server;
use crate::shortage::Shortage;
use crate::tls::Tls;

/// What is served. Shared by reference; processes that a model forks inherit it.
#[derive(Debug)]
pub struct Site {
    /// The hosts and their content.
    pub hosts: Hosts,
    /// How it is served.
    pub config: SiteConfig,
    /// Where requests are logged.
    pub log: AccessLogs,
    /// Where the server logs its own messages.
    pub errors: Arc<ErrorLog>,
    /// The files of both logs.
    pub reopen: Reopen,
    /// What answers requests instead of files.
    pub gateways: Gateways,
    /// Whole seconds since 1970, for `Date` and the log. A value, so that tests can hold it still.
    pub wall_s: fn() -> u64,
    /// Planted faults, which count from the instant at which the site was opened; mostly none.
    pub faults: Option<Faults>,
    /// What each thread does, and has done.
    pub board: Board,
    /// How it speaks TLS; `None`: not at all.
    pub tls: Option<Tls>,
    /// A shortage of descriptors or memory for another connection.
    pub accepts: Shortage,
    /// The server that it is part of.
    pub server: Server,
}

/// What a site is opened with, besides its configuration.
#[derive(Debug, Default)]
pub struct Opening {
    /// The file that `stderr` names for the error log; without it, that log is off.
    pub stderr: Option<File>,
    /// The shared request to reopen the logs.
    pub reopen: Option<Reopen>,
    /// Keys of the TLS tickets that clients already have.
    pub tickets: Option<TicketKeys>,
}

impl Site {
    /// Opens everything that the configuration names. It belongs to no server yet: set `server`.
    ///
    /// # Errors
    /// What is wrong with a directory, a log file, a certificate or a gateway.
    pub fn open(config: SiteConfig, opening: Opening) -> Result<Self, SiteError> {
        let shared = |source| SiteError::System { doing: "cannot share a count", source };
        let reopen = opening.reopen.map_or_else(Reopen::new, Ok).map_err(shared)?;
        let errors = Arc::new(ErrorLog::open(&config.error_log, opening.stderr, &reopen)?);
        let hosts = Hosts::open(&config)?;
        let gateways = Gateways::open(&config)?;
        let log = open_logs(&config, &reopen, &errors)?;
        let now_s = clock::wall_secs_coarse;
        let tickets = opening.tickets.unwrap_or_else(|| TicketKeys::new(now_s));
        let tls = config.tls.as_ref().map(|tls| Tls::open(tls, &tickets, now_s)).transpose()?;
        let faults = Faults::plant(&config.faults, clock::monotonic())
            .map_err(system("cannot share the count of planted faults"))?;
        Ok(Self {
            hosts,
            log,
            errors,
            reopen,
            gateways,
            wall_s: now_s,
            faults,
            board: Board::new(config.status.path.is_some())
                .map_err(system("cannot share the status board"))?,
            tls,
            accepts: Shortage::new().map_err(shared)?,
            server: Server::default(),
            config,
        })
    }

    /// Every problem with what the configuration names. Nothing is made or changed.
    pub fn check(config: &SiteConfig) -> Vec<SiteError> {
        let log = ErrorLog::check(&config.error_log).err();
        let tls = config.tls.iter().flat_map(Tls::check);
        let all = log.into_iter().chain(Hosts::check(config)).chain(tls);
        let all = all.chain(Gateways::check(config));
        // A directory of a site may also be one of programs.
        let mut said = BTreeSet::new();
        all.filter(|error| said.insert(error.to_string())).collect()
    }

    /// Where the server listens; with port 0 asked for, the port that the kernel chose.
    pub fn address(&self) -> SocketAddr {
        self.server.address
    }

    /// The URL of its first page.
    pub fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}/", self.address())
    }

    /// Writes what is left of the logs, and opens them again if that was requested. To be called now and then by a
    /// process that may have nothing to log for long.
    pub fn keep_logs_up(&self) {
        self.log.flush();
        self.errors.keep_up();
    }

    /// Logs that a connection could not be accepted for lack of descriptors or memory: the first time at once, and then
    /// with a count.
    pub fn note_exhaustion(&self, error: &io::Error) {
        let doing = format_args!("accept a connection");
        self.accepts.note(&self.errors, doing, error, Shortage::FILES_AND_MEMORY);
    }

    /// A connection was accepted, which may be the end of a shortage.
    #[inline]
    pub(crate) fn note_accepted(&self, now: Nanos) {
        if self.accepts.lasts() {
            self.accepts.note_accepted(&self.errors, now);
        }
    }
}

fn open_logs(
    config: &SiteConfig,
    reopen: &Reopen,
    errors: &Arc<ErrorLog>,
) -> Result<AccessLogs, SiteError> {
    let (hosts, _) = config.all_hosts();
    let logs = hosts.iter().map(|host: &HostConfig| &host.access_log);
    AccessLogs::open(logs, reopen, errors).map_err(|(host, error)| hosts[host].named()(error))
}

fn system(doing: &'static str) -> impl FnOnce(io::Error) -> SiteError {
    move |source| SiteError::System { doing, source }
}
