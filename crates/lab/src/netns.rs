//! Owns the network between one server and its load: one namespace each, joined by a veth pair with Ethernet's MTU,
//! if permitted; otherwise the machine's loopback. The record says which.
//!
//! The load has a namespace of its own too, although one for the server would do. So nothing on the machine changes
//! (no interface, route, address or setting), and each side has its own counters. Ports in TIME_WAIT disappear with
//! the namespace, so every visit begins without any.
//!
//! An unnamed namespace ends with the last process and descriptor that hold it, so a killed joust leaves none.
//! Start reading at [`Net::fresh`].

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::os::unix::fs::MetadataExt as _;
use std::sync::Arc;

use record::{Network, NetworkKind};
use sys::link::{self, End};
use sys::namespace::NetNamespace;

/// Ethernet's MTU.
const MTU: u32 = 1500;
/// From the range that RFC 2544 reserves for network benchmarks. The namespaces are isolated, so any
/// other range would do.
const CLIENT: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);
const NETWORK_BITS: u8 = 30;
const CLIENT_INTERFACE: &str = "client";
const SERVER_INTERFACE: &str = "server";

/// Settings of the client's side. Over loopback the kernel reuses ports in TIME_WAIT by
/// default (`tcp_tw_reuse` 2); over a veth pair it needs the setting, and more ports to choose from.
const CLIENT_SETTINGS: [(&str, &str); 2] =
    [("net.ipv4.tcp_tw_reuse", "1"), ("net.ipv4.ip_local_port_range", "1024\t65535")];
/// Settings, as path and name prefix, that are copied from the machine to a new namespace, which would have the
/// kernel's defaults. So a server runs under the same settings as outside.
const TAKEN_OVER: [(&str, &str); 2] = [("net/ipv4", "tcp_"), ("net/core", "somaxconn")];
const SETTINGS: &str = "/proc/sys";

/// The network of one visit; clones share it. It disappears with the last clone and the last of the
/// server's processes.
#[derive(Debug, Clone)]
pub struct Net {
    facts: Network,
    spaces: Option<Arc<Spaces>>,
    /// Where servers listen.
    address: Ipv4Addr,
}

#[derive(Debug)]
struct Spaces {
    client: NetNamespace,
    server: NetNamespace,
}

impl Net {
    /// A new pair of namespaces, or loopback with the reason.
    pub fn fresh() -> Self {
        match Spaces::new() {
            Ok((spaces, client_settings)) => {
                let facts =
                    Network { kind: NetworkKind::Veth, mtu: MTU, reason: None, client_settings };
                Self { facts, spaces: Some(Arc::new(spaces)), address: SERVER }
            }
            Err(error) => Self::loopback(&reason(&error)),
        }
    }

    /// The machine's loopback interface, for this reason.
    pub fn loopback(reason: &str) -> Self {
        let mtu = fs::read_to_string("/sys/class/net/lo/mtu");
        let facts = Network {
            kind: NetworkKind::Loopback,
            // The MTU of loopback on every Linux since 3.6.
            mtu: mtu.ok().and_then(|mtu| mtu.trim().parse().ok()).unwrap_or(65_536),
            reason: Some(reason.to_owned()),
            client_settings: BTreeMap::new(),
        };
        Self { facts, spaces: None, address: Ipv4Addr::LOCALHOST }
    }

    /// This machine's own network, reached by others at that address.
    pub fn of_machines(address: Ipv4Addr) -> Self {
        let reason = Some("the load comes from other machines".to_owned());
        // Each pair of machines has its own MTU, which this one does not know.
        let facts = Network { kind: NetworkKind::Machines, reason, ..Network::default() };
        Self { facts, spaces: None, address }
    }

    /// What it is.
    pub fn facts(&self) -> &Network {
        &self.facts
    }

    /// The address that the server listens at.
    pub fn server_address(&self) -> Ipv4Addr {
        self.address
    }

    /// The namespace for the server's processes; `None`: the caller's.
    pub fn server(&self) -> Option<&NetNamespace> {
        self.spaces.as_ref().map(|spaces| &spaces.server)
    }

    /// The namespace for the load's processes; `None`: the caller's.
    pub fn client(&self) -> Option<&NetNamespace> {
        self.spaces.as_ref().map(|spaces| &spaces.client)
    }

    /// Runs `work` in the load's namespace: its sockets, and those of threads and processes that it starts, reach the
    /// server.
    ///
    /// # Errors
    /// No thread left.
    pub fn at_client<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        run_in(self.client(), work)
    }

    /// Runs `work` in the server's namespace.
    ///
    /// # Errors
    /// No thread left.
    pub fn at_server<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        run_in(self.server(), work)
    }
}

fn run_in<T: Send>(
    namespace: Option<&NetNamespace>,
    work: impl FnOnce() -> T + Send,
) -> io::Result<T> {
    match namespace {
        Some(namespace) => namespace.run(work),
        None => Ok(work()),
    }
}

impl Spaces {
    fn new() -> io::Result<(Self, BTreeMap<String, String>)> {
        let ours = taken_over();
        let spaces = Self { client: NetNamespace::new()?, server: NetNamespace::new()? };
        for namespace in [&spaces.client, &spaces.server] {
            namespace.run(|| {
                settle(&ours);
                link::up("lo")
            })??;
        }
        let ends = [
            End { name: CLIENT_INTERFACE, namespace: &spaces.client },
            End { name: SERVER_INTERFACE, namespace: &spaces.server },
        ];
        link::veth(ends, MTU)?;
        let rise = |name, address| {
            link::add_address(name, address, NETWORK_BITS)?;
            link::up(name)
        };
        spaces.server.run(|| rise(SERVER_INTERFACE, SERVER))??;
        let client_settings = spaces.client.run(|| {
            rise(CLIENT_INTERFACE, CLIENT)?;
            for (name, value) in CLIENT_SETTINGS {
                fs::write(path_of(name), value)?;
            }
            Ok::<_, io::Error>(CLIENT_SETTINGS.map(|(name, value)| (name.into(), value.into())))
        })??;
        Ok((spaces, client_settings.into()))
    }
}

fn path_of(name: &str) -> String {
    format!("{SETTINGS}/{}", name.replace('.', "/"))
}

/// Path and value of this machine's TCP settings.
fn taken_over() -> Vec<(String, String)> {
    let mut settings = Vec::new();
    for (dir, prefix) in TAKEN_OVER {
        let dir = format!("{SETTINGS}/{dir}");
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            let is_wanted = entry.file_name().to_str().is_some_and(|name| name.starts_with(prefix));
            // A read-only file is information, not a setting.
            let is_set = entry.metadata().is_ok_and(|file| file.mode() & 0o200 != 0);
            if let (true, Ok(value)) = (is_wanted && is_set, fs::read_to_string(entry.path())) {
                settings.push((entry.path().to_string_lossy().into_owned(), value));
            }
        }
    }
    settings
}

/// Gives the calling thread's namespace the machine's settings and switches IPv6 off: its neighbour discovery would
/// run just as the load begins.
fn settle(ours: &[(String, String)]) {
    for (path, value) in ours {
        if fs::read_to_string(path).is_ok_and(|here| here != *value) {
            // A setting that exists only for the whole machine has the machine's value anyway.
            let _ = fs::write(path, value);
        }
    }
    // A kernel without IPv6 has no such file.
    let _ = fs::write(path_of("net.ipv6.conf.default.disable_ipv6"), "1");
}

/// Why there is no pair, and the way out.
fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "network namespaces need root (CAP_SYS_ADMIN and CAP_NET_ADMIN)".to_owned()
        }
        io::ErrorKind::Unsupported => {
            format!("no pair of network interfaces can be made ({error}); try: modprobe veth")
        }
        _ => format!("no network namespace can be made: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    /// A pair of namespaces; `None`, with a counted message, if this account may not make one.
    fn pair() -> Option<Net> {
        let net = Net::fresh();
        if let Some(reason) = &net.facts.reason {
            skips::note(reason);
            return None;
        }
        Some(net)
    }

    fn answered(net: &Net) -> Vec<u8> {
        let listener = net.at_server(|| TcpListener::bind((net.server_address(), 0)).unwrap());
        let listener = listener.unwrap();
        let addr = listener.local_addr().unwrap();
        let mut client = net.at_client(|| TcpStream::connect(addr).unwrap()).unwrap();
        client.write_all(b"question").unwrap();
        client.shutdown(std::net::Shutdown::Write).unwrap();
        let mut heard = Vec::new();
        listener.accept().unwrap().0.read_to_end(&mut heard).unwrap();
        heard
    }

    #[test]
    fn client_and_server_meet_over_either_network() {
        let loopback = Net::loopback("for a test");
        assert_eq!(answered(&loopback), b"question");
        assert_eq!(loopback.facts().reason.as_deref(), Some("for a test"));
        assert!(loopback.facts().mtu >= 1280, "what IPv6 asks for: {loopback:?}");
        let Some(net) = pair() else { return };
        assert_eq!((net.facts().kind, net.facts().mtu), (NetworkKind::Veth, 1500));
        assert_eq!(answered(&net), b"question");
    }

    #[test]
    fn two_pairs_at_once_are_strangers_and_the_machine_sees_neither() {
        let (Some(one), Some(two)) = (pair(), pair()) else { return };
        let bind = |net: &Net| net.at_server(|| TcpListener::bind((SERVER, 4711)).unwrap());
        let (_one, _two) = (bind(&one).unwrap(), bind(&two).unwrap());
        assert!(TcpListener::bind((SERVER, 4711)).is_err(), "the address is not the machine's");
        let interfaces = fs::read_to_string("/proc/thread-self/net/dev").unwrap();
        assert!(!interfaces.contains(SERVER_INTERFACE) && !interfaces.contains(CLIENT_INTERFACE));
    }

    #[test]
    fn the_machines_settings_hold_inside_and_the_clients_are_told() {
        let Some(net) = pair() else { return };
        for (path, value) in taken_over() {
            let inside = net.at_server(|| fs::read_to_string(&path)).unwrap();
            // A setting of the whole machine does not exist inside.
            assert!(
                inside.as_ref().is_ok_and(|inside| *inside == value) || inside.is_err(),
                "{path}"
            );
        }
        let reuse = "/proc/sys/net/ipv4/tcp_tw_reuse";
        let inside = net.at_client(|| fs::read_to_string(reuse).unwrap()).unwrap();
        assert_eq!(inside.trim(), "1");
        let [(name, told), _] = CLIENT_SETTINGS;
        assert_eq!(net.facts().client_settings[name], told);
    }

    #[test]
    fn why_there_is_no_pair_is_said_with_the_way_out() {
        let said = |code: i32| reason(&io::Error::from_raw_os_error(code));
        assert!(said(1).contains("need root"), "{}", said(1));
        assert!(said(95).contains("modprobe veth"), "{}", said(95));
        assert!(said(28).contains("No space"), "{}", said(28));
    }
}
