//! The heap memory of one TLS connection of a client, counted by the allocator, and whether an idle connection frees
//! the memory of a large reply. Owns the counting; must not share its process with other tests, which would allocate
//! too. Start reading at the test.

use std::io::Write;
use std::sync::Arc;

use joust_wire::tls::{Resumption, TlsClient, TlsClientConfig, TlsOptions, Versions};
use rustls::{ServerConfig, ServerConnection};
use rustls_pki_types::PrivateKeyDer;
use sys::allocations::{Counting, bytes_held, count};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Heap bytes that the calls in `f` on a client have added.
fn left_by<T>(f: impl FnOnce() -> T) -> (T, i64) {
    let before = bytes_held() as i64;
    let made = f();
    (made, bytes_held() as i64 - before)
}

/// Carries the client's bytes to the server, and back, until both are silent. Returns the heap bytes that the client
/// has added; those of the server are not counted.
fn run(client: &mut TlsClient, server: &mut ServerConnection, plain: &mut Vec<u8>) -> i64 {
    let mut out = Vec::with_capacity(1 << 20);
    let mut kept = 0;
    loop {
        out.clear();
        kept += left_by(|| client.take_output(&mut out)).1;
        let mut to_server = &out[..];
        while !to_server.is_empty() {
            server.read_tls(&mut to_server).unwrap();
            server.process_new_packets().unwrap();
        }
        let mut reply = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut reply).unwrap();
        }
        for piece in reply.chunks(16 * 1024) {
            kept += left_by(|| client.feed(piece, plain).unwrap()).1;
        }
        if out.is_empty() && reply.is_empty() {
            return kept;
        }
    }
}

#[test]
fn an_idle_connection_takes_less_than_8_kb_and_a_record_one_allocation() {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let server = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key);
    let server = Arc::new(server.unwrap());
    for tls_versions in [Versions::Only12, Versions::Only13] {
        let options = TlsOptions { insecure: true, tls_versions, ..TlsOptions::default() };
        // The store keeps one ticket; further tickets would be counted for the connection.
        let config = TlsClientConfig::new(&options).unwrap().with_own_sessions(1);
        let mut plain = Vec::with_capacity(2 << 20);
        for round in 0..3 {
            let mut server = ServerConnection::new(Arc::clone(&server)).unwrap();
            server.set_buffer_limit(None);
            let (mut client, made) =
                left_by(|| TlsClient::new(&config, "localhost", Resumption::Fresh).unwrap());
            let idle = made + run(&mut client, &mut server, &mut plain);
            server.writer().write_all(&vec![7; 1_000_000]).unwrap();
            let after = idle + run(&mut client, &mut server, &mut plain);

            server.writer().write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
            let mut reply = Vec::new();
            server.write_tls(&mut reply).unwrap();
            let before = count();
            client.feed(&reply, &mut plain).unwrap();
            let by_reply = count() - before;
            let mut out = Vec::with_capacity(1024);
            let before = count();
            client.send(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
            client.take_output(&mut out);
            let by_request = count() - before;

            plain.clear();
            // The first round also allocates what is made once for the process and for the store.
            if round > 0 {
                let all =
                    format!("{tls_versions:?}: {made} B new, {idle} B idle, {after} B after 1 MB");
                assert!(made > 0 && idle < 8_000 && after < 8_000, "{all}");
                assert!(size_of::<TlsClient>() <= 1_200, "{} B", size_of::<TlsClient>());
                assert_eq!((by_reply, by_request), (1, 1), "{tls_versions:?}");
            }
        }
    }
}
