//! One row for each pair and metric, for a spreadsheet, R or a script that gates (RFC 4180): the verdict as the run
//! file has it, and the estimate whatever the verdict. Owns its columns; figures are not rounded here. Start reading
//! at [`OUTPUT`].

use record::{BoundCause, PairVerdict, RunRecord, Verdict};

use crate::sheet::csv_line;
use crate::wording::{name_of, plain};
use crate::{Options, Output, Render, Written};

/// Every pair on every metric, one row each.
pub(crate) static OUTPUT: Output = Output {
    name: "pairs-csv",
    extension: "pairs.csv",
    about: "every pair with its verdict and estimate, one row each",
    written: Written::WithEveryRun,
    run: Some(Render::Text(render)),
    load: None,
};

const COLUMNS: &str =
    "cell,metric,a,b,says,cause,bound,ratio,low,high,p_holm,blocks,short_of,more_blocks,reason";

fn render(record: &RunRecord, _: &Options) -> String {
    let rows = record.verdicts.iter().map(|pair| row(record, pair));
    std::iter::once(COLUMNS.to_owned()).chain(rows).map(|line| line + "\r\n").collect()
}

fn row(record: &RunRecord, pair: &PairVerdict) -> String {
    let number = |value: Option<f64>| {
        value.filter(|value| value.is_finite()).map_or_else(String::new, |value| value.to_string())
    };
    let count = |value: Option<u32>| value.map_or_else(String::new, |value| value.to_string());
    let estimate = pair.estimate.as_ref();
    let WordedVerdict { says, cause, bound, more_blocks, reason } = said(&pair.verdict);
    let cell = record.plan.cells.get(pair.cell).map_or_else(String::new, |cell| plain(&cell.name));
    let [a, b] = [pair.a, pair.b].map(|index| name_of(&record.plan.contenders, index));
    csv_line([
        cell,
        pair.metric.info().name.to_owned(),
        a,
        b,
        says.to_owned(),
        cause.to_owned(),
        number(bound),
        number(estimate.map(|one| one.ratio)),
        number(estimate.map(|one| one.low)),
        number(estimate.map(|one| one.high)),
        number(estimate.map(|one| one.p_holm)),
        count(estimate.map(|one| one.blocks)),
        count(pair.short_of.map(|short| short.of)),
        count(more_blocks),
        plain(reason),
    ])
}

/// A verdict, column by column.
#[derive(Default)]
pub(crate) struct WordedVerdict<'a> {
    pub(crate) says: &'static str,
    cause: &'static str,
    pub(crate) bound: Option<f64>,
    pub(crate) more_blocks: Option<u32>,
    pub(crate) reason: &'a str,
}

/// A verdict, as programs read it.
pub(crate) fn said(verdict: &Verdict) -> WordedVerdict<'_> {
    let bound = |says, ratio, cause| {
        let cause = match cause {
            BoundCause::Ceiling => "ceiling",
            BoundCause::WideInterval => "wide_interval",
        };
        WordedVerdict { says, cause, bound: Some(ratio), ..WordedVerdict::default() }
    };
    let plain = |says| WordedVerdict { says, ..WordedVerdict::default() };
    match verdict {
        Verdict::Ratio { .. } => plain("ratio"),
        Verdict::AtLeast { ratio, cause } => bound("at_least", *ratio, *cause),
        Verdict::AtMost { ratio, cause } => bound("at_most", *ratio, *cause),
        Verdict::NoDifference { .. } => plain("no_difference"),
        Verdict::Undecided { more_blocks, .. } => {
            WordedVerdict { more_blocks: *more_blocks, ..plain("undecided") }
        }
        Verdict::Withheld { reason } => WordedVerdict { reason, ..plain("withheld") },
    }
}

#[cfg(test)]
mod tests {
    use record::ShortOf;
    use units::Share;

    use super::*;
    use crate::testdata;

    #[test]
    fn a_pair_has_its_estimate_whatever_is_said_of_it() {
        let mut run = testdata::run_with(2);
        let pair = run.verdicts[0].clone();
        let estimate =
            record::Estimate { ratio: 216.0, low: 54.0, high: 865.0, ..pair.estimate.unwrap() };
        let (cause, margin) = (BoundCause::WideInterval, Share(0.02));
        let said = [
            (
                Verdict::AtLeast { ratio: 54.0, cause },
                "at_least,wide_interval,54,216,54,865,0.001,4,8,,",
            ),
            (
                Verdict::Undecided { more_blocks: Some(3), margin },
                "undecided,,,216,54,865,0.001,4,8,3,",
            ),
            (Verdict::NoDifference { margin }, "no_difference,,,216,54,865,0.001,4,8,,"),
            (
                Verdict::Withheld { reason: "a, b".into() },
                "withheld,,,216,54,865,0.001,4,8,,\"a, b\"",
            ),
        ];
        let short_of = Some(ShortOf { blocks: 4, of: 8 });
        let of = |(verdict, _): &(Verdict, &str)| PairVerdict {
            verdict: verdict.clone(),
            estimate: Some(estimate),
            short_of,
            ..pair.clone()
        };
        run.verdicts = said.iter().map(of).collect();
        let text = render(&run, &Options::default());
        let rows: Vec<&str> = text.lines().skip(1).collect();
        for (row, (_, says)) in rows.iter().zip(&said) {
            assert_eq!(*row, format!(",throughput,joust reactor,joust prefork,{says}"));
        }
        // The words of the enum are those of the run file.
        let json: String = run.to_json().split_whitespace().collect();
        for pair in &run.verdicts {
            let says = format!("\"says\":\"{}\"", super::said(&pair.verdict).says);
            assert!(json.contains(&says), "{says}");
        }
    }
}
