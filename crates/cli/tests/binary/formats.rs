//! docs/reports.md is correct: its table has every format with what it shows, its commands run, and a format that
//! cannot show a record says which can. Start reading at [`every_format_is_in_the_page_and_no_other`].

use std::collections::BTreeSet;

use report::{OUTPUTS, Written};

use crate::docs::{flags, page, words};
use crate::{Server, joust, output, said, stdout};

const PAGE: &str = "docs/reports.md";

/// A folder with the files that the page names.
fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let run = crate::history::made_up(1, 1.0);
    std::fs::write(dir.path().join("run.json"), run.to_sealed_json()).unwrap();
    let server = Server::start(&["--fixed", "100"]);
    let load = dir.path().join("load.json");
    let made = output(&["load", &server.url, "-n", "400", "--json", load.to_str().unwrap()]);
    assert!(made.status.success(), "{}", said(&made));
    dir
}

#[test]
fn every_format_is_in_the_page_and_no_other() {
    let yes = |is: bool| if is { "yes" } else { "no" };
    let row = |format: &&report::Output| {
        let kept = format.written == Written::WithEveryRun;
        let [run, load, kept] = [format.run.is_some(), format.load.is_some(), kept].map(yes);
        format!("| `{}` | `{}` | {run} | {load} | {kept} |", format.name, format.extension)
    };
    let expected: BTreeSet<String> = OUTPUTS.iter().map(row).collect();
    let page = page(PAGE);
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    let told: BTreeSet<String> = rows
        .map(|line| {
            let cells: Vec<&str> = line.split(" | ").take(5).collect();
            format!("{} |", cells.join(" | "))
        })
        .collect();
    assert_eq!(told, expected);
}

#[test]
fn every_command_of_the_page_runs() {
    let dir = folder();
    let page = page(PAGE);
    let mut commands = 0;
    for command in page.lines().filter_map(|line| line.strip_prefix("$ ")) {
        let words = words(command);
        assert_eq!(words[..2], ["joust", "report"], "{command}");
        let ended = joust(&words[1..].iter().map(String::as_str).collect::<Vec<_>>())
            .current_dir(dir.path())
            .output()
            .unwrap();
        assert!(ended.status.success(), "{command}: {}", said(&ended));
        if let Some(at) = words.iter().position(|word| word == "--out") {
            let file = dir.path().join(&words[at + 1]);
            assert!(file.metadata().unwrap().len() > 0, "{command}");
        }
        commands += 1;
    }
    assert!(commands > 15, "{commands}");
}

#[test]
fn every_format_that_a_workflow_of_the_page_names_exists() {
    let page = page(PAGE);
    let words: Vec<&str> = page.split_whitespace().collect();
    let named = words.windows(2).filter(|pair| pair[0] == "--format").map(|pair| pair[1]);
    for format in named.map(|name| name.trim_end_matches(['`', ',', '.', ')'])) {
        assert!(report::output(format).is_some(), "{format}");
    }
    let help = stdout(&output(&["report", "--help"]));
    let missing: Vec<_> = flags(&help).difference(&flags(&page)).copied().collect();
    assert_eq!(missing, ["--help"]);
}

#[test]
fn a_format_that_cannot_show_a_record_names_those_that_can() {
    let dir = folder();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let of_run = output(&["report", &path("run.json"), "--format", "k6-summary"]);
    assert_eq!(of_run.status.code(), Some(2));
    assert!(
        said(&of_run).contains("html, picture") && said(&of_run).contains("hlog"),
        "{}",
        said(&of_run)
    );
    let of_load = output(&["report", &path("load.json"), "--format", "picture"]);
    assert_eq!(of_load.status.code(), Some(2));
    assert!(said(&of_load).contains("k6-summary, hgrm"), "{}", said(&of_load));
    let unknown = output(&["report", &path("run.json"), "--format", "pdf"]);
    assert!(said(&unknown).contains("the formats are text, markdown"), "{}", said(&unknown));
    let both = output(&["report", &path("run.json"), "--format", "json", "--figures", &path("f")]);
    assert_eq!(both.status.code(), Some(2));
}

#[test]
fn figures_are_files_and_binary_formats_are_whole() {
    let dir = folder();
    let figures = dir.path().join("figures");
    let run = dir.path().join("run.json");
    let run = run.to_str().unwrap();
    let made = output(&["report", run, "--figures", figures.to_str().unwrap()]);
    assert!(figures.join("picture.svg").exists(), "{}", said(&made));
    if !made.status.success() {
        assert!(said(&made).contains("fonts-dejavu-core"), "{}", said(&made));
        return skips::note("no font is installed, so PNG files were not made");
    }
    let files: Vec<_> =
        std::fs::read_dir(&figures).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(stdout(&made).lines().count(), files.len());
    for png in files.iter().filter(|path| path.extension().is_some_and(|end| end == "png")) {
        assert!(png.with_extension("svg").exists(), "{}", png.display());
        assert!(std::fs::read(png).unwrap().starts_with(b"\x89PNG\r\n"), "{}", png.display());
    }
    let parquet = output(&["report", run, "--format", "parquet"]).stdout;
    assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));
}
