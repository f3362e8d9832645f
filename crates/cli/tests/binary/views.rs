//! The views of a load besides its totals: figures by request, the stream of intervals, and several merged records.
//! Start reading at the first test.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::load::record;
use crate::planted::{Planted, reply};
use crate::{Server, joust, output, said, stdout};

/// A file of requests, and a server that lacks one of them.
fn mixed(dir: &Path) -> (Planted, String) {
    let server = Planted::start(|seen| match seen.line() {
        "GET /missing" => b"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnone".to_vec(),
        _ => reply("", "0123456789"),
    });
    let file = dir.join("requests.jsonl");
    let lines = [
        "{\"url\": \"/\", \"weight\": 3}",
        "{\"url\": \"/missing\"}",
        "{\"url\": \"/items\", \"method\": \"POST\", \"body\": \"x\"}",
    ];
    std::fs::write(&file, lines.join("\n")).unwrap();
    (server, file.display().to_string())
}

fn load<'a>(url: &'a str, file: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let base = ["load", url, "--from", file, "-c", "2", "-n", "50", "--verify", "none"];
    [&base[..], more].concat()
}

fn sum(rows: &Value, field: &str) -> u64 {
    rows.as_array().unwrap().iter().map(|row| row[field].as_u64().unwrap()).sum()
}

#[test]
fn each_request_of_a_file_has_its_own_figures_and_they_add_up() {
    let dir = tempfile::tempdir().unwrap();
    let (server, file) = mixed(dir.path());
    let url = server.url("/");
    let record = record(&load(&url, &file, &["--json", "-", "-t", "2"]));
    let rows = &record["by_request"];
    let names: Vec<&str> =
        rows.as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["GET /", "GET /missing", "POST /items"]);
    let counts: Vec<u64> =
        rows.as_array().unwrap().iter().map(|row| row["done"].as_u64().unwrap()).collect();
    assert_eq!(counts, [30, 10, 10]);
    assert_eq!(rows[1]["failed"], 10);
    for field in ["done", "ok", "failed", "unanswered"] {
        assert_eq!(sum(rows, field), record["requests"][field].as_u64().unwrap(), "{field}");
    }
    assert_eq!(sum(rows, "bytes_read"), record["bytes"]["read"].as_u64().unwrap());
    // Each single request is named, and in its row.
    let raw = record["raw"].as_array().unwrap();
    let name = |sample: &Value| {
        let index = sample["request"].as_u64().unwrap_or(0).to_string();
        record["raw_names"][&index].as_str().unwrap().to_owned()
    };
    let n_missing = raw.iter().filter(|sample| name(sample) == "GET /missing").count();
    assert_eq!((raw.len(), n_missing), (50, 10));
    let text = stdout(&output(&load(&url, &file, &[])));
    for part in ["By request", "GET /missing", "POST /items", "4xx: 10 (404: 10)", "Distribution"] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let alone = stdout(&output(&["load", &url, "-n", "20", "-c", "1"]));
    assert!(!alone.contains("By request"), "{alone}");
}

/// The sums of the lines, by column.
fn totals(csv: &str) -> Vec<(String, f64)> {
    let mut lines = csv.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let mut sums = vec![0.0; names.len()];
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        assert_eq!(cells.len(), names.len(), "{line}");
        for (sum, cell) in sums.iter_mut().zip(cells) {
            *sum += cell.parse::<f64>().unwrap_or(0.0);
        }
    }
    names.into_iter().map(str::to_owned).zip(sums).collect()
}

#[test]
fn the_lines_of_a_stream_add_up_to_the_record() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&["--fixed", "1000"]);
    let (csv, json) = (dir.path().join("load.csv"), dir.path().join("load.json"));
    let places = ["--stream", csv.to_str().unwrap(), "--json", json.to_str().unwrap()];
    let args = [&["load", &server.url, "-c", "4", "-d", "450ms", "-t", "2"], &places[..]].concat();
    let output = output(&args);
    assert!(output.status.success(), "{}", said(&output));
    let text = std::fs::read_to_string(csv).unwrap();
    assert!(text.lines().count() >= 5, "a line each 100 ms: {text}");
    let record: Value = serde_json::from_str(&std::fs::read_to_string(json).unwrap()).unwrap();
    let total = |name: &str| {
        let of_all = totals(&text);
        of_all.into_iter().find(|(column, _)| column == name).unwrap().1 as u64
    };
    for field in ["started", "ok", "failed"] {
        assert_eq!(total(field), record["requests"][field].as_u64().unwrap(), "{field}");
    }
    assert_eq!(total("bytes_read"), record["bytes"]["read"].as_u64().unwrap());
    assert_eq!(total("status_2xx"), record["status"]["200"].as_u64().unwrap());
}

#[test]
fn a_stream_on_stdout_comes_while_the_load_runs_and_the_report_goes_to_stderr() {
    let server = Server::start(&["--fixed", "1000"]);
    let args = ["load", &server.url, "-c", "2", "-d", "700ms", "--stream", "-"];
    let mut command = joust(&args);
    let mut load = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(load.stdout.take().unwrap()).lines();
    let first: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(first["start_s"], 0);
    assert!(first["ok"].as_u64().unwrap() > 0);
    assert!(load.try_wait().unwrap().is_none(), "the load still runs");
    for line in lines {
        serde_json::from_str::<Value>(&line.unwrap()).expect("each line is an object");
    }
    let mut report = String::new();
    load.stderr.take().unwrap().read_to_string(&mut report).unwrap();
    assert!(load.wait().unwrap().success());
    assert!(report.contains("requests/s over"), "{report}");
}

#[test]
fn a_reader_that_goes_or_never_reads_disturbs_no_load() {
    let server = Server::start(&["--fixed", "1000"]);
    let args = ["load", &server.url, "-c", "2", "-n", "500", "-r", "1k/s", "--stream", "-"];
    // The reader goes away after the first line.
    let mut load = joust(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(load.stdout.take().unwrap());
    out.read_line(&mut String::new()).unwrap();
    drop(out);
    let output = load.wait_with_output().unwrap();
    assert!(said(&output).contains("500 ok of 500 started"), "{}", said(&output));
    assert_ne!(output.status.code(), Some(1), "a reader that has gone is no failure");
    // A pipe that nobody opens: reported after the load, which is complete.
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let pipe = pipe.to_str().unwrap();
    let output = crate::output(&["load", &server.url, "-c", "2", "-n", "50", "--stream", pipe]);
    assert!(stdout(&output).contains("50 ok of 50 started"), "{}", stdout(&output));
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("was not read to its end"), "{}", said(&output));
}

#[test]
fn a_stream_that_cannot_be_written_is_said_and_fails() {
    let server = Server::start(&["--fixed", "1000"]);
    let full = output(&["load", &server.url, "-n", "50", "--stream", "/dev/full"]);
    assert_eq!(full.status.code(), Some(1));
    assert!(said(&full).contains("cannot write to /dev/full"), "{}", said(&full));
    assert!(stdout(&full).contains("50 ok of 50 started"));
    let nowhere = output(&["load", &server.url, "-n", "50", "--stream", "/no/folder/x.csv"]);
    assert_eq!(nowhere.status.code(), Some(2));
    for (more, part) in [
        (&["--stream", "-", "--json", "-"][..], "cannot both be stdout"),
        (&["--stream", "one.csv", "--json", "one.csv"], "cannot both be one.csv"),
        (&["--stream", "-", "--search", "p99<1s"], "--search"),
        (&["--stream-format", "csv"], "--stream"),
    ] {
        let refused = output(&[&["load", &server.url, "-n", "50"], more].concat());
        assert_eq!(refused.status.code(), Some(2), "{more:?}");
        assert!(said(&refused).contains(part), "{part}: {}", said(&refused));
    }
}

/// A load whose record goes to a file of the folder.
fn recorded(dir: &Path, name: &str, url: &str, more: &[&str]) -> String {
    let file = dir.join(name).display().to_string();
    let base = ["load", url, "-c", "2", "-n", "300", "--json", &file, "--quiet"];
    let output = output(&[&base[..], more].concat());
    assert!(output.status.success(), "{}", said(&output));
    file
}

#[test]
fn records_of_several_loads_are_merged_into_one() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&["--fixed", "1000"]);
    let one = recorded(dir.path(), "a.json", &server.url, &[]);
    let two = recorded(dir.path(), "b.json", &server.url, &["--timeout", "7s"]);
    let merged = record(&["load", "--merge", &one, &two, "--json", "-"]);
    assert_eq!(merged["requests"]["ok"], 600);
    assert_eq!(merged["status"]["200"], 600);
    assert_eq!(merged["format"], "joust-load/2");
    let other_way = record(&["load", "--merge", &two, &one, "--json", "-"]);
    assert_eq!(other_way, merged);
    let output = output(&["load", "--merge", &one, &two, "--slo", "errors<1%,rate>1000000/s"]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(99), "{text}");
    for part in
        ["600 ok of 600 started", "merged from 2 loads that ran one after the other", "timeout"]
    {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let only = crate::output(&["load", "--merge", &one, "--json", "-"]);
    assert!(said(&only).contains("--merge got one file"), "{}", said(&only));
    let alone: Value = serde_json::from_str(&stdout(&only)).unwrap();
    let before: Value = serde_json::from_str(&std::fs::read_to_string(&one).unwrap()).unwrap();
    assert_eq!(alone, before, "one record alone is itself");
}

#[test]
fn what_cannot_be_merged_is_refused_with_its_reason() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&["--fixed", "1000"]);
    let one = recorded(dir.path(), "a.json", &server.url, &[]);
    let elsewhere = format!("{}other", server.url);
    let other = recorded(dir.path(), "b.json", &elsewhere, &[]);
    let cut = dir.path().join("cut.json");
    std::fs::write(&cut, &std::fs::read_to_string(&one).unwrap()[..1000]).unwrap();
    let cut = cut.display().to_string();
    let cases: [(&[&str], &str); 8] = [
        (&["--merge", &one, &other], "different requests"),
        (&["--merge", &one, &one], "the same load"),
        (&["--merge", &one, "/no/such.json"], "cannot read /no/such.json"),
        (&["--merge", &one, &cut], "not a joust file"),
        (&["--merge", &one, "-c", "4"], "--connections"),
        (&[&server.url, "--merge", &one], "cannot be used with"),
        (&["--merge", &one, &server.url], "leave the URL out"),
        (&["--merge", &one, "no\u{1b}[31m.json"], "cannot read no\u{fffd}[31m.json"),
    ];
    for (args, part) in cases {
        let output = output(&[&["load"], args].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", stdout(&output));
        assert!(said(&output).contains(part), "{part}: {}", said(&output));
    }
}
