//! What siege's report hides or gets wrong, said of the run at hand. Owns the sentences; must not change
//! a figure. Start reading at [`after`].

use record::LoadRecord;

use super::figures::Tally;
use super::settings::Settings;
use super::style::Style;
use super::urls::{Scheme, Url};

/// What is known before the load.
pub(super) fn before(settings: &Settings, urls: &[Url]) -> Vec<String> {
    let mut notes = Vec::new();
    if urls.iter().any(|url| url.scheme == Scheme::Https) {
        notes.push("siege verifies no certificate, so none was verified here either".to_owned());
    }
    if settings.cache {
        let text = "cache = true is not carried out: every part is asked for each time";
        notes.push(text.to_owned());
    }
    if settings.internet && urls.len() > 1 {
        let text = "siege's -i rounds: the first URL comes half as often as the others, and the \
            last half as often again; so here";
        notes.push(text.to_owned());
    }
    if settings.delay >= 1.0 {
        let text = "siege's -d from 1 on pauses whole seconds, rounded: so here";
        notes.push(text.to_owned());
    }
    notes
}

/// What was seen: a sentence for each thing, none where there is nothing.
pub(super) fn after(settings: &Settings, tally: &Tally, record: &LoadRecord) -> Vec<String> {
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
             nor failed: availability does not see them",
            answers(hidden.client_errors)
        ));
    }
    if hidden.cut > 0 {
        notes.push(format!("{} broke off; siege counts each as a whole one", answers(hidden.cut)));
    }
    if hidden.further > 0 {
        notes.push(format!(
            "{} came of redirects, credentials and parts of pages; siege's transactions include them",
            answers(hidden.further)
        ));
    }
    if hidden.left_out > 0 {
        notes.push(format!(
            "of parts of pages {} were not fetched, for which siege would have asked: a user has no more \
             than 10000 of them waiting",
            hidden.left_out
        ));
    }
    if hidden.paused.0 > 0 {
        notes.push(format!(
            "users paused {:.2} s in all (-d): that is in no response time, but in the elapsed time \
             and so in the rate",
            hidden.paused.0 as f64 / 1e9
        ));
    }
    notes.extend(times(settings, record));
    if !record.generator_limits().is_empty() {
        let text = "the load generator itself was a limit of this figure: joust load says how";
        notes.push(text.to_owned());
    }
    notes
}

fn answers(n: u64) -> String {
    if n == 1 { "1 answer".to_owned() } else { format!("{n} answers") }
}

/// The figures behind a mean, and behind a clock that has steps of 10 ms.
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
