//! The site that all servers of a row serve, and the start of one of them. Must not know which servers
//! there are (`contenders`). Start reading at [`start`].

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use super::beside::process::pinned;
use super::beside::server::{self, Server, readable_dir};
use super::beside::{Outcome, SERVER_CPU};
use super::contenders::{Contender, Place};
use super::{Page, Settings};

/// Bytes that a program of the site prints, without the head.
const PROGRAM_BYTES: usize = 1024;

/// The content that all servers of a row serve.
pub struct Site {
    dir: TempDir,
    page: Page,
}

impl Site {
    pub fn new(page: Page) -> Outcome<Self> {
        let dir = readable_dir()?;
        match page {
            Page::File(bytes) => {
                fs::write(dir.path().join("page.html"), server::page(bytes))?;
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

/// A static binary with a minimal runtime, so that most of its cost is starting it.
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

/// Returns once the server has answered a request with the page.
pub fn start(contender: &Contender, site: &Site, settings: &Settings) -> Outcome<Server> {
    let dir = readable_dir()?;
    let addr = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let joust = match &settings.earlier {
        Some(earlier) if contender.is_earlier => earlier,
        _ => &settings.joust,
    };
    let place = Place { joust, dir: dir.path(), site: site.dir.path(), addr };
    let launch = (contender.launch)(&place)?;
    let child = pinned(SERVER_CPU, &launch[0])
        .args(&launch[1..])
        .stdout(fs::File::create(dir.path().join("stdout"))?)
        .stderr(fs::File::create(dir.path().join("stderr"))?)
        .spawn()?;
    let mut server = Server { child, addr, path: site.path(), dir };
    server.await_page(contender.name, site.bytes()).map_err(|error| {
        let read = |name| fs::read_to_string(server.dir.path().join(name)).unwrap_or_default();
        format!("{error}\n{}{}{}", read("stdout"), read("stderr"), read("error.log"))
    })?;
    Ok(server)
}
