//! What wrk's report hides or gets wrong, for the run at hand. Owns the sentences; must not change a figure. Start
//! reading at [`footnotes`].

use record::{LoadRecord, Outcome};
use units::Nanos;

use super::figures::Figures;
use super::flags::Flags;
use super::units::{format_micros, format_seconds};
use crate::command::notes::found;

/// Limitations known before the load.
pub(super) fn before(flags: &Flags) -> Vec<String> {
    let mut notes = Vec::new();
    if flags.url.is_tls() {
        notes.push("wrk verifies no certificate, so none was verified here either".to_owned());
    }
    let n_open = flags.connections_a_thread() * flags.threads;
    if n_open < flags.connections {
        let (asked, threads) = (flags.connections, flags.threads);
        notes.push(format!(
            "of {asked} connections wrk opens {n_open}: as many for each of {threads} threads"
        ));
    }
    for header in flags.headers.iter().filter(|header| !header.contains(": ")) {
        notes.push(format!("wrk leaves out -H '{header}': it has no colon with a space after it"));
    }
    notes
}

/// One sentence for each point that the load showed; possibly none.
pub(super) fn footnotes(flags: &Flags, figures: &Figures, record: &LoadRecord) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(dropped(flags, figures));
    notes.extend(late_at_end(flags, record));
    notes.extend(added(figures, record));
    notes.extend(silence(record));
    notes.extend(connecting(record));
    let bad = figures.errors.status;
    if bad > 0 {
        let good = figures.complete.saturating_sub(bad) as f64 / figures.seconds();
        notes.push(format!(
            "Requests/sec counts {} with a status of 400 or above; without them it is {good:.2}",
            replies(bad)
        ));
    }
    notes.extend(found(record));
    notes
}

fn dropped(flags: &Flags, figures: &Figures) -> Option<String> {
    let longest = micros(figures.dropped_max?);
    let (n, timeout) = (figures.errors.timeout, format_seconds(flags.timeout as f64));
    Some(format!(
        "{} took {timeout} (--timeout) or longer: wrk counts that as a timeout and leaves it out of all \
         latencies; the true maximum is {longest}",
        replies(n)
    ))
}

/// Requests that wrk counts nowhere: it reads the time of a request when its reply arrives.
fn late_at_end(flags: &Flags, record: &LoadRecord) -> Option<String> {
    if record.raw_stride > 1 {
        return None;
    }
    let timeout = Nanos::from_secs(flags.timeout);
    let out = record.raw.iter().filter(|sample| sample.outcome == Outcome::Unanswered);
    let n =
        out.filter(|s| s.sent > Nanos::ZERO && s.done.saturating_sub(s.sent) >= timeout).count();
    let shown = format_seconds(flags.timeout as f64);
    (n > 0).then(|| {
        format!(
            "requests that had waited for {shown} (--timeout) or longer at the end, which wrk counts \
             nowhere: {n}"
        )
    })
}

fn added(figures: &Figures, record: &LoadRecord) -> Option<String> {
    if figures.n_added == 0 {
        return None;
    }
    let (n, measured) = (figures.n_added, figures.n_measured);
    let mut text = format!(
        "wrk adds latencies where replies took long (its correction for coordinated omission): {n} added to \
         the {measured} that were measured"
    );
    if let (Some(mean), Some(p99)) =
        (record.latencies.service.mean(), record.latencies.service.quantile(0.99))
    {
        let (mean, p99) = (micros(mean), micros(p99));
        text += &format!("; of those the mean is {mean} and the 99th percentile {p99}");
    }
    Some(text)
}

/// The longest period without any reply, if it lies within the load.
fn silence(record: &LoadRecord) -> Option<String> {
    let first = record.intervals.iter().position(|interval| interval.ok > 0)?;
    let last = record.intervals.iter().rposition(|interval| interval.ok > 0)?;
    let (mut longest, mut now) = (Nanos::ZERO, Nanos::ZERO);
    for interval in &record.intervals[first..last] {
        now = if interval.ok == 0 { now + interval.length } else { Nanos::ZERO };
        longest = longest.max(now);
    }
    (longest > Nanos::ZERO).then(|| {
        format!(
            "no reply came for {} in a row, and only the requests in flight show it: a closed loop sends \
             no more while it waits; joust load --rate does",
            micros(longest)
        )
    })
}

fn connecting(record: &LoadRecord) -> Option<String> {
    let (mean, latency) = (record.latencies.connect.mean()?, record.latencies.service.mean()?);
    let n = record.connects;
    (n > u64::from(record.connections) || mean > latency).then(|| {
        let (mean, longest) = (micros(mean), record.latencies.connect.max().map(micros));
        let longest = longest.unwrap_or_default();
        format!(
            "{n} connections were made, in {mean} on average and {longest} at most: no latency includes \
             that"
        )
    })
}

fn replies(n: u64) -> String {
    if n == 1 { "1 reply".to_owned() } else { format!("{n} replies") }
}

fn micros(span: Nanos) -> String {
    format_micros(span.0 as f64 / 1000.0)
}
