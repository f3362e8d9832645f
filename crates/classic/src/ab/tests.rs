//! Writing ab's report and parsing it back, and its layout with fixed figures.

use std::path::PathBuf;

use proptest::prelude::*;
use record::{AtEnd, LoadPlan, LoadRecord, Outcome, Sample};
use units::{Bytes, Nanos};

use super::figures::Figures;
use super::flags::{self, Flags};
use super::printer::Ab;
use super::server::Server;
use super::{html, read, text};
use crate::command::testing::{World, args, sample};
use crate::command::{Call, Chosen, Finished, LocalTime, Printer as _, Progress, Stream};
use crate::{DocumentLength, Report};

fn flags(line: &str) -> Flags {
    let world = World { files: [("body", &b"a=1"[..])].into(), ..World::default() };
    let args = args(line);
    flags::parse(&Call { program: "ab", args: &args, own: &Chosen::default(), world: &world })
        .expect("a command line")
}

fn record(raw: Vec<Sample>, seconds: f64) -> LoadRecord {
    let plan = LoadPlan::get(([127, 0, 0, 1], 80).into(), "/x");
    let first_head = Some("HTTP/1.1 200 OK\r\nServer: s/1 (x)\r\n\r\n".to_owned());
    LoadRecord { raw, seconds, first_head, ..LoadRecord::empty(plan) }
}

#[test]
fn a_run_is_printed_as_ab_prints_it() {
    let mut raw = vec![
        sample(0, 400, 1_600, 100),
        sample(2_100, 500, 2_000, 500),
        sample(5_100, 600, 9_400, 2_000),
    ];
    raw[1].status = 404;
    raw[2].bytes_read = 160;
    raw[2].bytes_body = 60;
    let record = record(raw, 0.0171);
    let mut ab = Ab::new(flags("-n 3 -e p.csv http://h/x"));
    assert!(ab.opening().on(Stream::Out).ends_with("Benchmarking h (be patient)..."));
    let local_time =
        |_| LocalTime { year: 2026, month: 1, day: 31, weekday: 6, hour: 0, minute: 0, second: 0 };
    let finished = Finished { record: &record, began: Nanos::ZERO, local_time: &local_time };
    let closing = ab.closing(&finished);
    let expected = "..done\n\n\nServer Software:        s/1\nServer Hostname:        h\n\
        Server Port:            80\n\nDocument Path:          /x\n\
        Document Length:        50 bytes\n\nConcurrency Level:      1\n\
        Time taken for tests:   0.017 seconds\nComplete requests:      3\n\
        Failed requests:        1\n   (Connect: 0, Receive: 0, Length: 1, Exceptions: 0)\n\
        Non-2xx responses:      1\nTotal transferred:      460 bytes\n\
        HTML transferred:       160 bytes\nRequests per second:    175.44 [#/sec] (mean)\n\
        Time per request:       5.700 [ms] (mean)\n\
        Time per request:       5.700 [ms] (mean, across all concurrent requests)\n\
        Transfer rate:          26.27 [Kbytes/sec] received\n\nConnection Times (ms)\n\
        \x20             min  mean[+/-sd] median   max\n\
        Connect:        0    1   0.1      1       1\n\
        Processing:     2    5   5.4      7      11\n\
        Waiting:        2    4   4.4      6       9\n\
        Total:          2    6   5.5      8      12\n\
        \nPercentage of the requests served within a certain time (ms)\n\
        \x20 50%      3\n  66%      3\n  75%     12\n  80%     12\n  90%     12\n  95%     12\n\
        \x20 98%     12\n  99%     12\n 100%     12 (longest request)\n";
    assert_eq!(closing.texts.on(Stream::Out), expected);
    assert_eq!((closing.code, &closing.files[0].path), (0, &PathBuf::from("p.csv")));
    let notes = closing.footnotes.join("\n");
    assert!(notes.contains("1 answer as failed because their length"), "{notes}");
    assert!(notes.contains("does not count 1 answer with a status other than 2xx"), "{notes}");
    assert!(notes.contains("the median was 7.500 ms, the longest 12.000 ms"), "{notes}");
}

/// ab compares whole milliseconds with a deviation that has decimals: if all times are alike, the rounding alone causes
/// the error message.
#[test]
fn a_median_far_from_the_mean_is_warned_of() {
    let warned = |micros: [u64; 4], line: &str| {
        let flags = flags(line);
        let raw = micros.iter().map(|span| sample(0, 0, 0, *span)).collect();
        let report =
            text::report(&flags, &Server::default(), &Figures::new(&flags, &record(raw, 1.0)));
        let warnings = report.lines().filter(|line| line.contains("the total time"));
        warnings.map(str::to_owned).collect::<Vec<_>>()
    };
    let line = "-n 4 http://h/x";
    assert_eq!(warned([1000; 4], line), [""; 0]);
    // Mean 1.4, printed as 1; median 2 (the upper); deviation 0.69.
    let warning =
        "WARNING: The median and mean for the total time are not within a normal deviation";
    assert_eq!(warned([800, 800, 2000, 2000], line), [warning]);
    // Mean 1.499, printed as 1; median 1.5, printed as 2; deviation 0.001.
    let error = "ERROR: The median and mean for the total time are more than twice the standard";
    assert_eq!(warned([1498, 1498, 1500, 1500], line), [error]);
    assert_eq!(warned([1498, 1498, 1500, 1500], "-S -n 4 http://h/x"), [""; 0]);
}

#[test]
fn progress_is_told_once_for_each_tenth() {
    let mut ab = Ab::new(flags("-n 1000 http://h/x"));
    let mut told = |done| {
        let so_far = Progress { started: done, done, elapsed: Nanos::ZERO };
        ab.progress(&so_far).on(Stream::Err)
    };
    assert_eq!(told(99), "");
    assert_eq!(
        told(301),
        "Completed 100 requests\nCompleted 200 requests\nCompleted 300 requests\n"
    );
    assert_eq!(told(399), "");
    assert_eq!(told(5000).lines().count(), 7, "never more than were asked for");
}

#[test]
fn the_server_s_silence_ends_ab_without_a_report() {
    let mut raw = vec![sample(0, 1, 1, 1), sample(10, 1, 1, 1)];
    (raw[1].outcome, raw[1].at_end) = (Outcome::TimeoutWaiting, AtEnd::Lost);
    let record = record(raw, 1.0);
    let mut ab = Ab::new(flags("-n 2 -r http://h/x"));
    let local_time = |_| unreachable!("nothing is written");
    let finished = Finished { record: &record, began: Nanos::ZERO, local_time: &local_time };
    let closing = ab.closing(&finished);
    assert_eq!(closing.texts.on(Stream::Out), "Total of 1 requests completed\n");
    let told = "apr_pollset_poll: The timeout specified has expired (70007)\n";
    assert_eq!((closing.texts.on(Stream::Err).as_str(), closing.code), (told, 119));
}

#[test]
fn an_address_of_another_machine_ends_ab_at_its_bind() {
    let mut failed = sample(0, 1, 1, 1);
    (failed.outcome, failed.at_end) = (Outcome::ConnectFailed, AtEnd::Lost);
    let record = record(vec![failed], 1.0);
    let finished =
        Finished { record: &record, began: Nanos::ZERO, local_time: &|_| unreachable!("no clock") };
    let told = |line: &str| {
        let closing = Ab::new(flags(line)).closing(&finished);
        (closing.texts.on(Stream::Err), closing.code)
    };
    let bind = "bind: Cannot assign requested address (99)\n".to_owned();
    assert_eq!(told("-B 10.9.9.9 http://h/x"), (bind, 99));
    assert_eq!(told("http://h/x").1, 104);
}

#[test]
fn what_is_no_http_has_no_2xx_and_what_is_wrong_behind_a_head_is_not_looked_at() {
    let non_2xx = |bytes_head| {
        let mut broken = sample(0, 1, 1, 1);
        (broken.outcome, broken.status) = (Outcome::Protocol, 0);
        broken.bytes_head = bytes_head;
        Figures::new(&flags("-n 1 http://h/x"), &record(vec![broken], 1.0)).non_2xx
    };
    assert_eq!([non_2xx(0), non_2xx(100)], [1, 0]);
}

/// Compared with ab 2.3: `garbage\r\n\r\nbody` gives 4 bytes of document and a line of non-2xx, and a banner without an
/// empty line gives neither.
#[test]
fn garbage_has_a_status_only_where_it_has_an_empty_line() {
    let figures = |bytes: &str, first_head: Option<&str>| {
        let mut garbage = sample(0, 1, 1, 1);
        (garbage.outcome, garbage.status, garbage.bytes_head) = (Outcome::Protocol, 0, 0);
        (garbage.bytes_read, garbage.bytes_body) = (bytes.len() as u64, 0);
        let first_head = first_head.map(str::to_owned);
        let record = LoadRecord { first_head, ..record(vec![garbage; 4], 1.0) };
        let figures = Figures::new(&flags("-n 4 http://h/x"), &record);
        (figures.non_2xx, figures.document, figures.bodies, figures.failed)
    };
    let head = Some("garbage that is no http\r\n\r\n");
    assert_eq!(figures("garbage that is no http\r\n\r\nbody", head), (4, 4, 16, 0));
    assert_eq!(figures("SSH-2.0-OpenSSH\r\n", None), (0, 0, 0, 0));
}

/// The part of a span that a report in whole milliseconds can hold.
fn whole_millis(span: Option<Nanos>) -> Option<u64> {
    span.map(|span| (span.0 + 500_000) / 1_000_000)
}

/// Less than 10 seconds in all: with -S ab prints mean and maximum side by side, and with five digits each they run
/// together.
fn samples() -> impl Strategy<Value = Vec<Sample>> {
    let one = (0..3_300_000u64, 0..3_300_000u64, 0..3_300_000u64, 0..3u8, 0..4u8);
    let one = one.prop_map(|(connect, wait, rest, length, kind)| {
        let mut sample = sample(0, connect, wait, rest);
        sample.bytes_read += u64::from(length);
        sample.bytes_body += u64::from(length);
        match kind {
            0 => sample.status = 503,
            1 => sample.at_end = AtEnd::Kept,
            2 => (sample.outcome, sample.at_end) = (Outcome::ResetAfterFirstByte, AtEnd::Lost),
            _ => {}
        }
        sample
    });
    prop::collection::vec(one, 1..40)
}

fn holds(report: &Report, flags: &Flags, figures: &Figures) -> Result<(), TestCaseError> {
    prop_assert_eq!(&report.missing, &Vec::<&str>::new());
    prop_assert_eq!(report.url.as_deref(), Some("http://h:81/x?y"));
    prop_assert_eq!(report.server_software.as_deref(), Some("s/1"));
    let length = DocumentLength::Fixed(Bytes(figures.document));
    let length = if flags.any_length { DocumentLength::Variable } else { length };
    prop_assert_eq!(report.document_length, Some(length));
    prop_assert_eq!(report.concurrency, Some(u64::from(flags.concurrency)));
    prop_assert_eq!(report.duration, Some(Nanos::from_millis(1234)));
    let requests = &report.requests;
    prop_assert_eq!(requests.complete, Some(figures.done));
    prop_assert_eq!(requests.failed, Some(figures.failed));
    prop_assert_eq!(requests.non_2xx, Some(figures.non_2xx));
    prop_assert_eq!(requests.kept_alive, flags.keep_alive.then_some(figures.kept_alive));
    prop_assert_eq!(report.traffic.received, Some(Bytes(figures.read)));
    prop_assert_eq!(report.traffic.bodies, Some(Bytes(figures.bodies)));
    let sent = flags.body.as_ref().map(|_| Bytes(figures.posted));
    prop_assert_eq!(report.traffic.sent, sent);
    let length_errors = (figures.failed > 0).then_some(figures.length);
    prop_assert_eq!(report.errors.get("Length").copied(), length_errors);
    let longest = figures.times.iter().map(|times| times.total).max();
    let longest = longest.map(|total| (total + 500) / 1000);
    prop_assert_eq!(whole_millis(report.times.total.max), longest);
    Ok(())
}

proptest! {
    /// For what each of the two formats contains.
    #[test]
    fn what_is_written_is_read_back(
        raw in samples(),
        letters in prop::sample::subsequence(vec!["-k", "-l", "-S", "-d", "-p body"], 0..5),
        concurrency in 1..9u32,
        is_html in any::<bool>(),
    ) {
        let line = format!("-r -n 40 -c {concurrency} {} http://h:81/x?y", letters.join(" "));
        let flags = flags(&line);
        let record = record(raw, 1.234);
        let figures = Figures::new(&flags, &record);
        let server = Server { software: "s/1".to_owned(), ..Server::default() };
        let written = match is_html {
            true => html::report(&flags, &Default::default(), &server, &figures),
            false => text::report(&flags, &server, &figures),
        };
        let mut reports = read::read_reports(&written).expect("it is a report of ab");
        prop_assert_eq!(reports.len(), 1);
        let report = reports.remove(0);
        holds(&report, &flags, &figures)?;
        let has_percentiles = !is_html && flags.percentiles && figures.done > 1;
        prop_assert_eq!(report.percentiles.len(), if has_percentiles { 9 } else { 0 });
        if !is_html {
            let receive = (figures.failed > 0).then_some(figures.receive);
            prop_assert_eq!(report.errors.get("Receive").copied(), receive);
        }
    }
}
