//! poll(2) over a few files, for code that waits without its own event loop.
//! Start reading at [`wait_for`].

use std::io;

use rustix::event::{PollFd, Timespec, poll};
use units::Nanos;

/// Waits until one of the files is ready, a signal arrives, or the time is over (`None`: no limit).
/// Afterwards `files` say which are ready; none after a signal.
///
/// # Errors
/// ENOMEM.
pub fn wait_for(files: &mut [PollFd<'_>], most: Option<Nanos>) -> io::Result<()> {
    match poll(files, most.map(timespec).as_ref()) {
        Ok(_) => Ok(()),
        Err(rustix::io::Errno::INTR) => {
            files.iter_mut().for_each(PollFd::clear_revents);
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

/// A time in the form that poll takes.
pub fn timespec(time: Nanos) -> Timespec {
    Timespec { tv_sec: (time.0 / 1_000_000_000) as i64, tv_nsec: (time.0 % 1_000_000_000) as _ }
}
