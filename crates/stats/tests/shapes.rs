//! Checks what bands, explained shares and fitted laws promise, over simulated sessions with a known truth. Each test
//! has a canary that shows that it could fail. Start reading at [`Visits`].

mod noise;

use joust_stats as stats;
use noise::{Law, Noise};
use stats::{Better, ConfidenceInterval, Histogram, Steadiness};
use units::Nanos;

fn holds(interval: ConfidenceInterval, truth: f64) -> bool {
    interval.low <= truth && truth <= interval.high
}

/// The interval at half its width, close to what a method gives that ignores how few the blocks are.
fn halved(interval: ConfidenceInterval) -> ConfidenceInterval {
    let (centre, reach) =
        (f64::midpoint(interval.low, interval.high), (interval.high - interval.low) / 4.0);
    ConfidenceInterval { low: centre - reach, high: centre + reach }
}

/// Visits of a server: latencies of a law, whose level differs from visit to visit.
struct Visits {
    noise: Noise,
    requests: u32,
}

impl Visits {
    fn histogram(&mut self, level_ns: f64) -> Histogram {
        let level = level_ns * (0.05 * self.noise.of(Law::Normal)).exp();
        let mut histogram = Histogram::new();
        for _ in 0..self.requests {
            let span = level * (0.3 * self.noise.of(Law::Normal)).exp();
            histogram.record(Nanos(span as u64));
        }
        histogram.pack();
        histogram
    }
}

#[test]
fn the_band_of_a_shift_function_holds_all_quantiles_at_once_in_95_of_100_sessions() {
    const SESSIONS: usize = 120;
    const TRUTH: f64 = 1.2;
    let mut visits = Visits { noise: Noise::new(7), requests: 150 };
    let (mut held, mut held_by_half) = (0, 0);
    for seed in 0..SESSIONS {
        let mut profile = |level| {
            let all: Vec<Histogram> = (0..8).map(|_| visits.histogram(level)).collect();
            stats::Profile::of(&all.iter().collect::<Vec<_>>(), seed as u64).unwrap()
        };
        let points = stats::shift(&profile(TRUTH * 1e6), &profile(1e6));
        assert_eq!(points.len(), 10, "deciles and p99; 1200 requests are too few for p99.9");
        held += usize::from(points.iter().all(|point| holds(point.ratio, TRUTH)));
        held_by_half += usize::from(points.iter().all(|point| holds(halved(point.ratio), TRUTH)));
    }
    // If each holds with 95 %, at least 107 of 120 do in 99.5 % of cases (R: qbinom(.005, 120, .95) = 107).
    assert!(held >= 107, "{held} of {SESSIONS}");
    assert!(held_by_half < 90, "the test sees too narrow a band: {held_by_half}");
}

#[test]
fn a_shift_in_the_tail_is_seen_there_and_nowhere_else() {
    let mut noise = Noise::new(19);
    let mut profile = |stalls: u32| {
        let visits: Vec<Histogram> = (0..8)
            .map(|_| {
                let mut histogram = Histogram::new();
                for n in 0..1000 {
                    let late = if n < stalls { 40e6 } else { 0.0 };
                    let span = late + 1e6 * (0.2 * noise.of(Law::Normal)).exp();
                    histogram.record(Nanos(span as u64));
                }
                histogram
            })
            .collect();
        stats::Profile::of(&visits.iter().collect::<Vec<_>>(), 1).unwrap()
    };
    for point in stats::shift(&profile(20), &profile(0)) {
        match point.q {
            // 2 % of a's requests are beyond it, so the quantile q of a is the quantile q / 0.98 of its other requests.
            q if q < 0.95 => assert!(point.ratio.low < 1.02, "{point:?}"),
            _ => assert!(point.ratio.low > 5.0 && point.difference_ns.low > 30e6, "{point:?}"),
        }
    }
}

#[test]
fn the_stalls_share_holds_the_truth_in_95_of_100_sessions() {
    const SESSIONS: usize = 250;
    let mut noise = Noise::new(23);
    let mut visit = |main_ns: f64, stalls: f64| {
        let level = main_ns * (0.04 * noise.of(Law::Normal)).exp();
        let stalls = (stalls * (1.0 + 0.3 * noise.of(Law::Normal)).max(0.1)) as u64;
        let mut histogram = Histogram::new();
        for n in 0..200 {
            // The main mode's mean is that of its two halves.
            let spread = if n % 2 == 0 { 1.2 } else { 0.8 };
            histogram.record(Nanos((level * spread) as u64));
        }
        (0..stalls).for_each(|_| histogram.record(Nanos::from_millis(40)));
        histogram
    };
    let (mut held, mut held_by_half) = (0, 0);
    // The expected value for the population, as one would compute it by hand.
    let mean = |main: f64, count: f64| (200.0 * main + count * 40e6) / (200.0 + count);
    let stalls = |main: f64| mean(main, 19.5).ln() - mean(main, 9.5).ln();
    let truth = f64::midpoint(stalls(1e6), stalls(1.5e6));
    for seed in 0..SESSIONS {
        let blocks: Vec<(Histogram, Histogram)> =
            (0..10).map(|_| (visit(1e6, 20.0), visit(1.5e6, 10.0))).collect();
        let blocks: Vec<(&Histogram, &Histogram)> = blocks.iter().map(|(a, b)| (a, b)).collect();
        let explained = stats::explain(&blocks, seed as u64).unwrap();
        assert!(explained.service.ln < 0.0 && explained.stalls.ln > 0.0, "{explained:?}");
        let interval = explained.stalls.ln_interval.unwrap();
        held += usize::from(holds(interval, truth));
        held_by_half += usize::from(holds(halved(interval), truth));
    }
    // 92 to 97 %, plus or minus two standard errors of 250 sessions: BCa is not exact at ten blocks.
    assert!((223..=247).contains(&held), "{held}");
    assert!(held_by_half < 200, "the test sees too narrow an interval: {held_by_half}");
}

#[test]
fn a_tail_that_thins_out_is_service_and_not_stalls() {
    let mut noise = Noise::new(29);
    let mut side = || {
        let mut histogram = Histogram::new();
        for _ in 0..50_000 {
            histogram.record(Nanos((1e6 * noise.of(Law::Normal).exp()) as u64));
        }
        histogram
    };
    let (a, b) = (side(), side());
    let explained = stats::explain(&[(&a, &b)], 1).unwrap();
    assert!(explained.a.stalls.is_empty() && explained.b.stalls.is_empty(), "{explained:?}");
    assert_eq!(explained.stalls.ln, 0.0);
    assert_eq!(stats::explain(&[(&Histogram::new(), &a)], 1), None, "a side without requests");
}

#[test]
fn scalability_intervals_hold_the_truth_and_two_levels_are_refused() {
    const SESSIONS: usize = 60;
    let (lambda, sigma, kappa) = (1000.0, 0.08, 0.002);
    let rate = |n: f64| lambda * n / (1.0 + sigma * (n - 1.0) + kappa * n * (n - 1.0));
    let mut noise = Noise::new(31);
    let mut session = |levels: &[u32], seed| {
        let points: Vec<stats::ScalabilityPoint> = (0..10)
            .flat_map(|block| levels.iter().map(move |level| (block, *level)))
            .map(|(block, concurrency)| {
                let noisy = (0.02 * noise.of(Law::Normal)).exp();
                let rate = rate(f64::from(concurrency)) * noisy;
                stats::ScalabilityPoint { concurrency, block, rate }
            })
            .collect();
        stats::fit_scalability(&points, seed)
    };
    assert_eq!(
        session(&[1, 8], 1),
        Err(stats::ScalabilityError::TooFewLevels { levels: 2 }),
        "three numbers from two levels"
    );
    let (mut held, mut held_by_half) = ([0; 3], 0);
    for seed in 0..SESSIONS {
        let fit = session(&[1, 4, 16, 64], seed as u64).unwrap();
        let both = [(fit.lambda, lambda), (fit.sigma, sigma), (fit.kappa, kappa)];
        for ((coefficient, truth), held) in both.into_iter().zip(&mut held) {
            let interval = coefficient.interval.unwrap();
            *held += usize::from(holds(interval, truth));
            held_by_half += usize::from(holds(halved(interval), truth));
        }
        // sqrt((1 - 0.08) / 0.002) = 21.4.
        assert!((fit.peak.unwrap() / 21.4 - 1.0).abs() < 0.1, "{fit:?}");
        assert!(fit.misfit_ln < 0.05, "{fit:?}");
    }
    // If each holds with 95 %, at least 53 of 60 do in 99 % of cases.
    assert!(held.iter().all(|held| *held >= 53), "{held:?} of {SESSIONS}");
    assert!(held_by_half < 3 * 45, "the test sees too narrow intervals: {held_by_half}");
}

#[test]
fn a_law_that_does_not_hold_has_a_misfit_and_a_rate_of_zero_is_named() {
    // A rate that collapses at 8 and recovers: the law cannot fit it.
    let rates = [(1, 100.0), (2, 200.0), (4, 400.0), (8, 50.0), (16, 900.0)];
    let mut points: Vec<stats::ScalabilityPoint> = rates
        .iter()
        .map(|(concurrency, rate)| stats::ScalabilityPoint {
            concurrency: *concurrency,
            block: 0,
            rate: *rate,
        })
        .collect();
    let fit = stats::fit_scalability(&points, 1).unwrap();
    assert!(fit.misfit_ln > 0.5, "{fit:?}");
    assert_eq!(fit.lambda.interval, None, "one block");
    points[2].rate = 0.0;
    let refused = stats::ScalabilityError::NotPositive { concurrency: 4, rate: 0.0 };
    assert_eq!(stats::fit_scalability(&points, 1), Err(refused));
}

/// The level at each of 80 places.
type Shape = fn(usize) -> f64;
/// Whether the classification is correct.
type IsRight = fn(Steadiness) -> bool;

const SERIES: [(Shape, IsRight); 6] = [
    (|_| 100.0, |said| said == Steadiness::Flat),
    (|n| if n < 20 { 80.0 } else { 100.0 }, |said| warm_up_until(said, 20)),
    (
        |n| 100.0 * (1.0 - (-(n as f64) / 6.0).exp()),
        |said| matches!(said, Steadiness::WarmUp { .. }),
    ),
    (|n| if n < 40 { 100.0 } else { 80.0 }, |said| matches!(said, Steadiness::Slowdown { .. })),
    (|n| 100.0 + n as f64, |said| said == Steadiness::NoSteadyState),
    (|n| if (20..24).contains(&n) { 99.5 } else { 100.0 }, |said| said == Steadiness::Flat),
];

fn warm_up_until(said: Steadiness, value: usize) -> bool {
    matches!(said, Steadiness::WarmUp { settled } if settled.abs_diff(value) <= 2)
}

#[test]
fn a_series_is_called_what_it_is_in_19_of_20() {
    for (which, (shape, is_right)) in SERIES.into_iter().enumerate() {
        let mut noise = Noise::new(which as u64);
        let right = (0..40).filter(|_| {
            let series: Vec<f64> =
                (0..80).map(|n| shape(n) + 2.0 * noise.of(Law::Normal)).collect();
            is_right(stats::steadiness(&series, Better::Higher, 0.02))
        });
        let right = right.count();
        assert!(right >= 38, "series {which}: {right} of 40");
    }
}

#[test]
fn for_times_less_is_better() {
    let series: Vec<f64> =
        (0..60).map(|n| if n < 20 { 9.0 } else { 4.0 } + 0.1 * f64::from(n % 3)).collect();
    let said = |better| stats::steadiness(&series, better, 0.02);
    assert_eq!(said(Better::Lower), Steadiness::WarmUp { settled: 20 });
    assert_eq!(said(Better::Higher), Steadiness::Slowdown { settled: 20 });
    assert_eq!(stats::steadiness(&[], Better::Lower, 0.02), Steadiness::Flat);
}

#[test]
fn dependent_noise_is_not_called_a_change() {
    let mut noise = Noise::new(9);
    let called = (0..300).filter(|_| {
        let mut last = 0.0;
        let series: Vec<f64> = (0..60)
            .map(|_| {
                last = 0.3 * last + noise.of(Law::Normal);
                100.0 + last
            })
            .collect();
        !stats::change_points(&series).is_empty()
    });
    let called = called.count();
    assert!(called <= 6, "{called} of 300");
}
