//! Owns the topic of the kernel's guards against faults of the CPU. Start reading at [`look`].

use super::{MachineState, MachineTexts, Mend, Topic};
use crate::words;

/// See the module.
pub(super) const ITEM: Topic = Topic {
    name: "mitigations",
    title: "guards against faults of the CPU (Meltdown, Spectre and others)",
    effect: "they make each system call slower, so servers that make many of them look better where they are off",
    needs: &[VULNERABILITIES, CMDLINE],
    needs_twice: &[],
    look,
};

const VULNERABILITIES: &str = "/sys/devices/system/cpu/vulnerabilities/*";
const CMDLINE: &str = "/proc/cmdline";

fn look(texts: &MachineTexts) -> Result<MachineState, String> {
    let states: Vec<(&str, &str)> = texts
        .matching(VULNERABILITIES)
        .map(|(path, text)| (path.rsplit('/').next().unwrap_or_default(), text))
        .collect();
    if states.is_empty() {
        return Err(format!("nothing in {VULNERABILITIES} could be read"));
    }
    let of = |word: &str| -> Vec<&str> {
        states.iter().filter(|(_, text)| text.starts_with(word)).map(|(name, _)| *name).collect()
    };
    let (guarded, open) = (of("Mitigation"), of("Vulnerable"));
    let named = |names: &[&str]| match names {
        [] => "none".to_owned(),
        names => words::list(names),
    };
    let seen = format!("guarded: {}; vulnerable: {}", named(&guarded), named(&open));
    let is_off = texts.text(CMDLINE).is_ok_and(|line| {
        line.split(' ').any(|word| matches!(word, "mitigations=off" | "nopti" | "nospectre_v2"))
    });
    if !is_off {
        return MachineState::fine(format!(
            "{seen}; compare only with machines that have the same"
        ));
    }
    let advice = "take mitigations=off, nopti and nospectre_v2 out of the kernel's command line, unless the servers \
                  will run without them";
    MachineState::worth_changing(format!("turned off at boot; {seen}"), Mend::advice(advice))
}

#[cfg(test)]
mod tests {
    use super::super::planted;
    use super::*;

    #[test]
    fn they_are_worth_changing_where_they_are_off() {
        let meltdown = ("/sys/devices/system/cpu/vulnerabilities/meltdown", "Mitigation: PTI\n");
        let seen = planted::fine(&ITEM, &[meltdown, (CMDLINE, "quiet")]);
        assert!(seen.starts_with("guarded: meltdown; vulnerable: none"), "{seen}");
        let open = ("/sys/devices/system/cpu/vulnerabilities/meltdown", "Vulnerable\n");
        let (seen, _) = planted::mended(&ITEM, &[open, (CMDLINE, "quiet mitigations=off")]);
        assert_eq!(seen, "turned off at boot; guarded: none; vulnerable: meltdown");
    }
}
