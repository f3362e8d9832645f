//! What the unit tests of this crate share: a model that does not serve, a configuration, a service.

use std::sync::Arc;

use site::config::Content;
use units::Bytes;

use crate::ServeError;
use crate::config::Config;
use crate::models::{Declared, Model, PreparedModel};
use crate::service::Service;

static IDLE: Model = Model {
    name: "idle",
    about: "serves nobody; for tests of what all models share",
    settings: &[],
    declares: Declared {
        accept_order: "none",
        keep_alive_holder: "none",
        backlog: "none",
        concurrency: "none",
        saturation: "none",
    },
    two_at_once: None,
    prepare: |_| Ok(Arc::new(Idle)),
};

#[derive(Debug)]
struct Idle;

impl PreparedModel for Idle {
    fn run(&self, _: &Service) -> Result<(), ServeError> {
        Ok(())
    }
}

/// 3,361 bytes for every path, on a free port.
pub(crate) fn config() -> Config {
    let mut config = Config::new(&IDLE, Content::Fixed(Bytes(3361)));
    config.listen.set_port(0);
    config
}
