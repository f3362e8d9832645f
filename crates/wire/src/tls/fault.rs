//! Owns the errors of TLS, in words that name the likely cause and the remedy. Start reading at [`TlsError`].

use rustls::{AlertDescription, CertificateError, Error, InconsistentKeys};
use rustls_pki_types::pem;

use super::trust::webpki_error;

/// One of the given files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PemFile {
    /// The trusted certificates.
    Authority,
    /// The client's certificate chain.
    ClientCert,
    /// The client's key.
    ClientKey,
    /// A certificate chain of our server.
    ServerCert,
    /// The server's key.
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
    /// The file has no section of the required kind.
    #[error("{file} holds no PEM section of its kind: {hint}")]
    Nothing {
        /// The searched file.
        file: PemFile,
        /// What the file may be instead, and the remedy.
        hint: &'static str,
    },
    /// There is a section, but it cannot be read or used.
    #[error("{file} cannot be used: {why}")]
    Unusable {
        /// The file.
        file: PemFile,
        /// The library's message.
        why: String,
    },
    /// Certificate and key are not a pair.
    #[error(
        "{key} does not match {certificate}: the server's or client's own certificate must be the first \
         in its file, before those of authorities"
    )]
    KeyMismatch {
        /// The owner of the key.
        key: PemFile,
        /// The certificate that does not match.
        certificate: PemFile,
    },
    /// A certificate without its key.
    #[error("a client certificate (--cert) needs its key too: add --key FILE")]
    CertificateWithoutKey,
    /// A key without its certificate.
    #[error("a client key (--key) needs its certificate too: add --cert FILE")]
    KeyWithoutCertificate,
    /// This machine has no trusted authorities.
    #[error(
        "this machine has no certificates of authorities ({why}): install ca-certificates, name some \
         with --cacert FILE, or check nothing with --insecure"
    )]
    NoMachineAuthorities {
        /// The library's message.
        why: String,
    },
    /// RFC 7301, 3.1.
    #[error("the ALPN protocol {0:?} is not 1 to 255 bytes long")]
    Alpn(String),
}

/// Whether `pem` contains `words`.
pub(super) fn holds(pem: &[u8], words: &[u8]) -> bool {
    pem.windows(words.len()).any(|window| window == words)
}

impl TlsConfigError {
    /// The error for `pem`, which has no section of the kind of `file`, with what it may be instead.
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

    /// The error for a `file` that is not readable PEM.
    pub(super) fn unreadable(file: PemFile, error: &pem::Error) -> Self {
        let why = match error {
            pem::Error::MissingSectionEnd { .. } => {
                "a section has no END line; is the file cut off?".to_owned()
            }
            error => error.to_string(),
        };
        Self::Unusable { file, why }
    }

    /// The error for a `file` that is PEM with invalid content.
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

    /// The error for a certificate and a key that cannot be used together.
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
    /// The requested name is neither a host name nor an IP address.
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
    /// The first bytes are not a TLS record.
    #[error("the server does not speak TLS, it begins with {begins:?}: is this the right port?")]
    NotTls {
        /// The first bytes.
        begins: String,
    },
    /// The certificate has no chain to a trusted authority.
    #[error(
        "the server's certificate is self-signed, or comes from an authority that is not trusted: trust \
         that authority, or the certificate itself, with --cacert FILE, or check nothing with --insecure; \
         a server may also have left out the certificates between its own and the authority's"
    )]
    UnknownIssuer,
    /// The certificate is for other names.
    #[error(
        "the server's certificate is not for {expected:?}; it is for {presented}: ask for one of \
         these names, or check nothing with --insecure"
    )]
    WrongName {
        /// The requested name.
        expected: String,
        /// The names in the certificate, at most five of them.
        presented: String,
    },
    /// A certificate has expired, by this machine's clock.
    #[error(
        "a certificate of the server expired {ago} ago by this machine's clock: renew it, or check \
         nothing with --insecure"
    )]
    Expired {
        /// How long ("3 days").
        ago: String,
    },
    /// A certificate is not valid yet, by this machine's clock.
    #[error(
        "a certificate of the server is valid only in {ahead} by this machine's clock: is the clock \
         right? --insecure checks nothing"
    )]
    NotYetValid {
        /// Time until then ("3 days").
        ahead: String,
    },
    /// Another problem of a certificate.
    #[error("the server's certificate cannot be accepted: {why}")]
    Certificate {
        /// The problem and the remedy.
        why: String,
    },
    /// The server gave up and sent the reason.
    #[error("the server refuses: alert {alert} ({code}), {hint}")]
    Alert {
        /// Its registered name ("handshake_failure").
        alert: String,
        /// Its number.
        code: u8,
        /// Likely cause and remedy.
        hint: &'static str,
    },
    /// The two sides have nothing in common.
    #[error("client and server share no version or cipher: {0}")]
    Incompatible(String),
    /// The server violated the protocol.
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

/// Converts an error of rustls. `opening`: the first bytes of the server during the handshake.
pub(super) fn of_connection(error: Error, opening: &[u8]) -> TlsError {
    match error {
        Error::InvalidMessage(_) if !is_record(opening) => not_tls(opening),
        Error::AlertReceived(alert) => of_alert(alert),
        Error::PeerIncompatible(why) => TlsError::Incompatible(format!("{why:?}")),
        Error::InvalidCertificate(_) => of_certificate(error),
        other => TlsError::Protocol(other.to_string()),
    }
}

/// Whether this can be the beginning of a record: its type (RFC 8446, 5.1), and the major version.
fn is_record(opening: &[u8]) -> bool {
    matches!(opening, [] | [20..=24] | [20..=24, 3, ..])
}

fn not_tls(opening: &[u8]) -> TlsError {
    const HTTP: &[u8] = b"HTTP/";
    let begins = String::from_utf8_lossy(opening).into_owned();
    // Bytes that arrive one by one are rejected at the first.
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
        // A trusted authority has the issuer's name but a key of another kind: it is another authority.
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

/// A duration in its largest whole unit.
fn span(seconds: u64) -> String {
    let (n, unit) = match seconds {
        0..60 => (seconds, "second"),
        60..3_600 => (seconds / 60, "minute"),
        3_600..86_400 => (seconds / 3_600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    format!("{n} {unit}{}", if n == 1 { "" } else { "s" })
}

/// The most likely meaning of an alert (RFC 8446, 6.2) for the user of a load generator.
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
