//! Footnotes that several tools share. Start reading at [`found`].

use record::{Certainty, Finding, LoadRecord};

/// Findings of the doctor that invalidate the figures of any tool: the generator was the limit, or the server was gone
/// at the end. The judgement is the doctor's, in the record.
pub(crate) fn found(record: &LoadRecord) -> Vec<String> {
    let of = |check: &str| {
        let is_it = |one: &&Finding| one.check == check && one.certainty == Certainty::Confirmed;
        record.findings.iter().find(is_it)
    };
    let limit = of("generator_limit")
        .or_else(|| of("late_sends"))
        .map(|_| "the load generator itself was the limit; `joust load` says why".to_owned());
    let silent = of("silent_at_end").map(|one| one.seen().to_owned());
    limit.into_iter().chain(silent).collect()
}

/// `1 answer`, `3 answers`.
pub(crate) fn answers(n: u64) -> String {
    if n == 1 { "1 answer".to_owned() } else { format!("{n} answers") }
}

#[cfg(test)]
mod tests {
    use record::LoadPlan;

    use super::*;

    #[test]
    fn only_what_the_doctor_is_sure_of_becomes_a_footnote() {
        let mut load = LoadRecord::empty(LoadPlan::get(([127, 0, 0, 1], 80).into(), "/"));
        assert!(found(&load).is_empty());
        let finding = |check: &str, certainty| Finding {
            check: check.to_owned(),
            certainty,
            evidence: "the server: no reply came in the last 2s of 3s".to_owned(),
            ..Finding::default()
        };
        load.findings = vec![
            finding("generator_limit", Certainty::Suspected),
            finding("silent_at_end", Certainty::Confirmed),
        ];
        assert_eq!(found(&load), ["no reply came in the last 2s of 3s"]);
        load.findings.push(finding("late_sends", Certainty::Confirmed));
        assert!(found(&load)[0].contains("the load generator itself was the limit"));
    }
}
