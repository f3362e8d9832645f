//! The pages about `joust serve`, and README.md, are correct: each of their commands is accepted, each server that they
//! start answers and ends, and `--check-config` accepts each configuration. The pages contain every flag, and their
//! tables name the actual keys and defaults. Owns the location of the files that they name. Start reading at [`Block`].

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::docs::{flags, label, page, root, short, spaced, words};
use crate::planted::installed;
use crate::{Server, joust, output, said, stdout};

const PAGES: [&str; 5] =
    ["docs/serve.md", "docs/site.md", "docs/gateway.md", "docs/faults.md", "docs/models.md"];

/// The text between two lines of backticks.
struct Block {
    /// PAGE:LINE of the first.
    at: String,
    /// The language after the first: `console`, `toml`, ...
    language: String,
    lines: Vec<String>,
}

/// All blocks of a page.
fn blocks(name: &str) -> Vec<Block> {
    let (mut blocks, mut open): (Vec<Block>, Option<Block>) = (Vec::new(), None);
    for (index, line) in page(name).lines().enumerate() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(language), None) => {
                let (at, language) = (format!("{name}:{}", index + 1), language.to_owned());
                open = Some(Block { at, language, lines: Vec::new() });
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, Some(block)) => block.lines.push(line.to_owned()),
            (None, None) => {}
        }
    }
    blocks
}

fn of_language(language: &str, pages: &[&str]) -> Vec<Block> {
    let all = pages.iter().flat_map(|name| blocks(name));
    all.filter(|block| block.language == language).collect()
}

/// A command and what is shown below it.
struct Step {
    words: Vec<String>,
    shown: Vec<String>,
}

impl Block {
    /// `$ COMMAND`, or every line of a script; a comment follows two spaces.
    fn steps(&self) -> Vec<Step> {
        let is_script = self.language == "sh";
        let text = self.lines.join("\n").replace("\\\n", "");
        let mut steps: Vec<Step> = Vec::new();
        for line in text.lines().filter(|line| !line.is_empty()) {
            let command = if is_script { Some(line) } else { line.strip_prefix("$ ") };
            match command {
                Some(command) => {
                    let command = command.split("  #").next().unwrap_or_default();
                    let mut words = words(&command.replace("target/release/joust", "joust"));
                    words.retain(|word| !word.is_empty());
                    steps.push(Step { words, shown: Vec::new() });
                }
                None => {
                    let step = steps.last_mut().expect("a block begins with a command");
                    step.shown.push(line.to_owned());
                }
            }
        }
        steps
    }
}

/// A directory with everything that the pages name.
struct Stage {
    dir: tempfile::TempDir,
    served: Option<Server>,
}

/// Roots of absolute paths in the pages; here they are in the stage.
const ROOTS: [&str; 5] = ["/srv/", "/etc/", "/var/", "/usr/", "/run/"];

const DIRECTORIES: [&str; 9] = [
    "srv/www",
    "srv/example",
    "srv/api",
    "srv/static",
    "srv/blog",
    "srv/git",
    "var/log/joust",
    "usr/lib/cgi-bin",
    "run/php",
];

const PROGRAMS: [&str; 2] = ["usr/bin/php-cgi", "usr/lib/git-core/git-http-backend"];

/// Files whose content does not matter.
const PAGES_OF_ERRORS: [&str; 2] = ["etc/joust/404.html", "etc/joust/maintenance.html"];

const CERTIFICATES: [&str; 2] = ["etc/joust/example.org", "etc/joust/example.net"];

/// A hash of crypt_blowfish's own tests.
const USERS: &str = "ann:$2y$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW\n";

impl Stage {
    fn set() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &[u8]| {
            let file = dir.path().join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, text).unwrap();
            file
        };
        for name in DIRECTORIES {
            std::fs::create_dir_all(dir.path().join(name)).unwrap();
        }
        for name in PAGES_OF_ERRORS {
            put(name, b"<!doctype html>");
        }
        put("etc/joust/users", USERS.as_bytes());
        put("etc/joust/joust.toml", b"fixed = 1\n");
        put("site/index.html", b"<!doctype html><title>joust</title>");
        put("public/index.html", b"<!doctype html><title>joust</title>");
        for name in PROGRAMS {
            let file = put(name, b"#!/bin/sh\n");
            std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let pem = wire::tls::self_signed(&["localhost"]).unwrap();
        for name in CERTIFICATES {
            put(&format!("{name}.pem"), &pem.chain);
            put(&format!("{name}.key"), &pem.key);
        }
        put("fullchain.pem", &pem.chain);
        put("key.pem", &pem.key);
        Self { dir, served: None }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A text of a page, with its paths replaced by those of the stage.
    fn place(&self, text: &str) -> String {
        let dir = self.dir.path().display();
        let mut text = text.to_owned();
        for root in ROOTS {
            for before in ["\"", "unix:", " "] {
                let here = format!("{before}{dir}{root}");
                text = text.replace(&format!("{before}{root}"), &here);
            }
        }
        match &self.served {
            Some(server) => text.replace("http://127.0.0.1:8080/", &server.url),
            None => text,
        }
    }

    /// The exit code and output of the command.
    fn run(&self, args: &[&str], at: &Path) -> (Option<i32>, String) {
        let args: Vec<String> = args.iter().map(|word| self.place(word)).collect();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let output = joust(&args).current_dir(at).output().expect("it starts");
        (output.status.code(), format!("{}{}", stdout(&output), said(&output)))
    }

    /// Starts it on a free port, and requests a page.
    fn serve(&mut self, args: &[&str], at: &str) -> String {
        self.end(at);
        let mut args = args.to_vec();
        if let Some(listen) = args.iter().position(|word| *word == "--listen") {
            args.drain(listen..listen + 2);
        }
        let args = [&["serve", "--listen", "127.0.0.1:0"], &args[..]].concat();
        let mut command = joust(&args);
        command.current_dir(self.dir.path()).stderr(Stdio::null());
        let server = Server::of(command);
        let asks = ["-n", "3", "-c", "1", "--insecure", "--verify", "none"];
        let load = output(&[&["load", &server.url], &asks[..]].concat());
        assert!(load.status.success(), "{at}\n{}{}", stdout(&load), said(&load));
        self.served.insert(server).line.clone()
    }

    /// Ends the server in order, if there is one.
    fn end(&mut self, at: &str) {
        let code = self.served.take().map(Server::drain);
        assert!(
            matches!(code, None | Some(Some(0))),
            "{at}: the server before ended with {code:?}"
        );
    }

    /// Does what a page says.
    fn follow(&mut self, step: &Step, at: &str) {
        let all: Vec<&str> = step.words.iter().map(String::as_str).collect();
        let at = format!("{at}: {}", all.join(" "));
        let dir = self.dir.path().to_owned();
        let well = |(code, text): (Option<i32>, String)| {
            assert_eq!(code, Some(0), "{at}\n{text}");
            text
        };
        let printed = match &all[..] {
            ["joust", "serve", args @ .., ">", file] => {
                let text = well(self.run(&[&["serve"], args].concat(), &dir));
                std::fs::write(self.path(file), &text).unwrap();
                text
            }
            ["joust", "serve", args @ ..] if args.contains(&"--check-config") => {
                well(self.run(&[&["serve"], args].concat(), &dir))
            }
            ["joust", "serve", args @ ..] => self.serve(args, &at),
            ["joust", "models" | "servers", ..] => well(self.run(&all[1..], &dir)),
            ["joust", "run", ..] => {
                let study = |word: &&str| word.replace("STUDY.toml", "studies/quick.toml");
                let args: Vec<String> = all[1..].iter().map(study).collect();
                let mut args: Vec<&str> = args.iter().map(String::as_str).collect();
                args.retain(|word| *word != "--check");
                args.push("--check");
                well(self.run(&args, &root()))
            }
            ["curl", args @ ..] => self.curl(args, &at),
            other => panic!("{at}: nobody runs {other:?}"),
        };
        for shown in &step.shown {
            let label = label(shown);
            assert!(spaced(&printed).contains(&label), "{at}\n`{label}` is not in:\n{printed}");
        }
    }

    fn curl(&self, args: &[&str], at: &str) -> String {
        let Some(curl) = installed("curl") else { return String::new() };
        let args = args.iter().map(|word| self.place(word));
        let done = std::process::Command::new(curl).arg("-sSf").args(args).output().unwrap();
        assert!(done.status.success() && !done.stdout.is_empty(), "{at}: {done:?}");
        stdout(&done)
    }
}

#[test]
fn every_command_of_the_pages_on_serving_runs() {
    let mut stage = Stage::set();
    let blocks = of_language("console", &PAGES);
    let steps: usize = blocks.iter().map(|block| block.steps().len()).sum();
    assert!(steps > 15, "the pages have their commands: {steps}");
    for block in blocks {
        block.steps().iter().for_each(|step| stage.follow(step, &block.at));
    }
    stage.end("the end");
}

#[test]
fn every_command_of_the_readme_is_accepted() {
    let mut stage = Stage::set();
    stage.serve(&["--fixed", "3361"], "README.md");
    std::fs::write(stage.path("urls.txt"), &stage.served.as_ref().unwrap().url).unwrap();
    let dir = stage.dir.path().to_owned();
    let blocks = of_language("sh", &["README.md"]);
    let mut seen = 0;
    for (step, at) in blocks.iter().flat_map(|b| b.steps().into_iter().map(|step| (step, &b.at))) {
        seen += 1;
        let words: Vec<&str> = step.words.iter().map(String::as_str).collect();
        match &words[..] {
            // Files of the reader.
            ["joust", "load", "--merge", ..] => {}
            ["joust", "load", ..] => {
                let args = short(&step.words[1..]);
                let args: Vec<&str> = args.iter().map(String::as_str).collect();
                // Its findings depend on the machine; the page only needs the command to be accepted.
                let (code, text) = stage.run(&args, &dir);
                assert!(code != Some(2), "{at}: {words:?}\n{text}");
            }
            ["joust", "serve" | "models" | "servers", ..] => {
                let mut own = Stage::set();
                own.follow(&step, at);
                own.end(at);
            }
            // Programs of the reader.
            ["joust", "run", "--base", ..] => {}
            ["joust", "run", ..] => stage.follow(&step, at),
            // These need a run; this one writes to the home folder.
            ["joust", "report" | "compare" | "history" | "doctor" | "man", ..] => {}
            // The doctor's reading of a pasted report has tests of its own.
            ["wrk", .., "|", "joust", "doctor"] => {}
            // Compared with the real tool in separate tests.
            ["joust", "ab" | "siege" | "wrk", ..] => {}
            ["make" | "cargo" | "install" | "sudo", ..] => {}
            other => panic!("{at}: nobody runs {other:?}"),
        }
    }
    assert!(seen > 15, "the page has its commands: {seen}");
}

#[test]
fn every_configuration_of_the_pages_passes_its_check() {
    let stage = Stage::set();
    let (file, site) = (stage.path("of-a-page.toml"), stage.path("site"));
    let blocks = of_language("toml", &PAGES);
    assert!(blocks.len() > 12, "the pages have their configurations: {}", blocks.len());
    for block in blocks {
        let text = stage.place(&block.lines.join("\n"));
        let table: toml::Table = toml::from_str(&text).expect(&block.at);
        std::fs::write(&file, &text).unwrap();
        let mut args = vec!["serve", "--config", file.to_str().unwrap(), "--check-config"];
        if !["directory", "fixed", "host"].iter().any(|key| table.contains_key(*key)) {
            args.push(site.to_str().unwrap());
        }
        let checked = output(&args);
        let (code, said) = (checked.status.code(), said(&checked));
        assert_eq!((code, &*stdout(&checked)), (Some(0), "ok\n"), "{}:\n{text}\n{said}", block.at);
    }
}

#[test]
fn every_unit_for_systemd_starts_what_there_is() {
    let stage = Stage::set();
    let units = of_language("ini", &PAGES);
    let lines = units.iter().flat_map(|block| &block.lines);
    let starts: Vec<_> = lines.filter_map(|line| line.strip_prefix("ExecStart=")).collect();
    assert!(!starts.is_empty(), "the pages have a unit");
    for start in starts {
        let words = words(&stage.place(start));
        let mut args: Vec<&str> = words[1..].iter().map(String::as_str).collect();
        // Only root can switch to another user.
        if let Some(user) = args.iter().position(|word| *word == "--user") {
            args.drain(user..user + 2);
        }
        args.push("--check-config");
        let checked = output(&args);
        assert!(checked.status.success(), "{start}: {}", said(&checked));
    }
}

#[test]
fn every_flag_of_serve_is_in_its_pages_and_no_other() {
    let (text, help) = (PAGES.map(page).concat(), stdout(&output(&["serve", "--help"])));
    let (on_pages, in_help) = (flags(&text), flags(&help));
    let missing: Vec<_> = in_help.difference(&on_pages).collect();
    // Every command has this one.
    assert!(missing.iter().all(|flag| **flag == "--help"), "no page names {missing:?}");
    // Flags of cargo and certbot.
    let elsewhere = ["--release", "--example", "--webroot"];
    let unknown: Vec<_> =
        on_pages.difference(&in_help).filter(|f| !elsewhere.contains(f)).collect();
    assert!(unknown.is_empty(), "`joust serve --help` does not name {unknown:?}");
}

/// The first two cells of each row of a page's tables, without heading rows.
fn rows(name: &str) -> Vec<(String, String)> {
    let text = page(name);
    let cells = |line: &str| {
        let mut cells = line.strip_prefix('|')?.split('|').map(|cell| cell.trim().to_owned());
        Some((cells.next()?, cells.next()?))
    };
    text.lines().filter_map(cells).filter(|(first, _)| first.starts_with('`')).collect()
}

#[test]
fn every_fault_of_the_page_is_one_and_none_is_missing() {
    let rows = rows("docs/faults.md");
    let refused = said(&output(&["serve", "--fixed", "1", "--fault", "none", "--check-config"]));
    let all = refused.split_once("(all: ").expect("the refusal lists them").1;
    for (spec, _) in &rows {
        let spec = spec.trim_matches('`');
        let args = ["serve", "--fixed", "1", "--fault", spec, "--check-config"];
        let checked = output(&args);
        assert!(checked.status.success(), "{spec}: {}", said(&checked));
    }
    let first = |text: &str| text.split(['=', ' ', ',']).next().unwrap_or_default().to_owned();
    for name in all.split("; ").map(first) {
        let is_it = |(spec, _): &(String, String)| first(spec.trim_matches('`')) == name;
        assert!(rows.iter().any(is_it), "docs/faults.md has no row for {name}");
    }
}

#[test]
fn the_limits_of_a_gateway_are_those_that_are_printed() {
    let printed = stdout(&output(&["serve", "/", "--print-config"]));
    let plain = |text: &str| {
        let text = text.trim_matches(['`', '"']);
        text.replace(' ', "").parse::<units::Bytes>().map_or(text.to_owned(), |b| b.0.to_string())
    };
    let rows = rows("docs/gateway.md");
    assert!(rows.len() > 7, "{rows:?}");
    for (key, value) in rows {
        let key = key.trim_matches('`');
        let begin = format!("\n#{key} = ");
        let (_, rest) = printed.split_once(&begin).unwrap_or_else(|| panic!("{key}: {printed}"));
        let holds = plain(rest.lines().next().unwrap_or_default());
        // The text after a number explains it.
        let said = value.split([':', ',']).next().unwrap_or_default();
        let said = said.split(" in ").next().unwrap_or_default().split(" without").next();
        assert_eq!(plain(said.unwrap_or_default()), holds, "{key}");
    }
}
