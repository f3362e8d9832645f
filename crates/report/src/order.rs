//! Owns who is proved ahead of whom on one metric: a partial order, because neither of two contenders may be ahead.
//! It says nothing that no verdict says: from a over b and b over c it does not conclude a over c. Must not know
//! words or layout. Start reading at [`Order`].

use record::{Metric, Verdict};

use crate::wording::Reading;

/// The verdicts of one metric as an order of the contenders.
#[derive(Debug)]
pub(crate) struct Order<'a> {
    pub(crate) metric: Metric,
    pub(crate) readings: Vec<&'a Reading>,
    /// Contenders with a verdict that is not withheld, in the order in which they were given: best figure
    /// first.
    pub(crate) compared: Vec<usize>,
}

impl<'a> Order<'a> {
    /// Uses those of all `readings` that concern the metric; `sequence`: contenders by their figures, best first.
    pub(crate) fn new(
        metric: Metric,
        readings: &'a [Reading],
        sequence: impl Iterator<Item = usize>,
    ) -> Self {
        let readings: Vec<&Reading> = readings.iter().filter(|one| one.metric == metric).collect();
        let says = |one: &&&Reading| !matches!(one.verdict, Verdict::Withheld { .. });
        let sides = || readings.iter().filter(says).flat_map(|one| [one.this, one.that]);
        let mut compared: Vec<usize> = Vec::new();
        for index in sequence.filter(|index| sides().any(|side| side == *index)).chain(sides()) {
            if !compared.contains(&index) {
                compared.push(index);
            }
        }
        Self { metric, readings, compared }
    }

    /// The verdict on two contenders.
    pub(crate) fn between(&self, left: usize, right: usize) -> Option<&'a Reading> {
        self.readings.iter().copied().find(|reading| reading.is_between(left, right))
    }

    /// By what factor at least `left` is better than `right`; `None` if it is not proved ahead.
    pub(crate) fn lead(&self, left: usize, right: usize) -> Option<f64> {
        let reading = self.between(left, right)?;
        (reading.ahead() == Some(left)).then(|| reading.at_least()).flatten()
    }

    /// The contenders that nobody is proved ahead of.
    pub(crate) fn first(&self) -> Vec<usize> {
        let is_behind = |index: usize| self.compared.iter().any(|&o| self.lead(o, index).is_some());
        self.compared.iter().copied().filter(|&index| !is_behind(index)).collect()
    }

    /// Whether every two of the compared contenders have a verdict; otherwise they were compared with a reference.
    pub(crate) fn is_whole(&self) -> bool {
        self.compared.iter().enumerate().all(|(at, &left)| {
            self.compared[at + 1..].iter().all(|&right| self.between(left, right).is_some())
        })
    }

    /// The verdicts between some contenders.
    pub(crate) fn among(&self, some: &[usize]) -> Vec<&'a Reading> {
        let is_in =
            |reading: &&Reading| [reading.this, reading.that].iter().all(|i| some.contains(i));
        self.readings.iter().copied().filter(is_in).collect()
    }
}
