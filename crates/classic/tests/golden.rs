//! Parses reports as the tools printed them, and compares the figures with those in the text. Each file begins with how
//! it was made, which is also prose that a parser has to skip.

use joust_classic::{Bin, DocumentLength, ReadError, Report, named, read_any};
use units::{Bytes, Nanos, PerSecond, Share};

mod support;

use support::{REPORTS, text};

fn one(file: &str) -> Report {
    let (_, tool) = REPORTS.iter().find(|(name, _)| *name == file).unwrap();
    let read = named(tool).unwrap().read;
    let mut reports = read(text(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
    assert_eq!(reports.len(), 1, "{file}");
    let report = reports.remove(0);
    assert_eq!(report.missing, [""; 0], "{file}");
    report
}

fn millis(millis: f64) -> Option<Nanos> {
    Some(Nanos::from_secs_f64(millis / 1e3))
}

#[test]
fn ab_tells_its_whole_table() {
    let report = one("ab-keepalive");
    assert_eq!(report.version.as_deref(), Some("2.3"));
    assert_eq!(report.server_software.as_deref(), Some("joust"));
    assert_eq!(report.url.as_deref(), Some("http://127.0.0.1:18931/index.html"));
    assert_eq!(report.document_length, Some(DocumentLength::Fixed(Bytes(3361))));
    assert_eq!((report.concurrency, report.duration), (Some(4), millis(72.0)));
    let requests = &report.requests;
    assert_eq!((requests.complete, requests.failed), (Some(2000), Some(0)));
    assert_eq!((requests.non_2xx, requests.kept_alive), (Some(0), Some(1983)));
    assert_eq!(report.traffic.received, Some(Bytes(7_307_256)));
    assert_eq!(report.traffic.bodies, Some(Bytes(6_722_000)));
    assert_eq!(report.rate, Some(PerSecond(27813.70)));
    assert_eq!(report.traffic.rate, Some(PerSecond(99239.19 * 1024.0)));
    assert_eq!(report.time_per_request, millis(0.144));
    let total = report.times.total;
    assert_eq!((total.min, total.mean, total.sd), (millis(0.0), millis(0.0), millis(0.8)));
    assert_eq!((total.median, total.max), (millis(0.0), millis(9.0)));
    assert_eq!(report.times.connect.max, millis(5.0));
    assert_eq!(report.percentiles.len(), 9);
    let printed = [50.0, 98.0, 99.0, 100.0].map(|percent| report.percentile(percent));
    assert_eq!(printed, [millis(0.0), millis(1.0), millis(4.0), millis(9.0)]);
    assert_eq!(report.percentile(99.9), None);
}

#[test]
fn ab_is_read_with_every_option_that_changes_its_report() {
    let bad = one("ab-non2xx");
    assert_eq!((bad.requests.non_2xx, bad.requests.failed), (Some(50), Some(0)));
    let variable = one("ab-variable");
    assert_eq!(variable.document_length, Some(DocumentLength::Variable));
    assert!(variable.percentiles.is_empty() && variable.times.total.max == millis(5.0));
    let short = one("ab-without-sd");
    let total = short.times.total;
    assert_eq!((total.min, total.mean, total.max), (millis(0.0), millis(0.0), millis(14.0)));
    assert_eq!((total.sd, total.median), (None, None));
    let table = one("ab-table");
    assert_eq!((table.requests.complete, table.rate), (Some(200), Some(PerSecond(12198.10))));
    assert_eq!(table.times.processing.max, millis(1.0));
    let post = one("ab-post");
    assert_eq!((post.traffic.sent, post.percentile(90.0)), (Some(Bytes(3000)), millis(2.0)));
    assert_eq!(one("ab-progress").requests.complete, Some(1000));
}

#[test]
fn a_tool_that_gave_up_before_its_report_has_none() {
    for (file, tool) in [("ab-refused", "ab"), ("wrk-refused", "wrk")] {
        let error = (named(tool).unwrap().read)(text(file)).unwrap_err();
        assert!(error.to_string().contains(&format!("no report of {tool}")), "{error}");
    }
    assert_eq!(read_any("a letter about the weather: 7 degrees"), Err(ReadError::NoneOfAll));
    assert_eq!(read_any(""), Err(ReadError::NoneOfAll));
}

#[test]
fn siege_is_read_in_words_and_in_json() {
    let report = one("siege-reps");
    assert_eq!((report.version.as_deref(), report.concurrency), (Some("4.0.7"), Some(4)));
    let requests = &report.requests;
    assert_eq!((requests.complete, requests.succeeded), (Some(200), Some(200)));
    assert_eq!((requests.failed, report.aborted), (Some(0), false));
    assert_eq!((report.availability, report.duration), (Some(Share(1.0)), millis(20.0)));
    assert_eq!(report.rate, Some(PerSecond(10000.0)));
    assert_eq!(report.traffic.rate, Some(PerSecond(32.05 * 1_048_576.0)));
    assert_eq!((report.concurrency_mean, report.times.total.max), (Some(2.5), millis(10.0)));
    let json = one("siege-json");
    assert_eq!((json.requests.complete, json.times.total.max), (Some(20), millis(10.0)));
    assert_eq!((json.traffic.bodies, json.version), (Some(Bytes(62_915)), None));
    let bad = one("siege-404");
    assert_eq!((bad.requests.complete, bad.requests.succeeded), (Some(20), Some(0)));
    let aborted = one("siege-aborted");
    assert!(aborted.aborted);
    assert_eq!((aborted.requests.complete, aborted.requests.failed), (Some(1556), Some(1027)));
    assert_eq!(one("siege-verbose").requests.complete, Some(6));
}

#[test]
fn wrk_is_read_with_and_without_its_distribution() {
    let report = one("wrk-latency");
    assert_eq!(report.url.as_deref(), Some("http://127.0.0.1:18931/index.html"));
    assert_eq!((report.threads, report.concurrency), (Some(2), Some(8)));
    assert_eq!((report.requests.complete, report.duration), (Some(91978), millis(1100.0)));
    assert_eq!(report.traffic.received, Some(Bytes((315.71_f64 * 1_048_576.0).round() as u64)));
    assert_eq!(report.rate, Some(PerSecond(83442.42)));
    let total = report.times.total;
    assert_eq!((total.mean, total.sd, total.max), (millis(1.13), millis(3.57), millis(33.24)));
    let printed = [50.0, 75.0, 90.0, 99.0].map(|percent| report.percentile(percent));
    assert_eq!(printed, [millis(0.056), millis(0.305), millis(2.92), millis(21.97)]);
    assert!(one("wrk").percentiles.is_empty());
    assert_eq!(one("wrk-404").requests.non_2xx, Some(25532));
    let second = one("wrk2");
    assert_eq!((second.percentile(99.9), second.percentiles.len()), (millis(12.30), 6));
}

#[test]
fn h2load_is_read_by_duration_and_by_requests() {
    let report = one("h2load-duration");
    let requests = &report.requests;
    assert_eq!((requests.started, requests.complete), (Some(79294), Some(79290)));
    assert_eq!((requests.succeeded, requests.non_2xx), (Some(79290), Some(0)));
    assert_eq!((report.threads, report.concurrency), (Some(1), Some(4)));
    assert_eq!((report.duration, report.rate), (millis(1000.0), Some(PerSecond(79290.0))));
    assert_eq!(report.traffic.received, Some(Bytes(282_546_693)));
    assert_eq!(report.traffic.bodies, Some(Bytes(266_497_051)));
    let total = report.times.total;
    assert_eq!((total.min, total.max, total.mean), (millis(0.007), millis(8.8), millis(0.049)));
    assert_eq!(report.times.waiting.mean, millis(0.042));
    let counted = one("h2load-requests");
    assert_eq!((counted.threads, counted.concurrency), (Some(2), Some(4)));
    assert_eq!(one("h2load-404").requests.by_class[&4], 50);
    let refused = one("h2load-refused");
    assert_eq!((refused.requests.complete, refused.errors["errored"]), (Some(0), 4));
}

#[test]
fn hey_is_read_with_replies_and_without_any() {
    let report = one("hey-duration");
    assert_eq!((report.requests.complete, report.requests.failed), (Some(24091), Some(0)));
    assert_eq!((report.duration, report.rate), (millis(1015.9), Some(PerSecond(23712.8521))));
    assert_eq!(report.traffic.bodies, Some(Bytes(80_969_851)));
    let total = report.times.total;
    assert_eq!((total.mean, total.max), (millis(0.2), millis(21.3)));
    assert_eq!((report.percentile(99.0), report.times.waiting.max), (millis(3.0), millis(18.1)));
    let bad = one("hey-404");
    assert_eq!((bad.requests.by_status[&404], bad.requests.non_2xx), (50, Some(50)));
    assert_eq!(bad.percentile(95.0), millis(6.3));
    assert_eq!(bad.percentiles.len(), 6, "a percentile of 0 % is none");
    let refused = one("hey-refused");
    assert_eq!((refused.requests.complete, refused.requests.failed), (Some(0), Some(10)));
    assert!(refused.errors.keys().next().unwrap().ends_with("connection refused"));
    assert_eq!(refused.times.total.mean, None, "NaN is no mean");
}

#[test]
fn httperf_is_read_by_connections_and_calls() {
    let report = one("httperf");
    assert_eq!(report.url.as_deref(), Some("http://127.0.0.1:18931/index.html"));
    let requests = &report.requests;
    assert_eq!((requests.started, requests.complete), (Some(1000), Some(1000)));
    assert_eq!((requests.failed, requests.non_2xx), (Some(0), Some(0)));
    assert_eq!((report.concurrency, report.duration), (Some(11), millis(996.0)));
    assert_eq!((report.rate, report.times.connect.mean), (Some(PerSecond(1004.1)), millis(0.1)));
    let lives = report.times.connection;
    assert_eq!((lives.max, lives.sd), (millis(72.0), millis(12.7)));
    assert_eq!((report.times.waiting.mean, report.times.total.mean), (millis(0.9), millis(0.9)));
    assert_eq!(report.traffic.received, Some(Bytes(3_599_000)));
    assert_eq!(report.own_cpu, millis(530.0));
    let ordered = &report.ordered;
    assert_eq!((ordered.requests, ordered.rate), (Some(1000), Some(PerSecond(1000.0))));
    assert_eq!(one("httperf-404").requests.non_2xx, Some(20));
    let refused = one("httperf-refused");
    assert_eq!((refused.errors["connrefused"], refused.times.total.mean), (5, None));
}

#[test]
fn http_load_is_read() {
    let report = one("http_load");
    assert_eq!((report.requests.complete, report.requests.failed), (Some(1000), Some(5)));
    assert_eq!((report.requests.non_2xx, report.concurrency), (Some(10), Some(11)));
    assert_eq!((report.duration, report.rate), (millis(10001.2), Some(PerSecond(99.988))));
    assert_eq!(report.traffic.bodies, Some(Bytes(3_361_000)));
    assert_eq!(report.times.connect.max, millis(1.203));
    assert_eq!(report.times.waiting.mean, millis(0.3381));
    assert_eq!((report.errors["timeouts"], report.errors["bad byte counts"]), (3, 2));
}

#[test]
fn weighttp_is_read_in_both_its_lives() {
    let older = one("weighttp-0.4");
    assert_eq!((older.version.as_deref(), older.threads), (Some("0.4"), Some(2)));
    assert_eq!((older.duration, older.concurrency), (Some(Nanos(1_020_345_000)), Some(11)));
    assert_eq!((older.requests.succeeded, older.requests.failed), (Some(991), Some(10)));
    assert_eq!((older.requests.non_2xx, older.traffic.heads), (Some(11), Some(Bytes(255_257))));
    assert_eq!(older.traffic.rate, Some(PerSecond(3464.0 * 1024.0)));
    let newer = one("weighttp-0.5");
    assert_eq!((newer.version.as_deref(), newer.duration), (Some("0.5"), millis(81.003)));
    assert_eq!((newer.requests.complete, newer.requests.kept_alive), (Some(1000), Some(992)));
    assert_eq!((newer.requests.failed, newer.errors["errs"]), (Some(3), 1));
    assert_eq!((newer.times.connect.max, newer.times.waiting.median), (millis(0.19), millis(0.3)));
    let total = newer.times.total;
    assert_eq!((total.mean, total.sd, total.min), (millis(0.34), millis(0.095), millis(0.07)));
    assert_eq!((newer.percentile(99.0), newer.percentile(100.0)), (millis(0.74), millis(2.2)));
}

#[test]
fn ab_of_apache_1_3_is_read() {
    let report = one("ab-apache13");
    assert_eq!(report.version.as_deref(), Some("1.3d"));
    assert_eq!((report.duration, report.time_per_request), (millis(2345.0), millis(23.45)));
    assert_eq!(report.steps.duration, millis(1.0));
    // Its Kbytes have 1000 bytes.
    assert_eq!(report.traffic.rate_unit, Some(Bytes(1000)));
    assert!((report.traffic.rate.unwrap().0 - 1_855_010.0).abs() < 1e-6);
    assert_eq!(report.traffic.heads_or_rest(), Some(Bytes(254_000)));
    assert_eq!(
        (report.times.waiting.mean, report.times.processing.sd),
        (millis(20.0), millis(8.2))
    );
    assert_eq!((report.percentile(100.0), report.errors["Broken pipe"]), (millis(90.0), 0));
    let ordered = &report.ordered;
    assert_eq!((ordered.requests, ordered.keep_alive), (Some(1000), Some(false)));
    let oldest = one("ab-oldest");
    assert_eq!((oldest.requests.failed, oldest.requests.kept_alive), (Some(3), Some(480)));
    assert_eq!((oldest.errors["Length"], oldest.rate), (3, Some(PerSecond(200.0))));
    let total = oldest.times.total;
    assert_eq!((total.min, total.mean, total.max), (millis(11.0), millis(49.0), millis(212.0)));
    assert_eq!((total.sd, oldest.times.waiting.mean), (None, None));
    assert_eq!(oldest.traffic.rate_unit, Some(Bytes(1000)));
}

#[test]
fn siege_2_6_counts_bytes() {
    let report = one("siege-2.6");
    assert_eq!((report.version.as_deref(), report.concurrency), (Some("2.60"), Some(10)));
    assert_eq!(
        (report.traffic.bodies, report.traffic.rate),
        (Some(Bytes(425_000)), Some(PerSecond(34000.0)))
    );
    assert_eq!((report.times.total.max, report.ordered.requests), (millis(1730.0), Some(250)));
}

#[test]
fn wrk2_tells_its_whole_distribution() {
    let report = one("wrk2-spectrum");
    let total = report.times.total;
    assert_eq!((total.mean, total.sd, total.max), (millis(6.602), millis(1.919), millis(12.5)));
    assert_eq!((report.percentile(50.0), report.percentiles.len()), (millis(6.67), 8));
    let counts: Vec<u64> = report.histogram.iter().map(|bin| bin.count).collect();
    assert_eq!(counts, [1, 3950, 15832, 15787, 3930]);
    assert_eq!(report.histogram[1], Bin { at: millis(4.053).unwrap(), count: 3950 });
    assert_eq!((report.errors["timeout"], report.ordered.rate), (60, Some(PerSecond(2000.0))));
    assert_eq!(report.rates.max, Some(PerSecond(2500.0)));
}

#[test]
fn wrk_and_h2load_tell_of_their_threads_and_connections() {
    let wrk = one("wrk-latency");
    assert_eq!(
        (wrk.rates.mean, wrk.rates.sd),
        (Some(PerSecond(43890.0)), Some(PerSecond(10600.0)))
    );
    assert_eq!(wrk.times.total.within_sd, Some(Share(94.13 / 100.0)));
    assert_eq!(wrk.steps.time, millis(0.01));
    let h2load = one("h2load-duration");
    assert_eq!(
        (h2load.rates.min, h2load.rates.sd),
        (Some(PerSecond(19662.92)), Some(PerSecond(78.09)))
    );
    let newer = one("h2load-1.66");
    let total = newer.times.total;
    assert_eq!((total.mean, total.median, total.max), (millis(0.395), millis(0.301), millis(2.06)));
    assert_eq!((newer.percentile(99.0), newer.times.waiting.mean), (millis(1.1), millis(0.222)));
    assert_eq!((newer.requests.non_2xx, newer.concurrency), (Some(10), Some(8)));
}

#[test]
fn hey_tells_its_histogram() {
    let report = one("hey-404");
    let sum: u64 = report.histogram.iter().map(|bin| bin.count).sum();
    assert_eq!((report.histogram.len(), sum), (11, 50));
    assert_eq!(report.histogram[1], Bin { at: millis(1.0).unwrap(), count: 33 });
    assert_eq!((report.times.sending.max, report.times.receiving.max), (millis(0.3), millis(0.6)));
    // The report does not contain the number of users: the command line does.
    assert_eq!(report.concurrency, Some(5));
}

#[test]
fn oha_is_read_in_words_and_in_json() {
    let report = one("oha");
    let requests = &report.requests;
    assert_eq!((requests.complete, requests.failed), (Some(50_000), Some(2)));
    assert_eq!((requests.unfinished, requests.non_2xx), (Some(10), Some(5)));
    assert_eq!((report.duration, report.concurrency), (millis(2000.412), Some(10)));
    assert_eq!((report.availability, report.rate), (Some(Share(1.0)), Some(PerSecond(25000.8498))));
    assert_eq!((report.percentile(99.99), report.percentiles.len()), (millis(7.552), 9));
    assert_eq!(report.histogram.iter().map(|bin| bin.count).sum::<u64>(), 50_000);
    assert_eq!((report.times.connect.mean, report.times.total.min), (millis(0.212), millis(0.061)));
    let older = one("oha-0.5");
    assert_eq!((older.availability, older.requests.complete), (Some(Share(1.0)), Some(200)));
    assert_eq!((older.percentile(90.0), older.duration), (millis(19.6), millis(4000.0)));
    let json = one("oha-json");
    assert_eq!((json.requests.complete, json.requests.failed), (Some(1000), Some(1)));
    assert_eq!((json.requests.unfinished, json.times.waiting.max), (Some(2), millis(8.0)));
    assert_eq!((json.percentile(99.9), json.histogram.len()), (millis(2.618248), 3));
    assert_eq!((json.traffic.bodies, json.rate), (Some(Bytes(3_361_000)), Some(PerSecond(401.2))));
}

#[test]
fn k6_is_read_in_words_and_in_json() {
    let older = one("k6-0.4x");
    assert_eq!((older.requests.complete, older.requests.failed), (Some(3000), Some(6)));
    assert_eq!((older.duration, older.users.interrupted), (millis(30_000.0), Some(2)));
    assert_eq!((older.concurrency, older.users.max), (Some(10), Some(10)));
    assert_eq!(older.traffic.received, Some(Bytes(1_300_000)));
    let total = older.times.total;
    assert_eq!((total.mean, total.median, total.max), (millis(4.52), millis(4.31), millis(117.73)));
    assert_eq!((older.percentile(95.0), older.times.blocked.mean), (millis(5.18), millis(0.00521)));
    assert_eq!(older.users.times.max, millis(61_000.0));
    let newer = one("k6-1.x");
    assert_eq!((newer.times.total.mean, newer.rate), (millis(140.36), Some(PerSecond(8.981))));
    assert_eq!((newer.duration, newer.users.iterations), (millis(10_000.0), Some(90)));
    assert_eq!((newer.requests.failed, newer.availability), (Some(9), Some(Share(0.9))));
    let json = one("k6-json");
    assert_eq!((json.times.total.mean, json.users.allocated), (millis(140.361234), Some(5)));
    assert_eq!((json.requests.complete, json.requests.failed), (Some(90), Some(9)));
    assert_eq!(
        (json.traffic.received, json.percentile(90.0)),
        (Some(Bytes(518_000)), millis(146.88))
    );
}

/// A tool's figures must be consistent: the rate equals the requests divided by the time, within the precision of the
/// printed digits.
#[test]
fn the_rate_is_the_requests_over_the_time() {
    let mut checked = 0;
    for (file, _) in REPORTS {
        for report in read_any(text(file)).unwrap_or_default() {
            let made_up = ["http_load", "weighttp-0.5"].contains(file);
            let (Some(rate), Some(duration)) = (report.rate, report.duration) else { continue };
            let Some(done) = report.rate_of().filter(|done| *done > 0) else { continue };
            let secs = duration.as_secs_f64();
            if made_up || secs == 0.0 {
                continue;
            }
            let (least, most) =
                (done as f64 / (secs + 0.0051), done as f64 / (secs - 0.0051).max(1e-9));
            assert!((least - 1.0..=most + 1.0).contains(&rate.0), "{file}: {rate}");
            checked += 1;
        }
    }
    assert!(checked >= 18, "only {checked} reports have a rate and a duration");
}

#[test]
fn each_report_is_read_by_its_own_tool_only() {
    for (file, tool) in REPORTS {
        let reports = read_any(text(file)).unwrap_or_default();
        let tools: Vec<&str> = reports.iter().map(|report| report.tool).collect();
        let gave_up = ["ab-refused", "wrk-refused"].contains(file);
        let expected: &[&str] = if gave_up { &[] } else { &[tool] };
        assert_eq!(tools, expected, "{file}");
    }
}
