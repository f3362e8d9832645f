//! The exchange without sockets: request bytes in, answer bytes out, at times that the test says.
//! Owns what is true of one connection whatever the model; the table of cases is `cases`, which the
//! models run over sockets too (`conformance.rs`). Start reading at [`Talk`].

mod cases;

use std::net::SocketAddr;
use std::os::fd::AsFd as _;
use std::path::Path;

use cases::Case;
use joust_serve::Config;
use joust_serve::models;
use joust_serve::service::Service;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use site::config::{Content, LogFormat};
use site::exchange::{Close, Exchange, Want};
use units::{Bytes, Nanos};

const START: Nanos = Nanos::from_secs(1000);
const WALL_S: u64 = 1_700_000_000;
const GET: &[u8] = b"GET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n";

fn bound(mut config: Config) -> Service {
    config.listen.set_port(0);
    let mut service = Service::bind(config).unwrap();
    service.site.wall_s = || WALL_S;
    service
}

fn config_of(content: Content) -> Config {
    Config::new(models::ALL[0], content)
}

fn fixed(bytes: u64) -> Service {
    bound(config_of(Content::Fixed(Bytes(bytes))))
}

/// A site, which is removed at the end of the test, and its configuration.
fn site() -> (tempfile::TempDir, Config) {
    let outer = tempfile::tempdir().unwrap();
    cases::make_site(outer.path());
    let config = config_of(Content::Directory(outer.path().join("site")));
    (outer, config)
}

/// A client that talks to an exchange in memory.
struct Talk<'s> {
    exchange: Exchange<'s>,
    now: Nanos,
    /// What came back and was not taken yet.
    output: Vec<u8>,
    /// Writes that it took.
    writes: u32,
}

impl<'s> Talk<'s> {
    fn new(service: &'s Service) -> Self {
        let peer = SocketAddr::from(([127, 0, 0, 1], 40000));
        let exchange = Exchange::new(service, peer, START);
        Self { exchange, now: START, output: Vec::new(), writes: 0 }
    }

    /// Lets the exchange write, and time pass while it holds, until it wants to read or close. Each write takes at most
    /// `most` bytes.
    fn take(&mut self, most: usize) -> Option<Close> {
        loop {
            let part: Vec<u8> = match self.exchange.want(|| self.now) {
                Want::Read(room) => {
                    assert!(!room.is_empty(), "a read needs room");
                    return None;
                }
                Want::Hold(until) => {
                    self.now = until;
                    continue;
                }
                Want::Gateway => panic!("no gateway is configured"),
                Want::Close(close) => return Some(close),
                Want::Load { .. } => unreachable!("there is no TLS here"),
                Want::Write { head, body } => {
                    assert!(!head.is_empty() || !body.is_empty(), "a write needs bytes");
                    head.iter().chain(body).copied().take(most).collect()
                }
                Want::File { head, fd, offset, len } => {
                    assert!(len > 0, "a write needs bytes");
                    let mut content = vec![0; len as usize];
                    let n = rustix::io::pread(fd.as_fd(), &mut content, offset).unwrap();
                    head.iter().chain(&content[..n]).copied().take(most).collect()
                }
            };
            self.writes += 1;
            self.output.extend_from_slice(&part);
            self.exchange.wrote(part.len(), self.now);
        }
    }

    /// Sends `bytes` in pieces of `size`, taking answers between them.
    fn send(&mut self, bytes: &[u8], size: usize) -> Option<Close> {
        let mut rest = bytes;
        while !rest.is_empty() {
            if let Some(close) = self.take(usize::MAX) {
                return Some(close);
            }
            let Want::Read(room) = self.exchange.want(|| self.now) else {
                unreachable!("take() leaves a read")
            };
            let n = rest.len().min(size).min(room.len());
            room[..n].copy_from_slice(&rest[..n]);
            rest = &rest[n..];
            self.exchange.received(n, self.now);
        }
        self.take(usize::MAX)
    }

    /// Sends all at once and gives what came back.
    fn ask(&mut self, bytes: &[u8]) -> String {
        self.send(bytes, usize::MAX);
        String::from_utf8_lossy(&std::mem::take(&mut self.output)).into_owned()
    }

    /// Lets time pass to the deadline.
    fn wait(&mut self) -> Option<Close> {
        self.now = self.exchange.deadline();
        self.exchange.timed_out(self.now);
        self.take(usize::MAX)
    }

    fn hang_up(&mut self) -> Option<Close> {
        self.exchange.received(0, self.now);
        self.take(usize::MAX)
    }
}

fn status(answer: &str) -> &str {
    answer.get(9..12).unwrap_or("")
}

fn etag_of(service: &Service, path: &str) -> String {
    let head =
        Talk::new(service).ask(format!("HEAD {path} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes());
    let line = head.lines().find_map(|line| line.strip_prefix("ETag: "));
    line.expect("a file has an entity tag").to_owned()
}

fn run_case(service: &Service, case: &Case, etag: &str, size: usize) -> Result<(), String> {
    let mut talk = Talk::new(service);
    if talk.send(&case.input(etag), size).is_none() {
        talk.hang_up().expect("after the end of the stream an exchange wants nothing more");
    }
    case.judge(&talk.output)
}

#[test]
fn the_table_holds_whole_and_in_pieces() {
    let (_outer, config) = site();
    let service = bound(config);
    let etag = etag_of(&service, "/ten.txt");
    assert!(cases::all().count() >= 300);
    let faults: Vec<String> = cases::all()
        .flat_map(|case| [1, 7, usize::MAX].map(|size| run_case(&service, case, &etag, size)))
        .filter_map(Result::err)
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}

/// These faults change only when an answer leaves.
#[test]
fn the_table_holds_with_planted_faults() {
    let (_outer, mut config) = site();
    config.site.faults = ["delay=exp:1ms", "stall=50%,1s,phase=body", "pause=every:10ms,for:5ms"]
        .map(|typed| typed.parse().unwrap())
        .into();
    let service = bound(config);
    let etag = etag_of(&service, "/ten.txt");
    let wrong: Vec<String> = cases::all()
        .flat_map(|case| [7, usize::MAX].map(|size| run_case(&service, case, &etag, size)))
        .filter_map(Result::err)
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn names_of_cases_are_unique() {
    let mut names: Vec<&str> = cases::all().map(|case| case.name).collect();
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
}

#[test]
fn every_path_of_a_fixed_site_has_the_same_bytes() {
    let service = fixed(3361);
    let mut talk = Talk::new(&service);
    let first = talk.ask(b"GET /any HTTP/1.1\r\nHost: a\r\n\r\n");
    let second = talk.ask(b"GET /other/path?x HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(first, second);
    let (head, body) = first.split_once("\r\n\r\n").unwrap();
    assert_eq!(body.len(), 3361);
    for field in [
        "Date: Tue, 14 Nov 2023 22:13:20 GMT",
        "Server: joust",
        "Content-Type: text/html",
        "Content-Length: 3361",
        "Last-Modified: ",
        "ETag: \"",
        "Accept-Ranges: bytes",
    ] {
        assert!(head.contains(field), "{field} is not in {head}");
    }
    assert_eq!(talk.writes, 2, "one write an answer");
}

#[test]
fn pipelined_requests_leave_as_one_write() {
    let service = fixed(100);
    let mut talk = Talk::new(&service);
    let answer = talk.ask(&GET.repeat(20));
    assert_eq!(answer.matches("HTTP/1.1 200 OK").count(), 20);
    assert_eq!((talk.writes, talk.exchange.requests()), (1, 20));
    assert!(talk.exchange.is_idle());
}

#[test]
fn many_pipelined_requests_leave_in_bounded_writes() {
    let mut config = config_of(Content::Fixed(Bytes(6000)));
    config.site.keep_alive.requests_max = 0;
    let service = bound(config);
    let mut talk = Talk::new(&service);
    let requests = GET.repeat(1000);
    let mut rest = &requests[..];
    while !rest.is_empty() {
        match talk.exchange.want(|| START) {
            Want::Read(room) => {
                let n = rest.len().min(room.len());
                room[..n].copy_from_slice(&rest[..n]);
                rest = &rest[n..];
                talk.exchange.received(n, START);
            }
            Want::Write { head, body } => {
                let n = head.len() + body.len();
                assert!(n < 80_000, "one write has {n} bytes");
                talk.exchange.wrote(n, START);
            }
            other => panic!("{other:?}"),
        }
    }
    talk.take(usize::MAX);
    assert_eq!(talk.exchange.requests(), 1000);
}

#[test]
fn an_answer_taken_in_small_pieces_is_the_same() {
    let (_outer, config) = site();
    let service = bound(config);
    let request = b"GET /large.bin HTTP/1.1\r\nHost: a\r\nRange: bytes=0-9,50000-60000,-5\r\n\r\n";
    let outputs = [usize::MAX, 1000, 7].map(|most| {
        let mut talk = Talk::new(&service);
        let Want::Read(room) = talk.exchange.want(|| START) else { panic!("a fresh one reads") };
        room[..request.len()].copy_from_slice(request);
        talk.exchange.received(request.len(), START);
        assert_eq!(talk.take(most), None);
        talk.output
    });
    assert_eq!(outputs[0], outputs[1]);
    assert_eq!(outputs[0], outputs[2]);
    assert!(outputs[0].ends_with(b"--\r\n"));
}

#[test]
fn a_connection_carries_as_many_requests_as_allowed() {
    let mut config = config_of(Content::Fixed(Bytes(1)));
    config.site.keep_alive.requests_max = 3;
    let service = bound(config);
    let mut talk = Talk::new(&service);
    let request = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\n\r\n";
    assert!(talk.ask(request).contains("Keep-Alive: timeout=5, max=3\r\n"));
    assert!(talk.ask(request).contains("Keep-Alive: timeout=5, max=2\r\n"));
    assert!(talk.ask(request).contains("Keep-Alive: timeout=5, max=1\r\n"));
    let last = talk.ask(request);
    assert!(last.contains("Connection: close\r\n") && !last.contains("Keep-Alive:"), "{last}");
    assert_eq!(talk.take(usize::MAX), Some(Close::Linger), "the client may have sent the next");
}

#[test]
fn without_keep_alive_every_answer_is_the_last() {
    let mut config = config_of(Content::Fixed(Bytes(1)));
    config.site.keep_alive.enabled = false;
    let service = bound(config);
    let mut talk = Talk::new(&service);
    assert!(talk.ask(GET).contains("Connection: close\r\n"));
    assert!(talk.take(usize::MAX).is_some());
}

#[test]
fn unlimited_keep_alive_tells_no_maximum() {
    let mut config = config_of(Content::Fixed(Bytes(1)));
    config.site.keep_alive.requests_max = 0;
    let service = bound(config);
    let answer = Talk::new(&service).ask(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    assert!(answer.contains("Keep-Alive: timeout=5\r\n"), "{answer}");
}

#[test]
fn a_slow_head_is_refused_however_often_a_byte_comes() {
    let service = fixed(1);
    let mut talk = Talk::new(&service);
    let deadline = talk.exchange.deadline();
    assert_eq!(deadline, START + service.config.limits.head_timeout);
    for byte in GET.iter().take(20) {
        talk.now += Nanos::from_millis(900);
        talk.send(&[*byte], 1);
        assert_eq!(talk.exchange.deadline(), deadline, "the deadline of a head does not move");
    }
    assert_eq!(talk.wait(), Some(Close::Linger));
    let answer = String::from_utf8(talk.output).unwrap();
    assert!(answer.starts_with("HTTP/1.1 408 Request Timeout\r\n"), "{answer}");
}

#[test]
fn a_second_head_has_its_own_deadline() {
    let service = fixed(1);
    let limits = service.config.limits;
    let mut talk = Talk::new(&service);
    talk.ask(GET);
    assert_eq!(talk.exchange.deadline(), START + service.config.keep_alive.timeout);
    talk.now += Nanos::from_secs(4);
    talk.send(b"GET", 3);
    assert_eq!(talk.exchange.deadline(), talk.now + limits.head_timeout);
}

#[test]
fn an_idle_connection_closes_silently_after_its_time() {
    let service = fixed(1);
    let mut talk = Talk::new(&service);
    talk.ask(GET);
    assert!(talk.exchange.is_idle());
    assert_eq!(talk.wait(), Some(Close::Normal));
    assert!(talk.output.is_empty());
    let mut silent = Talk::new(&service);
    assert_eq!(silent.wait(), Some(Close::Normal));
    assert!(silent.output.is_empty());
}

#[test]
fn a_deadline_that_has_not_passed_changes_nothing() {
    let service = fixed(1);
    let mut talk = Talk::new(&service);
    talk.exchange.timed_out(START);
    assert_eq!(talk.take(usize::MAX), None);
    assert_eq!(status(&talk.ask(GET)), "200");
}

#[test]
fn a_slow_body_is_refused_and_a_steady_one_is_not() {
    let service = fixed(1);
    let mut talk = Talk::new(&service);
    talk.ask(b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n");
    let first = talk.exchange.deadline();
    talk.send(&[b'x'; 5000], 5000);
    assert_eq!(talk.exchange.deadline(), first + Nanos::from_secs(10), "500 bytes earn a second");
    assert_eq!(talk.wait(), Some(Close::Linger));
    assert!(talk.output.starts_with(b"HTTP/1.1 408 "));
}

#[test]
fn a_client_that_takes_nothing_is_cut() {
    let service = fixed(100_000);
    let mut talk = Talk::new(&service);
    let Want::Read(room) = talk.exchange.want(|| START) else { panic!("a fresh one reads") };
    room[..GET.len()].copy_from_slice(GET);
    talk.exchange.received(GET.len(), START);
    let timeout = service.config.limits.write_timeout;
    assert_eq!(talk.exchange.deadline(), START + timeout);
    talk.exchange.wrote(10, START + Nanos::from_secs(7));
    assert_eq!(talk.exchange.deadline(), START + Nanos::from_secs(7) + timeout);
    assert_eq!(talk.wait(), Some(Close::Reset));
}

#[test]
fn heads_and_targets_beyond_their_bounds_are_refused() {
    let service = fixed(1);
    let long_target = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(9000));
    let long_head = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(40_000));
    let many = format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "X: y\r\n".repeat(101));
    for (request, expected) in [(long_target, "414"), (long_head, "431"), (many, "431")] {
        for size in [1000, usize::MAX] {
            let mut talk = Talk::new(&service);
            assert_eq!(talk.send(request.as_bytes(), size), Some(Close::Linger), "{expected}");
            assert_eq!(status(&String::from_utf8_lossy(&talk.output)), expected);
        }
    }
}

#[test]
fn a_head_just_within_its_bounds_is_read() {
    let service = fixed(1);
    let target = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(8000));
    let head = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(32_000));
    for request in [target, head] {
        assert_eq!(status(&Talk::new(&service).ask(request.as_bytes())), "200");
    }
}

#[test]
fn who_waits_for_our_word_gets_it_before_the_body() {
    let service = fixed(1);
    let mut talk = Talk::new(&service);
    let head = b"GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n";
    assert_eq!(talk.ask(head), "HTTP/1.1 100 Continue\r\n\r\n");
    let answer = talk.ask(b"abc");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && !answer.contains("Connection: close"));
    assert!(talk.exchange.is_idle());
}

#[test]
fn a_chunked_body_without_end_is_refused_at_its_bound() {
    let service = fixed(1);
    let mut talk = Talk::new(&service);
    talk.ask(b"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    let chunk = [&b"1000\r\n"[..], &[b'x'; 0x1000], b"\r\n"].concat();
    let mut sent = 0;
    while talk.send(&chunk, usize::MAX).is_none() {
        sent += 0x1000;
        assert!(sent <= 1024 * 1024, "a body has a bound");
    }
    assert!(talk.output.starts_with(b"HTTP/1.1 413 "));
}

#[test]
fn draining_closes_an_idle_connection_at_once() {
    let service = fixed(1);
    let mut talk = Talk::new(&service);
    talk.ask(GET);
    talk.exchange.finish();
    assert_eq!(talk.take(usize::MAX), Some(Close::Normal));
}

#[test]
fn draining_answers_what_is_under_way_and_says_it_is_the_last() {
    let service = fixed(1);
    for sent_before in [0, 10] {
        let mut talk = Talk::new(&service);
        talk.send(&GET[..sent_before], usize::MAX);
        talk.exchange.finish();
        assert_eq!(talk.take(usize::MAX), None, "a request may still come");
        let answer = talk.ask(&GET[sent_before..]);
        assert!(answer.contains("200 OK") && answer.contains("Connection: close"), "{answer}");
        assert!(talk.take(usize::MAX).is_some());
    }
}

#[test]
fn draining_lets_an_answer_be_sent_whole() {
    let service = fixed(100_000);
    let mut talk = Talk::new(&service);
    let Want::Read(room) = talk.exchange.want(|| START) else { panic!("a fresh one reads") };
    room[..GET.len()].copy_from_slice(GET);
    talk.exchange.received(GET.len(), START);
    talk.exchange.finish();
    assert_eq!(talk.take(5000), Some(Close::Normal));
    assert!(talk.output.len() > 100_000);
}

#[test]
fn a_client_that_closes_its_side_still_gets_its_answers() {
    let service = fixed(1);
    let mut talk = Talk::new(&service);
    let Want::Read(room) = talk.exchange.want(|| START) else { panic!("a fresh one reads") };
    let requests = GET.repeat(2);
    room[..requests.len()].copy_from_slice(&requests);
    talk.exchange.received(requests.len(), START);
    assert_eq!(talk.take(usize::MAX), None);
    assert_eq!(talk.hang_up(), Some(Close::Normal));
    assert_eq!(String::from_utf8(talk.output).unwrap().matches("200 OK").count(), 2);
}

#[test]
fn a_reused_exchange_knows_nothing_of_the_connection_before() {
    let service = fixed(1);
    let mut talk = Talk::new(&service);
    talk.send(b"GET /half HTT", usize::MAX);
    talk.exchange.reset_for(SocketAddr::from(([127, 0, 0, 1], 40001)), START);
    assert_eq!((talk.exchange.requests(), talk.exchange.is_idle()), (0, true));
    assert_eq!(status(&talk.ask(GET)), "200");
}

#[test]
fn a_changed_file_is_seen_within_a_second() {
    let (outer, config) = site();
    let service = bound(config);
    let path = outer.path().join("site/ten.txt");
    let mut talk = Talk::new(&service);
    assert!(talk.ask(GET).ends_with("0123456789"));
    std::fs::write(&path, "changed").unwrap();
    talk.now += Nanos::from_millis(1000);
    assert!(talk.ask(GET).ends_with("\r\n\r\nchanged"));
    std::fs::remove_file(&path).unwrap();
    talk.now += Nanos::from_millis(1000);
    assert_eq!(status(&talk.ask(GET)), "404");
    // And on another connection, which does not know the file from before.
    assert_eq!(status(&Talk::new(&service).ask(GET)), "404");
}

/// As nginx without open_file_cache: so that servers can be compared that do the same for a request.
#[test]
fn without_a_file_cache_each_request_sees_the_file_as_it_is() {
    let (outer, mut config) = site();
    let mut settings = models::Settings::defaults(config.model.settings);
    settings.set("FileCache", "off").unwrap();
    config.apply(settings).unwrap();
    let service = bound(config);
    let site = outer.path().join("site");
    let mut talk = Talk::new(&service);
    for content in ["first", "second", "third"] {
        std::fs::write(site.join("ten.txt"), content).unwrap();
        assert!(talk.ask(GET).ends_with(&format!("\r\n\r\n{content}")), "{content}");
    }
    for byte in [b'a', b'b'] {
        let next = site.join("next");
        std::fs::write(&next, vec![byte; 100_000]).unwrap();
        std::fs::rename(&next, site.join("large")).unwrap();
        let answer = talk.ask(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n");
        assert!(answer.ends_with(&String::from(byte as char).repeat(4)));
        assert_eq!(open_files_beneath(&site), 0, "it is closed once it was sent");
    }
    std::fs::remove_file(site.join("ten.txt")).unwrap();
    assert_eq!(status(&talk.ask(GET)), "404");
    assert_eq!(service.hosts.evicted(), 0, "nothing wanted for room");
}

/// A large file is kept open, and would go on showing what its path no longer leads to.
#[test]
fn a_large_file_that_was_replaced_or_removed_is_seen_within_a_second() {
    let (outer, config) = site();
    let service = bound(config);
    let path = outer.path().join("site/large");
    let with = |byte: u8| vec![byte; 100_000];
    let mut talk = Talk::new(&service);
    let request = b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n";
    std::fs::write(&path, with(b'a')).unwrap();
    assert!(talk.ask(request).ends_with("aaaa"));
    let other = outer.path().join("site/other");
    std::fs::write(&other, with(b'b')).unwrap();
    std::fs::rename(&other, &path).unwrap();
    assert!(talk.ask(request).ends_with("aaaa"), "within the second the open file serves");
    talk.now += Nanos::from_millis(1000);
    assert!(talk.ask(request).ends_with("bbbb"));
    std::fs::remove_file(&path).unwrap();
    talk.now += Nanos::from_millis(1000);
    assert_eq!(status(&talk.ask(request)), "404");
}

fn open_files_beneath(directory: &Path) -> usize {
    let links = std::fs::read_dir("/proc/self/fd").unwrap();
    let paths = links.filter_map(|link| std::fs::read_link(link.ok()?.path()).ok());
    paths.filter(|path| path.starts_with(directory) && path != directory).count()
}

#[test]
fn no_more_large_files_stay_open_than_the_bound_says_however_many_connections_idle() {
    let (outer, mut config) = site();
    config.site.limits.open_files_max = 3;
    let service = bound(config);
    let site = outer.path().join("site");
    let mut talks = Vec::new();
    for number in 0..10 {
        std::fs::write(site.join(format!("l{number}")), vec![b'x'; 100_000]).unwrap();
        let mut talk = Talk::new(&service);
        let request = format!("GET /l{number} HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(status(&talk.ask(request.as_bytes())), "200");
        talks.push(talk);
    }
    assert_eq!(open_files_beneath(&site), 3);
    assert!(service.hosts.release_descriptors());
    assert_eq!(open_files_beneath(&site), 0);
}

#[test]
fn a_file_of_any_size_near_the_bounds_is_sent_whole() {
    let (outer, config) = site();
    let service = bound(config);
    for size in [8191, 8192, 8193, 65_535, 65_536, 65_537] {
        let content: Vec<u8> = (0..size).map(cases::large_byte).collect();
        std::fs::write(outer.path().join(format!("site/f{size}")), &content).unwrap();
        let mut talk = Talk::new(&service);
        talk.send(format!("GET /f{size} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes(), usize::MAX);
        assert!(talk.output.ends_with(&content), "{size}");
    }
}

#[test]
fn a_listing_hides_what_is_hidden_and_escapes_the_rest() {
    let (outer, mut config) = site();
    config.site.listing = true;
    let bare = outer.path().join("site/bare");
    std::fs::write(bare.join("<b>&.txt"), "x").unwrap();
    std::fs::write(bare.join(".secret"), "x").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", bare.join("leads-out")).unwrap();
    let service = bound(config);
    let answer = Talk::new(&service).ask(b"GET /bare/ HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(status(&answer), "200");
    assert!(answer.contains("href=\"./%3Cb%3E%26.txt\">&lt;b&gt;&amp;.txt</a>"), "{answer}");
    assert!(!answer.contains(".secret") && !answer.contains("leads-out"), "{answer}");
    let link = Talk::new(&service).ask(b"GET /bare/%3Cb%3E%26.txt HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(status(&link), "200");
}

#[test]
fn a_hidden_index_is_no_index() {
    let (outer, mut config) = site();
    std::fs::write(outer.path().join("site/bare/.index"), "x").unwrap();
    config.site.index = vec![".index".to_owned()];
    let service = bound(config);
    let answer = Talk::new(&service).ask(b"GET /bare/ HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(status(&answer), "403");
}

fn logged(path: &Path, service: &Service) -> Vec<String> {
    service.log.flush();
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn the_log_has_one_line_for_each_answer_and_says_what_was_sent() {
    let (outer, mut config) = site();
    let path = outer.path().join("access.log");
    config.site.access_log.file = Some(path.clone());
    config.site.access_log.format = LogFormat::read("combined").unwrap();
    let service = bound(config);
    let mut talk = Talk::new(&service);
    talk.ask(
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nReferer: http://x/\"\r\nUser-Agent: t\x80\r\n\r\n\
          HEAD /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n\
          GET /ten.txt HTTP/1.1\r\nHost: a\r\nIf-None-Match: *\r\n\r\n\
          GET /large.bin HTTP/1.1\r\nHost: a\r\nRange: bytes=0-99999\r\n\r\n\
          bad \x1b\r\n\r\n",
    );
    let mut cut = Talk::new(&service);
    let request = b"GET /large.bin HTTP/1.1\r\nHost: a\r\n\r\n";
    let Want::Read(room) = cut.exchange.want(|| START) else { panic!("a fresh one reads") };
    room[..request.len()].copy_from_slice(request);
    cut.exchange.received(request.len(), START);
    let Want::File { head, .. } = cut.exchange.want(|| START) else {
        panic!("a large file is sent as one")
    };
    let head_len = head.len();
    cut.exchange.wrote(head_len, START);
    cut.exchange.wrote(1234, START);
    cut.exchange.lost(START);
    assert_eq!(cut.take(usize::MAX), Some(Close::Normal));
    let mut slow = Talk::new(&service);
    slow.send(b"GET / HT", usize::MAX);
    slow.wait();

    let lines = logged(&path, &service);
    let ends: Vec<&str> = lines.iter().map(|line| line.split_once("] ").unwrap().1).collect();
    assert_eq!(
        ends,
        [
            "\"GET /ten.txt HTTP/1.1\" 200 10 \"http://x/\\\"\" \"t\\x80\"",
            "\"HEAD /ten.txt HTTP/1.1\" 200 - \"-\" \"-\"",
            "\"GET /ten.txt HTTP/1.1\" 304 - \"-\" \"-\"",
            "\"GET /large.bin HTTP/1.1\" 206 100000 \"-\" \"-\"",
            "\"bad \\x1b\" 400 189 \"-\" \"-\"",
            "\"GET /large.bin HTTP/1.1\" 200 1234 \"-\" \"-\"",
            "\"GET / HT\" 408 197 \"-\" \"-\"",
        ]
    );
    assert!(lines[0].starts_with("127.0.0.1 - - [1"), "{}", lines[0]);
}

/// Pieces of requests, right and wrong, that random tests are made of.
fn fragment() -> impl Strategy<Value = Vec<u8>> {
    let known: Vec<Vec<u8>> = [
        GET,
        b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /large.bin HTTP/1.1\r\nHost: a\r\nRange: bytes=5-9,20-30\r\n\r\n",
        b"GET / HTTP/1.1\r\n",
        b"Host: a\r\n",
        b"Content-Length: 5\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Expect: 100-continue\r\n",
        b"Connection: close\r\n",
        b"\r\n",
        b"5\r\nabcde\r\n",
        b"0\r\n\r\n",
        b"GET /%2e%2e/.%00 HTTP/1.0\r\n\r\n",
    ]
    .map(<[u8]>::to_vec)
    .into();
    prop_oneof![
        8 => prop::sample::select(known),
        1 => prop::collection::vec(any::<u8>(), 0..40),
    ]
}

#[test]
fn any_bytes_get_the_same_answers_however_they_are_divided() {
    let (_outer, config) = site();
    let service = bound(config);
    let answer = |bytes: &[u8], size| {
        let mut talk = Talk::new(&service);
        if talk.send(bytes, size).is_none() {
            assert!(talk.hang_up().is_some(), "after the end of the stream nothing is wanted");
        }
        // Whether we ask for a body depends on whether it came along with its head.
        String::from_utf8_lossy(&talk.output).replace("HTTP/1.1 100 Continue\r\n\r\n", "")
    };
    let config =
        ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() };
    let fragments = prop::collection::vec(fragment(), 0..12);
    let outcome = TestRunner::new(config).run(&(fragments, 1usize..60), |(fragments, size)| {
        let bytes = fragments.concat();
        prop_assert_eq!(answer(&bytes, usize::MAX), answer(&bytes, size));
        Ok(())
    });
    outcome.unwrap();
}
