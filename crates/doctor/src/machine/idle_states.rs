//! Owns the topic of how deep an idle CPU sleeps. Start reading at [`look`].

use super::{Change, MachineState, MachineTexts, Mend, Topic};
use crate::words;

/// See the module.
pub(super) const ITEM: Topic = Topic {
    name: "idle_states",
    title: "sleep states of idle CPUs",
    effect: "a CPU takes up to that long to wake up, which is part of every reply of a server that is not busy",
    needs: &[NAMES, LATENCIES, DISABLED],
    needs_twice: &[],
    look,
};

const NAMES: &str = "/sys/devices/system/cpu/cpu0/cpuidle/state*/name";
const LATENCIES: &str = "/sys/devices/system/cpu/cpu0/cpuidle/state*/latency";
const DISABLED: &str = "/sys/devices/system/cpu/cpu0/cpuidle/state*/disable";
/// Wake-ups up to this are a small part of a request over loopback, which takes some 30 us.
const LATENCY_US_MAX: u64 = 10;

fn look(texts: &MachineTexts) -> Result<MachineState, String> {
    let states: Vec<State> =
        texts.matching(LATENCIES).filter_map(|found| State::of(texts, found)).collect();
    if states.is_empty() {
        return Err("this kernel lists no idle states of CPU 0: usual in a virtual machine, where the host decides"
            .to_owned());
    }
    let enabled = || states.iter().filter(|state| !state.is_disabled);
    let Some(deepest) = enabled().max_by_key(|state| state.latency_us) else {
        return MachineState::fine("none is enabled: idle CPUs spin");
    };
    let seen =
        format!("down to {}, {} us to wake up", deepest.name, words::grouped(deepest.latency_us));
    if deepest.latency_us <= LATENCY_US_MAX {
        return MachineState::fine(seen);
    }
    let set = |state: &State, value: u64| {
        let files = format!("/sys/devices/system/cpu/cpu*/cpuidle/{}/disable", state.folder);
        format!("for f in {files}; do echo {value} > \"$f\"; done")
    };
    let is_deep = |state: &&State| state.latency_us > LATENCY_US_MAX;
    let change = |state: &State| Change {
        run: set(state, 1),
        today: format!("{} enabled", state.name),
        back: Some(set(state, 0)),
    };
    let changes = enabled().filter(is_deep).map(change).collect();
    MachineState::worth_changing(seen, Mend { advice: String::new(), changes })
}

struct State {
    /// "state3".
    folder: String,
    name: String,
    latency_us: u64,
    is_disabled: bool,
}

impl State {
    fn of(texts: &MachineTexts, (path, latency): (&str, &str)) -> Option<Self> {
        let folder = path.strip_suffix("/latency")?;
        let beside = |file: &str| texts.text(&format!("{folder}/{file}")).ok();
        let number = folder.rsplit('/').next()?;
        Some(Self {
            folder: number.to_owned(),
            name: beside("name").unwrap_or(number).to_owned(),
            latency_us: latency.parse().ok()?,
            is_disabled: beside("disable").is_some_and(|text| text != "0"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::planted;
    use super::*;

    #[test]
    fn a_deep_state_is_worth_changing_unless_it_is_disabled() {
        let at = |state: u32, file: &str| {
            format!("/sys/devices/system/cpu/cpu0/cpuidle/state{state}/{file}")
        };
        let look_at = |disabled: &str| {
            let files = [
                (at(0, "name"), "POLL"),
                (at(0, "latency"), "0"),
                (at(0, "disable"), "0"),
                (at(2, "name"), "C6"),
                (at(2, "latency"), "170"),
                (at(2, "disable"), disabled),
            ];
            let files: Vec<(&str, &str)> =
                files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
            look(&planted::texts(&files)).unwrap()
        };
        let MachineState::WorthChanging { seen, mend } = look_at("0") else { panic!("C6 is deep") };
        assert_eq!(seen, "down to C6, 170 us to wake up");
        assert_eq!(mend.changes.len(), 1);
        assert!(mend.changes[0].run.contains("cpu*/cpuidle/state2/disable; do echo 1"), "{mend:?}");
        assert_eq!(
            look_at("1"),
            MachineState::Fine { seen: "down to POLL, 0 us to wake up".to_owned() }
        );
    }
}
