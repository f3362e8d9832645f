//! Owns the topic of whether delays and losses can be planted in a network. Start reading at [`look`].

use super::{MachineState, MachineTexts, Mend, Topic};

/// See the module.
pub(super) const ITEM: Topic = Topic {
    name: "netem",
    title: "right and kernel module to delay and drop packets on purpose (netem)",
    effect: "without it you cannot try how servers behave over a slow or lossy network (tc qdisc ... netem)",
    needs: &[STATUS, MODULES, RELEASE, BUILT_IN, ON_DISK],
    needs_twice: &[],
    look,
};

const STATUS: &str = "/proc/self/status";
const MODULES: &str = "/proc/modules";
const RELEASE: &str = "/proc/sys/kernel/osrelease";
const BUILT_IN: &str = "/lib/modules/*/modules.builtin";
const ON_DISK: &str = "/lib/modules/*/modules.dep";
const MODULE: &str = "sch_netem";
/// CAP_NET_ADMIN (capabilities(7)).
const NET_ADMIN: u32 = 12;

fn look(texts: &MachineTexts) -> Result<MachineState, String> {
    let release = texts.text(RELEASE)?;
    let is_ours = |path: &str| path.split('/').nth(3) == Some(release);
    let lists = |pattern: &'static str| {
        texts.matching(pattern).any(|(path, text)| is_ours(path) && text.contains(MODULE))
    };
    let is_loaded = texts.text(MODULES).is_ok_and(|text| text.contains(MODULE));
    let seen = match (is_loaded, lists(BUILT_IN), lists(ON_DISK)) {
        (true, ..) => "loaded",
        (_, true, _) => "built in",
        (_, _, true) => "can be loaded",
        _ if texts.matching(BUILT_IN).any(|(path, _)| is_ours(path)) => {
            let advice = format!("install the package with the modules of kernel {release}");
            return MachineState::worth_changing(
                format!("kernel {release} has no {MODULE}"),
                Mend::advice(advice),
            );
        }
        _ => {
            return Err(format!("no list of the modules of kernel {release} lies in /lib/modules"));
        }
    };
    if texts.has_capability(NET_ADMIN)? {
        return MachineState::fine(seen);
    }
    let seen = format!("{seen}, but this user lacks CAP_NET_ADMIN");
    MachineState::worth_changing(seen, Mend::advice("run tc as root"))
}

#[cfg(test)]
mod tests {
    use super::super::planted;
    use super::*;

    #[test]
    fn module_and_right_are_both_needed() {
        let release = (RELEASE, "6.1.0\n");
        let dep = ("/lib/modules/6.1.0/modules.dep", "kernel/net/sched/sch_netem.ko:\n");
        let (root, user) =
            ((STATUS, "CapEff:\t000001ffffffffff\n"), (STATUS, "CapEff:\t0000000000000000\n"));
        assert_eq!(planted::fine(&ITEM, &[release, dep, root]), "can be loaded");
        let (seen, _) = planted::mended(&ITEM, &[release, dep, user]);
        assert_eq!(seen, "can be loaded, but this user lacks CAP_NET_ADMIN");
        let builtin = ("/lib/modules/6.1.0/modules.builtin", "kernel/fs/ext4.ko\n");
        let (seen, _) = planted::mended(&ITEM, &[release, builtin, root]);
        assert_eq!(seen, "kernel 6.1.0 has no sch_netem");
        let other = ("/lib/modules/5.4.0/modules.dep", "sch_netem.ko:\n");
        let why = look(&planted::texts(&[release, other, root])).unwrap_err();
        assert!(why.contains("kernel 6.1.0"), "{why}");
    }
}
