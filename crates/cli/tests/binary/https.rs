//! `joust serve` with TLS across reloads: tickets stay valid, and a second port redirects plain requests, tested with
//! openssl and curl. Start reading at [`secure`].

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;

use crate::hosts::answer;
use crate::reload::{Site, kill, models, until};
use crate::rights::{content, is_root};

/// The configuration of a TLS server whose certificate is in its folder.
fn secure(site: &Site, model: &str, bytes: usize, more: &str) -> String {
    let pem = site.file("both.pem");
    if !pem.exists() {
        let made = wire::tls::self_signed(&["localhost"]).unwrap();
        std::fs::write(&pem, [made.chain, made.key].concat()).unwrap();
    }
    format!(
        "model = \"{model}\"\nfixed = {bytes}\n[tls]\nsession_cache = 0\n{more}\n\
         [[tls.certificate]]\nchain = {pem:?}\nkey = {pem:?}\n"
    )
}

/// The output of a program; `None`: the program does not exist.
fn run(program: &str, args: &[&str]) -> Option<String> {
    let output = Command::new(program).args(args).stdin(std::process::Stdio::null()).output();
    let Ok(output) = output else {
        skips::note(format_args!("there is no {program} here"));
        return None;
    };
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn a_session_is_resumed_after_a_reload() {
    for model in ["prefork", "reactor", "reactors"] {
        let site = Site::start(&format!("model = \"{model}\"\nfixed = 10\n"));
        let addr = site.address();
        let url = format!("https://{addr}/");
        let length = |bytes| {
            let served = run("curl", &["-sk", &url]);
            served.is_none_or(|body| body.len() == bytes)
        };
        site.reload(&secure(&site, model, 20, ""));
        until("TLS", || length(20));
        let kept = site.file("session");
        let kept = kept.to_str().unwrap();
        let client = |flag| run("openssl", &["s_client", "-connect", &addr, "-tls1_2", flag, kept]);
        let Some(first) = client("-sess_out") else { return };
        assert!(first.contains("New, TLSv1.2"), "{model}: {first}");
        for bytes in [30, 40] {
            site.reload(&secure(&site, model, bytes, ""));
            until("the new answer", || length(bytes));
            let next = client("-sess_in").unwrap();
            assert!(next.contains("Reused, TLSv1.2"), "{model}: {next}");
        }
        site.ends_well();
    }
}

/// The address that redirects plain requests.
fn plain_address(site: &Site) -> String {
    site.says("plain requests at ");
    let errors = site.errors();
    let last = errors.rsplit("plain requests at ").next().unwrap();
    last.split(' ').next().unwrap().to_owned()
}

/// RFC 8555, 8.3: a certificate authority requests this from the host without TLS, and must not be redirected to a
/// certificate that does not exist yet. The serving processes are confined and, under root, another user.
#[test]
fn challenges_of_acme_are_served_in_plain_from_the_site_of_their_host_and_nothing_else_is() {
    let site = Site::start("model = \"reactor\"\nfixed = 10\n");
    let (top, own) = (content(&site, "top", 20), content(&site, "own", 30));
    for path in [&top, &own] {
        let folder = format!("{path}/.well-known/acme-challenge");
        std::fs::create_dir_all(format!("{folder}/sub")).unwrap();
        std::fs::write(format!("{folder}/token"), path).unwrap();
        std::fs::write(format!("{folder}/.hidden"), "x").unwrap();
        std::fs::write(format!("{path}/.well-known/other"), "x").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", format!("{folder}/out")).unwrap();
    }
    let user = if is_root() { "user = \"nobody\"\n" } else { "" };
    let log = site.file("own.log");
    let config = |except: &str| {
        let tls =
            secure(&site, "reactor", 0, &format!("redirect_from = \"127.0.0.1:0\"\n{except}"));
        tls.replace("fixed = 0\n", &format!("directory = {top:?}\n{user}"))
            + &format!(
                "[[rule]]\nprefix = \"/\"\ndeny = 403\n\
                 [[host]]\nnames = [\"own.test\"]\ndirectory = {own:?}\n\
                 access_log = {{ file = {log:?}, format = \"%U %>s\" }}\n\
                 [[host]]\nnames = [\"fixed.test\"]\nfixed = 5\n"
            )
    };
    site.reload(&config(""));
    let plain = plain_address(&site);
    let token = "/.well-known/acme-challenge/token";
    assert!(answer(&plain, "top.test", token).ends_with(&format!("\r\n\r\n{top}")));
    let told = answer(&plain, "own.test", &token.replace("acme", "%61cme"));
    assert!(
        told.starts_with("HTTP/1.1 200") && told.ends_with(&format!("\r\n\r\n{own}")),
        "{told}"
    );
    let status = |host: &str, target: &str| answer(&plain, host, target)[9..12].to_owned();
    let cases = [
        ("/.well-known/acme-challenge/none", "404"),
        ("/.well-known/acme-challenge/.hidden", "404"),
        ("/.well-known/acme-challenge/out", "403"),
        ("/.well-known/acme-challenge/", "403"),
        ("/.well-known/acme-challenge", "301"),
        ("/.well-known/acme-challenge/../other", "301"),
        ("/.well-known/acme-challenge/..%2fother", "301"),
        ("/.well-known/other", "301"),
        ("/page", "301"),
        ("/", "301"),
    ];
    for (target, expected) in cases {
        assert_eq!(status("own.test", target), expected, "{target}");
    }
    assert_eq!(status("fixed.test", token), "301", "it has no files");
    until("lines of the host's own log", || {
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        text.lines().count() == cases.len() + 1 && text.contains("/page 301\n")
    });
    for (except, target, expected) in [
        ("redirect_except = []", token, "301"),
        ("redirect_except = [\"/a/\", \"/pa/\"]", token, "301"),
        ("redirect_except = [\"/\"]", "/page", "200"),
    ] {
        site.reload(&config(except));
        let is_so = || answer(&plain_address(&site), "own.test", target)[9..12] == *expected;
        until(except, || std::net::TcpStream::connect(plain_address(&site)).is_ok() && is_so());
    }
    site.ends_well();
}

#[test]
fn plain_requests_are_still_sent_on_when_a_process_of_either_port_was_killed() {
    let site = Site::start("model = \"reactor\"\nfixed = 10\n");
    site.reload(&secure(&site, "reactor", 20, "redirect_from = \"127.0.0.1:0\""));
    let plain = plain_address(&site);
    let is_sent_on = || {
        let mut client = TcpStream::connect(&plain).unwrap();
        client.write_all(b"GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).is_ok() && answer.starts_with("HTTP/1.1 301")
    };
    until("two processes", || site.generations().len() == 2);
    assert!(is_sent_on());
    let [serving, redirecting] = site.generations()[..] else { panic!("two processes") };
    kill("KILL", redirecting);
    site.says("that redirects plain requests to TLS was restarted");
    assert!(is_sent_on());
    assert_eq!(site.generations().len(), 2);
    assert!(site.generations().contains(&serving));
    site.ends_well();
}

#[test]
fn plain_requests_are_sent_on_to_tls_and_still_are_after_reloads() {
    for model in models() {
        let site = Site::start(&format!("model = \"{model}\"\nfixed = 10\n"));
        let port = site.address().rsplit_once(':').unwrap().1.to_owned();
        let more = "redirect_from = \"127.0.0.1:0\"";
        site.reload(&secure(&site, model, 20, more));
        site.says(&format!("to TLS on port {port}"));
        let errors = site.errors();
        let plain = errors.split("plain requests at ").nth(1).unwrap().split(' ').next().unwrap();
        let ask = |args: &[&str]| {
            let url = format!("http://{plain}/a%20b?c=d");
            let form = "%{http_code} %{redirect_url}";
            let args = [&["-s", "-o", "/dev/null", "-w", form, &url], args].concat();
            run("curl", &args)
        };
        let place = format!("https://127.0.0.1:{port}/a%20b?c=d");
        let Some(told) = ask(&[]) else { return };
        assert_eq!(told, format!("301 {place}"), "{model}");
        assert_eq!(ask(&["-d", "x=y"]).unwrap(), format!("308 {place}"), "{model}");
        let named = ask(&["-H", "Host: www.example.org:80"]).unwrap();
        assert_eq!(named, format!("301 https://www.example.org:{port}/a%20b?c=d"));
        let followed = run("curl", &["-skL", &format!("http://{plain}/x")]).unwrap();
        assert_eq!(followed.len(), 20, "{model}");
        // The port continues through a reload.
        site.reload(&secure(&site, model, 30, more));
        let followed = || run("curl", &["-skL", &format!("http://{plain}/x")]).unwrap().len();
        until("the new answer", || {
            let length = followed();
            assert!(length == 20 || length == 30, "{model}: {length}");
            length == 30
        });
        until("two processes", || site.generations().len() == 2);
        site.reload(&secure(&site, model, 40, ""));
        until("the port is closed", || std::net::TcpStream::connect(plain).is_err());
        until("one process", || site.generations().len() == 1);
        site.reload(&secure(&site, model, 50, more));
        until("two processes", || site.generations().len() == 2);
        site.ends_well();
    }
}
