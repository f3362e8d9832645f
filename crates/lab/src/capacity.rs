//! Owns the visit that looks for the highest rate a server holds: a search by open-loop loads on one running
//! server. Start reading at [`find`].
//!
//! A search makes each try once ([`SearchOptions::repeats`] 1). Blocks average out a chance that misleads one search:
//! each has a fresh start, and the verdict's interval is made of their spread.

use load::SearchOptions;
use record::{LoadPlan, LoadRecord, Pacing, SearchPlan, SearchRecord};
use units::{Nanos, PerSecond};

/// Length of the closed loop that shows roughly where the limit is.
const GUESS: Nanos = Nanos::from_millis(300);

/// The options of a study's search.
pub(crate) fn options(search: &SearchPlan) -> SearchOptions {
    SearchOptions {
        precision: search.precision,
        tries_max: search.tries_max,
        repeats: 1,
        ..SearchOptions::new(search.goals.clone())
    }
}

/// Finds the highest rate; `closed` is the visit's load as a closed loop, `measure` makes one load.
pub(crate) fn find<E>(
    search: &SearchPlan,
    closed: &LoadPlan,
    measure: &mut dyn FnMut(&LoadPlan) -> Result<LoadRecord, E>,
) -> Result<SearchRecord, E> {
    let mut first = closed.clone();
    first.stop.duration = Some(GUESS);
    let guess = measure(&first)?;
    let high_guess = Some(PerSecond(guess.rate_per_s)).filter(|rate| rate.0 > 0.0);
    let options = SearchOptions { high_guess, ..options(search) };
    let mut at_rate =
        |rate| measure(&LoadPlan { pacing: Pacing::Poisson { rate }, ..closed.clone() });
    load::search(&options, &mut at_rate, &mut |_| ())
}
