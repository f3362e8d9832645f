//! A load over real sockets. Owns the choice between io_uring and epoll, and the limit of open files.
//! Start reading at [`run`].

use std::io;

use record::{Engine, LoadPlan, LoadRecord, Stamps};
use sys::epoll_driver::EpollDriver;
use sys::socket;
use sys::uring_driver::{self, UringDriver};

use crate::run::{Control, LoadError, run_on};

/// Files that a process has open in addition to its connections: standard streams, epoll sets, a log.
const FILES_BESIDES: u64 = 32;

/// Carries out a plan over real sockets.
///
/// The calling thread gathers intervals. Meanwhile it is pinned to the plan's CPUs too, so that it takes no CPU time
/// from the server.
///
/// # Errors
/// The generator cannot work; see [`LoadError`]. A server that cannot be reached is no error: its
/// requests fail in the record.
pub fn run(plan: &LoadPlan, control: &Control<'_>) -> Result<LoadRecord, LoadError> {
    let limit = socket::raise_file_limit().unwrap_or_else(|_| socket::file_limit());
    let needed = u64::from(plan.connections) + u64::from(plan.threads) + FILES_BESIDES;
    if needed > limit {
        return Err(LoadError::Files { connections: plan.connections, needed, limit });
    }
    let uses_uring = match (plan.engine, uring_driver::is_available(plan.connections)) {
        (Engine::Epoll, _) => false,
        (_, Ok(())) => true,
        (Engine::Uring, Err(source)) => {
            return Err(LoadError::Engine { hint: hint(&source), source });
        }
        (Engine::Auto, Err(source)) => {
            control.say(&format!("io_uring cannot be used ({source}): using epoll"));
            false
        }
    };
    let (busy_poll, stamped) = (plan.busy_poll, plan.stamps == Stamps::Kernel);
    if uses_uring {
        run_on(plan, control, |_thread, n_slots| {
            Ok(UringDriver::new(n_slots)?.busy_polling(busy_poll).with_kernel_stamps(stamped))
        })
    } else {
        run_on(plan, control, |_thread, n_slots| {
            Ok(EpollDriver::new(n_slots)?.busy_polling(busy_poll).with_kernel_stamps(stamped))
        })
    }
}

/// Whether this kernel lets this process use io_uring as the generator needs it.
///
/// # Errors
/// Why not.
pub fn uring_is_available() -> io::Result<()> {
    uring_driver::is_available(1)
}

/// What helps if the kernel refuses.
fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "it is off (sysctl kernel.io_uring_disabled), or a sandbox forbids it"
        }
        io::ErrorKind::OutOfMemory => {
            "the limit of locked memory (ulimit -l) is too low for this many connections"
        }
        _ => "it needs Linux 6.1 or later",
    }
}
