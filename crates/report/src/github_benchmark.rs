//! The custom formats of github-action-benchmark: an array of name, unit, value, range and extra. That action draws
//! either figures of which more is better or those of which less is, so there are two outputs. What was not measured is
//! left out. Start reading at [`BIGGER`].

use serde::Serialize;

use crate::figures::significant;
use crate::json::pretty;
use crate::measured::{Direction, Measured, of_load, of_run};
use crate::{Options, Output, Render, Written};

/// For `tool: customBiggerIsBetter`.
pub(crate) static BIGGER: Output = Output {
    name: "github-benchmark",
    extension: "github-bigger.json",
    about: "rates, for github-action-benchmark (customBiggerIsBetter)",
    written: Written::OnRequest,
    run: Some(Render::Text(|record, _: &Options| entries(of_run(record), Direction::Higher))),
    load: Some(Render::Text(|record, _: &Options| entries(of_load(record), Direction::Higher))),
};

/// For `tool: customSmallerIsBetter`.
pub(crate) static SMALLER: Output = Output {
    name: "github-benchmark-smaller",
    extension: "github-smaller.json",
    about: "times, CPU, memory and errors, for github-action-benchmark (customSmallerIsBetter)",
    written: Written::OnRequest,
    run: Some(Render::Text(|record, _: &Options| entries(of_run(record), Direction::Lower))),
    load: Some(Render::Text(|record, _: &Options| entries(of_load(record), Direction::Lower))),
};

/// What the action reads.
#[derive(Serialize)]
struct Entry {
    name: String,
    unit: &'static str,
    value: f64,
    /// Shown beside the value: "79,100 to 80,200".
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    extra: String,
}

fn entries(measured: Vec<Measured>, better: Direction) -> String {
    let entry = |one: Measured| {
        let range = one.visit_min.zip(one.visit_max);
        Some(Entry {
            name: format!("{}: {}", one.whose(), one.quantity),
            unit: one.unit,
            value: one.value?,
            range: range
                .map(|(low, high)| format!("{} to {}", significant(low), significant(high))),
            extra: one.remark(),
        })
    };
    let of_direction = measured.into_iter().filter(|one| one.better == better);
    pretty(&of_direction.filter_map(entry).collect::<Vec<_>>())
}
