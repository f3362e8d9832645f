//! Hosts of one server: to whose log a line goes, under every model and however requests arrive. `site.rs` tests that a
//! site is chosen by its name; rotation and rights are tests of the binary. Start reading at [`Place`].

mod support;

use std::fs;
use std::path::PathBuf;

use support::{Conn, FIXED, Server, Setup, eventually, models};
use sys::process::Signal;

/// A directory for logs, and a server; `{dir}` in the configuration is that directory.
struct Place {
    directory: tempfile::TempDir,
    server: Server,
}

impl Place {
    fn start(model: &str, config: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let config = config.replace("{dir}", directory.path().to_str().unwrap());
        let log = directory.path().join("top.log");
        let setup = Setup { content: "--fixed=10", log: Some(&log), config: &config, ..FIXED };
        Self { server: Server::start(model, setup), directory }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn lines(&self, name: &str) -> Vec<String> {
        let text = fs::read_to_string(self.path(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Ends the server, so that all lines are in their files.
    fn end(&mut self) {
        self.server.signal(Signal::TERM);
        assert!(self.server.ended().success());
    }
}

const HOSTS: &str = "[access_log]\nformat = \"%V %U %>s\"\n\
    [[host]]\nnames = [\"a.test\"]\nfixed = 20\naccess_log = { file = \"{dir}/a.log\" }\n\
    [[host]]\nnames = [\"b.test\"]\nfixed = 30\n\
    access_log = { file = \"{dir}/b.log\", format = \"b %r %I %O %B %k\" }\n\
    [[host]]\nnames = [\"c.test\"]\nfixed = 40\naccess_log = { format = \"c %U\" }\n\
    [[host]]\nnames = [\"d.test\"]\nfixed = 50\naccess_log = { file = \"off\" }\n";

fn request(host: &str, target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n")
}

#[test]
fn a_line_goes_to_the_log_of_its_host_under_every_model() {
    for model in models() {
        let mut place = Place::start(model, HOSTS);
        let mut conn = Conn::to(place.server.addr);
        let hosts =
            [("a.test", 20), ("b.test", 30), ("c.test", 40), ("d.test", 50), ("e.test", 10)];
        for (host, length) in hosts {
            for target in ["/1", "/1", "/2"] {
                assert_eq!(conn.ask(&request(host, target)).body.len(), length, "{model}");
            }
        }
        drop(conn);
        // A request without a host belongs to the default one.
        let mut conn = Conn::to(place.server.addr);
        conn.send("GET / HTTP/1.1\r\n\r\n");
        conn.rest();
        place.end();
        assert_eq!(place.lines("a.log"), ["a.test /1 200", "a.test /1 200", "a.test /2 200"]);
        let begins: Vec<_> = place
            .lines("b.log")
            .iter()
            .map(|line| line.split(" HTTP").next().unwrap().to_owned())
            .collect();
        assert_eq!(begins, ["b GET /1", "b GET /1", "b GET /2"], "{model}");
        let mut top = place.lines("top.log");
        // Under some models two processes write there.
        top.sort_unstable();
        let unread = "127.0.0.1 / 400";
        let of_e = ["e.test /1 200", "e.test /1 200", "e.test /2 200"];
        assert_eq!(top, [&[unread, "c /1", "c /1", "c /2"][..], &of_e].concat(), "{model}");
    }
}

/// Bytes of a request and of its answer are its own, whichever hosts come before it on the connection,
/// and whether those have a log.
#[test]
fn requests_of_many_hosts_in_one_packet_are_told_apart() {
    let mut place = Place::start("reactor", HOSTS);
    let mut conn = Conn::to(place.server.addr);
    let hosts = ["d.test", "b.test", "a.test", "d.test", "b.test"];
    let all: String = hosts.iter().map(|host| request(host, "/x")).collect();
    conn.send(all);
    let answers: Vec<_> = hosts.iter().map(|_| conn.response()).collect();
    drop(conn);
    place.end();
    let lines = place.lines("b.log");
    let bytes_in = request("b.test", "/x").len();
    let line = |at: usize| {
        let out = answers[at].head.len() + 30;
        format!("b GET /x HTTP/1.1 {bytes_in} {out} 30 {at}")
    };
    assert_eq!(lines, [line(1), line(4)]);
    assert_eq!(place.lines("a.log").len(), 1);
    assert!(place.lines("top.log").is_empty());
}

#[test]
fn a_malformed_request_is_told_of_by_the_default_host_and_not_by_the_first() {
    let directory = tempfile::tempdir().unwrap();
    let log = |name: &str| directory.path().join(name);
    let config = format!(
        "model = \"reactor\"\nlisten = \"127.0.0.1:0\"\n\
         [[host]]\nnames = [\"a.test\"]\nfixed = 1\naccess_log = {{ file = {:?} }}\n\
         [[host]]\nnames = [\"b.test\"]\ndefault = true\nfixed = 1\naccess_log = {{ file = {:?} }}\n",
        log("a.log"),
        log("b.log")
    );
    let typed = joust_serve::CommandLine::default().resolve_with("joust.toml", &config).unwrap();
    let service = joust_serve::Service::bind(typed).unwrap();
    let now = units::Nanos::from_secs(1000);
    let mut exchange = site::exchange::Exchange::new(&service, service.address(), now);
    exchange.receive_from(b"GET / HTTP/9\r\n\r\n", now);
    exchange.lost(now);
    service.log.flush();
    let lines = |name: &str| fs::read_to_string(log(name)).unwrap().lines().count();
    assert_eq!((lines("a.log"), lines("b.log")), (0, 1));
}

/// For any host, with files or without, and whatever happens to the file later: it may no longer be readable.
#[test]
fn an_error_page_from_outside_of_the_site_stands_for_its_status() {
    let outside = tempfile::tempdir().unwrap();
    let file = |name: &str| outside.path().join(name).display().to_string();
    fs::write(file("gone.html"), "<p>gone</p>").unwrap();
    fs::write(file("denied.txt"), "x".repeat(300_000)).unwrap();
    let config = format!(
        "[errors]\n400 = {{ file = {:?} }}\n\
         [[rule]]\nprefix = \"/denied\"\ndeny = 403\n[[rule]]\nprefix = \"/gone\"\ndeny = 410\n\
         [[host]]\nnames = [\"a.test\"]\nfixed = 3\ncharset = \"latin1\"\n\
         errors = {{ 403 = {{ file = {:?} }}, 410 = {{ file = {:?} }} }}\n",
        file("gone.html"),
        file("denied.txt"),
        file("gone.html"),
    );
    for model in models() {
        fs::write(file("gone.html"), "<p>gone</p>").unwrap();
        let place = Place::start(model, &config);
        fs::remove_file(file("gone.html")).unwrap();
        let mut conn = Conn::to(place.server.addr);
        for _ in 0..2 {
            let gone = conn.ask(&request("a.test", "/gone"));
            assert_eq!((gone.status(), &gone.body[..]), (410, &b"<p>gone</p>"[..]), "{model}");
            assert!(gone.head.contains("Content-Type: text/html; charset=latin1\r\n"));
            assert!(!gone.head.contains("ETag"), "it is of another status");
            let denied = conn.ask(&request("a.test", "/denied"));
            assert_eq!((denied.status(), denied.body.len()), (403, 300_000), "{model}");
            assert_eq!(conn.ask(&request("a.test", "/")).status(), 200, "{model}");
        }
        conn.send(request("a.test", "/gone").replace("GET", "HEAD"));
        assert!(conn.head().contains("Content-Length: 11\r\n"), "{model}");
        let other = conn.ask(&request("b.test", "/gone"));
        assert!(
            other.status() == 410 && other.body != b"<p>gone</p>",
            "the top has none of its own"
        );
        conn.send("GET / HTTP/1.1\r\n\r\n");
        assert!(conn.response().body == b"<p>gone</p>", "{model}");
    }
}

#[test]
fn hosts_that_name_one_file_write_to_it_once_each_with_its_own_format() {
    let hosts: String = (0..200)
        .map(|n| {
            format!(
                "[[host]]\nnames = [\"h{n}.test\"]\nfixed = 1\n\
                 access_log = {{ file = \"{{dir}}/shared.log\", format = \"{n} %V\" }}\n"
            )
        })
        .collect();
    let place = Place::start("reactors", &hosts);
    let mut conn = Conn::to(place.server.addr);
    for n in [0, 7, 199] {
        conn.ask(&request(&format!("h{n}.test"), "/"));
    }
    // They are written without an end or a flush.
    eventually("the lines are there", || place.lines("shared.log").len() == 3);
    assert_eq!(place.lines("shared.log"), ["0 h0.test", "7 h7.test", "199 h199.test"]);
    let opened = fs::read_dir(format!("/proc/{}/fd", place.server.pid().as_raw_nonzero())).unwrap();
    let is_log =
        |fd: &fs::DirEntry| fs::read_link(fd.path()).is_ok_and(|path| path.ends_with("shared.log"));
    assert_eq!(opened.flatten().filter(is_log).count(), 1);
    let threads = place.server.threads();
    assert_eq!(threads.iter().filter(|name| *name == "access-log").count(), 1, "{threads:?}");
}
