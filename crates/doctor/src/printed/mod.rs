//! Owns the examination of what other tools printed: reports of load tools and tables of results, alone or
//! several at once. Text in, findings out; nothing is measured here, so a finding is either arithmetic
//! (confirmed: no true numbers could have been printed so) or a pattern (suspected).
//! Start reading at [`read`] and [`examine`].
//!
//! ```
//! use joust_doctor::printed::{self, Source};
//!
//! let text = "| server | connections | req/s | mean latency |\n|---|---|---|---|\n\
//!             | a | 64 | 32000 | 2.00 ms |\n| b | 64 | 32000 | 9.00 ms |\n";
//! let printed = printed::read(vec![Source { name: "paste".into(), text: text.into() }]).unwrap();
//! let findings = printed::examine(&printed);
//! assert!(findings.iter().any(|finding| finding.check.name == "littles_law"));
//! ```

mod check;
mod checks;
mod failures;
mod figure;
mod findings;
mod from_report;
mod reading;
mod row;
mod table;
mod timers;
mod words;

#[cfg(test)]
mod testdata;

pub use check::{Conclusion, Effect, PrintedCheck, Seen};
pub use checks::CHECKS;
pub use figure::Figure;
pub use findings::{Part, PrintedFinding, Standing, Survival, asks, examine, survivals};
pub use reading::{NotReadable, read};
pub use row::{LoadKind, Origin, Phase, Printed, Row, Source};
