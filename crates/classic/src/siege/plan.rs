//! Makes a run from siege's settings: its URLs, a plan for the engine, and the users. Owns what is rejected, and why.
//! Start reading at [`run`].

use std::path::Path;
use std::sync::Arc;

use record::{
    HttpVersion, LoadPlan, LoadStop, Origin, RequestPlan, ServerAddress, TlsPlan, Verify,
};
use units::Nanos;

use super::flags::TypedFlags;
use super::printer::Siege;
use super::settings::Settings;
use super::text::{self, NotifyLevel, notify};
use super::urls::{self, Method, Scheme, Url};
use super::users::{Battle, Besiegers, place};
use super::{footnotes, request};
use crate::command::{Call, ExitMessage, Run, Texts, strerror};

/// Exit code for features that joust does not support.
const REFUSED: u8 = 1;

/// The run.
///
/// # Errors
/// What siege prints instead, or why joust does not do the same as siege.
pub(super) fn run(typed: TypedFlags, call: &Call<'_>) -> Result<Run, ExitMessage> {
    let TypedFlags { settings, said } = typed;
    let mut complaints = String::new();
    let urls = match targets(&settings, call, &mut complaints) {
        Ok(urls) => urls,
        Err(last) => {
            let mut texts = said;
            texts.0.extend(last.texts.0);
            return Err(ExitMessage { texts, code: last.code });
        }
    };
    let login_urls: Vec<Url> = settings
        .login_urls
        .iter()
        .map(|line| Url::typed(line, 0, &settings, call.world, &mut complaints))
        .collect();
    refuse(&settings, urls.iter().chain(&login_urls), call.program)?;
    let said = if complaints.is_empty() { said } else { said.and_err(complaints) };
    // Checked before the load, because the log only gets a heading if the file is new.
    let log_is_new = !call.world.exists(Path::new(&settings.log_file));
    let footnotes = footnotes::before(&settings, &urls);
    let battle =
        Arc::new(Battle::new(settings, urls, login_urls, call.world.network(), call.world.clock()));
    let plan = plan(&battle);
    let scenario = Besiegers::new(Arc::clone(&battle), plan.origin().clone());
    let printer = Siege::new(battle, said, log_is_new);
    Ok(Run { plan, footnotes, printer: Box::new(printer), scenario: Some(Box::new(scenario)) })
}

/// The typed URL, or those of the file.
fn targets(
    settings: &Settings,
    call: &Call<'_>,
    complaints: &mut String,
) -> Result<Vec<Url>, ExitMessage> {
    if let Some(line) = &settings.url {
        let mut url = Url::typed(line, 0, settings, call.world, complaints);
        if settings.get && !["POST", "PUT"].contains(&url.method.0) {
            let is_head = settings.get_is_head == Some(true);
            url.method = Method(if is_head { "HEAD" } else { "GET" });
        }
        return Ok(vec![url]);
    }
    let file = &settings.file;
    let bytes = call.world.read(Path::new(file)).map_err(|error| {
        let text = format!("unable to open file: {file}: {}", strerror(&error));
        let mut texts = Texts::err(notify(NotifyLevel::Alert, &text));
        texts.0.extend(text::help(settings).0);
        ExitMessage { texts, code: 0 }
    })?;
    let lines = urls::lines(&bytes, call.world);
    if lines.is_empty() {
        return Err(ExitMessage { texts: text::help(settings), code: 0 });
    }
    let typed =
        |(id, line): (usize, &String)| Url::typed(line, id, settings, call.world, complaints);
    Ok(lines.iter().enumerate().map(typed).collect())
}

/// What siege would do and joust does not support.
fn refuse<'a>(
    settings: &Settings,
    urls: impl Iterator<Item = &'a Url>,
    program: &str,
) -> Result<(), ExitMessage> {
    let refused = |what: &str, why: &str| {
        let text = format!("{program}: {what} is not supported: {why}\n");
        Err(ExitMessage { texts: Texts::err(text), code: REFUSED })
    };
    for url in urls {
        if url.scheme == Scheme::Ftp {
            return refused(&url.whole, "joust supports only HTTP");
        }
        if url.scheme == Scheme::Https && settings.proxy.is_some() {
            let why = "joust siege makes no tunnel through a proxy; leave proxy-host out";
            return refused(&url.whole, why);
        }
    }
    if settings.ciphers.is_some() {
        let why = "joust's TLS (rustls) has its own list of safe cipher suites; leave it out";
        return refused("ssl-ciphers", why);
    }
    Ok(())
}

/// The plan for the engine: the users provide their own requests.
fn plan(battle: &Battle) -> LoadPlan {
    let settings = &battle.settings;
    let first = &battle.urls[0];
    // An unreachable origin is never requested.
    let nowhere = || Origin {
        place: ServerAddress::Inet(([127, 0, 0, 1], 0).into()),
        host: first.host.clone(),
        tls_name: None,
    };
    let reachable = battle.urls.iter().find_map(|url| place(battle, url).ok());
    let origin = reachable.unwrap_or_else(nowhere);
    let ServerAddress::Inet(addr) = origin.place else { unreachable!("siege has no unix sockets") };
    let version = if settings.is_http11 { HttpVersion::Http11 } else { HttpVersion::Http10 };
    let client = settings.certificate.clone().map(|certificate| {
        let key = settings.key.clone().unwrap_or_else(|| certificate.clone());
        (certificate, key)
    });
    LoadPlan {
        url: first.whole.clone(),
        origins: vec![origin],
        requests: vec![described(settings, first)],
        version,
        connections: settings.users.unsigned_abs(),
        keep_alive: settings.keep_alive,
        // siege does not verify certificates or resume sessions.
        tls: TlsPlan { insecure: true, client, resume: 0.0, ..TlsPlan::default() },
        stop: LoadStop {
            // Removed when users are played: this is for --explain.
            requests: requests(settings, battle.urls.len()),
            duration: settings.duration().map(|seconds| Nanos::from_secs(seconds.into())),
        },
        timeout: Nanos::from_secs(settings.timeout.max(1).unsigned_abs().into()),
        drain: Nanos::ZERO,
        // siege's rules for a status are applied here, not by the engine.
        verify: Verify { status_min: 0, status_max: 999, ..Verify::default() },
        ..LoadPlan::get(addr, &first.target)
    }
}

/// Number of top-level URLs that all users request together, if it is limited.
fn requests(settings: &Settings, n_urls: usize) -> Option<u64> {
    let each = settings.limit(n_urls)?.max(0).unsigned_abs();
    Some(each * u64::from(settings.users.unsigned_abs()))
}

/// The first request, as a plan describes one.
fn described(settings: &Settings, url: &Url) -> RequestPlan {
    let mut headers = vec![
        ("Accept-Encoding".to_owned(), settings.encoding.clone()),
        ("User-Agent".to_owned(), settings.agent.clone()),
    ];
    for line in settings.extra.lines() {
        if let Some((name, value)) = line.split_once(':') {
            headers.push((name.trim().to_owned(), value.trim().to_owned()));
        }
    }
    RequestPlan {
        method: url.method.0.to_owned(),
        headers,
        body: url.body.clone(),
        verbatim: Some(request::bytes(settings, url, &request::Own::default())),
        ..RequestPlan::get(&url.target)
    }
}
