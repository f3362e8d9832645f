//! `joust run` without permissions or disk space. Each time it reports that, and the measurements are kept or nothing
//! is written.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Output};

use record::{NetworkKind, RunRecord};

use crate::rights::is_root;
use crate::run::study;
use crate::{said, stdout};

fn open_to_all(path: &Path) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
}

#[test]
fn without_rights_it_runs_over_loopback_and_says_so() {
    if !is_root() {
        return;
    }
    // A folder that the account can use, whatever folder this was built in.
    let dir = tempfile::tempdir().unwrap();
    open_to_all(dir.path());
    let binary = dir.path().join("joust");
    std::fs::copy(env!("CARGO_BIN_EXE_joust"), &binary).unwrap();
    let out = dir.path().join("out");
    let output = Command::new(&binary)
        .args(["run", study(dir.path(), 2).to_str().unwrap(), "--out"])
        .arg(&out)
        .current_dir(dir.path())
        .uid(65_534)
        .gid(65_534)
        .output()
        .unwrap();
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}", said(&output));
    let run =
        RunRecord::from_json(&std::fs::read_to_string(out.join("run.json")).unwrap()).unwrap();
    assert_eq!(run.visits.len(), 4);
    for visit in &run.visits {
        let network = &visit.surroundings.as_ref().unwrap().network;
        assert_eq!(network.kind, NetworkKind::Loopback);
        assert!(network.reason.as_ref().is_some_and(|why| why.contains("root")), "{network:?}");
    }
    let report = stdout(&output);
    assert!(report.contains("loopback") && report.contains("root"), "{report}");
}

#[test]
fn a_setting_that_our_own_server_does_not_know_is_refused_before_anything_runs() {
    let dir = tempfile::tempdir().unwrap();
    let file = study(dir.path(), 2);
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("\"reactor\" }", "\"reactor\", KeepAlife = true }"))
        .unwrap();
    for form in [&["--check"][..], &["--out", "nowhere"][..]] {
        let mut command = crate::joust(&["run", file.to_str().unwrap()]);
        let output = command.args(form).current_dir(dir.path()).output().unwrap();
        let told = said(&output).split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.contains("one loop") && told.contains("did you mean KeepAlive"), "{told}");
        // It may have been meant for the workload, for example if an axis varies it.
        assert!(told.contains("The nearest key of [workload] is keep_alive"), "{told}");
    }
    assert!(!dir.path().join("nowhere").exists());
}

/// A run that writes into a folder with that much space, and what it left there.
fn on_a_disk_of(room: &str) -> (Output, String) {
    let dir = tempfile::tempdir().unwrap();
    let (disk, study) = (dir.path().join("disk"), study(dir.path(), 2));
    std::fs::create_dir(&disk).unwrap();
    // Mounted in a private mount namespace, which ends with the shell.
    let script = "mount -t tmpfs -o size=$1 none \"$2\" || exit 77
        \"$3\" run \"$4\" --quiet --out \"$2/out\"; code=$?
        ls \"$2/out\" > \"$2.left\" 2>/dev/null; exit $code";
    let output = Command::new("unshare")
        .args(["--mount", "/bin/sh", "-c", script, "sh", room])
        .args([&disk, Path::new(env!("CARGO_BIN_EXE_joust")), &study])
        .output()
        .unwrap();
    let left = std::fs::read_to_string(dir.path().join("disk.left")).unwrap_or_default();
    (output, left)
}

#[test]
fn a_full_disk_is_told_and_nothing_half_written_stays() {
    if !is_root() {
        return;
    }
    for room in ["4k", "24k"] {
        let (output, left) = on_a_disk_of(room);
        if output.status.code() == Some(77) {
            return skips::note(format_args!(
                "no file system can be mounted here: {}",
                said(&output)
            ));
        }
        let told = said(&output);
        assert_eq!(output.status.code(), Some(1), "{room}: {told}");
        assert!(told.contains("No space left") && told.contains("--out"), "{room}: {told}");
        let is_whole = |name: &str| name == "journal.jsonl";
        assert!(left.lines().all(is_whole), "{room}: {left}");
    }
    let (output, left) = on_a_disk_of("16m");
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}", said(&output));
    assert!(left.contains("run.json") && !left.contains("journal"), "{left}");
}

/// The message on one line, without the frame of errors.
fn unframed(output: &Output) -> String {
    let said = said(output);
    said.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ")
}

#[test]
fn a_study_without_a_short_form_says_that_all_of_it_is_run() {
    let dir = tempfile::tempdir().unwrap();
    let file = study(dir.path(), 2);
    let check = || crate::output(&["run", file.to_str().unwrap(), "--check", "--short"]);
    let told = unframed(&check());
    assert!(told.contains("brief has no short form") && told.contains("changes nothing"), "{told}");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text + "[short]\nmeasure = \"100ms\"\n").unwrap();
    let told = unframed(&check());
    assert!(!told.contains("short form"), "{told}");
}

/// A study of those contenders, each given as TOML.
fn study_of(dir: &Path, contenders: &[String], budget: &str) -> std::path::PathBuf {
    let file = dir.join("of.toml");
    let rest = contenders.concat();
    let text = format!(
        "name = \"of\"\nquestion = \"?\"\nbudget = \"{budget}\"\n[workload]\npage = 1000\n\
         connections = 4\n[visit]\nwarm_up = \"50ms\"\nmeasure = \"150ms\"\n{rest}"
    );
    std::fs::write(&file, text).unwrap();
    file
}

fn contender(name: &str, server: &str, setting: &str) -> String {
    format!("[[contender]]\nname = \"{name}\"\nserver = \"{server}\"\nsettings = {{ {setting} }}\n")
}

#[test]
fn a_program_of_a_command_that_is_not_there_is_named_before_anything_runs() {
    let dir = tempfile::tempdir().unwrap();
    let one = |name: &str, model: &str| contender(name, "joust", &format!("model = \"{model}\""));
    let gone = contender("gone", "command", "command = \"no-such-server {port}\"");
    let there = contender("there", "command", "command = \"sh -c 'exec x {port}'\"");
    let contenders = [one("a", "pool"), one("b", "reactor"), gone.clone(), there];
    let file = study_of(dir.path(), &contenders, "50s");
    let checked = crate::output(&["run", file.to_str().unwrap(), "--check"]);
    let text = stdout(&checked);
    let unbroken = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(unbroken.contains("gone: the program `no-such-server` is in none of"), "{text}");
    assert!(!unbroken.contains("there: the program"), "{text}");
    // With only one other contender there is nothing to compare, and that is reported at once.
    let file = study_of(dir.path(), &[one("a", "pool"), gone], "50s");
    let out = dir.path().join("out");
    let run = crate::output(&["run", file.to_str().unwrap(), "--out", out.to_str().unwrap()]);
    let told = unframed(&run);
    assert_eq!(run.status.code(), Some(1), "{told}");
    assert!(told.contains("no-such-server"), "{told}");
}

/// A server that redirects everything like Go's FileServer redirects its index pages.
fn redirecting() -> std::net::SocketAddr {
    use std::io::{Read as _, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 1024]);
            let reply =
                "HTTP/1.1 301 Moved Permanently\r\nLocation: ./\r\nContent-Length: 0\r\n\r\n";
            let _ = stream.write_all(reply.as_bytes());
        }
    });
    addr
}

#[test]
fn a_server_that_redirects_the_page_is_told_with_the_target_to_ask_for() {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("url = \"http://{}\"", redirecting());
    let contenders = ["a", "b"].map(|name| contender(name, "url", &url));
    let file = study_of(dir.path(), &contenders, "50s");
    let out = dir.path().join("out");
    let run = crate::output(&["run", file.to_str().unwrap(), "--out", out.to_str().unwrap()]);
    let told = unframed(&run);
    assert_eq!(run.status.code(), Some(1), "{told}");
    assert!(told.contains("it redirects /index.html to `./` (301)"), "{told}");
    assert!(told.contains("`[workload] target = \"/\"`"), "{told}");
}

#[test]
fn a_contender_that_never_answers_ends_a_run_with_3_and_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let one = |name: &str, model: &str| contender(name, "joust", &format!("model = \"{model}\""));
    let dies = contender("dies", "command", "command = \"sh -c 'exit 7' {port}\"");
    let contenders = [one("a", "pool"), one("b", "reactor"), dies];
    let file = study_of(dir.path(), &contenders, "8s");
    let out = dir.path().join("out");
    let run = crate::output(&["run", file.to_str().unwrap(), "--out", out.to_str().unwrap()]);
    let told = unframed(&run);
    assert_eq!(run.status.code(), Some(3), "{told}");
    assert!(told.contains("dies never answered") || told.contains("dies: "), "{told}");
}

#[test]
fn a_budget_that_holds_no_block_is_an_error_that_says_what_one_takes() {
    let dir = tempfile::tempdir().unwrap();
    let one = |name: &str| contender(name, "joust", "model = \"pool\"");
    let file = study_of(dir.path(), &["a", "b", "c", "d"].map(one), "600ms");
    let out = dir.path().join("out");
    let run = crate::output(&["run", file.to_str().unwrap(), "--out", out.to_str().unwrap()]);
    let told = unframed(&run);
    assert_eq!(run.status.code(), Some(2), "{told}");
    assert!(told.contains("does not hold one block: its 4 visits take 800ms"), "{told}");
    assert!(told.contains("raise the budget (-d)"), "{told}");
    assert!(!out.join("journal.jsonl").exists());
}

#[test]
fn a_run_keeps_its_budget_with_starts_and_ends_of_servers() {
    let dir = tempfile::tempdir().unwrap();
    let one = |name: &str| contender(name, "joust", "model = \"pool\"");
    let blocks = "[blocks]\nmax = 1000\nhalf_width = \"0.001%\"\n".to_owned();
    let file = study_of(dir.path(), &[blocks, one("a"), one("b")], "4s");
    let out = dir.path().join("out");
    let run = crate::output(&["run", file.to_str().unwrap(), "--out", out.to_str().unwrap()]);
    assert!(matches!(run.status.code(), Some(0 | 3)), "{}", said(&run));
    let record = std::fs::read_to_string(out.join("run.json")).unwrap();
    let record = RunRecord::from_json(&record).unwrap();
    assert_eq!(record.ending, record::Ending::Budget);
    // 5 %, plus, on a busy machine, the visit that was in progress.
    let started = |visit: &record::Visit| visit.started;
    let last = record.visits.iter().map(started).max().unwrap();
    assert!(last.as_secs_f64() < 4.0 && record.seconds < 4.2 + 1.0, "{}", record.seconds);
    assert!(record.visits.len() >= 2, "the budget holds a block, however slow the machine");
}
