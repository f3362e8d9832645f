//! HdrHistogram's log (version 1.3): one histogram a line, deflated and in base64, with a tag. Of a load, every
//! interval with its response and its service times; of a run, the service times of every interval after the cut of
//! every measured visit, tagged with contender and cell. Histograms are in nanoseconds, the column of maxima in
//! milliseconds. Start reading at [`OUTPUT`].

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use record::{LoadRecord, RunRecord, VisitState};
use stats::Histogram;
use units::Nanos;

use crate::measured::{cell_name, whose};
use crate::wording::name_of;
use crate::{Options, Output, Render, Written};

/// The log.
pub(crate) static OUTPUT: Output = Output {
    name: "hlog",
    extension: "hlog",
    about: "histograms of every interval, for HdrHistogram's tools",
    written: Written::OnRequest,
    run: Some(Render::Text(render)),
    load: Some(Render::Text(render_load)),
};

fn render(record: &RunRecord, _: &Options) -> String {
    let started =
        format!("#[joust run {}, started {}]\n", tag(&record.plan.name), tag(&record.started));
    let mut log = started + HEAD;
    let is_measured = |visit: &&record::Visit| visit.state == VisitState::Measured;
    for visit in record.visits.iter().filter(is_measured) {
        let cell = cell_name(record, visit.cell);
        let tag = tag(&whose(&cell, &name_of(&record.plan.contenders, visit.contender)));
        let intervals = visit.load.iter().flat_map(|load| &load.intervals);
        for interval in intervals.filter(|interval| interval.start >= visit.cut) {
            let start = visit.started + interval.start;
            line(&mut log, &tag, (start, interval.length), &interval.service);
        }
    }
    log
}

fn render_load(record: &LoadRecord, _: &Options) -> String {
    let started = record
        .began_unix_ms
        .map(|millis| format!("#[StartTime: {:.3} (seconds since epoch)]\n", millis as f64 / 1e3));
    let base = started
        .as_ref()
        .map_or(Nanos::ZERO, |_| Nanos::from_millis(record.began_unix_ms.unwrap_or_default()));
    let mut log = started.unwrap_or_default() + HEAD;
    for interval in &record.intervals {
        let span = (base + interval.start, interval.length);
        line(&mut log, "response", span, &interval.response);
        line(&mut log, "service", span, &interval.service);
    }
    log
}

const HEAD: &str = "#[Histogram log format version 1.3]\n\
                    \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n";

fn line(log: &mut String, tag: &str, (start, length): (Nanos, Nanos), spans: &Histogram) {
    let max = spans.max().unwrap_or_default().as_millis_f64();
    let encoded = STANDARD.encode(spans.encode());
    let [start, length] = [start, length].map(Nanos::as_secs_f64);
    let _ = writeln!(log, "Tag={tag},{start:.3},{length:.3},{max:.3},{encoded}");
}

/// A tag has no space, comma or line break.
fn tag(name: &str) -> String {
    let safe = |c: char| if c.is_whitespace() || c == ',' || c.is_control() { '_' } else { c };
    name.chars().map(safe).collect()
}

#[cfg(test)]
mod tests {
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    use super::*;
    use crate::testdata;

    /// Tag and histogram of every line, read by the library.
    fn read(log: &str) -> Vec<(String, hdrhistogram::Histogram<u64>)> {
        let entries = IntervalLogIterator::new(log.as_bytes());
        let histogram = |entry| match entry {
            LogEntry::Interval(interval) => {
                let bytes = STANDARD.decode(interval.encoded_histogram()).unwrap();
                let histogram = Deserializer::new().deserialize(&mut &bytes[..]).unwrap();
                Some((interval.tag().unwrap().as_str().to_owned(), histogram))
            }
            LogEntry::StartTime(_) | LogEntry::BaseTime(_) => None,
        };
        entries.filter_map(|entry| histogram(entry.unwrap())).collect()
    }

    #[test]
    fn the_library_reads_back_what_was_measured_contender_by_contender() {
        let run = testdata::celled();
        let read = read(&render(&run, &Options::default()));
        let own = read.iter().filter(|(tag, _)| tag == "joust_prefork_at_connections=10");
        let of_visits = |visit: &&record::Visit| visit.cell == 1 && visit.contender == 1;
        let visits = run.visits.iter().filter(of_visits);
        let expected: u64 = visits.map(|one| one.service_after_cut().unwrap().count()).sum();
        assert!(expected > 0);
        assert_eq!(own.map(|(_, histogram)| histogram.len()).sum::<u64>(), expected);
    }

    #[test]
    fn the_library_reads_both_times_of_a_load() {
        let mut load = testdata::load();
        load.began_unix_ms = Some(1_795_000_000_123);
        let log = render_load(&load, &Options::default());
        let read = read(&log);
        assert_eq!(read.len(), 2 * load.intervals.len());
        let p99 = read[1].1.value_at_quantile(0.99);
        assert_eq!(Nanos(p99), load.intervals[0].service.quantile(0.99).unwrap());
        assert!(log.contains("\nTag=service,1795000000.423,0.700,"), "{}", &log[..400]);
    }

    #[test]
    fn a_tag_cannot_break_its_line() {
        assert_eq!(tag("a, b\n\"c\""), "a__b_\"c\"");
    }
}
