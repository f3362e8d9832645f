//! h2load (nghttp2): its report, of 1.x. Source of the layout: its output and its manual.

use units::{Bytes, PerSecond};

use crate::layout::{Field, Layout, field, nothing, put, read};
use crate::report::{Report, Summary};
use crate::words::{Cursor, size, span};
use crate::{ReadError, Tool};

/// The tool.
pub(crate) static TOOL: Tool = Tool {
    name: "h2load",
    about: "h2load: a closed loop for HTTP/1.1, HTTP/2 and HTTP/3, on several threads",
    counts_differently: &[
        "succeeded are replies with 2xx and 3xx; failed are 4xx and 5xx as well as errors and timeouts",
        "with -D what is still out at the end is neither done nor failed: it is the difference of started and done",
        "with -D total is what was done, with -n what was asked for",
        "the time to the first byte is that of each connection's first request only, from the start of its connecting",
        "a time of a request is taken from its being handed to the connection: with -m above 1 it includes waiting behind others",
        "bytes include heads and framing; there are no percentiles",
        "a connection that the server closes is opened again; bytes of HTTP/1.1 connections that end with a reply are not counted (1.52)",
    ],
    command: None,
    own_flags: &[],
    read: read_reports,
};

fn read_reports(text: &str) -> Result<Vec<Report>, ReadError> {
    read(&[&LAYOUT], text)
}

static LAYOUT: Layout = Layout { tool: "h2load", fields: FIELDS, finish: nothing };

const FIELDS: &[Field] = &[
    field("spawning thread", |at, to| {
        at.word()?;
        let clients = at.count()?;
        at.says("total client(s).")?;
        to.threads = Some(to.threads.unwrap_or(0).saturating_add(1));
        to.concurrency = Some(to.concurrency.unwrap_or(0).saturating_add(clients));
        Some(())
    })
    .opens()
    .repeats(),
    field("finished in # # req/s, #", |at, to| {
        to.duration = Some(span(at.hash(0)?)?);
        to.rate = Some(PerSecond(at.hash_number(1)?));
        to.traffic.rate = Some(PerSecond(size(at.hash(2)?)?.0 as f64));
        Some(())
    })
    .opens()
    .signs()
    .always(),
    field(
        "requests: # total, # started, # done, # succeeded, # failed, # errored, # timeout",
        |at, to| {
            to.requests.started = Some(at.hash_count(1)?);
            to.requests.complete = Some(at.hash_count(2)?);
            to.requests.succeeded = Some(at.hash_count(3)?);
            to.requests.failed = Some(at.hash_count(4)?);
            to.errors.insert("errored".to_owned(), at.hash_count(5)?);
            to.errors.insert("timeout".to_owned(), at.hash_count(6)?);
            Some(())
        },
    )
    .signs()
    .always(),
    // In one: weighttp has a line like the first.
    field(
        "status codes: # 2xx, # 3xx, # 4xx, # 5xx traffic: # # total, # # headers (space savings",
        |at, to| {
            let class = |n| Some((n as u8 + 2, at.hash_count(n)?));
            to.requests.set_classes((0..4).map(class).collect::<Option<Vec<_>>>()?);
            to.traffic.received = Some(Bytes(at.hash_count(5)?));
            to.traffic.heads = Some(Bytes(at.hash_count(7)?));
            at.word()?;
            at.size()?;
            to.traffic.bodies = Some(Bytes(at.count()?));
            at.says("data")
        },
    )
    .signs()
    .always(),
    field("time for request:", |at, to| put(&mut to.times.total, times(at)?)).signs().always(),
    field("time for connect:", |at, to| put(&mut to.times.connect, times(at)?)).signs().always(),
    field("time to 1st byte:", |at, to| put(&mut to.times.waiting, times(at)?)).signs().always(),
];

/// `min max mean sd +/- sd`.
fn times(at: &mut Cursor<'_, '_>) -> Option<Summary> {
    let (min, max, mean, sd) = (at.span()?, at.span()?, at.span()?, at.span()?);
    at.percent()?;
    Some(Summary { min: Some(min), max: Some(max), mean: Some(mean), sd: Some(sd), median: None })
}
