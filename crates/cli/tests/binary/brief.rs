//! `joust run` with contenders on the command line: the study that it writes, its first and last lines, its exit codes,
//! and how soon it ends after an error. Start reading at [`run`].

use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use record::RunRecord;

use crate::planted::{Planted, installed, reply};
use crate::{joust, output, said, stdout};

/// Our own server as a command that serves the page of the run; further flags follow.
const OURS: &str = "serve {docroot} --listen 127.0.0.1:{port} --access-log off";
/// Short enough for a test.
const BRIEFLY: [&str; 6] =
    ["-d", "6", "--set", "keep_disturbed=true", "--set", "visit.measure=100ms"];
/// Far below the time of a run, with room for a busy machine: the longest wait for a server that never listens is 10 s.
const SOON: Duration = Duration::from_secs(15);

fn ours(flags: &str) -> String {
    format!("{} {OURS} {flags}", env!("CARGO_BIN_EXE_joust"))
}

/// Runs it in a folder of its own, where its results are saved.
fn run(dir: &Path, args: &[&str]) -> Output {
    let mut command = joust(&[&["run"], args].concat());
    command.current_dir(dir).output().expect("the binary starts")
}

/// The only results folder, without the date of its name.
fn results(dir: &Path) -> std::path::PathBuf {
    let all = std::fs::read_dir(dir.join("joust-results")).unwrap().map(|one| one.unwrap().path());
    let all: Vec<_> = all.filter(|path| path.is_dir()).collect();
    assert_eq!(all.len(), 1, "{all:?}");
    all[0].clone()
}

#[test]
fn two_contenders_in_words_are_compared_and_leave_the_study_that_repeats_it() {
    let dir = tempfile::tempdir().unwrap();
    let first = ours("--set MaxKeepAliveRequests=0");
    let args = [&[first.as_str(), "joust[model=pool]", "-c", "4"], &BRIEFLY[..]].concat();
    let output = run(dir.path(), &args);
    // With so few blocks every verdict may be withheld (3), but the run must not fail (1).
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}", said(&output));
    let said = said(&output);
    for words in ["(2 contenders)", "a page of 3361 B, 4 connections with keep-alive, 6s at most"] {
        assert!(said.contains(words), "no `{words}` in {said}");
    }
    assert!(
        said.contains("Over loopback for all contenders, because joust serve cannot"),
        "{said}"
    );
    let folder = results(dir.path());
    let study = folder.join("study.toml");
    assert!(said.contains("study.toml"), "{said}");
    let run_file = std::fs::read_to_string(folder.join("run.json")).unwrap();
    let done = RunRecord::from_json(&run_file).unwrap();
    assert!(done.visits.iter().all(|visit| visit.load.is_some()), "{said}");
    // The file is what was run: parsing it again gives the same plan.
    let again = lab::study::read(&study, lab::study::Form::Full).unwrap();
    assert_eq!(again, done.plan);
    let checked = crate::output(&["run", study.to_str().unwrap(), "--check"]);
    assert!(checked.status.success(), "{}", crate::said(&checked));
}

#[test]
fn where_one_closes_its_connections_nobody_keeps_any_and_it_is_said() {
    let Some(_) = installed("python3") else { return };
    let dir = tempfile::tempdir().unwrap();
    let args = ["joust", "python3 -m http.server {port} -d {docroot}"];
    let output = run(dir.path(), &[&args, &BRIEFLY[..]].concat());
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}", said(&output));
    let said = said(&output);
    assert!(said.contains("because python3 closes each connection"), "{said}");
    assert!(said.contains("4 connections without keep-alive"), "{said}");
    let study = std::fs::read_to_string(results(dir.path()).join("study.toml")).unwrap();
    assert!(
        study.contains("keep_alive = false    # closed after each reply by: python3"),
        "{study}"
    );
    assert!(study.starts_with("# Made by: joust run joust 'python3 -m http.server"), "{study}");
}

#[test]
fn a_candidate_that_is_slower_ends_with_99_and_one_that_is_not_does_not() {
    let fast = ours("--set MaxKeepAliveRequests=0");
    let slow = ours("--set MaxKeepAliveRequests=0 --fault delay=2ms");
    // An interval takes three blocks: as many as that, however long they take on a busy machine. For equal contenders
    // it is enough that the candidate is not worse.
    let blocks = ["--set", "blocks.min=4", "--set", "blocks.max=4", "-d", "180"];
    for (candidate, codes, says) in [
        (&slow, &[99][..], "a regression: median service time"),
        (&fast, &[0, 3], "median service time"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let pair = ["--base", &fast, "--candidate", candidate, "--metric", "p50", "-c", "1"];
        let output = run(dir.path(), &[&pair, &BRIEFLY[2..], &blocks].concat());
        let text = stdout(&output);
        let last = text.lines().last().unwrap_or_default();
        let code = output.status.code().unwrap();
        assert!(codes.contains(&code), "{code}: {last}\n{}", said(&output));
        assert!(last.contains(says), "{last}");
        assert!(last.ends_with(&format!("(exit code {code})")), "{last}");
    }
}

/// Arguments, the exit code, and words of the message.
type Mistake<'a> = (&'a [&'a str], i32, &'a [&'a str]);

fn each_ends_soon(dir: &Path, mistakes: &[Mistake<'_>]) {
    for (args, code, words) in mistakes {
        let begun = Instant::now();
        let output = run(dir, args);
        let (took, said) = (begun.elapsed(), said(&output));
        assert_eq!(output.status.code(), Some(*code), "{args:?} said: {said}");
        for word in *words {
            assert!(said.contains(word), "{args:?}: no `{word}` in: {said}");
        }
        assert!(took < SOON, "{args:?} took {took:?}");
        assert!(!dir.join("joust-results").is_dir(), "{args:?} left a folder");
    }
}

#[test]
fn what_is_mistyped_is_refused_before_anything_is_started() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("studies")).unwrap();
    std::fs::write(dir.path().join("studies/quick.toml"), "").unwrap();
    each_ends_soon(
        dir.path(),
        &[
            (
                &["ngnix", "lighttpd"],
                2,
                &["`ngnix`", "did you mean `nginx`?", "Servers are joust, apache"],
            ),
            (&["ngnix"], 2, &["`ngnix`", "did you mean `nginx`?", "not a study file"]),
            (&["studies/quik.toml"], 2, &["studies/quik.toml", "did you mean studies/quick.toml?"]),
            (&["quik"], 2, &["`quik`", "did you mean studies/quick.toml?", "Servers are joust"]),
            (&["quick"], 2, &["runs `quick`"]),
            (&["nginx"], 2, &["at least two contenders, got one: nginx", "joust load URL"]),
            (&["studies/quick.toml", "nginx"], 2, &["must be the only argument"]),
            (&["-c", "5"], 2, &["-c needs contenders", "joust run nginx lighttpd -c"]),
            (
                &["studies/quick.toml", "--page", "5"],
                2,
                &["--page needs contenders", "page in [workload]"],
            ),
            (&["nginx", "joust", "-c", "0"], 2, &["-c must be from 1", "got 0"]),
            (&["nginx", "joust", "-d", "0"], 2, &["-d must be at least 1s", "got 0s"]),
            (&["nginx", "joust", "--page", "0"], 2, &["--page must be from 1 B", "got 0 B"]),
            (
                &["nginx", "joust", "--page", "10GB"],
                2,
                &["--page must be from 1 B to 4 GB, got 10 GB"],
            ),
            (&["nginx", "joust", "--set", "conections=5"], 2, &["did you mean `connections`?"]),
            (&["nginx", "python3 -m http.server"], 2, &["no {port}", "http://127.0.0.1:PORT/"]),
            (&["--base", "nginx"], 2, &["--candidate"]),
            (&["joust", "joust[modell=pool]"], 2, &["modell", "model"]),
        ],
    );
    std::fs::write(dir.path().join("joust-results"), "").unwrap();
    each_ends_soon(dir.path(), &[(&["joust", "joust"], 1, &["joust-results", "another one"])]);
}

#[test]
fn what_does_not_answer_is_named_with_the_end_of_its_log_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let moved = Planted::start(|_| {
        b"HTTP/1.1 301 Moved Permanently\r\nLocation: ./\r\nContent-Length: 0\r\n\r\n".to_vec()
    });
    let other = Planted::start(|_| reply("", "another page"));
    let (moved, other) = (moved.url("/"), other.url("/"));
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let fixed = format!("command[command='sleep 600',port={port}]");
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let nobody = format!("http://{free}/");
    each_ends_soon(
        dir.path(),
        &[
            (
                &["joust", "sh -c 'echo no such module >&2; exit 3' {port}"],
                1,
                &["sh: ended before it answered", "3", "no such module", "by hand"],
            ),
            (
                &["joust", "sh -c 'setsid sleep 600 & exit 0' {port}"],
                1,
                &["sh: went to the background", "daemon off", "-DFOREGROUND"],
            ),
            (&["joust", "no-such-program {port}"], 1, &["no-such-program", "install it"]),
            (&["joust", &fixed], 1, &[&format!("port {port} of 127.0.0.1 is taken")]),
            (&["joust", &nobody], 1, &["127.0.0.1", "start it first"]),
            (&["joust", &moved], 1, &["301", "--target"]),
            (&["joust", &other], 1, &["do not serve the same page", "3361 B", "12 B"]),
        ],
    );
}

#[test]
fn a_path_that_is_not_there_is_told_in_a_few_lines() {
    let dir = tempfile::tempdir().unwrap();
    let output = run(dir.path(), &["joust", &ours(""), "--target", "/nothere"]);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    for word in ["it answered /nothere with", "404", "--target /"] {
        assert!(said.contains(word), "no `{word}` in {said}");
    }
    assert!(said.len() < 700, "{} bytes: {said}", said.len());
}

/// Starts a run, interrupts it while it waits for its first server, and returns how long it took to end.
fn interrupted(dir: &Path, args: &[&str]) -> (Output, Duration) {
    let mut command = joust(&[&["run"], args].concat());
    command.current_dir(dir).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    std::thread::sleep(Duration::from_secs(2));
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    let begun = Instant::now();
    (child.wait_with_output().unwrap(), begun.elapsed())
}

#[test]
fn an_interrupt_before_anything_is_measured_ends_at_once_and_keeps_nothing() {
    let dir = tempfile::tempdir().unwrap();
    // A server can be waited for because it does not listen, or does not answer.
    let waits = "sh -c 'exec sleep 600' {port}";
    let silent = "python3 -c 'import socket,sys,time; s=socket.socket(); \
                  s.bind((\"127.0.0.1\",int(sys.argv[1]))); s.listen(); time.sleep(600)' {port}";
    let study = format!(
        "name = \"i\"\nquestion = \"?\"\nbudget = \"50s\"\n[workload]\npage = 1000\nconnections = 4\n\
         [[contender]]\nname = \"waits\"\nserver = \"command\"\nsettings.command = \"{waits}\"\n\
         [[contender]]\nname = \"joust\"\nserver = \"joust\"\n"
    );
    std::fs::write(dir.path().join("i.toml"), &study).unwrap();
    // The user's own study in the results folder, with the name that a command-line comparison uses.
    let own = dir.path().join("own/study.toml");
    std::fs::create_dir(dir.path().join("own")).unwrap();
    std::fs::write(&own, &study).unwrap();
    let mut all =
        vec![vec!["joust", waits], vec!["i.toml"], vec!["own/study.toml", "--out", "own"]];
    all.extend(installed("python3").map(|_| vec!["joust", silent]));
    for args in &all {
        let (output, took) = interrupted(dir.path(), args);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(3), "{args:?}: {said}");
        assert!(said.contains("interrupted before anything was measured"), "{args:?}: {said}");
        assert!(took < Duration::from_secs(6), "{args:?} took {took:?}");
        assert!(!dir.path().join("joust-results").exists(), "{args:?} left a folder");
    }
    assert_eq!(std::fs::read_to_string(&own).unwrap(), study, "the user's own study stays");
}

#[test]
fn a_server_that_does_not_end_when_asked_to_is_named_with_the_way_out() {
    let Some(_) = installed("python3") else { return };
    let dir = tempfile::tempdir().unwrap();
    let deaf = "python3 -c 'import signal,sys,http.server as h; signal.signal(15, signal.SIG_IGN); \
                sys.argv[1:]=[sys.argv[1]]; h.test(HandlerClass=h.SimpleHTTPRequestHandler, \
                port=int(sys.argv[1]), bind=\"127.0.0.1\")' {port}";
    std::fs::write(dir.path().join("index.html"), "x").unwrap();
    let other = deaf.replace("signal.signal(15, signal.SIG_IGN); ", "");
    let output = run(
        dir.path(),
        &[
            deaf,
            &other,
            "--target",
            "/index.html",
            "-d",
            "40",
            "--set",
            "blocks.min=2",
            "--set",
            "blocks.max=2",
            "--set",
            "visit.measure=100ms",
            "--set",
            "keep_disturbed=true",
        ],
    );
    let said = said(&output);
    assert_eq!(said.matches("did not end within").count(), 1, "once: {said}");
    assert!(said.contains("of SIGTERM and was killed") && said.contains("KILL"), "{said}");
}

#[test]
fn a_command_that_never_listens_is_given_up_and_ended() {
    let dir = tempfile::tempdir().unwrap();
    // Anything left behind would have the folder of the test as its working directory.
    let waits = "sh -c 'exec sleep 600' {port}";
    each_ends_soon(
        dir.path(),
        &[(&["joust", waits], 1, &["sh: ", "nobody listens", "stay in the foreground"])],
    );
    let left = std::fs::read_dir("/proc").unwrap().flatten().filter(|entry| {
        std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == dir.path())
    });
    assert_eq!(left.count(), 0, "a process was left");
}

#[test]
fn a_server_that_is_not_installed_is_named_with_its_package() {
    let listed = stdout(&output(&["servers", "--json"]));
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    let missing =
        listed["servers"].as_array().unwrap().iter().find(|one| one["installed"] == false);
    let Some(missing) = missing else { return };
    let name = missing["name"].as_str().unwrap();
    let dir = tempfile::tempdir().unwrap();
    each_ends_soon(dir.path(), &[(&["joust", name], 1, &[name, "apt-get install"])]);
}
