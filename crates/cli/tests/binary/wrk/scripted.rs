//! Servers that answer wrk as a test says, with kept-alive connections unless they say otherwise. Each reply takes some
//! milliseconds, so that many tools can run in parallel.

use std::time::Duration;

use crate::scripted::{Connection, Scripted};

/// What the server does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// Answers normally.
    Plain,
    /// Announces that each reply is the last on its connection.
    Closes,
    /// Ends each connection after its reply, without announcing it.
    ClosesSilently,
    /// Ends each connection without a reply.
    NoReply,
    /// Resets each connection within its reply.
    Resets,
    /// Answers with bytes that are not HTTP.
    Junk,
    /// Answers with that status.
    Status(u16),
    /// Never answers.
    Hangs,
    /// Answers after that many milliseconds.
    Slow(u64),
    /// Answers the tenth request after that many milliseconds.
    Stalls(u64),
    /// Answers in chunks.
    Chunked,
    /// Answers without a length, up to the end of the connection.
    Unbounded,
    /// Answers 401, except to clients with the token that it gave them.
    Guarded,
}

impl Manner {
    pub fn start(self) -> Scripted {
        Scripted::start(move |connection| serve(connection, self))
    }
}

/// One connection, until either side ends it.
fn serve(connection: &mut Connection, manner: Manner) {
    while let Some((text, nth)) = connection.request() {
        let wait = match manner {
            Manner::Slow(millis) => millis,
            Manner::Stalls(millis) if nth == 10 => millis,
            // wrk's threads do not wait for the lines that its first thread prints when all have begun.
            _ if nth == 1 => 100,
            _ => 3,
        };
        std::thread::sleep(Duration::from_millis(wait));
        match manner {
            Manner::Resets => {
                connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab");
                // The client has read it by then; otherwise the reset would discard it.
                std::thread::sleep(Duration::from_millis(50));
                return connection.reset();
            }
            Manner::NoReply => return,
            Manner::Hangs => return connection.hang(),
            _ => connection.send(&reply(manner, nth, &text)),
        }
        let ends = [Manner::Closes, Manner::ClosesSilently, Manner::Junk, Manner::Unbounded];
        if ends.contains(&manner) {
            return;
        }
    }
}

fn reply(manner: Manner, nth: u64, request: &str) -> Vec<u8> {
    let target = request.split(' ').nth(1).unwrap_or_default();
    let text = match manner {
        Manner::Closes => {
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello".to_owned()
        }
        Manner::Junk => "hello\r\n\r\n".to_owned(),
        Manner::Status(304) => "HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n".to_owned(),
        Manner::Status(status) => {
            format!("HTTP/1.1 {status} X\r\nX-Status: {status}\r\nContent-Length: 5\r\n\r\nhello")
        }
        Manner::Chunked => {
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n"
                .to_owned()
        }
        Manner::Unbounded => "HTTP/1.0 200 OK\r\nServer: un/1\r\n\r\nhello".to_owned(),
        Manner::Guarded if request.contains("X-Token: abc") => {
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello".to_owned()
        }
        Manner::Guarded => {
            let status = if target == "/authenticate" { "200 OK" } else { "401 No" };
            format!("HTTP/1.1 {status}\r\nX-Token: abc\r\nContent-Length: 0\r\n\r\n")
        }
        _ => format!(
            "HTTP/1.1 200 OK\r\nX-Nth: {}\r\nx-lower:  a b \r\nX-Twice: 1\r\nX-Twice: 2\r\n\
             Content-Length: 5\r\n\r\nhello",
            nth.min(9)
        ),
    };
    text.into_bytes()
}
