//! The table `[tls]`: how the server speaks TLS. Owns its keys and checks; `tls` uses it. Start reading at
//! [`TlsConfig`].

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;

use serde::Deserialize;
use wire::target::SafePath;

use super::table::Table;
use super::text::quoted;

/// The table.
pub(super) static TABLE: Table = Table {
    name: "tls",
    is_list: false,
    take: |config, value| {
        config.tls = Some(TlsConfig::deserialize(value)?);
        Ok(())
    },
    show: |config| config.tls.as_ref().map(TlsConfig::print),
    example: || {
        let files =
            |chain: &str, key: &str| CertificateFiles { chain: chain.into(), key: key.into() };
        let example = TlsConfig {
            certificate: vec![files("/etc/joust/fullchain.pem", "/etc/joust/key.pem")],
            redirect_from: Some(SocketAddr::from(([0, 0, 0, 0], 80))),
            ..TlsConfig::default()
        };
        example.print()
    },
};

/// How the server speaks TLS. With it the port speaks nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TlsConfig {
    /// Certificates, chosen by the name that a client asks for (SNI); the first if none matches.
    pub certificate: Vec<CertificateFiles>,
    /// Makes a certificate for localhost in memory at the start, for trying out.
    pub self_signed: bool,
    /// Where plain requests are accepted and redirected to the port of TLS; `None`: nowhere.
    pub redirect_from: Option<SocketAddr>,
    /// Prefixes of paths whose files are served there without TLS, from the site of the host. `http-01` of ACME (RFC
    /// 8555, 8.3) requests them from hosts that may not have a certificate yet. Empty: every request is redirected.
    pub redirect_except: Vec<String>,
    /// Older versions are refused.
    pub min_version: MinVersion,
    /// Whether clients get tickets, with which they can resume their sessions at any process of the server.
    pub session_tickets: bool,
    /// Sessions that each process keeps for clients without tickets; 0: none.
    pub session_cache: u32,
}

/// Files of a certificate, PEM. They are read again when they have changed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CertificateFiles {
    /// The server's own certificate first, then the intermediate ones.
    pub chain: PathBuf,
    /// Its key, not encrypted.
    pub key: PathBuf,
}

/// The oldest version of TLS that is accepted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub enum MinVersion {
    /// RFC 5246.
    #[default]
    #[serde(rename = "1.2")]
    Tls12,
    /// RFC 8446.
    #[serde(rename = "1.3")]
    Tls13,
}

impl Default for TlsConfig {
    /// Without a certificate: one has to be named.
    fn default() -> Self {
        Self {
            certificate: Vec::new(),
            self_signed: false,
            redirect_from: None,
            redirect_except: vec!["/.well-known/acme-challenge/".to_owned()],
            min_version: MinVersion::default(),
            session_tickets: true,
            // The default of rustls.
            session_cache: 256,
        }
    }
}

impl TlsConfig {
    /// Refuses what cannot work, with the way out. `listen` is where TLS is spoken.
    ///
    /// # Errors
    /// The reason and the way out.
    pub fn check(&self, listen: SocketAddr) -> Result<(), String> {
        let is_same = |from: &SocketAddr| {
            let meet = from.ip() == listen.ip()
                || from.ip().is_unspecified()
                || listen.ip().is_unspecified();
            from.port() == listen.port() && from.port() != 0 && meet
        };
        if let Some(from) = self.redirect_from.filter(is_same) {
            return Err(format!(
                "[tls] `redirect_from` must be another port than `listen` ({listen}), got {from}: use port 80, for example"
            ));
        }
        // In the form that request paths have when they are compared.
        let is_prefix = |path: &str| {
            path.ends_with('/')
                && SafePath::new(path).is_ok_and(|safe| safe.path() == path.as_bytes())
        };
        if let Some(path) = self.redirect_except.iter().find(|path| !is_prefix(path)) {
            return Err(format!(
                "[tls] `redirect_except` must be the beginning of a path that starts and ends with a slash, got `{path}`; write it as in \"/.well-known/acme-challenge/\""
            ));
        }
        match (self.certificate.is_empty(), self.self_signed) {
            (true, false) => {
                Err("[tls] has no certificate: add [[tls.certificate]] with `chain` \
                                  and `key`, or --tls-cert FILE --tls-key FILE, or for trials --tls-self-signed"
                    .to_owned())
            }
            (false, true) => {
                Err("[tls] has both certificates and `self_signed`: remove one of them"
                .to_owned())
            }
            _ => Ok(()),
        }
    }

    fn print(&self) -> String {
        const WRITES: &str = "a String takes every write";
        let version = match self.min_version {
            MinVersion::Tls12 => "1.2",
            MinVersion::Tls13 => "1.3",
        };
        let mut text = format!(
            "[tls]\n\
             # a certificate for localhost, made in memory at the start; for trials only\n\
             self_signed = {}\n\n\
             # minimum version of TLS: 1.2 or 1.3\n\
             min_version = {}\n\n\
             # whether clients get session tickets, valid at all processes of the server\n\
             session_tickets = {}\n\n\
             # number of sessions that each process keeps for clients without tickets\n\
             session_cache = {}\n",
            self.self_signed,
            quoted(version),
            self.session_tickets,
            self.session_cache,
        );
        if let Some(address) = self.redirect_from {
            let address = quoted(&address.to_string());
            let except: Vec<_> = self.redirect_except.iter().map(|path| quoted(path)).collect();
            let except = except.join(", ");
            write!(
                text,
                "\n# plain requests to this address are redirected to the TLS port\nredirect_from = {address}\n\
                 \n# except for these paths, whose files are served in plain HTTP\n\
                 redirect_except = [{except}]\n"
            )
            .expect(WRITES);
        }
        for files in &self.certificate {
            let [chain, key] =
                [&files.chain, &files.key].map(|path| quoted(&path.to_string_lossy()));
            write!(text, "\n[[tls.certificate]]\nchain = {chain}\nkey = {key}\n").expect(WRITES);
        }
        text
    }
}
