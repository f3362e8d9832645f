//! The random numbers of http_load: the same sequence in each run.

use rand::SeedableRng as _;
use rand_pcg::Pcg64Mcg;

/// For the choice of URLs and for `-jitter`.
pub(super) fn random() -> Pcg64Mcg {
    Pcg64Mcg::seed_from_u64(1)
}
