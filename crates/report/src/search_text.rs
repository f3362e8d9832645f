//! The terminal report of a search for the highest rate that holds. Owns its layout and its headline.
//! Must not know how rates are chosen. Start reading at [`search_text`].

use record::{Limit, SearchEnding, SearchRecord, Try, TryOutcome};
use units::PerSecond;

use crate::Options;
use crate::figures::{NONE, counted, grouped, listed, percent, significant};
use crate::load_shape::law;
use crate::load_text::judgement;
use crate::standing::span;
use crate::terminal::{Lean, Page, Paint};
use crate::wording::plain;

/// What a search found, for a terminal; ends in a newline.
pub fn search_text(record: &SearchRecord, options: &Options) -> String {
    let mut page = Page::new(options);
    let url = record.plan.as_ref().map_or_else(String::new, |plan| plain(&plan.url));
    page.heading(&format!("joust load --search: {url}"), "");
    let cautions = cautions(record);
    for caution in &cautions {
        page.paragraph(caution, Paint::Alarm);
    }
    let is_clean = cautions.is_empty() && record.highest_good.is_some();
    page.paragraph(&headline(record), if is_clean { Paint::Good } else { Paint::Caution });
    page.paragraph(&shape(record), Paint::Faint);
    if let Some(text) = upper_end(record) {
        page.paragraph(&text, Paint::Plain);
    }
    tries(&mut page, record);
    page.finish()
}

/// Goals as they are typed: `p99<10ms and errors<0.1%`.
fn goals(record: &SearchRecord) -> String {
    let goals: Vec<String> = record.goals.iter().map(ToString::to_string).collect();
    listed(&goals)
}

fn shown(rate: PerSecond) -> String {
    significant(rate.0)
}

/// The interval, or that there is none.
fn headline(record: &SearchRecord) -> String {
    let goals = goals(record);
    match (record.highest_good, record.lowest_bad) {
        (Some(good), Some(bad)) => format!(
            "{goals} met up to a rate between {} and {} requests/s [highest good, lowest bad]",
            shown(good),
            shown(bad)
        ),
        (Some(good), None) if record.tries.iter().all(Try::is_good) => {
            let is_over = record.ending == SearchEnding::AllGood;
            format!(
                "{goals} met at every rate that was tried, up to {} requests/s{}",
                shown(good),
                if is_over { ": the limit is higher" } else { "" }
            )
        }
        (Some(good), None) if record.tries.iter().all(|tried| tried.rate <= good) => format!(
            "{goals} met at {} requests/s, the highest rate that was tried; not every try up to there \
             met them or could be judged",
            shown(good)
        ),
        (Some(good), None) => {
            format!("{goals} met up to {} requests/s; higher rates are not known", shown(good))
        }
        (None, _) => format!("{goals} {}", record.none_held()),
    }
}

/// What a reader must know before reading the interval.
fn cautions(record: &SearchRecord) -> Vec<String> {
    let uncertain = match record.ending {
        SearchEnding::Interrupted => Some("incomplete: the search was interrupted"),
        SearchEnding::Tries => Some("incomplete: all tries were made (--tries)"),
        SearchEnding::Noisy if !has_turns(record) => Some(
            "rates in the interval had too few requests to be judged: it is wider than requested, and \
             longer tries (-d) may narrow it",
        ),
        SearchEnding::Noisy => Some(
            "rates in the interval met the goals in some tries and missed them in others: it is wider than requested, and \
             longer tries (-d) would narrow it",
        ),
        SearchEnding::Narrow | SearchEnding::AllGood | SearchEnding::NoneGood => None,
    };
    let unsure = if record.is_certain() { "" } else { "; its ends are not certain" };
    let above = record.good_above();
    let limit = match record.limit {
        Limit::Generator => Some(
            "the generator was the limit at the upper end: the server may reach more; give the generator more \
             threads (-t) or CPUs (--cpus)",
        ),
        // An interval with one end: the headline says which rates could not be judged.
        Limit::Samples => Some(
            "some tries have too few requests to judge the goals: make them longer (-d), or choose \
             a lower percentile",
        ),
        Limit::Server | Limit::NotReached => None,
    };
    [
        limit.map(str::to_owned),
        uncertain.map(|text| format!("{text}{unsure}")),
        (!above.is_empty()).then(|| {
            let rates: Vec<String> = above.iter().map(|&rate| shown(rate)).collect();
            format!(
                "rates above the interval met the goals ({} requests/s): the server is worse at a lower rate, \
                 or something disturbed it",
                listed(&rates)
            )
        }),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Whether a rate between the ends, or at an end, sometimes held and sometimes did not.
fn has_turns(record: &SearchRecord) -> bool {
    let SearchRecord { highest_good: good, lowest_bad: bad, .. } = *record;
    let is_within = |rate: &PerSecond| {
        good.is_none_or(|good| *rate >= good) && bad.is_none_or(|bad| *rate <= bad)
    };
    record.ambiguous().iter().any(is_within)
}

fn shape(record: &SearchRecord) -> String {
    let n_ambiguous = record.ambiguous().len() as u64;
    let ambiguous = match n_ambiguous {
        0 => "no rate was ambiguous".to_owned(),
        n => format!("{} ambiguous", counted(n, "rate") + if n == 1 { " was" } else { " were" }),
    };
    let law = record.plan.as_ref().map_or_else(String::new, |plan| {
        let law = law(&plan.pacing);
        let connections = counted(plan.connections.into(), "connection");
        format!("; first try: {law}, {connections}")
    });
    format!(
        "{}, a rate is certain after {} that agree; {ambiguous}; requested precision {}{law}",
        n_tries(record.tries.len()),
        record.repeats,
        record.precision,
    )
}

fn n_tries(n: usize) -> String {
    if n == 1 { "1 try".to_owned() } else { format!("{} tries", grouped(n as u64)) }
}

/// Why the lowest bad rate did not hold.
fn upper_end(record: &SearchRecord) -> Option<String> {
    let bad = record.lowest_bad?;
    let failed = record
        .tries
        .iter()
        .rfind(|tried| tried.rate == bad && !tried.is_good() && !tried.is_sparse())?;
    let why: Vec<String> =
        failed.judgements.iter().filter(|judged| !judged.is_met()).map(judgement).collect();
    let why = match failed.outcome {
        TryOutcome::RateMissed => "the rate was not reached".to_owned(),
        TryOutcome::QueueGrew => format!(
            "the queue grew, by {} in a try of {}: {} requests/s were answered in time",
            counted(failed.queue_grew_by.unwrap_or_default().round() as u64, "request"),
            counted(failed.due, "request"),
            significant(failed.rate_per_s)
        ),
        TryOutcome::MostlyFailed => {
            format!("{} of {} requests failed", grouped(failed.bad), grouped(failed.due))
        }
        _ => listed(&why),
    };
    Some(format!("At {} requests/s: {why}", shown(bad)))
}

fn tries(page: &mut Page, record: &SearchRecord) {
    if record.tries.is_empty() {
        return;
    }
    page.heading("Tries", "in order; response times; busy: CPU of the busiest generator thread");
    let columns = [
        ("try", Lean::Right),
        ("target/s", Lean::Right),
        ("achieved/s", Lean::Right),
        ("p50", Lean::Right),
        ("p99", Lean::Right),
        ("errors", Lean::Right),
        ("busy", Lean::Right),
        ("outcome", Lean::Left),
    ];
    let rows: Vec<Vec<String>> =
        record.tries.iter().enumerate().map(|(at, tried)| row(at, tried)).collect();
    page.table(&columns, &rows);
}

fn row(at: usize, tried: &Try) -> Vec<String> {
    let millis = |ms: Option<f64>| ms.map_or_else(|| NONE.to_owned(), span);
    vec![
        grouped(at as u64 + 1),
        shown(tried.rate),
        significant(tried.rate_per_s),
        millis(tried.p50_ms),
        millis(tried.p99_ms),
        percent(tried.bad, tried.due),
        format!("{:.0} %", 100.0 * tried.generator_busy),
        outcome(tried).to_owned(),
    ]
}

fn outcome(tried: &Try) -> &'static str {
    match (tried.outcome, tried.is_generator_limit) {
        (TryOutcome::Held, _) => "met",
        (TryOutcome::TooFewSamples, _) => "too few requests",
        (_, true) => "generator",
        (TryOutcome::Broken, _) => "missed",
        (TryOutcome::RateMissed, _) => "rate missed",
        (TryOutcome::QueueGrew, _) => "queue grew",
        (TryOutcome::MostlyFailed, _) => "mostly failed",
    }
}

#[cfg(test)]
mod tests {
    use record::{LoadPlan, OpenLoop, Pacing, parse_goals};
    use units::{Nanos, Share};

    use super::*;
    use crate::testdata;

    fn tried(rate: f64, p99_ms: u64) -> Try {
        let goals = parse_goals("p99<10ms,errors<0.1%").unwrap();
        let mut load = testdata::load();
        load.latencies.response.clear();
        (0..1000).for_each(|_| load.latencies.response.record(Nanos::from_millis(p99_ms)));
        load.response_ms = (&load.latencies.response).into();
        load.open_loop = Some(OpenLoop { due: load.requests.started, ..OpenLoop::default() });
        Try::of(PerSecond(rate), &goals, &load)
    }

    fn search(tries: Vec<Try>) -> SearchRecord {
        let rate = PerSecond(1000.0);
        SearchRecord {
            format: SearchRecord::FORMAT.to_owned(),
            goals: parse_goals("p99<10ms,errors<0.1%").unwrap(),
            low: None,
            high: None,
            precision: Share(0.05),
            repeats: 3,
            tries_max: 40,
            tries,
            highest_good: Some(rate),
            lowest_bad: Some(PerSecond(1040.0)),
            limit: Limit::Server,
            ending: SearchEnding::Narrow,
            plan: Some(LoadPlan {
                pacing: Pacing::Poisson { rate },
                ..LoadPlan::get(([127, 0, 0, 1], 8080).into(), "/")
            }),
        }
    }

    fn tries_of_three() -> Vec<Try> {
        vec![tried(1000.0, 5), tried(123_456.0, 12), tried(1040.0, 12), tried(1000.0, 11)]
    }

    fn flat(record: &SearchRecord) -> String {
        let text = search_text(record, &Options { width: 400, ..Options::default() });
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_headline_is_the_interval_and_every_try_has_a_row() {
        let text = flat(&search(tries_of_three()));
        for part in [
            "p99<10ms and errors<0.1% met up to a rate between 1,000 and 1,040 requests/s",
            "4 tries, a rate is certain after 3 that agree; 1 rate was ambiguous",
            "At 1,040 requests/s: goal p99<10ms MISSED: p99 of response is 12ms",
            "Poisson 1000/s, 10 connections",
            "4 1,000",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
    }

    #[test]
    fn what_spoils_the_interval_is_said_before_it() {
        let found = search(tries_of_three());
        let cases = [
            (SearchEnding::Interrupted, Limit::Server, "interrupted; its ends are not certain"),
            (SearchEnding::Tries, Limit::Server, "all tries were made"),
            (SearchEnding::Noisy, Limit::Server, "missed them in others"),
            (SearchEnding::Narrow, Limit::Generator, "the server may reach more"),
            (SearchEnding::NoneGood, Limit::Samples, "too few requests"),
        ];
        for (ending, limit, part) in cases {
            let text = flat(&SearchRecord { ending, limit, ..found.clone() });
            let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part}: {text}"));
            assert!(at(part) < at("met up to"), "{text}");
        }
    }

    #[test]
    fn one_end_or_none_makes_no_interval() {
        let found = search(Vec::new());
        let all = SearchRecord { lowest_bad: None, ..found.clone() };
        assert!(flat(&all).contains("met at every rate that was tried, up to 1,000"));
        let none = SearchRecord { highest_good: None, ..found.clone() };
        assert!(flat(&none).contains("not met at any tried rate, down to 1040/s"));
        let empty = SearchRecord { lowest_bad: None, highest_good: None, plan: None, ..found };
        assert!(flat(&empty).contains("not tried: no rate was tried"));
    }

    #[test]
    fn a_rate_that_could_not_be_judged_is_not_called_bad() {
        let sparse = Try { outcome: TryOutcome::TooFewSamples, bad: 0, ..tried(50.0, 5) };
        let limit = Limit::Samples;
        let found = SearchRecord { highest_good: None, limit, ..search(vec![sparse]) };
        let text = flat(&found);
        for part in ["missed at 1040/s, and lower rates could not", "longer (-d)"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let one_end = SearchRecord { lowest_bad: None, ..found };
        let text = flat(&one_end);
        assert!(text.contains("at any tried rate, up to 50/s: the tries had too"), "{text}");
        let held = SearchRecord { highest_good: Some(PerSecond(40.0)), ..one_end };
        let text = flat(&held);
        assert!(text.contains("met up to 40.0 requests/s; higher rates are not known"), "{text}");
    }

    #[test]
    fn that_every_rate_held_is_said_only_where_every_try_did() {
        let sparse = Try { outcome: TryOutcome::TooFewSamples, ..tried(900.0, 5) };
        let tries = vec![sparse, tried(1000.0, 5)];
        let found = SearchRecord { lowest_bad: None, ..search(tries) };
        let text = flat(&found);
        assert!(
            text.contains("met at 1,000 requests/s, the highest rate that was tried; not"),
            "{text}"
        );
        let all = |ending| SearchRecord { ending, tries: vec![tried(1000.0, 5)], ..found.clone() };
        assert!(
            flat(&all(SearchEnding::AllGood))
                .contains("up to 1,000 requests/s: the limit is higher")
        );
        assert!(!flat(&all(SearchEnding::Tries)).contains("the limit is higher"));
    }

    #[test]
    fn what_failed_at_the_upper_end_is_told_of_a_try_that_could_be_judged() {
        let sparse = Try { outcome: TryOutcome::TooFewSamples, ..tried(1040.0, 5) };
        let mostly =
            Try { outcome: TryOutcome::MostlyFailed, bad: 60, due: 100, ..tried(1040.0, 5) };
        let text = flat(&search(vec![mostly, Try { is_generator_limit: true, ..sparse }]));
        assert!(text.contains("At 1,040 requests/s: 60 of 100 requests failed"), "{text}");
        assert!(text.contains("mostly failed") && text.contains("too few requests"), "{text}");
    }

    #[test]
    fn of_rates_that_held_by_turns_among_such_with_few_requests_both_is_said() {
        let sparse = Try { outcome: TryOutcome::TooFewSamples, ..tried(100.0, 5) };
        let tries = vec![sparse, tried(200.0, 5), tried(200.0, 12)];
        let found = SearchRecord { highest_good: None, lowest_bad: None, ..search(tries) };
        let text = flat(&found);
        assert!(
            text.contains("met in some tries and missed in others at 200/s; at other rates"),
            "{text}"
        );
    }

    #[test]
    fn a_rate_that_held_above_the_interval_is_told() {
        let mut tries = tries_of_three();
        tries.push(tried(2000.0, 5));
        assert!(
            flat(&search(tries))
                .contains("rates above the interval met the goals (2,000 requests/s)")
        );
    }

    #[test]
    fn every_line_fits() {
        for width in [60, 80, 100] {
            let text =
                search_text(&search(tries_of_three()), &Options { width, ..Options::default() });
            assert!(text.lines().all(|line| line.chars().count() <= width), "{width}\n{text}");
        }
    }
}
