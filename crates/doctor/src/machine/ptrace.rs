//! Owns the topic of whether a process may look into another. Start reading at [`look`].

use super::{MachineState, MachineTexts, Mend, Topic};

/// See the module.
pub(super) const ITEM: Topic = Topic {
    name: "ptrace",
    title: "right to trace a server's system calls (ptrace)",
    effect: "without it strace and `perf trace` cannot show what a slow server waits for",
    needs: &[SCOPE, STATUS],
    needs_twice: &[],
    look,
};

const SCOPE: &str = "/proc/sys/kernel/yama/ptrace_scope";
const STATUS: &str = "/proc/self/status";
/// CAP_SYS_PTRACE (capabilities(7)).
const SYS_PTRACE: u32 = 19;
/// From this on nobody may, until the next boot.
const NOBODY: u64 = 3;

fn look(texts: &MachineTexts) -> Result<MachineState, String> {
    let is_root = texts.has_capability(SYS_PTRACE)?;
    if texts.is_absent(SCOPE) {
        return MachineState::fine("allowed: this kernel has no Yama, which would restrict it");
    }
    let today = texts.number(SCOPE)?;
    let seen = format!("ptrace_scope is {today}");
    match today {
        NOBODY.. => {
            let advice = "set kernel.yama.ptrace_scope to 1 in /etc/sysctl.d and boot: 3 cannot be taken back before";
            MachineState::worth_changing(seen, Mend::advice(advice))
        }
        0 => MachineState::fine(seen),
        _ if is_root => MachineState::fine(format!("{seen}, and this user may all the same")),
        1 => {
            MachineState::fine(format!("{seen}: own children, so a server that the tracer starts"))
        }
        _ => MachineState::worth_changing(seen, Mend::sysctl("kernel.yama.ptrace_scope", today, 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::planted;
    use super::*;
    use crate::machine::Unread;

    #[test]
    fn a_scope_of_two_is_worth_changing_for_who_is_not_root() {
        let user = (STATUS, "CapEff:\t0000000000000000\n");
        planted::fine(&ITEM, &[user, (SCOPE, "1\n")]);
        planted::fine(&ITEM, &[(STATUS, "CapEff:\t000001ffffffffff\n"), (SCOPE, "2\n")]);
        let (_, run) = planted::mended(&ITEM, &[user, (SCOPE, "2\n")]);
        assert_eq!(run, "sysctl -w kernel.yama.ptrace_scope=\"1\"");
        let (_, advice) = planted::mended(&ITEM, &[user, (SCOPE, "3\n")]);
        assert!(advice.contains("boot"), "{advice}");
    }

    #[test]
    fn a_kernel_without_yama_is_fine_but_an_unread_file_is_not() {
        let mut texts = planted::texts(&[(STATUS, "CapEff:\t0000000000000000\n")]);
        assert!(look(&texts).is_err());
        texts.first.insert(SCOPE.to_owned(), Err(Unread::Absent));
        assert!(matches!(look(&texts), Ok(MachineState::Fine { .. })));
    }
}
