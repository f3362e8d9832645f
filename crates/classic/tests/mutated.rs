//! Reports as people pass them on: wrapped, quoted, indented, with prose around them, several at once, cut off,
//! damaged. A moved report is parsed as before; a damaged one is parsed in part or rejected, and never makes a parser
//! panic.

use joust_classic::{ALL, Report, named, read_any};
use proptest::prelude::*;
use units::Nanos;

mod support;

use support::{REPORTS, text};

/// The texts that contain a report.
fn whole() -> Vec<(&'static str, &'static str)> {
    REPORTS.iter().copied().filter(|(file, _)| read_any(text(file)).is_ok()).collect()
}

/// The reports without their positions, which change.
fn figures(text: &str, tool: &str) -> Vec<Report> {
    let mut reports = (named(tool).unwrap().read)(text).unwrap_or_default();
    reports.iter_mut().for_each(|report| report.place = 0..0);
    reports
}

/// Breaks lines at words, as a mail program does.
fn wrapped(text: &str, columns: usize) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let mut at = 0;
        for word in line.split_whitespace() {
            if at > 0 && at + word.len() > columns {
                out.push('\n');
                at = 0;
            }
            out.push_str(if at > 0 { " " } else { "" });
            out.push_str(word);
            at += word.len() + 1;
        }
        out.push('\n');
    }
    out
}

fn each_line(text: &str, prefix: &str) -> String {
    text.lines().map(|line| format!("{prefix}{line}\r\n")).collect()
}

#[test]
fn what_was_only_moved_is_read_as_before() {
    for (file, tool) in whole() {
        let (text, before) = (text(file), figures(text(file), tool));
        assert_eq!(before.len(), 1, "{file}");
        for prefix in ["    ", "> ", ">\t", "| ", "# ", "\u{1b}[32m", "    // "] {
            assert_eq!(figures(&each_line(text, prefix), tool), before, "{file} behind {prefix:?}");
        }
        // The error texts of hey and oha are free: only the line shows where they end.
        if !["hey-refused", "oha"].contains(&file) {
            for columns in [20, 40, 72] {
                assert_eq!(figures(&wrapped(text, columns), tool), before, "{file} at {columns}");
            }
        }
    }
}

#[test]
fn several_reports_in_a_file_are_told_apart_and_placed() {
    let prose = "\nThen we tried again, and saw this:\n\n";
    let (mut all, mut starts) = (String::new(), Vec::new());
    for (file, tool) in whole() {
        for _ in 0..2 {
            starts.push((all.len(), tool));
            all.push_str(text(file));
            all.push_str(prose);
        }
    }
    let found = read_any(&all).unwrap();
    let tools: Vec<&str> = found.iter().map(|report| report.tool).collect();
    assert_eq!(tools, starts.iter().map(|(_, tool)| *tool).collect::<Vec<_>>());
    let ends = starts.iter().skip(1).map(|(start, _)| *start).chain([all.len()]);
    for ((report, (start, _)), end) in found.iter().zip(&starts).zip(ends) {
        assert!(report.place.start >= *start && report.place.end <= end, "{:?}", report.place);
        // The range contains the report: parsed alone it is the same.
        let alone = figures(&all[report.place.clone()], report.tool);
        assert_eq!(alone, [Report { place: 0..0, ..report.clone() }]);
    }
}

#[test]
fn what_is_cut_off_is_read_in_part_and_says_what_is_missing() {
    for (file, tool) in whole() {
        let text = text(file);
        let whole = figures(text, tool).remove(0);
        let mut parts = 0;
        for end in (0..text.len()).filter(|&end| text.is_char_boundary(end)) {
            for report in figures(&text[..end], tool) {
                parts += usize::from(!report.is_complete());
                let told = report.server_software.is_none() || whole.server_software.is_some();
                assert!(told, "{file} cut at {end}");
            }
        }
        assert!(parts > 0, "{file}: no cut leaves a part");
    }
}

/// Pieces of text, each with its position and the number of bytes that it replaces.
fn damage() -> impl Strategy<Value = (usize, Vec<(usize, usize, String)>)> {
    let pieces = prop_oneof![
        "[ -~]{0,6}",
        Just("\u{0}".to_owned()),
        Just("99999999999999999999999".to_owned()),
        Just("-1".to_owned()),
        Just("nan".to_owned()),
        Just("1e308".to_owned()),
        Just("ä\u{1b}[".to_owned()),
        Just("<td ".to_owned()),
        Just("\":".to_owned()),
        Just("&#x110000;&#".to_owned()),
        Just("1,234".to_owned()),
        Just("**\u{202f}“".to_owned()),
        Just("█ GROUP: x".to_owned()),
        Just("\n1 \n2 \n3 ".to_owned()),
        Just("$ ab -n 1 -c 99999999999999999999 -k http://x/ ".to_owned()),
        Just("\n".to_owned()),
    ];
    (0..REPORTS.len(), prop::collection::vec((any::<usize>(), 0..40_usize, pieces), 1..8))
}

fn damaged(text: &str, damage: &[(usize, usize, String)]) -> String {
    let mut text = text.to_owned();
    for (at, length, piece) in damage {
        let boundary =
            |at: usize| (0..=at).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
        let start = boundary(at % (text.len() + 1));
        let end = boundary((start + length).min(text.len()));
        text.replace_range(start..end.max(start), piece);
    }
    text
}

/// A report, and a repeating pattern of the lines to keep.
fn lines() -> impl Strategy<Value = (usize, Vec<bool>)> {
    (0..REPORTS.len(), prop::collection::vec(prop::bool::weighted(0.8), 1..60))
}

/// The figures that a report has in one line each.
fn scalars(report: &Report) -> Vec<Option<f64>> {
    let time = |time: Option<Nanos>| time.map(Nanos::as_secs_f64);
    let count = |count: Option<u64>| count.map(|count| count as f64);
    // hey and oha print their counts by status and by error in several lines.
    let by_row = ["hey", "oha"].contains(&report.tool);
    let complete = report.requests.complete.filter(|_| !by_row);
    let mut all = vec![
        count(complete),
        count(report.requests.started),
        count(report.requests.succeeded),
        count(report.requests.kept_alive),
        time(report.duration),
        time(report.time_per_request),
        report.rate.map(|rate| rate.0),
        report.traffic.rate.filter(|_| report.traffic.rate_unit.is_some()).map(|rate| rate.0),
        count(report.traffic.received.map(|bytes| bytes.0)),
        count(report.traffic.bodies.map(|bytes| bytes.0)),
        count(report.traffic.heads.map(|bytes| bytes.0)),
        report.concurrency_mean,
        report.rates.mean.map(|rate| rate.0),
        count(report.users.iterations),
        count(report.users.allocated),
    ];
    let times = &report.times;
    for summary in [times.connect, times.waiting, times.processing, times.total, times.connection] {
        all.extend([summary.mean, summary.sd, summary.median, summary.min, summary.max].map(time));
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_damage_makes_a_reader_panic((which, damage) in damage()) {
        let text = damaged(text(REPORTS[which].0), &damage);
        for tool in ALL {
            for report in (tool.read)(&text).unwrap_or_default() {
                prop_assert!(text.get(report.place.clone()).is_some_and(|held| !held.is_empty()));
                prop_assert!(report.percentiles.is_sorted_by(|one, other| one.0 <= other.0));
                let _ = report.claims();
            }
        }
    }

    #[test]
    fn lines_that_are_missing_take_no_others_place((which, kept) in lines()) {
        let (file, tool) = REPORTS[which];
        // Without its heading a group of k6 looks like the whole, and an object of JSON like another one.
        prop_assume!(file != "k6-1.x" && !text(file).contains("\": {"));
        let whole = figures(text(file), tool).pop().unwrap_or_default();
        let kept = kept.iter().cycle();
        let lines = text(file).lines().zip(kept).filter(|(_, keep)| **keep);
        let left: String = lines.map(|(line, _)| format!("{line}\n")).collect();
        for report in figures(&left, tool) {
            for (part, all) in scalars(&report).into_iter().zip(scalars(&whole)) {
                // wrk2 prints its mean twice, with more digits and with fewer.
                let same = |part: f64| all.is_some_and(|all| (part - all).abs() <= all * 1e-3);
                prop_assert!(part.is_none_or(same), "{file}: {part:?} for {all:?} in\n{left}");
            }
            for row in &report.percentiles {
                prop_assert!(whole.percentiles.contains(row), "{file}: {row:?} in\n{left}");
            }
        }
    }

    #[test]
    fn a_report_behind_another_that_is_cut_off_is_read_whole(
        (first, cut) in (0..REPORTS.len(), any::<usize>()), second in 0..REPORTS.len()
    ) {
        let (file, tool) = REPORTS[second];
        let before: Vec<&str> = text(REPORTS[first].0).lines().collect();
        let before = before[..cut % (before.len() + 1)].join("\n");
        // A command line without a report belongs to the next report of its tool.
        prop_assume!(REPORTS[first].1 != tool || !figures(&before, tool).is_empty());
        prop_assume!(!figures(text(file), tool).is_empty());
        let both = figures(&format!("{before}\n{}", text(file)), tool);
        let alone = figures(text(file), tool);
        prop_assert_eq!(both.last(), alone.last(), "{} behind\n{}", file, before);
    }

    #[test]
    fn no_text_makes_a_reader_panic(text in "\\PC{0,300}") {
        let _ = read_any(&text);
    }
}
