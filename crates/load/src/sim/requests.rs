//! What a simulated server needs to know about the requests that it receives. Start reading at [`Requests::next`].
//!
//! The client is our own worker, which sends each head in one write. This is asserted, because a head in two writes
//! would be two segments on a real network.

/// Requests of one connection, as they come.
#[derive(Debug, Default, Clone)]
pub(super) struct Requests {
    /// Bytes of the current request's body that are still to come.
    body_left: usize,
}

/// What came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Came {
    /// The head of a request.
    Head(Head),
    /// The last byte of the body of the request whose head came last.
    Body,
}

/// The parts of a head that decide the reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    /// The requested body size, if the target gives one.
    pub(super) body_bytes: Option<usize>,
    /// HEAD.
    pub(super) is_head: bool,
    /// Whether a body is still to come.
    pub(super) has_body: bool,
    /// Whether the client waits for `100 Continue`.
    pub(super) expects_continue: bool,
}

impl Requests {
    /// The next complete part in `bytes`, and its length; `None` if none is complete.
    pub(super) fn next(&mut self, bytes: &[u8]) -> Option<(Came, usize)> {
        if self.body_left > 0 {
            let used = self.body_left.min(bytes.len());
            self.body_left -= used;
            return (self.body_left == 0).then_some((Came::Body, used));
        }
        if bytes.is_empty() {
            return None;
        }
        let end = memchr::memmem::find(bytes, b"\r\n\r\n").expect("a head is handed over whole");
        let head = &bytes[..end + 2];
        let length = field(head, "Content-Length").and_then(number).unwrap_or(0);
        self.body_left = length;
        let target = head.split(|&byte| byte == b' ').nth(1).unwrap_or_default();
        let came = Head {
            body_bytes: target.strip_prefix(b"/").and_then(number),
            is_head: head.starts_with(b"HEAD "),
            has_body: length > 0,
            expects_continue: field(head, "Expect").is_some(),
        };
        Some((Came::Head(came), end + 4))
    }
}

fn field<'a>(head: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let value = |line: &'a [u8]| {
        let colon = line.iter().position(|&byte| byte == b':')?;
        let is_it = line[..colon].eq_ignore_ascii_case(name.as_bytes());
        is_it.then(|| line[colon + 1..].trim_ascii())
    };
    head.split(|&byte| byte == b'\n').find_map(value)
}

fn number(digits: &[u8]) -> Option<usize> {
    str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_found_one_after_the_other_and_bodies_in_pieces() {
        let get = |body_bytes| Head {
            body_bytes,
            is_head: false,
            has_body: false,
            expects_continue: false,
        };
        let mut requests = Requests::default();
        let mut bytes: &[u8] = b"GET /25 HTTP/1.1\r\nHost: a\r\n\r\nPOST / HTTP/1.1\r\nHost: a\r\n\
            content-length: 3\r\nExpect: 100-continue\r\n\r\nab";
        let mut came = Vec::new();
        while let Some((one, used)) = requests.next(bytes) {
            came.push(one);
            bytes = &bytes[used..];
        }
        let post = Head { has_body: true, expects_continue: true, ..get(None) };
        assert_eq!(came, [Came::Head(get(Some(25))), Came::Head(post)]);
        assert_eq!(requests.next(b"c"), Some((Came::Body, 1)));
        let (head, _) = requests.next(b"HEAD /a HTTP/1.1\r\n\r\n").unwrap();
        assert_eq!(head, Came::Head(Head { is_head: true, ..get(None) }));
    }
}
