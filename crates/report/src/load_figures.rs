//! Owns which figures a single load has, for its page and as files. Start reading at [`load_figures`].

use record::LoadRecord;
use units::Nanos;

use crate::Options;
use crate::distribution_plot::distribution_plot;
use crate::drawing::Drawing;
use crate::heat_map::HeatMap;
use crate::lines;
use crate::load_tables::distribution;
use crate::maps;
use crate::offsets::offsets;
use crate::over_time::over_time;
use crate::percentiles::{self as curves, Sample, percentiles};
use crate::table::Table;

/// A figure that can be drawn of the load.
pub(crate) struct LoadFigure {
    /// Its name in files and ids.
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    /// How it is read.
    pub(crate) note: &'static str,
    pub(crate) width: f64,
    pub(crate) drawing: Drawing,
    /// The same as figures.
    pub(crate) table: Option<Table>,
}

/// Distribution, percentiles, course.
pub(crate) fn load_figures(record: &LoadRecord) -> Vec<LoadFigure> {
    let figure = |drawing: Option<Drawing>, name, title, note, table| {
        Some(LoadFigure { name, title, note, width: lines::WIDTH, drawing: drawing?, table })
    };
    let latencies = &record.latencies;
    let samples = [
        Sample { name: "service", number: 0, spans: &latencies.service },
        Sample { name: "response", number: 1, spans: &latencies.response },
    ];
    // In a closed loop a request is due when it is sent, and both are the same.
    let shown = if record.open_loop.is_some() { &samples[..] } else { &samples[..1] };
    let figures = [
        figure(
            distribution_plot(&latencies.response),
            "distribution",
            "Distribution of response times",
            "Each bar is the share of ok requests in a step of a logarithmic scale",
            distribution(record, &Options::default()),
        ),
        figure(
            percentiles(shown.iter().copied()),
            "percentiles",
            "Latency by percentile",
            "A curve ends where the sample is too small for the next percentile. Service time is from sent to done; \
             response time from due to done",
            curves::table(shown.iter().copied()).filled(),
        ),
        figure(
            over_time(record),
            "over-time",
            "Throughput and service time over the load",
            "Each point is an interval of the load",
            None,
        ),
    ];
    figures.into_iter().flatten().collect()
}

/// Service time over the load, and completions within each second.
pub(crate) fn load_maps(record: &LoadRecord) -> Vec<LoadFigure> {
    let figure = |drawing: Option<Drawing>, name, title, note| {
        Some(LoadFigure { name, title, note, width: maps::WIDTH, drawing: drawing?, table: None })
    };
    let map = HeatMap::of(record, Nanos::ZERO);
    let figures = [
        figure(
            map.range().and_then(|range| map.drawing("this load", range)),
            "heat",
            "Service time over the load",
            "Darker: a larger share of the requests of that moment. Lines at 40 ms, 200 ms, 1 s and 3 s, where timers \
             of the kernel show",
        ),
        figure(
            offsets(record, "this load"),
            "offsets",
            "Completions within each second",
            "Each column is a second. Lines and gaps are timers, batches and silences",
        ),
    ];
    figures.into_iter().flatten().collect()
}
