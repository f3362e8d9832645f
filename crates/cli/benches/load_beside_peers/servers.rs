//! The servers that the generators load, each pinned to one CPU and ended whatever happens. Must not
//! know who loads them. Start reading at [`Server::start`].

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::beside::http;
use crate::beside::process::{self, PATIENCE, pinned};
use crate::{Outcome, Row, SERVER_CPU, Settings};

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
    /// nginx's configuration and site.
    _dir: Option<TempDir>,
}

impl Server {
    /// Returns once it has answered a request with the row's page.
    pub fn start(row: &Row, settings: &Settings) -> Outcome<Self> {
        let mut server = match row.serving {
            Serving::OursFromMemory => ours(row, settings)?,
            Serving::Nginx => nginx(row)?,
        };
        server.wait_until_ready(row)?;
        Ok(server)
    }

    pub fn url(&self) -> String {
        format!("http://{}{}", self.addr, self.path)
    }

    /// CPU time of its processes so far, in seconds.
    pub fn cpu_seconds(&self) -> Outcome<f64> {
        process::cpu_seconds(self.child.id())
    }

    fn wait_until_ready(&mut self, row: &Row) -> Outcome<()> {
        let name = row.serving.name();
        let begun = Instant::now();
        let shown = loop {
            match http::reply_bytes(self.addr, self.path) {
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
        process::end(&mut self.child);
    }
}

fn ours(row: &Row, settings: &Settings) -> Outcome<Server> {
    let mut child = pinned(SERVER_CPU, &settings.joust)
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
    Ok(Server { child, addr, path: "/", _dir: None })
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
    let child = pinned(SERVER_CPU, "nginx")
        .arg("-e")
        .arg(dir.path().join("error.log"))
        .arg("-p")
        .arg(dir.path())
        .arg("-c")
        .arg(&config)
        .spawn()?;
    Ok(Server { child, addr, path: "/page.html", _dir: Some(dir) })
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
