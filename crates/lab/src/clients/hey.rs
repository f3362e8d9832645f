//! hey: with its extra behaviour (compression, redirects) switched off.

use super::{Client, ClientKind, Order, Program, Said, found_silent};

/// hey.
pub(super) static ITEM: Client = Client {
    name: "hey",
    about: "hey: a closed loop of one goroutine a connection, HTTP/1.1",
    package: "hey",
    kind: ClientKind::Program(Program {
        // It cannot print its version.
        find: |search| found_silent(search, "hey"),
        say,
        reads: "hey",
        counts_only: false,
    }),
};

fn say(order: &Order) -> Result<Said, String> {
    order.no_rate("hey", "its -q holds back a closed loop")?;
    let said = Said::new(&[])
        .with("-c", order.connections)
        .with("-cpus", order.threads.max(1))
        .with("-t", order.timeout_secs())
        .word("-disable-compression")
        .word("-disable-redirects");
    let said = match order.requests {
        None => said.with("-z", format!("{}ms", order.duration.0.div_ceil(1_000_000).max(1))),
        Some(requests) => {
            let connections = u64::from(order.connections.max(1));
            order.at_least("requests", requests, "connections", connections)?;
            let made = requests - requests % connections;
            let said = said.with("-n", requests);
            match made == requests {
                true => said,
                false => said.note(format!(
                    "hey divides requests evenly among its connections and drops the remainder: {made}"
                )),
            }
        }
    };
    Ok(said.word_if(!order.keep_alive, "-disable-keepalive").word(order.url()))
}
