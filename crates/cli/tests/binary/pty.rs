//! A program on its own terminal, as for a person: what it draws, and keys. Start reading at
//! [`OnTerminal::start`]. The bench of the live screen uses it too.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use nix::pty::{Winsize, openpty};
use nix::sys::termios::{LocalFlags, tcgetattr};

/// Longest wait for expected output; generous, because machines are busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running program whose stdin and stderr are a terminal; stdout is a pipe.
pub struct OnTerminal {
    child: Child,
    terminal: File,
    chunks: Receiver<Vec<u8>>,
    drawn: String,
}

impl OnTerminal {
    /// Starts the program on a terminal of that size, which is its controlling terminal.
    pub fn start(rows: u16, columns: u16, program: &str, args: &[&str]) -> io::Result<Self> {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        let pty = openpty(&size, None)?;
        // setsid (util-linux) makes its stdin the controlling terminal, then becomes the program.
        let child = Command::new("setsid")
            .args(["--ctty", program])
            .args(args)
            .env("TERM", "xterm")
            .env("LC_ALL", "C.UTF-8")
            .stdin(Stdio::from(pty.slave.try_clone()?))
            .stderr(Stdio::from(pty.slave))
            .stdout(Stdio::piped())
            .spawn()?;
        let chunks = drain(pty.master.try_clone()?);
        Ok(Self { child, terminal: File::from(pty.master), chunks, drawn: String::new() })
    }

    /// Types keys.
    #[allow(dead_code, reason = "the bench has no hands")]
    pub fn press(&mut self, keys: &str) {
        self.terminal.write_all(keys.as_bytes()).expect("a terminal takes keys");
    }

    /// Process id.
    #[allow(dead_code, reason = "the bench sends no signals")]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until something has been drawn.
    #[allow(dead_code, reason = "the bench does not look")]
    pub fn wait_for(&mut self, what: &str) {
        let begun = Instant::now();
        while !self.drawn.contains(what) {
            let left = PATIENCE.saturating_sub(begun.elapsed());
            match self.chunks.recv_timeout(left) {
                Ok(chunk) => self.drawn.push_str(&String::from_utf8_lossy(&chunk)),
                Err(_) => panic!("no `{what}` in {} bytes that were drawn", self.drawn.len()),
            }
        }
    }

    /// Waits for its end. Returns what it printed, with everything it drew as stderr.
    pub fn output(self) -> io::Result<Output> {
        let Self { child, terminal, chunks, drawn } = self;
        let mut output = child.wait_with_output()?;
        let lines_are_made = tcgetattr(terminal.as_fd())?.local_flags.contains(LocalFlags::ICANON);
        assert!(lines_are_made, "the terminal was left in raw mode");
        output.stderr = drawn.into_bytes();
        output.stderr.extend(chunks.iter().flatten());
        Ok(output)
    }
}

/// Reads everything that is drawn, so that the program never waits for its terminal.
fn drain(master: OwnedFd) -> Receiver<Vec<u8>> {
    let (chunk, chunks) = mpsc::channel();
    let mut master = File::from(master);
    thread::spawn(move || {
        let mut buffer = [0; 16_384];
        // EIO: nobody has the terminal open any more.
        while let Ok(n_bytes @ 1..) = master.read(&mut buffer) {
            if chunk.send(buffer[..n_bytes].to_vec()).is_err() {
                break;
            }
        }
    });
    chunks
}
