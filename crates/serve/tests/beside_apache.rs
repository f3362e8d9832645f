//! Our prefork, worker and event beside Apache's: the same settings and the same clients must give the same children
//! and connections. Needs Debian's apache2; without it each test says that it was skipped. Start reading at
//! [`Contender`].

mod support;

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use support::apache::Apache;
use support::{Conn, GET, Server, Setup, children_of, eventually};
use sys::process::Pid;

/// A server under test, ours or Apache's.
enum Contender {
    Ours(Server),
    Apache(Apache),
}

impl Contender {
    /// Both, of one model with the same settings; `None` if there is no Apache.
    fn both(model: &str, settings: &[&str]) -> Option<[Self; 2]> {
        let apache = Apache::start(model, settings)?;
        let ours = Server::start(model, Setup { settings, ..support::FIXED });
        Some([Self::Ours(ours), Self::Apache(apache)])
    }

    fn connect(&self) -> Conn {
        match self {
            Self::Ours(server) => server.connect(),
            Self::Apache(apache) => Conn::to(apache.addr),
        }
    }

    fn children(&self) -> usize {
        match self {
            Self::Ours(server) => server.children().len(),
            Self::Apache(apache) => {
                children_of(Pid::from_raw(apache.process.id() as i32).unwrap()).len()
            }
        }
    }

    /// The numbers of children that stayed for a while, in order, up to `last`.
    fn settled_children(&self, last: usize) -> Vec<usize> {
        let mut seen = vec![];
        let (mut count, mut since) = (self.children(), Instant::now());
        eventually("the last number of children is reached", || {
            let now = self.children();
            if now != count {
                (count, since) = (now, Instant::now());
            } else if since.elapsed() > Duration::from_millis(400) && seen.last() != Some(&now) {
                seen.push(now);
            }
            seen.last() == Some(&last)
        });
        seen
    }
}

/// What `watch` gives for both, at the same time. A machine under load may delay a child by more than the second
/// between two looks of its parent, so they have three tries to agree.
fn agree<T: PartialEq + std::fmt::Debug + Send>(
    model: &str,
    settings: &[&str],
    watch: impl Fn(&Contender) -> T + Sync,
) -> Option<T> {
    let mut told = String::new();
    for _ in 0..3 {
        let contenders = Contender::both(model, settings)?;
        let [ours, theirs] = std::thread::scope(|scope| {
            let runs = contenders.each_ref().map(|contender| scope.spawn(|| watch(contender)));
            runs.map(|run| run.join().ok())
        });
        if ours.is_some() && ours == theirs {
            return ours;
        }
        write!(told, "\nours {ours:?}, Apache's {theirs:?}").unwrap();
    }
    panic!("{model} with {settings:?} differs:{told}");
}

/// `count` connections, each with a request that has begun.
fn begin(contender: &Contender, count: usize) -> Vec<Conn> {
    let mut conns: Vec<Conn> = (0..count).map(|_| contender.connect()).collect();
    conns.iter_mut().for_each(|conn| conn.send("GET / HTTP"));
    conns
}

#[test]
fn prefork_children_come_and_go_in_apaches_sequence() {
    let settings = ["StartServers=5", "MinSpareServers=5", "MaxSpareServers=10"];
    let seen = agree("prefork", &settings, |contender| {
        let before = contender.settled_children(5);
        let held = begin(contender, 8);
        // Eight busy and ten idle in the end.
        let under_load = contender.settled_children(18);
        drop(held);
        (before, under_load, contender.settled_children(10))
    });
    if let Some((_, under_load, after)) = seen {
        assert_eq!(under_load, [5, 6, 8, 12, 20, 19, 18]);
        assert_eq!(after, [18, 17, 16, 15, 14, 13, 12, 11, 10]);
    }
}

#[test]
fn worker_and_event_children_come_and_go_in_apaches_sequence() {
    let settings = [
        "StartServers=1",
        "ThreadsPerChild=2",
        "MaxRequestWorkers=32",
        "MinSpareThreads=2",
        "MaxSpareThreads=4",
    ];
    for model in ["worker", "event"] {
        let seen = agree(model, &settings, |contender| {
            let before = contender.settled_children(1);
            let held = begin(contender, 4);
            let under_load = contender.settled_children(4);
            drop(held);
            (before, under_load, contender.settled_children(2))
        });
        if let Some(seen) = seen {
            assert_eq!(seen, (vec![1], vec![1, 2, 4], vec![4, 3, 2]), "{model}");
        }
    }
}

/// One child of four threads that takes 4 + 2 * 4 connections while none works.
const ONE_CHILD: [&str; 9] = [
    "StartServers=1",
    "ServerLimit=1",
    "ThreadsPerChild=4",
    "MaxRequestWorkers=4",
    "MinSpareThreads=1",
    "MaxSpareThreads=5",
    "AsyncRequestWorkerFactor=2",
    "KeepAliveTimeout=300",
    "MaxKeepAliveRequests=0",
];

/// Which of the connections have an answer, once no more answers come.
fn answered(conns: &mut [Conn]) -> Vec<usize> {
    let (mut seen, mut since) = (Vec::new(), Instant::now());
    while since.elapsed() < Duration::from_millis(1500) {
        for (at, conn) in conns.iter_mut().enumerate() {
            if !seen.contains(&at) && conn.has_bytes() {
                assert_eq!(conn.response().status(), 200);
                seen.push(at);
                since = Instant::now();
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    seen.sort_unstable();
    seen
}

#[test]
fn an_event_child_takes_as_many_connections_as_apaches_and_closes_idle_ones_when_all_work() {
    let seen = agree("event", &ONE_CHILD, |contender| {
        // One after the other: a worker is idle again before the next comes.
        let (mut conns, mut is_open) = (Vec::new(), true);
        for _ in 0..20 {
            let mut conn = contender.connect();
            conn.send(GET);
            let asked = Instant::now();
            while is_open && !conn.has_bytes() {
                std::thread::sleep(Duration::from_millis(5));
                is_open = asked.elapsed() < Duration::from_secs(2);
            }
            conns.push(conn);
        }
        let taken = answered(&mut conns);
        // All four threads work on requests that have begun.
        for conn in &mut conns[..4] {
            conn.send("GET / HTTP");
        }
        std::thread::sleep(Duration::from_millis(500));
        // And a fifth one asks.
        conns[4].send(GET);
        std::thread::sleep(Duration::from_millis(500));
        let waits: Vec<bool> = conns[12..].iter_mut().map(Conn::has_bytes).collect();
        // The four are answered.
        let rest = &GET["GET / HTTP".len()..];
        conns[..4].iter_mut().for_each(|conn| conn.send(rest));
        let at_last: Vec<u16> =
            conns[..4].iter_mut().map(|conn| conn.response().status()).collect();
        // Ours are closed at once, Apache's when the first worker that is idle comes to it.
        eventually("idle connections are closed", || conns[4..12].iter_mut().all(Conn::has_ended));
        // How many more are taken depends on how fast a worker is idle again: some are.
        let takes_more = !answered(&mut conns[12..]).is_empty();
        (taken, waits, at_last, takes_more)
    });
    if let Some(seen) = seen {
        assert_eq!(seen, ((0..12).collect(), vec![false; 8], vec![200; 4], true));
    }
}

#[test]
fn event_children_full_of_idle_connections_are_joined_by_others_as_apaches_are() {
    // Three children take 25 + 2 * 25 connections each, and 25 of their threads have nothing to do.
    let seen = agree("event", &["KeepAliveTimeout=300"], |contender| {
        // One after the other: if all threads are busy at once, idle connections are closed.
        let mut conns = Vec::new();
        for _ in 0..230 {
            let mut conn = contender.connect();
            conn.send(GET);
            let asked = Instant::now();
            while !conn.has_bytes() && asked.elapsed() < Duration::from_millis(50) {
                std::thread::yield_now();
            }
            conns.push(conn);
        }
        let served = conns.iter_mut().all(|conn| conn.response().status() == 200);
        // The idle threads of three more children are as many as MinSpareThreads; those of the full ones do not count.
        (served, contender.settled_children(6).last().copied())
    });
    if let Some(seen) = seen {
        assert_eq!(seen, (true, Some(6)));
    }
}

/// What one connection shows of its limits.
#[derive(Debug, PartialEq, Eq)]
struct Kept {
    /// Of each answer until the last: its `Keep-Alive` and whether it is the last.
    answers: Vec<(Option<String>, bool)>,
    /// It ended after the last answer, silently.
    ended: bool,
}

/// Asks on one connection for as long as it may.
fn ask_on(contender: &Contender, request: &str) -> Kept {
    let mut conn = contender.connect();
    let mut answers = Vec::new();
    while answers.last().is_none_or(|(_, closes)| !closes) {
        let response = conn.ask(request);
        let field = response.head.lines().find_map(|line| line.strip_prefix("Keep-Alive: "));
        answers.push((field.map(str::to_owned), response.closes()));
    }
    Kept { answers, ended: conn.rest().is_empty() }
}

#[test]
fn connections_are_kept_alive_as_often_and_as_long_as_apaches() {
    let old = "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";
    let asked = "GET / HTTP/1.1\r\nHost: test\r\nConnection: keep-alive\r\n\r\n";
    for model in ["prefork", "worker", "event"] {
        let settings = ["MaxKeepAliveRequests=3", "KeepAliveTimeout=1"];
        agree(model, &settings, |contender| {
            let kept = [GET, asked, old].map(|request| ask_on(contender, request));
            // Nothing is asked any more: it ends by itself, after a second and not at once.
            let mut conn = contender.connect();
            assert_eq!(conn.ask(GET).status(), 200);
            let since = Instant::now();
            let silent = conn.rest().is_empty();
            (kept, silent, since.elapsed() > Duration::from_millis(900))
        });
        agree(model, &["MaxKeepAliveRequests=0"], |contender| {
            let mut conn = contender.connect();
            (0..150).all(|_| !conn.ask(GET).closes())
        });
        agree(model, &["KeepAlive=Off"], |contender| ask_on(contender, asked));
    }
}
