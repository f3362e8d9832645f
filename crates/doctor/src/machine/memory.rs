//! Owns the topic of free memory. Start reading at [`look`].

use units::Bytes;

use super::{MachineState, MachineTexts, Mend, Topic};
use crate::words;

/// See the module.
pub(super) const ITEM: Topic = Topic {
    name: "memory",
    title: "memory that can be used without swapping",
    effect: "when it runs short the kernel drops cached files and stops processes to find pages, or ends the server",
    needs: &["/proc/meminfo"],
    needs_twice: &[],
    look,
};

/// A server with ten thousand connections takes some hundred MB, and the page cache as much.
const FREE_MIN: u64 = 1 << 30;
/// Below this share the kernel begins to reclaim pages in the background.
const SHARE_MIN: f64 = 0.05;

fn look(texts: &MachineTexts) -> Result<MachineState, String> {
    let (all, free) = (texts.memory("MemTotal")?, texts.memory("MemAvailable")?);
    let share = free as f64 / all.max(1) as f64;
    let seen = format!("{} of {} ({})", Bytes(free), Bytes(all), words::percent(share));
    if free >= FREE_MIN && share >= SHARE_MIN {
        return MachineState::fine(seen);
    }
    let advice = "end programs that are not part of the measurement; `ps aux --sort=-rss | head` names the largest";
    MachineState::worth_changing(seen, Mend::advice(advice))
}

#[cfg(test)]
mod tests {
    use super::super::planted;
    use super::*;

    #[test]
    fn little_free_memory_is_worth_changing() {
        let text =
            |free: u64| format!("MemTotal: 16000000 kB\nMemFree: 1 kB\nMemAvailable: {free} kB\n");
        let seen = planted::fine(&ITEM, &[("/proc/meminfo", &text(8_000_000))]);
        assert!(seen.ends_with("(50 %)"), "{seen}");
        planted::mended(&ITEM, &[("/proc/meminfo", &text(100_000))]);
    }
}
