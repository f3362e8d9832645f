//! `joust load` over TLS, against nginx with a generated certificate. Start reading at
//! [`a_certificate_is_trusted_by_its_file_alone`].

use std::path::Path;

use serde_json::Value;

use crate::load::record;
use crate::planted::{Nginx, certificate};
use crate::{output, said};

/// nginx in a folder with its certificate; `None` without nginx or openssl.
fn start(dir: &Path) -> Option<Nginx> {
    std::fs::create_dir(dir.join("site")).unwrap();
    std::fs::write(dir.join("site/index.html"), "hello").unwrap();
    certificate(dir)?;
    Nginx::start(dir)
}

#[test]
fn a_certificate_is_trusted_by_its_file_alone() {
    let dir = tempfile::tempdir().unwrap();
    let Some(nginx) = start(dir.path()) else { return };
    let ca = dir.path().join("cert.pem");
    let url = |host: &str| format!("https://{host}:{}/", nginx.port);
    let trusting = ["--cacert", ca.to_str().unwrap(), "-n", "40", "-c", "2", "--json", "-"];
    for host in ["localhost", "127.0.0.1"] {
        let record = record(&[&["load", &url(host)], &trusting[..]].concat());
        assert_eq!(record["requests"]["ok"], 40, "{host}");
    }
    let any = ["--insecure", "-n", "40", "-c", "2", "--json", "-"];
    assert_eq!(record(&[&["load", &url("127.0.0.1")], &any[..]].concat())["requests"]["ok"], 40);
    let to = format!("other.example:{0}:127.0.0.1:{0}", nginx.port);
    let cases: [(&str, &[&str], &[&str]); 2] = [
        ("127.0.0.1", &[], &["--cacert", "--insecure"]),
        ("other.example", &[&trusting[..2], &["--connect-to", &to]].concat(), &["other.example"]),
    ];
    for (host, flags, words) in cases {
        for verify in ["none", "length"] {
            let few = ["-n", "2", "-c", "1", "--verify", verify, "--quiet"];
            let output = output(&[&["load", &url(host)], flags, &few].concat());
            let said = said(&output);
            assert_eq!(output.status.code(), Some(1), "{host}: {said}");
            words.iter().for_each(|word| assert!(said.contains(word), "{word}: {said}"));
        }
    }
}

#[test]
fn the_share_of_resumed_handshakes_is_as_asked() {
    let dir = tempfile::tempdir().unwrap();
    let Some(nginx) = start(dir.path()) else { return };
    let url = format!("https://localhost:{}/", nginx.port);
    let run = |share: &str| {
        let args = ["--insecure", "--no-keepalive", "-n", "60", "-c", "2", "--verify", "none"];
        let share = ["--tls-resume", share, "--json", "-"];
        let record = record(&[&["load", &url], &args[..], &share].concat());
        assert_eq!(record["requests"]["ok"], 60);
        let of = |kind: &str| record["tls"][kind].as_u64().unwrap();
        (of("full"), of("resumed"), record)
    };
    let (full, resumed, never) = run("0%");
    assert_eq!((full, resumed), (60, 0));
    assert!(never["handshake_full_ms"]["mean"].is_number(), "they are timed");
    assert!(never["handshake_resumed_ms"]["mean"].is_null());
    let (full, resumed, always) = run("100%");
    assert_eq!(full + resumed, 60);
    // The first handshake of each connection has no session to resume, and so has one whose ticket is in use.
    assert!(full <= 10, "{full} full of 60");
    assert!(always["handshake_resumed_ms"]["mean"].is_number());
}

#[test]
fn one_version_can_be_offered_alone() {
    let dir = tempfile::tempdir().unwrap();
    let Some(nginx) = start(dir.path()) else { return };
    let url = format!("https://localhost:{}/", nginx.port);
    for (typed, words) in [("1.2", "1.2"), ("1.3", "1.3")] {
        let args = ["--insecure", "--tls-version", typed, "-n", "4", "--json", "-"];
        let record: Value = record(&[&["load", &url], &args[..]].concat());
        assert!(record["tls"]["version"].as_str().unwrap().contains(words), "{}", record["tls"]);
    }
}

#[test]
fn plain_http_to_a_server_that_speaks_tls_is_said_to_be_that() {
    let dir = tempfile::tempdir().unwrap();
    let Some(nginx) = start(dir.path()) else { return };
    // nginx answers it: 400, "The plain HTTP request was sent to HTTPS port".
    let url = format!("http://localhost:{}/", nginx.port);
    let output = output(&["load", &url, "-n", "4", "--verify", "none"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(crate::stdout(&output).contains("400"), "{}", crate::stdout(&output));
}
