//! From a configuration to a [`Service`] that listens. Owns the order: what can be checked is checked, then the site is
//! opened, and only then the port. So a server whose port answers can serve. Start reading at [`Service::bind`].

use std::fs::File;
use std::io;
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;

use site::log::Reopen;
use site::{Opening, Server, Shortage, ShownSetting, Site, fault};
use sys::append;
use sys::listener::{self, Inherited};
use wire::tls::TicketKeys;

use crate::ServeError;
use crate::config::Config;
use crate::handover::Handover;
use crate::models;
use crate::rights;
use crate::service::closing::Closing;
use crate::service::{Queues, Service};

/// What the caller gives a server in addition to its configuration.
#[derive(Debug, Default)]
pub struct Given {
    /// The file that `stderr` names for the error log; without it, that log is off.
    pub stderr: Option<File>,
    /// Queues of a port that listen already; the first replaces `listen`. Those for which the model has no loop are
    /// closed. [`Service::run`] gives them the settings of the configuration.
    pub listeners: Vec<TcpListener>,
    /// The first of them was passed to us (socket activation) and stays open after the server: it is never shut.
    pub is_lent: bool,
    /// The shared request to reopen the logs.
    pub reopen: Option<Reopen>,
    /// Keys of the TLS tickets that clients already have.
    pub tickets: Option<TicketKeys>,
    /// Workers of the previous generation: after a reload, a model of processes begins with as many.
    pub workers_before: usize,
}

impl Service {
    /// Opens the site and the logs, then listens.
    ///
    /// # Errors
    /// What is wrong with the CPUs, the machine under this model, the directory, the log files or the
    /// address.
    pub fn bind(config: Config) -> Result<Self, ServeError> {
        Self::bind_given(config, Given::default())
    }

    /// The same, with what the caller gives.
    ///
    /// # Errors
    /// As [`Service::bind`].
    pub fn bind_given(config: Config, given: Given) -> Result<Self, ServeError> {
        check_cpus(&config.cpus)?;
        check_model(&config)?;
        let shared = |source| ServeError::System { doing: "cannot share a count", source };
        let handover = Handover::none().map_err(shared)?;
        let identity = rights::identity(&config)?;
        // If this fails, opening the logs reports why.
        let _ = rights::make_logs(&config, identity.as_ref());
        let Given { stderr, listeners, is_lent, reopen, tickets, workers_before } = given;
        let is_lent = is_lent && !listeners.is_empty();
        let inherited = inherited(&config);
        let mut site = Site::open(config.site.clone(), Opening { stderr, reopen, tickets })?;
        let mut listeners = listeners.into_iter();
        let listener = listeners.next().map_or_else(|| listen(&config), Ok)?;
        let more_listeners = listen_more(&config, &listener, listeners.collect())?;
        let address = listener.local_addr().unwrap_or(config.listen);
        let listener = Arc::new(listener);
        let more_listeners: Vec<_> = more_listeners.into_iter().map(Arc::new).collect();
        let all = [&listener].into_iter().chain(&more_listeners).map(Arc::clone);
        let queues = Queues { listeners: all.collect(), handover: handover.clone() };
        let shown = |(spec, value): (&crate::settings::SettingSpec, crate::settings::Value)| {
            ShownSetting { name: spec.name, value: value.to_string(), about: spec.about }
        };
        site.server = Server {
            address,
            model: config.model.name,
            about_model: config.model.about,
            settings: config.settings.iter().map(shown).collect(),
            port: Arc::new(queues),
        };
        Ok(Self {
            site,
            listener,
            more_listeners,
            model: config.prepared,
            listen_backlog: config.listen_backlog,
            shutdown_grace: config.shutdown_grace,
            cpus: config.cpus,
            inherited,
            handover,
            starts: Shortage::new().map_err(shared)?,
            workers_before,
            identity,
            is_lent,
            closing: Closing::default(),
        })
    }

    /// Every problem with a configuration, and with what it names, that can be found without listening. Nothing is made
    /// or changed.
    pub fn check(config: &Config) -> Vec<ServeError> {
        let checks = [
            check_cpus(&config.cpus),
            check_model(config),
            rights::identity(config).map(drop),
            check_pid_file(config.pid_file.as_deref()),
        ];
        let of_site = Site::check(&config.site).into_iter().map(ServeError::from);
        checks.into_iter().filter_map(Result::err).chain(of_site).collect()
    }
}

/// The kernel refuses a set only if none of its CPUs is there. From any other set it silently leaves out missing CPUs,
/// and the server would run on fewer than it says.
fn check_cpus(cpus: &[u32]) -> Result<(), ServeError> {
    let allowed = sys::affinity::allowed().map_err(|source| ServeError::System {
        doing: "cannot read which CPUs this process may use",
        source,
    })?;
    match cpus.iter().find(|cpu| !allowed.contains(cpu)) {
        Some(&cpu) => Err(ServeError::NoSuchCpu { cpu, allowed }),
        None => Ok(()),
    }
}

/// Whether this machine can run the model as it is set.
fn check_model(config: &Config) -> Result<(), ServeError> {
    let refused = config.prepared.available();
    refused.map_err(|why| ServeError::NoModelHere { model: config.model.name, why })
}

/// Whether the file could be written when the server starts.
fn check_pid_file(path: Option<&Path>) -> Result<(), ServeError> {
    let Some(path) = path else { return Ok(()) };
    append::check(path).map_err(|source| ServeError::PidFile { path: path.to_owned(), source })
}

/// What its connections inherit from the listener.
fn inherited(config: &Config) -> Inherited {
    Inherited {
        call_max: models::call_max(&config.site),
        nodelay: fault::has_nodelay(&config.site.faults),
    }
}

fn listen(config: &Config) -> Result<TcpListener, ServeError> {
    let address = config.listen;
    listener::bind(address, config.listen_backlog, inherited(config)).map_err(|source| match source
        .kind()
    {
        io::ErrorKind::AddrInUse => ServeError::AddressInUse { address },
        io::ErrorKind::PermissionDenied => ServeError::PortNeedsPrivilege { address },
        io::ErrorKind::AddrNotAvailable => ServeError::AddressNotHere { address },
        _ => ServeError::Listen { address, source },
    })
}

/// The queues of the model's loops, without the first.
fn listen_more(
    config: &Config,
    first: &TcpListener,
    mut queues: Vec<TcpListener>,
) -> Result<Vec<TcpListener>, ServeError> {
    let wanted = config.prepared.port_queues(&config.cpus)? - 1;
    queues.truncate(wanted);
    if wanted == 0 || queues.len() < wanted {
        let more = wanted - queues.len();
        let opened = listener::bind_more(first, config.listen_backlog, inherited(config), more);
        queues.extend(opened.map_err(|source| ServeError::System {
            doing: "cannot open a queue of the port for each loop (accept = reuseport)",
            source,
        })?);
    }
    Ok(queues)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn a_port_in_use_is_named_with_the_command_that_finds_its_owner() {
        let first = Service::bind(testing::config()).unwrap();
        let mut config = testing::config();
        config.listen = first.address();
        let error = Service::bind(config).unwrap_err().to_string();
        assert!(error.contains("in use") && error.contains("ss -ltnp"), "{error}");
    }

    #[test]
    fn a_cpu_that_is_not_there_is_refused_before_the_port_is_open() {
        let here = sys::affinity::allowed().unwrap()[0];
        let mut config = testing::config();
        config.cpus = vec![here, 100_000];
        let error = Service::bind(config).unwrap_err().to_string();
        assert!(
            error.contains("CPU 100000 is not available") && error.contains(&here.to_string()),
            "{error}"
        );
    }

    #[test]
    fn a_directory_that_is_missing_or_none_is_told_apart() {
        let mut config = testing::config();
        config.site.content = site::config::Content::Directory("/nonexistent/site".into());
        let error = Service::bind(config.clone()).unwrap_err().to_string();
        assert!(error.contains("directory /nonexistent/site does not exist"), "{error}");
        config.site.content = site::config::Content::Directory("/etc/passwd".into());
        let error = Service::bind(config).unwrap_err().to_string();
        assert!(error.contains("/etc/passwd is not a directory"), "{error}");
    }
}
