//! Text formats read by crates that are not ours: CSV, JUnit, JSON; and one snapshot of each format. Start reading at
//! [`junit_fits_what_jenkins_accepts`].

use std::collections::BTreeSet;

use quick_junit::{Report, TestCaseStatus};
use roxmltree::{Document, Node};
use serde_json::Value;

use crate::{all, of_load, of_run, records, testdata};

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("it is text")
}

#[test]
fn csv_is_read_by_another_parser_with_every_column_in_every_row() {
    for format in ["csv", "pairs-csv", "samples-csv"] {
        for (name, bytes) in all(format) {
            let mut reader = csv::ReaderBuilder::new().flexible(false).from_reader(&bytes[..]);
            let columns = reader.headers().unwrap().clone();
            let names: BTreeSet<&str> = columns.iter().collect();
            assert_eq!(names.len(), columns.len(), "{format} of {name}");
            let rows = reader
                .records()
                .map(|row| row.unwrap_or_else(|e| panic!("{format} of {name}: {e}")));
            rows.for_each(|row| assert_eq!(row.len(), columns.len()));
        }
    }
}

#[test]
fn a_sample_that_never_got_an_answer_has_empty_cells() {
    let csv = text(of_load("samples-csv", &records::load()));
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let columns: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    let cell = |row: usize, name: &str| {
        rows[row][columns.iter().position(|c| c == name).unwrap()].to_owned()
    };
    assert_eq!((cell(0, "first_byte_ms"), cell(0, "status")), ("0.5".to_owned(), "200".to_owned()));
    for name in ["first_byte_ns", "first_byte_ms", "status", "bytes_head"] {
        assert_eq!(cell(1, name), "", "{name}");
    }
}

/// An element, its children, and the attributes that it must and may have.
type ElementRule<'a> = (&'a str, &'a [&'a str], &'a [&'a str], &'a [&'a str]);

/// The rules of Jenkins' junit-10.xsd: which elements stand where, and which attributes they must and may have.
fn fits_jenkins(node: Node<'_, '_>) {
    let rules: &[ElementRule] = &[
        ("testsuites", &["testsuite"], &[], &["name", "time", "tests", "failures", "errors"]),
        (
            "testsuite",
            &["testsuite", "properties", "testcase", "system-out", "system-err"],
            &["name", "tests", "failures", "errors"],
            &["skipped", "time", "timestamp", "hostname", "id", "package", "file"],
        ),
        (
            "testcase",
            &["skipped", "error", "failure", "system-out", "system-err"],
            &["name"],
            &["time", "classname", "group"],
        ),
        ("skipped", &[], &[], &["type", "message"]),
        ("error", &[], &[], &["type", "message"]),
        ("failure", &[], &[], &["type", "message"]),
        ("system-out", &[], &[], &[]),
    ];
    let name = node.tag_name().name();
    let rule = rules.iter().find(|(element, ..)| *element == name);
    let (_, children, must, may) = rule.unwrap_or_else(|| panic!("<{name}> is unknown to Jenkins"));
    let has: Vec<&str> = node.attributes().map(|attribute| attribute.name()).collect();
    assert!(must.iter().all(|name| has.contains(name)), "<{name}> lacks one of {must:?}: {has:?}");
    assert!(has.iter().all(|name| must.contains(name) || may.contains(name)), "<{name}>: {has:?}");
    if let Some(time) = node.attribute("time") {
        // (([0-9]{0,3},)*[0-9]{3}|[0-9]{0,3})*(\.[0-9]*)?
        assert!(time.chars().all(|c| c.is_ascii_digit() || c == '.'), "{time}");
    }
    for child in node.children().filter(Node::is_element) {
        assert!(
            children.contains(&child.tag_name().name()),
            "{} in <{name}>",
            child.tag_name().name()
        );
        fits_jenkins(child);
    }
}

#[test]
fn junit_fits_what_jenkins_accepts() {
    for (name, bytes) in all("junit") {
        let xml = text(bytes);
        let document = Document::parse(&xml).unwrap_or_else(|e| panic!("{name}: {e}\n{xml}"));
        assert_eq!(document.root_element().tag_name().name(), "testsuites", "{name}");
        fits_jenkins(document.root_element());
    }
}

/// Failures, errors and skips, counted by the library.
fn results(report: &Report) -> [usize; 3] {
    let cases = || report.test_suites.iter().flat_map(|suite| &suite.test_cases);
    let count = |is: fn(&TestCaseStatus) -> bool| cases().filter(|case| is(&case.status)).count();
    let is_failure = |status: &TestCaseStatus| {
        matches!(
            status,
            TestCaseStatus::NonSuccess { kind: quick_junit::NonSuccessKind::Failure, .. }
        )
    };
    let is_error = |status: &TestCaseStatus| {
        matches!(
            status,
            TestCaseStatus::NonSuccess { kind: quick_junit::NonSuccessKind::Error, .. }
        )
    };
    [
        count(is_failure),
        count(is_error),
        count(|status| matches!(status, TestCaseStatus::Skipped { .. })),
    ]
}

#[test]
fn junit_is_read_by_the_library_of_nextest_with_the_same_counts() {
    for (name, bytes) in all("junit") {
        let report =
            Report::deserialize_from_str(&text(bytes)).unwrap_or_else(|e| panic!("{name}: {e}"));
        let [failures, errors, _] = results(&report);
        assert_eq!((report.failures, report.errors), (failures, errors), "{name}");
    }
}

#[test]
fn a_missed_goal_and_a_failed_run_are_no_success() {
    let report = |bytes| Report::deserialize_from_str(&text(bytes)).unwrap();
    assert_eq!(results(&report(of_load("junit", &records::load()))), [1, 0, 0]);
    // Three contenders and the run itself; it has no digest.
    assert_eq!(results(&report(of_run("junit", &testdata::all_failed()))), [0, 4, 1]);
    let mut sound = testdata::run_with(2);
    sound.verdicts.truncate(1);
    assert_eq!(results(&report(of_run("junit", &sound))), [0, 0, 1]);
}

#[test]
fn github_gets_exactly_the_fields_that_it_reads() {
    for format in ["github-benchmark", "github-benchmark-smaller"] {
        for (name, bytes) in all(format) {
            let json: Value = serde_json::from_slice(&bytes).unwrap();
            for entry in json.as_array().expect("an array") {
                let fields = entry.as_object().expect("of objects");
                assert!(
                    fields["name"].is_string() && fields["unit"].is_string(),
                    "{name}: {entry}"
                );
                assert!(fields["value"].as_f64().is_some(), "{name}: {entry}");
                let known = ["name", "unit", "value", "range", "extra"];
                assert!(fields.keys().all(|field| known.contains(&field.as_str())), "{entry}");
                let is_optional = |field: &str| fields.get(field).is_none_or(Value::is_string);
                assert!(is_optional("range") && is_optional("extra"), "{entry}");
            }
        }
    }
}

#[test]
fn every_line_of_ndjson_is_an_object_that_says_what_it_is_of() {
    for (name, bytes) in all("ndjson") {
        for line in text(bytes).lines() {
            let json: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert!(json["record"].is_string(), "{name}: {json}");
        }
    }
}

#[test]
fn each_format_of_a_run_is_as_it_was() {
    let run = testdata::run_with(2);
    for format in joust_report::run_outputs().filter(|format| !format.contains("parquet")) {
        // Those that `src/tests.rs` has, or that another test reads as a page.
        if ["text", "markdown", "html", "picture"].contains(&format) {
            continue;
        }
        let shown = without_histograms(&text(of_run(format, &run)));
        insta::assert_snapshot!(format!("run-{format}"), shown);
    }
}

#[test]
fn each_format_of_a_load_is_as_it_was() {
    let load = records::load();
    for format in joust_report::load_outputs().filter(|format| !format.contains("parquet")) {
        // Likewise; the page is tried in a browser.
        if ["text", "markdown", "html"].contains(&format) {
            continue;
        }
        let shown = without_histograms(&text(of_load(format, &load)));
        insta::assert_snapshot!(format!("load-{format}"), shown);
    }
}

/// The bytes of a deflated histogram may change with the library that deflates.
fn without_histograms(text: &str) -> String {
    let lines = text.lines().map(|line| match line.split_once(",HISTFAAA") {
        Some((before, _)) => format!("{before},HISTFAAA..."),
        None => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}
