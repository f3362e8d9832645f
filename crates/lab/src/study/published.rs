//! Owns the figures that a study carries from elsewhere. Must not know today's. Start reading at
//! [`published`].

use record::{Cell, Contender, Metric, Published, PublishedFigure};

use super::keys::{Located, Section, Source};
use super::{Form, StudyError, metric};
use crate::nearest::suggestion;

const PUBLISHED: [&str; 5] = ["source", "machine", "claim", "metric", "figures"];
const ROW: &str =
    "a row of [\"contender\", \"cell\", value]; the cell of a study that has one is \"\"";

/// What `[published]` holds. In the short form figures of what it leaves out are left out.
pub(super) fn published(
    top: &Section<'_>,
    (contenders, cells): (&[Contender], &[Cell]),
    form: Form,
    source: Source<'_>,
) -> Result<Option<Published>, StudyError> {
    let Some(section) = top.section("published", "[published]", &PUBLISHED)? else {
        return Ok(None);
    };
    let required = |key: &'static str, example: &str| {
        let text = section.text(key)?.ok_or_else(|| section.missing(key, example))?;
        Ok::<_, StudyError>(text.into_inner())
    };
    let metric = match section.get("metric") {
        Some(value) => metric(value, source)?,
        None => Metric::Throughput,
    };
    let rows = section
        .get("figures")
        .ok_or_else(|| section.missing("figures", "figures = [[\"nginx\", \"\", 1234.5]]"))?;
    let mut figures = Vec::new();
    for row in source.list("figures", rows)? {
        let Some((contender, cell, value)) = figure(row, source)? else {
            return Err(source.wrong("figures", row, ROW));
        };
        let index = index(&contender, contenders.iter().map(|one| one.name.as_str()));
        let at = self::index(&cell, cells.iter().map(|one| one.name.as_str()));
        match (index, at) {
            (Ok(contender), Ok(cell)) => {
                figures.push(PublishedFigure { contender, cell, metric, value });
            }
            _ if form == Form::Short => {}
            (Err(help), _) => {
                let message = format!("there is no contender `{contender}`");
                return Err(source.error(row.span(), message).with_help(help));
            }
            (_, Err(help)) => {
                let message = format!("there is no cell `{cell}`");
                return Err(source.error(row.span(), message).with_help(help));
            }
        }
    }
    Ok(Some(Published {
        source: required("source", "source = \"who, where, when\"")?,
        machine: required("machine", "machine = \"CPU, system, versions\"")?,
        claim: required("claim", "claim = \"what it concluded\"")?,
        figures,
    }))
}

/// Contender, cell and value of a row.
fn figure(
    row: Located<'_>,
    source: Source<'_>,
) -> Result<Option<(String, String, f64)>, StudyError> {
    let items = source.list("figures", row)?;
    let [contender, cell, value] = items.as_slice() else { return Ok(None) };
    let texts = (contender.get_ref().as_str(), cell.get_ref().as_str());
    let (Some(contender), Some(cell)) = texts else { return Ok(None) };
    let number: f64 = source.text[value.span()].parse().unwrap_or(f64::NAN);
    let is_figure = number.is_finite() && number > 0.0;
    Ok(is_figure.then(|| (contender.to_owned(), cell.to_owned(), number)))
}

/// Index of a name, or the nearest one.
fn index<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Result<usize, String> {
    let names: Vec<&str> = names.collect();
    let found = names.iter().position(|known| *known == name);
    found.ok_or_else(|| suggestion(name, &names))
}
