//! The rights of the serving processes: what they give up between opening everything and the first connection. Owns
//! which rights a configuration needs. Start reading at [`give_up`].
//!
//! 1 The user (`user`, `group`). The supervisor keeps its own user, so that a reload can open ports, keys and
//!   directories that serving processes cannot. What these read later by themselves (changed certificates and password
//!   files) must be readable by the user. On SIGHUP it is read with the rights of the supervisor.
//! 2 Landlock (`confine`), in every serving process. Files may be read beneath the directories of sites, and in those
//!   of certificates, password files and scripts of FastCGI; nothing else may be opened, executed, made or removed.
//!   Logs are written through descriptors that the supervisor has opened, and opens again for a rotation (see
//!   `log::Reopen`), so no file can be opened for writing. No TCP port may be bound, and only ports where FastCGI
//!   applications listen may be connected to. No process outside may be signalled. The supervisor is not confined,
//!   since a reload may name other directories.
//!
//! Programs of `[[gateway]]`s of kind cgi would be confined with the server that starts them, and it is not known here
//! what they need. So with such a gateway nothing is confined, and the error log says so. FastCGI applications that are
//! started with the server run as its user, and are not confined.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use site::config::{Content, ErrorLogTo, GatewayConfig, GatewayKind, SiteConfig};
use site::gateway::SpawnedApplications;
use site::log::Level;
use sys::append;
use sys::identity::{self, Identity};
use sys::landlock::{self, Access, Rules, Ruleset};

use crate::ServeError;
use crate::config::Config;
use crate::service::Service;

/// What libraries read at any time: the time zone, and the list of threads.
const ALWAYS: [(&str, Access); 4] = [
    ("/proc", Access::List),
    ("/dev/null", Access::Read),
    ("/etc/localtime", Access::Read),
    ("/usr/share/zoneinfo", Access::Read),
];

/// The user and group of the serving processes; `None`: the present ones.
///
/// # Errors
/// There is no such user or group, or this process cannot give its rights up.
pub(crate) fn identity(config: &Config) -> Result<Option<Identity>, ServeError> {
    let Some(user) = &config.user else { return Ok(None) };
    let refused = |reason| ServeError::Rights { reason };
    let found = Identity::find(user, config.group.as_deref()).map_err(refused)?;
    if !identity::is_root() {
        return Err(refused(format!(
            "cannot switch to user `{user}`: only root can switch users. Start it as root, \
             or leave `user` and `group` out (systemd: User=, AmbientCapabilities=CAP_NET_BIND_SERVICE)"
        )));
    }
    Ok(Some(found))
}

/// Makes missing log files, owned by `identity` if there is one. Returns those that cannot be made, and why.
pub(crate) fn make_logs(
    config: &Config,
    identity: Option<&Identity>,
) -> Vec<(PathBuf, std::io::Error)> {
    let owner = identity.map(Identity::uid);
    let made = logs(config).into_iter().map(|path| (append::make(&path, owner).err(), path));
    made.filter_map(|(error, path)| Some((path, error?))).collect()
}

/// Files of the logs, each once.
pub(crate) fn logs(config: &Config) -> BTreeSet<PathBuf> {
    let errors = match &config.site.error_log.to {
        ErrorLogTo::File(path) => Some(path.clone()),
        ErrorLogTo::Stderr | ErrorLogTo::Off => None,
    };
    let hosts = config.site.all_hosts().0.into_iter();
    hosts.filter_map(|host| host.access_log.file).chain(errors).collect()
}

/// Leaves this process, and all that it will start, only the rights that serving needs. Before that it starts what
/// needs more.
///
/// # Errors
/// What was configured and could not be done.
pub(crate) fn give_up(
    service: &Service,
    confine: bool,
) -> Result<Option<SpawnedApplications>, ServeError> {
    let errors = &service.errors;
    service.reopen.only_take();
    // Before the user changes, while everything that it names can be found.
    let confinement = confinement(service, confine);
    match &service.identity {
        Some(identity) => identity.assume().map_err(|source| ServeError::System {
            doing: "cannot give up the rights of root",
            source,
        })?,
        None if identity::is_root() => errors.note(
            Level::Warn,
            format_args!(
                "serves as root: set the key user, or --user NAME, to switch to another user"
            ),
        ),
        None => {}
    }
    let applications = service.start_applications()?;
    match confinement {
        Ok(ruleset) => {
            let abi = ruleset.abi();
            ruleset.enforce().map_err(|source| ServeError::System {
                doing: "cannot confine the processes that serve (the key confine, off, does without)",
                source,
            })?;
            errors.note(
                Level::Notice,
                format_args!("confined to what is served, by Landlock {abi}: {}", enforced(abi)),
            );
        }
        Err((level, why)) => errors.note(level, format_args!("not confined: {why}")),
    }
    Ok(applications)
}

/// The rules to enforce; or why there are none, and the level at which to log that.
fn confinement(service: &Service, confine: bool) -> Result<Ruleset, (Level, String)> {
    let config = &service.config;
    if !confine {
        return Err((Level::Info, "`confine` is off".to_owned()));
    }
    if config.gateways.iter().any(|gateway| gateway.kind == GatewayKind::Cgi) {
        let why = "CGI programs would inherit the limits; FastCGI applications would not";
        return Err((Level::Notice, why.to_owned()));
    }
    if let Err(error) = landlock::abi() {
        return Err((Level::Info, format!("this kernel has no Landlock: {error}")));
    }
    let rules = Rules { files: files(config), ports: service.gateways.ports().collect() };
    let failed = |error| (Level::Warn, format!("cannot make rules for Landlock: {error}"));
    Ruleset::new(&rules).map_err(failed)
}

fn enforced(abi: u32) -> &'static str {
    match abi {
        0..4 => "files",
        4..6 => "files and TCP ports",
        _ => "files, TCP ports and signals",
    }
}

/// All files that serving processes may open.
fn files(config: &SiteConfig) -> Vec<(PathBuf, Access)> {
    let mut files = ALWAYS.map(|(path, access)| (PathBuf::from(path), access)).to_vec();
    for host in config.all_hosts().0 {
        if let Content::Directory(path) = host.content {
            files.push((path, Access::ReadAndList));
        }
        let guards = host.rules.iter().filter_map(|rule| rule.auth.as_ref());
        guards.for_each(|auth| files.extend(around(&auth.file, Access::Read)));
    }
    for certificate in config.tls.iter().flat_map(|tls| &tls.certificate) {
        files.extend(around(&certificate.chain, Access::Read));
        files.extend(around(&certificate.key, Access::Read));
    }
    config.gateways.iter().for_each(|gateway| files.extend(of_gateway(gateway)));
    files
}

/// The directories in which a file lies, or a file that will take its place: where its path leads by name, and where a
/// symbolic link leads.
fn around(file: &Path, access: Access) -> impl Iterator<Item = (PathBuf, Access)> {
    let real = file.canonicalize().ok();
    let both = [Some(file.to_owned()), real].into_iter().flatten();
    both.map(move |path| {
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        (directory.unwrap_or(Path::new(".")).to_owned(), access)
    })
}

fn of_gateway(gateway: &GatewayConfig) -> impl Iterator<Item = (PathBuf, Access)> {
    let script = gateway.script.as_deref().and_then(Path::parent);
    let scripts = [gateway.root.as_deref(), script].into_iter().flatten();
    let bodies = (gateway.body_directory.clone(), Access::Temporary);
    scripts.map(|path| (path.to_owned(), Access::ReadAndList)).chain([bodies])
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::io::{self, ErrorKind};

    use super::*;
    use crate::testing;

    #[test]
    fn whoever_is_confined_writes_logs_and_opens_nothing_beside_them() {
        if landlock::abi().is_err() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("other"), "of somebody else").unwrap();
        let mut config = testing::config();
        config.site.access_log.file = Some(at("access.log"));
        config.site.error_log.to = ErrorLogTo::File(at("error.log"));
        let service = Service::bind(config).unwrap();
        let text = |name: &str| fs::read_to_string(at(name)).unwrap();
        // Of this process only one thread is confined, which is enough to write.
        std::thread::scope(|scope| {
            let confined = || {
                confinement(&service, true).unwrap().enforce().unwrap();
                let write = |name: &str| File::options().append(true).open(at(name)).map(drop);
                let refused = |result: io::Result<()>| {
                    result.is_err_and(|e| e.kind() == ErrorKind::PermissionDenied)
                };
                let made = File::options().append(true).create(true).open(at("new")).map(drop);
                assert!(refused(made));
                ["other", "access.log", "error.log"].iter().all(|name| refused(write(name)))
            };
            assert!(scope.spawn(confined).join().unwrap());
        });
        let confined = |act: &(dyn Fn() + Sync)| {
            std::thread::scope(|scope| {
                let thread = scope.spawn(|| {
                    confinement(&service, true).unwrap().enforce().unwrap();
                    act();
                });
                thread.join().unwrap();
            });
        };
        let log = || {
            service.errors.note(Level::Error, format_args!("said"));
            service.log.append(service.log.of(0).unwrap(), b"a line\n");
            service.log.flush();
        };
        confined(&log);
        for name in ["access.log", "error.log"] {
            fs::rename(at(name), at(&format!("{name}.1"))).unwrap();
        }
        assert!(service.reopen.reopen_used(|_| true, None).is_empty());
        confined(&log);
        for name in ["access.log.1", "access.log"] {
            assert_eq!(text(name), "a line\n", "{name}");
        }
        for name in ["error.log.1", "error.log"] {
            assert_eq!(text(name).matches("said").count(), 1, "{name}");
        }
        assert_eq!(text("other"), "of somebody else");
    }
}
