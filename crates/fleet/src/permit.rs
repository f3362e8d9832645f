//! What an agent's owner permits: whom it may load, and how hard. Read from `agent.toml` on the agent's own machine, so
//! that nobody who commands the fleet can aim it elsewhere. Start reading at [`Permit::check`].

use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;
use std::str::FromStr;

use ipnet::IpNet;
use record::{LoadPlan, Pacing, ServerAddress};
use serde::Deserialize;
use units::{Nanos, PerSecond};

/// What is permitted.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Permit {
    /// Addresses that may be loaded.
    pub targets: Vec<Target>,
    /// Highest rate of this agent, in requests a second; `None`: no limit.
    pub rate_max: Option<PerSecond>,
    /// Most connections of this agent; `None`: no limit.
    pub connections_max: Option<u32>,
}

/// Addresses that may be loaded: `10.0.0.0/8:80`, `[fd00::/8]:8000-8099`, `192.0.2.7`, `test.example:443`, or
/// `unix:/run/test.sock`. Without ports: all of them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum Target {
    /// A network.
    Network(IpNet, Ports),
    /// A name; it is resolved each time.
    Name(String, Ports),
    /// A socket of this machine.
    Unix(PathBuf),
}

/// From and to, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ports(u16, u16);

/// A text that is no target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a target: write an address, network or name with its ports, as in 10.0.0.0/8:80, \
     [fd00::/8]:8000-8099, test.example:443 or unix:/run/test.sock"
)]
pub struct TargetError(String);

/// Why a plan is not permitted.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum NotPermitted {
    /// An address.
    #[error(
        "{0} may not be loaded from here: `targets` in this agent's agent.toml does not name it"
    )]
    Target(String),
    /// Where it leads is not known before.
    #[error("redirects may lead anywhere, so an agent does not follow them: leave out --follow")]
    Follow,
    /// It goes on to wherever it is asked for.
    #[error("what a proxy loads cannot be checked here, so an agent uses none: leave out --proxy")]
    Proxy,
    /// Too fast.
    #[error("the agent's share is up to {asked}, and `rate_max` in its agent.toml is {max}")]
    Rate {
        /// In the plan.
        asked: PerSecond,
        /// Permitted.
        max: PerSecond,
    },
    /// It goes as fast as the server answers.
    #[error(
        "a closed loop has no rate of its own, and `rate_max` in this agent's agent.toml is {max}: use --rate"
    )]
    Closed {
        /// Permitted.
        max: PerSecond,
    },
    /// Too many.
    #[error(
        "the agent's share is {asked} connections, and `connections_max` in its agent.toml is {max}"
    )]
    Connections {
        /// In the plan.
        asked: u32,
        /// Permitted.
        max: u32,
    },
}

impl Permit {
    /// Permits loads on this machine only.
    pub fn of_loopback() -> Self {
        let target = |text: &str| text.parse().expect("a target");
        Self { targets: vec![target("127.0.0.0/8"), target("[::1/128]")], ..Self::default() }
    }

    /// Checks a plan, which has the agent's share.
    ///
    /// # Errors
    /// [`NotPermitted`]; nothing was sent.
    pub fn check(&self, plan: &LoadPlan) -> Result<(), NotPermitted> {
        if plan.follow > 0 {
            return Err(NotPermitted::Follow);
        }
        if plan.proxy.is_some() {
            return Err(NotPermitted::Proxy);
        }
        for origin in &plan.origins {
            if !self.targets.iter().any(|target| target.has(&origin.place)) {
                return Err(NotPermitted::Target(origin.place.to_string()));
            }
        }
        let connections = plan.share.part(plan.connections.into()) as u32;
        if let Some(max) = self.connections_max.filter(|max| connections > *max) {
            return Err(NotPermitted::Connections { asked: connections, max });
        }
        let Some(max) = self.rate_max else { return Ok(()) };
        let whole = peak_rate(&plan.pacing).ok_or(NotPermitted::Closed { max })?;
        // Instants are divided as connections are.
        let own = f64::from(connections) / f64::from(plan.connections.max(1));
        let asked = PerSecond(whole.0 * own);
        if asked.0 > max.0 { Err(NotPermitted::Rate { asked, max }) } else { Ok(()) }
    }
}

/// The highest rate that a law asks for; `None` where the server sets it.
fn peak_rate(pacing: &Pacing) -> Option<PerSecond> {
    let highest = |rates: &mut dyn Iterator<Item = f64>| PerSecond(rates.fold(0.0, f64::max));
    match pacing {
        Pacing::Closed | Pacing::Think { .. } => None,
        Pacing::Constant { rate } | Pacing::Poisson { rate } | Pacing::Jitter { rate } => {
            Some(*rate)
        }
        Pacing::Ramp { from, to, .. } => Some(highest(&mut [from.0, to.0].into_iter())),
        Pacing::Stages { stages } => Some(highest(&mut stages.iter().map(|stage| stage.rate.0))),
        Pacing::Replay { instants } => Some(PerSecond(most_within_a_second(instants) as f64)),
    }
}

/// Instants are in rising order.
fn most_within_a_second(instants: &[Nanos]) -> usize {
    let mut first = 0;
    let within = instants.iter().enumerate().map(|(last, at)| {
        while at.saturating_sub(instants[first]) >= Nanos::from_secs(1) {
            first += 1;
        }
        last + 1 - first
    });
    within.max().unwrap_or(0)
}

impl Target {
    fn has(&self, place: &ServerAddress) -> bool {
        match (self, place) {
            (Self::Network(network, ports), ServerAddress::Inet(addr)) => {
                network.contains(&addr.ip().to_canonical()) && ports.has(addr.port())
            }
            (Self::Name(name, ports), ServerAddress::Inet(addr)) => {
                ports.has(addr.port()) && is_of_name(addr, name)
            }
            (Self::Unix(path), ServerAddress::Unix(socket)) => path == socket,
            _ => false,
        }
    }
}

fn is_of_name(addr: &SocketAddr, name: &str) -> bool {
    let known = (name, addr.port()).to_socket_addrs();
    known.is_ok_and(|mut known| known.any(|one| one.ip() == addr.ip()))
}

impl Ports {
    const ALL: Self = Self(0, u16::MAX);

    fn has(self, port: u16) -> bool {
        (self.0..=self.1).contains(&port)
    }

    fn parse(text: &str) -> Option<Self> {
        let (from, to) = text.split_once('-').unwrap_or((text, text));
        let ports = Self(from.parse().ok()?, to.parse().ok()?);
        (ports.0 <= ports.1).then_some(ports)
    }
}

impl TryFrom<String> for Target {
    type Error = TargetError;

    fn try_from(text: String) -> Result<Self, TargetError> {
        text.parse()
    }
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        parse(text).ok_or_else(|| TargetError(text.to_owned()))
    }
}

fn parse(text: &str) -> Option<Target> {
    if let Some(path) = text.strip_prefix("unix:") {
        return path.starts_with('/').then(|| Target::Unix(path.into()));
    }
    if let Some(rest) = text.strip_prefix('[') {
        let (network, ports) = rest.split_once(']')?;
        let ports = match ports {
            "" => Ports::ALL,
            ports => Ports::parse(ports.strip_prefix(':')?)?,
        };
        return Some(Target::Network(network_of(network)?, ports));
    }
    let (host, ports) = match text.split_once(':') {
        Some((host, ports)) => (host, Ports::parse(ports)?),
        None => (text, Ports::ALL),
    };
    if let Some(network) = network_of(host) {
        return Some(Target::Network(network, ports));
    }
    let is_name = !host.is_empty()
        && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte))
        // An address with a mistake is not a name.
        && host.bytes().any(|byte| byte.is_ascii_alphabetic());
    is_name.then(|| Target::Name(host.to_owned(), ports))
}

fn network_of(text: &str) -> Option<IpNet> {
    text.parse().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permit(targets: &[&str]) -> Permit {
        let targets = targets.iter().map(|target| target.parse().unwrap()).collect();
        Permit { targets, ..Permit::default() }
    }

    fn plan(place: &str) -> LoadPlan {
        let mut plan = crate::tests::plan();
        plan.origins[0].place = match place.strip_prefix("unix:") {
            Some(path) => ServerAddress::Unix(path.into()),
            None => ServerAddress::Inet(place.parse().unwrap()),
        };
        plan
    }

    #[test]
    fn only_what_is_named_may_be_loaded() {
        let cases = [
            ("10.0.0.0/8:80", "10.1.2.3:80", true),
            ("10.0.0.0/8:80", "10.1.2.3:81", false),
            ("10.0.0.0/8", "11.0.0.1:80", false),
            ("10.0.0.0/8", "[::ffff:10.0.0.1]:80", true),
            ("192.0.2.7:8000-8099", "192.0.2.7:8099", true),
            ("192.0.2.7:8000-8099", "192.0.2.7:8100", false),
            ("192.0.2.7", "192.0.2.8:80", false),
            ("[fd00::/8]:443", "[fd12::1]:443", true),
            ("[fd00::/8]:443", "[fe80::1]:443", false),
            ("localhost:8080", "127.0.0.1:8080", true),
            ("localhost:8080", "127.0.0.2:8080", false),
            ("unix:/run/a.sock", "unix:/run/a.sock", true),
            ("unix:/run/a.sock", "unix:/run/b.sock", false),
            ("10.0.0.0/8", "unix:/run/b.sock", false),
        ];
        for (target, place, may) in cases {
            let checked = permit(&[target]).check(&plan(place));
            assert_eq!(checked.is_ok(), may, "{target} {place}: {checked:?}");
        }
        let nothing = permit(&[]).check(&plan("127.0.0.1:80"));
        assert_eq!(nothing, Err(NotPermitted::Target("127.0.0.1:80".to_owned())));
    }

    #[test]
    fn a_second_address_and_redirects_are_no_way_around_it() {
        let mut two = plan("127.0.0.1:80");
        let other = record::Origin {
            place: plan("9.9.9.9:80").origins[0].place.clone(),
            ..two.origins[0].clone()
        };
        two.origins.push(other);
        assert!(Permit::of_loopback().check(&two).is_err());
        let follow = LoadPlan { follow: 1, ..plan("127.0.0.1:80") };
        assert_eq!(Permit::of_loopback().check(&follow), Err(NotPermitted::Follow));
    }

    #[test]
    fn the_ceiling_is_that_of_one_agent() {
        let limited = Permit { rate_max: Some(PerSecond(100.0)), ..Permit::of_loopback() };
        let paced = |pacing, of| {
            let mut plan = plan("127.0.0.1:80");
            (plan.pacing, plan.share) = (pacing, record::Share { index: 0, of });
            limited.check(&plan)
        };
        let rate = PerSecond(200.0);
        assert!(paced(Pacing::Constant { rate }, 2).is_ok());
        assert!(
            paced(Pacing::Constant { rate: PerSecond(260.0) }, 3).is_err(),
            "4 of 10 connections"
        );
        assert!(matches!(paced(Pacing::Poisson { rate }, 1), Err(NotPermitted::Rate { .. })));
        let over = Nanos::from_secs(1);
        let ramp = Pacing::Ramp { from: PerSecond(1.0), to: rate, over };
        assert!(matches!(paced(ramp, 1), Err(NotPermitted::Rate { .. })));
        let burst = Pacing::Replay { instants: vec![Nanos::from_secs(3); 101] };
        assert!(matches!(paced(burst, 1), Err(NotPermitted::Rate { .. })));
        assert!(matches!(paced(Pacing::Closed, 1), Err(NotPermitted::Closed { .. })));
        let few = Permit { connections_max: Some(4), ..Permit::of_loopback() };
        let mut many = plan("127.0.0.1:80");
        (many.connections, many.share.of) = (9, 2);
        assert_eq!(few.check(&many), Err(NotPermitted::Connections { asked: 5, max: 4 }));
    }

    #[test]
    fn what_is_no_target_is_refused() {
        for text in [
            "",
            "10.0.0.0/33",
            "10.0.0.0/8:80-79",
            "10.0.0.300",
            "unix:relative",
            "[fd00::/8",
            "a b:80",
        ] {
            assert_eq!(text.parse::<Target>(), Err(TargetError(text.to_owned())), "{text}");
        }
    }
}
