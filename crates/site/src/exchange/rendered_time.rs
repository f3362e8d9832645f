//! The time of day as answers and logs write it, rendered once a second. Owns the rendering. Start reading at
//! [`RenderedTime::set`].

use std::fmt::Write as _;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// What every answer of one second begins with.
#[derive(Debug)]
pub(super) struct RenderedTime {
    /// The second that the texts are for, since 1970.
    second: u64,
    /// `Date` and `Server`, each with its CRLF.
    fields: String,
    /// The same with the status line of a 200 before it.
    ok: String,
    /// As `%t` of the log, in brackets; empty if the log is off.
    logged: String,
}

impl RenderedTime {
    /// Nothing is rendered yet.
    pub(super) fn new() -> Self {
        let [fields, ok, logged] = [const { String::new() }; 3];
        Self { second: u64::MAX, fields, ok, logged }
    }

    /// Renders the texts again if `second` has changed. `zone` is that of the log, if it is on.
    pub(super) fn set(&mut self, second: u64, zone: Option<&TimeZone>) {
        if self.second == second {
            return;
        }
        self.second = second;
        let date = httpdate::HttpDate::from(SystemTime::UNIX_EPOCH + Duration::from_secs(second));
        const WRITES: &str = "a String takes every write";
        self.fields.clear();
        write!(self.fields, "Date: {date}\r\nServer: joust\r\n").expect(WRITES);
        self.ok.clear();
        write!(self.ok, "HTTP/1.1 200 OK\r\n{}", self.fields).expect(WRITES);
        self.logged.clear();
        if let Some(zone) = zone {
            let at = Timestamp::from_second(second.cast_signed()).unwrap_or(Timestamp::UNIX_EPOCH);
            let at = at.to_zoned(zone.clone());
            write!(self.logged, "[{}]", at.strftime("%d/%b/%Y:%H:%M:%S %z")).expect(WRITES);
        }
    }

    /// Seconds since 1970.
    pub(super) fn second(&self) -> u64 {
        self.second
    }

    /// `Date` and `Server`, each with its CRLF.
    pub(super) fn fields(&self) -> &[u8] {
        self.fields.as_bytes()
    }

    /// The status line of a 200, `Date` and `Server`.
    pub(super) fn ok(&self) -> &[u8] {
        self.ok.as_bytes()
    }

    /// As `%t` of the log.
    pub(super) fn logged(&self) -> &[u8] {
        self.logged.as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_texts_are_those_of_the_rfc_and_of_apaches_manual() {
        let mut stamp = RenderedTime::new();
        let zone = TimeZone::fixed(jiff::tz::offset(-7));
        // RFC 9110, 5.6.7: the date of its example.
        stamp.set(784_111_777, Some(&zone));
        let date = "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\nServer: joust\r\n";
        assert_eq!(stamp.fields(), date.as_bytes());
        assert!(stamp.ok().starts_with(b"HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov"));
        assert_eq!(stamp.logged(), b"[06/Nov/1994:01:49:37 -0700]");
    }
}
