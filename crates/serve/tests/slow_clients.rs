//! Clients that hold connections and give or take nothing, as simulated by Debian's slowhttptest. Well-behaved clients
//! are served all the same, if the model has room. If it has none by its design, the deadline frees it. Start reading
//! at [`who_behaves_is_served_beside_slow_clients`].

#![allow(clippy::print_stderr, reason = "a test that cannot run here says why")]

mod support;

use std::fs;
use std::io::Read as _;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use support::apache::Apache;
use support::{Conn, GET_CLOSE, LONG, Server, Setup, eventually, models, tcp_rows};

/// Connections that are held: fewer than any model has room for, with [`room`].
const N_HELD: usize = 15;

/// Connections that are one more than a model has places for, in the test where it is full.
const N_FULL: usize = 4;

/// The four attacks, and the arguments of each.
const ATTACKS: [(&str, &[&str]); 4] = [
    ("slowloris: a head a few bytes at a time", &["-H", "-i", "1", "-x", "8"]),
    ("R-U-Dead-Yet: a body a few bytes at a time", &["-B", "-i", "1", "-s", "8192", "-x", "8"]),
    ("slow read: an answer a byte at a time", &["-X", "-w", "1", "-y", "2", "-n", "5", "-z", "1"]),
    ("a thousand ranges", &["-R", "-a", "1", "-b", "3000"]),
];

/// Ended when dropped.
struct Attack {
    tool: Child,
}

impl Attack {
    /// `None`: the tool is not installed.
    fn begin(addr: SocketAddr, page: &str, kind: &[&str], count: usize) -> Option<Self> {
        let count = count.to_string();
        let tool = Command::new("slowhttptest")
            .args(kind)
            // Each connection once, all at once; ended by us long before the time is over.
            .args(["-c", &count, "-r", "1000", "-l", "600", "-u", &format!("http://{addr}{page}")])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        match tool {
            Ok(tool) => Some(Self { tool }),
            Err(error) => {
                skips::note(format_args!("no slowhttptest ({error}); scripts/peers.sh brings it"));
                None
            }
        }
    }

    fn goes_on(&mut self) -> bool {
        matches!(self.tool.try_wait(), Ok(None))
    }
}

impl Drop for Attack {
    fn drop(&mut self) {
        let _ = self.tool.kill();
        let _ = self.tool.wait();
    }
}

/// Established connections to that port, seen from the client's side.
fn held(addr: SocketAddr) -> usize {
    let port = format!(":{:04X}", addr.port());
    tcp_rows().iter().filter(|row| row.remote.ends_with(&port) && row.state == "01").count()
}

/// Settings that give a model places for the attack and for well-behaved clients.
fn room(model: &str) -> &'static [&'static str] {
    match model {
        "prefork" => &["StartServers=20", "MaxSpareServers=20"],
        // A client that reads slowly holds a thread.
        "reactor-pool" => &["server.worker-threads=20"],
        _ => &[],
    }
}

/// A site with a page, and one that does not fit into the buffers of a socket.
fn site() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("index.html"), "<h1>here</h1>\n").unwrap();
    fs::write(dir.path().join("large.bin"), vec![0; 20_000_000]).unwrap();
    dir
}

#[test]
fn who_behaves_is_served_beside_slow_clients() {
    let site = site();
    // The deadlines are far away, so the model has to serve without their help.
    let config = "[limits]\nhead_timeout = \"1h\"\nbody_timeout = \"1h\"\n";
    // The models with one connection at a time are tested below.
    for model in models().filter(|model| support::two_at_once(model).is_some()) {
        for (name, kind) in ATTACKS {
            let content = site.path().to_str().unwrap();
            let settings = room(model);
            let setup = Setup { content, settings, config, ..support::FIXED };
            let server = Server::start(model, setup);
            let page = if kind[0] == "-X" { "/large.bin" } else { "/" };
            let Some(mut attack) = Attack::begin(server.addr, page, kind, N_HELD) else { return };
            if kind[0] != "-R" {
                eventually("the attack stands", || held(server.addr) >= N_HELD);
            }
            for _ in 0..10 {
                let answer = server.connect().ask(GET_CLOSE);
                assert_eq!(answer.status(), 200, "{model}, {name}");
            }
            assert!(kind[0] == "-R" || attack.goes_on(), "{model}, {name}: it has ended");
        }
    }
}

/// Whether clients that behave are served beside more slow readers than the children at the start take.
fn is_served_beside_300_readers(addr: SocketAddr) -> bool {
    let kind = ["-X", "-w", "512", "-y", "1024", "-n", "5", "-z", "32", "-k", "3"];
    let Some(mut attack) = Attack::begin(addr, "/large.bin", &kind, 300) else { return true };
    eventually("the attack stands", || held(addr) >= 300);
    let clients = [(); 5].map(|()| std::thread::spawn(move || Conn::to(addr).ask(GET_CLOSE)));
    let served = clients.into_iter().all(|client| client.join().unwrap().status() == 200);
    served && attack.goes_on()
}

#[test]
fn event_children_full_of_slow_readers_are_joined_by_others_as_apaches_are() {
    let site = site();
    let content = site.path().to_str().unwrap();
    // No deadline frees a place: others have to be made.
    let settings = &["TimeOut=1h"];
    let server = Server::start("event", Setup { content, settings, ..support::FIXED });
    assert!(is_served_beside_300_readers(server.addr), "ours");
    let Some(apache) = Apache::start("event", &["TimeOut=3600"]) else { return };
    fs::write(apache.dir.path().join("root/large.bin"), vec![0; 20_000_000]).unwrap();
    assert!(is_served_beside_300_readers(apache.addr), "Apache");
}

#[test]
fn a_model_whose_places_are_all_held_is_freed_by_the_deadline() {
    let site = site();
    let full: [(&str, &[&str]); 5] = [
        ("iterative", &[]),
        ("fork", &["instances=3"]),
        ("thread", &["maxThreads=3"]),
        ("prefork", &["StartServers=3", "MaxRequestWorkers=3", "ServerLimit=3"]),
        (
            "worker",
            &["StartServers=1", "ThreadsPerChild=3", "MaxRequestWorkers=3", "ServerLimit=1"],
        ),
    ];
    for (model, settings) in full {
        let content = site.path().to_str().unwrap();
        let deadline = Duration::from_secs(2);
        let config = "[limits]\nhead_timeout = \"2s\"\n";
        let server = Server::start(model, Setup { content, settings, config, ..support::FIXED });
        // No place is taken before, so that none can be free a deadline later.
        let begun = Instant::now();
        let Some(_attack) = Attack::begin(server.addr, "/", ATTACKS[0].1, N_FULL) else { return };
        eventually("the attack stands", || held(server.addr) >= N_FULL);
        let mut stream = std::net::TcpStream::connect(server.addr).unwrap();
        std::io::Write::write_all(&mut stream, GET_CLOSE.as_bytes()).unwrap();
        // Four before us wait for three places, or for one: each is free after its deadline.
        stream.set_read_timeout(Some(2 * LONG)).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{model}: {answer}");
        assert!(begun.elapsed() >= deadline, "{model} is not full");
    }
}
