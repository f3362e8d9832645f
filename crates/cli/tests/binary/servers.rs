//! `joust servers`, and docs/adding-a-server.md: its commands run and print what the page shows, its study passes its
//! check, and the code it quotes is the actual code.

use std::path::Path;

use crate::docs::{page, root, words};
use crate::{output, said, stdout};

const PAGE: &str = "docs/adding-a-server.md";

/// Blocks of the page in a language.
fn blocks(language: &str) -> Vec<String> {
    let page = page(PAGE);
    let mut parts = page.split("\n```");
    parts.next();
    // Parts alternate: the inside of a block, which begins with its language, and the text after it.
    let inside = parts.step_by(2).filter_map(|part| part.split_once('\n'));
    inside.filter(|(said, _)| *said == language).map(|(_, text)| text.to_owned()).collect()
}

#[test]
fn servers_are_listed_with_what_is_here_and_what_brings_the_others() {
    let all = stdout(&output(&["servers"]));
    for adapter in lab::adapters::ALL {
        assert!(
            all.lines().any(|line| line.trim_start().starts_with(adapter.name)),
            "{}: {all}",
            adapter.name
        );
    }
    assert!(all.contains(&format!("joust/{}", env!("CARGO_PKG_VERSION"))), "{all}");
    let tomcat = stdout(&output(&["servers", "tomcat"]));
    for word in ["maxThreads = 200", "-Xmx", "tomcat10 default-jre-headless", "10.0, for jakarta"] {
        assert!(tomcat.contains(word), "{word}: {tomcat}");
    }
    let mistyped = output(&["servers", "nginks"]);
    assert_eq!(mistyped.status.code(), Some(2));
    assert!(said(&mistyped).contains("did you mean `nginx`?"), "{}", said(&mistyped));
}

#[test]
fn as_json_there_is_all_of_it() {
    let parsed = |args: &[&str]| -> serde_json::Value {
        serde_json::from_str(&stdout(&output(args))).unwrap()
    };
    let all = parsed(&["servers", "--json"]);
    let servers = all["servers"].as_array().unwrap();
    assert_eq!(servers.len(), lab::adapters::ALL.len());
    for server in servers {
        assert!(server["name"].is_string() && server["settings"].is_array(), "{server}");
        let key = if server["installed"] == true { "version" } else { "remedy" };
        assert!(server[key].is_string(), "{server}");
    }
    let one = parsed(&["servers", "nginx", "--json"]);
    assert_eq!(one["servers"][0]["settings"][0]["name"], "worker_processes");
}

#[test]
fn every_command_of_the_page_on_adding_one_prints_what_it_shows() {
    let dir = tempfile::tempdir().unwrap();
    let studies = blocks("toml");
    assert_eq!(studies.len(), 1);
    let file = dir.path().join("mine.toml");
    std::fs::write(&file, &studies[0]).unwrap();
    let mut steps = 0;
    for block in blocks("console") {
        let mut printed = String::new();
        for line in block.lines() {
            let Some(command) = line.strip_prefix("$ joust ") else {
                assert!(printed.contains(line), "`{line}` is not in:\n{printed}");
                continue;
            };
            let command = command.replace("mine.toml", file.to_str().unwrap());
            let words = words(&command);
            let done = output(&words.iter().map(String::as_str).collect::<Vec<_>>());
            assert!(done.status.success(), "{command}: {}", said(&done));
            (printed, steps) = (stdout(&done), steps + 1);
        }
    }
    assert!(steps >= 4, "the page has its commands: {steps}");
}

#[test]
fn the_code_that_the_page_quotes_is_the_code() {
    let adapters = root().join("crates/lab/src/adapters");
    let read = |name: &str| std::fs::read_to_string(adapters.join(name)).unwrap();
    let code = read("mini_httpd.rs") + &read("mod.rs");
    let quoted = blocks("rust");
    assert!(quoted.len() > 4, "the page quotes: {}", quoted.len());
    for line in quoted.iter().flat_map(|block| block.lines()) {
        assert!(code.lines().any(|known| known == line), "no line `{line}`");
    }
}

#[test]
fn the_switches_and_files_that_the_page_names_are_those_that_there_are() {
    let page = page(PAGE);
    for name in doctor::parity::Switch::ALL.iter().map(|switch| switch.name()) {
        assert!(page.contains(&format!("| `{name}` |")), "{name}");
    }
    let tests = root().join("crates/lab/tests");
    for name in ["adapters_config", "adapters_live", "adapters_leave_nothing"] {
        assert!(page.contains(name) && tests.join(name).with_extension("rs").exists(), "{name}");
    }
    assert!(Path::new(&root().join("Makefile")).exists() && page.contains("make bench-lab-starts"));
    let makefile = std::fs::read_to_string(root().join("Makefile")).unwrap();
    assert!(makefile.contains("\nbench-lab-starts:"));
}
