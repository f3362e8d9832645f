//! The process beside the server that sends plain requests on to TLS (`[tls] redirect_from`): a generation of
//! its own, with a port of its own. Owns when that port is opened and handed on; must not know what is
//! answered there (see `site::redirect`). Start reading at [`Redirect::prepare`].

use std::net::TcpListener;

use sys::process::Pid;

use super::generation::Generation;
use crate::ServeError;
use crate::service::{Given, Service};

/// The process, and its port.
pub(super) struct Redirect {
    pub(super) listener: TcpListener,
    pub(super) generation: Generation,
}

impl Redirect {
    /// Opens the port that `service` wants plain requests to be sent on from, or takes over that of `last`,
    /// where it is the same. `None`: it wants none.
    ///
    /// # Errors
    /// As [`Service::bind`].
    pub(super) fn prepare(
        service: &Service,
        last: Option<&Self>,
        given: Given,
    ) -> Result<Option<Service>, ServeError> {
        let Some(config) = service.config.redirecting(service.address().port()) else {
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
        Service::bind_given(config, Given { listeners, ..given }).map(Some).map_err(within)
    }

    pub(super) fn pid(&self) -> Pid {
        self.generation.pid
    }
}
