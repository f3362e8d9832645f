//! What either side rejects, with a remedy in the error. Start reading at [`refusal`].

use joust_wire::tls::{Handshake, Resumption, TlsClient, TlsError, TlsOptions, Versions};

use crate::peer::{Authority, Pipe, Site, self_signed, self_signed_authority, trusting};
use crate::{EACH, config};

/// The error of a client with `options` that connects to `site` as `name`; it must contain all of `words`.
fn refusal(options: &TlsOptions, name: &str, site: &Site, words: &[&str]) -> TlsError {
    let mut pipe = Pipe::new(&config(options), name, Resumption::Fresh, &site.config());
    let error = pipe.run().expect_err("the handshake fails");
    let text = error.to_string();
    for word in words {
        assert!(text.contains(word), "{word:?} is not in: {text}");
    }
    assert!(pipe.client.end().is_err());
    // It fails permanently, with the same error.
    assert_eq!(pipe.client.feed(b"x", &mut vec![]), Err(error.clone()));
    assert_eq!(pipe.client.send(b"x"), Err(error.clone()));
    error
}

/// Checks that a client with `options` accepts `site`.
fn accepted(options: &TlsOptions, name: &str, site: &Site) {
    let mut pipe = Pipe::new(&config(options), name, Resumption::Fresh, &site.config());
    pipe.run().unwrap();
    assert_eq!(pipe.client.handshake(), Some(Handshake::Full));
}

fn insecure() -> TlsOptions {
    TlsOptions { insecure: true, ..TlsOptions::default() }
}

#[test]
fn an_unknown_authority_is_refused_unless_insecure() {
    let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    for (versions, _) in EACH {
        let site = Site { versions, ..Site::new(theirs.issue(&["localhost"])) };
        let words = ["--cacert FILE", "--insecure"];
        assert_eq!(refusal(&trusting(&ours), "localhost", &site, &words), TlsError::UnknownIssuer);
        accepted(&trusting(&theirs), "localhost", &site);
        accepted(&insecure(), "localhost", &site);
    }
}

#[test]
fn an_authority_with_the_name_of_a_trusted_one_and_another_kind_of_key_is_unknown() {
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
    let (ours, theirs) = (Authority::with_key("same", key), Authority::new("same"));
    let site = Site::new(theirs.issue(&["localhost"]));
    let error = refusal(&trusting(&ours), "localhost", &site, &["--cacert FILE", "--insecure"]);
    assert_eq!(error, TlsError::UnknownIssuer);
}

#[test]
fn a_refused_certificate_is_told_to_the_server() {
    let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    let server = Site::new(theirs.issue(&["localhost"])).config();
    let mut pipe = Pipe::new(&config(&trusting(&ours)), "localhost", Resumption::Fresh, &server);
    pipe.run().unwrap_err();
    let mut alert = Vec::new();
    pipe.client.take_output(&mut alert);
    pipe.give_server(&alert);
    let told = rustls::Error::AlertReceived(rustls::AlertDescription::UnknownCA);
    assert_eq!(pipe.server_error, Some(told));
}

#[test]
fn a_wrong_name_is_refused_with_the_names_it_has() {
    let authority = Authority::new("ours");
    let site = Site::new(authority.issue(&["a.example", "*.b.example", "10.0.0.1"]));
    let words = ["\"localhost\"", "a.example, *.b.example, 10.0.0.1", "--insecure"];
    refusal(&trusting(&authority), "localhost", &site, &words);
    refusal(&trusting(&authority), "127.0.0.1", &site, &["\"127.0.0.1\""]);
    accepted(&trusting(&authority), "www.b.example", &site);
    accepted(&insecure(), "localhost", &site);

    let many: Vec<String> = (0..100).map(|n| format!("n{n}.example")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let site = Site::new(authority.issue(&many));
    refusal(&trusting(&authority), "localhost", &site, &["n4.example and 95 more"]);
    let site = Site::new(authority.issue(&[]));
    refusal(&trusting(&authority), "localhost", &site, &["no subjectAltName"]);
}

#[test]
fn the_time_of_a_certificate_is_checked() {
    let authority = Authority::new("ours");
    let site = Site::new(authority.issue_expired(&["localhost"]));
    let words = ["expired", "days ago", "--insecure"];
    let error = refusal(&trusting(&authority), "localhost", &site, &words);
    assert!(matches!(error, TlsError::Expired { .. }));
    accepted(&insecure(), "localhost", &site);

    let site = Site::new(authority.issue_for_the_future(&["localhost"]));
    let words = ["valid only in", "days", "clock"];
    let error = refusal(&trusting(&authority), "localhost", &site, &words);
    assert!(matches!(error, TlsError::NotYetValid { .. }));
    accepted(&insecure(), "localhost", &site);
}

#[test]
fn a_self_signed_certificate_is_trusted_once_it_is_named() {
    let named =
        |pem: &str| TlsOptions { ca_pem: Some(pem.as_bytes().to_vec()), ..TlsOptions::default() };
    let identity = self_signed_authority(&["localhost"]);
    let other = self_signed_authority(&["localhost"]);
    let site = Site::new(identity.clone());
    accepted(&named(&identity.chain), "localhost", &site);
    let error = refusal(&named(&identity.chain), "elsewhere.example", &site, &["localhost"]);
    assert!(matches!(error, TlsError::WrongName { .. }));
    refusal(&named(&other.chain), "localhost", &site, &["CA:TRUE", "--cacert", "--insecure"]);
}

#[test]
fn a_self_signed_certificate_is_not_taken_for_a_trusted_one_of_its_name() {
    let named =
        |pem: &str| TlsOptions { ca_pem: Some(pem.as_bytes().to_vec()), ..TlsOptions::default() };
    // The same subject with different keys: as of a server that makes a new certificate at each start.
    let [first, second] = [(); 2].map(|()| self_signed(&["localhost"]));
    let site = Site::new(second.clone());
    accepted(&named(&second.chain), "localhost", &site);
    let words = ["self-signed", "--cacert", "--insecure"];
    let error = refusal(&named(&first.chain), "localhost", &site, &words);
    assert!(matches!(error, TlsError::UnknownIssuer), "{error}");
}

#[test]
fn insecure_still_wants_the_key_of_the_certificate() {
    let authority = Authority::new("ours");
    for (versions, version) in EACH {
        let mut identity = authority.issue(&["localhost"]);
        identity.key = authority.issue(&["localhost"]).key;
        let site = Site { versions, ..Site::new(identity) };
        let error = refusal(&insecure(), "localhost", &site, &["does not hold the key"]);
        assert!(matches!(error, TlsError::Certificate { .. }), "{version}: {error}");
    }
}

#[test]
fn a_client_certificate_is_given_where_it_is_demanded() {
    let (authority, strangers) = (Authority::new("ours"), Authority::new("strangers"));
    let with = |from: &Authority| {
        let user = from.issue(&["user"]);
        TlsOptions {
            client_cert_pem: Some(user.chain.into_bytes()),
            client_key_pem: Some(user.key.into_bytes()),
            ..trusting(&authority)
        }
    };
    for (versions, version) in EACH {
        let site = Site {
            versions,
            clients_of: Some(authority.pem()),
            ..Site::new(authority.issue(&["localhost"]))
        };
        let mut pipe =
            Pipe::new(&config(&with(&authority)), "localhost", Resumption::Fresh, &site.config());
        pipe.run().unwrap();
        assert_eq!(pipe.server.peer_certificates().map(<[_]>::len), Some(1), "{version}");

        let error = refusal(&trusting(&authority), "localhost", &site, &["--cert"]);
        assert!(matches!(error, TlsError::Alert { .. }), "{version}: {error}");
        let words = ["unknown_ca (48)", "--cert", "authority that the server trusts"];
        refusal(&with(&strangers), "localhost", &site, &words);
    }
}

#[test]
fn versions_and_protocols_without_overlap_are_named() {
    let authority = Authority::new("ours");
    let identity = authority.issue(&["localhost"]);
    let pairs = [(Versions::Only12, Versions::Only13), (Versions::Only13, Versions::Only12)];
    for (tls_versions, versions) in pairs {
        let options = TlsOptions { tls_versions, ..trusting(&authority) };
        let site = Site { versions, ..Site::new(identity.clone()) };
        refusal(&options, "localhost", &site, &["protocol_version (70)", "TLS versions"]);
    }
    let options = TlsOptions { alpn: vec!["http/1.1".to_owned()], ..trusting(&authority) };
    let site = Site { alpn: vec!["h2"], ..Site::new(identity) };
    refusal(&options, "localhost", &site, &["no_application_protocol (120)", "ALPN"]);
}

#[test]
fn who_speaks_no_tls_is_quoted() {
    let authority = Authority::new("ours");
    let client = config(&trusting(&authority));
    let cases: [(&[u8], &[&str]); 5] = [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", &["plain HTTP", "HTTP/1.1 400 Bad", "http://"]),
        (b"SSH-2.0-OpenSSH_9.2p1\r\n", &["does not speak TLS", "SSH-2.0-OpenSSH", "port"]),
        (b"220 mail.example ESMTP\r\n", &["does not speak TLS", "220 mail"]),
        (&[0; 64], &["does not speak TLS"]),
        (b"\x16HTTP not a record", &["does not speak TLS"]),
    ];
    for (bytes, words) in cases {
        for piece in [1, bytes.len()] {
            let mut conn = TlsClient::new(&client, "localhost", Resumption::Fresh).unwrap();
            let mut plain = Vec::new();
            let fed: Result<Vec<_>, _> =
                bytes.chunks(piece).map(|piece| conn.feed(piece, &mut plain)).collect();
            let text = fed.expect_err("that is not TLS").to_string();
            // If bytes arrive one by one, the error only shows the first bytes.
            let words = if piece == 1 { &words[..1] } else { words };
            words.iter().for_each(|word| assert!(text.contains(word), "{word:?}: {text}"));
            assert!(plain.is_empty());
        }
    }
}

#[test]
fn an_alert_of_a_server_that_has_no_cipher_in_common_is_explained() {
    let authority = Authority::new("ours");
    let client = config(&trusting(&authority));
    let mut conn = TlsClient::new(&client, "localhost", Resumption::Fresh).unwrap();
    // Record of an alert: fatal (2), handshake_failure (40); RFC 8446, 6.
    let error = conn.feed(&[21, 3, 3, 0, 2, 2, 40], &mut vec![]).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("handshake_failure (40)") && text.contains("--cert"), "{text}");
}

#[test]
fn a_name_that_no_certificate_could_be_for_is_refused() {
    let client = config(&insecure());
    for name in ["", "two words", "a/b", "[::1"] {
        let error = TlsClient::new(&client, name, Resumption::Fresh).err().expect(name);
        assert_eq!(error, TlsError::ServerName(name.to_owned()));
    }
}

#[test]
fn no_changed_byte_of_a_servers_flight_passes_unnoticed() {
    let authority = Authority::new("ours");
    let site = Site { versions: Versions::Only13, ..Site::new(authority.issue(&["localhost"])) };
    let (client, server) = (config(&trusting(&authority)), site.config());
    let flight = || {
        let mut pipe = Pipe::new(&client, "localhost", Resumption::Fresh, &server);
        let mut hello = Vec::new();
        pipe.client.take_output(&mut hello);
        pipe.give_server(&hello);
        let bytes = pipe.take_from_server();
        (pipe, bytes)
    };
    let mut done = 0;
    for at in 0.. {
        let (mut pipe, mut bytes) = flight();
        let Some(byte) = bytes.get_mut(at) else { break };
        *byte ^= 1 << (at % 8);
        let headers = record_headers(&bytes);
        let event = pipe.client.feed(&bytes, &mut vec![]);
        // Only the version in a record's header may be ignored (RFC 8446, 5.1).
        let ignored = headers.iter().any(|header| (header + 1..header + 3).contains(&at));
        let passed = event.is_ok_and(|event| event.handshake_done_now);
        assert!(!passed || ignored, "byte {at} of {} was changed", bytes.len());
        assert!(!passed || !pipe.client.is_handshaking());
        done += 1;
    }
    assert!(done > 300, "a flight of {done} bytes");
    let (mut pipe, bytes) = flight();
    let (last, before) = bytes.split_last().unwrap();
    let event = pipe.client.feed(before, &mut vec![]).unwrap();
    assert!(!event.handshake_done_now);
    assert!(pipe.client.feed(&[*last], &mut vec![]).unwrap().handshake_done_now);
}

/// Where records begin: type, version (2), length (2).
fn record_headers(bytes: &[u8]) -> Vec<usize> {
    let next = |at: &usize| {
        let length = u16::from_be_bytes([*bytes.get(at + 3)?, *bytes.get(at + 4)?]);
        Some(at + 5 + usize::from(length))
    };
    std::iter::successors(Some(0), next).take_while(|at| *at < bytes.len()).collect()
}
