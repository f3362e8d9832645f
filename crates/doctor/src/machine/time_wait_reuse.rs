//! Owns the topic of whether ports in TIME_WAIT are used again. Start reading at [`look`].

use super::{MachineState, MachineTexts, Mend, Topic};

/// See the module.
pub(super) const ITEM: Topic = Topic {
    name: "time_wait_reuse",
    title: "use of ports in TIME_WAIT for new connections (tcp_tw_reuse)",
    effect: "without it a load without keep-alive over loopback runs out of local ports after some seconds",
    needs: &[REUSE],
    needs_twice: &[],
    look,
};

const REUSE: &str = "/proc/sys/net/ipv4/tcp_tw_reuse";
/// The kernel's default since 4.19: over loopback only.
const LOOPBACK_ONLY: u64 = 2;

fn look(texts: &MachineTexts) -> Result<MachineState, String> {
    match texts.number(REUSE)? {
        0 => MachineState::worth_changing(
            "0: never",
            Mend::sysctl("net.ipv4.tcp_tw_reuse", 0, LOOPBACK_ONLY),
        ),
        1 => MachineState::fine("1: after a second, to any address"),
        LOOPBACK_ONLY => MachineState::fine(
            "2: over loopback only; `joust run` sets 1 in the network of its own client",
        ),
        other => MachineState::fine(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::planted;
    use super::*;

    #[test]
    fn no_reuse_is_worth_changing() {
        assert!(planted::fine(&ITEM, &[(REUSE, "2\n")]).starts_with("2: over loopback"));
        let (_, run) = planted::mended(&ITEM, &[(REUSE, "0\n")]);
        assert_eq!(run, "sysctl -w net.ipv4.tcp_tw_reuse=\"2\"");
    }
}
