//! The status of the server, for clients that may see it: a page for people and text for Prometheus. Both are made from
//! the status board, so any process of a model can answer. Owns who gets which. Start reading at [`form_asked`].

mod html;
mod prometheus;

use std::net::IpAddr;

use units::Nanos;

use crate::board::{Board, BoardReading, State};
use crate::config::StatusConfig;
use crate::server::Server;

/// The form of the status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// For people. The browser loads it again after this many seconds, if that was requested.
    Html {
        /// Seconds; at least 1.
        refresh_s: Option<u32>,
    },
    /// Text format 0.0.4 of Prometheus.
    Prometheus,
}

impl Form {
    /// The media type of it.
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::Html { .. } => "text/html; charset=utf-8",
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// Whether the target is the path of the status page, whoever asks.
pub(crate) fn is_at(config: &StatusConfig, target: &[u8]) -> bool {
    let path = target.split(|&byte| byte == b'?').next().unwrap_or_default();
    config.path.as_deref().is_some_and(|ours| ours.as_bytes() == path)
}

/// Whether and how a request for `target` is to be answered with the status. `head` is the request's.
pub(crate) fn form_asked(
    config: &StatusConfig,
    client: IpAddr,
    target: &[u8],
    head: &[u8],
) -> Option<Form> {
    if !is_at(config, target) || !config.allow.allows(client) {
        return None;
    }
    let query = target.splitn(2, |&byte| byte == b'?').nth(1).unwrap_or_default();
    let mut refresh_s = None;
    for word in query.split(|&byte| byte == b'&').filter_map(|word| str::from_utf8(word).ok()) {
        match word.split_once('=') {
            Some(("format", "prometheus")) => return Some(Form::Prometheus),
            Some(("refresh", seconds)) => refresh_s = seconds.parse().ok().filter(|&s| s > 0),
            _ => {}
        }
    }
    // Prometheus accepts text/plain; browsers accept text/html.
    let accept = accept(head).unwrap_or_default().to_ascii_lowercase();
    let text_only = accept.contains("text/plain") && !accept.contains("text/html");
    Some(if text_only { Form::Prometheus } else { Form::Html { refresh_s } })
}

/// The value of `Accept`, the first one.
fn accept(head: &[u8]) -> Option<&str> {
    str::from_utf8(head).ok()?.lines().skip(1).find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("accept").then_some(value.trim())
    })
}

/// The body.
pub(crate) fn render(server: &Server, board: &Board, form: Form, now: Nanos) -> String {
    let snapshot = Snapshot { server, reading: board.read(), now };
    match form {
        Form::Html { refresh_s } => html::page(&snapshot, refresh_s),
        Form::Prometheus => prometheus::text(&snapshot),
    }
}

/// The server at one instant.
struct Snapshot<'a> {
    server: &'a Server,
    reading: BoardReading,
    now: Nanos,
}

impl Snapshot<'_> {
    fn uptime_s(&self) -> u64 {
        self.now.saturating_sub(self.reading.started).0 / 1_000_000_000
    }

    /// Processes with a slot.
    fn processes(&self) -> usize {
        let mut processes: Vec<u32> =
            self.reading.slots.iter().map(|slot| slot.process).filter(|&id| id != 0).collect();
        processes.sort_unstable();
        processes.dedup();
        processes.len()
    }
}

/// The letter that Apache's mod_status has for it.
fn letter(state: State) -> char {
    match state {
        State::Free => '.',
        State::Starting => 'S',
        State::Waiting => '_',
        State::Reading => 'R',
        // Apache's workers wait for a program within "sending reply".
        State::Writing | State::Gateway => 'W',
        State::KeepAlive => 'K',
        State::Closing => 'C',
        State::Finishing => 'G',
    }
}

/// The word for it, in a table and as a label.
fn word(state: State) -> &'static str {
    match state {
        State::Free => "free",
        State::Starting => "starting",
        State::Waiting => "waiting",
        State::Reading => "reading",
        State::Writing => "writing",
        State::KeepAlive => "keepalive",
        State::Gateway => "gateway",
        State::Closing => "closing",
        State::Finishing => "finishing",
    }
}
