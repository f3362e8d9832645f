//! The client's side of TLS against foreign servers: rustls in memory, and `openssl s_server`. Owns the facts that the
//! load generator relies on. Start reading at any test.

mod config;
mod openssl;
mod peer;
mod refusals;
mod resumption;

use joust_wire::tls::{Handshake, Resumption, TlsClientConfig, TlsError, TlsOptions, Versions};
use peer::{Authority, Pipe, Site, trusting};

/// Each version alone, by its name.
const EACH: [(Versions, &str); 2] = [(Versions::Only12, "TLS 1.2"), (Versions::Only13, "TLS 1.3")];

fn config(options: &TlsOptions) -> TlsClientConfig {
    TlsClientConfig::new(options).unwrap()
}

#[test]
fn both_versions_shake_hands_with_sni_and_alpn() {
    let authority = Authority::new("ours");
    for (versions, version) in EACH {
        let site = Site {
            versions,
            alpn: vec!["h2", "http/1.1"],
            ..Site::new(authority.issue(&["www.example.org"]))
        };
        let options = TlsOptions { alpn: vec!["http/1.1".to_owned()], ..trusting(&authority) };
        let client = config(&options);
        let mut pipe = Pipe::new(&client, "www.example.org", Resumption::Offer, &site.config());
        assert!(pipe.client.is_handshaking() && pipe.client.has_output(), "{version}");
        assert_eq!(pipe.client.handshake(), None, "{version}");
        pipe.run().unwrap();
        assert!(!pipe.client.is_handshaking(), "{version}");
        assert_eq!(pipe.done_events, 1, "{version}");
        assert_eq!(pipe.client.handshake(), Some(Handshake::Full), "{version}");
        // Not `FullWithHelloRetryRequest`, which would be one more round trip.
        assert_eq!(pipe.server.handshake_kind(), Some(rustls::HandshakeKind::Full), "{version}");
        assert_eq!(pipe.client.version(), Some(version));
        assert_eq!(pipe.client.alpn(), Some(&b"http/1.1"[..]), "{version}");
        assert_eq!(pipe.client.group(), Some("X25519"), "{version}");
        let suite = pipe.client.cipher_suite().unwrap();
        assert!(suite.starts_with("TLS_") && suite.contains("_AES_"), "{suite}");
        assert_eq!(pipe.server.server_name(), Some("www.example.org"), "{version}");
        assert_eq!(pipe.server.alpn_protocol(), Some(&b"http/1.1"[..]), "{version}");
    }
}

#[test]
fn an_ip_address_is_verified_and_no_sni_is_sent() {
    let authority = Authority::new("ours");
    let server = Site::new(authority.issue(&["127.0.0.1", "::1"])).config();
    let client = config(&trusting(&authority));
    for name in ["127.0.0.1", "::1", "[::1]"] {
        let mut pipe = Pipe::new(&client, name, Resumption::Fresh, &server);
        pipe.run().unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(pipe.server.server_name(), None, "{name}");
    }
}

#[test]
fn a_server_that_ignores_alpn_is_no_failure() {
    let authority = Authority::new("ours");
    let server = Site::new(authority.issue(&["localhost"])).config();
    let options = TlsOptions { alpn: vec!["http/1.1".to_owned()], ..trusting(&authority) };
    let mut pipe = Pipe::new(&config(&options), "localhost", Resumption::Fresh, &server);
    pipe.run().unwrap();
    assert_eq!(pipe.client.alpn(), None);
}

#[test]
fn bytes_may_come_one_by_one() {
    let authority = Authority::new("ours");
    for (versions, version) in EACH {
        let server = Site { versions, ..Site::new(authority.issue(&["localhost"])) }.config();
        let client = config(&trusting(&authority));
        for kind in [Handshake::Full, Handshake::Resumed] {
            let mut pipe = Pipe::new(&client, "localhost", Resumption::Offer, &server);
            pipe.piece = 1;
            pipe.client.send(b"question").unwrap();
            pipe.run().unwrap();
            pipe.server_says(b"answer");
            pipe.server.send_close_notify();
            pipe.run().unwrap();
            assert_eq!(pipe.client.handshake(), Some(kind), "{version}");
            assert_eq!(pipe.done_events, 1, "{version}");
            assert_eq!(pipe.server_got, b"question", "{version}");
            assert_eq!(pipe.client_got, b"answer", "{version}");
            assert!(pipe.last.peer_closed, "{version}");
        }
    }
}

#[test]
fn a_megabyte_goes_either_way_unchanged() {
    let authority = Authority::new("ours");
    let up: Vec<u8> =
        (0..1_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let down: Vec<u8> = up.iter().rev().copied().collect();
    for (versions, version) in EACH {
        let server = Site { versions, ..Site::new(authority.issue(&["localhost"])) }.config();
        for piece in [1_448, 65_536, usize::MAX] {
            let client = config(&trusting(&authority));
            let mut pipe = Pipe::new(&client, "localhost", Resumption::Fresh, &server);
            pipe.piece = piece;
            // Before the handshake is done: it is buffered.
            pipe.client.send(&up).unwrap();
            pipe.server_says(&down);
            pipe.run().unwrap();
            assert!(pipe.server_got == up, "{version}, {piece}");
            assert!(pipe.client_got == down, "{version}, {piece}");
        }
    }
}

#[test]
fn what_is_sent_early_is_not_lost_and_not_in_the_clear() {
    let authority = Authority::new("ours");
    let server = Site::new(authority.issue(&["localhost"])).config();
    let client = config(&trusting(&authority));
    let mut pipe = Pipe::new(&client, "localhost", Resumption::Fresh, &server);
    pipe.client.send(b"secret question").unwrap();
    let mut first = Vec::new();
    pipe.client.take_output(&mut first);
    assert!(!first.windows(6).any(|window| window == b"secret"));
    pipe.give_server(&first);
    pipe.run().unwrap();
    assert_eq!(pipe.server_got, b"secret question");
}

#[test]
fn an_end_with_close_notify_is_told_from_one_without() {
    let authority = Authority::new("ours");
    for (versions, version) in EACH {
        let server = Site { versions, ..Site::new(authority.issue(&["localhost"])) }.config();
        let client = config(&trusting(&authority));
        let mut pipe = Pipe::new(&client, "localhost", Resumption::Fresh, &server);
        assert_eq!(pipe.client.end(), Err(TlsError::EndInHandshake), "{version}");
        pipe.run().unwrap();
        pipe.server_says(b"half of an ans");
        pipe.run().unwrap();
        assert!(!pipe.last.peer_closed, "{version}");
        assert_eq!(pipe.client.end(), Err(TlsError::Truncated), "{version}");
        pipe.server.send_close_notify();
        pipe.run().unwrap();
        assert!(pipe.last.peer_closed, "{version}");
        assert_eq!(pipe.client.end(), Ok(()), "{version}");
        let after = pipe.client.feed(b"noise behind the end", &mut pipe.client_got).unwrap();
        assert!(after.peer_closed && pipe.client_got == b"half of an ans", "{version}");
    }
}

#[test]
fn our_close_notify_reaches_the_server_and_ends_sending() {
    let authority = Authority::new("ours");
    let server = Site::new(authority.issue(&["localhost"])).config();
    let client = config(&trusting(&authority));
    let mut pipe = Pipe::new(&client, "localhost", Resumption::Fresh, &server);
    pipe.run().unwrap();
    pipe.client.send(b"the last").unwrap();
    pipe.client.close();
    pipe.client.close();
    assert_eq!(pipe.client.send(b"more"), Err(TlsError::Closed));
    let mut out = Vec::new();
    pipe.client.take_output(&mut out);
    pipe.give_server(&out);
    assert!(pipe.server.process_new_packets().unwrap().peer_has_closed());
    assert_eq!(pipe.server_got, b"the last");
    // The other direction is still open.
    pipe.server_says(b"the answer");
    pipe.run().unwrap();
    assert_eq!(pipe.client_got, b"the answer");
}

#[test]
fn plaintext_before_a_broken_record_is_kept() {
    let authority = Authority::new("ours");
    for (versions, version) in EACH {
        let server = Site { versions, ..Site::new(authority.issue(&["localhost"])) }.config();
        let client = config(&trusting(&authority));
        let mut pipe = Pipe::new(&client, "localhost", Resumption::Fresh, &server);
        pipe.run().unwrap();
        pipe.server_says(b"whole");
        let mut bytes = pipe.take_from_server();
        pipe.server_says(b"broken");
        bytes.extend(pipe.take_from_server());
        *bytes.last_mut().unwrap() ^= 1;
        let error = pipe.client.feed(&bytes, &mut pipe.client_got).unwrap_err();
        assert!(matches!(error, TlsError::Protocol(_)), "{version}: {error}");
        assert_eq!(pipe.client_got, b"whole", "{version}");
        // It fails permanently, with the same error, and the server is told.
        assert_eq!(pipe.client.feed(b"x", &mut pipe.client_got), Err(error), "{version}");
        let mut alert = Vec::new();
        pipe.client.take_output(&mut alert);
        pipe.give_server(&alert);
        let told = rustls::Error::AlertReceived(rustls::AlertDescription::BadRecordMac);
        assert_eq!(pipe.server_error, Some(told), "{version}");
    }
}
