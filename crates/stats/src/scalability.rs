//! Owns Gunther's Universal Scalability Law (2007, Guerrilla Capacity Planning, chapter 4): how a rate
//! grows with concurrency, X(N) = lambda N / (1 + sigma (N-1) + kappa N (N-1)). Must not know what is
//! concurrent. Start reading at [`fit_scalability`].
//!
//! Least squares of ln X, because noise is multiplicative. N / X is linear in (1, sigma, kappa) / lambda, so each
//! Gauss-Newton step is a linear problem with three unknowns, none of them negative. All four choices of which unknowns
//! are zero are tried. (Fitting N / X itself, as spreadsheets do, gives the slowest most weight.)

use crate::bca::bca_intervals;
use crate::confidence::ConfidenceInterval;

/// Fewest levels of concurrency, because three coefficients are estimated.
pub const LEVELS_MIN: usize = 3;
/// Gauss-Newton rounds; most fits need five.
const ROUNDS_MAX: usize = 50;
/// Relative gain at which the fit has converged.
const SETTLED: f64 = 1e-12;

/// A rate that was measured at some concurrency.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScalabilityPoint {
    /// Number of concurrent users of the server, at least 1.
    pub concurrency: u32,
    /// The block, from 0; numbers may be missing.
    pub block: usize,
    /// Rate, above 0.
    pub rate: f64,
}

/// A coefficient of the law.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Coefficient {
    /// Best fit.
    pub value: f64,
    /// 95 % interval by BCa over blocks; `None` with too few blocks, or if it is zero in all.
    pub interval: Option<ConfidenceInterval>,
}

/// The law fitted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scalability {
    /// Rate of one alone.
    pub lambda: Coefficient,
    /// Contention: the share of the work that is serialised, 0 or more.
    pub sigma: Coefficient,
    /// Coherency: the cost between each two that run at once, 0 or more.
    pub kappa: Coefficient,
    /// Concurrency of the highest rate; `None` if the rate never falls.
    pub peak: Option<f64>,
    /// Largest distance of a level's mean ln X from the law: large if the law does not hold.
    pub misfit_ln: f64,
}

/// Why there is no fit.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum ScalabilityError {
    /// Three coefficients need at least three levels.
    #[error(
        "{levels} levels of concurrency; the law has three coefficients, so measure at {LEVELS_MIN} or more"
    )]
    TooFewLevels {
        /// Number of different levels.
        levels: usize,
    },
    /// A rate or a concurrency is not above zero.
    #[error("a rate of {rate} at concurrency {concurrency}: leave out what was not measured")]
    NotPositive {
        /// Its concurrency.
        concurrency: u32,
        /// The rate.
        rate: f64,
    },
}

/// Fits the law to all points; each level has the weight of its number of points. The same seed gives the same
/// intervals.
///
/// # Errors
/// [`ScalabilityError`]: too few levels, or a value that is not above zero.
pub fn fit_scalability(
    points: &[ScalabilityPoint],
    seed: u64,
) -> Result<Scalability, ScalabilityError> {
    let is_positive = |point: &&ScalabilityPoint| {
        point.rate > 0.0 && point.rate.is_finite() && point.concurrency > 0
    };
    if let Some(&ScalabilityPoint { concurrency, rate, .. }) =
        points.iter().find(|point| !is_positive(point))
    {
        return Err(ScalabilityError::NotPositive { concurrency, rate });
    }
    let design = Design::of(points);
    let over = |chosen: &[usize]| {
        let levels = design.levels(chosen);
        (levels.len() >= LEVELS_MIN).then(|| (Law::fit(&levels), levels))
    };
    let n = design.blocks.len();
    let Some((law, levels)) = over(&(0..n).collect::<Vec<_>>()) else {
        return Err(ScalabilityError::TooFewLevels { levels: design.concurrencies.len() });
    };
    let coefficients = |law: &Law| [law.lambda(), law.sigma(), law.kappa()];
    let intervals =
        bca_intervals(n, seed, |chosen| over(chosen).map(|(law, _)| coefficients(&law)));
    let mut both = coefficients(&law).into_iter().zip(intervals);
    let mut next = || {
        let (value, interval) = both.next().expect("there are three coefficients");
        Coefficient { value, interval }
    };
    let misfit = |level: &Level| (level.ln_rate - law.ln_rate(level.concurrency)).abs();
    Ok(Scalability {
        lambda: next(),
        sigma: next(),
        kappa: next(),
        peak: law.peak(),
        misfit_ln: levels.iter().map(misfit).fold(0.0, f64::max),
    })
}

/// The points by block, so that a resample is a sum over blocks.
struct Design {
    /// Rising.
    concurrencies: Vec<u32>,
    /// Index of the concurrency and ln X of every point of a block.
    blocks: Vec<Vec<(usize, f64)>>,
}

impl Design {
    fn of(points: &[ScalabilityPoint]) -> Self {
        let mut concurrencies: Vec<u32> = points.iter().map(|point| point.concurrency).collect();
        concurrencies.sort_unstable();
        concurrencies.dedup();
        let mut by_block = std::collections::BTreeMap::<usize, Vec<(usize, f64)>>::new();
        for point in points {
            let level = concurrencies.partition_point(|level| *level < point.concurrency);
            by_block.entry(point.block).or_default().push((level, point.rate.ln()));
        }
        Self { concurrencies, blocks: by_block.into_values().collect() }
    }

    /// The levels that have points in the chosen blocks.
    fn levels(&self, chosen: &[usize]) -> Vec<Level> {
        let mut sums = vec![(0.0, 0.0); self.concurrencies.len()];
        for (level, ln_rate) in chosen.iter().flat_map(|block| &self.blocks[*block]) {
            sums[*level].0 += ln_rate;
            sums[*level].1 += 1.0;
        }
        let both = self.concurrencies.iter().zip(sums);
        both.filter(|(_, (_, weight))| *weight > 0.0)
            .map(|(concurrency, (sum, weight))| Level {
                concurrency: f64::from(*concurrency),
                ln_rate: sum / weight,
                weight,
            })
            .collect()
    }
}

/// All points of one concurrency.
struct Level {
    concurrency: f64,
    /// Mean of ln X.
    ln_rate: f64,
    /// Number of points.
    weight: f64,
}

/// (1, sigma, kappa) / lambda.
#[derive(Clone, Copy)]
struct Law([f64; 3]);

impl Law {
    fn lambda(&self) -> f64 {
        1.0 / self.0[0]
    }

    fn sigma(&self) -> f64 {
        self.0[1] / self.0[0]
    }

    fn kappa(&self) -> f64 {
        self.0[2] / self.0[0]
    }

    /// Where dX/dN = 0: N = sqrt((1 - sigma) / kappa); with sigma above 1 the rate falls from the start.
    fn peak(&self) -> Option<f64> {
        (self.kappa() > 0.0).then(|| ((1.0 - self.sigma()) / self.kappa()).max(1.0).sqrt())
    }

    fn time(&self, n: f64) -> f64 {
        terms(n).iter().zip(self.0).map(|(term, coefficient)| term * coefficient).sum()
    }

    fn ln_rate(&self, n: f64) -> f64 {
        n.ln() - self.time(n).ln()
    }

    fn loss(&self, levels: &[Level]) -> f64 {
        let of = |level: &Level| {
            level.weight * (level.ln_rate - self.ln_rate(level.concurrency)).powi(2)
        };
        levels.iter().map(of).sum()
    }

    fn fit(levels: &[Level]) -> Self {
        // Starts from the measured times, as if each were on the law.
        let measured = |level: &Level| (level.concurrency / level.ln_rate.exp(), 0.0);
        let mut law = Self::step(levels, measured)
            .expect("one positive coefficient alone always fits positive times");
        let mut loss = law.loss(levels);
        for _ in 0..ROUNDS_MAX {
            let about = |level: &Level| {
                (law.time(level.concurrency), law.ln_rate(level.concurrency) - level.ln_rate)
            };
            let Some(towards) = Self::step(levels, about) else { break };
            // Halves the step until it improves the fit.
            let halves = (0..20).map(|n| law.mixed(towards, 0.5f64.powi(n)));
            let mut better = halves.filter(|next| next.loss(levels) < loss);
            let Some(next) = better.next() else { break };
            let gained = loss - next.loss(levels);
            (law, loss) = (next, next.loss(levels));
            if gained <= SETTLED * loss {
                break;
            }
        }
        law
    }

    fn mixed(&self, other: Self, share: f64) -> Self {
        Self(std::array::from_fn(|n| self.0[n] + share * (other.0[n] - self.0[n])))
    }

    /// Least squares of ln(time), linearised around a time and its log distance from the measured one. `None` if only a
    /// law with negative times would fit better.
    fn step(levels: &[Level], about: impl Fn(&Level) -> (f64, f64)) -> Option<Self> {
        let rows: Vec<([f64; 3], f64, f64)> = levels
            .iter()
            .map(|level| {
                let (time, distance) = about(level);
                (terms(level.concurrency).map(|term| term / time), 1.0 + distance, level.weight)
            })
            .collect();
        let kept =
            [[true, true, true], [true, true, false], [true, false, true], [true, false, false]];
        let squares = |law: &Self| -> f64 {
            let of = |(row, target, weight): &([f64; 3], f64, f64)| {
                let seen: f64 = row.iter().zip(law.0).map(|(term, of)| term * of).sum();
                weight * (target - seen).powi(2)
            };
            rows.iter().map(of).sum()
        };
        kept.into_iter()
            .filter_map(|kept| solve(&rows, kept))
            .map(Self)
            .filter(|law| law.0[0] > 0.0 && law.0.iter().all(|of| *of >= 0.0))
            .min_by(|one, other| squares(one).total_cmp(&squares(other)))
    }
}

fn terms(n: f64) -> [f64; 3] {
    [1.0, n - 1.0, n * (n - 1.0)]
}

/// Weighted least squares in the kept unknowns, the others zero, by Gram-Schmidt on columns (normal equations would
/// square the condition number: terms differ by 10^6). `None` if a column depends on those before it.
fn solve(rows: &[([f64; 3], f64, f64)], kept: [bool; 3]) -> Option<[f64; 3]> {
    let column = |n: usize| -> Vec<f64> {
        rows.iter().map(|(row, _, weight)| row[n] * weight.sqrt()).collect()
    };
    let mut rest: Vec<f64> =
        rows.iter().map(|(_, target, weight)| target * weight.sqrt()).collect();
    let places: Vec<usize> = (0..3).filter(|n| kept[*n]).collect();
    let mut basis: Vec<Vec<f64>> = Vec::new();
    let mut upper = [[0.0; 3]; 3];
    let mut along = [0.0; 3];
    for (k, place) in places.iter().enumerate() {
        let mut own = column(*place);
        let length = dot(&own, &own).sqrt();
        for (j, unit) in basis.iter().enumerate() {
            upper[j][k] = dot(unit, &own);
            own.iter_mut().zip(unit).for_each(|(value, unit)| *value -= upper[j][k] * unit);
        }
        upper[k][k] = dot(&own, &own).sqrt();
        if upper[k][k] <= 1e-10 * length {
            return None;
        }
        own.iter_mut().for_each(|value| *value /= upper[k][k]);
        along[k] = dot(&own, &rest);
        rest.iter_mut().zip(&own).for_each(|(value, unit)| *value -= along[k] * unit);
        basis.push(own);
    }
    let mut solved = [0.0; 3];
    for k in (0..places.len()).rev() {
        let known: f64 = (k + 1..places.len()).map(|j| upper[k][j] * solved[places[j]]).sum();
        solved[places[k]] = (along[k] - known) / upper[k][k];
    }
    Some(solved)
}

fn dot(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}
