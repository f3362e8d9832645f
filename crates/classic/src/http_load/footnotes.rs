//! What http_load's report hides or gets wrong, for the run at hand. Owns the sentences; must not change a figure.
//! Start reading at [`footnotes`].

use record::LoadRecord;

use super::figures::Figures;
use super::flags::Start;
use super::plan::{SLOTS, Subject};
use crate::command::notes::found;

/// Largest number that a float printed with 6 digits holds exactly.
const EXACT_MAX: u64 = 999_999;

/// One sentence for each point that applies; possibly none.
pub(super) fn footnotes(subject: &Subject, figures: &Figures, record: &LoadRecord) -> Vec<String> {
    let mut notes = Vec::new();
    let completed = figures.completed;
    if record.interrupted {
        return vec![format!(
            "http_load prints no report when it is interrupted; completed: {}",
            fetches(completed)
        )];
    }
    if let Start::Rate(timer) = subject.flags.start
        && (timer.rate() - f64::from(timer.typed)).abs() / f64::from(timer.typed) > 0.001
    {
        let law = if timer.jitters { "intervals between" } else { "a period of" };
        let (low, high) = timer.jitter_ms();
        let millis = match timer.jitters {
            true => format!("{low} and {high} ms"),
            false => format!("{} ms", timer.period_ms()),
        };
        notes.push(format!(
            "http_load's timer has whole milliseconds: -rate {} is {law} {millis}, so {:.1} fetches a \
             second",
            timer.typed,
            timer.rate()
        ));
    }
    if figures.overflows {
        let at = figures.elapsed as f64 / 1e6;
        notes.push(format!(
            "after {at:.3} s all {SLOTS} connections that http_load can have were in use: there it \
             stops, so later fetches are in no figure"
        ));
    }
    let lost = figures.lost;
    if lost > 0 {
        let n = if lost == 1 { "1 fetch".to_owned() } else { format!("{lost} fetches") };
        notes.push(format!(
            "http_load counts {n} without a reply among the fetches and in the rate"
        ));
    }
    if figures.non_2xx > 0 {
        let n = figures.non_2xx;
        notes.push(format!("of the fetches in the rate {n} had a status other than 2xx"));
    }
    if figures.complete_but_bad > 0 && !subject.flags.checksum {
        let (bad, whole) = (figures.bad, figures.complete_but_bad);
        notes.push(format!(
            "http_load compares lengths with those of the first fetch of each URL: of {bad} bad byte \
             counts {whole} were complete replies"
        ));
    }
    notes.extend(omissions(subject, figures, record));
    notes
}

fn fetches(n: u64) -> String {
    if n == 1 { "1 fetch".to_owned() } else { format!("{n} fetches") }
}

fn omissions(subject: &Subject, figures: &Figures, record: &LoadRecord) -> Vec<String> {
    let mut notes = Vec::new();
    if record.requests.unanswered > 0 && !figures.overflows {
        let n = fetches(record.requests.unanswered);
        notes.push(format!(
            "{n} were in flight when the time was over: the slowest are in no figure"
        ));
    }
    if matches!(subject.flags.start, Start::Parallel(_))
        && let Some(longest) = record.service_ms.max
    {
        let half = record
            .service_ms
            .p50
            .map_or(String::new(), |p50| format!("half of them took up to {p50:.3} ms, "));
        notes.push(format!(
            "http_load does not time whole fetches: {half}the longest {longest:.3} ms, from the \
             request to the last byte"
        ));
    }
    if figures.bytes > EXACT_MAX {
        let bytes = figures.bytes;
        notes.push(format!("http_load prints 6 digits: the exact number is {bytes} bytes"));
    }
    if figures.is_thinned {
        let every = record.raw_stride;
        notes.push(format!(
            "every {every}th fetch was kept: messages and bad byte counts are of those, all other figures \
             of all; -fetches keeps all"
        ));
    }
    if figures.unsaid > 0 {
        notes.push(format!("{} more messages were left out", figures.unsaid));
    }
    if record.errors.timeout_reading > 0 {
        notes.push(
            "in http_load -timeout limits each silence; here it limits the whole body, too"
                .to_owned(),
        );
    }
    notes.extend(found(record));
    notes
}
