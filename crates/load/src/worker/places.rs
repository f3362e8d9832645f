//! Where connections lead, and from when on they may be used, as the plan has it. Owns no state.

use record::{LoadPlan, Origin, Pacing};
use sys::driver::{Peer, Route, Slot};
use units::Nanos;

use crate::free::FreePlaces;
use crate::proxy;
use crate::shares::ThreadShare;

/// The places that are free at the start.
pub(super) fn free_places(plan: &LoadPlan, share: ThreadShare) -> FreePlaces {
    FreePlaces::new(share.connections, plan.pipeline, begins(plan, share))
}

/// When each place is free at the start. Users who think do not begin all at once, or they would stay in
/// step: their first requests are spread over one pause.
pub(super) fn begins(plan: &LoadPlan, share: ThreadShare) -> impl Fn(Slot) -> Nanos {
    let pause = match plan.pacing {
        Pacing::Think { pause, .. } => pause.0,
        _ => 0,
    };
    let of = u128::from(share.turn.of);
    move |slot: Slot| {
        let number = u128::from(share.turn.first + slot.0);
        Nanos((u128::from(pause) * number / of) as u64)
    }
}

/// What a proxy is asked before TLS begins with each origin.
pub(super) fn tunnels(plan: &LoadPlan, origins: &[Origin]) -> Vec<Vec<u8>> {
    origins.iter().map(|origin| proxy::connect_request(plan, origin)).collect()
}

/// How an origin is reached: from each local address in turn.
pub(super) fn routes(plan: &LoadPlan, origin: &Origin) -> Vec<Route> {
    let to = match &origin.place {
        record::Place::Inet(addr) => Peer::Inet(*addr),
        record::Place::Unix(path) => Peer::Unix(path.clone()),
    };
    let one = |from| Route { to: to.clone(), from };
    if plan.sources.is_empty() || matches!(to, Peer::Unix(_)) {
        vec![one(None)]
    } else {
        plan.sources.iter().map(|addr| one(Some(*addr))).collect()
    }
}
