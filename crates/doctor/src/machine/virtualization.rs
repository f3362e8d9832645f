//! Owns the topic of what lies between joust and the hardware. Start reading at [`look`].

use super::{MachineState, MachineTexts, Mend, Topic};

/// See the module.
pub(super) const ITEM: Topic = Topic {
    name: "virtualization",
    title: "virtual machine or container",
    effect: "neighbours on the same host take CPU, cache and network at times that nothing here shows",
    needs: &[CPUINFO, VENDOR, PRODUCT, "/run/systemd/container", "/.dockerenv"],
    needs_twice: &[],
    look,
};

const CPUINFO: &str = "/proc/cpuinfo";
const VENDOR: &str = "/sys/class/dmi/id/sys_vendor";
const PRODUCT: &str = "/sys/class/dmi/id/product_name";

fn look(texts: &MachineTexts) -> Result<MachineState, String> {
    let is_flagged = match texts.field(CPUINFO, "flags") {
        Ok(flags) => Some(flags.split(' ').any(|flag| flag == "hypervisor")),
        // ARM has no such flag.
        Err(_) => None,
    };
    let firmware: Vec<&str> =
        [VENDOR, PRODUCT].into_iter().filter_map(|path| texts.text(path).ok()).collect();
    let firmware = firmware.join(" ");
    let container = match (texts.text("/run/systemd/container"), texts.text("/.dockerenv")) {
        (Ok(kind), _) => format!(", inside a container ({kind})"),
        (_, Ok(_)) => ", inside a container (docker)".to_owned(),
        _ => String::new(),
    };
    let named = if firmware.is_empty() { String::new() } else { format!(" ({firmware})") };
    match is_flagged {
        Some(true) => {
            let advice = "repeat the run at other times and on another host, and use a machine of your own for final \
                          figures";
            MachineState::worth_changing(
                format!("virtual machine{named}{container}"),
                Mend::advice(advice),
            )
        }
        Some(false) => MachineState::fine(format!("no hypervisor{named}{container}")),
        None => {
            Err(format!("{CPUINFO} does not say whether there is a hypervisor{named}{container}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::planted;
    use super::*;

    #[test]
    fn a_hypervisor_is_told_by_its_flag() {
        let own = "processor\t: 0\nflags\t\t: fpu vme sse2\n";
        assert_eq!(
            planted::fine(&ITEM, &[(CPUINFO, own), (VENDOR, "Acme")]),
            "no hypervisor (Acme)"
        );
        let guest = "flags\t\t: fpu hypervisor sse2\n";
        let files = [(CPUINFO, guest), ("/.dockerenv", "")];
        let (seen, _) = planted::mended(&ITEM, &files);
        assert_eq!(seen, "virtual machine, inside a container (docker)");
    }
}
