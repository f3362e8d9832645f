//! A process for each connection, forked in advance: Apache's MPM prefork. A child waits in accept,
//! and then with its connection through keep-alive. Start reading at [`serve`].
//!
//! Cost of a request on a kept-alive connection: one receive and one send, both blocking. Cost of a
//! connection: accept and close. The kernel bounds each wait (see `socket_io::CallLimit`). Children
//! block in accept on the same socket, without a lock: the kernel wakes the one that has waited
//! longest.

use std::sync::Arc;

use super::shared::child::{self, Accepted};
use super::shared::parent::{self, ChildPlan};
use super::shared::scoreboard::Scoreboard;
use super::shared::socket_io::{self, CallLimit};
use super::shared::spare::SpareRule;
use super::{Declared, Model, PreparedModel, SettingKind, SettingSpec, Settings};
use crate::ServeError;
use crate::service::Service;
use site::board::State;

/// The model.
pub(super) static ITEM: Model = Model {
    name: "prefork",
    about: "a process for each connection, forked in advance (Apache, MPM prefork)",
    settings: &[
        setting("StartServers", 5, 0, "children at the start"),
        setting(
            "MinSpareServers",
            5,
            1,
            "minimum of idle children; below it 1, 2, 4 ... 32 a second start",
        ),
        setting("MaxSpareServers", 10, 1, "maximum of idle children; above it one a second ends"),
        setting("MaxRequestWorkers", 256, 1, "maximum number of children, and so of connections"),
        setting("ServerLimit", 256, 1, "places for children, fixed for the life of the server"),
        setting(
            "MaxConnectionsPerChild",
            0,
            0,
            "connections after which a child ends; 0: any number",
        ),
    ],
    declares: Declared {
        accept_order: "the child that waits longest in accept",
        keep_alive_holder: "a whole child process, blocked in receive",
        backlog: "the kernel's queue, ListenBacklog connections",
        concurrency: "MaxRequestWorkers connections, idle ones counted",
        saturation: "connections wait in the backlog while all children hold one",
    },
    two_at_once: Some(&["MaxRequestWorkers=2", "ServerLimit=2"]),
    prepare,
};

/// Apache's hard limit of children.
const SERVER_LIMIT_MAX: u64 = 200_000;

const fn setting(name: &'static str, default: u64, min: u64, about: &'static str) -> SettingSpec {
    let max = if default == 0 { u64::MAX } else { SERVER_LIMIT_MAX };
    SettingSpec { name, kind: SettingKind::Count { default, min, max }, about }
}

#[derive(Debug)]
struct Prefork(ChildPlan);

fn prepare(settings: &Settings) -> Result<Arc<dyn PreparedModel>, String> {
    let [spare_min, spare_max, workers_max, limit] =
        ["MinSpareServers", "MaxSpareServers", "MaxRequestWorkers", "ServerLimit"]
            .map(|name| settings.size(name));
    if workers_max > limit {
        return Err(format!(
            "MaxRequestWorkers must be at most ServerLimit ({limit}), got {workers_max}: raise \
             ServerLimit (Apache would serve with {limit} and only log it)"
        ));
    }
    if spare_max <= spare_min {
        return Err(format!(
            "MaxSpareServers must be above MinSpareServers ({spare_min}), got {spare_max}: set it to \
             {} or more, as Apache itself would",
            spare_min + 1
        ));
    }
    Ok(Arc::new(Prefork(ChildPlan {
        start: settings.size("StartServers"),
        children_max: workers_max,
        places: workers_max,
        ends_one_at_a_time: false,
        workers_per_child: 1,
        busy_hint: "StartServers, or Min/MaxSpareServers",
        rule: SpareRule::new(spare_min, spare_max),
        connections_per_child: settings.count_or_any("MaxConnectionsPerChild"),
    })))
}

impl PreparedModel for Prefork {
    fn run(&self, service: &Service) -> Result<(), ServeError> {
        let Self(plan) = self;
        let call_limit = CallLimit::of(service);
        parent::lead(service, plan, &|board, number| {
            serve(service, call_limit, board, number, plan.connections_per_child)
        })
    }
}

/// The life of a child: accepts, serves that connection to its end, and so on. `left`: how often.
fn serve(
    service: &Service,
    call_limit: CallLimit,
    board: &Scoreboard,
    number: usize,
    mut left: u64,
) -> u8 {
    let _slot = board.claim_slot(number, 0);
    let mut spare_exchange = None;
    while left > 0 {
        board.set(number, 0, State::Waiting);
        match child::accept(service, board) {
            Accepted::Conn(socket, peer) => {
                left -= 1;
                board.set(number, 0, State::Reading);
                let exchange = socket_io::exchange_for(&mut spare_exchange, service, peer);
                socket_io::serve_blocking(socket, exchange, call_limit, &|| board.ending());
            }
            Accepted::Nothing => {}
            Accepted::Leave(status) => return status,
        }
    }
    child::DONE
}
