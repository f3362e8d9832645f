//! Owns the tables beside the verdicts: groups that cannot be told apart, tails and what makes them,
//! noise, growth, and what other load tools claimed. Each is made here once; the outputs lay it out.
//! Must not know layout. Start reading at [`of_cell`] and [`of_run`].

use record::{
    Coefficient, Explanation, Metric, NoiseFloor, NoiseSource, RunRecord, Scalability, Shift,
    ToolRun, Visit,
};

use crate::figures::{NONE, grouped, listed, ratio_with_interval, significant};
use crate::standing::{median, span};
use crate::wording::{name_of, plain, words};

/// Pairs whose tails are shown.
const PAIRS_MAX: usize = 12;
/// Quantiles of the shift function that are shown.
const SHOWN: [(f64, &str); 5] =
    [(0.1, "p10"), (0.5, "p50"), (0.9, "p90"), (0.99, "p99"), (0.999, "p99.9")];

/// A table with what must be known to read it.
pub(crate) struct Extra {
    pub(crate) title: String,
    pub(crate) note: String,
    /// Titles; the first `left` columns lean to the left, the others to the right.
    pub(crate) columns: Vec<&'static str>,
    pub(crate) left: usize,
    pub(crate) rows: Vec<Vec<String>>,
}

/// Those of a run of one cell; empty tables are left out.
pub(crate) fn of_cell(run: &RunRecord) -> Vec<Extra> {
    let all = [tools(run), groups(run), tails(run), explained(run), noise(run)];
    all.into_iter().filter(|extra| !extra.rows.is_empty()).collect()
}

/// Those over all cells of a run.
pub(crate) fn of_run(run: &RunRecord) -> Vec<Extra> {
    [growth(run)].into_iter().filter(|extra| !extra.rows.is_empty()).collect()
}

/// Other load tools: what they claimed, what the server counted, what they used.
pub(crate) fn tools(run: &RunRecord) -> Extra {
    let contenders = 0..run.plan.contenders.len();
    let row = |contender: usize| {
        let visits: Vec<(&Visit, &ToolRun)> = run
            .measured(contender)
            .filter_map(|visit| Some((visit, visit.tool.as_ref()?)))
            .collect();
        let (_, tool) = visits.first()?;
        let of = |figure: &dyn Fn(&Visit, &ToolRun) -> Option<f64>| {
            median(visits.iter().filter_map(|(visit, tool)| figure(visit, tool)))
        };
        let shown = |value: Option<f64>| value.map_or_else(|| NONE.to_owned(), significant);
        let done = |tool: &ToolRun| tool.claimed.requests_done.map(|count| count as f64);
        let counted = of(&|visit, tool| Some(visit.logged? as f64 / done(tool)?));
        let cpu = of(&|visit, tool| {
            let requests = visit.logged.map(|count| count as f64).or_else(|| done(tool))?;
            (requests > 0.0).then(|| tool.cpu.as_micros_f64() / requests)
        });
        let version = if tool.version.is_empty() { "" } else { " " };
        Some(vec![
            name_of(&run.plan.contenders, contender),
            format!("{}{version}{}", plain(&tool.tool), plain(&tool.version)),
            tool.counts_differently.iter().map(|text| plain(text)).collect::<Vec<_>>().join("; "),
            shown(of(&|_, tool| tool.claimed.rate.map(|rate| rate.0))),
            shown(of(&|_, tool| done(tool))),
            counted.map_or_else(|| NONE.to_owned(), |share| format!("{share:.4}x")),
            shown(cpu),
        ])
    };
    Extra {
        title: "What the load tools claimed".to_owned(),
        note: "Medians over visits. `server` is what the server's own access log has over what the tool \
               counted: 1 where they agree, - where no log was kept. The tool's CPU time is that of its \
               whole run, its start included"
            .to_owned(),
        columns: vec![
            "contender", "tool", "counts differently", "claimed/s", "requests", "server", "tool CPU us/request",
        ],
        left: 3,
        rows: contenders.filter_map(row).collect(),
    }
}

/// Groups that cannot be told apart.
pub(crate) fn groups(run: &RunRecord) -> Extra {
    let metric = run.plan.metrics.first();
    let ranking = run.analysis.rankings.iter().find(|ranking| Some(&ranking.metric) == metric);
    let row = |place: &record::RankedContender| {
        vec![
            name_of(&run.plan.contenders, place.contender),
            plain(&place.letters),
            format!("{}x", significant(place.to_first)),
            place.best.to_string(),
        ]
    };
    let quantity = metric.map_or("", |&metric| words(metric).quantity);
    let unranked = ranking.map(|ranking| &ranking.unranked).filter(|list| !list.is_empty());
    let unranked = unranked.map_or_else(String::new, |list| {
        let names: Vec<String> =
            list.iter().map(|&index| name_of(&run.plan.contenders, index)).collect();
        format!("; not ranked, as a verdict of theirs is withheld: {}", listed(&names))
    });
    Extra {
        title: "Groups".to_owned(),
        note: format!(
            "By {quantity}, best first. Two that share a letter were not told apart; `best` is the share \
             of resamples of the blocks in which one comes first{unranked}"
        ),
        columns: vec!["contender", "group", "to the first", "best"],
        left: 2,
        rows: ranking.map_or_else(Vec::new, |one| one.places.iter().map(row).collect()),
    }
}

fn pair_name(run: &RunRecord, a: usize, b: usize) -> String {
    let [a, b] = [a, b].map(|index| name_of(&run.plan.contenders, index));
    format!("{a} / {b}")
}

fn tails(run: &RunRecord) -> Extra {
    let row = |shift: &Shift| {
        let point = |(q, _): &(f64, &str)| {
            let point = shift.points.iter().find(|point| (point.q - q).abs() < 1e-9);
            point.map_or_else(
                || NONE.to_owned(),
                |point| {
                    ratio_with_interval(point.a_ms / point.b_ms, point.ratio.low, point.ratio.high)
                },
            )
        };
        let name = pair_name(run, shift.a, shift.b);
        std::iter::once(name).chain(SHOWN.iter().map(point)).collect()
    };
    Extra {
        title: "Tails".to_owned(),
        note: "Ratios of quantiles of service time (shift function), with a band that holds all of them at \
               once in 95 % of runs; - where the samples do not bear it"
            .to_owned(),
        columns: std::iter::once("pair").chain(SHOWN.iter().map(|(_, name)| *name)).collect(),
        left: 1,
        rows: run.analysis.shifts.iter().take(PAIRS_MAX).map(row).collect(),
    }
}

fn explained(run: &RunRecord) -> Extra {
    let row = |one: &Explanation| {
        let stalls = |modes: &record::Modes| match modes.stalls.as_slice() {
            [] => "none".to_owned(),
            modes => modes
                .iter()
                .map(|mode| format!("{} of {}", mode.share, span(mode.mean_ms)))
                .collect::<Vec<_>>()
                .join(", "),
        };
        let share = one.stall_share.map(|share| format!("{:.0} %", 100.0 * share));
        vec![
            pair_name(run, one.a, one.b),
            stalls(&one.of_a),
            stalls(&one.of_b),
            format!("{} / {}", span(one.of_a.mean_ms), span(one.of_b.mean_ms)),
            format!("{} / {}", span(one.of_a.main_ms), span(one.of_b.main_ms)),
            share.unwrap_or_else(|| NONE.to_owned()),
        ]
    };
    // Where nobody stalled there is nothing to explain.
    let stalled = |one: &&Explanation| !one.of_a.stalls.is_empty() || !one.of_b.stalls.is_empty();
    Extra {
        title: "What the means are made of".to_owned(),
        note: "Stalls are modes far beyond the main one; the last column is their part of the ratio of the \
               means, the rest is service time"
            .to_owned(),
        columns: vec!["pair", "stalls of the first", "of the second", "means", "without stalls", "by stalls"],
        left: 3,
        rows: run.analysis.explanations.iter().filter(stalled).take(PAIRS_MAX).map(row).collect(),
    }
}

fn noise(run: &RunRecord) -> Extra {
    let row = |floor: &NoiseFloor| {
        let source = match &floor.source {
            NoiseSource::Visits => "visits of every contender".to_owned(),
            NoiseSource::Copies { a, b, estimate } => {
                let band = ratio_with_interval(estimate.ratio, estimate.low, estimate.high);
                format!("A/A: {} is {band}", pair_name(run, *a, *b))
            }
        };
        vec![
            words(floor.metric).quantity.to_owned(),
            source,
            format!("{:.2} %", 100.0 * floor.sd_ln),
            floor.blocks.to_string(),
            floor.smallest.to_string(),
        ]
    };
    Extra {
        title: "Noise floor".to_owned(),
        note: "What differs between two visits between which nothing differs, and so the smallest \
               difference that these blocks show in 80 of 100 runs"
            .to_owned(),
        columns: vec!["metric", "seen in", "sd", "blocks", "smallest difference"],
        left: 2,
        rows: run.analysis.noise_floors.iter().map(row).collect(),
    }
}

fn growth(run: &RunRecord) -> Extra {
    let number = |one: &Coefficient, scale: f64| {
        let middle = significant(one.value * scale);
        one.interval.map_or_else(
            || middle.clone(),
            |band| {
                format!(
                    "{middle} [{}, {}]",
                    significant(band.low * scale),
                    significant(band.high * scale)
                )
            },
        )
    };
    let row = |one: &Scalability| {
        let levels: Vec<String> = one.connections.iter().map(|n| grouped(u64::from(*n))).collect();
        let at = |cell: &usize| run.plan.cells.get(*cell).map(|cell| plain(&cell.name));
        let first = one.cells.first().and_then(at).unwrap_or_default();
        vec![
            name_of(&run.plan.contenders, one.contender),
            format!("{} (from {first})", levels.join(", ")),
            number(&one.lambda, 1.0),
            number(&one.sigma, 100.0),
            number(&one.kappa, 100.0),
            one.peak.map_or_else(|| NONE.to_owned(), significant),
            format!("{:.0} %", 100.0 * one.misfit_ln.exp_m1()),
        ]
    };
    Extra {
        title: "How throughput grows".to_owned(),
        note: "The Universal Scalability Law, X(N) = lambda N / (1 + sigma (N-1) + kappa N (N-1)): \
               contention sigma and coherency kappa in %; beyond a misfit of 10 % it does not describe \
               what was seen"
            .to_owned(),
        columns: vec!["contender", "connections", "lambda/s", "sigma %", "kappa %", "peak at", "misfit"],
        left: 2,
        rows: run.analysis.scalability.iter().map(row).collect(),
    }
}

/// The percentile of a metric as tools claimed it, median over visits.
pub(crate) fn claimed(run: &RunRecord, contender: usize, metric: Metric) -> Option<f64> {
    let by_tool = run.measured(contender).filter(|visit| visit.tool.is_some());
    median(by_tool.filter_map(|visit| visit.value(metric)))
}
