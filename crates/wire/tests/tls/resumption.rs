//! Full and resumed handshakes, counted on both sides. Start reading at any test.

use joust_wire::tls::{Handshake, Resumption, SERVERS_MAX, SessionTotals, TlsOptions};
use rustls::HandshakeKind;

use crate::peer::{Authority, Pipe, Site, trusting};
use crate::{EACH, config};

#[test]
fn what_is_offered_is_resumed_and_fresh_is_full_on_both_sides() {
    use Resumption::{Fresh, Offer};
    let authority = Authority::new("ours");
    for (versions, version) in EACH {
        let server = Site { versions, ..Site::new(authority.issue(&["localhost"])) }.config();
        let client = config(&trusting(&authority));
        // The first connection that offers has nothing to offer; fresh ones store what they
        // receive.
        let plan = [
            (Offer, Handshake::Full),
            (Offer, Handshake::Resumed),
            (Fresh, Handshake::Full),
            (Offer, Handshake::Resumed),
            (Offer, Handshake::Resumed),
            (Fresh, Handshake::Full),
            (Fresh, Handshake::Full),
            (Offer, Handshake::Resumed),
        ];
        for (at, (resumption, wanted)) in plan.into_iter().enumerate() {
            let mut pipe = Pipe::new(&client, "localhost", resumption, &server);
            pipe.run().unwrap();
            assert_eq!(pipe.client.handshake(), Some(wanted), "{version}, {at}");
            let seen = match pipe.server.handshake_kind().unwrap() {
                HandshakeKind::Resumed => Handshake::Resumed,
                _ => Handshake::Full,
            };
            assert_eq!(seen, wanted, "{version}, {at}, as the server saw it");
        }
        let totals = client.session_totals();
        assert_eq!((totals.offered, totals.none_kept), (4, 1), "{version}");
        assert_eq!(totals.dropped, 0, "{version}");
    }
}

#[test]
fn a_ticket_of_a_fresh_connection_can_be_offered_by_the_next() {
    let authority = Authority::new("ours");
    for (versions, version) in EACH {
        let server = Site { versions, ..Site::new(authority.issue(&["localhost"])) }.config();
        let client = config(&trusting(&authority));
        Pipe::new(&client, "localhost", Resumption::Fresh, &server).run().unwrap();
        let mut pipe = Pipe::new(&client, "localhost", Resumption::Offer, &server);
        pipe.run().unwrap();
        assert_eq!(pipe.client.handshake(), Some(Handshake::Resumed), "{version}");
    }
}

#[test]
fn fifty_connections_at_one_time_all_resume() {
    let authority = Authority::new("ours");
    for (versions, version) in EACH {
        let server = Site { versions, ..Site::new(authority.issue(&["localhost"])) }.config();
        let client = config(&trusting(&authority));
        let open = || -> Vec<Pipe> {
            let one = |_| Pipe::new(&client, "localhost", Resumption::Offer, &server);
            (0..50).map(one).collect()
        };
        open().iter_mut().for_each(|pipe| pipe.run().unwrap());
        let mut second = open();
        second.iter_mut().for_each(|pipe| pipe.run().unwrap());
        let resumed =
            second.iter().filter(|pipe| pipe.client.handshake() == Some(Handshake::Resumed));
        assert_eq!(resumed.count(), 50, "{version}");
    }
}

#[test]
fn tickets_are_bounded_and_what_is_dropped_is_counted() {
    let authority = Authority::new("ours");
    let site = Site { tickets: 5, ..Site::new(authority.issue(&["localhost"])) };
    let server = site.config();
    let client = config(&trusting(&authority)).with_own_sessions(2);
    Pipe::new(&client, "localhost", Resumption::Fresh, &server).run().unwrap();
    let expected = SessionTotals { received: 5, offered: 0, none_kept: 0, dropped: 3 };
    assert_eq!(client.session_totals(), expected);
    // Opened together, so that none provides tickets for the next.
    let open = || Pipe::new(&client, "localhost", Resumption::Offer, &server);
    let mut pipes = [open(), open(), open()];
    let kinds = pipes.each_mut().map(|pipe| {
        pipe.run().unwrap();
        pipe.client.handshake().unwrap()
    });
    assert_eq!(kinds, [Handshake::Resumed, Handshake::Resumed, Handshake::Full]);
    assert_eq!(client.session_totals().none_kept, 1);
}

#[test]
fn servers_are_bounded_and_what_is_dropped_is_counted() {
    let authority = Authority::new("ours");
    for (versions, version) in EACH {
        let server = Site { versions, ..Site::new(authority.issue(&["*.many.example"])) }.config();
        let client = config(&trusting(&authority));
        let kind = |n: usize, resumption| {
            let mut pipe = Pipe::new(&client, &format!("n{n}.many.example"), resumption, &server);
            pipe.run().unwrap();
            pipe.client.handshake().unwrap()
        };
        for n in 0..SERVERS_MAX {
            kind(n, Resumption::Fresh);
        }
        assert_eq!(client.session_totals().dropped, 0, "{version}");
        kind(SERVERS_MAX, Resumption::Fresh);
        let totals = client.session_totals();
        assert!(totals.dropped > 0, "{version}: {totals:?}");
        assert_eq!(totals.received, totals.dropped * (SERVERS_MAX as u64 + 1), "{version}");
        assert_eq!(kind(SERVERS_MAX, Resumption::Offer), Handshake::Full, "{version}");
        assert_eq!(kind(0, Resumption::Offer), Handshake::Resumed, "{version}");
    }
}

#[test]
fn own_sessions_are_not_those_of_others_and_clones_share() {
    let authority = Authority::new("ours");
    let server = Site::new(authority.issue(&["localhost"])).config();
    let client = config(&trusting(&authority));
    Pipe::new(&client, "localhost", Resumption::Offer, &server).run().unwrap();
    let kind = |client: &_| {
        let mut pipe = Pipe::new(client, "localhost", Resumption::Offer, &server);
        pipe.run().unwrap();
        pipe.client.handshake().unwrap()
    };
    let own = client.with_own_sessions(8);
    assert_eq!(kind(&own), Handshake::Full);
    assert_eq!(kind(&own), Handshake::Resumed);
    assert_eq!(kind(&client.clone()), Handshake::Resumed);
}

#[test]
fn sessions_of_one_name_are_not_offered_to_another() {
    let authority = Authority::new("ours");
    for (versions, version) in EACH {
        let names = ["one.example", "two.example"];
        let server = Site { versions, ..Site::new(authority.issue(&names)) }.config();
        let client = config(&trusting(&authority));
        for name in names {
            let mut pipe = Pipe::new(&client, name, Resumption::Offer, &server);
            pipe.run().unwrap();
            assert_eq!(pipe.client.handshake(), Some(Handshake::Full), "{version}, {name}");
        }
    }
}

#[test]
fn a_server_that_declines_makes_it_full_and_offered_says_so() {
    let authority = Authority::new("ours");
    for (versions, version) in EACH {
        let site = Site { versions, ..Site::new(authority.issue(&["localhost"])) };
        let client = config(&trusting(&authority));
        Pipe::new(&client, "localhost", Resumption::Offer, &site.config()).run().unwrap();
        // A restarted server: other ticket keys.
        let mut pipe = Pipe::new(&client, "localhost", Resumption::Offer, &site.config());
        pipe.run().unwrap();
        assert_eq!(pipe.client.handshake(), Some(Handshake::Full), "{version}");
        assert_eq!(client.session_totals().offered, 1, "{version}");
    }
}

#[test]
fn sessions_with_a_client_certificate_and_unverified_ones_resume_too() {
    let authority = Authority::new("ours");
    let user = authority.issue(&["user"]);
    for (versions, version) in EACH {
        let site = Site {
            versions,
            clients_of: Some(authority.pem()),
            ..Site::new(authority.issue(&["localhost"]))
        };
        let server = site.config();
        let options = TlsOptions {
            insecure: true,
            client_cert_pem: Some(user.chain.clone().into_bytes()),
            client_key_pem: Some(user.key.clone().into_bytes()),
            ..TlsOptions::default()
        };
        let client = config(&options);
        for wanted in [Handshake::Full, Handshake::Resumed] {
            let mut pipe = Pipe::new(&client, "localhost", Resumption::Offer, &server);
            pipe.run().unwrap();
            assert_eq!(pipe.client.handshake(), Some(wanted), "{version}");
        }
    }
}

#[test]
fn another_key_exchange_costs_a_retry_that_is_told() {
    let authority = Authority::new("ours");
    let site = Site { only_p256: true, ..Site::new(authority.issue(&["localhost"])) };
    let server = site.config();
    let client = config(&trusting(&authority));
    // A fresh connection does not know the session from before.
    for _ in 0..2 {
        let mut pipe = Pipe::new(&client, "localhost", Resumption::Fresh, &server);
        pipe.run().unwrap();
        let retried = rustls::HandshakeKind::FullWithHelloRetryRequest;
        assert_eq!(pipe.server.handshake_kind(), Some(retried));
        assert_eq!(pipe.client.handshake(), Some(Handshake::Full));
        assert_eq!(pipe.client.group(), Some("secp256r1"));
    }
    let mut pipe = Pipe::new(&client, "localhost", Resumption::Offer, &server);
    pipe.run().unwrap();
    assert_eq!(pipe.client.handshake(), Some(Handshake::Resumed));
}
