//! Owns the processes of a started server: spawned into a group and a cgroup, under a guardian, and ended to the last
//! one. Start reading at [`Processes::spawn`] and [`Processes::end`].

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

use sys::child::{self, Child, Guardian, Signal, Spec, Ward};
use sys::clock;
use sys::namespace::NetNamespace;
use units::Nanos;

use super::{Conditions, OUTPUT, ServerError, files};
use crate::adapters::Rendered;
use crate::cgroup::Cgroup;
use crate::tree::Tree;
use crate::{left, prepare};

/// Time between two looks at the end of a process.
const LOOK: Duration = Duration::from_millis(1);
/// Number of looks between two signals to end.
const SIGNAL_EVERY_LOOKS: u32 = 25;
/// How long an orderly end may take before SIGKILL.
const ORDERLY_END_MAX: Nanos = Nanos::from_secs(5);
/// How long the kernel may take to clear away killed processes.
const KILLED_END_MAX: Nanos = Nanos::from_secs(10);

/// The processes of a server; they are ended on drop.
#[derive(Debug)]
pub(super) struct Processes {
    child: Child,
    tree: Tree,
    stop: Signal,
    // Every process of it that was seen while it ends. A process that left its group and ended is no longer in any
    // list of the tree, but is still a zombie of ours.
    seen: BTreeSet<u32>,
    ended: bool,
    // Dismissed last, when nothing is left to guard.
    _guardian: Option<Guardian>,
}

impl Processes {
    pub(super) fn spawn(
        server: &'static str,
        dir: &Path,
        rendered: &Rendered,
        cpus: &[u32],
        conditions: &Conditions,
    ) -> Result<Self, ServerError> {
        static ADOPT: Once = Once::new();
        // If it fails, orphans go to init, which reaps them as well.
        ADOPT.call_once(|| drop(child::adopt_orphans()));
        let log = dir.join(OUTPUT);
        let output = File::create(&log).map_err(files(server, "writing", &log))?;
        let errors = output.try_clone().map_err(files(server, "writing", &log))?;
        let cgroup = Cgroup::create();
        let network = conditions.net.server().map(NetNamespace::try_clone).transpose();
        let network = network.map_err(files(server, "entering the network of", dir))?;
        let mut env = rendered.env.clone();
        env.extend(prepare::padding(conditions.padding));
        let spec = Spec {
            argv: rendered.command.clone(),
            dir: rendered.cwd.as_deref().unwrap_or(dir).to_owned(),
            env,
            stdout: output,
            stderr: errors,
            cpus: cpus.to_owned(),
            cgroups: cgroup.iter().filter_map(|cgroup| cgroup.joined().ok()).flatten().collect(),
            network,
        };
        let spawned = child::spawn(spec);
        let child = match spawned {
            Ok(child) => child,
            Err(source) => {
                if let Some(cgroup) = cgroup {
                    cgroup.remove();
                }
                let program = PathBuf::from(rendered.command.first().cloned().unwrap_or_default());
                return Err(ServerError::Spawn { server, program, source });
            }
        };
        let tree = Tree::new(child.pid(), cgroup);
        let cgroup = tree.cgroup().and_then(Cgroup::killable_dir).map(Path::to_owned);
        // Without a guardian, only SIGKILL of this process leaves the server running.
        let guardian = child::guard(&Ward { group: child.pid(), cgroup }).ok();
        hold(child.pid());
        let processes = Self {
            child,
            tree,
            stop: rendered.stop,
            seen: BTreeSet::new(),
            ended: false,
            _guardian: guardian,
        };
        // For the next run, in case both we and the guardian are killed. A server that has ended by now has left
        // nothing; the readiness check will report that it ended.
        match left::note(dir, processes.pid(), processes.tree.cgroup().map(Cgroup::dir)) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(files(server, "writing in", dir)(source))
            }
            _ => Ok(processes),
        }
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.pid()
    }

    pub(super) fn tree(&self) -> &Tree {
        &self.tree
    }

    /// How the first process ended, if it ended by itself.
    pub(super) fn exit_status(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok()?
    }

    /// Ends all processes; true if force was needed.
    pub(super) fn end(&mut self) -> bool {
        if self.ended {
            return false;
        }
        self.ended = true;
        // A loop that checks a flag before it sleeps (lighttpd) misses a signal that arrives in between, and then
        // sleeps for a second. So the signal is repeated, which has no further effect.
        let mut looks = 0_u32;
        let orderly = until(ORDERLY_END_MAX, || {
            if looks.is_multiple_of(SIGNAL_EVERY_LOOKS) {
                // If the signal fails, the process is seen to stay.
                let _ = child::send(self.child.pid(), self.stop);
            }
            looks += 1;
            self.is_gone()
        });
        if !orderly {
            until(KILLED_END_MAX, || {
                self.tree.kill();
                self.is_gone()
            });
        }
        let_go(self.child.pid());
        self.tree.forget();
        !orderly
    }

    /// Whether the first process has been reaped and no other is left. Also reaps orphans: Apache waits for a
    /// request's CGI program until the program's number is free, even if cgid, its parent, ended before it.
    fn is_gone(&mut self) -> bool {
        let reaped = !matches!(self.child.try_wait(), Ok(None));
        let left = self.left();
        reaped && left.is_empty()
    }

    pub(super) fn left(&mut self) -> Vec<u32> {
        let group = self.child.pid();
        child::reap_group(group);
        self.seen.extend(self.tree.pids());
        // A process that is not our child yet will be, once its parent has ended.
        self.seen.retain(|&pid| {
            child::reap(pid);
            Path::new(&format!("/proc/{pid}")).exists()
        });
        self.seen.iter().copied().collect()
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        self.end();
    }
}

/// Servers that run now, and the tools that load them, by the number of their first process.
static LIVE: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

fn live() -> MutexGuard<'static, BTreeSet<u32>> {
    // A panic elsewhere leaves the set valid: entries are only inserted and removed.
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds a first process to those that [`running`] lists, until [`let_go`] removes it.
pub(crate) fn hold(pid: u32) {
    live().insert(pid);
}

/// Removes a process that has ended.
pub(crate) fn let_go(pid: u32) {
    live().remove(&pid);
}

/// First processes of the servers, and of the tools that load them, that this process runs now.
pub fn running() -> Vec<u32> {
    live().iter().copied().collect()
}

/// Looks once a millisecond until `done` is true, for at most `longest`; returns whether it was.
fn until(longest: Nanos, mut done: impl FnMut() -> bool) -> bool {
    let begun = clock::monotonic();
    while !done() {
        if clock::monotonic() - begun > longest {
            return false;
        }
        std::thread::sleep(LOOK);
    }
    true
}
