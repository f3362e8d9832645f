//! Checks of `joust load` and how it ends: expectations, goals, engines, and where output is printed. Start reading at
//! [`what_is_expected_is_looked_for_in_every_reply`].

use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;

use crate::load::record;
use crate::planted::{Planted, installed, reply};
use crate::{Server, output, said, stdout};

#[test]
fn what_is_expected_is_looked_for_in_every_reply() {
    let server = Planted::start(|_| reply("X-Cache: HIT\r\n", "hello, jousters"));
    let url = server.url("/");
    let met: [&[&str]; 6] = [
        &["--expect-header", "X-Cache"],
        &["--expect-header", "x-cache: HIT"],
        &["--expect-body", "joust"],
        &["--expect-length", "15"],
        &["--expect-status", "200"],
        &["--expect-status", "200-299"],
    ];
    for flags in met {
        let args = [&["load", &url, "-n", "8", "-c", "2", "--json", "-"], flags].concat();
        assert_eq!(record(&args)["requests"]["ok"], 8, "{flags:?}");
    }
    let broken: [(&[&str], &str); 5] = [
        (&["--expect-header", "X-Other"], "wrong_header"),
        (&["--expect-header", "X-Cache: MISS"], "wrong_header"),
        (&["--expect-body", "poloists"], "wrong_body"),
        (&["--expect-length", "16"], "wrong_length"),
        (&["--expect-status", "404"], "unexpected_status"),
    ];
    for (flags, kind) in broken {
        let args = [&["load", &url, "-n", "8", "-c", "2", "--json", "-"], flags].concat();
        let output = output(&args);
        assert_eq!(output.status.code(), Some(1), "{flags:?}: {}", said(&output));
        let record: Value = serde_json::from_str(&stdout(&output)).unwrap();
        assert_eq!(record["errors"][kind], 8, "{flags:?}: {}", record["errors"]);
        assert_eq!(record["requests"]["ok"], 0, "{flags:?}");
    }
}

/// Passes the three requests before the load, and then changes a byte of every other reply.
#[test]
fn a_hash_catches_a_changed_byte_and_a_length_does_not() {
    for (verify, n_wrong) in [("hash=100%", 20), ("length", 0), ("none", 0)] {
        let count = AtomicU64::new(0);
        let server = Planted::start(move |_| {
            let number = count.fetch_add(1, Ordering::Relaxed);
            let is_changed = number >= 3 && number % 2 == 1;
            reply("", if is_changed { "hellO" } else { "hello" })
        });
        // Without fetching before the load, three more of the replies belong to it, and none is checked.
        let args = ["-n", "40", "-c", "1", "--verify", verify, "--json", "-"];
        let record = record(&[&["load", &server.url("/")], &args[..]].concat());
        assert_eq!(record["errors"]["wrong_body"], n_wrong, "{verify}");
        assert_eq!(record["requests"]["ok"], 40 - n_wrong, "{verify}");
        assert_eq!(record["probes"], if verify == "none" { 0 } else { 3 }, "{verify}");
        let counted = &record["bodies_verified"];
        assert_eq!(counted["verified"], if n_wrong > 0 { 40 } else { 0 }, "{verify}");
        assert_eq!(counted["differ"], n_wrong, "{verify}");
        assert_eq!(counted["first"].is_null(), n_wrong == 0, "{verify}");
    }
}

/// What is typed after `--verify` is done, or rejected with the reason.
#[test]
fn a_load_whose_bodies_cannot_be_verified_is_refused_with_the_reason() {
    let count = AtomicU64::new(0);
    let server = Planted::start(move |asked| match asked.line() {
        "GET /moved" => b"HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n".to_vec(),
        "GET /other" => reply("", &count.fetch_add(1, Ordering::Relaxed).to_string()),
        _ => reply("", "hello"),
    });
    let cases: [(&str, &[&str], i32, &[&str]); 5] = [
        ("/", &["-X", "HEAD"], 2, &["HEAD /", "only GET"]),
        ("/", &["--body", "x"], 2, &["POST /", "only GET", "--expect-body"]),
        ("/{seq}", &[], 2, &["placeholders"]),
        ("/moved", &["--follow", "1"], 1, &["redirect (302)", "name the URL"]),
        ("/other", &[], 1, &["not the same each time"]),
    ];
    for (path, flags, code, words) in cases {
        let url = server.url(path);
        for verify in ["hash=100%", "hash", "length"] {
            let args = [&["load", &url, "-n", "8", "-c", "2", "--verify", verify], flags].concat();
            let refused = output(&args);
            assert_eq!(refused.status.code(), Some(code), "{args:?}: {}", said(&refused));
            let text = said(&refused);
            assert!(text.contains(&format!("--verify {verify} cannot compare any body")), "{text}");
            assert!(words.iter().all(|word| text.contains(word)), "{args:?}: {text}");
        }
        // If the flag was not typed, the report says that there was nothing to verify.
        let args = [&["load", &url, "-n", "8", "-c", "2"], flags].concat();
        let text = stdout(&output(&args));
        assert!(text.contains("bodies verified: none of 8"), "{args:?}: {text}");
    }
}

#[test]
fn where_some_bodies_can_be_verified_a_notice_says_how_many() {
    let server = Planted::start(|_| reply("", "hello"));
    let dir = tempfile::tempdir().unwrap();
    let (urls, url) = (dir.path().join("urls.txt"), server.url("/"));
    std::fs::write(&urls, format!("{url}a\n{url}b POST x=1\n")).unwrap();
    let args = ["-n", "8", "-c", "1", "--format", "siege", "--verify", "hash=100%"];
    let some = output(&[&["load", "--from", urls.to_str().unwrap()], &args[..]].concat());
    assert_eq!(some.status.code(), Some(0), "{}", said(&some));
    let notice = "--verify hash=100% compares the bodies of 1 of 2 requests; not of POST /b";
    assert!(said(&some).contains(notice), "{}", said(&some));
    assert!(stdout(&some).contains("bodies verified: 4 of 8"), "{}", stdout(&some));
}

/// The body before the load is compared with the file, and those of the load with the same hash.
#[test]
fn a_file_says_what_every_body_must_be() {
    let count = AtomicU64::new(0);
    let server = Planted::start(move |asked| match asked.line() {
        "GET /changes" if count.fetch_add(1, Ordering::Relaxed) >= 3 => reply("", "hellO"),
        _ => reply("", "hello"),
    });
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = dir.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        format!("file={}", path.display())
    };
    let (right, wrong) = (file("right", b"hello"), file("wrong", b"hellO"));
    let load = |path: &str, verify: &str, more: &[&str]| {
        let url = server.url(path);
        output(&[&["load", &url, "-n", "8", "-c", "1", "--verify", verify], more].concat())
    };
    let whole = load("/", &format!("{right},share=100%"), &[]);
    assert_eq!(whole.status.code(), Some(0), "{}", said(&whole));
    assert!(stdout(&whole).contains("bodies verified: 8 of 8"), "{}", stdout(&whole));
    let changes = load("/changes", &format!("{right},share=100%"), &["--json", "-"]);
    let record: Value = serde_json::from_str(&stdout(&changes)).unwrap();
    assert_eq!(record["bodies_verified"]["differ"], 8, "{}", said(&changes));
    let other = load("/", &wrong, &[]);
    assert_eq!(other.status.code(), Some(1), "{}", said(&other));
    assert!(
        said(&other).contains("GET / is answered with 5 B of SHA-256 2cf24"),
        "{}",
        said(&other)
    );
    let missing = load("/", "file=/no/such", &[]);
    assert_eq!(missing.status.code(), Some(2), "{}", said(&missing));
    assert!(said(&missing).contains("cannot read /no/such: No such file"), "{}", said(&missing));
    let urls = dir.path().join("urls.txt");
    std::fs::write(&urls, format!("{0}a\n{0}b\n", server.url("/"))).unwrap();
    let args = ["load", "--from", urls.to_str().unwrap(), "-n", "8", "--verify", &right];
    let many = output(&args);
    assert_eq!(many.status.code(), Some(2), "{}", said(&many));
    assert!(said(&many).contains("one request, got 2"), "{}", said(&many));
}

#[test]
fn a_broken_goal_ends_with_99_and_is_said_before_the_rate() {
    let server = Server::start(&["--fixed", "100"]);
    let broken = output(&["load", &server.url, "-n", "200", "--slo", "errors<1%,p50<1ns"]);
    assert_eq!(broken.status.code(), Some(99), "{}", said(&broken));
    let text = stdout(&broken);
    let goal = text.find("goal p50<1ns MISSED").expect("it is named");
    assert!(goal < text.find("requests/s").unwrap(), "{text}");
    assert!(text.contains("goal errors<1% met"), "{text}");
    let few = output(&["load", &server.url, "-n", "20", "--slo", "p99.9<1h"]);
    assert_eq!(few.status.code(), Some(99), "too few samples are no proof");
    let met = ["load", &server.url, "-n", "200", "--slo", "errors<1%", "--slo", "p50<1h"];
    assert_eq!(output(&met).status.code(), Some(0));
}

/// A closed loop on a page from memory keeps the generator's thread busy on any machine, if it has a CPU; if not,
/// nobody can say what limited the rate.
#[test]
fn strict_ends_with_4_exactly_where_the_record_says_that_the_generator_was_the_limit() {
    let server = Server::start(&["--fixed", "100", "--set", "MaxKeepAliveRequests=0"]);
    for connections in ["1", "50"] {
        let args = ["-c", connections, "-d", "300ms", "--strict"];
        let output = output(&[&["load", &server.url], &args[..]].concat());
        let is_limit = stdout(&output).contains("generator_limit (");
        let expected = if is_limit { 4 } else { 0 };
        assert_eq!(output.status.code(), Some(expected), "{}", stdout(&output));
    }
}

#[test]
fn the_report_names_the_engine_that_was_asked_for() {
    let server = Server::start(&["--fixed", "100"]);
    let args = ["load", &server.url, "-n", "50", "--json", "-", "--engine"];
    assert_eq!(record(&[&args[..], &["epoll"]].concat())["engine"], "epoll");
    let auto = record(&[&args[..], &["auto"]].concat());
    let uring = output(&[&args[..], &["uring"]].concat());
    if uring.status.success() {
        let uring: Value = serde_json::from_str(&stdout(&uring)).unwrap();
        assert_eq!((&uring["engine"], &auto["engine"]), (&"io_uring".into(), &"io_uring".into()));
        assert_eq!(uring["requests"]["ok"], 50);
    } else {
        skips::note(format_args!("io_uring is not to be had here: {}", said(&uring)));
        assert_eq!(auto["engine"], "epoll");
    }
}

/// A system call filter that answers io_uring_setup (425) with EPERM, like Docker's.
const WITHOUT_URING: &str = r#"
    my $filter = pack("SCCL" x 4, 0x20, 0, 0, 0,  0x15, 0, 1, 425,  0x06, 0, 0, 0x00050001,
                      0x06, 0, 0, 0x7fff0000);
    my $program = pack("S x6 P", 4, $filter);
    syscall(157, 38, 1, 0, 0, 0) == 0 or exit 77;
    syscall(157, 22, 2, $program) == 0 or exit 77;
    exec @ARGV;
"#;

#[test]
fn a_sandbox_without_io_uring_is_served_by_epoll_with_one_line_of_notice() {
    if !cfg!(target_arch = "x86_64") {
        return skips::note("the filter has the numbers of x86_64");
    }
    let Some(perl) = installed("perl") else { return };
    let server = Server::start(&["--fixed", "100"]);
    let run = |engine: &str| {
        let mut command = Command::new(&perl);
        let command = command.args(["-e", WITHOUT_URING, env!("CARGO_BIN_EXE_joust")]);
        let args = ["load", &server.url, "-n", "50", "--json", "-", "--engine", engine];
        command.args(args).output().expect("perl runs")
    };
    let auto = run("auto");
    if auto.status.code() == Some(77) {
        return skips::note("no filter of system calls can be set here");
    }
    assert_eq!(auto.status.code(), Some(0), "{}", said(&auto));
    let record: Value = serde_json::from_str(&stdout(&auto)).unwrap();
    assert_eq!((&record["engine"], &record["requests"]["ok"]), (&"epoll".into(), &50.into()));
    let told = String::from_utf8_lossy(&auto.stderr).into_owned();
    let notices = told.lines().filter(|line| line.contains("io_uring")).count();
    assert_eq!(notices, 1, "{}", said(&auto));
    let asked = run("uring");
    assert_eq!(asked.status.code(), Some(1), "{}", said(&asked));
    assert!(said(&asked).contains("--engine"), "{}", said(&asked));
}

#[test]
fn quiet_says_nothing_and_still_writes_the_record() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("load.json");
    let server = Server::start(&["--fixed", "100"]);
    let args = ["-n", "50", "--quiet", "--json", file.to_str().unwrap()];
    let output = output(&[&["load", &server.url], &args[..]].concat());
    assert!(output.status.success());
    assert_eq!((stdout(&output), said(&output)), (String::new(), String::new()));
    let record: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    assert_eq!(record["requests"]["ok"], 50);
}

#[test]
fn the_record_holds_as_many_single_requests_as_were_asked_for() {
    let server = Server::start(&["--fixed", "100"]);
    for (raw, most) in [("0", 0), ("10", 10)] {
        let args = ["load", &server.url, "-n", "100", "--json", "-", "--raw", raw];
        assert!(record(&args)["raw"].as_array().unwrap().len() <= most, "--raw {raw}");
    }
}

#[test]
fn a_field_of_docs_load_md_is_a_field_of_the_record() {
    let page = crate::docs::page("docs/load.md");
    let rows = page.split("| field | holds |").nth(1).unwrap().split("\n\n").next().unwrap();
    let names: Vec<&str> = rows
        .lines()
        .filter_map(|row| row.split('|').nth(1))
        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        .collect();
    let server = Server::start(&["--fixed", "100"]);
    let record = record(&["load", &server.url, "-n", "50", "-r", "1k/s", "--json", "-"]);
    let fields = record.as_object().unwrap();
    for name in &names {
        assert!(fields.contains_key(*name), "docs/load.md names {name}, and no field is that");
    }
    for field in fields.keys() {
        assert!(names.contains(&&**field), "docs/load.md does not name {field}");
    }
}
