//! Processes in a network namespace of their own, with only a loopback interface. Must not know what runs there. Start
//! reading at [`Namespace`].

use std::ffi::OsStr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::beside::{Outcome, process};

/// Longest time to create one.
const START_MAX: Duration = Duration::from_secs(10);

/// A namespace that exists until this is dropped.
pub struct Namespace {
    holder: Child,
    after: &'static [&'static str],
}

/// Whether namespaces can be made here.
///
/// # Errors
/// Why not.
pub fn check() -> Outcome<()> {
    Namespace::make(&[], &[]).map(drop).map_err(|error| {
        format!("cannot make a network namespace ({error}): run it as root").into()
    })
}

impl Namespace {
    /// A namespace in which the shell commands `setup` have run; `after` run in it at its end, even after a failure.
    pub fn make(setup: &[&str], after: &'static [&'static str]) -> Outcome<Self> {
        let mut holder = Command::new("setpriv");
        holder.args(["--pdeathsig", "KILL", "unshare", "--net", "sleep", "600"]);
        let holder = holder.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?;
        let namespace = Self { holder, after };
        namespace.await_start()?;
        namespace.run(&[&["ip link set lo up"], setup].concat())?;
        Ok(namespace)
    }

    /// Runs shell commands in it, each if the one before succeeded.
    fn run(&self, commands: &[&str]) -> Outcome<()> {
        let commands = commands.join(" && ");
        let done = self.command("sh").args(["-c", &commands]).output()?;
        if !done.status.success() {
            let said = String::from_utf8_lossy(&done.stderr).trim().to_owned();
            return Err(format!("`{commands}` failed: {said}").into());
        }
        Ok(())
    }

    /// A command that will run in it and ends with us.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/proc/{}/ns/net", self.holder.id()));
        command.args(["--", "setpriv", "--pdeathsig", "TERM"]).arg(program);
        command.stdin(Stdio::null());
        command
    }

    /// The holder has its own namespace from the moment when its process's namespace differs from ours.
    fn await_start(&self) -> Outcome<()> {
        let own = std::fs::read_link("/proc/self/ns/net")?;
        let begun = Instant::now();
        while begun.elapsed() < START_MAX {
            let its = std::fs::read_link(format!("/proc/{}/ns/net", self.holder.id()));
            if its.is_ok_and(|its| its != own) {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Err("`unshare --net` did not make one in time".into())
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if !self.after.is_empty()
            && let Err(error) = self.run(self.after)
        {
            eprintln!("{error}");
        }
        process::end(&mut self.holder);
    }
}
