//! `joust wrk` beside the real wrk: the same arguments and scripts against servers that answer alike. Layouts, all
//! determined figures, the output of scripts and the requests at the server are compared exactly. Owns the comparison;
//! cases are data. Start reading at [`compare`].

mod masked;
mod scripted;
mod scripts;

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use self::masked::Counts;
use self::scripted::Manner;
use super::{Server, joust};

/// Parallel runs: most of the time they wait for the second to pass.
const AT_ONCE: usize = 12;

/// Whether there is a wrk here to compare with; notes the skipped test if not.
fn has_wrk() -> bool {
    let found = Command::new("wrk").arg("-v").output().is_ok();
    if !found {
        skips::note("no wrk here; scripts/peers.sh brings it");
    }
    found
}

/// The two programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tool {
    Real,
    Ours,
}

const BOTH: [Tool; 2] = [Tool::Real, Tool::Ours];

impl Tool {
    /// `~` in a line is a blank within a word.
    fn run(self, line: &str, folder: &Path) -> Output {
        let words = line.split_whitespace().map(|word| word.replace('~', " "));
        let mut command = match self {
            Self::Real => Command::new("wrk"),
            Self::Ours => joust(&["wrk", "--no-footnotes"]),
        };
        command.args(words).current_dir(folder).stdin(Stdio::null());
        command.output().expect("it starts")
    }
}

/// Both outputs and the exit code, masked.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    stdout: String,
    stderr: String,
    code: Option<i32>,
}

fn seen(output: &Output, port: Option<u16>, counts: Counts) -> Seen {
    let text = |bytes: &[u8]| masked::output(&String::from_utf8_lossy(bytes), port, counts);
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    Seen { stdout, stderr, code: output.status.code() }
}

/// A command line, in which `URL` is replaced by scheme, address and port, a script in `x.lua` beside a module in
/// `own.lua`, and the behaviour of the server.
#[derive(Debug, Clone, Copy)]
struct Case {
    manner: Manner,
    line: &'static str,
    script: &'static str,
    counts: Counts,
}

const fn case(manner: Manner, line: &'static str) -> Case {
    Case { manner, line, script: "", counts: Counts::Measured }
}

/// Runs all cases, several in parallel, each tool against a fresh server; reports all differences.
fn compare(cases: &[Case]) {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut differing = Vec::new();
        while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            differing.extend(difference(case));
        }
        differing
    };
    let differing: Vec<String> = std::thread::scope(|scope| {
        let working: Vec<_> = (0..AT_ONCE.min(cases.len())).map(|_| scope.spawn(work)).collect();
        working.into_iter().flat_map(|one| one.join().expect("it runs both")).collect()
    });
    assert!(differing.is_empty(), "{}", differing.join("\n\n"));
}

fn difference(case: &Case) -> Option<String> {
    let Case { manner, line, script, counts } = case;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("x.lua"), script).unwrap();
    std::fs::write(folder.path().join("own.lua"), "return {name = 'a module'}").unwrap();
    let [real, ours] = BOTH.map(|tool| {
        let server = manner.start();
        let port = server.port();
        let line = line.replace("URL", &format!("http://127.0.0.1:{port}"));
        let line = line.replace("PORT", &port.to_string());
        let seen = seen(&tool.run(&line, folder.path()), Some(port), *counts);
        (seen, requests(&server.asked(), port, *counts))
    });
    (ours != real).then(|| {
        format!(
            "{manner:?}: wrk {line}\n{script}\nours:\n{}\nwrk's:\n{}",
            shown(&ours),
            shown(&real)
        )
    })
}

fn shown((seen, requests): &(Seen, Vec<String>)) -> String {
    let Seen { stdout, stderr, code } = seen;
    format!("{stdout}\nstderr: {stderr}\ncode: {code:?}\nrequests: {requests:#?}")
}

/// The requests at the server, with the fields of each request sorted: wrk writes them in the order in which LuaJIT
/// iterates over a table, which differs in each run. If counts are not determined, each request appears once.
fn requests(asked: &[Vec<u8>], port: u16, counts: Counts) -> Vec<String> {
    let text = |request: &Vec<u8>| {
        let text = String::from_utf8_lossy(request).replace(&port.to_string(), "PORT");
        let (head, body) = text.split_once("\r\n\r\n").expect("a whole request");
        let mut lines: Vec<&str> = head.split("\r\n").collect();
        lines[1..].sort_unstable();
        format!("{}\r\n\r\n{body}", lines.join("\r\n"))
    };
    let mut all: Vec<String> = asked.iter().map(text).collect();
    if counts == Counts::Measured {
        all.sort_unstable();
        all.dedup();
    }
    all
}

#[test]
fn a_sound_server_is_reported_as_wrk_reports_it() {
    if !has_wrk() {
        return;
    }
    compare(
        &[
            "-d1 URL/",
            "-d1 --latency URL/",
            "-d 1s -t1 -c1 URL/",
            "-d1S -t~3 -c~8 URL/x?y=1#z",
            "-t1 -c20 -d1 --timeout 0 URL/",
            "-L -d1 -T5 -t2 -c2 URL/a/b",
            "--lat --dur=1 --thr 2 --conn 3 URL/",
            "-d1 -v URL/",
            "-d1 URL",
            "-d1 URL?x",
            "-d1 HTTP://127.0.0.1:PORT/",
            "-d1 -H A:b -H C:~d -H E:~~f -H nothing URL/",
            "-d1 -H Host:~other -H User-Agent:~me~and~you URL/",
            "-d1 http://localhost:PORT/",
            "-d1 http://u:p@127.0.0.1:PORT/",
            "-d1 URL/ ignored",
            "-d1 -- URL/ -c 7",
            "URL/ -d1 -c4",
            "-s nothing.lua -d1 -t1 -c1 URL/",
        ]
        .map(|line| case(Manner::Plain, line)),
    );
}

#[test]
fn whatever_a_server_does_is_counted_as_wrk_counts_it() {
    if !has_wrk() {
        return;
    }
    let line = "-d1 -t2 -c4 --latency URL/";
    let manners = [
        Manner::Closes,
        Manner::ClosesSilently,
        Manner::NoReply,
        Manner::Resets,
        Manner::Status(404),
        Manner::Status(500),
        Manner::Status(399),
        Manner::Status(304),
        Manner::Hangs,
        Manner::Slow(300),
        Manner::Stalls(400),
        Manner::Chunked,
        Manner::Unbounded,
    ];
    let mut cases = manners.map(|manner| case(manner, line)).to_vec();
    cases.push(case(Manner::Slow(600), "-d2 -t1 -c3 --timeout 1 --latency URL/"));
    cases.push(case(Manner::Slow(1100), "-d3 -t1 -c3 --timeout 1 --latency URL/"));
    compare(&cases);
}

#[test]
fn what_wrk_says_instead_of_running_is_said() {
    if !has_wrk() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let lines = [
        "",
        "-h",
        "--help",
        "-v",
        "--version -v",
        "-r",
        "-L",
        "-?",
        "-Q",
        "-c",
        "--conn",
        "-c x http://127.0.0.1/",
        "-c 0 http://127.0.0.1/",
        "-c 1 http://127.0.0.1/",
        "-c 1.5 http://127.0.0.1/",
        "-c 1k0 http://127.0.0.1/",
        "-t 0 http://127.0.0.1/",
        "-t 3 -c 2 http://127.0.0.1/",
        "-d 0 http://127.0.0.1/",
        "-d 1x http://127.0.0.1/",
        "--timeout 1k http://127.0.0.1/",
        "--t 1 http://127.0.0.1/",
        "--latency=3 http://127.0.0.1/",
        "--foo http://127.0.0.1/",
        "127.0.0.1/",
        "http://",
        "foo -c 0",
        "http://127.0.0.1:99999/",
        "http://127.0.0.1:1/",
        "-v http://127.0.0.1:1/",
        "https://127.0.0.1:1/",
        "http://nonexistent.invalid/",
        "foo://127.0.0.1/",
        "-H A:~b http://[::1]:1/",
    ];
    for line in lines {
        let [real, ours] =
            BOTH.map(|tool| seen(&tool.run(line, folder.path()), None, Counts::Measured));
        assert_eq!(ours, real, "wrk {line}");
    }
}

#[test]
fn https_is_reported_as_wrk_reports_it() {
    if !has_wrk() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let [real, ours] = BOTH.map(|tool| {
        let server = Server::start(&["--fixed", "500", "--tls-self-signed"]);
        let port = server.url.trim_end_matches('/').rsplit(':').next().unwrap().parse().unwrap();
        let line = format!("-d1 -t1 -c2 --latency https://localhost:{port}/x");
        seen(&tool.run(&line, folder.path()), Some(port), Counts::Measured)
    });
    assert_eq!(ours, real);
    assert!(!ours.stdout.contains("Socket errors") && ours.stdout.contains("# requests in"));
}

#[test]
fn footnotes_say_what_the_report_hides_and_explain_says_what_would_be_done() {
    let server = Manner::Slow(1100).start();
    let url = format!("http://127.0.0.1:{}/", server.port());
    let output = joust(&["wrk", "-d2", "-t1", "-c2", "--timeout", "1", &url]).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(stderr.contains("joust: 2 replies took 1s (--timeout) or longer"), "{stderr}");
    assert!(stderr.contains("the true maximum is"), "{stderr}");
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(stdout.contains("timeout 2\n") && !stdout.contains("joust"), "{stdout}");
    server.asked();
    let explained = joust(&["wrk", "-d1", "-t1", "-c2", "--explain", &url]).output().unwrap();
    let expected = format!("joust load {url} -c 2 -d 1s --timeout 1200s\n");
    assert_eq!(String::from_utf8_lossy(&explained.stdout), expected);
    assert!(server.asked().is_empty(), "nothing is sent for an explanation");
}

#[test]
fn the_name_of_the_program_chooses_wrk_and_ctrl_c_ends_it_with_a_report() {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("wrk");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_joust"), &link).unwrap();
    let server = Manner::Plain.start();
    let url = format!("http://127.0.0.1:{}/", server.port());
    let mut child = Command::new(&link)
        .args(["-d", "60", "-t1", "-c1", &url])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A request was received, so it handles signals by now.
    while server.asked().is_empty() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let status =
        Command::new("kill").args(["-s", "INT", &child.id().to_string()]).status().unwrap();
    assert!(status.success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let mut stdout = String::new();
    std::io::Read::read_to_string(&mut child.stdout.take().unwrap(), &mut stdout).unwrap();
    assert!(stdout.starts_with("Running 1m test @ http://"), "{stdout}");
    assert!(stdout.contains("requests in") && stdout.contains("Transfer/sec:"), "{stdout}");
}
