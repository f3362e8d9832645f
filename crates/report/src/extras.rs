//! Owns the tables beside the verdicts: groups that cannot be told apart, tails and what makes them, noise, growth,
//! and what other load tools reported. A new table is a function and its line in [`BESIDE`] or [`OF_RUN`]: every
//! output lays it out. Must not know layout. Start reading at [`of_cell`].

use record::{
    Attributed, AttributedPart, Attribution, Coefficient, Explanation, Finding, NoiseFloor,
    NoiseSource, OutlyingVisit, RunRecord, Scalability, Severity, Shift, ToolRun, Visit,
};

use crate::cells::CellView;
use crate::figures::{NONE, grouped, listed, percent, ratio_with_interval, significant};
use crate::standing::{median, shown, span};
use crate::table::{Column, Depth, Row, Table};
use crate::wording::{name_of, plain};
use crate::{contenders, memory_account, pairs, published};

/// With fewer blocks, no chance of being first is shown: two blocks have a single degree of freedom.
const BEST_BLOCKS_MIN: u32 = stats::BLOCKS_FOR_INTERVAL as u32;
/// Most pairs whose tails are shown.
const PAIRS_MAX: usize = 12;
/// Most pairs whose causes stand beside the answer; more are a detail.
const ANSWERED_MAX: usize = 3;
/// Smallest share of a cause that is shown: half a percent, since less would read as 0 %.
const ATTRIBUTED_MIN: f64 = 0.005;
/// Most outlying visits that are shown: those furthest from the others.
const OUTLIERS_MAX: usize = 12;
/// Quantiles of the shift function that are shown.
const SHOWN: [(f64, &str); 5] =
    [(0.1, "p10"), (0.5, "p50"), (0.9, "p90"), (0.99, "p99"), (0.999, "p99.9")];

/// Tables of one cell, apart from its contenders and pairs, in display order.
static BESIDE: &[fn(&CellView) -> Table] = &[
    tools,
    retries,
    groups,
    outliers,
    tails,
    why_they_differ,
    explained,
    noise,
    memory_account::table,
    published::table,
];

/// Tables over all cells of a run.
static OF_RUN: &[fn(&RunRecord) -> Table] = &[growth];

/// All tables of a cell; empty ones are left out.
pub(crate) fn of_cell(view: &CellView) -> Vec<Table> {
    let first = std::iter::once(contenders::table(view)).chain(pairs::tables(view));
    first.chain(beside(view)).collect()
}

/// The tables of a cell other than its contenders and its pairs.
pub(crate) fn beside(view: &CellView) -> impl Iterator<Item = Table> {
    BESIDE.iter().filter_map(|table| table(view).filled())
}

/// The tables over all cells of a run.
pub(crate) fn of_run(run: &RunRecord) -> Vec<Table> {
    OF_RUN.iter().filter_map(|table| table(run).filled()).collect()
}

/// Other load tools: what they reported, what the server counted, what they used.
fn tools(CellView { run, .. }: &CellView) -> Table {
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
    Table {
        title: "What the load tools reported".to_owned(),
        note: "Medians over visits. `logged` is the number of requests in the server's access log over \
               the number that the tool reported: 1 where they agree, - without a log. CPU time is that of the tool's whole run, its start included"
            .to_owned(),
        columns: vec![
            Column::text("contender"),
            Column::text("tool"),
            Column::sentence("counts differently"),
            Column::figure("reported", "/s"),
            Column::figure("requests", ""),
            Column::figure("logged", ""),
            Column::figure("tool CPU", "us/request"),
        ],
        rows: contenders.filter_map(row).map(Row::of).collect(),
        depth: Depth::Answer,
    }
}

/// Retried requests of contenders that have any.
fn retries(CellView { run, .. }: &CellView) -> Table {
    let row = |contender: usize| {
        let loads = || run.measured(contender).filter_map(|visit| visit.load.as_ref());
        let retried: u64 = loads().map(|load| load.requests.retried).sum();
        let started: u64 = loads().map(|load| load.requests.started).sum();
        (retried > 0).then(|| {
            let name = name_of(&run.plan.contenders, contender);
            vec![name, grouped(retried), percent(retried, started)]
        })
    };
    Table {
        title: "Retried requests".to_owned(),
        note: "The server closed a keep-alive connection before the first byte of the reply, and the \
               request was sent again. A request that was lost twice has failed; latency counts from the first attempt"
            .to_owned(),
        columns: vec![
            Column::text("contender"),
            Column::figure("requests", ""),
            Column::figure("share", ""),
        ],
        rows: (0..run.plan.contenders.len()).filter_map(row).map(Row::of).collect(),
        depth: Depth::Answer,
    }
}

/// Groups that cannot be told apart.
fn groups(CellView { run, .. }: &CellView) -> Table {
    let metric = run.plan.metrics.first();
    let ranking = run.analysis.rankings.iter().find(|ranking| Some(&ranking.metric) == metric);
    let is_told = ranking.is_some_and(|ranking| ranking.blocks >= BEST_BLOCKS_MIN);
    let row = |place: &record::RankedContender| {
        vec![
            name_of(&run.plan.contenders, place.contender),
            plain(&place.letters),
            format!("{}x", significant(place.to_first)),
            if is_told { place.best.to_string() } else { NONE.to_owned() },
        ]
    };
    let quantity = metric.map_or("", |&metric| metric.info().quantity);
    let unranked = ranking.map(|ranking| &ranking.unranked).filter(|list| !list.is_empty());
    let unranked = unranked.map_or_else(String::new, |list| {
        let names: Vec<String> =
            list.iter().map(|&index| name_of(&run.plan.contenders, index)).collect();
        format!("; not ranked because a verdict is withheld: {}", listed(&names))
    });
    Table {
        title: "Groups".to_owned(),
        note: format!(
            "By {quantity}, best first. Contenders that share a letter were not told apart. `first` is the \
             chance of being first, given these blocks (t distribution); it replaces no verdict ({NONE} \
             below {BEST_BLOCKS_MIN} blocks){unranked}"
        ),
        columns: vec![
            Column::text("contender"),
            Column::text("group"),
            Column::figure("ratio to the first", ""),
            Column::figure("first", ""),
        ],
        rows: ranking.into_iter().flat_map(|one| &one.places).map(row).map(Row::of).collect(),
        depth: Depth::Answer,
    }
}

/// Visits far from the others, furthest first.
fn outliers(CellView { run, .. }: &CellView) -> Table {
    let row = |one: &OutlyingVisit| {
        vec![
            name_of(&run.plan.contenders, one.contender),
            (one.block + 1).to_string(),
            one.metric.info().quantity.to_owned(),
            shown(one.metric, Some(one.value)),
            shown(one.metric, Some(one.usual)),
            format!("{}x", significant(one.off)),
        ]
    };
    let mut found: Vec<&OutlyingVisit> = run.analysis.outliers.iter().collect();
    found.sort_by(|a, b| b.off.ln().abs().total_cmp(&a.off.ln().abs()));
    let hidden = found.len().saturating_sub(OUTLIERS_MAX);
    let more = if hidden == 0 { String::new() } else { format!("; {hidden} more in the run file") };
    Table {
        title: "Outlying visits".to_owned(),
        note: format!(
            "Far from the contender's other visits, after the effect of the block is removed. `ratio` \
             is value over expected value. They are kept: the robust estimate gives them little or no weight, and medians hardly change{more}"
        ),
        columns: vec![
            Column::text("contender"),
            Column::figure("block", ""),
            Column::text("metric"),
            Column::figure("value", ""),
            Column::figure("expected", ""),
            Column::figure("ratio", ""),
        ],
        rows: found.into_iter().take(OUTLIERS_MAX).map(row).map(Row::of).collect(),
        depth: Depth::Detail,
    }
}

fn pair_name(run: &RunRecord, a: usize, b: usize) -> String {
    let [a, b] = [a, b].map(|index| name_of(&run.plan.contenders, index));
    format!("{a} / {b}")
}

fn tails(CellView { run, .. }: &CellView) -> Table {
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
        Row::of(std::iter::once(name).chain(SHOWN.iter().map(point)))
    };
    Table {
        title: "Service time quantiles".to_owned(),
        note:
            "Ratios of service time quantiles (shift function), with a simultaneous 95 % band; - \
               marks too few samples"
                .to_owned(),
        columns: std::iter::once(Column::text("pair"))
            .chain(SHOWN.iter().map(|(_, name)| Column::figure(name, "")))
            .collect(),
        rows: run.analysis.shifts.iter().take(PAIRS_MAX).map(row).collect(),
        depth: Depth::Detail,
    }
}

/// A row for each cause of each pair, the largest share first.
fn why_they_differ(CellView { run, .. }: &CellView) -> Table {
    let rows = |one: &Attribution| {
        let is_shown = |part: &&AttributedPart| part.share.abs() >= ATTRIBUTED_MIN;
        let mut parts: Vec<AttributedPart> = one.parts.iter().filter(is_shown).copied().collect();
        parts.sort_by(|a, b| b.share.abs().total_cmp(&a.share.abs()));
        let of = match one.of {
            Attributed::Throughput => "requests/s",
            Attributed::ResponseTime => "mean response time",
        };
        let name =
            format!("{} ({of} {}x)", pair_name(run, one.a, one.b), significant(one.ln.exp()));
        let row = move |part: &AttributedPart| {
            let whole = |share: f64| format!("{:.0}", 100.0 * share);
            let interval = part.interval.map_or_else(String::new, |band| {
                format!(" [{}, {}]", whole(band.low), whole(band.high))
            });
            vec![
                name.clone(),
                part.cause.text().to_owned(),
                format!("{} %{interval}", whole(part.share)),
                span(part.a_ms),
                span(part.b_ms),
            ]
        };
        parts.iter().map(row).collect::<Vec<_>>()
    };
    let attributions = &run.analysis.attributions;
    Table {
        title: "Why they differ".to_owned(),
        note: "Share of the logarithm of the ratio by cause, with a 95 % interval. In a closed loop throughput is \
               connections over the time of a cycle; `first` and `second` are what a cause takes of it, a good \
               request in the mean. A negative share pulls the other way"
            .to_owned(),
        columns: vec![
            Column::text("pair"),
            Column::text("cause"),
            Column::figure("share", ""),
            Column::figure("first", ""),
            Column::figure("second", ""),
        ],
        rows: attributions.iter().take(PAIRS_MAX).flat_map(rows).map(Row::of).collect(),
        depth: if attributions.len() <= ANSWERED_MAX { Depth::Answer } else { Depth::Detail },
    }
}

fn explained(CellView { run, .. }: &CellView) -> Table {
    let row = |one: &Explanation| {
        let stalls = |modes: &record::Modes| match modes.stalls.as_slice() {
            [] => "none".to_owned(),
            modes => modes
                .iter()
                .map(|mode| format!("{} at {}", mode.share, span(mode.mean_ms)))
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
    // If neither stalled, there is nothing to explain.
    let stalled = |one: &&Explanation| !one.of_a.stalls.is_empty() || !one.of_b.stalls.is_empty();
    let explanations = run.analysis.explanations.iter();
    Table {
        title: "Mean service time: main mode and stalls".to_owned(),
        note: "Stalls are modes far above the main mode. `due to stalls` is their share of the ratio of \
               the means; the rest is due to the main mode"
            .to_owned(),
        columns: vec![
            Column::text("pair"),
            Column::text("stalls, first"),
            Column::text("stalls, second"),
            Column::figure("means", ""),
            Column::figure("without stalls", ""),
            Column::figure("due to stalls", ""),
        ],
        rows: explanations.filter(stalled).take(PAIRS_MAX).map(row).map(Row::of).collect(),
        depth: Depth::Detail,
    }
}

fn noise(CellView { run, .. }: &CellView) -> Table {
    let row = |floor: &NoiseFloor| {
        let source = match &floor.source {
            NoiseSource::Visits => "visits of every contender".to_owned(),
            NoiseSource::Copies { a, b, estimate } => {
                let band = ratio_with_interval(estimate.ratio, estimate.low, estimate.high);
                format!("A/A: {} is {band}", pair_name(run, *a, *b))
            }
        };
        vec![
            floor.metric.info().quantity.to_owned(),
            source,
            format!("{:.2} %", 100.0 * floor.sd_ln),
            floor.blocks.to_string(),
            floor.smallest.to_string(),
        ]
    };
    Table {
        title: "Noise floor".to_owned(),
        note:
            "Variation between visits that should be equal, and the smallest difference that these \
               blocks detect in 80 of 100 runs"
                .to_owned(),
        columns: vec![
            Column::text("metric"),
            Column::text("measured in"),
            Column::figure("sd", ""),
            Column::figure("blocks", ""),
            Column::figure("detectable difference", ""),
        ],
        rows: run.analysis.noise_floors.iter().map(row).map(Row::of).collect(),
        depth: Depth::Detail,
    }
}

fn growth(run: &RunRecord) -> Table {
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
        let is_bound = |cell: usize| {
            let acts = |finding: &Finding| finding.acts_on(Severity::Bound, cell, one.contender);
            run.findings.iter().any(acts)
        };
        let level = |(n, cell): (&u32, &usize)| {
            let mark = if is_bound(*cell) { " (bound)" } else { "" };
            format!("{}{mark}", grouped(u64::from(*n)))
        };
        let levels: Vec<String> = one.connections.iter().zip(&one.cells).map(level).collect();
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
    Table {
        title: "Scalability".to_owned(),
        note: "The Universal Scalability Law, X(N) = lambda N / (1 + sigma (N-1) + kappa N (N-1)): \
               sigma is contention and kappa is coherency, in %. With a misfit above 10 % the law does not describe the measurements. Numbers of connections at which a finding voids the contender are left out, and so is a contender with fewer than three of them. Where throughput is a lower bound (bound), the generator is part of the fit"
            .to_owned(),
        columns: vec![
            Column::text("contender"),
            Column::text("connections"),
            Column::figure("lambda", "/s"),
            Column::figure("sigma", "%"),
            Column::figure("kappa", "%"),
            Column::figure("peak at", ""),
            Column::figure("misfit", ""),
        ],
        rows: run.analysis.scalability.iter().map(row).map(Row::of).collect(),
        depth: Depth::Answer,
    }
}
