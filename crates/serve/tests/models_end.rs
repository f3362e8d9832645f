//! How a server of each model ends: in order, at once, or killed; and that nothing of it is left behind. Start reading
//! at the tests.

mod support;

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use socket2::{Domain, SockFilter, Socket, Type};
use support::{
    Conn, FIXED, GET, GET_CLOSE, LONG, Server, Setup, eventually, is_alive, models, two_at_once,
};
use sys::process::Signal;

fn is_refused(server: &Server) -> bool {
    matches!(TcpStream::connect(server.addr), Err(error) if error.kind() == ErrorKind::ConnectionRefused)
}

#[test]
fn an_idle_server_ends_by_sigterm_and_by_sigint_and_leaves_nothing() {
    for model in models() {
        for signal in [Signal::TERM, Signal::INT] {
            let mut server = Server::start(model, FIXED);
            assert_eq!(server.connect().ask(GET).status(), 200);
            let children = server.children();
            server.signal(signal);
            assert!(server.ended().success(), "{model} {signal:?}");
            assert!(is_refused(&server), "{model} {signal:?}");
            assert!(!children.into_iter().any(is_alive), "{model} {signal:?}");
        }
    }
}

#[test]
fn a_drain_answers_what_was_begun_and_what_waits_and_closes_what_is_idle() {
    for model in models() {
        let two = two_at_once(model);
        let settings = two.unwrap_or_default();
        let mut server = Server::start(model, Setup { settings, ..FIXED });
        let idle = two.is_some().then(|| {
            let mut idle = server.connect();
            assert_eq!(idle.ask(GET).status(), 200);
            idle
        });
        let mut begun = server.connect();
        // event closes a kept-alive connection if its next request finds no idle thread, as httpd does; a fresh one has
        // the thread to itself.
        if model != "event" {
            assert_eq!(begun.ask(GET).status(), 200);
        }
        let (head, tail) = GET.split_at(20);
        begun.send(head);
        // These are in the backlog: those above are all that the server holds.
        let mut waiting: Vec<_> = (0..3).map(|_| server.connect()).collect();
        for conn in &mut waiting {
            conn.send(GET);
        }
        server.signal(Signal::TERM);
        if let Some(idle) = idle {
            assert_eq!(idle.rest(), b"", "{model}: an idle connection is closed without a word");
        }
        begun.send(tail);
        for mut conn in std::iter::once(begun).chain(waiting) {
            let response = conn.response();
            assert_eq!((response.status(), response.body.len()), (200, 3361), "{model}");
            // event closed its idle connection before, since its one thread was busy: that does not show whether the
            // children know of the drain.
            assert!(response.closes() || model == "event", "{model}: {}", response.head);
            assert_eq!(conn.rest(), b"", "{model}");
        }
        assert!(server.ended().success(), "{model}");
        assert!(is_refused(&server), "{model}");
    }
}

#[test]
fn a_connection_is_answered_or_is_not_made_while_a_server_drains() {
    for model in models() {
        let settings = two_at_once(model).unwrap_or_default();
        let mut server = Server::start(model, Setup { settings, ..FIXED });
        assert_eq!(server.connect().ask(GET_CLOSE).status(), 200);
        // They keep the server full until they are completed, and keep the drain from ending.
        let (head, tail) = GET.split_at(20);
        let mut begun: Vec<_> = (0..2).map(|_| server.connect()).collect();
        begun.iter_mut().for_each(|conn| conn.send(head));
        let mut waiting: Vec<_> = (0..3).map(|_| server.connect()).collect();
        waiting.iter_mut().for_each(|conn| conn.send(GET));
        server.signal(Signal::TERM);
        // Some may be as fast as the signal: they wait with the others. Later ones would be reset.
        let start = Instant::now();
        while let Some(mut conn) = Conn::to_within(server.addr, Duration::from_millis(100)) {
            conn.send(GET);
            waiting.push(conn);
            assert!(start.elapsed() < LONG / 6, "{model} takes connections all the time it drains");
            std::thread::sleep(Duration::from_millis(10));
        }
        begun.iter_mut().for_each(|conn| conn.send(tail));
        for mut conn in begun.into_iter().chain(waiting) {
            let response = conn.response();
            assert_eq!((response.status(), response.body.len()), (200, 3361), "{model}");
            assert_eq!(conn.rest(), b"", "{model}");
        }
        assert!(server.ended().success(), "{model}");
        assert!(is_refused(&server), "{model}");
    }
}

/// A client whose handshake the server has answered, and which does not receive that answer until its filter is
/// removed: the kernel of the server sends it again after one second.
fn half_connected(addr: SocketAddr) -> Socket {
    let client = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    client.attach_filter(&[SockFilter::new(0x06, 0, 0, 0)]).unwrap();
    client.set_nonblocking(true).unwrap();
    let begun = client.connect(&addr.into()).unwrap_err();
    assert_eq!(begun.raw_os_error(), Some(115), "EINPROGRESS");
    client
}

fn is_answered_when_connected(client: Socket) -> bool {
    client.detach_filter().unwrap();
    client.set_nonblocking(false).unwrap();
    client.set_read_timeout(Some(LONG)).unwrap();
    client.set_write_timeout(Some(LONG)).unwrap();
    let mut client = TcpStream::from(client);
    let mut answer = Vec::new();
    // Blocks until the connection is made or refused.
    let is_sent = client.write_all(GET_CLOSE.as_bytes()).is_ok();
    is_sent && client.read_to_end(&mut answer).is_ok() && answer.starts_with(b"HTTP/1.1 200")
}

#[test]
fn a_handshake_that_had_begun_before_a_drain_is_completed_and_answered() {
    std::thread::scope(|scope| {
        // Each waits for a second.
        for model in models() {
            let is_answered = move || {
                let mut server = Server::start(model, FIXED);
                assert_eq!(server.connect().ask(GET_CLOSE).status(), 200);
                let client = half_connected(server.addr);
                server.signal(Signal::TERM);
                eventually("no connection begins any more", || {
                    Conn::to_within(server.addr, Duration::from_millis(50)).is_none()
                });
                let is_answered = is_answered_when_connected(client);
                assert!(server.ended().success(), "{model}");
                is_answered
            };
            // Of a few tries, at least one is done within that second even on a busy machine.
            scope.spawn(move || assert!((0..5).any(|_| is_answered()), "{model}"));
        }
    });
}

/// Asks on a new connection each time until none is made. Counts what was answered, and returns how many connections
/// were made and got not a byte.
fn connect_in_a_loop(addr: SocketAddr, answered: &AtomicUsize) -> usize {
    let mut lost = 0;
    while let Some(mut conn) = Conn::to_within(addr, Duration::from_millis(100)) {
        match conn.try_send(GET_CLOSE) && !conn.rest().is_empty() {
            true => _ = answered.fetch_add(1, Relaxed),
            false => lost += 1,
        }
    }
    lost
}

#[test]
fn no_client_that_was_connected_is_reset_when_a_server_under_load_drains() {
    for model in models() {
        let mut server = Server::start(model, FIXED);
        let answered = AtomicUsize::new(0);
        let lost: usize = std::thread::scope(|scope| {
            let clients = [(); 16].map(|()| {
                let (addr, answered) = (server.addr, &answered);
                scope.spawn(move || connect_in_a_loop(addr, answered))
            });
            eventually("the clients are served", || answered.load(Relaxed) >= 100);
            server.signal(Signal::TERM);
            clients.into_iter().map(|client| client.join().unwrap()).sum()
        });
        assert_eq!(lost, 0, "{model}: of {} and {lost}", answered.into_inner());
        assert!(server.ended().success(), "{model}");
    }
}

#[test]
fn a_drain_of_several_loops_answers_what_waits_in_every_queue() {
    let ways: [&[&str]; 4] = [
        &["worker_processes=3", "accept=exclusive"],
        &["worker_processes=3", "accept=exclusive", "multi_accept=on"],
        &["worker_processes=3", "accept=reuseport"],
        // Less room than connections that wait; those beyond it would be closed. Some were in 2 of 40 runs, on a
        // machine where a loop ran on for milliseconds after SIGSTOP was sent to another thread. It accepted
        // connections that had sent nothing yet, and closed them to make room for others, as it is set to.
        // `Server::stop` waits until each thread has stopped.
        &["worker_processes=2", "accept=reuseport", "worker_connections=4"],
    ];
    for settings in ways {
        let mut server = Server::start("reactors", Setup { settings, ..FIXED });
        assert_eq!(server.connect().ask(GET_CLOSE).status(), 200);
        // Nobody accepts until the signal is there too.
        server.stop();
        let mut waiting: Vec<_> = (0..48).map(|_| server.connect()).collect();
        waiting.iter_mut().for_each(|conn| conn.send(GET));
        server.signal(Signal::TERM);
        server.signal(Signal::CONT);
        let mut answered = 0;
        for mut conn in waiting {
            // Those that the listener's own event took in before the signal's may be idle by then.
            let response = conn.response();
            assert_eq!(response.status(), 200, "{settings:?}");
            answered += 1;
        }
        assert_eq!(answered, 48);
        assert!(server.ended().success(), "{settings:?}");
        assert!(is_refused(&server), "{settings:?}");
    }
}

#[test]
fn a_drain_answers_what_waits_where_the_children_were_told_to_end_before_their_parent() {
    for model in ["prefork", "worker", "event"] {
        let settings = two_at_once(model).unwrap();
        let mut server = Server::start(model, Setup { settings, ..FIXED });
        let _held: Vec<_> = (0..2)
            .map(|_| {
                let mut conn = server.connect();
                assert_eq!(conn.ask(GET).status(), 200);
                conn
            })
            .collect();
        let mut waiting: Vec<_> = (0..3).map(|_| server.connect()).collect();
        waiting.iter_mut().for_each(|conn| conn.send(GET));
        // As when a signal to the whole group reaches the children first, on a busy machine.
        server.stop();
        let children = server.children();
        eventually("the children end", || {
            // Again each time: a signal that comes just before a call blocks is lost.
            for &child in &children {
                let _ = sys::process::signal(child, Signal::TERM);
            }
            server.children().is_empty()
        });
        server.signal(Signal::TERM);
        server.signal(Signal::CONT);
        for mut conn in waiting {
            assert_eq!(conn.response().status(), 200, "{model}");
        }
        assert!(server.ended().success(), "{model}");
    }
}

#[test]
fn a_drain_ends_in_time_whatever_a_client_does() {
    for model in models() {
        let settings = &["GracefulShutdownTimeout=200ms"];
        let mut server = Server::start(model, Setup { settings, ..FIXED });
        let mut stuck = server.connect();
        assert_eq!(stuck.ask(GET).status(), 200);
        stuck.send("GET / HTTP");
        server.signal(Signal::TERM);
        assert!(server.ended().success(), "{model}");
        assert_eq!(stuck.rest(), b"", "{model}");
    }
}

#[test]
fn sigint_cuts_what_is_under_way() {
    for model in models() {
        let mut server = Server::start(model, FIXED);
        let mut stuck = server.connect();
        assert_eq!(stuck.ask(GET).status(), 200);
        stuck.send("GET / HTTP");
        server.signal(Signal::INT);
        assert!(server.ended().success(), "{model}");
    }
}

#[test]
fn no_child_survives_its_parent() {
    for model in ["prefork", "worker", "event"] {
        let mut server = Server::start(model, FIXED);
        eventually("there are children", || !server.children().is_empty());
        let children = server.children();
        let mut held = server.connect();
        assert_eq!(held.ask(GET).status(), 200);
        server.signal(Signal::KILL);
        server.ended();
        eventually("all children are gone", || !children.iter().copied().any(is_alive));
        eventually("the port is closed", || is_refused(&server));
    }
}

/// Two children of two threads each, which are all in reserve.
const TWO_BY_TWO: &[&str] = &[
    "StartServers=2",
    "ThreadsPerChild=2",
    "MaxRequestWorkers=8",
    "MinSpareThreads=4",
    "MaxSpareThreads=6",
];

/// The same with so many threads that never all of them work: otherwise event would close kept-alive connections.
const TWO_BY_EIGHT: &[&str] = &[
    "StartServers=2",
    "ThreadsPerChild=8",
    "MaxRequestWorkers=32",
    "MinSpareThreads=8",
    "MaxSpareThreads=24",
];

/// Sets the flag when dropped, even in a panic.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

#[test]
fn a_killed_child_takes_with_it_what_it_held_and_nothing_else() {
    const N: usize = 6;
    let cases: [(&str, &[&str]); 4] =
        [("fork", &[]), ("prefork", &[]), ("worker", TWO_BY_TWO), ("event", TWO_BY_EIGHT)];
    for (model, settings) in cases {
        let settings = [settings, &["KeepAliveTimeout=5m"]].concat();
        let mut server = Server::start(model, Setup { settings: &settings, ..FIXED });
        let is_over = AtomicBool::new(false);
        let lost = std::thread::scope(|scope| {
            let load = || {
                let mut lost = 0;
                while !is_over.load(Relaxed) {
                    let mut conn = server.connect();
                    lost += usize::from(!conn.try_send(GET_CLOSE) || conn.rest().is_empty());
                }
                lost
            };
            let loads = [scope.spawn(load), scope.spawn(load)];
            // A failure below must not leave them running.
            let _over = SetOnDrop(&is_over);
            let mut conns: Vec<_> = (0..N).map(|_| server.connect()).collect();
            for conn in &mut conns {
                // The child that answers it may still be starting.
                conn.send(GET);
                assert_eq!(conn.response().status(), 200, "{model}");
            }
            let killed = server.children()[0];
            let lot = server.holds(killed, &conns);
            // A child with one short connection may have ended by itself.
            assert!(sys::process::signal(killed, Signal::KILL) || model == "fork");
            let (held, others): (Vec<_>, Vec<_>) =
                conns.into_iter().zip(lot).partition(|(_, was_held)| *was_held);
            for (mut conn, _) in held {
                eventually("its connections have ended", || conn.has_ended());
            }
            for (mut conn, _) in others {
                assert_eq!(conn.ask(GET).status(), 200, "{model}");
            }
            is_over.store(true, Relaxed);
            loads.map(|load| load.join().unwrap())
        });
        // Each of the two has one connection at a time.
        assert!(lost.iter().all(|lost| *lost <= 1), "{model} lost {lost:?} with one child");
        assert_eq!(server.connect().ask(GET).status(), 200, "{model}");
        server.signal(Signal::TERM);
        assert!(server.ended().success(), "{model}");
    }
}

#[test]
fn a_killed_child_is_made_up_for() {
    // As many as are wanted in reserve, so that the loss of one is a shortage.
    let cases: [(&str, &[&str]); 3] = [
        ("prefork", &["StartServers=2", "MinSpareServers=2", "MaxSpareServers=3"]),
        ("worker", TWO_BY_TWO),
        ("event", TWO_BY_TWO),
    ];
    for (model, settings) in cases {
        let server = Server::start(model, Setup { settings, ..FIXED });
        eventually("there are two children", || server.children().len() == 2);
        let killed = server.children()[0];
        assert!(sys::process::signal(killed, Signal::KILL));
        eventually("there are two again", || {
            let children = server.children();
            children.len() == 2 && !children.contains(&killed)
        });
        assert_eq!(server.connect().ask(GET).status(), 200, "{model}");
    }
}

#[test]
fn a_full_server_that_drains_closes_its_port_before_there_is_room() {
    let settings =
        &["worker_processes=2", "worker_connections=1", "overflow=wait", "KeepAliveTimeout=5m"];
    let mut server = Server::start("reactors", Setup { settings, ..FIXED });
    let mut busy = [(); 2].map(|()| server.connect());
    for conn in &mut busy {
        assert_eq!(conn.ask(GET).status(), 200);
        conn.send("GET / HTTP/1.1\r\n");
    }
    server.signal(Signal::TERM);
    // Not by a connection, which might be one of those that wait to be served.
    let listens = |line: &str| {
        let mut words = line.split_whitespace().skip(1);
        let port = format!(":{:04X}", server.addr.port());
        words.next().is_some_and(|local| local.ends_with(&port)) && words.nth(1) == Some("0A")
    };
    eventually("its port is closed", || {
        !std::fs::read_to_string("/proc/net/tcp").unwrap().lines().any(listens)
    });
    for mut conn in busy {
        conn.send("Host: test\r\n\r\n");
        assert_eq!(conn.response().status(), 200);
    }
    assert!(server.ended().success());
}
