//! Owns the views of what was measured of one load: after the cut, before it drained. Must not judge. Start
//! reading at [`measured`].

use record::{Interval, LoadRecord, Pacing, Visit};

use crate::timeline::end;

/// The intervals that lie whole between the cut and the end of the window.
pub(crate) fn measured<'a>(
    visit: &Visit,
    load: &'a LoadRecord,
) -> impl Iterator<Item = &'a Interval> + Clone {
    let (cut, end) = (visit.cut, end(load));
    load.intervals.iter().filter(move |one| one.start >= cut && one.end() <= end)
}

/// What those intervals hold together; `None` where there is no such interval.
pub(crate) fn sum(visit: &Visit, load: &LoadRecord) -> Option<Interval> {
    let mut intervals = measured(visit, load);
    let mut sum = intervals.next()?.clone();
    for interval in intervals {
        sum.merge(interval);
        sum.length += interval.length;
    }
    Some(sum)
}

/// Whether each connection asked again as soon as it was answered.
pub(crate) fn is_closed_loop(load: &LoadRecord) -> bool {
    load.open_loop.is_none() && matches!(load.plan.pacing, Pacing::Closed)
}

/// Requests that could be in flight at once.
pub(crate) fn slots(load: &LoadRecord) -> u64 {
    u64::from(load.connections) * u64::from(load.plan.pipeline.max(1))
}

#[cfg(test)]
mod tests {
    use units::Nanos;

    use super::*;
    use crate::testdata;

    #[test]
    fn what_came_before_the_cut_or_while_it_drained_is_not_measured() {
        let run = testdata::run(&["a"], 1);
        let visit = &run.visits[0];
        let mut load = visit.load.clone().unwrap();
        let whole = sum(visit, &load).unwrap();
        assert_eq!(whole.length, Nanos::from_millis(800));
        let end = end(&load);
        load.intervals.push(Interval { ok: 7, ..Interval::new(end, Nanos::from_millis(100)) });
        assert_eq!(sum(visit, &load).unwrap().ok, whole.ok);
        let late = Visit { cut: end, ..visit.clone() };
        assert_eq!(sum(&late, &load), None);
    }
}
