//! What siege prints while it runs: a line for each reply, in four layouts, and for -g, -p and -D the data on the wire.
//! Start reading at [`reply`].

use super::log::stamp;
use super::settings::Settings;
use super::urls::Url;
use crate::command::LocalTime;

/// A reply as shown in a line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reply<'a> {
    pub(super) user: u32,
    pub(super) url: &'a Url,
    /// "HTTP/1.1".
    pub(super) protocol: &'a str,
    pub(super) status: u16,
    /// Of its body.
    pub(super) bytes: u64,
    pub(super) seconds: f64,
}

/// The line, with its end and colour.
pub(super) fn reply(settings: &Settings, of: &Reply<'_>, now: &dyn Fn() -> LocalTime) -> String {
    let Reply { user, url, protocol, status, bytes, seconds } = *of;
    let shown = url.shown(settings.full_url);
    let method = url.method.0;
    let stamped = if settings.timestamp { day(now()) } else { String::new() };
    let line = if settings.csv {
        let mark = settings.mark.as_ref().map(|mark| format!("{mark},")).unwrap_or_default();
        let id = if settings.display_id { format!("{user:>4},") } else { String::new() };
        let (place, clock) = (url.id, stamp(now()));
        format!(
            "{stamped}{mark}{id}{protocol},{status},{seconds:>6.2},{bytes:>7},{shown},{place},{clock}"
        )
    } else if settings.display_id {
        format!(
            "{user:>4}) {protocol} {status} {seconds:>6.2} secs: {bytes:>7} bytes ==> {method:<4} {shown}"
        )
    } else {
        format!(
            "{stamped}{protocol} {status}    {seconds:>5.2} secs: {bytes:>7} bytes ==> {method:<4} {shown}"
        )
    };
    match settings.color {
        true => format!("\x1b[0;{}m{line}\x1b[0m\n", color(status)),
        false => line + "\n",
    }
}

/// `[Sun, 2026-11-22 13:05:10] `.
fn day(now: LocalTime) -> String {
    let name = now.ctime();
    format!("[{}, {}] ", name.get(..3).unwrap_or_default(), stamp(now))
}

fn color(status: u16) -> u8 {
    match status {
        150 | 200..=206 | 226 => 34,
        300..=307 => 36,
        400..=417 => 35,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::super::style::Style;
    use super::*;

    #[test]
    fn each_layout_is_siege_s() {
        let mut url = Url::new("h/a", true, "");
        url.id = 3;
        let of = Reply {
            user: 7,
            url: &url,
            protocol: "HTTP/1.1",
            status: 404,
            bytes: 5,
            seconds: 0.25,
        };
        let now = || LocalTime {
            year: 2026,
            month: 11,
            day: 22,
            weekday: 0,
            hour: 13,
            minute: 5,
            second: 10,
        };
        let plain = Settings { color: false, ..Settings::empty(Style::Seconds) };
        let line = |settings: &Settings| reply(settings, &of, &now);
        let end = "0.25 secs:       5 bytes ==> GET  /a\n";
        assert_eq!(line(&plain), format!("HTTP/1.1 404     {end}"));
        let timed = Settings { timestamp: true, ..plain.clone() };
        let begin = "[Sun, 2026-11-22 13:05:10] ";
        assert_eq!(line(&timed), format!("{begin}HTTP/1.1 404     {end}"));
        let named = Settings { display_id: true, full_url: true, ..timed.clone() };
        let expected = "   7) HTTP/1.1 404   0.25 secs:       5 bytes ==> GET  http://h/a\n";
        assert_eq!(line(&named), expected, "it has no time then");
        let csv = Settings { csv: true, mark: Some("m".to_owned()), color: true, ..timed };
        let expected = format!(
            "\x1b[0;35m{begin}m,HTTP/1.1,404,  0.25,      5,/a,3,2026-11-22 13:05:10\x1b[0m\n"
        );
        assert_eq!(line(&csv), expected);
        let with_id = Settings { csv: true, display_id: true, ..plain };
        assert!(line(&with_id).starts_with("   7,HTTP/1.1,404,"));
    }
}
