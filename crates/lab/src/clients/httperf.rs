//! httperf: connections at a rate, one request each.

use super::{Client, ClientKind, Order, Program, Said, found};

/// httperf.
pub(super) static ITEM: Client = Client {
    name: "httperf",
    about: "httperf: an open loop of connections at a rate",
    package: "httperf",
    kind: ClientKind::Program(Program {
        find: |search| found(search, "httperf", "--version", "httperf: httperf-"),
        say,
        reads: "httperf",
        counts_only: false,
    }),
};

fn say(order: &Order) -> Result<Said, String> {
    order.one_thread("httperf")?;
    let Some(rate) = order.rate else {
        return Err("httperf holds no number of connections: it opens them at a rate; set a rate"
            .to_owned());
    };
    if order.keep_alive {
        return Err(
            "httperf sends the calls of a kept connection as fast as replies come, so the \
                    rate would be that of connections: set keep_alive = false"
                .to_owned(),
        );
    }
    let connections =
        order.requests.unwrap_or_else(|| (rate.0 * order.duration.as_secs_f64()).round() as u64);
    if connections == 0 {
        return Err(format!(
            "not one request is due at {rate} in {}: ask for a higher rate or a longer duration",
            order.duration
        ));
    }
    Ok(Said::new(&["--hog"])
        .with("--server", order.addr.ip())
        .with("--port", order.addr.port())
        .with("--uri", &order.target)
        .with("--timeout", format!("{:.3}", order.timeout.as_secs_f64()))
        .with("--rate", rate.0)
        .with("--num-conns", connections)
        .with("--num-calls", 1)
        .note(format!(
            "httperf holds no number of connections: as many are open as the rate makes, not {}",
            order.connections
        )))
}
