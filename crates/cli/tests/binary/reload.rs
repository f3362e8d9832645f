//! `joust serve` across changes: reloads under load, broken configurations, rotation of logs, sockets and a service
//! manager from outside, and killed processes. Start reading at [`Site`].

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::{Server, output, said};

/// Longer than anything takes on a loaded machine; only a failing test waits that long.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// The models that this machine can run.
pub(crate) fn models() -> impl Iterator<Item = &'static str> {
    let here = serve::models::ALL.iter().filter(|model| model.available().is_ok());
    here.map(|model| model.name)
}

/// A server with a configuration file that the test changes.
pub(crate) struct Site {
    dir: tempfile::TempDir,
    pub(crate) server: Server,
}

impl Site {
    pub(crate) fn start(config: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("joust.toml");
        std::fs::write(&file, config).unwrap();
        let errors = std::fs::File::create(dir.path().join("stderr")).unwrap();
        let server = Server::start_saying(&["--config", file.to_str().unwrap()], errors.into());
        Self { dir, server }
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn address(&self) -> String {
        self.server.url.trim_start_matches("http://").trim_end_matches('/').to_owned()
    }

    pub(crate) fn reload(&self, config: &str) {
        std::fs::write(self.file("joust.toml"), config).unwrap();
        self.server.signal("HUP");
    }

    pub(crate) fn errors(&self) -> String {
        std::fs::read_to_string(self.file("stderr")).unwrap()
    }

    pub(crate) fn says(&self, what: &str) {
        until(&format!("`{what}` in the error log: {}", self.errors()), || {
            self.errors().contains(what)
        });
    }

    /// Waits, and reports the server's messages on failure.
    pub(crate) fn until(&self, what: &str, done: impl FnMut() -> bool) {
        let waited = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| until(what, done)));
        assert!(waited.is_ok(), "waited in vain for {what}; the server said: {}", self.errors());
    }

    /// The length of the answer on a new connection.
    pub(crate) fn answers(&self) -> Option<usize> {
        Client::to(&self.address()).and_then(|mut client| client.ask("Connection: close\r\n"))
    }

    /// The status of the answer on a new connection.
    pub(crate) fn status(&self, fields: &str) -> Option<u16> {
        let mut client = Client::to(&self.address())?;
        client
            .stream
            .write_all(format!("GET /page HTTP/1.1\r\nHost: test\r\n{fields}\r\n").as_bytes())
            .ok()?;
        let mut answer = String::new();
        client.stream.read_to_string(&mut answer).ok()?;
        answer.split(' ').nth(1)?.parse().ok()
    }

    /// The serving processes: the first of each generation.
    pub(crate) fn generations(&self) -> Vec<u32> {
        children(self.server.child.id())
    }

    pub(crate) fn ends_well(mut self) {
        self.server.signal("TERM");
        assert_eq!(self.server.child.wait().unwrap().code(), Some(0), "{}", self.errors());
    }
}

pub(crate) fn until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < LONG, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

pub(crate) fn children(pid: u32) -> Vec<u32> {
    let listed = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    listed.unwrap_or_default().split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

pub(crate) fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

pub(crate) fn kill(signal: &str, pid: u32) {
    let sent = Command::new("kill").args(["-s", signal, &pid.to_string()]).status().unwrap();
    // A child of the model fork may have ended meanwhile.
    assert!(sent.success() || !is_alive(pid));
}

/// `joust serve` under a service manager that records its messages.
pub(crate) struct Notifying {
    pub(crate) child: Child,
    manager: UnixDatagram,
    _dir: tempfile::TempDir,
}

impl Notifying {
    pub(crate) fn start(config: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (file, path) = (dir.path().join("joust.toml"), dir.path().join("notify"));
        let manager = UnixDatagram::bind(&path).unwrap();
        manager.set_read_timeout(Some(LONG)).unwrap();
        std::fs::write(&file, config).unwrap();
        let child = crate::joust(&["serve", "--config", file.to_str().unwrap()])
            .env("NOTIFY_SOCKET", &path)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self { child, manager, _dir: dir }
    }

    /// The next message to the service manager.
    pub(crate) fn told(&self) -> String {
        let mut buf = [0; 512];
        let n = self.manager.recv(&mut buf).unwrap();
        String::from_utf8(buf[..n].to_vec()).unwrap()
    }
}

impl Drop for Notifying {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A connection.
pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    ended: bool,
}

impl Client {
    pub(crate) fn to(address: &str) -> Option<Self> {
        let stream = TcpStream::connect(address).ok()?;
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream.set_nodelay(true).unwrap();
        Some(Self { stream, ended: false })
    }

    /// The length of the answer; `None`: there was no answer.
    fn ask(&mut self, fields: &str) -> Option<usize> {
        let request = format!("GET /page HTTP/1.1\r\nHost: test\r\n{fields}\r\n");
        self.stream.write_all(request.as_bytes()).ok()?;
        let mut got = Vec::new();
        loop {
            let mut buf = [0; 4096];
            match self.stream.read(&mut buf) {
                Ok(0) | Err(_) => return None,
                Ok(n) => got.extend_from_slice(&buf[..n]),
            }
            let Some(end) = got.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
            let head = std::str::from_utf8(&got[..end]).unwrap();
            let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
            let length: usize = length.unwrap().parse().unwrap();
            if got.len() == end + 4 + length {
                self.ended = head.to_ascii_lowercase().contains("connection: close");
                return head.starts_with("HTTP/1.1 200").then_some(length);
            }
        }
    }
}

/// Clients that send requests repeatedly, half of them on kept-alive connections, while `meanwhile` runs. Returns the
/// number of answers and their lengths. Every request must be answered.
fn under_load(address: &str, meanwhile: impl FnOnce(&AtomicUsize)) -> (usize, BTreeSet<usize>) {
    let (over, answers) = (AtomicBool::new(false), AtomicUsize::new(0));
    let lengths = std::thread::scope(|scope| {
        let hammer = |keeps: bool| {
            let (over, answers) = (&over, &answers);
            move || {
                let (mut lengths, mut client) = (BTreeSet::new(), None);
                while !over.load(Relaxed) {
                    let open = match client.take() {
                        Some(open) => open,
                        None => Client::to(address).expect("the port is open throughout"),
                    };
                    let mut open: Client = open;
                    let fields = if keeps { "" } else { "Connection: close\r\n" };
                    lengths.insert(open.ask(fields).expect("every request is answered"));
                    answers.fetch_add(1, Relaxed);
                    client = Some(open).filter(|open| !open.ended);
                }
                lengths
            }
        };
        let clients: Vec<_> = (0..4).map(|n| scope.spawn(hammer(n % 2 == 0))).collect();
        meanwhile(&answers);
        over.store(true, Relaxed);
        clients.into_iter().flat_map(|client| client.join().expect("no client failed")).collect()
    });
    (answers.load(Relaxed), lengths)
}

/// Waits for `n` more answers.
fn more(answers: &AtomicUsize, n: usize) {
    let target = answers.load(Relaxed) + n;
    until("more answers", || answers.load(Relaxed) >= target);
}

pub(crate) fn fixed(model: &str, bytes: usize) -> String {
    format!("model = \"{model}\"\nfixed = {bytes}\n")
}

#[test]
fn a_reload_under_load_loses_no_request_and_serves_by_the_new_file() {
    for model in models() {
        let site = Site::start(&fixed(model, 10));
        let (_, lengths) = under_load(&site.address(), |answers| {
            more(answers, 50);
            for bytes in [20, 30] {
                site.reload(&fixed(model, bytes));
                site.until("the new answer", || site.answers() == Some(bytes));
                more(answers, 50);
            }
        });
        assert_eq!(lengths, BTreeSet::from([10, 20, 30]), "{model}");
        until("one generation", || site.generations().len() == 1);
        site.ends_well();
    }
}

#[test]
fn a_reload_changes_the_model_in_either_direction_without_a_loss() {
    // One whose listener blocks and one whose does not: blocking is a state of the socket that they share.
    let site = Site::start(&fixed("reactor", 10));
    under_load(&site.address(), |answers| {
        let mut bytes = 10;
        for model in models().chain(["reactor", "prefork", "reactor", "worker", "pool", "prefork"])
        {
            bytes += 1;
            site.reload(&fixed(model, bytes));
            site.until("the new answer", || site.answers() == Some(bytes));
            more(answers, 20);
        }
    });
    site.ends_well();
}

/// Sockets that listen on that port, by their inodes (proc_pid_net(5), state 0A).
fn queues(address: &str) -> BTreeSet<String> {
    let port: u16 = address.rsplit(':').next().unwrap().parse().unwrap();
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let rows = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let ours = rows.filter(|row| row[1].ends_with(&format!(":{port:04X}")) && row[3] == "0A");
    ours.map(|row| row[9].to_owned()).collect()
}

#[test]
fn every_queue_of_a_port_goes_on_in_the_next_generation() {
    let loops = |count: usize, bytes| {
        let settings = format!("accept = \"reuseport\"\nworker_processes = {count}\n");
        format!("{}[settings]\n{settings}", fixed("reactors", bytes))
    };
    let site = Site::start(&loops(3, 10));
    let first = queues(&site.address());
    assert_eq!(first.len(), 3);
    under_load(&site.address(), |answers| {
        for (count, bytes) in [(3, 11), (5, 12), (5, 13)] {
            site.reload(&loops(count, bytes));
            site.until("the new answer", || site.answers() == Some(bytes));
            more(answers, 50);
            let now = queues(&site.address());
            assert!(now.len() == count && now.is_superset(&first), "{first:?}, then {now:?}");
        }
    });
    // Queues without an event loop are closed.
    site.reload(&loops(2, 14));
    until("two are left", || queues(&site.address()).len() == 2);
    assert!(queues(&site.address()).is_subset(&first));
    site.ends_well();
}

#[test]
fn a_broken_configuration_is_said_and_the_server_goes_on() {
    let site = Site::start(&fixed("prefork", 10));
    assert_eq!(site.answers(), Some(10));
    let generation = site.generations();
    let broken = [
        ("fixed = 10\nlissten = 3", "did you mean `listen`?"),
        ("directory = \"/nonexistent\"", "directory /nonexistent does not exist"),
        ("fixed = 10\n[access_log]\nfile = \"/nonexistent/log\"", "cannot write the access log"),
    ];
    for (text, hint) in broken {
        site.reload(text);
        site.says(hint);
        assert_eq!(site.answers(), Some(10));
        assert_eq!(site.generations(), generation);
    }
    site.reload(&fixed("prefork", 20));
    site.until("the new answer", || site.answers() == Some(20));
    site.ends_well();
}

#[test]
fn reloads_in_a_row_and_an_end_amid_them_leave_nothing_behind() {
    for model in models() {
        let mut site = Site::start(&fixed(model, 10));
        let mut idle = Client::to(&site.address()).unwrap();
        assert_eq!(idle.ask(""), Some(10));
        for bytes in 11..15 {
            site.reload(&fixed(model, bytes));
        }
        site.server.signal("TERM");
        site.server.signal("HUP");
        assert_eq!(site.server.child.wait().unwrap().code(), Some(0), "{model}: {}", site.errors());
        assert!(TcpStream::connect(site.address()).is_err(), "{model}");
    }
}

#[test]
fn a_reload_begins_with_as_many_children_as_had_come_to_be() {
    let threads = "StartServers = 1\nThreadsPerChild = 2\nMaxRequestWorkers = 64\nServerLimit = 32\n\
                   MinSpareThreads = 2\nMaxSpareThreads = 60\n";
    let grows = |model: &str, settings: &str| {
        let config = |bytes| format!("{}[settings]\n{settings}", fixed(model, bytes));
        let site = Site::start(&config(10));
        site.until("the first generation", || site.answers() == Some(10));
        let first = site.generations()[0];
        // Clients that each hold a worker until others were started beside them.
        let busy: Vec<_> = (0..6)
            .map(|_| {
                let mut client = Client::to(&site.address()).unwrap();
                client.stream.write_all(b"GET /page HTTP/1.1\r\n").unwrap();
                client
            })
            .collect();
        let (mut count, mut since) = (0, Instant::now());
        site.until("no more are started", || {
            let now = children(first).len();
            if now != count {
                (count, since) = (now, Instant::now());
            }
            count > 2 && since.elapsed() > Duration::from_millis(1500)
        });
        drop(busy);
        site.reload(&config(20));
        site.until("the next generation", || site.answers() == Some(20));
        // Without load nothing else would start as many.
        let next = *site.generations().iter().find(|pid| **pid != first).unwrap();
        site.until(&format!("{count} children"), || children(next).len() == count);
        site.ends_well();
    };
    std::thread::scope(|scope| {
        let prefork = "StartServers = 1\nMinSpareServers = 2\nMaxSpareServers = 60\n";
        for (model, settings) in [("prefork", prefork), ("worker", threads), ("event", threads)] {
            scope.spawn(move || grows(model, settings));
        }
    });
}

#[test]
fn reloads_that_do_not_hold_bring_back_what_did_however_many_there_are() {
    let site = Site::start(&fixed("reactors", 10));
    // Enough to read and open everything; not for a poll set of each loop, which comes later.
    let limit = Command::new("prlimit")
        .args(["--nofile=64:64", "--pid", &site.server.child.id().to_string()])
        .status();
    assert!(limit.unwrap().success());
    let many = format!("{}[settings]\nworker_processes = 200\n", fixed("reactors", 20));
    std::fs::write(site.file("joust.toml"), many).unwrap();
    for _ in 0..200 {
        site.server.signal("HUP");
        std::thread::sleep(Duration::from_millis(1));
    }
    site.says("failed after the reload");
    until("what held", || site.answers() == Some(10));
    site.reload(&fixed("reactors", 30));
    until("the next one that holds", || site.answers() == Some(30));
    site.ends_well();
}

#[test]
fn a_full_server_that_is_reloaded_leaves_who_waits_to_the_next_generation_at_once() {
    for (model, places) in [("reactor", "server.max-connections"), ("pool", "max-request")] {
        let threads = if model == "pool" { "max-thread = 1\n" } else { "" };
        let config = |bytes| format!("{}[settings]\n{places} = 1\n{threads}", fixed(model, bytes));
        // Even on a busy machine at least one of several tries is fast.
        let is_fast = (0..5).any(|_| {
            let site = Site::start(&config(10));
            let mut busy = Client::to(&site.address()).unwrap();
            assert_eq!(busy.ask(""), Some(10));
            busy.stream.write_all(b"GET /page HTTP/1.1\r\n").unwrap();
            let mut waits = Client::to(&site.address()).unwrap();
            let start = Instant::now();
            site.reload(&config(20));
            assert_eq!(waits.ask(""), Some(20), "{model}");
            let is_fast = start.elapsed() < Duration::from_secs(1);
            drop(busy);
            site.ends_well();
            is_fast
        });
        assert!(is_fast, "{model}");
    }
}

#[test]
fn an_idle_connection_is_answered_once_more_after_a_reload() {
    for model in models() {
        let site = Site::start(&fixed(model, 10));
        let mut idle = Client::to(&site.address()).unwrap();
        assert_eq!(idle.ask(""), Some(10));
        assert!(!idle.ended);
        site.reload(&fixed(model, 20));
        site.until("the new answer", || site.answers() == Some(20));
        // The generation that holds the connection answers, and announces that this was the last reply.
        assert_eq!(idle.ask(""), Some(10), "{model}");
        assert!(idle.ended, "{model}");
        site.ends_well();
    }
}

#[test]
fn another_address_in_the_file_is_listened_on_and_the_first_closed() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("joust.toml");
    // A separate address: once the first port is closed, a server of another test may take it.
    let free = || TcpListener::bind("127.66.0.1:0").unwrap().local_addr().unwrap();
    let (first, second) = (free(), free());
    let write = |address| {
        std::fs::write(&file, format!("listen = \"{address}\"\nfixed = 10\n")).unwrap();
    };
    write(first);
    let mut child = crate::joust(&["serve", "--config", file.to_str().unwrap()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until("the first address", || TcpStream::connect(first).is_ok());
    write(second);
    kill("HUP", child.id());
    until("the second address", || TcpStream::connect(second).is_ok());
    until("the end of the first", || TcpStream::connect(first).is_err());
    kill("TERM", child.id());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_killed_supervisor_takes_all_with_it() {
    for model in models() {
        let mut site = Site::start(&fixed(model, 10));
        assert_eq!(site.answers(), Some(10));
        let generations = site.generations();
        let below: Vec<_> = generations.iter().flat_map(|&pid| children(pid)).collect();
        site.server.signal("KILL");
        site.server.child.wait().unwrap();
        for pid in generations.into_iter().chain(below) {
            until("the end of every process", || !is_alive(pid));
        }
    }
}

#[test]
fn signals_for_the_supervisor_do_nothing_to_those_who_serve() {
    for model in models() {
        let site = Site::start(&fixed(model, 10));
        assert_eq!(site.answers(), Some(10));
        let generation = site.generations()[0];
        for pid in [generation].into_iter().chain(children(generation)) {
            kill("HUP", pid);
            kill("USR1", pid);
        }
        assert_eq!(site.answers(), Some(10), "{model}");
        assert_eq!(site.generations(), [generation], "{model}");
        site.ends_well();
    }
}

#[test]
fn rotation_under_load_loses_and_tears_no_line() {
    for model in models() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("access.log");
        let config = format!("{}[access_log]\nfile = \"{}\"\n", fixed(model, 10), log.display());
        let site = Site::start(&config);
        let moved = |n| dir.path().join(format!("access.log.{n}"));
        let (answers, _) = under_load(&site.address(), |answers| {
            for n in 1..4 {
                more(answers, 100);
                std::fs::rename(&log, moved(n)).unwrap();
                site.server.signal("USR1");
                until("the log is there again", || log.exists());
            }
        });
        site.ends_well();
        let files = (1..4).map(moved).chain([log.clone()]);
        let text: String = files.map(|file| std::fs::read_to_string(file).unwrap()).collect();
        assert_eq!(text.lines().count(), answers, "{model}");
        let whole = |line: &str| {
            line.starts_with("127.0.0.1 - - [") && line.ends_with("\"GET /page HTTP/1.1\" 200 10")
        };
        assert!(text.lines().all(whole), "{model}");
        assert_ne!(std::fs::metadata(&log).unwrap().len(), 0, "{model}");
    }
}

#[test]
fn a_passed_socket_is_served_and_kept_over_a_reload() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("joust.toml");
    std::fs::write(&file, "listen = \"127.0.0.1:1\"\nfixed = 10\n").unwrap();
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap().to_string();
    // Waits in the socket before there is a server.
    let mut early = Client::to(&address).unwrap();
    // As systemd does it: the socket is descriptor 3, and LISTEN_PID the number of the program.
    let script = format!(
        "exec 3<&{}; LISTEN_FDS=1 LISTEN_PID=$$ exec \"$0\" serve --config \"$1\"",
        socket.as_raw_fd()
    );
    rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::empty()).unwrap();
    // Not sh: in dash a descriptor has one digit.
    let mut child = Command::new("bash")
        .args(["-c", &script, env!("CARGO_BIN_EXE_joust"), file.to_str().unwrap()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    assert_eq!(early.ask(""), Some(10));
    std::fs::write(&file, "listen = \"127.0.0.1:2\"\nfixed = 20\n").unwrap();
    kill("HUP", child.id());
    until("the new answer", || {
        Client::to(&address).unwrap().ask("Connection: close\r\n") == Some(20)
    });
    kill("TERM", child.id());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    // The socket still belongs to the service manager, which starts the next server for the next client.
    let waits = TcpStream::connect(&address).unwrap();
    let (_, peer) = socket.accept().unwrap();
    assert_eq!(peer, waits.local_addr().unwrap());
}

#[test]
fn a_passed_descriptor_that_is_no_socket_is_refused() {
    let script = "exec 3</dev/null; LISTEN_FDS=1 LISTEN_PID=$$ exec \"$0\" serve --fixed 10";
    let refused =
        Command::new("sh").args(["-c", script, env!("CARGO_BIN_EXE_joust")]).output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(said(&refused).contains("descriptor 3"), "{}", said(&refused));
}

#[test]
fn a_service_manager_is_told_of_start_reload_and_end() {
    let mut server = Notifying::start("listen = \"127.0.0.1:0\"\nfixed = 10\n");
    assert!(server.told().starts_with("READY=1\nSTATUS=reactors serves on 127.0.0.1:"));
    kill("HUP", server.child.id());
    let reloading = server.told();
    let usec = reloading.lines().find_map(|line| line.strip_prefix("MONOTONIC_USEC="));
    assert!(reloading.starts_with("RELOADING=1\n") && usec.unwrap().parse::<u64>().is_ok());
    assert!(server.told().starts_with("READY=1\n"));
    kill("TERM", server.child.id());
    assert!(server.told().starts_with("STOPPING=1\n"));
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_configuration_is_checked_without_serving_or_making_anything() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("access.log");
    let good =
        output(&["serve", "--fixed", "1", "--access-log", log.to_str().unwrap(), "--check-config"]);
    assert_eq!((good.status.code(), &good.stdout[..]), (Some(0), &b"ok\n"[..]));
    assert!(!log.exists());
    let args =
        ["--access-log", "/nonexistent/a", "--error-log", "/nonexistent/e", "--check-config"];
    let bad = output(&[&["serve", "/nonexistent/dir"][..], &args].concat());
    assert_eq!(bad.status.code(), Some(2));
    for wrong in
        ["directory /nonexistent/dir", "access log /nonexistent/a", "error log /nonexistent/e"]
    {
        assert!(said(&bad).contains(wrong), "{wrong} is not in {}", said(&bad));
    }
}

#[test]
fn the_process_number_is_in_its_file_while_the_server_lives() {
    let dir = tempfile::tempdir().unwrap();
    let pid_file = dir.path().join("joust.pid");
    let site = Site::start(&format!("fixed = 10\npid_file = \"{}\"\n", pid_file.display()));
    let pid = std::fs::read_to_string(&pid_file).unwrap();
    assert_eq!(pid, format!("{}\n", site.server.child.id()));
    site.reload("fixed = 20\n");
    site.until("the new answer", || site.answers() == Some(20));
    assert!(pid_file.exists());
    site.ends_well();
    assert!(!pid_file.exists());
}
