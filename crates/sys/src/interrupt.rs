//! Ctrl-C as a flag: the first SIGINT, SIGTERM or SIGHUP (a closed terminal) requests an orderly end, a second one of
//! its kind ends the process at once. For programs that check the flag now and then; a server that waits for signals
//! uses [`crate::signals`].

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
/// None in practice: the signals can always be caught.
pub fn install() -> io::Result<&'static AtomicBool> {
    // SA_RESETHAND: a second signal of the kind has the default action, so that a program that hangs in its orderly end
    // can still be stopped from the keyboard.
    let action =
        SigAction::new(SigHandler::Handler(note_it), SaFlags::SA_RESETHAND, SigSet::empty());
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        // SAFETY: the handler only stores to an atomic, which is async-signal-safe.
        let before = unsafe { sigaction(signal, &action) }?;
        if signal == Signal::SIGHUP && matches!(before.handler(), SigHandler::SigIgn) {
            // Under nohup(1) the program has to continue without its terminal.
            // SAFETY: restores the previous action.
            unsafe { sigaction(signal, &before) }?;
        }
    }
    Ok(&INTERRUPTED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_signal_of_a_kind_sets_the_flag_unless_it_is_ignored() {
        let flag = install().unwrap();
        assert!(!flag.load(Ordering::Relaxed));
        for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
            nix::sys::signal::raise(signal).unwrap();
            assert!(flag.swap(false, Ordering::Relaxed), "{signal}");
        }
        let ignored = SigAction::new(SigHandler::SigIgn, SaFlags::empty(), SigSet::empty());
        // SAFETY: ignoring a signal runs no code.
        unsafe { sigaction(Signal::SIGHUP, &ignored) }.unwrap();
        install().unwrap();
        nix::sys::signal::raise(Signal::SIGHUP).unwrap();
        assert!(!flag.load(Ordering::Relaxed), "nohup");
    }
}
