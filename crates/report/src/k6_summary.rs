//! The shape of k6's summary, for tools that read that: figures flat in each metric, as `--summary-export` writes them
//! (GitLab's load performance report reads these), and again under `values` with their type, as `handleSummary` gets
//! them. Times are milliseconds; k6's duration is service time, from sending to the last byte. A figure that was not
//! measured is left out. Only for a load: a run has several contenders. Start reading at [`OUTPUT`].

use record::LoadRecord;
use serde_json::{Map, Value, json};
use stats::Histogram;

use crate::figures::rounded;
use crate::json::pretty;
use crate::json_load::goals;
use crate::{Options, Output, Render, Written};

/// summary.json.
pub(crate) static OUTPUT: Output = Output {
    name: "k6-summary",
    extension: "k6.json",
    about: "a load in the shape of k6's summary",
    written: Written::OnRequest,
    run: None,
    load: Some(Render::Text(render)),
};

type Figures = Map<String, Value>;

fn render(record: &LoadRecord, _: &Options) -> String {
    let spans = &record.latencies;
    let mut metrics = Map::new();
    let trends = [
        ("http_req_duration", &spans.service),
        ("http_req_waiting", &spans.first_byte),
        ("http_req_blocked", &spans.queue),
    ];
    for (name, histogram) in trends.into_iter().filter(|(_, histogram)| !histogram.is_empty()) {
        metrics.insert(name.to_owned(), metric("trend", "time", trend(histogram)));
    }
    let requests = record.requests;
    let seconds = record.seconds;
    let counters = [
        ("http_reqs", "default", requests.done),
        ("data_received", "data", record.bytes.read),
        ("data_sent", "data", record.bytes.written),
    ];
    for (name, contains, count) in counters {
        let mut figures = Map::from_iter([("count".to_owned(), json!(count))]);
        if let Some(rate) = (seconds > 0.0).then(|| count as f64 / seconds).and_then(rounded) {
            figures.insert("rate".to_owned(), json!(rate));
        }
        metrics.insert(name.to_owned(), metric("counter", contains, figures));
    }
    if requests.done > 0 {
        // A rate counts what is true: k6's "passes" of this one are the requests that failed.
        metrics.insert("http_req_failed".to_owned(), rate(requests.failed, requests.done));
    }
    let judged: Vec<bool> = goals(record).iter().filter_map(|goal| goal.met).collect();
    if !judged.is_empty() {
        let met = judged.iter().filter(|met| **met).count() as u64;
        metrics.insert("checks".to_owned(), rate(met, judged.len() as u64));
    }
    let connections =
        ["value", "min", "max"].map(|name| (name.to_owned(), record.connections.into()));
    metrics.insert(
        "vus_max".to_owned(),
        metric("gauge", "default", connections.into_iter().collect()),
    );
    let checks = checks(record);
    pretty(&json!({
        "root_group": { "name": "", "path": "", "id": ROOT_ID, "groups": [], "checks": checks },
        "state": {
            "isStdOutTTY": false,
            "isStdErrTTY": false,
            "testRunDurationMs": rounded(1e3 * seconds),
        },
        "metrics": metrics,
    }))
}

/// k6's id of a group is the MD5 of its path; the root's is empty.
const ROOT_ID: &str = "d41d8cd98f00b204e9800998ecf8427e";

/// Both forms of a metric.
fn metric(kind: &str, contains: &str, figures: Figures) -> Value {
    let mut both = figures.clone();
    both.insert("type".to_owned(), kind.into());
    both.insert("contains".to_owned(), contains.into());
    both.insert("values".to_owned(), Value::Object(figures));
    Value::Object(both)
}

/// A rate: how many of all are true. The two forms name its share differently.
fn rate(passes: u64, all: u64) -> Value {
    let share = rounded(passes as f64 / all as f64);
    let figures = json!({ "passes": passes, "fails": all - passes, "value": share, "rate": share });
    match figures {
        Value::Object(figures) => metric("rate", "default", figures),
        _ => unreachable!("it is written as an object"),
    }
}

fn trend(histogram: &Histogram) -> Figures {
    let quantile = |q| histogram.quantile(q);
    let figures = [
        ("avg", histogram.mean()),
        ("min", histogram.min()),
        ("med", quantile(0.5)),
        ("max", histogram.max()),
        ("p(90)", quantile(0.9)),
        ("p(95)", quantile(0.95)),
        ("p(99)", quantile(0.99)),
    ];
    let shown = figures
        .into_iter()
        .filter_map(|(name, span)| Some((name.to_owned(), json!(rounded(span?.as_millis_f64())?))));
    shown.collect()
}

/// Goals as k6's checks: each was judged once. A list, as `handleSummary` gets them: readers of the other form look at
/// metrics alone.
fn checks(record: &LoadRecord) -> Vec<Value> {
    let check = |goal: &crate::json_load::GoalFacts| {
        let met = goal.met?;
        let path = format!("::{}", goal.goal);
        Some(json!({
            "name": goal.goal, "path": path, "passes": u8::from(met), "fails": u8::from(!met),
        }))
    };
    goals(record).iter().filter_map(check).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata;

    #[test]
    fn a_metric_has_its_figures_as_both_readers_of_k6_want_them() {
        let mut load = testdata::load();
        load.plan.goals = record::parse_goals("p50<1h,p99<1ns").unwrap();
        let json: Value = serde_json::from_str(&render(&load, &Options::default())).unwrap();
        let metrics = &json["metrics"];
        let duration = &metrics["http_req_duration"];
        for name in ["avg", "min", "med", "max", "p(90)", "p(95)"] {
            assert!(duration[name].is_f64(), "{name}: {duration}");
            assert_eq!(duration[name], duration["values"][name]);
        }
        assert_eq!(metrics["http_reqs"]["count"], load.requests.done);
        assert_eq!(metrics["http_req_failed"]["values"]["rate"], 0.0);
        assert_eq!(metrics["http_req_failed"]["fails"], load.requests.done);
        assert_eq!(metrics["checks"]["value"], 0.5);
        assert!(metrics.get("http_req_blocked").is_none(), "no queue was timed");
    }
}
