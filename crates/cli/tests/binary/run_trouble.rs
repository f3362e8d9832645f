//! `joust run` where something is missing: rights, room on the disk. Each time it says so, and what was
//! measured is kept or nothing is.

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
    // Where the account can go, whatever folder this was built in.
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
        assert!(told.contains("one loop") && told.contains("the nearest"), "{told}");
        // It may have been meant for the workload, as where an axis is over it.
        assert!(told.contains("of the workload the nearest is keep_alive"), "{told}");
    }
    assert!(!dir.path().join("nowhere").exists());
}

/// A run that writes into a folder with so much room, and what it left there.
fn on_a_disk_of(room: &str) -> (Output, String) {
    let dir = tempfile::tempdir().unwrap();
    let (disk, study) = (dir.path().join("disk"), study(dir.path(), 2));
    std::fs::create_dir(&disk).unwrap();
    // Mounted in a namespace of mounts of its own, which ends with the shell.
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
            return println!("skipped: no file system can be mounted here: {}", said(&output));
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
