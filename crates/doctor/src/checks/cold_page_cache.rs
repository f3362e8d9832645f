//! Owns the check for a server that had to read from a disk before it was fast. Start reading at [`look`].
//!
//! Files that are not in the page cache are read from a disk once, and then never again. A measurement that
//! begins with that is the mean of a disk and of memory. The kernel counts the pages of the server's own programs
//! and mapped files that came from a disk (major faults); one or two of those are usual, and the rate has to be
//! lower at first as well.

use record::{Certainty, LoadRecord, Question, Severity, Visit};
use units::Nanos;

use super::Check;
use crate::first_part::FirstPart;
use crate::{Evidence, Observation, counters, words};

/// See the module.
pub(crate) const ITEM: Check = Check {
    name: "cold_page_cache",
    severity: Severity::Void,
    question: Question::DoesItReproduce,
    spares_like_pairs: false,
    title: "pages were read from a disk while it was measured, and the first part was slower",
    meaning: "the rate is in part that of a disk, and the next measurement will not have it",
    remedy: "read all files once before measuring (a first load that does not count, vmtouch -t), or measure \
             cold on purpose and drop the cache before each visit",
    detection: "Major faults of the server in three quarters of the visits, each with a first part that is \
             slower by more than 2 % and five standard errors, and enough of them to explain that at 20 ms \
             each; of a load alone, major faults of the machine, which leaves it suspected",
    example: "a site of several GB right after a restart of its machine",
    source: "https://docs.kernel.org/admin-guide/mm/concepts.html; getrusage(2), ru_majflt",
    needs: &[&counters::VMSTAT],
    look,
};

const VISITS_SHARE_MIN: f64 = 0.75;
/// What reading a page may take of a slow disk. Pages that explain less than was lost are somebody else's.
const READ_MAX: Nanos = Nanos::from_millis(20);
/// The mean lowers the rate by this much, or it changes no verdict: the margin of studies.
const SHARE_MIN: f64 = 0.02;

fn look(evidence: &Evidence) -> Vec<Observation> {
    evidence.contenders().filter_map(|contender| look_at(evidence, contender)).collect()
}

/// Pages that came from a disk.
#[derive(Debug, Clone, Copy)]
struct Faults {
    pages: u64,
    /// Whether they are the server's own.
    are_own: bool,
}

fn look_at(evidence: &Evidence, contender: usize) -> Option<Observation> {
    let visits: Vec<(&Visit, &LoadRecord)> = evidence.loads(contender).collect();
    let cold: Vec<(Faults, FirstPart)> = visits
        .iter()
        .filter_map(|(visit, load)| {
            let faults = faults(visit).filter(|faults| faults.pages > 0)?;
            let part = FirstPart::of(visit, load)
                .filter(|part| part.slower > 0.0 && !part.may_be_the_machine())?;
            let lost = part.share * load.seconds;
            (READ_MAX.as_secs_f64() * faults.pages as f64 >= lost).then_some(())?;
            Some((faults, part))
        })
        .collect();
    let share = cold.iter().map(|(_, part)| part.share).sum::<f64>() / visits.len().max(1) as f64;
    let is_most = cold.len() as f64 >= VISITS_SHARE_MIN * visits.len() as f64;
    if cold.is_empty() || !is_most || share < SHARE_MIN {
        return None;
    }
    let are_own = cold.iter().all(|(faults, _)| faults.are_own);
    let evidence = format!(
        "{}: in {} of {} the first part was slower, and {} of {} were read from a disk, so that the rate is {} \
         below the later one",
        evidence.name(contender),
        cold.len(),
        words::count(visits.len() as u64, "visit"),
        words::count(cold.iter().map(|(faults, _)| faults.pages).sum(), "page"),
        if are_own { "the server" } else { "the machine's programs" },
        words::percent(share),
    );
    let certainty = if are_own { Certainty::Confirmed } else { Certainty::Suspected };
    Some(Observation { certainty, share: Some(share), contenders: vec![contender], evidence })
}

fn faults(visit: &Visit) -> Option<Faults> {
    let around = visit.surroundings.as_ref()?;
    let own = around.processes.map(|used| Faults { pages: used.faults_major, are_own: true });
    let of_machine = || {
        let pages = around.series.change("vmstat.pgmajfault")?.max(0) as u64;
        Some(Faults { pages, are_own: false })
    };
    own.or_else(of_machine)
}

#[cfg(test)]
mod tests {
    use record::{Course, ProcessesUse, RunRecord, Surroundings};
    use units::Nanos;

    use super::*;
    use crate::simulated::{CUT, Loop};

    fn seen(run: &RunRecord) -> Vec<Observation> {
        look(&Evidence::of(run))
    }

    /// Eight visits of a, slower until then, with a given number of faults each.
    fn with(until_ms: u64, faults_major: u64) -> RunRecord {
        let (delay, delay_until) = (Nanos::from_millis(5), Nanos::from_millis(until_ms));
        let cold = Loop { delay, delay_until, ..Loop::clean(4, 20_000.0) };
        let mut run = Loop::run(&[cold], &["a"], 8, 1);
        for visit in &mut run.visits {
            let processes = Some(ProcessesUse { faults_major, ..ProcessesUse::default() });
            visit.surroundings =
                Some(Box::new(Surroundings { processes, ..Surroundings::default() }));
        }
        run
    }

    #[test]
    fn faults_with_a_slower_first_part_are_confirmed_and_half_as_long_is_half_the_share() {
        let whole = seen(&with(450, 40));
        assert_eq!((whole.len(), whole[0].certainty), (1, Certainty::Confirmed));
        let text =
            "a: in 8 of 8 visits the first part was slower, and 320 pages of the server were read";
        assert!(whole[0].evidence.starts_with(text), "{}", whole[0].evidence);
        let half = seen(&with(300, 40));
        let ratio = half[0].share.unwrap() / whole[0].share.unwrap();
        assert!((ratio - 0.5).abs() < 0.1, "{ratio}");
    }

    #[test]
    fn one_without_the_other_is_silent() {
        assert_eq!(seen(&with(450, 0)), []);
        assert_eq!(seen(&with(0, 40)), []);
        assert_eq!(seen(&with(450, 1)), [], "one page is not so slow");
    }

    #[test]
    fn faults_of_the_machine_leave_it_suspected() {
        let mut run = with(450, 0);
        run.visits.truncate(1);
        let around = run.visits[0].surroundings.as_mut().unwrap();
        around.processes = None;
        around.series.sources.insert("vmstat".to_owned());
        let course = Course { first: 5, steps: vec![40] };
        around.series.counters.insert("vmstat.pgmajfault".to_owned(), course);
        assert_eq!(run.visits[0].cut, CUT);
        assert_eq!(seen(&run)[0].certainty, Certainty::Suspected);
    }
}
