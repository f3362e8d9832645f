//! The manual pages and the completions, read by the programs they are made for: groff and bash.

use std::process::{Command, Stdio};

use crate::planted::installed;
use crate::{output, stdout};

#[test]
fn every_subcommand_has_a_page_that_groff_renders_without_a_warning() {
    let dir = tempfile::tempdir().unwrap();
    let pages = dir.path().join("man1");
    assert!(output(&["man", pages.to_str().unwrap()]).status.success());
    let named = |name: &str| pages.join(format!("{name}.1"));
    let help = stdout(&output(&["--help"]));
    let commands = help.split("Commands:").nth(1).and_then(|rest| rest.split("\n\n").next());
    let subcommands: Vec<&str> = commands
        .expect("the help lists them")
        .lines()
        .filter_map(|line| line.strip_prefix("  "))
        // A description that is too long for its line continues further to the right.
        .filter(|line| !line.starts_with(' '))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    assert!(subcommands.contains(&"load") && subcommands.len() > 6, "{subcommands:?}");
    let names = subcommands.iter().map(|name| format!("joust-{name}"));
    let names: Vec<String> = std::iter::once("joust".to_owned()).chain(names).collect();
    assert_eq!(std::fs::read_dir(&pages).unwrap().count(), names.len());
    let groff = installed("groff");
    for name in &names {
        let text = std::fs::read_to_string(named(name)).expect("the page is there");
        assert!(text.contains(".SH SYNOPSIS"), "{name}: {text}");
        let Some(groff) = &groff else { continue };
        let mut command = Command::new(groff);
        let command = command.args(["-Tascii", "-man", "-ww"]).arg(named(name));
        let rendered = command.output().unwrap();
        assert!(rendered.status.success() && rendered.stderr.is_empty(), "{name}: {rendered:?}");
    }
    let alone = stdout(&output(&["man"]));
    assert_eq!(alone, std::fs::read_to_string(named("joust")).unwrap());
}

#[test]
fn the_manual_of_load_has_every_flag_of_its_help() {
    let dir = tempfile::tempdir().unwrap();
    assert!(output(&["man", dir.path().to_str().unwrap()]).status.success());
    let page = std::fs::read_to_string(dir.path().join("joust-load.1")).unwrap();
    let page = page.replace("\\-", "-");
    let help = stdout(&output(&["load", "--help"]));
    for flag in crate::docs::flags(&help) {
        assert!(page.contains(flag), "{flag}");
    }
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let output = output(&["man", "/proc/nowhere/man1"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(crate::said(&output).contains("/proc/nowhere/man1"), "{}", crate::said(&output));
}

#[test]
fn bash_takes_the_script_and_completes_by_it() {
    let script = output(&["completions", "bash"]);
    assert!(script.status.success());
    let Some(bash) = installed("bash") else { return };
    let ask = "eval \"$SCRIPT\" && complete -p joust >&2 &&
               COMP_WORDS=(joust load --expect-b) COMP_CWORD=2 &&
               _joust joust --expect-b load && printf '%s\\n' \"${COMPREPLY[@]}\" &&
               COMP_WORDS=(joust load --engine u) COMP_CWORD=3 &&
               _joust joust u --engine && printf '%s\\n' \"${COMPREPLY[@]}\"";
    let mut command = Command::new(bash);
    let command = command.args(["--norc", "-c", ask]).env("SCRIPT", stdout(&script));
    let completed = command.stdin(Stdio::null()).output().unwrap();
    assert!(completed.status.success(), "{completed:?}");
    assert_eq!(stdout(&completed), "--expect-body\nuring\n");
}

#[test]
fn other_shells_have_theirs() {
    for (shell, word) in [("zsh", "#compdef joust"), ("fish", "complete -c joust")] {
        let output = output(&["completions", shell]);
        assert!(stdout(&output).contains(word), "{shell}");
    }
}
