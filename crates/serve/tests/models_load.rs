//! What the models do with many connections, slow ones and full ones: who waits, who is answered, and
//! how many children there are for it. Start reading at the tests.

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, prlimit};
use support::{
    Conn, FIXED, GET, GET_CLOSE, Server, Setup, eventually, models, runs_here, two_at_once,
};
use sys::process::Signal;

#[test]
fn the_access_log_has_a_line_for_each_request_of_several_connections() {
    for model in models() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("access.log");
        let mut server = Server::start(model, Setup { log: Some(&log), ..FIXED });
        let answered: usize = std::thread::scope(|scope| {
            let client = |number: usize| {
                let mut conn = server.connect();
                (0..10 + number).filter(|_| conn.ask(GET).status() == 200).count()
            };
            let clients: Vec<_> =
                (0..8).map(|number| scope.spawn(move || client(number))).collect();
            clients.into_iter().map(|client| client.join().unwrap()).sum()
        });
        server.signal(Signal::TERM);
        assert!(server.ended().success());
        let lines = fs::read_to_string(&log).unwrap();
        assert_eq!(answered, 8 * 10 + 28, "{model}");
        assert_eq!(lines.lines().count(), answered, "{model}");
        assert!(lines.lines().all(|line| line.contains("\" 200 3361")), "{model}: {lines}");
    }
}

/// Limits the size of files that the processes of a server may write; `None`: no limit.
fn limit_files(server: &Server, bytes: Option<u64>) {
    for pid in server.children().into_iter().chain([server.pid()]) {
        let limit = Rlimit { current: bytes, maximum: None };
        // One may have ended by now.
        let _ = prlimit(Some(pid), Resource::Fsize, limit);
    }
}

/// A limit on the size of files stands for a full disk; lifting it stands for free space.
fn cut_and_go_on(model: &str) {
    const BEFORE: usize = 30;
    const MORE: usize = 5;
    let dir = tempfile::tempdir().unwrap();
    let (log, errors) = (dir.path().join("access.log"), dir.path().join("error.log"));
    let config = format!("[error_log]\nfile = {errors:?}\n");
    let mut server = Server::start(model, Setup { log: Some(&log), config: &config, ..FIXED });
    let ask = |count: usize| {
        for _ in 0..count {
            assert_eq!(server.connect().ask(GET_CLOSE).status(), 200, "{model}");
        }
    };
    let text = || fs::read_to_string(&log).unwrap();
    ask(BEFORE);
    eventually(&format!("all is written: {model}"), || text().lines().count() == BEFORE);
    let full = text().len() + 40;
    limit_files(&server, Some(full as u64));
    ask(MORE);
    eventually(&format!("a line is cut: {model}"), || text().len() == full);
    limit_files(&server, None);
    ask(MORE);
    eventually(&format!("lines are written again: {model}"), || text().len() > full);
    server.signal(Signal::TERM);
    assert!(server.ended().success(), "{model}");
    let (text, errors) = (text(), fs::read_to_string(&errors).unwrap());
    let is_whole =
        |line: &&str| line.ends_with("\" 200 3361") && line.matches("HTTP/1.1").count() == 1;
    let (whole, torn): (Vec<_>, Vec<_>) = text.lines().partition(is_whole);
    assert_eq!(torn.len(), 1, "{model}: {torn:?}");
    assert!(!torn[0].is_empty() && text.ends_with('\n'), "{model}: {text}");
    let counted = |line: &str| {
        let told = line.split_once(": ")?.1.split_once(" lines of the access log")?;
        told.0.parse::<usize>().ok()
    };
    let lost: usize = errors.lines().filter_map(counted).sum();
    assert_eq!(whole.len() + lost, BEFORE + 2 * MORE, "{model}: {errors}");
    assert!(errors.contains("cannot write to the access log"), "{model}: {errors}");
}

#[test]
fn a_line_that_a_full_disk_cut_is_ended_before_the_next_and_lost_ones_are_told() {
    std::thread::scope(|scope| {
        let runs: Vec<_> =
            models().map(|model| (model, scope.spawn(move || cut_and_go_on(model)))).collect();
        for (model, run) in runs {
            assert!(run.join().is_ok(), "{model}");
        }
    });
}

#[test]
fn lines_of_the_log_survive_a_stop_at_once() {
    for model in models() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("access.log");
        let mut server = Server::start(model, Setup { log: Some(&log), ..FIXED });
        let mut conn = server.connect();
        for _ in 0..5 {
            assert_eq!(conn.ask(GET).status(), 200);
        }
        server.signal(Signal::INT);
        server.ended();
        assert_eq!(fs::read_to_string(&log).unwrap().lines().count(), 5, "{model}");
    }
}

#[test]
fn slow_clients_do_not_hold_up_others_where_no_thread_belongs_to_one() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("large"), vec![b'x'; 32 << 20]).unwrap();
    fs::write(dir.path().join("index.html"), "small").unwrap();
    let content = dir.path().to_str().unwrap();
    let cases: [(&str, &[&str]); 7] = [
        ("reactor", &[]),
        ("reactor", &["poller=poll"]),
        ("reactor", &["poller=select"]),
        ("reactors", &["worker_processes=1"]),
        ("reactors", &["worker_processes=2", "accept=reuseport"]),
        ("uring", &["rings=1"]),
        ("pool", &["max-thread=1"]),
    ];
    for (model, settings) in cases {
        if !runs_here(model) {
            continue;
        }
        let server = Server::start(model, Setup { content, settings, ..FIXED });
        let mut slow: Vec<Conn> = (0..4).map(|_| server.connect()).collect();
        for (number, conn) in slow.iter_mut().enumerate() {
            let request = "GET /large HTTP/1.1\r\nHost: test\r\n\r\n";
            // Two stop in the middle of a head, two never read the body.
            conn.send(&request[..if number < 2 { 20 } else { request.len() }]);
        }
        for _ in 0..20 {
            assert_eq!(server.connect().ask(GET).body, b"small", "{model}");
        }
        let mut reader = slow.pop().unwrap();
        assert_eq!(reader.response().body.len(), 32 << 20, "{model}");
    }
}

#[test]
fn a_kept_connection_is_closed_after_its_time_and_not_before() {
    for model in models() {
        let settings = &["KeepAliveTimeout=150ms"];
        let server = Server::start(model, Setup { settings, ..FIXED });
        let mut conn = server.connect();
        let start = Instant::now();
        assert_eq!(conn.ask(GET).status(), 200);
        assert_eq!(conn.rest(), b"", "{model}");
        // A blocking model may be 2 % early: see `CallLimit`.
        assert!(start.elapsed() >= Duration::from_millis(147), "{model} {:?}", start.elapsed());
    }
}

#[test]
fn past_the_bound_connections_wait_and_are_served_in_the_end() {
    let more: [(&str, &[&str]); 3] = [
        ("reactor", &["server.max-connections=2", "poller=poll"]),
        ("reactor", &["server.max-connections=2", "poller=select"]),
        (
            "reactors",
            &["worker_processes=3", "worker_connections=2", "overflow=wait", "accept=reuseport"],
        ),
    ];
    let all = models().map(|model| (model, two_at_once(model).unwrap_or_default()));
    for (model, settings) in all.chain(more) {
        let server = Server::start(model, Setup { settings, ..FIXED });
        let mut conns: Vec<Conn> = (0..8).map(|_| server.connect()).collect();
        for conn in &mut conns {
            conn.send(GET_CLOSE);
        }
        for mut conn in conns {
            assert_eq!(conn.response().status(), 200, "{model}");
        }
    }
}

#[test]
fn an_idle_connection_of_a_loop_holds_little_and_leaves_nothing_behind() {
    const COUNT: usize = 2000;
    // The loops keep their connection slots for the next ones; a ring keeps the buffers that it receives into.
    const LEFT_MAX: u64 = 4 << 20;
    let files = sys::socket::raise_file_limit().unwrap();
    assert!(files > 3 * COUNT as u64, "`ulimit -n` allows {files} files only");
    let models = ["reactor", "reactors", "reactor-pool", "uring"];
    for model in models.into_iter().filter(|model| runs_here(model)) {
        let settings = &["KeepAliveTimeout=600"];
        let server = Server::start(model, Setup { settings, ..FIXED });
        let ask = |count: usize| -> Vec<Conn> {
            let asked = |_| {
                let mut conn = server.connect();
                assert_eq!(conn.ask(GET).status(), 200, "{model}");
                conn
            };
            (0..count).map(asked).collect()
        };
        let _first = ask(100);
        let before = server.memory_bytes();
        let idle = ask(COUNT);
        let each = server.memory_bytes().saturating_sub(before) / COUNT as u64;
        let most = if model == "uring" { 2560 } else { 2048 };
        assert!(each < most, "{model}: {each} bytes");
        drop(idle);
        eventually(&format!("what they held is given back: {model}"), || {
            server.memory_bytes().saturating_sub(before) < LEFT_MAX
        });
    }
}

#[test]
fn overflow_close_closes_what_is_past_max_request() {
    let settings = &["max-request=1", "max-thread=1", "overflow=close"];
    let server = Server::start("pool", Setup { settings, ..FIXED });
    let mut held = server.connect();
    assert_eq!(held.ask(GET).status(), 200);
    assert_eq!(server.connect().rest(), b"");
    assert_eq!(held.ask(GET_CLOSE).status(), 200);
    assert_eq!(held.rest(), b"");
    eventually("there is room again", || {
        let mut conn = server.connect();
        // Not `ask`: the connection may be closed before or after it is written to.
        conn.try_send(GET_CLOSE) && conn.rest().starts_with(b"HTTP/1.1 200")
    });
}

#[test]
fn without_descriptors_accepting_rests_and_goes_on_when_one_is_free() {
    for model in ["reactor", "reactors", "reactor-pool", "pool"] {
        let server = Server::start(model, FIXED);
        let limit = rustix::process::Rlimit { current: Some(16), maximum: Some(16) };
        let resource = rustix::process::Resource::Nofile;
        rustix::process::prlimit(Some(server.pid()), resource, limit).unwrap();
        let mut conns: Vec<Conn> = (0..24).map(|_| server.connect()).collect();
        for conn in &mut conns {
            conn.send(GET_CLOSE);
        }
        for mut conn in conns {
            assert_eq!(conn.response().status(), 200, "{model}");
        }
        let _held: Vec<Conn> = (0..24).map(|_| server.connect()).collect();
        let before = server.cpu_ticks();
        std::thread::sleep(Duration::from_millis(600));
        let spent = server.cpu_ticks() - before;
        // A loop that spins takes 60, or half of that beside another program.
        assert!(spent <= 10, "{model} spun for {spent} ticks");
    }
}

#[test]
fn a_lack_of_descriptors_is_told_once_however_many_notice_it() {
    for model in models().filter(|model| support::two_at_once(model).is_some()) {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("error.log");
        let config = format!("[error_log]\nfile = \"{}\"\n", log.display());
        let server = Server::start(model, Setup { config: &config, ..FIXED });
        // The serving processes may be children, and their number is not known.
        eventually("somebody serves", || server.connect().ask(GET_CLOSE).status() == 200);
        let limit = rustix::process::Rlimit { current: Some(20), maximum: Some(20) };
        // No file for models whose processes take few connections.
        let none = rustix::process::Rlimit { current: Some(3), maximum: Some(3) };
        let resource = rustix::process::Resource::Nofile;
        for pid in server.children().into_iter().chain([server.pid()]) {
            let limit = if ["prefork", "worker", "fork"].contains(&model) { none } else { limit };
            rustix::process::prlimit(Some(pid), resource, limit).unwrap();
        }
        let _held: Vec<Conn> = (0..60)
            .map(|_| {
                let mut conn = server.connect();
                // A child of prefork first has to finish the connection that it was already waiting for.
                conn.send(if model == "prefork" { GET_CLOSE } else { "GET / HTTP" });
                conn
            })
            .collect();
        let lines = || {
            let text = fs::read_to_string(&log).unwrap();
            text.lines().filter(|line| line.contains("cannot accept a connection")).count()
        };
        eventually(&format!("{model} lacks descriptors"), || lines() > 0);
        // Time for three more attempts.
        std::thread::sleep(Duration::from_millis(300));
        assert_eq!(lines(), 1, "{model}: {}", fs::read_to_string(&log).unwrap());
    }
}

#[test]
fn prefork_children_come_under_load_and_go_after_it() {
    let settings =
        &["StartServers=5", "MinSpareServers=5", "MaxSpareServers=10", "MaxRequestWorkers=150"];
    let server = Server::start("prefork", Setup { settings, ..FIXED });
    eventually("five were started", || server.children().len() == 5);
    // 1, 2 and 4 more a second, until five are idle besides the eight that are held: 12 at least.
    let held: Vec<Conn> = (0..8)
        .map(|_| {
            let mut conn = server.connect();
            conn.send("GET / HTTP");
            conn
        })
        .collect();
    eventually("there are five idle beside eight held", || server.children().len() >= 13);
    drop(held);
    eventually("ten are left", || server.children().len() == 10);
}

#[test]
fn worker_children_come_under_load_and_go_after_it() {
    let settings = &[
        "StartServers=1",
        "ThreadsPerChild=2",
        "MaxRequestWorkers=8",
        "MinSpareThreads=2",
        "MaxSpareThreads=4",
    ];
    let server = Server::start("worker", Setup { settings, ..FIXED });
    eventually("one was started", || server.children().len() == 1);
    let mut held: Vec<Conn> = (0..4).map(|_| server.connect()).collect();
    for conn in &mut held {
        assert_eq!(conn.ask(GET).status(), 200);
    }
    eventually("two threads are idle beside four held", || server.children().len() == 3);
    drop(held);
    eventually("four threads are left", || server.children().len() == 2);
}

#[test]
fn a_child_that_waits_for_its_last_slow_client_does_not_keep_others_from_being_started() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("large"), vec![b'x'; 32 << 20]).unwrap();
    fs::write(dir.path().join("index.html"), "small").unwrap();
    let content = dir.path().to_str().unwrap();
    for model in ["worker", "event"] {
        let settings = &[
            "StartServers=1",
            "ThreadsPerChild=4",
            "MaxRequestWorkers=16",
            "MinSpareThreads=2",
            "MaxSpareThreads=6",
            "MaxConnectionsPerChild=1",
        ];
        let server = Server::start(model, Setup { content, settings, ..FIXED });
        let mut slow = server.connect();
        slow.send("GET /large HTTP/1.1\r\nHost: test\r\n\r\n");
        slow.head_end();
        // Three threads of that child have nothing to do, and never will have.
        assert_eq!(server.connect().ask(GET_CLOSE).body, b"small", "{model}");
        assert_eq!(slow.response().body.len(), 32 << 20, "{model}");
    }
}

#[test]
fn prefork_children_that_reach_their_quota_are_replaced_within_the_bounds() {
    let settings = &[
        "StartServers=5",
        "MinSpareServers=5",
        "MaxSpareServers=10",
        "MaxRequestWorkers=150",
        "MaxConnectionsPerChild=100",
    ];
    let server = Server::start("prefork", Setup { settings, ..FIXED });
    let mut seen = BTreeSet::new();
    let mut most = 0;
    // Six quotas of connections: the first five children cannot have served them.
    for _ in 0..600 {
        assert_eq!(server.connect().ask(GET_CLOSE).status(), 200);
        let children = server.children();
        most = most.max(children.len());
        seen.extend(children.into_iter().map(|pid| pid.as_raw_nonzero().get()));
    }
    assert!(seen.len() > 5, "{seen:?}");
    // One is busy at a time, and while children die there is no maintenance.
    assert!(most <= 16, "{most}");
    eventually("five to ten are left", || (5..=10).contains(&server.children().len()));
}

/// Threads of Tomcat's executor.
fn executors(server: &Server) -> usize {
    server.threads().iter().filter(|name| *name == "joust exec").count()
}

#[test]
fn the_executor_grows_before_it_queues_and_shrinks_after_its_idle_time() {
    let settings = &["minSpareThreads=2", "maxThreads=4", "threadsMaxIdleTime=200ms"];
    let faults = &["delay=1s"];
    let server = Server::start("poller", Setup { settings, faults, ..FIXED });
    eventually("the spare threads are there", || executors(&server) == 2);
    let mut conns: Vec<Conn> = (0..6).map(|_| server.connect()).collect();
    conns.iter_mut().for_each(|conn| conn.send(GET));
    eventually("there are as many as may be", || executors(&server) == 4);
    // Six requests of a second each, by four threads at most.
    assert!(conns.iter_mut().all(|conn| conn.response().status() == 200));
    assert!(executors(&server) <= 4);
    eventually("the spare threads are left", || executors(&server) == 2);
    assert_eq!(conns[0].ask(GET).status(), 200);
}

#[test]
fn the_executor_closes_what_is_past_its_queue() {
    let settings = &["minSpareThreads=1", "maxThreads=1", "maxQueueSize=1"];
    let faults = &["delay=2s"];
    let server = Server::start("poller", Setup { settings, faults, ..FIXED });
    let mut conns: Vec<Conn> = (0..3).map(|_| server.connect()).collect();
    for conn in &mut conns {
        conn.send(GET);
        std::thread::sleep(Duration::from_millis(100));
    }
    let answers: Vec<bool> = conns.into_iter().map(|conn| conn.next_is_answer()).collect();
    assert_eq!(answers, [true, true, false]);
}

#[test]
fn a_slow_reader_holds_no_worker_of_event() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("large"), vec![b'x'; 32 << 20]).unwrap();
    fs::write(dir.path().join("index.html"), "small").unwrap();
    let content = dir.path().to_str().unwrap();
    let settings = &[
        // Two, because one idle thread is not enough to begin accepting again, as in Apache.
        "ThreadsPerChild=2",
        "MaxRequestWorkers=2",
        "StartServers=1",
        "AsyncRequestWorkerFactor=100",
    ];
    let server = Server::start("event", Setup { content, settings, ..FIXED });
    let mut slow: Vec<Conn> = (0..4).map(|_| server.connect()).collect();
    slow.iter_mut().for_each(|conn| conn.send("GET /large HTTP/1.1\r\nHost: test\r\n\r\n"));
    for _ in 0..20 {
        assert_eq!(server.connect().ask(GET_CLOSE).body, b"small");
    }
    for mut reader in slow {
        assert_eq!(reader.response().body.len(), 32 << 20);
    }
}

#[test]
fn a_connection_of_iterative_is_all_that_is_served_until_it_ends() {
    let server =
        Server::start("iterative", Setup { settings: &["KeepAliveTimeout=300ms"], ..FIXED });
    let mut held = server.connect();
    assert_eq!(held.ask(GET).status(), 200);
    let mut waits = server.connect();
    waits.send(GET);
    let start = Instant::now();
    assert_eq!(waits.response().status(), 200);
    assert_eq!(held.rest(), b"");
    assert!(start.elapsed() >= Duration::from_millis(250), "{:?}", start.elapsed());
}

#[test]
fn a_client_that_has_ended_its_side_and_reads_slowly_keeps_nobody_busy() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("large"), vec![b'x'; 32 << 20]).unwrap();
    let content = dir.path().to_str().unwrap();
    for model in models() {
        let server = Server::start(model, Setup { content, ..FIXED });
        let mut conn = server.connect();
        conn.send("GET /large HTTP/1.1\r\nHost: test\r\n\r\n");
        conn.end_sending();
        assert!(conn.head_end() > 0);
        // Until the buffers of both sides are full.
        std::thread::sleep(Duration::from_millis(200));
        let before = server.cpu_ticks();
        std::thread::sleep(Duration::from_millis(600));
        let spent = server.cpu_ticks().saturating_sub(before);
        // A server that spins takes 60, or half of that beside another program.
        assert!(spent <= 10, "{model} spun for {spent} ticks");
        assert_eq!(conn.response().body.len(), 32 << 20, "{model}");
    }
}

#[test]
fn a_loop_that_is_full_leaves_connections_to_those_that_are_not() {
    let settings =
        &["worker_processes=2", "worker_connections=2", "overflow=wait", "KeepAliveTimeout=5m"];
    let server = Server::start("reactors", Setup { settings, ..FIXED });
    let mut kept: Vec<Conn> = Vec::new();
    for _ in 0..4 {
        let mut conn = server.connect();
        assert_eq!(conn.ask(GET).status(), 200);
        kept.push(conn);
    }
    // All four places are taken; the next one waits until one is free.
    let mut next = server.connect();
    next.send(GET);
    kept.pop();
    assert_eq!(next.response().status(), 200);
}
