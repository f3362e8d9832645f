//! The pages in a real browser: every control by mouse and by keyboard, no message on the console, no request, no
//! violation that axe finds, at three widths, light, dark and on paper. `browser/check.cjs` drives it; what it needs
//! is brought by `scripts/peers.sh`. With JOUST_SCREENSHOTS=FOLDER it leaves pictures there.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use joust_report::Options;
use record::{
    Course, HistoryChange, HistoryMachine, HistoryPoint, HistoryRecord, HistoryRun, HistorySeries,
    Interval, LoadRecord, MachineSeries, Metric, PairVerdict, RunRecord, Surroundings, Verdict,
    Visit,
};
use units::Nanos;

#[expect(dead_code, reason = "it has runs for other tests too")]
#[path = "../src/testdata.rs"]
mod testdata;

/// Where `scripts/peers.sh` puts what npm brings.
const MODULES: &str = ".cache/joust-tests/node_modules";
const CHROMIUM: &str = "/usr/bin/chromium";

#[test]
fn every_control_works_and_nothing_leaves_the_page() {
    let Some(modules) = modules() else { return };
    let folder = tempfile::tempdir().unwrap();
    write_pages(folder.path());
    let mut node = Command::new("node");
    node.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser/check.cjs"));
    node.arg(modules).arg(CHROMIUM).arg(folder.path());
    if let Some(screenshots) = env::var_os("JOUST_SCREENSHOTS") {
        fs::create_dir_all(&screenshots).unwrap();
        node.arg(screenshots);
    }
    let output = node.output().unwrap();
    let said = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    assert!(output.status.success(), "{}{}", said[0], said[1]);
    assert!(said[0].contains(" checks, 0 wrong"), "{}", said[0]);
    if let Some(screenshots) = env::var_os("JOUST_SCREENSHOTS") {
        fs::write(Path::new(&screenshots).join("said.txt"), &*said[0]).unwrap();
    }
}

/// The folder of the driver; `None`, and said so, if something is not installed.
fn modules() -> Option<PathBuf> {
    let home = PathBuf::from(env::var_os("HOME").unwrap_or_default());
    let modules =
        env::var_os("JOUST_TEST_MODULES").map_or_else(|| home.join(MODULES), PathBuf::from);
    if !modules.join("playwright-core").exists() || !modules.join("axe-core").exists() {
        skips::note(
            "playwright-core and axe-core are not installed (scripts/peers.sh brings them)",
        );
        return None;
    }
    let has_node = Command::new("node").arg("--version").output().is_ok();
    if !has_node || !Path::new(CHROMIUM).exists() {
        skips::note("node or chromium is not installed");
        return None;
    }
    Some(modules)
}

fn write_pages(folder: &Path) {
    let html = joust_report::output("html").unwrap();
    let render = |run: &RunRecord| html.run.as_ref().unwrap().bytes(run, &Options::default());
    let write = |name: &str, page: Vec<u8>| fs::write(folder.join(name), page).unwrap();
    write("run.html", render(&with_courses(testdata::run())));
    write("cells.html", render(&with_courses(testdata::celled())));
    write("failed.html", render(&testdata::all_failed()));
    write("large.html", render(&large()));
    let history = history();
    write("index.html", joust_report::index_page(&history).into_bytes());
    let trend = joust_report::trend_page("quick", "nginx", &history.series);
    write("trend.html", trend.into_bytes());
    let mut load = testdata::load();
    split(&mut load);
    load.machine = Some(Box::new(series()));
    let of_load = html.load.as_ref().unwrap();
    write("load.html", of_load.bytes(&load, &Options::default()));
}

/// Twelve runs; with the seventh a figure becomes worse.
fn history() -> HistoryRecord {
    let started = |id: i64| format!("2026-11-{id:02}T11:14:03Z");
    let run = |id: i64| HistoryRun {
        id,
        study: "quick".to_owned(),
        started: started(id),
        seconds: 80.0,
        joust: "0.1.0".to_owned(),
        machine: HistoryMachine { cpu_model: "EPYC".to_owned(), ..HistoryMachine::default() },
        path: "/r/run.json".to_owned(),
        is_there: true,
        contenders: vec!["nginx".to_owned(), "joust reactor".to_owned()],
        cells: 1,
        blocks: 8,
    };
    let point = |id: i64| {
        let mean = if id < 7 { 1000.0 } else { 900.0 };
        HistoryPoint {
            run: id,
            started: started(id),
            mean,
            low: Some(0.98 * mean),
            high: Some(1.02 * mean),
            n: 8,
            version: "a/1".to_owned(),
            configuration: String::new(),
            joust: "0.1.0".to_owned(),
            withheld: (id == 9).then(|| "errors_as_speed".to_owned()),
        }
    };
    let change = HistoryChange {
        run: 7,
        started: started(7),
        before: 1000.0,
        after: 900.0,
        ratio: 0.9,
        low: 0.88,
        high: 0.92,
        with: Vec::new(),
    };
    let series = HistorySeries {
        study: "quick".to_owned(),
        contender: "nginx".to_owned(),
        cell: String::new(),
        metric: Metric::Throughput,
        machine: HistoryMachine::default(),
        points: (1..=12).map(point).collect(),
        changes: vec![change],
        points_needed: 10,
    };
    HistoryRecord {
        format: HistoryRecord::FORMAT.to_owned(),
        database: "h.sqlite".to_owned(),
        runs: (1..=12).map(run).collect(),
        series: vec![series],
    }
}

/// Every visit with a course, and the machine's counters.
fn with_courses(mut run: RunRecord) -> RunRecord {
    for visit in &mut run.visits {
        if let Some(load) = &mut visit.load {
            split(load);
        }
        visit.surroundings =
            Some(Box::new(Surroundings { series: series(), ..Surroundings::default() }));
    }
    run
}

/// The only interval of a made-up load as twenty equal ones.
fn split(load: &mut LoadRecord) {
    pack(load);
    let whole = load.intervals[0].clone();
    let length = Nanos(whole.end().0 / 20);
    let part = |n: u64| Interval {
        start: Nanos(length.0 * n),
        length,
        ok: whole.ok / 20,
        ..whole.clone()
    };
    load.intervals = (0..20).map(part).collect();
}

/// As a file is read: histograms without room for more.
fn pack(load: &mut LoadRecord) {
    load.latencies.each_mut().into_iter().for_each(|spans| spans.pack());
    for interval in &mut load.intervals {
        interval.service.pack();
        interval.response.pack();
    }
}

fn series() -> MachineSeries {
    let steps = |steps: &[i64]| Course { first: 7, steps: steps.to_vec() };
    MachineSeries {
        at: (0..6).map(|n| Nanos::from_millis(200 * n)).collect(),
        counters: [
            ("both.TcpExt.TCPTimeouts".to_owned(), steps(&[0, 3, 0, 1, 0])),
            ("stat.processes".to_owned(), steps(&[1, 0, 0, 2, 0])),
        ]
        .into(),
        ..MachineSeries::default()
    }
}

/// Fifty contenders in twenty cells, each pair compared on two metrics.
fn large() -> RunRecord {
    const CELLS: usize = 20;
    const CONTENDERS: usize = 50;
    let mut base = testdata::run();
    for load in base.visits.iter_mut().filter_map(|visit| visit.load.as_mut()) {
        pack(load);
    }
    let like = |index: usize| index % base.plan.contenders.len();
    let mut run = base.clone();
    let contender = |index: usize| {
        let mut one = base.plan.contenders[like(index)].clone();
        one.name = format!("{} {index}", one.name);
        one
    };
    run.plan.contenders = (0..CONTENDERS).map(contender).collect();
    run.contenders = (0..CONTENDERS).map(|index| base.contenders[like(index)].clone()).collect();
    let cell = |index: usize| {
        let mut cell = base.plan.cells[0].clone();
        cell.workload.connections = 1 + index as u32;
        cell.name = format!("connections={}", 1 + index);
        cell
    };
    run.plan.cells = (0..CELLS).map(cell).collect();
    run.findings.clear();
    let places = || (0..CELLS).flat_map(|cell| (0..CONTENDERS).map(move |one| (cell, one)));
    run.visits = places()
        .flat_map(|(cell, contender)| {
            let visits = base.visits.iter().filter(move |visit| visit.contender == like(contender));
            visits.take(4).map(move |visit| Visit { cell, contender, ..visit.clone() })
        })
        .collect();
    let pair = |cell: usize, metric: Metric, a: usize, b: usize| {
        let ratio = 0.5 + ((a * 7 + b * 3 + cell) % 40) as f64 / 40.0;
        let verdict = Verdict::Ratio { ratio, low: 0.97 * ratio, high: 1.03 * ratio };
        PairVerdict { cell, metric, a, b, estimate: None, verdict, short_of: None }
    };
    run.verdicts = places()
        .flat_map(|(cell, a)| {
            ((a + 1)..CONTENDERS).flat_map(move |b| {
                [Metric::Throughput, Metric::ServerCpu].map(|metric| pair(cell, metric, a, b))
            })
        })
        .collect();
    run
}
