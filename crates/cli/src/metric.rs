//! Reads the names of metrics on a command line.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use record::{METRICS, Metric};

/// Reads the name of a metric, as run files have it.
pub fn metric_parser() -> impl TypedValueParser<Value = Metric> {
    PossibleValuesParser::new(METRICS.iter().map(|info| info.name))
        .map(|name| Metric::named(&name).expect("clap lets only these names through"))
}
