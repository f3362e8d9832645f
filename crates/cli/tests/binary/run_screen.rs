//! The live screen of `joust run`, on a real terminal. Start reading at [`Run::start`].

use std::path::{Path, PathBuf};
use std::process::Output;

use record::{Ending, RunRecord, UserSkip, Verdict, VisitState};

use super::pty::OnTerminal;
use crate::run::study;

/// The sequences that enter and leave the alternate screen.
const TAKEN: &str = "\u{1b}[?1049h";
const GIVEN_BACK: &str = "\u{1b}[?1049l";

/// Three short visits a block, for longer than any test waits.
struct Run {
    _dir: tempfile::TempDir,
    out: PathBuf,
    terminal: OnTerminal,
}

impl Run {
    fn start((rows, columns): (u16, u16), flags: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (file, out) = (three(dir.path()), dir.path().join("out"));
        let args =
            [&["run", file.to_str().unwrap(), "--out", out.to_str().unwrap()], flags].concat();
        let terminal = OnTerminal::start(rows, columns, env!("CARGO_BIN_EXE_joust"), &args);
        Self { _dir: dir, out, terminal: terminal.expect("it starts") }
    }

    /// Its record and its output, when it has ended with the terminal given back.
    fn end(self) -> (RunRecord, Output) {
        let Self { _dir, out, terminal } = self;
        let output = terminal.output().expect("it ends");
        let drawn = String::from_utf8_lossy(&output.stderr);
        assert!(drawn.rfind(TAKEN) < drawn.rfind(GIVEN_BACK), "{drawn:?}");
        let run = std::fs::read_to_string(out.join("run.json"));
        let run = run.unwrap_or_else(|error| panic!("{error}: {drawn}"));
        assert!(!out.join("journal.jsonl").exists(), "the run is saved");
        (RunRecord::from_json(&run).unwrap(), output)
    }
}

fn three(dir: &Path) -> PathBuf {
    let file = study(dir, 500);
    let text = std::fs::read_to_string(&file).unwrap();
    let third = "[[contender]]\nname = \"third\"\nserver = \"joust\"\n\
                 settings = { model = \"thread\" }\n";
    std::fs::write(&file, text + third).unwrap();
    file
}

fn printed(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The end of an interval, `[1.83, 1.93],`: a pair has one after three blocks. Only what changes is drawn, and no space
/// that was there, so this is all of it that surely stands together.
const SOME_BLOCKS: &str = "],";

#[test]
fn s_ends_the_run_after_its_block_with_a_whole_record() {
    let mut run = Run::start((24, 80), &[]);
    run.terminal.wait_for(SOME_BLOCKS);
    run.terminal.press("s");
    run.terminal.wait_for("STOPS");
    let (record, output) = run.end();
    let Ending::Stopped { blocks } = record.ending else { panic!("{:?}", record.ending) };
    // A visit on a busy machine is kept, and made again.
    let used = record.visits.iter().filter(|visit| visit.state != VisitState::Disturbed);
    assert_eq!(used.count(), 3 * blocks as usize, "every block is whole");
    // Few blocks may withhold every verdict (3), but the run has not failed.
    assert!(matches!(output.status.code(), Some(0 | 3)), "{output:?}");
    let said = format!("stopped by the user after block {blocks}");
    assert!(printed(&output).contains(&said), "{}", printed(&output));
}

#[test]
fn a_contender_is_skipped_by_its_number_and_the_run_goes_on() {
    let mut run = Run::start((24, 80), &[]);
    run.terminal.wait_for(SOME_BLOCKS);
    run.terminal.press("k");
    run.terminal.wait_for("number:");
    run.terminal.press("2\r");
    run.terminal.wait_for("skipped");
    run.terminal.press("s");
    let (record, output) = run.end();
    let skips: Vec<UserSkip> = record.user_skips().collect();
    let [UserSkip { contender: 1, block }] = skips[..] else { panic!("{skips:?}") };
    let of = |contender| record.visits.iter().filter(move |visit| visit.contender == contender);
    assert!(of(1).all(|visit| visit.block <= block) && of(1).count() > 0);
    assert!(of(0).count() > of(1).count(), "the others went on");
    for pair in &record.verdicts {
        let is_withheld = matches!(&pair.verdict, Verdict::Withheld { reason } if reason.contains("skipped by the user"));
        assert_eq!(is_withheld, pair.a == 1 || pair.b == 1, "{pair:?}");
    }
    let text = printed(&output);
    assert!(text.contains("skipped by the user: a pool in block"), "{text}");
    let drawn = String::from_utf8_lossy(&output.stderr);
    let (_, after) = drawn.rsplit_once(GIVEN_BACK).unwrap();
    assert!(after.contains("a pool is skipped by the user"), "messages stay: {after}");
}

#[test]
fn q_ends_it_as_ctrl_c_does() {
    for key in ["q", "\u{3}"] {
        let mut run = Run::start((24, 80), &[]);
        run.terminal.wait_for(SOME_BLOCKS);
        run.terminal.press(key);
        let (record, output) = run.end();
        assert_eq!(output.status.code(), Some(3));
        assert!(matches!(record.ending, Ending::Incomplete { .. }), "{:?}", record.ending);
        assert!(printed(&output).contains("incomplete: it was interrupted"));
    }
}

#[test]
fn quiet_and_plain_take_no_terminal() {
    for flag in ["--quiet", "--plain"] {
        let dir = tempfile::tempdir().unwrap();
        let (file, out) = (study(dir.path(), 3), dir.path().join("out"));
        let args = ["run", file.to_str().unwrap(), "--out", out.to_str().unwrap(), flag];
        let terminal = OnTerminal::start(24, 80, env!("CARGO_BIN_EXE_joust"), &args);
        let output = terminal.and_then(OnTerminal::output).expect("it ends");
        let drawn = String::from_utf8_lossy(&output.stderr);
        assert!(!drawn.contains(TAKEN), "{flag}: {drawn:?}");
        assert!(out.join("run.json").is_file(), "{flag}: {drawn:?}");
    }
}

#[test]
fn a_small_terminal_is_drawn_on_too() {
    let mut run = Run::start((15, 40), &[]);
    run.terminal.wait_for("pairs,");
    run.terminal.press("s");
    let (record, _) = run.end();
    assert!(matches!(record.ending, Ending::Stopped { .. }), "{:?}", record.ending);
}
