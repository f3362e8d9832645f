//! Edge cases of what programs are asked for, shown and told: a directory whose index is a program, targets with a host
//! in them, statuses without content. Beside `gateway`, which has the rules of RFC 3875. Start reading at [`Site`].

mod support;

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use support::{FIXED, Response, Server, Setup, models};

/// What must never be sent.
const SOURCE: &str = "<?secret source ?>";

/// Scripts `*.run`, for which an interpreter is started that says what it was told; `cgi-bin`; and a server.
struct Site {
    directory: tempfile::TempDir,
    server: Server,
}

impl Site {
    fn start(model: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        for place in ["site/app", "site/both", "site/plain", "site/a b", "site/cgi-bin"] {
            std::fs::create_dir_all(path(place)).unwrap();
        }
        for script in ["site/app/index.run", "site/both/index.run", "site/a b/index.run"] {
            std::fs::write(path(script), SOURCE).unwrap();
        }
        std::fs::write(path("site/both/index.html"), "both").unwrap();
        std::fs::write(path("site/plain/index.html"), "plain").unwrap();
        let says = "echo Content-Type: text/plain; echo; echo \"ran $SCRIPT_NAME $QUERY_STRING\"";
        program(path("interpreter"), says);
        program(path("site/cgi-bin/leads"), "echo 'Location: /app/?from=cgi'; echo");
        program(path("site/cgi-bin/env"), "echo Content-Type: text/plain; echo; exec env");
        program(
            path("site/cgi-bin/reset"),
            "printf 'Status: 205 Reset Content\\nContent-Type: text/plain\\nContent-Length: 4\\n\\nbody'",
        );
        let config = format!(
            "index = [\"index.html\", \"index.run\"]\n\
             [[gateway]]\npath = \"/cgi-bin/\"\n\
             [[gateway]]\nextension = \".run\"\ninterpreter = \"{}\"\n",
            path("interpreter").display()
        );
        let content = path("site");
        let settings = &["MaxKeepAliveRequests=0"];
        let content = content.to_str().unwrap();
        let setup = Setup { content, config: &config, settings, ..FIXED };
        let server = Server::start(model, setup);
        Self { directory, server }
    }

    fn ask(&self, request: &str) -> Response {
        self.server.connect().ask_any(request)
    }

    fn get(&self, target: &str) -> Response {
        self.ask(&format!("GET {target} HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n"))
    }

    fn body(&self, target: &str) -> String {
        String::from_utf8(self.get(target).body).unwrap()
    }
}

fn program(path: PathBuf, script: &str) {
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_directory_whose_index_is_a_program_runs_it_and_never_shows_its_source() {
    for model in models() {
        let site = Site::start(model);
        let cases = [
            ("/app/", "ran /app/index.run \n"),
            ("/app/?a=b&c", "ran /app/index.run a=b&c\n"),
            ("/app//./", "ran /app/index.run \n"),
            ("/a%20b/?x", "ran /a b/index.run x\n"),
            ("/app/index.run?d", "ran /app/index.run d\n"),
            // The first index that exists counts.
            ("/both/", "both"),
            ("/plain/", "plain"),
            // A redirect within the server has the same result.
            ("/cgi-bin/leads", "ran /app/index.run from=cgi\n"),
        ];
        for (target, expected) in cases {
            assert_eq!(site.body(target), expected, "{model}, {target}");
        }
        let head = site.ask("HEAD /app/ HTTP/1.0\r\n\r\n");
        assert_eq!(head.status(), 200, "{model}");
        assert!(!head.head.contains("ETag"), "{model}: that of a file: {}", head.head);
    }
}

#[test]
fn an_index_that_comes_or_goes_is_seen_within_a_second_on_one_connection() {
    let site = Site::start("reactor");
    let mut conn = site.server.connect();
    let request = "GET /app/ HTTP/1.1\r\nHost: a\r\n\r\n";
    let mut comes_to = |expected: &str| {
        support::eventually("the index is seen", || {
            let body = String::from_utf8(conn.ask_any(request).body).unwrap();
            assert!(!body.contains(SOURCE), "{body}");
            body == expected
        });
    };
    comes_to("ran /app/index.run \n");
    let page = site.directory.path().join("site/app/index.html");
    std::fs::write(&page, "a page").unwrap();
    comes_to("a page");
    std::fs::remove_file(&page).unwrap();
    comes_to("ran /app/index.run \n");
}

#[test]
fn the_host_of_an_absolute_target_is_what_a_program_is_told() {
    let site = Site::start("reactor");
    let cases = [
        ("http://b.test:81/cgi-bin/env?q", "b.test", "b.test:81", "/cgi-bin/env?q"),
        ("/cgi-bin/env", "a.test", "a.test", "/cgi-bin/env"),
    ];
    for (target, name, host, uri) in cases {
        let body = site.body(target);
        for expected in [
            format!("SERVER_NAME={name}"),
            format!("HTTP_HOST={host}"),
            format!("REQUEST_URI={uri}"),
        ] {
            assert!(body.lines().any(|line| line == expected), "{target}: {expected} in {body}");
        }
    }
}

#[test]
fn a_205_has_no_content_whatever_the_program_writes() {
    let site = Site::start("reactor");
    let mut conn = site.server.connect();
    for _ in 0..2 {
        let answer = conn.ask("GET /cgi-bin/reset HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!((answer.status(), answer.body.len()), (205, 0));
        assert!(answer.head.contains("Content-Length: 0\r\n"), "{}", answer.head);
    }
}

/// Reads the records of a request, up to the empty one that ends its body; returns whether there was one.
fn read_request(stream: &mut TcpStream) -> bool {
    const STDIN: u8 = 5;
    loop {
        let mut header = [0; 8];
        if stream.read_exact(&mut header).is_err() {
            return false;
        }
        let content = usize::from(u16::from_be_bytes([header[4], header[5]]));
        let mut rest = vec![0; content + usize::from(header[6])];
        stream.read_exact(&mut rest).unwrap();
        if header[1] == STDIN && content == 0 {
            return true;
        }
    }
}

/// An application that answers the first request of each connection, keeps the connection, and closes it when it has
/// read all of the second. Returns its address, and how many requests it has read.
fn dies_of_the_second() -> (std::net::SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let read = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&read);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, count) = (stream.unwrap(), Arc::clone(&count));
            std::thread::spawn(move || {
                for is_first in [true, false] {
                    if !read_request(&mut stream) {
                        return;
                    }
                    count.fetch_add(1, SeqCst);
                    if is_first {
                        let answer = b"Status: 200\n\ndone";
                        stream.write_all(&[1, 6, 0, 1, 0, answer.len() as u8, 0, 0]).unwrap();
                        stream.write_all(answer).unwrap();
                        stream
                            .write_all(&[1, 3, 0, 1, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
                            .unwrap();
                    }
                }
            });
        }
    });
    (address, read)
}

#[test]
fn what_may_not_be_made_twice_is_never_sent_twice_to_an_application() {
    for (method, second, requests) in [("GET", 200, 3), ("PUT", 200, 3), ("POST", 502, 2)] {
        let (address, read) = dies_of_the_second();
        let config = format!(
            "[[gateway]]\npath = \"/\"\nkind = \"fastcgi\"\nsocket = \"tcp:{address}\"\n\
             connections_kept_max = 1\n"
        );
        let server = Server::start("reactor", Setup { config: &config, ..FIXED });
        let mut conn = server.connect();
        let request = format!("{method} / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi");
        assert_eq!(conn.ask_any(&request).status(), 200, "{method}");
        assert_eq!(conn.ask_any(&request).status(), second, "{method}");
        assert_eq!(read.load(SeqCst), requests, "{method}");
    }
}

#[test]
fn an_application_that_nobody_runs_is_named_with_the_reason() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("error.log");
    let config = format!(
        "[error_log]\nfile = \"{}\"\n\
         [[gateway]]\npath = \"/\"\nkind = \"fastcgi\"\nsocket = \"tcp:{address}\"\n",
        log.display()
    );
    for model in ["reactor", "prefork"] {
        let server = Server::start(model, Setup { config: &config, ..FIXED });
        assert_eq!(server.connect().ask_any("GET / HTTP/1.1\r\nHost: a\r\n\r\n").status(), 503);
    }
    let text = std::fs::read_to_string(&log).unwrap();
    let why = format!("no application accepts the request: tcp:{address}: Connection refused");
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("no application")).collect();
    assert!(lines.len() == 2 && lines.iter().all(|line| line.contains(&why)), "{text}");
    assert!(!text.contains("before:"), "{text}");
}
