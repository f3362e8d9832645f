//! `joust doctor` on the output of other tools: files, several of them, and standard input.

use std::io::Write as _;
use std::process::Stdio;

use crate::{joust, output, said, stdout};

const TABLE: &str = "server,connections,req/s,mean latency (ms)\na,64,32013,2.00\nb,64,16007,4.00\n\
                     c,64,8009,7.99\nd,64,41011,9.00\n";

#[test]
fn a_table_is_examined_from_a_file_and_from_stdin_alike() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("results");
    std::fs::write(&file, TABLE).unwrap();
    let of_file = output(&["doctor", file.to_str().unwrap()]);
    assert_eq!(of_file.status.code(), Some(0), "{}", said(&of_file));
    let text = stdout(&of_file);
    assert!(text.contains("d, 1 of 4 rows: rate x mean latency is 577 %"), "{text}");
    assert!(
        text.contains("What can be concluded") && text.contains("1 of 4 rows not believable"),
        "{text}"
    );
    for args in [&["doctor"][..], &["doctor", "-"]] {
        let mut child =
            joust(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        child.stdin.take().unwrap().write_all(TABLE.as_bytes()).unwrap();
        let of_stdin = child.wait_with_output().unwrap();
        let rest = |text: &str| text.split_once('\n').unwrap().1.to_owned();
        assert_eq!(rest(&stdout(&of_stdin)), rest(&text));
    }
}

#[test]
fn findings_can_be_had_as_json() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("results.csv");
    std::fs::write(&file, TABLE).unwrap();
    let found = output(&["doctor", "--json", file.to_str().unwrap()]);
    let value: serde_json::Value = serde_json::from_str(&stdout(&found)).expect("it is JSON");
    let checks: Vec<&str> = value["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| finding["check"].as_str().unwrap())
        .collect();
    assert!(checks.contains(&"littles_law"), "{checks:?}");
    assert_eq!(value["sources"][0]["rows"], 4);
}

#[test]
fn what_cannot_be_read_says_what_can() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("notes.txt");
    std::fs::write(&file, "nothing of interest\n").unwrap();
    let refused = output(&["doctor", file.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(2));
    let text = said(&refused);
    assert!(text.contains("holds no report of a load tool and no table"), "{text}");
    assert!(text.contains("siege") && text.contains("Markdown"), "{text}");
    let missing = output(&["doctor", "/nowhere/at/all"]);
    assert_eq!(missing.status.code(), Some(2));
    // Empty standard input.
    assert!(said(&output(&["doctor"])).contains("it is empty"));
}
