//! Against `openssl s_server`, over TCP: what OpenSSL reports about the connection. Start reading at [`Server`].

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use joust_wire::tls::{Handshake, Resumption, TlsClient, TlsClientConfig, TlsOptions};

use crate::config;
use crate::peer::{Authority, Identity, Pipe, Site, trusting};

/// An `openssl s_server -www` on a free port, which describes each connection in a page. It is killed at the end of the
/// test.
struct Server {
    child: Child,
    address: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    /// With further `flags`; `None` without openssl.
    fn start(authority: &Authority, folder: &Path, flags: &[&str]) -> Option<Self> {
        if is_missing() {
            return None;
        }
        let identity = authority.issue(&["localhost"]);
        std::fs::write(folder.join("chain.pem"), &identity.chain).unwrap();
        std::fs::write(folder.join("key.pem"), &identity.key).unwrap();
        std::fs::write(folder.join("ca.pem"), authority.pem()).unwrap();
        let mut child = Command::new("openssl")
            .args(["s_server", "-www", "-accept", "127.0.0.1:0", "-alpn", "http/1.1"])
            .args(["-cert", "chain.pem", "-key", "key.pem"])
            .args(flags)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let accept = lines.map_while(Result::ok).find(|line| line.starts_with("ACCEPT"));
        let address = accept.expect("s_server says where it listens")["ACCEPT ".len()..].to_owned();
        Some(Self { child, address })
    }

    /// Requests the page over one connection.
    fn ask(&self, config: &TlsClientConfig, resumption: Resumption) -> (TlsClient, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut conn = TlsClient::new(config, "localhost", resumption).unwrap();
        conn.send(b"GET / HTTP/1.0\r\n\r\n").unwrap();
        let (mut page, mut buf) = (Vec::new(), [0; 4096]);
        loop {
            let mut out = Vec::new();
            conn.take_output(&mut out);
            stream.write_all(&out).unwrap();
            let n = stream.read(&mut buf).unwrap();
            if n == 0 || conn.feed(&buf[..n], &mut page).unwrap().peer_closed {
                break;
            }
        }
        conn.end().unwrap();
        (conn, String::from_utf8(page).unwrap())
    }
}

/// Whether openssl is missing; notes the skipped test.
fn is_missing() -> bool {
    let missing = Command::new("openssl").arg("version").output().is_err();
    if missing {
        skips::note("openssl is not installed (apt-get install openssl)");
    }
    missing
}

#[test]
fn openssl_agrees_on_what_was_full_and_what_was_resumed() {
    let authority = Authority::new("ours");
    // Without tickets, the server stores sessions: by their id, or as tickets that it accepts once.
    let servers: [&[&str]; 4] =
        [&["-tls1_2"], &["-tls1_2", "-no_ticket"], &["-tls1_3"], &["-tls1_3", "-no_ticket"]];
    for flags in servers {
        let folder = tempfile::tempdir().unwrap();
        let Some(server) = Server::start(&authority, folder.path(), flags) else { return };
        let mut options = trusting(&authority);
        options.alpn = vec!["http/1.1".to_owned()];
        let client = config(&options);
        let plan = [
            (Resumption::Offer, Handshake::Full),
            (Resumption::Offer, Handshake::Resumed),
            (Resumption::Fresh, Handshake::Full),
            (Resumption::Offer, Handshake::Resumed),
            (Resumption::Offer, Handshake::Resumed),
        ];
        for (at, (resumption, wanted)) in plan.into_iter().enumerate() {
            let (conn, page) = server.ask(&client, resumption);
            assert_eq!(conn.handshake(), Some(wanted), "{flags:?}, {at}");
            let word = if wanted == Handshake::Resumed { "Reused" } else { "New" };
            let version = conn.version().unwrap();
            let said = page.lines().find(|said| said.contains(", Cipher is"));
            let said = said.unwrap_or_else(|| panic!("no line on the session in: {page}"));
            let line = format!("{word}, {}", version.replace("TLS ", "TLSv"));
            assert!(said.starts_with(&line), "{flags:?}, {at}: {said} is not {line}");
            assert_eq!(flags[0], format!("-{}", version.replace("TLS ", "tls").replace('.', "_")));
            assert_eq!(conn.alpn(), Some(&b"http/1.1"[..]));
        }
    }
}

#[test]
fn openssl_takes_our_client_certificate() {
    let authority = Authority::new("ours");
    let user = authority.issue(&["user"]);
    let options = TlsOptions {
        client_cert_pem: Some(user.chain.into_bytes()),
        client_key_pem: Some(user.key.into_bytes()),
        ..trusting(&authority)
    };
    let demand = ["-Verify", "2", "-verify_return_error", "-CAfile", "ca.pem"];
    for version in ["-tls1_2", "-tls1_3"] {
        let folder = tempfile::tempdir().unwrap();
        let flags = [&demand[..], &[version]].concat();
        let Some(server) = Server::start(&authority, folder.path(), &flags) else { return };
        let (_, page) = server.ask(&config(&options), Resumption::Fresh);
        assert!(page.contains("Client certificate\n"), "{version}: {page}");
    }
}

/// Many guides end with `openssl x509 -req`, which made certificates of version 1 before OpenSSL 3.
#[test]
fn a_certificate_of_version_1_is_called_that() {
    if is_missing() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let openssl = |args: &str| {
        let run = Command::new("openssl").args(args.split(' ')).current_dir(&folder).output();
        let run = run.unwrap();
        assert!(run.status.success(), "openssl {args}: {}", String::from_utf8_lossy(&run.stderr));
        String::from_utf8(run.stdout).unwrap()
    };
    openssl("genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out key.pem");
    openssl("req -new -key key.pem -subj /CN=localhost -out csr.pem");
    openssl("x509 -req -in csr.pem -signkey key.pem -out chain.pem");
    if !openssl("x509 -in chain.pem -noout -text").contains("Version: 1 (0x0)") {
        return skips::note("this openssl makes certificates of version 3 only");
    }
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    let server = Site::new(Identity { chain: read("chain.pem"), key: read("key.pem") }).config();
    for insecure in [false, true] {
        let ca_pem = Some(Authority::new("ours").pem().into_bytes());
        let options = TlsOptions { insecure, ca_pem, ..TlsOptions::default() };
        let mut pipe = Pipe::new(&config(&options), "localhost", Resumption::Fresh, &server);
        let text = pipe.run().unwrap_err().to_string();
        assert!(text.contains("version 1") && text.contains("-addext"), "{text}");
    }
}
