//! Owns the topic of the packet size of loopback. Start reading at [`look`].

use super::{MachineState, MachineTexts, Mend, Topic};
use crate::words::grouped;

/// See the module.
pub(super) const ITEM: Topic = Topic {
    name: "loopback_mtu",
    title: "packet size of the loopback interface (MTU)",
    effect: "over loopback one segment carries up to 64 KB, so long replies cost far less than over Ethernet; \
             `joust run` uses a veth pair of 1500 bytes instead, where it may",
    needs: &[MTU],
    needs_twice: &[],
    look,
};

const MTU: &str = "/sys/class/net/lo/mtu";
/// Of Ethernet.
const ETHERNET: u64 = 1500;
/// Of Ethernet with jumbo frames.
const JUMBO: u64 = 9000;

fn look(texts: &MachineTexts) -> Result<MachineState, String> {
    let today = texts.number(MTU)?;
    let seen = format!("{} bytes", grouped(today));
    if today <= JUMBO {
        return MachineState::fine(seen);
    }
    let set = |mtu: u64| format!("ip link set dev lo mtu {mtu}");
    let mend = Mend {
        advice: "for loads over loopback that stand for a network; else state the size".to_owned(),
        ..Mend::command(set(ETHERNET), &today.to_string(), Some(set(today)))
    };
    MachineState::worth_changing(seen, mend)
}

#[cfg(test)]
mod tests {
    use super::super::planted;
    use super::*;

    #[test]
    fn packets_of_64_kb_are_worth_changing() {
        assert_eq!(planted::fine(&ITEM, &[(MTU, "1500\n")]), "1,500 bytes");
        let (seen, run) = planted::mended(&ITEM, &[(MTU, "65536\n")]);
        assert_eq!((seen.as_str(), run.as_str()), ("65,536 bytes", "ip link set dev lo mtu 1500"));
    }
}
