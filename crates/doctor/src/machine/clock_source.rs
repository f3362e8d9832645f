//! Owns the topic of the clock that instants are read from. Start reading at [`look`].

use super::{MachineState, MachineTexts, Mend, Topic};

/// See the module.
pub(super) const ITEM: Topic = Topic {
    name: "clock_source",
    title: "clock source of the kernel",
    effect: "a clock that is read by a system call or from a device costs a microsecond and more, several times a \
             request",
    needs: &[CURRENT, AVAILABLE],
    needs_twice: &[],
    look,
};

const CURRENT: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
const AVAILABLE: &str = "/sys/devices/system/clocksource/clocksource0/available_clocksource";
/// Those that are read in user space, without a system call.
const QUICK: [&str; 5] =
    ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter", "riscv_clocksource"];

fn look(texts: &MachineTexts) -> Result<MachineState, String> {
    let today = texts.text(CURRENT)?;
    if QUICK.contains(&today) {
        return MachineState::fine(today);
    }
    let offered = texts.text(AVAILABLE).unwrap_or_default();
    let seen =
        format!("{today}; available: {}", if offered.is_empty() { "not known" } else { offered });
    let quick = QUICK.iter().find(|quick| offered.split(' ').any(|one| one == **quick));
    let mend = match quick {
        Some(quick) => Mend::write(CURRENT, today, quick),
        None => Mend::advice(
            "boot with clocksource=tsc, where the CPU's counter is stable; see the kernel's log",
        ),
    };
    MachineState::worth_changing(seen, mend)
}

#[cfg(test)]
mod tests {
    use super::super::planted;
    use super::*;

    #[test]
    fn a_slow_clock_is_worth_changing() {
        assert_eq!(planted::fine(&ITEM, &[(CURRENT, "tsc\n")]), "tsc");
        let (_, run) =
            planted::mended(&ITEM, &[(CURRENT, "hpet"), (AVAILABLE, "tsc hpet acpi_pm")]);
        assert_eq!(run, format!("echo \"tsc\" > {CURRENT}"));
        let (_, advice) = planted::mended(&ITEM, &[(CURRENT, "hpet"), (AVAILABLE, "hpet acpi_pm")]);
        assert!(advice.contains("clocksource=tsc"), "{advice}");
    }
}
