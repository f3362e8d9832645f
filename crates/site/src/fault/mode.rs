//! `mode`: every second start of the server is slower, as the layout of memory or a random choice at the
//! start can make it. Start reading at [`Mode`].
//!
//! The first process of the server reads the fault. If its pid is odd, each request costs its thread additional CPU
//! time, in a loop. With a seed the seed's parity decides instead. A request costs this server about 50 us of CPU,
//! kernel included, so 5 us are about 10 %.

use std::sync::Arc;

use units::Nanos;

use super::{Effect, FaultKind, spec};

/// The fault.
pub(super) static ITEM: FaultKind = FaultKind {
    name: "mode",
    forms: "mode=pid (every second start needs more CPU time per request), with ,cost:5us and ,seed=N",
    is_unique: true,
    read: |spec| {
        let number = spec.seed_given()?.unwrap_or_else(|| std::process::id().into());
        let cost = spec.named("cost").map(|typed| spec::time(typed, COST_MAX)).transpose()?;
        match spec.first("`pid`")? {
            "pid" if number % 2 == 0 => Ok(Arc::new(Mode { cost: Nanos::ZERO })),
            "pid" => Ok(Arc::new(Mode { cost: cost.unwrap_or(COST) })),
            other => Err(format!("`{other}` is not pid")),
        }
    },
};

/// The default of `cost`.
const COST: Nanos = Nanos::from_micros(5);

/// A larger cost is better planted as a delay.
const COST_MAX: Nanos = Nanos::from_millis(100);

/// The mode that this start is in.
#[derive(Debug)]
struct Mode {
    /// CPU time of each request; none in a fast start.
    cost: Nanos,
}

impl Effect for Mode {
    fn cost(&self) -> Nanos {
        self.cost
    }
}
