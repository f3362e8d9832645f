//! Thirty thousand requests under every model, with faults that end connections, answers and processes:
//! nothing is left behind. A million: `make bench-serve-soak`. Start reading at the test.

#[path = "support/soak.rs"]
mod soak;
mod support;

use std::time::Duration;

/// A heavily loaded machine gets through fewer, and what it did is judged.
const TIME_MAX: Duration = Duration::from_secs(60);

#[test]
fn thirty_thousand_requests_with_faults_leave_nothing_behind() {
    for model in support::models() {
        let soaked = soak::soak(model, 30_000, TIME_MAX);
        soaked.grown().unwrap_or_else(|what| panic!("{model}: {what}"));
        assert!(soaked.answered() > 0, "{model}");
    }
}
