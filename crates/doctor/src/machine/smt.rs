//! Owns the topic of hardware threads that share a core. Start reading at [`look`].

use super::texts::listed;
use super::{MachineState, MachineTexts, Mend, Topic};

/// See the module.
pub(super) const ITEM: Topic = Topic {
    name: "smt",
    title: "hardware threads that share a core (SMT)",
    effect: "two threads on one core are slower than on two cores, so the rate depends on where the scheduler puts \
             them",
    needs: &[ACTIVE, CONTROL, ONLINE],
    needs_twice: &[],
    look,
};

const ACTIVE: &str = "/sys/devices/system/cpu/smt/active";
const CONTROL: &str = "/sys/devices/system/cpu/smt/control";
const ONLINE: &str = "/sys/devices/system/cpu/online";
/// CPUs from which on half of them suffice for generator and server.
const HALVED_MIN: usize = 4;

fn look(texts: &MachineTexts) -> Result<MachineState, String> {
    if texts.text(ACTIVE)? == "0" {
        return MachineState::fine("off, or the CPU has none");
    }
    let cpus = listed(texts.text(ONLINE)?).len();
    let seen = format!("on: {cpus} CPUs are about {} cores", cpus.div_ceil(2));
    match texts.text(CONTROL) {
        Ok("on") if cpus >= HALVED_MIN => {
            MachineState::worth_changing(seen, Mend::write(CONTROL, "on", "off"))
        }
        _ => {
            let advice = "use a machine with more cores, or turn it off in the firmware";
            MachineState::worth_changing(seen, Mend::advice(advice))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::planted;
    use super::*;

    #[test]
    fn shared_cores_are_worth_changing_where_enough_cores_remain() {
        let with = |active, online| [(ACTIVE, active), (CONTROL, "on"), (ONLINE, online)];
        assert!(planted::fine(&ITEM, &with("0", "0-1")).starts_with("off"));
        let (seen, run) = planted::mended(&ITEM, &with("1", "0-15"));
        assert_eq!(seen, "on: 16 CPUs are about 8 cores");
        assert_eq!(run, "echo \"off\" > /sys/devices/system/cpu/smt/control");
        let (_, advice) = planted::mended(&ITEM, &with("1", "0-1"));
        assert!(advice.contains("more cores"), "{advice}");
    }
}
