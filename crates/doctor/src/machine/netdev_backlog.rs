//! Owns the topic of the queue of packets that a CPU has not looked at. Start reading at [`look`].

use super::{MachineState, MachineTexts, Mend, Topic};
use crate::words::grouped;

/// See the module.
pub(super) const ITEM: Topic = Topic {
    name: "netdev_backlog",
    title: "queue of received packets of each CPU (netdev_max_backlog)",
    effect: "packets over loopback and veth pairs pass through it; when it is full they are dropped, and sent again \
             after 200 ms",
    needs: &[BACKLOG],
    needs_twice: &[],
    look,
};

const BACKLOG: &str = "/proc/sys/net/core/netdev_max_backlog";
/// The kernel's default.
const WANTED_MIN: u64 = 1000;

fn look(texts: &MachineTexts) -> Result<MachineState, String> {
    let today = texts.number(BACKLOG)?;
    let seen = format!("{} packets", grouped(today));
    if today >= WANTED_MIN {
        return MachineState::fine(seen);
    }
    MachineState::worth_changing(
        seen,
        Mend::sysctl("net.core.netdev_max_backlog", today, WANTED_MIN),
    )
}

#[cfg(test)]
mod tests {
    use super::super::planted;
    use super::*;

    #[test]
    fn a_queue_shorter_than_the_default_is_worth_changing() {
        assert_eq!(planted::fine(&ITEM, &[(BACKLOG, "1000")]), "1,000 packets");
        let (_, run) = planted::mended(&ITEM, &[(BACKLOG, "10")]);
        assert_eq!(run, "sysctl -w net.core.netdev_max_backlog=\"1000\"");
    }
}
