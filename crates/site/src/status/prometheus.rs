//! The status as text for Prometheus, format 0.0.4 (prometheus.io/docs/instrumenting/exposition_formats).
//! Owns the names of the metrics. Start reading at [`text`].

use std::fmt::Write as _;

use super::{Snapshot, word};
use crate::board::{Counter, State};

const WRITES: &str = "a String takes every write";

/// All metrics.
pub(super) fn text(snapshot: &Snapshot<'_>) -> String {
    let mut text = String::with_capacity(4096);
    let model = snapshot.server.model;
    let version = env!("CARGO_PKG_VERSION");
    head(&mut text, "joust_info", "gauge", "Model and version; always 1.");
    writeln!(text, "joust_info{{model=\"{model}\",version=\"{version}\"}} 1").expect(WRITES);
    for (name, help, value) in rows(snapshot) {
        let kind = if name.ends_with("_total") { "counter" } else { "gauge" };
        head(&mut text, name, kind, help);
        writeln!(text, "{name} {value}").expect(WRITES);
    }
    head(&mut text, "joust_workers", "gauge", "Processes or threads that serve, by what they do.");
    for state in State::ALL.into_iter().filter(|state| *state != State::Free) {
        let workers = snapshot.reading.sum(|slot| u64::from(slot.state == state));
        writeln!(text, "joust_workers{{state=\"{}\"}} {workers}", word(state)).expect(WRITES);
    }
    text
}

/// Metrics without labels: name, help, value.
fn rows(snapshot: &Snapshot<'_>) -> [(&'static str, &'static str, u64); 15] {
    let reading = &snapshot.reading;
    let count = |of| reading.count(of);
    [
        ("joust_start_time_seconds", "Start, since 1970.", reading.started_s),
        (
            "joust_connections_accepted_total",
            "Connections that were accepted.",
            reading.sum(|slot| slot.accepted_ever),
        ),
        (
            "joust_connections_refused_total",
            "Connections that were closed because there was no room.",
            count(Counter::Refused),
        ),
        ("joust_connections", "Connections that are open.", reading.sum(|slot| slot.connections)),
        (
            "joust_keepalive_closed_total",
            "Kept-alive connections that were closed to make room.",
            count(Counter::KeepAliveClosed),
        ),
        (
            "joust_requests_total",
            "Requests that were answered or refused.",
            reading.sum(|slot| slot.requests_ever),
        ),
        ("joust_sent_bytes_total", "Bytes that were sent.", reading.sum(|slot| slot.bytes_ever)),
        (
            "joust_queue_length",
            "Connections or requests that wait in a queue of the server.",
            reading.queue,
        ),
        (
            "joust_backlog_length",
            "Connections that wait in the kernel to be accepted.",
            snapshot.server.port.waiting().into(),
        ),
        ("joust_processes", "Processes that serve.", snapshot.processes() as u64),
        (
            "joust_processes_spawned_total",
            "Child processes that were started.",
            count(Counter::ProcessesSpawned),
        ),
        (
            "joust_processes_reaped_total",
            "Child processes that have ended.",
            count(Counter::ProcessesReaped),
        ),
        (
            "joust_threads_spawned_total",
            "Threads that have begun to serve.",
            count(Counter::ThreadsSpawned),
        ),
        (
            "joust_threads_reaped_total",
            "Serving threads that have ended.",
            count(Counter::ThreadsReaped),
        ),
        (
            "joust_unseated_total",
            "Threads for which the status board had no slot.",
            count(Counter::WithoutSlot),
        ),
    ]
}

fn head(text: &mut String, name: &str, kind: &str, help: &str) {
    writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}").expect(WRITES);
}
