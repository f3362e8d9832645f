//! Owns the topic of memory that was moved to a disk. Start reading at [`look`].

use units::Bytes;

use super::{MachineState, MachineTexts, Mend, Topic};

/// See the module.
pub(super) const ITEM: Topic = Topic {
    name: "swap",
    title: "memory that was moved to a disk (swap)",
    effect: "the first touch of such a page waits for the disk, and memory figures of a server leave it out",
    needs: &["/proc/meminfo"],
    needs_twice: &[],
    look,
};

/// Less than this is idle pages of services, moved long ago.
const USED_MAX: u64 = 64 << 20;

fn look(texts: &MachineTexts) -> Result<MachineState, String> {
    let (all, free) = (texts.memory("SwapTotal")?, texts.memory("SwapFree")?);
    let used = all.saturating_sub(free);
    if all == 0 {
        return MachineState::fine("there is no swap");
    }
    let seen = format!("{} of {} are used", Bytes(used), Bytes(all));
    if used <= USED_MAX {
        return MachineState::fine(seen);
    }
    let back = Some("swapon -a".to_owned());
    MachineState::worth_changing(seen.clone(), Mend::command("swapoff -a".to_owned(), &seen, back))
}

#[cfg(test)]
mod tests {
    use super::super::planted;
    use super::*;

    #[test]
    fn swap_that_is_used_is_worth_changing() {
        let with = |all: u64, free: u64| format!("SwapTotal: {all} kB\nSwapFree: {free} kB\n");
        assert_eq!(planted::fine(&ITEM, &[("/proc/meminfo", &with(0, 0))]), "there is no swap");
        planted::fine(&ITEM, &[("/proc/meminfo", &with(2_000_000, 2_000_000))]);
        let (_, run) = planted::mended(&ITEM, &[("/proc/meminfo", &with(2_000_000, 1_000_000))]);
        assert_eq!(run, "swapoff -a");
    }
}
