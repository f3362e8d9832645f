//! What follows the first figures in a load's report: statuses, the distribution of response times, figures for each
//! request, and the loads that it was merged from. Owns those tables; must not know what makes the figures
//! unreliable. Start reading at [`by_request`].

use std::collections::BTreeMap;

use record::{FleetUse, LoadPart, LoadRecord, RequestFigures};
use units::Bytes;

use crate::Options;
use crate::distribution::{Distribution, STEPS_MAX, Step, bar};
use crate::figures::{NONE, counted, grouped, listed, percent, significant};
use crate::standing::span;
use crate::table::{Cell, Column, Depth, Row, Table};
use crate::terminal::{Page, Paint};
use crate::wording::plain;

/// Complete replies by status: `status 200: 20,000`; with several statuses, each class with its own: `status 2xx:
/// 19,998 (200: 19,990, 206: 8), 5xx: 2 (503: 2)`.
pub(crate) fn statuses(counts: &BTreeMap<u16, u64>) -> String {
    let mut classes: BTreeMap<u16, Vec<(u16, u64)>> = BTreeMap::new();
    for (status, count) in counts {
        classes.entry(status / 100).or_default().push((*status, *count));
    }
    let one = |(status, count): &(u16, u64)| format!("{status}: {}", grouped(*count));
    match &classes.values().map(Vec::as_slice).collect::<Vec<_>>()[..] {
        [] => "no status was seen".to_owned(),
        [[only]] => format!("status {}", one(only)),
        _ => {
            let class = |(class, each): (u16, Vec<(u16, u64)>)| {
                let total: u64 = each.iter().map(|(_, count)| count).sum();
                let each: Vec<String> = each.iter().map(one).collect();
                format!("{class}xx: {} ({})", grouped(total), each.join(", "))
            };
            let classes: Vec<String> = classes.into_iter().map(class).collect();
            format!("status {}", classes.join(", "))
        }
    }
}

/// Statuses, and how many bodies were verified, even if none were although the plan asks for it.
pub(crate) fn replies(record: &LoadRecord) -> String {
    let statuses = statuses(&record.status);
    match bodies([record].into_iter()) {
        None if record.plan.verify.bodies.are_hashed() => {
            let complete: u64 = record.status.values().sum();
            format!("{statuses}; bodies verified: none of {}", grouped(complete))
        }
        None => statuses,
        Some(bodies) => format!("{statuses}; bodies verified: {bodies}"),
    }
}

/// How many complete replies had their bodies verified, and how many of those differ: `1,204 of 120,394 (1.00 %), 0
/// differ`; `None` if no body was verified.
pub(crate) fn bodies<'a>(loads: impl Iterator<Item = &'a LoadRecord>) -> Option<String> {
    let (mut verified, mut differ, mut complete) = (0, 0, 0);
    for load in loads {
        verified += load.bodies_verified.verified;
        differ += load.bodies_verified.differ;
        complete += load.status.values().sum::<u64>();
    }
    (verified > 0).then(|| {
        let (of, share) = (grouped(complete), percent(verified, complete));
        format!("{} of {of} ({share}), {} differ", grouped(verified), grouped(differ))
    })
}

/// Columns of a terminal that the bars of a distribution take at most, and at least.
const BAR_MAX: usize = 50;
const BAR_MIN: usize = 6;
/// What stands around the bars, at most: four columns of figures, and the marks of quantiles.
const BESIDE_BAR: usize = 52;
/// The same without the cumulative share, which a narrow terminal leaves out.
const BESIDE_BAR_NARROW: usize = 34;
/// From this width on the cumulative share is shown.
const WIDTH_OF_CUMULATIVE: usize = 64;

/// How response times are spread: requests by steps of a logarithmic scale. `None` if there are none.
pub(crate) fn distribution(record: &LoadRecord, options: &Options) -> Option<Table> {
    let found = Distribution::of(&record.latencies.response, STEPS_MAX)?;
    let is_wide = options.width >= WIDTH_OF_CUMULATIVE;
    let beside = if is_wide { BESIDE_BAR } else { BESIDE_BAR_NARROW };
    let columns = options.width.saturating_sub(beside).clamp(BAR_MIN, BAR_MAX);
    let (total, most) = (found.total(), found.count_max().max(1));
    let row = |(at, step): (usize, &Step)| {
        let bar = bar(step.count as f64 / most as f64, columns, options.unicode);
        let marked = format!("{bar} {}", found.marks(at));
        let cumulative = is_wide.then(|| share(step.up_to, total));
        let figures = [step.to.to_string(), grouped(step.count), share(step.count, total)];
        Row::of(figures.into_iter().chain(cumulative).chain([marked.trim().to_owned()]))
    };
    let titles = ["up to", "requests", "share", "cumulative"].into_iter();
    let titles = titles.filter(|title| is_wide || *title != "cumulative");
    let figures = titles.map(|title| Column::figure(title, ""));
    Some(Table {
        title: "Distribution".to_owned(),
        note: format!(
            "response times of all {} ok requests, steps of a logarithmic scale, each with the quantiles \
             that lie in it",
            grouped(total)
        ),
        columns: figures.chain([Column::text("")]).collect(),
        rows: found.steps.iter().enumerate().map(row).collect(),
        depth: Depth::Answer,
    })
}

/// A part in percent, for a column: two decimals, never 0 for something above zero or 100 for less than all.
pub(crate) fn share(part: u64, whole: u64) -> String {
    let percent = 100.0 * part as f64 / whole.max(1) as f64;
    match part {
        0 => "0 %".to_owned(),
        _ if percent < 0.01 => "<0.01 %".to_owned(),
        _ if part < whole => format!("{:.2} %", percent.min(99.99)),
        _ => "100 %".to_owned(),
    }
}

/// The requests of a plan that has several; `None` if it has one.
pub(crate) fn by_request(record: &LoadRecord) -> Option<Table> {
    let figure = |millis: Option<f64>| millis.map_or_else(|| NONE.to_owned(), span);
    let row = |row: &RequestFigures| {
        let response = row.response_ms;
        let failed = Cell { is_bad: row.failed > 0, ..Cell::from(grouped(row.failed)) };
        Row::Cells(vec![
            request_name(row).into(),
            grouped(row.done).into(),
            failed,
            figure(response.p50).into(),
            figure(response.p90).into(),
            figure(response.p99).into(),
            Bytes(row.bytes_read).to_string().into(),
        ])
    };
    let figures = ["requests", "failed", "p50", "p90", "p99", "read"];
    let figures = figures.map(|title| Column::figure(title, ""));
    let table = Table {
        title: "By request".to_owned(),
        note: "requests that ended; response times of ok requests".to_owned(),
        columns: [Column::text("request")].into_iter().chain(figures).collect(),
        rows: record.by_request.iter().map(row).collect(),
        depth: Depth::Answer,
    };
    table.filled()
}

fn request_name(row: &RequestFigures) -> String {
    match row.n_names {
        1 => plain(&row.name),
        n => format!("{} ({})", plain(&row.name), counted(n, "name")),
    }
}

/// The loads that a record was merged from, and what spoils the figures of each.
pub(crate) fn merged_from(page: &mut Page, record: &LoadRecord) {
    let parts = &record.parts;
    if parts.is_empty() && record.fleet.is_none() {
        return;
    }
    let names: Vec<String> = parts.iter().map(|part| plain(&part.name)).collect();
    let names = listed(&names);
    let line = match &record.fleet {
        Some(fleet) => fleet_line(fleet),
        None => format!(
            "merged from {} that {}: {names}",
            counted(parts.len() as u64, "load"),
            when(parts)
        ),
    };
    page.paragraph(&line, Paint::Plain);
    for part in parts {
        for finding in &part.findings {
            page.paragraph(&format!("{}: {}", plain(&part.name), plain(finding)), Paint::Caution);
        }
    }
}

/// What is known of a load that agents made.
pub(crate) fn fleet_line(fleet: &FleetUse) -> String {
    let names: Vec<String> = fleet.agents.iter().map(|agent| plain(&agent.name)).collect();
    let late: u64 = fleet.agents.iter().map(|agent| agent.late_windows).sum();
    let clocks = fleet.clock_error().map(|error| format!(" (clocks known to {error})"));
    let skew = fleet.skew.map(|skew| {
        format!("; agents began within {skew} of each other{}", clocks.unwrap_or_default())
    });
    let late =
        if late > 0 { format!(", {} came late", counted(late, "window")) } else { String::new() };
    format!(
        "run {} of {}: {}; coverage {}{late}{}",
        plain(&fleet.run),
        counted(names.len() as u64, "agent"),
        listed(&names),
        percent(fleet.windows_known, fleet.windows.max(1)),
        skew.unwrap_or_default(),
    )
}

/// When the loads ran.
fn when(parts: &[LoadPart]) -> String {
    let mut spans: Vec<(f64, f64)> = parts
        .iter()
        .map(|part| (part.start.as_secs_f64(), part.start.as_secs_f64() + part.seconds))
        .collect();
    spans.sort_by(|a, b| a.0.total_cmp(&b.0));
    let last_start = spans.iter().map(|span| span.0).fold(0.0, f64::max);
    let first_end = spans.iter().map(|span| span.1).fold(f64::INFINITY, f64::min);
    if parts.iter().any(|part| part.began_unix_ms.is_none()) {
        "are assumed to have begun together, because not all say when they began".to_owned()
    } else if spans.windows(2).all(|pair| pair[0].1 <= pair[1].0) {
        "ran one after the other".to_owned()
    } else if last_start < first_end {
        format!("ran at the same time, the last from {} s on", significant(last_start))
    } else {
        "overlapped in part".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata;
    use units::Nanos;

    #[test]
    fn statuses_are_summed_by_class_where_there_are_several() {
        let counts = |counts: &[(u16, u64)]| statuses(&counts.iter().copied().collect());
        assert_eq!(counts(&[]), "no status was seen");
        assert_eq!(counts(&[(200, 20_000)]), "status 200: 20,000");
        assert_eq!(
            counts(&[(200, 19_990), (206, 8), (503, 2)]),
            "status 2xx: 19,998 (200: 19,990, 206: 8), 5xx: 2 (503: 2)"
        );
    }

    #[test]
    fn verified_bodies_stand_beside_the_statuses() {
        let mut load = testdata::load();
        load.status = [(200, 120_394)].into();
        assert_eq!(replies(&load), "status 200: 120,394");
        load.bodies_verified.verified = 1_204;
        let expected = "status 200: 120,394; bodies verified: 1,204 of 120,394 (1.00 %), 0 differ";
        assert_eq!(replies(&load), expected);
    }

    fn of_three() -> LoadRecord {
        let mut load = testdata::load();
        let row = |name: &str, n_names, millis: u64, ok: u64, failed: u64| {
            let mut row = RequestFigures::new(name.to_owned(), n_names);
            (row.done, row.ok, row.failed) = (ok + failed, ok, failed);
            row.bytes_read = ok * 3500;
            (0..ok).for_each(|n| row.response.record(Nanos(1_000_000 * millis + 1000 * n)));
            row.summed_up()
        };
        load.by_request = vec![
            row("GET /", 1, 1, 4000, 0),
            row("POST /items?name=a-long-name-of-a-thing", 1, 12, 400, 7),
            row("others", 38, 2, 40, 0),
        ];
        load.latencies.response = stats::Histogram::new();
        for row in load.by_request.clone() {
            load.latencies.response.merge(&row.response);
        }
        load
    }

    fn text_of(load: &LoadRecord, width: usize) -> String {
        let options = Options { width, ..Options::default() };
        let mut page = Page::new(&options);
        for table in [distribution(load, &options), by_request(load)].into_iter().flatten() {
            page.described(&table);
        }
        page.finish()
    }

    #[test]
    fn a_load_of_several_requests_has_a_row_for_each_and_bars_to_scale() {
        insta::assert_snapshot!(text_of(&of_three(), 80), @r#"
        Distribution
          response times of all 4,440 ok requests, steps of a logarithmic scale, each
            with the quantiles that lie in it
           up to  requests    share  cumulative
         ────────────────────────────────────────────────────────────────────────
          1.25ms       250   5.63 %      5.63 %  ███████
           1.6ms       350   7.88 %     13.51 %  █████████▉
             2ms       400   9.01 %     22.52 %  ███████████▎
           2.5ms       539  12.14 %     34.66 %  ███████████████▏
          3.15ms       651  14.66 %     49.32 %  ██████████████████▎
             4ms       850  19.14 %     68.47 %  ███████████████████████▉ p50
             5ms       998  22.48 %     90.95 %  ████████████████████████████ p90
           6.3ms         2   0.05 %     90.99 %  ▏
             8ms         0      0 %     90.99 %
            10ms         0      0 %     90.99 %
          12.5ms       400   9.01 %       100 %  ███████████▎ p99 p99.9

        By request  requests that ended; response times of ok requests
          request                       requests  failed     p50     p90     p99    read
         ───────────────────────────────────────────────────────────────────────────────
          GET /                            4,000       0     3ms   4.6ms  4.96ms   14 MB
          POST /items?name=a-long-name       407       7  12.2ms  12.4ms  12.4ms  1.4 MB
          -of-a-thing
          others (38 names)                   40       0  2.02ms  2.04ms       -  140 KB
        "#);
    }

    #[test]
    fn tables_fit_the_terminal() {
        for width in [60, 80, 100, 200] {
            let text = text_of(&of_three(), width);
            assert!(text.lines().all(|line| line.chars().count() <= width), "{width}\n{text}");
        }
        let load = testdata::load();
        assert!(!text_of(&load, 80).contains("By request"));
    }

    #[test]
    fn parts_say_how_they_lay_in_time() {
        let part = |start_s: u64, seconds, began_unix_ms| LoadPart {
            name: "a.json".to_owned(),
            began_unix_ms,
            start: Nanos::from_secs(start_s),
            seconds,
            started: 1,
            ok: 1,
            rate_per_s: 1.0,
            findings: Vec::new(),
            acting: Vec::new(),
        };
        let cases = [
            ([(0, 10.0), (1, 10.0)], Some(7), "ran at the same time, the last from 1.00 s on"),
            ([(10, 10.0), (0, 10.0)], Some(7), "ran one after the other"),
            ([(0, 10.0), (0, 10.0)], None, "are assumed to have begun together"),
        ];
        for (spans, began, words) in cases {
            let parts = spans.map(|(start, seconds)| part(start, seconds, began));
            assert!(when(&parts).starts_with(words), "{}", when(&parts));
        }
        let parts = [part(0, 5.0, Some(1)), part(4, 5.0, Some(1)), part(8, 5.0, Some(1))];
        assert_eq!(when(&parts), "overlapped in part");
    }
}
