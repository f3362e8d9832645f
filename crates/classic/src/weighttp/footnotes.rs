//! What weighttp's reports hide or get wrong, for the run at hand. Owns the sentences; must not change a figure. Start
//! reading at [`old`].

use record::{LoadRecord, Outcome, Sample};
use units::Nanos;

use super::flags::Flags;
use super::workers::Counts;
use crate::command::notes::found;

/// Share of the time above which an early finished thread is mentioned.
const IDLE_MIN: f64 = 0.05;

/// Rates below this lose a hundredth or more by truncation to whole numbers.
const SMALL: f64 = 100.0;

/// For 0.4: one sentence for each point that applies; possibly none.
pub(super) fn old(flags: &Flags, counts: &Counts, record: &LoadRecord) -> Vec<String> {
    let mut notes = Vec::new();
    if counts.errored > 0 {
        let n = counts.errored;
        notes.push(format!(
            "weighttp 0.4 always prints 0 errored requests: {n} of the failed were errors"
        ));
    }
    if counts.in_vain > 0 {
        let n = counts.in_vain;
        notes.push(format!(
            "{n} of the failed requests were not sent: weighttp 0.4 would have sent them on connections \
             that the server had closed, and they would have failed"
        ));
    }
    if counts.failed_bodies > 0 {
        let n = counts.failed_bodies;
        notes.push(format!("bytes http include {n} bytes of bodies of failed replies"));
    }
    if let Some(longest) = record.service_ms.max {
        let half = record.service_ms.p50;
        let half =
            half.map_or(String::new(), |p50| format!("half of them took up to {p50:.3} ms, "));
        notes.push(format!(
            "weighttp 0.4 measures no latency: {half}the longest {longest:.3} ms, from the request to \
             the last byte"
        ));
    }
    let seconds = record.seconds.max(1e-6);
    let per_s = counts.done as f64 / seconds;
    let kbytes = counts.bytes as f64 / seconds / 1024.0;
    if per_s < SMALL || kbytes < SMALL {
        notes.push(format!(
            "weighttp 0.4 cuts rates to whole numbers: they were {per_s:.2} req/s and {kbytes:.2} kbyte/s"
        ));
    }
    if flags.threads > 1 {
        notes.push("progress shows thread 1 only".to_owned());
    }
    notes.extend(common(counts, record));
    notes
}

/// For 0.5. A request that has waited `cut_off` seconds counts as hung when the load is interrupted.
pub(super) fn new(cut_off: u64, counts: &Counts, record: &LoadRecord) -> Vec<String> {
    let mut notes = Vec::new();
    let waited = |sample: &Sample| sample.done.saturating_sub(sample.sent.max(sample.due));
    let out = || record.raw.iter().filter(|sample| sample.outcome == Outcome::Unanswered);
    if out().count() > 0 {
        let cut_off = Nanos::from_secs(cut_off);
        let hung = out().filter(|sample| waited(sample) >= cut_off).count();
        let aborted = out().count() - hung;
        notes.push(format!(
            "at the end {hung} requests had waited for {cut_off} or longer (-s: hung), {aborted} for less \
             (aborted); they are in no other figure"
        ));
    }
    if counts.errored > 0 {
        let n = counts.errored;
        notes.push(format!(
            "{n} requests without a reply are in response_times, with the time until they failed"
        ));
    }
    notes.extend(common(counts, record));
    notes
}

/// For either version.
fn common(counts: &Counts, record: &LoadRecord) -> Vec<String> {
    let mut notes = Vec::new();
    let (first, last) = (counts.ends.iter().min(), counts.ends.iter().max());
    if let (Some(first), Some(last)) = (first, last)
        && last.saturating_sub(*first).as_secs_f64() > IDLE_MIN * last.as_secs_f64()
    {
        let secs = |end: &Nanos| end.as_secs_f64();
        notes.push(format!(
            "requests are divided before the start: one thread was done after {:.3} s and its \
             connections were idle then; the last was done after {:.3} s",
            secs(first),
            secs(last)
        ));
    }
    let lost = record.errors.connect_refused + record.errors.connect_failed;
    if lost > 0 {
        notes.push(format!(
            "{lost} connections could not be made; each is tried again after a pause here (1 to 100 ms), \
             by weighttp at once"
        ));
    }
    if counts.unsaid > 0 {
        notes.push(format!("{} more error lines were left out", counts.unsaid));
    }
    notes.extend(found(record));
    notes
}
