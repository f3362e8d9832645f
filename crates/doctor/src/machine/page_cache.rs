//! Owns the topic of files in memory, and of what waits to be written to a disk. Start reading at [`look`].

use units::Bytes;

use super::{MachineState, MachineTexts, Mend, Topic};

/// See the module.
pub(super) const ITEM: Topic = Topic {
    name: "page_cache",
    title: "files in memory (page cache), and data that waits for a disk",
    effect: "data that waits is written during the measurement, and logs and files of the server wait behind it",
    needs: &["/proc/meminfo"],
    needs_twice: &[],
    look,
};

/// A slow disk writes this in a second.
const WAITING_MAX: u64 = 100_000_000;

fn look(texts: &MachineTexts) -> Result<MachineState, String> {
    let cached = texts.memory("Cached")?;
    let waiting = texts.memory("Dirty")? + texts.memory("Writeback")?;
    let seen = format!("{} of files in memory; {} wait for a disk", Bytes(cached), Bytes(waiting));
    if waiting <= WAITING_MAX {
        return MachineState::fine(seen);
    }
    let today = Bytes(waiting).to_string();
    MachineState::worth_changing(seen, Mend::command("sync".to_owned(), &today, None))
}

#[cfg(test)]
mod tests {
    use super::super::planted;
    use super::*;

    #[test]
    fn much_that_waits_for_a_disk_is_worth_changing() {
        let with = |dirty: u64| format!("Cached: 500 kB\nDirty: {dirty} kB\nWriteback: 0 kB\n");
        planted::fine(&ITEM, &[("/proc/meminfo", &with(100))]);
        let (_, run) = planted::mended(&ITEM, &[("/proc/meminfo", &with(900_000))]);
        assert_eq!(run, "sync");
    }
}
