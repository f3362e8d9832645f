//! Owns the tables that a run or a load has for programs, and their columns: visits, single requests, figures. Must not
//! know any format. Figures of visits and requests are not rounded, because they are computed with. Start reading at
//! [`visits`].

use record::{
    LoadRecord, METRICS, MemoryAccount, MetricInfo, RequestCounts, RunRecord, Sample, Visit,
    VisitState,
};
use serde::Serialize;
use units::Nanos;

#[cfg(feature = "parquet")]
use crate::measured::Measured;
use crate::measured::cell_name;
use crate::sheet::{Cell, Kind, Sheet, SheetColumn};
use crate::wording::{name_of, plain};

/// A visit and its run.
type VisitRow<'a> = (&'a RunRecord, &'a Visit);

/// Before the metrics.
fn place<'a>() -> [SheetColumn<VisitRow<'a>>; 6] {
    [
        SheetColumn::new("cell", Kind::Text, |(run, visit)| Cell::Text(cell_name(run, visit.cell))),
        SheetColumn::new("contender", Kind::Text, |(run, visit)| {
            Cell::Text(name_of(&run.plan.contenders, visit.contender))
        }),
        SheetColumn::new("block", Kind::Count, |(_, visit)| Cell::Count(visit.block.into())),
        SheetColumn::new("position", Kind::Count, |(_, visit)| Cell::Count(visit.position.into())),
        SheetColumn::new("attempt", Kind::Count, |(_, visit)| Cell::Count(visit.attempt.into())),
        SheetColumn::new("state", Kind::Text, |(_, visit)| Cell::Text(state(visit))),
    ]
}

/// After them.
fn counts<'a>() -> [SheetColumn<VisitRow<'a>>; 10] {
    [
        SheetColumn::new("started", Kind::Count, |(_, visit)| requests(visit, |all| all.started)),
        SheetColumn::new("done", Kind::Count, |(_, visit)| requests(visit, |all| all.done)),
        SheetColumn::new("ok", Kind::Count, |(_, visit)| requests(visit, |all| all.ok)),
        SheetColumn::new("failed", Kind::Count, |(_, visit)| requests(visit, |all| all.failed)),
        SheetColumn::new("unanswered", Kind::Count, |(_, visit)| {
            requests(visit, |all| all.unanswered)
        }),
        SheetColumn::new("memory_method", Kind::Text, |(_, visit)| {
            Cell::text(memory(visit).map(|account| account.method.name().to_owned()))
        }),
        SheetColumn::new("memory_at_most_bytes", Kind::Count, |(_, visit)| {
            Cell::count(memory(visit).map(|account| account.at_most.0))
        }),
        SheetColumn::new("memory_swapped_bytes", Kind::Count, |(_, visit)| {
            Cell::count(memory(visit).map(|account| account.swapped.0))
        }),
        SheetColumn::new("memory_unread_processes", Kind::Count, |(_, visit)| {
            Cell::count(memory(visit).map(|account| account.unread.into()))
        }),
        SheetColumn::new("cgroup_peak_bytes", Kind::Count, |(_, visit)| {
            Cell::count(memory(visit).and_then(|account| Some(account.cgroup?.peak.0)))
        }),
    ]
}

/// Every visit of a run, one a row.
pub(crate) fn visits(record: &RunRecord) -> Sheet {
    let rows = || record.visits.iter().map(|visit| (record, visit));
    let value = |visit: &Visit, info: &MetricInfo| Cell::figure(visit.value(info.metric));
    let metrics = Sheet {
        columns: METRICS.iter().map(|info| (info.csv_column, Kind::Figure)).collect(),
        rows: rows()
            .map(|(_, one)| METRICS.iter().map(|info| value(one, info)).collect())
            .collect(),
    };
    Sheet::of(&place(), rows()).beside(metrics).beside(Sheet::of(&counts(), rows()))
}

fn state(visit: &Visit) -> String {
    match &visit.state {
        VisitState::Measured => "measured".to_owned(),
        VisitState::Disturbed => {
            let seen = visit.disturbance().map(ToString::to_string).unwrap_or_default();
            format!("disturbed: {}", plain(&seen))
        }
        VisitState::Failed { reason, .. } => format!("failed: {}", plain(reason)),
    }
}

/// A count of the load's requests; empty where another tool made it.
fn requests(visit: &Visit, count: impl Fn(&RequestCounts) -> u64) -> Cell {
    Cell::count(visit.load.as_ref().map(|load| count(&load.requests)))
}

/// How the server's memory was measured; `None` where it was not.
fn memory(visit: &Visit) -> Option<MemoryAccount> {
    Some(visit.server?.memory_account)
}

/// A request with the load that it is of, and the visit if that is part of a run.
struct SampleRow<'a> {
    at: Option<VisitRow<'a>>,
    load: &'a LoadRecord,
    sample: &'a Sample,
}

/// Where a request of a run was made.
fn visit_of_sample<'a>() -> [SheetColumn<SampleRow<'a>>; 6] {
    [
        SheetColumn::new("cell", Kind::Text, |row| {
            Cell::text(row.at.map(|(run, visit)| cell_name(run, visit.cell)))
        }),
        SheetColumn::new("contender", Kind::Text, |row| {
            Cell::text(row.at.map(|(run, visit)| name_of(&run.plan.contenders, visit.contender)))
        }),
        SheetColumn::new("block", Kind::Count, |row| {
            Cell::count(row.at.map(|(_, visit)| visit.block.into()))
        }),
        SheetColumn::new("attempt", Kind::Count, |row| {
            Cell::count(row.at.map(|(_, visit)| visit.attempt.into()))
        }),
        SheetColumn::new("state", Kind::Text, |row| {
            Cell::text(row.at.map(|(_, visit)| state(visit)))
        }),
        SheetColumn::new("is_after_cut", Kind::Flag, |row| {
            row.at.map_or(Cell::Empty, |(_, visit)| Cell::Flag(row.sample.done >= visit.cut))
        }),
    ]
}

/// A request. Instants count from the start of its load; one that was never reached is empty.
fn request<'a>() -> [SheetColumn<SampleRow<'a>>; 17] {
    [
        SheetColumn::new("due_ns", Kind::Count, |row| Cell::Count(row.sample.due.0)),
        SheetColumn::new("sent_ns", Kind::Count, |row| instant(row.sample.sent)),
        SheetColumn::new("first_byte_ns", Kind::Count, |row| instant(row.sample.first_byte)),
        SheetColumn::new("done_ns", Kind::Count, |row| instant(row.sample.done)),
        SheetColumn::new("queue_ms", Kind::Figure, |row| {
            span(Some(row.sample.due), reached(row.sample.sent))
        }),
        SheetColumn::new("first_byte_ms", Kind::Figure, |row| {
            span(reached(row.sample.sent), reached(row.sample.first_byte))
        }),
        SheetColumn::new("service_ms", Kind::Figure, |row| {
            span(reached(row.sample.sent), reached(row.sample.done))
        }),
        SheetColumn::new("response_ms", Kind::Figure, |row| {
            span(Some(row.sample.due), reached(row.sample.done))
        }),
        SheetColumn::new("outcome", Kind::Text, |row| Cell::text(word(&row.sample.outcome))),
        SheetColumn::new("status", Kind::Count, |row| {
            Cell::count(Some(row.sample.status.into()).filter(|status| *status != 0))
        }),
        SheetColumn::new("bytes_read", Kind::Count, |row| Cell::Count(row.sample.bytes_read)),
        SheetColumn::new("bytes_body", Kind::Count, |row| Cell::Count(row.sample.bytes_body)),
        SheetColumn::new("bytes_head", Kind::Count, |row| {
            Cell::count(Some(row.sample.bytes_head.into()).filter(|bytes| *bytes != 0))
        }),
        SheetColumn::new("connection", Kind::Count, |row| Cell::Count(row.sample.conn.into())),
        SheetColumn::new("carrier", Kind::Text, |row| Cell::text(word(&row.sample.carrier))),
        SheetColumn::new("at_end", Kind::Text, |row| Cell::text(word(&row.sample.at_end))),
        SheetColumn::new("request", Kind::Text, |row| {
            let name = row.load.raw_names.get(&row.sample.request);
            Cell::Text(name.map_or_else(|| row.sample.request.to_string(), |name| plain(name)))
        }),
    ]
}

/// Every request that a load kept by itself: each k-th, k being `raw_stride`.
pub(crate) fn samples_of_load(load: &LoadRecord) -> Sheet {
    Sheet::of(&request(), load.raw.iter().map(|sample| SampleRow { at: None, load, sample }))
}

/// The same for all visits of a run, warm-up included.
pub(crate) fn samples_of_run(run: &RunRecord) -> Sheet {
    let loads = || run.visits.iter().filter_map(|visit| Some((visit, visit.load.as_ref()?)));
    let rows = || {
        loads().flat_map(|(visit, load)| {
            let at = Some((run, visit));
            load.raw.iter().map(move |sample| SampleRow { at, load, sample })
        })
    };
    Sheet::of(&visit_of_sample(), rows()).beside(Sheet::of(&request(), rows()))
}

/// An instant that was reached.
fn reached(instant: Nanos) -> Option<Nanos> {
    (instant != Nanos::ZERO).then_some(instant)
}

fn instant(instant: Nanos) -> Cell {
    Cell::count(reached(instant).map(|instant| instant.0))
}

fn span(from: Option<Nanos>, to: Option<Nanos>) -> Cell {
    let span = from.zip(to).map(|(from, to)| to.saturating_sub(from).as_millis_f64());
    Cell::figure(span)
}

/// A variant by the name that run files have.
pub(crate) fn word(value: &impl Serialize) -> Option<String> {
    serde_json::to_value(value).ok()?.as_str().map(str::to_owned)
}

/// Figures, one a row.
#[cfg(feature = "parquet")]
pub(crate) fn figures(measured: Vec<Measured>) -> Sheet {
    const COLUMNS: [SheetColumn<Measured>; 10] = [
        SheetColumn::new("cell", Kind::Text, |one| Cell::Text(one.cell.clone())),
        SheetColumn::new("contender", Kind::Text, |one| Cell::Text(one.contender.clone())),
        SheetColumn::new("name", Kind::Text, |one| Cell::Text(one.name.clone())),
        SheetColumn::new("unit", Kind::Text, |one| Cell::Text(one.unit.to_owned())),
        SheetColumn::new("better", Kind::Text, |one| Cell::text(word(&one.better))),
        SheetColumn::new("value", Kind::Figure, |one| Cell::figure(one.value)),
        SheetColumn::new("visit_min", Kind::Figure, |one| Cell::figure(one.visit_min)),
        SheetColumn::new("visit_max", Kind::Figure, |one| Cell::figure(one.visit_max)),
        SheetColumn::new("visits", Kind::Count, |one| {
            Cell::count(one.visits.map(|visits| visits as u64))
        }),
        SheetColumn::new("bound", Kind::Text, |one| Cell::text(word(&one.bound))),
    ];
    Sheet::of(&COLUMNS, measured.into_iter())
}
