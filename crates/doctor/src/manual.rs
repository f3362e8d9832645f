//! Owns the manual of the doctor: what `joust doctor --explain` prints and what `docs/artifacts` holds, both made
//! from the texts of checks and topics. Must not know files or terminals. Start reading at [`articles`].

use std::fmt::Write as _;

use record::{Question, Severity};

use crate::counters::{CounterScope, CounterSource};
use crate::machine::{OF_CGROUPS, TOPICS, Topic};
use crate::printed::{self, Conclusion, Effect, PrintedCheck};
use crate::{CHECKS, Check, words};

/// What the manual says of one check or topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Article {
    /// What the doctor looks at.
    pub kind: ArticleKind,
    /// Name of the check or topic ("errors_as_speed").
    pub name: &'static str,
    /// What it finds, in a sentence.
    pub title: String,
    /// The question about a benchmark that it answers; a topic of the machine has none.
    pub question: Option<Question>,
    /// What a confirmed finding does, in a few words ("withholds verdicts").
    pub effect: String,
    /// Heading and text, in the order in which they are read. Several texts of one heading are a list.
    pub sections: Vec<(&'static str, Vec<String>)>,
}

/// What the doctor looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ArticleKind {
    /// A run or a load of joust.
    Measured,
    /// What another tool printed.
    Printed,
    /// This machine.
    Machine,
}

impl ArticleKind {
    /// All, in the order in which they are listed.
    pub const ALL: [Self; 3] = [Self::Measured, Self::Printed, Self::Machine];

    /// As a heading.
    pub fn title(self) -> &'static str {
        match self {
            Self::Measured => "Runs and loads of joust",
            Self::Printed => "Reports of other tools",
            Self::Machine => "This machine",
        }
    }
}

/// An article for each check and topic: by kind, then by question, then by name. Topics stay in their order.
pub fn articles() -> Vec<Article> {
    let mut articles: Vec<Article> = CHECKS.iter().map(|check| of_check(check)).collect();
    articles.extend(printed::CHECKS.iter().map(|check| of_printed(check)));
    articles.sort_by_key(|article| (article.kind, article.question, article.name));
    articles.extend(TOPICS.iter().map(|topic| of_topic(topic)));
    articles
}

fn effect(severity: Severity) -> &'static str {
    match severity {
        Severity::Void => "withholds verdicts",
        Severity::Bound => "makes throughput a bound",
        Severity::Note => "note",
    }
}

fn of_check(check: &Check) -> Article {
    let mut sections =
        sections(check.meaning, check.detection, check.remedy, check.example, check.source);
    if !check.needs.is_empty() {
        let counters = check.needs.iter().map(|source| place(source)).collect();
        sections.insert(2, ("Counters that it reads", counters));
    }
    Article {
        kind: ArticleKind::Measured,
        name: check.name,
        title: sentence(check.title),
        question: Some(check.question),
        effect: effect(check.severity).to_owned(),
        sections,
    }
}

fn of_printed(check: &PrintedCheck) -> Article {
    Article {
        kind: ArticleKind::Printed,
        name: check.name,
        title: sentence(check.title),
        question: Some(check.question),
        effect: effect_on_conclusions(check),
        sections: sections(
            check.meaning,
            check.detection,
            check.remedy,
            check.example,
            check.source,
        ),
    }
}

/// "the rate does not stand, the latency is in doubt".
fn effect_on_conclusions(check: &PrintedCheck) -> String {
    let said = |(conclusion, effect): &(Conclusion, Effect)| {
        let of = match conclusion {
            Conclusion::Rate => "the rate",
            Conclusion::Latency => "the latency",
            Conclusion::Ranking => "the ranking",
        };
        let becomes = match effect {
            Effect::InDoubt => "is in doubt",
            Effect::AtLeast => "is a lower bound",
            Effect::AtMost => "is an upper bound",
            Effect::Void => "does not stand",
        };
        format!("{of} {becomes}")
    };
    let said: Vec<String> = check.touches.iter().map(said).collect();
    if said.is_empty() { "note".to_owned() } else { said.join(", ") }
}

fn of_topic(topic: &Topic) -> Article {
    let files = |path: &&str| match path.strip_prefix(OF_CGROUPS) {
        Some(file) => format!("`{file}` of the cgroups that joust runs in"),
        None => format!("`{path}`"),
    };
    let sections = vec![
        ("What it does to a measurement", vec![sentence(topic.effect)]),
        ("What is read", topic.needs.iter().map(files).collect()),
    ];
    Article {
        kind: ArticleKind::Machine,
        name: topic.name,
        title: sentence(topic.title),
        question: None,
        effect: String::new(),
        sections,
    }
}

type Section = (&'static str, Vec<String>);

fn sections(
    meaning: &str,
    detection: &str,
    remedy: &str,
    example: &str,
    source: &str,
) -> Vec<Section> {
    let one = |text: &str| vec![sentence(text)];
    vec![
        ("Why it misleads", one(meaning)),
        ("How it is detected", one(detection)),
        ("What to do", one(remedy)),
        ("Example", one(example)),
        ("Sources", source.split("; ").map(str::to_owned).collect()),
    ]
}

/// Where a counter lies, as a reader finds it.
fn place(source: &CounterSource) -> String {
    match source.scope {
        CounterScope::EachNetwork => {
            format!(
                "`/proc/net/{}`, in the network of the client and in that of the server",
                source.file
            )
        }
        CounterScope::Machine => format!("`{}`", source.file),
        CounterScope::OwnCgroups => "`cpu.stat` of the cgroups that joust runs in".to_owned(),
    }
}

/// A text as a sentence: a capital at its beginning, unless that is a name or code, and a full stop.
fn sentence(text: &str) -> String {
    let first = text.split(' ').next().unwrap_or_default();
    let is_word = first.chars().all(|c| c.is_ascii_lowercase() || c == ',') && !is_name(first);
    let (head, tail) = text.split_at(usize::from(is_word && !text.is_empty()));
    let stop = if text.ends_with(['.', '?', '!']) { "" } else { "." };
    format!("{}{tail}{stop}", head.to_uppercase())
}

/// Programs that are written with a small letter, at the beginning of a sentence too.
fn is_name(word: &str) -> bool {
    const NAMES: &[&str] = &["joust", "nginx", "lighttpd", "httpd", "wrk", "ab", "oha", "siege"];
    NAMES.contains(&word)
}

/// The article of a check as a page of `docs/artifacts`.
fn page(article: &Article) -> String {
    let Article { name, title, question, effect, sections, .. } = article;
    let mut page = format!("# {name}\n\n{}\n\n", escaped(title));
    if let Some(question) = question {
        let _ = writeln!(page, "- Question: {}", question.text());
    }
    let _ = writeln!(page, "- Once confirmed: {effect}");
    for (heading, texts) in sections {
        let _ = writeln!(page, "\n## {heading}\n\n{}", body(texts));
    }
    let up = if article.kind == ArticleKind::Measured { "" } else { "../" };
    let _ = write!(
        page,
        "\n---\n`joust doctor --explain {name}` prints this page. [All checks]({up}README.md)\n"
    );
    page
}

/// A paragraph, or a list.
fn body(texts: &[String]) -> String {
    match texts {
        [only] => escaped(only),
        several => {
            let items: Vec<String> =
                several.iter().map(|text| format!("- {}", escaped(text))).collect();
            items.join("\n")
        }
    }
}

/// All topics on one page: each is a few lines.
fn machine_page(articles: &[Article]) -> String {
    let mut page = MACHINE_HEAD.to_owned();
    for Article { name, title, sections, .. } in of_kind(articles, ArticleKind::Machine) {
        let _ = writeln!(page, "\n## {name}\n\n{}", escaped(title));
        for (heading, texts) in sections {
            let _ = writeln!(page, "\n{heading}:\n{}", list(texts));
        }
    }
    page + "\n---\n`joust doctor --explain TOPIC` prints one of these. [All checks](README.md)\n"
}

fn list(texts: &[String]) -> String {
    texts.iter().map(|text| format!("\n- {}", escaped(text))).collect()
}

fn of_kind(articles: &[Article], kind: ArticleKind) -> impl Iterator<Item = &Article> + Clone {
    articles.iter().filter(move |article| article.kind == kind)
}

/// The index: every check below its question.
fn index(articles: &[Article]) -> String {
    let mut page = INDEX_HEAD.to_owned();
    for kind in [ArticleKind::Measured, ArticleKind::Printed] {
        let _ = writeln!(page, "\n## {}", kind.title());
        for question in Question::ALL {
            let of = of_kind(articles, kind).filter(|article| article.question == Some(question));
            if of.clone().next().is_none() {
                continue;
            }
            let _ = writeln!(page, "\n### {}\n\n{TABLE_HEAD}", question.text());
            for article in of {
                let title = escaped(&article.title).replace('|', "\\|");
                let (name, link) = (article.name, file(article));
                let _ = writeln!(page, "| [{name}]({link}) | {title} | {} |", article.effect);
            }
        }
    }
    page + INDEX_FOOT
}

/// Where the page of a check lies, below `docs/artifacts`.
fn file(article: &Article) -> String {
    let folder = if article.kind == ArticleKind::Printed { "printed/" } else { "" };
    format!("{folder}{}.md", article.name)
}

const TABLE_HEAD: &str = "| check | what it finds | once confirmed |\n|---|---|---|";

const INDEX_HEAD: &str = "# Artifacts: what fools people who benchmark web servers

An artifact is an effect of the measurement, the machine or the setup that looks like the speed of a server.
Each has a check of the doctor, and each check has a page here. They stand below the questions of Brendan
Gregg's benchmarking checklist. [The doctor](../doctor.md) says how findings are made and read.

`joust doctor --checks` prints this list, and `joust doctor --explain NAME` one page of it. What the doctor looks at on a
machine before anything is measured has [a page of its own](machine.md).
";

const MACHINE_HEAD: &str = "# This machine

What `joust doctor --machine` looks at, in its order. [The doctor](../doctor.md#this-machine) says how to read it.
";

const INDEX_FOOT: &str = "
## How these pages are made

They are generated from the texts in `crates/doctor/src/checks`, `printed/checks` and `machine`, and a test compares
them. After a change of a check, write all of them anew:

```sh
cargo run -p joust-doctor --example artifact_pages
```
";

/// Characters that Markdown takes for something else, outside of code.
fn escaped(text: &str) -> String {
    let part = |(at, part): (usize, &str)| match at % 2 {
        0 => part.replace('*', "\\*").replace('<', "\\<"),
        _ => format!("`{part}`"),
    };
    text.split('`').enumerate().map(part).collect()
}

/// File and text of each page below `docs/artifacts`, the index among them.
pub fn pages() -> Vec<(String, String)> {
    let articles = articles();
    let is_page = |article: &&Article| article.kind != ArticleKind::Machine;
    let mut pages: Vec<(String, String)> =
        articles.iter().filter(is_page).map(|one| (file(one), page(one))).collect();
    pages.push(("machine.md".to_owned(), machine_page(&articles)));
    pages.push(("README.md".to_owned(), index(&articles)));
    pages
}

/// The articles of that name: a check of runs and one of printed reports may share it.
///
/// # Errors
/// Nothing has that name: the names that are nearest to it, or the way to list all.
pub fn articles_of(name: &str) -> Result<Vec<Article>, String> {
    let all = articles();
    let found: Vec<Article> = all.iter().filter(|article| article.name == name).cloned().collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let asked = name.trim().to_lowercase().replace([' ', '-'], "_");
    let is_near =
        |known: &&str| asked.split('_').any(|word| word.len() > 2 && known.contains(word));
    let mut near: Vec<&str> = all.iter().map(|article| article.name).filter(is_near).collect();
    near.dedup();
    Err(match near.as_slice() {
        [] => "`joust doctor --checks` lists all names".to_owned(),
        near => format!("names that are like it: {}", words::list(near)),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;
    use std::path::Path;

    use super::*;

    const ANEW: &str = "write all pages anew: cargo run -p joust-doctor --example artifact_pages";

    /// File and text of what lies in docs/artifacts.
    fn kept() -> BTreeMap<String, String> {
        let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/artifacts");
        let mut kept = BTreeMap::new();
        for folder in ["", "printed/"] {
            for entry in fs::read_dir(top.join(folder)).expect(ANEW) {
                let path = entry.expect("an entry is readable").path();
                let name = path.file_name().expect("it has a name").to_string_lossy().into_owned();
                if path.is_file() {
                    let text = fs::read_to_string(path).expect("a page is text");
                    kept.insert(format!("{folder}{name}"), text);
                }
            }
        }
        kept
    }

    #[test]
    fn the_pages_say_what_the_checks_say() {
        let kept = kept();
        for (name, text) in pages() {
            let page = kept.get(&name).map(String::as_str);
            assert!(
                page == Some(&text),
                "docs/artifacts/{name} is not what its check says; {ANEW}"
            );
        }
        let made: Vec<String> = pages().into_iter().map(|(name, _)| name).collect();
        let left: Vec<&String> = kept.keys().filter(|name| !made.contains(name)).collect();
        assert!(left.is_empty(), "no check has the pages {left:?}; {ANEW}");
    }

    #[test]
    fn every_check_has_an_article_below_its_question() {
        let all = articles();
        assert_eq!(all.len(), CHECKS.len() + printed::CHECKS.len() + TOPICS.len());
        let index = index(&all);
        for check in CHECKS {
            let below = index.split(&format!("### {}\n", check.question.text())).nth(1).unwrap();
            let section = below.split("\n### ").next().unwrap();
            assert!(section.contains(&format!("[{0}]({0}.md)", check.name)), "{}", check.name);
        }
        for check in printed::CHECKS {
            assert!(
                index.contains(&format!("[{0}](printed/{0}.md)", check.name)),
                "{}",
                check.name
            );
        }
    }

    #[test]
    fn sentences_begin_with_a_capital_unless_with_a_name_or_code() {
        assert_eq!(sentence("requests failed"), "Requests failed.");
        assert_eq!(sentence("`joust load`: fast"), "`joust load`: fast.");
        assert_eq!(sentence("nginx closes"), "nginx closes.");
        assert_eq!(sentence("tcp_tw_reuse is off"), "tcp_tw_reuse is off.");
        assert_eq!(sentence("a reply is late"), "A reply is late.");
    }

    #[test]
    fn markdown_stays_text_outside_of_code() {
        assert_eq!(escaped("a *b* <c> `*<d>`"), "a \\*b\\* \\<c> `*<d>`");
    }

    #[test]
    fn a_mistaken_name_gets_the_nearest() {
        assert_eq!(articles_of("generator_limit").unwrap()[0].name, "generator_limit");
        assert_eq!(articles_of("accept_backlog").unwrap()[0].kind, ArticleKind::Machine);
        assert!(articles_of("keep-alive").unwrap_err().contains("keep_alive_not_honoured"));
        assert!(articles_of("x").unwrap_err().contains("--checks"));
    }
}
