//! h2load: with HTTP/1.1, which is what the other tools speak.

use super::{Client, ClientKind, Order, Program, Said, found};

/// h2load.
pub(super) static ITEM: Client = Client {
    name: "h2load",
    about: "h2load: a closed loop on several threads, here with HTTP/1.1",
    package: "nghttp2-client",
    kind: ClientKind::Program(Program {
        find: |search| found(search, "h2load", "--version", "h2load nghttp2/"),
        say,
        reads: "h2load",
        counts_only: false,
    }),
};

fn say(order: &Order) -> Result<Said, String> {
    order.no_rate("h2load", "its --rps holds back a closed loop, and its -r are connections")?;
    let threads = order.threads.max(1);
    order.at_least("connections", order.connections.into(), "threads", threads.into())?;
    let said = Said::new(&["--h1"])
        .with("-t", threads)
        .with("-c", order.connections)
        .with("-N", format!("{}s", order.timeout_secs()));
    let said = match order.requests {
        None => said.with("-D", format!("{}ms", order.duration.0.div_ceil(1_000_000).max(1))),
        Some(requests) => {
            order.at_least("requests", requests, "connections", order.connections.into())?;
            said.with("-n", requests)
        }
    };
    let said = if order.keep_alive { said } else { said.with("-H", "Connection: close") };
    Ok(said.word(order.url()))
}
