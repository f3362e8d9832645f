//! joust works at all, also without its optional features: it prints help, serves, loads, and rejects what it was built
//! without.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Output, Stdio};

fn joust(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_joust"));
    command.args(args).stdin(Stdio::null()).output().expect("the binary starts")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// `joust serve` on a free port, which ends with the test.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start() -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_joust"));
        command.args(["serve", "--fixed", "100", "--listen", "127.0.0.1:0"]);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
        let mut line = String::new();
        let out = child.stdout.take().expect("stdout is piped");
        BufReader::new(out).read_line(&mut line).expect("stdout is read");
        let url = line[line.find("http").expect("the line has its URL")..].trim().to_owned();
        Self { child, url }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail if it has ended already, which is what we want here.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_server_of_ours_answers_a_load_of_ours() {
    let server = Server::start();
    let load = joust(&["load", &server.url, "-n", "50", "-c", "2", "--json", "-"]);
    assert!(load.status.success(), "{load:?}");
    let record: serde_json::Value = serde_json::from_str(&stdout(&load)).expect("it is JSON");
    assert_eq!(record["requests"]["ok"], 50);
}

#[test]
fn every_subcommand_explains_itself_and_optional_ones_are_there_only_if_built_in() {
    let help = stdout(&joust(&["--help"]));
    for name in ["run", "load", "serve", "report", "compare", "doctor", "models", "servers"] {
        assert!(help.contains(&format!("\n  {name} ")), "{name}: {help}");
        assert!(joust(&[name, "-h"]).status.code().is_some_and(|code| code < 2), "{name}");
    }
    assert_eq!(help.contains("\n  history "), cfg!(feature = "history-database"));
    assert_eq!(help.contains("\n  wrk "), cfg!(feature = "lua"));
    let by_number = joust(&["compare", "1", "2"]);
    assert_eq!(by_number.status.code(), Some(2), "no history is here");
}

#[test]
fn the_built_in_study_passes_its_check() {
    let checked = joust(&["run", "--check"]);
    assert!(checked.status.success(), "{checked:?}");
}
