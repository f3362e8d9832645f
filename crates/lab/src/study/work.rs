//! Owns the keys of a workload: read one by one, from `[workload]`, an axis or a contender. Start reading at
//! [`set`].

use record::{Bodies, Change, Pacing, Workload};
use units::{Bytes, Nanos, PerSecond, Share};

use super::StudyError;
use super::keys::{Located, Section, StudySource};

/// Most connections of a study: what one client address may hold to one port.
pub(super) const CONNECTIONS_MAX: u64 = 60_000;
/// Longest page: a visit would see only the beginning of a longer one.
pub(super) const PAGE_MAX: Bytes = Bytes(4_000_000_000);
/// Most threads of a generator.
const THREADS_MAX: u64 = 1024;

/// Shortest sleep of a program: the shell that sleeps takes a millisecond itself.
const SLEEP_MIN: Nanos = Nanos::from_millis(1);
/// Longest sleep: an hour of visits would see few of them.
const SLEEP_MAX: Nanos = Nanos::from_secs(60);

/// The keys of a workload.
pub(super) const KEYS: [&str; 10] = [
    "page",
    "connections",
    "keep_alive",
    "threads",
    "timeout",
    "rate",
    "client",
    "target",
    "sleep",
    "verify",
];

/// Whether `key` is one of a workload.
pub(super) fn is_key(key: &str) -> bool {
    KEYS.contains(&key)
}

/// Reads the value of one of [`KEYS`] into `change`.
pub(super) fn set(
    change: &mut Change,
    key: &str,
    value: Located<'_>,
    source: StudySource<'_>,
) -> Result<(), StudyError> {
    let count = |most| Ok(source.whole(key, value, 1..=most)? as u32);
    match key {
        "page" => change.page = Some(page(value, source)?),
        "connections" => change.connections = Some(count(CONNECTIONS_MAX)?),
        "keep_alive" => change.keep_alive = Some(source.flag(key, value)?),
        "threads" => change.threads = Some(count(THREADS_MAX)?),
        "timeout" => change.timeout = Some(timeout(value, source)?),
        "rate" => change.rate = Some(rate(value, source)?),
        "client" => change.client = Some(client(value, source)?),
        "target" => change.target = Some(target(value, source)?),
        "sleep" => change.sleep = Some(sleep(value, source)?),
        "verify" => change.verify = Some(verify(value, source)?),
        _ => unreachable!("the caller asks for keys of a workload"),
    }
    Ok(())
}

fn page(value: Located<'_>, source: StudySource<'_>) -> Result<Bytes, StudyError> {
    let page: Bytes = source.quantity("page", value)?;
    if page <= PAGE_MAX {
        return Ok(page);
    }
    Err(source.error(value.span(), format!("`page` must be at most {PAGE_MAX}, got {page}")))
}

fn rate(value: Located<'_>, source: StudySource<'_>) -> Result<PerSecond, StudyError> {
    let rate: PerSecond = source.quantity("rate", value)?;
    let checked = load::check_pacing(&Pacing::Constant { rate });
    checked.map_err(|error| source.error(value.span(), format!("`rate`: {error}")))?;
    Ok(rate)
}

fn timeout(value: Located<'_>, source: StudySource<'_>) -> Result<Nanos, StudyError> {
    match source.quantity("timeout", value)? {
        Nanos::ZERO => Err(source.error(value.span(), "`timeout` is zero")),
        timeout => Ok(timeout),
    }
}

fn client(value: Located<'_>, source: StudySource<'_>) -> Result<String, StudyError> {
    let name = source.text("client", value)?;
    let found = crate::clients::named(&name);
    found.map_err(|error| source.error(value.span(), error.to_string()))?;
    Ok(name)
}

fn target(value: Located<'_>, source: StudySource<'_>) -> Result<String, StudyError> {
    let target = source.text("target", value)?;
    if target.starts_with('/') && target.chars().all(|c| c.is_ascii_graphic()) {
        return Ok(target);
    }
    let message = format!("`target` must be the path of a request, got `{target}`");
    Err(source.error(value.span(), message).with_help("write target = \"/index.html\""))
}

/// Which bodies are verified under load.
fn verify(value: Located<'_>, source: StudySource<'_>) -> Result<Bodies, StudyError> {
    match value.get_ref().as_str() {
        Some("off") => return Ok(Bodies::None),
        Some("auto") => return Ok(Bodies::Sample),
        _ => {}
    }
    match source.quantity::<Share>("verify", value) {
        Ok(share) if share.0 > 0.0 && share.0 <= 1.0 => Ok(Bodies::Hash(share.0)),
        _ => Err(source.wrong(
            "verify",
            value,
            "\"off\", \"auto\", or a share of the replies above 0 and at most 1, such as \"1%\"",
        )),
    }
}

/// How long a program of the site sleeps.
pub(super) fn sleep(value: Located<'_>, source: StudySource<'_>) -> Result<Nanos, StudyError> {
    let sleep: Nanos = source.quantity("sleep", value)?;
    if (SLEEP_MIN..=SLEEP_MAX).contains(&sleep) {
        return Ok(sleep);
    }
    let message = format!("`sleep` must be from {SLEEP_MIN} to {SLEEP_MAX}, got {sleep}");
    Err(source.error(value.span(), message))
}

/// The change that a table of workload keys makes.
pub(super) fn change(section: &Section<'_>, source: StudySource<'_>) -> Result<Change, StudyError> {
    let mut change = Change::default();
    for (key, value) in section.items() {
        set(&mut change, key.get_ref(), value, source)?;
    }
    if let (Some(_), Some(at)) = (change.sleep, section.get("target")) {
        return Err(source
            .error(
                at.span(),
                "`sleep` and `target` exclude each other: the program of `sleep` is the target",
            )
            .with_help("leave out one of the two"));
    }
    Ok(change)
}

/// The workload of `[workload]`. Missing keys are as in [`Workload::default`], except the page and the connections,
/// which no reader should have to guess.
pub(super) fn workload(
    top: &Section<'_>,
    axes: &[&str],
    source: StudySource<'_>,
) -> Result<Workload, StudyError> {
    const EXAMPLE: &str = "[workload] with page = \"3361\" and connections = 64";
    let section = top
        .section("workload", "[workload]", &KEYS)?
        .ok_or_else(|| top.missing("workload", EXAMPLE))?;
    for (key, example) in [("page", "page = 3361"), ("connections", "connections = 64")] {
        if section.get(key).is_none() && !axes.contains(&key) {
            return Err(section.missing(key, example));
        }
    }
    Ok(change(&section, source)?.over(&Workload::default()))
}
