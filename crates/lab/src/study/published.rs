//! Owns the figures that a study carries from elsewhere. Start reading at [`published`].

use record::{Cell, Contender, Metric, Published, PublishedFigure};
use units::Bytes;

use super::keys::{Located, Section, StudySource};
use super::{Form, StudyError, metric, metric_named};
use crate::nearest::suggestion;

pub(super) const PUBLISHED: [&str; 7] =
    ["source", "machine", "claim", "metric", "over", "figures", "figures_of"];
const ROW: &str = "a row of [\"contender\", \"cell\", value], with \"of what\" behind it where several \
                   figures stand for one contender; the cell of a study that has one is \"\"";

/// The contents of `[published]`. The short form drops figures of whatever it leaves out.
pub(super) fn published(
    top: &Section<'_>,
    (contenders, cells): (&[Contender], &[Cell]),
    form: Form,
    source: StudySource<'_>,
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
    let mut lists = vec![(metric, rows)];
    for (name, rows) in section.free("figures_of")? {
        lists.push((metric_named(name.get_ref(), name.span(), source)?, rows));
    }
    let mut figures = Vec::new();
    for (metric, rows) in lists {
        figures.extend(of_metric(metric, rows, (contenders, cells), form, source)?);
    }
    Ok(Some(Published {
        source: required("source", "source = \"who, where, when\"")?,
        machine: required("machine", "machine = \"CPU, system, versions\"")?,
        claim: required("claim", "claim = \"what it concluded\"")?,
        over: over(&section, contenders, source)?,
        figures,
    }))
}

/// The figures of one metric.
fn of_metric(
    metric: Metric,
    rows: Located<'_>,
    (contenders, cells): (&[Contender], &[Cell]),
    form: Form,
    source: StudySource<'_>,
) -> Result<Vec<PublishedFigure>, StudyError> {
    let mut figures = Vec::new();
    for row in source.list("figures", rows)? {
        let Some(Row { contender, cell, value, of }) = figure(metric, row, source)? else {
            return Err(source.wrong("figures", row, ROW));
        };
        let index = index(&contender, contenders.iter().map(|one| one.name.as_str()));
        let at = self::index(&cell, cells.iter().map(|one| one.name.as_str()));
        match (index, at) {
            (Ok(contender), Ok(cell)) => {
                figures.push(PublishedFigure { contender, cell, metric, value, of });
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
    Ok(figures)
}

/// The contender that is the denominator of figures given as ratios.
fn over(
    section: &Section<'_>,
    contenders: &[Contender],
    source: StudySource<'_>,
) -> Result<Option<usize>, StudyError> {
    let Some(name) = section.text("over")? else { return Ok(None) };
    let found = index(name.get_ref(), contenders.iter().map(|one| one.name.as_str()));
    found.map(Some).map_err(|help| {
        let message = format!("`over` must name a contender, got `{}`", name.get_ref());
        source.error(name.span(), message).with_help(help)
    })
}

struct Row {
    contender: String,
    cell: String,
    value: f64,
    of: String,
}

/// `None` if it is not a row.
fn figure(
    metric: Metric,
    row: Located<'_>,
    source: StudySource<'_>,
) -> Result<Option<Row>, StudyError> {
    let items = source.list("figures", row)?;
    let [contender, cell, value, of @ ..] = items.as_slice() else { return Ok(None) };
    let of = match of {
        [] => Some(""),
        [of] => of.get_ref().as_str(),
        _ => None,
    };
    let texts = (contender.get_ref().as_str(), cell.get_ref().as_str(), of);
    let (Some(contender), Some(cell), Some(of)) = texts else { return Ok(None) };
    let value = match metric {
        // In bytes, which nobody prints.
        Metric::Memory => source.quantity::<Bytes>("figures", value)?.0 as f64,
        _ => source.text[value.span()].parse().unwrap_or(f64::NAN),
    };
    let [contender, cell, of] = [contender, cell, of].map(str::to_owned);
    Ok((value.is_finite() && value > 0.0).then_some(Row { contender, cell, value, of }))
}

/// Index of a name, or the nearest one.
fn index<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Result<usize, String> {
    let names: Vec<&str> = names.collect();
    let found = names.iter().position(|known| *known == name);
    found.ok_or_else(|| suggestion(name, &names))
}
