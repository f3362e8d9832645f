//! Which driver carries out a plan. Owns the choice between io_uring and epoll; must not know what is
//! done with it. Start reading at [`run`].

use std::io;

use record::{Engine, LoadPlan, LoadRecord, Stamps};
use sys::epoll_driver::EpollDriver;
use sys::uring_driver::{self, UringDriver};

use crate::run::{Control, LoadError, run_on};

/// Carries out the plan on the engine that it names, or on the best that the kernel allows.
///
/// # Errors
/// As [`crate::run`].
pub(crate) fn run(plan: &LoadPlan, control: &Control<'_>) -> Result<LoadRecord, LoadError> {
    let uses_uring = match (plan.engine, uring_driver::is_available(plan.connections)) {
        (Engine::Epoll, _) => false,
        (_, Ok(())) => true,
        (Engine::Uring, Err(source)) => {
            return Err(LoadError::Engine { hint: hint(&source), source });
        }
        (Engine::Auto, Err(source)) => {
            control.say(&format!("io_uring cannot be used ({source}): the engine is epoll"));
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

/// What helps against a kernel that refuses.
fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "it is switched off (sysctl kernel.io_uring_disabled), or a sandbox forbids it"
        }
        io::ErrorKind::OutOfMemory => {
            "the limit of locked memory is too low for so many connections"
        }
        _ => "it wants Linux 6.1 or later",
    }
}
