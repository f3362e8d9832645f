//! A server that runs, pinned to its CPU and ended whatever happens, and the site that all of them
//! serve. Must not know which servers there are (`contenders`). Start reading at [`Server::start`].

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::beside::process::{self, pinned};
use super::beside::{Outcome, SERVER_CPU, http};
use super::contenders::{Contender, Place};
use super::{Page, Settings};

/// What a program of the site prints, head excluded.
const PROGRAM_BYTES: usize = 1024;

/// How long a server may take to answer: a JVM takes seconds.
const START_MAX: Duration = Duration::from_secs(60);

/// What all servers of a row serve.
pub struct Site {
    dir: TempDir,
    page: Page,
}

/// A server that runs until this is dropped.
pub struct Server {
    child: Child,
    addr: SocketAddr,
    path: &'static str,
    _dir: TempDir,
}

impl Site {
    pub fn new(page: Page) -> Outcome<Self> {
        let dir = readable_dir()?;
        match page {
            Page::File(bytes) => {
                let text = "joust\n".repeat(bytes as usize / 6 + 1);
                fs::write(dir.path().join("page.html"), &text.as_bytes()[..bytes as usize])?;
            }
            Page::Program => program(dir.path())?,
        }
        Ok(Self { dir, page })
    }

    fn path(&self) -> &'static str {
        match self.page {
            Page::File(_) => "/page.html",
            Page::Program => "/cgi-bin/page",
        }
    }

    fn bytes(&self) -> usize {
        match self.page {
            Page::File(bytes) => bytes as usize,
            Page::Program => PROGRAM_BYTES,
        }
    }
}

/// A folder that another user than root can read, as whom some servers serve.
fn readable_dir() -> Outcome<TempDir> {
    let dir = tempfile::tempdir()?;
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755))?;
    Ok(dir)
}

/// A static binary without a runtime to speak of, so that starting it is most of what it costs.
fn program(site: &Path) -> Outcome<()> {
    let source = site.join("page.rs");
    fs::write(
        &source,
        format!(
            "use std::io::Write;\nfn main() {{\n    let mut page = b\"Content-Type: text/html\\r\\n\
             Content-Length: {PROGRAM_BYTES}\\r\\n\\r\\n\".to_vec();\n    \
             page.extend([b'j'; {PROGRAM_BYTES}]);\n    \
             std::io::stdout().write_all(&page).unwrap();\n}}\n"
        ),
    )?;
    fs::create_dir(site.join("cgi-bin"))?;
    let built = Command::new("rustc")
        .args(["-O", "-C", "target-feature=+crt-static", "-C", "panic=abort", "-o"])
        .args([&site.join("cgi-bin/page"), &source])
        .status()?;
    if !built.success() {
        return Err("rustc did not build the program that prints 1 KB".into());
    }
    Ok(())
}

impl Server {
    /// Returns once it has answered a request with the page.
    pub fn start(contender: &Contender, site: &Site, settings: &Settings) -> Outcome<Self> {
        let dir = readable_dir()?;
        let addr = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let place = Place { joust: &settings.joust, dir: dir.path(), site: site.dir.path(), addr };
        let launch = (contender.launch)(&place)?;
        let child = pinned(SERVER_CPU, &launch[0])
            .args(&launch[1..])
            .stdout(fs::File::create(dir.path().join("stdout"))?)
            .stderr(fs::File::create(dir.path().join("stderr"))?)
            .spawn()?;
        let mut server = Self { child, addr, path: site.path(), _dir: dir };
        server.wait_until_ready(contender.name, site.bytes()).map_err(|error| {
            let read = |name| fs::read_to_string(server._dir.path().join(name)).unwrap_or_default();
            format!("{error}\n{}{}{}", read("stdout"), read("stderr"), read("error.log"))
        })?;
        Ok(server)
    }

    pub fn url(&self) -> String {
        format!("http://{}{}", self.addr, self.path)
    }

    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    fn wait_until_ready(&mut self, name: &str, page: usize) -> Outcome<()> {
        let begun = Instant::now();
        let shown = loop {
            match http::reply_bytes(self.addr, self.path) {
                Ok(bytes) => break bytes,
                Err(error) if begun.elapsed() > START_MAX => {
                    return Err(format!("{name} does not answer: {error}").into());
                }
                Err(_) => {}
            }
            if let Some(status) = self.child.try_wait()? {
                return Err(format!("{name} ended with {status}").into());
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        // A head is longer than nothing and shorter than 1 KB.
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
