//! Owns what can go wrong with TLS, in words that name the likely cause and the way out. Start reading at
//! [`TlsError`].

use rustls::{AlertDescription, CertificateError, Error, InconsistentKeys};
use rustls_pki_types::pem;

use super::trust::webpki_error;

/// Which of the files that were given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PemFile {
    /// The certificates that are trusted.
    Authority,
    /// The client's certificate chain.
    ClientCert,
    /// The client's key.
    ClientKey,
    /// A certificate chain of our server.
    ServerCert,
    /// Its key.
    ServerKey,
}

impl std::fmt::Display for PemFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Authority => "the file of trusted certificates (--cacert)",
            Self::ClientCert => "the client's certificate (--cert)",
            Self::ClientKey => "the client's key (--key)",
            Self::ServerCert => "the certificate",
            Self::ServerKey => "the key",
        })
    }
}

/// Why TLS cannot begin at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TlsConfigError {
    /// No section of the kind that is needed.
    #[error("{file} holds no PEM section of its kind: {hint}")]
    Nothing {
        /// Where it was looked for.
        file: PemFile,
        /// What it may be instead, and what to do.
        hint: &'static str,
    },
    /// There is something, but it cannot be read or used.
    #[error("{file} cannot be used: {why}")]
    Unusable {
        /// The file.
        file: PemFile,
        /// What the library said.
        why: String,
    },
    /// Certificate and key are not a pair.
    #[error(
        "{key} does not match {certificate}: the server's or client's own certificate must be the first \
         in its file, before those of authorities"
    )]
    KeyMismatch {
        /// Whose it is.
        key: PemFile,
        /// It is not of that key.
        certificate: PemFile,
    },
    /// Only one of two.
    #[error("a client certificate (--cert) needs its key too: add --key FILE")]
    CertificateWithoutKey,
    /// Only one of two.
    #[error("a client key (--key) needs its certificate too: add --cert FILE")]
    KeyWithoutCertificate,
    /// Nobody is trusted on this machine.
    #[error(
        "this machine has no certificates of authorities ({why}): install ca-certificates, name some \
         with --cacert FILE, or check nothing with --insecure"
    )]
    NoMachineAuthorities {
        /// What the library said.
        why: String,
    },
    /// RFC 7301, 3.1.
    #[error("the ALPN protocol {0:?} is not 1 to 255 bytes long")]
    Alpn(String),
}

/// Whether `words` stand somewhere in `pem`.
pub(super) fn holds(pem: &[u8], words: &[u8]) -> bool {
    pem.windows(words.len()).any(|window| window == words)
}

impl TlsConfigError {
    /// What `pem`, which has no section of the kind of `file`, may be instead.
    pub(super) fn nothing_in(file: PemFile, pem: &[u8]) -> Self {
        let has = |words| holds(pem, words);
        let is_key = matches!(file, PemFile::ClientKey | PemFile::ServerKey);
        let hint = if pem.is_empty() {
            "it is empty"
        } else if is_key && has(b"ENCRYPTED") {
            "the key is encrypted, and joust cannot ask for its password; remove it with \
             `openssl pkey -in FILE -out PLAIN`"
        } else if has(b"-----BEGIN CERTIFICATE-----") {
            "it is a certificate; were the two files exchanged?"
        } else if has(b"PRIVATE KEY-----") {
            "it is a key; were the two files exchanged?"
        } else if pem[0] == 0x30 && is_key {
            "it looks like DER; `openssl pkey -inform der -in FILE -out PEM` converts it"
        } else if pem[0] == 0x30 {
            "it looks like DER; `openssl x509 -inform der -in FILE -out PEM` converts it"
        } else {
            "is it the right file?"
        };
        Self::Nothing { file, hint }
    }

    /// `file` is no PEM that can be read.
    pub(super) fn unreadable(file: PemFile, error: &pem::Error) -> Self {
        let why = match error {
            pem::Error::MissingSectionEnd { .. } => {
                "a section has no END line; is the file cut off?".to_owned()
            }
            error => error.to_string(),
        };
        Self::Unusable { file, why }
    }

    /// `file` is PEM, but what it holds is not what it says.
    pub(super) fn unusable(file: PemFile, error: Error) -> Self {
        let why = match error {
            Error::InvalidCertificate(fault) => {
                format!("not a readable X.509 certificate ({fault})")
            }
            Error::General(why) => why,
            error => error.to_string(),
        };
        Self::Unusable { file, why }
    }

    /// A certificate and a key cannot be used together.
    pub(super) fn of_identity(certificate: PemFile, key: PemFile, error: Error) -> Self {
        match error {
            Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
                Self::KeyMismatch { key, certificate }
            }
            Error::InvalidCertificate(_) => Self::unusable(certificate, error),
            error => Self::unusable(key, error),
        }
    }
}

/// Why a connection failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TlsError {
    /// What was to be asked for is neither a host name nor an IP address.
    #[error("{0:?} is neither a host name nor an IP address that a certificate could be for")]
    ServerName(String),
    /// The first bytes are those of HTTP.
    #[error(
        "the server answers in plain HTTP, not TLS ({begins:?}): use http://, or the port on which it \
         speaks https"
    )]
    PlainHttp {
        /// The first bytes.
        begins: String,
    },
    /// The first bytes are no record of TLS.
    #[error("the server does not speak TLS, it begins with {begins:?}: is this the right port?")]
    NotTls {
        /// The first bytes.
        begins: String,
    },
    /// No way from the certificate to someone who is trusted.
    #[error(
        "the server's certificate is self-signed, or comes from an authority that is not trusted: trust \
         that authority, or the certificate itself, with --cacert FILE, or check nothing with --insecure; \
         a server may also have left out the certificates between its own and the authority's"
    )]
    UnknownIssuer,
    /// The certificate is for others.
    #[error(
        "the server's certificate is not for {expected:?}; it is for {presented}: ask for one of \
         these names, or check nothing with --insecure"
    )]
    WrongName {
        /// What was asked for.
        expected: String,
        /// Whom it is for, at most five of them.
        presented: String,
    },
    /// By this machine's clock.
    #[error(
        "a certificate of the server expired {ago} ago by this machine's clock: renew it, or check \
         nothing with --insecure"
    )]
    Expired {
        /// How long ("3 days").
        ago: String,
    },
    /// By this machine's clock.
    #[error(
        "a certificate of the server is valid only in {ahead} by this machine's clock: is the clock \
         right? --insecure checks nothing"
    )]
    NotYetValid {
        /// How long ("3 days").
        ahead: String,
    },
    /// Another fault of a certificate.
    #[error("the server's certificate cannot be accepted: {why}")]
    Certificate {
        /// Which, and what helps.
        why: String,
    },
    /// The server gave up and said why.
    #[error("the server refuses: alert {alert} ({code}), {hint}")]
    Alert {
        /// Its registered name ("handshake_failure").
        alert: String,
        /// Its number.
        code: u8,
        /// Likely cause and the way out.
        hint: &'static str,
    },
    /// Nothing in common.
    #[error("client and server share no version or cipher: {0}")]
    Incompatible(String),
    /// The server broke the protocol.
    #[error("the server breaks the TLS protocol: {0}")]
    Protocol(String),
    /// TCP ended before the handshake did.
    #[error(
        "the server closed the connection in the middle of the TLS handshake: does this port speak \
         TLS? `openssl s_client -connect HOST:PORT` shows what it sends"
    )]
    EndInHandshake,
    /// TCP ended without close_notify.
    #[error("the connection ended without close_notify: what was read may be cut off")]
    Truncated,
    /// [`super::TlsClient::close`] was called before.
    #[error("nothing can be sent after close_notify")]
    Closed,
}

/// The words for what rustls says. `opening`: the first bytes of the server while the handshake lasts.
pub(super) fn of_connection(error: Error, opening: &[u8]) -> TlsError {
    match error {
        Error::InvalidMessage(_) if !is_record(opening) => not_tls(opening),
        Error::AlertReceived(alert) => of_alert(alert),
        Error::PeerIncompatible(why) => TlsError::Incompatible(format!("{why:?}")),
        Error::InvalidCertificate(_) => of_certificate(error),
        other => TlsError::Protocol(other.to_string()),
    }
}

/// Whether that can be the beginning of a record: its type (RFC 8446, 5.1), and the major version.
fn is_record(opening: &[u8]) -> bool {
    matches!(opening, [] | [20..=24] | [20..=24, 3, ..])
}

fn not_tls(opening: &[u8]) -> TlsError {
    const HTTP: &[u8] = b"HTTP/";
    let begins = String::from_utf8_lossy(opening).into_owned();
    // Bytes that come one by one are refused at the first.
    match opening.starts_with(HTTP) || HTTP.starts_with(opening) {
        true => TlsError::PlainHttp { begins },
        false => TlsError::NotTls { begins },
    }
}

fn of_certificate(error: Error) -> TlsError {
    if webpki_error(&error) == Some(&webpki::Error::UnsupportedCertVersion) {
        let why = "it is of X.509 version 1 or 2, which TLS libraries no longer read, so --insecure \
                   does not help; make one of version 3 (`openssl req -x509 -addext \
                   subjectAltName=DNS:NAME ...`)";
        return TlsError::Certificate { why: why.to_owned() };
    }
    if webpki_error(&error) == Some(&webpki::Error::CaUsedAsEndEntity) {
        let why = "it is that of an authority (CA:TRUE) and is not meant for a server; trust itself \
                   with --cacert FILE, or check nothing with --insecure";
        return TlsError::Certificate { why: why.to_owned() };
    }
    let Error::InvalidCertificate(fault) = error else { unreachable!("asked for those only") };
    match fault {
        // An authority of the issuer's name is trusted, but its key is of another kind: it is another one.
        CertificateError::UnknownIssuer
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            TlsError::UnknownIssuer
        }
        CertificateError::NotValidForNameContext { expected, presented } => TlsError::WrongName {
            expected: expected.to_str().into_owned(),
            presented: names(&presented),
        },
        CertificateError::ExpiredContext { time, not_after } => {
            TlsError::Expired { ago: span(time.as_secs().saturating_sub(not_after.as_secs())) }
        }
        CertificateError::NotValidYetContext { time, not_before } => TlsError::NotYetValid {
            ahead: span(not_before.as_secs().saturating_sub(time.as_secs())),
        },
        CertificateError::BadSignature => TlsError::Certificate {
            why: "a signature does not fit: the server does not hold the key of the certificate that it \
                  shows; are its certificate and its key of one pair? --insecure does not help"
                .to_owned(),
        },
        other => TlsError::Certificate { why: format!("{other}; --insecure checks nothing") },
    }
}

/// Names of a certificate, which may be hundreds, without webpki's `DnsName("...")` around them.
fn names(presented: &[String]) -> String {
    const SHOWN_MAX: usize = 5;
    let bare = |name: &String| match name.split_once('(') {
        Some((_, rest)) => rest.trim_end_matches(')').trim_matches('"').to_owned(),
        None => name.clone(),
    };
    let shown: Vec<String> = presented.iter().take(SHOWN_MAX).map(bare).collect();
    match presented.len() {
        0 => "no name at all (it has no subjectAltName)".to_owned(),
        n if n > SHOWN_MAX => format!("{} and {} more", shown.join(", "), n - SHOWN_MAX),
        _ => shown.join(", "),
    }
}

/// A time in its largest whole unit.
fn span(seconds: u64) -> String {
    let (n, unit) = match seconds {
        0..60 => (seconds, "second"),
        60..3_600 => (seconds / 60, "minute"),
        3_600..86_400 => (seconds / 3_600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    format!("{n} {unit}{}", if n == 1 { "" } else { "s" })
}

/// What an alert (RFC 8446, 6.2) most likely means for one who makes a load.
fn of_alert(alert: AlertDescription) -> TlsError {
    use AlertDescription as A;
    let hint = match alert {
        A::HandshakeFailure => {
            "no cipher suite, key exchange or signature in common, or it wants a client certificate \
             (--cert and --key)"
        }
        A::ProtocolVersion => {
            "it speaks none of the TLS versions that were offered; TLS 1.0 and 1.1 are never offered"
        }
        A::CertificateRequired | A::NoCertificate => {
            "it wants a client certificate: --cert FILE and --key FILE"
        }
        A::BadCertificate
        | A::UnsupportedCertificate
        | A::CertificateRevoked
        | A::CertificateExpired
        | A::CertificateUnknown
        | A::UnknownCA
        | A::AccessDenied => {
            "it does not accept the client's certificate (--cert), or the lack of one: is it valid \
             still, and from an authority that the server trusts?"
        }
        A::UnrecognisedName => "it serves no host of that name: is the host in the URL right?",
        A::NoApplicationProtocol => "it speaks none of the protocols that ALPN offered",
        A::DecryptError => "a signature or the handshake itself did not verify on its side",
        A::InternalError => "something failed inside it: its log may say what",
        _ => "its log may say why",
    };
    let code = u8::from(alert);
    TlsError::Alert { alert: alert_name(alert), code, hint }
}

/// The registered name: `UnknownCA` is `unknown_ca`.
fn alert_name(alert: AlertDescription) -> String {
    if let AlertDescription::Unknown(_) = alert {
        return "of no registered name".to_owned();
    }
    let debug = format!("{alert:?}").replace("CA", "Ca").replace("PSK", "Psk");
    let debug = debug.replace("recognised", "recognized");
    let mut name = String::new();
    for letter in debug.chars() {
        if letter.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}
