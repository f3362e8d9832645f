//! Owns the topic of frequencies above the nominal one. Start reading at [`look`].

use super::{MachineState, MachineTexts, Mend, Topic};

/// See the module.
pub(super) const ITEM: Topic = Topic {
    name: "turbo",
    title: "frequencies above the nominal one (turbo, boost)",
    effect: "the frequency depends on temperature and on how many cores are busy, so the first visits are faster \
             than later ones",
    needs: &[NO_TURBO, BOOST],
    needs_twice: &[],
    look,
};

const NO_TURBO: &str = "/sys/devices/system/cpu/intel_pstate/no_turbo";
const BOOST: &str = "/sys/devices/system/cpu/cpufreq/boost";

fn look(texts: &MachineTexts) -> Result<MachineState, String> {
    let (path, off) = match (texts.text(NO_TURBO), texts.text(BOOST)) {
        (Ok(_), _) => (NO_TURBO, "1"),
        (_, Ok(_)) => (BOOST, "0"),
        (Err(intel), Err(other)) => {
            return Err(format!(
                "{intel}, and {other}: usual in a virtual machine, where the host decides"
            ));
        }
    };
    let today = texts.text(path)?;
    if today == off {
        return MachineState::fine("off");
    }
    MachineState::worth_changing("on", Mend::write(path, today, off))
}

#[cfg(test)]
mod tests {
    use super::super::planted;
    use super::*;

    #[test]
    fn turbo_is_worth_changing_by_the_file_that_is_there() {
        assert_eq!(planted::fine(&ITEM, &[(NO_TURBO, "1\n")]), "off");
        assert_eq!(planted::fine(&ITEM, &[(BOOST, "0\n")]), "off");
        let (_, run) = planted::mended(&ITEM, &[(NO_TURBO, "0\n")]);
        assert_eq!(run, format!("echo \"1\" > {NO_TURBO}"));
        let (_, run) = planted::mended(&ITEM, &[(BOOST, "1\n")]);
        assert_eq!(run, format!("echo \"0\" > {BOOST}"));
    }
}
