//! siege: with its own configuration file, because a user's file would affect the measurement.

use super::{Client, ClientKind, Order, Program, Said, found_silent};
use crate::adapters::{Found, Search};

/// siege.
pub(super) static ITEM: Client = Client {
    name: "siege",
    about: "siege: a closed loop of one thread a user",
    package: "siege",
    kind: ClientKind::Program(Program { find, say, reads: "siege", counts_only: false }),
};

/// siege prints its version with every report. Asked for the version alone, it creates a folder in the user's home.
fn find(search: &Search) -> Option<Found> {
    found_silent(search, "siege")
}

fn say(order: &Order) -> Result<Said, String> {
    order.no_rate("siege", "it has no open loop")?;
    let said = Said::new(&["-R", "siege.conf", "-b"]).with("-c", order.connections);
    let mut said = match order.requests {
        None => said.with("-t", format!("{}S", order.whole_secs("siege")?)),
        Some(requests) => {
            let users = u64::from(order.connections.max(1));
            if requests == 0 || !requests.is_multiple_of(users) {
                return Err(format!(
                    "siege asks for a number of requests a user: {requests} does not divide among \
                     {users} connections"
                ));
            }
            said.with("-r", requests / users)
        }
    }
    .word(order.url())
    .note(
        "siege has a thread for each connection; its parser of pages is off; it is told not to give \
         up after failures",
    );
    said.files = vec![("siege.conf".to_owned(), configuration(order))];
    Ok(said)
}

fn configuration(order: &Order) -> String {
    let connection = if order.keep_alive { "keep-alive" } else { "close" };
    format!(
        "verbose = false\ncolor = off\nquiet = false\njson_output = false\nlogging = false\n\
         parser = false\nfollow-location = false\ncache = false\ncookies = false\n\
         protocol = HTTP/1.1\naccept-encoding = identity\nconnection = {connection}\n\
         limit = {}\ntimeout = {}\nfailures = 2000000000\n",
        order.connections.max(1),
        order.timeout_secs(),
    )
}
