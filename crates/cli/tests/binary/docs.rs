//! docs/load.md is correct: each of its commands runs, ends with the documented exit code, and prints what it shows,
//! except for figures; it contains every flag, and no other. Start reading at
//! [`every_command_of_the_page_runs_and_ends_as_it_says`].

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::Mutex;
use std::time::Duration;

use crate::planted::{Nginx, Planted, installed, reply};
use crate::{Server, joust, output, said, stdout};

/// How often a command is run before its exit code is compared with the page: a busy machine may miss a rate or a
/// latency goal, or lack time for the generator, but not all the time.
const TRIES: u32 = 8;

/// Pause before the next try, longer each time: the disturbance passes.
const PAUSE: Duration = Duration::from_millis(250);

/// The folder of README.md and docs.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The text of a page, by its path there.
pub(crate) fn page(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).expect("the page is there")
}

/// A command of the page.
#[derive(Debug)]
struct Step {
    /// Line number in the page, from 1.
    line: usize,
    words: Vec<String>,
    /// What the page shows below it.
    shown: Vec<String>,
    /// The exit code that the page shows.
    code: i32,
}

impl Step {
    /// The end of a search, and its message, depend on the machine: that no rate holds is also a valid end.
    fn is_search(&self) -> bool {
        self.words.iter().any(|word| word == "--search")
    }

    /// What the page shows and the command does not print, if anything. A busy machine may print another cause.
    fn missing(&self, output: &Output) -> Option<String> {
        let text = spaced(&stdout(output));
        let shown = self.shown.iter().filter(|_| !self.is_search());
        shown.map(|line| label(line)).find(|label| !text.contains(label))
    }

    fn may_end_with(&self, code: Option<i32>) -> bool {
        code == Some(self.code) || (self.is_search() && code == Some(1))
    }
}

/// Commands of all blocks, in order; `echo $?` belongs to the command before it.
fn steps(page: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let (mut within, mut asks_code) = (false, false);
    for (index, line) in page.lines().enumerate() {
        if line.starts_with("```") {
            within = line == "```console";
            continue;
        }
        match (within, line.strip_prefix("$ ")) {
            (false, _) => {}
            (true, Some("echo $?")) => asks_code = true,
            (true, Some(command)) => {
                let words = words(command);
                steps.push(Step { line: index + 1, words, shown: Vec::new(), code: 0 });
            }
            (true, None) => {
                let step = steps.last_mut().expect("a block begins with a command");
                if std::mem::take(&mut asks_code) {
                    step.code = line.parse().expect("an exit code");
                } else {
                    step.shown.push(line.to_owned());
                }
            }
        }
    }
    steps
}

/// Splits a line like a shell that only knows quotes.
pub(crate) fn words(command: &str) -> Vec<String> {
    let (mut words, mut open) = (vec![String::new()], None);
    for c in command.chars() {
        match (c, open) {
            ('\'' | '"', None) => open = Some(c),
            (_, Some(quote)) if c == quote => open = None,
            (' ', None) => words.push(String::new()),
            _ => words.last_mut().expect("there is one").push(c),
        }
    }
    words
}

/// The servers of the page in this test.
struct Stage {
    dir: PathBuf,
    /// An address of the page, and the one used here.
    addresses: Vec<(&'static str, String)>,
    _served: [Server; 2],
    nginx: Option<Nginx>,
}

impl Stage {
    fn set(dir: &Path) -> Self {
        let site = dir.join("site");
        std::fs::create_dir(&site).unwrap();
        let page = "<!doctype html><title>joust</title>";
        std::fs::write(site.join("index.html"), format!("{page:<3361}")).unwrap();
        std::fs::write(site.join("about.html"), "about").unwrap();
        let keeps = ["--set", "MaxKeepAliveRequests=0"];
        let files = Server::start(&[&[site.to_str().unwrap()], &keeps[..]].concat());
        let fixed = Server::start(&[&["--fixed", "3361"], &keeps[..]].concat());
        let answer = |_: &_| reply("Set-Cookie: session=1\r\n", "{\"ok\": true}\n");
        let one_at_a_time = Mutex::new(());
        let app = Planted::start(move |seen| {
            if seen.line() == "GET /slow" {
                let _held = one_at_a_time.lock();
                std::thread::sleep(Duration::from_millis(10));
            }
            if seen.line() == "GET /old" {
                let redirect = "HTTP/1.1 301 x\r\nContent-Length: 0\r\nLocation: /items\r\n\r\n";
                return redirect.as_bytes().to_vec();
            }
            answer(seen)
        });
        Planted::start_at(&dir.join("demo.sock"), answer);
        let place = |server: &Server| server.url[7..].trim_end_matches('/').to_owned();
        let mut addresses = vec![
            ("127.0.0.1:8080", place(&files)),
            ("127.0.0.1:8081", place(&fixed)),
            ("127.0.0.1:9000", app.addr().to_string()),
            // It answers requests to any host, like a proxy.
            ("127.0.0.1:3128", app.addr().to_string()),
        ];
        if let Some(six) = Planted::start_on("[::1]:0", answer) {
            addresses.push(("[::1]:8080", six.addr().to_string()));
        }
        Self { dir: dir.to_owned(), addresses, _served: [files, fixed], nginx: None }
    }

    fn place(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (said, is) in &self.addresses {
            text = text.replace(said, is);
        }
        if let Some(nginx) = &self.nginx {
            text = text.replace(":8443", &format!(":{}", nginx.port));
        }
        text
    }

    /// Whether this machine has what the command needs.
    fn can(&self, step: &Step) -> bool {
        let lacks = |what: &str| step.words.iter().any(|word| self.place(word).contains(what));
        let missing = ["[::1]:8080", ":8443"].into_iter().find(|what| lacks(what));
        if let Some(what) = missing {
            skips::note(format_args!("docs/load.md:{}: no server at {what} here", step.line));
        }
        missing.is_none()
    }

    /// Runs a load of the page, shortened.
    fn load(&self, step: &Step) {
        let args = short(&step.words[1..]);
        let args: Vec<String> = args.iter().map(|word| self.place(word)).collect();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let at = format!("docs/load.md:{}: {}", step.line, step.words.join(" "));
        let run = || joust(&args).current_dir(&self.dir).output().expect("it starts");
        let mut output = run();
        for tries in 1..TRIES {
            if step.may_end_with(output.status.code()) && step.missing(&output).is_none() {
                break;
            }
            std::thread::sleep(PAUSE * tries);
            output = run();
        }
        let (text, said) = (stdout(&output), said(&output));
        let code = output.status.code();
        // The documented end of a rate that this machine does not reach: the report must say so, and must contain
        // everything else that the page shows.
        let is_as_shown = step.may_end_with(code);
        if !is_as_shown && code == Some(4) && text.contains("target rate not reached") {
            skips::note(format_args!("{at}: this machine missed the rate {TRIES} times"));
        } else {
            assert!(is_as_shown, "{at}\nended with {code:?}\n{text}\n{said}");
        }
        if let Some(label) = step.missing(&output) {
            panic!("{at}\n`{label}` is not in what is printed:\n{text}");
        }
    }
}

/// The text before the first figure of a line: the part that does not change from run to run.
pub(crate) fn label(shown: &str) -> String {
    let words = shown.split_whitespace();
    let is_word = |word: &&str| !word.contains(|c: char| c.is_ascii_digit());
    words.take_while(is_word).collect::<Vec<_>>().join(" ")
}

pub(crate) fn spaced(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The same load, shortened.
pub(crate) fn short(words: &[String]) -> Vec<String> {
    let mut words = words.to_vec();
    if words.iter().any(|word| word == "--merge") {
        // There is no load.
        return words;
    }
    let after =
        |words: &[String], flag: &str| words.iter().position(|w| w == flag).map(|at| at + 1);
    if let Some(at) = after(&words, "-n") {
        words[at] = words[at].parse::<u64>().unwrap().min(400).to_string();
    } else {
        let at = after(&words, "-d").unwrap_or_else(|| {
            words.extend(["-d".to_owned(), String::new()]);
            words.len() - 1
        });
        words[at] = "300ms".to_owned();
    }
    if after(&words, "--search").is_some() {
        words.extend(["--tries".to_owned(), "3".to_owned()]);
    }
    words
}

#[test]
fn every_command_of_the_page_runs_and_ends_as_it_says() {
    let dir = tempfile::tempdir().unwrap();
    let mut stage = Stage::set(dir.path());
    let steps = steps(&page("docs/load.md"));
    assert!(steps.len() > 40, "the page has its commands: {}", steps.len());
    for step in &steps {
        match &*step.words.iter().map(String::as_str).collect::<Vec<_>>() {
            ["cat", file] => {
                let text = step.shown.join("\n") + "\n";
                std::fs::write(stage.dir.join(file), stage.place(&text)).unwrap();
            }
            ["openssl", args @ ..] => {
                let Some(program) = installed("openssl") else { continue };
                let mut command = std::process::Command::new(program);
                let output = command.args(args).current_dir(&stage.dir).output().unwrap();
                assert!(output.status.success(), "docs/load.md:{}: {output:?}", step.line);
                stage.nginx = Nginx::start(&stage.dir);
            }
            ["joust", "load", ..] if stage.can(step) => stage.load(step),
            ["joust", "load" | "serve", ..] => {}
            _ => panic!("docs/load.md:{}: nobody runs `{}`", step.line, step.words.join(" ")),
        }
    }
}

/// Everything that looks like a long flag.
pub(crate) fn flags(text: &str) -> BTreeSet<&str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-.".contains(c);
    let words = text.split(|c: char| !is_part(c)).filter(|word| word.starts_with("--"));
    words.map(|word| word.trim_end_matches('.')).filter(|word| word.len() > 3).collect()
}

#[test]
fn every_flag_is_in_the_page_and_no_other() {
    let (page, help) = (page("docs/load.md"), stdout(&output(&["load", "--help"])));
    let (on_page, in_help) = (flags(&page), flags(&help));
    // Flags of `joust serve`, which the page starts, and of a curl line.
    let elsewhere = ["--listen", "--set", "--fixed", "--data"];
    let missing: Vec<_> = in_help.difference(&on_page).collect();
    assert!(missing.is_empty(), "docs/load.md does not name {missing:?}");
    let unknown: Vec<_> =
        on_page.difference(&in_help).filter(|flag| !elsewhere.contains(flag)).collect();
    assert!(unknown.is_empty(), "`joust load --help` does not name {unknown:?}");
}

#[test]
fn each_model_has_its_section_and_no_other() {
    let page = page("docs/models.md");
    let sections: BTreeSet<&str> =
        page.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    let mut expected: BTreeSet<&str> = serve::models::ALL.iter().map(|model| model.name).collect();
    expected.insert("Which one?");
    assert_eq!(sections, expected);
}
