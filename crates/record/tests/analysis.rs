//! Results besides the verdicts survive a file, match the plan, and stay with their cell.

use joust_record::{
    Analysis, Attributed, AttributedPart, Attribution, Band, Cause, CauseShare, Cell, Coefficient,
    Contender, ContenderFacts, CpuLayout, Ending, Estimate, Explanation, Facts, Metric, Modes,
    NoiseFloor, NoiseSource, OutlyingVisit, Plan, RankedContender, Ranking, RunRecord, Scalability,
    Shift, ShiftPoint, StallMode, Workload,
};
use units::{Nanos, Share};

const BAND: Band = Band { low: 0.9, high: 1.1 };

fn ranking(cell: usize, contenders: &[usize]) -> Ranking {
    let place = |&contender: &usize| RankedContender {
        contender,
        to_first: 1.0,
        letters: "a".to_owned(),
        best: Share(0.5),
    };
    let places = contenders.iter().map(place).collect();
    let metric = Metric::Throughput;
    Ranking { cell, metric, blocks: 8, places, overlapping: false, unranked: Vec::new() }
}

fn attribution(cell: usize, a: usize, b: usize) -> Attribution {
    let part = AttributedPart {
        cause: Cause::ServiceTime,
        a_ms: 1.0,
        b_ms: 2.0,
        ln: 0.7,
        share: 1.0,
        interval: Some(BAND),
    };
    let of = Attributed::Throughput;
    Attribution { cell, a, b, blocks: 8, of, ln: 0.7, parts: vec![part] }
}

fn explanation(cell: usize, a: usize, b: usize) -> Explanation {
    let stall = StallMode { from: Nanos(1), share: Share(0.1), mean_ms: 40.0 };
    let of = Modes { mean_ms: 5.0, main_ms: 1.0, stalls: vec![stall] };
    let part = CauseShare { difference_ms: 1.0, ln: 0.1, interval: Some(BAND) };
    Explanation {
        cell,
        a,
        b,
        blocks: 8,
        of_a: of.clone(),
        of_b: of,
        service: part,
        stalls: part,
        stall_share: Some(0.5),
    }
}

/// Three contenders; the second cell has only the last two.
fn run() -> RunRecord {
    let contender = |name: &str, cells: &[usize]| Contender {
        name: name.to_owned(),
        server: "joust".to_owned(),
        cells: cells.to_vec(),
        ..Contender::default()
    };
    let estimate = Estimate { ratio: 1.0, low: 0.9, high: 1.1, blocks: 8, sd_ln: 0.1, p_holm: 1.0 };
    let floor = |cell, source| NoiseFloor {
        cell,
        metric: Metric::Throughput,
        source,
        blocks: 8,
        sd_ln: 0.1,
        smallest: Share(0.1),
    };
    let outlier = |cell, contender| OutlyingVisit {
        cell,
        metric: Metric::Throughput,
        contender,
        block: 3,
        value: 100.0,
        usual: 5000.0,
        off: 0.02,
    };
    let point = ShiftPoint { q: 0.5, a_ms: 1.0, b_ms: 1.0, difference_ms: BAND, ratio: BAND };
    let coefficient = Coefficient { value: 0.1, interval: None };
    RunRecord {
        format: RunRecord::FORMAT.to_owned(),
        joust: String::new(),
        started: String::new(),
        seconds: 1.0,
        ending: Ending::Blocks,
        plan: Plan {
            contenders: vec![contender("a", &[0]), contender("b", &[]), contender("c", &[])],
            cells: vec![Cell::only(Workload::default()); 2],
            ..Plan::default()
        },
        facts: Facts::default(),
        layout: CpuLayout::default(),
        contenders: vec![ContenderFacts::default(); 3],
        skipped: Vec::new(),
        visits: Vec::new(),
        findings: Vec::new(),
        verdicts: Vec::new(),
        analysis: Analysis {
            rankings: vec![ranking(0, &[2, 0, 1]), ranking(1, &[2, 1])],
            shifts: vec![Shift { cell: 1, a: 1, b: 2, blocks: 8, points: vec![point] }],
            explanations: vec![explanation(0, 0, 1), explanation(1, 1, 2)],
            attributions: vec![attribution(0, 0, 1), attribution(1, 1, 2)],
            scalability: vec![Scalability {
                contender: 2,
                cells: vec![0, 1],
                connections: vec![1, 10],
                lambda: coefficient,
                sigma: coefficient,
                kappa: coefficient,
                peak: None,
                misfit_ln: 0.1,
            }],
            noise_floors: vec![
                floor(0, NoiseSource::Visits),
                floor(1, NoiseSource::Copies { a: 1, b: 2, estimate }),
            ],
            outliers: vec![outlier(0, 0), outlier(1, 2)],
        },
        integrity: joust_record::Integrity::default(),
    }
}

#[test]
fn it_comes_back_from_a_file() {
    let run = run();
    assert_eq!(RunRecord::from_json(&run.to_json()).unwrap(), run);
}

#[test]
fn a_contender_or_cell_that_is_not_there_is_refused() {
    type Change = fn(&mut Analysis);
    let cases: [Change; 12] = [
        |said| said.outliers[0].cell = 2,
        |said| said.outliers[1].contender = 3,
        |said| said.rankings[0].places[1].contender = 3,
        |said| said.rankings[0].unranked.push(3),
        |said| said.rankings[1].cell = 2,
        |said| said.shifts[0].b = 3,
        |said| said.explanations[1].cell = 2,
        |said| said.attributions[1].cell = 2,
        |said| said.attributions[0].a = 3,
        |said| said.scalability[0].cells.push(2),
        |said| said.scalability[0].contender = 3,
        |said| {
            said.noise_floors[1].source = NoiseSource::Copies {
                a: 3,
                b: 2,
                estimate: Estimate {
                    ratio: 1.0,
                    low: 1.0,
                    high: 1.0,
                    blocks: 3,
                    sd_ln: 0.0,
                    p_holm: 1.0,
                },
            }
        },
    ];
    for (n, change) in cases.into_iter().enumerate() {
        let mut edited = run();
        change(&mut edited.analysis);
        let error = RunRecord::from_json(&edited.to_json()).unwrap_err().to_string();
        assert!(error.starts_with("the analysis"), "case {n}: {error}");
    }
}

#[test]
fn a_cell_alone_has_what_was_said_of_it_with_its_own_indices() {
    let alone = run().at(1).analysis;
    assert_eq!(alone.rankings, [ranking(0, &[1, 0])]);
    assert_eq!((alone.shifts[0].cell, alone.shifts[0].a, alone.shifts[0].b), (0, 0, 1));
    assert_eq!(alone.explanations, [explanation(0, 0, 1)]);
    assert_eq!(alone.attributions, [attribution(0, 0, 1)]);
    assert!(alone.scalability.is_empty(), "growth is over several cells");
    assert!(matches!(alone.noise_floors[0].source, NoiseSource::Copies { a: 0, b: 1, .. }));
    assert_eq!((alone.noise_floors.len(), alone.noise_floors[0].cell), (1, 0));
}

#[test]
fn the_top_group_is_all_who_share_a_letter_with_the_first() {
    let mut ranking = ranking(0, &[2, 0, 1]);
    for (place, letters) in ranking.places.iter_mut().zip(["ab", "b", "c"]) {
        place.letters = letters.to_owned();
    }
    assert_eq!(ranking.top(), [2, 0]);
}
