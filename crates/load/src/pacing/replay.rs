//! Replay of intended instants. Owns the law and the reading of instants from a text: a list, or an access
//! log. Start reading at [`read_instants`].

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::fmt::strtime::BrokenDownTime;
use jiff::tz::TimeZone;
use units::Nanos;

use super::bounds::{INSTANTS_MAX, LENGTH_MAX};
use super::{ArrivalShare, Law};

/// Longest part of a line that an error shows.
const SHOWN_CHARS_MAX: usize = 60;

/// A thread's own instants of a replay, one by one.
pub(crate) struct Replay(std::vec::IntoIter<Nanos>);

impl Replay {
    /// This thread's part of `instants`, which are in rising order: a thread holds only what it needs.
    pub(crate) fn new(instants: &[Nanos], turn: ArrivalShare) -> Self {
        let numbered = (0..turn.of).cycle().zip(instants);
        let own: Vec<Nanos> =
            numbered.filter(|(number, _)| turn.has(*number)).map(|(_, at)| *at).collect();
        Self(own.into_iter())
    }
}

impl Law for Replay {
    fn next(&mut self) -> Option<Nanos> {
        self.0.next()
    }
}

/// Why a text is no list of instants.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// A line that contains no time.
    #[error(
        "line {line}: `{text}` is not an instant: write seconds (12.5), a span with its unit (10ms), a \
         time (2000-10-10T13:55:36.5Z) or a line of an access log ([10/Oct/2000:13:55:36 -0700]); \
         a line that begins with # is a comment"
    )]
    NoInstant {
        /// Its number, from 1.
        line: usize,
        /// Its beginning.
        text: String,
    },
    /// Times of day among seconds.
    #[error(
        "line {line}: `{text}` has another form than the instants before it: use either numbers, \
         which count from any start, or times of day"
    )]
    Mixed {
        /// Its number, from 1.
        line: usize,
        /// Its beginning.
        text: String,
    },
    /// More lines than a replay may have.
    #[error("line {line}: a replay must have at most {INSTANTS_MAX} instants: split the file")]
    TooMany {
        /// Number of the first line that is too many, from 1.
        line: usize,
    },
    /// The first and the last instant lie too far apart for a load.
    #[error(
        "the replay must last at most {LENGTH_MAX}, got {hours} hours: is a line in another unit?"
    )]
    TooLong {
        /// The time between them.
        hours: i128,
    },
    /// No instant at all.
    #[error("the file has no instants: write one a line, as in 0.0 or 12.5 (seconds)")]
    Empty,
}

const HOUR: Nanos = Nanos::from_secs(3600);

/// How an instant is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// A number, of seconds or with a unit.
    Number,
    /// Date and time of day.
    TimeOfDay,
}

/// An instant as it stands in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Stamp {
    /// From zero or from 1970.
    nanos: i128,
    /// Whether only its second is known.
    is_whole_second: bool,
}

/// Reads instants, one a line, sorted and counted from the earliest one.
///
/// A line is a number of seconds ("12.5", "1699999999.123", right to the nanosecond), a span with its
/// unit ("10ms"), an ISO 8601 time ("2000-10-10T13:55:36.5Z"; UTC if it has no offset), or a line of
/// an access log that has such a time or that of the common log format in brackets
/// ("[10/Oct/2000:13:55:36 -0700]", as nginx and Apache write). Empty lines and those that begin with
/// `#` are skipped.
///
/// Times of day without a fraction are known only to the second. The requests of one second are spread evenly over
/// it, since nothing more is known about them. A server writes its log as requests end, so lines need not be in
/// order.
///
/// # Errors
/// The first line that says no instant, too many lines, or none.
pub fn read_instants(text: &str) -> Result<Vec<Nanos>, ReplayError> {
    let mut form = None;
    let mut stamps = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let (line, number) = (line.trim(), index + 1);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let shown = || line.chars().take(SHOWN_CHARS_MAX).collect::<String>();
        let (stamp, of_form) = read_line(line)
            .ok_or_else(|| ReplayError::NoInstant { line: number, text: shown() })?;
        if *form.get_or_insert(of_form) != of_form {
            return Err(ReplayError::Mixed { line: number, text: shown() });
        }
        if stamps.len() == INSTANTS_MAX {
            return Err(ReplayError::TooMany { line: number });
        }
        stamps.push(stamp);
    }
    stamps.sort_unstable();
    from_first(&stamps)
}

/// Sorted stamps as spans since the first, those of one second spread over it.
fn from_first(stamps: &[Stamp]) -> Result<Vec<Nanos>, ReplayError> {
    let (Some(first), Some(last)) = (stamps.first(), stamps.last()) else {
        return Err(ReplayError::Empty);
    };
    let span = last.nanos - first.nanos;
    if span > i128::from(LENGTH_MAX.0) {
        return Err(ReplayError::TooLong { hours: span / i128::from(HOUR.0) });
    }
    let mut instants = Vec::with_capacity(stamps.len());
    for alike in stamps.chunk_by(|one, next| one == next) {
        let begin = (alike[0].nanos - first.nanos) as u64;
        let n = alike.len() as u64;
        let apart = |k| if alike[0].is_whole_second { k * 1_000_000_000 / n } else { 0 };
        instants.extend((0..n).map(|k| Nanos(begin + apart(k))));
    }
    // Needed if a log has fractions for only some requests of a second.
    instants.sort_unstable();
    Ok(instants)
}

fn read_line(line: &str) -> Option<(Stamp, Form)> {
    let number = |nanos| (Stamp { nanos, is_whole_second: false }, Form::Number);
    let time_of_day = |stamp| (stamp, Form::TimeOfDay);
    let bracketed = || {
        let (_, after) = line.split_once('[')?;
        let (inside, _) = after.split_once(']')?;
        read_clf(inside).or_else(|| read_iso(inside))
    };
    read_number(line).map(number).or_else(|| read_iso(line).or_else(bracketed).map(time_of_day))
}

/// Nanoseconds of "12.5", seconds, or "10ms". In whole numbers: seconds since 1970 with a fraction
/// have more digits than an f64.
fn read_number(line: &str) -> Option<i128> {
    let end = line.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(line.len());
    let (digits, unit) = (&line[..end], line[end..].trim());
    let unit_nanos = match unit {
        "" => Nanos::from_secs(1),
        _ => format!("1{unit}").parse().ok()?,
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    // Digits beyond a nanosecond of the longest unit, an hour, are cut off.
    let fraction = &fraction[..fraction.len().min(13)];
    let parse =
        |digits: &str| if digits.is_empty() { Some(0) } else { digits.parse::<i128>().ok() };
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let per_unit = i128::from(unit_nanos.0);
    let of_fraction = parse(fraction)? * per_unit / 10i128.pow(fraction.len() as u32);
    parse(whole)?.checked_mul(per_unit)?.checked_add(of_fraction)
}

/// "2000-10-10T13:55:36.5-07:00", or without an offset, which is UTC.
fn read_iso(text: &str) -> Option<Stamp> {
    let with_offset = || text.parse::<Timestamp>().ok();
    let without = || text.parse::<DateTime>().ok()?.to_zoned(TimeZone::UTC).ok();
    // A date alone would parse as its midnight, but is more likely a mistake than an instant.
    let has_time = text.contains(':');
    let timestamp = has_time.then(|| with_offset().or_else(|| Some(without()?.timestamp())))??;
    Some(stamp(timestamp, text.contains(['.', ','])))
}

/// "10/Oct/2000:13:55:36 -0700", with a fraction of a second or without.
fn read_clf(text: &str) -> Option<Stamp> {
    let parsed = BrokenDownTime::parse("%d/%b/%Y:%H:%M:%S%.f %z", text).ok()?;
    Some(stamp(parsed.to_timestamp().ok()?, text.contains('.')))
}

fn stamp(timestamp: Timestamp, has_fraction: bool) -> Stamp {
    Stamp { nanos: timestamp.as_nanosecond(), is_whole_second: !has_fraction }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn millis(text: &str) -> Vec<u64> {
        let instants = read_instants(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        instants.iter().map(|at| at.0 / 1_000_000).collect()
    }

    fn error(text: &str) -> String {
        read_instants(text).expect_err(text).to_string()
    }

    #[test]
    fn instants_are_read_as_people_write_them() {
        let cases: [(&str, &[u64]); 9] = [
            ("0.0\n12.5\n", &[0, 12_500]),
            ("# since the start\n\n 5 \r\n5.25\n", &[0, 250]),
            ("1699999999.123\n1699999999.623\n", &[0, 500]),
            ("0ms\n10ms\n1s\n1.5 m\n", &[0, 10, 1000, 90_000]),
            ("1699999999123ms\n1699999999124ms", &[0, 1]),
            ("2000-10-10T13:55:36.5Z\n2000-10-10T13:55:37.250+00:00", &[0, 750]),
            ("2000-10-10 13:55:36.5\n2000-10-10T13:56:36.5", &[0, 60_000]),
            ("2000-10-10T13:00:00.5-07:00\n2000-10-10T20:00:01.0Z", &[0, 500]),
            (".5\n1.", &[0, 500]),
        ];
        for (text, expected) in cases {
            assert_eq!(millis(text), expected, "{text}");
        }
    }

    #[test]
    fn seconds_since_1970_keep_their_nanoseconds() {
        let instants = read_instants("1699999999.123456789\n1699999999.123456790").unwrap();
        assert_eq!(instants, [Nanos(0), Nanos(1)]);
    }

    const LOG: &str = concat!(
        "127.0.0.1 - frank [10/Oct/2000:13:55:38 -0700] \"GET /c HTTP/1.0\" 200 2326\n",
        "127.0.0.1 - - [10/Oct/2000:13:55:36 -0700] \"GET /a HTTP/1.1\" 200 5 \"-\" \"x [y] z\"\n",
        "::1 - - [10/Oct/2000:20:55:36 +0000] \"GET /a HTTP/1.1\" 200 5\n",
        "127.0.0.1 - - [10/Oct/2000:13:55:36 -0700] \"GET /#b HTTP/1.1\" 200 5\n",
        "127.0.0.1 - - [10/Oct/2000:13:55:36 -0700] \"GET /b HTTP/1.1\" 200 5\n",
    );

    #[test]
    fn an_access_log_spreads_the_requests_of_a_second_over_it() {
        assert_eq!(millis(LOG), [0, 250, 500, 750, 2000]);
    }

    #[test]
    fn an_access_log_with_fractions_is_taken_at_its_word() {
        let log = "[10/Oct/2000:13:55:36.250 -0700] a\n[10/Oct/2000:13:55:36.250 -0700] b\n\
                   [10/Oct/2000:13:55:37.000 -0700] c\n";
        assert_eq!(millis(log), [0, 0, 750]);
        let iso = "x [2000-10-10T13:55:36+02:00] GET /\ny [2000-10-10T13:55:36+02:00] GET /";
        assert_eq!(millis(iso), [0, 500], "nginx's $time_iso8601 has whole seconds");
    }

    #[test]
    fn whole_numbers_are_instants_and_not_seconds_to_spread() {
        assert_eq!(millis("7\n7\n7\n8"), [0, 0, 0, 1000]);
    }

    #[test]
    fn errors_name_the_line_and_a_form_that_works() {
        for bad in ["abc", "-1", "1e3", "12.5.1", ".", "5x", "2000-10-10", "[31/Foo/2000:0:0:0 Z]"]
        {
            let message = error(&format!("# head\n0\n{bad}\n"));
            assert!(message.starts_with(&format!("line 3: `{bad}`")), "{message}");
            assert!(message.contains("write seconds (12.5)"), "{message}");
        }
        let long = error(&format!("{}\n", "x".repeat(10_000)));
        assert!(long.len() < 400, "{long}");
        assert!(error("").contains("no instants"));
        assert!(error("# nothing\n\n").contains("no instants"));
        assert!(error("0\n2000-10-10T13:55:36Z\n").contains("line 2"));
        assert!(error("0\n1699999999").contains("another unit"));
    }

    proptest! {
        #[test]
        fn lines_may_stand_in_any_order(
            instants in prop::collection::vec(0u64..10_000_000_000, 1..50),
            epoch in 0u64..2_000_000_000,
            seed: u64,
        ) {
            let mut lines: Vec<String> = instants
                .iter()
                .map(|at| format!("{}.{:09}", epoch + at / 1_000_000_000, at % 1_000_000_000))
                .collect();
            shuffle(&mut lines, seed);
            let mut expected = instants.clone();
            expected.sort_unstable();
            let first = expected[0];
            let expected: Vec<Nanos> = expected.iter().map(|at| Nanos(at - first)).collect();
            prop_assert_eq!(read_instants(&lines.join("\n")).unwrap(), expected);
        }

        #[test]
        fn a_log_in_any_order_is_the_same_replay(seed: u64) {
            let mut lines: Vec<String> = LOG.lines().map(str::to_owned).collect();
            shuffle(&mut lines, seed);
            prop_assert_eq!(read_instants(&lines.join("\n")), read_instants(LOG));
        }

        #[test]
        fn no_text_is_a_panic(text in "(\\PC|[0-9.:/\\[\\]TZ+-]|\n){0,80}") {
            let _ = read_instants(&text);
        }
    }

    fn shuffle(lines: &mut [String], seed: u64) {
        use rand::seq::SliceRandom as _;
        lines.shuffle(&mut crate::pacing::random(seed, 0));
    }
}
