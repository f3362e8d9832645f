//! What must add up in every record of a load: each request that was started has exactly one outcome, and sums by
//! status, by outcome, by thread and by interval agree. Owns the sums; must not know how they were counted. Start
//! reading at [`LoadRecord::balance`].
//!
//! Cost: one walk over the intervals and the statuses for each load, and nothing for each request.

use crate::load::LoadRecord;
use crate::sample::Outcome;

/// Two figures that should agree and do not: results were lost or counted twice.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the counts of this load do not add up: {what} should be equal, but are {left} and {right}. \
     None of its figures can be trusted: this is a bug in joust, please report it with the command line"
)]
pub struct Imbalance {
    /// Both figures, as in "A and B".
    pub what: &'static str,
    /// The first figure.
    pub left: u64,
    /// The second figure.
    pub right: u64,
}

impl Imbalance {
    /// Compares two figures.
    ///
    /// # Errors
    /// They differ.
    pub fn check(what: &'static str, left: u64, right: u64) -> Result<(), Self> {
        if left == right { Ok(()) } else { Err(Self { what, left, right }) }
    }
}

impl LoadRecord {
    /// Compares the sums of this record with each other.
    ///
    /// # Errors
    /// The first two that differ.
    pub fn balance(&self) -> Result<(), Imbalance> {
        let (requests, errors) = (&self.requests, &self.errors);
        let whole: u64 = errors.each().filter(|(of, _)| of.is_complete()).map(|(_, n)| n).sum();
        let ended = requests.done + requests.unanswered;
        Imbalance::check(
            "requests started and those ended or unanswered",
            requests.started,
            ended,
        )?;
        let outcomes = requests.ok + requests.failed;
        Imbalance::check("requests ended and those ok or failed", requests.done, outcomes)?;
        Imbalance::check("failed requests and errors by kind", requests.failed, errors.total())?;
        let statuses = self.status.values().sum();
        let complete = requests.ok + whole;
        Imbalance::check("complete replies and their statuses", complete, statuses)?;
        let broken: u64 = self.broken_status.values().sum();
        let most = requests.failed - whole;
        Imbalance::check("statuses of broken replies and broken replies", broken.max(most), most)?;
        let bodies = &self.bodies_verified;
        let wrong = errors.wrong_body;
        Imbalance::check(
            "bodies that differ and requests with a wrong body",
            bodies.differ.max(wrong),
            wrong,
        )?;
        let verified = bodies.verified.max(bodies.differ);
        Imbalance::check("bodies verified and those that differ", bodies.verified, verified)?;
        let most = complete.max(bodies.verified);
        Imbalance::check("complete replies and bodies verified", complete, most)?;
        self.balance_intervals()?;
        self.balance_connections()?;
        self.balance_raw()
    }

    fn balance_connections(&self) -> Result<(), Imbalance> {
        // An older file has none.
        if self.completions.bin > units::Nanos::ZERO {
            let replies = self.completions.total();
            Imbalance::check(
                "requests ok and their completions by time",
                self.requests.ok,
                replies,
            )?;
        }
        let ends = &self.connection_ends;
        let by_replies = ends.replies.values().sum::<u64>() + ends.others;
        Imbalance::check("connections that the server ended", ends.by_server, by_replies)
    }

    fn balance_intervals(&self) -> Result<(), Imbalance> {
        let sum = |of: fn(&crate::Interval) -> u64| self.intervals.iter().map(of).sum::<u64>();
        let requests = &self.requests;
        let each = [
            ("requests started and those of all intervals", requests.started, sum(|i| i.started)),
            ("requests ok and those of all intervals", requests.ok, sum(|i| i.ok)),
            ("bytes read and those of all intervals", self.bytes.read, sum(|i| i.bytes_read)),
        ];
        for (what, left, right) in each {
            Imbalance::check(what, left, right)?;
        }
        for (outcome, count) in self.errors.each() {
            let in_intervals =
                |mut errors: crate::ErrorCounts| errors.of(outcome).map_or(0, |n| *n);
            let in_all = self.intervals.iter().map(|i| in_intervals(i.errors)).sum();
            Imbalance::check("errors of a kind and those of all intervals", count, in_all)?;
        }
        for interval in self.intervals.iter().filter(|i| !i.ok_by_thread.is_empty()) {
            let by_thread = interval.ok_by_thread.iter().sum();
            Imbalance::check(
                "requests ok in an interval and on its threads",
                interval.ok,
                by_thread,
            )?;
        }
        Ok(())
    }

    /// The raw log holds every request, or every k-th of each thread.
    fn balance_raw(&self) -> Result<(), Imbalance> {
        let threads = u64::from(self.threads.max(1));
        if u64::from(self.plan.raw_max) < threads {
            return Ok(());
        }
        let (started, stride, kept) =
            (self.requests.started, self.raw_stride, self.raw.len() as u64);
        if stride == 1 {
            Imbalance::check("requests started and samples of a whole log", started, kept)?;
            let ok = self.raw.iter().filter(|sample| sample.outcome == Outcome::Ok).count();
            return Imbalance::check(
                "requests ok and those of a whole log",
                self.requests.ok,
                ok as u64,
            );
        }
        // The first sample of each thread is kept, whatever the stride.
        let (least, most) = (started / stride, started / stride + threads);
        Imbalance::check("samples of a log and the number expected", kept, kept.clamp(least, most))
    }
}

#[cfg(test)]
mod tests {
    use units::Nanos;

    use super::*;
    use crate::{Interval, LoadPlan};

    /// Ten requests: eight are good, one has an unexpected status, and one reply broke off after its head.
    fn record() -> LoadRecord {
        let mut record = LoadRecord::empty(LoadPlan::get(([127, 0, 0, 1], 80).into(), "/"));
        record.raw_stride = 4;
        record.plan.raw_max = 0;
        let requests = &mut record.requests;
        (requests.started, requests.done, requests.ok, requests.failed) = (11, 10, 8, 2);
        requests.unanswered = 1;
        record.errors.unexpected_status = 1;
        record.errors.reset_after_first_byte = 1;
        record.status = [(200, 8), (503, 1)].into();
        record.broken_status = [(200, 1)].into();
        record.bytes.read = 70;
        let mut interval = Interval::new(Nanos::ZERO, Nanos(1));
        (interval.started, interval.ok, interval.bytes_read) = (11, 8, 70);
        (interval.errors, interval.ok_by_thread) = (record.errors, vec![5, 3]);
        record.intervals = vec![interval];
        record
    }

    /// The canary: a single wrong figure is reported by name.
    #[test]
    fn a_record_that_lost_or_doubled_a_result_is_no_record() {
        assert_eq!(record().balance(), Ok(()));
        type Lie = fn(&mut LoadRecord);
        let lies: [(&str, Lie); 15] = [
            ("started", |r| r.requests.started += 1),
            ("ended or unanswered", |r| r.requests.unanswered = 0),
            ("ok or failed", |r| r.requests.ok -= 1),
            ("errors by kind", |r| r.errors.protocol += 1),
            ("their statuses", |r| r.status.clear()),
            ("broken replies", |r| *r.broken_status.entry(404).or_default() += 1),
            ("started and those of all intervals", |r| r.intervals[0].started -= 1),
            ("ok and those of all intervals", |r| r.intervals[0].ok -= 1),
            ("bytes read", |r| r.bytes.read += 1),
            ("errors of a kind", |r| {
                r.intervals[0].errors.reset_after_first_byte = 0;
                r.intervals[0].errors.protocol = 1;
            }),
            ("on its threads", |r| r.intervals[0].ok_by_thread[1] = 4),
            ("the number expected", |r| r.plan.raw_max = 10),
            ("a wrong body", |r| (r.bodies_verified.verified, r.bodies_verified.differ) = (1, 1)),
            ("those that differ", |r| {
                r.errors.wrong_body = 1;
                (r.errors.unexpected_status, r.bodies_verified.differ) = (0, 1);
            }),
            ("bodies verified", |r| r.bodies_verified.verified = 10),
        ];
        for (named, lie) in lies {
            let mut record = record();
            lie(&mut record);
            let wrong = record.balance().expect_err(named).to_string();
            assert!(wrong.contains(named), "{named}: {wrong}");
        }
    }
}
