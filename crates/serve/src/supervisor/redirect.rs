//! The process beside the server that redirects plain requests to TLS (`[tls] redirect_from`): a generation of its own,
//! with a port of its own. Owns when that port is opened and handed on; `hosts::redirect` of crate `site` makes the
//! answers. Start reading at [`Redirect::prepare`].

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use sys::process::Pid;

use super::generation::Generation;
use crate::ServeError;
use crate::bind::Given;
use crate::config::Config;
use crate::service::Service;

/// The process, and its port.
pub(super) struct Redirect {
    pub(super) listener: Arc<TcpListener>,
    pub(super) generation: Generation,
}

/// A service that redirects, and what it was bound with.
pub(super) struct Prepared {
    pub(super) service: Service,
    pub(super) config: Config,
}

impl Redirect {
    /// Opens the port from which plain requests are redirected to the server of `config` at `address`, or takes over
    /// that of `last`, if it is the same. `None`: `config` has no redirect.
    ///
    /// # Errors
    /// As [`Service::bind`].
    pub(super) fn prepare(
        config: &Config,
        address: SocketAddr,
        last: Option<&Self>,
        given: Given,
    ) -> Result<Option<Prepared>, ServeError> {
        let Some(config) = config.redirecting(address.port()) else {
            return Ok(None);
        };
        let same = last.filter(|last| last.generation.config.listen == config.listen);
        let listeners =
            same.map(|last| last.listener.try_clone()).into_iter().collect::<Result<_, _>>();
        let listeners = listeners.map_err(super::system("cannot duplicate a descriptor"))?;
        let within = |error| ServeError::Within {
            table: "[tls] redirect_from".to_owned(),
            error: Box::new(error),
        };
        let service = Service::bind_given(config.clone(), Given { listeners, ..given });
        service.map(|service| Some(Prepared { service, config })).map_err(within)
    }

    pub(super) fn pid(&self) -> Pid {
        self.generation.pid
    }
}
