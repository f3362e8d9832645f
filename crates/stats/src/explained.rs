//! Owns how much of a difference of two mean latencies is stalls and how much is service time. Must not know whose
//! latencies they are, nor what stalled them. Start reading at [`explain`].
//!
//! A distribution is a main mode and, further out, stall modes: the few requests that waited for a timer, a queue or a
//! pause. Its mean is E = (1 - p) m + p s, with p the share of stalls, m the mean of the main mode and s that of the
//! stalls. Two things differ between a and b: m and (p, s). So E_A - E_B, and likewise ln E_A - ln E_B, is divided by
//! Shapley values: each of the two is exchanged first and second, and its part is the mean of both orders (Kitagawa
//! 1955, Oaxaca and Blinder 1973 for means; Shapley 1953). The parts add up exactly, and swapping a and b only changes
//! the sign. At a fixed number of connections throughput is connections over mean response time, so the parts of ln X
//! are those of ln E with the opposite sign.
//!
//! The histogram shows where the stalls begin, in bins of 9 %: at the lowest bin between the highest peak and a later
//! one that is far out and clearly higher. A tail that only thins out is no stall.

use units::Nanos;

use crate::bca::bca_intervals;
use crate::confidence::ConfidenceInterval;
use crate::histogram::Histogram;

/// Bins per octave.
const BINS_PER_OCTAVE: f64 = 8.0;
/// Shortest distance from the main peak to a stall: two octaves, 4 times as long. Nearer modes are a server's own
/// (cache hit or miss).
const BINS_APART: usize = 16;
/// A later peak counts from this many times the lowest bin before it ...
const RISE: u64 = 4;
/// ... and this many requests more: a tail of bins of 0 to 3 requests has no peaks.
const RISE_MIN: u64 = 10;

/// A mode beyond the main one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StallMode {
    /// Shortest span counted to it.
    pub from: Nanos,
    /// Its share of all requests, 0 to 1.
    pub share: f64,
    /// Mean of its spans, ns.
    pub mean_ns: f64,
}

/// One side, taken apart.
#[derive(Debug, Clone, PartialEq)]
pub struct SideModes {
    /// Mean of all, ns.
    pub mean_ns: f64,
    /// Mean of the main mode, ns.
    pub main_ns: f64,
    /// The modes beyond it, rising; empty if nothing stalls.
    pub stalls: Vec<StallMode>,
}

/// The contribution of one of the two causes to a minus b.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Contribution {
    /// To the difference of the means, ns.
    pub difference_ns: f64,
    /// To ln of the ratio of the means.
    pub ln: f64,
    /// 95 % interval of `ln` by BCa over blocks; `None` with too few blocks.
    pub ln_interval: Option<ConfidenceInterval>,
}

/// A difference of two mean latencies, explained.
#[derive(Debug, Clone, PartialEq)]
pub struct Explained {
    /// The side that is the numerator.
    pub a: SideModes,
    /// The other.
    pub b: SideModes,
    /// What the means of the main modes contribute.
    pub service: Contribution,
    /// What the stalls contribute, by how many and how long they are.
    pub stalls: Contribution,
}

impl Explained {
    /// The stalls' share of ln(E_A / E_B): 1 if they explain all of it, above 1 or below 0 if the two causes pull in
    /// opposite directions. `None` if the means differ by less than 0.1 %, the resolution of a histogram: there is no
    /// difference to share out.
    pub fn stall_share(&self) -> Option<f64> {
        let total = self.service.ln + self.stalls.ln;
        (total.abs() >= 0.001).then(|| self.stalls.ln / total)
    }
}

/// Explains the difference of the mean latencies of a and b over blocks. `None` if a side has no requests. The same
/// seed gives the same intervals.
pub fn explain(blocks: &[(&Histogram, &Histogram)], seed: u64) -> Option<Explained> {
    let merged = |side: fn(&(&Histogram, &Histogram)) -> Bins| {
        let mut bins = Bins::default();
        blocks.iter().for_each(|block| bins.add(&side(block)));
        bins
    };
    let (bins_a, bins_b) = (merged(|(a, _)| Bins::of(a)), merged(|(_, b)| Bins::of(b)));
    let (found_a, found_b) = (bins_a.boundaries()?, bins_b.boundaries()?);
    let cut_a = cut(&bins_a, &found_a, &found_b);
    let cut_b = cut(&bins_b, &found_b, &found_a);
    let sums: Vec<[Sums; 2]> =
        blocks.iter().map(|(a, b)| [Sums::of(a, cut_a), Sums::of(b, cut_b)]).collect();
    let over = |chosen: &[usize]| {
        let mut both = [Sums::default(); 2];
        for block in chosen {
            both.iter_mut().zip(&sums[*block]).for_each(|(sum, of)| sum.add(of));
        }
        Some([both[0].parts()?, both[1].parts()?])
    };
    let all: Vec<usize> = (0..blocks.len()).collect();
    let [a, b] = over(&all)?;
    let [of_service_ln, of_stalls_ln] = bca_intervals(blocks.len(), seed, |chosen| {
        over(chosen).map(|[a, b]| [of_service(a, b, f64::ln), of_stalls(a, b, f64::ln)])
    });
    let contribution = |part: Part, ln_interval| Contribution {
        difference_ns: part(a, b, |mean| mean),
        ln: part(a, b, f64::ln),
        ln_interval,
    };
    let side = |bins: &Bins, cut, own: &[usize], parts: Parts| SideModes {
        mean_ns: parts.mean(),
        main_ns: parts.main_ns,
        stalls: bins.stall_modes(cut, own),
    };
    Some(Explained {
        a: side(&bins_a, cut_a, &found_a, a),
        b: side(&bins_b, cut_b, &found_b, b),
        service: contribution(of_service, of_service_ln),
        stalls: contribution(of_stalls, of_stalls_ln),
    })
}

/// The first bin of a side's stalls. If only the other side shows a mode (this one has only a handful of requests
/// there), the other's cut holds for both, as long as it lies far out for this side too.
fn cut(bins: &Bins, own: &[usize], others: &[usize]) -> usize {
    let main = bins.peak().unwrap_or(0);
    let borrowed = others.first().copied().filter(|bin| *bin >= main + BINS_APART);
    let first = [own.first().copied(), borrowed].into_iter().flatten().min();
    first.unwrap_or(usize::MAX)
}

/// The scale on which means are compared: the mean itself, or its logarithm.
type Scale = fn(f64) -> f64;
/// What one of the causes contributes to a minus b.
type Part = fn(Parts, Parts, Scale) -> f64;

/// Shapley value of the main mode's mean: exchanged before the stalls and after them.
fn of_service(a: Parts, b: Parts, scale: Scale) -> f64 {
    let with = |service: Parts, stalls: Parts| scale(stalls.served_in(service.main_ns).mean());
    f64::midpoint(with(a, a) - with(b, a), with(a, b) - with(b, b))
}

/// Shapley value of the stalls: exchanged before the main mode and after it.
fn of_stalls(a: Parts, b: Parts, scale: Scale) -> f64 {
    let with = |service: Parts, stalls: Parts| scale(stalls.served_in(service.main_ns).mean());
    f64::midpoint(with(a, a) - with(a, b), with(b, a) - with(b, b))
}

/// The components of a mean.
#[derive(Clone, Copy)]
struct Parts {
    main_ns: f64,
    /// Share of stalls.
    share: f64,
    /// Mean of the stalls; 0 if there are none.
    stall_ns: f64,
}

impl Parts {
    /// The same stalls with another main mode.
    fn served_in(self, main_ns: f64) -> Self {
        Self { main_ns, ..self }
    }

    fn mean(&self) -> f64 {
        (1.0 - self.share) * self.main_ns + self.share * self.stall_ns
    }
}

/// Counts and sums of a side, below and above its cut.
#[derive(Default, Clone, Copy)]
struct Sums {
    main: f64,
    main_ns: f64,
    stalls: f64,
    stalls_ns: f64,
}

impl Sums {
    fn of(histogram: &Histogram, cut: usize) -> Self {
        let mut sums = Self::default();
        for (span, count) in histogram.buckets() {
            let (count, ns) = (count as f64, count as f64 * span.0 as f64);
            match bin(span) < cut {
                true => (sums.main, sums.main_ns) = (sums.main + count, sums.main_ns + ns),
                false => (sums.stalls, sums.stalls_ns) = (sums.stalls + count, sums.stalls_ns + ns),
            }
        }
        sums
    }

    fn add(&mut self, other: &Self) {
        self.main += other.main;
        self.main_ns += other.main_ns;
        self.stalls += other.stalls;
        self.stalls_ns += other.stalls_ns;
    }

    /// `None` if the main mode has no requests.
    fn parts(&self) -> Option<Parts> {
        let stall_ns = if self.stalls > 0.0 { self.stalls_ns / self.stalls } else { 0.0 };
        let share = self.stalls / (self.main + self.stalls);
        (self.main > 0.0).then(|| Parts { main_ns: self.main_ns / self.main, share, stall_ns })
    }
}

fn bin(span: Nanos) -> usize {
    ((span.0.max(1) as f64).log2() * BINS_PER_OCTAVE) as usize
}

/// Shortest span of a bin.
fn bin_start(bin: usize) -> Nanos {
    Nanos((bin as f64 / BINS_PER_OCTAVE).exp2().ceil() as u64)
}

/// Counts and sums of spans by bin.
#[derive(Default)]
struct Bins {
    counts: Vec<u64>,
    sums_ns: Vec<f64>,
}

impl Bins {
    fn of(histogram: &Histogram) -> Self {
        let mut bins = Self::default();
        for (span, count) in histogram.buckets() {
            bins.grow(bin(span) + 1);
            bins.counts[bin(span)] += count;
            bins.sums_ns[bin(span)] += count as f64 * span.0 as f64;
        }
        bins
    }

    fn grow(&mut self, bins: usize) {
        let bins = bins.max(self.counts.len());
        self.counts.resize(bins, 0);
        self.sums_ns.resize(bins, 0.0);
    }

    fn add(&mut self, other: &Self) {
        self.grow(other.counts.len());
        self.counts.iter_mut().zip(&other.counts).for_each(|(to, count)| *to += count);
        self.sums_ns.iter_mut().zip(&other.sums_ns).for_each(|(to, sum)| *to += sum);
    }

    /// The bin with the most requests; `None` if there are none.
    fn peak(&self) -> Option<usize> {
        let most = self.counts.iter().max().filter(|most| **most > 0)?;
        self.counts.iter().position(|count| count == most)
    }

    /// The first bin of each stall mode, rising; `None` if there are no requests.
    fn boundaries(&self) -> Option<Vec<usize>> {
        let main = self.peak()?;
        let mut found = Vec::new();
        let mut slope = Slope::Rising { peak: self.counts[main] };
        for (bin, &count) in self.counts.iter().enumerate().skip(main + 1) {
            slope = match slope {
                Slope::Rising { peak } if count.max(1) * RISE > peak => {
                    Slope::Rising { peak: peak.max(count) }
                }
                Slope::Rising { .. } => Slope::Falling { low: count, first: bin, last: bin },
                Slope::Falling { low, first, last }
                    if count >= RISE * low + RISE_MIN && bin >= main + BINS_APART =>
                {
                    found.push(usize::midpoint(first, last) + 1);
                    Slope::Rising { peak: count }
                }
                Slope::Falling { low, .. } if count < low => {
                    Slope::Falling { low: count, first: bin, last: bin }
                }
                Slope::Falling { low, first, .. } if count == low => {
                    Slope::Falling { low, first, last: bin }
                }
                falling => falling,
            };
        }
        Some(found)
    }

    /// The stalls from bin `cut` on, divided where this side has valleys of its own.
    fn stall_modes(&self, cut: usize, own: &[usize]) -> Vec<StallMode> {
        let all: u64 = self.counts.iter().sum();
        let mut edges = vec![cut.min(self.counts.len())];
        edges.extend(own.iter().copied().filter(|edge| *edge > cut));
        edges.push(self.counts.len());
        let mode = |edges: &[usize]| {
            let count: u64 = self.counts[edges[0]..edges[1]].iter().sum();
            let sum: f64 = self.sums_ns[edges[0]..edges[1]].iter().sum();
            (count > 0).then(|| StallMode {
                from: bin_start(edges[0]),
                share: count as f64 / all as f64,
                mean_ns: sum / count as f64,
            })
        };
        edges.windows(2).filter_map(mode).collect()
    }
}

/// The state of a walk over the bins.
#[derive(Clone, Copy)]
enum Slope {
    /// On a mode; its highest bin so far.
    Rising { peak: u64 },
    /// Past a mode; the lowest count so far, and the bins that have it.
    Falling { low: u64, first: usize, last: usize },
}
