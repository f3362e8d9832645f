//! The connections of `joust load`: how many, from where, to where, and with which version of HTTP.
//! Start reading at [`a_connection_ends_after_the_requests_that_were_asked_for`].

use std::collections::BTreeSet;

use crate::load::record;
use crate::planted::{Planted, reply};
use crate::{Server, output, said};

const MORE: [&str; 4] = ["--verify", "none", "--json", "-"];

#[test]
fn a_connection_ends_after_the_requests_that_were_asked_for() {
    let server = Planted::start(|_| reply("", "x"));
    let args = ["-n", "200", "-c", "1", "--requests-per-connection", "10"];
    let record = record(&[&["load", &server.url("/")], &args[..], &MORE].concat());
    assert_eq!(record["requests"]["ok"], 200);
    let conns: BTreeSet<usize> = server.seen().iter().map(|seen| seen.conn).collect();
    assert_eq!(conns.len(), 20);
    assert_eq!(record["connects"], 20);
}

#[test]
fn pipelined_requests_are_all_answered_and_each_has_its_own_reply() {
    let dir = tempfile::tempdir().unwrap();
    let site = dir.path().join("site");
    std::fs::create_dir(&site).unwrap();
    let names = ["a", "bb", "cccc"];
    names.iter().for_each(|name| std::fs::write(site.join(name), name).unwrap());
    let server = Server::start(&[site.to_str().unwrap()]);
    let urls: String = names.iter().map(|name| format!("{}{name}\n", server.url)).collect();
    let file = dir.path().join("urls.txt");
    std::fs::write(&file, urls).unwrap();
    // A swapped reply would have another length and hash.
    let args = ["--from", file.to_str().unwrap(), "--pipeline", "8", "-n", "400", "-c", "2"];
    let checks = ["--verify", "hash=100%", "--json", "-"];
    let record = record(&[&["load"], &args[..], &checks].concat());
    assert_eq!(record["requests"]["ok"], 400, "{}", record["errors"]);
    assert_eq!(record["bytes"]["body"], 134 + 2 * 133 + 4 * 133);
}

#[test]
fn http_1_0_is_on_the_wire() {
    let server = Planted::start(|_| {
        b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\nx".to_vec()
    });
    let args = ["-n", "20", "-c", "2", "--http1.0"];
    let record = record(&[&["load", &server.url("/")], &args[..], &MORE].concat());
    assert_eq!((&record["requests"]["ok"], &record["connects"]), (&20.into(), &2.into()));
    for seen in server.seen() {
        assert!(seen.head.starts_with("GET / HTTP/1.0\r\n"), "{}", seen.head);
    }
}

#[test]
fn several_source_addresses_are_seen_by_the_server() {
    let server = Planted::start(|_| reply("", "x"));
    let args = ["-n", "40", "-c", "4", "--source", "127.0.0.2,127.0.0.3"];
    record(&[&["load", &server.url("/")], &args[..], &MORE].concat());
    let peers: BTreeSet<String> =
        server.seen().iter().filter_map(|seen| seen.peer).map(|peer| peer.to_string()).collect();
    assert!(peers.iter().eq(["127.0.0.2", "127.0.0.3"]), "{peers:?}");
}

#[test]
fn a_name_leads_where_connect_to_says_and_stays_what_is_asked() {
    let server = Planted::start(|_| reply("", "x"));
    let rule = format!("shop.example:80:{}", server.addr());
    let args = ["load", "http://shop.example/basket", "--connect-to", &rule, "-n", "4"];
    record(&[&args[..], &MORE].concat());
    for seen in server.seen() {
        assert_eq!((seen.line(), seen.field("Host")), ("GET /basket", Some("shop.example")));
    }
}

#[test]
fn a_unix_socket_is_a_server_like_any_other() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("app.sock");
    let server = Planted::start_at(&path, |_| reply("", "x"));
    let args = ["load", "http://localhost/a", "--unix", path.to_str().unwrap(), "-n", "40"];
    for engine in ["epoll", "auto"] {
        let record = record(&[&args[..], &["--engine", engine], &MORE].concat());
        assert_eq!(record["requests"]["ok"], 40, "{engine}");
        let seen = server.take();
        assert_eq!((seen.len(), seen[0].field("Host")), (40, Some("localhost")), "{engine}");
    }
    let missing = dir.path().join("none.sock");
    let output = output(&["load", "http://localhost/", "--unix", missing.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("none.sock"), "{}", said(&output));
}

#[test]
fn ipv6_is_asked_in_brackets() {
    let Some(server) = Planted::start_on("[::1]:0", |_| reply("", "x")) else {
        return skips::note("no ::1 on this machine");
    };
    let record = record(&[&["load", &server.url("/"), "-n", "40"], &MORE[..]].concat());
    assert_eq!(record["requests"]["ok"], 40);
    assert_eq!(server.seen()[0].field("Host"), Some(&*server.addr().to_string()));
}
