//! Our loops beside the servers that they follow, `reactor` beside lighttpd and `reactors` beside nginx:
//! what a client sees when they are full. Needs Debian's lighttpd and nginx-light; without them each test
//! says that it was skipped. Start reading at [`fill`].

mod support;

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use support::peer::Peer;
use support::{Conn, GET, Server, Setup, eventually};

const GET_LARGE: &str = "GET /large HTTP/1.1\r\nHost: test\r\n\r\n";

/// How long to wait for an answer that must not come.
const SILENCE: Duration = Duration::from_millis(300);

fn lighttpd(dir: &Path, conns_max: usize) -> Option<Peer> {
    lighttpd_with(dir, conns_max, "server.max-keep-alive-idle = 60")
}

fn lighttpd_with(dir: &Path, conns_max: usize, more: &str) -> Option<Peer> {
    Peer::start("lighttpd", dir, &["-D", "-f"], |addr| {
        let (path, port) = (dir.display(), addr.port());
        format!(
            "server.document-root = \"{path}/site\"\nserver.bind = \"127.0.0.1\"\n\
             server.port = {port}\nserver.max-connections = {conns_max}\n\
             {more}\nindex-file.names = (\"index.html\")\n\
             server.errorlog = \"{path}/lighttpd.log\"\n"
        )
    })
}

fn nginx(dir: &Path, conns_max: usize) -> Option<Peer> {
    nginx_with(dir, conns_max, "keepalive_timeout 60s;")
}

fn nginx_with(dir: &Path, conns_max: usize, more: &str) -> Option<Peer> {
    Peer::start("nginx", dir, &["-e", "/dev/null", "-c"], |addr| {
        let path = dir.display();
        format!(
            "daemon off; master_process off; pid {path}/nginx.pid;\n\
             error_log {path}/nginx.log; worker_processes 1;\n\
             events {{ worker_connections {conns_max}; }}\n\
             http {{ access_log off; {more}\n\
             server {{ listen {addr}; root {path}/site; }} }}\n"
        )
    })
}

/// A directory with what is served: a page, and a file that no socket buffer takes whole.
fn site() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("site")).unwrap();
    fs::write(dir.path().join("site/index.html"), "small").unwrap();
    fs::write(dir.path().join("site/large"), vec![b'x'; 32 << 20]).unwrap();
    // A peer may serve as another account.
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(dir.path(), mode).unwrap();
    dir
}

/// What becomes of a connection that asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Answered,
    Closed,
    Waits,
}

/// What becomes of a connection that has asked, as far as it is known after a while.
fn fate(conn: &mut Conn) -> Fate {
    let since = Instant::now();
    loop {
        if conn.has_bytes() {
            return Fate::Answered;
        }
        if conn.has_ended() {
            return Fate::Closed;
        }
        if since.elapsed() > SILENCE {
            return Fate::Waits;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Connections made one after the other, each when the fate of the one before is known.
fn ask_in_turn(addr: SocketAddr, request: &str, count: usize) -> (Vec<Conn>, Vec<Fate>) {
    let ask = |_| {
        let mut conn = Conn::to(addr);
        // It may be closed before it has asked.
        let fate = if conn.try_send(request) { fate(&mut conn) } else { Fate::Closed };
        (conn, fate)
    };
    (0..count).map(ask).unzip()
}

/// Sends requests on more connections than the `conns_max` for which a server has room, and then ends the first of
/// them. Returns the fates before that, of the connections held and of those beyond.
fn fill(addr: SocketAddr, request: &str, conns_max: usize) -> Vec<Fate> {
    let (mut conns, fates) = ask_in_turn(addr, request, conns_max + 3);
    drop(conns.remove(0));
    let first_past = &mut conns[conns_max - 1];
    eventually("the first that waits is answered", || first_past.has_bytes());
    fates
}

#[test]
fn where_it_is_full_connections_wait_as_in_lighttpd_until_one_ends() {
    const CONNS_MAX: usize = 8;
    let expected: Vec<Fate> = [[Fate::Answered; CONNS_MAX].as_slice(), &[Fate::Waits; 3]].concat();
    let dir = site();
    let content = dir.path().join("site");
    let content = content.to_str().unwrap();
    // Idle ones are not closed for those that wait, either.
    for request in [GET_LARGE, GET] {
        // The connection that asked whether it listens may still have a place, or the machine may be slow
        // to answer, so it has some tries.
        let mut theirs = Vec::new();
        for _ in 0..5 {
            let Some(peer) = lighttpd(dir.path(), CONNS_MAX) else { return };
            theirs = fill(peer.addr, request, CONNS_MAX);
            if theirs == expected {
                break;
            }
        }
        assert_eq!(theirs, expected, "lighttpd");
        for poller in ["poller=epoll", "poller=poll", "poller=select"] {
            let settings = &["server.max-connections=8", "KeepAliveTimeout=60", poller];
            let ours = Server::start("reactor", Setup { content, settings, ..support::FIXED });
            assert_eq!(fill(ours.addr, request, CONNS_MAX), theirs, "{poller}");
        }
    }
}

#[test]
fn where_it_is_full_of_busy_connections_others_are_closed_at_once_as_in_nginx() {
    let dir = site();
    // One of them is the listener's.
    let Some(peer) = nginx(dir.path(), 17) else { return };
    let settings = &["worker_processes=1", "worker_connections=16"];
    let content = dir.path().join("site");
    let content = content.to_str().unwrap();
    let ours = Server::start("reactors", Setup { content, settings, ..support::FIXED });
    let full = |addr| {
        let (conns, fates) = ask_in_turn(addr, GET_LARGE, 20);
        drop(conns);
        eventually("there is room again", || {
            let mut conn = Conn::to(addr);
            conn.try_send(GET) && fate(&mut conn) == Fate::Answered
        });
        fates
    };
    let (theirs, ours) = (full(peer.addr), full(ours.addr));
    assert_eq!(theirs, ours);
    let (held, past) = ours.split_at(16);
    assert!(held.iter().all(|fate| *fate == Fate::Answered), "{ours:?}");
    assert!(past.iter().all(|fate| *fate == Fate::Closed), "{ours:?}");
}

#[test]
fn idle_connections_make_room_the_oldest_first_as_in_nginx() {
    let dir = site();
    let Some(peer) = nginx(dir.path(), 65) else { return };
    let settings = &["worker_processes=1", "worker_connections=64", "KeepAliveTimeout=60"];
    let content = dir.path().join("site");
    let content = content.to_str().unwrap();
    let ours = Server::start("reactors", Setup { content, settings, ..support::FIXED });
    for (name, addr) in [("nginx", peer.addr), ("ours", ours.addr)] {
        let (mut conns, fates) = ask_in_turn(addr, GET, 100);
        assert!(fates.iter().all(|fate| *fate == Fate::Answered), "{name}: {fates:?}");
        let open: Vec<bool> = conns
            .iter_mut()
            .map(|conn| {
                conn.response();
                !conn.has_ended()
            })
            .collect();
        // nginx keeps a sixteenth free and closes some at a time: an eighth of the idle ones.
        let kept = open.iter().filter(|open| **open).count();
        assert!((64 - 4 - 8..=64 - 4 + 1).contains(&kept), "{name} kept {kept}: {open:?}");
        assert!(open.is_sorted(), "{name} closed a younger one before an older: {open:?}");
    }
}

/// Answers on one connection up to the one that says it is the last, and whether an idle one ends by itself
/// after the second that it may wait, and not at once.
fn kept(addr: SocketAddr) -> (usize, bool) {
    let mut conn = Conn::to(addr);
    let mut answers = 1;
    while !conn.ask(GET).closes() {
        answers += 1;
    }
    assert!(conn.rest().is_empty());
    let mut conn = Conn::to(addr);
    assert_eq!(conn.ask(GET).status(), 200);
    let since = Instant::now();
    // lighttpd looks once a second.
    (answers, conn.rest().is_empty() && since.elapsed() > Duration::from_millis(900))
}

#[test]
fn connections_are_kept_alive_as_often_as_lighttpds_and_once_more_than_nginxs() {
    let dir = site();
    let content = dir.path().join("site");
    let content = content.to_str().unwrap();
    let settings = &["MaxKeepAliveRequests=3", "KeepAliveTimeout=1"];
    let ours =
        |model| kept(Server::start(model, Setup { content, settings, ..support::FIXED }).addr);
    let limits = "server.max-keep-alive-requests = 3\nserver.max-keep-alive-idle = 1";
    if let Some(lighttpd) = lighttpd_with(dir.path(), 64, limits) {
        assert_eq!((kept(lighttpd.addr), ours("reactor")), ((4, true), (4, true)));
    }
    // nginx counts the last answer too, httpd and lighttpd do not: the setting's name is httpd's.
    if let Some(nginx) = nginx_with(dir.path(), 64, "keepalive_timeout 1s; keepalive_requests 4;") {
        assert_eq!((kept(nginx.addr), ours("reactors")), ((4, true), (4, true)));
    }
}
