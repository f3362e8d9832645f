//! Reports as people paste them: from web pages, forums, letters and word processors, in their language. A report with
//! another format is parsed as before; an ambiguous figure is left out, and never misread.

use joust_classic::{Report, named, read_any};
use units::Nanos;

mod support;

use support::{REPORTS, text};

/// The texts that contain a report.
fn whole() -> impl Iterator<Item = (&'static str, &'static str)> {
    REPORTS.iter().copied().filter(|(file, _)| read_any(text(file)).is_ok())
}

/// The reports without what changes or is not a figure.
fn figures(text: &str, tool: &str) -> Vec<Report> {
    let mut reports = (named(tool).unwrap().read)(text).unwrap_or_default();
    for report in &mut reports {
        report.place = 0..0;
        report.ordered.command = None;
    }
    reports
}

fn each_line(text: &str, dressed: impl Fn(usize, &str) -> String) -> String {
    text.lines().enumerate().map(|(index, line)| dressed(index + 1, line)).collect()
}

/// Replaces runs of spaces that are not an indent.
fn for_gaps(text: &str, gap: &str) -> String {
    let squeezed = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(gap);
    each_line(text, |_, line| format!("{}\n", squeezed(line)))
}

fn html(text: &str) -> String {
    let escaped =
        text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
    let entities =
        escaped.replace("+/-", "&#43;/&#x2D;").replace("  ", "&nbsp; ").replace('%', "&#37;");
    format!(
        "<h1>Result</h1><pre class=\"x\"><code>{}</code></pre>",
        entities.replace('\n', "<br/>\n")
    )
}

fn typographic(text: &str) -> String {
    let mut open = true;
    let quoted = text.chars().map(|c| match c {
        '"' => {
            open = !open;
            if open { '”' } else { '“' }
        }
        '\'' => '’',
        c => c,
    });
    let quoted: String = quoted.collect();
    quoted.replace(" -- ", " – ").replace("-2xx", "‑2xx").replace("Keep-", "Keep‑")
}

type Dress = (&'static str, fn(&str) -> String);

const DRESSES: &[Dress] = &[
    ("tabs", |text| for_gaps(text, "\t")),
    ("blanks", |text| for_gaps(text, "     ")),
    ("spaces that do not break", |text| for_gaps(text, "\u{a0}\u{a0}")),
    ("CRLF and a mark of byte order", |text| {
        format!("\u{feff}{}", each_line(text, |_, line| format!("{line}\r\n")))
    }),
    ("a page of HTML", html),
    ("a fence of Markdown", |text| format!("Look:\n\n```text\n{text}\n```\n")),
    ("quoted twice", |text| each_line(text, |_, line| format!("> > {line}\n"))),
    ("quoted without spaces", |text| each_line(text, |_, line| format!(">>{line}\n"))),
    ("a list", |text| each_line(text, |_, line| format!("- {line}\n"))),
    ("a list of points", |text| each_line(text, |_, line| format!("  • {line}\n"))),
    ("a table", |text| each_line(text, |_, line| format!("| {line} |\n"))),
    // Lines that siege begins with stars cannot be made bold.
    ("bold", |text| {
        each_line(text, |_, line| match line.trim() {
            line if line.is_empty() || line.starts_with("**") => format!("{line}\n"),
            line => format!("**{line}** \n"),
        })
    }),
    ("numbered lines", |text| each_line(text, |n, line| format!("{n:4}  {line}\n"))),
    ("numbered lines with colons", |text| each_line(text, |n, line| format!("{n}: {line}\n"))),
    ("quoted numbered lines", |text| each_line(text, |n, line| format!("> {n:3} | {line}\n"))),
    ("typography", typographic),
    ("colours", |text| each_line(text, |_, line| format!("\u{1b}[1;32m{line}\u{1b}[0m\u{1b}[K\n"))),
    ("one line", |text| text.replace('\n', " ")),
    ("an empty line after each", |text| each_line(text, |_, line| format!("{line}\n\n"))),
    ("prose around", |text| {
        format!(
            "Hallo zusammen, bei 12,34 Sekunden und 1.000 Anfragen sah ich das:\n\n{text}\n\nCela fait 27 813,70 \
             requêtes par seconde (50% de plus).\n[1] http://example.org/\n[2] voilà\n"
        )
    }),
];

#[test]
fn what_was_only_dressed_up_is_read_as_before() {
    for (file, tool) in whole() {
        let (text, before) = (text(file), figures(text(file), tool));
        for (name, dress) in DRESSES {
            // ab's own HTML shown as text is no longer a table.
            let is_source = (file, *name) == ("ab-table", "a page of HTML");
            // The text of an error ends with its line, and is prose itself.
            let is_free =
                ["hey-refused", "oha"].contains(&file) && !["tabs", "prose around"].contains(name);
            if !is_free && !is_source {
                assert_eq!(figures(&dress(text), tool), before, "{file} as {name}");
            }
        }
    }
}

/// Numbers with a fraction, as in words: with brackets, a name and a unit.
fn numbers(text: &str, changed: impl Fn(&str) -> String) -> String {
    let word = |word: &str| {
        let start = word.rfind(['=', '(', '[']).map_or(0, |at| at + 1);
        let digits = word[start..].find(|c: char| !c.is_ascii_digit() && c != '.');
        let end = digits.map_or(word.len(), |end| start + end);
        let number = &word[start..end];
        let is_number =
            number.matches('.').count() <= 1 && !number.is_empty() && !word.contains('/');
        if !is_number {
            return word.to_owned();
        }
        format!("{}{}{}", &word[..start], changed(number), &word[end..])
    };
    let line = |line: &str| line.split(' ').map(word).collect::<Vec<_>>().join(" ");
    text.lines().map(|text| line(text) + "\n").collect()
}

#[test]
fn a_comma_before_decimals_is_read() {
    for (file, tool) in whole().filter(|(file, _)| !text(file).contains("\":")) {
        let mut before = figures(text(file), tool);
        let mut after = figures(&numbers(text(file), |number| number.replace('.', ",")), tool);
        for report in before.iter_mut().chain(&mut after) {
            report.version = None;
        }
        assert_eq!(after, before, "{file}");
    }
}

/// Groups of three digits.
fn grouped(number: &str, mark: char) -> String {
    let (whole, decimals) = number.split_at(number.find('.').unwrap_or(number.len()));
    let mut out = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at) % 3 == 0 {
            out.push(mark);
        }
        out.push(digit);
    }
    out + decimals
}

#[test]
fn groups_of_digits_are_read_or_left_out() {
    let mut read = 0;
    for (file, tool) in whole() {
        let before = figures(text(file), tool).remove(0);
        for mark in [',', '\'', '\u{202f}'] {
            for after in figures(&numbers(text(file), |number| grouped(number, mark)), tool) {
                let same = |one: Option<f64>, other: Option<f64>| {
                    assert!(
                        one.is_none() || one == other,
                        "{file} with {mark:?}: {one:?} for {other:?}"
                    );
                    usize::from(one.is_some())
                };
                let secs = |time: Option<Nanos>| time.map(Nanos::as_secs_f64);
                let count = |count: Option<u64>| count.map(|count| count as f64);
                let bytes = |report: &Report| report.traffic.received.map(|bytes| bytes.0 as f64);
                read += same(count(after.requests.complete), count(before.requests.complete));
                read += same(after.rate.map(|rate| rate.0), before.rate.map(|rate| rate.0));
                read += same(secs(after.duration), secs(before.duration));
                read += same(secs(after.times.total.max), secs(before.times.total.max));
                read += same(bytes(&after), bytes(&before));
            }
        }
    }
    assert!(read > 300, "only {read} figures were read");
}

#[test]
fn the_command_line_fills_in_what_the_report_does_not_say() {
    let report =
        "Summary:\n  Total:\t1.0000 secs\n  Slowest:\t0.0066 secs\n  Fastest:\t0.0001 secs\n";
    let asked = "me@pc:~$ hey -n 200 -c 20 -disable-keepalive http://h/a\n\n";
    let read = figures(&format!("{asked}{report}"), "hey").remove(0);
    assert_eq!((read.concurrency, read.url.as_deref()), (Some(20), Some("http://h/a")));
    assert_eq!((read.ordered.requests, read.ordered.keep_alive), (Some(200), Some(false)));
    assert_eq!(figures(report, "hey")[0].concurrency, None);
    // If two command lines differ, neither is used, unless one is directly before the report.
    let prose =
        "With hey -c 10 http://h/a and hey -c 20 http://h/a I got this, after some more words: ";
    assert_eq!(figures(&format!("{prose}{report}"), "hey")[0].concurrency, None);
    let shell = "$ hey -c 10 http://h/a\nconnection refused\n$ hey -c 20 http://h/a\n";
    assert_eq!(figures(&format!("{shell}{report}"), "hey")[0].concurrency, Some(20));
}

#[test]
fn a_command_line_that_contradicts_its_report_is_another_ones() {
    let report = text("ab-keepalive");
    let report = &report[report.find("This is").unwrap()..];
    let with = |asked: &str| figures(&format!("{asked}\n{report}"), "ab").remove(0).ordered;
    assert_eq!(with("$ ab -k -c 4 -n 2000 http://127.0.0.1:18931/index.html").requests, Some(2000));
    assert_eq!(with("$ ab -k -c 5 -n 2000 http://127.0.0.1:18931/index.html").requests, None);
    assert_eq!(with("$ ab -k -c 4 -n 2000 http://127.0.0.1:18931/other.html").requests, None);
}

#[test]
fn parts_of_reports_in_prose_stay_apart() {
    let text = "We asked for it ten at once:\n\n  Concurrency Level:      10\n  Complete requests:      100\n  \
                Failed requests:        0\n  Requests per second:    59.42\n\nOf these we care about:\n\n  \
                Complete requests:      100\n  Requests per second:    59.42\n\nAnd fifty at once:\n\n  \
                Concurrency Level:      50\n  Complete requests:      500\n  Requests per second:    133.01\n";
    let reports = figures(text, "ab");
    let told: Vec<_> =
        reports.iter().map(|report| (report.concurrency, report.requests.complete)).collect();
    assert_eq!(told, [(Some(10), Some(100)), (None, Some(100)), (Some(50), Some(500))]);
}

#[test]
fn progress_of_one_test_is_not_that_of_the_next() {
    let older = text("k6-0.4x");
    let newer = text("k6-1.x");
    for both in [format!("{newer}{older}"), format!("{newer}{newer}"), format!("{older}{newer}")] {
        let reports = figures(&both, "k6");
        assert_eq!(reports.len(), 2);
        for report in &reports {
            let secs = if report.requests.complete == Some(90) { 10 } else { 30 };
            assert_eq!(report.duration, Some(Nanos::from_secs(secs)));
        }
    }
}
