//! Owns the load generator: pacing, connections, workers, recorder; one request alone ([`fetch`]); a
//! simulated driver in virtual time ([`sim`]). Must not know servers by name, terminals or argv.
//! Start reading at [`run`], then `worker`.
//!
//! ```no_run
//! let mut options = joust_load::LoadOptions::new("http://127.0.0.1:8080/");
//! options.draft.stop.requests = Some(1000);
//! let plan = options.plan().expect("a plan");
//! let interrupt = std::sync::atomic::AtomicBool::new(false);
//! let record = joust_load::run(&plan, &joust_load::Control::new(&interrupt)).expect("a record");
//! assert_eq!(record.requests.started, 1000);
//! ```

#![warn(clippy::cast_lossless)]

mod backlog;
mod check;
mod columns;
mod conn;
mod connect_to;
mod cookies;
mod engine;
mod fetch;
mod first_head;
mod follow;
mod free;
mod hashing;
mod location;
mod margin;
mod merge;
mod options;
mod oracle;
mod pacing;
mod picker;
mod placeholders;
mod prepared;
mod proxy;
mod recorder;
mod run;
mod search;
mod secure;
mod series;
mod shares;
pub mod sim;
pub mod source;
mod timeouts;
pub mod url;
mod user;
mod worker;

pub use columns::{ColumnError, ROWS_MAX, read_column};
pub use connect_to::ConnectToError;
pub use engine::{run, uring_is_available};
pub use fetch::{FETCH_BODY_MAX, FetchError, Fetched, fetch, fetch_until};
pub use merge::{MergeError, MergeInput, merge};
pub use options::{
    CONNECTIONS_MAX, FOLLOW_MAX, INTERVAL_MIN, LoadOptions, PIPELINE_MAX, PlanError, QUEUE_MAX,
    RAW_MAX, THREADS_MAX, TIMEOUT_MAX,
};
pub use oracle::{
    ORACLE_REQUESTS_MAX, Oracle, Unverified, WhyUnverified, expected_body, look_up_bodies,
    unverifiable,
};
pub use pacing::check as check_pacing;
pub use pacing::{
    INSTANTS_MAX, LENGTH_MAX, PacingError, RATE_MAX, ReplayError, STAGES_MAX, parse_ramp,
    parse_rate, parse_stages, parse_think, read_instants,
};
pub use placeholders::{PlaceholderError, columns_needed, literal_braces};
pub use prepared::{PrepareError, first_request};
pub use proxy::ProxyError;
pub use run::{Control, LoadError, run_on};
pub use search::{SearchOptions, search};
pub use secure::{TlsSetupError, check_tls};
