//! Owns the manual of the checks: what `joust doctor --explain` prints and what `docs/artifacts` holds, both made
//! from the texts of [`Check`]. Must not know files or terminals. Start reading at [`articles`].

use std::fmt::Write as _;

use record::{Question, Severity};

use crate::counters::{CounterScope, CounterSource};
use crate::{CHECKS, Check, words};

/// What the manual says of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Article {
    /// Name of the check ("errors_as_speed").
    pub name: &'static str,
    /// What it finds, in a sentence.
    pub title: String,
    /// The question about a benchmark that it answers.
    pub question: Question,
    /// What a confirmed finding does, in a few words ("withholds verdicts").
    pub effect: &'static str,
    /// Heading and text, in the order in which they are read. Several texts of one heading are a list.
    pub sections: Vec<(&'static str, Vec<String>)>,
}

/// An article for each check, by question; within a question by name.
pub fn articles() -> Vec<Article> {
    let mut articles: Vec<Article> = CHECKS.iter().map(|check| article(check)).collect();
    articles.sort_by_key(|article| (article.question, article.name));
    articles
}

/// What a confirmed finding of that severity does, in a few words.
pub fn effect(severity: Severity) -> &'static str {
    match severity {
        Severity::Void => "withholds verdicts",
        Severity::Bound => "makes throughput a bound",
        Severity::Note => "note",
    }
}

fn article(check: &Check) -> Article {
    let one = |text: &str| vec![sentence(text)];
    let mut sections = vec![
        ("Why it misleads", one(check.meaning)),
        ("How it is detected", one(check.detection)),
        ("What to do", one(check.remedy)),
        ("Example", one(check.example)),
        ("Sources", check.source.split("; ").map(str::to_owned).collect()),
    ];
    if !check.needs.is_empty() {
        let counters = check.needs.iter().map(|source| place(source)).collect();
        sections.insert(2, ("Counters that it reads", counters));
    }
    Article {
        name: check.name,
        title: sentence(check.title),
        question: check.question,
        effect: effect(check.severity),
        sections,
    }
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

/// The article as a page of `docs/artifacts`.
pub fn page(article: &Article) -> String {
    let Article { name, title, question, effect, sections } = article;
    let mut page = format!("# {name}\n\n{}\n\n", escaped(title));
    let _ = writeln!(page, "- Question: {}", question.text());
    let _ = writeln!(page, "- Once confirmed: {effect}");
    for (heading, texts) in sections {
        let _ = writeln!(page, "\n## {heading}\n");
        match texts.as_slice() {
            [only] => page.extend([&escaped(only), "\n"]),
            several => several.iter().for_each(|text| {
                let _ = writeln!(page, "- {}", escaped(text));
            }),
        }
    }
    let _ = write!(
        page,
        "\n---\n`joust doctor --explain {name}` prints this page. [All checks](README.md)\n"
    );
    page
}

/// The index: every check below its question.
pub fn index(articles: &[Article]) -> String {
    let mut page = INDEX_HEAD.to_owned();
    for question in Question::ALL {
        let mut of = articles.iter().filter(|article| article.question == question).peekable();
        if of.peek().is_none() {
            continue;
        }
        let _ = writeln!(page, "\n## {}\n\n{TABLE_HEAD}", question.text());
        for Article { name, title, effect, .. } in of {
            let title = escaped(title).replace('|', "\\|");
            let _ = writeln!(page, "| [{name}]({name}.md) | {title} | {effect} |");
        }
    }
    page + INDEX_FOOT
}

const TABLE_HEAD: &str = "| check | what it finds | once confirmed |\n|---|---|---|";

const INDEX_HEAD: &str = "# Artifacts: what fools people who benchmark web servers

An artifact is an effect of the measurement, the machine or the setup that looks like the speed of a server.
Each has a check of the doctor, and each check has a page here. They stand below the questions of Brendan
Gregg's benchmarking checklist. [The doctor](../doctor.md) says how findings are made and read.

`joust doctor --checks` prints this list, and `joust doctor --explain NAME` one page of it.
";

const INDEX_FOOT: &str = "
## How these pages are made

They are generated from the texts of the checks in `crates/doctor/src/checks`, and a test compares them. After a
change of a check, write all of them anew:

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

/// Name and text of each page of `docs/artifacts`, the index among them.
pub fn pages() -> Vec<(String, String)> {
    let articles = articles();
    let mut pages: Vec<(String, String)> =
        articles.iter().map(|one| (format!("{}.md", one.name), page(one))).collect();
    pages.push(("README.md".to_owned(), index(&articles)));
    pages
}

/// The article of that name.
///
/// # Errors
/// No check has that name: the names that are nearest to it, or the way to list all.
pub fn article_of(name: &str) -> Result<Article, String> {
    let all = articles();
    if let Some(found) = all.iter().find(|article| article.name == name) {
        return Ok(found.clone());
    }
    let part = name.trim().to_lowercase().replace([' ', '-'], "_");
    let is_near = |known: &&str| {
        !part.is_empty() && part.split('_').any(|word| word.len() > 2 && known.contains(word))
    };
    let near: Vec<&str> = all.iter().map(|article| article.name).filter(is_near).collect();
    Err(match near.as_slice() {
        [] => "`joust doctor --checks` lists them".to_owned(),
        near => format!("do you mean {}?", words::list(near)),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;
    use std::path::Path;

    use super::*;

    const ANEW: &str = "write all pages anew: cargo run -p joust-doctor --example artifact_pages";

    #[test]
    fn the_pages_say_what_the_checks_say() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/artifacts");
        let entries = fs::read_dir(&folder).expect("docs/artifacts is there");
        let kept: BTreeMap<String, String> = entries
            .map(|entry| {
                let path = entry.expect("an entry is readable").path();
                let name = path.file_name().expect("it has a name").to_string_lossy().into_owned();
                (name, fs::read_to_string(path).expect("a page is text"))
            })
            .collect();
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
        assert_eq!(all.len(), CHECKS.len());
        let index = index(&all);
        for check in CHECKS {
            let below = index.split(&format!("## {}\n", check.question.text())).nth(1).unwrap();
            let section = below.split("\n## ").next().unwrap();
            assert!(section.contains(&format!("[{0}]({0}.md)", check.name)), "{}", check.name);
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
        assert_eq!(article_of("generator_limit").unwrap().name, "generator_limit");
        assert!(article_of("keep-alive").unwrap_err().contains("keep_alive_not_honoured"));
        assert!(article_of("x").unwrap_err().contains("--checks"));
    }
}
