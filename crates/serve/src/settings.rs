//! Settings of a model by their original names: which there are, what was typed, and their values. Owns parsing and
//! refusal. Start reading at [`Settings`].

use std::fmt;

use site::nearest;
use units::Nanos;

/// A setting that exists.
#[derive(Debug, Clone, Copy)]
pub struct SettingSpec {
    /// As the original server writes it; matched without regard to case.
    pub name: &'static str,
    /// Its allowed values and its default.
    pub kind: SettingKind,
    /// One sentence for the help text.
    pub about: &'static str,
}

/// The values that a setting may have.
#[derive(Debug, Clone, Copy)]
pub enum SettingKind {
    /// A whole number.
    Count {
        /// The default.
        default: u64,
        /// Smallest allowed.
        min: u64,
        /// Largest allowed.
        max: u64,
    },
    /// A whole number, or `auto`, which is the default: the setting's `about` says what the model then takes.
    CountOrAuto {
        /// Smallest allowed.
        min: u64,
        /// Largest allowed.
        max: u64,
    },
    /// A time. As in Apache a bare number is seconds and `500ms` has its unit.
    Time {
        /// The default.
        default: Nanos,
        /// Shortest allowed.
        min: Nanos,
        /// Longest allowed.
        max: Nanos,
    },
    /// A time as in [`SettingKind::Time`], or `off`, which is the same as 0.
    TimeOrOff {
        /// The default.
        default: Nanos,
        /// Shortest allowed.
        min: Nanos,
        /// Longest allowed.
        max: Nanos,
    },
    /// A number with up to three decimals.
    Decimal {
        /// The default.
        default: Decimal,
        /// Smallest allowed.
        min: Decimal,
        /// Largest allowed.
        max: Decimal,
    },
    /// `On` or `Off`.
    Switch {
        /// The default.
        default: bool,
    },
    /// One of a few words.
    Word {
        /// The default; one of `allowed`.
        default: &'static str,
        /// All words that may be typed.
        allowed: &'static [&'static str],
    },
}

/// The value of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value {
    /// A whole number.
    Count(u64),
    /// `auto` of [`SettingKind::CountOrAuto`].
    Auto,
    /// A time.
    Time(Nanos),
    /// `off` of [`SettingKind::TimeOrOff`].
    Off,
    /// A number with up to three decimals.
    Decimal(Decimal),
    /// On or off.
    Switch(bool),
    /// A word of [`SettingKind::Word`].
    Word(&'static str),
}

/// A number with up to three decimals, exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Decimal {
    /// How many thousandths it is.
    pub thousandths: u64,
}

impl Decimal {
    /// A whole number.
    pub const fn whole(number: u64) -> Self {
        Self { thousandths: number * 1000 }
    }

    fn parse(typed: &str) -> Option<Self> {
        let (whole, fraction) = typed.split_once('.').unwrap_or((typed, "0"));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if !is_number(whole) || !is_number(fraction) || fraction.len() > 3 {
            return None;
        }
        let thousandths = format!("{fraction:0<3}").parse::<u64>().ok()?;
        let whole = whole.parse::<u64>().ok()?.checked_mul(1000)?;
        Some(Self { thousandths: whole.checked_add(thousandths)? })
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, fraction) = (self.thousandths / 1000, self.thousandths % 1000);
        match fraction {
            0 => write!(f, "{whole}"),
            _ => f.write_str(format!("{whole}.{fraction:03}").trim_end_matches('0')),
        }
    }
}

const DAY: Nanos = Nanos::from_secs(86_400);

/// Settings that every model has, so that two models can be run with all else equal. Names and defaults are Apache's,
/// with two exceptions. GracefulShutdownTimeout: in Apache 0, the default, means for ever; here a server always ends.
/// FileCache, which Apache does not have: it does what nginx's open_file_cache and open_file_cache_valid do, for
/// contents too, and its default of a second is lighttpd's.
pub static COMMON: &[SettingSpec] = &[
    SettingSpec {
        name: "KeepAlive",
        kind: SettingKind::Switch { default: true },
        about: "whether a connection may carry more than one request",
    },
    SettingSpec {
        name: "KeepAliveTimeout",
        kind: SettingKind::Time {
            default: Nanos::from_secs(5),
            min: Nanos::from_millis(1),
            max: DAY,
        },
        about: "how long a kept-alive connection may wait for its next request",
    },
    SettingSpec {
        name: "MaxKeepAliveRequests",
        kind: SettingKind::Count { default: 100, min: 0, max: u32::MAX as u64 },
        about: "answers after which a connection stays open, counted as in httpd: 100 allows 101 \
                requests; 0: unlimited",
    },
    SettingSpec {
        name: "ListenBacklog",
        kind: SettingKind::Count { default: 511, min: 1, max: i32::MAX as u64 },
        about: "connections that may wait to be accepted; the kernel caps it by net.core.somaxconn",
    },
    SettingSpec {
        name: "TimeOut",
        kind: SettingKind::Time {
            default: Nanos::from_secs(60),
            min: Nanos::from_millis(1),
            max: DAY,
        },
        about: "how long a client may read nothing of a response before its connection is closed",
    },
    SettingSpec {
        name: "GracefulShutdownTimeout",
        kind: SettingKind::Time { default: Nanos::from_secs(10), min: Nanos::ZERO, max: DAY },
        about: "after SIGTERM, how long requests in progress may take before they are cut off",
    },
    SettingSpec {
        name: "FileCache",
        kind: SettingKind::TimeOrOff {
            default: Nanos::from_secs(1),
            min: Nanos::from_millis(1),
            max: DAY,
        },
        about: "how long a cached file is sent without checking the disk; off: each request opens and reads \
                the file",
    },
];

/// Other names of settings, each with the name used here: Apache's names before 2.4, and those of Tomcat's that differ
/// from Apache's in more than case.
static ALSO: &[(&str, &str)] = &[
    ("MaxClients", "MaxRequestWorkers"),
    ("MaxRequestsPerChild", "MaxConnectionsPerChild"),
    ("acceptCount", "ListenBacklog"),
];

/// The settings of one model, complete: every one has a value in its range.
#[derive(Debug, Clone)]
pub struct Settings {
    entries: Vec<(SettingSpec, Value)>,
}

/// Why a setting was refused; says what is wrong and what would be right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    /// The model has no setting of that name.
    #[error("unknown setting `{name}` of this model; did you mean {nearest}? (all: {all})")]
    Unknown {
        /// As it was typed.
        name: String,
        /// The nearest one.
        nearest: &'static str,
        /// All that the model has.
        all: String,
    },
    /// The value is outside what the setting may be.
    #[error("{name} must be {allowed}, got `{typed}`")]
    NotAllowed {
        /// The setting.
        name: &'static str,
        /// As it was typed.
        typed: String,
        /// What it may be.
        allowed: String,
    },
}

impl Settings {
    /// The defaults of a model with these settings of its own: those first, then those of [`COMMON`] that it does not
    /// restate with a default of its own.
    pub fn defaults(own: &'static [SettingSpec]) -> Self {
        let restated = |name| own.iter().any(|own| own.name == name);
        let common = COMMON.iter().filter(|spec| !restated(spec.name));
        let specs = own.iter().chain(common);
        Self { entries: specs.map(|spec| (*spec, spec.kind.default())).collect() }
    }

    /// Sets one setting to what was typed. Combinations are checked later, by `Model::prepare`, so that the order of
    /// settings does not matter.
    ///
    /// # Errors
    /// An unknown name (with the nearest known one), or a value outside what the setting may be.
    pub fn set(&mut self, name: &str, typed: &str) -> Result<(), SettingError> {
        let meant = meant(name);
        let found = self.entries.iter_mut().find(|(spec, _)| spec.name.eq_ignore_ascii_case(meant));
        let Some((spec, value)) = found else {
            return Err(self.unknown(name));
        };
        *value = spec.kind.parse(typed).ok_or_else(|| SettingError::NotAllowed {
            name: spec.name,
            typed: typed.to_owned(),
            allowed: spec.kind.to_string(),
        })?;
        Ok(())
    }

    /// Every setting with its value, in the order of the help text.
    pub fn iter(&self) -> impl Iterator<Item = (&SettingSpec, Value)> {
        self.entries.iter().map(|(spec, value)| (spec, *value))
    }

    /// The value of a count. The name is one of the model's [`SettingSpec`]s.
    pub fn count(&self, name: &str) -> u64 {
        match self.value(name) {
            Value::Count(count) => count,
            other => panic!("setting {name} is asked for as a count and is {other:?}"),
        }
    }

    /// The value of a count of things in memory.
    pub fn size(&self, name: &str) -> usize {
        usize::try_from(self.count(name)).unwrap_or(usize::MAX)
    }

    /// The value of a count in which 0 means any number.
    pub fn count_or_any(&self, name: &str) -> u64 {
        match self.count(name) {
            0 => u64::MAX,
            count => count,
        }
    }

    /// The value of a size that may be `auto`, which is `None`.
    pub fn size_or_auto(&self, name: &str) -> Option<usize> {
        match self.value(name) {
            Value::Auto => None,
            _ => Some(self.size(name)),
        }
    }

    /// The value of a time; zero if it is off.
    pub fn time(&self, name: &str) -> Nanos {
        match self.value(name) {
            Value::Time(time) => time,
            Value::Off => Nanos::ZERO,
            other => panic!("setting {name} is asked for as a time and is {other:?}"),
        }
    }

    /// The value of a decimal.
    pub fn decimal(&self, name: &str) -> Decimal {
        match self.value(name) {
            Value::Decimal(decimal) => decimal,
            other => panic!("setting {name} is asked for as a decimal and is {other:?}"),
        }
    }

    /// The value of a switch.
    pub fn switch(&self, name: &str) -> bool {
        match self.value(name) {
            Value::Switch(on) => on,
            other => panic!("setting {name} is asked for as a switch and is {other:?}"),
        }
    }

    /// The value of a word.
    pub fn word(&self, name: &str) -> &'static str {
        match self.value(name) {
            Value::Word(word) => word,
            other => panic!("setting {name} is asked for as a word and is {other:?}"),
        }
    }

    fn value(&self, name: &str) -> Value {
        let found = self.entries.iter().find(|(spec, _)| spec.name == name);
        found.unwrap_or_else(|| panic!("setting {name} is asked for and no model declares it")).1
    }

    fn unknown(&self, name: &str) -> SettingError {
        let names = || self.entries.iter().map(|(spec, _)| spec.name);
        SettingError::Unknown {
            name: name.to_owned(),
            nearest: nearest(name, names()).unwrap_or_default(),
            all: names().collect::<Vec<_>>().join(", "),
        }
    }
}

/// The name by which a setting is known here.
pub(crate) fn meant(name: &str) -> &str {
    let also = ALSO.iter().find(|(also, _)| also.eq_ignore_ascii_case(name));
    also.map_or(name, |(_, meant)| meant)
}

impl SettingKind {
    /// The default.
    pub fn default(&self) -> Value {
        match *self {
            Self::Count { default, .. } => Value::Count(default),
            Self::CountOrAuto { .. } => Value::Auto,
            Self::Time { default, .. } | Self::TimeOrOff { default, .. } => Value::Time(default),
            Self::Decimal { default, .. } => Value::Decimal(default),
            Self::Switch { default } => Value::Switch(default),
            Self::Word { default, .. } => Value::Word(default),
        }
    }

    fn parse(&self, typed: &str) -> Option<Value> {
        match *self {
            Self::CountOrAuto { .. } if typed.eq_ignore_ascii_case("auto") => Some(Value::Auto),
            Self::Count { min, max, .. } | Self::CountOrAuto { min, max } => {
                let count = typed.parse().ok()?;
                (min..=max).contains(&count).then_some(Value::Count(count))
            }
            Self::TimeOrOff { .. } if typed.eq_ignore_ascii_case("off") => Some(Value::Off),
            Self::TimeOrOff { .. } if time(typed)? == Nanos::ZERO => Some(Value::Off),
            Self::Time { min, max, .. } | Self::TimeOrOff { min, max, .. } => {
                let time = time(typed)?;
                (min..=max).contains(&time).then_some(Value::Time(time))
            }
            Self::Decimal { min, max, .. } => {
                let decimal = Decimal::parse(typed)?;
                (min..=max).contains(&decimal).then_some(Value::Decimal(decimal))
            }
            Self::Switch { .. } => match typed.to_ascii_lowercase().as_str() {
                "on" | "true" | "yes" | "1" => Some(Value::Switch(true)),
                "off" | "false" | "no" | "0" => Some(Value::Switch(false)),
                _ => None,
            },
            Self::Word { allowed, .. } => {
                let word = allowed.iter().find(|word| word.eq_ignore_ascii_case(typed))?;
                Some(Value::Word(word))
            }
        }
    }
}

impl fmt::Display for SettingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count { min, max, .. } => write!(f, "a whole number from {min} to {max}"),
            Self::CountOrAuto { min, max } => {
                write!(f, "auto or a whole number from {min} to {max}")
            }
            Self::Time { min, max, .. } => {
                write!(f, "a time from {min} to {max}; a bare number is seconds, as in 5 or 500ms")
            }
            Self::TimeOrOff { min, max, .. } => {
                write!(
                    f,
                    "off, or a time from {min} to {max}; a bare number is seconds, as in 5 or 500ms"
                )
            }
            Self::Decimal { min, max, .. } => {
                write!(f, "a number from {min} to {max}, with up to three decimals")
            }
            Self::Switch { .. } => write!(f, "On or Off"),
            Self::Word { allowed, .. } => write!(f, "one of {}", allowed.join(", ")),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => write!(f, "{count}"),
            Self::Auto => f.write_str("auto"),
            Self::Time(time) => write!(f, "{time}"),
            Self::Off => f.write_str("off"),
            Self::Decimal(decimal) => write!(f, "{decimal}"),
            Self::Switch(on) => f.write_str(if *on { "On" } else { "Off" }),
            Self::Word(word) => f.write_str(word),
        }
    }
}

/// Seconds, or a time with its unit.
fn time(typed: &str) -> Option<Nanos> {
    match typed.parse::<f64>().ok().filter(|s| s.is_finite() && *s >= 0.0) {
        Some(seconds) => Some(Nanos::from_secs_f64(seconds)),
        None => typed.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OVERFLOW: SettingKind =
        SettingKind::Word { default: "wait", allowed: &["wait", "close"] };

    fn settings() -> Settings {
        let own = [SettingSpec { name: "overflow", kind: OVERFLOW, about: "" }];
        let specs = own.iter().chain(COMMON);
        Settings { entries: specs.map(|spec| (*spec, spec.kind.default())).collect() }
    }

    #[test]
    fn names_are_matched_without_regard_to_case() {
        let mut settings = settings();
        settings.set("keepalivetimeout", "2").unwrap();
        settings.set("KEEPALIVE", "off").unwrap();
        settings.set("Overflow", "CLOSE").unwrap();
        assert_eq!(settings.time("KeepAliveTimeout"), Nanos::from_secs(2));
        assert!(!settings.switch("KeepAlive"));
        assert_eq!(settings.word("overflow"), "close");
    }

    #[test]
    fn a_bare_time_is_seconds_and_a_unit_is_kept() {
        let mut settings = settings();
        for (typed, nanos) in [("5", 5_000_000_000), ("500ms", 500_000_000), ("0.5", 500_000_000)] {
            settings.set("TimeOut", typed).unwrap();
            assert_eq!(settings.time("TimeOut"), Nanos(nanos), "{typed}");
        }
    }

    #[test]
    fn what_may_be_off_is_off_by_that_word_or_by_nothing() {
        let mut settings = settings();
        assert_eq!(settings.time("FileCache"), Nanos::from_secs(1));
        for (typed, nanos, shown) in
            [("OFF", 0, "off"), ("0", 0, "off"), ("0s", 0, "off"), ("2", 2_000_000_000, "2s")]
        {
            settings.set("filecache", typed).unwrap();
            assert_eq!(settings.time("FileCache"), Nanos(nanos), "{typed}");
            assert_eq!(settings.value("FileCache").to_string().replace(' ', ""), shown);
        }
        assert!(
            settings.set("FileCache", "1us").unwrap_err().to_string().contains("off, or a time")
        );
        assert!(settings.set("TimeOut", "off").is_err(), "a timeout is never off");
    }

    #[test]
    fn a_decimal_is_exact_and_shown_as_it_was_typed() {
        for (typed, thousandths, shown) in
            [("2", 2000, "2"), ("1.5", 1500, "1.5"), ("1.250", 1250, "1.25"), ("0.001", 1, "0.001")]
        {
            let decimal = Decimal::parse(typed).unwrap();
            assert_eq!((decimal.thousandths, decimal.to_string()), (thousandths, shown.to_owned()));
        }
        for typed in ["", ".", "1.", ".5", "-1", "1.0001", "1e3", "99999999999999999999"] {
            assert_eq!(Decimal::parse(typed), None, "{typed}");
        }
    }

    #[test]
    fn a_setting_is_known_by_the_names_of_other_servers_too() {
        let mut settings = settings();
        settings.set("acceptcount", "7").unwrap();
        assert_eq!(settings.count("ListenBacklog"), 7);
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_nearest() {
        let error = settings().set("KeepAliveTimeOuts", "5").unwrap_err().to_string();
        assert!(error.contains("did you mean KeepAliveTimeout?"), "{error}");
    }

    #[test]
    fn values_out_of_range_are_refused_with_the_range() {
        let cases = [
            ("ListenBacklog", "0", "from 1 to"),
            ("ListenBacklog", "-1", "from 1 to"),
            ("TimeOut", "-1", "a bare number is seconds"),
            ("TimeOut", "NaN", "a bare number is seconds"),
            ("KeepAlive", "maybe", "On or Off"),
            ("overflow", "drop", "wait, close"),
        ];
        for (name, typed, hint) in cases {
            let error = settings().set(name, typed).unwrap_err().to_string();
            assert!(error.contains(hint) && error.contains(name), "{error}");
        }
    }
}
