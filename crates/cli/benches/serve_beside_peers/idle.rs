//! The cost of idle connections: memory of the reactor with 10,000 of them, each of which has been answered once. Start
//! reading at [`memory`].

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use super::beside::{Outcome, http, process};
use super::contenders::{Contender, Place, REACTOR};
use super::servers::{self, Site};
use super::{Page, Settings};

/// Number of open connections.
const CONNECTIONS: usize = 10_000;

/// The bar, in bytes.
pub const MEMORY_MAX: u64 = 40_000_000;

/// The measured memory.
pub struct Memory {
    pub connections: usize,
    /// Of all processes of the server, with shared pages counted once.
    pub idle_bytes: u64,
    /// The same before the first connection.
    pub bare_bytes: u64,
}

/// The reactor, with a timeout that keeps idle connections for the whole measurement.
static PATIENT: Contender = Contender {
    name: "joust reactor",
    launch: |place: &Place<'_>| {
        let mut launch = (REACTOR.launch)(place)?;
        launch.extend(["--set", "KeepAliveTimeout=600"].map(Into::into));
        Ok(launch)
    },
    warm_up: 0,
    is_earlier: false,
};

/// Opens the connections, sends a request on each, and reads the memory from the kernel.
pub fn memory(settings: &Settings) -> Outcome<Memory> {
    sys::socket::raise_file_limit()?;
    let site = Site::new(Page::File(3361))?;
    let server = servers::start(&PATIENT, &site, settings)?;
    let bare_bytes = process::memory_bytes(server.pid())?;
    let reply_bytes = http::reply_bytes(server.addr, "/page.html")?;
    let request = http::request(server.addr, "/page.html");
    let mut reply = vec![0; reply_bytes];
    let mut held = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut stream = TcpStream::connect(server.addr)?;
        stream.write_all(&request)?;
        stream.read_exact(&mut reply)?;
        held.push(stream);
    }
    let idle_bytes = process::memory_bytes(server.pid())?;
    Ok(Memory { connections: held.len(), idle_bytes, bare_bytes })
}
