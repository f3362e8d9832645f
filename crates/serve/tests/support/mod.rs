//! Servers and clients for the tests of the models. Owns starting and ending a server as a process of its own
//! (`examples/serve_model.rs`). Start reading at [`Server::start`].
#![allow(dead_code, reason = "each test file uses its part of it")]

pub(crate) mod apache;
pub(crate) mod peer;
pub(crate) mod simulated;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use sys::process::{Pid, Signal};

/// Longer than anything takes on a loaded machine; only a failed test waits for it.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// Every model that this machine can run, by name; notes those that it cannot.
pub(crate) fn models() -> impl Iterator<Item = &'static str> {
    joust_serve::models::ALL.iter().map(|model| model.name).filter(|model| runs_here(model))
}

/// Whether this machine can run the model; notes why not.
pub(crate) fn runs_here(model: &str) -> bool {
    let found = joust_serve::models::by_name(model).unwrap();
    let refusal = found.available().err();
    if let Some(why) = &refusal {
        skips::note(format_args!("the model {model}: {why}"));
    }
    refusal.is_none()
}

/// Settings under which a model holds two connections at once; `None`: it never holds more than one.
pub(crate) fn two_at_once(model: &str) -> Option<&'static [&'static str]> {
    joust_serve::models::by_name(model).unwrap().two_at_once
}

/// A running server; killed when dropped.
pub(crate) struct Server {
    process: Child,
    pub(crate) addr: SocketAddr,
}

/// What a server is started with.
#[derive(Clone, Copy)]
pub(crate) struct Setup<'a> {
    /// A directory, or `--fixed=BYTES`.
    pub(crate) content: &'a str,
    pub(crate) log: Option<&'a Path>,
    /// `NAME=VALUE`.
    pub(crate) settings: &'a [&'a str],
    /// What `--fault` takes.
    pub(crate) faults: &'a [&'a str],
    /// What else the configuration says, as a file.
    pub(crate) config: &'a str,
}

pub(crate) const FIXED: Setup<'static> =
    Setup { content: "--fixed=3361", log: None, settings: &[], faults: &[], config: "" };

impl Server {
    /// Starts a server of that model and waits until it listens.
    pub(crate) fn start(model: &str, setup: Setup<'_>) -> Self {
        let mut process = Command::new(binary())
            .args([model, setup.content])
            .arg(setup.log.unwrap_or(Path::new("off")))
            .args(setup.settings)
            .args(setup.faults.iter().map(|fault| format!("--fault={fault}")))
            .arg(format!("--config={}", setup.config))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { process, addr: line.trim().parse().unwrap() }
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_raw(self.process.id() as i32).unwrap()
    }

    /// Living children, by pid.
    pub(crate) fn children(&self) -> Vec<Pid> {
        children_of(self.pid())
    }

    /// Names of its threads.
    pub(crate) fn threads(&self) -> Vec<String> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.process.id())).unwrap();
        let name = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm")).ok();
        tasks.filter_map(|task| Some(name(task.ok()?)?.trim().to_owned())).collect()
    }

    /// Stops all of its threads, and not its children, until SIGCONT.
    pub(crate) fn stop(&self) {
        self.signal(Signal::STOP);
        // The signal stops the thread that takes it, which stops the others: on a busy machine they go on
        // for milliseconds after it was sent.
        let is_stopped = |task: std::fs::DirEntry| {
            let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
            stat.rsplit_once(") ").is_some_and(|(_, state)| state.starts_with('T'))
        };
        eventually("every thread is stopped", || {
            let mut tasks = std::fs::read_dir(format!("/proc/{}/task", self.process.id())).unwrap();
            tasks.all(|task| is_stopped(task.unwrap()))
        });
    }

    pub(crate) fn signal(&self, signal: Signal) {
        assert!(sys::process::signal(self.pid(), signal), "the server is gone");
    }

    /// Waits until the server has ended.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        let mut status = None;
        eventually("the server ends", || {
            status = self.process.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }

    /// CPU time of the server and its living children, in clock ticks of 10 ms.
    pub(crate) fn cpu_ticks(&self) -> u64 {
        let of = |pid: Pid| {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
            let after_name = stat.ok()?.rsplit_once(") ")?.1.to_owned();
            let ticks = after_name.split(' ').skip(11).take(2);
            Some(ticks.map(|ticks| ticks.parse::<u64>().unwrap()).sum::<u64>())
        };
        [self.pid()].into_iter().chain(self.children()).filter_map(of).sum()
    }

    /// Private memory of the server's own process, in bytes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        memory_of(self.pid()).unwrap()
    }

    pub(crate) fn connect(&self) -> Conn {
        Conn::to(self.addr)
    }

    /// Whether a process holds the server's ends of these connections, in their order.
    pub(crate) fn holds(&self, pid: Pid, conns: &[Conn]) -> Vec<bool> {
        let dir = format!("/proc/{}/fd", pid.as_raw_nonzero());
        // Empty if it has ended.
        let fds = std::fs::read_dir(dir).into_iter().flatten().flatten();
        let held: Vec<_> = fds.filter_map(|fd| std::fs::read_link(fd.path()).ok()).collect();
        // Read once for all: a machine that has served much has a long table.
        let rows = tcp_rows();
        let holds = |conn: &Conn| {
            let ours = conn.stream.local_addr().unwrap().port();
            let ends = [self.addr.port(), ours].map(|port| format!(":{port:04X}"));
            let is_it =
                |row: &&TcpRow| row.local.ends_with(&ends[0]) && row.remote.ends_with(&ends[1]);
            let row = rows.iter().find(is_it).expect("the connection stands");
            let name = format!("socket:[{}]", row.inode);
            held.iter().any(|fd| fd.as_os_str() == &*name)
        };
        conns.iter().map(holds).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A line of the kernel's table of TCP sockets (proc_pid_net(5)); addresses end in their port, as `:1F90`.
pub(crate) struct TcpRow {
    pub(crate) local: String,
    pub(crate) remote: String,
    /// `01`: established, `0A`: listening.
    pub(crate) state: String,
    pub(crate) inode: String,
}

/// All TCP sockets of IPv4.
pub(crate) fn tcp_rows() -> Vec<TcpRow> {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let row = |line: &str| {
        let words: Vec<_> = line.split_whitespace().map(str::to_owned).collect();
        let [local, remote, state, inode] = [1, 2, 3, 9].map(|at| words[at].clone());
        TcpRow { local, remote, state, inode }
    };
    table.lines().skip(1).map(row).collect()
}

/// Built by cargo before the tests of this package run.
fn binary() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let built = test.ancestors().nth(2).unwrap().join("examples/serve_model");
    let hint = "run `cargo build -p joust-serve --example serve_model`, as `cargo test` does";
    assert!(built.exists(), "{} is not there: {hint}", built.display());
    built
}

/// Every process that is alive, with its parent.
fn processes() -> Vec<(Pid, Pid)> {
    let entries = std::fs::read_dir("/proc").unwrap();
    let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    numbers
        .filter_map(|number| {
            let stat = std::fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
            let mut fields = stat.rsplit_once(") ")?.1.split(' ');
            let alive = !matches!(fields.next()?, "Z" | "X");
            let parent = Pid::from_raw(fields.next()?.parse().ok()?)?;
            alive.then_some((Pid::from_raw(number)?, parent))
        })
        .collect()
}

/// Living children of a process.
pub(crate) fn children_of(pid: Pid) -> Vec<Pid> {
    processes().into_iter().filter(|(_, parent)| *parent == pid).map(|found| found.0).collect()
}

/// Private memory of that process, in bytes; `None` if it has ended.
pub(crate) fn memory_of(pid: Pid) -> Option<u64> {
    let path = format!("/proc/{}/smaps_rollup", pid.as_raw_nonzero());
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Private_Dirty:"))?;
    Some(line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024)
}

pub(crate) fn is_alive(pid: Pid) -> bool {
    processes().iter().any(|(alive, _)| *alive == pid)
}

/// Waits until something is so, however long a loaded machine takes.
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < LONG, "in {LONG:?} it never came to be that {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A connection of a client.
pub(crate) struct Conn {
    stream: TcpStream,
    /// Bytes of a next response.
    rest: Vec<u8>,
}

/// A response with a length.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Response {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Response {
    pub(crate) fn status(&self) -> u16 {
        self.head.split(' ').nth(1).unwrap().parse().unwrap()
    }

    pub(crate) fn closes(&self) -> bool {
        self.head.to_ascii_lowercase().contains("connection: close")
    }
}

pub(crate) const GET: &str = "GET / HTTP/1.1\r\nHost: test\r\n\r\n";
pub(crate) const GET_CLOSE: &str = "GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n";

impl Conn {
    pub(crate) fn to(addr: SocketAddr) -> Self {
        Self::over(TcpStream::connect(addr).unwrap())
    }

    /// `None`: it is refused, or not made in that time.
    pub(crate) fn to_within(addr: SocketAddr, most: Duration) -> Option<Self> {
        TcpStream::connect_timeout(&addr, most).ok().map(Self::over)
    }

    fn over(stream: TcpStream) -> Self {
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        Self { stream, rest: Vec::new() }
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).unwrap();
    }

    /// Sends; returns false if the connection has ended.
    pub(crate) fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.stream.write_all(bytes.as_ref()).is_ok()
    }

    /// Sends no more, and may still receive.
    pub(crate) fn end_sending(&mut self) {
        self.stream.shutdown(std::net::Shutdown::Write).unwrap();
    }

    /// Sends a request and takes its response.
    pub(crate) fn ask(&mut self, request: &str) -> Response {
        self.send(request);
        self.response()
    }

    /// Waits until the head of the next response is there, and returns where it ends.
    pub(crate) fn head_end(&mut self) -> usize {
        loop {
            if let Some(at) = self.rest.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                return at + 4;
            }
            assert!(self.fill() > 0, "the connection ended in a head: {:?}", self.rest);
        }
    }

    /// The head of the next response, without a body: the answer to HEAD.
    pub(crate) fn head(&mut self) -> String {
        let end = self.head_end();
        String::from_utf8(self.rest.drain(..end).collect()).unwrap()
    }

    /// The next response; fails if the connection ends in it.
    pub(crate) fn response(&mut self) -> Response {
        let end = self.head_end();
        let head = String::from_utf8(self.rest.drain(..end).collect()).unwrap();
        let field = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
        let length: usize = field.unwrap_or("0").parse().unwrap();
        while self.rest.len() < length {
            assert!(self.fill() > 0, "the connection ended in a body");
        }
        Response { head, body: self.rest.drain(..length).collect() }
    }

    /// Sends a request and takes what comes, up to the end of an answer or of the connection; `None` if that ended
    /// before. A body may be shorter than its head says.
    pub(crate) fn ask_whatever(&mut self, request: &str) -> Option<Response> {
        let took = |conn: &mut Self| matches!(conn.try_fill(), Ok(n) if n > 0);
        if !self.try_send(request) {
            return None;
        }
        while !self.rest.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
            if !took(self) {
                return None;
            }
        }
        let head = self.head();
        let field = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
        let length: usize = field.unwrap_or("0").parse().unwrap();
        while self.rest.len() < length && took(self) {}
        let body = self.rest.drain(..length.min(self.rest.len())).collect();
        Some(Response { head, body })
    }

    /// Waits for the next response or the end of the connection; returns whether it is a response.
    pub(crate) fn next_is_answer(mut self) -> bool {
        !self.rest.is_empty() || matches!(self.try_fill(), Ok(n) if n > 0)
    }

    /// Whether something has arrived that was not taken, without waiting for it.
    pub(crate) fn has_bytes(&mut self) -> bool {
        !self.rest.is_empty() || matches!(self.peek(), Some(Ok(n)) if n > 0)
    }

    /// Whether the connection has ended, and nothing is left of it, without waiting for that.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.rest.is_empty() && !matches!(self.peek(), None | Some(Ok(1..)))
    }

    /// `None`: nothing is there.
    fn peek(&mut self) -> Option<std::io::Result<usize>> {
        self.stream.set_nonblocking(true).unwrap();
        let peeked = self.stream.peek(&mut [0; 1]);
        self.stream.set_nonblocking(false).unwrap();
        match peeked {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => None,
            other => Some(other),
        }
    }

    /// Sends a request and takes its response, whose body may be chunked.
    pub(crate) fn ask_any(&mut self, request: &str) -> Response {
        self.send(request);
        let end = self.head_end();
        if !String::from_utf8_lossy(&self.rest[..end]).contains("Transfer-Encoding: chunked") {
            return self.response();
        }
        let head = String::from_utf8(self.rest.drain(..end).collect()).unwrap();
        let mut body = Vec::new();
        loop {
            let size = self.line();
            let size = usize::from_str_radix(&size, 16).unwrap();
            while self.rest.len() < size + 2 {
                assert!(self.fill() > 0, "the connection ended in a chunk");
            }
            body.extend(self.rest.drain(..size));
            self.rest.drain(..2);
            if size == 0 {
                return Response { head, body };
            }
        }
    }

    /// The next line, without its end.
    fn line(&mut self) -> String {
        loop {
            if let Some(end) = self.rest.windows(2).position(|two| two == b"\r\n") {
                let line = String::from_utf8(self.rest.drain(..end).collect()).unwrap();
                self.rest.drain(..2);
                return line;
            }
            assert!(self.fill() > 0, "the connection ended in a line");
        }
    }

    /// Everything up to the end of the connection; a reset is an end too.
    pub(crate) fn rest(mut self) -> Vec<u8> {
        while matches!(self.try_fill(), Ok(n) if n > 0) {}
        self.rest
    }

    fn fill(&mut self) -> usize {
        self.try_fill().unwrap()
    }

    fn try_fill(&mut self) -> std::io::Result<usize> {
        let mut buf = [0; 16 * 1024];
        let n = self.stream.read(&mut buf)?;
        self.rest.extend_from_slice(&buf[..n]);
        Ok(n)
    }
}
