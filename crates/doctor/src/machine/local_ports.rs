//! Owns the topic of local ports: how many there are, and how many wait in TIME_WAIT. Start reading at [`look`].

use super::{MachineState, MachineTexts, Mend, Topic};
use crate::words::{self, grouped};

/// See the module.
pub(super) const ITEM: Topic = Topic {
    name: "local_ports",
    title: "local ports (ip_local_port_range) and connections in TIME_WAIT",
    effect: "a client that opens a connection for each request runs out of ports, because each stays in TIME_WAIT \
             for 60 s",
    needs: &[RANGE, SOCKSTAT],
    needs_twice: &[],
    look,
};

const RANGE: &str = "/proc/sys/net/ipv4/ip_local_port_range";
const SOCKSTAT: &str = "/proc/net/sockstat";
/// The kernel's default range, 32768 to 60999.
const PORTS_MIN: u64 = 28_232;
/// Ports from 10240 on: most services listen below.
const WANTED: &str = "10240 65535";
/// Share of the ports in TIME_WAIT from which a load of a minute may run out of them.
const WAITING_SHARE_MAX: f64 = 0.5;
/// How long a connection stays in TIME_WAIT (TCP_TIMEWAIT_LEN).
const TIME_WAIT_S: u64 = 60;

fn look(texts: &MachineTexts) -> Result<MachineState, String> {
    let text = texts.text(RANGE)?;
    let mut ends = text.split_whitespace().map(str::parse::<u64>);
    let (Some(Ok(first)), Some(Ok(last))) = (ends.next(), ends.next()) else {
        return Err(format!("{RANGE} holds no range: {text:?}"));
    };
    let ports = (last + 1).saturating_sub(first);
    let waiting = texts.text(SOCKSTAT).ok().and_then(in_time_wait);
    let seen = format!(
        "{}, so {} new connections/s to one address without reuse; in TIME_WAIT now: {}",
        words::count(ports, "port"),
        grouped(ports / TIME_WAIT_S),
        waiting.map_or_else(|| "not known".to_owned(), grouped),
    );
    if ports < PORTS_MIN {
        let today = format!("{first} {last}");
        return MachineState::worth_changing(
            seen,
            Mend::sysctl("net.ipv4.ip_local_port_range", today, WANTED),
        );
    }
    if waiting.is_some_and(|waiting| waiting as f64 > WAITING_SHARE_MAX * ports as f64) {
        let advice = format!(
            "wait {TIME_WAIT_S} s before the next load: they are left over from one before"
        );
        return MachineState::worth_changing(seen, Mend::advice(advice));
    }
    MachineState::fine(seen)
}

fn in_time_wait(sockstat: &str) -> Option<u64> {
    let line = sockstat.lines().find_map(|line| line.strip_prefix("TCP:"))?;
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = words.iter().position(|word| *word == "tw")?;
    words.get(at + 1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::super::planted;
    use super::*;

    #[test]
    fn few_ports_and_many_that_wait_are_worth_changing() {
        let sockstat =
            |waiting: u64| format!("sockets: used 9\nTCP: inuse 1 orphan 0 tw {waiting} alloc 1\n");
        let with = |range, waiting| {
            let text = sockstat(waiting);
            (planted::texts(&[(RANGE, range), (SOCKSTAT, &text)]).first, text)
        };
        assert_eq!(in_time_wait(&with("1 2", 7).1), Some(7));
        let few = sockstat(3);
        let seen = planted::fine(&ITEM, &[(RANGE, "32768\t60999"), (SOCKSTAT, &few)]);
        assert!(seen.starts_with("28,232 ports, so 470 new") && seen.ends_with("now: 3"), "{seen}");
        let (_, run) = planted::mended(&ITEM, &[(RANGE, "40000\t40500"), (SOCKSTAT, &few)]);
        assert_eq!(run, "sysctl -w net.ipv4.ip_local_port_range=\"10240 65535\"");
        let many = sockstat(20_000);
        let (_, wait) = planted::mended(&ITEM, &[(RANGE, "32768\t60999"), (SOCKSTAT, &many)]);
        assert!(wait.starts_with("wait 60 s"), "{wait}");
    }

    #[test]
    fn what_waits_is_not_known_without_its_file_and_never_0() {
        let seen = planted::fine(&ITEM, &[(RANGE, "32768\t60999")]);
        assert!(seen.ends_with("now: not known"), "{seen}");
    }
}
