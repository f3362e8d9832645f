//! Owns the topic of random addresses. Most advice on benchmarks is to turn them off. That makes figures repeat,
//! but of one layout that may be a lucky one (Mytkowicz et al., Producing Wrong Data Without Doing Anything
//! Obviously Wrong, 2009). joust starts a server anew for each visit, so that random layouts average out.
//! Start reading at [`look`].

use super::{MachineState, MachineTexts, Mend, Topic};

/// See the module.
pub(super) const ITEM: Topic = Topic {
    name: "address_layout",
    title: "random addresses of a program's memory (ASLR)",
    effect: "without them every start has the same layout, and a layout that suits one server by chance looks like \
             its speed",
    needs: &[RANDOMIZE],
    needs_twice: &[],
    look,
};

const RANDOMIZE: &str = "/proc/sys/kernel/randomize_va_space";
/// Stack, libraries and heap.
const ALL: u64 = 2;

fn look(texts: &MachineTexts) -> Result<MachineState, String> {
    match texts.number(RANDOMIZE)? {
        ALL => MachineState::fine(
            "2: stack, libraries and heap; joust starts a server anew for each visit",
        ),
        1 => MachineState::worth_changing(
            "1: all but the heap",
            Mend::sysctl("kernel.randomize_va_space", 1, ALL),
        ),
        today => {
            let mend = Mend::sysctl("kernel.randomize_va_space", today, ALL);
            MachineState::worth_changing(format!("{today}: off"), mend)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::planted;
    use super::*;

    #[test]
    fn one_layout_for_all_starts_is_worth_changing() {
        assert!(planted::fine(&ITEM, &[(RANDOMIZE, "2\n")]).starts_with("2: "));
        let (seen, run) = planted::mended(&ITEM, &[(RANDOMIZE, "0\n")]);
        assert_eq!(
            (seen.as_str(), run.as_str()),
            ("0: off", "sysctl -w kernel.randomize_va_space=\"2\"")
        );
    }
}
