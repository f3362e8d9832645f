//! The servers that the generators load, each pinned to one CPU and ended whatever happens. Must not
//! know who loads them. Start reading at [`Server::start`].

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::{Outcome, Row, SERVER_CPU, Settings, floor};

/// Who serves a row.
#[derive(Clone, Copy)]
pub enum Serving {
    /// `joust serve --fixed`, the reactor: a page from memory, so that the generator is the limit.
    OursFromMemory,
    /// nginx, one worker, a file by sendfile.
    Nginx,
}

impl Serving {
    pub fn name(self) -> &'static str {
        match self {
            Self::OursFromMemory => "joust serve --fixed",
            Self::Nginx => "nginx",
        }
    }
}

/// A server that runs until this is dropped.
pub struct Server {
    child: Child,
    pub addr: SocketAddr,
    pub path: &'static str,
    /// The process, and nginx's worker.
    processes: Vec<u32>,
    /// nginx's configuration and site.
    _dir: Option<TempDir>,
}

/// How long a server may take to answer, and to end.
const PATIENCE: Duration = Duration::from_secs(10);

impl Server {
    /// Returns once it has answered a request with the row's page.
    pub fn start(row: &Row, settings: &Settings) -> Outcome<Self> {
        let mut server = match row.serving {
            Serving::OursFromMemory => ours(row, settings)?,
            Serving::Nginx => nginx(row)?,
        };
        server.wait_until_ready(row)?;
        server.processes = processes_of(server.child.id())?;
        Ok(server)
    }

    pub fn url(&self) -> String {
        format!("http://{}{}", self.addr, self.path)
    }

    /// CPU time of its processes so far, in seconds.
    pub fn cpu_seconds(&self) -> Outcome<f64> {
        let ticks: Vec<u64> = self
            .processes
            .iter()
            .map(|pid| Ok(Stat::of(*pid)?.cpu_ticks))
            .collect::<Outcome<_>>()?;
        Ok(ticks.iter().sum::<u64>() as f64 / rustix::param::clock_ticks_per_second() as f64)
    }

    fn wait_until_ready(&mut self, row: &Row) -> Outcome<()> {
        let name = row.serving.name();
        let begun = Instant::now();
        let shown = loop {
            match floor::reply_bytes(self.addr, self.path) {
                Ok(bytes) => break bytes,
                Err(error) if begun.elapsed() > PATIENCE => {
                    return Err(format!("{name} does not answer: {error}").into());
                }
                Err(_) => {}
            }
            if let Some(status) = self.child.try_wait()? {
                return Err(format!("{name} ended with {status}; is its port taken?").into());
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        // A head is longer than nothing and shorter than 1 KB.
        let page = row.page_bytes as usize;
        if !(page + 1..page + 1024).contains(&shown) {
            return Err(format!("{name} answers {shown} bytes for a page of {page}").into());
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // SIGTERM first: nginx's master must be alive to end its worker. A kill of what has already
        // ended fails, which is what we want here.
        let _ = kill(Pid::from_raw(self.child.id() as i32), Signal::SIGTERM);
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A command on the server's CPU that the kernel ends with us, however we end.
fn pinned(program: &std::ffi::OsStr) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "TERM", "taskset", "-c", SERVER_CPU]).arg(program);
    // nginx lies in sbin, which is not on the PATH of an ordinary user.
    command.env("PATH", format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default()));
    command.stdin(Stdio::null());
    command
}

fn ours(row: &Row, settings: &Settings) -> Outcome<Server> {
    let mut child = pinned(settings.joust.as_os_str())
        .args(["serve", "--model", "reactor", "--listen", "127.0.0.1:0"])
        .args(["--fixed", &row.page_bytes.to_string()])
        // Apache's default of 100 requests would make reconnecting part of the load.
        .args(["--set", "MaxKeepAliveRequests=0"])
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    let out = child.stdout.take().expect("stdout is piped");
    BufReader::new(out).read_line(&mut line)?;
    let addr = line.split("http://").nth(1).map(|at| at.trim().trim_end_matches('/'));
    let addr = addr.ok_or_else(|| format!("joust serve names no address: `{line}`"))?.parse()?;
    Ok(Server { processes: Vec::new(), child, addr, path: "/", _dir: None })
}

fn nginx(row: &Row) -> Outcome<Server> {
    let dir = tempfile::tempdir()?;
    // Started by root its worker is another user, who must get at the site.
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755))?;
    let site = dir.path().join("site");
    fs::create_dir(&site)?;
    fs::write(site.join("page.html"), "joust\n".repeat(row.page_bytes as usize / 6 + 1))?;
    fs::File::options()
        .write(true)
        .open(site.join("page.html"))?
        .set_len(u64::from(row.page_bytes))?;
    let addr = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let config = dir.path().join("nginx.conf");
    fs::write(&config, nginx_config(&dir.path().display().to_string(), addr))?;
    let child = pinned("nginx".as_ref())
        .arg("-e")
        .arg(dir.path().join("error.log"))
        .arg("-p")
        .arg(dir.path())
        .arg("-c")
        .arg(&config)
        .spawn()?;
    Ok(Server { processes: Vec::new(), child, addr, path: "/page.html", _dir: Some(dir) })
}

/// As little as makes a quick nginx: what is not here is nginx's default.
fn nginx_config(dir: &str, addr: SocketAddr) -> String {
    format!(
        "daemon off;
worker_processes 1;
pid {dir}/nginx.pid;
error_log {dir}/error.log warn;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    sendfile on;
    tcp_nopush on;
    # The default of 1000 would make reconnecting part of the load.
    keepalive_requests 4294967295;
    types {{ text/html html; }}
    client_body_temp_path {dir}/client_body;
    proxy_temp_path {dir}/proxy;
    fastcgi_temp_path {dir}/fastcgi;
    uwsgi_temp_path {dir}/uwsgi;
    scgi_temp_path {dir}/scgi;
    server {{
        listen {addr};
        root {dir}/site;
    }}
}}
"
    )
}

/// Of `/proc/PID/stat`, see proc_pid_stat(5).
struct Stat {
    parent: u32,
    /// In user and kernel mode.
    cpu_ticks: u64,
}

impl Stat {
    fn of(pid: u32) -> Outcome<Self> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        // The name in parentheses may hold anything, parentheses too.
        let (_, rest) = text.rsplit_once(") ").ok_or("no name in /proc/PID/stat")?;
        let fields: Vec<&str> = rest.split(' ').collect();
        // The third field of the file is the first of these.
        let field = |number: usize| fields.get(number - 3).ok_or("/proc/PID/stat is cut off");
        Ok(Self {
            parent: field(4)?.parse()?,
            cpu_ticks: field(14)?.parse::<u64>()? + field(15)?.parse::<u64>()?,
        })
    }
}

/// A process and its children.
fn processes_of(parent: u32) -> Outcome<Vec<u32>> {
    let mut found = vec![parent];
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
        // Any other process may end while we look.
        if Stat::of(pid).is_ok_and(|stat| stat.parent == parent) {
            found.push(pid);
        }
    }
    Ok(found)
}
