//! Owns the topic of how many CPUs generator and server have. Start reading at [`look`].

use super::texts::listed;
use super::{MachineState, MachineTexts, Mend, Topic};
use crate::words;

/// See the module.
pub(super) const ITEM: Topic = Topic {
    name: "cpus",
    title: "CPUs for generator and server",
    effect: "a generator with one CPU is busy before most servers are, so rates become lower bounds; on one CPU both \
             slow each other down",
    needs: &[STATUS],
    needs_twice: &[],
    look,
};

const STATUS: &str = "/proc/self/status";
/// Two for the generator and two for the server.
const WANTED_MIN: usize = 4;

fn look(texts: &MachineTexts) -> Result<MachineState, String> {
    let cpus = listed(texts.field(STATUS, "Cpus_allowed_list")?).len();
    let shares = match cpus {
        0 => return Err(format!("{STATUS} lists no CPU")),
        1 => "generator and server share it".to_owned(),
        _ => format!("about {} for the generator and {} for the server", cpus - cpus / 2, cpus / 2),
    };
    let seen = format!("{}: {shares}", words::count(cpus as u64, "CPU"));
    if cpus >= WANTED_MIN {
        return MachineState::fine(seen);
    }
    let advice = format!(
        "use a machine with {WANTED_MIN} CPUs or more, or compare server CPU time per request, which does not depend \
         on the generator"
    );
    MachineState::worth_changing(seen, Mend::advice(advice))
}

#[cfg(test)]
mod tests {
    use super::super::planted;
    use super::*;

    #[test]
    fn fewer_than_four_are_worth_changing() {
        let with = |list: &str| format!("Name: joust\nCpus_allowed_list:\t{list}\n");
        let seen = planted::fine(&ITEM, &[(STATUS, &with("0-7"))]);
        assert_eq!(seen, "8 CPUs: about 4 for the generator and 4 for the server");
        let (seen, _) = planted::mended(&ITEM, &[(STATUS, &with("0-1"))]);
        assert_eq!(seen, "2 CPUs: about 1 for the generator and 1 for the server");
        let (seen, _) = planted::mended(&ITEM, &[(STATUS, &with("3"))]);
        assert_eq!(seen, "1 CPU: generator and server share it");
    }
}
