//! Owns the way from a list of labels to the reports in a text. Start reading at [`read`].

use crate::ReadError;
use crate::report::Report;
use crate::words::{Cursor, Word, words};

/// What a tool prints, as the labels that its report is made of.
#[derive(Debug)]
pub(crate) struct Layout {
    /// Name of the tool.
    pub(crate) tool: &'static str,
    /// Labels, those that begin like another and go on before it.
    pub(crate) fields: &'static [Field],
    /// What follows from several fields together.
    pub(crate) finish: fn(&mut Report),
}

/// A label and what is read behind it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field {
    /// Words; `#` is any that begins with a digit.
    label: &'static str,
    read: fn(&mut Cursor<'_, '_>, &mut Report) -> Option<()>,
    opens: bool,
    signs: bool,
    always: bool,
    repeats: bool,
}

/// A field that may be there, once in a report.
pub(crate) const fn field(
    label: &'static str,
    read: fn(&mut Cursor<'_, '_>, &mut Report) -> Option<()>,
) -> Field {
    Field { label, read, opens: false, signs: false, always: false, repeats: false }
}

impl Field {
    /// It stands at the beginning: behind anything else it begins another report.
    pub(crate) const fn opens(self) -> Self {
        Self { opens: true, ..self }
    }

    /// Only this tool prints it: without one of its kind there is no report.
    pub(crate) const fn signs(self) -> Self {
        Self { signs: true, ..self }
    }

    /// Every complete report has it.
    pub(crate) const fn always(self) -> Self {
        Self { always: true, ..self }
    }

    /// It may come more than once in one report; otherwise its return begins another.
    pub(crate) const fn repeats(self) -> Self {
        Self { repeats: true, ..self }
    }
}

/// Puts what was read where it belongs.
pub(crate) fn put<S, T: Into<S>>(slot: &mut S, value: T) -> Option<()> {
    *slot = value.into();
    Some(())
}

/// Does nothing.
pub(crate) fn nothing(_: &mut Report) {}

/// All reports of these layouts in a text, in order of their places.
pub(crate) fn read(layouts: &[&Layout], text: &str) -> Result<Vec<Report>, ReadError> {
    let words = words(text);
    let mut found: Vec<Report> = layouts.iter().flat_map(|layout| find(layout, &words)).collect();
    found.sort_by_key(|report| report.place.start);
    if !found.is_empty() {
        return Ok(found);
    }
    let fields = layouts.iter().flat_map(|layout| layout.fields);
    let looked_for = fields.filter(|field| field.signs).map(|field| field.label).collect();
    Err(ReadError::NoReport { tool: layouts.first().map_or("", |layout| layout.tool), looked_for })
}

/// A report that is being read, and which fields it has so far.
#[derive(Clone)]
struct Open {
    report: Report,
    has: Vec<bool>,
}

/// A field that was read.
struct Step {
    /// The report with it.
    open: Open,
    /// Whether that is another report than before.
    another: bool,
    /// Index of the word behind it.
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
    /// Reads the first field whose label stands there and that can be read. One that cannot leaves
    /// no half of itself: it worked on a copy.
    fn step(&self, words: &[Word], at: usize, open: Option<&Open>) -> Option<Step> {
        self.fields.iter().enumerate().find_map(|(index, field)| {
            let mut cursor = Cursor::behind(words, at, field.label)?;
            let same = open.filter(|open| !self.begins_another(index, &open.has));
            let mut now = same.map_or_else(|| self.begin(words[at].place.start), Open::clone);
            (field.read)(&mut cursor, &mut now.report)?;
            let next = cursor.at();
            now.report.place.end = words[next - 1].place.end;
            now.has[index] = true;
            Some(Step { open: now, another: same.is_none(), next })
        })
    }

    fn begin(&self, start: usize) -> Open {
        let report = Report { tool: self.tool, place: start..start, ..Report::default() };
        Open { report, has: vec![false; self.fields.len()] }
    }

    fn begins_another(&self, index: usize, has: &[bool]) -> bool {
        let field = &self.fields[index];
        // What stood there without an opening may be a line of another tool.
        let has_body = self.fields.iter().zip(has).any(|(field, has)| *has && !field.opens);
        (field.opens && has_body) || (has[index] && !field.repeats)
    }

    fn is_signed(&self, has: &[bool]) -> bool {
        self.fields.iter().zip(has).any(|(field, has)| field.signs && *has)
    }

    /// The report, unless nothing in it was this tool's alone.
    fn close(&self, open: Open) -> Option<Report> {
        let Open { mut report, has } = open;
        self.is_signed(&has).then_some(())?;
        let missing = self.fields.iter().zip(&has).filter(|(field, has)| field.always && !**has);
        report.missing = missing.map(|(field, _)| field.label).collect();
        (self.finish)(&mut report);
        report.percentiles.sort_by(|one, other| one.0.total_cmp(&other.0));
        Some(report)
    }
}
