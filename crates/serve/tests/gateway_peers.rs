//! CGI and FastCGI tested with other people's programs: Python's wsgiref, which validates what it is told, Go's
//! net/http/cgi and net/http/fcgi, php-cgi and php-fpm, and git's http-backend, through which a repository is cloned
//! and pushed to. Under a model that blocks, a loop, and one of many processes. A program that is not installed
//! (`scripts/peers.sh` installs them) is a skip, printed and counted. Start reading at [`MODELS`].

mod support;

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use support::{FIXED, LONG, Server, Setup, eventually};
use sys::process::{Pid, Signal};

/// One that blocks in a thread, a loop, a pool of threads behind a loop, and one of many processes.
const MODELS: [&str; 4] = ["thread", "reactor", "pool", "prefork"];

/// The first of these programs that is installed; notes it if none is.
fn installed(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/local/go/bin:/usr/sbin:/sbin";
    let places = || path.split(':').map(Path::new);
    let all = names.iter().flat_map(|name| places().map(move |place| place.join(name)));
    let found = all.into_iter().find(|path| path.is_file());
    if found.is_none() {
        use std::io::Write as _;
        let line = format!("skipped, 1 test: {} is not installed (scripts/peers.sh)\n", names[0]);
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
    found
}

struct Site {
    outer: tempfile::TempDir,
}

impl Site {
    fn new() -> Self {
        let outer = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(outer.path().join("site/cgi-bin")).unwrap();
        Self { outer }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.outer.path().join(name)
    }

    fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, content).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn start(&self, model: &str, gateway: &str) -> Server {
        let log = self.path("error.log");
        let config = format!("[error_log]\nfile = \"{}\"\n[[gateway]]\n{gateway}", log.display());
        let content = self.path("site");
        Server::start(model, Setup { content: content.to_str().unwrap(), config: &config, ..FIXED })
    }

    fn errors(&self) -> String {
        std::fs::read_to_string(self.path("error.log")).unwrap_or_default()
    }
}

/// What curl would show: the status line and fields, and the body, chunks taken off.
fn ask(server: &Server, request: &str) -> String {
    let mut conn = server.connect();
    conn.send(request);
    let answer = String::from_utf8_lossy(&conn.rest()).into_owned();
    let Some((head, mut rest)) = answer.split_once("\r\n\r\n") else { return answer };
    if !head.contains("Transfer-Encoding: chunked") {
        return answer;
    }
    let mut whole = format!("{head}\r\n\r\n");
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        whole.push_str(&after[..size]);
        if size == 0 {
            break;
        }
        rest = &after[size + 2..];
    }
    whole
}

fn get(server: &Server, target: &str) -> String {
    ask(server, &format!("GET {target} HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n"))
}

fn post(server: &Server, target: &str, body: &str) -> String {
    ask(
        server,
        &format!(
            "POST {target} HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\
             Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ),
    )
}

const WSGI: &str = r#"
import sys
from wsgiref.handlers import CGIHandler
from wsgiref.validate import validator

def application(environ, start_response):
    body = environ['wsgi.input'].read(int(environ.get('CONTENT_LENGTH') or 0))
    text = repr([environ['REQUEST_METHOD'], environ['SCRIPT_NAME'], environ.get('PATH_INFO', ''),
                 environ['QUERY_STRING'], environ['SERVER_PROTOCOL'], environ['wsgi.url_scheme'],
                 body.decode()]).encode()
    start_response('200 OK', [('Content-Type', 'text/plain'), ('Content-Length', str(len(text)))])
    return [text]

CGIHandler().run(validator(application))
"#;

#[test]
fn wsgirefs_validator_has_nothing_to_say_against_the_environment() {
    let Some(python) = installed(&["python3"]) else { return };
    let site = Site::new();
    let python = python.canonicalize().unwrap();
    // pyenv's shims need an environment of their own.
    let real = Command::new(&python).args(["-c", "import sys; print(sys.executable)"]).output();
    let real = String::from_utf8(real.unwrap().stdout).unwrap();
    site.file("site/cgi-bin/app", &format!("#!{}{WSGI}", real.trim().to_owned() + "\n"));
    for model in MODELS {
        let server = site.start(model, "path = \"/cgi-bin/\"");
        let answer = post(&server, "/cgi-bin/app/a%20b?c=d&e", "x=y");
        let expected = "['POST', '/cgi-bin/app', '/a b', 'c=d&e', 'HTTP/1.1', 'http', 'x=y']";
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{model}: {answer}{}", site.errors());
        assert!(answer.ends_with(expected), "{model}: {answer}{}", site.errors());
        let answer = get(&server, "/cgi-bin/app");
        assert!(answer.ends_with("'', 'HTTP/1.1', 'http', '']"), "{model}: {answer}");
    }
    let errors = site.errors();
    assert!(!errors.contains("Traceback"), "{errors}");
}

const GO: &str = r#"package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/fcgi"
	"os"
)

func handle(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/early" || r.URL.Query().Get("early") != "" {
		// Answers before it has read anything.
		for i := 0; i < 1000; i++ {
			fmt.Fprintf(w, "%0999d\n", i)
		}
		return
	}
	body, err := io.ReadAll(r.Body)
	w.Header().Set("X-From", "go")
	w.WriteHeader(201)
	fmt.Fprintf(w, "%s %s %s %d %v %s", r.Method, r.URL.String(), r.Host, len(body), err, r.Header.Get("X-A"))
}

func main() {
	if len(os.Args) > 1 {
		listener, err := net.Listen("unix", os.Args[1])
		if err != nil {
			panic(err)
		}
		panic(fcgi.Serve(listener, http.HandlerFunc(handle)))
	}
	if info, err := os.Stdin.Stat(); err == nil && info.Mode()&os.ModeSocket != 0 {
		println("begins")
		if err := fcgi.Serve(nil, http.HandlerFunc(handle)); err != nil {
			panic(err)
		}
	}
	if err := cgi.Serve(http.HandlerFunc(handle)); err != nil {
		panic(err)
	}
}
"#;

/// Go's program, built once for a test.
fn build_go(site: &Site) -> Option<PathBuf> {
    let go = installed(&["go"])?;
    let source = site.file("main.go", GO);
    let program = site.path("site/cgi-bin/go");
    let built = Command::new(go)
        .args(["build", "-o"])
        .args([&program, &source])
        .env("GOFLAGS", "-mod=mod")
        .env("GOTOOLCHAIN", "local")
        .env("CGO_ENABLED", "0")
        .env("HOME", site.outer.path())
        .status()
        .unwrap();
    assert!(built.success());
    Some(program)
}

#[test]
fn gos_cgi_is_told_all_that_it_asks_for() {
    let site = Site::new();
    if build_go(&site).is_none() {
        return;
    }
    for model in MODELS {
        let server = site.start(model, "path = \"/cgi-bin/\"");
        let request = "PUT /cgi-bin/go/a?b=c HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\
                       X-A: it\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
        let answer = ask(&server, request);
        assert!(
            answer.starts_with("HTTP/1.1 201 Created\r\n"),
            "{model}: {answer}{}",
            site.errors()
        );
        assert!(answer.contains("\r\nX-From: go\r\n"), "{model}: {answer}");
        // Its URL has the host where REQUEST_URI is a path.
        assert!(answer.contains("/cgi-bin/go/a?b=c a.test 5 <nil> it"), "{model}: {answer}");
    }
}

/// A process that is ended with the test.
struct Ended(Child);

impl Drop for Ended {
    /// Asks it to end first: workers of php-fpm outlive a master that was killed.
    fn drop(&mut self) {
        let pid = Pid::from_raw(self.0.id() as i32).expect("it was started");
        sys::process::signal(pid, Signal::TERM);
        let start = Instant::now();
        while matches!(self.0.try_wait(), Ok(None)) {
            if start.elapsed() > LONG {
                let _ = self.0.kill();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

#[test]
fn gos_fastcgi_serves_on_kept_connections_and_after_it_was_started_again() {
    let site = Site::new();
    let Some(program) = build_go(&site) else { return };
    let socket = site.path("go.sock");
    let start = || {
        let _ = std::fs::remove_file(&socket);
        let child = Command::new(&program).arg(&socket).stderr(Stdio::null()).spawn().unwrap();
        eventually("the application listens", || {
            std::os::unix::net::UnixStream::connect(&socket).is_ok()
        });
        Ended(child)
    };
    for model in MODELS {
        let application = start();
        let gateway = format!(
            "path = \"/app/\"\nkind = \"fastcgi\"\nsocket = \"unix:{}\"\nconnections_kept_max = 2",
            socket.display()
        );
        let server = site.start(model, &gateway);
        let mut conn = server.connect();
        let body = "x".repeat(300_000);
        let request = |body: &str| {
            format!(
                "POST /app/a?b=c HTTP/1.1\r\nHost: a.test\r\nX-A: it\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            )
        };
        let check = |conn: &mut support::Conn, body: &str| {
            let response = conn.ask_any(&request(body));
            let text = String::from_utf8_lossy(&response.body).into_owned();
            assert_eq!(response.status(), 201, "{model}: {text}{}", site.errors());
            assert!(text.contains(&format!("/app/a?b=c a.test {} <nil> it", body.len())), "{text}");
        };
        check(&mut conn, &body);
        check(&mut conn, "");
        // The kept connection is closed now, and the application is a new one.
        drop(application);
        let application = start();
        check(&mut conn, "abc");
        // An answer of a megabyte that begins before the body was read.
        let early = format!(
            "POST /app/x?early=1 HTTP/1.1\r\nHost: a.test\r\nContent-Length: 8000000\r\n\r\n{}",
            "y".repeat(8_000_000)
        );
        let response = conn.ask_any(&early);
        assert_eq!((response.status(), response.body.len()), (200, 1_000_000), "{model}");
        drop(application);
        let response = conn.ask_any("GET /app/ HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(response.status(), 503, "{model}");
        assert!(response.head.contains("Retry-After: 1"), "{}", response.head);
    }
}

#[test]
fn an_application_that_the_server_starts_is_started_again_and_ends_with_it() {
    let site = Site::new();
    let Some(program) = build_go(&site) else { return };
    let path = program.to_str().unwrap();
    let running = || {
        let entries = std::fs::read_dir("/proc").unwrap().flatten();
        let is_it = |line: Vec<u8>| line.split(|&byte| byte == 0).next() == Some(path.as_bytes());
        let is_it = |entry: &std::fs::DirEntry| {
            std::fs::read(entry.path().join("cmdline")).is_ok_and(is_it)
        };
        let number = |entry: std::fs::DirEntry| entry.file_name().to_str()?.parse::<i32>().ok();
        let found = entries.filter(is_it).filter_map(number).filter_map(Pid::from_raw);
        found.collect::<Vec<_>>()
    };
    std::fs::create_dir(site.path("sockets")).unwrap();
    for model in support::models() {
        for signal in [Signal::TERM, Signal::INT, Signal::KILL] {
            let gateway = format!(
                "path = \"/app/\"\nkind = \"fastcgi\"\nbody_directory = \"{}\"\n\
                 spawn = {{ command = [\"{path}\"], count = 2 }}",
                site.path("sockets").display()
            );
            let mut server = site.start(model, &gateway);
            let answers = || {
                let answer = post(&server, "/app/a", "abc");
                assert!(answer.contains("/app/a a.test 3 <nil>"), "{model}: {answer}");
            };
            answers();
            eventually("both run", || running().len() == 2);
            running().into_iter().for_each(|pid| _ = sys::process::signal(pid, Signal::KILL));
            answers();
            eventually("both run again", || running().len() == 2);
            server.signal(signal);
            server.ended();
            eventually("none is left", || running().is_empty());
            let is_empty = || std::fs::read_dir(site.path("sockets")).unwrap().next().is_none();
            eventually("no socket is left", is_empty);
        }
    }
    let errors = site.errors();
    assert!(errors.contains("begins") && errors.contains("killed by signal 9"), "{errors}");
}

const PHP: &str = r#"<?php
header('X-Php: yes');
error_log("a line for the log");
echo $_SERVER['REQUEST_METHOD'], ' ', $_SERVER['SCRIPT_NAME'], ' ', $_SERVER['PATH_INFO'] ?? '-', ' ',
  $_GET['a'] ?? '-', ' ', $_POST['b'] ?? '-', ' ', $argc ?? 'no argc', ' ', PHP_SAPI;
"#;

fn php_answers(site: &Site, server: &Server, model: &str, sapi: &str) {
    let answer = post(server, "/page.php/more?a=1&-s", "b=2");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{model}: {answer}{}", site.errors());
    assert!(answer.contains("\r\nX-Php: yes\r\n"), "{model}: {answer}");
    let expected = format!("POST /page.php /more 1 2 no argc {sapi}");
    assert!(answer.ends_with(&expected), "{model}: {answer}");
    // As argument, -s would show the source (CVE-2012-1823).
    let answer = get(server, "/page.php?-s");
    assert!(answer.contains("GET /page.php ") && !answer.contains("<?php"), "{model}: {answer}");
    assert!(get(server, "/none.php").starts_with("HTTP/1.1 404 "), "{model}");
    assert!(get(server, "/text").ends_with("plain"), "{model}: a file is still a file");
}

#[test]
fn php_cgi_runs_the_scripts_of_the_site() {
    let Some(php) = installed(&["php-cgi"]) else { return };
    let site = Site::new();
    site.file("site/page.php", PHP);
    site.file("site/text", "plain");
    for model in MODELS {
        let gateway = format!("extension = \".php\"\ninterpreter = \"{}\"", php.display());
        php_answers(&site, &site.start(model, &gateway), model, "cgi-fcgi");
    }
    assert!(site.errors().contains("a line for the log"), "{}", site.errors());
}

#[test]
fn php_fpm_runs_the_scripts_of_the_site() {
    let names = ["php-fpm", "php-fpm8.2", "php-fpm8.4", "php-fpm8.3", "php-fpm8.1", "php-fpm7.4"];
    let Some(fpm) = installed(&names) else { return };
    let site = Site::new();
    site.file("site/page.php", PHP);
    site.file("site/text", "plain");
    let socket = site.path("fpm.sock");
    let log = site.path("fpm.log");
    let pool = format!(
        "[global]\nerror_log = {}\ndaemonize = no\n[www]\nuser = root\ngroup = root\nlisten = {}\n\
         pm = static\npm.max_children = 2\ncatch_workers_output = yes\n",
        log.display(),
        socket.display()
    );
    let config = site.file("fpm.conf", &pool);
    let mut command = Command::new(fpm);
    command.arg("-R").arg("-F").arg("-y").arg(config).stderr(Stdio::null());
    let _fpm = Ended(command.spawn().unwrap());
    eventually("php-fpm listens", || std::os::unix::net::UnixStream::connect(&socket).is_ok());
    for model in MODELS {
        for kept in [0, 1] {
            let gateway = format!(
                "extension = \".php\"\nkind = \"fastcgi\"\nsocket = \"unix:{}\"\n\
                 connections_kept_max = {kept}",
                socket.display()
            );
            php_answers(&site, &site.start(model, &gateway), model, "fpm-fcgi");
        }
    }
}

#[test]
fn git_clones_and_pushes_through_its_http_backend() {
    let Some(git) = installed(&["git"]) else { return };
    let exec = Command::new(&git).arg("--exec-path").output().unwrap();
    let exec = PathBuf::from(String::from_utf8(exec.stdout).unwrap().trim());
    if installed(&[exec.join("git-http-backend").to_str().unwrap()]).is_none() {
        return;
    }
    for model in MODELS {
        let site = Site::new();
        let run = |arguments: &[&str]| {
            let output = Command::new(&git)
                .args(arguments)
                .current_dir(site.outer.path())
                .env("HOME", site.outer.path())
                .env("GIT_CONFIG_NOSYSTEM", "1")
                .env("GIT_TERMINAL_PROMPT", "0")
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{model}: {arguments:?}: {said}{}", site.errors());
            String::from_utf8(output.stdout).unwrap()
        };
        run(&["init", "-q", "--bare", "repos/a.git"]);
        run(&["-C", "repos/a.git", "config", "http.receivepack", "true"]);
        let gateway = format!(
            "path = \"/git/\"\nscript = \"{}\"\n\
             env = {{ GIT_PROJECT_ROOT = \"{}\", GIT_HTTP_EXPORT_ALL = \"1\" }}",
            exec.join("git-http-backend").display(),
            site.path("repos").display()
        );
        let server = site.start(model, &gateway);
        let url = format!("http://{}/git/a.git", server.addr);
        run(&["clone", "-q", &url, "one"]);
        // More than git sends in one piece (http.postBuffer), so that it is chunked.
        let noise: Vec<u8> = (0..2_000_000_u64)
            .map(|n| (n.wrapping_mul(6_364_136_223_846_793_005).rotate_left(23) >> 13) as u8)
            .collect();
        std::fs::write(site.path("one/noise"), &noise).unwrap();
        run(&["-C", "one", "add", "noise"]);
        let author = ["-c", "user.name=a", "-c", "user.email=a@b"];
        run(&[&["-C", "one"], &author[..], &["commit", "-q", "-m", "noise"]].concat());
        run(&["-C", "one", "push", "-q", "origin", "HEAD:refs/heads/main"]);
        run(&["clone", "-q", "-b", "main", &url, "two"]);
        assert!(std::fs::read(site.path("two/noise")).unwrap() == noise, "{model}");
    }
}
