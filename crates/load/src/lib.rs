//! Owns the load generator: pacing, connections, workers, recorder; one request alone ([`fetch`]); a
//! simulated driver in virtual time ([`sim`]). Must not know servers by name, terminals or argv.
//! Start reading at [`run`], then `worker`.
//!
//! ```no_run
//! let mut options = joust_load::LoadOptions::new("http://127.0.0.1:8080/");
//! options.requests = Some(1000);
//! let plan = options.plan().expect("a plan");
//! let interrupt = std::sync::atomic::AtomicBool::new(false);
//! let record = joust_load::run(&plan, &joust_load::Control::new(&interrupt)).expect("a record");
//! assert_eq!(record.requests.started, 1000);
//! ```

mod conn;
mod fetch;
mod options;
mod pacing;
mod recorder;
mod request;
mod run;
mod series;
mod shares;
pub mod sim;
mod timeouts;
pub mod url;
mod worker;

pub use fetch::{FETCH_BODY_MAX, FetchError, Fetched, fetch};
pub use options::{
    CONNECTIONS_MAX, INTERVAL_MIN, LoadOptions, PlanError, RAW_MAX, THREADS_MAX, TIMEOUT_MAX,
};
pub use run::{Control, LoadError, run, run_on};
