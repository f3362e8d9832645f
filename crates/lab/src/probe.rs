//! Owns one request made alone, on a connection of its own, to see whether a server answers and
//! with what. Not the generator: nothing is timed or repeated here. Must not know which server it is.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Most bytes of a reply; a page of a study is far smaller.
const REPLY_BYTES_MAX: u64 = 256 << 20;

/// A reply, as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reply {
    /// Status code.
    pub(crate) status: u16,
    /// Status line and header fields, without the empty line.
    pub(crate) head: String,
    /// Body.
    pub(crate) body: Vec<u8>,
}

/// Asks for `target` and reads the reply up to the end of the connection, which the request asks
/// for. HTTP/1.0, so that no server may answer in chunks.
///
/// # Errors
/// Refused, reset, not complete within `timeout`; what came is not HTTP or is shorter than it said.
pub(crate) fn get(addr: SocketAddr, target: &str, timeout: Duration) -> io::Result<Reply> {
    let start = Instant::now();
    let mut stream = TcpStream::connect_timeout(&addr, timeout)?;
    let request = format!("GET {target} HTTP/1.0\r\nHost: {addr}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut bytes = Vec::new();
    let mut buf = vec![0; 64 << 10];
    loop {
        let left = timeout.saturating_sub(start.elapsed());
        if left.is_zero() || bytes.len() as u64 > REPLY_BYTES_MAX {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the reply did not end"));
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut buf) {
            Ok(0) => return parse(&bytes),
            Ok(n) => bytes.extend_from_slice(&buf[..n]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn parse(bytes: &[u8]) -> io::Result<Reply> {
    let wrong = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
    let end =
        end.ok_or_else(|| wrong("the connection ended inside the head of the reply".into()))?;
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let status = head.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5)?.parse().ok());
    let status = status.ok_or_else(|| wrong("the reply is not HTTP/1".to_owned()))?;
    let body = bytes[end + 4..].to_vec();
    let said = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    match said {
        Some(length) if length != body.len() => Err(wrong(format!(
            "the reply said {length} bytes and the connection ended after {}",
            body.len()
        ))),
        _ => Ok(Reply { status, head, body }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_taken_apart() {
        let reply = parse(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX: y\r\n\r\nhi").unwrap();
        assert_eq!((reply.status, reply.body.as_slice()), (200, &b"hi"[..]));
        assert_eq!(reply.head, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX: y");
    }

    #[test]
    fn a_reply_that_is_cut_or_is_not_http_is_an_error() {
        for bytes in [&b""[..], b"HTTP/1.1 200 OK\r\n", b"SSH-2.0-x\r\n\r\n"] {
            assert!(parse(bytes).is_err());
        }
        let cut = parse(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhi").unwrap_err();
        assert!(cut.to_string().contains("said 5 bytes"), "{cut}");
    }
}
