//! A format of the access log, as Apache's LogFormat writes it, read once into steps. Owns which directives
//! there are and what they are called; see also `line`. Start reading at [`LogFormat::read`].
//!
//! Directives for values that this server does not have (%f of a file that may not exist, %L, %n, %R, the environment)
//! are refused. Otherwise they would always be a hyphen.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::nearest::nearest;

const COMMON: &str = "%h %l %u %t \"%r\" %>s %b";
const COMBINED: &str = "%h %l %u %t \"%r\" %>s %b \"%{Referer}i\" \"%{User-agent}i\"";
/// One object per line. Every value is a string except those that are always numbers.
const JSON: &str = "{\"time\":\"%{%Y-%m-%dT%H:%M:%S%:z}t\",\"client\":\"%a\",\"user\":\"%u\",\
                    \"host\":\"%V\",\"method\":\"%m\",\"path\":\"%U\",\"query\":\"%q\",\
                    \"protocol\":\"%H\",\"status\":%>s,\"body_bytes\":%B,\"duration_us\":%D,\
                    \"referer\":\"%{Referer}i\",\"user_agent\":\"%{User-agent}i\"}";

/// What a line of the access log holds. `common` unless set; cheap to clone.
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LogFormat(Arc<Inner>);

struct Inner {
    /// As it was typed: a name, or the format itself.
    typed: String,
    style: Style,
    steps: Vec<Step>,
    /// A step says how long something took, which needs two readings of the clock.
    is_timed: bool,
    /// A step needs a field of the answer.
    tells_answer: bool,
}

/// How values are escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// As Apache's ap_escape_logitem; what is absent is a hyphen.
    Apache,
    /// For a string of JSON; what is absent is empty.
    Json,
}

/// A part of a line.
#[derive(Debug)]
pub(crate) enum Step {
    Literal(Vec<u8>),
    Value(Value, Statuses),
}

/// For which statuses a value is written; for others it is absent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Statuses {
    All,
    These(Vec<u16>),
    AllBut(Vec<u16>),
}

impl Statuses {
    pub(crate) fn have(&self, status: u16) -> bool {
        match self {
            Self::All => true,
            Self::These(these) => these.contains(&status),
            Self::AllBut(these) => !these.contains(&status),
        }
    }
}

/// What a directive stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    Client,
    ClientPort,
    Local,
    LocalPort,
    /// `%l`: nobody asks identd.
    Absent,
    User,
    Time,
    TimeAs(String),
    TimeIn(Unit),
    /// The part of a second, in thousandths or millionths.
    TimeFraction(Unit),
    RequestLine,
    Method,
    Path,
    Query,
    Protocol,
    Host,
    Status,
    Process,
    Thread,
    /// `%k`: requests of the connection before this one.
    RequestsBefore,
    BytesIn,
    Referer,
    UserAgent,
    FieldIn(String),
    FieldOut(String),
    /// What is known only when the answer was sent.
    Late(Late),
}

/// What is known only when the answer was sent, or its connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Late {
    /// `%b`: a hyphen for 0.
    BodyBytesOrHyphen,
    BodyBytes,
    BytesOut,
    Elapsed(Unit),
    /// `%X`
    ConnStatus,
}

/// A unit of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Seconds,
    Millis,
    Micros,
}

impl LogFormat {
    /// `common`, `combined`, `json`, or a format of Apache's directives.
    ///
    /// # Errors
    /// A directive that does not exist, with its position and the nearest one that does.
    pub fn read(typed: &str) -> Result<Self, String> {
        let (style, text) = match typed {
            "common" => (Style::Apache, COMMON),
            "combined" => (Style::Apache, COMBINED),
            "json" => (Style::Json, JSON),
            text if text.contains('%') => (Style::Apache, text),
            _ => {
                return Err(format!(
                    "`{typed}` is not common, combined, json, or a format as in `%h %r %>s`"
                ));
            }
        };
        let steps = Reader { text, at: 0 }.steps()?;
        let is_timed = |step: &Step| matches!(step, Step::Value(Value::Late(Late::Elapsed(_)), _));
        let is_timed = steps.iter().any(is_timed);
        let tells_answer = |step: &Step| matches!(step, Step::Value(Value::FieldOut(_), _));
        let tells_answer = steps.iter().any(tells_answer);
        let typed = typed.to_owned();
        Ok(Self(Arc::new(Inner { typed, style, steps, is_timed, tells_answer })))
    }

    /// As it was typed; [`LogFormat::read`] takes it back.
    pub fn typed(&self) -> &str {
        &self.0.typed
    }

    pub(crate) fn style(&self) -> Style {
        self.0.style
    }

    pub(crate) fn steps(&self) -> &[Step] {
        &self.0.steps
    }

    /// Whether the head of the answer is needed.
    pub(crate) fn tells_answer(&self) -> bool {
        self.0.tells_answer
    }

    pub(crate) fn is_timed(&self) -> bool {
        self.0.is_timed
    }
}

impl Default for LogFormat {
    fn default() -> Self {
        Self::read("common").expect("the common format is one")
    }
}

impl TryFrom<String> for LogFormat {
    type Error = String;

    fn try_from(typed: String) -> Result<Self, String> {
        Self::read(&typed)
    }
}

impl From<LogFormat> for String {
    fn from(format: LogFormat) -> Self {
        format.0.typed.clone()
    }
}

impl PartialEq for LogFormat {
    fn eq(&self, other: &Self) -> bool {
        self.0.typed == other.0.typed
    }
}

impl Eq for LogFormat {}

impl fmt::Debug for LogFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LogFormat").field(&self.0.typed).finish()
    }
}

/// Directives without an argument, by their letter.
const PLAIN: &[(char, Value)] = &[
    ('h', Value::Client),
    ('a', Value::Client),
    ('A', Value::Local),
    ('l', Value::Absent),
    ('u', Value::User),
    ('t', Value::Time),
    ('r', Value::RequestLine),
    ('s', Value::Status),
    ('b', Value::Late(Late::BodyBytesOrHyphen)),
    ('B', Value::Late(Late::BodyBytes)),
    ('O', Value::Late(Late::BytesOut)),
    ('I', Value::BytesIn),
    ('D', Value::Late(Late::Elapsed(Unit::Micros))),
    ('T', Value::Late(Late::Elapsed(Unit::Seconds))),
    ('m', Value::Method),
    ('U', Value::Path),
    ('q', Value::Query),
    ('H', Value::Protocol),
    ('v', Value::Host),
    ('V', Value::Host),
    ('p', Value::LocalPort),
    ('P', Value::Process),
    ('k', Value::RequestsBefore),
    ('X', Value::Late(Late::ConnStatus)),
];

/// Directives that take an argument, for messages.
const WITH_ARGUMENT: &[char] = &['i', 'o', 't', 'p', 'P', 'T', 'a'];

/// Reads a format from left to right.
struct Reader<'t> {
    text: &'t str,
    /// Bytes that were read.
    at: usize,
}

impl Reader<'_> {
    fn steps(mut self) -> Result<Vec<Step>, String> {
        let (mut steps, mut literal) = (Vec::new(), Vec::new());
        while let Some(char) = self.next() {
            match char {
                '%' if self.takes('%') => literal.push(b'%'),
                '%' => {
                    if !literal.is_empty() {
                        steps.push(Step::Literal(std::mem::take(&mut literal)));
                    }
                    steps.push(self.directive()?);
                }
                '\\' => self.escape(&mut literal),
                other => literal.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        if !literal.is_empty() {
            steps.push(Step::Literal(literal));
        }
        Ok(steps)
    }

    /// As in mod_log_config: unknown escapes are left as they are.
    fn escape(&mut self, literal: &mut Vec<u8>) {
        match self.next() {
            Some('n') => literal.push(b'\n'),
            Some('t') => literal.push(b'\t'),
            Some('r') => literal.push(b'\r'),
            Some(same @ ('\\' | '"')) => literal.push(same as u8),
            Some(other) => {
                literal.push(b'\\');
                literal.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes());
            }
            None => literal.push(b'\\'),
        }
    }

    /// What follows a percent sign: conditions and the argument in any order, then the letter.
    fn directive(&mut self) -> Result<Step, String> {
        let start = self.at - 1;
        let (mut statuses, mut argument) = (Statuses::All, None);
        loop {
            let char = self.next().ok_or_else(|| {
                format!("`{}` at {start} is cut short: `%%` is a percent sign", &self.text[start..])
            })?;
            match char {
                // First and last of internal redirects, of which there are none.
                '<' | '>' => {}
                '!' | '0'..='9' => statuses = self.statuses(char, start)?,
                '{' => argument = Some(self.argument(start)?),
                letter => {
                    let value = match argument {
                        None => plain(letter),
                        Some(argument) => with_argument(letter, argument)?,
                    };
                    let value = value.ok_or_else(|| self.unknown(start))?;
                    return Ok(Step::Value(value, statuses));
                }
            }
        }
    }

    fn statuses(&mut self, first: char, start: usize) -> Result<Statuses, String> {
        let negated = first == '!';
        let begin = if negated { self.at } else { self.at - 1 };
        while self.peek().is_some_and(|char| char.is_ascii_digit() || char == ',') {
            self.next();
        }
        let listed = self.text[begin..self.at].split(',').map(|code| {
            code.parse().ok().filter(|code| (100..600).contains(code)).ok_or_else(|| {
                format!(
                    "`{}` at {start}: `{code}` is not a status code",
                    &self.text[start..self.at]
                )
            })
        });
        let listed = listed.collect::<Result<Vec<u16>, _>>()?;
        Ok(if negated { Statuses::AllBut(listed) } else { Statuses::These(listed) })
    }

    fn argument(&mut self, start: usize) -> Result<String, String> {
        let rest = &self.text[self.at..];
        let end = rest.find('}').ok_or_else(|| {
            format!("`{}` at {start} has a brace that does not end", &self.text[start..])
        })?;
        self.at += end + 1;
        Ok(rest[..end].to_owned())
    }

    fn unknown(&self, start: usize) -> String {
        let typed = &self.text[start..self.at];
        let letter = typed.chars().next_back().unwrap_or('%');
        let known: Vec<String> = PLAIN
            .iter()
            .map(|(letter, _)| format!("%{letter}"))
            .chain(WITH_ARGUMENT.iter().map(|letter| format!("%{{...}}{letter}")))
            .collect();
        let same = |name: &&String| name.to_lowercase().ends_with(letter.to_ascii_lowercase());
        let same = known.iter().find(same).map(String::as_str);
        let nearest = same.or_else(|| nearest(typed, known.iter().map(String::as_str)));
        format!(
            "unknown directive `{typed}` (at {start}); did you mean `{}`? (all: {})",
            nearest.unwrap_or("%h"),
            known.join(" ")
        )
    }

    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let char = self.peek()?;
        self.at += char.len_utf8();
        Some(char)
    }

    fn takes(&mut self, wanted: char) -> bool {
        let takes = self.peek() == Some(wanted);
        self.at += if takes { wanted.len_utf8() } else { 0 };
        takes
    }
}

fn plain(letter: char) -> Option<Value> {
    PLAIN.iter().find(|(known, _)| *known == letter).map(|(_, value)| value.clone())
}

/// `None`: there is no such directive.
fn with_argument(letter: char, argument: String) -> Result<Option<Value>, String> {
    let choice = |choices: &[(&str, Value)]| {
        let found = choices.iter().find(|(name, _)| *name == argument);
        let names = choices.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        found
            .map(|(_, value)| Some(value.clone()))
            .ok_or_else(|| format!("`%{{{argument}}}{letter}` is one of {names}"))
    };
    let elapsed = |unit| Value::Late(Late::Elapsed(unit));
    match letter {
        'i' if argument.eq_ignore_ascii_case("referer") => Ok(Some(Value::Referer)),
        'i' if argument.eq_ignore_ascii_case("user-agent") => Ok(Some(Value::UserAgent)),
        'i' => Ok(Some(Value::FieldIn(argument))),
        'o' => Ok(Some(Value::FieldOut(argument))),
        't' => time(&argument).map(Some),
        'p' => choice(&[
            ("canonical", Value::LocalPort),
            ("local", Value::LocalPort),
            ("remote", Value::ClientPort),
        ]),
        'P' => choice(&[("pid", Value::Process), ("tid", Value::Thread)]),
        'T' => choice(&[
            ("s", elapsed(Unit::Seconds)),
            ("ms", elapsed(Unit::Millis)),
            ("us", elapsed(Unit::Micros)),
        ]),
        'a' => choice(&[("c", Value::Client)]),
        _ => Ok(None),
    }
}

/// `%{FORMAT}t`: strftime, or one of Apache's words. `begin:` is what it means anyway.
fn time(argument: &str) -> Result<Value, String> {
    let argument = argument.strip_prefix("begin:").unwrap_or(argument);
    Ok(match argument {
        "sec" => Value::TimeIn(Unit::Seconds),
        "msec" => Value::TimeIn(Unit::Millis),
        "usec" => Value::TimeIn(Unit::Micros),
        "msec_frac" => Value::TimeFraction(Unit::Millis),
        "usec_frac" => Value::TimeFraction(Unit::Micros),
        end if end.starts_with("end:") => {
            return Err(format!("`%{{{end}}}t`: the time of a line is that of its request"));
        }
        format => {
            let epoch = jiff::Timestamp::UNIX_EPOCH.to_zoned(jiff::tz::TimeZone::UTC);
            jiff::fmt::strtime::format(format, &epoch).map_err(|error| {
                format!("`%{{{format}}}t` is not a format of strftime: {error}")
            })?;
            Value::TimeAs(format.to_owned())
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_there_is_not_is_refused_with_its_place_and_the_nearest() {
        let cases = [
            ("%h %z", "`%z` (at 3)", "all: %h"),
            ("%h %S", "`%S` (at 3)", "did you mean `%s`?"),
            ("%{Foo}e %h", "`%{Foo}e` (at 0)", ""),
            ("%h %", "`%` at 3", "cut short"),
            ("%{Foo", "`%{Foo` at 0", "does not end"),
            ("%{xs}T", "%{xs}T", "s, ms, us"),
            ("%{%}t", "strftime", ""),
            ("%40x{Foo}i", "`40`", "not a status code"),
            ("combinde", "`combinde`", "combined"),
        ];
        for (typed, place, hint) in cases {
            let error = LogFormat::read(typed).unwrap_err();
            assert!(error.contains(place) && error.contains(hint), "{typed}: {error}");
        }
    }

    #[test]
    fn every_directive_is_read() {
        for (letter, value) in PLAIN {
            let format = LogFormat::read(&format!("x%{letter}")).unwrap();
            let [Step::Literal(x), Step::Value(read, Statuses::All)] = format.steps() else {
                panic!("%{letter} is read as {:?}", format.steps());
            };
            assert_eq!((&x[..], read), (&b"x"[..], value));
        }
    }

    #[test]
    fn conditions_and_arguments_stand_in_any_order() {
        for typed in ["%!200,304{Foo}i", "%{Foo}!200,304i", "%<!200,304{Foo}i"] {
            let format = LogFormat::read(typed).unwrap();
            let [Step::Value(Value::FieldIn(name), statuses)] = format.steps() else {
                panic!("{typed} is read as {:?}", format.steps());
            };
            assert_eq!((name.as_str(), statuses), ("Foo", &Statuses::AllBut(vec![200, 304])));
            assert!(statuses.have(404) && !statuses.have(304));
        }
    }
}
