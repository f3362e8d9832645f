//! The figures for a program, as one JSON object of a stated shape (docs/reports.md). It is not the run file, which has
//! every interval and histogram and changes with joust. Names are only added; another meaning gets another `format`.
//! Start reading at [`OUTPUT`].

use record::{LoadRecord, RunRecord};
use serde::Serialize;

use crate::json_load::LoadFigures;
use crate::json_run::RunFigures;
use crate::{Options, Output, Render, Written};

/// One object.
pub(crate) static OUTPUT: Output = Output {
    name: "json",
    extension: "json",
    about: "figures, pairs and findings as one JSON object, for a program",
    written: Written::OnRequest,
    run: Some(Render::Text(render)),
    load: Some(Render::Text(render_load)),
};

fn render(record: &RunRecord, _: &Options) -> String {
    pretty(&RunFigures::of(record))
}

fn render_load(record: &LoadRecord, _: &Options) -> String {
    pretty(&LoadFigures::of(record))
}

/// Indented, ending in a newline.
pub(crate) fn pretty(value: &impl Serialize) -> String {
    let text = serde_json::to_string_pretty(value);
    text.expect("names are strings, and numbers that are not finite are null") + "\n"
}

/// One line, ending in a newline.
pub(crate) fn one_line(value: &impl Serialize) -> String {
    let text = serde_json::to_string(value);
    text.expect("names are strings, and numbers that are not finite are null") + "\n"
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::testdata;

    fn run(record: &RunRecord) -> Value {
        serde_json::from_str(&render(record, &Options::default())).unwrap()
    }

    #[test]
    fn a_run_has_cells_contenders_and_values_with_their_units() {
        let json = run(&testdata::celled());
        assert_eq!(json["format"], "joust-figures/1");
        let cells = json["cells"].as_array().unwrap();
        assert_eq!(cells.len(), 3);
        assert_eq!(cells[1]["name"], "connections=10");
        let first = &cells[1]["contenders"][0];
        assert_eq!(first["name"], "joust reactor");
        let rate = &first["figures"][0];
        assert_eq!((&rate["name"], &rate["unit"]), (&"rate_per_s".into(), &"requests/s".into()));
        assert!(rate["visit_min"].as_f64() < rate["visit_max"].as_f64(), "{rate}");
        let pair = &cells[1]["pairs"][0];
        assert!(pair["ratio"].is_f64() && pair["says"].is_string(), "{pair}");
        assert_eq!(json["findings"][0]["check"], "generator_limit");
        assert_eq!(json["trust"]["is_complete"], true);
    }

    #[test]
    fn a_failed_run_has_null_where_nothing_was_measured() {
        let json = run(&testdata::all_failed());
        assert_eq!(json["trust"]["is_complete"], false);
        assert_eq!(json["trust"]["visits_failed"], 9);
        let figures = json["cells"][0]["contenders"][0]["figures"].as_array().unwrap();
        assert!(!figures.is_empty() && figures.iter().all(|one| one["value"].is_null()));
    }

    #[test]
    fn a_load_has_its_figures_counts_and_goals() {
        let mut load = testdata::load();
        load.plan.goals = record::parse_goals("p50<1h,p99<1ns").unwrap();
        let text = render_load(&load, &Options::default());
        let json: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&json["kind"], &json["goals"][1]["met"]), (&"load".into(), &false.into()));
        assert_eq!(json["requests"]["ok"], load.requests.ok);
        let figures = json["figures"].as_array().unwrap();
        let p99 = figures.iter().find(|one| one["name"] == "response_p99_ms").unwrap();
        assert!(p99["value"].is_f64(), "{p99}");
    }
}
