//! From what was typed, on a command line and in a file, to a complete `Config`. Owns reading, precedence (the command
//! line comes first) and refusal; see also `keys`. Start reading at [`CommandLine::resolve`].

use std::net::SocketAddr;
use std::path::PathBuf;

use site::config::text::{self, FIXED_BYTES_MAX};
use site::config::{
    CertificateFiles, Content, ErrorLogTo, GatewayConfig, LogFormat, TABLES, status_path, table,
};
use site::nearest;
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use units::Bytes;

use super::Config;
use super::keys::{KEYS, Key, LIMITS, TypedValue};
use crate::models::{self, Model};
use crate::settings::{self, SettingError, Settings};

/// The table of a model's settings.
const SETTINGS: &str = "settings";

/// What a command line says. What it leaves out is in the file, or has its default.
#[derive(Debug, Clone, Default)]
pub struct CommandLine {
    /// `--config FILE`
    pub config: Option<PathBuf>,
    /// `--listen ADDR`
    pub listen: Option<SocketAddr>,
    /// `DIR`
    pub directory: Option<PathBuf>,
    /// `--fixed BYTES`
    pub fixed: Option<Bytes>,
    /// `--model NAME`
    pub model: Option<String>,
    /// `--set KEY=VALUE`, each: a setting of the model, or a bound as in `limits.head_timeout=5s`.
    pub set: Vec<String>,
    /// `--access-log FILE|off`
    pub access_log: Option<String>,
    /// `--log-format FORMAT`
    pub log_format: Option<String>,
    /// `--error-log FILE|stderr|off`
    pub error_log: Option<String>,
    /// `--error-level LEVEL`
    pub error_level: Option<String>,
    /// `--listing`
    pub listing: bool,
    /// `--cpus LIST`; empty: not given.
    pub cpus: Vec<u32>,
    /// `--user NAME`
    pub user: Option<String>,
    /// `--group NAME`
    pub group: Option<String>,
    /// `--fault SPEC`, each; empty: not given.
    pub fault: Vec<String>,
    /// `--status PATH`
    pub status: Option<String>,
    /// `--cgi PREFIX`, each.
    pub cgi: Vec<String>,
    /// Gateways of the caller's own, before all others.
    pub gateways: Vec<GatewayConfig>,
    /// `--tls-cert FILE`
    pub tls_cert: Option<PathBuf>,
    /// `--tls-key FILE`
    pub tls_key: Option<PathBuf>,
    /// `--tls-self-signed`
    pub tls_self_signed: bool,
}

/// Why a configuration is refused: where, what, why, and the way out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}{reason}")]
pub struct ConfigError {
    /// `FILE:LINE: ` or empty.
    place: String,
    reason: String,
}

impl ConfigError {
    fn new(reason: impl Into<String>) -> Self {
        Self { place: String::new(), reason: reason.into() }
    }
}

impl CommandLine {
    /// Everything that was typed, and the defaults for what was not.
    ///
    /// # Errors
    /// A file that cannot be read or is not TOML; an unknown key (with the nearest known one); a value out of its
    /// range; settings that cannot be combined. Each with its place.
    pub fn resolve(&self) -> Result<Config, ConfigError> {
        let (name, text) = match &self.config {
            None => (String::new(), String::new()),
            Some(path) => {
                let name = path.display().to_string();
                let text = std::fs::read_to_string(path).map_err(|error| {
                    ConfigError::new(format!("cannot read the configuration {name}: {error}"))
                })?;
                (name, text)
            }
        };
        self.resolve_with(&name, &text)
    }

    /// The same with the text of a file that was read; `name` is for messages.
    ///
    /// # Errors
    /// As [`CommandLine::resolve`].
    pub fn resolve_with(&self, name: &str, text: &str) -> Result<Config, ConfigError> {
        let file = File::parse(name, text)?;
        let model = match (&self.model, file.model()?) {
            (Some(typed), _) => model_named(typed)?,
            (None, Some(named)) => named,
            (None, None) => models::ALL[0],
        };
        let mut config = Config::new(model, Content::Fixed(Bytes(0)));
        let mut settings = Settings::defaults(model.settings);
        let file_has_content = file.apply(&mut config, &mut settings)?;
        self.apply(&mut config, &mut settings, file_has_content)?;
        config.apply(settings).map_err(ConfigError::new)?;
        check(&config).map_err(ConfigError::new)?;
        Ok(config)
    }

    fn apply(
        &self,
        config: &mut Config,
        settings: &mut Settings,
        file_has_content: bool,
    ) -> Result<(), ConfigError> {
        match (&self.directory, self.fixed) {
            (Some(_), Some(_)) => {
                return Err(ConfigError::new(
                    "a directory and --fixed exclude each other: remove one of them",
                ));
            }
            (Some(directory), None) => config.site.content = Content::Directory(directory.clone()),
            (None, Some(bytes)) if bytes.0 > FIXED_BYTES_MAX => {
                return Err(ConfigError::new(format!(
                    "--fixed must be at most {}, got {bytes}: give less, or serve a directory with a file of that size",
                    Bytes(FIXED_BYTES_MAX)
                )));
            }
            (None, Some(bytes)) => config.site.content = Content::Fixed(bytes),
            (None, None) if file_has_content || config.site.take_default_host() => {}
            (None, None) => {
                return Err(ConfigError::new(
                    "nothing to serve: name a directory, or give --fixed BYTES",
                ));
            }
        }
        config.listen = self.listen.unwrap_or(config.listen);
        config.site.listing |= self.listing;
        if self.user.is_some() {
            // The group in the file belongs to another user.
            config.user.clone_from(&self.user);
            config.group = None;
        }
        if self.group.is_some() {
            config.group.clone_from(&self.group);
        }
        if !self.cpus.is_empty() {
            config.cpus.clone_from(&self.cpus);
        }
        self.apply_logs(config)?;
        if let Some(typed) = &self.status {
            let refused = |reason| ConfigError::new(format!("--status: {reason}"));
            config.site.status.path = status_path(typed).map_err(refused)?;
        }
        if !self.fault.is_empty() {
            let read = |typed: &String| {
                typed
                    .parse()
                    .map_err(|reason| ConfigError::new(format!("--fault {typed}: {reason}")))
            };
            config.site.faults = self.fault.iter().map(read).collect::<Result<_, _>>()?;
        }
        self.apply_cgi(config)?;
        self.apply_tls(config)?;
        self.set.iter().try_for_each(|pair| set_pair(config, settings, pair))
    }
}

impl CommandLine {
    fn apply_logs(&self, config: &mut Config) -> Result<(), ConfigError> {
        if let Some(typed) = &self.access_log {
            config.site.access_log.file = text::log_file(typed);
        }
        if let Some(typed) = &self.log_format {
            let refused = |reason| ConfigError::new(format!("--log-format: {reason}"));
            config.site.access_log.format = LogFormat::read(typed).map_err(refused)?;
        }
        if let Some(typed) = &self.error_log {
            config.site.error_log.to = ErrorLogTo::of(typed);
        }
        if let Some(typed) = &self.error_level {
            let refused = |reason| ConfigError::new(format!("--error-level: {reason}"));
            config.site.error_log.level = typed.parse().map_err(refused)?;
        }
        Ok(())
    }

    /// The first gateway that matches answers, so those of the command line come before those of the file.
    fn apply_cgi(&self, config: &mut Config) -> Result<(), ConfigError> {
        let read = |typed: &String| {
            let refused = |reason| ConfigError::new(format!("--cgi {typed}: {reason}"));
            GatewayConfig::cgi(typed).map_err(refused)
        };
        let typed: Vec<_> = self.cgi.iter().map(read).collect::<Result<_, _>>()?;
        config.site.gateways.splice(..0, self.gateways.iter().cloned().chain(typed));
        Ok(())
    }

    /// Certificates on the command line replace all those of the file.
    fn apply_tls(&self, config: &mut Config) -> Result<(), ConfigError> {
        let certificate = match (&self.tls_cert, &self.tls_key) {
            (None, None) => Vec::new(),
            // Both may be in one file.
            (Some(chain), key) => vec![CertificateFiles {
                chain: chain.clone(),
                key: key.as_ref().unwrap_or(chain).clone(),
            }],
            (None, Some(_)) => {
                return Err(ConfigError::new(
                    "--tls-key needs its certificate: add --tls-cert FILE",
                ));
            }
        };
        if self.tls_self_signed || !certificate.is_empty() {
            let tls = config.site.tls.get_or_insert_default();
            tls.certificate = certificate;
            tls.self_signed = self.tls_self_signed;
        }
        Ok(())
    }
}

/// `--set KEY=VALUE`.
fn set_pair(config: &mut Config, settings: &mut Settings, pair: &str) -> Result<(), ConfigError> {
    let Some((name, value)) = pair.split_once('=') else {
        return Err(ConfigError::new(format!(
            "--set {pair}: write it as KEY=VALUE, as in --set KeepAliveTimeout=5"
        )));
    };
    let (name, value) = (name.trim(), value.trim());
    let refused = |reason: String| ConfigError::new(format!("--set {pair}: {reason}"));
    match name.strip_prefix(LIMITS).and_then(|rest| rest.strip_prefix('.')) {
        Some(limit) => {
            let key = key_named(LIMITS, limit).map_err(refused)?;
            (key.set)(config, &TypedValue::One(value.to_owned())).map_err(refused)
        }
        None => settings.set(name, value).map_err(|error| refused(setting_refused(&error))),
    }
}

/// Refuses what cannot be combined, with the reason and the way out.
fn check(config: &Config) -> Result<(), String> {
    let is_again = |&(place, cpu): &(usize, &u32)| config.cpus[..place].contains(cpu);
    if let Some((_, cpu)) = config.cpus.iter().enumerate().find(is_again) {
        return Err(format!("`cpus` must name each CPU once, got {cpu} twice"));
    }
    if let (Some(group), None) = (&config.group, &config.user) {
        return Err(format!("`group` = {group} needs `user`: set both"));
    }
    config.site.check()?;
    config.site.tls.as_ref().map_or(Ok(()), |tls| tls.check(config.listen))
}

/// Why a setting is refused. Most often the setting exists, but its model was not named.
fn setting_refused(error: &SettingError) -> String {
    let SettingError::Unknown { name, all, .. } = error else { return error.to_string() };
    let name_meant = settings::meant(name);
    let is_it = |spec: &settings::SettingSpec| spec.name.eq_ignore_ascii_case(name_meant);
    let others = models::ALL.iter().filter(|model| model.settings.iter().any(is_it));
    let others: Vec<_> = others.map(|model| model.name).collect();
    match others.is_empty() {
        true => error.to_string(),
        false => format!(
            "`{name}` is a setting of {}, not of this model: choose that model, or one of {all}",
            others.join(", ")
        ),
    }
}

/// A file, read as TOML.
struct File<'t> {
    name: &'t str,
    text: &'t str,
    table: DeTable<'t>,
}

type Entry<'t, 'f> = (&'f Spanned<std::borrow::Cow<'t, str>>, &'f Spanned<DeValue<'t>>);

impl<'t> File<'t> {
    fn parse(name: &'t str, text: &'t str) -> Result<Self, ConfigError> {
        let table = DeTable::parse(text).map_err(|error| ConfigError {
            place: place(name, text, error.span().map_or(0, |span| span.start)),
            reason: error.message().to_owned(),
        })?;
        Ok(Self { name, text, table: table.into_inner() })
    }

    /// An error about the text at `at`.
    fn refused<T>(&self, at: &Spanned<T>, reason: String) -> ConfigError {
        ConfigError { place: place(self.name, self.text, at.span().start), reason }
    }

    fn model(&self) -> Result<Option<&'static Model>, ConfigError> {
        let Some((key, value)) = self.table.get_key_value("model") else { return Ok(None) };
        match value.get_ref() {
            DeValue::String(name) => {
                model_named(name).map(Some).map_err(|error| self.refused(value, error.reason))
            }
            _ => {
                Err(self.refused(key, "`model` must be the name of a model, in quotes".to_owned()))
            }
        }
    }

    /// Reads all keys. Returns whether the file says what is served.
    fn apply(&self, config: &mut Config, settings: &mut Settings) -> Result<bool, ConfigError> {
        let (directory, fixed) =
            (self.table.get_key_value("directory"), self.table.get_key_value("fixed"));
        if let (Some(_), Some((key, _))) = (directory, fixed) {
            let reason = "`directory` and `fixed` exclude each other: remove one of them";
            return Err(self.refused(key, reason.to_owned()));
        }
        for (key, value) in &self.table {
            if let Some(table) = TABLES.iter().find(|table| table.name == key.get_ref()) {
                self.apply_table(table, value, config)?;
                continue;
            }
            match (key.get_ref().as_ref(), value.get_ref()) {
                ("model", _) => {}
                (section, DeValue::Table(table)) => {
                    for entry in table {
                        self.apply_in(section, key, entry, config, settings)?;
                    }
                }
                (section, _) if section == SETTINGS || has_section(section) => {
                    let reason = format!("`{section}` is a table: write [{section}]");
                    return Err(self.refused(key, reason));
                }
                _ => self.apply_key("", (key, value), config)?,
            }
        }
        Ok(directory.or(fixed).is_some())
    }

    /// Reads a table as a whole.
    fn apply_table(
        &self,
        table: &table::Table,
        value: &Spanned<DeValue<'t>>,
        config: &mut Config,
    ) -> Result<(), ConfigError> {
        table.read(&mut config.site, value).map_err(|error| {
            let at = error.span().map_or(value.span().start, |span| span.start);
            let line = error.span().map(|span| table::line_at(self.text, span.start));
            // The line with the table's brackets says no more than its name does.
            let line = line.filter(|line| !line.starts_with('['));
            let line = line.map(|line| format!(": `{line}`")).unwrap_or_default();
            let reason =
                format!("{}: {}{line}", table.header(), table::in_plain_words(error.message()));
            ConfigError { place: place(self.name, self.text, at), reason }
        })
    }

    /// Reads a key of a table.
    fn apply_in<T>(
        &self,
        section: &str,
        header: &Spanned<T>,
        entry: Entry<'t, '_>,
        config: &mut Config,
        settings: &mut Settings,
    ) -> Result<(), ConfigError> {
        if section != SETTINGS {
            if !has_section(section) {
                let reason = match key_named("", section) {
                    Ok(key) => format!("`{section}` is not a table, but a key: {}", key.about),
                    Err(_) => unknown("table", section, sections()),
                };
                return Err(self.refused(header, reason));
            }
            return self.apply_key(section, entry, config);
        }
        self.apply_setting(None, entry, settings)
    }

    /// Reads a setting. To TOML, a name with a dot (`server.max-connections`) is a table in a table.
    fn apply_setting(
        &self,
        before_dot: Option<&str>,
        (key, value): Entry<'t, '_>,
        settings: &mut Settings,
    ) -> Result<(), ConfigError> {
        let name = match before_dot {
            Some(before) => format!("{before}.{}", key.get_ref()),
            None => key.get_ref().to_string(),
        };
        match (value.get_ref(), given(value)) {
            (DeValue::Table(table), _) => {
                let mut entries = table.iter();
                entries.try_for_each(|entry| self.apply_setting(Some(&name), entry, settings))
            }
            (_, Some(TypedValue::One(typed))) => {
                let set = settings.set(&name, &typed);
                set.map_err(|error| self.refused(key, setting_refused(&error)))
            }
            _ => Err(self.refused(key, format!("`{name}` must have one value"))),
        }
    }

    fn apply_key(
        &self,
        section: &str,
        (key, value): Entry<'t, '_>,
        config: &mut Config,
    ) -> Result<(), ConfigError> {
        let name = key.get_ref();
        let known = key_named(section, name).map_err(|reason| self.refused(key, reason))?;
        let refused = |reason| self.refused(value, format!("`{name}`: {reason}"));
        let given = given(value)
            .ok_or_else(|| refused(format!("wrong type of value (the key is: {})", known.about)))?;
        (known.set)(config, &given).map_err(refused)
    }
}

/// Scalars as text; `None` for values that no key takes.
fn given(value: &Spanned<DeValue<'_>>) -> Option<TypedValue> {
    let scalar = |value: &Spanned<DeValue<'_>>| match value.get_ref() {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => {
            Some(i128::from_str_radix(number.as_str(), number.radix()).ok()?.to_string())
        }
        DeValue::Float(number) => Some(number.as_str().to_owned()),
        DeValue::Boolean(flag) => Some(flag.to_string()),
        _ => None,
    };
    match value.get_ref() {
        DeValue::Array(items) => {
            items.iter().map(scalar).collect::<Option<_>>().map(TypedValue::Many)
        }
        _ => scalar(value).map(TypedValue::One),
    }
}

fn key_named(section: &str, name: &str) -> Result<&'static Key, String> {
    let of_section = || KEYS.iter().filter(|key| key.section == section);
    of_section().find(|key| key.name == name).ok_or_else(|| {
        let more = if section.is_empty() { sections() } else { Vec::new() };
        unknown("key", name, of_section().map(|key| key.name).chain(more).collect())
    })
}

/// Whether there are keys in a table of that name.
fn has_section(name: &str) -> bool {
    !name.is_empty() && KEYS.iter().any(|key| key.section == name)
}

/// Tables of a file, and the key `model`.
fn sections() -> Vec<&'static str> {
    let mut names: Vec<&str> = KEYS.iter().map(|key| key.section).collect();
    names.dedup();
    names.retain(|name| !name.is_empty());
    names.extend(TABLES.iter().map(|table| table.name));
    names.extend([SETTINGS, "model"]);
    names
}

fn unknown(what: &str, name: &str, known: Vec<&str>) -> String {
    let nearest = nearest(name, known.iter().copied()).unwrap_or_default();
    format!("unknown {what} `{name}`; did you mean `{nearest}`? (all: {})", known.join(", "))
}

fn model_named(name: &str) -> Result<&'static Model, ConfigError> {
    models::by_name(name).ok_or_else(|| {
        let names = models::ALL.iter().map(|model| model.name).collect();
        ConfigError::new(unknown("model", name, names))
    })
}

/// `FILE:LINE: `.
fn place(name: &str, text: &str, offset: usize) -> String {
    let before = text.as_bytes().iter().take(offset);
    format!("{name}:{}: ", before.filter(|&&byte| byte == b'\n').count() + 1)
}

#[cfg(test)]
mod tests {
    use units::Nanos;

    use super::*;
    use site::config::Compression;

    fn resolve(text: &str) -> Result<Config, String> {
        CommandLine::default().resolve_with("joust.toml", text).map_err(|error| error.to_string())
    }

    const WHOLE: &str = "\
        model = \"prefork\"\nlisten = \"127.0.0.1:0\"\ndirectory = \"/srv/a \\\"b\\\"\"\n\
        index = [\"home.html\"]\nlisting = true\ncpus = [0, 1]\n\
        [access_log]\nfile = \"/tmp/log\"\nformat = \"combined\"\n\
        [limits]\nhead_timeout = \"1500ms\"\ncache_bytes_max = \"32MiB\"\nranges_max = 0x10\n\
        [types]\nfoo = \"text/x-foo\"\n[compression]\ngzip_level = 1\n\
        [[gateway]]\npath = \"/cgi-bin\"\nroot = \"/srv/cgi\"\nenv = { A = \"b\" }\n\
        [[gateway]]\nextension = \".php\"\nhost = [\"A.test\"]\nroot = \"/srv/php\"\nkind = \"fastcgi\"\n\
        spawn = { command = [\"/usr/bin/php-cgi\"], count = 3 }\nenv = { A = \"c\" }\n\
        [errors]\n404 = \"/404.html\"\n\
        503 = { file = \"/etc/503.html\" }\n[[rule]]\nprefix = \"/a\"\nset = { A = \"b\" }\ndeny = 403\n\
        [[host]]\nnames = [\"a.test\"]\nfixed = 3\n\
        access_log = { file = \"/tmp/a.log\", format = \"%h %>s\" }\n[[host.rule]]\nglob = \"/x*\"\nredirect = \"/$1\"\n\
        [settings]\nkeepalivetimeout = 2.5\nMaxKeepAliveRequests = 7\nKeepAlive = true\n";

    #[test]
    fn a_file_sets_what_it_names_and_nothing_else() {
        let config = resolve(WHOLE).unwrap();
        assert_eq!(config.model.name, "prefork");
        assert_eq!(config.site.content, Content::Directory("/srv/a \"b\"".into()));
        assert_eq!(
            (&config.site.index[..], config.site.listing),
            (&["home.html".to_owned()][..], true)
        );
        assert_eq!(config.cpus, [0, 1]);
        let own = &config.site.all_hosts().0[1].access_log;
        assert_eq!(own.file.as_deref(), Some(std::path::Path::new("/tmp/a.log")));
        assert_eq!(own.format.typed(), "%h %>s");
        assert_eq!(config.site.access_log.format, LogFormat::read("combined").unwrap());
        assert_eq!(config.site.limits.head_timeout, Nanos::from_millis(1500));
        assert_eq!(
            (config.site.limits.cache_bytes_max, config.site.limits.ranges_max),
            (32 << 20, 16)
        );
        assert_eq!(config.site.keep_alive.timeout, Nanos::from_millis(2500));
        assert_eq!(config.site.keep_alive.requests_max, 7);
        assert_eq!(config.site.limits.body_rate_min, 500, "the default");
    }

    #[test]
    fn the_command_line_goes_before_the_file() {
        let typed = CommandLine {
            model: Some("reactor".to_owned()),
            fixed: Some(Bytes(10)),
            set: vec!["KeepAliveTimeout=9".to_owned(), "limits.head_timeout=3s".to_owned()],
            access_log: Some("off".to_owned()),
            ..CommandLine::default()
        };
        let text = WHOLE.replace("listing = true\n", "");
        let config = typed.resolve_with("joust.toml", &text).unwrap();
        assert_eq!(
            (config.model.name, config.site.content),
            ("reactor", Content::Fixed(Bytes(10)))
        );
        assert_eq!(config.site.keep_alive.timeout, Nanos::from_secs(9));
        assert_eq!(config.site.limits.head_timeout, Nanos::from_secs(3));
        assert_eq!(config.site.access_log.file, None);
    }

    #[test]
    fn programs_of_the_site_are_a_path_on_the_command_line_before_gateways_of_the_file() {
        let text = "directory = \"/srv\"\n[[gateway]]\nextension = \".cgi\"\n";
        let with = |cgi: &str| {
            let typed = CommandLine { cgi: vec![cgi.to_owned()], ..CommandLine::default() };
            typed.resolve_with("joust.toml", text).map_err(|error| error.to_string())
        };
        let gateways = with("/cgi-bin").unwrap().site.gateways;
        let names: Vec<_> = gateways.iter().map(|gateway| gateway.mapping.to_string()).collect();
        assert_eq!(names, ["/cgi-bin/", ".cgi"]);
        let error = with("cgi-bin").unwrap_err();
        assert!(error.starts_with("--cgi cgi-bin: ") && error.contains("/cgi-bin/"), "{error}");
    }

    #[test]
    fn what_is_printed_has_the_same_effect() {
        let typed = CommandLine { fixed: Some(Bytes(3361)), ..CommandLine::default() };
        let fixed = typed.resolve_with("", "").unwrap().print();
        for text in [WHOLE, &fixed] {
            let printed = resolve(text).unwrap().print();
            assert_eq!(resolve(&printed).unwrap().print(), printed);
        }
        let printed = resolve(WHOLE).unwrap().print();
        let expected = [
            "model = \"prefork\"",
            "head_timeout = \"1500ms\"",
            "KeepAliveTimeout = \"2500ms\"",
            "cache_bytes_max = 33554432",
            "MaxRequestWorkers = ",
        ];
        for line in expected {
            assert!(printed.contains(line), "{line} is not in {printed}");
        }
    }

    #[test]
    fn what_is_not_set_is_printed_as_comments_that_can_be_taken_at_their_word() {
        let printed = resolve("directory = \"/\"").unwrap().print();
        let uncomment = |line: &str| match line.strip_prefix('#') {
            Some(rest) if !rest.is_empty() && !rest.starts_with(' ') => rest.to_owned(),
            _ => line.to_owned(),
        };
        let text = printed.lines().map(uncomment).collect::<Vec<_>>().join("\n");
        for table in TABLES {
            assert!(text.contains(&format!("\n{}\n", table.header())), "{}", table.name);
            assert!(!printed.contains(&format!("\n{}\n", table.header())), "{}", table.name);
        }
        let config = resolve(&text).unwrap_or_else(|error| panic!("{error} in\n{text}"));
        assert_eq!(config.site.presentation.compression, Some(Compression::default()));
        assert_eq!(config.site.gateways, [GatewayConfig::cgi("/cgi-bin/").unwrap()]);
        assert_eq!(
            (config.site.rules.len(), config.site.hosts.len(), config.site.errors.len()),
            (1, 1, 1)
        );
        assert!(config.site.tls.is_some_and(|tls| tls.session_tickets && tls.session_cache == 256));
        assert_eq!(config.site.presentation.types.len(), 1);
    }

    #[test]
    fn every_refusal_names_the_line_and_the_way_out() {
        refuses(&[
            ("fixed = 1\nlissten = \"x\"", "joust.toml:2: ", "did you mean `listen`?"),
            ("fixed = 1\n[limit]\nx = 1", "joust.toml:2: ", "did you mean `limits`?"),
            ("fixed = 1\n[limits]\nhead_timout = 1", "joust.toml:3: ", "`head_timeout`"),
            ("fixed = 1\n[limits]\nhead_timeout = 5", "joust.toml:3: ", "write it with a unit"),
            ("fixed = 1\n[limits]\nfields_max = 1000", "joust.toml:3: ", "within 1 to 128"),
            ("fixed = 1\n[settings]\nKeepAlives = 1", "joust.toml:3: ", "did you mean KeepAlive?"),
            ("fixed = 1\n[settings]\nKeepAlive = \"so\"", "joust.toml:3: ", "On or Off"),
            ("fixed = 1\n[settings]\nKeepAlive = [1]", "joust.toml:3: ", "one value"),
            ("fixed = 1\nmodel = \"reactr\"", "joust.toml:2: ", "did you mean `reactor`?"),
            ("fixed = 1\nmodel = 3", "joust.toml:2: ", "in quotes"),
            ("fixed = 1\nlisten = \"here\"", "joust.toml:2: ", "127.0.0.1:8080"),
            ("fixed = 1\nlisten", "joust.toml:2: ", ""),
            ("fixed = 1\nfixed = 2", "joust.toml:2: ", "duplicate"),
            ("directory = \"a\"\nfixed = 1", "joust.toml:2: ", "remove one of them"),
            ("directory = \"a\"\nindex = [\"a/b\"]", "joust.toml:2: ", "without a path"),
            ("fixed = 1\nlisting = true", "", "`listing` needs a directory"),
            ("fixed = 1\nsettings = 1", "joust.toml:2: ", "write [settings]"),
            ("fixed = 1\nlimits = 1", "joust.toml:2: ", "write [limits]"),
            ("fixed = 2147483648", "joust.toml:1: ", "within 0 to"),
            ("fixed = 1\n[limits]\ntarget_bytes_max = 40000", "", "raise the second"),
            ("directory = \"\"", "joust.toml:1: ", "in which the server is started"),
            ("fixed = 1\n[access_log]\nformat = \"xml\"", "joust.toml:3: ", "json, or a format"),
            ("fixed = 1\n[access_log]\nformat = \"%h %Z\"", "joust.toml:3: ", "(at 3)"),
            ("fixed = 1\ncpus = [\"x\"]", "joust.toml:2: ", "as in [0, 1]"),
            (
                "fixed = 1\n[listen]\na = 1",
                "joust.toml:2: ",
                "`listen` is not a table, but a key: address",
            ),
            ("fixed = 1\n[errors]\n404 = \"x\"", "joust.toml:", "/404.html"),
            (
                "fixed = 1\n[[host]]\nnames = [\"a/b\"]\nfixed = 1",
                "joust.toml:",
                "not a valid host name",
            ),
            ("fixed = 1\n[compression]\ngzip_level = 10", "joust.toml:", "1 to 9"),
            ("fixed = 1\n[compression]\nbytes_max = 9", "joust.toml:", "lower the first"),
            ("fixed = 1\n[[gateway]]\npath = \"/a/\"", "", "give it a `root`"),
            (
                "fixed = 1\n[[gateway]]\npath = \"/a/\"\nkind = \"fastcgi\"",
                "joust.toml:",
                "set one of the two",
            ),
            (
                "fixed = 1\n[[gateway]]\npath = \"/a/\"\nkind = \"fastcgi\"\n\
                 spawn = { command = [\"php-cgi\"] }",
                "joust.toml:",
                "absolute path of a program",
            ),
            ("", "", "nothing to serve"),
        ]);
    }

    #[test]
    fn what_a_rule_cannot_be_is_refused() {
        refuses(&[
            ("fixed = 1\n[[rule]]\nprefix = \"/\"", "joust.toml:", "without an action"),
            (
                "fixed = 1\n[[rule]]\ndeny = 403\n[[rule]]\nprefix = \"/\"",
                "joust.toml:",
                "[[rule]]: rule 2: a rule without an action",
            ),
            (
                "fixed = 1\n[[rule]]\ndeny = \"403\"",
                "joust.toml:3: ",
                "expected a whole number: `deny = \"403\"`",
            ),
            (
                "fixed = 1\n[[rule]]\nhosts = []\ndeny = 403",
                "joust.toml:3",
                "leave it out to mean all",
            ),
            (
                "fixed = 1\n[[rule]]\nmethods = []\ndeny = 403",
                "joust.toml:3",
                "leave it out to mean all",
            ),
            (
                "fixed = 1\n[[rule]]\nauth = { realm = \"a\", file = \"b\", users = [] }",
                "joust.toml:3",
                "leave it out",
            ),
            ("fixed = 1\n[[rule]]\nprefx = \"/\"", "joust.toml:3: ", "unknown field"),
            ("fixed = 1\n[[rule]]\nregex = \"(\"\ndeny = 403", "joust.toml:", "unclosed"),
            ("fixed = 1\n[[rule]]\nredirect = \"//x\"", "joust.toml:", "could lead to any host"),
            ("fixed = 1\n[[rule]]\nredirect = \"$1\"", "joust.toml:", "could lead to any host"),
            ("fixed = 1\n[[rule]]\nredirect = \"http://a$1\"", "joust.toml:", "lead to any host"),
            (
                "fixed = 1\n[[rule]]\nredirect = \"/a\\r\\nb\"",
                "joust.toml:",
                "ASCII without spaces",
            ),
            ("fixed = 1\n[[rule]]\nset = { A = \"a\\nb\" }", "joust.toml:", "A"),
            ("fixed = 1\n[[rule]]\nremove = [\"content-length\"]", "joust.toml:", "frames"),
            ("fixed = 1\n[[rule]]\ndeny = 200", "joust.toml:", "400 to 599"),
        ]);
    }

    /// Checks that these are refused: a text, the place with which the message begins, and its hint.
    fn refuses(cases: &[(&str, &str, &str)]) {
        for (text, place, hint) in cases {
            let error = resolve(text).unwrap_err();
            assert!(error.starts_with(place) && error.contains(hint), "{text:?}: {error}");
        }
    }

    #[test]
    fn what_cannot_be_with_hosts_is_refused_with_the_table() {
        refuses(&[
            (
                "fixed = 1\n[[host]]\nnames = [\"a\"]\nfixed = 1\naccess_log = { format = \"%Z\" }",
                "joust.toml:",
                "(at 0)",
            ),
            (
                "fixed = 1\n[[host]]\nnames = [\"a\"]\nfixed = 1\naccess_log = { fil = \"x\" }",
                "joust.toml:5: ",
                "`file`",
            ),
            (
                "fixed = 1\n[[host]]\nnames = [\"A.test\"]\nfixed = 1\n\
                 [[host]]\nnames = [\"b\", \"a.test.\"]\nfixed = 1",
                "joust.toml:",
                "`a.test` is in the `names` of two hosts",
            ),
            (
                "[[host]]\nnames = [\"a\"]\nfixed = 1\ndefault = true\n\
                 [[host]]\nfixed = 1\ndefault = true",
                "joust.toml:",
                "got [[host]] a and [[host]] default",
            ),
            (
                "fixed = 1\n[[host]]\nnames = [\"a\"]\nfixed = 1\ndefault = true",
                "",
                "remove one of them",
            ),
            (
                "fixed = 1\n[errors]\n404 = { file = \"a.html\" }",
                "joust.toml:",
                "/etc/joust/404.html",
            ),
            ("fixed = 1\n[errors]\n404 = 3", "joust.toml:3", "/etc/joust/404.html"),
            ("fixed = 1\n[errors]\n200 = \"/x\"", "joust.toml:", "404 = "),
            (
                "fixed = 1\n[[host]]\nnames = [\"a.test\"]\nfixed = 1\n\
                 [[gateway]]\npath = \"/a/\"\nroot = \"/\"\nhost = \"b.test\"",
                "",
                "no [[host]] has that name (all: a.test)",
            ),
            (
                "directory = \"/\"\n[[host]]\nnames = [\"a.test\"]\nfixed = 1\n\
                 [[gateway]]\npath = \"/a/\"\nhost = \"a.test\"",
                "",
                "give it a `root`",
            ),
            (
                "fixed = 1\n[tls]\nself_signed = true\nredirect_except = [\"/a/../b/\"]",
                "",
                "/.well-known/acme-challenge/",
            ),
        ]);
    }

    #[test]
    fn what_tables_of_hosts_gateways_and_tls_cannot_be_is_refused() {
        refuses(&[
            ("fixed = 1\n[host]\nnames = [\"a\"]", "joust.toml:2: ", "write [[host]]"),
            ("fixed = 1\nhost = \"a\"", "joust.toml:2: ", "write [[host]]"),
            ("fixed = 1\n[[tls]]\nself_signed = true", "joust.toml:", "write [tls]"),
            (
                "directory = \"/\"\n[[gateway]]\npath = \"/x/\"\nhost = []",
                "joust.toml:",
                "remove it to answer for all hosts",
            ),
            (
                "directory = \"/\"\n[[gateway]]\npath = \"/x/\"\nhost = 3",
                "joust.toml:4",
                "in quotes",
            ),
            (
                "listen = \"0.0.0.0:443\"\nfixed = 1\n\
                 [tls]\nself_signed = true\nredirect_from = \"127.0.0.1:443\"",
                "",
                "another port",
            ),
            (
                "[[host]]\nnames = [\"a\"]\ndirectory = \"/\"\nindex = [\"../x\"]",
                "joust.toml:",
                "without a path",
            ),
            ("[[host]]\nnames = [\"a\"]\nfixed = 1\nlisting = true", "joust.toml:", "remove it"),
            ("[[host]]\nnames = \"a\"\nfixed = 1", "joust.toml:2: ", "expected a list in brackets"),
            (
                "directory = \"/\"\n[[gateway]]\npath = \"/a/\"\n[[gateway]]\nextension = \"x\"",
                "joust.toml:",
                "gateway 2: `extension`",
            ),
            ("fixed = 1\n[tls]\nmin_version = 1.2", "joust.toml:3: ", "expected a text in quotes"),
            ("[[host]]\nnames = [\"b\u{fc}cher.de\"]\nfixed = 1", "joust.toml:", "xn--"),
            ("[[host]]\nnames = [\"a\"]", "joust.toml:", "[[host]] a (table 1)"),
        ]);
    }

    #[test]
    fn a_wrong_set_names_itself() {
        let cases = [
            ("KeepAlive", "KEY=VALUE"),
            ("KeepAliv=On", "did you mean KeepAlive?"),
            ("limits.ranges=1", "`ranges_max`"),
            ("limits.ranges_max=x", "`x`"),
        ];
        for (pair, hint) in cases {
            let set = vec![pair.to_owned()];
            let typed = CommandLine { set, fixed: Some(Bytes(1)), ..CommandLine::default() };
            let error = typed.resolve().unwrap_err().to_string();
            assert!(error.contains(hint) && error.contains(pair), "{error}");
        }
    }

    #[test]
    fn more_memory_than_a_machine_has_is_refused_on_the_command_line_too() {
        let typed = CommandLine { fixed: Some(Bytes(u64::MAX)), ..CommandLine::default() };
        let error = typed.resolve().unwrap_err().to_string();
        assert!(error.contains("--fixed") && error.contains("serve a directory"), "{error}");
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let typed = CommandLine {
            config: Some("/nonexistent/joust.toml".into()),
            ..CommandLine::default()
        };
        let error = typed.resolve().unwrap_err().to_string();
        assert!(error.contains("/nonexistent/joust.toml"), "{error}");
    }
}
