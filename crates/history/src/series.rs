//! Owns series of a figure over runs, and where their level changed. Must not know how figures get into the database.
//! Start reading at [`read`].

use record::{HistoryChange, HistoryMachine, HistoryPoint, HistorySeries, Metric};
use rusqlite::{Connection, Row, params};
use stats::{Paired, SEGMENT_MIN, TwoSample};

use crate::filter::Filter;
use crate::machine::machine_of;

/// Fewest usable points in which level changes are searched: `stats::change_points` finds none in fewer.
const POINTS_MIN: usize = 4 * SEGMENT_MIN;

/// What a series measures; figures with the same key are comparable.
#[derive(PartialEq)]
struct Key {
    study: String,
    contender: String,
    cell: String,
    work: String,
    metric: Metric,
    machine: HistoryMachine,
}

/// Every series that passes the filter, sorted by name, its points by time.
pub(crate) fn read(
    connection: &Connection,
    filter: &Filter,
) -> rusqlite::Result<Vec<HistorySeries>> {
    let mut statement = connection.prepare(
        "SELECT study, name, cell, work, metric, cpu_model, cpus, kernel, id, started, mean, low, high, n,
         version, configuration_sha256, joust, withheld
         FROM figure JOIN run ON figure.run = run.id
         JOIN contender ON contender.run = run.id AND contender.place = figure.contender
         WHERE (?1 IS NULL OR study = ?1) AND (?2 IS NULL OR name = ?2)
         AND (?3 IS NULL OR cell = ?3) AND (?4 IS NULL OR metric = ?4)
         ORDER BY study, name, cell, work, cpu_model, cpus, kernel, metric, instant, id",
    )?;
    let metric = filter.metric.map(|metric| metric.info().name);
    let mut rows = statement.query(params![filter.study, filter.contender, filter.cell, metric])?;
    let mut found: Vec<(Key, Vec<HistoryPoint>)> = Vec::new();
    while let Some(row) = rows.next()? {
        let Some(key) = key(row)? else { continue };
        let point = point(row)?;
        match found.last_mut() {
            Some((last, points)) if *last == key => push(points, point),
            _ => found.push((key, vec![point])),
        }
    }
    // Metrics in the order of reports, not by name.
    let head = |key: &Key| (key.study.clone(), key.contender.clone(), key.cell.clone());
    found.sort_by_key(|(key, _)| (head(key), key.metric as usize));
    Ok(found.into_iter().map(|(key, points)| of(key, points)).collect())
}

/// A run that repeats or resumes another holds its visits and has the same start. Only the one with the most blocks is
/// kept, because the same visits would otherwise count twice.
fn push(points: &mut Vec<HistoryPoint>, point: HistoryPoint) {
    match points.last_mut().filter(|last| last.started == point.started) {
        Some(last) if last.n <= point.n => *last = point,
        Some(_) => {}
        None => points.push(point),
    }
}

/// `None` if this joust does not know the metric.
fn key(row: &Row<'_>) -> rusqlite::Result<Option<Key>> {
    let Some(metric) = Metric::named(&row.get::<_, String>("metric")?) else { return Ok(None) };
    Ok(Some(Key {
        study: row.get("study")?,
        contender: row.get("name")?,
        cell: row.get("cell")?,
        work: row.get("work")?,
        metric,
        machine: machine_of(row)?,
    }))
}

fn point(row: &Row<'_>) -> rusqlite::Result<HistoryPoint> {
    Ok(HistoryPoint {
        run: row.get("id")?,
        started: row.get("started")?,
        mean: row.get("mean")?,
        low: row.get("low")?,
        high: row.get("high")?,
        n: row.get("n")?,
        version: row.get("version")?,
        configuration: row.get("configuration_sha256")?,
        joust: row.get("joust")?,
        withheld: row.get("withheld")?,
    })
}

fn of(key: Key, points: Vec<HistoryPoint>) -> HistorySeries {
    let Key { study, contender, cell, metric, machine, .. } = key;
    let changes = changes(&points);
    let points_needed = POINTS_MIN;
    HistorySeries { study, contender, cell, metric, machine, points, changes, points_needed }
}

/// Where the level of the usable points changes.
fn changes(points: &[HistoryPoint]) -> Vec<HistoryChange> {
    let usable: Vec<&HistoryPoint> =
        points.iter().filter(|point| point.withheld.is_none() && point.mean > 0.0).collect();
    let logs: Vec<f64> = usable.iter().map(|point| point.mean.ln()).collect();
    let begins = stats::change_points(&logs);
    let mut edges = vec![0];
    edges.extend(&begins);
    edges.push(logs.len());
    let change = |edge: &[usize]| {
        let (before, after) = (&logs[edge[0]..edge[1]], &logs[edge[1]..edge[2]]);
        let seen = TwoSample::of_logs(after, before).expect("levels are finite logarithms");
        let interval = seen.interval.expect("a segment is longer than an interval needs");
        let level = |logs: &[f64]| Paired::of_logs(logs).expect("they are finite").ratio;
        let (last, first) = (usable[edge[1] - 1], usable[edge[1]]);
        HistoryChange {
            run: first.run,
            started: first.started.clone(),
            before: level(before),
            after: level(after),
            ratio: seen.ratio,
            low: interval.low,
            high: interval.high,
            with: with(last, first),
        }
    };
    edges.windows(3).map(change).collect()
}

/// What else changed since the run before.
fn with(last: &HistoryPoint, first: &HistoryPoint) -> Vec<String> {
    let mut with = Vec::new();
    if last.version != first.version {
        with.push(format!("version: {} to {}", last.version, first.version));
    }
    if last.configuration != first.configuration {
        with.push("its settings or configuration".to_owned());
    }
    if last.joust != first.joust {
        with.push(format!("joust: {} to {}", last.joust, first.joust));
    }
    with
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata::Noise;

    fn points(levels: impl Fn(usize) -> f64, n: usize) -> Vec<HistoryPoint> {
        let mut noise = Noise::new(7);
        let point = |at: usize| HistoryPoint {
            run: at as i64 + 1,
            started: format!("2026-01-{:02}T00:00:00Z", at + 1),
            mean: levels(at) * (0.01 * noise.normal()).exp(),
            low: None,
            high: None,
            n: 8,
            version: if at < 15 { "a/1" } else { "a/2" }.to_owned(),
            configuration: String::new(),
            joust: "0.1.0".to_owned(),
            withheld: None,
        };
        (0..n).map(point).collect()
    }

    #[test]
    fn a_step_is_found_with_its_date_size_and_what_changed_with_it() {
        let points = points(|at| if at < 15 { 1000.0 } else { 900.0 }, 30);
        let found = changes(&points);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].run, found[0].started.as_str()), (16, "2026-01-16T00:00:00Z"));
        assert!(found[0].low < 0.9 && 0.9 < found[0].high, "{found:?}");
        assert_eq!(found[0].with, ["version: a/1 to a/2"]);
    }

    #[test]
    fn a_flat_series_and_one_too_short_have_no_change() {
        assert_eq!(changes(&points(|_| 1000.0, 30)), []);
        assert_eq!(changes(&points(|at| if at < 9 { 1000.0 } else { 500.0 }, POINTS_MIN - 1)), []);
        assert_eq!(
            changes(&points(|at| if at < 10 { 1000.0 } else { 500.0 }, POINTS_MIN)).len(),
            1
        );
    }

    #[test]
    fn of_a_run_and_its_repetition_the_one_with_more_blocks_stands() {
        let mut kept = Vec::new();
        let [first, mut second] = points(|_| 1000.0, 2).try_into().unwrap();
        (second.started, second.n) = (first.started.clone(), 16);
        push(&mut kept, first.clone());
        push(&mut kept, second.clone());
        push(&mut kept, first);
        assert_eq!(kept, [second]);
    }

    #[test]
    fn what_is_withheld_makes_no_change() {
        let mut points = points(|at| if at < 25 { 1000.0 } else { 500.0 }, 30);
        assert_eq!(changes(&points).len(), 1);
        points[25..].iter_mut().for_each(|point| point.withheld = Some("void".to_owned()));
        assert_eq!(changes(&points), []);
    }
}
