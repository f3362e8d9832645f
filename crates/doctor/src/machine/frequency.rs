//! Owns the topic of who decides the frequency of the CPUs. Start reading at [`look`].

use std::collections::BTreeSet;

use super::{MachineState, MachineTexts, Mend, Topic};

/// See the module.
pub(super) const ITEM: Topic = Topic {
    name: "frequency",
    title: "CPU frequency and its governor",
    effect: "at low load the CPU runs slower, so a rate grows more than it should with the number of connections",
    needs: &[GOVERNORS, FREQUENCIES],
    needs_twice: &[],
    look,
};

const GOVERNORS: &str = "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor";
const FREQUENCIES: &str = "/sys/devices/system/cpu/cpu*/cpufreq/scaling_cur_freq";

fn look(texts: &MachineTexts) -> Result<MachineState, String> {
    let governors: BTreeSet<&str> = texts.matching(GOVERNORS).map(|(_, text)| text).collect();
    let Some(first) = governors.first() else {
        return Err("this kernel has no scaling_governor: usual in a virtual machine, where the host decides, and \
                    without a cpufreq driver"
            .to_owned());
    };
    let khz = texts.matching(FREQUENCIES).filter_map(|(_, text)| text.parse::<f64>().ok());
    let ghz: Vec<f64> = khz.map(|khz| khz / 1e6).collect();
    let (low, high) = (stats_min(&ghz), ghz.iter().copied().fold(0.0, f64::max));
    let now = low.map_or_else(String::new, |low| format!("; now {low:.2} to {high:.2} GHz"));
    let all: Vec<&str> = governors.iter().copied().collect();
    let seen = format!("governor {}{now}", all.join(" and "));
    if all == ["performance"] {
        return MachineState::fine(seen);
    }
    let set = |governor: &str| format!("for f in {GOVERNORS}; do echo {governor} > \"$f\"; done");
    // Where CPUs differ there is no one way back.
    let back = (all.len() == 1).then(|| set(first));
    MachineState::worth_changing(seen, Mend::command(set("performance"), &all.join(", "), back))
}

fn stats_min(values: &[f64]) -> Option<f64> {
    values.iter().copied().reduce(f64::min)
}

#[cfg(test)]
mod tests {
    use super::super::planted;
    use super::*;

    #[test]
    fn another_governor_than_performance_is_worth_changing() {
        let governor = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";
        let frequency = ("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "2400000");
        let seen = planted::fine(&ITEM, &[(governor, "performance\n"), frequency]);
        assert_eq!(seen, "governor performance; now 2.40 to 2.40 GHz");
        let (seen, run) = planted::mended(&ITEM, &[(governor, "powersave\n")]);
        assert_eq!(seen, "governor powersave");
        assert!(run.contains("do echo performance > \"$f\""), "{run}");
    }
}
