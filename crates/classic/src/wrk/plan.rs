//! Makes a plan from wrk's flags: its request as Lua makes it, its server, and the end of the load. Owns what wrk does
//! before its first request. Start reading at [`prepare`].

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use record::{LoadPlan, LoadStop, Origin, RequestPlan, Scenario, ServerAddress, TlsPlan, Verify};
use units::Nanos;

use super::flags::{Flags, VERSION};
use super::footnotes;
use super::lua::{Script, ScriptUsers, Scripts};
use super::printer::Wrk;
use crate::command::{ExitMessage, Run, Stream, Surroundings, strerror};

/// wrk itself never stops waiting for a reply, so this is joust's maximum. Longer loads are rare.
const TIMEOUT: Nanos = Nanos::from_secs(1200);

/// Prepares the run.
///
/// # Errors
/// What wrk prints before its first request instead of running.
pub(super) fn prepare(flags: Flags, world: &dyn Surroundings) -> Result<Run, ExitMessage> {
    let mut complaints = String::new();
    let script =
        flags.script.as_deref().and_then(|path| read(path, &flags, world, &mut complaints));
    let scripts = Scripts::prepare(&flags, script.as_ref(), world, &mut complaints);
    let scripts = scripts.map_err(|mut said| {
        let version = if flags.version { VERSION } else { "" };
        said.texts.0.insert(0, (Stream::Err, complaints.clone()));
        said.texts.0.insert(0, (Stream::Out, version.to_owned()));
        said
    })?;
    let scripts = Arc::new(scripts);
    let (origins, numbers) = origins(&flags, scripts.places());
    let plan = LoadPlan {
        url: flags.url.whole.clone(),
        origins,
        requests: vec![described(scripts.first(0), &flags)],
        connections: flags.connections_a_thread() * flags.threads,
        threads: flags.threads,
        // wrk does not verify certificates or offer sessions.
        tls: TlsPlan { insecure: true, resume: 0.0, ..TlsPlan::default() },
        stop: LoadStop { requests: None, duration: Some(Nanos::from_secs(flags.duration)) },
        timeout: TIMEOUT,
        drain: Nanos::ZERO,
        // wrk ignores the status: every complete reply counts.
        verify: Verify { status_min: 0, status_max: 999, ..Verify::default() },
        ..LoadPlan::get(scripts.places()[0], &flags.url.path)
    };
    let scenario: Option<Box<dyn Scenario>> = match scripts.is_static() {
        true => None,
        false => Some(Box::new(ScriptUsers::new(Arc::clone(&scripts), numbers))),
    };
    let footnotes = footnotes::before(&flags);
    let scripts = script.map(|_| scripts);
    let printer = Box::new(Wrk::new(flags, complaints, scripts));
    Ok(Run { plan, footnotes, printer, scenario })
}

/// An unreadable script causes one error message per state, and wrk continues without it.
fn read(
    path: &Path,
    flags: &Flags,
    world: &dyn Surroundings,
    complaints: &mut String,
) -> Option<Script> {
    let name = path.display().to_string();
    match world.read(path) {
        Ok(source) => Some(Script { name, source }),
        Err(error) => {
            let why = strerror(&error);
            let line = format!("{name}: cannot open {name}: {why}\n");
            complaints.push_str(&line.repeat(flags.threads as usize + 1));
            None
        }
    }
}

/// The servers of the threads, and which of them each thread uses.
fn origins(flags: &Flags, places: &[SocketAddr]) -> (Vec<Origin>, Vec<u32>) {
    let url = &flags.url;
    let name = if url.host.contains(':') { format!("[{}]", url.host) } else { url.host.clone() };
    let host = url.port.as_ref().map_or_else(|| name.clone(), |port| format!("{name}:{port}"));
    let mut distinct: Vec<SocketAddr> = Vec::new();
    let mut number = |place: &SocketAddr| {
        let known = distinct.iter().position(|other| other == place);
        known.unwrap_or_else(|| {
            distinct.push(*place);
            distinct.len() - 1
        }) as u32
    };
    let numbers = places.iter().map(&mut number).collect();
    let origin = |place| Origin {
        place: ServerAddress::Inet(place),
        host: host.clone(),
        tls_name: url.is_tls().then(|| url.host.clone()),
    };
    (distinct.into_iter().map(origin).collect(), numbers)
}

/// The request as sent, with a description for readers of the plan.
fn described(bytes: &[u8], flags: &Flags) -> RequestPlan {
    let text = String::from_utf8_lossy(bytes);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let mut lines = head.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let method = words.next().unwrap_or("GET").to_owned();
    let target = words.next().unwrap_or(&flags.url.path).to_owned();
    // joust writes these itself.
    let is_own = |name: &str| ["host", "content-length"].contains(&name.to_lowercase().as_str());
    let fields = lines.filter_map(|line| line.split_once(':'));
    let headers = fields.filter(|(name, _)| !is_own(name));
    RequestPlan {
        method,
        headers: headers.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect(),
        body: body.as_bytes().to_vec(),
        verbatim: Some(bytes.to_vec()),
        ..RequestPlan::get(target)
    }
}
