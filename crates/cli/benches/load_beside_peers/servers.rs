//! The servers that the generators load, each pinned to one CPU. Must not know who loads them. Start
//! reading at [`start`].

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::process::Stdio;

use crate::beside::process::pinned;
use crate::beside::server::{self, Server, readable_dir};
use crate::{Outcome, Row, SERVER_CPU, Settings};

/// The server of a row.
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

/// Returns once the server has answered a request with the row's page.
pub fn start(row: &Row, settings: &Settings) -> Outcome<Server> {
    let mut server = match row.serving {
        Serving::OursFromMemory => ours(row, settings)?,
        Serving::Nginx => nginx(row)?,
    };
    server.await_page(row.serving.name(), row.page_bytes as usize)?;
    Ok(server)
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
    Ok(Server { child, addr, path: "/", dir: readable_dir()? })
}

fn nginx(row: &Row) -> Outcome<Server> {
    let dir = readable_dir()?;
    let site = dir.path().join("site");
    fs::create_dir(&site)?;
    fs::write(site.join("page.html"), server::page(row.page_bytes))?;
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
    Ok(Server { child, addr, path: "/page.html", dir })
}

/// A minimal configuration for a fast nginx: everything else is nginx's default.
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
