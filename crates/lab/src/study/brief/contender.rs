//! Owns the reading of one contender from a word of the command line, and short names that tell them apart.
//! Start reading at [`read`].

use std::collections::BTreeMap;
use std::path::Path;

use record::{SettingValue, Settings};

use super::BriefError;
use super::draft::quoted;
use crate::adapters::{self, Adapter, Role, SettingKind, words};

/// Longest word of a command that becomes part of a name.
const WORD_MAX: usize = 24;
const COMMAND: &str = "command";
const CWD: &str = "cwd";
const URL: &str = "url";
const EXAMPLE: &str = "'python3 -m http.server {port} -d {docroot}'";

/// A contender as it was typed.
#[derive(Debug, Clone)]
pub(super) struct NamedContender {
    pub(super) name: String,
    pub(super) adapter: &'static Adapter,
    pub(super) settings: Settings,
    /// Whether it serves the page that joust makes.
    pub(super) takes_page: bool,
}

/// Reads a word: a URL begins with http://, a server is given by its name, and a command contains white space, a
/// slash or a brace.
///
/// # Errors
/// It is not one of these, or its settings are wrong.
pub(super) fn read(word: &str, cwd: &Path) -> Result<NamedContender, BriefError> {
    let word = word.trim();
    let chosen = if word.starts_with("http://") || word.starts_with("https://") {
        url(word)
    } else if let Some((name, inside)) = bracketed(word) {
        let mut chosen = server(name, settings(word, inside)?)?;
        if chosen.adapter.role == Role::AnyProgram {
            chosen.settings.entry(CWD.to_owned()).or_insert_with(|| folder(cwd));
        }
        chosen
    } else if word.contains(|c: char| c.is_whitespace() || matches!(c, '/' | '{')) {
        command(word, cwd)?
    } else {
        server(word, Settings::new())?
    };
    let checked = chosen.adapter.check(&chosen.settings);
    checked.map_err(|error| {
        let help = format!("`joust servers {}` lists its settings", chosen.adapter.name);
        BriefError::new(format!("`{word}`: {error}"), help)
    })?;
    Ok(chosen)
}

fn url(word: &str) -> NamedContender {
    let name = authority(word).to_owned();
    let settings = Settings::from([(URL.to_owned(), SettingValue::Text(word.to_owned()))]);
    NamedContender { name, adapter: adapter(URL), settings, takes_page: false }
}

fn authority(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or(rest)
}

fn command(word: &str, cwd: &Path) -> Result<NamedContender, BriefError> {
    if word.ends_with(".toml") && !word.contains('{') {
        return Err(BriefError::new(
            format!("a study file must be the only argument, got `{word}` among others"),
            "run one study at a time: joust run STUDY.toml",
        ));
    }
    let parted = words(word).map_err(|reason| {
        BriefError::new(format!("`{word}`: {reason}"), "close the quote, or leave it out")
    })?;
    if !word.contains("{port}") {
        return Err(BriefError::new(
            format!("the command `{word}` does not say where to listen: it has no {{port}}"),
            format!(
                "put {{port}} where its port goes, as in {EXAMPLE}. If it cannot be told its port: \
                 \"command[command='{word}',port=8000]\". If it runs already: http://127.0.0.1:PORT/"
            ),
        ));
    }
    let program = parted.first().map_or("", String::as_str);
    let name = Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or(program);
    let settings = Settings::from([
        (COMMAND.to_owned(), SettingValue::Text(word.to_owned())),
        (CWD.to_owned(), folder(cwd)),
    ]);
    let takes_page = word.contains("{docroot}");
    Ok(NamedContender { name: name.to_owned(), adapter: adapter(COMMAND), settings, takes_page })
}

fn folder(cwd: &Path) -> SettingValue {
    SettingValue::Text(cwd.display().to_string())
}

fn server(name: &str, settings: Settings) -> Result<NamedContender, BriefError> {
    let adapter = adapters::named(name).map_err(|error| unknown(name, &error.to_string()))?;
    let text = |key: &str| settings.get(key).map(ToString::to_string);
    // A URL or a command given as a setting counts like one that was typed alone.
    let (name, takes_page) = match adapter.role {
        Role::RunsAlready => (text(URL).map(|url| authority(&url).to_owned()), false),
        Role::AnyProgram => {
            let line = text(COMMAND).unwrap_or_default();
            let program = line.split_whitespace().next().unwrap_or_default();
            let last = program.rsplit('/').next().unwrap_or_default().to_owned();
            (Some(last).filter(|name| !name.is_empty()), line.contains("{docroot}"))
        }
        Role::Server => (None, true),
    };
    let name = name.unwrap_or_else(|| adapter.name.to_owned());
    Ok(NamedContender { name, adapter, settings, takes_page })
}

fn unknown(word: &str, said: &str) -> BriefError {
    let names: Vec<&str> = adapters::ALL
        .iter()
        .filter(|adapter| adapter.role == Role::Server)
        .map(|adapter| adapter.name)
        .collect();
    let has_port = word.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let near = said.split_once(": did you mean ").map(|(_, name)| format!("did you mean {name} "));
    let near = match (has_port, near) {
        (true, _) => format!("did you mean http://{word}/? "),
        (false, near) => near.unwrap_or_default(),
    };
    BriefError::new(
        format!("`{word}` is not a known server, a command or a URL"),
        format!(
            "{near}Servers are {}. A command has {{port}} in it, as in {EXAMPLE}; a URL begins with \
             http://; a study file ends in .toml",
            names.join(", ")
        ),
    )
}

fn adapter(name: &str) -> &'static Adapter {
    adapters::named(name).expect("the two adapters without a server of their own are always there")
}

/// A name and the text in the brackets after it.
fn bracketed(word: &str) -> Option<(&str, &str)> {
    let (name, rest) = word.split_once('[')?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let inside = rest.strip_suffix(']')?;
    (!name.is_empty() && name.chars().all(is_name)).then_some((name, inside))
}

/// Settings as in `worker_processes=2,sendfile=off`; '...' and "..." hold a value together.
fn settings(word: &str, inside: &str) -> Result<Settings, BriefError> {
    const HELP: &str = "write settings as in 'nginx[worker_processes=2,sendfile=off]'";
    let mut settings = Settings::new();
    for part in parts(inside) {
        let Some((key, value)) = part.split_once('=') else {
            let message = format!("`{word}`: a setting must be NAME=VALUE, got `{part}`");
            return Err(BriefError::new(message, HELP));
        };
        let (key, value) = (key.trim().trim_matches(['\'', '"']), value.trim());
        if key.is_empty() || value.is_empty() {
            let message = format!("`{word}`: a setting must be NAME=VALUE, got `{part}`");
            return Err(BriefError::new(message, HELP));
        }
        if settings.insert(key.to_owned(), setting(value)).is_some() {
            return Err(BriefError::new(format!("`{word}`: `{key}` is set twice"), HELP));
        }
    }
    Ok(settings)
}

fn setting(value: &str) -> SettingValue {
    let quoted = ['\'', '"']
        .into_iter()
        .find_map(|quote| value.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)));
    match (quoted, value, value.parse()) {
        (Some(text), _, _) => SettingValue::Text(text.to_owned()),
        (None, "true", _) => SettingValue::Flag(true),
        (None, "false", _) => SettingValue::Flag(false),
        (None, _, Ok(number)) => SettingValue::Number(number),
        (None, text, Err(_)) => SettingValue::Text(text.to_owned()),
    }
}

/// Splits at commas outside quotes; empty parts are left out.
fn parts(inside: &str) -> Vec<String> {
    let (mut parts, mut quote) = (vec![String::new()], None);
    for c in inside.chars() {
        match quote {
            None if c == ',' => parts.push(String::new()),
            _ => {
                quote = match quote {
                    Some(open) if open == c => None,
                    None if matches!(c, '\'' | '"') => Some(c),
                    same => same,
                };
                parts.last_mut().expect("there is one").push(c);
            }
        }
    }
    parts.retain(|part| !part.trim().is_empty());
    parts
}

/// Renames contenders of the same name by what they differ in, or by a number.
pub(super) fn tell_apart(all: &mut [NamedContender]) {
    let plain: Vec<String> = all.iter().map(|one| one.name.clone()).collect();
    let longer: Vec<String> = (0..all.len())
        .map(|index| {
            let alike: Vec<&NamedContender> = all
                .iter()
                .zip(&plain)
                .filter(|(_, name)| **name == plain[index])
                .map(|(one, _)| one)
                .collect();
            if alike.len() < 2 { with_words(&all[index]) } else { longer(&all[index], &alike) }
        })
        .collect();
    let mut count: BTreeMap<&String, usize> = BTreeMap::new();
    for (one, name) in all.iter_mut().zip(&longer) {
        let seen = count.entry(name).or_default();
        *seen += 1;
        let is_alone = longer.iter().filter(|other| *other == name).count() == 1;
        one.name = if is_alone { name.clone() } else { format!("{name} {seen}") };
    }
}

/// The name of the only one of its kind, with those of its settings that are clear without their key, such as the
/// model of our own server.
fn with_words(one: &NamedContender) -> String {
    let words = one.settings.iter().filter(|(key, value)| is_word(one, key, value));
    let words = words.map(|(_, value)| value.to_string());
    std::iter::once(one.name.clone()).chain(words).collect::<Vec<_>>().join(" ")
}

/// The name of one contender, with the settings that not all contenders like it have.
fn longer(one: &NamedContender, alike: &[&NamedContender]) -> String {
    let text = |key: &str| one.settings.get(key).map(ToString::to_string).unwrap_or_default();
    match one.adapter.role {
        Role::RunsAlready => text(URL).trim_start_matches("http://").to_owned(),
        Role::AnyProgram => {
            let words_of = |one: &NamedContender| {
                let line = one.settings.get(COMMAND).map(ToString::to_string).unwrap_or_default();
                words(&line).unwrap_or_default()
            };
            let others: Vec<Vec<String>> = alike.iter().map(|other| words_of(other)).collect();
            let own = words_of(one).into_iter().enumerate().skip(1);
            let mut differing = own.filter(|(at, word)| {
                word.len() <= WORD_MAX && others.iter().any(|other| other.get(*at) != Some(word))
            });
            differing.next().map_or(one.name.clone(), |(_, word)| format!("{} {word}", one.name))
        }
        Role::Server => {
            let differs = |(key, value): &(&String, &SettingValue)| {
                alike.iter().any(|other| other.settings.get(*key) != Some(value))
            };
            let said =
                one.settings.iter().filter(differs).map(|(key, value)| said(one, key, value));
            let all: Vec<String> = std::iter::once(one.name.clone()).chain(said).collect();
            all.join(" ")
        }
    }
}

/// A setting in a name: a value that is clear without its key stands alone, such as a model.
fn said(one: &NamedContender, key: &str, value: &SettingValue) -> String {
    if is_word(one, key, value) { value.to_string() } else { format!("{key}={value}") }
}

/// Whether the value is clear without the name of the setting.
fn is_word(one: &NamedContender, key: &str, value: &SettingValue) -> bool {
    let spec = one.adapter.settings.iter().find(|spec| spec.name == key);
    let takes_words =
        spec.is_some_and(|spec| matches!(spec.kind, SettingKind::Choice(_) | SettingKind::Word));
    let text = value.to_string();
    let is_word =
        text.starts_with(|c: char| c.is_ascii_alphabetic()) && text != "on" && text != "off";
    takes_words && is_word && one.adapter.role == Role::Server
}

/// Its table in a study.
pub(super) fn table(one: &NamedContender) -> String {
    let mut text = format!(
        "[[contender]]\nname = {}\nserver = {}\n",
        quoted(&one.name),
        quoted(one.adapter.name)
    );
    let value = |value: &SettingValue| match value {
        SettingValue::Text(text) => quoted(text),
        other => other.to_string(),
    };
    let is_bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    for (key, one) in &one.settings {
        let key = if key.chars().all(is_bare) { key.clone() } else { quoted(key) };
        text.push_str(&format!("settings.{key} = {}\n", value(one)));
    }
    text
}
