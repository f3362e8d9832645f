//! Owns what both roles do with rustls: received bytes go in, plaintext and bytes to send come out. Start reading at
//! [`feed`].

use std::io::{BufRead, ErrorKind, Read, Write};

use rustls::{ConnectionCommon, Error, IoState, ProtocolVersion, SideData};

/// Why bytes were not taken.
pub(super) enum Unfed {
    /// The protocol failed.
    Tls(Error),
    /// rustls takes no more bytes: the connection failed before and was fed again.
    Refused(std::io::Error),
}

/// Takes received bytes, split anywhere; appends plaintext to `plain`, including that before an error in the same
/// bytes. Data after a close_notify is ignored. Returns the state after the last bytes; `None` if there were no bytes.
pub(super) fn feed<D: SideData>(
    conn: &mut ConnectionCommon<D>,
    bytes: &[u8],
    plain: &mut Vec<u8>,
) -> Result<Option<IoState>, Unfed> {
    let mut rest = bytes;
    let mut state = None;
    while !rest.is_empty() {
        // Everything taken is processed and drained before the next read, so there is room. Only a failed connection
        // that is fed again reaches the limit (64 KB).
        let taken = conn.read_tls(&mut rest).map_err(Unfed::Refused)?;
        if taken == 0 {
            break;
        }
        let processed = conn.process_new_packets();
        drain(conn, plain);
        state = Some(processed.map_err(Unfed::Tls)?);
    }
    // Here rustls shrinks its buffer of ciphertext to 4 KB, if it is empty. Without this, each
    // connection would keep up to 32 KB from a large message to the next one.
    let _ = conn.read_tls(&mut NothingYet);
    Ok(state)
}

/// Appends the pending output to `out`: flights of the handshake, records, alerts.
pub(super) fn take_output<D: SideData>(conn: &mut ConnectionCommon<D>, out: &mut Vec<u8>) {
    while conn.wants_write() {
        conn.write_tls(out).expect("a Vec takes every byte");
    }
}

/// "TLS 1.2" or "TLS 1.3".
pub(super) fn version_name(version: ProtocolVersion) -> &'static str {
    match version {
        ProtocolVersion::TLSv1_2 => "TLS 1.2",
        ProtocolVersion::TLSv1_3 => "TLS 1.3",
        _ => "another TLS",
    }
}

/// A source that has nothing to read now, which is not an end.
struct NothingYet;

impl Read for NothingYet {
    fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
        Err(ErrorKind::WouldBlock.into())
    }
}

/// Moves plaintext out of rustls, which would stop reading at 16 KB of it.
fn drain<D: SideData>(conn: &mut ConnectionCommon<D>, plain: &mut Vec<u8>) {
    let mut reader = conn.reader();
    // An error only says that there is no more, now or ever; the connection's state says which.
    while let Ok(chunk) = reader.fill_buf()
        && !chunk.is_empty()
    {
        plain.extend_from_slice(chunk);
        let taken = chunk.len();
        reader.consume(taken);
    }
}

/// Encrypts all of `parts`, in as few records as possible.
pub(super) fn write_all<D: SideData>(
    conn: &mut ConnectionCommon<D>,
    parts: [&[u8]; 2],
) -> std::io::Result<()> {
    let [first, second] = parts;
    if first.is_empty() || second.is_empty() {
        return conn.writer().write_all(if first.is_empty() { second } else { first });
    }
    let slices = [first, second].map(std::io::IoSlice::new);
    let written = conn.writer().write_vectored(&slices)?;
    assert_eq!(written, first.len() + second.len(), "without a bound rustls takes all");
    Ok(())
}
