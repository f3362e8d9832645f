//! Each of the six wordings, from visits that must lead to it.

mod simulate;

use joust_lab::session::PlannedVisit;
use joust_lab::verdict::{narrow_enough, verdicts};
use record::{
    BoundCause, Certainty, Finding, MemoryMethod, Metric, PairVerdict, Plan, Severity, ShortOf,
    Verdict, Visit, VisitState,
};
use simulate::{measured, plan};

/// Ten steps about 1 whose logarithms have mean 0, so that ratios come out exactly; the spread is
/// the factor's.
fn wobble(block: u32, spread: f64) -> f64 {
    const STEPS: [f64; 10] = [0.1, -0.7, 0.5, -0.2, 0.9, -0.9, 0.2, -0.5, 0.7, -0.1];
    (STEPS[block as usize % 10] * spread).exp()
}

/// One visit a block of each, rates as given; the first wobbles.
fn visits(rates: &[f64], blocks: u32, spread: f64) -> Vec<Visit> {
    let planned = |block, contender| PlannedVisit {
        cell: 0,
        contender,
        block,
        position: contender as u32,
        attempt: 0,
    };
    (0..blocks)
        .flat_map(|block| (0..rates.len()).map(move |contender| (block, contender)))
        .map(|(block, contender)| {
            let noise = if contender == 0 { wobble(block, spread) } else { 1.0 };
            measured(planned(block, contender), rates[contender] * noise)
        })
        .collect()
}

fn finding(severity: Severity, certainty: Certainty, contenders: &[usize]) -> Finding {
    Finding {
        check: "planted".into(),
        severity,
        certainty,
        cell: None,
        contenders: contenders.to_vec(),
        alike: false,
        among: false,
        evidence: "17 of 20 replies were errors".into(),
        meaning: String::new(),
        remedy: String::new(),
        ..Finding::default()
    }
}

fn of(all: &[PairVerdict], metric: Metric) -> Vec<&PairVerdict> {
    all.iter().filter(|pair| pair.metric == metric).collect()
}

fn throughput(plan: &Plan, visits: &[Visit], findings: &[Finding]) -> PairVerdict {
    of(&verdicts(plan, visits, findings), Metric::Throughput)[0].clone()
}

fn withheld(verdict: &Verdict) -> &str {
    match verdict {
        Verdict::Withheld { reason } => reason,
        other => panic!("not withheld: {other:?}"),
    }
}

fn fail(visit: &mut Visit) {
    visit.state = VisitState::Failed { reason: "it died of signal 11".into(), log_tail: "".into() };
}

#[test]
fn a_difference_is_a_ratio_with_its_interval() {
    let pair = throughput(&plan(&["a", "b"]), &visits(&[13e3, 10e3], 10, 0.02), &[]);
    let Verdict::Ratio { ratio, low, high } = pair.verdict else { panic!("{:?}", pair.verdict) };
    assert!((ratio - 1.3).abs() < 1e-9, "{ratio}");
    // R: d <- 0.02 * c(.1,-.7,.5,-.2,.9,-.9,.2,-.5,.7,-.1); exp(qt(.975,9)*sd(d)/sqrt(10)) = 1.00834
    assert!((1.3 / 1.02..=1.3 / 1.00833).contains(&low), "{low}");
    assert!((1.3 * 1.00833..1.3 * 1.02).contains(&high), "{high}");
    assert_eq!((pair.a, pair.b, pair.estimate.unwrap().blocks), (0, 1, 10));
}

#[test]
fn equal_servers_are_called_equal_to_the_margin() {
    let plan = plan(&["a", "b"]);
    let pair = throughput(&plan, &visits(&[10_010.0, 10e3], 10, 0.01), &[]);
    assert_eq!(pair.verdict, Verdict::NoDifference { margin: plan.margin });
}

#[test]
fn noise_is_undecided_and_says_how_many_blocks_it_would_take() {
    let pair = throughput(&plan(&["a", "b"]), &visits(&[10_100.0, 10e3], 10, 0.08), &[]);
    let Verdict::Undecided { more_blocks, .. } = pair.verdict else { panic!("{:?}", pair.verdict) };
    // By the normal law with sd 0.0477: to tell 1 % apart at a level of 2 % takes 231 blocks, to show that it
    // lies within 2 % takes 145, ((1.645 + 0.842) * 0.0477 / ln(1.02 / 1.01))^2; 10 of them are there.
    // A robust centre needs up to a sixth more: these steps are flatter than normal noise.
    assert!(more_blocks.is_some_and(|more| (134..=160).contains(&more)), "{more_blocks:?}");
}

/// As seen: 0.102x [0.081, 0.129] in seven blocks of eight was "undecided: about 1 more block to see 2 %".
#[test]
fn what_is_sure_is_said_and_the_blocks_that_are_short_stand_beside_it() {
    let plan = plan(&["a", "b"]);
    let pair = throughput(&plan, &visits(&[1_020.0, 10e3], 7, 0.38), &[]);
    let Verdict::Ratio { ratio, low, high } = pair.verdict else { panic!("{:?}", pair.verdict) };
    assert!((0.09..0.12).contains(&ratio) && low > 0.06 && high < 0.16, "{:?}", pair.verdict);
    assert_eq!(pair.short_of, Some(ShortOf { blocks: 7, of: 8 }));
    let enough = throughput(&plan, &visits(&[1_020.0, 10e3], 8, 0.38), &[]);
    assert_eq!(enough.short_of, None);
    let few = throughput(&plan, &visits(&[1_020.0, 10e3], 2, 0.38), &[]);
    let about = Verdict::Undecided { more_blocks: Some(6), margin: plan.margin };
    assert_eq!((few.verdict, few.estimate), (about, None), "two blocks have no spread");
}

/// As seen: 216x [54, 865] was "undecided: more than 999 more blocks to see 2 %".
#[test]
fn a_sure_difference_of_open_size_says_its_near_end() {
    let plan = plan(&["a", "b"]);
    let cause = BoundCause::WideInterval;
    for blocks in [6, 8] {
        let pair = throughput(&plan, &visits(&[216e3, 1e3], blocks, 2.2), &[]);
        let near = pair.estimate.unwrap().low;
        assert_eq!(pair.verdict, Verdict::AtLeast { ratio: near, cause });
        assert!(near > 10.0 && pair.estimate.unwrap().high / near > 2.0, "{pair:?}");
        let pair = throughput(&plan, &visits(&[1e3, 216e3], blocks, 2.2), &[]);
        let near = pair.estimate.unwrap().high;
        assert_eq!(pair.verdict, Verdict::AtMost { ratio: near, cause });
    }
}

#[test]
fn blocks_that_are_needed_are_for_the_difference_that_was_seen() {
    // A fifth, in noise of a tenth: told apart long before 2 % would be.
    let more = |rates: &[f64], blocks, spread| {
        let names = &["a", "b", "c", "d", "e", "f"][..rates.len()];
        let said = throughput(&plan(names), &visits(rates, blocks, spread), &[]).verdict;
        let Verdict::Undecided { more_blocks, .. } = said else { panic!("{said:?}") };
        more_blocks
    };
    let alone = more(&[12e3, 10e3], 4, 0.2);
    assert!(alone.is_some_and(|more| more < 12), "{alone:?}");
    let among = more(&[12e3, 10e3, 10e3, 10e3, 10e3, 10e3], 4, 0.2);
    assert!(among > alone, "held to a lower level among many: {among:?}");
    assert_eq!(more(&[10_100.0, 10e3], 10, 3.0), None, "nobody would plan for it");
}

#[test]
fn a_confirmed_void_finding_withholds_all_metrics_of_the_pairs_it_touches() {
    let plan = plan(&["a", "b", "c"]);
    let visits = visits(&[10e3, 20e3, 30e3], 10, 0.02);
    let all = verdicts(&plan, &visits, &[finding(Severity::Void, Certainty::Confirmed, &[1])]);
    for pair in &all {
        if pair.a == 1 || pair.b == 1 {
            assert_eq!(withheld(&pair.verdict), "planted on b");
        } else {
            assert!(!matches!(pair.verdict, Verdict::Withheld { .. }), "{pair:?}");
        }
    }
    assert_eq!(all.len(), 3 * 3, "three pairs on three metrics");
}

#[test]
fn suspicion_and_notes_withhold_nothing() {
    let findings = [
        finding(Severity::Void, Certainty::Suspected, &[]),
        finding(Severity::Bound, Certainty::Suspected, &[0]),
        finding(Severity::Note, Certainty::Confirmed, &[]),
    ];
    let pair = throughput(&plan(&["a", "b"]), &visits(&[13e3, 10e3], 10, 0.02), &findings);
    assert!(matches!(pair.verdict, Verdict::Ratio { .. }), "{:?}", pair.verdict);
}

/// Who is at the generator's limit, the rates, and what must be said: the ratio of the limited one over the
/// other, or words of the reason.
struct Limited {
    who: &'static [usize],
    rates: [f64; 2],
    said: Result<f64, &'static str>,
}

const LIMITED: &[Limited] = &[
    Limited { who: &[0], rates: [30e3, 20e3], said: Ok(1.5) },
    Limited { who: &[1], rates: [20e3, 30e3], said: Ok(1.5) },
    Limited { who: &[0], rates: [20e3, 30e3], said: Err("the generator was the limit for a, and") },
    Limited { who: &[1], rates: [30e3, 20e3], said: Err("the generator was the limit for b, and") },
    Limited { who: &[0, 1], rates: [30e3, 30e3], said: Err("the limit for both") },
    Limited { who: &[], rates: [30e3, 20e3], said: Err("no limit: a ratio") },
];

#[test]
fn a_ceiling_that_two_have_in_common_withholds_their_pair_alone() {
    let mut ceiling = finding(Severity::Void, Certainty::Confirmed, &[0, 1]);
    (ceiling.check, ceiling.among) = ("common_ceiling".into(), true);
    let rates = [20e3, 20e3, 10e3];
    let all = verdicts(&plan(&["a", "b", "c"]), &visits(&rates, 10, 0.02), &[ceiling]);
    let said: Vec<&Verdict> =
        of(&all, Metric::Throughput).iter().map(|pair| &pair.verdict).collect();
    let reason = "common ceiling of a and b".to_owned();
    assert_eq!(*said[0], Verdict::Withheld { reason });
    assert!(
        !said[1..].iter().any(|verdict| matches!(verdict, Verdict::Withheld { .. })),
        "{said:?}"
    );
}

#[test]
fn a_bound_names_what_was_the_limit() {
    let mut link = finding(Severity::Bound, Certainty::Confirmed, &[0, 1]);
    link.check = "link_ceiling".into();
    let pair = throughput(&plan(&["a", "b"]), &visits(&[20e3, 20e3], 10, 0.02), &[link]);
    let reason = "the network was the limit for both; compare CPU time per request".to_owned();
    assert_eq!(pair.verdict, Verdict::Withheld { reason });
}

#[test]
fn throughput_at_the_generators_limit_is_a_bound_in_the_only_direction_that_holds() {
    for case in LIMITED {
        let findings: Vec<Finding> = match case.who {
            [] => Vec::new(),
            who => vec![finding(Severity::Bound, Certainty::Confirmed, who)],
        };
        let pair = throughput(&plan(&["a", "b"]), &visits(&case.rates, 10, 0.02), &findings);
        match (&pair.verdict, case.said) {
            (&Verdict::AtLeast { ratio, cause: BoundCause::Ceiling }, Ok(least)) => {
                assert_eq!(case.who, [0]);
                assert!(ratio < least && ratio > least * 0.97, "{ratio}");
            }
            (&Verdict::AtMost { ratio, cause: BoundCause::Ceiling }, Ok(least)) => {
                assert_eq!(case.who, [1]);
                assert!(1.0 / ratio < least && 1.0 / ratio > least * 0.97, "{ratio}");
            }
            (Verdict::Withheld { reason }, Err(words)) => {
                assert!(reason.contains(words), "{reason}");
            }
            (Verdict::Ratio { .. }, Err("no limit: a ratio")) => {}
            (said, wanted) => panic!("{said:?}, but wanted {wanted:?}"),
        }
    }
}

#[test]
fn under_a_limit_latency_is_withheld_and_cpu_time_stands() {
    let mut plan = plan(&["a", "b"]);
    plan.metrics = vec![Metric::Throughput, Metric::P50, Metric::ServerCpu, Metric::Memory];
    let findings = [finding(Severity::Bound, Certainty::Confirmed, &[0])];
    let all = verdicts(&plan, &visits(&[30e3, 20e3], 10, 0.02), &findings);
    let latency = of(&all, Metric::P50)[0];
    assert!(withheld(&latency.verdict).contains("generator's own queue"), "{latency:?}");
    assert!(matches!(of(&all, Metric::ServerCpu)[0].verdict, Verdict::Ratio { .. }));
    assert!(matches!(of(&all, Metric::Memory)[0].verdict, Verdict::NoDifference { .. }));
}

#[test]
fn memory_that_was_taken_in_different_ways_is_not_compared() {
    let mut plan = plan(&["a", "b", "c"]);
    plan.metrics = vec![Metric::Throughput, Metric::Memory];
    let mut visits = visits(&[30e3, 20e3, 10e3], 10, 0.02);
    for visit in &mut visits {
        let method = match visit.contender {
            1 => MemoryMethod::Resident,
            _ => MemoryMethod::PagesOnce,
        };
        visit.server.as_mut().unwrap().memory_account.method = method;
    }
    let all = verdicts(&plan, &visits, &[]);
    for pair in of(&all, Metric::Memory) {
        if pair.a == 1 || pair.b == 1 {
            let reason = withheld(&pair.verdict);
            assert!(reason.contains("resident memory of some processes for b"), "{reason}");
        } else {
            assert!(matches!(pair.verdict, Verdict::NoDifference { .. }), "{pair:?}");
        }
    }
    assert!(matches!(of(&all, Metric::Throughput)[0].verdict, Verdict::Ratio { .. }));
}

/// As seen without root: 19.9 to 85.0 MB beside 17.5 to 19.1 MB was "1.17x, told apart".
#[test]
fn memory_that_is_known_as_a_range_is_compared_only_where_ranges_do_not_overlap() {
    let mut plan = plan(&["a", "b"]);
    plan.metrics = vec![Metric::Memory];
    let mut visits = visits(&[10e3, 20e3], 10, 0.02);
    for visit in &mut visits {
        let server = visit.server.as_mut().unwrap();
        server.memory_account.method = MemoryMethod::Bound;
        server.memory_account.at_most = server.memory;
    }
    let said = |visits: &[Visit]| verdicts(&plan, visits, &[])[0].verdict.clone();
    assert!(!matches!(said(&visits), Verdict::Withheld { .. }), "each is known exactly");
    for visit in visits.iter_mut().filter(|visit| visit.contender == 0) {
        visit.server.as_mut().unwrap().memory_account.at_most = units::Bytes(1 << 40);
    }
    let reason = withheld(&said(&visits)).to_owned();
    assert!(
        reason.starts_with("memory is known as a range (") && reason.contains("for a"),
        "{reason}"
    );
}

#[test]
fn many_failed_visits_withhold_and_one_in_twelve_does_not() {
    let plan = plan(&["a", "b"]);
    let mut visits = visits(&[13e3, 10e3], 12, 0.02);
    fail(&mut visits[3]);
    assert!(matches!(throughput(&plan, &visits, &[]).verdict, Verdict::Ratio { .. }));
    fail(&mut visits[5]);
    let pair = throughput(&plan, &visits, &[]);
    assert_eq!(withheld(&pair.verdict), "2 of 12 visits of b failed: it died of signal 11");
}

/// A rate of zero has no logarithm. Left out, a server would be judged by the blocks in which it answered.
#[test]
fn a_server_that_answered_nothing_does_not_drop_out_of_its_pairs() {
    let plan = plan(&["x", "b", "c"]);
    let silenced = |numbers: &[usize]| {
        let mut visits = visits(&[10e3, 10e3, 10e3], 12, 0.02);
        for &number in numbers {
            visits[3 * number].rate_per_s = Some(0.0);
        }
        verdicts(&plan, &visits, &[])
    };
    let one = silenced(&[4]);
    let rates = of(&one, Metric::Throughput);
    for pair in &rates[..2] {
        assert_eq!(
            withheld(&pair.verdict),
            "1 of 12 visits of x finished no request in the measured window"
        );
    }
    assert!(!matches!(rates[2].verdict, Verdict::Withheld { .. }), "b and c stand");
    let memory = of(&one, Metric::Memory);
    assert!(!matches!(memory[0].verdict, Verdict::Withheld { .. }), "one visit of twelve");
    let two = silenced(&[4, 9]);
    let memory = of(&two, Metric::Memory);
    assert_eq!(
        withheld(&memory[0].verdict),
        "2 of 12 visits of x finished no request in the measured window"
    );
}

/// As seen: a p of 0.0036 became 0.039 beside a server that never started.
#[test]
fn the_dead_do_not_cost_the_living() {
    let rates = [10_200.0, 10e3];
    let alone = throughput(&plan(&["a", "b"]), &visits(&rates, 10, 0.03), &[]);
    let beside = |dead: &[&str]| {
        let names: Vec<&str> = ["a", "b"].iter().chain(dead).copied().collect();
        throughput(&plan(&names), &visits(&rates, 10, 0.03), &[])
    };
    assert_eq!(beside(&["never started"]), alone);
    assert_eq!(beside(&["never started", "nor this", "nor that"]), alone);
    // Nor does one whose verdicts are withheld, whatever its figures are.
    let void = [finding(Severity::Void, Certainty::Confirmed, &[2])];
    let visits = visits(&[10_200.0, 10e3, 12e3], 10, 0.03);
    assert_eq!(throughput(&plan(&["a", "b", "void"]), &visits, &void), alone);
}

#[test]
fn like_contenders_keep_their_verdict_beside_an_odd_one() {
    let plan = plan(&["a", "odd", "b", "as odd"]);
    let visits = visits(&[10e3, 20e3, 30e3, 40e3], 10, 0.02);
    let odd = Finding { alike: true, ..finding(Severity::Void, Certainty::Confirmed, &[1, 3]) };
    for pair in of(&verdicts(&plan, &visits, &[odd]), Metric::Throughput) {
        let is_unlike = [1, 3].contains(&pair.a) != [1, 3].contains(&pair.b);
        match &pair.verdict {
            Verdict::Withheld { reason } if is_unlike => {
                let names = [pair.a, pair.b].map(|n| plan.contenders[n].name.as_str());
                assert_eq!(*reason, format!("planted on {}", names.join(", ")));
            }
            said => assert!(said.tells_apart() && !is_unlike, "{pair:?}"),
        }
    }
}

#[test]
fn a_metric_that_nobody_measured_is_withheld_with_the_reason() {
    let mut plan = plan(&["a", "b"]);
    plan.metrics = vec![Metric::Throughput, Metric::P99];
    let all = verdicts(&plan, &visits(&[13e3, 10e3], 10, 0.02), &[]);
    assert!(withheld(&of(&all, Metric::P99)[0].verdict).contains("too few blocks"));
}

#[test]
fn without_a_single_visit_every_pair_is_withheld() {
    let all = verdicts(&plan(&["a", "b", "c"]), &[], &[]);
    assert!(all.iter().all(|pair| matches!(pair.verdict, Verdict::Withheld { .. })));
}

/// Twelve contenders, all alike but for noise: without a correction some of the 66 pairs would be
/// called different in most runs.
#[test]
fn p_values_are_raised_by_the_number_of_pairs() {
    let two = throughput(&plan(&["a", "b"]), &visits(&[10_200.0, 10e3], 10, 0.03), &[]);
    let names = ["a", "b", "c", "d", "e", "f"];
    let rates = [10_200.0, 10e3, 10e3, 10e3, 10e3, 10e3];
    let six = throughput(&plan(&names), &visits(&rates, 10, 0.03), &[]);
    let (alone, among) = (two.estimate.unwrap(), six.estimate.unwrap());
    assert!(among.p_holm > 3.0 * alone.p_holm, "{alone:?} {among:?}");
    assert_eq!(alone.ratio, among.ratio);
}

#[test]
fn stopping_looks_at_widths_and_never_at_significance() {
    let plan = plan(&["a", "b"]);
    let wide = visits(&[20e3, 10e3], 10, 0.2);
    assert!(matches!(throughput(&plan, &wide, &[]).verdict, Verdict::Ratio { .. }));
    assert!(!narrow_enough(&plan, 0, &wide, &[0, 1]), "significant, but wide");
    let narrow = visits(&[10e3, 10e3], 10, 0.005);
    assert!(narrow_enough(&plan, 0, &narrow, &[0, 1]), "no difference, but narrow");
    assert!(!narrow_enough(&plan, 0, &narrow[..10], &[0, 1]), "narrow, but five blocks only");
}

/// Two cells of equal servers are twice the chance to find one that stands out.
#[test]
fn p_values_are_raised_by_the_number_of_cells() {
    let one = plan(&["a", "b"]);
    let visits = visits(&[10_200.0, 10e3], 10, 0.03);
    let mut two = one.clone();
    two.cells.push(two.cells[0].clone());
    let again = visits.iter().map(|visit| Visit { cell: 1, ..visit.clone() });
    let both: Vec<Visit> = visits.iter().cloned().chain(again).collect();
    let alone = throughput(&one, &visits, &[]).estimate.unwrap();
    let among = verdicts(&two, &both, &[]);
    let cells: Vec<usize> = among.iter().map(|pair| pair.cell).collect();
    assert!(cells.is_sorted() && cells.contains(&1), "cell by cell: {cells:?}");
    for pair in of(&among, Metric::Throughput) {
        assert!((pair.estimate.unwrap().p_holm / alone.p_holm - 2.0).abs() < 1e-9, "{pair:?}");
    }
}
