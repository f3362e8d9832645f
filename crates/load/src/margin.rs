//! How long before an instant a thread must be awake to be there on time. Owns the estimate. Start reading
//! at [`Margin::overslept`].

use units::Nanos;

/// Upper bound of the estimate: a thread that oversleeps by more lost the CPU, and spinning would not help.
const MARGIN_MAX: Nanos = Nanos::from_micros(150);

/// Lower bound: one round of the worker's own loop.
const MARGIN_MIN: Nanos = Nanos::from_micros(5);

/// If a wake-up was earlier than the estimate, the estimate falls by this part of the difference.
const DECAY: u64 = 32;

/// Time by which a sleep is shortened, learnt from how late wake-ups were: a few us on a machine whose CPUs do not
/// sleep deeply, 100 us in a virtual one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Margin(Nanos);

impl Margin {
    /// Before anything is learnt: the longest.
    pub(crate) fn new() -> Self {
        Self(MARGIN_MAX)
    }

    /// The margin now.
    #[inline]
    pub(crate) fn get(self) -> Nanos {
        self.0
    }

    /// A sleep ended `by` after it should have. The margin rises at once and falls slowly, so it stays above most
    /// wake-ups: near the latest of the last thirty or so.
    #[inline]
    pub(crate) fn overslept(&mut self, by: Nanos) {
        let fallen = self.0.0 - self.0.0.saturating_sub(by.0) / DECAY;
        self.0 = Nanos(fallen.max(by.0)).clamp(MARGIN_MIN, MARGIN_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_rises_at_once_and_falls_slowly_within_its_bounds() {
        let mut margin = Margin::new();
        (0..500).for_each(|_| margin.overslept(Nanos::from_micros(20)));
        assert!((20_000..21_000).contains(&margin.get().0), "{:?}", margin);
        margin.overslept(Nanos::from_micros(80));
        assert_eq!(margin.get(), Nanos::from_micros(80));
        margin.overslept(Nanos::from_micros(20));
        assert!(margin.get() > Nanos::from_micros(75));
        margin.overslept(Nanos::from_millis(30));
        assert_eq!(margin.get(), MARGIN_MAX);
        (0..2000).for_each(|_| margin.overslept(Nanos::ZERO));
        assert_eq!(margin.get(), MARGIN_MIN);
    }
}
