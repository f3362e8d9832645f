//! Owns the topic of the CPUs that joust may not use. Start reading at [`look`].

use super::texts::listed;
use super::{MachineState, MachineTexts, Mend, Topic};

/// See the module.
pub(super) const ITEM: Topic = Topic {
    name: "cpu_set",
    title: "CPUs that joust may use, of those that are there",
    effect: "a part of the machine is measured, and what runs on the other CPUs shares caches and memory with it",
    needs: &[STATUS, ONLINE],
    needs_twice: &[],
    look,
};

const STATUS: &str = "/proc/self/status";
const ONLINE: &str = "/sys/devices/system/cpu/online";

fn look(texts: &MachineTexts) -> Result<MachineState, String> {
    let (allowed, online) = (texts.field(STATUS, "Cpus_allowed_list")?, texts.text(ONLINE)?);
    let (mine, all) = (listed(allowed), listed(online));
    if all.iter().all(|cpu| mine.contains(cpu)) {
        return MachineState::fine(format!("all: {online}"));
    }
    let advice = "start joust without taskset, or widen the CPU set of its container or service (docker run \
                  --cpuset-cpus, AllowedCPUs= of systemd), unless the part is meant";
    MachineState::worth_changing(format!("CPUs {allowed} of {online}"), Mend::advice(advice))
}

#[cfg(test)]
mod tests {
    use super::super::planted;
    use super::*;

    #[test]
    fn a_part_of_the_cpus_is_worth_changing() {
        let status = "Cpus_allowed_list:\t0-1\n";
        assert_eq!(planted::fine(&ITEM, &[(STATUS, status), (ONLINE, "0-1")]), "all: 0-1");
        let (seen, _) = planted::mended(&ITEM, &[(STATUS, status), (ONLINE, "0-7")]);
        assert_eq!(seen, "CPUs 0-1 of 0-7");
    }
}
