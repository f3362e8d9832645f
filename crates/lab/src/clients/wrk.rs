//! wrk: by its duration, with its distribution.

use super::{Client, ClientKind, Order, Program, Said, found};

/// wrk.
pub(super) static ITEM: Client = Client {
    name: "wrk",
    about: "wrk: a closed loop on several threads, HTTP/1.1",
    package: "wrk",
    kind: ClientKind::Program(Program {
        find: |search| found(search, "wrk", "-v", "wrk "),
        say,
        reads: "wrk",
        counts_only: false,
    }),
};

fn say(order: &Order) -> Result<Said, String> {
    order.no_rate("wrk", "it has no open loop (that is wrk2)")?;
    if let Some(requests) = order.requests {
        return Err(format!(
            "wrk takes only a duration, not {requests} requests: leave out the number of requests"
        ));
    }
    let threads = order.threads.max(1);
    order.at_least("connections", order.connections.into(), "threads", threads.into())?;
    let secs = order.whole_secs("wrk")?;
    let said = Said::new(&["--latency"])
        .with("-t", threads)
        .with("-c", order.connections)
        .with("-d", format!("{secs}s"))
        .with("--timeout", format!("{}s", order.timeout_secs()));
    let said = if order.keep_alive { said } else { said.with("-H", "Connection: close") };
    let divided = order.connections - order.connections % threads;
    let said = match divided == order.connections {
        true => said,
        false => said.note(format!(
            "wrk gives each of its {threads} threads as many connections: {divided} in all"
        )),
    };
    Ok(said.word(order.url()))
}
