//! A real server for the tests that compare with it. Owns its start and end. Start reading at
//! [`Peer::start`].

use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command};

use sys::process::{Pid, Signal};

use super::eventually;

/// A real server with a configuration of its own in a directory of its own.
pub(crate) struct Peer {
    process: Child,
    pub(crate) addr: SocketAddr,
}

impl Drop for Peer {
    fn drop(&mut self) {
        let pid = Pid::from_raw(self.process.id() as i32).unwrap();
        let _ = sys::process::signal(pid, Signal::TERM);
        let _ = self.process.wait();
    }
}

impl Peer {
    /// Starts `program` with what `config` gives for a free address; `None` if it is not installed.
    pub(crate) fn start(
        program: &str,
        dir: &Path,
        args: &[&str],
        config: impl Fn(SocketAddr) -> String,
    ) -> Option<Self> {
        let path = Path::new("/usr/sbin").join(program);
        if !path.exists() {
            let place = path.display();
            skips::note(format_args!("there is no {place} (scripts/peers.sh installs it)"));
            return None;
        }
        let addr = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let file = dir.join(format!("{program}.conf"));
        fs::write(&file, config(addr)).unwrap();
        let process = Command::new(path).args(args).arg(&file).spawn().unwrap();
        let peer = Self { process, addr };
        eventually("the peer listens", || TcpStream::connect(addr).is_ok());
        Some(peer)
    }
}
