//! Owns the check for a machine that was short of memory. Start reading at [`look`].
//!
//! Pages that go to a disk and come back cost milliseconds each, at instants that no server chooses; a process
//! that the kernel kills takes its connections along. Both counters are the machine's: they do not say who was
//! short. So the finding is a note on all contenders in whose visits they moved.

use record::{Certainty, MachineSeries, Question, Severity};

use super::Check;
use crate::{Evidence, Observation, counters, words};

/// See the module.
pub(crate) const ITEM: Check = Check {
    name: "swapping",
    severity: Severity::Note,
    question: Question::DidItBreakALimit,
    spares_like_pairs: false,
    title: "the machine was short of memory",
    meaning: "requests waited for pages from a disk, or processes were killed, and no figure tells them apart",
    remedy: "give the machine more memory, stop other programs, or let the server use less (fewer workers, \
             smaller caches); turn swap off while you measure (swapoff -a)",
    detection: "Pages swapped in and out while loads ran, 256 or more (1 MB), or processes that the kernel \
             killed for want of memory. It is confirmed by a kill, or if something waited for memory meanwhile",
    example: "a server with a cache that is larger than the memory of its machine",
    source: "https://docs.kernel.org/admin-guide/mm/concepts.html; \
             https://docs.kernel.org/accounting/psi.html",
    needs: &[&counters::VMSTAT, &counters::PRESSURE_MEMORY],
    look,
};

/// Pages in all visits of a contender: what a calm machine moves now and then is less.
const PAGES_MIN: i64 = 256;

#[derive(Debug, Default)]
struct Sums {
    pages: i64,
    killed: i64,
    waited_us: i64,
    seconds: f64,
}

fn look(evidence: &Evidence) -> Vec<Observation> {
    evidence.contenders().filter_map(|contender| look_at(evidence, contender)).collect()
}

fn look_at(evidence: &Evidence, contender: usize) -> Option<Observation> {
    let mut sums = Sums::default();
    for visit in evidence.run.measured(contender) {
        if let Some(around) = &visit.surroundings {
            sums.add(&around.series);
        }
    }
    let is_swapping = sums.pages >= PAGES_MIN;
    if !is_swapping && sums.killed == 0 {
        return None;
    }
    let is_sure = sums.killed > 0 || sums.waited_us > 0;
    let waited = sums.waited_us as f64 / 1e6 / sums.seconds.max(f64::MIN_POSITIVE);
    let evidence = format!(
        "{}: while its visits were made the machine swapped {} and killed {} for want of memory; something \
         waited for memory for {} of the time",
        evidence.name(contender),
        words::count(sums.pages.max(0) as u64, "page"),
        match sums.killed {
            0 => "no process".to_owned(),
            1 => "1 process".to_owned(),
            n => format!("{n} processes"),
        },
        words::percent(waited),
    );
    Some(Observation {
        certainty: if is_sure { Certainty::Confirmed } else { Certainty::Suspected },
        share: (sums.waited_us > 0).then_some(waited.min(1.0)),
        contenders: vec![contender],
        evidence,
    })
}

impl Sums {
    fn add(&mut self, series: &MachineSeries) {
        let change = |counter: &str| series.change(counter).unwrap_or(0).max(0);
        self.pages += change("vmstat.pswpin") + change("vmstat.pswpout");
        self.killed += change("vmstat.oom_kill");
        self.waited_us += change("pressure.memory.some_us");
        self.seconds += series.length().as_secs_f64();
    }
}

#[cfg(test)]
mod tests {
    use record::{Course, RunRecord, Surroundings};
    use units::Nanos;

    use super::*;
    use crate::testdata;

    fn with(moved: &[(&str, i64)]) -> RunRecord {
        let mut run = testdata::run(&["a", "b"], 8);
        for visit in run.visits.iter_mut().filter(|visit| visit.contender == 0) {
            let mut around = Surroundings::default();
            around.series.at = vec![Nanos::ZERO, Nanos::from_secs(1)];
            around.series.sources = ["vmstat", "pressure.memory"].map(str::to_owned).into();
            for (counter, by) in moved {
                let course = Course { first: 5, steps: vec![*by] };
                around.series.counters.insert((*counter).to_owned(), course);
            }
            visit.surroundings = Some(Box::new(around));
        }
        run
    }

    fn seen(moved: &[(&str, i64)]) -> Vec<Observation> {
        look(&Evidence::of(&with(moved)))
    }

    #[test]
    fn pages_and_kills_fire_and_waiting_confirms_them() {
        let pages = [("vmstat.pswpin", 100), ("vmstat.pswpout", 100)];
        let alone = seen(&pages);
        assert_eq!((alone.len(), alone[0].certainty), (1, Certainty::Suspected));
        let waited = seen(&[pages[0], pages[1], ("pressure.memory.some_us", 50_000)]);
        assert_eq!(waited[0].certainty, Certainty::Confirmed);
        let text =
            "a: while its visits were made the machine swapped 1,600 pages and killed no process";
        assert!(waited[0].evidence.starts_with(text), "{}", waited[0].evidence);
        assert!((waited[0].share.unwrap() - 0.05).abs() < 1e-9);
        let half = seen(&[pages[0], pages[1], ("pressure.memory.some_us", 25_000)]);
        assert!((half[0].share.unwrap() - 0.025).abs() < 1e-9);
        assert_eq!(seen(&[("vmstat.oom_kill", 1)])[0].certainty, Certainty::Confirmed);
    }

    #[test]
    fn a_few_pages_waiting_alone_and_unknown_counters_are_silent() {
        assert_eq!(seen(&[("vmstat.pswpin", 3), ("pressure.memory.some_us", 50_000)]), []);
        assert_eq!(seen(&[]), []);
        assert_eq!(look(&Evidence::of(&testdata::run(&["a", "b"], 8))), []);
    }
}
