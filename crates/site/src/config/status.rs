//! The path of the status page, and who may see it. Owns how the two are typed. Start reading at [`StatusConfig`].

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// The status page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StatusConfig {
    /// Its exact path; `None`: there is no status page.
    pub path: Option<String>,
    /// Who may see it.
    pub allow: StatusAllow,
}

/// Who may see the status page; everybody else gets 404.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum StatusAllow {
    /// Clients on the same machine.
    #[default]
    Loopback,
    /// Every client.
    Any,
    /// Clients of these networks.
    Networks(Vec<Network>),
}

/// Addresses with the same first bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    /// How many bits; at most 32 or 128.
    bits: u8,
}

impl StatusAllow {
    /// Whether a client at that address may see it.
    pub fn allows(&self, client: IpAddr) -> bool {
        // On a socket that is bound to `[::]`, an IPv4 client has a mapped IPv6 address.
        let client = client.to_canonical();
        match self {
            Self::Loopback => client.is_loopback(),
            Self::Any => true,
            Self::Networks(networks) => networks.iter().any(|network| network.holds(client)),
        }
    }

    /// From the words of a list: `loopback`, `any`, or networks.
    ///
    /// # Errors
    /// A word that is not one of these.
    pub fn of(words: &[String]) -> Result<Self, String> {
        match words {
            [word] if word == "loopback" => Ok(Self::Loopback),
            [word] if word == "any" => Ok(Self::Any),
            [] => {
                Err("`allow` must not be empty: to have no status page, remove `path`".to_owned())
            }
            networks => networks
                .iter()
                .map(|word| word.parse())
                .collect::<Result<_, _>>()
                .map(Self::Networks),
        }
    }

    /// The words that [`StatusAllow::of`] takes.
    pub fn words(&self) -> Vec<String> {
        match self {
            Self::Loopback => vec!["loopback".to_owned()],
            Self::Any => vec!["any".to_owned()],
            Self::Networks(networks) => networks.iter().map(Network::to_string).collect(),
        }
    }
}

impl Network {
    fn holds(&self, client: IpAddr) -> bool {
        let alike = |ours: u128, theirs: u128, width: u8| {
            (ours ^ theirs).checked_shr(u32::from(width - self.bits)).unwrap_or(0) == 0
        };
        match (self.address, client) {
            (IpAddr::V4(ours), IpAddr::V4(theirs)) => {
                alike(ours.to_bits().into(), theirs.to_bits().into(), 32)
            }
            (IpAddr::V6(ours), IpAddr::V6(theirs)) => alike(ours.to_bits(), theirs.to_bits(), 128),
            _ => false,
        }
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(typed: &str) -> Result<Self, String> {
        let refused = || {
            format!(
                "it must be loopback, any, or an address as in 10.0.0.7 or 10.0.0.0/8, got `{typed}`"
            )
        };
        let (address, bits) = typed.split_once('/').map_or((typed, None), |(a, b)| (a, Some(b)));
        let address: IpAddr = address.parse().map_err(|_| refused())?;
        let width = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(width), |bits| bits.parse().map_err(|_| refused()))?;
        if bits > width { Err(refused()) } else { Ok(Self { address, bits }) }
    }
}

/// As it is typed.
impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

/// A path as `--status` takes it; `off`: none.
///
/// # Errors
/// What is wrong with it.
pub fn path(typed: &str) -> Result<Option<String>, String> {
    match typed {
        "off" => Ok(None),
        path if path.starts_with('/')
            && path.bytes().all(|byte| byte.is_ascii_graphic())
            && !path.contains(['?', '#', '%']) =>
        {
            Ok(Some(path.to_owned()))
        }
        _ => Err(format!(
            "it must be a path as in /server-status, without a query or percent-encoding, got `{typed}`"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_allowed_by_loopback_by_network_or_always() {
        let allow = |words: &[&str]| {
            StatusAllow::of(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
                .unwrap()
        };
        let cases = [
            (allow(&["loopback"]), "127.3.2.1", true),
            (allow(&["loopback"]), "::1", true),
            (allow(&["loopback"]), "::ffff:127.0.0.1", true),
            (allow(&["loopback"]), "10.0.0.1", false),
            (allow(&["any"]), "192.0.2.1", true),
            (allow(&["10.0.0.0/8", "192.0.2.7"]), "10.255.0.1", true),
            (allow(&["10.0.0.0/8", "192.0.2.7"]), "11.0.0.1", false),
            (allow(&["10.0.0.0/8", "192.0.2.7"]), "192.0.2.7", true),
            (allow(&["10.0.0.0/8", "192.0.2.7"]), "192.0.2.6", false),
            (allow(&["0.0.0.0/0"]), "192.0.2.6", true),
            (allow(&["0.0.0.0/0"]), "2001:db8::1", false),
            (allow(&["2001:db8::/32", "::/0"]), "::1", true),
        ];
        for (allow, client, expected) in cases {
            assert_eq!(allow.allows(client.parse().unwrap()), expected, "{allow:?} {client}");
            assert_eq!(StatusAllow::of(&allow.words()), Ok(allow));
        }
        for wrong in ["10.0.0.0/33", "localhost", "", "any/8"] {
            assert!(wrong.parse::<Network>().is_err(), "{wrong}");
        }
    }
}
