//! When requests are due. Owns the list of arrival laws; must not know connections or HTTP.
//! Start reading at [`Law`]. To add a law: its file here, a variant of [`record::Pacing`], and an
//! arm in [`law`].

mod closed;

use units::Nanos;

/// A law by which requests become due, as one thread of the generator follows it.
///
/// The worker keeps its free slots in the order in which they became free and gives the one that
/// waits longest the next request that is due. Requests that are due while no slot is free need no
/// queue: the law names its instants one by one, in rising order, and how far the next one lies in
/// the past is the backlog. That delay is in the response time, since `due` is the law's instant and
/// not that of sending.
pub(crate) trait Law: Send {
    /// When the next request is due, for a slot that is free since `free`; [`Nanos::MAX`] for never.
    /// Asking changes nothing.
    fn due(&self, free: Nanos) -> Nanos;

    /// Takes the next request: the same answer as [`Law::due`], and the one after is next.
    fn take(&mut self, free: Nanos) -> Nanos;
}

/// The law that a plan names.
pub(crate) fn law(pacing: record::Pacing) -> Box<dyn Law> {
    match pacing {
        record::Pacing::Closed => Box::new(closed::Closed),
    }
}
