//! The status as a page for people: complete without a script, in the colours of the reader's system. Owns how it
//! looks. Start reading at [`page`].

use std::fmt::Write as _;

use units::{Bytes, Nanos};

use super::{Snapshot, letter, word};
use crate::board::{Counter, SlotReading, State};

const WRITES: &str = "a String takes every write";

/// Slots in the table; the letters show all of them.
const ROWS_MAX: usize = 500;

/// Letters in a line, as in Apache's mod_status.
const LETTERS_PER_LINE: usize = 64;

const STYLE: &str = "\
:root{color-scheme:light dark}\
body{font:15px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem}\
h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2rem}\
table{border-collapse:collapse;width:100%}\
th,td{padding:.2rem .8rem .2rem 0;text-align:right;border-bottom:1px solid #8884;font-variant-numeric:tabular-nums}\
th:first-child,td:first-child,.text{text-align:left}th{font-weight:600}\
pre{font:15px/1.4 ui-monospace,monospace;background:#8882;padding:.7rem;overflow-x:auto}\
.facts{width:auto}.facts td:last-child{padding-left:2rem}td.text{padding-left:.8rem}th.text{padding-left:.8rem}small{opacity:.75}\
@media(max-width:45rem){body{margin:1rem auto;font-size:13px}table{display:block;overflow-x:auto}pre{font-size:2.2vw}}";

/// The whole page.
pub(super) fn page(snapshot: &Snapshot<'_>, refresh_s: Option<u32>) -> String {
    let mut text = String::with_capacity(16 * 1024);
    let refresh = refresh_s
        .map(|seconds| format!("<meta http-equiv=\"refresh\" content=\"{seconds}\">\n"))
        .unwrap_or_default();
    let model = snapshot.server.model;
    writeln!(
        text,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n{refresh}\
         <title>joust: {model}</title>\n<style>{STYLE}</style>\n<h1>joust serves as {model}</h1>\n\
         <p>{}.</p>\n<p><small><a href=\"?refresh=2\">refresh every 2 s</a> · <a href=\"?\">stop \
         refreshing</a> · <a href=\"?format=prometheus\">for Prometheus</a></small>",
        escaped(snapshot.server.about_model)
    )
    .expect(WRITES);
    facts(&mut text, snapshot);
    scoreboard(&mut text, snapshot);
    slots(&mut text, snapshot);
    settings(&mut text, snapshot);
    text.push_str("</html>\n");
    text
}

fn facts(text: &mut String, snapshot: &Snapshot<'_>) {
    let reading = &snapshot.reading;
    let count = |of| reading.count(of).to_string();
    let (requests, uptime_s) = (reading.sum(|slot| slot.requests_ever), snapshot.uptime_s());
    let rate = requests as f64 / uptime_s.max(1) as f64;
    let pair = |spawned, reaped| format!("{} / {}", count(spawned), count(reaped));
    let rows = [
        ("Up for", span(uptime_s)),
        ("Requests answered", format!("{requests} ({rate:.1} a second)")),
        ("Bytes sent", Bytes(reading.sum(|slot| slot.bytes_ever)).to_string()),
        ("Connections accepted", reading.sum(|slot| slot.accepted_ever).to_string()),
        ("Connections open", reading.sum(|slot| slot.connections).to_string()),
        ("Connections refused, no room", count(Counter::Refused)),
        ("Keep-alive connections closed to make room", count(Counter::KeepAliveClosed)),
        ("Waiting to be accepted", snapshot.server.port.waiting().to_string()),
        ("Waiting in the handoff queue", reading.queue.to_string()),
        ("Serving processes", snapshot.processes().to_string()),
        (
            "Child processes started / ended",
            pair(Counter::ProcessesSpawned, Counter::ProcessesReaped),
        ),
        ("Serving threads started / ended", pair(Counter::ThreadsSpawned, Counter::ThreadsReaped)),
    ];
    text.push_str("<table class=\"facts\">\n");
    for (name, value) in rows {
        writeln!(text, "<tr><td>{name}<td>{value}").expect(WRITES);
    }
    text.push_str("</table>\n");
}

fn scoreboard(text: &mut String, snapshot: &Snapshot<'_>) {
    text.push_str("<h2>Scoreboard</h2>\n<pre>");
    for (at, slot) in snapshot.reading.slots.iter().enumerate() {
        if at > 0 && at % LETTERS_PER_LINE == 0 {
            text.push('\n');
        }
        text.push(letter(slot.state));
    }
    text.push_str(
        "</pre>\n<p><small><code>_</code> waiting, <code>S</code> starting, <code>R</code> reading, \
         <code>W</code> writing or waiting for a program, <code>K</code> kept alive, <code>C</code> \
         closing, <code>G</code> finishing, <code>.</code> free. An event loop shows the state of the \
         connection it works on.</small>\n",
    );
}

fn slots(text: &mut String, snapshot: &Snapshot<'_>) {
    let taken = |slot: &&SlotReading| slot.state != State::Free;
    let (all, hidden) = {
        let count = snapshot.reading.slots.iter().filter(taken).count();
        (count.min(ROWS_MAX), count.saturating_sub(ROWS_MAX))
    };
    text.push_str(
        "<h2>Slots</h2>\n<table>\n<tr><th>slot<th>process<th>thread<th class=\"text\">state<th>for\
         <th>requests<th>of the slot<th>sent<th>accepted<th>open\n",
    );
    for slot in snapshot.reading.slots.iter().filter(taken).take(all) {
        let since = snapshot.now.saturating_sub(slot.since);
        let since = Nanos(since.0 - since.0 % 1_000_000);
        writeln!(
            text,
            "<tr><td>{}<td>{}<td>{}<td class=\"text\">{}<td>{since}<td>{}<td>{}<td>{}<td>{}<td>{}",
            slot.number,
            slot.process,
            slot.thread,
            word(slot.state),
            slot.requests,
            slot.requests_ever,
            Bytes(slot.bytes_ever),
            slot.accepted_ever,
            slot.connections,
        )
        .expect(WRITES);
    }
    text.push_str("</table>\n");
    if hidden > 0 {
        writeln!(text, "<p>{hidden} more are not listed.").expect(WRITES);
    }
}

fn settings(text: &mut String, snapshot: &Snapshot<'_>) {
    text.push_str("<h2>Settings</h2>\n<table>\n");
    for setting in &snapshot.server.settings {
        writeln!(
            text,
            "<tr><td><code>{}</code><td>{}<td class=\"text\"><small>{}</small>",
            escaped(setting.name),
            escaped(&setting.value),
            escaped(setting.about)
        )
        .expect(WRITES);
    }
    text.push_str("</table>\n");
}

/// Seconds as days, hours, minutes.
fn span(seconds: u64) -> String {
    let (days, hours) = (seconds / 86_400, seconds / 3600 % 24);
    let (minutes, rest) = (seconds / 60 % 60, seconds % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{rest} s"),
        (0, 0, _) => format!("{minutes} min {rest} s"),
        (0, ..) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
