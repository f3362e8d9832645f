//! `joust http_load` and `joust weighttp`, whose originals are not packaged: their documented layouts
//! (docs/classic-tools.md), against servers that answer as a test says. Owns the cases. Measured figures are masked,
//! determined ones are compared exactly. Start reading at [`Run`].

use std::io::Write as _;
use std::process::Command;

use super::ab::scripted::Manner;
use super::{Server, joust};

/// The results of a run.
struct Run {
    stdout: String,
    stderr: String,
    code: Option<i32>,
}

/// Runs `joust LINE` with `http://127.0.0.1:PORT` for `URL`; measured figures become `#`.
fn run(line: &str, port: u16) -> Run {
    let line = line.replace("URL", &format!("http://127.0.0.1:{port}"));
    let words: Vec<&str> = line.split_whitespace().collect();
    let output = joust(&words).output().expect("it starts");
    let text = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes).replace(&port.to_string(), "PORT");
        text.lines().filter_map(masked).map(|line| line + "\n").collect()
    };
    Run { stdout: text(&output.stdout), stderr: text(&output.stderr), code: output.status.code() }
}

/// The line of rates is only printed if a run took more than 10 ms, and is removed.
fn masked(line: &str) -> Option<String> {
    let is_measured = line.starts_with("msecs/") || line.starts_with("finished in ");
    Some(match line.split_once(", in ") {
        _ if line.contains(" fetches/sec, ") => return None,
        Some((counts, _)) if line.ends_with(" seconds") => format!("{counts}, in # seconds"),
        _ if is_measured => {
            let number = |word: &str| word.starts_with(|c: char| c.is_ascii_digit());
            let word = |word| if number(word) { "#" } else { word };
            line.split(' ').map(word).collect::<Vec<_>>().join(" ")
        }
        _ => line.to_owned(),
    })
}

/// A file of URLs of that server.
fn urls(port: u16, paths: &[&str]) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    for path in paths {
        writeln!(file, "http://127.0.0.1:{port}{path}").unwrap();
    }
    file
}

/// http_load on a server with that behaviour.
fn fetched(manner: Manner, flags: &str) -> Run {
    let server = manner.start();
    let file = urls(server.port(), &["/a"]);
    let line = format!("http_load --no-footnotes {flags} {}", file.path().display());
    run(&line, server.port())
}

#[test]
fn http_load_reports_in_its_layout() {
    let Run { stdout, stderr, code } = fetched(Manner::Lengths, "-parallel 1 -fetches 6");
    let expected = "6 fetches, 1 max parallel, 34 bytes, in # seconds\n\
        5.66667 mean bytes/connection\n\
        msecs/connect: # mean, # max, # min\n\
        msecs/first-response: # mean, # max, # min\n\
        2 bad byte counts\n\
        HTTP response codes:\n\
        \x20 code 200 -- 6\n";
    assert_eq!(stdout, expected);
    assert_eq!(stderr, "http://127.0.0.1:PORT/a: byte count wrong\n".repeat(2));
    assert_eq!(code, Some(0));
    let checked = fetched(Manner::Lengths, "-checksum -p 1 -f 6");
    assert_eq!(checked.stdout, expected.replace("byte counts", "checksums"));
    assert_eq!(checked.stderr, "http://127.0.0.1:PORT/a: checksum wrong\n".repeat(2));
    let sound = fetched(Manner::Plain, "-c -p 2 -f 6").stdout;
    assert!(!sound.contains(" bad ") && sound.starts_with("6 fetches, 2 max parallel, 30 bytes"));
    let by_rate = fetched(Manner::Plain, "-rate 100 -jitter -fetches 6");
    assert!(by_rate.stdout.contains("\n  code 200 -- 6\n"), "{}", by_rate.stdout);
}

#[test]
fn http_load_asks_for_urls_at_random_byte_for_byte() {
    let server = Manner::Plain.start();
    let port = server.port();
    let file = urls(port, &["/a?b", ""]);
    let path = file.path().display();
    let host = "Host: 127.0.0.1\r\nUser-Agent: http_load 12mar2006\r\n\r\n";
    for flags in ["", "-checksum"] {
        let out = run(&format!("http_load {flags} -p 3 -f 40 {path}"), port).stdout;
        assert!(out.contains("\n  code 200 -- 40\n"), "{out}");
        let mut asked = server.asked();
        assert_eq!(asked.len(), 40);
        asked.sort();
        asked.dedup();
        let text = |asked: &Vec<u8>| String::from_utf8_lossy(asked).into_owned();
        let asked: Vec<String> = asked.iter().map(text).collect();
        let line = |target: &str| format!("GET {target} HTTP/1.0\r\n{host}");
        assert_eq!(asked, [line("/"), line("/a?b")], "{flags}");
    }
    let through = format!("http_load -proxy 127.0.0.1:{port} -p 1 -f 1 {path}");
    let other = std::fs::write(&file, "http://example.test/x\n").map(|()| run(&through, port));
    assert_eq!(other.unwrap().code, Some(0));
    let expected = "GET http://example.test:80/x HTTP/1.0\r\nHost: example.test\r\n\
        User-Agent: http_load 12mar2006\r\n\r\n";
    assert_eq!(server.asked(), [expected.as_bytes()]);
}

#[test]
fn http_load_counts_what_was_lost_as_fetches() {
    let hung = fetched(Manner::Hangs, "-timeout 1 -p 1 -f 6");
    assert!(hung.stdout.contains("\n1 timeouts\n1 bad byte counts\nHTTP"), "{}", hung.stdout);
    let url = "http://127.0.0.1:PORT/a";
    assert_eq!(hung.stderr, format!("{url}: timed out\n{url}: byte count wrong\n"));
    let reset = fetched(Manner::ResetBefore, "-p 1 -f 6");
    assert!(reset.stdout.starts_with("6 fetches, 1 max parallel, 25 bytes"), "{}", reset.stdout);
    assert!(reset.stdout.ends_with("HTTP response codes:\n  code 200 -- 5\n"));
    // Nobody listens on port 1.
    let file = urls(1, &["/"]);
    let Run { stdout, stderr, code } =
        run(&format!("http_load --no-footnotes -p 2 -f 2 {}", file.path().display()), 1);
    let expected = "2 fetches, 2 max parallel, 0 bytes, in # seconds\n\
        0 mean bytes/connection\nHTTP response codes:\n";
    assert_eq!((stdout.replace("PORT", "1").as_str(), code), (expected, Some(0)));
    assert_eq!(stderr.matches(": Connection refused\n").count(), 2);
}

#[test]
fn http_load_says_what_is_wrong_with_its_arguments() {
    let said = |line: &str| {
        let Run { stdout, stderr, code } = run(&format!("http_load {line}"), 9);
        assert_eq!((stdout.as_str(), code), ("", Some(1)), "{line}");
        stderr
    };
    assert!(said("").starts_with("usage:  http_load [-checksum] [-throttle]"));
    assert_eq!(said("-p 0 -f 1 x"), "http_load: parallel must be at least 1\n");
    assert_eq!(said("-p 1 -f 1 /nonexistent/x"), "/nonexistent/x: No such file or directory\n");
    let mut file = tempfile::NamedTempFile::new().unwrap();
    writeln!(file, "http://a/\n").unwrap();
    let line = format!("-p 1 -f 1 {}", file.path().display());
    let first = said(&line);
    assert!(first.ends_with("http_load: unknown protocol - \n"), "{first}");
    for refused in ["-throttle", "-Throttle 9"] {
        let text = said(&format!("{refused} -p 1 -f 1 x"));
        assert!(text.contains("is not supported: it simulates a reader"), "{text}");
    }
}

const BANNER: &str = "weighttp 0.4 - a lightweight and simple webserver benchmarking tool\n\n";

#[test]
fn weighttp_reports_in_its_layout() {
    let server = Manner::Plain.start();
    let Run { stdout, stderr, code } =
        run("weighttp --no-footnotes -n 5 -c 2 -t 2 URL/", server.port());
    // Progress is printed at the end of an interval; the last line before the report.
    let expected = format!(
        "{BANNER}starting benchmark...\n\
         spawning thread #1: 1 concurrent requests, 3 total requests\n\
         spawning thread #2: 1 concurrent requests, 2 total requests\n\
         progress:  33% done\nprogress:  66% done\nprogress: 100% done\n\
         \nfinished in # sec, # millisec and # microsec, # req/s, # kbyte/s\n\
         requests: 5 total, 5 started, 5 done, 5 succeeded, 0 failed, 0 errored\n\
         status codes: 5 2xx, 0 3xx, 0 4xx, 0 5xx\n\
         traffic: 300 bytes total, 275 bytes http, 25 bytes data\n"
    );
    assert_eq!((stdout, stderr.as_str(), code), (expected, "", Some(0)));
    let text = |asked: &Vec<u8>| String::from_utf8_lossy(asked).into_owned();
    let host = format!("127.0.0.1:{}", server.port());
    let asked: Vec<String> = server.asked().iter().map(text).collect();
    let expected = format!(
        "GET / HTTP/1.1\r\nHost: {host}\r\nUser-Agent: weighttp/0.4\r\nConnection: close\r\n\r\n"
    );
    assert_eq!(asked, vec![expected; 5]);
    let line = "weighttp -n 1 -k -H Host:z -H X-A:1 -H User-Agent:me URL/x?y";
    assert_eq!(run(line, server.port()).code, Some(0));
    let expected = "GET /x?y HTTP/1.1\r\nHost: z\r\nX-A:1\r\nUser-Agent:me\r\n\
        Connection: keep-alive\r\n\r\n";
    assert_eq!(server.asked(), [expected.as_bytes()]);
}

/// A quirk: 0.4 always prints 0 errored.
#[test]
fn weighttp_fails_what_it_cannot_read_and_forgets_its_errors() {
    let requests = |manner: Manner, flags: &str| {
        let server = manner.start();
        let Run { stdout, stderr, .. } = run(&format!("weighttp -n 6 {flags} URL/"), server.port());
        let line = stdout.lines().find(|line| line.starts_with("requests: ")).map(str::to_owned);
        (line.unwrap_or(stdout), stderr)
    };
    let (line, stderr) = requests(Manner::Unbounded, "-k");
    let none = "requests: 6 total, 6 started, 6 done, 0 succeeded, 6 failed, 0 errored";
    assert_eq!(line, none, "replies of HTTP/1.0");
    assert!(stderr.contains("prints 0 errored requests: 6 of the failed were errors"), "{stderr}");
    let (line, stderr) = requests(Manner::ResetBefore, "");
    let one = "requests: 6 total, 6 started, 6 done, 5 succeeded, 1 failed, 0 errored";
    assert_eq!(line, one);
    assert!(stderr.contains("error: read() failed: Connection reset by peer (104)\n"), "{stderr}");
    assert_eq!(requests(Manner::CutOff, "-k").0, one);
    let (line, _) = requests(Manner::Chunked, "-k");
    assert_eq!(line, none.replace("0 succeeded, 6 failed", "6 succeeded, 0 failed"));
}

#[test]
fn weighttp_says_what_is_wrong_with_its_arguments() {
    let said = |line: &str| {
        let Run { stdout, stderr, code } = run(&format!("weighttp {line}"), 9);
        assert!(stdout.starts_with(BANNER), "{line}: the banner always comes first");
        (stderr, code, stdout.len() > BANNER.len())
    };
    assert_eq!(said("-v"), (String::new(), Some(0), false));
    assert_eq!(said("-h"), (String::new(), Some(0), true));
    let wrong = |text: &str, helps| (format!("error: {text}\n"), Some(1), helps);
    assert_eq!(said("-n 5"), wrong("missing url argument\n", true));
    assert_eq!(said("-n 5 -c 6 h"), wrong("insane arguments\n", true));
    assert_eq!(said("-n 5 -q h"), wrong("unkown option: -q\n", true));
    assert_eq!(said("-n 5 x.invalid"), wrong("could not resolve hostname: x.invalid", false));
}

/// The original weighttp rejects TLS.
#[test]
fn weighttp_speaks_tls_and_says_so() {
    let server = Server::start(&["--fixed", "500", "--tls-self-signed"]);
    for (style, counts) in [
        ("0.4", "requests: 6 total, 6 started, 6 done, 6 succeeded, 0 failed, 0 errored\n"),
        ("0.5", "\"pass\""),
    ] {
        let line = format!("weighttp --version-style {style} -n 6 -c 2 -k {}", server.url);
        let Run { stdout, stderr, code } = run(&line, 9);
        assert!(stdout.contains(counts), "{style}: {stdout}");
        assert!(
            stderr.contains("joust: weighttp does not support TLS and would reject"),
            "{stderr}"
        );
        assert_eq!(code, Some(0), "{style}");
    }
}

#[test]
fn weighttp_0_5_reports_in_its_layout() {
    let server = Manner::Lengths.start();
    let folder = tempfile::tempdir().unwrap();
    let csv = folder.path().join("times.csv");
    let tool = "weighttp --no-footnotes --version-style 0.5";
    let line = format!("{tool} -S -n 6 -c 2 -t 2 -e {} URL/x", csv.display());
    let Run { stdout, stderr, code } = run(&line, server.port());
    let counts = "\nweighttp 0.5 - lightweight and simple webserver benchmarking tool\n\n\
        spawning thread #1: 1 concurrent requests, 3 total requests\n\
        spawning thread #2: 1 concurrent requests, 3 total requests\n\
        starting benchmark...\n\
        progress:  33% done\nprogress:  66% done\nprogress: 100% done\n{\n";
    assert!(stdout.starts_with(counts), "{stdout}");
    // The third and the sixth reply are 56 bytes with a body of 7; the others 60 with 5.
    let traffic = "  \"request_counts\": {\n    \"started\":    6,\n    \"retired\":    6,\n    \
        \"keep-alive\": 0\n  },\n  \"response_counts\": {\n    \"pass\": 6,\n    \"fail\": 0,\n    \
        \"errs\": 0\n  },\n  \"status_codes\": {\n    \"2xx\":  6,\n    \"3xx\":  0,\n    \"4xx\":  0,\n    \
        \"5xx\":  0\n  },\n  \"traffic\": {\n    \"bytes_total\":            356,\n    \
        \"bytes_headers\":          322,\n    \"bytes_body\":              34\n  },\n";
    assert!(stdout.contains(traffic), "{stdout}");
    assert_eq!(stdout.matches("     \"num\":         6,\n").count(), 4, "{stdout}");
    assert!(stdout.ends_with("\n  }\n}\n"));
    assert_eq!((stderr.as_str(), code), ("", Some(0)));
    let rows = std::fs::read_to_string(csv).unwrap();
    assert!(rows.starts_with("Percentage served,Time in us\n0,") && rows.lines().count() == 102);
    let host = format!("127.0.0.1:{}", server.port());
    let expected = format!(
        "GET /x HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nUser-Agent: weighttp/0.5\r\n\r\n"
    );
    assert_eq!(server.asked(), vec![expected.as_bytes(); 6]);
    let refused = run(&format!("{tool} -n 1 -F URL/"), server.port());
    assert!(refused.stderr.starts_with("error: -F is not supported: "), "{}", refused.stderr);
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""));
}

#[test]
fn weighttp_0_5_pipelines() {
    let server = Server::start(&["--fixed", "500"]);
    let port: u16 = server.url.trim_end_matches('/').rsplit(':').next().unwrap().parse().unwrap();
    for flags in ["-k", "-K 4"] {
        let line = format!("weighttp --version-style 0.5 -q -S -n 40 -c 2 {flags} URL/");
        let Run { stdout, code, .. } = run(&line, port);
        let part = "    \"retired\":    40,\n    \"keep-alive\": 38\n";
        assert!(stdout.starts_with("{\n") && stdout.contains(part), "{flags}: {stdout}");
        assert!(stdout.contains("\"bytes_body\":           20000\n"), "{flags}: {stdout}");
        assert_eq!(code, Some(0));
    }
}

#[test]
fn a_server_of_ours_is_asked_by_both() {
    let server = Server::start(&["--fixed", "500", "--fault", "delay=5ms"]);
    let port: u16 = server.url.trim_end_matches('/').rsplit(':').next().unwrap().parse().unwrap();
    let out = run("weighttp -n 40 -c 4 -t 2 -k URL/", port).stdout;
    assert!(out.contains("\nrequests: 40 total, 40 started, 40 done, 40 succeeded, 0 failed, "));
    assert!(out.contains(" bytes http, 20000 bytes data\n"), "{out}");
    let file = urls(port, &["/", "/b"]);
    let path = file.path().display();
    let out = run(&format!("http_load -p 4 -f 40 {path}"), port).stdout;
    assert!(out.starts_with("40 fetches, 4 max parallel, 20000 bytes, in "), "{out}");
    assert!(out.ends_with("\n  code 200 -- 40\n"), "{out}");
    let out = run(&format!("http_load -p 4 -seconds 1 {path}"), port).stdout;
    assert!(out.contains(", in # seconds\n500 mean bytes/connection\n"), "{out}");
}

#[test]
fn both_are_explained_and_called_by_their_names() {
    let file = urls(81, &["/x"]);
    let path = file.path().display();
    let explained = |line: &str| run(&format!("{line} --explain"), 59_999).stdout;
    assert_eq!(
        explained(&format!("http_load -rate 600 -f 9 {path}")),
        "joust load http://127.0.0.1:81/x -c 1021 -n 9 --rate 1000 --http1.0 --no-keepalive \
         --timeout 60s -H 'Host: 127.0.0.1' -H 'User-Agent: http_load 12mar2006'\n"
    );
    assert_eq!(
        explained("weighttp -n 9 -c 3 -t 2 -k 127.0.0.1:81/x"),
        "joust load http://127.0.0.1:81/x -c 3 -n 9 -t 2 --timeout 1200s -H 'User-Agent: weighttp/0.4' \
         -H 'Connection: keep-alive'\n"
    );
    let folder = tempfile::tempdir().unwrap();
    let called = |name: &str, arg: &str| {
        let link = folder.path().join(name);
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_joust"), &link).unwrap();
        let output = Command::new(&link).arg(arg).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (link.display().to_string(), text(&output.stdout), text(&output.stderr))
    };
    let (name, _, stderr) = called("http_load", "-x");
    assert!(stderr.starts_with(&format!("usage:  {name} [-checksum]")), "{stderr}");
    assert_eq!(called("weighttp", "-v").1, BANNER);
}
