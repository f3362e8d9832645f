//! `joust load --proxy`: absolute form and CONNECT, credentials, and the proxy's failures distinguished from the
//! server's. The proxy consists of a few threads of this process. Start reading at [`Relay`].

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::load::record;
use crate::planted::{Planted, reply};
use crate::{output, said, stdout};

const ENGINES: [&str; 2] = ["uring", "epoll"];

/// A proxy that opens tunnels to one server, whatever target it is given, and passes plain requests on unchanged. It
/// ends with the test's process.
struct Relay {
    addr: SocketAddr,
    /// Received heads: of each CONNECT, and the first of each plain connection.
    heads: Arc<Mutex<Vec<String>>>,
    n_connections: Arc<AtomicUsize>,
}

impl Relay {
    /// Relays to `server`; or answers every head with `refusal`, if there is one.
    fn start(server: SocketAddr, refusal: Option<&'static str>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback is there");
        let addr = listener.local_addr().expect("it is bound");
        let heads = Arc::new(Mutex::new(Vec::new()));
        let n_connections = Arc::new(AtomicUsize::new(0));
        let (all, count) = (Arc::clone(&heads), Arc::clone(&n_connections));
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                count.fetch_add(1, Ordering::Relaxed);
                let heads = Arc::clone(&all);
                std::thread::spawn(move || serve(client, server, refusal, &heads));
            }
        });
        Self { addr, heads, n_connections }
    }

    fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    fn heads(&self) -> Vec<String> {
        std::mem::take(&mut self.heads.lock().expect("no relay panics with it"))
    }
}

/// Relays one connection of a client; it ends when either side closes.
fn serve(
    mut client: TcpStream,
    server: SocketAddr,
    refusal: Option<&str>,
    heads: &Mutex<Vec<String>>,
) -> Option<()> {
    client.set_nodelay(true).ok()?;
    let (mut bytes, mut buf) = (Vec::new(), [0; 4096]);
    let end = loop {
        let found = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        match found {
            Some(at) => break at + 4,
            None => {
                let n = client.read(&mut buf).ok().filter(|n| *n > 0)?;
                bytes.extend_from_slice(&buf[..n]);
            }
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let is_tunnel = head.starts_with("CONNECT ");
    heads.lock().expect("no relay panics with it").push(head);
    if let Some(refusal) = refusal {
        client.write_all(refusal.as_bytes()).ok()?;
        return Some(());
    }
    let mut upstream = TcpStream::connect(server).ok()?;
    upstream.set_nodelay(true).ok()?;
    if is_tunnel {
        client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").ok()?;
    } else {
        upstream.write_all(&bytes).ok()?;
    }
    let back = (upstream.try_clone().ok()?, client.try_clone().ok()?);
    std::thread::spawn(move || copy(back.0, back.1));
    copy(client, upstream);
    Some(())
}

fn copy(mut from: TcpStream, mut to: TcpStream) {
    std::io::copy(&mut from, &mut to).ok();
    to.shutdown(Shutdown::Write).ok();
}

#[test]
fn plain_requests_are_in_absolute_form_over_kept_connections() {
    let server = Planted::start(|_| reply("", "x"));
    let relay = Relay::start(server.addr(), None);
    let proxy = format!("http://ann:p%40ss@{}", relay.addr);
    for (index, engine) in ENGINES.into_iter().enumerate() {
        for (round, pace) in [&["-c", "3"][..], &["-c", "3", "-r", "1k/s"]].into_iter().enumerate()
        {
            let args = ["-n", "60", "--verify", "none", "--engine", engine, "--json", "-"];
            let url = "http://shop.invalid/a?b=c";
            let record = record(&[&["load", url, "--proxy", &proxy], &args[..], pace].concat());
            assert_eq!(record["requests"]["ok"], 60, "{engine} {}", record["errors"]);
            assert_eq!(record["connects"], 3, "kept");
            let text = record.to_string();
            assert!(!text.contains("p@ss") && !text.contains("YW5uOnBAc3M"), "{text}");
            let n_connections = relay.n_connections.load(Ordering::Relaxed);
            // One additional connection each time checks whether there is a proxy.
            assert_eq!(n_connections, (2 * index + round + 1) * 4, "{engine} {pace:?}");
            for seen in server.take() {
                assert_eq!(seen.line(), "GET http://shop.invalid/a?b=c");
                assert_eq!(seen.field("Host"), Some("shop.invalid"));
                assert_eq!(seen.field("Proxy-Authorization"), Some("Basic YW5uOnBAc3M="));
            }
        }
    }
}

#[test]
fn https_goes_through_a_tunnel_and_connecting_includes_it() {
    let Some(dir) = crate::planted::with_certificate() else { return };
    let [cert, key] = ["cert.pem", "key.pem"].map(|name| dir.path().join(name));
    let [cert, key] = [&cert, &key].map(|path| path.to_str().unwrap());
    let tls = crate::Server::start(&["--fixed", "10", "--tls-cert", cert, "--tls-key", key]);
    let at = tls.url.trim_start_matches("https://").trim_end_matches('/').to_owned();
    let relay = Relay::start(at.parse().unwrap(), None);
    let proxy = relay.url();
    for engine in ENGINES {
        for pace in [&["-c", "3"][..], &["-c", "3", "--no-keepalive"], &["-c", "3", "-r", "1k/s"]] {
            let args = ["-n", "30", "--cacert", cert, "--engine", engine, "--json", "-"];
            // The server resolves the name itself: nobody here looks it up, and the port is always given.
            let url = "https://localhost/x";
            let record = record(&[&["load", url, "--proxy", &proxy], &args[..], pace].concat());
            assert_eq!(record["requests"]["ok"], 30, "{engine} {pace:?} {}", record["errors"]);
            let n_connects = if pace.len() == 3 { 30 } else { 3 };
            assert_eq!(record["connects"], n_connects, "{engine} {pace:?}");
            let heads = relay.heads();
            // Plus three probes.
            assert_eq!(heads.len(), n_connects + 3, "{engine} {pace:?}");
            let expected = "CONNECT localhost:443 HTTP/1.1\r\nHost: localhost:443\r\n\r\n";
            assert!(heads.iter().all(|head| head == expected), "{heads:?}");
        }
    }
}

#[test]
fn a_proxy_that_opens_no_tunnel_is_told_apart_from_the_server() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let cases = [
        (
            "HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n",
            "407 Proxy Authentication",
            "USER:PASSWORD",
        ),
        ("HTTP/1.1 502 No\r\nContent-Length: 0\r\n\r\n", "502 Bad Gateway", "log of the proxy may"),
        ("", "closed the connection", "curl -v -x"),
        ("hello\r\n\r\n", "CONNECT with bytes that are not HTTP", "curl -v -x"),
    ];
    for (refusal, why, help) in cases {
        let relay = Relay::start(nobody, Some(refusal));
        for engine in ENGINES {
            let args =
                ["-n", "8", "-c", "2", "--verify", "none", "--engine", engine, "--json", "-"];
            let proxy = relay.url();
            let load = ["load", "https://shop.invalid/", "--proxy", &proxy];
            let output = output(&[&load[..], &args[..]].concat());
            let record: Value = serde_json::from_str(&stdout(&output)).unwrap();
            assert_eq!(output.status.code(), Some(1));
            assert_eq!(record["errors"]["proxy"], 8, "{why}: {}", record["errors"]);
            let said = said(&output);
            assert!(said.contains(why) && said.contains(help), "{said}");
        }
        // The probe reports the same before the load.
        let proxy = relay.url();
        let output = output(&["load", "https://shop.invalid/", "--proxy", &proxy, "-n", "1"]);
        let said = said(&output);
        assert!(said.contains(why) && said.contains(help), "{said}");
    }
    let proxy = format!("http://{nobody}");
    let output = output(&["load", "http://shop.invalid/", "--proxy", &proxy, "-n", "1"]);
    assert_eq!(output.status.code(), Some(1));
    let said = said(&output);
    assert!(said.contains("the proxy 127.0.0.1") && said.contains("(--proxy)"), "{said}");
}

#[test]
fn several_hosts_share_the_connections_to_the_proxy_and_redirects_go_through_it() {
    let server = Planted::start(|seen| match seen.field("Host") {
        Some("a.invalid") => {
            let to = "Location: http://b.invalid/next\r\n";
            format!("HTTP/1.1 302 x\r\nContent-Length: 0\r\n{to}\r\n").into_bytes()
        }
        _ => reply("", "x"),
    });
    let relay = Relay::start(server.addr(), None);
    let proxy = format!("http://me:x@{}", relay.addr);
    let args = ["--proxy", &proxy, "-n", "20", "-c", "1", "--follow", "2", "--json", "-"];
    let record = record(&[&["load", "http://a.invalid/"], &args[..]].concat());
    assert_eq!((&record["requests"]["ok"], &record["connects"]), (&20.into(), &1.into()));
    let seen = server.take();
    let of_b: Vec<_> = seen.iter().filter(|s| s.field("Host") == Some("b.invalid")).collect();
    assert_eq!(of_b.len(), 20);
    for seen in of_b {
        assert_eq!(seen.line(), "GET http://b.invalid/next");
        assert_eq!(seen.field("Proxy-Authorization"), Some("Basic bWU6eA=="));
    }
}
