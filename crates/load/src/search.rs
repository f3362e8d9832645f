//! The highest rate at which goals hold: which rate to try next, and when enough is known. Owns the strategy; the
//! caller makes the loads. It uses no clock, socket or terminal.
//! Start reading at [`search`], then [`TriedRates::next`].
//!
//! A try is a coin whose chances change with the rate: far below the limit it holds, far above it fails, and near it
//! either may happen. So a rate is judged by how its tries agree. It is certain after `repeats` of one outcome and
//! none of the other, and each disagreeing try requires as many again: 3:0, 6:1 (Wald's sequential test has the same
//! form). A majority of three is not enough: with a chance of one third it is wrong in a quarter of cases, and a
//! search by design tries rates near the limit. A rate with two of each is ambiguous and stays so; the interval then
//! includes it. A try with too few requests for the goals says nothing of its rate, except that a higher rate would
//! have more requests.
//!
//! 1. From a first guess by factors, until one rate held (or had too few requests) and one failed; one try each.
//! 2. Halving of the distance between them, in logarithms; one try each.
//! 3. When they are near enough: both ends are tried until each is certain. If an end turns out to differ from its
//!    first try, the interval moves, and step 2 continues.
//!
//! Bounds: [`SearchOptions::tries_max`] over all; a rate that always has enough requests is tried at most
//! `2 repeats + 1` times.

use record::{
    Goal, LatencyFigure, Limit, LoadRecord, RequestSpan, SearchEnding, SearchRecord, Try,
};
use units::{PerSecond, Share};

use crate::pacing::RATE_MAX;

/// Factor between rates while none has failed yet, and while none has held.
const STEP_UP: f64 = 2.0;
const STEP_DOWN: f64 = 4.0;
/// First rate, as a part of the guess: goals on latency hold only below the rate at which a server is saturated,
/// often up to half of it.
const FIRST_SHARE: f64 = 0.5;
/// First rate if there is no guess.
const FIRST: PerSecond = PerSecond(100.0);
/// Lowest rate that is tried if none was set: one request in ten seconds is no load.
const RATE_MIN: PerSecond = PerSecond(0.1);
/// Finest precision: below it, differences between rates are rounding.
const PRECISION_MIN: f64 = 0.001;
/// Tries of each outcome that make a rate ambiguous for good.
const EACH_OF_AMBIGUOUS: u32 = 2;

/// What a search looks for, and how hard.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchOptions {
    /// What must hold; at least one goal.
    pub goals: Vec<Goal>,
    /// Lowest rate that is tried, and the first.
    pub low: Option<PerSecond>,
    /// Highest rate that is tried.
    pub high: Option<PerSecond>,
    /// Approximate upper bound of the limit: the rate of a short closed loop.
    pub high_guess: Option<PerSecond>,
    /// How wide the interval may be: high / low - 1.
    pub precision: Share,
    /// Tries of one outcome that make it certain, at least 1.
    pub repeats: u32,
    /// Most tries, at least 1.
    pub tries_max: u32,
}

impl SearchOptions {
    /// For these goals, with a precision of 5 %, 3 repeats and at most 40 tries.
    pub fn new(goals: Vec<Goal>) -> Self {
        Self {
            goals,
            low: None,
            high: None,
            high_guess: None,
            precision: Share(0.05),
            repeats: 3,
            tries_max: 40,
        }
    }

    /// Checks that the options make a search.
    ///
    /// # Errors
    /// The reason, with the way out.
    pub fn check(&self) -> Result<(), String> {
        let (low, high) = (self.low.unwrap_or(RATE_MIN), self.high.unwrap_or(RATE_MAX));
        if self.goals.is_empty() {
            return Err("a search must have a goal, as in p99<10ms".to_owned());
        }
        if let Some(goal) = self.goals.iter().find(|goal| matches!(goal, Goal::Rate { .. })) {
            return Err(format!(
                "a search cannot have the goal {goal}, since it sets the rate itself: name a goal on latency \
                 or errors, as in p99<10ms"
            ));
        }
        if !(low > PerSecond(0.0) && low < high && high.0.is_finite()) {
            return Err(format!(
                "the highest rate of a search must be above the lowest, {low}; got {high}"
            ));
        }
        if self.precision.0 < PRECISION_MIN {
            return Err(format!(
                "the precision of a search must be at least {}, got {}",
                Share(PRECISION_MIN),
                self.precision
            ));
        }
        if self.repeats == 0 || self.tries_max == 0 {
            return Err("a search must have at least one try and one repeat".to_owned());
        }
        Ok(())
    }

    /// The goal that cannot be searched for with kept connections, and why: judging it takes many connects.
    pub fn refused_where_kept(&self) -> Option<String> {
        let is_of_connecting = |goal: &&Goal| match goal {
            Goal::Latency { phase: RequestSpan::Connect, figure, .. } => {
                matches!(figure, LatencyFigure::Percentile(_))
            }
            _ => false,
        };
        let goal = self.goals.iter().find(is_of_connecting)?;
        Some(format!(
            "a search cannot have the goal {goal}: connections are kept, so a higher rate makes no more of them"
        ))
    }
}

/// Looks for the highest rate at which the goals hold. `measure` makes a load at a rate (an open loop), and `watch`
/// sees the record so far after each load. An interrupted load ends the search and is no try; what was known before
/// is in the record.
///
/// # Errors
/// The first error of `measure`.
///
/// # Panics
/// If [`SearchOptions::check`] refuses the options.
pub fn search<E>(
    options: &SearchOptions,
    measure: &mut dyn FnMut(PerSecond) -> Result<LoadRecord, E>,
    watch: &mut dyn FnMut(&SearchRecord),
) -> Result<SearchRecord, E> {
    options.check().expect("options that were checked");
    let mut record = begun(options);
    let mut tally = TriedRates::default();
    loop {
        let next = if record.tries.len() as u64 >= u64::from(options.tries_max) {
            Next::End(SearchEnding::Tries)
        } else {
            tally.next(options)
        };
        let rate = match next {
            Next::Try(rate) => rate,
            Next::End(ending) => return Ok(SearchRecord { ending, ..record }),
        };
        let load = measure(rate)?;
        if load.interrupted {
            return Ok(record);
        }
        let tried = Try::of(rate, &options.goals, &load);
        tally.add(&tried);
        record.tries.push(tried);
        record.plan.get_or_insert_with(|| load.plan.for_record());
        let (good, bad) = tally.ends();
        record.highest_good = good.map(|at| tally.levels[at].rate);
        record.lowest_bad = bad.map(|at| tally.levels[at].rate);
        record.limit = limit(&record);
        watch(&record);
    }
}

fn begun(options: &SearchOptions) -> SearchRecord {
    SearchRecord {
        format: SearchRecord::FORMAT.to_owned(),
        goals: options.goals.clone(),
        low: options.low,
        high: options.high,
        precision: options.precision,
        repeats: options.repeats,
        tries_max: options.tries_max,
        tries: Vec::new(),
        highest_good: None,
        lowest_bad: None,
        limit: Limit::NotReached,
        // Until it ends in another way.
        ending: SearchEnding::Interrupted,
        plan: None,
    }
}

/// What limits the rate: the generator, if most failed tries at the upper end met its limit; the length of the tries,
/// if one end is missing because they had too few requests.
fn limit(record: &SearchRecord) -> Limit {
    let at_end = |t: &&Try| Some(t.rate) == record.lowest_bad && !t.is_good() && !t.is_sparse();
    let failed: Vec<&Try> = record.tries.iter().filter(at_end).collect();
    let n_by_generator = failed.iter().filter(|t| t.is_generator_limit).count();
    if 2 * n_by_generator > failed.len() {
        Limit::Generator
    } else if record.highest_sparse() > record.highest_good
        && (record.highest_good.is_none() || record.lowest_bad.is_none())
    {
        Limit::Samples
    } else if record.lowest_bad.is_some() {
        Limit::Server
    } else {
        Limit::NotReached
    }
}

/// What is to be done next.
enum Next {
    Try(PerSecond),
    End(SearchEnding),
}

/// How often a rate held.
#[derive(Debug, Clone, Copy)]
struct Level {
    rate: PerSecond,
    good: u32,
    bad: u32,
    /// Tries with too few requests to decide.
    sparse: u32,
}

impl Level {
    /// Whether more tries would change nothing.
    fn is_settled(&self, repeats: u32) -> bool {
        if self.leaning() == Some(Leaning::Unknown) {
            return true;
        }
        let (most, least) = (self.good.max(self.bad), self.good.min(self.bad));
        least >= EACH_OF_AMBIGUOUS || most >= repeats * (1 + least)
    }

    /// The outcome of most tries; `None` if it is ambiguous.
    fn leaning(&self) -> Option<Leaning> {
        if self.sparse > self.good + self.bad {
            return Some(Leaning::Unknown);
        }
        if self.good.min(self.bad) >= EACH_OF_AMBIGUOUS {
            return None;
        }
        match self.good.cmp(&self.bad) {
            std::cmp::Ordering::Greater => Some(Leaning::Good),
            std::cmp::Ordering::Less => Some(Leaning::Bad),
            std::cmp::Ordering::Equal => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leaning {
    Good,
    Bad,
    /// This rate gives too few requests to decide.
    Unknown,
}

/// Every rate that was tried, in rising order.
#[derive(Debug, Default)]
struct TriedRates {
    levels: Vec<Level>,
}

impl TriedRates {
    fn add(&mut self, tried: &Try) {
        let at = self.levels.partition_point(|level| level.rate < tried.rate);
        if self.levels.get(at).is_none_or(|level| level.rate != tried.rate) {
            self.levels.insert(at, Level { rate: tried.rate, good: 0, bad: 0, sparse: 0 });
        }
        let level = &mut self.levels[at];
        if tried.is_good() {
            level.good += 1;
        } else if tried.is_sparse() {
            level.sparse += 1;
        } else {
            level.bad += 1;
        }
    }

    /// Index of the highest level below the lowest bad one with this leaning.
    fn lower(&self, leaning: Leaning) -> Option<usize> {
        let below = &self.levels[..self.upper().unwrap_or(self.levels.len())];
        below.iter().rposition(|level| level.leaning() == Some(leaning))
    }

    /// Index of the lowest bad level.
    fn upper(&self) -> Option<usize> {
        self.levels.iter().position(|level| level.leaning() == Some(Leaning::Bad))
    }

    /// Indices of the highest good level below the lowest bad one, and of the lowest bad one. A rate that holds above
    /// one that fails does not help: a server that must carry the higher rate meets the lower one too.
    fn ends(&self) -> (Option<usize>, Option<usize>) {
        (self.lower(Leaning::Good), self.upper())
    }

    fn next(&self, options: &SearchOptions) -> Next {
        let (low, high) = (options.low.unwrap_or(RATE_MIN), options.high.unwrap_or(RATE_MAX));
        if self.levels.is_empty() {
            let guessed = options.high_guess.map(|guess| PerSecond(guess.0 * FIRST_SHARE));
            let first = options.low.or(guessed).unwrap_or(FIRST);
            return Next::Try(PerSecond(first.0.clamp(low.0, high.0)));
        }
        match self.ends() {
            (Some(good), Some(bad)) => self.between(good, bad, options),
            (good, None) => match (good, self.above(high, options.repeats)) {
                (Some(good), Next::End(SearchEnding::Noisy)) => self.above_good(good, options),
                (_, next) => next,
            },
            (None, Some(bad)) => match self.lower(Leaning::Unknown) {
                // A lower rate would have even fewer requests: anything that can be known lies above this one.
                Some(unknown) => match self.between(unknown, bad, options) {
                    Next::End(_) => Next::End(SearchEnding::NoneGood),
                    next @ Next::Try(_) => next,
                },
                None => self.below(low, options.repeats),
            },
        }
    }

    /// No rate has failed: try a higher one, unless the highest is settled.
    fn above(&self, high: PerSecond, repeats: u32) -> Next {
        let top = self.levels.last().expect("something was tried");
        if top.leaning().is_none() && !top.is_settled(repeats) {
            return Next::Try(top.rate);
        }
        if top.rate < high {
            return Next::Try(PerSecond((top.rate.0 * STEP_UP).min(high.0)));
        }
        match top.leaning() {
            _ if !top.is_settled(repeats) => Next::Try(top.rate),
            Some(Leaning::Good) => Next::End(SearchEnding::AllGood),
            Some(_) if self.lower(Leaning::Good).is_none() => Next::End(SearchEnding::NoneGood),
            _ => Next::End(SearchEnding::Noisy),
        }
    }

    /// Something held, and everything above it has too few requests or is ambiguous: find where that begins.
    fn above_good(&self, good: usize, options: &SearchOptions) -> Next {
        match self.between(good, good + 1, options) {
            Next::End(_) => Next::End(SearchEnding::Noisy),
            next @ Next::Try(_) => next,
        }
    }

    /// No rate has held: try a lower one, unless the lowest is settled.
    fn below(&self, low: PerSecond, repeats: u32) -> Next {
        let bottom = self.levels.first().expect("something was tried");
        let is_undecided = bottom.leaning().is_none() && !bottom.is_settled(repeats);
        let is_lowest = bottom.rate <= low;
        if is_undecided || (is_lowest && !bottom.is_settled(repeats)) {
            return Next::Try(bottom.rate);
        }
        if is_lowest {
            return Next::End(SearchEnding::NoneGood);
        }
        Next::Try(PerSecond((bottom.rate.0 / STEP_DOWN).max(low.0)))
    }

    /// A rate that held (or is unknown) lies below one that failed, and everything between them is ambiguous.
    fn between(&self, good: usize, bad: usize, options: &SearchOptions) -> Next {
        let SearchOptions { precision, repeats, .. } = options;
        let is_open = |level: &&Level| !level.is_settled(*repeats);
        let levels = &self.levels[good..=bad];
        let ambiguous = &levels[1..levels.len() - 1];
        if let Some(level) = ambiguous.iter().find(is_open) {
            return Next::Try(level.rate);
        }
        let widest = levels
            .windows(2)
            .filter(|pair| has_limit(pair))
            .max_by(|a, b| ratio(a).total_cmp(&ratio(b)))
            .expect("two ends make a pair");
        if ratio(widest) > 1.0 + precision.0 {
            return Next::Try(middle(widest[0].rate, widest[1].rate));
        }
        // The upper end first, because a passing disturbance makes a rate fail.
        if let Some(end) = [levels[levels.len() - 1], levels[0]].iter().find(is_open) {
            return Next::Try(end.rate);
        }
        let is_narrow = ratio(&[levels[0], levels[levels.len() - 1]]) <= 1.0 + precision.0;
        Next::End(if is_narrow { SearchEnding::Narrow } else { SearchEnding::Noisy })
    }
}

/// Whether a limit may lie between the two: not if both have too few requests, and not if both are ambiguous.
fn has_limit(pair: &[Level]) -> bool {
    let leanings = [pair[0].leaning(), pair[1].leaning()];
    leanings.iter().any(|leaning| matches!(leaning, Some(Leaning::Good | Leaning::Bad)))
        || leanings == [Some(Leaning::Unknown), None]
}

fn ratio(pair: &[Level]) -> f64 {
    pair[1].rate.0 / pair[0].rate.0
}

/// Halfway in logarithms, rounded to four digits if that differs from both ends.
fn middle(low: PerSecond, high: PerSecond) -> PerSecond {
    let exact = (low.0 * high.0).sqrt();
    let scale = 10f64.powf(exact.log10().floor() - 3.0);
    let round = (exact / scale).round() * scale;
    let is_inside =
        round > low.0 * (1.0 + PRECISION_MIN / 4.0) && round * (1.0 + PRECISION_MIN / 4.0) < high.0;
    PerSecond(if is_inside { round } else { exact })
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use rand::{RngExt as _, SeedableRng as _};
    use rand_pcg::Pcg64Mcg;
    use record::{
        Latencies, LoadPlan, OpenLoop, RequestCounts, ThreadUse, TryOutcome, parse_goals,
    };
    use units::Nanos;

    use super::*;

    /// A server whose response times are those of an M/M/1 queue: p99 is ln 100 / (mu - lambda)
    /// (Kleinrock, Queueing Systems I, 3.2), times a factor of chance in each try.
    struct Queue {
        mu: f64,
        /// Standard deviation of the logarithm of the factor.
        noise: f64,
        chance: Pcg64Mcg,
        /// An empty load with small histograms.
        empty: LoadRecord,
        n_loads: u32,
    }

    impl Queue {
        fn new(mu: f64, noise: f64, seed: u64) -> Self {
            let mut empty = LoadRecord::empty(LoadPlan::get(([127, 0, 0, 1], 80).into(), "/"));
            empty.latencies.each_mut().into_iter().for_each(stats::Histogram::pack);
            Self { mu, noise, chance: Pcg64Mcg::seed_from_u64(seed), empty, n_loads: 0 }
        }

        /// The rate at which p99 equals the limit of [`goals`].
        fn capacity(&self) -> f64 {
            self.mu - 100f64.ln() / 0.1
        }

        fn load(&mut self, rate: PerSecond) -> LoadRecord {
            self.n_loads += 1;
            let rho = rate.0 / self.mu;
            let p99 = if rho < 1.0 { 100f64.ln() / (self.mu - rate.0) } else { 1000.0 };
            // Irwin and Hall: the sum of twelve uniform variates is nearly normal.
            let normal = (0..12).map(|_| self.chance.random::<f64>()).sum::<f64>() - 6.0;
            self.of(rate, p99 * (self.noise * normal).exp())
        }

        fn of(&self, rate: PerSecond, p99_s: f64) -> LoadRecord {
            let mut load = self.empty.clone();
            let n = 1000;
            let response = &mut load.latencies.response;
            (0..n).for_each(|at| {
                let share = if at < 989 { 0.1 } else { 1.0 };
                response.record(Nanos::from_secs_f64(share * p99_s));
            });
            load.requests = RequestCounts { started: n, done: n, ok: n, ..Default::default() };
            load.seconds = n as f64 / rate.0;
            load.rate_per_s = rate.0;
            load.open_loop = Some(OpenLoop {
                due: n,
                asked_per_s: rate.0,
                begun_per_s: rate.0,
                ..OpenLoop::default()
            });
            load
        }
    }

    fn options() -> SearchOptions {
        SearchOptions::new(parse_goals("p99<100ms,errors<0.1%").unwrap())
    }

    fn run(options: &SearchOptions, mut at: impl FnMut(PerSecond) -> LoadRecord) -> SearchRecord {
        let found = search(options, &mut |rate| Ok::<_, Infallible>(at(rate)), &mut |_| ());
        found.unwrap_or_else(|never| match never {})
    }

    #[test]
    fn the_interval_holds_the_capacity_whatever_the_noise() {
        for noise in [0.0, 0.05, 0.15] {
            let (mut hits, mut wide) = (0, 0);
            for seed in 0..200 {
                let mut queue = Queue::new(200.0 + 3.7 * seed as f64, noise, seed);
                let options = SearchOptions {
                    high_guess: Some(PerSecond(queue.mu * (0.7 + 0.003 * seed as f64))),
                    ..options()
                };
                let found = run(&options, |rate| queue.load(rate));
                let (good, bad) = (found.highest_good.unwrap().0, found.lowest_bad.unwrap().0);
                hits += u32::from(good <= queue.capacity() && queue.capacity() <= bad);
                wide += u32::from(found.ending != SearchEnding::Narrow);
                assert_eq!(found.tries.len(), queue.n_loads as usize);
                assert!(found.is_certain() && found.limit == Limit::Server, "{found:?}");
            }
            assert!(hits >= 190, "noise {noise}: {hits} of 200 hold the capacity");
            assert!(noise > 0.0 || (hits == 200 && wide == 0), "{hits} {wide}");
        }
    }

    #[test]
    fn without_noise_the_interval_is_as_narrow_as_asked_and_both_ends_are_certain() {
        let mut queue = Queue::new(1000.0, 0.0, 1);
        let precision = Share(0.01);
        let found = run(&SearchOptions { precision, ..options() }, |rate| queue.load(rate));
        let (good, bad) = (found.highest_good.unwrap(), found.lowest_bad.unwrap());
        assert!(bad.0 / good.0 <= 1.01, "{good} {bad}");
        for end in [good, bad] {
            assert!(found.tries.iter().filter(|t| t.rate == end).count() >= 3);
        }
        assert_eq!((found.ending, found.ambiguous()), (SearchEnding::Narrow, vec![]));
        assert_eq!(SearchRecord::from_json(&found.to_json()).unwrap(), found);
    }

    #[test]
    fn a_coin_over_a_wide_band_ends_with_what_is_ambiguous() {
        let queue = Queue::new(1e6, 0.0, 1);
        let mut n_noisy = 0;
        for seed in 0..20 {
            let mut chance = Pcg64Mcg::seed_from_u64(seed);
            let found = run(&options(), |rate| {
                let holds = rate.0 < 200.0 || (rate.0 < 400.0 && chance.random::<bool>());
                queue.of(rate, if holds { 0.01 } else { 1.0 })
            });
            let (good, bad) = (found.highest_good.unwrap().0, found.lowest_bad.unwrap().0);
            assert!(good < 400.0 && bad >= 200.0, "{seed}: {good} {bad}");
            assert!(!found.ambiguous().is_empty() || found.ending == SearchEnding::Narrow);
            n_noisy += u32::from(found.ending == SearchEnding::Noisy);
        }
        assert!(n_noisy > 10, "{n_noisy}");
    }

    #[test]
    fn a_rate_that_holds_above_one_that_does_not_is_not_the_answer() {
        // It holds up to 150, not from 150 to 250, and again up to 1000.
        let queue = Queue::new(1e6, 0.0, 1);
        let holds = |r: f64| r < 150.0 || (250.0..1000.0).contains(&r);
        let options = SearchOptions { low: Some(PerSecond(100.0)), ..options() };
        let found = run(&options, |rate| queue.of(rate, if holds(rate.0) { 0.01 } else { 1.0 }));
        assert_eq!(found.highest_good.map(|r| r.0 < 150.0), Some(true), "{found:?}");
        assert!(found.lowest_bad.unwrap().0 < 250.0);
        // Reported if it was seen.
        let again = SearchRecord { lowest_bad: Some(PerSecond(100.5)), ..found };
        assert!(again.good_above().iter().all(|rate| rate.0 > 100.5));
    }

    #[test]
    fn one_disturbed_try_does_not_decide() {
        let mut queue = Queue::new(1000.0, 0.0, 1);
        for disturbed in 0..12 {
            queue.n_loads = 0;
            let mut n = 0;
            let found = run(&options(), |rate| {
                n += 1;
                if n == disturbed { queue.of(rate, 10.0) } else { queue.load(rate) }
            });
            let (good, bad) = (found.highest_good.unwrap().0, found.lowest_bad.unwrap().0);
            let capacity = queue.capacity();
            assert!(good <= capacity && capacity <= bad, "{disturbed}: {good} {bad} {capacity}");
        }
    }

    #[test]
    fn where_nothing_holds_there_is_no_interval() {
        let queue = Queue::new(1000.0, 0.0, 1);
        let options = SearchOptions { low: Some(PerSecond(10.0)), ..options() };
        let found = run(&options, |rate| queue.of(rate, 1.0));
        assert_eq!(found.highest_good, None);
        assert_eq!(
            (found.lowest_bad, found.ending),
            (Some(PerSecond(10.0)), SearchEnding::NoneGood)
        );
        assert_eq!(found.tries.len(), 3, "certain, and nothing else was tried");
    }

    #[test]
    fn where_all_holds_the_highest_is_certain() {
        let queue = Queue::new(1000.0, 0.0, 1);
        let options = SearchOptions { high: Some(PerSecond(5000.0)), ..options() };
        let found = run(&options, |rate| queue.of(rate, 0.01));
        assert_eq!((found.highest_good, found.lowest_bad), (Some(PerSecond(5000.0)), None));
        assert_eq!((found.ending, found.limit), (SearchEnding::AllGood, Limit::NotReached));
        assert_eq!(found.tries.iter().filter(|t| t.rate.0 == 5000.0).count(), 3);
    }

    #[test]
    fn the_number_of_tries_is_bounded() {
        for tries_max in [1, 5, 17] {
            let mut queue = Queue::new(1000.0, 0.3, 2);
            let found = run(&SearchOptions { tries_max, ..options() }, |rate| queue.load(rate));
            assert!(found.tries.len() <= tries_max as usize);
            if found.tries.len() == tries_max as usize && !found.is_certain() {
                assert_eq!(found.ending, SearchEnding::Tries);
            }
        }
    }

    #[test]
    fn an_interrupted_search_knows_what_it_knew() {
        let mut queue = Queue::new(1000.0, 0.0, 1);
        let found = run(&options(), |rate| {
            let load = queue.load(rate);
            LoadRecord { interrupted: queue.n_loads == 7, ..load }
        });
        assert_eq!((found.ending, found.tries.len()), (SearchEnding::Interrupted, 6));
        assert!(found.highest_good.unwrap().0 <= queue.capacity());
        assert!(found.lowest_bad.unwrap().0 >= queue.capacity());
        assert!(!found.is_certain());
    }

    #[test]
    fn a_generator_at_its_limit_is_not_taken_for_the_server() {
        let queue = Queue::new(1e6, 0.0, 1);
        let found = run(&options(), |rate| {
            let mut load = queue.of(rate, 0.01);
            let share = (rate.0 / 1200.0).min(1.0);
            let wall = Nanos::from_secs(1);
            let cpu = Nanos::from_secs_f64(share);
            load.client.threads = vec![ThreadUse { cpu, wall, pinned_to: None }];
            if rate.0 > 1200.0 {
                load.requests.started = 900;
                load.open_loop.as_mut().unwrap().left = 100;
            }
            load
        });
        assert_eq!(found.limit, Limit::Generator);
        assert!(found.highest_good.unwrap().0 > 1100.0, "busy, but it held: {found:?}");
        let missed = found.tries.iter().filter(|t| t.rate.0 > 1200.0);
        assert!(missed.clone().count() > 0);
        assert!(missed.into_iter().all(|t| t.outcome != TryOutcome::Held));
    }

    #[test]
    fn a_rate_that_was_not_reached_did_not_hold() {
        let queue = Queue::new(1e6, 0.0, 1);
        let goals = parse_goals("service.p50<1s").unwrap();
        let found = run(&SearchOptions { goals, ..options() }, |rate| {
            let mut load = queue.of(rate, 0.01);
            load.latencies =
                Latencies { service: load.latencies.response.clone(), ..load.latencies };
            load.requests.started = if rate.0 > 777.0 { 980 } else { 1000 };
            load
        });
        assert!(found.highest_good.unwrap().0 <= 777.0 && found.lowest_bad.unwrap().0 > 777.0);
        let failed = found.tries.iter().find(|t| !t.is_good()).unwrap();
        assert_eq!((failed.outcome, found.limit), (TryOutcome::RateMissed, Limit::Server));
    }

    /// A server that is well up to `capacity`, in tries of a second: a request is a sample.
    fn in_a_second(rate: PerSecond, capacity: f64) -> LoadRecord {
        let queue = Queue::new(1e6, 0.0, 1);
        let mut load = queue.of(rate, if rate.0 <= capacity { 0.001 } else { 1.0 });
        let n = rate.0 as u64;
        load.requests = RequestCounts { started: n, done: n, ok: n, ..Default::default() };
        load.open_loop = Some(OpenLoop { due: n, ..OpenLoop::default() });
        let value = load.latencies.response.max().unwrap();
        load.latencies.response.clear();
        (0..n).for_each(|_| load.latencies.response.record(value));
        load
    }

    #[test]
    fn where_tries_are_too_short_higher_rates_are_tried_and_none_is_called_bad() {
        // p99.9 needs thousands of requests; in a second there are as many as the rate says.
        let goals = parse_goals("p99.9<100ms").unwrap();
        let options = SearchOptions { goals, high_guess: Some(PerSecond(40.0)), ..options() };
        let found = run(&options, |rate| in_a_second(rate, 1e5));
        let (good, bad) = (found.highest_good.unwrap().0, found.lowest_bad.unwrap().0);
        assert!(good <= 1e5 && bad > 1e5 && bad / good <= 1.05, "{good} {bad}");
        assert_eq!(
            (found.tries[0].outcome, found.limit),
            (TryOutcome::TooFewSamples, Limit::Server)
        );

        let capped = SearchOptions { high: Some(PerSecond(200.0)), ..options.clone() };
        let found = run(&capped, |rate| in_a_second(rate, 1e5));
        assert_eq!((found.limit, found.ending), (Limit::Samples, SearchEnding::NoneGood));
        assert_eq!((found.highest_good, found.lowest_bad), (None, None), "nothing is known");
        assert_eq!(found.tries.last().unwrap().rate, PerSecond(200.0));

        // Every rate with enough requests is bad; below them nothing can be known.
        let found = run(&options, |rate| in_a_second(rate, 100.0));
        assert_eq!((found.limit, found.ending), (Limit::Samples, SearchEnding::NoneGood));
        let bad = found.lowest_bad.unwrap();
        let is_sparse = |t: &Try| t.outcome == TryOutcome::TooFewSamples;
        let highest =
            found.tries.iter().filter(|t| is_sparse(t)).map(|t| t.rate.0).fold(0.0, f64::max);
        assert!(highest < bad.0 && bad.0 / highest <= 1.05, "{highest} {bad}");
        assert_eq!(found.highest_good, None);
    }

    #[test]
    fn rates_with_too_few_requests_above_good_ones_are_not_filled_up() {
        // Good up to 220; up to 440 (or for good) nearly half of all fails at once, and few are left.
        for worst in [440.0, 1e9] {
            let goals = parse_goals("p99<100ms").unwrap();
            let high = Some(PerSecond(5000.0));
            let found = run(&SearchOptions { goals, high, ..options() }, |rate| {
                let mut load = in_a_second(PerSecond(10_000.0), 1e9);
                if rate.0 > 220.0 {
                    load.latencies.response.clear();
                }
                if rate.0 > worst {
                    (load.requests.ok, load.requests.failed) = (0, load.requests.done);
                }
                load
            });
            let good = found.highest_good.unwrap().0;
            assert!(good <= 220.0 && good * 1.05 > 220.0 && found.tries.len() < 30, "{found:?}");
            let certain = found.tries.iter().filter(|t| t.rate.0 == good).count();
            assert_eq!((certain, found.ending), (3, SearchEnding::Noisy));
            let limit = if worst > 1e6 { Limit::Samples } else { Limit::Server };
            assert_eq!((found.limit, found.ambiguous()), (limit, vec![]));
        }
    }

    /// Rates are cut into bands, each of which holds, fails, is too short to tell, or is one by chance.
    #[test]
    fn whatever_the_bands_every_search_ends_and_says_only_what_was_tried() {
        let empty = Queue::new(1e6, 0.0, 1).empty;
        for seed in 0..2000 {
            let mut chance = Pcg64Mcg::seed_from_u64(seed);
            let mut edge = 10.0;
            let bands: Vec<(f64, u32)> = (0..chance.random_range(1..6))
                .map(|_| {
                    edge *= 1.0 + 4.0 * chance.random::<f64>();
                    (edge, chance.random_range(0..5))
                })
                .collect();
            let high = chance.random::<bool>().then_some(PerSecond(3000.0));
            let options = SearchOptions { high, tries_max: 500, ..options() };
            let found = run(&options, |rate| {
                let band =
                    bands.iter().find(|(edge, _)| rate.0 < *edge).map_or(1, |(_, kind)| *kind);
                let kind = if band == 4 { chance.random_range(0..3) } else { band };
                let mut load = empty.clone();
                load.requests = RequestCounts { started: 100, done: 100, ok: 100, ..load.requests };
                load.open_loop = Some(OpenLoop { due: 100, ..OpenLoop::default() });
                let (n, span) = [(1000, 1), (1000, 500), (5, 1), (1000, 1)][kind as usize];
                (0..n).for_each(|_| load.latencies.response.record(Nanos::from_millis(span)));
                load
            });
            let count = |rate: Option<PerSecond>, is: fn(&Try) -> bool| {
                found.tries.iter().filter(|t| Some(t.rate) == rate && is(t)).count()
            };
            let (good, bad) = (found.highest_good, found.lowest_bad);
            assert!(found.tries.len() < 500, "{seed}: {bands:?} {:?}", found.ending);
            let is_bad = |t: &Try| !t.is_good() && !t.is_sparse();
            assert!(good.is_none() || count(good, Try::is_good) >= 3, "{seed}: {bands:?} {good:?}");
            assert!(bad.is_none() || count(bad, is_bad) >= 3, "{seed}: {bands:?} {bad:?}");
            assert!(good.zip(bad).is_none_or(|(good, bad)| good < bad), "{seed}");
            let narrow = good.zip(bad).is_some_and(|(good, bad)| bad.0 / good.0 <= 1.0501);
            match found.ending {
                SearchEnding::Narrow => assert!(narrow, "{seed}: {good:?} {bad:?}"),
                SearchEnding::AllGood => assert!(bad.is_none() && good.is_some(), "{seed}"),
                SearchEnding::NoneGood => assert!(good.is_none(), "{seed}: {good:?}"),
                SearchEnding::Noisy => {
                    let has_sparse = found.tries.iter().any(Try::is_sparse);
                    assert!(has_sparse || !found.ambiguous().is_empty(), "{seed}: {bands:?}");
                    let above = found
                        .tries
                        .iter()
                        .map(|t| t.rate.0)
                        .filter(|r| Some(*r) > good.map(|g| g.0));
                    let next = above.fold(f64::INFINITY, f64::min);
                    assert!(
                        good.is_none_or(|good| next / good.0 <= 1.0501),
                        "{seed}: {good:?} {next}"
                    );
                }
                ending => panic!("{seed}: {ending:?}"),
            }
        }
    }

    #[test]
    fn a_server_that_refuses_most_requests_is_not_taken_for_a_short_try() {
        let goals = parse_goals("p99<100ms").unwrap();
        let found = run(&SearchOptions { goals, ..options() }, |rate| {
            let mut load = in_a_second(PerSecond(10_000.0), 1e9);
            if rate.0 > 300.0 {
                load.latencies.response.clear();
                (load.requests.ok, load.requests.failed) = (0, load.requests.done);
            }
            load
        });
        assert!(found.highest_good.unwrap().0 <= 300.0 && found.lowest_bad.unwrap().0 > 300.0);
    }

    #[test]
    fn a_rate_at_which_most_fail_does_not_hold_unless_a_goal_says_how_many_may() {
        let outcome = |goals: &str, n: u64, failed: u64| {
            let mut load = in_a_second(PerSecond(10_000.0), 1e9);
            load.requests =
                RequestCounts { started: n, done: n, ok: n - failed, failed, ..load.requests };
            load.open_loop = Some(OpenLoop { due: n, ..OpenLoop::default() });
            Try::of(PerSecond(100.0), &parse_goals(goals).unwrap(), &load).outcome
        };
        assert_eq!(outcome("p99<1s", 1000, 501), TryOutcome::MostlyFailed);
        assert_eq!(outcome("p99<1s", 1000, 500), TryOutcome::Held);
        assert_eq!(outcome("p99<1s,errors<60%", 1000, 501), TryOutcome::Held);
        assert_eq!(outcome("p99<1s,errors<40%", 1000, 501), TryOutcome::Broken);
        // One failure in one request proves nothing.
        assert_eq!(outcome("p99<1s", 1, 1), TryOutcome::TooFewSamples);
    }

    #[test]
    fn options_that_make_no_search_are_refused() {
        let rate = |r| Some(PerSecond(r));
        let wrong = [
            SearchOptions::new(Vec::new()),
            SearchOptions::new(parse_goals("p99<1s,rate>10/s").unwrap()),
            SearchOptions { low: rate(10.0), high: rate(5.0), ..options() },
            SearchOptions { low: rate(0.0), ..options() },
            SearchOptions { precision: Share(0.0), ..options() },
            SearchOptions { repeats: 0, ..options() },
            SearchOptions { tries_max: 0, ..options() },
        ];
        assert!(wrong.iter().all(|options| options.check().is_err()));
        assert_eq!(options().check(), Ok(()));
    }
}
