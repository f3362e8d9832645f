//! Owns what a check may look at, and the views of it that several checks share. Start reading at [`Evidence`].

use record::{LoadRecord, RunRecord, Visit};

/// A run, finished or broken off.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    /// Its record; findings and verdicts in it are not looked at.
    pub run: &'a RunRecord,
}

impl<'a> Evidence<'a> {
    /// Of a run.
    pub fn of(run: &'a RunRecord) -> Self {
        Self { run }
    }

    /// Whether it is a load that was no part of a run ([`crate::examine_load`]).
    pub(crate) fn is_alone(self) -> bool {
        self.run.plan.contenders.len() == 1 && self.run.plan.blocks.max == 1
    }

    /// Index of every contender.
    pub(crate) fn contenders(self) -> std::ops::Range<usize> {
        0..self.run.plan.contenders.len()
    }

    /// Name of a contender.
    pub(crate) fn name(self, contender: usize) -> &'a str {
        &self.run.plan.contenders[contender].name
    }

    /// Names of contenders, as in a sentence: "a, b and c".
    pub(crate) fn names(self, contenders: &[usize]) -> String {
        let names: Vec<&str> = contenders.iter().map(|&contender| self.name(contender)).collect();
        crate::words::list(&names)
    }

    /// Threads of the generator in a visit: no more CPUs than these can be busy.
    pub(crate) fn threads(self, visit: &Visit) -> u32 {
        self.run.plan.work(visit.cell, visit.contender).threads.max(1)
    }

    /// Measured visits of a contender, each with its load.
    pub(crate) fn loads(
        self,
        contender: usize,
    ) -> impl Iterator<Item = (&'a Visit, &'a LoadRecord)> {
        self.run.measured(contender).filter_map(|visit| Some((visit, visit.load.as_ref()?)))
    }
}
