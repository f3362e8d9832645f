//! What a service manager is told: systemd's protocol of sd_notify(3), datagrams of lines to a socket. Owns
//! the socket. Start reading at [`Notify::tell`].

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// A service manager that listens, or none.
#[derive(Debug, Default)]
pub struct Notify(Option<(UnixDatagram, SocketAddr)>);

impl Notify {
    /// To the socket that NOTIFY_SOCKET names: a path, or `@` and an abstract name.
    ///
    /// # Errors
    /// A name that is neither, or is too long.
    pub fn to(name: &OsStr) -> io::Result<Self> {
        let address = match name.as_bytes() {
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
            [b'/', ..] => SocketAddr::from_pathname(name)?,
            _ => return Err(io::ErrorKind::InvalidInput.into()),
        };
        let socket = UnixDatagram::unbound()?;
        // A manager that is stuck must not stop the server.
        socket.set_nonblocking(true)?;
        Ok(Self(Some((socket, address))))
    }

    /// Sends lines such as `READY=1`. A line that cannot be sent is lost, as if nobody had listened.
    pub(super) fn tell(&self, lines: &str) {
        if let Some((socket, address)) = &self.0 {
            let _ = socket.send_to_addr(lines.as_bytes(), address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_arrive_by_a_path_and_by_an_abstract_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let listener = UnixDatagram::bind(&path).unwrap();
        let abstract_name = format!("joust-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&abstract_name).unwrap();
        let hidden = UnixDatagram::bind_addr(&address).unwrap();
        for (name, listener) in
            [(path.as_os_str(), &listener), (OsStr::new(&format!("@{abstract_name}")), &hidden)]
        {
            Notify::to(name).unwrap().tell("READY=1\nSTATUS=serves");
            let mut buf = [0; 64];
            let n = listener.recv(&mut buf).unwrap();
            assert_eq!(&buf[..n], b"READY=1\nSTATUS=serves");
        }
        assert!(Notify::to(OsStr::new("relative")).is_err());
    }
}
