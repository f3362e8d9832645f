//! The record of an agent that sent windows and no record of its own: it was lost, or its worker was killed. Start
//! reading at [`partial_record`].

use std::collections::BTreeMap;

use record::{Completions, Interval, LatencyMillis, LoadPlan, LoadRecord};
use units::Nanos;

use crate::coverage::WINDOW;
use crate::message::Window;

/// What the windows that came tell of a load. The plan has the agent's share.
///
/// A request whose start lies in a missing window counts as started in the window in which it ended. One of which no
/// end is known is unanswered. Figures that windows do not have (time to connect, of the target rate) are absent.
pub fn partial_record(plan: &LoadPlan, windows: impl IntoIterator<Item = Window>) -> LoadRecord {
    let mut record = LoadRecord::empty(plan.for_record());
    without_samples(&mut record);
    let mut sums: BTreeMap<u32, Interval> = BTreeMap::new();
    for window in windows {
        let start = Nanos(u64::from(window.number) * WINDOW.0);
        let sum = sums.entry(window.number).or_insert_with(|| Interval::packed(start, Nanos::ZERO));
        sum.length = sum.length.max(window.happened.end().saturating_sub(start));
        sum.merge(&window.happened);
    }
    let mut cpu = Nanos::ZERO;
    for mut sum in sums.into_values() {
        let requests = &mut record.requests;
        let failed = sum.errors.total();
        let (known, ended) = (requests.started + sum.started, requests.done + sum.ok + failed);
        sum.started += ended.saturating_sub(known);
        requests.started += sum.started;
        requests.done = ended;
        requests.ok += sum.ok;
        requests.failed += failed;
        record.errors.merge(&sum.errors);
        for (status, count) in &sum.status {
            *record.status.entry(*status).or_default() += count;
        }
        record.bytes.read += sum.bytes_read;
        record.seconds = record.seconds.max(sum.end().as_secs_f64());
        record.latencies.service.merge(&sum.service);
        record.latencies.response.merge(&sum.response);
        cpu += sum.client_cpu;
        sum.service.pack();
        sum.response.pack();
        record.intervals.push(sum);
    }
    let requests = &mut record.requests;
    requests.unanswered = requests.started - requests.done;
    if record.seconds > 0.0 {
        record.rate_per_s = requests.ok as f64 / record.seconds;
    }
    record.cpu_us_per_request =
        (requests.done > 0).then(|| cpu.as_micros_f64() / requests.done as f64);
    record.service_ms = LatencyMillis::from(&record.latencies.service);
    record.response_ms = LatencyMillis::from(&record.latencies.response);
    record
}

/// Leaves out what windows do not have, single requests and completions by time: those of some agents would look like
/// those of all.
pub fn without_samples(record: &mut LoadRecord) {
    record.completions = Completions::default();
    record.raw = Vec::new();
    record.raw_names = BTreeMap::new();
    (record.raw_stride, record.plan.raw_max) = (1, 0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::tests::window;

    #[test]
    fn what_is_missing_leaves_a_record_that_adds_up() {
        let plan = crate::tests::plan();
        let known = [0, 1, 4].map(|number| window("a-1", number.into(), number, &[100, 200]));
        let mut windows = known.map(|message| message.window().clone());
        // More ended than were started in it: they were started in those that are missing.
        windows[2].happened.started = 0;
        let record = partial_record(&plan, windows);
        record.balance().expect("it adds up");
        assert_eq!((record.requests.ok, record.requests.failed), (6, 3));
        assert_eq!((record.requests.started, record.requests.unanswered), (9, 0));
        assert_eq!(record.seconds, 5.0);
        assert_eq!(record.latencies.service.count(), 6);
    }

    #[test]
    fn an_agent_of_which_nothing_came_has_an_empty_record() {
        let record = partial_record(&crate::tests::plan(), []);
        record.balance().expect("it adds up");
        assert_eq!((record.requests.started, record.rate_per_s), (0, 0.0));
    }
}
