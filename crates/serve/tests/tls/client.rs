//! The clients of the TLS tests: our own over a socket, and other people's. Owns how bytes are sent and received. Start
//! reading at [`Secure`].

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use wire::tls::{Resumption, TlsClient, TlsClientConfig, TlsOptions};

use super::support::LONG;

/// Files of a self-signed certificate for those names.
pub(crate) fn certificate(folder: &Path, file: &str, names: &[&str]) -> (PathBuf, PathBuf) {
    let pem = wire::tls::self_signed(names).unwrap();
    let [chain, key] = ["crt", "key"].map(|kind| folder.join(format!("{file}.{kind}")));
    std::fs::write(&chain, pem.chain).unwrap();
    std::fs::write(&key, pem.key).unwrap();
    (chain, key)
}

/// A configuration of certificates, the first one shown if no name matches.
pub(crate) fn config(head: &str, certificates: &[(PathBuf, PathBuf)]) -> String {
    let mut text = format!("[tls]\n{head}\n");
    for (chain, key) in certificates {
        text += &format!("[[tls.certificate]]\nchain = {chain:?}\nkey = {key:?}\n");
    }
    text
}

/// A client that trusts every server, and keeps its sessions.
pub(crate) fn anybody() -> TlsClientConfig {
    options(|_| {})
}

pub(crate) fn options(change: impl Fn(&mut TlsOptions)) -> TlsClientConfig {
    let mut options = TlsOptions { insecure: true, ..TlsOptions::default() };
    options.alpn = vec!["http/1.1".to_owned()];
    change(&mut options);
    TlsClientConfig::new(&options).unwrap()
}

/// A connection with TLS.
pub(crate) struct Secure {
    pub(crate) tls: TlsClient,
    pub(crate) stream: TcpStream,
    plain: Vec<u8>,
}

/// How a connection ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The server said so.
    Notified,
    /// TCP just ended.
    Cut,
}

impl Secure {
    /// With its handshake done.
    pub(crate) fn to(addr: SocketAddr, config: &TlsClientConfig, name: &str) -> Self {
        Self::try_to(addr, config, name).unwrap()
    }

    pub(crate) fn try_to(
        addr: SocketAddr,
        config: &TlsClientConfig,
        name: &str,
    ) -> Result<Self, String> {
        let stream = TcpStream::connect(addr).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        let tls = TlsClient::new(config, name, Resumption::Offer).unwrap();
        let mut conn = Self { tls, stream, plain: Vec::new() };
        while conn.tls.is_handshaking() {
            conn.flush();
            if !conn.fill()? {
                conn.tls.end().map_err(|error| error.to_string())?;
            }
        }
        conn.flush();
        Ok(conn)
    }

    fn flush(&mut self) -> bool {
        let mut out = Vec::new();
        self.tls.take_output(&mut out);
        self.stream.write_all(&out).is_ok()
    }

    /// Sends; returns false if the connection has ended.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> bool {
        self.tls.send(bytes).is_ok() && self.flush()
    }

    /// Returns false at the end.
    fn fill(&mut self) -> Result<bool, String> {
        let mut buf = [0; 16 * 1024];
        match self.stream.read(&mut buf) {
            Ok(0) | Err(_) => Ok(false),
            Ok(n) => {
                let fed = self.tls.feed(&buf[..n], &mut self.plain);
                fed.map(|_| true).map_err(|error| error.to_string())
            }
        }
    }

    /// All that comes up to the end.
    pub(crate) fn rest(mut self) -> (Vec<u8>, End) {
        while self.fill().unwrap() {}
        let end = if self.tls.end().is_ok() { End::Notified } else { End::Cut };
        (self.plain, end)
    }

    /// The next `len` bytes.
    pub(crate) fn take(&mut self, len: usize) -> Vec<u8> {
        while self.plain.len() < len {
            assert!(self.fill().unwrap(), "the connection ended early");
        }
        self.plain.drain(..len).collect()
    }

    /// A response with a length: its head and body.
    pub(crate) fn response(&mut self) -> (String, Vec<u8>) {
        self.response_or_end().expect("the connection ended in a head")
    }

    /// The same; `None` if the connection ends before it has a head.
    fn response_or_end(&mut self) -> Option<(String, Vec<u8>)> {
        let end = loop {
            match self.plain.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                Some(at) => break at + 4,
                None if self.fill().unwrap_or(false) => {}
                None => return None,
            }
        };
        let head = String::from_utf8(self.take(end)).unwrap();
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
        let body = self.take(length.unwrap_or("0").parse().unwrap());
        Some((head, body))
    }

    /// The answer; `None` if the connection ended before it came.
    pub(crate) fn asked(&mut self, request: &str) -> Option<(String, Vec<u8>)> {
        if self.send(request.as_bytes()) { self.response_or_end() } else { None }
    }

    pub(crate) fn ask(&mut self, request: &str) -> (String, Vec<u8>) {
        assert!(self.send(request.as_bytes()));
        self.response()
    }
}

/// Runs a program with that input; returns its output and its error messages. `None`: it is not installed.
pub(crate) fn run(program: &str, args: &[&str], input: &[u8]) -> Option<String> {
    let started = Command::new(program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut child) = started else {
        skips::note(format_args!("{program} is not installed"));
        return None;
    };
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    Some(String::from_utf8_lossy(&text).into_owned())
}
