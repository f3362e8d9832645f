//! What a line of the access log holds, as Apache's mod_log_config writes it. Owns the order of
//! its parts and their escaping; must not know when it is written.
//! Start reading at [`begin`].
//!
//! The parts that a request decides are rendered when its head is read, because its bytes are gone
//! when the response has been sent; status and length follow then.

use std::io::Write as _;
use std::net::IpAddr;

/// What the head of a request gives to its line. What is absent is `None`, and a hyphen in the line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Requested<'a> {
    /// `%h`
    pub(crate) client: IpAddr,
    /// `%t`, in brackets.
    pub(crate) time: &'a [u8],
    /// `%r`
    pub(crate) line: Option<&'a [u8]>,
}

/// Adds `%h %l %u %t "%r" `. There is neither identd nor authentication, so `%l` and `%u` are
/// hyphens.
pub(crate) fn begin(out: &mut Vec<u8>, requested: Requested<'_>) {
    write(out, format_args!("{} - - ", requested.client.to_canonical()));
    out.extend_from_slice(requested.time);
    out.extend_from_slice(b" \"");
    value(out, requested.line);
    out.extend_from_slice(b"\" ");
}

/// Adds `%>s %b`: the status, and the bytes of the body that were sent, a hyphen for none.
pub(crate) fn result(out: &mut Vec<u8>, status: u16, body_bytes: u64) {
    match body_bytes {
        0 => write(out, format_args!("{status} -")),
        n => write(out, format_args!("{status} {n}")),
    }
}

/// Adds ` "%{Referer}i" "%{User-agent}i"`, what the combined format has more.
pub(crate) fn combined(out: &mut Vec<u8>, referer: Option<&[u8]>, agent: Option<&[u8]>) {
    out.extend_from_slice(b" \"");
    value(out, referer);
    out.extend_from_slice(b"\" \"");
    value(out, agent);
    out.push(b'"');
}

fn value(out: &mut Vec<u8>, value: Option<&[u8]>) {
    match value {
        None => out.push(b'-'),
        Some(bytes) => bytes.iter().for_each(|&byte| escaped(out, byte)),
    }
}

/// As Apache's ap_escape_logitem: what could end the value or the line, or speak to a terminal, never
/// reaches the file (CVE-2003-0020).
fn escaped(out: &mut Vec<u8>, byte: u8) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let letter = match byte {
        b'"' | b'\\' => byte,
        0x08 => b'b',
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x0b => b'v',
        b' '..=b'~' => return out.push(byte),
        _ => {
            let digits = [HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]];
            return out.extend_from_slice(&[b'\\', b'x', digits[0], digits[1]]);
        }
    };
    out.extend_from_slice(&[b'\\', letter]);
}

fn write(out: &mut Vec<u8>, arguments: std::fmt::Arguments<'_>) {
    out.write_fmt(arguments).expect("a Vec takes every write");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(request: Option<&[u8]>, status: u16, bytes: u64) -> String {
        let mut out = Vec::new();
        let time = b"[10/Oct/2000:13:55:36 -0700]";
        begin(&mut out, Requested { client: [127, 0, 0, 1].into(), time, line: request });
        result(&mut out, status, bytes);
        String::from_utf8(out).expect("a line is ASCII")
    }

    #[test]
    fn a_line_is_the_one_of_apaches_manual() {
        // httpd.apache.org/docs/2.4/logs.html, with %u as it is without authentication.
        let expected = "127.0.0.1 - - [10/Oct/2000:13:55:36 -0700] \
                        \"GET /apache_pb.gif HTTP/1.0\" 200 2326";
        assert_eq!(line(Some(b"GET /apache_pb.gif HTTP/1.0"), 200, 2326), expected);
    }

    #[test]
    fn what_could_forge_a_line_is_escaped_as_apache_does() {
        let cases: [(&[u8], &str); 6] = [
            (b"a\"b", "a\\\"b"),
            (b"a\\b", "a\\\\b"),
            (b"\r\n\t\x08\x0b", "\\r\\n\\t\\b\\v"),
            (b"\x1b[2J\x00\x7f", "\\x1b[2J\\x00\\x7f"),
            ("é".as_bytes(), "\\xc3\\xa9"),
            (b"\x9b", "\\x9b"),
        ];
        for (request, shown) in cases {
            assert!(
                line(Some(request), 400, 0).ends_with(&format!("\"{shown}\" 400 -")),
                "{shown}"
            );
        }
    }

    #[test]
    fn what_is_absent_is_a_hyphen() {
        assert!(line(None, 408, 0).ends_with("\"-\" 408 -"));
        let mut out = Vec::new();
        combined(&mut out, None, Some(b"curl/8"));
        assert_eq!(out, b" \"-\" \"curl/8\"");
    }
}
