//! What an agent and the process of its load say to each other, over pipes: a job, then lines, one way; frames the
//! other way. Owns both ends of the protocol and the process. Start reading at [`WorkerProcess::start`].
//!
//! The load has a process of its own so that the agent outlives it: one that the kernel kills for lack of memory is
//! reported with its cause. It ends by itself when the agent is gone, when its controller was silent for too long, and
//! at the end of its plan: it needs nobody for that.

use std::ffi::OsString;
use std::io::{self, BufReader, Read, Write};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};

use record::LoadPlan;
use serde::{Deserialize, Serialize};
use units::Nanos;

/// Largest frame or job.
const FRAME_MAX: u32 = 256 << 20;

/// What the process of a load is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// Begin at the first instant of CLOCK_MONOTONIC, and go on until the second one at most.
    Start(Nanos, Nanos),
    /// Go on until this instant at most.
    Until(Nanos),
    /// End in order.
    End,
}

/// What the process of a load says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// It can begin.
    Ready,
    /// It has begun, at this instant of CLOCK_MONOTONIC.
    Begun(Nanos),
    /// A window or a part of the record, as [`crate::message::Content::encode`] wrote it.
    Content(Vec<u8>),
    /// The load is over; what it measured follows.
    Ended,
    /// All of it has been said.
    Over(WorkerTotals),
    /// It could not begin, or failed.
    Failed(String),
}

/// The sums of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerTotals {
    /// Windows.
    pub windows: u32,
    /// Requests started.
    pub started: u64,
    /// Requests that ended, well or not.
    pub done: u64,
    /// Whether it ended before its time.
    pub interrupted: bool,
}

impl Told {
    fn line(&self) -> String {
        match self {
            Self::Start(at, until) => format!("start {} {}\n", at.0, until.0),
            Self::Until(at) => format!("until {}\n", at.0),
            Self::End => "end\n".to_owned(),
        }
    }

    /// Reads a line; `None` for one that is not known.
    pub fn parse(line: &str) -> Option<Self> {
        let instant = |text: &str| text.parse().ok().map(Nanos);
        match line.trim_end().split_once(' ') {
            Some(("start", both)) => {
                let (at, until) = both.split_once(' ')?;
                Some(Self::Start(instant(at)?, instant(until)?))
            }
            Some(("until", at)) => instant(at).map(Self::Until),
            None if line.trim_end() == "end" => Some(Self::End),
            _ => None,
        }
    }
}

impl Said {
    /// Writes a frame.
    ///
    /// # Errors
    /// The agent is gone.
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let (kind, bytes) = match self {
            Self::Ready => (0, Vec::new()),
            Self::Begun(at) => (1, at.0.to_le_bytes().to_vec()),
            Self::Content(bytes) => (2, bytes.clone()),
            Self::Over(totals) => (3, serde_json::to_vec(totals).expect("plain data serialises")),
            Self::Ended => (5, Vec::new()),
            Self::Failed(why) => (4, why.clone().into_bytes()),
        };
        let mut frame = vec![kind];
        frame.extend_from_slice(&length(bytes.len())?.to_le_bytes());
        frame.extend_from_slice(&bytes);
        to.write_all(&frame)?;
        to.flush()
    }

    /// Reads a frame; `None` at the end.
    ///
    /// # Errors
    /// It is cut off, or none.
    pub fn read(from: &mut impl Read) -> io::Result<Option<Self>> {
        let mut kind = [0];
        if from.read(&mut kind)? == 0 {
            return Ok(None);
        }
        let bytes = sized(from)?;
        let said = match kind[0] {
            0 => Some(Self::Ready),
            1 => bytes.try_into().ok().map(|at| Self::Begun(Nanos(u64::from_le_bytes(at)))),
            2 => Some(Self::Content(bytes)),
            3 => serde_json::from_slice(&bytes).ok().map(Self::Over),
            5 => Some(Self::Ended),
            4 => Some(Self::Failed(String::from_utf8_lossy(&bytes).into_owned())),
            _ => None,
        };
        said.map(Some).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

/// Reads the job that comes before the lines.
///
/// # Errors
/// The agent is gone, or is of another version.
pub fn read_job(from: &mut impl Read) -> io::Result<LoadPlan> {
    Ok(serde_json::from_slice(&sized(from)?)?)
}

fn length(of: usize) -> io::Result<u32> {
    u32::try_from(of).ok().filter(|n| *n <= FRAME_MAX).ok_or(io::ErrorKind::InvalidInput.into())
}

fn sized(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = [0; 4];
    from.read_exact(&mut bytes)?;
    let length = u32::from_le_bytes(bytes);
    if length > FRAME_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = Vec::new();
    from.take(length.into()).read_to_end(&mut bytes)?;
    if bytes.len() < length as usize { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(bytes) }
}

/// The process of a load, until it is dropped, which ends it.
#[derive(Debug)]
pub struct WorkerProcess {
    child: Child,
    stdin: Option<ChildStdin>,
}

impl WorkerProcess {
    /// Starts one with its job. `take` gets what it says, on a thread of its own, and then `None` when it says no more.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(
        argv: &[OsString],
        plan: &LoadPlan,
        mut take: impl FnMut(Option<Said>) + Send + 'static,
    ) -> io::Result<Self> {
        let (program, args) = argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut child = Command::new(program)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Ctrl-C in a terminal is for the agent, which ends the load in order.
            .process_group(0)
            .spawn()?;
        let stdout = child.stdout.take().expect("it is piped");
        let mut worker = Self { stdin: child.stdin.take(), child };
        let mut from = BufReader::new(stdout);
        std::thread::Builder::new().name("worker-frames".to_owned()).spawn(move || {
            while let Ok(Some(said)) = Said::read(&mut from) {
                take(Some(said));
            }
            take(None);
        })?;
        let job = serde_json::to_vec(plan).expect("plain data serialises");
        let length = length(job.len())?.to_le_bytes();
        // If it has ended already, its end says why.
        worker.write(&length).and_then(|()| worker.write(&job)).ok();
        Ok(worker)
    }

    /// Tells it something. One that has ended hears nothing, which its end says.
    pub fn tell(&mut self, told: &Told) {
        self.write(told.line().as_bytes()).ok();
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let stdin = self.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        stdin.write_all(bytes)?;
        stdin.flush()
    }

    /// Ends it at once.
    pub fn kill(&mut self) {
        self.child.kill().ok();
    }

    /// Waits for its end, after it has said all, and says why it ended.
    pub fn wait(mut self) -> String {
        drop(self.stdin.take());
        self.child.wait().map_or_else(|error| error.to_string(), why)
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        drop(self.stdin.take());
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn why(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(9), _) => {
            "the process of the load was killed (signal 9): by hand, or because this machine \
                         or its cgroup has no memory left (see dmesg)"
                .to_owned()
        }
        (Some(signal), _) => format!("the process of the load was ended by signal {signal}"),
        (None, code) => {
            format!("the process of the load ended with code {}", code.unwrap_or_default())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_is_said_is_read() {
        let totals = WorkerTotals { windows: 3, started: 20, done: 19, interrupted: false };
        let all = [
            Said::Ready,
            Said::Begun(Nanos(7)),
            Said::Content(vec![1, 2, 3]),
            Said::Ended,
            Said::Over(totals),
            Said::Failed("no server".to_owned()),
        ];
        let mut bytes = Vec::new();
        all.iter().for_each(|said| said.write(&mut bytes).unwrap());
        let mut from = bytes.as_slice();
        for said in all {
            assert_eq!(Said::read(&mut from).unwrap(), Some(said));
        }
        assert_eq!(Said::read(&mut from).unwrap(), None);
        assert!(Said::read(&mut &bytes[..3]).is_err(), "cut off");
        for told in [Told::Start(Nanos(5), Nanos(9)), Told::Until(Nanos(6)), Told::End] {
            assert_eq!(Told::parse(&told.line()), Some(told));
        }
    }

    #[test]
    fn a_process_that_is_killed_or_ends_is_told_with_its_cause() {
        let run = |script: &str, kill: bool| {
            let (to, said) = mpsc::channel();
            let argv = ["sh", "-c", script].map(OsString::from);
            let take = move |said| {
                to.send(said).ok();
            };
            let mut worker =
                WorkerProcess::start(&argv, &crate::tests::plan(), take).expect("sh starts");
            if kill {
                worker.kill();
            }
            assert_eq!(said.recv_timeout(Duration::from_secs(10)), Ok(None));
            worker.wait()
        };
        assert!(run("exec sleep 100", true).contains("signal 9"));
        assert!(run("exit 7", false).ends_with("code 7"));
    }
}
