//! `joust serve --reports`: the history as a small site. The server starts this program for each page (CGI), so that
//! a new run is there at once and nothing is kept in memory. Owns the addresses and the answers; what pages show is in
//! `report`. Start reading at [`called`], then [`answer`].

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use history::{Filter, History, Question, Reference};
use miette::miette;
use record::{HistoryRecord, RunRecord};
use serve::{GatewayConfig, GatewayKind, Mapping};
use units::{Bytes, Nanos, Share};

use crate::output;
use crate::run_file::read_run;
use crate::trouble::Trouble;

/// Tells this program where the reports are when a server calls it.
const FOLDER: &str = "JOUST_REPORTS";
/// Name of the database in that folder.
const DATABASE: &str = "history.sqlite";
/// Differences below this are no regression, as `joust compare` has it.
const MARGIN: Share = Share(0.02);
/// A page of a large run takes a while, and has megabytes.
const PAGE_BYTES_MAX: Bytes = Bytes(512_000_000);
const PAGE_TIME_MAX: Nanos = Nanos::from_secs(600);
/// Pages that are made at once in each process of the server: each reads a whole run file, which takes memory.
const PROGRAMS_MAX: u32 = 2;

/// The gateway that answers every address with this program.
pub fn gateway(folder: &Path) -> Result<GatewayConfig, Trouble> {
    let unusable = |reason: String| {
        Trouble::usage(miette!(
            help = "name a folder of results that `joust run` wrote, as in --reports joust-results; `joust history add joust-results/*/run.json` makes its history anew",
            "--reports must be a folder with a history, got {}: {reason}",
            folder.display()
        ))
    };
    let folder = folder.canonicalize().map_err(|error| unusable(error.to_string()))?;
    let database = folder.join(DATABASE);
    if !database.is_file() {
        return Err(unusable(format!("it has no {DATABASE}")));
    }
    History::open(&database).map_err(|error| unusable(error.to_string()))?;
    let program = std::env::current_exe().map_err(|error| {
        Trouble::failed(miette!("this program's own path is not known: {error}"))
    })?;
    let text = folder.to_str().ok_or_else(|| unusable("its path is not UTF-8".to_owned()))?;
    let plain = GatewayConfig::cgi("/").map_err(|reason| Trouble::failed(miette!("{reason}")))?;
    Ok(GatewayConfig {
        mapping: Mapping::Path("/".to_owned()),
        kind: GatewayKind::Cgi,
        script: Some(program),
        env: BTreeMap::from([(FOLDER.to_owned(), text.to_owned())]),
        output_bytes_max: PAGE_BYTES_MAX,
        programs_max: PROGRAMS_MAX,
        timeout: PAGE_TIME_MAX,
        // Nothing is ever sent here.
        body_bytes_max: Bytes(0),
        ..plain
    })
}

/// Answers the request that a server started this program for; `None` if none did.
pub fn called() -> Option<ExitCode> {
    let folder = PathBuf::from(std::env::var_os(FOLDER)?);
    std::env::var_os("GATEWAY_INTERFACE")?;
    let variable =
        |name: &str| std::env::var_os(name).unwrap_or_default().to_string_lossy().into_owned();
    let asked = Asked {
        method: variable("REQUEST_METHOD"),
        path: format!("{}{}", variable("SCRIPT_NAME"), variable("PATH_INFO")),
        query: query(&variable("QUERY_STRING")),
        host: variable("HTTP_HOST"),
    };
    let Answer { status, kind, body } = answer(&folder, &asked);
    let allow = if status.starts_with("405") { "Allow: GET, HEAD\r\n" } else { "" };
    // Pages change with every run, and nobody else may put them into a frame.
    let is_head = asked.method == "HEAD";
    // The length of a page is known only when it is made.
    let length =
        if is_head { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
    let head = format!(
        "Status: {status}\r\nContent-Type: {kind}; charset=utf-8\r\n{length}{allow}Cache-Control: no-store\r\n\
         X-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\nReferrer-Policy: no-referrer\r\n\r\n"
    );
    let bytes = if is_head { head.into_bytes() } else { (head + &body).into_bytes() };
    Some(match output::stdout(&bytes) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    })
}

/// What a client wants.
struct Asked {
    method: String,
    path: String,
    query: BTreeMap<String, String>,
    /// The field of that name.
    host: String,
}

impl Asked {
    /// A name that leads to this machine by the word of a stranger's name server (DNS rebinding) would let the pages of
    /// that stranger read the reports. So only addresses, `localhost` and this machine's own name are answered.
    fn is_for_this_machine(&self) -> bool {
        let host = match self.host.strip_prefix('[') {
            Some(rest) => rest.split(']').next().unwrap_or_default(),
            None => self.host.split(':').next().unwrap_or_default(),
        };
        let own = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let own = own.trim().split('.').next().unwrap_or_default();
        let first = host.split('.').next().unwrap_or_default();
        host.parse::<IpAddr>().is_ok()
            || host.eq_ignore_ascii_case("localhost")
            || (!own.is_empty() && first.eq_ignore_ascii_case(own))
    }
}

/// What it gets.
struct Answer {
    status: &'static str,
    kind: &'static str,
    body: String,
}

impl Answer {
    fn page(body: String) -> Self {
        Self { status: "200 OK", kind: "text/html", body }
    }

    fn message(status: &'static str, title: &str, text: &str) -> Self {
        Self { status, ..Self::page(report::message_page(title, text)) }
    }

    fn not_found(text: &str) -> Self {
        Self::message("404 Not Found", "Not found", text)
    }
}

fn answer(folder: &Path, asked: &Asked) -> Answer {
    if !matches!(asked.method.as_str(), "GET" | "HEAD") {
        let text = "this site shows what was measured and takes nothing; use `joust history add`";
        return Answer::message("405 Method Not Allowed", "Not allowed", text);
    }
    if !asked.is_for_this_machine() {
        let text = "ask for this site by the address or the name of its machine";
        return Answer::message("421 Misdirected Request", "Another host", text);
    }
    let history = match History::open(&folder.join(DATABASE)) {
        Ok(history) => history,
        Err(error) => return failed(&error.to_string()),
    };
    let path = asked.path.trim_end_matches('/');
    let (first, rest) =
        path.trim_start_matches('/').split_once('/').unwrap_or((path.trim_start_matches('/'), ""));
    match (first, rest) {
        ("", "") => index(&history),
        ("run", id) => run(&history, id, asked.method == "HEAD"),
        ("compare", "") => compare(&history, &asked.query),
        ("trend", "") => trend(&history, &asked.query),
        _ => Answer::not_found("there is no such page"),
    }
}

fn failed(text: &str) -> Answer {
    Answer::message("500 Internal Server Error", "The history cannot be read", text)
}

fn index(history: &History) -> Answer {
    let all = Filter::default();
    let found = history.runs(&all).and_then(|runs| Ok((runs, history.series(&all)?)));
    match found {
        Ok((runs, series)) => Answer::page(report::index_page(&HistoryRecord {
            format: HistoryRecord::FORMAT.to_owned(),
            database: DATABASE.to_owned(),
            runs,
            series,
        })),
        Err(error) => failed(&error.to_string()),
    }
}

/// The page of a run, or its file if the address ends in `.json`.
fn run(history: &History, id: &str, is_head: bool) -> Answer {
    let (id, is_file) = id.strip_suffix(".json").map_or((id, false), |id| (id, true));
    let (_, file) = match file_of(history, id) {
        Ok(found) => found,
        Err(answer) => return answer,
    };
    if is_file {
        // As it is, so that its digest still tells whether it was changed.
        return match std::fs::read_to_string(&file) {
            Ok(text) => Answer { kind: "application/json", ..Answer::page(text) },
            Err(error) => failed(&error.to_string()),
        };
    }
    if is_head {
        return Answer::page(String::new());
    }
    let run = match read_run(&file) {
        Ok((_, run)) => run,
        Err(trouble) => return failed(&trouble.report.to_string()),
    };
    let html = report::output("html").and_then(|output| output.run.as_ref());
    let page = html.expect("html shows runs").bytes(&run, &report::Options::default());
    Answer::page(String::from_utf8(page).expect("a page is UTF-8"))
}

/// A run's number and its file.
fn file_of(history: &History, id: &str) -> Result<(i64, PathBuf), Answer> {
    let unknown = || Answer::not_found(&format!("a run must be named by its number, got `{id}`"));
    let is_number = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit());
    let number = id.parse().ok().filter(|_| is_number).ok_or_else(unknown)?;
    let file = history.file_of(number).map_err(|error| Answer::not_found(&error.to_string()))?;
    Ok((number, file))
}

/// A run's number and what is in its file.
fn read(history: &History, id: &str) -> Result<(i64, RunRecord), Answer> {
    let (number, file) = file_of(history, id)?;
    match read_run(&file) {
        Ok((_, run)) => Ok((number, run)),
        Err(trouble) => Err(failed(&trouble.report.to_string())),
    }
}

fn compare(history: &History, query: &BTreeMap<String, String>) -> Answer {
    let side = |name: &str| match query.get(name) {
        Some(id) => read(history, id),
        None => Err(Answer::message(
            "400 Bad Request",
            "Nothing to compare",
            &format!("choose a {name} run in the list of all runs"),
        )),
    };
    let (base, candidate) = match (side("base"), side("candidate")) {
        (Ok(base), Ok(candidate)) => (base, candidate),
        (Err(answer), _) | (_, Err(answer)) => return answer,
    };
    let question = Question { margin: MARGIN, metrics: Vec::new(), reference: Reference::Found };
    let names = [base.0, candidate.0].map(|id| format!("run {id}"));
    let compared = history::compare((&names[0], &base.1), (&names[1], &candidate.1), &question);
    match compared {
        Ok(comparison) => Answer::page(report::compare_page(&comparison, (base.0, candidate.0))),
        Err(error) => Answer::message("400 Bad Request", "Not comparable", &error.to_string()),
    }
}

fn trend(history: &History, query: &BTreeMap<String, String>) -> Answer {
    let (Some(study), Some(contender)) = (query.get("study"), query.get("contender")) else {
        let text = "choose a contender in the list of all runs";
        return Answer::message("400 Bad Request", "No contender", text);
    };
    let filter = Filter {
        study: Some(study.clone()),
        contender: Some(contender.clone()),
        ..Filter::default()
    };
    match history.series(&filter) {
        Ok(series) if series.is_empty() => {
            Answer::not_found(&format!("the history has no figure of `{contender}` in `{study}`"))
        }
        Ok(series) => Answer::page(report::trend_page(study, contender, &series)),
        Err(error) => failed(&error.to_string()),
    }
}

/// Names and values of a query string; of a name that is given twice the first value counts.
fn query(text: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for (name, value) in text.split('&').filter_map(|pair| pair.split_once('=')) {
        found.entry(decoded(name)).or_insert_with(|| decoded(value));
    }
    found
}

/// A value of a query string; what is no escape stays as it is.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let escape = after.get(..2).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let escape = escape.and_then(|digits| std::str::from_utf8(digits).ok());
        let escape = escape.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match (first, escape) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &after[2..];
                continue;
            }
            (b'+', _) => bytes.push(b' '),
            (other, _) => bytes.push(*other),
        }
        rest = after;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_read_as_a_form_sends_it() {
        let read = query("study=quick&contender=a%26b+%3Cc%3E&base=%zz&study=other&alone");
        let expected = [("base", "%zz"), ("contender", "a&b <c>"), ("study", "quick")];
        assert_eq!(
            read.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect::<Vec<_>>(),
            expected
        );
    }

    #[test]
    fn what_is_sent_is_refused_before_anything_is_opened() {
        let asked = |method: &str| Asked {
            method: method.to_owned(),
            path: "/".to_owned(),
            query: BTreeMap::new(),
            host: "127.0.0.1:8080".to_owned(),
        };
        for method in ["POST", "PUT", "DELETE", "PATCH", ""] {
            assert_eq!(
                answer(Path::new("/nowhere"), &asked(method)).status,
                "405 Method Not Allowed"
            );
        }
        assert!(answer(Path::new("/nowhere"), &asked("GET")).status.starts_with("500"));
    }

    #[test]
    fn a_name_that_is_not_this_machines_is_not_answered() {
        let own = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        let asked = |host: &str| Asked {
            method: "GET".to_owned(),
            path: "/".to_owned(),
            query: BTreeMap::new(),
            host: host.to_owned(),
        };
        for host in ["127.0.0.1:8080", "[::1]:8080", "10.1.2.3", "localhost", own.trim()] {
            assert!(asked(host).is_for_this_machine(), "{host}");
        }
        for host in ["attacker.example", "attacker.example:8080", "127.0.0.1.attacker.example", ""]
        {
            assert!(!asked(host).is_for_this_machine(), "{host}");
        }
        let answer = answer(Path::new("/nowhere"), &asked("attacker.example"));
        assert_eq!(answer.status, "421 Misdirected Request");
    }
}
