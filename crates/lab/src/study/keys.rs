//! Owns the reading of typed keys from a TOML table, each with its place in the file. Start reading at
//! [`Section`].

use std::fmt::Display;
use std::ops::{Range, RangeInclusive};
use std::str::FromStr;

use record::SettingValue;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::StudyError;
use crate::nearest::suggestion;

/// A value and its place.
pub(super) type Located<'a> = &'a Spanned<DeValue<'a>>;

/// A key with its place, and its value.
pub(super) type Item<'a> = (Spanned<String>, Located<'a>);

/// The file that errors point into.
#[derive(Debug, Clone, Copy)]
pub(super) struct StudySource<'a> {
    pub(super) file: &'a str,
    pub(super) text: &'a str,
}

impl StudySource<'_> {
    /// A quantity with a unit ("150ms", "3KB", "2%"); a bare number is read where its type takes one.
    pub(super) fn quantity<T>(self, key: &str, value: Located<'_>) -> Result<T, StudyError>
    where
        T: FromStr<Err: Display>,
    {
        let typed = match value.get_ref() {
            DeValue::String(text) => text.to_string(),
            DeValue::Integer(number) => number.to_string(),
            DeValue::Float(number) => number.to_string(),
            _ => return Err(self.wrong(key, value, "a quantity in quotes, such as \"150ms\"")),
        };
        let refused = |error: T::Err| self.error(value.span(), format!("`{key}`: {error}"));
        typed.parse().map_err(refused)
    }

    /// A whole number in `range`.
    pub(super) fn whole(
        self,
        key: &str,
        value: Located<'_>,
        range: RangeInclusive<u64>,
    ) -> Result<u64, StudyError> {
        let wanted = || format!("a whole number from {} to {}", range.start(), range.end());
        let number = integer(value.get_ref()).and_then(|number| u64::try_from(number).ok());
        let fitting = number.filter(|number| range.contains(number));
        fitting.ok_or_else(|| self.wrong(key, value, &wanted()))
    }

    /// `true` or `false`.
    pub(super) fn flag(self, key: &str, value: Located<'_>) -> Result<bool, StudyError> {
        value.get_ref().as_bool().ok_or_else(|| self.wrong(key, value, "true or false"))
    }

    /// A text.
    pub(super) fn text(self, key: &str, value: Located<'_>) -> Result<String, StudyError> {
        let text = value.get_ref().as_str().map(str::to_owned);
        text.ok_or_else(|| self.wrong(key, value, "a text in quotes"))
    }

    /// The items of a list that is not empty.
    pub(super) fn list<'v>(
        self,
        key: &str,
        value: Located<'v>,
    ) -> Result<Vec<Located<'v>>, StudyError> {
        let items: Option<Vec<Located<'v>>> =
            value.get_ref().as_array().map(|list| list.iter().collect());
        let filled = items.filter(|items| !items.is_empty());
        filled.ok_or_else(|| self.wrong(key, value, "a list that is not empty, such as [1, 2]"))
    }

    /// An error that says what was typed and what is expected.
    pub(super) fn wrong(self, key: &str, value: Located<'_>, wanted: &str) -> StudyError {
        let typed = &self.text[value.span()];
        self.error(value.span(), format!("`{key}` is {typed}, but it must be {wanted}"))
    }

    /// An error at `span`.
    pub(super) fn error(&self, span: Range<usize>, message: impl Into<String>) -> StudyError {
        StudyError {
            file: self.file.to_owned(),
            text: self.text.to_owned(),
            span,
            message: message.into(),
            help: None,
        }
    }
}

/// One table of the file, with the keys that it may have.
#[derive(Debug, Clone)]
pub(super) struct Section<'a> {
    source: StudySource<'a>,
    /// As it is written in the file ("[workload]").
    title: &'a str,
    span: Range<usize>,
    table: &'a DeTable<'a>,
}

impl<'a> Section<'a> {
    /// Opens a table.
    ///
    /// # Errors
    /// A key that is not in `known`. It is reported before any missing key, because a mistyped key is why one is
    /// missing.
    pub(super) fn open(
        source: StudySource<'a>,
        title: &'a str,
        span: Range<usize>,
        table: &'a DeTable<'a>,
        known: &[&str],
    ) -> Result<Self, StudyError> {
        let mut unknown: Vec<_> =
            table.keys().filter(|key| !known.contains(&key.get_ref().as_ref())).collect();
        unknown.sort_by_key(|key| key.span().start);
        if let Some(key) = unknown.first() {
            let typed = key.get_ref();
            return Err(source
                .error(key.span(), format!("unknown key `{typed}` in {title}"))
                .with_help(suggestion(typed, known)));
        }
        Ok(Self { source, title, span, table })
    }

    /// An error about the table as a whole: its header.
    pub(super) fn error(&self, message: impl Into<String>) -> StudyError {
        self.source.error(self.span.clone(), message)
    }

    /// An error that says the key is missing, and how it is written.
    pub(super) fn missing(&self, key: &str, example: &str) -> StudyError {
        self.error(format!("{} has no `{key}`", self.title)).with_help(format!("write {example}"))
    }

    /// A table inside this one, or `None`.
    pub(super) fn section(
        &self,
        key: &'a str,
        title: &'a str,
        known: &[&str],
    ) -> Result<Option<Self>, StudyError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let table = self.table_of(key, value)?;
        Self::open(self.source, title, value.span(), table, known).map(Some)
    }

    /// The tables of a list (`[[contender]]`), in the order of the file.
    pub(super) fn sections(
        &self,
        key: &'a str,
        title: &'a str,
        known: &[&str],
    ) -> Result<Vec<Self>, StudyError> {
        let Some(value) = self.get(key) else { return Ok(Vec::new()) };
        let list = value
            .get_ref()
            .as_array()
            .ok_or_else(|| self.wrong(key, value, "a list of tables: write [[contender]]"))?;
        let open = |item: &'a Spanned<DeValue<'a>>| {
            let table = self.table_of(key, item)?;
            Self::open(self.source, title, item.span(), table, known)
        };
        list.iter().map(open).collect()
    }

    /// A text.
    pub(super) fn text(&self, key: &str) -> Result<Option<Spanned<String>>, StudyError> {
        self.located(key, |value| self.source.text(key, value))
    }

    /// A whole number in `range`.
    pub(super) fn whole(
        &self,
        key: &str,
        range: RangeInclusive<u64>,
    ) -> Result<Option<Spanned<u64>>, StudyError> {
        self.located(key, |value| self.source.whole(key, value, range))
    }

    /// A quantity with a unit ("150ms", "3KB", "2%"); a bare number is read where its type takes
    /// one.
    pub(super) fn quantity<T>(&self, key: &str) -> Result<Option<Spanned<T>>, StudyError>
    where
        T: FromStr<Err: Display>,
    {
        self.located(key, |value| self.source.quantity(key, value))
    }

    /// Every item of a list of texts.
    pub(super) fn texts(&self, key: &str) -> Result<Option<Vec<Spanned<String>>>, StudyError> {
        const WANTED: &str = "a list of texts, such as [\"throughput\"]";
        let Some(value) = self.get(key) else { return Ok(None) };
        let list = value.get_ref().as_array().ok_or_else(|| self.wrong(key, value, WANTED))?;
        let text = |item: &Spanned<DeValue<'_>>| {
            let text = item.get_ref().as_str().ok_or_else(|| self.wrong(key, item, WANTED))?;
            Ok(Spanned::new(item.span(), text.to_owned()))
        };
        list.iter().map(text).collect::<Result<_, _>>().map(Some)
    }

    /// Every key and value of a table whose keys are free, with the key's place.
    pub(super) fn free(&self, key: &str) -> Result<Vec<Item<'a>>, StudyError> {
        let Some(value) = self.get(key) else { return Ok(Vec::new()) };
        let table = self.table_of(key, value)?;
        Ok(items_of(table))
    }

    /// As [`Section::free`], of a table or a list of tables.
    pub(super) fn free_tables(&self, key: &str) -> Result<Vec<Vec<Item<'a>>>, StudyError> {
        let Some(list) = self.get(key).and_then(|value| value.get_ref().as_array()) else {
            return Ok(vec![self.free(key)?]);
        };
        let table = |item: &'a Spanned<DeValue<'a>>| Ok(items_of(self.table_of(key, item)?));
        list.iter().map(table).collect()
    }

    /// Every key of this table with its value, in the order of the file.
    pub(super) fn items(&self) -> Vec<(Spanned<String>, Located<'a>)> {
        items_of(self.table)
    }

    pub(super) fn get(&self, key: &str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.table.iter().find(|(name, _)| name.get_ref() == key).map(|(_, value)| value)
    }

    fn located<T>(
        &self,
        key: &str,
        read: impl FnOnce(Located<'a>) -> Result<T, StudyError>,
    ) -> Result<Option<Spanned<T>>, StudyError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        Ok(Some(Spanned::new(value.span(), read(value)?)))
    }

    fn table_of(
        &self,
        key: &str,
        value: &'a Spanned<DeValue<'a>>,
    ) -> Result<&'a DeTable<'a>, StudyError> {
        value.get_ref().as_table().ok_or_else(|| self.wrong(key, value, "a table"))
    }

    fn wrong(&self, key: &str, value: &Spanned<DeValue<'_>>, wanted: &str) -> StudyError {
        self.source.wrong(key, value, wanted)
    }
}

fn items_of<'a>(table: &'a DeTable<'a>) -> Vec<(Spanned<String>, Located<'a>)> {
    let own = |name: &Spanned<_>| Spanned::new(name.span(), ToString::to_string(name.get_ref()));
    let mut items: Vec<_> = table.iter().map(|(name, value)| (own(name), value)).collect();
    items.sort_by_key(|(name, _)| name.span().start);
    items
}

/// A whole number of TOML, if it fits.
pub(super) fn integer(value: &DeValue<'_>) -> Option<i64> {
    let number = value.as_integer()?;
    i64::from_str_radix(number.as_str(), number.radix()).ok()
}

/// The value of a setting.
pub(super) fn setting(
    key: &str,
    value: Located<'_>,
    source: StudySource<'_>,
) -> Result<SettingValue, StudyError> {
    let refused = || {
        source
            .error(
                value.span(),
                format!("the setting `{key}` must be a number, a text or true/false"),
            )
            .with_help("a name with a dot needs quotes: \"server.max-worker\" = 0")
    };
    Ok(match value.get_ref() {
        DeValue::Boolean(flag) => SettingValue::Flag(*flag),
        DeValue::String(text) => SettingValue::Text(text.to_string()),
        number @ DeValue::Integer(_) => SettingValue::Number(integer(number).ok_or_else(refused)?),
        _ => return Err(refused()),
    })
}
