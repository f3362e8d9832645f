//! The terminal report of a comparison of two runs. Owns its layout and its headline. Must not know how ratios are
//! computed. Start reading at [`compare_text`].

use record::{Basis, ChangeJudgement, Comparison, Direction, Metric, RunChange, RunName, Verdict};

use crate::Options;
use crate::figures::{NONE, counted, ratio_with_interval};
use crate::table::{Column, Depth, Row, Table};
use crate::terminal::{Page, Paint};
use crate::wording::{plain, verdict};

/// Most headlines that are spelled out; the tables have the rest.
const REGRESSIONS_SPELLED_MAX: usize = 5;

/// What may be said of a candidate run compared with a base run, for a terminal; ends in a newline.
pub fn compare_text(comparison: &Comparison, options: &Options) -> String {
    let mut page = Page::new(options);
    page.heading(&format!("joust compare: {}", plain(&comparison.candidate.study)), "");
    for (what, run) in [("base", &comparison.base), ("candidate", &comparison.candidate)] {
        page.paragraph(&format!("{what}: {}", run_name(run)), Paint::Plain);
    }
    for caution in &comparison.cautions {
        page.paragraph(&plain(caution), Paint::Caution);
    }
    let paint = match (comparison.regressions().next(), comparison.says_something()) {
        (Some(_), _) => Paint::Alarm,
        (None, true) => Paint::Good,
        (None, false) => Paint::Caution,
    };
    headline(comparison).iter().for_each(|line| page.paragraph(line, paint));
    page.paragraph(&sentence(&comparison.method), Paint::Faint);
    for &metric in &metrics(comparison) {
        table(&mut page, comparison, metric);
    }
    if !comparison.unmatched.is_empty() {
        page.heading("Not compared", "");
        comparison.unmatched.iter().for_each(|line| page.paragraph(&plain(line), Paint::Plain));
    }
    page.finish()
}

pub(crate) fn run_name(run: &RunName) -> String {
    plain(&format!("{}, {}, joust {}", run.path, run.started, run.joust))
}

/// With a capital at its beginning and a full stop at its end.
pub(crate) fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string());
    format!("{}{}.", first.unwrap_or_default(), plain(letters.as_str()))
}

/// Regressions one by one, or that there is none, and out of how many comparisons.
pub(crate) fn headline(comparison: &Comparison) -> Vec<String> {
    let margin = comparison.margin;
    let all = comparison.changes.len();
    if all == 0 {
        return vec![
            "nothing can be compared: no contender was asked the same in both runs".to_owned(),
        ];
    }
    if !comparison.says_something() && comparison.regressions().next().is_none() {
        return vec![format!("withheld: nothing may be said of {}", counted(all as u64, "figure"))];
    }
    // A failure affects every metric, so the report names it once.
    let is_said = |change: &RunChange, before: &[&RunChange]| {
        let whose = (&change.contender, &change.cell);
        change.judgement == ChangeJudgement::Broken
            && before.iter().any(|other| (&other.contender, &other.cell) == whose)
    };
    let mut regressions: Vec<&RunChange> = Vec::new();
    for change in comparison.regressions() {
        if !is_said(change, &regressions) {
            regressions.push(change);
        }
    }
    if regressions.is_empty() {
        let open = |change: &&RunChange| {
            matches!(change.verdict, Verdict::Undecided { .. } | Verdict::Withheld { .. })
        };
        let figures = counted(all as u64, "figure");
        return vec![match comparison.changes.iter().filter(open).count() {
            0 => format!("no regression of more than {margin} in {figures}"),
            n => format!(
                "no regression shown, but not ruled out: {n} of {figures} {} undecided or withheld \
                 (margin {margin})",
                if n == 1 { "is" } else { "are" }
            ),
        }];
    }
    let spelled = regressions.iter().take(REGRESSIONS_SPELLED_MAX).map(|change| spelled(change));
    let mut lines: Vec<String> = spelled.collect();
    let more = regressions.len().saturating_sub(REGRESSIONS_SPELLED_MAX);
    if more > 0 {
        lines.push(format!("and {more} more regressions beyond {margin}"));
    }
    lines
}

fn spelled(change: &RunChange) -> String {
    let words = change.metric.info();
    let at = if change.cell.is_empty() { String::new() } else { format!(" at {}", change.cell) };
    if change.judgement == ChangeJudgement::Broken {
        let said = verdict(&change.verdict);
        return plain(&format!(
            "broken: {}{at}: it worked in the base run; {said}",
            change.contender
        ));
    }
    let (said, whose) = match change.direction {
        Direction::CandidateOverBase => (verdict(&change.verdict), "the base run"),
        Direction::BaseOverCandidate => {
            (format!("the base run had {}", verdict(&change.verdict)), "the candidate")
        }
    };
    let (name, quantity, direction) = (&change.contender, words.quantity, words.direction());
    plain(&format!("regression: {name}{at}: {said} the {quantity} of {whose} ({direction})"))
}

/// Metrics in the order in which they occur.
pub(crate) fn metrics(comparison: &Comparison) -> Vec<Metric> {
    let mut metrics: Vec<Metric> = Vec::new();
    for change in comparison.changes.iter().chain(&comparison.drift) {
        if !metrics.contains(&change.metric) {
            metrics.push(change.metric);
        }
    }
    metrics
}

fn table(page: &mut Page, comparison: &Comparison, metric: Metric) {
    let table = changes(comparison, metric);
    if table.rows.is_empty() {
        page.heading(&table.title, &table.note);
    } else {
        page.described(&table);
    }
    drifts(comparison, metric).iter().for_each(|line| page.paragraph(line, Paint::Faint));
}

/// What changed on a metric, a row for each contender and cell.
pub(crate) fn changes(comparison: &Comparison, metric: Metric) -> Table {
    let words = metric.info();
    let of = |change: &&RunChange| change.metric == metric;
    let changes: Vec<&RunChange> = comparison.changes.iter().filter(of).collect();
    let has_cells = changes.iter().any(|change| !change.cell.is_empty());
    let cell = has_cells.then(|| Column::text("cell"));
    let rest = [
        Column::text("verdict"),
        Column::text("so"),
        Column::count("blocks"),
        Column::common("over"),
        Column::common("changed"),
    ];
    Table {
        title: words.title.to_owned(),
        note: format!("candidate over base; {}", words.direction()),
        columns: [Column::text("contender")].into_iter().chain(cell).chain(rest).collect(),
        rows: changes.iter().map(|change| Row::of(row(change, has_cells))).collect(),
        depth: Depth::Answer,
    }
}

/// How the reference changed by itself on a metric, a sentence for each cell.
pub(crate) fn drifts(comparison: &Comparison, metric: Metric) -> Vec<String> {
    comparison.drift.iter().filter(|drift| drift.metric == metric).map(drifted).collect()
}

fn row(change: &RunChange, has_cells: bool) -> Vec<String> {
    let said = said(change);
    let so = match change.judgement {
        ChangeJudgement::Regression => "regression",
        ChangeJudgement::Broken => "broken",
        ChangeJudgement::Improvement => "improvement",
        ChangeJudgement::Neither => NONE,
    };
    let blocks = change.estimate.map_or_else(
        || NONE.to_owned(),
        |estimate| format!("{}/{}", estimate.blocks_candidate, estimate.blocks_base),
    );
    let over = match &change.basis {
        Basis::Figures => NONE.to_owned(),
        Basis::OverReference { reference } => reference.clone(),
    };
    let changed = if change.differs.is_empty() {
        "nothing known".to_owned()
    } else {
        change.differs.join(", ")
    };
    let mut row = vec![change.contender.clone()];
    row.extend(has_cells.then(|| change.cell.clone()));
    row.extend([said, so.to_owned(), blocks, over, changed]);
    row.iter().map(|text| plain(text)).collect()
}

/// The ratio and its interval, whatever the verdict, and then the verdict.
fn said(change: &RunChange) -> String {
    let said = match change.direction {
        Direction::CandidateOverBase => verdict(&change.verdict),
        Direction::BaseOverCandidate => format!("base {}", verdict(&change.verdict)),
    };
    let is_apart = !matches!(change.verdict, Verdict::Ratio { .. } | Verdict::Withheld { .. });
    let estimate = change.estimate.filter(|_| is_apart);
    let estimate = estimate.map(|one| ratio_with_interval(one.ratio, one.low, one.high));
    let short = change.short_of.map(|short| {
        format!("preliminary: {} of {}", counted(short.blocks.into(), "block"), short.of)
    });
    [estimate, Some(said), short].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// How the machine changed, as the reference shows it.
fn drifted(drift: &RunChange) -> String {
    let at = if drift.cell.is_empty() { String::new() } else { format!(" at {}", drift.cell) };
    let said = match drift.estimate {
        Some(one) => ratio_with_interval(one.ratio, one.low, one.high),
        None => "too few blocks to tell".to_owned(),
    };
    plain(&format!(
        "{}{at}, the reference, by itself: {said}, which is the machine and not judged",
        drift.contender
    ))
}

#[cfg(test)]
mod tests {
    use record::{BoundCause, RunEstimate, ShortOf};
    use units::Share;

    use super::*;

    fn change(contender: &str, verdict: Verdict, judgement: ChangeJudgement) -> RunChange {
        RunChange {
            contender: contender.to_owned(),
            cell: String::new(),
            metric: Metric::Throughput,
            differs: vec!["version: a/1 to a/2".to_owned()],
            basis: Basis::OverReference { reference: "nginx".to_owned() },
            estimate: Some(RunEstimate {
                ratio: 0.9,
                low: 0.88,
                high: 0.92,
                blocks_base: 12,
                blocks_candidate: 14,
                p_holm: 0.001,
            }),
            verdict,
            short_of: None,
            direction: Direction::CandidateOverBase,
            judgement,
        }
    }

    fn comparison(changes: Vec<RunChange>) -> Comparison {
        let run = |path: &str| RunName {
            path: path.to_owned(),
            study: "quick".to_owned(),
            started: "2026-11-21T11:14:03Z".to_owned(),
            joust: "0.1.0".to_owned(),
        };
        let ratio = Verdict::Ratio { ratio: 0.9, low: 0.88, high: 0.92 };
        Comparison {
            format: Comparison::FORMAT.to_owned(),
            base: run("a/run.json"),
            candidate: run("b/run.json"),
            margin: Share(0.02),
            method: "each ratio is over nginx".to_owned(),
            cautions: vec!["the machines differ".to_owned()],
            changes,
            drift: vec![change("nginx", ratio, ChangeJudgement::Neither)],
            unmatched: vec!["gone: only in the base run".to_owned()],
        }
    }

    fn spaced(text: &str) -> String {
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    fn regressed() -> RunChange {
        let ratio = Verdict::Ratio { ratio: 0.9, low: 0.88, high: 0.92 };
        change("ours", ratio, ChangeJudgement::Regression)
    }

    #[test]
    fn a_regression_stands_first_with_its_interval_and_what_it_is_of() {
        let text = compare_text(&comparison(vec![regressed()]), &Options::default());
        for part in [
            "the machines differ",
            "regression: ours: 0.90x [0.88, 0.92] the requests/s of the base run (more is better)",
            "Each ratio is over nginx.",
            "ours 0.90x [0.88, 0.92] regression 14/12 nginx version: a/1 to a/2",
            "nginx, the reference, by itself: 0.90x [0.88, 0.92], which is the machine and not judged",
            "gone: only in the base run",
        ] {
            assert!(spaced(&text).contains(part), "{part} is not in\n{text}");
        }
        let at = |part: &str| text.find(part).unwrap();
        assert!(at("regression: ours") < at("Throughput"), "the headline comes first");
    }

    #[test]
    fn what_is_broken_is_said_once_and_first() {
        let reason = "in the candidate run, 8 of 8 visits of ours failed".to_owned();
        let verdict = Verdict::Withheld { reason };
        let broken = change("ours", verdict, ChangeJudgement::Broken);
        let memory = RunChange { metric: Metric::Memory, ..broken.clone() };
        let comparison = comparison(vec![broken, memory]);
        let said = headline(&comparison);
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(
            said[0].starts_with("broken: ours: it worked in the base run; withheld"),
            "{said:?}"
        );
        let text = compare_text(&comparison, &Options::default());
        assert!(spaced(&text).contains("8 of 8 broken 14/12"), "{text}");
    }

    #[test]
    fn a_bound_says_whose_it_is() {
        let bound = RunChange {
            direction: Direction::BaseOverCandidate,
            verdict: Verdict::AtLeast { ratio: 1.25, cause: BoundCause::Ceiling },
            ..regressed()
        };
        let text =
            compare_text(&comparison(vec![bound]), &Options { width: 160, ..Options::default() });
        assert!(
            spaced(&text).contains(
                "ours: the base run had at least 1.25x the requests/s of the candidate (more is better)"
            ),
            "{text}"
        );
        assert!(spaced(&text).contains("base at least 1.25x regression"), "{text}");
    }

    #[test]
    fn what_is_open_shows_its_ratio_and_what_is_short() {
        let verdict = Verdict::Undecided { more_blocks: Some(3), margin: Share(0.02) };
        let short_of = Some(ShortOf { blocks: 7, of: 8 });
        let open =
            RunChange { verdict, judgement: ChangeJudgement::Neither, short_of, ..regressed() };
        let options = Options { width: 200, ..Options::default() };
        let text = compare_text(&comparison(vec![open]), &options);
        let said = "ours 0.90x [0.88, 0.92]; undecided: about 3 more blocks needed; \
                    preliminary: 7 blocks of 8 -";
        assert!(spaced(&text).contains(said), "{text}");
    }

    #[test]
    fn what_is_open_is_counted_and_nothing_is_said_of_nothing() {
        let margin = Share(0.02);
        let open = |verdict| change("x", verdict, ChangeJudgement::Neither);
        let none = open(Verdict::NoDifference { margin });
        let undecided = open(Verdict::Undecided { more_blocks: Some(3), margin });
        let withheld = || open(Verdict::Withheld { reason: "x".to_owned() });
        let first = |changes| headline(&comparison(changes))[0].clone();
        assert_eq!(first(vec![none.clone()]), "no regression of more than 2 % in 1 figure");
        assert_eq!(
            first(vec![none, undecided, withheld()]),
            "no regression shown, but not ruled out: 2 of 3 figures are undecided or withheld (margin 2 %)"
        );
        assert!(first(vec![withheld()]).starts_with("withheld: nothing"));
        assert!(first(Vec::new()).starts_with("nothing can be compared"));
        let many = headline(&comparison(vec![regressed(); 8]));
        assert_eq!((many.len(), many[5].as_str()), (6, "and 3 more regressions beyond 2 %"));
    }
}
