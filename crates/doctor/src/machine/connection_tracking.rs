//! Owns the topic of the firewall's table of connections. Start reading at [`look`].

use super::{MachineState, MachineTexts, Mend, Topic};
use crate::words::grouped;

/// See the module.
pub(super) const ITEM: Topic = Topic {
    name: "connection_tracking",
    title: "the firewall's table of connections (nf_conntrack)",
    effect: "when the table is full the kernel drops new connections, and each packet costs a look into it",
    needs: &[MAX, COUNT],
    needs_twice: &[],
    look,
};

const MAX: &str = "/proc/sys/net/netfilter/nf_conntrack_max";
const COUNT: &str = "/proc/sys/net/netfilter/nf_conntrack_count";
/// As many as one address has ports: what a load without keep-alive can leave behind.
const FREE_MIN: u64 = 65_536;
/// The default of a machine with 4 GiB or more is 262,144.
const WANTED: u64 = 262_144;

fn look(texts: &MachineTexts) -> Result<MachineState, String> {
    if texts.is_absent(MAX) {
        return Err(format!(
            "there is no {MAX}: this network tracks no connections, or its container may not see it"
        ));
    }
    let (most, count) = (texts.number(MAX)?, texts.number(COUNT)?);
    let seen = format!("{} of {} entries are used", grouped(count), grouped(most));
    if most.saturating_sub(count) >= FREE_MIN {
        return MachineState::fine(seen);
    }
    let wanted = WANTED.max(count + 2 * FREE_MIN);
    MachineState::worth_changing(seen, Mend::sysctl("net.netfilter.nf_conntrack_max", most, wanted))
}

#[cfg(test)]
mod tests {
    use super::super::planted;
    use super::*;

    #[test]
    fn a_small_table_is_worth_changing_and_no_table_is_not_fine() {
        assert_eq!(
            planted::fine(&ITEM, &[(MAX, "262144"), (COUNT, "12")]),
            "12 of 262,144 entries are used"
        );
        let (_, run) = planted::mended(&ITEM, &[(MAX, "65536"), (COUNT, "200")]);
        assert_eq!(run, "sysctl -w net.netfilter.nf_conntrack_max=\"262144\"");
        assert!(planted::missing(&ITEM, MAX).contains("or its container may not see it"));
    }
}
