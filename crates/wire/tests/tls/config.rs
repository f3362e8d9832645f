//! Unusable options are rejected before the load, with a remedy in the message. Start reading at
//! [`refusal`].

use joust_wire::tls::{PemFile, Resumption, TlsClientConfig, TlsConfigError, TlsError, TlsOptions};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

use crate::peer::{Authority, Pipe, Site, trusting};

/// The error of `options`; it must contain all of `words`.
fn refusal(options: &TlsOptions, words: &[&str]) -> TlsConfigError {
    let error = TlsClientConfig::new(options).expect_err("these options cannot be used");
    let text = error.to_string();
    for word in words {
        assert!(text.contains(word), "{word:?} is not in: {text}");
    }
    error
}

fn ca(bytes: &[u8]) -> TlsOptions {
    TlsOptions { ca_pem: Some(bytes.to_vec()), ..TlsOptions::default() }
}

fn client(chain: &str, key: &str) -> TlsOptions {
    TlsOptions {
        insecure: true,
        client_cert_pem: Some(chain.as_bytes().to_vec()),
        client_key_pem: Some(key.as_bytes().to_vec()),
        ..TlsOptions::default()
    }
}

#[test]
fn a_file_without_a_certificate_is_refused_with_what_it_may_be() {
    let authority = Authority::new("ours");
    let identity = authority.issue(&["localhost"]);
    let der = CertificateDer::from_pem_slice(authority.pem().as_bytes()).unwrap();
    refusal(&ca(b""), &["--cacert", "empty"]);
    refusal(&ca(b"not PEM at all\n"), &["--cacert", "right file"]);
    refusal(&ca(&der), &["--cacert", "openssl x509 -inform der"]);
    refusal(&ca(identity.key.as_bytes()), &["--cacert", "it is a key"]);
    let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let error = refusal(&ca(broken.as_bytes()), &["--cacert", "cannot be used"]);
    assert!(matches!(error, TlsConfigError::Unusable { file: PemFile::Authority, .. }));
    let cut = authority.pem().replace("-----END CERTIFICATE-----", "");
    refusal(&ca(cut.as_bytes()), &["--cacert", "cut off"]);
    let key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
    refusal(&client(broken, &identity.key), &["--cert", "X.509"]);
    refusal(&client(&identity.chain, key), &["--key", "cannot be used"]);
}

#[test]
fn certificate_and_key_come_together_and_are_a_pair() {
    let authority = Authority::new("ours");
    let (one, two) = (authority.issue(&["one"]), authority.issue(&["two"]));
    TlsClientConfig::new(&client(&one.chain, &one.key)).unwrap();
    // Both in one file that is named twice, as users of curl do.
    let both = format!("{}{}", one.key, one.chain);
    TlsClientConfig::new(&client(&both, &both)).unwrap();

    let error = refusal(&client(&one.chain, &two.key), &["--key", "--cert", "does not match"]);
    let (key, certificate) = (PemFile::ClientKey, PemFile::ClientCert);
    assert_eq!(error, TlsConfigError::KeyMismatch { key, certificate });
    refusal(&client(&one.key, &one.chain), &["--cert", "exchanged"]);
    refusal(&client(&one.chain, &one.chain), &["--key", "it is a certificate"]);
    let encrypted =
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    refusal(&client(&one.chain, encrypted), &["--key", "encrypted", "openssl pkey"]);
    let of_old = "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\n\
                  AAAA\n-----END EC PRIVATE KEY-----\n";
    refusal(&client(&one.chain, of_old), &["--key", "encrypted", "openssl pkey"]);
    let alone = TlsOptions { client_key_pem: None, ..client(&one.chain, &one.key) };
    assert_eq!(refusal(&alone, &["--key FILE"]), TlsConfigError::CertificateWithoutKey);
    let alone = TlsOptions { client_cert_pem: None, ..client(&one.chain, &one.key) };
    assert_eq!(refusal(&alone, &["--cert FILE"]), TlsConfigError::KeyWithoutCertificate);
}

#[test]
fn alpn_names_have_1_to_255_bytes() {
    for name in [String::new(), "x".repeat(256)] {
        let options = TlsOptions { insecure: true, alpn: vec![name], ..TlsOptions::default() };
        refusal(&options, &["255"]);
    }
}

#[test]
fn the_machines_own_authorities_do_not_know_ours() {
    let client = match TlsClientConfig::new(&TlsOptions::default()) {
        Ok(client) => client,
        Err(error) => {
            let text = error.to_string();
            assert!(matches!(error, TlsConfigError::NoMachineAuthorities { .. }), "{text}");
            assert!(text.contains("ca-certificates") && text.contains("--cacert"), "{text}");
            return;
        }
    };
    let server = Site::new(Authority::new("ours").issue(&["localhost"])).config();
    let mut pipe = Pipe::new(&client, "localhost", Resumption::Fresh, &server);
    assert_eq!(pipe.run(), Err(TlsError::UnknownIssuer));
}

#[test]
fn no_key_is_printed() {
    let authority = Authority::new("ours");
    let user = authority.issue(&["user"]);
    let options =
        TlsOptions { ca_pem: trusting(&authority).ca_pem, ..client(&user.chain, &user.key) };
    assert!(format!("{options:?}").len() < 200, "{options:?}");
    let config = format!("{:?}", TlsClientConfig::new(&options).unwrap());
    assert!(!config.contains("PrivateKeyDer"), "{config}");
}

#[test]
fn configurations_go_to_other_threads() {
    fn goes<T: Send + Sync + Clone>() {}
    goes::<TlsClientConfig>();
}
