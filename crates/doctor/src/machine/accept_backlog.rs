//! Owns the topic of the longest queue of connections that wait to be accepted. Start reading at [`look`].

use super::{MachineState, MachineTexts, Mend, Topic};
use crate::words::grouped;

/// See the module.
pub(super) const ITEM: Topic = Topic {
    name: "accept_backlog",
    title: "longest queue of connections that wait to be accepted (somaxconn)",
    effect: "a listener's backlog is cut to it, and when the queue is full the kernel drops new connections, which \
             are tried again after 1 s",
    needs: &[SOMAXCONN],
    needs_twice: &[],
    look,
};

const SOMAXCONN: &str = "/proc/sys/net/core/somaxconn";
/// The kernel's default since 5.4; before it was 128, and servers ask for 511 and more.
const WANTED_MIN: u64 = 4096;

fn look(texts: &MachineTexts) -> Result<MachineState, String> {
    let today = texts.number(SOMAXCONN)?;
    let seen = format!("{} connections", grouped(today));
    if today >= WANTED_MIN {
        return MachineState::fine(seen);
    }
    MachineState::worth_changing(seen, Mend::sysctl("net.core.somaxconn", today, WANTED_MIN))
}

#[cfg(test)]
mod tests {
    use super::super::planted;
    use super::*;

    #[test]
    fn a_short_queue_is_worth_changing_and_the_default_of_today_is_fine() {
        assert_eq!(planted::fine(&ITEM, &[(SOMAXCONN, "4096\n")]), "4,096 connections");
        let (seen, run) = planted::mended(&ITEM, &[(SOMAXCONN, "128\n")]);
        assert_eq!(
            (seen.as_str(), run.as_str()),
            ("128 connections", "sysctl -w net.core.somaxconn=\"4096\"")
        );
    }
}
