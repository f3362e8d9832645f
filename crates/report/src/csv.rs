//! One row for each visit, or for each interval of a load, for a spreadsheet or R (RFC 4180). Columns are those of
//! `sheets` and of `stream`; figures are not rounded, because they are computed with. Start reading at [`OUTPUT`].

use record::{LoadRecord, RunRecord};

use crate::sheets::visits;
use crate::{Options, Output, Render, StreamFormat, Written};

/// Every visit, one row each.
pub(crate) static OUTPUT: Output = Output {
    name: "csv",
    extension: "csv",
    about: "every visit of a run, or every interval of a load, one row each",
    written: Written::WithEveryRun,
    run: Some(Render::Text(render)),
    load: Some(Render::Text(render_load)),
};

fn render(record: &RunRecord, _: &Options) -> String {
    visits(record).csv()
}

/// As `joust load --stream` writes it while the load runs.
fn render_load(record: &LoadRecord, _: &Options) -> String {
    let lines = record.intervals.iter().map(|interval| StreamFormat::Csv.line(interval));
    std::iter::once(StreamFormat::Csv.header()).chain(lines).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata;

    #[test]
    fn every_row_has_every_column() {
        for record in [testdata::run_with(3), testdata::all_failed()] {
            let text = render(&record, &Options::default());
            let columns = visits(&record).columns.len();
            assert_eq!(text.lines().count(), record.visits.len() + 1);
            assert!(text.lines().all(|line| line.split(',').count() == columns), "{text}");
        }
    }

    #[test]
    fn a_load_has_a_row_an_interval() {
        let load = testdata::load();
        let text = render_load(&load, &Options::default());
        assert_eq!(text.lines().count(), load.intervals.len() + 1);
        assert!(text.starts_with("start_s,end_s,"), "{text}");
    }
}
