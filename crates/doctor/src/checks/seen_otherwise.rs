//! Owns the check that a server's stated file cache agrees with its system calls: without a
//! cache it opens the file for each request, with one it does not. Start reading at [`look`].

use record::{Certainty, Question, Severity};

use super::Check;
use crate::parity::{self, Switch};
use crate::{Evidence, Observation};

/// See the module.
pub(crate) const ITEM: Check = Check {
    name: "seen_otherwise",
    severity: Severity::Note,
    question: Question::DidItEvenHappen,
    spares_like_pairs: false,
    title: "a server's file cache is not what its configuration says",
    meaning: "the parity table states other work per request than was measured",
    remedy: "read its effective configuration: another file, a default or a build option may override it; \
             `strace -f -p PID` shows the calls",
    detection: "System calls of a probe before the run, counted by name, beside the file cache that the \
             configuration states: below or above 0.5 opened files a request",
    example: "an nginx whose open_file_cache is set in a block that does not apply",
    source: "ptrace(2); open(2)",
    needs: &[],
    look,
};

/// Opened files per request from which on each request opens one: some are opened now and then.
const EACH: f64 = 0.5;

fn look(evidence: &Evidence) -> Vec<Observation> {
    let contenders = evidence.run.contenders.iter().enumerate();
    let pages = parity::pages_asked(&evidence.run.plan, 0);
    contenders
        .filter_map(|(index, facts)| {
            let stated = facts.parity.get(Switch::FileCache.name())?;
            let stated = parity::at_page(stated, pages[index]);
            let opens: f64 =
                facts.parity.get("seen_file_opens")?.strip_suffix(" a request")?.parse().ok()?;
            let is_off = stated == "off";
            let is_on = stated.starts_with("on");
            let differs = (is_off && opens < EACH) || (is_on && opens >= EACH);
            differs.then(|| Observation {
                share: None,
                certainty: Certainty::Suspected,
                contenders: vec![index],
                evidence: format!(
                    "{}: file cache {stated}, but it opened {opens:.1} files per request",
                    evidence.names(&[index])
                ),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata;

    fn seen(stated: &str, opens: &str) -> Vec<Observation> {
        let mut run = testdata::run(&["a", "b"], 8);
        for (name, value) in [("file_cache", stated), ("seen_file_opens", opens)] {
            run.contenders[1].parity.insert(name.to_owned(), value.to_owned());
        }
        look(&Evidence::of(&run))
    }

    #[test]
    fn a_server_that_does_what_is_stated_is_silent() {
        for (stated, opens) in [
            ("off", "1.0 a request"),
            ("off", "2.0 a request"),
            ("on (content, 1 s)", "0.0 a request"),
            ("on (content, 5 s); above 48 KiB: off", "0.0 a request"),
            ("unknown: why", "1.0 a request"),
            ("off", "0.0 a request, others by io_uring"),
        ] {
            assert_eq!(seen(stated, opens), [], "{stated} {opens}");
        }
        assert_eq!(look(&Evidence::of(&testdata::run(&["a", "b"], 8))), []);
    }

    #[test]
    fn one_that_does_otherwise_is_named_with_both() {
        let found = seen("off", "0.0 a request");
        assert_eq!(found[0].contenders, [1]);
        assert_eq!(found[0].evidence, "b: file cache off, but it opened 0.0 files per request");
        assert_eq!(seen("on (descriptor, 60 s)", "1.0 a request").len(), 1);
    }
}
