//! Upgrades files of older versions to today's shape. Owns what changed from one to the next; a field that was only
//! added has its default in its definition. Start reading at [`load_1`].

use serde_json::{Map, Value, json};

/// joust-load/1: a plan had one request to one origin, with their parts among its other fields.
pub(crate) fn load_1(record: &mut Value) {
    if let Some(plan) = record.get_mut("plan").and_then(Value::as_object_mut) {
        plan_1(plan);
    }
}

/// joust-run/1: it held loads of joust-load/1.
pub(crate) fn run_1(record: &mut Value) {
    let visits = record.get_mut("visits").and_then(Value::as_array_mut);
    for visit in visits.into_iter().flatten() {
        if let Some(load) = visit.get_mut("load").filter(|load| load.is_object()) {
            load_1(load);
            load["format"] = crate::json::LOAD_FORMAT.into();
        }
    }
    run_2(record);
}

/// joust-run/2: a plan had one workload.
pub(crate) fn run_2(record: &mut Value) {
    if let Some(plan) = record.get_mut("plan").and_then(Value::as_object_mut) {
        let workload = plan.remove("workload").unwrap_or_default();
        plan.insert("cells".to_owned(), json!([{ "name": "", "workload": workload }]));
    }
}

fn plan_1(plan: &mut Map<String, Value>) {
    let mut take = |name: &str| plan.remove(name).unwrap_or_default();
    let request = json!({
        "origin": 0,
        "method": take("method"),
        "target": take("target"),
        "headers": take("headers"),
        "body": take("body"),
        "weight": 1,
        "templated": false,
        "expected": null,
    });
    let origin =
        json!({ "place": { "inet": take("addr") }, "host": take("host"), "tls_name": null });
    let missing = [
        ("origins", json!([origin])),
        ("requests", json!([request])),
        ("n_requests", json!(1)),
        ("pick", json!("in_order")),
        ("columns", json!([])),
        ("version", json!("1.1")),
        ("engine", json!("epoll")),
        ("stamps", json!("wake_up")),
        ("requests_per_connection", Value::Null),
        ("pipeline", json!(1)),
        ("expect_continue", json!(false)),
        ("cookies", json!(false)),
        ("sources", json!([])),
        ("tls", json!(crate::TlsPlan::default())),
        ("busy_poll", json!(false)),
        ("queue_max", json!(0)),
    ];
    for (name, value) in missing {
        plan.entry(name).or_insert(value);
    }
}
