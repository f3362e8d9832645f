//! Takes the terminal on stderr (raw mode, alternate screen, cursor), and always gives it back. Start reading at
//! [`take`].
//!
//! The end of the load, a signal's flag and a panic on any thread give it back under the lock of stderr. A frame is
//! written under the same lock, and only while the terminal is taken, so no frame overwrites later output.

use std::io::{self, Write};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};

/// Whether the terminal is taken. Changed only under the lock of stderr.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Whether stderr, which is a terminal, can be drawn on by this process.
pub fn can_draw() -> bool {
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    // In the background, changing the terminal's mode would stop the process (SIGTTOU).
    let foreground = rustix::termios::tcgetpgrp(io::stderr());
    !is_dumb && foreground.is_ok_and(|group| group == rustix::process::getpgrp())
}

/// Takes the terminal for drawing. [`give_back`] returns it; a panic does so automatically.
pub fn take() -> io::Result<()> {
    give_back_on_panic();
    let mut stderr = io::stderr().lock();
    enable_raw_mode()?;
    TAKEN.store(true, Ordering::Relaxed);
    execute!(stderr, EnterAlternateScreen, Hide).inspect_err(|_| give_back())
}

/// Restores the terminal; does nothing if it is not taken.
pub fn give_back() {
    let mut stderr = io::stderr().lock();
    if TAKEN.swap(false, Ordering::Relaxed) {
        // If it cannot be restored, it is gone, and nobody can be told.
        let _ = execute!(stderr, LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
    }
}

/// Before a panic message: on the alternate screen its text would vanish.
fn give_back_on_panic() {
    static HOOKED: Once = Once::new();
    HOOKED.call_once(|| {
        let told = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            told(panic);
        }));
    });
}

/// The destination of frames: each is one write, and is dropped if the terminal is no longer ours.
#[derive(Default)]
pub struct Tty {
    frame: Vec<u8>,
}

impl Write for Tty {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.frame.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut stderr = io::stderr().lock();
        let frame = std::mem::take(&mut self.frame);
        if TAKEN.load(Ordering::Relaxed) { stderr.write_all(&frame) } else { Ok(()) }
    }
}
