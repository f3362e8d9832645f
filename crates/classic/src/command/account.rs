//! Whether a tool's report accounts for every request of the load. Start reading at [`close`].
//!
//! Cost: a few sums per load.

use record::{Imbalance, LoadRecord};

use super::{Closing, Finished, Printer};

/// How a report accounts for the requests of a load.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RequestAccount {
    /// Requests of the load that the figures include.
    pub counted: u64,
    /// The sum of the figures by outcome, for the outcomes that the tool distinguishes.
    pub by_outcome: u64,
    /// Requests of the load that the tool leaves out: unfinished ones, and those that it would not have made.
    pub left_out: u64,
}

impl RequestAccount {
    /// Compares it with what was measured.
    ///
    /// # Errors
    /// The report has more or fewer requests than the load.
    pub fn check(self, record: &LoadRecord) -> Result<(), Imbalance> {
        let Self { counted, by_outcome, left_out } = self;
        let started = record.requests.started;
        let what = "requests of the load and those in the report or left out of it";
        Imbalance::check(what, started, counted + left_out)?;
        Imbalance::check("requests in the report and their outcomes", counted, by_outcome)
    }
}

/// Lets a tool finish a load, and compares its report with what was measured.
///
/// # Errors
/// They do not agree: then there is no report.
pub fn close(printer: &mut dyn Printer, finished: &Finished<'_>) -> Result<Closing, Imbalance> {
    let closing = printer.closing(finished);
    if let Some(tally) = closing.tally {
        tally.check(finished.record)?;
    }
    Ok(closing)
}

#[cfg(test)]
mod tests {
    use record::LoadPlan;

    use super::*;

    /// Half of the results, like a log that keeps every other sample.
    struct Forgetful(RequestAccount);

    impl Printer for Forgetful {
        fn opening(&mut self) -> super::super::Texts {
            super::super::Texts::default()
        }

        fn closing(&mut self, _: &Finished<'_>) -> Closing {
            Closing { tally: Some(self.0), ..Closing::default() }
        }
    }

    #[test]
    fn a_report_of_other_requests_than_the_load_s_is_none() {
        let mut record = LoadRecord::empty(LoadPlan::get(([127, 0, 0, 1], 80).into(), "/"));
        record.requests.started = 30;
        let local_time = |_| unreachable!("nothing is dated");
        let finished =
            Finished { record: &record, began: units::Nanos::ZERO, local_time: &local_time };
        let closed = |counted, by_outcome, left_out| {
            let mut printer = Forgetful(RequestAccount { counted, by_outcome, left_out });
            close(&mut printer, &finished).map(|_| ()).map_err(|wrong| wrong.to_string())
        };
        assert_eq!(closed(28, 28, 2), Ok(()));
        let lost = closed(15, 15, 0).unwrap_err();
        assert!(lost.contains("left out of it should be equal, but are 30 and 15"), "{lost}");
        let torn = closed(30, 29, 0).unwrap_err();
        assert!(torn.contains("their outcomes should be equal, but are 30 and 29"), "{torn}");
    }
}
