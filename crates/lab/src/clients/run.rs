//! Owns one run of a load tool: its folder, its process, its bounded output, its end, and what it used. Start
//! reading at [`run`].
//!
//! A tool is a child like a server: in its own process group, with a guardian, and killed when it takes too long,
//! when we unwind, or when we are killed. Its output is read continuously, so that it never waits for us. Only the
//! end of the output is kept; every tool prints its report there.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use classic::Report;
use record::ToolRun;
use sys::child::{self, Child, Ended, Guardian, Signal, Spec, Ward};
use sys::clock;
use tempfile::TempDir;
use units::{Bytes, Nanos};

use super::{Client, ClientError, ClientKind, Order, Program, Said, typed};
use crate::adapters::Found;
use crate::server;

/// Bytes that are kept of each output, from its end.
const OUTPUT_BYTES_MAX: usize = 256 << 10;
/// The usual [`Bench::grace`]: time to start, connect, sort and print.
pub const GRACE: Nanos = Nanos::from_secs(15);
/// How long the kernel may take to remove a killed process.
const KILLED_END_MAX: Nanos = Nanos::from_secs(10);
/// What is shown of its output in an error.
const TAIL_LINES: usize = 12;
/// Minimum length of the first run that shows how many requests fit into a duration.
const TRIAL_MIN: Nanos = Nanos::from_millis(100);
/// Its number of requests at first, and how often it is raised.
const TRIAL_REQUESTS: u64 = 1000;
const TRIALS_MAX: u32 = 4;

/// Where a tool is run.
#[derive(Debug, Clone, Copy)]
pub struct Bench<'a> {
    /// CPUs it may run on; empty: those of the caller.
    pub cpus: &'a [u32],
    /// A folder, in which its own folder is made: see [`crate::server::scratch`].
    pub scratch: &'a Path,
    /// Time that it has beyond the load and one timeout, before it is killed: see [`GRACE`].
    pub grace: Nanos,
}

/// A run of a load tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientRun {
    /// Name of the tool.
    pub tool: &'static str,
    /// Its version as it prints it; empty if it prints none.
    pub version: String,
    /// Program and arguments, as one could type them.
    pub command: String,
    /// What it reported.
    pub report: Report,
    /// What it printed: standard output, then standard error.
    pub text: String,
    /// What it did differently from the order.
    pub notes: Vec<String>,
    /// CPU time from its start to its end.
    pub cpu: Nanos,
    /// From its start to its end.
    pub wall: Nanos,
    /// Peak of its resident memory.
    pub max_rss: Bytes,
    /// How it ended ("exit status 0"): if there is a report, an exit status is no failure.
    pub exit: String,
    counts_differently: &'static [&'static str],
}

impl ClientRun {
    /// As a run file has it.
    pub fn tool_run(&self) -> ToolRun {
        ToolRun {
            tool: self.tool.to_owned(),
            version: self.version.clone(),
            command: self.command.clone(),
            claimed: self.report.claims(),
            counts_differently: self.counts_differently.iter().map(|&it| it.to_owned()).collect(),
            notes: self.notes.clone(),
            cpu: self.cpu,
            wall: self.wall,
            memory_max: self.max_rss,
            ended: self.exit.clone(),
            report: self.text[self.report.place.clone()].to_owned(),
        }
    }
}

/// Runs a tool and reads its report.
///
/// # Errors
/// The tool cannot do it, does not start, does not end in time, or ends without a report. Nothing is
/// left behind in any of these cases.
pub fn run(
    client: &'static Client,
    found: &Found,
    order: &Order,
    bench: &Bench,
) -> Result<ClientRun, ClientError> {
    let ClientKind::Program(program) = &client.kind else {
        return Err(client.say(order).expect_err("our own generator is not a program"));
    };
    if program.counts_only && order.requests.is_none() {
        return run_counted(client, program, found, order, bench);
    }
    run_once(client, program, found, order, bench)
}

/// Gives a tool without a duration as many requests as fit into it, by the rate of a short run.
fn run_counted(
    client: &'static Client,
    program: &Program,
    found: &Found,
    order: &Order,
    bench: &Bench,
) -> Result<ClientRun, ClientError> {
    let mut requests = TRIAL_REQUESTS.max(u64::from(order.connections));
    let mut rate = 0.0;
    for _ in 0..TRIALS_MAX {
        let trial = Order { requests: Some(requests), ..order.clone() };
        let ran = run_once(client, program, found, &trial, bench)?;
        let took = ran.report.duration.unwrap_or(ran.wall).as_secs_f64().max(1e-6);
        rate = requests as f64 / took;
        if took >= TRIAL_MIN.as_secs_f64() {
            break;
        }
        requests = requests.max((rate * 2.0 * TRIAL_MIN.as_secs_f64()) as u64);
    }
    let fit = (rate * order.duration.as_secs_f64()) as u64;
    let fit = fit.max(u64::from(order.connections)).max(1);
    let mut ran =
        run_once(client, program, found, &Order { requests: Some(fit), ..order.clone() }, bench)?;
    ran.notes.push(format!(
        "{} knows no duration: after a first run of {requests} requests at {rate:.0}/s it was asked \
         for {fit}, to last about {}",
        client.name, order.duration
    ));
    Ok(ran)
}

fn run_once(
    client: &'static Client,
    program: &Program,
    found: &Found,
    order: &Order,
    bench: &Bench,
) -> Result<ClientRun, ClientError> {
    let said = client.say(order)?;
    let command = typed(&found.binary, &said.arguments);
    let longest = order.duration.saturating_add(order.timeout).saturating_add(bench.grace);
    let begun = clock::monotonic();
    let (mut process, dir) = Process::start(client.name, found, &said, bench)?;
    let ended = process.wait(longest).map_err(system(client.name, "waiting for", &found.binary))?;
    let wall = clock::monotonic() - begun;
    let text = process.output();
    drop(process);
    drop(dir);
    let Some(ended) = ended else {
        let tail = tail(&text);
        return Err(ClientError::TooLong { client: client.name, command, longest, tail });
    };
    let exit = child::describe(ended.status);
    let tool = classic::named(program.reads).expect("every client's tool is in the registry");
    // The last report counts, if a tool prints several.
    let report = (tool.read)(&text).ok().and_then(|mut reports| reports.pop());
    let Some(report) = report else {
        let tail = tail(&text);
        return Err(ClientError::NoReport { client: client.name, command, ended: exit, tail });
    };
    let printed = report.version.clone().unwrap_or_default();
    let version = if found.version.is_empty() { printed } else { found.version.clone() };
    Ok(ClientRun {
        tool: tool.name,
        version,
        command,
        report,
        text,
        notes: said.notes,
        cpu: ended.cpu,
        wall,
        max_rss: ended.memory_max,
        exit,
        counts_differently: tool.counts_differently,
    })
}

/// The process of a tool; it is ended on drop.
struct Process {
    child: Child,
    reaped: bool,
    outputs: Vec<JoinHandle<Vec<u8>>>,
    _guardian: Option<Guardian>,
}

impl Process {
    /// Starts it in a folder of its own, which is also its home.
    fn start(
        client: &'static str,
        found: &Found,
        said: &Said,
        bench: &Bench,
    ) -> Result<(Self, TempDir), ClientError> {
        let dir = tempfile::Builder::new()
            .prefix(&format!("{client}-"))
            .tempdir_in(bench.scratch)
            .map_err(system(client, "making a folder in", bench.scratch))?;
        for (name, content) in &said.files {
            let path = dir.path().join(name);
            fs::write(&path, content).map_err(system(client, "writing", &path))?;
        }
        let starting = || system(client, "starting", &found.binary);
        let (out, out_in) = pipe().map_err(starting())?;
        let (err, err_in) = pipe().map_err(starting())?;
        let arguments = said.arguments.iter().map(OsString::from);
        let spec = Spec {
            argv: std::iter::once(found.binary.clone().into()).chain(arguments).collect(),
            dir: dir.path().to_owned(),
            env: vec![("HOME".to_owned(), dir.path().to_string_lossy().into_owned())],
            stdout: out_in,
            stderr: err_in,
            cpus: bench.cpus.to_owned(),
            cgroups: Vec::new(),
            // None: it runs in the network of the caller, the load's.
            network: None,
        };
        let child = child::spawn(spec).map_err(starting())?;
        server::hold(child.pid());
        // Without a guardian, only SIGKILL of this process leaves the tool running.
        let guardian = child::guard(&Ward { group: child.pid(), cgroup: None }).ok();
        let mut process = Self { child, reaped: false, outputs: Vec::new(), _guardian: guardian };
        for pipe in [out, err] {
            process.outputs.push(drain(pipe).map_err(starting())?);
        }
        Ok((process, dir))
    }

    /// Waits for its end; `None` when it had not ended after `longest`, and was killed.
    fn wait(&mut self, longest: Nanos) -> io::Result<Option<Ended>> {
        let in_time = child::wait_until_ended(&self.child, longest)?;
        let ended = self.end()?;
        Ok(ended.filter(|_| in_time))
    }

    /// Ends what is left of its group, and reaps it only then: until it is reaped, no other process can get its
    /// number.
    fn end(&mut self) -> io::Result<Option<Ended>> {
        if self.reaped {
            return Ok(None);
        }
        let killed = child::send_group(self.child.pid(), Signal::SIGKILL);
        let gone = child::wait_until_ended(&self.child, KILLED_END_MAX)?;
        let ended = if gone { self.child.try_wait_with_use()? } else { None };
        self.reaped = ended.is_some();
        if self.reaped {
            server::let_go(self.child.pid());
        }
        killed.map(|()| ended)
    }

    /// What it printed; its writers have already ended.
    fn output(&mut self) -> String {
        let outputs: Vec<Vec<u8>> =
            self.outputs.drain(..).filter_map(|thread| thread.join().ok()).collect();
        String::from_utf8_lossy(&outputs.join(&b'\n')).into_owned()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The guardian ends what this cannot; an error here has no receiver.
        let _ = self.end();
    }
}

fn pipe() -> io::Result<(File, File)> {
    let (read, write): (OwnedFd, OwnedFd) =
        rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    Ok((File::from(read), File::from(write)))
}

/// Reads a pipe to its end and keeps the last of it.
fn drain(mut pipe: File) -> io::Result<JoinHandle<Vec<u8>>> {
    let read = move || {
        let (mut kept, mut buf) = (Vec::new(), vec![0; 16 << 10]);
        loop {
            match pipe.read(&mut buf) {
                Ok(0) => break,
                Ok(read) => kept.extend_from_slice(&buf[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
            if kept.len() > 2 * OUTPUT_BYTES_MAX {
                kept.drain(..kept.len() - OUTPUT_BYTES_MAX);
            }
        }
        kept.drain(..kept.len().saturating_sub(OUTPUT_BYTES_MAX));
        kept
    };
    std::thread::Builder::new().name("client-output".to_owned()).spawn(read)
}

fn system(
    client: &'static str,
    what: &'static str,
    path: &Path,
) -> impl FnOnce(io::Error) -> ClientError + use<> {
    let path = PathBuf::from(path);
    move |source| ClientError::System { client, what, path, source }
}

fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    match lines.as_slice() {
        [] => "(nothing)".to_owned(),
        lines => lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n"),
    }
}
