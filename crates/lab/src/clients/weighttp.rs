//! weighttp: by a number of requests, the only limit that 0.4 accepts.

use super::{Client, ClientKind, Order, Program, Said, found};

/// weighttp.
pub(super) static ITEM: Client = Client {
    name: "weighttp",
    about: "weighttp: a closed loop on several threads, a number of requests",
    package: "",
    kind: ClientKind::Program(Program {
        find: |search| found(search, "weighttp", "-v", "weighttp "),
        say,
        reads: "weighttp",
        counts_only: true,
    }),
};

fn say(order: &Order) -> Result<Said, String> {
    order.no_rate("weighttp", "it has no open loop")?;
    let Some(requests) = order.requests else {
        return Err("weighttp takes only a number of requests: set one".to_owned());
    };
    let threads = order.threads.max(1);
    order.at_least("connections", order.connections.into(), "threads", threads.into())?;
    order.at_least("requests", requests, "connections", order.connections.into())?;
    Ok(Said::new(&[])
        .with("-n", requests)
        .with("-c", order.connections)
        .with("-t", threads)
        .word_if(order.keep_alive, "-k")
        .word(order.url())
        .note("weighttp 0.4 cannot be told a timeout"))
}
