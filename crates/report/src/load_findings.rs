//! Owns what is shown of the doctor's findings in one load, before any of its figures. Must not decide what is a
//! finding: findings are read from the record. Start reading at [`found`].

use record::{Certainty, Finding, LoadRecord, Severity};

use crate::terminal::{Page, Paint};
use crate::wording::plain;

/// What one check found.
pub(crate) struct Found {
    /// "errors_as_speed (spoils the figures): 40 of 90,000 requests failed".
    pub(crate) said: String,
    /// What else it saw.
    pub(crate) more: Vec<String>,
    pub(crate) remedy: String,
    paint: Paint,
}

/// The findings, in groups of one check; the strongest come first.
pub(crate) fn found(record: &LoadRecord) -> Vec<Found> {
    Finding::grouped(&record.findings).iter().map(|group| of_group(group)).collect()
}

/// Shows them; returns whether there are any.
pub(crate) fn show(page: &mut Page, record: &LoadRecord) -> bool {
    let found = found(record);
    for one in &found {
        page.paragraph(&one.said, one.paint);
        one.more.iter().for_each(|more| page.detail(more));
        page.detail(&format!("Remedy: {}", one.remedy));
    }
    !found.is_empty()
}

/// Whether the rate is a bound, by a check that makes throughput one. In an open loop only if the requested rate was
/// not reached.
pub(crate) fn is_rate_bound(record: &LoadRecord) -> bool {
    let is_bound = record.findings.iter().any(|finding| finding.acts(Severity::Bound));
    is_bound && (record.open_loop.is_none() || record.rate_missed().is_some())
}

fn of_group(group: &[&Finding]) -> Found {
    let first = group[0];
    let (weight, paint) = weight(first);
    let mut seen = group.iter().map(|finding| plain(finding.seen()));
    let said = seen.next().unwrap_or_default();
    Found {
        said: format!("{} ({weight}): {said}", plain(&first.check)),
        more: seen.collect(),
        remedy: plain(&first.remedy),
        paint,
    }
}

/// A load alone has no verdict to withhold, so the check affects its figures.
fn weight(finding: &Finding) -> (&'static str, Paint) {
    match (finding.severity, finding.certainty) {
        (_, Certainty::Suspected) => ("suspected", Paint::Caution),
        (Severity::Void, Certainty::Confirmed) => ("spoils the figures", Paint::Alarm),
        (Severity::Bound, Certainty::Confirmed) => ("makes the rate a bound", Paint::Alarm),
        (Severity::Note, Certainty::Confirmed) => ("note", Paint::Caution),
    }
}

/// A confirmed finding in one load, as the doctor makes it.
#[cfg(test)]
pub(crate) fn finding_of_load(check: &str, severity: Severity, seen: &str) -> Finding {
    Finding {
        check: check.to_owned(),
        severity,
        certainty: Certainty::Confirmed,
        evidence: format!("{}: {seen}", Finding::SERVER),
        meaning: "it misleads".to_owned(),
        remedy: "mend it".to_owned(),
        ..Finding::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata;

    #[test]
    fn findings_of_one_check_are_one_with_its_remedy_and_the_strongest_comes_first() {
        let mut load = testdata::load();
        assert!(found(&load).is_empty());
        let note = finding_of_load("small", Severity::Note, "few\u{1b}[31m");
        let void = finding_of_load("lost", Severity::Void, "five of ten failed");
        let more = finding_of_load("lost", Severity::Void, "two were late");
        let suspicion = Finding { certainty: Certainty::Suspected, ..void.clone() };
        load.findings = vec![note, suspicion, void, more];
        let found = found(&load);
        let said: Vec<&str> = found.iter().map(|one| one.said.as_str()).collect();
        let expected = [
            "lost (spoils the figures): five of ten failed",
            "lost (suspected): five of ten failed",
        ];
        assert_eq!(said[..2], expected);
        assert!(
            said[2].starts_with("small (note): few") && !said[2].contains('\u{1b}'),
            "{said:?}"
        );
        assert_eq!(found[0].more, ["two were late"]);
        assert_eq!(found[0].remedy, "mend it");
    }

    #[test]
    fn the_rate_is_a_bound_by_what_was_found_and_in_an_open_loop_where_it_was_missed() {
        let mut load = testdata::load();
        assert!(!is_rate_bound(&load));
        load.findings = vec![finding_of_load("limit", Severity::Bound, "busy")];
        assert!(is_rate_bound(&load));
        let due = load.requests.started;
        load.open_loop = Some(record::OpenLoop { due, ..Default::default() });
        assert!(!is_rate_bound(&load));
        load.open_loop = Some(record::OpenLoop { due: 2 * due, left: due, ..Default::default() });
        assert!(is_rate_bound(&load));
    }
}
