//! The mistakes that people make first: each gets its exit code and a message that names what, why and the remedy; no
//! panic, no backtrace, no half-written file.

use std::net::TcpListener;

use crate::planted::{Planted, reply};
use crate::{joust, output, said, stdout};

/// Arguments, exit code, and words that the message must have.
const MISTAKES: &[(&[&str], i32, &[&str])] = &[
    (&[], 2, &["Usage"]),
    (&["lod"], 2, &["lod"]),
    (&["load"], 2, &["URL"]),
    (&["load", "http://127.0.0.1:1/"], 1, &["cannot connect", "127.0.0.1:1", "ss -ltn"]),
    (&["load", "http://"], 2, &["http://"]),
    (&["load", "http://127.0.0.1:99999/"], 2, &["99999"]),
    (&["load", "http://127.0.0.1:1/", "-c", "0"], 2, &["-c must be between 1", "got 0"]),
    (&["load", "http://127.0.0.1:1/", "-t", "9", "-c", "2"], 2, &["threads", "raise -c"]),
    (&["load", "http://127.0.0.1:1/", "-d", "ten"], 2, &["seconds", "2m"]),
    (&["load", "http://127.0.0.1:1/", "-H", "no colon"], 2, &["colon"]),
    (&["load", "http://127.0.0.1:1/", "--body", "@/no/file"], 2, &["/no/file", "--body"]),
    (&["load", "ftp://127.0.0.1/"], 2, &["ftp", "https"]),
    (&["load", "http://no.such.host.invalid/"], 2, &["no.such.host.invalid", "check the name"]),
    (&["man", "a", "b"], 2, &["unexpected argument"]),
    (&["completions"], 2, &["<SHELL>"]),
    (&["completions", "csh"], 2, &["csh", "bash", "fish"]),
    (&["serve", "/no/such/dir"], 2, &["/no/such/dir", "--fixed"]),
    (&["serve", "/etc/hostname"], 2, &["not a directory"]),
    (&["serve", "--fixed", "10", "--model", "pre-fork"], 2, &["pre-fork", "prefork"]),
    (&["serve", "--fixed", "10", "--set", "MaxKeepAlive=1"], 2, &["MaxKeepAliveRequests"]),
    (&["serve", "--fixed", "10", "--set", "KeepAlive"], 2, &["KEY=VALUE"]),
    (&["serve"], 2, &["--fixed"]),
    (&["serve", "--fixed", "10", "--listen", "192.0.2.1:80"], 1, &["192.0.2.1"]),
    (&["serve", "--fixed", "10", "--listen", "localhost:80"], 2, &["127.0.0.1:8080"]),
    (&["serve", "--fixed", "10", "--set", "MaxClients=9"], 2, &["prefork, worker, event"]),
    (&["serve", "--config", "/no/file", "--fixed", "1"], 2, &["/no/file"]),
    (&["serve", "--fixed", "1", "--cpus", "0-1"], 2, &["--cpus", "0 or 2,3"]),
    (&["serve", "--fixed", "1", "--cpus", "0,0"], 2, &["name each CPU once, got 0 twice"]),
    (&["serve", "--fixed", "1000000GB"], 2, &["--fixed", "serve a directory"]),
    (
        &["serve", "--fixed", "1", "--cpus", "99999"],
        2,
        &["CPU 99999 is not available", "available:"],
    ),
    (&["run", "/no/study.toml"], 2, &["/no/study.toml", "STUDY must be a file"]),
    (&["run", "--only", "nothing"], 2, &["nothing", "lighttpd"]),
    (&["run", "--out", "/proc/nowhere"], 1, &["/proc/nowhere"]),
    (&["run", "--out", "/etc/hostname"], 1, &["/etc/hostname", "name another one"]),
    (&["run", "--budget", "1s"], 2, &["budget of 1s", "two visits"]),
    (&["report", "/no/run.json"], 2, &["/no/run.json", "run.json"]),
    (&["report", "/etc/hostname"], 2, &["/etc/hostname"]),
    (&["report", "/etc/hostname", "--format", "pdf"], 2, &["html"]),
    (&["doctor"], 2, &["standard input", "paste the whole output"]),
    (&["doctor", "/no/run.json"], 2, &["/no/run.json"]),
    (&["models", "forking"], 2, &["prefork"]),
];

/// Typing errors after a URL of `joust load`, and words of the message. All of them are rejected before any connection
/// is made, with exit code 2.
const FLAGS_MISTAKEN: &[(&[&str], &[&str])] = &[
    (&["-c", "x"], &["--connections"]),
    (&["--fleet", "/no/fleet"], &["--fleet: cannot read /no/fleet"]),
    (&["--fleet", "nats://h:1", "-n", "5"], &["needs a duration", "-d TIME"]),
    (&["--fleet", "nats://h:1", "--cpus", "0"], &["--cpus"]),
    (&["--fleet", "nats://h:1", "--agents", "0"], &["--agents"]),
    (&["--fleet", "nats://h:1", "--on-loss", "wait"], &["--on-loss", "continue"]),
    (&["--fleet", "nats://h:1", "--dead-man", "1s"], &["--dead-man must be at least 3s, got 1s"]),
    (&["--fleet", "nats://h:1", "--clock-error", "small"], &["--clock-error"]),
    (&["--allow-incomplete"], &["--fleet"]),
    (&["-n", "x"], &["--requests"]),
    (&["-n", "0"], &["-n must be at least 1, got 0"]),
    (&["-d", "0s"], &["-d must be longer than 0", "10s"]),
    (&["-t", "0"], &["-t must be between 1", "got 0"]),
    (&["-r", "fast"], &["--rate", "500/s"]),
    (&["-r", "0"], &["--rate", "higher rate"]),
    (&["-r", "5", "--arrivals", "burst"], &["--arrivals", "poisson"]),
    (&["--arrivals", "poisson"], &["--rate", "--search"]),
    (&["-r", "5", "--think", "1ms"], &["--rate", "cannot be used with", "--think"]),
    (&["--ramp", "5"], &["--ramp", "100/s:5k/s"]),
    (&["--stages", "5"], &["--stages", "1k/s:10s"]),
    (&["--replay", "/no/instants"], &["/no/instants"]),
    (&["--replay", "/dev/null"], &["/dev/null", "no instant"]),
    (&["--as-recorded"], &["--from"]),
    (&["--speed", "2"], &["--replay", "--as-recorded"]),
    (&["--replay", "/dev/null", "--speed", "0"], &["--speed must be above 0, got 0"]),
    (&["--think", "soon"], &["--think", "10s"]),
    (&["--queue", "5"], &["--rate"]),
    (&["-r", "5", "--queue", "0"], &["--queue"]),
    (&["--search", "p99"], &["--search", "p99<5ms"]),
    (&["--search", "p99<1s", "-n", "5"], &["--search", "--requests"]),
    (&["--search", "p99<1s,rate>5/s"], &["rate>5/s", "sets the rate itself", "p99<10ms"]),
    (&["--search", "p99<1s", "--slo", "p50<1s"], &["--search", "--slo"]),
    (&["--search", "p50<1s,connect.p99<1s"], &["connect.p99<1s", "--no-keepalive"]),
    (&["--search", "p99<1s", "--precision", "0%"], &["precision of a search", "got 0 %", "0.1 %"]),
    (&["--search", "p99<1s", "--tries", "0"], &["--tries"]),
    (&["--search", "p99<1s", "--rate-max", "x"], &["--rate-max", "500/s"]),
    (&["--tries", "5"], &["--search"]),
    (&["-n", "5", "--tries", "5"], &["--tries", "--search"]),
    (&["-r", "5", "--rate-max", "9"], &["--rate-max", "--search"]),
    (&["--slo", "p99<1s", "--precision", "2%"], &["--precision", "--search"]),
    (&["-X", "G T"], &["G T", "GET"]),
    (&["-X", "CONNECT"], &["tunnel", "-X"]),
    (&["-H", "Content-Length: 5"], &["Content-Length", "leave it out"]),
    (&["--body", "x", "--from", "y"], &["--body", "--from"]),
    (&["--from", "/no/urls"], &["/no/urls"]),
    (&["--from", "/dev/null"], &["the file has no requests"]),
    (&["--from", "/dev/null", "--format", "xml"], &["--format", "siege"]),
    (&["--shuffle"], &["--from"]),
    (&["-u", "ann"], &["USER:PASSWORD", "-u"]),
    (&["--expect-continue"], &["--body"]),
    (&["--http1.0", "--pipeline", "2"], &["--pipeline", "HTTP/1.0"]),
    (&["--no-keepalive", "--pipeline", "2"], &["--pipeline", "without keep-alive"]),
    (&["--pipeline", "0"], &["--pipeline"]),
    (&["--requests-per-connection", "0"], &["--requests-per-connection"]),
    (&["--no-keepalive", "--requests-per-connection", "5"], &["--no-keepalive"]),
    (&["--follow", "0"], &["--follow", "1..=50"]),
    (&["--follow", "51"], &["--follow", "1..=50"]),
    (&["--follow", "5", "--pipeline", "2"], &["--follow", "--pipeline"]),
    (&["--follow", "5", "--body", "x", "--expect-continue"], &["--follow", "--expect-continue"]),
    (&["--proxy", "https://127.0.0.1:3128"], &["--proxy", "http://HOST:PORT"]),
    (&["--proxy", "socks5://127.0.0.1:1080"], &["--proxy", "must begin with http://"]),
    (&["--proxy", "http://127.0.0.1"], &["--proxy", "names no port"]),
    (&["--proxy", "http://me@127.0.0.1:1"], &["--proxy", "USER:PASSWORD"]),
    (&["--proxy", "http://127.0.0.1:1", "--connect-to", "::a:1"], &["--proxy", "--connect-to"]),
    (&["--proxy", "http://127.0.0.1:1", "--unix", "/x"], &["--proxy", "--unix"]),
    (&["--timeout", "0s"], &["--timeout", "10s"]),
    (&["--connect-to", "x"], &["HOST:PORT:ADDR:PORT", "--connect-to"]),
    (&["--source", "1.2.3"], &["--source"]),
    (&["--source", "192.0.2.1"], &["--source", "192.0.2.1", "`ip address`"]),
    (&["--source", "224.0.0.1"], &["--source", "224.0.0.1", "`ip address`"]),
    (&["--source", "0.0.0.0"], &["--source", "not the address of one machine"]),
    (&["--source", "::1"], &["both be IPv4", "--source"]),
    (&["--unix", "/x", "--source", "127.0.0.2"], &["--unix", "--source"]),
    (&["--cert", "c.pem"], &["--key"]),
    (&["--key", "k.pem"], &["--cert"]),
    (&["--cacert", "c.pem", "--insecure"], &["--cacert", "--insecure"]),
    (&["--tls-version", "1.1"], &["--tls-version", "1.2 or 1.3"]),
    (&["--tls-resume", "200%"], &["--tls-resume", "0 to 1"]),
    (&["--expect-status", "ok"], &["--expect-status", "200-299"]),
    (&["--expect-status", "300-200"], &["lower one first"]),
    (&["--expect-length", "x"], &["--expect-length", "3361"]),
    (&["--expect-header", " : x"], &["--expect-header", "ETag"]),
    (&["--expect-body", ""], &["--expect-body"]),
    (&["--verify", "md5"], &["--verify", "hash=1%"]),
    (&["--verify", "hash=2"], &["--verify", "0 to 1"]),
    (&["--verify", "hash=0123456789abcdef0123456789"], &["--verify", "64 hex digits"]),
    (&["--verify", "file=/no/body"], &["--verify", "cannot read /no/body"]),
    (
        &["--verify", "hash=100%", "-X", "HEAD"],
        &["--verify hash=100%", "only GET", "--expect-length"],
    ),
    (&["--slo", "p99"], &["--slo", "p99<5ms"]),
    (&["--engine", "kqueue"], &["--engine", "uring"]),
    (&["--stamps", "tsc"], &["--stamps", "kernel"]),
    (&["--cpus", "x"], &["--cpus"]),
    (&["--cpus", "99999"], &["--cpus", "CPU 99999", "it may use"]),
    (&["--seed", "x"], &["--seed"]),
    (&["--raw", "99999999"], &["--raw", "10000000"]),
    (&["--merge", "a.json"], &["--merge", "cannot be used with"]),
    (&["--stream", "/no/folder/x.csv"], &["/no/folder/x.csv", "cannot write"]),
    (&["--stream-format", "csv"], &["--stream"]),
    (&["--metrics-listen", "9464"], &["--metrics-listen", "must be ADDR:PORT", "127.0.0.1:9464"]),
    (&["--metrics-listen", "localhost:9464"], &["--metrics-listen", "must be ADDR:PORT"]),
    (&["--body", "{rand:9-1}"], &["{rand:9-1}", "low, then high"]),
    (&["--body", "{csv:/no/users.csv:id}"], &["/no/users.csv"]),
];

#[test]
fn each_mistake_names_the_way_out() {
    MISTAKES.iter().for_each(|(args, code, words)| refuses(args, *code, words));
}

#[test]
fn each_flag_of_a_load_refuses_what_makes_no_sense_and_nothing_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("load.json");
    let known = stdout(&output(&["load", "--help"]));
    for (flags, words) in FLAGS_MISTAKEN {
        let base = ["load", "http://127.0.0.1:1/", "--json", file.to_str().unwrap()];
        refuses(&[&base, *flags].concat(), 2, words);
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    // Flags that take no value, or any value.
    let any = [
        "--quiet",
        "--plain",
        "--strict",
        "--cookies",
        "--busy-poll",
        "--json",
        "--curl",
        "--no-retry",
    ];
    let is_tried = |flag: &str| {
        let long = |tried: &&str| tried.starts_with("--") && *tried == flag;
        FLAGS_MISTAKEN.iter().any(|(flags, words)| flags.iter().chain(*words).any(long))
            || any.contains(&flag)
    };
    let short = ["--duration", "--header", "--method", "--threads", "--user", "--help"];
    let untried: Vec<&str> = crate::docs::flags(&known)
        .into_iter()
        .filter(|flag| !is_tried(flag) && !short.contains(flag))
        .collect();
    assert!(untried.is_empty(), "nothing mistaken is tried of {untried:?}");
}

#[test]
fn a_pasted_line_that_is_not_for_curl_is_refused() {
    refuses(&["load", "--curl", "wget http://127.0.0.1:1/"], 2, &["--curl:1", "`curl`"]);
    refuses(&["load", "--curl", "curl 'http://"], 2, &["--curl:1", "not closed"]);
    refuses(&["load", "http://127.0.0.1:1/", "--curl", "curl x"], 2, &["--curl", "[URL]"]);
}

#[test]
fn files_of_tls_are_read_before_anything_is_sent_and_flags_without_it_are_named() {
    for flags in [&["--cacert", "/no/ca.pem"][..], &["--cert", "/no/c.pem", "--key", "/no/k.pem"]] {
        let args = [&["load", "https://127.0.0.1:1/"], flags].concat();
        refuses(&args, 2, &[flags[0], flags[1], "No such file"]);
    }
    let no_pem = ["--cert", "/etc/hostname", "--key", "/etc/hostname"];
    refuses(&[&["load", "https://127.0.0.1:1/"], &no_pem[..]].concat(), 2, &["--cert", "PEM"]);
    let idle = ["--insecure", "--tls-version", "1.3", "--tls-resume", "50%"];
    let idle = output(&[&["load", "http://127.0.0.1:1/"], &idle[..]].concat());
    let said = String::from_utf8_lossy(&idle.stderr);
    for flag in ["--insecure", "--tls-version", "--tls-resume"] {
        assert!(said.contains(&format!("{flag} has no effect")), "{said}");
    }
}

#[test]
fn what_looks_like_a_placeholder_and_is_none_is_said() {
    let typed = ["http://127.0.0.1:1/{seq}/{id}", "-H", "X-Id: {sq}"];
    let said = said(&output(&[&["load"], &typed[..]].concat()));
    for braces in ["{id} is sent unchanged", "{sq} is sent unchanged"] {
        assert!(said.contains(braces), "{said}");
    }
    assert!(!said.contains("{seq} is sent"), "{said}");
}

#[test]
fn a_load_that_failed_as_a_whole_says_what_would_mend_it() {
    let server = Planted::start(|seen| {
        let (status, length) = match seen.line() {
            "GET /absent" => ("404 Not Found", "2"),
            "GET /tls" => ("400 Bad Request", "2"),
            "GET /full" => ("503 Service Unavailable", "2"),
            _ => ("200 OK", "2\r\nContent-Length: 3"),
        };
        format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\nok").into_bytes()
    });
    let cases: [(&str, &[&str], &[&str]); 5] = [
        ("/absent", &[], &["most often 404", "the path of the URL"]),
        ("/tls", &[], &["most often 400", "https://"]),
        ("/full", &[], &["most often 503", "lower the load"]),
        ("/two", &["--verify", "none"], &["not valid HTTP/1", "curl -v"]),
        ("/two", &[], &["Content-Length", "--verify none"]),
    ];
    for (target, flags, words) in cases {
        let url = server.url(target);
        refuses(&[&["load", &url, "-n", "4", "-c", "2"], flags].concat(), 1, words);
    }
    let fits = Planted::start(|_| reply("", "ok"));
    let args = ["load", &fits.url("/"), "-n", "4", "-c", "2", "--expect-body", "no"];
    refuses(&args, 1, &["the body was not the expected one", "--expect-body"]);
    // Two of five failures are of another kind, and a good status is not an error.
    let targets = tempfile::NamedTempFile::new().unwrap();
    let lines = ["/two", "/two", "/absent", "/absent", "/absent"];
    let lines = lines.map(|target| format!("GET {}\n", server.url(target)));
    std::fs::write(targets.path(), lines.concat()).unwrap();
    let targets = targets.path().to_str().unwrap();
    let args = ["load", "--from", targets, "--format", "vegeta", "-n", "5", "-c", "1"];
    let args = [&args[..], &["--verify", "none"]].concat();
    refuses(&args, 1, &["5 failed", "mostly (3) the status", "most often 404"]);
    // A search checks the URL before it tries rates.
    let search = ["load", &server.url("/absent"), "--search", "p99<1s", "-d", "100ms"];
    refuses(&search, 1, &["most often 404", "the path of the URL"]);
}

/// Conditions that are checked before a load is started.
#[test]
fn a_record_that_could_not_be_written_is_said_before_the_load() {
    for place in ["/no/folder/load.json", "/tmp"] {
        let args = ["load", "http://127.0.0.1:1/", "--json", place];
        refuses(&args, 2, &["cannot write", place, "or -"]);
        assert!(!said(&output(&args)).contains(".tmp"), "the name of a file that nobody named");
    }
}

fn refuses(args: &[&str], code: i32, words: &[&str]) {
    let output = output(args);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(code), "{args:?} said: {said}");
    for word in words {
        assert!(said.contains(word), "{args:?}: no `{word}` in: {said}");
    }
    assert!(!said.contains("panicked") && !said.contains("backtrace"), "{args:?}: {said}");
}

#[test]
fn a_study_with_an_unknown_key_points_to_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("mine.toml");
    std::fs::write(&file, "name = \"mine\"\nquestion = \"?\"\nbudgett = \"1m\"\n").unwrap();
    let output = output(&["run", file.to_str().unwrap()]);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("mine.toml:3"), "{said}");
    assert!(said.contains("`budget`"), "the nearest key is missing: {said}");
}

#[test]
fn a_port_in_use_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = taken.local_addr().unwrap().to_string();
    let output = output(&["serve", "--fixed", "10", "--listen", &addr]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains(&addr), "{}", said(&output));
    let dir = tempfile::tempdir().unwrap();
    let (file, pid_file) = (dir.path().join("joust.toml"), dir.path().join("pid"));
    let tls = format!("[tls]\nself_signed = true\nredirect_from = \"{addr}\"\n");
    let top = format!("listen = \"127.0.0.1:0\"\nfixed = 1\npid_file = {pid_file:?}\n");
    std::fs::write(&file, top + &tls).unwrap();
    refuses(&["serve", "--config", file.to_str().unwrap()], 1, &["redirect_from", &addr]);
    assert!(!pid_file.exists());
}

#[test]
fn a_full_disk_leaves_nothing_half_written() {
    let server = crate::Server::start(&["--fixed", "10"]);
    let output = output(&["load", &server.url, "-n", "10", "--json", "/dev/full/x.json"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("/dev/full/x.json"), "{}", said(&output));
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = joust(&["load", &server.url, "-n", "10", "--json", "-"]);
    let status = command.stdout(full).stderr(std::process::Stdio::null()).status().unwrap();
    assert_eq!(status.code(), Some(1), "what could not be written is not passed over");
}

#[test]
fn a_reader_that_has_gone_is_no_error() {
    let mut child = joust(&["models"]).stdout(std::process::Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let mut child = joust(&["doctor"]).stderr(std::process::Stdio::piped()).spawn().unwrap();
    drop(child.stderr.take());
    assert_eq!(child.wait().unwrap().code(), Some(2), "the code says what nobody reads");
}
