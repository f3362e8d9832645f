//! Owns the statistics behind a verdict: quantiles, intervals, tests, bootstrap, warm-up. Pure
//! functions on numbers; must not know where numbers come from, and reads no clock, file or socket.
//! Start reading at [`Paired`] (a comparison) and [`decide`] (its answer), at [`Histogram`] (a
//! distribution) and [`shift`] (two of them), or at [`indistinct_groups`] (many).
//!
//! ```
//! // Of three p values, Holm's correction leaves one below 5 %.
//! let adjusted = joust_stats::holm(&[0.01, 0.04, 0.03]);
//! assert!((adjusted[0] - 0.03).abs() < 1e-12);
//! assert_eq!(adjusted.iter().filter(|p| **p < 0.05).count(), 1);
//! ```

mod anderson_darling;
mod bca;
mod best;
mod biweight;
mod bootstrap;
mod change_points;
mod clusters;
mod confidence;
mod decision;
mod dip;
mod equivalence;
mod explained;
mod groups;
mod harrell_davis;
mod hdr_v2;
mod histogram;
mod histogram_sum;
mod hodges_lehmann;
mod holm;
pub mod leb128;
mod missing;
mod moments;
mod packed;
mod paired;
mod power;
mod quantile;
mod resample;
mod scalability;
mod shift;
mod shuffles;
mod student;
mod trend;
mod two_sample;
mod warm_up;

pub use anderson_darling::{
    AndersonDarling, anderson_darling_exponential, anderson_darling_p, anderson_darling_uniform,
};
pub use bca::bca_bootstrap;
pub use best::{Better, best_chances};
pub use biweight::outlying;
pub use bootstrap::{BOOTSTRAP_MIN, studentised_bootstrap};
pub use change_points::{SEGMENT_MIN, Steadiness, change_points, steadiness};
pub use clusters::{Mode, REPLICATES_MIN, TwoGaussians};
pub use confidence::ConfidenceInterval;
pub use decision::{Decision, Standard, decide};
pub use dip::{dip, dip_p};
pub use equivalence::{Tost, tost};
pub use explained::{Contribution, Explained, SideModes, StallMode, explain};
pub use groups::{GROUPS_MAX, group_letter, indistinct_groups};
pub use harrell_davis::harrell_davis;
pub use histogram::{DecodeError, Histogram, samples_needed};
pub use histogram_sum::HistogramSum;
pub use hodges_lehmann::{HodgesLehmann, hodges_lehmann};
pub use holm::{Held, held, holm};
pub use missing::BLOCKS_MISSING_MAX;
pub use packed::SPAN_MAX;
pub use paired::{BLOCKS_FOR_INTERVAL, BlockVisits, Paired, PairedError, PairedInterval};
pub use power::{BLOCKS_MIN, blocks_needed, smallest_difference};
pub use quantile::{
    effective_samples, lag1_autocorrelation, median, median_absolute_deviation, quantile,
    quantile_interval,
};
pub use scalability::{
    Coefficient, LEVELS_MIN, Scalability, ScalabilityError, ScalabilityPoint, fit_scalability,
};
pub use shift::{Profile, SHIFT_QUANTILES, ShiftPoint, shift};
pub use shuffles::Shuffles;
pub use student::t_quantile;
pub use trend::{TREND_POINTS_MIN, Trend};
pub use two_sample::{TwoSample, TwoSampleInterval};
pub use warm_up::{WarmUp, mser5};
