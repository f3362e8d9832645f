//! Owns the parsing of reports in a text by a list of labels. Start reading at [`read`].

use units::{Nanos, PerSecond};

use crate::ReadError;
use crate::called::{self, Called};
use crate::clean::Clean;
use crate::report::Report;
use crate::words::{Cursor, Word, words};

/// A tool's output, as the labels of its report.
#[derive(Debug)]
pub(crate) struct Layout {
    /// Name of the tool.
    pub(crate) tool: &'static str,
    /// The labels; if one is a prefix of another, the longer one comes first.
    pub(crate) fields: &'static [Field],
    /// The order in which they are printed.
    pub(crate) order: FieldOrder,
    /// Derives values from several fields.
    pub(crate) finish: fn(&mut Report),
}

/// The order in which fields are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldOrder {
    /// That of the list: a field after a later one belongs to another report.
    Fixed,
    /// Any.
    Free,
}

/// A label and the reading of what follows it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field {
    /// Words, as [`Cursor::behind`] takes them.
    label: &'static str,
    /// The label of the same field in another version.
    also: Option<&'static str>,
    read: fn(&mut Cursor<'_, '_>, &mut Report) -> Option<()>,
    opens: bool,
    signs: bool,
    always: bool,
    repeats: bool,
    disowns: bool,
    parts: bool,
    whole: bool,
}

/// An optional field, at most once in a report.
pub(crate) const fn field(
    label: &'static str,
    read: fn(&mut Cursor<'_, '_>, &mut Report) -> Option<()>,
) -> Field {
    Field {
        label,
        also: None,
        read,
        opens: false,
        signs: false,
        always: false,
        repeats: false,
        disowns: false,
        parts: false,
        whole: false,
    }
}

impl Field {
    /// It is at the beginning: after any other field it begins another report.
    pub(crate) const fn opens(self) -> Self {
        Self { opens: true, ..self }
    }

    /// Only this tool prints it: a report needs at least one such field.
    pub(crate) const fn signs(self) -> Self {
        Self { signs: true, ..self }
    }

    /// Every complete report has it.
    pub(crate) const fn always(self) -> Self {
        Self { always: true, ..self }
    }

    /// It may occur more than once in a report; otherwise a second one begins another report.
    pub(crate) const fn repeats(self) -> Self {
        Self { repeats: true, ..self }
    }

    /// Another version has this label instead.
    pub(crate) const fn also(self, label: &'static str) -> Self {
        Self { also: Some(label), ..self }
    }

    /// A report with it belongs to another tool with similar reports.
    pub(crate) const fn disowns(self) -> Self {
        Self { disowns: true, ..self }
    }

    /// What follows describes only a part of the load, up to a field that opens.
    pub(crate) const fn parts(self) -> Self {
        Self { parts: true, ..self }
    }

    /// It describes the whole load, even after parts of it.
    pub(crate) const fn whole(self) -> Self {
        Self { whole: true, ..self }
    }

    fn cursor<'t, 'w>(&self, words: &'w [Word<'t>], at: usize) -> Option<Cursor<'t, 'w>> {
        let also = || Cursor::behind(words, at, self.also?);
        Cursor::behind(words, at, self.label).or_else(also)
    }
}

/// Reads nothing after the label.
pub(crate) fn label(_: &mut Cursor<'_, '_>, _: &mut Report) -> Option<()> {
    Some(())
}

/// Reads the duration in seconds.
pub(crate) fn duration_secs(at: &mut Cursor<'_, '_>, to: &mut Report) -> Option<()> {
    to.duration = Some(Nanos::from_secs_f64(at.figure()?));
    put(&mut to.steps.duration, Nanos::from_secs_f64(at.step()))
}

/// Reads the rate.
pub(crate) fn rate(at: &mut Cursor<'_, '_>, to: &mut Report) -> Option<()> {
    to.rate = Some(PerSecond(at.figure()?));
    put(&mut to.steps.rate, PerSecond(at.step()))
}

/// Reads the bytes a second, in units of this many bytes.
pub(crate) fn traffic_rate(
    at: &mut Cursor<'_, '_>,
    to: &mut Report,
    unit_bytes: f64,
) -> Option<()> {
    to.traffic.rate = Some(PerSecond(at.figure()? * unit_bytes));
    put(&mut to.steps.traffic_rate, PerSecond(at.step() * unit_bytes))
}

/// Stores what was read.
pub(crate) fn put<S, T: Into<S>>(slot: &mut S, value: T) -> Option<()> {
    *slot = value.into();
    Some(())
}

/// Does nothing.
pub(crate) fn nothing(_: &mut Report) {}

/// All reports with these layouts in a text, in order of their positions.
pub(crate) fn read(layouts: &[&Layout], text: &str) -> Result<Vec<Report>, ReadError> {
    let clean = Clean::new(text);
    let words = words(clean.text());
    let tool = layouts.first().map_or("", |layout| layout.tool);
    let mut found: Vec<Report> = layouts.iter().flat_map(|layout| find(layout, &words)).collect();
    found.sort_by_key(|report| report.place.start);
    if found.is_empty() {
        let fields = layouts.iter().flat_map(|layout| layout.fields);
        let looked_for = fields.filter(|field| field.signs).map(|field| field.label).collect();
        return Err(ReadError::NoReport { tool, looked_for });
    }
    give_orders(&mut found, called::commands(&words, tool));
    for report in &mut found {
        report.place = clean.origin(report.place.clone());
    }
    Ok(found)
}

/// Gives each report its command line, if it is known which one that is.
fn give_orders(reports: &mut [Report], commands: Vec<Called>) {
    let mut commands = commands.into_iter().peekable();
    for report in reports {
        let mut before = Vec::new();
        while let Some(called) = commands.next_if(|called| called.place.start < report.place.end) {
            if called.place.end <= report.place.start {
                before.push(called);
            }
        }
        if let Some(called) = called::the_one(before, report) {
            report.place.start = called.place.start;
            called::complete(report, called.ordered);
        }
    }
}

/// A report in progress, and the fields that it has so far.
#[derive(Clone)]
struct Open {
    report: Report,
    has: Vec<bool>,
    /// Whether what follows describes a part of the load.
    in_part: bool,
}

/// A field that was read.
struct Step {
    /// The report including the field.
    open: Open,
    /// Whether that is a new report.
    another: bool,
    /// Index of the word after it.
    next: usize,
}

fn find(layout: &Layout, words: &[Word]) -> Vec<Report> {
    let mut found = Vec::new();
    let mut open: Option<Open> = None;
    let mut at = 0;
    while at < words.len() {
        let Some(step) = layout.step(words, at, open.as_ref()) else {
            at += 1;
            continue;
        };
        at = step.next;
        let before = open.replace(step.open);
        if step.another {
            found.extend(before.and_then(|open| layout.close(open)));
        }
    }
    found.extend(open.and_then(|open| layout.close(open)));
    found
}

impl Layout {
    /// Reads the first field whose label is there and whose value can be read. A field that fails
    /// leaves no partial result: it worked on a copy.
    fn step(&self, words: &[Word], at: usize, open: Option<&Open>) -> Option<Step> {
        self.fields.iter().enumerate().find_map(|(index, field)| {
            let mut cursor = field.cursor(words, at)?;
            if open.is_some_and(|open| open.in_part) && !field.opens && !field.whole {
                return None;
            }
            let same = open.filter(|open| !self.begins_another(index, &open.has));
            let mut now = same.map_or_else(|| self.begin(words[at].place.start), Open::clone);
            (field.read)(&mut cursor, &mut now.report)?;
            let next = cursor.at();
            now.report.place.end = words[next - 1].place.end;
            now.has[index] = true;
            now.in_part = field.parts || (now.in_part && field.whole);
            Some(Step { open: now, another: same.is_none(), next })
        })
    }

    fn begin(&self, start: usize) -> Open {
        let report = Report { tool: self.tool, place: start..start, ..Report::default() };
        Open { report, has: vec![false; self.fields.len()], in_part: false }
    }

    fn begins_another(&self, index: usize, has: &[bool]) -> bool {
        let field = &self.fields[index];
        // Fields without an opening may have been lines of another tool.
        let has_body = self.fields.iter().zip(has).any(|(field, has)| *has && !field.opens);
        let ordered = |field: &Field| !(field.repeats || field.disowns || field.whole);
        let mut behind = self.fields.iter().zip(has).skip(index + 1);
        let out_of_order = self.order == FieldOrder::Fixed
            && !field.opens
            && ordered(field)
            && behind.any(|(later, has)| *has && ordered(later));
        (field.opens && has_body) || (has[index] && !field.repeats) || out_of_order
    }

    /// Whether it has a field that only this tool prints, and none of another tool.
    fn is_signed(&self, has: &[bool]) -> bool {
        let any = |is: fn(&Field) -> bool| {
            self.fields.iter().zip(has).any(|(field, has)| is(field) && *has)
        };
        any(|field| field.signs) && !any(|field| field.disowns)
    }

    /// The report, unless it has no field that only this tool prints.
    fn close(&self, open: Open) -> Option<Report> {
        let Open { mut report, has, .. } = open;
        self.is_signed(&has).then_some(())?;
        let missing = self.fields.iter().zip(&has).filter(|(field, has)| field.always && !**has);
        report.missing = missing.map(|(field, _)| field.label).collect();
        (self.finish)(&mut report);
        report.percentiles.sort_by(|one, other| one.0.total_cmp(&other.0));
        Some(report)
    }
}
