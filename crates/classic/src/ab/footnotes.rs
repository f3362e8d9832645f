//! What ab's report hides or gets wrong, for the run at hand. Owns the sentences; must not change a figure. Start
//! reading at [`footnotes`].

use record::LoadRecord;

use super::figures::{Figures, Row};
use crate::command::notes::{answers, found};

/// Medians below this many microseconds lose their precision in whole milliseconds.
const COARSE: u64 = 10_000;

/// One sentence for each point that applies; possibly none.
pub(super) fn footnotes(figures: &Figures, record: &LoadRecord) -> Vec<String> {
    let mut notes = Vec::new();
    let whole = figures.complete_of_other_length;
    if whole > 0 {
        let rest = match figures.length - whole {
            0 => "all were complete (-l accepts them)".to_owned(),
            cut => format!("{whole} were complete, {cut} cut off or without a reply"),
        };
        let n = figures.length;
        let counted = format!("ab counts {} as failed", answers(n));
        notes.push(format!("{counted} because their length differs from the first; {rest}"));
    }
    if figures.non_2xx > 0 {
        let bad = answers(figures.non_2xx);
        notes.push(format!("ab does not count {bad} with a status other than 2xx as failed"));
    }
    if figures.sent_in_vain > 0 {
        let n = figures.sent_in_vain;
        notes.push(format!(
            "{n} times the server closed an idle connection without notice; like ab, the report counts each as \
             a request without a reply, but here each was answered on a new connection"
        ));
    }
    if figures.failed > figures.length {
        let lost = figures.receive.max(figures.exceptions);
        notes.push(format!(
            "ab counts a lost connection up to three times as failed: {lost} were lost"
        ));
    }
    if figures.framing > 0 {
        let bytes = figures.framing;
        notes.push(format!(
            "ab does not decode chunks: {bytes} bytes of HTML transferred are chunk framing"
        ));
    }
    notes.extend(milliseconds(figures));
    notes.extend(found(record));
    notes
}

/// The exact figures that whole milliseconds hide.
fn milliseconds(figures: &Figures) -> Option<String> {
    let n = figures.times.len();
    if n < 2 {
        return None;
    }
    let row = Row::of(&figures.times, |times| times.total);
    if row.median >= COARSE {
        return None;
    }
    let millis = |micros: u64| micros as f64 / 1000.0;
    let (median, longest) = (millis(row.median), millis(row.max));
    Some(format!(
        "ab prints whole milliseconds: the median was {median:.3} ms, the longest {longest:.3} ms"
    ))
}
