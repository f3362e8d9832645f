//! What is said of a cell beside its verdicts, from visits of which it is known.

mod simulate;

use joust_lab::analysis::{CellVisits, analyse, noise_floor, ranking, scalability, tails};
use joust_lab::session::{PlannedVisit, Stage};
use joust_lab::verdict::verdicts;
use record::{
    Cell, Certainty, Finding, Interval, LoadPlan, LoadRecord, Metric, NoiseSource, PairVerdict,
    Plan, Severity, Verdict, Visit, Workload,
};
use simulate::{Noise, Simulated, measured, plan};
use units::Nanos;

/// Visits of contenders with those rates, with the noise of real visits.
fn simulated(rates: &[f64], blocks: u32, seed: u64) -> Vec<Visit> {
    let noise = Noise::recorded();
    let mut stage = Simulated::new(&noise, seed, rates);
    (0..blocks)
        .flat_map(|block| (0..rates.len()).map(move |contender| (block, contender)))
        .map(|(block, contender)| {
            let planned =
                PlannedVisit { cell: 0, contender, block, position: contender as u32, attempt: 0 };
            stage.visit(planned).unwrap().unwrap()
        })
        .collect()
}

fn of<'a>(visits: &'a [Visit], contenders: usize) -> CellVisits<'a> {
    let pairs = (0..contenders).flat_map(|a| (a + 1..contenders).map(move |b| (a, b))).collect();
    let contenders = (0..contenders).collect();
    CellVisits { cell: 0, contenders, pairs, visits: visits.iter().collect(), seed: 1 }
}

/// Visits of which block and contender alone decide the rate.
fn exact(blocks: u32, rate: impl Fn(u32, usize) -> f64, contenders: usize) -> Vec<Visit> {
    (0..blocks)
        .flat_map(|block| (0..contenders).map(move |contender| (block, contender)))
        .map(|(block, contender)| {
            let planned =
                PlannedVisit { cell: 0, contender, block, position: contender as u32, attempt: 0 };
            measured(planned, rate(block, contender))
        })
        .collect()
}

/// Four steps about 1 by block, another order for each contender.
fn wobble(block: u32, contender: usize) -> f64 {
    const STEPS: [f64; 8] = [0.9, -0.7, 0.4, -0.6, 0.1, 0.7, -0.9, 0.1];
    (0.02 * STEPS[(block as usize * (1 + 2 * contender)) % 8]).exp()
}

#[test]
fn contenders_that_are_not_told_apart_share_a_letter() {
    let plan = plan(&["slow", "fast", "middle"]);
    // 5 % between neighbours is not seen with this noise; 10 % is.
    let rates = [10_000.0, 11_000.0, 10_480.0];
    let visits = exact(16, |block, n| rates[n] * wobble(block, n), 3);
    let mut pairs = verdicts(&plan, &visits, &[]);
    for pair in pairs.iter_mut().filter(|pair| pair.a == 2 || pair.b == 2) {
        pair.verdict = Verdict::Undecided { more_blocks: Some(5), margin: plan.margin };
    }
    let ranking = rank(&visits, &pairs, 3).unwrap();
    let letters: Vec<(usize, &str)> = ranking
        .places
        .iter()
        .map(|planned| (planned.contender, planned.letters.as_str()))
        .collect();
    assert_eq!(letters, [(1, "a"), (2, "ab"), (0, "b")]);
    assert!(ranking.overlapping && ranking.unranked.is_empty());
    assert_eq!((ranking.top(), ranking.blocks), (vec![1, 2], 16));
    assert!((ranking.places[2].to_first / (10.0 / 11.0) - 1.0).abs() < 0.02, "{ranking:?}");
    let shares: f64 = ranking.places.iter().map(|planned| planned.best.0).sum();
    assert!((shares - 1.0).abs() < 1e-9 && ranking.places[0].best.0 > 0.9, "{ranking:?}");
}

fn rank(visits: &[Visit], pairs: &[PairVerdict], n: usize) -> Option<record::Ranking> {
    ranking(&of(visits, n), &pairs.iter().collect::<Vec<_>>(), Metric::Throughput)
}

#[test]
fn who_is_withheld_has_no_place_and_the_others_keep_theirs() {
    let plan = plan(&["a", "b", "c"]);
    let visits = exact(10, |block, n| 10_000.0 * (1.0 + n as f64) * wobble(block, n), 3);
    let mut pairs = verdicts(&plan, &visits, &[]);
    let withheld = |pairs: &mut Vec<PairVerdict>, who: usize| {
        for pair in pairs.iter_mut().filter(|pair| pair.a == who || pair.b == who) {
            pair.verdict = Verdict::Withheld { reason: "planted".into() };
        }
    };
    withheld(&mut pairs, 1);
    let ranking = rank(&visits, &pairs, 3).unwrap();
    assert_eq!(ranking.unranked, [1]);
    assert_eq!(ranking.places.iter().map(|planned| planned.contender).collect::<Vec<_>>(), [2, 0]);
    assert!(!ranking.overlapping);
    withheld(&mut pairs, 0);
    assert_eq!(rank(&visits, &pairs, 3), None, "one alone is not ranked");
}

/// A visit whose service times are `main`, and `stalls` of 1000 requests 40 ms later.
fn timed(block: u32, contender: usize, main: Nanos, stalls: u64) -> Visit {
    let mut visit =
        measured(PlannedVisit { cell: 0, contender, block, position: 0, attempt: 0 }, 1000.0);
    let mut interval = Interval::new(Nanos::ZERO, Nanos::from_millis(100));
    for n in 0..1000u64 {
        let late = if n < stalls { Nanos::from_millis(40) } else { Nanos::ZERO };
        // A body 20 % wide, that a block moves by up to 7 %.
        let body = main.0 + main.0 * (n % 200) / 1000 + main.0 * u64::from(block % 8) / 100;
        interval.service.record(Nanos(body) + late);
    }
    let mut load = LoadRecord::empty(LoadPlan::get(([127, 0, 0, 1], 80).into(), "/"));
    load.intervals.push(interval);
    visit.load = Some(load);
    visit
}

#[test]
fn a_difference_by_stalls_alone_is_shown_in_the_tail_and_explained_by_them() {
    let main = Nanos::from_micros(500);
    let both = |block| [timed(block, 0, main, 30 + u64::from(block % 3)), timed(block, 1, main, 0)];
    let visits: Vec<Visit> = (0..10).flat_map(both).collect();
    let found = tails(&of(&visits, 2));
    let (shift, explained) = (&found.shifts[0], &found.explanations[0]);
    assert_eq!((shift.a, shift.b, shift.blocks, shift.points.len()), (0, 1, 10, 11));
    let median = shift.points.iter().find(|point| point.q == 0.5).unwrap();
    assert!(median.ratio.low < 1.02 && (median.a_ms - 0.57).abs() < 0.05, "{median:?}");
    let p99 = shift.points.iter().find(|point| point.q == 0.99).unwrap();
    assert!(p99.difference_ms.low > 30.0 && p99.ratio.low > 20.0, "{p99:?}");
    assert!((explained.stall_share.unwrap() - 1.0).abs() < 0.05, "{explained:?}");
    assert!((explained.of_a.stalls[0].share.0 - 0.031).abs() < 0.001, "{explained:?}");
    // 3.1 % of 40 ms.
    assert!((explained.stalls.difference_ms - 1.24).abs() < 0.05, "{explained:?}");
    assert!(explained.stalls.interval.is_some() && explained.of_b.stalls.is_empty());
}

#[test]
fn a_difference_by_service_time_is_no_stall() {
    let both = |block| {
        let main = |us| Nanos::from_micros(us);
        [timed(block, 0, main(700), 10), timed(block, 1, main(500), 10)]
    };
    let visits: Vec<Visit> = (0..10).flat_map(both).collect();
    let found = tails(&of(&visits, 2));
    let explained = &found.explanations[0];
    let share = explained.stall_share.unwrap();
    assert!(share.abs() < 0.05, "{explained:?}");
    assert!(tails(&of(&visits[..8], 2)).shifts.is_empty(), "four blocks have no band");
}

#[test]
fn the_noise_floor_of_visits_is_that_of_the_noise_and_shrinks_with_blocks() {
    let mut planned: Plan = plan(&["a", "b", "c"]);
    for (n, contender) in planned.contenders.iter_mut().enumerate() {
        contender.server = format!("server {n}");
    }
    let floor = |blocks| {
        let visits = simulated(&[10e3, 20e3, 15e3], blocks, 5);
        noise_floor(&of(&visits, 3), &planned.contenders, Metric::Throughput)
    };
    let many = floor(200).unwrap();
    assert_eq!((&many.source, many.blocks), (&NoiseSource::Visits, 200));
    let truth = Noise::recorded().sd() * 2f64.sqrt();
    assert!((many.sd_ln / truth - 1.0).abs() < 0.15, "{many:?} {truth}");
    let needed = stats::blocks_needed(many.sd_ln, many.smallest.0, 0.02);
    assert!(needed.abs_diff(200) <= 1, "the floor is what these blocks find: {needed}");
    assert!(floor(12).unwrap().smallest.0 > 2.0 * many.smallest.0, "fewer blocks show less");
    assert_eq!(floor(2), None, "two blocks have no spread");
}

#[test]
fn copies_are_found_by_their_settings_and_their_ratio_is_shown() {
    let planned = plan(&["a", "a again"]);
    let visits = simulated(&[10e3, 10e3], 16, 8);
    let floor = noise_floor(&of(&visits, 2), &planned.contenders, Metric::Throughput).unwrap();
    let NoiseSource::Copies { a: 0, b: 1, estimate } = floor.source else { panic!("{floor:?}") };
    assert!(estimate.low < 1.0 && 1.0 < estimate.high, "{estimate:?}");
    assert_eq!((estimate.sd_ln, estimate.blocks), (floor.sd_ln, 16));
}

#[test]
fn cells_that_differ_in_connections_alone_give_the_law_and_two_of_them_none() {
    let rate = |n: f64| 5000.0 * n / (1.0 + 0.1 * (n - 1.0) + 0.001 * n * (n - 1.0));
    let mut plan = plan(&["a", "b"]);
    let cell = |connections, keep_alive| {
        let workload = Workload { connections, keep_alive, ..Workload::default() };
        Cell { name: format!("{connections} {keep_alive}"), workload }
    };
    // Three levels with keep-alive, in no order; two without.
    plan.cells =
        vec![cell(64, true), cell(1, true), cell(8, false), cell(8, true), cell(64, false)];
    let mut visits = Vec::new();
    for (cell, block, contender) in (0..5)
        .flat_map(|cell| (0..10).map(move |block| (cell, block)))
        .flat_map(|(cell, block)| [(cell, block, 0), (cell, block, 1)])
    {
        let connections = plan.cells[cell].workload.connections;
        let noisy = rate(f64::from(connections)) * wobble(block, contender + connections as usize);
        visits.push(measured(
            PlannedVisit { cell, contender, block, position: 0, attempt: 0 },
            noisy,
        ));
    }
    let said = analyse(&plan, &visits, &[], &verdicts(&plan, &visits, &[]));
    assert_eq!(said.scalability.len(), 2, "one a contender, with keep-alive: {said:?}");
    let law = &said.scalability[1];
    assert_eq!(
        (law.contender, &law.cells[..], &law.connections[..]),
        (1, &[1, 3, 0][..], &[1, 8, 64][..])
    );
    assert!((law.sigma.value - 0.1).abs() < 0.02, "{law:?}");
    // sqrt(0.9 / 0.001).
    assert!((law.peak.unwrap() - 30.0).abs() < 3.0 && law.kappa.interval.is_some(), "{law:?}");
    let two = scalability(&plan, 0, &[2, 4], &visits);
    assert_eq!(two, Err(stats::ScalabilityError::TooFewLevels { levels: 2 }));
    // Every cell has its ranking and its floor for each of the three metrics.
    let cells =
        |of: Vec<usize>| (0..5).all(|cell| of.iter().filter(|one| **one == cell).count() == 3);
    assert!(cells(said.rankings.iter().map(|one| one.cell).collect()), "{:?}", said.rankings);
    assert!(cells(said.noise_floors.iter().map(|one| one.cell).collect()));
}

#[test]
fn a_cell_whose_figures_are_void_is_no_level_of_the_law() {
    let mut plan = plan(&["a", "b"]);
    let cell = |connections: &u32| Cell {
        name: connections.to_string(),
        workload: Workload { connections: *connections, ..Workload::default() },
    };
    plan.cells = [1, 8, 64, 512].iter().map(cell).collect();
    let mut visits = Vec::new();
    for (cell, block) in (0..4).flat_map(|cell| (0..10).map(move |block| (cell, block))) {
        for contender in [0, 1] {
            let rate = 1e4 * wobble(block, contender + cell);
            visits.push(measured(
                PlannedVisit { cell, contender, block, position: 0, attempt: 0 },
                rate,
            ));
        }
    }
    let void = |cell, contender| Finding {
        check: "visits_too_short".to_owned(),
        severity: Severity::Void,
        certainty: Certainty::Confirmed,
        cell,
        contenders: vec![contender],
        alike: false,
        among: false,
        evidence: String::new(),
        meaning: String::new(),
        remedy: String::new(),
        ..Finding::default()
    };
    let levels = |findings: &[Finding]| -> Vec<(usize, Vec<u32>)> {
        let said = analyse(&plan, &visits, findings, &[]).scalability;
        said.into_iter().map(|law| (law.contender, law.connections)).collect()
    };
    let all = vec![1, 8, 64, 512];
    assert_eq!(levels(&[]), [(0, all.clone()), (1, all.clone())]);
    assert_eq!(levels(&[void(Some(3), 1)]), [(0, all.clone()), (1, vec![1, 8, 64])]);
    assert_eq!(levels(&[void(None, 1)]), [(0, all.clone())]);
    let suspected = Finding { certainty: Certainty::Suspected, ..void(None, 1) };
    assert_eq!(levels(&[suspected]), [(0, all.clone()), (1, all)]);
}

/// Eleven blocks of three contenders, 33 visits; in one of them the machine did something else.
fn with_a_wild_visit(rates: [f64; 3], wild: Option<f64>) -> Vec<Visit> {
    let rate = |block, n: usize| {
        let times = if (block, n) == (6, 1) { wild.unwrap_or(1.0) } else { 1.0 };
        rates[n] * times * wobble(block, n)
    };
    exact(11, rate, 3)
}

/// A p50 of 118 ms beside 2.3 ms, as a rate: 51 times slower, which moves a mean ratio to 1.43x.
const WILD: f64 = 2.3 / 118.0;

#[test]
fn one_wild_visit_of_33_moves_no_ratio_and_hides_no_planted_5_percent() {
    let plan = plan(&["a", "b", "c"]);
    for (rates, is_planted) in [([10e3; 3], false), ([10e3, 10_500.0, 10e3], true)] {
        let of = |wild| {
            let visits = with_a_wild_visit(rates, wild);
            let all = verdicts(&plan, &visits, &[]);
            let pair = all.iter().find(|pair| (pair.a, pair.b) == (0, 1)).unwrap().clone();
            let ranking = rank(&visits, &all, 3).unwrap();
            (pair.estimate.unwrap(), pair.verdict, ranking)
        };
        let (clean, _, as_clean) = of(None);
        for wild in [WILD, 1.0 / WILD] {
            let (estimate, verdict, ranking) = of(Some(wild));
            assert!((estimate.ratio / clean.ratio - 1.0).abs() < 0.01, "{estimate:?} {clean:?}");
            let is_told =
                matches!(verdict, Verdict::Ratio { low, high, .. } if high < 1.0 && low > 0.9);
            assert_eq!(is_told, is_planted, "{wild}: {verdict:?}");
            let level = |ranking: &record::Ranking| {
                let of_b = ranking.places.iter().find(|planned| planned.contender == 1).unwrap();
                (of_b.to_first, of_b.best.0)
            };
            let ((seen, best), (clean, best_clean)) = (level(&ranking), level(&as_clean));
            assert!((seen / clean - 1.0).abs() < 0.01, "ranked at {seen}, clean at {clean}");
            assert!((best - best_clean).abs() < 0.3, "best in {best}, clean in {best_clean}");
        }
    }
}

#[test]
fn an_outlying_visit_is_named_with_its_contender_its_block_and_what_was_usual() {
    let (three, two) = (plan(&["a", "b", "c"]), plan(&["a", "b"]));
    let found = |visits: &[Visit], plan: &Plan| {
        let said = analyse(plan, visits, &[], &verdicts(plan, visits, &[])).outliers;
        said.into_iter().filter(|one| one.metric == Metric::Throughput).collect::<Vec<_>>()
    };
    let seen = found(&with_a_wild_visit([10e3, 20e3, 10e3], Some(WILD)), &three);
    assert_eq!(seen.len(), 1, "{seen:?}");
    assert_eq!((seen[0].cell, seen[0].contender, seen[0].block), (0, 1, 6));
    assert!((seen[0].usual / 20e3 - 1.0).abs() < 0.02 && seen[0].value < 500.0, "{seen:?}");
    assert!((seen[0].off / WILD - 1.0).abs() < 0.05, "{seen:?}");
    assert_eq!(found(&with_a_wild_visit([10e3, 20e3, 10e3], None), &three), []);
    // A block in which the whole machine is slow has no odd visit; of two contenders the odd one is that
    // which is far from its own others.
    let slow =
        |block, n| if block == 3 || (block, n) == (7, 0) { 1e3 } else { 1e4 * wobble(block, n) };
    let seen = found(&exact(12, slow, 2), &two);
    assert_eq!(seen.iter().map(|one| (one.contender, one.block)).collect::<Vec<_>>(), [(0, 7)]);
}

#[test]
fn one_wild_visit_is_not_taken_for_the_noise_of_the_machine() {
    let mut planned: Plan = plan(&["a", "b", "c"]);
    for (n, contender) in planned.contenders.iter_mut().enumerate() {
        contender.server = format!("server {n}");
    }
    let floor = |wild| {
        let visits = with_a_wild_visit([10e3; 3], wild);
        noise_floor(&of(&visits, 3), &planned.contenders, Metric::Throughput).unwrap().sd_ln
    };
    assert!(
        (floor(Some(WILD)) / floor(None) - 1.0).abs() < 0.2,
        "{} {}",
        floor(Some(WILD)),
        floor(None)
    );
}
