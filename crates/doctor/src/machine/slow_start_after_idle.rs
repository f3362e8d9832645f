//! Owns the topic of what an idle connection may send at once. Start reading at [`look`].

use super::{MachineState, MachineTexts, Mend, Topic};

/// See the module.
pub(super) const ITEM: Topic = Topic {
    name: "slow_start_after_idle",
    title: "slow start of connections that were idle (tcp_slow_start_after_idle)",
    effect: "after a pause a kept connection sends 10 segments and waits a round trip, so that long replies over a \
             real network depend on the think time",
    needs: &[IDLE, CARRIERS],
    needs_twice: &[],
    look,
};

const IDLE: &str = "/proc/sys/net/ipv4/tcp_slow_start_after_idle";
/// Interfaces with a device behind them have this file; loopback and veth pairs have not.
const CARRIERS: &str = "/sys/class/net/*/device/uevent";

fn look(texts: &MachineTexts) -> Result<MachineState, String> {
    match texts.number(IDLE)? {
        0 => MachineState::fine("off"),
        _ if texts.matching(CARRIERS).next().is_none() => {
            MachineState::fine("on; over loopback a round trip takes no time")
        }
        today => MachineState::worth_changing(
            "on; it matters over a real network with think times, not over loopback",
            Mend::sysctl("net.ipv4.tcp_slow_start_after_idle", today, 0),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::planted;
    use super::*;

    #[test]
    fn it_is_worth_changing_only_where_there_is_a_network() {
        assert_eq!(planted::fine(&ITEM, &[(IDLE, "0")]), "off");
        assert!(planted::fine(&ITEM, &[(IDLE, "1")]).starts_with("on; over loopback"));
        let files = [(IDLE, "1"), ("/sys/class/net/eth0/device/uevent", "DRIVER=e1000e")];
        let (_, run) = planted::mended(&ITEM, &files);
        assert_eq!(run, "sysctl -w net.ipv4.tcp_slow_start_after_idle=\"0\"");
    }
}
