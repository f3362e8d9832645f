//! The names of metrics on the command line.

use record::Metric;

/// The metric of that name, as run files have it.
pub fn metric_named(name: &str) -> Result<Metric, String> {
    serde_json::from_value(serde_json::Value::String(name.to_owned()))
        .map_err(|_| "the metrics are throughput, server_cpu, p50, p99 and memory".to_owned())
}
