//! Every number against one from outside: the fixtures that scripts/fixtures-stats.py writes with
//! SciPy, NumPy, or the plainest method that the definition allows. Start reading at any test.

use joust_stats as stats;
use serde_json::Value;
use stats::{ConfidenceInterval, Paired, TwoGaussians};

#[track_caller]
fn near(ours: f64, golden: &Value, within: f64, what: &str) {
    let golden = golden.as_f64().expect("a golden value is a number");
    let error = (ours - golden).abs() / golden.abs().max(1.0);
    assert!(error <= within, "{what}: ours {ours}, golden {golden}");
}

fn cases(fixture: &str) -> Vec<Value> {
    let fixture: Value = serde_json::from_str(fixture).expect("a fixture is JSON");
    assert!(fixture["made_by"].as_str().is_some_and(|by| by.contains("fixtures-stats.py")));
    fixture["cases"].as_array().expect("a fixture has cases").clone()
}

fn numbers(values: &Value) -> Vec<f64> {
    let values = values.as_array().expect("a list");
    values.iter().map(|value| value.as_f64().expect("a number")).collect()
}

#[test]
fn t_intervals_p_values_and_tost_agree_with_scipy() {
    for case in cases(include_str!("fixtures/paired.json")) {
        let paired = Paired::of_logs(&numbers(&case["logs"]), 1).unwrap();
        let interval = paired.interval.unwrap();
        near(paired.mean_ln, &case["mean"], 1e-12, "mean");
        near(interval.sd_ln, &case["sd"], 1e-12, "sd");
        near(interval.student.low, &case["low95"], 1e-9, "low end, 95 %");
        near(interval.student.high, &case["high95"], 1e-9, "high end, 95 %");
        near(interval.p, &case["p"], 1e-9, "p");
        let tost = stats::tost(&paired, case["margin"].as_f64().unwrap()).unwrap();
        near(tost.interval.low, &case["low90"], 1e-9, "low end, 90 %");
        near(tost.interval.high, &case["high90"], 1e-9, "high end, 90 %");
        near(tost.p, &case["tost_p"], 1e-9, "p of TOST");
        let inside = tost.interval.low > 1.0 / 1.02 && tost.interval.high < 1.02;
        assert_eq!(tost.equivalent, inside, "the 90 % interval and p < 5 % say the same");
    }
}

#[test]
fn the_bootstrap_agrees_with_all_resamples_enumerated() {
    for case in cases(include_str!("fixtures/bootstrap.json")) {
        let values = numbers(&case["values"]);
        for seed in 0..5 {
            let ConfidenceInterval { low, high } =
                stats::studentised_bootstrap(&values, seed).unwrap();
            for (end, between) in [(low, "low_between"), (high, "high_between")] {
                let between = numbers(&case[between]);
                assert!((between[0]..=between[1]).contains(&end), "{end} not in {between:?}");
            }
        }
    }
}

#[test]
fn holm_agrees_with_its_definition() {
    for case in cases(include_str!("fixtures/holm.json")) {
        let adjusted = stats::holm(&numbers(&case["p"]));
        for (ours, golden) in adjusted.iter().zip(case["adjusted"].as_array().unwrap()) {
            near(*ours, golden, 1e-12, "adjusted p");
        }
    }
    assert!(stats::holm(&[]).is_empty());
}

#[test]
fn needed_blocks_agree_with_the_noncentral_t_within_one() {
    for case in cases(include_str!("fixtures/power.json")) {
        let [sd, margin] = ["sd", "margin"].map(|name| case[name].as_f64().unwrap());
        let golden = u32::try_from(case["blocks"].as_u64().unwrap()).unwrap();
        let ours = stats::blocks_needed(sd, margin);
        assert!(ours.abs_diff(golden.max(stats::BLOCKS_MIN)) <= 1, "{ours} for {case}");
    }
}

#[test]
fn quantiles_agree_with_numpy() {
    for case in cases(include_str!("fixtures/quantiles.json")) {
        let values = numbers(&case["values"]);
        for (q, golden) in numbers(&case["q"]).iter().zip(case["quantiles"].as_array().unwrap()) {
            near(stats::quantile(&values, *q).unwrap(), golden, 1e-12, "quantile");
        }
        near(stats::median(&values).unwrap(), &case["median"], 1e-12, "median");
        near(stats::median_absolute_deviation(&values).unwrap(), &case["mad"], 1e-12, "MAD");
        match stats::lag1_autocorrelation(&values) {
            Some(lag1) => near(lag1, &case["lag1"], 1e-12, "lag-1 autocorrelation"),
            None => assert!(case["lag1"].is_null()),
        }
    }
    assert_eq!(stats::quantile(&[], 0.5), None);
}

#[test]
fn the_interval_of_a_quantile_has_the_ranks_of_the_binomial_law_within_two() {
    for case in cases(include_str!("fixtures/quantile_ranks.json")) {
        let (n, q) = (case["n"].as_u64().unwrap(), case["q"].as_f64().unwrap());
        let ranks: Vec<f64> = (1..=n).map(|rank| rank as f64).collect();
        let Some(interval) = stats::quantile_interval(&ranks, q, n as f64) else {
            panic!("no interval for {case}");
        };
        for (ours, golden) in [(interval.low, "low"), (interval.high, "high")] {
            let golden = case[golden].as_f64().unwrap();
            assert!((ours - golden).abs() <= 2.0, "{ours} for {case}");
        }
    }
}

#[test]
fn mser5_agrees_with_every_truncation_tried() {
    for case in cases(include_str!("fixtures/mser5.json")) {
        let ours = stats::mser5(&numbers(&case["series"]));
        assert_eq!(ours.cut as u64, case["cut"].as_u64().unwrap());
        assert_eq!(ours.at_bound, case["at_bound"].as_bool().unwrap());
    }
}

#[test]
fn the_dip_agrees_with_linear_programming() {
    for case in cases(include_str!("fixtures/dip.json")) {
        near(stats::dip(&numbers(&case["values"])).unwrap(), &case["dip"], 1e-9, "dip");
    }
}

#[test]
fn two_normal_laws_agree_with_a_general_optimiser() {
    for case in cases(include_str!("fixtures/clusters.json")) {
        let fit = TwoGaussians::fit(&numbers(&case["values"])).unwrap();
        let centres = numbers(&case["centres"]);
        assert!((fit.low.centre - centres[0]).abs() < 1e-3, "{fit:?} {centres:?}");
        assert!((fit.high.centre - centres[1]).abs() < 1e-3, "{fit:?} {centres:?}");
        near(fit.sd, &case["sd"], 1e-3, "sd within");
        near(fit.delta_bic, &case["delta_bic"], 1e-5, "delta BIC");
    }
}

#[test]
fn anderson_darling_agrees_with_scipy_and_with_the_series_of_its_limit() {
    let case = &cases(include_str!("fixtures/anderson_darling.json"))[0];
    for test in case["tests"].as_array().unwrap() {
        let values = numbers(&test["values"]);
        let ours = match test["law"].as_str().unwrap() {
            "expon" => stats::anderson_darling_exponential(&values, test["rate"].as_f64().unwrap()),
            _ => stats::anderson_darling_uniform(&values),
        };
        near(ours.unwrap().a2, &test["a2"], 1e-9, "A squared");
    }
    for at in case["p_values"].as_array().unwrap() {
        let a2 = at["a2"].as_f64().unwrap();
        near(stats::anderson_darling_p(a2, 1_000_000), &at["limit"], 2.5e-5, "p of many values");
        // A million samples leave a standard error of 0.0005 at most.
        near(stats::anderson_darling_p(a2, 10), &at["ten"], 0.002, "p of ten values");
    }
}
