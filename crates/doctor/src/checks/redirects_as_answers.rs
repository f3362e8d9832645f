//! Owns the check that what was measured are pages, not redirects to them. Start reading at [`look`].
//!
//! A redirect is a short reply from memory: a server that redirects to its page (a missing slash, HTTPS, another
//! host name) answers many times faster than one that sends it. Most tools count it as a success, as joust
//! does, since its status is below 400. Contenders that all redirect alike did the same work.

use std::collections::BTreeMap;

use record::{Certainty, LoadRecord, Question, Severity};

use super::Check;
use crate::{Evidence, Observation, words};

/// See the module.
pub(crate) const ITEM: Check = Check {
    name: "redirects_as_answers",
    severity: Severity::Void,
    question: Question::DoesItMatter,
    spares_like_pairs: true,
    title: "replies were redirects that nobody followed",
    meaning: "a redirect is a quick reply without the page, so its speed is not that of the page",
    remedy: "ask for the URL that it leads to, or let `joust load` follow (--follow 5); where redirects are \
             what you measure, say so (--expect-status 300-399)",
    detection: "Replies with a status of a redirect that were not followed, where the plan accepts other \
             statuses too. One is enough",
    example: "`joust load http://127.0.0.1/folder` where the server wants `/folder/`",
    source: "RFC 9110, section 15.4",
    needs: &[],
    look,
};

/// The first status of a redirect: a plan that accepts nothing below expects them.
const REDIRECTS_FROM: u16 = 300;

/// A contender that redirects.
struct Redirecting {
    contender: usize,
    share: f64,
    said: String,
}

fn look(evidence: &Evidence) -> Vec<Observation> {
    // Those that redirect with one status, always or sometimes, did the same work.
    let mut alike: BTreeMap<(u16, bool), Vec<Redirecting>> = BTreeMap::new();
    for contender in evidence.contenders() {
        if let Some((kind, seen)) = look_at(evidence, contender) {
            alike.entry(kind).or_default().push(seen);
        }
    }
    let seen = |alike: Vec<Redirecting>| Observation {
        share: alike.iter().map(|one| one.share).reduce(f64::max),
        certainty: Certainty::Confirmed,
        contenders: alike.iter().map(|one| one.contender).collect(),
        evidence: alike.into_iter().map(|one| one.said).collect::<Vec<_>>().join(". "),
    };
    alike.into_values().map(seen).collect()
}

fn look_at(evidence: &Evidence, contender: usize) -> Option<((u16, bool), Redirecting)> {
    let is_asked =
        |load: &&LoadRecord| load.plan.follow == 0 && load.plan.verify.status_min < REDIRECTS_FROM;
    let loads = || evidence.loads(contender).map(|(_, load)| load).filter(is_asked);
    let redirected: u64 = loads().map(LoadRecord::redirected).sum();
    let replies: u64 = loads().flat_map(|load| load.status.values()).sum();
    let first = loads().find_map(|load| load.redirects.first.as_ref())?;
    if redirected == 0 {
        return None;
    }
    let said = format!(
        "{}: {} of {} redirects ({} to {})",
        evidence.name(contender),
        words::grouped(redirected),
        match replies {
            1 => "1 reply were".to_owned(),
            n => format!("{} replies were", words::grouped(n)),
        },
        first.status,
        first.location,
    );
    let share = redirected as f64 / replies as f64;
    Some(((first.status, redirected == replies), Redirecting { contender, share, said }))
}

#[cfg(test)]
mod tests {
    use record::{Redirect, RunRecord};

    use super::*;
    use crate::testdata;

    /// Those contenders answer every request with that status.
    fn with(redirecting: &[(usize, u16)]) -> RunRecord {
        let mut run = testdata::run(&["a", "b", "c"], 2);
        for visit in &mut run.visits {
            let Some((_, status)) = redirecting.iter().find(|(who, _)| *who == visit.contender)
            else {
                continue;
            };
            let load = visit.load.as_mut().unwrap();
            load.status = [(*status, load.requests.done)].into();
            let location = "http://b/page/".to_owned();
            load.redirects.first = Some(Redirect { status: *status, location });
        }
        run
    }

    #[test]
    fn a_contender_that_redirects_is_told_from_one_that_sends_the_page() {
        assert_eq!(look(&Evidence::of(&with(&[]))), []);
        let seen = look(&Evidence::of(&with(&[(1, 301)])));
        assert_eq!((seen.len(), seen[0].contenders.as_slice()), (1, &[1][..]));
        let text = "b: 90,000 of 90,000 replies were redirects (301 to http://b/page/)";
        assert_eq!((seen[0].evidence.as_str(), seen[0].share), (text, Some(1.0)));
    }

    #[test]
    fn who_redirects_alike_did_the_same_work() {
        let touched = |run: &RunRecord, a: usize, b: usize| {
            let found = crate::examine(run);
            found.iter().any(|one| one.check == ITEM.name && one.touches_pair(a, b))
        };
        let run = with(&[(0, 301), (1, 301), (2, 302)]);
        assert!(!touched(&run, 0, 1) && touched(&run, 0, 2) && touched(&run, 1, 2));
    }

    #[test]
    fn who_follows_them_or_expects_them_is_not_warned() {
        for change in [
            |load: &mut LoadRecord| load.plan.follow = 5,
            |load: &mut LoadRecord| load.plan.verify.status_min = 301,
        ] {
            let mut run = with(&[(1, 301)]);
            run.visits.iter_mut().filter_map(|visit| visit.load.as_mut()).for_each(change);
            assert_eq!(look(&Evidence::of(&run)), []);
        }
    }

    #[test]
    fn the_share_follows_the_dose() {
        let mut run = with(&[(1, 301)]);
        for visit in run.visits.iter_mut().filter(|visit| visit.contender == 1) {
            let load = visit.load.as_mut().unwrap();
            load.status = [(200, load.requests.done / 2), (301, load.requests.done / 2)].into();
        }
        assert_eq!(look(&Evidence::of(&run))[0].share, Some(0.5));
    }
}
