//! A history on disk: adding, finding, and damaged ones. Start reading at any test.

use std::io::{Seek as _, Write as _};

use tempfile::TempDir;

use super::*;
use crate::testdata::{run, run_of};

/// A folder with a run file in it for each seed.
fn folder(seeds: &[u64]) -> (TempDir, Vec<PathBuf>) {
    let dir = tempfile::tempdir().unwrap();
    let write = |seed: &u64| {
        let file = dir.path().join(format!("run-{seed}")).join("run.json");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, run(&["nginx", "joust"], 8, *seed).to_json()).unwrap();
        file
    };
    let files = seeds.iter().map(write).collect();
    (dir, files)
}

fn read(file: &Path) -> RunRecord {
    RunRecord::from_json(&fs::read_to_string(file).unwrap()).unwrap()
}

#[test]
fn a_run_is_there_once_with_its_figures() {
    let (dir, files) = folder(&[3]);
    let path = dir.path().join("history.sqlite");
    let mut history = History::open_or_make(&path).unwrap();
    let run = read(&files[0]);
    assert_eq!(history.add(&files[0], &run).unwrap(), Added::New(1));
    drop(history);
    let mut history = History::open(&path).unwrap();
    assert_eq!(history.add(&files[0], &run).unwrap(), Added::Known(1));
    let runs = history.runs(&Filter::default()).unwrap();
    assert_eq!(runs.len(), 1);
    assert_eq!((runs[0].study.as_str(), runs[0].blocks, runs[0].cells), ("made up", 8, 1));
    assert_eq!(runs[0].contenders, ["nginx", "joust"]);
    assert_eq!((runs[0].machine.kernel.as_str(), runs[0].is_there), ("6.12", true));
    let filter = Filter { contender: Some("nginx".to_owned()), ..Filter::default() };
    let series = history.series(&filter).unwrap();
    let metrics: Vec<Metric> = series.iter().map(|one| one.metric).collect();
    assert_eq!(metrics, [Metric::Throughput, Metric::ServerCpu, Metric::Memory]);
    // The stored figure is a robust level of the rates of the visits; no rate here is an outlier.
    let rates: Vec<f64> = run.measured(0).map(|visit| visit.rate_per_s.unwrap()).collect();
    let mean = rates.iter().product::<f64>().powf(1.0 / rates.len() as f64);
    let median = stats::median(&rates).unwrap();
    let point = &series[0].points[0];
    let near = (point.mean / mean - 1.0).abs() < 0.01 && (point.mean / median - 1.0).abs() < 0.02;
    assert!(near && point.n == 8, "{point:?} beside {mean} and {median}");
    assert!(point.low.unwrap() < mean && mean < point.high.unwrap());
    assert_eq!((point.version.as_str(), point.configuration.len()), ("nginx/1.0", 64));
}

#[test]
fn filters_hold() {
    let (dir, files) = folder(&[1, 2]);
    let mut history = History::open_or_make(&dir.path().join("h.sqlite")).unwrap();
    files.iter().for_each(|file| drop(history.add(file, &read(file)).unwrap()));
    let runs = |study: Option<&str>, contender: Option<&str>| {
        let owned = |name: Option<&str>| name.map(str::to_owned);
        let (study, contender) = (owned(study), owned(contender));
        history.runs(&Filter { study, contender, ..Filter::default() }).unwrap().len()
    };
    assert_eq!((runs(None, None), runs(Some("made up"), Some("joust"))), (2, 2));
    assert_eq!((runs(Some("other"), None), runs(None, Some("h2o"))), (0, 0));
    let metric = Some(Metric::Memory);
    let series = history.series(&Filter { metric, ..Filter::default() }).unwrap();
    assert_eq!(series.len(), 2, "one a contender");
    assert!(series.iter().all(|one| one.points.len() == 2));
}

#[test]
fn other_machines_and_other_work_are_other_series() {
    let (dir, files) = folder(&[1]);
    let mut history = History::open_or_make(&dir.path().join("h.sqlite")).unwrap();
    let mut run = read(&files[0]);
    for change in 0..3 {
        match change {
            1 => drop(run.facts.named.insert("kernel".to_owned(), "7.0".to_owned())),
            2 => run.plan.cells[0].workload.connections += 1,
            _ => {}
        }
        let file = dir.path().join(format!("{change}.json"));
        fs::write(&file, run.to_json()).unwrap();
        assert_eq!(history.add(&file, &run).unwrap(), Added::New(change + 1));
    }
    let filter = Filter { metric: Some(Metric::Memory), ..Filter::default() };
    let series = history.series(&filter).unwrap();
    assert_eq!(series.iter().filter(|one| one.contender == "nginx").count(), 3);
}

#[test]
fn a_change_of_level_over_runs_is_found_in_the_database() {
    let dir = tempfile::tempdir().unwrap();
    let mut history = History::open_or_make(&dir.path().join("h.sqlite")).unwrap();
    for seed in 0..30 {
        let factor = if seed < 14 { 1.0 } else { 0.9 };
        let run = run_of(&["nginx", "joust"], 8, seed, &[1.0, factor]);
        let file = dir.path().join(format!("{seed}.json"));
        fs::write(&file, run.to_json()).unwrap();
        history.add(&file, &run).unwrap();
    }
    let filter = Filter { metric: Some(Metric::Throughput), ..Filter::default() };
    let series = history.series(&filter).unwrap();
    let changes = |name: &str| {
        let one = series.iter().find(|one| one.contender == name).unwrap();
        one.changes.iter().map(|change| change.run).collect::<Vec<_>>()
    };
    assert_eq!((changes("nginx"), changes("joust")), (vec![], vec![15]));
}

#[test]
fn results_and_history_move_together_and_a_moved_file_is_named() {
    let (dir, files) = folder(&[1, 2]);
    let (before, after) = (dir.path().join("before"), dir.path().join("after"));
    fs::create_dir(&before).unwrap();
    let inside = before.join("inside.json");
    fs::rename(&files[0], &inside).unwrap();
    let mut history = History::open_or_make(&before.join("h.sqlite")).unwrap();
    history.add(&inside, &read(&inside)).unwrap();
    history.add(&files[1], &read(&files[1])).unwrap();
    drop(history);
    fs::rename(&before, &after).unwrap();
    let mut history = History::open(&after.join("h.sqlite")).unwrap();
    let place = after.canonicalize().unwrap().join("inside.json");
    assert_eq!(history.file_of(1).unwrap(), place);
    let moved = dir.path().join("moved.json");
    fs::rename(&files[1], &moved).unwrap();
    let said = history.file_of(2).unwrap_err().to_string();
    assert!(said.contains("run-2/run.json") && said.contains("joust history add"), "{said}");
    assert!(!history.runs(&Filter::default()).unwrap()[1].is_there);
    let added = history.add(&moved, &read(&moved)).unwrap();
    assert!(matches!(added, Added::Moved { id: 2, .. }), "{added:?}");
    assert_eq!(history.file_of(2).unwrap(), moved.canonicalize().unwrap());
    assert!(matches!(history.file_of(3), Err(HistoryError::NoRun { id: 3, .. })));
}

#[test]
fn a_run_file_that_was_written_anew_takes_the_place_of_what_it_held() {
    let (dir, files) = folder(&[1, 2]);
    let mut history = History::open_or_make(&dir.path().join("h.sqlite")).unwrap();
    files.iter().for_each(|file| drop(history.add(file, &read(file)).unwrap()));
    let longer = run(&["nginx", "joust"], 20, 1);
    fs::write(&files[0], longer.to_json()).unwrap();
    assert_eq!(history.add(&files[0], &longer).unwrap(), Added::Replaced(1));
    let runs = history.runs(&Filter::default()).unwrap();
    assert_eq!(runs.iter().map(|run| (run.id, run.blocks)).collect::<Vec<_>>(), [(1, 20), (2, 8)]);
    let figures: i64 =
        history.connection.query_row("SELECT count(*) FROM figure", [], |row| row.get(0)).unwrap();
    assert_eq!(figures, 2 * 2 * 3, "nothing is left of what it held");
}

#[test]
fn runs_sort_by_their_instant_and_not_by_the_text_of_local_time() {
    let (dir, _) = folder(&[]);
    let mut history = History::open_or_make(&dir.path().join("h.sqlite")).unwrap();
    for (place, started) in
        ["2026-10-25T02:10:00+01:00", "2026-10-25T02:50:00+02:00"].iter().enumerate()
    {
        let mut run = run(&["nginx"], 3, 1);
        run.started = (*started).to_owned();
        let file = dir.path().join(format!("{place}.json"));
        fs::write(&file, run.to_json()).unwrap();
        history.add(&file, &run).unwrap();
    }
    let runs = history.runs(&Filter::default()).unwrap();
    assert_eq!(runs.iter().map(|run| run.id).collect::<Vec<_>>(), [2, 1]);
}

#[test]
fn a_history_that_is_not_there_is_not_made_by_looking() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("h.sqlite");
    assert!(matches!(History::open(&path), Err(HistoryError::Absent { .. })));
    assert!(!path.exists());
}

#[test]
fn damage_is_named_with_the_way_out() {
    let (dir, files) = folder(&[1, 2, 3]);
    let path = dir.path().join("h.sqlite");
    let mut history = History::open_or_make(&path).unwrap();
    files.iter().for_each(|file| drop(history.add(file, &read(file)).unwrap()));
    drop(history);
    let whole = fs::read(&path).unwrap();
    let overwritten = || {
        let mut file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.seek(std::io::SeekFrom::Start(4096)).unwrap();
        file.write_all(&[0xa5; 8192]).unwrap();
    };
    let truncated = || fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let no_database =
        || fs::write(&path, "not a database, but long enough to be one".repeat(20)).unwrap();
    for damage in [&overwritten as &dyn Fn(), &truncated, &no_database] {
        fs::write(&path, &whole).unwrap();
        damage();
        let error = History::open(&path).unwrap_err();
        assert!(matches!(error, HistoryError::Damaged { .. }), "{error:?}");
        let said = error.to_string();
        assert!(said.contains("h.sqlite") && said.contains("joust history add"), "{said}");
    }
}

#[test]
fn one_of_a_newer_joust_is_refused_by_its_schema_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("h.sqlite");
    let history = History::open_or_make(&path).unwrap();
    history.connection.pragma_update(None, "user_version", 99).unwrap();
    drop(history);
    let before = fs::read(&path).unwrap();
    let error = History::open_or_make(&path).unwrap_err();
    assert!(matches!(error, HistoryError::Newer { found: 99, .. }), "{error:?}");
    assert!(error.to_string().contains("99"));
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn many_add_at_once_and_nothing_is_lost_or_twice() {
    let seeds: Vec<u64> = (0..24).collect();
    let (dir, files) = folder(&seeds);
    let path = dir.path().join("h.sqlite");
    // Each file is added twice, from two of four threads. Each thread has its own connection, and one of them creates
    // the database.
    std::thread::scope(|scope| {
        for half in [0, 1, 0, 1] {
            let (path, files) = (&path, &files);
            scope.spawn(move || {
                let mut history = History::open_or_make(path).unwrap();
                for file in files.iter().skip(half).step_by(2) {
                    history.add(file, &read(file)).unwrap();
                }
            });
        }
    });
    let history = History::open(&path).unwrap();
    assert_eq!(history.runs(&Filter::default()).unwrap().len(), files.len());
}
