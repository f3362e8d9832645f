//! A running server, pinned to its CPU and always ended. Must not know which server it is. Start reading at
//! [`Server::await_page`].

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Child;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::{Outcome, http, process};

/// Longest time until a server answers: a JVM takes seconds.
const START_MAX: Duration = Duration::from_secs(60);

/// A server that runs until this is dropped.
pub struct Server {
    pub child: Child,
    pub addr: SocketAddr,
    /// Path of the requested page.
    pub path: &'static str,
    /// Its configuration and logs.
    pub dir: TempDir,
}

impl Server {
    /// Waits until it answers with a page of exactly `page` bytes.
    pub fn await_page(&mut self, name: &str, page: usize) -> Outcome<()> {
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
                return Err(format!("{name} ended with {status}; is its port taken?").into());
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        // A head is longer than nothing and shorter than 1 KB.
        if !(page + 1..page + 1024).contains(&shown) {
            return Err(format!("{name} answers {shown} bytes for a page of {page}").into());
        }
        Ok(())
    }

    pub fn url(&self) -> String {
        format!("http://{}{}", self.addr, self.path)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        process::end(&mut self.child);
    }
}

/// A folder that other users can read, because some servers serve as another user than root.
pub fn readable_dir() -> Outcome<TempDir> {
    let dir = tempfile::tempdir()?;
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755))?;
    Ok(dir)
}

/// A page of that size.
pub fn page(bytes: u32) -> Vec<u8> {
    b"joust\n".iter().copied().cycle().take(bytes as usize).collect()
}
