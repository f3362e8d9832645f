//! Owns the topic of the queue of handshakes that are not complete. Start reading at [`look`].

use super::{MachineState, MachineTexts, Mend, Topic};
use crate::words::grouped;

/// See the module.
pub(super) const ITEM: Topic = Topic {
    name: "syn_backlog",
    title: "queue of incomplete handshakes (tcp_max_syn_backlog, tcp_syncookies)",
    effect: "when many connections are opened at once, the kernel drops SYNs or answers with SYN cookies, and \
             either delays or alters those connections",
    needs: &[BACKLOG, COOKIES],
    needs_twice: &[],
    look,
};

const BACKLOG: &str = "/proc/sys/net/ipv4/tcp_max_syn_backlog";
const COOKIES: &str = "/proc/sys/net/ipv4/tcp_syncookies";
/// The largest default backlog of the servers that joust starts (lighttpd 1024).
const ENOUGH_MIN: u64 = 1024;
/// As somaxconn's default, so that neither queue is the shorter one.
const WANTED: u64 = 4096;

fn look(texts: &MachineTexts) -> Result<MachineState, String> {
    let today = texts.number(BACKLOG)?;
    let cookies = match texts.number(COOKIES) {
        Ok(0) => "SYN cookies off".to_owned(),
        Ok(_) => "SYN cookies on".to_owned(),
        Err(why) => why,
    };
    let seen = format!("{} handshakes, {cookies}", grouped(today));
    if today >= ENOUGH_MIN {
        return MachineState::fine(seen);
    }
    MachineState::worth_changing(seen, Mend::sysctl("net.ipv4.tcp_max_syn_backlog", today, WANTED))
}

#[cfg(test)]
mod tests {
    use super::super::planted;
    use super::*;

    #[test]
    fn a_short_queue_is_worth_changing() {
        let seen = planted::fine(&ITEM, &[(BACKLOG, "4096"), (COOKIES, "1")]);
        assert_eq!(seen, "4,096 handshakes, SYN cookies on");
        let (seen, run) = planted::mended(&ITEM, &[(BACKLOG, "256"), (COOKIES, "0")]);
        assert_eq!(seen, "256 handshakes, SYN cookies off");
        assert_eq!(run, "sysctl -w net.ipv4.tcp_max_syn_backlog=\"4096\"");
    }
}
