//! The process of one load: it gets a plan, begins when it is told, and says what it measured, window by window. It ends
//! when its agent is gone, or did not prolong its time. Start reading at [`main`].

use std::io::{self, BufRead as _, BufReader};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use fleet::coverage::WINDOW;
use fleet::message::{Content, Window};
use fleet::worker::{Said, Told, WorkerTotals, read_job};
use load::Control;
use miette::{IntoDiagnostic as _, miette};
use record::{Interval, LoadPlan};
use sys::clock::{boottime, monotonic};
use units::Nanos;

use crate::trouble::{Ended, Trouble};

/// How often the time is looked at.
const WATCH: Duration = Duration::from_millis(50);

pub fn main() -> Result<Ended, Trouble> {
    // Its agent may be killed, which ends nothing by itself.
    sys::process::die_with_parent().into_diagnostic().map_err(Trouble::failed)?;
    let mut stdin = BufReader::new(io::stdin());
    let plan = read_job(&mut stdin).map_err(|error| {
        Trouble::usage(miette!(
            "joust agent --worker is started by an agent: no job on stdin ({error})"
        ))
    })?;
    let interrupt = sys::interrupt::install().into_diagnostic().map_err(Trouble::failed)?;
    let said = measured(&plan, stdin, interrupt).unwrap_or_else(Said::Failed);
    // If nobody reads it, nobody is there.
    said.write(&mut io::stdout().lock()).ok();
    Ok(Ended::Well)
}

/// Makes the load; what is returned is said last.
fn measured(
    plan: &LoadPlan,
    stdin: BufReader<io::Stdin>,
    interrupt: &'static AtomicBool,
) -> Result<Said, String> {
    crate::load::check_servers_listen(plan).map_err(|trouble| trouble.report.to_string())?;
    let until = Arc::new(AtomicU64::new(u64::MAX));
    let (start, started) = mpsc::channel();
    let deadline = until.clone();
    let listen = thread::Builder::new().name("orders".to_owned());
    listen
        .spawn(move || obey(stdin, &start, &deadline, interrupt))
        .and_then(|_| {
            thread::Builder::new()
                .name("deadline".to_owned())
                .spawn(move || watch(&until, interrupt))
        })
        .map_err(|error| format!("cannot start a thread: {error}"))?;
    say(&Said::Ready);
    let Some(at) = wait(&started, interrupt) else {
        return Err("it was ended before it began".to_owned());
    };
    let windows = Mutex::new(Windows::default());
    let add = |interval: &Interval| windows.lock().expect("nobody panics with it").add(interval);
    let begun = |at: Nanos| say(&Said::Begun(at));
    let sampler = lab::sampler::Sampler::around(plan).ok();
    let control = Control::new(interrupt).starting_at(at).begun(&begun).watching(&add);
    let record = load::run(plan, &control);
    let mut record = record.map_err(|error| error.to_string())?;
    say(&Said::Ended);
    record.machine = sampler.map(|sampler| Box::new(sampler.finish().0));
    let mut windows = windows.into_inner().expect("nobody panics with it");
    windows.flush();
    for part in fleet::agent::parts(record.to_json().as_bytes()) {
        say(&Said::Content(part.encode()));
    }
    Ok(Said::Over(WorkerTotals {
        windows: windows.count,
        started: record.requests.started,
        done: record.requests.done,
        interrupted: record.interrupted,
    }))
}

/// The agent reads at once; if it is gone, so is this process.
fn say(said: &Said) {
    said.write(&mut io::stdout().lock()).ok();
}

/// Does what the agent says, until it is gone.
fn obey(
    stdin: BufReader<io::Stdin>,
    start: &Sender<Nanos>,
    until: &AtomicU64,
    interrupt: &AtomicBool,
) {
    for line in stdin.lines().map_while(Result::ok) {
        match Told::parse(&line) {
            Some(Told::Start(at, last)) => {
                until.store(since_boot(last), Ordering::Relaxed);
                start.send(at).ok();
            }
            Some(Told::Until(last)) => until.store(since_boot(last), Ordering::Relaxed),
            Some(Told::End) => interrupt.store(true, Ordering::Relaxed),
            // Of a newer agent; it says the same in a way that is known.
            None => {}
        }
    }
    interrupt.store(true, Ordering::Relaxed);
}

/// An instant of CLOCK_MONOTONIC, which stands still while a machine sleeps, as one of CLOCK_BOOTTIME, which does not.
fn since_boot(at: Nanos) -> u64 {
    boottime().saturating_add(at.saturating_sub(monotonic())).0
}

/// Ends the load when its time is over, also if the agent is stopped and cannot.
fn watch(until: &AtomicU64, interrupt: &AtomicBool) {
    while !interrupt.load(Ordering::Relaxed) {
        if boottime().0 > until.load(Ordering::Relaxed) {
            interrupt.store(true, Ordering::Relaxed);
        }
        thread::sleep(WATCH);
    }
}

fn wait(started: &Receiver<Nanos>, interrupt: &AtomicBool) -> Option<Nanos> {
    while !interrupt.load(Ordering::Relaxed) {
        if let Ok(at) = started.recv_timeout(WATCH) {
            return Some(at);
        }
    }
    None
}

/// Intervals joined to windows.
#[derive(Default)]
struct Windows {
    open: Option<(u32, Interval)>,
    count: u32,
    started: u64,
    done: u64,
}

impl Windows {
    fn add(&mut self, interval: &Interval) {
        let number = (interval.start.0 / WINDOW.0) as u32;
        match &mut self.open {
            Some((open, sum)) if *open == number => {
                sum.merge(interval);
                sum.length = interval.end().saturating_sub(sum.start);
            }
            _ => {
                self.flush();
                self.open = Some((number, interval.clone()));
            }
        }
        let (_, open) = self.open.as_ref().expect("it was added");
        if open.length >= WINDOW {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let Some((number, happened)) = self.open.take() else { return };
        self.count = self.count.max(number + 1);
        self.started += happened.started;
        self.done += happened.ok + happened.errors.total();
        let window = Window { number, in_flight: self.started.saturating_sub(self.done), happened };
        say(&Said::Content(Content::Window(Box::new(window)).encode()));
    }
}
