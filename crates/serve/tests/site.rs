//! What a site makes of a request, checked with other people's programs: curl, brotli, zstd, gzip, htpasswd. Each test
//! has one server of the model reactor; `conformance.rs` tests that all models answer alike. Start reading at
//! [`Place`].

#![allow(clippy::print_stderr, reason = "a test that cannot run here says why")]

mod support;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use support::{Conn, Response, Server};

/// A directory with a site in it, and a server.
struct Place {
    directory: tempfile::TempDir,
    server: Server,
}

impl Place {
    /// `files` beneath `site`, and a configuration that may say `{dir}` for the directory around it.
    fn new(files: &[(&str, &[u8])], config: &str) -> Self {
        Self::logged(files, config, None)
    }

    fn logged(files: &[(&str, &[u8])], config: &str, log: Option<&Path>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let place = |name: &str| directory.path().join("site").join(name);
        std::fs::create_dir(directory.path().join("site")).unwrap();
        for (name, content) in files {
            std::fs::create_dir_all(place(name).parent().unwrap()).unwrap();
            std::fs::write(place(name), content).unwrap();
        }
        let server = start(directory.path().to_path_buf(), config, log);
        Self { directory, server }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Sends a request with that line and further fields.
    fn ask(&self, line: &str, fields: &str) -> Response {
        let mut conn = self.server.connect();
        conn.ask(&format!("{line} HTTP/1.1\r\nHost: test\r\n{fields}\r\n"))
    }

    /// The head of the answer to HEAD.
    fn head(&self, target: &str, fields: &str) -> String {
        let mut conn = self.server.connect();
        head_of(&mut conn, &format!("HEAD {target} HTTP/1.1\r\nHost: test\r\n{fields}\r\n"))
    }

    /// What curl writes to its standard output.
    fn curl(&self, target: &str, options: &[&str]) -> Vec<u8> {
        let url = format!("http://{}{target}", self.server.addr);
        let done = Command::new("curl").args(["-sS", &url]).args(options).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        done.stdout
    }
}

fn start(directory: PathBuf, config: &str, log: Option<&Path>) -> Server {
    let config = config.replace("{dir}", directory.to_str().unwrap());
    let content = directory.join("site");
    let content = content.to_str().unwrap();
    Server::start("reactor", support::Setup { content, log, config: &config, ..support::FIXED })
}

fn head_of(conn: &mut Conn, request: &str) -> String {
    conn.send(request);
    conn.head()
}

/// The value of a field, which may occur only once.
fn field<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    let mut values = head
        .lines()
        .filter_map(|line| line.split_once(": "))
        .filter_map(|(n, value)| n.eq_ignore_ascii_case(name).then_some(value.trim_end()));
    let value = values.next();
    assert_eq!(values.next(), None, "{name} stands twice in {head}");
    value
}

/// What a program makes of `input`; `None` if it is not installed.
fn through(program: &str, args: &[&str], input: &[u8]) -> Option<Vec<u8>> {
    let child =
        Command::new(program).args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let Ok(mut child) = child else {
        skips::note(format_args!("{program} is not installed (scripts/peers.sh)"));
        return None;
    };
    let mut to = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::spawn(move || to.write_all(&input));
    let done = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(done.status.success(), "{program} refuses what it was given");
    Some(done.stdout)
}

/// Text that is worth a coding and differs from line to line.
fn text(lines: u32) -> Vec<u8> {
    (0..lines)
        .flat_map(|n| format!("line {n}: {:x}\n", n.wrapping_mul(2_654_435_761)).into_bytes())
        .collect()
}

const CODED: &str = "[compression]\n";
const DECODERS: [(&str, &str); 3] = [("br", "brotli"), ("zstd", "zstd"), ("gzip", "gzip")];

#[test]
fn what_was_put_into_a_coding_is_decoded_by_its_own_program() {
    let content = text(5000);
    let place = Place::new(&[("a.txt", &content)], CODED);
    for (coding, program) in DECODERS {
        let answer = place.ask("GET /a.txt", &format!("Accept-Encoding: {coding}\r\n"));
        assert_eq!(field(&answer.head, "content-encoding"), Some(coding));
        assert_eq!(field(&answer.head, "vary"), Some("Accept-Encoding"));
        assert!(answer.body.len() < content.len() / 2, "{coding}: {}", answer.body.len());
        if let Some(decoded) = through(program, &["-dc"], &answer.body) {
            assert!(decoded == content, "{program} decodes something else");
        }
        let head = place.head("/a.txt", &format!("Accept-Encoding: {coding}\r\n"));
        assert_eq!(field(&head, "content-length"), field(&answer.head, "content-length"));
        assert_eq!(field(&head, "etag"), field(&answer.head, "etag"));
    }
    let plain = place.ask("GET /a.txt", "");
    assert_eq!((field(&plain.head, "content-encoding"), &plain.body), (None, &content));
    assert_eq!(field(&plain.head, "vary"), Some("Accept-Encoding"));
    assert!(place.curl("/a.txt", &["--compressed"]) == content);
}

#[test]
fn each_coding_has_a_strong_tag_of_its_own_and_conditions_hold_for_it_alone() {
    let place = Place::new(&[("a.txt", &text(500))], CODED);
    let codings = ["br", "zstd", "gzip", "identity"];
    let tags: Vec<String> = codings
        .iter()
        .map(|coding| {
            let head = place.head("/a.txt", &format!("Accept-Encoding: {coding}\r\n"));
            field(&head, "etag").unwrap().to_owned()
        })
        .collect();
    for (at, coding) in codings.iter().enumerate() {
        for (other, tag) in tags.iter().enumerate() {
            let fields = format!("Accept-Encoding: {coding}\r\nIf-None-Match: {tag}\r\n");
            let status = place.head("/a.txt", &fields)[9..12].to_owned();
            assert_eq!(status, if at == other { "304" } else { "200" }, "{coding} {tag}");
        }
        assert!(!tags[at].starts_with("W/"));
    }
    let fields = format!("Accept-Encoding: gzip\r\nIf-None-Match: {}\r\n", tags[2]);
    let unchanged = place.head("/a.txt", &fields);
    assert_eq!(field(&unchanged, "vary"), Some("Accept-Encoding"), "{unchanged}");
}

#[test]
fn what_lies_ready_in_a_coding_goes_first_if_it_is_not_older_nor_hidden() {
    let (plain, gz, br) = (text(50), &b"gz, ready"[..], &b"br, ready"[..]);
    let place = Place::new(
        &[
            ("a.txt", &plain),
            ("a.txt.br", br),
            ("a.txt.gz", gz),
            ("b.png", &[0; 5000]),
            ("b.png.gz", gz),
            ("c.png", &[1; 5000]),
        ],
        "hide = [\"*.br\"]\n[compression]\n",
    );
    let body = |target: &str, accepts: &str| {
        place.ask(&format!("GET {target}"), &format!("Accept-Encoding: {accepts}\r\n")).body
    };
    assert_eq!(body("/a.txt", "br, gzip, zstd"), gz, "one is hidden, another lies ready");
    assert_eq!(body("/b.png", "gzip"), gz, "whatever its media type");
    assert_eq!(body("/b.png", "gzip;q=0.5, identity"), [0; 5000]);
    assert_eq!(place.ask("GET /a.txt.br", "").status(), 404);
    assert_eq!(field(&place.head("/c.png", "Accept-Encoding: gzip\r\n"), "vary"), None);
    assert_eq!(field(&place.head("/b.png", ""), "vary"), Some("Accept-Encoding"));
    let range = place.ask("GET /b.png", "Accept-Encoding: gzip\r\nRange: bytes=4-8\r\n");
    assert_eq!((range.status(), &range.body[..]), (206, &b"ready"[..]));
    assert_eq!(field(&range.head, "content-encoding"), Some("gzip"));
    assert_eq!(field(&range.head, "content-range"), Some("bytes 4-8/9"));
    // From now on it is older than the plain file.
    let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
    let gz = std::fs::File::options().write(true).open(place.path("site/b.png.gz")).unwrap();
    gz.set_modified(old).unwrap();
    support::eventually("an older sibling is passed over", || body("/b.png", "gzip") == [0; 5000]);
}

#[test]
fn who_takes_nothing_that_there_is_gets_406_and_a_range_is_of_the_plain_one() {
    let content = text(500);
    let place = Place::new(&[("a.txt", &content), ("small.txt", b"small")], CODED);
    let none = place.ask("GET /a.txt", "Accept-Encoding: identity;q=0\r\n");
    assert_eq!((none.status(), field(&none.head, "vary")), (406, Some("Accept-Encoding")));
    assert_eq!(place.ask("GET /a.txt", "Accept-Encoding: *;q=0\r\n").status(), 406);
    let forced = place.ask("GET /a.txt", "Accept-Encoding: *;q=0, gzip\r\n");
    assert_eq!(field(&forced.head, "content-encoding"), Some("gzip"));
    let small = place.ask("GET /small.txt", "Accept-Encoding: identity;q=0\r\n");
    assert_eq!((small.status(), field(&small.head, "vary")), (200, None), "no choice, no refusal");
    let range = place.ask("GET /a.txt", "Accept-Encoding: gzip\r\nRange: bytes=0-3\r\n");
    assert_eq!((range.status(), &range.body[..]), (206, &content[..4]));
    assert_eq!(field(&range.head, "content-encoding"), None);
}

#[test]
fn a_file_that_changes_is_put_into_its_coding_anew() {
    let place = Place::new(&[("a.txt", &text(500))], CODED);
    let coded = || place.curl("/a.txt", &["--compressed"]);
    assert_eq!(coded(), text(500));
    std::fs::write(place.path("site/a.txt"), text(600)).unwrap();
    support::eventually("the new content is sent", || coded() == text(600));
}

#[test]
fn a_listing_is_json_for_who_asks_for_it() {
    let place = Place::new(
        &[("d/b.txt", b"12345"), ("d/a&b/x", b""), ("d/.hidden", b""), ("d/c~", b"")],
        "listing = true\nhide = [\"*~\"]\n",
    );
    for (target, fields) in
        [("GET /d/", "Accept: application/json\r\n"), ("GET /d/?format=json", "")]
    {
        let answer = place.ask(target, fields);
        assert_eq!(field(&answer.head, "content-type"), Some("application/json"));
        assert_eq!(field(&answer.head, "vary"), Some("Accept"));
        let listed: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
        let names: Vec<_> =
            listed["entries"].as_array().unwrap().iter().map(|e| e["name"].as_str()).collect();
        assert_eq!(names, [Some("a&b"), Some("b.txt")]);
        assert_eq!(
            (listed["entries"][1]["size"].as_u64(), listed["path"].as_str()),
            (Some(5), Some("/d/"))
        );
        assert_eq!(listed["entries"][0]["href"].as_str(), Some("./a%26b/"));
    }
    let page = place.ask("GET /d/", "Accept: text/html\r\n");
    assert_eq!(field(&page.head, "content-type"), Some("text/html; charset=utf-8"));
    assert_eq!(place.ask("GET /d/c~", "").status(), 404);
}

/// The head of the answer to GET for a host.
fn asked_of(place: &Place, host: &str, target: &str) -> Response {
    let mut conn = place.server.connect();
    conn.ask(&format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n"))
}

#[test]
fn a_host_is_chosen_by_its_name_and_what_is_unknown_gets_the_default_one() {
    let config = "\
        [[host]]\nnames = [\"a.test\", \"www.a.test\"]\ndirectory = \"{dir}/site/a\"\n\
        [[host]]\nnames = [\"*.a.test\"]\ndirectory = \"{dir}/site/star\"\n\
        [[host]]\nnames = [\"fixed.test\"]\nfixed = 5\n";
    let files: &[(&str, &[u8])] =
        &[("x", b"top"), ("a/x", b"a"), ("star/x", b"star"), ("a/index.html", b"index of a")];
    let place = Place::new(files, config);
    let cases = [
        ("a.test", "a"),
        ("A.TEST.:80", "a"),
        ("www.a.test", "a"),
        ("b.a.test", "star"),
        ("fixed.test", "joust"),
        ("other.test", "top"),
        ("..", "top"),
        ("a.test.evil", "top"),
    ];
    let mut conn = place.server.connect();
    for (host, expected) in cases {
        let answer = conn.ask(&format!("GET /x HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        assert_eq!(String::from_utf8_lossy(&answer.body), expected, "{host}");
    }
    // A client that cannot name a host (RFC 9112, 3.2).
    assert_eq!(place.server.connect().ask("GET /x HTTP/1.0\r\n\r\n").body, b"top");
    // RFC 9112, 3.2.2: the target's authority takes precedence.
    let absolute = asked_of(&place, "a.test", "http://b.a.test/x");
    assert_eq!(absolute.body, b"star");
    let strict = Place::new(files, &format!("refuse_unknown_hosts = true\n{config}"));
    assert_eq!(asked_of(&strict, "other.test", "/x").status(), 421);
    assert_eq!(asked_of(&strict, "a.test", "/x").status(), 200);
}

#[test]
fn rules_send_clients_on_within_the_host_and_in_one_line() {
    let place = Place::new(
        &[("new/page", b"page"), ("gone", b"x")],
        "[[rule]]\nprefix = \"/old\"\nredirect = \"/$1\"\nstatus = 301\n\
         [[rule]]\nregex = '^/u/(?<name>[^/]+)$'\nredirect = \"https://example.org/~${name}\"\nstatus = 308\nkeep_query = false\n\
         [[rule]]\nglob = \"/in/*\"\nrewrite = \"/new/$1\"\n\
         [[rule]]\nprefix = \"/gone\"\ndeny = 410\n\
         [[rule]]\nprefix = \"/\"\nmethods = [\"DELETE\"]\ndeny = 403\n\
         [[rule]]\nprefix = \"/up\"\nheader = \"X-Up\"\nheader_matches = \"^(a|b)$\"\ndeny = 429\n\
         [[rule]]\nprefix = \"/host\"\nredirect = \"https://${host}/\"\nstatus = 307\n\
         [[rule]]\nprefix = \"/away\"\nredirect = \"https://example.org/to/$1\"\n",
    );
    let told = |target: &str| {
        let head = place.head(target, "");
        (head[9..12].to_owned(), field(&head, "location").unwrap_or("").to_owned())
    };
    let cases = [
        ("/old/a?x=1", "301", "/a?x=1"),
        // `$1` begins with a slash here, and what begins with two is another host.
        ("/old//evil.test/", "301", "/evil.test/"),
        ("/old/%5cevil.test", "301", "/%5Cevil.test"),
        ("/old/%0d%0aSet-Cookie:x", "301", "/%0D%0ASet-Cookie:x"),
        ("/old/../old/b", "301", "/b"),
        ("/%6fld/c", "301", "/c"),
        ("/u/ann?x", "308", "https://example.org/~ann"),
        ("/u/a%22b", "308", "https://example.org/~a%22b"),
        ("/gone", "410", ""),
        ("/host?q", "307", "https://test/?q"),
        ("/up", "404", ""),
        // One slash between what is written and what a prefix leaves.
        ("/away/a//b", "302", "https://example.org/to/a/b"),
        ("/away", "302", "https://example.org/to/"),
    ];
    for (target, status, location) in cases {
        assert_eq!(told(target), (status.to_owned(), location.to_owned()), "{target}");
    }
    assert_eq!(place.ask("GET /in/page", "").body, b"page");
    assert_eq!(place.ask("GET /in/..%5c", "").status(), 404);
    assert_eq!(place.ask("DELETE /x", "").status(), 403);
    assert_eq!(place.ask("GET /up", "X-Up: b\r\n").status(), 429);
    assert_eq!(place.ask("GET /up", "X-Up: c\r\n").status(), 404);
}

#[test]
fn rules_change_heads_of_every_status_and_each_answer_has_its_own() {
    let place = Place::new(
        &[("a.css", b"a {}"), ("b.txt", b"b")],
        "[[rule]]\nset = { \"X-Content-Type-Options\" = \"nosniff\", Server = \"x\" }\n\
         [[rule]]\nglob = \"/**.css\"\nadd = { Cache-Control = \"max-age=60\" }\nremove = [\"ETag\"]\n\
         [[rule]]\nheader = \"X-Want\"\nadd = { X-Wanted = \"yes\" }\n",
    );
    let mut conn = place.server.connect();
    for _ in 0..3 {
        for (target, extra) in
            [("/a.css", ""), ("/b.txt", ""), ("/a.css", "X-Want: 1\r\n"), ("/none", "")]
        {
            for _ in 0..2 {
                let answer = conn.ask(&format!("GET {target} HTTP/1.1\r\nHost: t\r\n{extra}\r\n"));
                let head = &answer.head;
                assert_eq!(field(head, "x-content-type-options"), Some("nosniff"), "{head}");
                assert_eq!(field(head, "server"), Some("x"));
                assert_eq!(field(head, "cache-control").is_some(), target == "/a.css", "{head}");
                assert_eq!(field(head, "etag").is_some(), target == "/b.txt", "{head}");
                assert_eq!(field(head, "x-wanted").is_some(), !extra.is_empty(), "{head}");
            }
        }
    }
}

#[test]
fn an_error_has_the_page_of_the_site_and_keeps_its_status() {
    let place = Place::new(
        &[("404.html", b"<p>not here"), ("e/none", b"")],
        "[errors]\n404 = \"/404.html\"\n403 = \"/missing.html\"\n",
    );
    let missing = place.ask("GET /nothing", "");
    assert_eq!((missing.status(), &missing.body[..]), (404, &b"<p>not here"[..]));
    assert_eq!(field(&missing.head, "etag"), None);
    let head = place.head("/nothing", "If-None-Match: *\r\n");
    assert_eq!((&head[9..12], field(&head, "content-length")), ("404", Some("11")));
    let listed = place.ask("GET /e/", "");
    assert_eq!(listed.status(), 403, "its page is missing: the built-in one");
    assert!(String::from_utf8_lossy(&listed.body).contains("403 Forbidden"));
    assert_eq!(place.ask("GET /404.html", "").status(), 200);
}

/// A password file as Apache's own program makes it.
fn htpasswd(path: &std::path::Path, user: &str, password: &str) -> bool {
    let args = ["-c", "-b", "-B", "-C", "4"];
    let made = Command::new("htpasswd").args(args).arg(path).args([user, password]).output();
    let Ok(made) = made else {
        skips::note("htpasswd is not installed (scripts/peers.sh)");
        return false;
    };
    assert!(made.status.success());
    true
}

#[test]
fn a_guarded_path_needs_a_password_of_htpasswds_file_as_it_is_now() {
    let outer = tempfile::tempdir().unwrap();
    let file = outer.path().join("users");
    if !htpasswd(&file, "ann", "s3cret:\u{e4}") {
        return;
    }
    let log = outer.path().join("log");
    let config = format!(
        "[[rule]]\nprefix = \"/private/\"\nauth = {{ realm = \"staff\", file = {file:?} }}\n"
    );
    let place = Place::logged(&[("private/x", b"secret"), ("x", b"open")], &config, Some(&log));
    let status = |target: &str, user: &str| {
        let options = ["-o", "/dev/null", "-w", "%{http_code}", "--path-as-is", "-u", user];
        String::from_utf8(place.curl(target, &options)).unwrap()
    };
    assert_eq!(place.ask("GET /x", "").status(), 200);
    let challenged = place.ask("GET /private/x", "");
    assert_eq!(challenged.status(), 401);
    let expected = "Basic realm=\"staff\", charset=\"UTF-8\"";
    assert_eq!(field(&challenged.head, "www-authenticate"), Some(expected));
    for target in ["/private/x", "/x/../private/x", "//private//x", "/%70rivate/x", "/private"] {
        assert_eq!(status(target, "ann:wrong"), "401", "{target}");
        assert_ne!(status(target, "ann:s3cret:\u{e4}"), "401", "{target}");
    }
    assert_eq!(status("/private/x", "bob:s3cret:\u{e4}"), "401");
    assert_eq!(place.curl("/private/x", &["-u", "ann:s3cret:\u{e4}"]), b"secret");
    support::eventually("the user is in the log", || {
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        text.lines().any(|line| line.contains(" - ann [") && line.contains("\" 200 6"))
    });
    // After the file was replaced, the old password is refused within a second, even on an open connection.
    assert!(htpasswd(&file, "bob", "new"));
    support::eventually("the new file counts", || status("/private/x", "bob:new") == "200");
    assert_eq!(status("/private/x", "ann:s3cret:\u{e4}"), "401");
    std::fs::remove_file(&file).unwrap();
    support::eventually("without the file nobody passes", || {
        status("/private/x", "bob:new") == "500"
    });
}
