//! What ab prints about the server: its software, and the TLS that was agreed, in OpenSSL's words.
//! Start reading at [`Server`].

use record::{LoadRecord, TlsUse};

use super::flags::Flags;

/// What is known of the server from its first answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Server {
    pub(super) software: String,
    pub(super) protocol: Option<String>,
    pub(super) temporary_key: Option<String>,
    pub(super) tls_name: Option<String>,
}

impl Server {
    pub(super) fn new(flags: &Flags, record: &LoadRecord) -> Self {
        let tls = record.tls.as_ref().filter(|tls| flags.url.is_tls && !tls.version.is_empty());
        let is_address = flags.url.host.parse::<std::net::IpAddr>().is_ok();
        let sends_name = flags.url.is_tls && flags.sends_name && !is_address;
        Self {
            software: record.first_head.as_deref().map(software).unwrap_or_default(),
            protocol: tls.map(protocol),
            temporary_key: tls.and_then(|tls| temporary_key(&tls.group)),
            tls_name: sends_name.then(|| flags.url.host.clone()),
        }
    }
}

/// The text after the first "server:" anywhere in the head, up to a space or the line's end.
fn software(head: &str) -> String {
    let lower = head.to_ascii_lowercase();
    let Some(at) = lower.find("server:") else { return String::new() };
    let behind = head.get(at + "server: ".len()..).unwrap_or_default();
    behind.chars().take_while(|c| *c > ' ').collect()
}

/// `TLSv1.3,TLS_AES_256_GCM_SHA384,2048,256`: version, cipher, bits of the certificate's key and of
/// the cipher.
fn protocol(tls: &TlsUse) -> String {
    let cipher = openssl_cipher(&tls.cipher_suite);
    let cipher_bits = if tls.cipher_suite.contains("AES_128") { 128 } else { 256 };
    let version = tls.version.replace("TLS ", "TLSv");
    format!("{version},{cipher},{},{cipher_bits}", tls.certificate_bits.unwrap_or(0))
}

/// OpenSSL uses the registered names of TLS 1.3 and its own names for earlier versions.
fn openssl_cipher(registered: &str) -> String {
    let Some((exchange, cipher)) = registered.split_once("_WITH_") else {
        return registered.to_owned();
    };
    let exchange = exchange.trim_start_matches("TLS_");
    // OpenSSL leaves out the hash of CHACHA20-POLY1305.
    let cipher = cipher.trim_end_matches("_POLY1305_SHA256");
    let cipher = cipher.replace("AES_", "AES").replace("CHACHA20", "CHACHA20_POLY1305");
    format!("{exchange}_{cipher}").replace('_', "-")
}

/// OpenSSL's name for the key of the exchange; `None` for groups without such a line.
fn temporary_key(group: &str) -> Option<String> {
    let key = match group {
        "X25519" => "X25519 253 bits",
        "secp256r1" => "ECDH prime256v1 256 bits",
        "secp384r1" => "ECDH secp384r1 384 bits",
        "secp521r1" => "ECDH secp521r1 521 bits",
        _ => return None,
    };
    Some(key.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ciphers_have_the_names_of_openssl() {
        let names = [
            ("TLS_AES_128_GCM_SHA256", "TLS_AES_128_GCM_SHA256"),
            ("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "ECDHE-RSA-AES256-GCM-SHA384"),
            ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256"),
            ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"),
        ];
        for (registered, own) in names {
            assert_eq!(openssl_cipher(registered), own);
        }
    }

    #[test]
    fn software_ends_at_a_space_and_may_stand_anywhere() {
        assert_eq!(
            software("HTTP/1.1 200 OK\r\nSERVER: Apache/2.4 (Debian)\r\n\r\n"),
            "Apache/2.4"
        );
        assert_eq!(software("HTTP/1.1 200 OK\r\nX-Server: a\r\nServer: b\r\n\r\n"), "a");
        assert_eq!(software("HTTP/1.1 200 OK\r\n\r\n"), "");
        assert_eq!(software("Server:"), "");
    }
}
