//! A contender that the user had skipped while a run went on.

use serde::{Deserialize, Serialize};

/// A contender that the user had skipped for the rest of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserSkip {
    /// Index of the contender.
    pub contender: usize,
    /// The block, from 0, in which it was skipped.
    pub block: u32,
}
