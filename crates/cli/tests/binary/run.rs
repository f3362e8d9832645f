//! `joust run` on real servers: the results folder, the exit code, and that nothing is left behind.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use record::{Ending, Integrity, RunRecord};

use crate::{joust, output, said, stdout};

/// Two of our own models, which are available on every machine, as short as a study may be.
pub(crate) fn study(dir: &Path, blocks: u32) -> PathBuf {
    let text = format!(
        "name = \"brief\"\nquestion = \"Do two models differ?\"\nbudget = \"50s\"\n\
         keep_disturbed = true\n[workload]\npage = 1000\nconnections = 4\n\
         [blocks]\nmin = {blocks}\nmax = {blocks}\n\
         [visit]\nwarm_up = \"50ms\"\nmeasure = \"150ms\"\n\
         [[contender]]\nname = \"one loop\"\nserver = \"joust\"\nsettings = {{ model = \"reactor\" }}\n\
         [[contender]]\nname = \"a pool\"\nserver = \"joust\"\nsettings = {{ model = \"pool\" }}\n"
    );
    let file = dir.join("brief.toml");
    std::fs::write(&file, text).unwrap();
    file
}

fn run_file(dir: &Path) -> RunRecord {
    RunRecord::from_json(&std::fs::read_to_string(dir.join("run.json")).unwrap()).unwrap()
}

#[test]
fn a_run_leaves_its_reports_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let (study, out) = (study(dir.path(), 3), dir.path().join("out"));
    let output = output(&["run", study.to_str().unwrap(), "--out", out.to_str().unwrap()]);
    let text = stdout(&output);
    // With three blocks every verdict may be withheld (3), but the run must not fail (1).
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}", said(&output));
    assert_eq!(text.lines().last(), out.to_str(), "the last line names the folder");
    for file in ["run.json", "report.html", "report.md", "report.txt", "report.svg"] {
        assert!(out.join(file).is_file(), "{file} is missing");
    }
    let run = run_file(&out);
    assert_eq!(run.visits.len(), 6);
    assert!(run.visits.iter().all(|visit| visit.load.is_some()));
    assert_eq!(servers_in(&out), Vec::<u32>::new(), "servers were left");
    a_run_file_is_not_taken_as_typed(run, &out);
}

fn a_run_file_is_not_taken_as_typed(run: RunRecord, out: &Path) {
    assert_eq!(run.integrity, Integrity::Intact);
    let (file, path) = (out.join("run.json"), out.to_str().unwrap());
    let mut anew = run.clone();
    lab::runner::conclude(&mut anew);
    assert_eq!(anew, run, "what is computed anew is what was concluded");
    let report = || stdout(&output(&["report", path, "--full"]));
    let said = "this file was changed after it was measured";
    let measured = report();
    assert!(!measured.contains(said), "{measured}");

    let mut tripled = run.clone();
    for visit in tripled.visits.iter_mut().filter(|visit| visit.contender == 0) {
        visit.rate_per_s = visit.rate_per_s.map(|rate| 3.0 * rate);
    }
    tripled.verdicts.clear();
    tripled.findings.clear();
    // Without a digest nothing shows the change; the figures are recomputed from the counts.
    std::fs::write(&file, tripled.to_json()).unwrap();
    assert_eq!(report(), measured);

    // One digit of a rate, as a person would change it.
    let sealed = run.to_sealed_json();
    let at = sealed.find("\"rate_per_s\":").unwrap() + "\"rate_per_s\":".len();
    let digit = if &sealed[at..=at] == "9" { "8" } else { "9" };
    let changed = format!("{}{digit}{}", &sealed[..at], &sealed[at + 1..]);
    std::fs::write(&file, changed).unwrap();
    for args in [&["report", path][..], &["doctor", path], &["compare", path, path]] {
        let output = output(args);
        assert!(stdout(&output).contains(said) || crate::said(&output).contains(said), "{args:?}");
    }
    for format in ["markdown", "html", "picture"] {
        let text = stdout(&output(&["report", path, "--format", format]));
        assert!(text.contains(said), "{format}");
    }
    let refused = output(&["run", "--repeat-of", path, "--out", &format!("{path}-2")]);
    assert_eq!(refused.status.code(), Some(2), "{}", crate::said(&refused));
    assert!(crate::said(&refused).contains("was changed after"), "{}", crate::said(&refused));
}

/// The server answers correctly when it is requested alone, and under load with zeros of the right
/// length.
#[test]
fn bodies_that_change_under_load_void_the_contender_that_sent_them() {
    let dir = tempfile::tempdir().unwrap();
    let (study, out) = (study(dir.path(), 2), dir.path().join("out"));
    let text = std::fs::read_to_string(&study).unwrap();
    let command = format!(
        "server = \"command\"\nsettings.command = \"{} serve {{docroot}} --listen 127.0.0.1:{{port}} \
         --fault body=zeros,after:100\"\n",
        env!("CARGO_BIN_EXE_joust")
    );
    let pool = "server = \"joust\"\nsettings = { model = \"pool\" }\n";
    let text =
        text.replace(pool, &command).replace("connections = 4", "connections = 4\nverify = \"5%\"");
    std::fs::write(&study, text).unwrap();
    let output = output(&["run", study.to_str().unwrap(), "--out", out.to_str().unwrap()]);
    let run = run_file(&out);
    let is_it = |finding: &&record::Finding| finding.check == "bodies_change_under_load";
    let finding = run.findings.iter().find(is_it).expect("it is found");
    assert_eq!(finding.contenders, [1], "{}", finding.evidence);
    assert!(finding.evidence.contains("a pool: "), "{}", finding.evidence);
    assert!(
        matches!(run.verdicts[0].verdict, record::Verdict::Withheld { .. }),
        "{:?}",
        run.verdicts
    );
    for visit in &run.visits {
        let load = visit.load.as_ref().unwrap();
        let counted = &load.bodies_verified;
        assert_eq!(load.plan.verify.bodies, record::Bodies::Hash(0.05));
        assert!(counted.verified > 0 && counted.verified < load.requests.done, "{counted:?}");
        assert_eq!(counted.differ > 0, visit.contender == 1, "{counted:?}");
        assert_eq!(counted.differ, load.errors.wrong_body);
    }
    let text = stdout(&output);
    assert!(text.contains("Bodies verified") && text.contains("differ"), "{text}");
}

#[test]
fn a_run_that_cannot_be_saved_is_shown_before_it_fails() {
    let dir = tempfile::tempdir().unwrap();
    let (study, out) = (study(dir.path(), 2), dir.path().join("out"));
    let mut command = joust(&["run", study.to_str().unwrap(), "--out", out.to_str().unwrap()]);
    let child =
        command.arg("--quiet").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    while !out.join("journal.jsonl").exists() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(1));
    }
    // Blocks the path of the run file, which is written at the end.
    std::fs::create_dir(out.join("run.json")).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("run.json"), "{}", said(&output));
    assert!(said(&output).contains("--resume"), "{}", said(&output));
    assert!(stdout(&output).contains("CPU us/request"), "no report in: {}", stdout(&output));
    let mut left: Vec<_> =
        std::fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().path()).collect();
    left.sort();
    let visits = out.join("journal.jsonl");
    assert_eq!(left, [visits, out.join("run.json")], "something half-written is left");
}

#[test]
fn what_was_measured_until_ctrl_c_is_kept_and_marked() {
    let dir = tempfile::tempdir().unwrap();
    let (study, out) = (study(dir.path(), 500), dir.path().join("out"));
    let mut command = joust(&["run", study.to_str().unwrap(), "--out", out.to_str().unwrap()]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A line per block is printed if stderr is not a terminal: the first block has been measured.
    let mut said_so_far = BufReader::new(child.stderr.take().unwrap()).lines();
    let second = said_so_far.find(|line| line.as_ref().unwrap().starts_with("block 2"));
    assert!(second.is_some(), "the run ended before its second block");
    Command::new("kill").args(["-s", "INT", &child.id().to_string()]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    let run = run_file(&out);
    assert!(matches!(run.ending, Ending::Incomplete { .. }), "{:?}", run.ending);
    assert!(!run.visits.is_empty());
    assert!(stdout(&output).to_lowercase().contains("incomplete"), "{}", stdout(&output));
    let goes_on = format!("joust run --resume {}", out.display());
    for file in ["report.txt", "report.md", "report.html"] {
        let report = std::fs::read_to_string(out.join(file)).unwrap();
        // HTML has slashes as entities.
        let unbroken = report.replace("&#x2f;", "/");
        let unbroken = unbroken.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(unbroken.contains(&goes_on), "{file}: {report}");
    }
}

#[test]
fn a_run_that_was_killed_goes_on_and_measures_nothing_twice() {
    let dir = tempfile::tempdir().unwrap();
    let (study, out) = (study(dir.path(), 4), dir.path().join("out"));
    let (journal, at) = (out.join("journal.jsonl"), out.to_str().unwrap());
    let mut child = joust(&["run", study.to_str().unwrap(), "--quiet", "--out", at])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let kept = || std::fs::read_to_string(&journal).unwrap_or_default();
    // The plan and three visits: the second block is half complete.
    while kept().matches('\n').count() < 4 {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it could be killed");
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let before = record::Journal::read(&kept()).unwrap().visits;
    let shown = output(&["report", at]);
    let told = said(&shown);
    let told = told.split_whitespace().filter(|part| *part != "│").collect::<Vec<_>>().join(" ");
    assert_eq!(shown.status.code(), Some(2), "{told}");
    assert!(told.contains(&format!("joust run --resume {at}")), "{told}");
    // A budget that is too short for any measurement would end the run.
    let too_short = output(&["run", "--resume", at, "--budget", "1ms"]);
    assert_eq!(too_short.status.code(), Some(2), "{}", said(&too_short));
    assert!(said(&too_short).contains("raise --budget"), "{}", said(&too_short));
    assert!(journal.exists(), "the run can still be resumed");
    let resumed = output(&["run", "--resume", at, "--quiet"]);
    assert!(matches!(resumed.status.code(), Some(0 | 3)), "{}", said(&resumed));
    let run = run_file(&out);
    assert_eq!(run.visits[..before.len()], before, "what was measured is kept as it was");
    let mut made: Vec<_> = run.visits.iter().map(|one| (one.block, one.contender)).collect();
    made.sort_unstable();
    let planned: Vec<_> = (0..4).flat_map(|block| [(block, 0), (block, 1)]).collect();
    assert_eq!((made, journal.exists()), (planned, false));

    let again = output(&["run", "--resume", at]);
    assert_eq!(again.status.code(), Some(2), "{}", said(&again));
    assert!(said(&again).contains("--repeat-of"), "{}", said(&again));

    let more = dir.path().join("more");
    let args = ["run", "--repeat-of", at, "--quiet", "--out", more.to_str().unwrap()];
    let repeated = output(&args);
    assert!(matches!(repeated.status.code(), Some(0 | 3)), "{}", said(&repeated));
    let merged = run_file(&more);
    assert_eq!(merged.visits[..8], run.visits[..], "the earlier visits are judged with the new");
    assert_eq!(merged.visits.len(), 16);
    assert!(merged.visits[8..].iter().all(|visit| (4..8).contains(&visit.block)));
}

#[test]
fn check_prints_the_plan_and_runs_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let study = study(dir.path(), 3);
    let output = Command::new(env!("CARGO_BIN_EXE_joust"))
        .args(["run", study.to_str().unwrap(), "--check"])
        .current_dir(dir.path())
        .output()
        .unwrap();
    let text = stdout(&output);
    assert!(output.status.success(), "{}", said(&output));
    assert!(text.contains("one loop") && text.contains("3 blocks"), "{text}");
    assert!(!text.contains("Not on this machine"), "{text}");
    assert!(!dir.path().join("joust-results").exists());
}

#[test]
fn every_shipped_study_passes_its_check() {
    let studies = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies");
    let mut checked = 0;
    for entry in std::fs::read_dir(studies).unwrap() {
        let path = entry.unwrap().path();
        let output = output(&["run", path.to_str().unwrap(), "--check"]);
        assert!(output.status.success(), "{}: {}", path.display(), said(&output));
        checked += 1;
    }
    assert!(checked >= 2, "only {checked} studies found");
}

#[test]
fn the_worked_study_of_the_page_passes_its_check() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/studies.md");
    let page = std::fs::read_to_string(page).unwrap();
    let study = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("sendfile.toml");
    std::fs::write(&file, study).unwrap();
    for (form, visits) in [(&[][..], "6 per block"), (&["--short"][..], "4 per block")] {
        let output = output(&[&["run", file.to_str().unwrap(), "--check"], form].concat());
        assert!(output.status.success(), "{}", said(&output));
        assert!(stdout(&output).contains(visits), "{}", stdout(&output));
    }
}

/// Processes whose command line names the folder of the test.
fn servers_in(out: &Path) -> Vec<u32> {
    let folder = out.parent().unwrap().to_string_lossy().into_owned();
    let processes = std::fs::read_dir("/proc").unwrap();
    let ids = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    ids.filter(|id| *id != std::process::id())
        .filter(|id| {
            let line = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(&folder)
        })
        .collect()
}
