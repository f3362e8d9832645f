//! Owns the check that latencies were taken by a clock that is fine enough. Start reading at [`look`].
//!
//! A clock that counts milliseconds makes every latency a multiple of one: a median of 1.2 ms then reads as 1 or 2,
//! and two servers that differ by 10 % look alike. The greatest common divisor of exact latencies shows it: of
//! nanoseconds that a fine clock counted it is 1. And the kernel says which clock it reads: one that is read by the
//! device (HPET, ACPI) takes a microsecond or more of each request.

use record::{Certainty, LoadRecord, Question, Severity};
use units::Nanos;

use super::Check;
use crate::{Evidence, Observation, words};

/// See the module.
pub(crate) const ITEM: Check = Check {
    name: "coarse_clock",
    severity: Severity::Note,
    question: Question::DidItBreakALimit,
    spares_like_pairs: false,
    title: "the clock is too coarse or too slow for these latencies",
    meaning: "latencies are rounded to the clock's step, or hold the time that reading it takes",
    remedy: "let the kernel use the CPU's own clock (`echo tsc > \
             /sys/devices/system/clocksource/clocksource0/current_clocksource`, boot with tsc=reliable), or compare \
             rates only",
    detection: "All exact latencies of the raw log are multiples of a step of more than 1 % of their median \
                (suspected), or the kernel's clocksource is not one that is read without leaving the process \
                (confirmed)",
    example: "a virtual machine whose clocksource is `acpi_pm`",
    source: "clock_getres(2); Documentation/timers/timekeeping.rst",
    needs: &[],
    look,
};

/// Step over median latency from which rounding shows in the digits that are printed.
const STEP_SHARE_MIN: f64 = 0.01;
/// Exact latencies below which a common divisor may be chance.
const LATENCIES_MIN: usize = 100;
/// Clocks that are read in the process (vDSO), in tens of nanoseconds.
const FAST_CLOCKS: [&str; 7] = [
    "tsc",
    "kvm-clock",
    "arch_sys_counter",
    "hyperv_clocksource_tsc_page",
    "timebase",
    "tod",
    "riscv_clocksource",
];
/// In simulated time all spans are as round as its script.
const SIMULATED: &str = "sim";

fn look(evidence: &Evidence) -> Vec<Observation> {
    let clock = evidence.run.facts.named.get("clocksource").map(String::as_str);
    let slow = clock.filter(|clock| !FAST_CLOCKS.contains(clock));
    let by_kernel = slow.map(|clock| Observation {
        share: None,
        certainty: Certainty::Confirmed,
        contenders: Vec::new(),
        evidence: format!("all contenders: the kernel's clocksource is {clock}"),
    });
    let stepped = evidence.contenders().filter_map(|contender| look_at(evidence, contender, slow));
    by_kernel.into_iter().chain(stepped).collect()
}

fn look_at(evidence: &Evidence, contender: usize, slow: Option<&str>) -> Option<Observation> {
    let loads = evidence.loads(contender).filter(|(_, load)| load.engine != SIMULATED);
    let spans: Vec<u64> = loads.flat_map(|(_, load)| exact(load)).collect();
    let step = spans.iter().copied().reduce(common_divisor)?;
    let median = stats::median(&spans.iter().map(|&span| span as f64).collect::<Vec<_>>())?;
    let share = step as f64 / median;
    let distinct: std::collections::BTreeSet<u64> = spans.iter().copied().collect();
    if spans.len() < LATENCIES_MIN || share <= STEP_SHARE_MIN || distinct.len() < 2 {
        return None;
    }
    let evidence = format!(
        "{}: {} latencies have {} values, all multiples of {}, which is {} of their median",
        evidence.name(contender),
        words::grouped(spans.len() as u64),
        words::grouped(distinct.len() as u64),
        Nanos(step),
        words::percent(share),
    );
    let certainty = if slow.is_some() { Certainty::Confirmed } else { Certainty::Suspected };
    Some(Observation {
        share: Some(share.min(1.0)),
        certainty,
        contenders: vec![contender],
        evidence,
    })
}

/// Latencies of a load to the nanosecond, of requests that were answered.
fn exact(load: &LoadRecord) -> impl Iterator<Item = u64> {
    let answered = load.raw.iter().filter(|sample| sample.outcome == record::Outcome::Ok);
    answered.map(|sample| sample.done.0.saturating_sub(sample.sent.0)).filter(|&span| span > 0)
}

fn common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use record::RunRecord;

    use super::*;
    use crate::testdata;

    /// Latencies of about 1.2 to 9 ms, rounded to a given number of nanoseconds.
    fn rounded(step: u64) -> RunRecord {
        let mut run = testdata::run(&["a"], 2);
        for load in run.visits.iter_mut().filter_map(|visit| visit.load.as_mut()) {
            load.raw = (0..200_u64)
                .map(|n| {
                    let sent = Nanos(n * 7_777);
                    let took = (1_200_000 + n * n * 197) / step * step;
                    testdata::sample(0, sent, Nanos(sent.0 + took))
                })
                .collect();
        }
        run
    }

    #[test]
    fn nanoseconds_and_fast_clocks_are_silent() {
        let mut run = rounded(1);
        assert_eq!(look(&Evidence::of(&run)), []);
        for clock in ["tsc", "kvm-clock", "arch_sys_counter"] {
            run.facts.named.insert("clocksource".to_owned(), clock.to_owned());
            assert_eq!(look(&Evidence::of(&run)), [], "{clock}");
        }
        assert_eq!(look(&Evidence::of(&rounded(1_000))), [], "a microsecond of three milliseconds");
    }

    #[test]
    fn latencies_in_whole_milliseconds_are_told_with_the_step() {
        let seen = look(&Evidence::of(&rounded(1_000_000)));
        assert_eq!((seen.len(), seen[0].certainty), (1, Certainty::Suspected));
        let text =
            "a: 400 latencies have 9 values, all multiples of 1ms, which is 33.3 % of their median";
        assert_eq!(seen[0].evidence, text);
        let half = look(&Evidence::of(&rounded(500_000)))[0].share.unwrap();
        assert!((half / seen[0].share.unwrap() - 0.5).abs() < 0.1, "{half}");
    }

    #[test]
    fn a_clock_that_is_read_from_a_device_is_told_and_confirms_the_steps() {
        let mut run = rounded(1_000_000);
        run.facts.named.insert("clocksource".to_owned(), "hpet".to_owned());
        let seen = look(&Evidence::of(&run));
        assert!(seen.iter().all(|one| one.certainty == Certainty::Confirmed) && seen.len() == 2);
        assert!(seen[0].evidence.ends_with("clocksource is hpet"), "{}", seen[0].evidence);
    }

    #[test]
    fn simulated_time_is_as_round_as_its_script() {
        let mut run = rounded(1_000_000);
        run.visits
            .iter_mut()
            .for_each(|visit| visit.load.as_mut().unwrap().engine = "sim".to_owned());
        assert_eq!(look(&Evidence::of(&run)), []);
    }
}
