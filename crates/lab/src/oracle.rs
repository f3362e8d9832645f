//! Owns the out-of-band reference: what each contender answers when it is asked alone, before any load. A tool that
//! takes the first answer under load as the reference counts a wrong first answer as success, and all others as
//! failures.

use std::net::SocketAddr;

use load::FetchError;
use record::ExpectedBody;
use sha2::{Digest as _, Sha256};
use units::{Bytes, Nanos};

use crate::probe::{self, Address};

/// How often the page is fetched: one good reply could be luck, and a second could come from a cache that the first
/// one filled.
const FETCHES: u32 = 3;

/// What a server answers when it is asked alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// SHA-256 of the body, in hex.
    pub sha256: String,
    /// Status line and header fields of the last answer.
    pub head: String,
    /// Length of the body.
    pub bytes: u64,
}

/// Why there is no reference.
#[derive(Debug, thiserror::Error)]
pub enum OracleError {
    /// No complete answer.
    #[error("{target} could not be fetched: {source}")]
    NoReply {
        /// The target.
        target: String,
        /// The server, and why it failed.
        source: FetchError,
    },
    /// Another status than 200.
    #[error(
        "{addr} answered {target} with status {status}, not 200: check that the page exists and is readable"
    )]
    Status {
        /// The server.
        addr: SocketAddr,
        /// The target.
        target: String,
        /// The status.
        status: u16,
    },
    /// A redirect.
    #[error("{addr} does not answer with the page: {said}")]
    Redirect {
        /// The server.
        addr: SocketAddr,
        /// Where it leads, and the way out.
        said: String,
    },
    /// Not the same bytes each time.
    #[error(
        "{addr} answered {target} with {first} bytes and then with {second}, or with other bytes: a \
         page that changes cannot be compared; serve a static one"
    )]
    Changes {
        /// The server.
        addr: SocketAddr,
        /// The target.
        target: String,
        /// Length at first.
        first: u64,
        /// Length later.
        second: u64,
    },
    /// A program of the site was requested, but something else came.
    #[error(
        "{target} was answered with {bytes} bytes that the program there does not print: is the program run? \
         Set cgi = true in the settings"
    )]
    NotRun {
        /// The target.
        target: String,
        /// Length of the answer.
        bytes: u64,
    },
}

impl Reference {
    /// The body, as a load compares other bodies with it.
    pub fn body(&self) -> ExpectedBody {
        ExpectedBody { length: Bytes(self.bytes), sha256: self.sha256.clone() }
    }

    /// This reference, if its body is `text`.
    ///
    /// # Errors
    /// [`OracleError::NotRun`]: the body is something else.
    pub fn expect(self, target: &str, text: &str) -> Result<Self, OracleError> {
        match self.sha256 == record::hex(&Sha256::digest(text)) {
            true => Ok(self),
            false => Err(OracleError::NotRun { target: target.to_owned(), bytes: self.bytes }),
        }
    }
}

/// Fetches the page three times, alone.
///
/// # Errors
/// A fetch failed, had another status than 200, or returned other bytes.
pub fn ask(
    address: impl Into<Address>,
    target: &str,
    timeout: Nanos,
) -> Result<Reference, OracleError> {
    let address = address.into();
    let addr = address.socket;
    let mut first: Option<Reference> = None;
    for _ in 0..FETCHES {
        let reply = probe::get(&address, target, timeout)
            .map_err(|source| OracleError::NoReply { target: target.to_owned(), source })?;
        if let Some(said) = probe::redirect(&reply, target) {
            return Err(OracleError::Redirect { addr, said });
        }
        if reply.status != 200 {
            let (target, status) = (target.to_owned(), reply.status);
            return Err(OracleError::Status { addr, target, status });
        }
        let (sha256, bytes) = (record::hex(&Sha256::digest(&reply.body)), reply.body.len() as u64);
        if let Some(first) = first.as_ref().filter(|first| first.sha256 != sha256) {
            let (target, first) = (target.to_owned(), first.bytes);
            return Err(OracleError::Changes { addr, target, first, second: bytes });
        }
        first = Some(Reference { sha256, head: reply.head, bytes });
    }
    Ok(first.expect("there is at least one fetch"))
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use super::*;

    /// A server that gives one of these replies to each connection in turn.
    fn replies(texts: &'static [&'static str]) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for text in texts {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = [0; 1024];
                let _ = stream.read(&mut request).unwrap();
                stream.write_all(text.as_bytes()).unwrap();
            }
        });
        addr
    }

    const HI: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";

    #[test]
    fn three_equal_answers_make_a_reference() {
        let reference = ask(replies(&[HI, HI, HI]), "/", Nanos::from_secs(20)).unwrap();
        // sha256sum of "hi".
        let sha256 = "8f434346648f6b96df89dda901c5176b10a6d83961dd3c1ac88b59b2dc327aa4";
        assert_eq!((reference.sha256.as_str(), reference.bytes), (sha256, 2));
        assert!(reference.head.starts_with("HTTP/1.1 200 OK"));
        let error = reference.clone().expect("/cgi-bin/x", "ho").unwrap_err();
        assert!(matches!(error, OracleError::NotRun { bytes: 2, .. }), "{error}");
        assert_eq!(reference.clone().expect("/cgi-bin/x", "hi").unwrap(), reference);
    }

    #[test]
    fn a_wrong_status_and_a_page_that_changes_are_refused() {
        let missing = replies(&["HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"]);
        let error = ask(missing, "/x", Nanos::from_secs(20)).unwrap_err();
        assert!(matches!(error, OracleError::Status { status: 404, .. }), "{error}");
        let moved = replies(&["HTTP/1.1 301 Moved\r\nLocation: ./\r\nContent-Length: 0\r\n\r\n"]);
        let error = ask(moved, "/index.html", Nanos::from_secs(20)).unwrap_err().to_string();
        assert!(error.contains("to `./` (301)") && error.contains("target = \"/\""), "{error}");
        let changing = replies(&[HI, HI, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nho"]);
        let error = ask(changing, "/", Nanos::from_secs(20)).unwrap_err();
        assert!(matches!(error, OracleError::Changes { .. }), "{error}");
    }
}
