//! ab: by `-t`, which must stand before `-n` because it also sets the number of requests.

use super::{Client, ClientKind, Order, Program, Said, found};

/// ab.
pub(super) static ITEM: Client = Client {
    name: "ab",
    about: "ApacheBench: a closed loop on one thread, HTTP/1.0",
    package: "apache2-utils",
    kind: ClientKind::Program(Program {
        find: |search| found(search, "ab", "-V", "ApacheBench, Version "),
        say,
        reads: "ab",
        counts_only: false,
    }),
};

/// More requests than ab can make in a second: with `-t`, the number of requests must not end the run. ab reserves 40
/// bytes for each, which cost nothing until they are used.
const REQUESTS_PER_SECOND_MAX: u64 = 500_000;
/// Together no more than 2 GB.
const REQUESTS_MAX: u64 = 50_000_000;

fn say(order: &Order) -> Result<Said, String> {
    order.one_thread("ab")?;
    order.no_rate("ab", "it has no open loop")?;
    let said = Said::new(&["-q", "-r"])
        .with("-c", order.connections)
        .with("-s", order.timeout_secs())
        .word_if(order.keep_alive, "-k");
    let said = match order.requests {
        Some(requests) => {
            order.at_least("requests", requests, "connections", order.connections.into())?;
            said.with("-n", requests)
        }
        None => {
            let secs = order.whole_secs("ab")?;
            let requests = secs.saturating_mul(REQUESTS_PER_SECOND_MAX).min(REQUESTS_MAX);
            said.with("-t", secs).with("-n", requests)
        }
    };
    Ok(said.word(order.url()).note("ab speaks HTTP/1.0"))
}
