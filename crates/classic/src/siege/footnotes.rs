//! What siege's report hides or gets wrong, for the run at hand. Owns the sentences; must not change a figure. Start
//! reading at [`after`].

use record::LoadRecord;

use super::figures::UserTotals;
use super::settings::Settings;
use super::style::Style;
use super::urls::{Scheme, Url};
use crate::command::notes::{answers, found};

/// Footnotes known before the load.
pub(super) fn before(settings: &Settings, urls: &[Url]) -> Vec<String> {
    let mut notes = Vec::new();
    if urls.iter().any(|url| url.scheme == Scheme::Https) {
        notes.push("siege verifies no certificate, so none was verified here either".to_owned());
    }
    if settings.cache {
        let text = "cache = true is not supported: every part is fetched each time";
        notes.push(text.to_owned());
    }
    if settings.internet && urls.len() > 1 {
        let text = "siege's -i rounds: the first URL comes half as often as the others, and the \
            last 1.5 times as often; joust does the same";
        notes.push(text.to_owned());
    }
    if settings.delay >= 1.0 {
        let text = "siege's -d rounds pauses of 1 or more to whole seconds; joust does the same";
        notes.push(text.to_owned());
    }
    notes
}

/// Footnotes from the load: one sentence for each point that applies, possibly none.
pub(super) fn after(settings: &Settings, tally: &UserTotals, record: &LoadRecord) -> Vec<String> {
    let hidden = &tally.hidden;
    let mut notes = Vec::new();
    if hidden.server_errors > 0 {
        notes.push(format!(
            "{} with 500 to 509 or 408 count as failed and not as transactions in siege, but their \
             bytes and times count",
            answers(hidden.server_errors)
        ));
    }
    if hidden.client_errors > 0 {
        notes.push(format!(
            "{} with another status from 400 on count as transactions in siege, neither successful \
             nor failed: they do not lower the availability",
            answers(hidden.client_errors)
        ));
    }
    if hidden.cut > 0 {
        notes.push(format!("{} broke off; siege counts each as complete", answers(hidden.cut)));
    }
    if hidden.further > 0 {
        notes.push(format!(
            "{} came of redirects, credentials and parts of pages; siege's transactions include them",
            answers(hidden.further)
        ));
    }
    if hidden.left_out > 0 {
        notes.push(format!(
            "{} parts of pages were not fetched, which siege would have fetched: a user has at most 10000 \
             parts waiting",
            hidden.left_out
        ));
    }
    if hidden.paused.0 > 0 {
        notes.push(format!(
            "users paused {:.2} s in all (-d): the response times do not include that, but the elapsed \
             time and the rate do",
            hidden.paused.0 as f64 / 1e9
        ));
    }
    notes.extend(times(settings, record));
    notes.extend(found(record));
    notes
}

/// The exact figures behind a mean, and behind a clock with steps of 10 ms.
fn times(settings: &Settings, record: &LoadRecord) -> Option<String> {
    let times = &record.response_ms;
    let longest = format!("the longest {:.3} ms", times.max?);
    let told = [
        times.p50.map(|median| format!("the median was {median:.3} ms")),
        times.p99.map(|most| format!("99 % took up to {most:.3} ms")),
        Some(longest),
    ];
    let told: Vec<String> = told.into_iter().flatten().collect();
    let why = match settings.style {
        Style::Seconds => format!(
            "siege's clock has steps of 10 ms and its response time is a mean: the load took {:.4} s",
            record.seconds
        ),
        Style::Millis => "siege's response time is a mean".to_owned(),
    };
    Some(format!("{why}; {}", told.join(", ")))
}
