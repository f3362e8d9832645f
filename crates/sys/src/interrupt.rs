//! Ctrl-C as a flag: the first SIGINT or SIGTERM asks for an orderly end, the second ends at once.
//! For programs that look at the flag now and then; a server that waits for signals uses
//! [`crate::signals`].

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

extern "C" fn note_it(_: i32) {
    INTERRUPTED.store(true, Ordering::Relaxed);
}

/// Installs the handler and returns the flag that it sets.
///
/// # Errors
/// None in practice: the two signals can always be caught.
pub fn install() -> io::Result<&'static AtomicBool> {
    // SA_RESETHAND: a second signal of the kind meets the default action, so that a program that
    // hangs in its orderly end can still be stopped from the keyboard.
    let action =
        SigAction::new(SigHandler::Handler(note_it), SaFlags::SA_RESETHAND, SigSet::empty());
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        // SAFETY: the handler only stores to an atomic, which is async-signal-safe.
        unsafe { sigaction(signal, &action) }?;
    }
    Ok(&INTERRUPTED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_signal_sets_the_flag() {
        let flag = install().unwrap();
        assert!(!flag.load(Ordering::Relaxed));
        nix::sys::signal::raise(Signal::SIGINT).unwrap();
        assert!(flag.load(Ordering::Relaxed));
        install().unwrap();
    }
}
