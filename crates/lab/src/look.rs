//! Owns a first look at the contenders of a plan, before anything is measured: each is started once and asked alone.
//! So the user learns within seconds that one does not run or closes every connection, or that they serve different
//! pages. Start reading at [`look`].

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use record::Plan;
use units::Nanos;

use crate::adapters::{self, Role, Search};
use crate::error::LabError;
use crate::oracle::{self, Reference};
use crate::server::{Running, ServerError, Start, scratch, site};

/// How long a server may take for its first answer, also one that already runs.
const START_MAX: Nanos = Nanos::from_secs(10);
const ELSEWHERE_MAX: Nanos = Nanos::from_secs(2);

/// What a contender answers when it is asked alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Looked {
    /// Whether it keeps a connection after its reply.
    pub keeps_alive: bool,
    /// What it sends.
    pub reference: Reference,
}

/// Why the first look failed.
#[derive(Debug, thiserror::Error)]
pub enum LookError {
    /// The harness failed.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// A contender does not answer as it must.
    #[error("{name}: {said}")]
    Contender {
        /// Its name.
        name: String,
        /// What it did, with the end of its log.
        said: String,
        /// The way out.
        help: &'static str,
    },
    /// Two contenders do different work.
    #[error(
        "they do not serve the same page: {first} sends {} B and {other} {}", bytes.0,
        if bytes.0 == bytes.1 { "as many, but others".to_owned() } else { format!("{} B", bytes.1) }
    )]
    Unlike {
        /// The first contender.
        first: String,
        /// One whose page differs.
        other: String,
        /// Lengths of their pages.
        bytes: (u64, u64),
    },
    /// It was interrupted.
    #[error("interrupted before anything was measured")]
    Interrupted,
}

/// Starts each contender of a plan in turn over loopback, makes the request of its first cell, and ends it. All
/// servers of the plan must be installed.
///
/// # Errors
/// The first contender that does not answer.
pub fn look(
    plan: &Plan,
    joust_binary: &Path,
    interrupt: &AtomicBool,
    begins: &mut dyn FnMut(&str),
) -> Result<Vec<Looked>, LookError> {
    let failed = |what: &str| {
        let what = what.to_owned();
        move |cause| LabError::System { what, cause }
    };
    let scratch = scratch().map_err(failed("cannot make a folder below /tmp"))?;
    let docroot =
        site(scratch.path(), &plan.pages()).map_err(failed("cannot make the site below /tmp"))?;
    let search = Search::new(joust_binary);
    let mut all = Vec::new();
    for (index, contender) in plan.contenders.iter().enumerate() {
        if interrupt.load(Ordering::Relaxed) {
            return Err(LookError::Interrupted);
        }
        begins(&contender.name);
        let adapter = adapters::named(&contender.server).map_err(LabError::from)?;
        let refused =
            |said: String, help| LookError::Contender { name: contender.name.clone(), said, help };
        let found = adapter.installed(&search).map_err(|missing| refused(missing.reason, ""))?;
        let target = plan.target(0, index);
        let runs_already = adapter.role == Role::RunsAlready;
        let start = Start {
            adapter,
            found: &found,
            settings: &contender.settings,
            docroot: &docroot,
            cpus: &[],
            connections: plan.work(0, index).connections,
            scratch: scratch.path(),
            target: &target,
            timeout: if runs_already { ELSEWHERE_MAX } else { START_MAX },
            interrupt,
        };
        let running = Running::start(&start).map_err(|error| match error {
            ServerError::Interrupted { .. } => LookError::Interrupted,
            error => refused(said(&error, runs_already), way_out(adapter.role, &error)),
        })?;
        let looked = ask(&running, &target).map_err(|text| refused(text, ""));
        running.stop().map_err(|error| refused(error.to_string(), ""))?;
        all.push(looked?);
    }
    alike(plan, &all)?;
    Ok(all)
}

/// A contender that sends something else does other work, so every verdict on it would be withheld.
fn alike(plan: &Plan, all: &[Looked]) -> Result<(), LookError> {
    let first = &all[0].reference;
    let differs = |one: &Looked| one.reference.sha256 != first.sha256;
    let name = |index: usize| plan.contenders[index].name.clone();
    all.iter().position(differs).map_or(Ok(()), |index| {
        let bytes = (first.bytes, all[index].reference.bytes);
        Err(LookError::Unlike { first: name(0), other: name(index), bytes })
    })
}

fn ask(running: &Running, target: &str) -> Result<Looked, String> {
    let (address, target) = (running.address(), running.target(target));
    let reference = oracle::ask(address.clone(), target, ELSEWHERE_MAX);
    let reference = reference.map_err(|error| error.to_string())?;
    let kept = load::fetch(&address.plan(target, 2, ELSEWHERE_MAX));
    let kept = kept.map_err(|error| error.to_string())?;
    Ok(Looked { keeps_alive: keeps_alive(&kept.head), reference })
}

/// Whether a head leaves its connection open (RFC 9112, section 9.3).
fn keeps_alive(head: &str) -> bool {
    let mut lines = head.lines();
    let is_old = lines.next().is_some_and(|line| line.starts_with("HTTP/1.0"));
    let connection = lines
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("connection"));
    let says =
        |word: &str| connection.is_some_and(|(_, value)| value.to_ascii_lowercase().contains(word));
    if is_old { says("keep-alive") } else { !says("close") }
}

/// What it did, without the adapter's name: for a command, nobody typed that name.
fn said(error: &ServerError, runs_already: bool) -> String {
    let whole = error.to_string();
    let text =
        ["command ", "url "].iter().find_map(|name| whole.strip_prefix(name)).unwrap_or(&whole);
    let without_log = text.split("; the end of its log").next().unwrap_or(text);
    match error {
        // A server that runs elsewhere keeps its log there.
        _ if runs_already => without_log.to_owned(),
        // It answered, and its log has one line for each of our requests.
        ServerError::NotReady { last, log_tail, .. } if is_of_status(last) => {
            let log = keep(log_tail).map_or(String::new(), |log| {
                format!("; the end of its log is in {}", log.display())
            });
            format!("{last}{log}")
        }
        _ => text.to_owned(),
    }
}

/// Whether this describes an answer of a running server, and not why there was none.
fn is_of_status(last: &str) -> bool {
    last.starts_with("it answered ") || last.starts_with("it redirects ")
}

/// Writes the end of a log into a file that stays, because the server's log is removed with its folder.
fn keep(log_tail: &str) -> Option<PathBuf> {
    let file = tempfile::Builder::new().prefix("joust-log-").suffix(".txt").tempfile_in("/tmp");
    let mut file = file.ok()?;
    file.write_all(log_tail.as_bytes()).ok()?;
    Some(file.keep().ok()?.1)
}

fn way_out(role: Role, error: &ServerError) -> &'static str {
    let is_command = role == Role::AnyProgram;
    match error {
        ServerError::NotReady { last, .. } if last.contains("it redirects ") => {
            "name the path that it answers itself, as in --target /"
        }
        ServerError::NotReady { last, .. } if is_of_status(last) => {
            "name a path that it answers with 200, as in --target /"
        }
        ServerError::NotReady { .. } if role == Role::RunsAlready => {
            "start it first, or check host and port: `curl -v URL` shows what is there"
        }
        ServerError::NotReady { .. } if is_command => {
            "it must listen on 127.0.0.1 at the port that {port} stands for, and stay in the foreground"
        }
        ServerError::Died { .. } if is_command => {
            "run the command by hand, with a port in place of {port}, to see why; it must stay in the \
             foreground"
        }
        ServerError::Spawn { .. } => {
            "is the program installed and executable? A path is relative to the folder you are in"
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_says_whether_its_connection_is_kept() {
        for (head, kept) in [
            ("HTTP/1.1 200 OK\nServer: x\n", true),
            ("HTTP/1.1 200 OK\nConnection: Close\n", false),
            ("HTTP/1.0 200 OK\nServer: x\n", false),
            ("HTTP/1.0 200 OK\nconnection: Keep-Alive\n", true),
        ] {
            assert_eq!(keeps_alive(head), kept, "{head}");
        }
    }
}
