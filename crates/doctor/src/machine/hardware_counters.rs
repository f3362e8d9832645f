//! Owns the topic of whether the CPU's own counters can be read. Start reading at [`look`].

use super::{MachineState, MachineTexts, Mend, Topic};

/// See the module.
pub(super) const ITEM: Topic = Topic {
    name: "hardware_counters",
    title: "the CPU's counters of cycles and instructions, and the right to read them",
    effect: "without them `perf stat` cannot say whether a server is slower by more instructions or by waiting for \
             memory",
    needs: &[PARANOID, STATUS, INTEL, ARM],
    needs_twice: &[],
    look,
};

const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";
const STATUS: &str = "/proc/self/status";
/// "cpu", and "cpu_core" and "cpu_atom" where cores are of two kinds.
const INTEL: &str = "/sys/bus/event_source/devices/cpu*/type";
const ARM: &str = "/sys/bus/event_source/devices/armv8*/type";
/// Up to this every user may count his own processes; Debian has 3, which the kernel itself does not know.
const PARANOID_MAX: i64 = 2;
/// CAP_PERFMON and CAP_SYS_ADMIN (capabilities(7)).
const PERFMON: u32 = 38;
const SYS_ADMIN: u32 = 21;

fn look(texts: &MachineTexts) -> Result<MachineState, String> {
    let has_counters =
        [INTEL, ARM].into_iter().any(|pattern| texts.matching(pattern).next().is_some());
    if !has_counters {
        return Err("the kernel lists no counters of the CPU (/sys/bus/event_source/devices/cpu): most hypervisors do \
                    not pass them on"
            .to_owned());
    }
    let text = texts.text(PARANOID)?;
    let today: i64 = text.parse().map_err(|_| format!("{PARANOID} holds no number: {text:?}"))?;
    let may = texts.has_capability(PERFMON)? || texts.has_capability(SYS_ADMIN)?;
    let seen = format!("there; perf_event_paranoid is {today}");
    if may || today <= PARANOID_MAX {
        return MachineState::fine(seen);
    }
    MachineState::worth_changing(
        seen,
        Mend::sysctl("kernel.perf_event_paranoid", today, PARANOID_MAX),
    )
}

#[cfg(test)]
mod tests {
    use super::super::planted;
    use super::*;

    #[test]
    fn counters_that_may_not_be_read_are_worth_changing_and_none_are_not_available() {
        let counters = ("/sys/bus/event_source/devices/cpu/type", "4\n");
        let user = (STATUS, "CapEff:\t0000000000000000\n");
        planted::fine(&ITEM, &[counters, user, (PARANOID, "2\n")]);
        planted::fine(
            &ITEM,
            &[counters, (STATUS, "CapEff:\t000001ffffffffff\n"), (PARANOID, "4\n")],
        );
        let (_, run) = planted::mended(&ITEM, &[counters, user, (PARANOID, "3\n")]);
        assert_eq!(run, "sysctl -w kernel.perf_event_paranoid=\"2\"");
        let why = look(&planted::texts(&[user, (PARANOID, "2\n")])).unwrap_err();
        assert!(why.contains("hypervisors"), "{why}");
    }
}
