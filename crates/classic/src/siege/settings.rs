//! siege's settings, from its configuration file and its command line together. Owns the values and their defaults.
//! Start reading at [`Settings`].

use std::path::PathBuf;

use super::auth::Login;
use super::style::Style;

/// Repetitions if neither those nor a time are given: siege's own "for ever".
pub(super) const FOR_EVER: i32 = 10_301_062;

/// The log file of Debian's siege: a folder that no package creates.
const LOG_FILE: &str = "/var/log/log/siege.log";

/// The content type of posted data, unless another is given.
pub(super) const CONTENT_TYPE: &str = "application/x-www-form-urlencoded";

/// How often each user goes through its URLs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reps {
    /// This number of URLs.
    Times(i32),
    /// Each URL of the file once.
    Once,
}

/// All settings.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Settings {
    pub(super) style: Style,
    pub(super) verbose: bool,
    pub(super) color: bool,
    pub(super) quiet: bool,
    pub(super) json: bool,
    pub(super) debug: bool,
    pub(super) show_config: bool,
    pub(super) get: bool,
    pub(super) print: bool,
    /// Whether -g uses HEAD; `None`: GET, although -C prints HEAD.
    pub(super) get_is_head: Option<bool>,
    pub(super) parser: bool,
    /// Substrings of host names from which no parts of pages are fetched.
    pub(super) no_follow: Vec<String>,
    pub(super) follow: bool,
    pub(super) is_http11: bool,
    pub(super) keep_alive: bool,
    pub(super) chunked: bool,
    pub(super) zero_ok: bool,
    pub(super) escape: bool,
    pub(super) cache: bool,
    pub(super) unique: bool,
    pub(super) cookies: bool,
    pub(super) expire: bool,
    pub(super) users: i32,
    /// Most users.
    pub(super) users_max: i32,
    pub(super) reps: Reps,
    /// Seconds; 0 and below: none.
    pub(super) seconds: i32,
    /// Seconds.
    pub(super) delay: f64,
    pub(super) internet: bool,
    pub(super) bench: bool,
    /// Seconds.
    pub(super) timeout: i32,
    /// Failures after which it gives up; 0 and below: never.
    pub(super) failures: i32,
    /// Requests with credentials before a request is given up.
    pub(super) attempts: i32,
    pub(super) logins: Vec<Login>,
    pub(super) proxy_logins: Vec<Login>,
    pub(super) login_urls: Vec<String>,
    pub(super) url: Option<String>,
    pub(super) file: String,
    pub(super) agent: String,
    pub(super) content_type: String,
    pub(super) encoding: String,
    /// Lines of -H and of `header`, each with its end.
    pub(super) extra: String,
    pub(super) proxy: Option<String>,
    pub(super) proxy_port: i32,
    pub(super) certificate: Option<PathBuf>,
    pub(super) key: Option<PathBuf>,
    pub(super) ciphers: Option<String>,
    pub(super) logging: bool,
    pub(super) show_log: bool,
    pub(super) log_file: String,
    pub(super) mark: Option<String>,
    pub(super) csv: bool,
    pub(super) timestamp: bool,
    pub(super) full_url: bool,
    pub(super) display_id: bool,
    /// Path of the configuration file.
    pub(super) rc: String,
    /// Path of the user's configuration file, for messages about it.
    pub(super) home_rc: String,
}

impl Settings {
    /// The settings of an empty configuration file.
    pub(super) fn empty(style: Style) -> Self {
        Self {
            style,
            verbose: false,
            color: true,
            quiet: false,
            json: false,
            debug: false,
            show_config: false,
            get: false,
            print: false,
            get_is_head: None,
            parser: false,
            no_follow: Vec::new(),
            follow: true,
            is_http11: false,
            keep_alive: false,
            chunked: false,
            zero_ok: true,
            escape: true,
            cache: false,
            unique: true,
            cookies: true,
            expire: false,
            users: 0,
            users_max: 255,
            reps: Reps::Times(FOR_EVER),
            seconds: -1,
            delay: 0.0,
            internet: false,
            bench: false,
            timeout: 30,
            failures: 1024,
            attempts: 5,
            logins: Vec::new(),
            proxy_logins: Vec::new(),
            login_urls: Vec::new(),
            url: None,
            file: "/etc/siege/urls.txt".to_owned(),
            agent: format!("Mozilla/5.0 (pc-x86_64-linux-gnu) Siege/{}", style.version()),
            content_type: CONTENT_TYPE.to_owned(),
            encoding: "*".to_owned(),
            extra: String::new(),
            proxy: None,
            proxy_port: 3128,
            certificate: None,
            key: None,
            ciphers: None,
            logging: false,
            show_log: false,
            log_file: LOG_FILE.to_owned(),
            mark: None,
            csv: false,
            timestamp: false,
            full_url: false,
            display_id: false,
            rc: String::new(),
            home_rc: String::new(),
        }
    }

    /// The settings in the file that siege writes to a user's home at its first run. Debian's enables JSON.
    pub(super) fn shipped(style: Style) -> Self {
        let hosts = [
            "ad.doubleclick.net",
            "pagead2.googlesyndication.com",
            "ads.pubsqrd.com",
            "ib.adnxs.com",
        ];
        Self {
            verbose: true,
            json: true,
            show_log: true,
            get_is_head: Some(true),
            parser: true,
            no_follow: hosts.map(str::to_owned).into(),
            is_http11: true,
            chunked: true,
            users: 25,
            encoding: "gzip, deflate".to_owned(),
            rc: "(as shipped)".to_owned(),
            ..Self::empty(style)
        }
    }

    /// Derives settings from several others.
    pub(super) fn settle(&mut self) {
        if self.bench {
            self.delay = 0.0;
        }
        if self.users <= 0 {
            self.users = 1;
        }
        if self.get {
            (self.users, self.reps) = (1, Reps::Times(1));
            (self.logging, self.bench) = (false, true);
        }
        self.quiet |= self.json;
        if self.quiet {
            (self.verbose, self.debug) = (false, false);
        }
    }

    /// Whether both a time and repetitions are requested.
    pub(super) fn conflicts(&self) -> bool {
        let has_reps = matches!(self.reps, Reps::Times(reps) if reps > 0 && reps != FOR_EVER);
        self.seconds > 0 && has_reps
    }

    /// How many of `n_urls` a user requests; `None`: as many as time allows.
    pub(super) fn limit(&self, n_urls: usize) -> Option<i64> {
        match self.reps {
            Reps::Times(FOR_EVER) if self.duration().is_some() => None,
            Reps::Times(reps) => Some(reps.into()),
            Reps::Once => Some(n_urls as i64),
        }
    }

    /// The time after which the load ends.
    pub(super) fn duration(&self) -> Option<u32> {
        (self.seconds > 0).then_some(self.seconds.unsigned_abs())
    }
}
