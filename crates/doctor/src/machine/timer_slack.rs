//! Owns the topic of how late a timer may be on purpose. Start reading at [`look`].

use super::{MachineState, MachineTexts, Mend, Topic};
use crate::words::grouped;

/// See the module.
pub(super) const ITEM: Topic = Topic {
    name: "timer_slack",
    title: "how late the kernel may let a timer be, to save wake-ups (timer slack)",
    effect: "servers and other load tools sleep longer than they ask for; joust sets 1 ns for its own generator",
    needs: &[SLACK],
    needs_twice: &[],
    look,
};

const SLACK: &str = "/proc/self/timerslack_ns";
/// The kernel's default (PR_SET_TIMERSLACK(2const)).
const DEFAULT_NS: u64 = 50_000;

fn look(texts: &MachineTexts) -> Result<MachineState, String> {
    let today = texts.number(SLACK)?;
    let seen = format!("{} ns", grouped(today));
    if today <= DEFAULT_NS {
        return MachineState::fine(seen);
    }
    let run = format!("echo {DEFAULT_NS} > /proc/$PPID/timerslack_ns");
    let back = format!("echo {today} > /proc/$PPID/timerslack_ns");
    let mend = Mend {
        advice: "in the shell that then starts joust; a service has TimerSlackNSec=".to_owned(),
        ..Mend::command(run, &today.to_string(), Some(back))
    };
    MachineState::worth_changing(seen, mend)
}

#[cfg(test)]
mod tests {
    use super::super::planted;
    use super::*;

    #[test]
    fn more_slack_than_the_default_is_worth_changing() {
        assert_eq!(planted::fine(&ITEM, &[(SLACK, "50000\n")]), "50,000 ns");
        let (seen, run) = planted::mended(&ITEM, &[(SLACK, "40000000\n")]);
        assert_eq!(seen, "40,000,000 ns");
        assert_eq!(run, "echo 50000 > /proc/$PPID/timerslack_ns");
    }
}
