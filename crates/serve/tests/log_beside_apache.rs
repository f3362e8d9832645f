//! The access log beside Apache's: the same format and the same requests give the same lines. Needs
//! Debian's apache2; without it the test says that it was skipped. Start reading at the test.

#![allow(clippy::print_stderr, reason = "a test that cannot run here says why")]

mod support;

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use support::apache::Apache;
use support::{Conn, FIXED, Server, Setup, eventually};
use sys::process::Signal;

/// What is the same by nature: no times, no sizes of heads, no pages of errors. Nor %I, which in Apache
/// is now and then one more: a first byte of the next request that it has looked at.
const FORMAT: &str = "%h %a %l %u '%r' %s %>s %200,206,304b %200,206,304B %m %U '%q' %H %V %k %X \
                      '%{User-agent}i' '%{X-Two}i' '%{None}i' '%{Content-Range}o' \
                      %404{User-agent}i %!200,404{User-agent}i 100%%";

/// On one connection; then comes one of HTTP/1.0.
const KEPT: &[&str] = &[
    "GET /page.html?x=1&y HTTP/1.1\r\nHost: site.test:80\r\nUser-Agent: a\"b\\c\td\u{e9}\r\n\
     X-Two: 1\r\nX-Two: 2\r\n\r\n",
    "HEAD /page.html HTTP/1.1\r\nHost: site.test\r\n\r\n",
    "GET /a%20page.html HTTP/1.1\r\nHost: site.test\r\nUser-Agent: who\r\n\r\n",
    "GET /no-page?q HTTP/1.1\r\nHost: site.test\r\nUser-Agent: who\r\n\r\n",
    "GET /page.html HTTP/1.1\r\nHost: site.test\r\nIf-None-Match: *\r\nUser-Agent: who\r\n\r\n",
    "GET /page.html HTTP/1.1\r\nHost: site.test\r\nRange: bytes=0-9\r\n\r\n",
    "GET /page.html HTTP/1.1\r\nHost: site.test\r\nConnection: close\r\n\r\n",
];
const OLD: &str = "GET /page.html HTTP/1.0\r\nHost: site.test\r\n\r\n";

fn ask_all(addr: SocketAddr) {
    let mut conn = Conn::to(addr);
    for request in KEPT {
        conn.send(request);
        if request.starts_with("HEAD") || request.contains("If-None-Match") {
            conn.head();
        } else {
            conn.response();
        }
    }
    conn.rest();
    let mut old = Conn::to(addr);
    old.send(OLD);
    old.rest();
}

/// But for what a server is asked to see whether it is there. In one order: a child writes its lines
/// when it has some, or when it ends.
fn lines(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let mut lines: Vec<_> =
        text.lines().filter(|line| line.contains("page")).map(str::to_owned).collect();
    lines.sort_unstable();
    lines
}

#[test]
fn the_same_format_and_requests_give_the_lines_of_apache() {
    let settings = [
        "UseCanonicalName=Off",
        &format!("LogFormat=\"{FORMAT}\" joust"),
        "CustomLog=theirs joust",
    ];
    let Some(apache) = Apache::start("prefork", &settings) else {
        eprintln!("skipped: there is no /usr/sbin/apache2 (scripts/peers.sh installs it)");
        return;
    };
    let root = apache.dir.path().join("root");
    fs::write(root.join("page.html"), [b'x'; 100]).unwrap();
    fs::write(root.join("a page.html"), [b'y'; 50]).unwrap();
    ask_all(apache.addr);
    let theirs = apache.dir.path().join("theirs");
    eventually("Apache has logged all", || lines(&theirs).len() == KEPT.len() + 1);

    let ours = apache.dir.path().join("ours");
    let config = format!("[access_log]\nformat = \"{FORMAT}\"\n");
    let setup =
        Setup { content: root.to_str().unwrap(), log: Some(&ours), config: &config, ..FIXED };
    let mut server = Server::start("prefork", setup);
    ask_all(server.addr);
    server.signal(Signal::TERM);
    assert!(server.ended().success());
    // Apache's %k counts the requests after which the connection goes on, so that the one that ends it
    // has the number of the one before; its manual, as we, knows no such exception.
    let counted = |line: String| line.replace(" 5 - '", " 6 - '");
    assert_eq!(lines(&ours), lines(&theirs).into_iter().map(counted).collect::<Vec<_>>());
}
