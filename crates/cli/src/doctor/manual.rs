//! The manual of the doctor on a terminal: the list of its checks, and the text about one.

use doctor::manual::{Article, ArticleKind, articles, articles_of};
use miette::miette;
use record::Question;
use report::{Prose, ProseTone};

use crate::terminal::prose_options;
use crate::trouble::Trouble;

/// Every check under its question, and the topics of a machine.
pub fn list() -> String {
    let all = articles();
    let mut parts = Vec::new();
    for kind in ArticleKind::ALL {
        let of_kind = || all.iter().filter(move |article| article.kind == kind);
        let questions = Question::ALL.iter().map(|question| Some(*question)).chain([None]);
        for question in questions {
            let of = || of_kind().filter(move |article| article.question == question);
            if of().next().is_none() {
                continue;
            }
            let asked = question.map_or_else(String::new, |one| format!(": {}", one.text()));
            parts.push(Prose::Heading(format!("{}{asked}", kind.title())));
            for Article { name, title, effect, .. } in of() {
                let effect = if effect.is_empty() { String::new() } else { format!(" ({effect})") };
                parts.push(Prose::Point(ProseTone::Plain, format!("{name}{effect}: {title}")));
            }
        }
    }
    parts.push(Prose::Heading("joust doctor --explain NAME explains one of them".to_owned()));
    report::prose_text(&parts, &prose_options())
}

/// The manual's text about a check or a topic.
pub fn explain(name: &str) -> Result<String, Trouble> {
    let found = articles_of(name).map_err(|way_out| {
        Trouble::usage(miette!(help = way_out, "no check or topic is named {name}"))
    })?;
    let parts: Vec<Prose> = found.iter().flat_map(parts).collect();
    Ok(report::prose_text(&parts, &prose_options()))
}

fn parts(article: &Article) -> Vec<Prose> {
    let Article { kind, name, title, question, effect, sections } = article;
    let mut parts = vec![Prose::Heading(format!("{name}: {title}"))];
    parts.push(Prose::Point(ProseTone::Plain, format!("Looked for in: {}", lowered(kind.title()))));
    if let Some(question) = question {
        parts.push(Prose::Point(ProseTone::Plain, format!("Question: {}", question.text())));
        parts.push(Prose::Point(ProseTone::Plain, format!("Once confirmed: {effect}")));
    }
    for (heading, texts) in sections {
        parts.push(Prose::Heading((*heading).to_owned()));
        parts.extend(texts.iter().map(|text| Prose::Point(ProseTone::Plain, text.clone())));
    }
    parts
}

/// "runs and loads of joust" from "Runs and loads of joust".
fn lowered(text: &str) -> String {
    let (head, tail) = text.split_at(1);
    format!("{}{tail}", head.to_lowercase())
}
