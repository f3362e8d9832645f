//! Owns the topic of CPU time that the hypervisor takes away now. Start reading at [`look`].

use super::{MachineState, MachineTexts, Mend, Topic};
use crate::words;

/// See the module.
pub(super) const ITEM: Topic = Topic {
    name: "steal",
    title: "CPU time that the hypervisor gives to others (steal), over half a second now",
    effect: "the server and the generator stand still meanwhile; visits in which it is more than 1 % are made again",
    needs: &["/proc/stat"],
    needs_twice: &["/proc/stat"],
    look,
};

/// As the lab has it for a visit.
const STEAL_MAX: f64 = 0.01;
/// A tick is 10 ms, so half a second of two CPUs is 100 of them: fewer than these are rounding.
const TICKS_MIN: u64 = 3;

fn look(texts: &MachineTexts) -> Result<MachineState, String> {
    let ticks = texts.cpu_ticks()?;
    let share = ticks.steal as f64 / ticks.all as f64;
    let seen = format!("{} of {}", words::percent(share), words::count(ticks.cpus, "CPU"));
    if share <= STEAL_MAX || ticks.steal < TICKS_MIN {
        return MachineState::fine(seen);
    }
    let advice = "wait for a quieter time, or move to a host without neighbours";
    MachineState::worth_changing(seen, Mend::advice(advice))
}

#[cfg(test)]
mod tests {
    use super::super::planted;
    use super::*;

    #[test]
    fn steal_of_some_ticks_is_worth_changing_and_a_single_one_is_rounding() {
        let look_at = |steal: u64| {
            let text = |user: u64, steal: u64| {
                format!("cpu  {user} 0 0 0 0 0 0 {steal} 0 0\ncpu0 1\ncpu1 1\n")
            };
            let mut texts = planted::texts(&[("/proc/stat", &text(100, 5))]);
            texts.second.insert("/proc/stat".to_owned(), Ok(text(200 - steal, 5 + steal)));
            look(&texts).unwrap()
        };
        assert_eq!(look_at(0), MachineState::Fine { seen: "0 % of 2 CPUs".to_owned() });
        assert!(matches!(look_at(2), MachineState::Fine { .. }));
        assert!(
            matches!(look_at(10), MachineState::WorthChanging { seen, .. } if seen == "10 % of 2 CPUs")
        );
    }
}
