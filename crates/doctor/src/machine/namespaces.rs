//! Owns the topic of whether joust may make networks of its own. Start reading at [`look`].

use super::{MachineState, MachineTexts, Mend, Topic};
use crate::words::grouped;

/// See the module.
pub(super) const ITEM: Topic = Topic {
    name: "namespaces",
    title: "right to make network namespaces and a veth pair",
    effect: "without them `joust run` goes over the machine's loopback: large packets, shared counters and ports in \
             TIME_WAIT",
    needs: &[STATUS, NETWORKS_MAX],
    needs_twice: &[],
    look,
};

const STATUS: &str = "/proc/self/status";
const NETWORKS_MAX: &str = "/proc/sys/user/max_net_namespaces";
/// CAP_NET_ADMIN and CAP_SYS_ADMIN (capabilities(7)).
const NET_ADMIN: u32 = 12;
const SYS_ADMIN: u32 = 21;
/// Two a visit, and those of a visit that is being cleared away.
const NETWORKS_MIN: u64 = 8;

fn look(texts: &MachineTexts) -> Result<MachineState, String> {
    let may = texts.has_capability(NET_ADMIN)? && texts.has_capability(SYS_ADMIN)?;
    if !may {
        let seen = "joust lacks CAP_NET_ADMIN or CAP_SYS_ADMIN";
        return MachineState::worth_changing(
            seen,
            Mend::advice("run joust as root (sudo joust run ...)"),
        );
    }
    match texts.number(NETWORKS_MAX) {
        Ok(most) if most < NETWORKS_MIN => MachineState::worth_changing(
            format!("at most {most} network namespaces"),
            Mend::sysctl("user.max_net_namespaces", most, 1024),
        ),
        Ok(most) => MachineState::fine(format!("allowed, at most {}", grouped(most))),
        Err(why) => {
            MachineState::fine(format!("allowed; their largest number is not known: {why}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::planted;
    use super::*;

    #[test]
    fn a_user_without_rights_is_told_to_be_root() {
        let root = "CapEff:\t000001ffffffffff\n";
        assert_eq!(
            planted::fine(&ITEM, &[(STATUS, root), (NETWORKS_MAX, "96365")]),
            "allowed, at most 96,365"
        );
        let (_, advice) = planted::mended(&ITEM, &[(STATUS, "CapEff:\t0000000000000000\n")]);
        assert!(advice.starts_with("run joust as root"), "{advice}");
        let (_, run) = planted::mended(&ITEM, &[(STATUS, root), (NETWORKS_MAX, "0")]);
        assert_eq!(run, "sysctl -w user.max_net_namespaces=\"1024\"");
    }
}
