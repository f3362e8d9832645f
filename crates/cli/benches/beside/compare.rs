//! One figure of two programs, paired by block: its ratio with the interval, and the bar that it
//! must clear. Start reading at [`Compared`].

use super::Outcome;

/// The required ratio.
#[derive(Clone, Copy)]
pub enum Bar {
    AtLeast(f64),
    AtMost(f64),
}

/// One figure of both programs.
pub struct Compared {
    pub median_ours: f64,
    pub median_theirs: f64,
    pub ratio: Ratio,
    pub bar: Option<Bar>,
}

/// Paired by block, with its 95 % interval.
pub struct Ratio {
    pub ratio: f64,
    pub interval: Option<(f64, f64)>,
}

impl Compared {
    /// The ratio of the runs at `ours` and `theirs` in each block.
    pub fn of<T>(
        blocks: &[Vec<T>],
        (ours, theirs): (usize, usize),
        of: fn(&T) -> f64,
        bar: Option<Bar>,
    ) -> Outcome<Self> {
        Ok(Self {
            median_ours: median(blocks, ours, of),
            median_theirs: median(blocks, theirs, of),
            ratio: ratio(blocks, ours, theirs, of)?,
            bar,
        })
    }

    /// The estimate decides; the interval shows how certain it is. `None` without a bar.
    pub fn reached(&self) -> Option<bool> {
        self.bar.map(|bar| match bar {
            Bar::AtLeast(bar) => self.ratio.ratio >= bar,
            Bar::AtMost(bar) => self.ratio.ratio <= bar,
        })
    }

    /// `1.310x [1.280, 1.340], at least 1.30: reached`.
    pub fn verdict(&self) -> String {
        let bar = match self.bar {
            Some(Bar::AtLeast(bar)) => format!(", at least {bar:.2}"),
            Some(Bar::AtMost(bar)) => format!(", at most {bar:.2}"),
            None => String::new(),
        };
        let word = match self.reached() {
            Some(true) => ": reached",
            Some(false) => ": MISSED",
            None => "",
        };
        format!("{}{bar}{word}", self.ratio.text())
    }
}

impl Ratio {
    fn text(&self) -> String {
        match self.interval {
            Some((low, high)) => format!("{:.3}x [{low:.3}, {high:.3}]", self.ratio),
            None => format!("{:.3}x [too few blocks]", self.ratio),
        }
    }
}

/// The median of one figure over the blocks.
pub fn median<T>(blocks: &[Vec<T>], index: usize, of: fn(&T) -> f64) -> f64 {
    let values: Vec<f64> = blocks.iter().map(|block| of(&block[index])).collect();
    stats::median(&values).unwrap_or(f64::NAN)
}

/// The ratio of one figure of two runs of each block.
pub fn ratio<T>(blocks: &[Vec<T>], over: usize, under: usize, of: fn(&T) -> f64) -> Outcome<Ratio> {
    let pairs: Vec<(f64, f64)> =
        blocks.iter().map(|block| (of(&block[over]), of(&block[under]))).collect();
    let paired = stats::Paired::of(&pairs)?;
    let interval = paired.interval.map(|interval| (interval.low, interval.high));
    Ok(Ratio { ratio: paired.ratio, interval })
}

/// How many bars there are, and how many were reached.
pub fn count_bars<'a>(compared: impl Iterator<Item = &'a Compared>) -> String {
    let bars: Vec<bool> = compared.filter_map(Compared::reached).collect();
    let reached = bars.iter().filter(|reached| **reached).count();
    format!("{} bars: {reached} reached, {} missed", bars.len(), bars.len() - reached)
}
