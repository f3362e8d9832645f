//! Texts that tests plant.

use super::{MachineState, MachineTexts, Topic, Unread};

/// A machine with these files and no other.
pub(super) fn texts(files: &[(&str, &str)]) -> MachineTexts {
    let mut texts = MachineTexts::default();
    for (path, text) in files {
        texts.first.insert((*path).to_owned(), Ok((*text).to_owned()));
    }
    texts
}

/// What a topic sees where it is fine.
pub(super) fn fine(topic: &Topic, files: &[(&str, &str)]) -> String {
    match (topic.look)(&texts(files)) {
        Ok(MachineState::Fine { seen }) => seen,
        other => panic!("{} is fine with {files:?}: {other:?}", topic.name),
    }
}

/// What a topic sees and the commands or the advice, where it is worth changing.
pub(super) fn mended(topic: &Topic, files: &[(&str, &str)]) -> (String, String) {
    match (topic.look)(&texts(files)) {
        Ok(MachineState::WorthChanging { seen, mend }) => {
            let runs: Vec<String> = mend.changes.into_iter().map(|change| change.run).collect();
            let way_out = if runs.is_empty() { mend.advice } else { runs.join("; ") };
            assert!(!way_out.is_empty(), "{} says what to do", topic.name);
            (seen, way_out)
        }
        other => panic!("{} is worth changing with {files:?}: {other:?}", topic.name),
    }
}

/// Why a topic is not available where a file is missing.
pub(super) fn missing(topic: &Topic, path: &str) -> String {
    let mut texts = MachineTexts::default();
    texts.first.insert(path.to_owned(), Err(Unread::Absent));
    (topic.look)(&texts).expect_err(topic.name)
}
