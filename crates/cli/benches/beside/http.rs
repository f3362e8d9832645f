//! One minimal request and its reply. Must not know its purpose. Start reading at [`reply_bytes`].

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::Outcome;

/// Bytes of a read.
const PART_BYTES: usize = 4096;

/// A minimal request.
pub fn request(addr: SocketAddr, path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: {addr}\r\n\r\n").into_bytes()
}

/// Size of one reply, head and body, measured by a request on a connection of its own.
pub fn reply_bytes(addr: SocketAddr, path: &str) -> Outcome<usize> {
    let mut stream = TcpStream::connect(addr)?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    stream.write_all(&request(addr, path))?;
    let mut reply = Vec::new();
    let mut part = [0; PART_BYTES];
    let head = loop {
        let taken = stream.read(&mut part)?;
        reply.extend_from_slice(&part[..taken]);
        if let Some(at) = reply.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        if taken == 0 {
            return Err(format!("{addr} closed the connection before the end of a head").into());
        }
    };
    let text = std::str::from_utf8(&reply[..head])?;
    if !text.starts_with("HTTP/1.1 200 ") {
        return Err(format!("{addr}{path} does not answer 200:\n{text}").into());
    }
    let body = text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>())
    });
    Ok(head + body.ok_or_else(|| format!("{addr}{path} says no length:\n{text}"))??)
}
