//! Servers that answer ab as a test specifies, including how they end a connection: what real
//! servers do once in a thousand requests, these do at the fifth.

use std::time::Duration;

use crate::scripted::{Connection, Scripted};

/// What it does at its fifth request, or at each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// Nothing special; it records its requests.
    Plain,
    /// The fifth connection is reset, before a reply or within one.
    ResetBefore,
    ResetWithin,
    /// The fifth reply is cut off by an orderly end, or there is none.
    CutOff,
    NoReply,
    /// The fifth reply never comes.
    Hangs,
    /// Every reply is chunked.
    Chunked,
    /// Every body ends with its connection, without a length.
    Unbounded,
    /// Every third reply has another length.
    Lengths,
    /// Every reply is a redirect without a body, from a server that does not name itself.
    Nameless,
}

impl Manner {
    pub fn start(self) -> Scripted {
        Scripted::start(move |connection| serve(connection, self))
    }
}

/// One connection, until either side ends it.
fn serve(connection: &mut Connection, manner: Manner) {
    while let Some((text, nth)) = connection.request() {
        let keeps = text.to_lowercase().contains("connection: keep-alive");
        match manner {
            Manner::ResetBefore if nth == 5 => return connection.reset(),
            Manner::ResetWithin if nth == 5 => {
                connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab");
                // The client has read it by then; otherwise the reset would discard it.
                std::thread::sleep(Duration::from_millis(100));
                return connection.reset();
            }
            Manner::CutOff if nth == 5 => {
                return connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab");
            }
            Manner::NoReply if nth == 5 => return,
            Manner::Hangs if nth == 5 => return connection.hang(),
            _ => {
                let is_head = text.starts_with("HEAD");
                connection.send(&reply(manner, nth, keeps, is_head));
                if !keeps || manner == Manner::Unbounded {
                    return;
                }
            }
        }
    }
}

fn reply(manner: Manner, nth: u64, keeps: bool, is_head: bool) -> Vec<u8> {
    let connection = if keeps { "Connection: keep-alive\r\n" } else { "" };
    let (status, fields, body) = match manner {
        Manner::Chunked => {
            ("200 OK", "Transfer-Encoding: chunked\r\n".to_owned(), "5\r\nhello\r\n0\r\n\r\n")
        }
        Manner::Unbounded => return b"HTTP/1.0 200 OK\r\nServer: un/1\r\n\r\nhello".to_vec(),
        Manner::Nameless => ("302 Found", "Content-Length: 0\r\n".to_owned(), ""),
        Manner::Lengths if nth.is_multiple_of(3) => {
            ("200 OK", "Server: s/2\r\nContent-Length: 7\r\n".to_owned(), "another")
        }
        _ => ("200 OK", "Server: s/2 (x)\r\nContent-Length: 5\r\n".to_owned(), "hello"),
    };
    let body = if is_head { "" } else { body };
    format!("HTTP/1.1 {status}\r\n{fields}{connection}\r\n{body}").into_bytes()
}
