//! The binary from outside, as a person or a script uses it: its output, its exit codes, and what it leaves behind.
//! Start reading at [`joust`].

mod ab;
mod bad_input;
mod brief;
mod connections;
mod deploy;
mod docs;
mod docs_serve;
mod doctor_printed;
mod fleet;
mod fleet_failures;
mod fleet_forged;
mod fleet_network;
mod follow;
mod formats;
mod gates;
mod history;
mod hosts;
mod https;
mod laws;
mod load;
mod manual;
mod metrics;
mod planted;
mod proxy;
mod pty;
mod reload;
mod report;
mod reports_site;
mod requests;
mod restart;
mod rights;
mod run;
mod run_fleet;
mod run_screen;
mod run_trouble;
mod screen;
mod scripted;
mod serve;
mod servers;
mod siege;
mod tls;
mod views;
mod without_peers;
mod wrk;

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

/// The binary as a command; stdin is empty.
fn joust(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_joust"));
    command.args(args).stdin(Stdio::null());
    command
}

/// Runs it to its end.
fn output(args: &[&str]) -> Output {
    joust(args).output().expect("the binary starts")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Its stderr on one line: messages are wrapped for terminals.
fn said(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr).replace('│', " ");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A server of ours that ends with the test.
struct Server {
    child: Child,
    /// The first line that it printed.
    line: String,
    url: String,
}

impl Server {
    /// Starts `joust serve ARGS` on a free port and waits for the line that names it.
    fn start(args: &[&str]) -> Self {
        Self::start_saying(args, Stdio::inherit())
    }

    /// The same, with its stderr going there.
    fn start_saying(args: &[&str], stderr: Stdio) -> Self {
        let mut command = joust(&["serve", "--listen", "127.0.0.1:0"]);
        command.args(args).stderr(stderr);
        Self::of(command)
    }

    /// The server that this command starts.
    fn of(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
        let mut line = String::new();
        let out = child.stdout.take().expect("stdout is piped");
        BufReader::new(out).read_line(&mut line).expect("stdout is read");
        let at = line.find("http").unwrap_or_else(|| panic!("no address in `{line}`"));
        let url = line[at..].trim().to_owned();
        Self { child, line, url }
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let status = Command::new("kill").args(["-s", name, &pid]).status().expect("kill runs");
        assert!(status.success(), "kill -s {name} {pid}");
    }

    /// Ends it in order and returns its exit code.
    fn drain(mut self) -> Option<i32> {
        self.signal("TERM");
        self.child.wait().expect("it is our child").code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail if it has already ended, which is fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn lines(file: &Path) -> usize {
    std::fs::read_to_string(file).unwrap_or_default().lines().count()
}
