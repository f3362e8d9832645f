//! Formats for other programs, read by parsers that are not ours: crates, and packages of Python that
//! `scripts/peers.sh` brings. Start reading at [`every_format_shows_every_record`]; `records` has what is shown.

mod node;
#[cfg(feature = "parquet")]
mod parquet;
mod python;
mod records;
#[path = "../../src/testdata.rs"]
#[expect(dead_code, reason = "unit tests use the rest")]
mod testdata;
mod text;

use joust_report::{OUTPUTS, Options, Output, Render};
use record::{LoadRecord, RunRecord};

fn of_run(format: &str, record: &RunRecord) -> Vec<u8> {
    let output = joust_report::output(format).expect("a known format");
    output.run.as_ref().expect("it shows runs").bytes(record, &Options::default())
}

fn of_load(format: &str, record: &LoadRecord) -> Vec<u8> {
    let output = joust_report::output(format).expect("a known format");
    output.load.as_ref().expect("it shows loads").bytes(record, &Options::default())
}

/// Every record of [`records`] in a format, with names for a failing test.
fn all(format: &str) -> Vec<(String, Vec<u8>)> {
    let output = joust_report::output(format).expect("a known format");
    let mut all = Vec::new();
    if output.run.is_some() {
        let runs = records::runs().into_iter();
        all.extend(runs.map(|(name, run)| (format!("run: {name}"), of_run(format, &run))));
    }
    if output.load.is_some() {
        let loads = records::loads().into_iter();
        all.extend(loads.map(|(name, load)| (format!("load: {name}"), of_load(format, &load))));
    }
    all
}

fn is_text(output: &Output) -> bool {
    matches!(
        (&output.run, &output.load),
        (Some(Render::Text(_)), _) | (None, Some(Render::Text(_)))
    )
}

#[test]
fn every_format_shows_every_record() {
    for output in OUTPUTS {
        for (name, bytes) in all(output.name) {
            assert!(!bytes.is_empty(), "{} of {name}", output.name);
            if is_text(output) {
                let text = String::from_utf8(bytes).unwrap();
                assert!(text.ends_with('\n'), "{} of {name}", output.name);
                let is_control = |c: char| c.is_control() && !"\r\n".contains(c);
                assert!(!text.contains(is_control), "{} of {name}: {text}", output.name);
                // A page's script has names of the language.
                let shown = text.split("<script").map(|part| match part.split_once("</script>") {
                    Some((_, after)) => after,
                    None => part,
                });
                let shown: String = shown.collect();
                let words = shown.split(|c: char| !c.is_ascii_alphanumeric());
                let bad = words.filter(|word| ["NaN", "inf", "Infinity"].contains(word)).count();
                assert_eq!(bad, 0, "{} of {name}", output.name);
            }
        }
    }
}

#[test]
fn every_format_is_also_found_by_its_extension() {
    for (typed, found) in
        [("md", "markdown"), ("txt", "text"), ("csv", "csv"), ("prom", "openmetrics")]
    {
        assert_eq!(joust_report::output(typed).unwrap().name, found);
    }
}

#[test]
fn the_same_record_gives_the_same_file() {
    for output in OUTPUTS {
        assert_eq!(all(output.name), all(output.name), "{}", output.name);
    }
}
