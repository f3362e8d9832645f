//! The rows of the table, one file per subject: one request, what demands its answer, and the answer. Owns their short
//! notation. Start reading at [`TABLES`], then `basics`.

use super::{Body, Case, Field, Reply, Then};

#[rustfmt::skip]
mod basics;
#[rustfmt::skip]
mod conditions;
#[rustfmt::skip]
mod connection;
#[rustfmt::skip]
mod desync;
#[rustfmt::skip]
mod framing;
#[rustfmt::skip]
mod malformed;
#[rustfmt::skip]
mod message;
#[rustfmt::skip]
mod ranges;
#[rustfmt::skip]
mod targets;

/// Every case, by subject.
pub(crate) static TABLES: &[&[Case]] = &[
    basics::ROWS,
    targets::ROWS,
    message::ROWS,
    framing::ROWS,
    desync::ROWS,
    malformed::ROWS,
    connection::ROWS,
    conditions::ROWS,
    ranges::ROWS,
];

const fn row(
    name: &'static str,
    cites: &'static str,
    request: &'static [u8],
    replies: &'static [Reply],
    then: Then,
) -> Case {
    Case { name, cites, request, replies, then }
}

const fn re(status: u16, fields: &'static [Field], body: Body) -> Reply {
    Reply { status, fields, body }
}

/// `before`, `part` as often as there is room, and `after`.
const fn filled<const N: usize>(before: &[u8], part: &[u8], after: &[u8]) -> [u8; N] {
    let mut bytes = [0; N];
    let mut at = 0;
    while at < N {
        bytes[at] = if at < before.len() {
            before[at]
        } else if at < N - after.len() {
            part[(at - before.len()) % part.len()]
        } else {
            after[at - (N - after.len())]
        };
        at += 1;
    }
    bytes
}

const TEN: Body = Body::Is(b"0123456789");
const PAGE: Body = Body::Holds(&["<!DOCTYPE html>", "<h1>"]);
const CLOSE: Field = Field::Is("connection", "close");

/// Refused, and the connection ends: where the next request would begin is not known.
const REFUSED: &[Reply] = &[re(400, &[CLOSE], PAGE)];
/// /ten.txt, whole.
const WHOLE: &[Reply] = &[re(200, &[], TEN)];
