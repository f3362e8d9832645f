//! Owns what is kept of past runs and what changed over them: a database beside the results that
//! indexes run files, series of a figure over runs, and the comparison of two runs. Must not know
//! servers, nor how anything is shown. Start reading at [`History`], then at [`compare`].
//!
//! The run files stay the record: the database holds what is looked up often, and can be made again
//! from them.

mod compare;
mod configuration;
mod database;
mod error;
mod figures;
mod filter;
mod machine;
mod schema;
mod series;
#[cfg(test)]
mod testdata;

pub use compare::{CompareError, Question, Reference, compare};
pub use database::{Added, History};
pub use error::HistoryError;
pub use filter::Filter;
