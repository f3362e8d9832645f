//! A generation: the process that serves one reading of the configuration, from the fork that begins it to its message
//! when it fails. Owns what it shares with the supervisor. Start reading at [`Generation::begin`].

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use sys::identity::Identity;
use sys::mark::Marks;
use sys::process::{self, Ended, PANICKED, Pid, Signal};
use sys::signals;
use units::Nanos;

use crate::config::Config;
use crate::handover::Handover;
use crate::rights;
use crate::service::Service;

/// What ps and top show for the process that serves.
const NAME: &str = "joust serving";

/// Bytes of what a generation says when it fails.
const LAST_WORDS_MAX: usize = 4096;

/// Exit status of a generation that could not serve.
const FAILED: u8 = 1;

/// A process that serves, or is about to.
#[derive(Debug)]
pub(super) struct Generation {
    pub(super) pid: Pid,
    /// The configuration that it serves.
    pub(super) config: Config,
    /// Its user and group, if they are not the supervisor's.
    pub(super) identity: Option<Identity>,
    /// When it began.
    pub(super) born: Nanos,
    /// It was reaped, so another process may have its number.
    pub(super) has_ended: bool,
    handover: Handover,
    /// The marks of all that it has started.
    marks: Arc<Marks>,
    /// A byte to it lets it serve. From it comes the reason why it failed.
    line: UnixStream,
}

impl Generation {
    /// Forks a process that serves once it is told to. `config` is what the service was bound with.
    ///
    /// # Errors
    /// As [`process::fork`].
    pub(super) fn begin(service: &Service, config: Config, now: Nanos) -> io::Result<Self> {
        let (line, theirs) = UnixStream::pair()?;
        line.set_nonblocking(true)?;
        let confine = config.confine;
        let pid = process::fork(NAME, || live(service, confine, theirs))?;
        let handover = service.handover.clone();
        let identity = service.identity.clone();
        let marks = Arc::clone(&service.gateways.marks);
        Ok(Self { pid, config, identity, born: now, has_ended: false, handover, marks, line })
    }

    /// After its end: ends what its programs and applications have left running, if it could not.
    pub(super) fn end_programs(&self) {
        // It fails without /proc, which the generation has reported.
        let _ = self.marks.kill_all();
    }

    /// Lets it serve.
    pub(super) fn go(&self) {
        // It fails if the process is gone, which its end will show.
        let _ = (&self.line).write_all(&[0]);
    }

    /// Makes it drain and leave the first `queues` queues of the port to another. Its children learn that before the
    /// signal comes.
    pub(super) fn hand_over(&self, queues: usize) {
        self.handover.begin(queues);
        process::signal(self.pid, Signal::TERM);
    }

    /// Whether it accepts no more connections.
    pub(super) fn is_past(&self) -> bool {
        self.handover.is_free()
    }

    /// Whether something other than the supervisor (`kill`) asked it to end, and it has begun to. Its port takes no new
    /// connection, so the server ends with it.
    pub(super) fn was_ending(&self) -> bool {
        self.handover.has_closed_port()
    }

    /// Workers with which the next generation begins, if it is of the same model; 0: as many as its settings say.
    pub(super) fn workers_for(&self, next: &Config) -> usize {
        match self.config.model.name == next.model.name {
            true => self.handover.workers(),
            false => 0,
        }
    }

    /// Why it has ended, if that was an error.
    pub(super) fn reason(&self, ended: Ended) -> String {
        match (ended, self.last_words()) {
            (Ended::Killed(signal), _) => {
                format!("the process that served was killed by signal {signal}")
            }
            (Ended::Exited(PANICKED), words) if words.is_empty() => {
                "the process that served has ended by a panic".to_owned()
            }
            (Ended::Exited(status), words) if words.is_empty() => {
                format!("the process that served has ended with status {status}")
            }
            (Ended::Exited(_), words) => words,
        }
    }

    /// Whether something has happened to it that need not happen to another in its place: it was killed, it panicked,
    /// or it failed long after its beginning.
    pub(super) fn is_failure(&self, ended: Ended, now: Nanos) -> bool {
        match ended {
            Ended::Exited(0) => false,
            Ended::Killed(_) | Ended::Exited(PANICKED) => true,
            Ended::Exited(_) => now.saturating_sub(self.born) >= super::BEGINNING,
        }
    }

    /// What it said when it failed; empty if it said nothing.
    fn last_words(&self) -> String {
        let mut words = Vec::new();
        // Never waits: all that was said is there by now.
        let _ = (&self.line).take(LAST_WORDS_MAX as u64).read_to_end(&mut words);
        String::from_utf8_lossy(&words).into_owned()
    }
}

/// The life of a generation.
fn live(service: &Service, confine: bool, mut line: UnixStream) -> u8 {
    let begun = signals::in_generation().and_then(|()| line.read_exact(&mut [0]));
    let served = match begun {
        Ok(()) => {
            let begun = rights::give_up(service, confine);
            let served = begun.and_then(|applications| service.run_beside(applications));
            served.map_err(|error| error.to_string())
        }
        Err(error) => Err(format!("the process that was to serve could not begin: {error}")),
    };
    match served {
        Ok(()) => 0,
        Err(why) => {
            let words = &why.as_bytes()[..why.len().min(LAST_WORDS_MAX)];
            let _ = line.write_all(words);
            FAILED
        }
    }
}
