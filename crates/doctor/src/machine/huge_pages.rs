//! Owns the topic of huge pages that the kernel makes by itself. Start reading at [`look`].

use super::{MachineState, MachineTexts, Mend, Topic};

/// See the module.
pub(super) const ITEM: Topic = Topic {
    name: "huge_pages",
    title: "transparent huge pages",
    effect: "a process can stop for milliseconds while the kernel moves memory to make one, and its memory figures \
             grow by 2 MB at a time",
    needs: &[ENABLED, DEFRAG],
    needs_twice: &[],
    look,
};

const ENABLED: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
const DEFRAG: &str = "/sys/kernel/mm/transparent_hugepage/defrag";

fn look(texts: &MachineTexts) -> Result<MachineState, String> {
    let (enabled, defrag) = (chosen(texts.text(ENABLED)?), chosen(texts.text(DEFRAG)?));
    let seen = format!("enabled: {enabled}, defrag: {defrag}");
    // Only then does a process that never asked for them wait for one.
    if enabled == "always" && defrag == "always" {
        return MachineState::worth_changing(seen, Mend::write(DEFRAG, defrag, "madvise"));
    }
    MachineState::fine(seen)
}

/// The word in brackets: "madvise" of "always [madvise] never".
fn chosen(text: &str) -> &str {
    let word = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    word.map_or(text, |(word, _)| word)
}

#[cfg(test)]
mod tests {
    use super::super::planted;
    use super::*;

    #[test]
    fn waiting_for_huge_pages_is_worth_changing() {
        let defrag = "always defer defer+madvise [madvise] never";
        let seen = planted::fine(&ITEM, &[(ENABLED, "[always] madvise never"), (DEFRAG, defrag)]);
        assert_eq!(seen, "enabled: always, defrag: madvise");
        let files = [(ENABLED, "[always] madvise never"), (DEFRAG, "[always] defer madvise never")];
        assert_eq!(planted::mended(&ITEM, &files).1, format!("echo \"madvise\" > {DEFRAG}"));
    }
}
