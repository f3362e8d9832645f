//! http_load: with a file of URLs, which contains one.

use super::{Client, ClientKind, Order, Program, Said, found_silent};

/// http_load.
pub(super) static ITEM: Client = Client {
    name: "http_load",
    about: "http_load: a new connection for each request, on one thread, closed or open loop",
    package: "",
    kind: ClientKind::Program(Program {
        // It cannot print its version.
        find: |search| found_silent(search, "http_load"),
        say,
        reads: "http_load",
        counts_only: false,
    }),
};

fn say(order: &Order) -> Result<Said, String> {
    order.one_thread("http_load")?;
    if order.keep_alive {
        return Err(
            "http_load makes a new connection for each request: set keep_alive = false".to_owned()
        );
    }
    let said = match order.rate {
        None => Said::new(&[]).with("-parallel", order.connections),
        Some(rate) => Said::new(&[]).with("-rate", per_second(rate.0)?).note(format!(
            "http_load holds no number of connections at a rate: as many are open as the rate makes, \
             not {}",
            order.connections
        )),
    };
    let said = said.with("-timeout", order.timeout_secs());
    let mut said = match order.requests {
        None => said.with("-seconds", order.whole_secs("http_load")?),
        Some(requests) => said.with("-fetches", requests),
    }
    .word("urls");
    said.files = vec![("urls".to_owned(), format!("{}\n", order.url()))];
    Ok(said)
}

/// Its timer has a period of 1000 / rate in whole milliseconds, so it cannot make other rates exactly.
fn per_second(rate: f64) -> Result<u32, String> {
    let whole = rate.round();
    let exact = whole == rate && (1.0..=1000.0).contains(&rate) && 1000 % whole as u32 == 0;
    exact.then_some(whole as u32).ok_or_else(|| {
        format!(
            "http_load starts a fetch each whole number of milliseconds, which is never {rate}/s: \
             ask for 1000, 500, 250, 200, 125, 100 or another divisor of 1000"
        )
    })
}
