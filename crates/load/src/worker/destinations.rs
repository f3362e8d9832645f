//! Where connections lead, and from when on they may be used, according to the plan. Start reading at
//! [`Destinations`].

use record::{LoadPlan, Origin, Pacing};
use sys::driver::{Peer, Route, Slot};
use units::Nanos;

use crate::free::FreePlaces;
use crate::proxy;
use crate::shares::ThreadShare;

/// The origins of the plan, and those that users found; by index.
pub(super) struct Destinations {
    pub(super) origins: Vec<Origin>,
    /// How each slot connects: from each local address in turn.
    pub(super) routes: Vec<Vec<Route>>,
    /// The request to a proxy before TLS begins; empty if there is no tunnel.
    pub(super) tunnels: Vec<Vec<u8>>,
}

impl Destinations {
    pub(super) fn new(plan: &LoadPlan) -> Self {
        let mut all = Self { origins: Vec::new(), routes: Vec::new(), tunnels: Vec::new() };
        plan.origins.iter().for_each(|origin| all.add(plan, origin.clone()));
        all
    }

    pub(super) fn add(&mut self, plan: &LoadPlan, origin: Origin) {
        self.routes.push(routes(plan, &origin));
        self.tunnels.push(proxy::connect_request(plan, &origin));
        self.origins.push(origin);
    }
}

/// The places that are free at the start.
pub(super) fn free_places(plan: &LoadPlan, share: ThreadShare) -> FreePlaces {
    FreePlaces::new(share.connections, plan.pipeline, begins(plan, share))
}

/// When each place is free at the start. Users with think time do not all begin at once, because they would stay in
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

/// How an origin is reached: from each local address in turn.
fn routes(plan: &LoadPlan, origin: &Origin) -> Vec<Route> {
    let to = match &origin.place {
        record::ServerAddress::Inet(addr) => Peer::Inet(*addr),
        record::ServerAddress::Unix(path) => Peer::Unix(path.clone()),
    };
    let one = |from| Route { to: to.clone(), from };
    if plan.sources.is_empty() || matches!(to, Peer::Unix(_)) {
        vec![one(None)]
    } else {
        plan.sources.iter().map(|addr| one(Some(*addr))).collect()
    }
}
