//! Owns what is kept of past runs and how figures changed over them: a database beside the results
//! that indexes run files, series of a figure over runs, and the comparison of two runs. Must not
//! know servers, nor how anything is shown. Start reading at [`History`], then at [`compare`].
//!
//! The run files stay the source of truth: the database holds what is looked up often, and can be
//! rebuilt from them.

mod compare;
mod configuration;
#[cfg(feature = "database")]
mod database;
#[cfg(feature = "database")]
mod error;
mod figures;
#[cfg(feature = "database")]
mod filter;
mod machine;
#[cfg(feature = "database")]
mod schema;
#[cfg(feature = "database")]
mod series;
#[cfg(test)]
mod testdata;

pub use compare::{CompareError, Question, Reference, compare};
#[cfg(feature = "database")]
pub use database::{Added, History};
#[cfg(feature = "database")]
pub use error::HistoryError;
#[cfg(feature = "database")]
pub use filter::Filter;
