//! Bencher Metric Format: benchmark, measure, value with its bounds (bencher.dev, reference). The bounds are the lowest
//! and the highest visit; a load has none. What was not measured is left out. Start reading at [`OUTPUT`].

use serde_json::{Map, Value, json};

use crate::json::pretty;
use crate::measured::{Measured, of_load, of_run};
use crate::{Options, Output, Render, Written};

/// For `bencher run --adapter json`.
pub(crate) static OUTPUT: Output = Output {
    name: "bencher",
    extension: "bencher.json",
    about: "Bencher Metric Format, for continuous benchmarking with Bencher",
    written: Written::OnRequest,
    run: Some(Render::Text(|record, _: &Options| benchmarks(of_run(record)))),
    load: Some(Render::Text(|record, _: &Options| benchmarks(of_load(record)))),
};

/// Characters that the name of a benchmark may have.
const NAME_CHARS_MAX: usize = 1024;

fn benchmarks(measured: Vec<Measured>) -> String {
    let mut benchmarks = Map::new();
    for one in &measured {
        let Some(value) = one.value else { continue };
        let mut metric = Map::from_iter([("value".to_owned(), json!(value))]);
        for (name, bound) in [("lower_value", one.visit_min), ("upper_value", one.visit_max)] {
            if let Some(bound) = bound {
                metric.insert(name.to_owned(), json!(bound));
            }
        }
        let name: String = one.whose().chars().take(NAME_CHARS_MAX).collect();
        let benchmark = benchmarks.entry(name).or_insert_with(|| Value::Object(Map::new()));
        benchmark[one.name.as_str()] = Value::Object(metric);
    }
    pretty(&benchmarks)
}
