//! Owns the axes of a study: lists of values that make cells of a workload or contenders of settings. Start
//! reading at [`Axis`].
//!
//! Axes are crossed; the keys of one axis (`with`) are paired, value by value. A workload key makes cells, in which
//! contenders are compared. A server setting makes contenders, which are compared with each other. `as =
//! "contenders"` also compares along a workload key ("do the tools agree?").

use record::{Cell, Change, Contender, SettingValue, Workload};
use toml::Spanned;

use super::keys::{Item, Located, Section, StudySource, setting};
use super::{Form, StudyError, work};
use crate::adapters::Adapter;
use crate::nearest::{nearest, suggestion};

pub(super) const AXIS: [&str; 7] = ["over", "values", "with", "labels", "of", "as", "short"];
/// Most points of an axis, and most cells of a study.
const POINTS_MAX: usize = 1_000;

/// What the points of an axis are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Makes {
    Cells,
    Contenders,
}

/// One axis.
#[derive(Debug, Clone)]
pub(super) struct Axis {
    /// The first key, which names the axis.
    pub(super) over: Spanned<String>,
    pub(super) makes: Makes,
    /// Contenders that it applies to; `None`: all whose server has its settings and that do not set them.
    of: Option<Vec<Spanned<String>>>,
    pub(super) points: Vec<Point>,
}

/// One value of an axis, with those of its other keys.
#[derive(Debug, Clone, Default)]
pub(super) struct Point {
    /// Its name: "connections=10".
    pub(super) label: String,
    /// The value alone, as typed.
    typed: String,
    pub(super) change: Change,
    pub(super) settings: Vec<(Spanned<String>, SettingValue)>,
}

/// The axes of a study, with the points that the form asks for.
pub(super) fn axes(
    top: &Section<'_>,
    form: Form,
    source: StudySource<'_>,
) -> Result<Vec<Axis>, StudyError> {
    let sections = top.sections("axis", "[[axis]]", &AXIS)?;
    let mut axes: Vec<Axis> = Vec::new();
    for section in &sections {
        let axis = axis(section, form, source)?;
        if axes
            .iter()
            .any(|other| other.over.get_ref() == axis.over.get_ref() && other.of == axis.of)
        {
            let message = format!("there are two axes over `{}`", axis.over.get_ref());
            return Err(source.error(axis.over.span(), message));
        }
        axes.push(axis);
    }
    Ok(axes)
}

fn axis(section: &Section<'_>, form: Form, source: StudySource<'_>) -> Result<Axis, StudyError> {
    let over =
        section.text("over")?.ok_or_else(|| section.missing("over", "over = \"connections\""))?;
    let values = section
        .get("values")
        .ok_or_else(|| section.missing("values", "values = [10, 100, 1000]"))?;
    let values = source.list("values", values)?;
    if values.len() > POINTS_MAX {
        return Err(section.error(format!("an axis has at most {POINTS_MAX} values")));
    }
    let mut points = vec![Point::default(); values.len()];
    fill(&mut points, &over, &values, source)?;
    for (key, list) in section.free("with")? {
        let along = source.list(key.get_ref(), list)?;
        if along.len() != values.len() {
            let (have, want) = (along.len(), values.len());
            let message =
                format!("`{}` has {have} values, `{}` has {want}", key.get_ref(), over.get_ref());
            return Err(source.error(list.span(), message).with_help(
                "the keys of one axis change together, value by value; for every combination write two axes",
            ));
        }
        fill(&mut points, &key, &along, source)?;
    }
    label(&mut points, section, &over, &values, source)?;
    let makes = makes(section, &points, source)?;
    let of = section.texts("of")?;
    if let Some(first) = of.iter().flatten().next().filter(|_| makes == Makes::Cells) {
        return Err(source
            .error(first.span(), "an axis over the workload applies to all contenders")
            .with_help("write as = \"contenders\", or `only` in a contender"));
    }
    let points = kept(points, section, form, source)?;
    Ok(Axis { over, makes, of, points })
}

/// Puts one key's values into the points.
fn fill(
    points: &mut [Point],
    key: &Spanned<String>,
    values: &[Located<'_>],
    source: StudySource<'_>,
) -> Result<(), StudyError> {
    for (point, value) in points.iter_mut().zip(values) {
        if work::is_key(key.get_ref()) {
            work::set(&mut point.change, key.get_ref(), value, source)?;
        } else {
            let value = setting(key.get_ref(), value, source)?;
            point.settings.push((key.clone(), value));
        }
    }
    Ok(())
}

/// Names the points: as `labels` says, or by the key and its value.
fn label(
    points: &mut [Point],
    section: &Section<'_>,
    over: &Spanned<String>,
    values: &[Located<'_>],
    source: StudySource<'_>,
) -> Result<(), StudyError> {
    let labels = section.texts("labels")?;
    if let Some(labels) = labels.as_ref().filter(|labels| labels.len() != values.len()) {
        let span = labels.first().map_or(over.span(), Spanned::span);
        let message = format!("{} labels for {} values", labels.len(), values.len());
        return Err(source.error(span, message));
    }
    for (index, (point, value)) in points.iter_mut().zip(values).enumerate() {
        point.typed = source.text[value.span()].trim_matches('"').to_owned();
        point.label = match &labels {
            Some(labels) => labels[index].get_ref().clone(),
            None => format!("{}={}", over.get_ref(), point.typed),
        };
    }
    for (index, point) in points.iter().enumerate() {
        if points[..index].iter().any(|other| other.label == point.label) {
            let message = format!("`{}` appears twice in one axis", point.label);
            return Err(source.error(values[index].span(), message));
        }
    }
    Ok(())
}

fn makes(
    section: &Section<'_>,
    points: &[Point],
    source: StudySource<'_>,
) -> Result<Makes, StudyError> {
    let has_settings = !points[0].settings.is_empty();
    let Some(typed) = section.text("as")? else {
        return Ok(if has_settings { Makes::Contenders } else { Makes::Cells });
    };
    match typed.get_ref().as_str() {
        "contenders" => Ok(Makes::Contenders),
        "cells" if !has_settings => Ok(Makes::Cells),
        "cells" => Err(source
            .error(typed.span(), "a setting of a server makes contenders")
            .with_help("cells are points of the workload; leave `as` out")),
        other => Err(source
            .error(typed.span(), format!("`as` cannot be `{other}`"))
            .with_help("write as = \"contenders\", or as = \"cells\"")),
    }
}

/// The points that the form keeps.
fn kept(
    points: Vec<Point>,
    section: &Section<'_>,
    form: Form,
    source: StudySource<'_>,
) -> Result<Vec<Point>, StudyError> {
    let Some(short) = section.get("short") else { return Ok(points) };
    let mut wanted = Vec::new();
    for item in source.list("short", short)? {
        let typed = source.text[item.span()].trim_matches('"').to_owned();
        if !points.iter().any(|point| point.is(&typed)) {
            return Err(source
                .error(item.span(), format!("`{typed}` is not one of the axis' values"))
                .with_help("`short` names the values that the short form keeps"));
        }
        wanted.push(typed);
    }
    let is_kept =
        |point: &Point| form == Form::Full || wanted.iter().any(|wanted| point.is(wanted));
    Ok(points.into_iter().filter(is_kept).collect())
}

impl Point {
    /// Whether `text` is its value or its label.
    fn is(&self, text: &str) -> bool {
        self.typed == text || self.label == text
    }
}

impl Axis {
    /// Whether it multiplies this contender.
    pub(super) fn applies_to(&self, contender: &Contender, adapter: &Adapter) -> bool {
        match &self.of {
            Some(names) => names.iter().any(|name| *name.get_ref() == contender.name),
            None => self.points[0].settings.iter().all(|(key, _)| {
                adapter.knows(key.get_ref()) && !contender.settings.contains_key(key.get_ref())
            }),
        }
    }

    /// `settings`: all settings of the study's servers.
    pub(super) fn applies_to_nobody(
        &self,
        settings: &[&str],
        source: StudySource<'_>,
    ) -> StudyError {
        let over = self.over.get_ref();
        let known: Vec<&str> = settings.iter().copied().chain(work::KEYS).collect();
        let meant =
            nearest(over, known.iter().copied()).filter(|_| !known.contains(&over.as_str()));
        let help = meant.map_or_else(
            || {
                "name contenders in `of`, or use a setting that a server of the study has and no \
                 contender sets for itself"
                    .to_owned()
            },
            |name| format!("did you mean `{name}`?"),
        );
        let message = format!("the axis over `{over}` applies to no contender");
        source.error(self.over.span(), message).with_help(help)
    }
}

/// Every cell: the product of the axes that make cells; the first axis varies slowest.
pub(super) fn cells(
    base: &Workload,
    axes: &[Axis],
    top: &Section<'_>,
) -> Result<Vec<Cell>, StudyError> {
    let mut cells = vec![Cell::only(base.clone())];
    for axis in axes.iter().filter(|axis| axis.makes == Makes::Cells) {
        let along = |cell: &Cell| {
            let at = |point: &Point| Cell {
                name: joined(&cell.name, &point.label),
                workload: point.change.over(&cell.workload),
            };
            axis.points.iter().map(at).collect::<Vec<_>>()
        };
        cells = cells.iter().flat_map(along).collect();
        if cells.len() > POINTS_MAX {
            return Err(top.error(format!("the axes make more than {POINTS_MAX} cells")));
        }
    }
    Ok(cells)
}

fn joined(name: &str, label: &str) -> String {
    if name.is_empty() { label.to_owned() } else { format!("{name}, {label}") }
}

/// The cells that a contender's `only` allows: those that match its table, or one of its tables; empty means all.
/// `None`: the short form has none of these cells.
pub(super) fn only(
    section: &Section<'_>,
    axes: &[Axis],
    form: Form,
    source: StudySource<'_>,
) -> Result<Option<Vec<usize>>, StudyError> {
    let tables = section.free_tables("only")?;
    let Some(place) = tables.iter().flatten().map(|(key, _)| key.span()).next() else {
        return Ok(Some(Vec::new()));
    };
    let making: Vec<&Axis> = axes.iter().filter(|axis| axis.makes == Makes::Cells).collect();
    let mut cells = Vec::new();
    for typed in &tables {
        cells.extend(fitting(typed, &making, source)?);
    }
    cells.sort_unstable();
    cells.dedup();
    if cells.is_empty() && form == Form::Short {
        return Ok(None);
    }
    if cells.is_empty() {
        return Err(source
            .error(place, "`only` leaves this contender without a cell")
            .with_help("write values as they are written in the axis"));
    }
    Ok(Some(cells))
}

/// The cells that match one table of `only`: one of its values on each axis that it names.
fn fitting(
    typed: &[Item<'_>],
    making: &[&Axis],
    source: StudySource<'_>,
) -> Result<Vec<usize>, StudyError> {
    let mut wanted: Vec<Option<Vec<String>>> = vec![None; making.len()];
    for (key, list) in typed {
        let names: Vec<&str> = making.iter().map(|axis| axis.over.get_ref().as_str()).collect();
        let Some(axis) = names.iter().position(|name| name == key.get_ref()) else {
            let message =
                format!("`only` must name an axis that makes cells, got `{}`", key.get_ref());
            return Err(source
                .error(key.span(), message)
                .with_help(suggestion(key.get_ref(), &names)));
        };
        let items = source.list(key.get_ref(), list)?;
        let text = |item: &Located<'_>| source.text[item.span()].trim_matches('"').to_owned();
        wanted[axis] = Some(items.iter().map(text).collect());
    }
    // In the order of `cells`: the first axis varies slowest.
    let mut kept = vec![(0, true)];
    for (axis, wanted) in making.iter().zip(&wanted) {
        let at = |&(index, is_in): &(usize, bool)| {
            let point = move |(n, point): (usize, &Point)| {
                let fits =
                    wanted.as_ref().is_none_or(|values| values.iter().any(|one| point.is(one)));
                (index * axis.points.len() + n, is_in && fits)
            };
            axis.points.iter().enumerate().map(point).collect::<Vec<_>>()
        };
        kept = kept.iter().flat_map(at).collect();
    }
    Ok(kept.iter().filter(|(_, is_in)| *is_in).map(|(n, _)| *n).collect())
}
