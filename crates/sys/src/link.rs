//! Network interfaces, by rtnetlink(7): a veth pair across two namespaces, addresses, interface up, MTU. Acts on the
//! namespace of the calling thread. Start reading at [`veth`].

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsRawFd as _;

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use rustix::net::{AddressFamily as Family, RecvFlags, SendFlags, SocketFlags, SocketType};

use crate::namespace::NetNamespace;

/// A reply of the kernel repeats the request, and none of ours is longer than this.
const ANSWER_MAX: usize = 4096;

/// One end of a pair.
#[derive(Debug, Clone, Copy)]
pub struct End<'a> {
    /// Its name (at most 15 bytes).
    pub name: &'a str,
    /// Its namespace.
    pub namespace: &'a NetNamespace,
}

/// Creates a pair of Ethernet interfaces: what is sent on one arrives at the other. Both are down and have no address.
/// When the namespace of one goes away, both are removed.
///
/// # Errors
/// EPERM without CAP_NET_ADMIN; EEXIST where a name is taken; EOPNOTSUPP where the kernel has no
/// veth (module `veth`).
pub fn veth(ends: [End<'_>; 2], mtu: u32) -> io::Result<()> {
    let described = |end: End<'_>| {
        let mut message = LinkMessage::default();
        message.attributes = vec![
            LinkAttribute::IfName(end.name.to_owned()),
            LinkAttribute::Mtu(mtu),
            LinkAttribute::NetNsFd(end.namespace.fd_number()),
        ];
        message
    };
    let [mut one, other] = ends.map(described);
    one.attributes.push(LinkAttribute::LinkInfo(vec![
        LinkInfo::Kind(InfoKind::Veth),
        LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(other))),
    ]));
    ask(RouteNetlinkMessage::NewLink(one), NLM_F_CREATE | NLM_F_EXCL)
}

/// Brings an interface up.
///
/// # Errors
/// EPERM without CAP_NET_ADMIN; ENODEV where there is none of that name.
pub fn up(name: &str) -> io::Result<()> {
    let mut message = LinkMessage::default();
    message.header.index = index(name)?;
    message.header.flags = LinkFlags::Up;
    message.header.change_mask = LinkFlags::Up;
    ask(RouteNetlinkMessage::SetLink(message), 0)
}

/// Gives an interface an address, in a network with this prefix length.
///
/// # Errors
/// EPERM without CAP_NET_ADMIN; ENODEV where there is no such interface; EEXIST where it has that
/// address.
pub fn add_address(name: &str, address: Ipv4Addr, bits: u8) -> io::Result<()> {
    let mut message = AddressMessage::default();
    message.header.family = AddressFamily::Inet;
    message.header.prefix_len = bits;
    message.header.index = index(name)?;
    let address = IpAddr::V4(address);
    message.attributes = vec![AddressAttribute::Local(address), AddressAttribute::Address(address)];
    ask(RouteNetlinkMessage::NewAddress(message), NLM_F_CREATE | NLM_F_EXCL)
}

/// Index of an interface in the calling thread's namespace.
fn index(name: &str) -> io::Result<u32> {
    let socket = rustix::net::socket(Family::INET, SocketType::DGRAM, None)?;
    Ok(rustix::net::netdevice::name_to_index(&socket, name)?)
}

/// Sends one request and waits for the kernel's reply, which comes at once.
fn ask(request: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
    let mut message = NetlinkMessage::from(request);
    message.header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    let socket = rustix::net::socket_with(
        Family::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        // NETLINK_ROUTE is the family's protocol 0.
        None,
    )?;
    rustix::net::send(&socket, &bytes, SendFlags::empty())?;
    let mut answer = [0; ANSWER_MAX];
    let (length, _) = rustix::net::recv(&socket, &mut answer, RecvFlags::empty())?;
    let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&answer[..length]);
    match answer.map_err(io::Error::other)?.payload {
        NetlinkPayload::Error(error) if error.code.is_some() => Err(error.to_io()),
        NetlinkPayload::Error(_) => Ok(()),
        other => Err(io::Error::other(format!("rtnetlink answered {other:?}"))),
    }
}

impl NetNamespace {
    fn fd_number(&self) -> i32 {
        use std::os::fd::AsFd as _;
        self.as_fd().as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{SocketAddr, TcpListener, TcpStream};

    use super::*;
    use crate::namespace::tests::namespace;

    const ONE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const OTHER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

    fn pair() -> Option<[NetNamespace; 2]> {
        let namespaces = [namespace()?, namespace()?];
        let [one, other] = &namespaces;
        let ends = [End { name: "one", namespace: one }, End { name: "other", namespace: other }];
        veth(ends, 1500).unwrap();
        for (namespace, name, address) in [(one, "one", ONE), (other, "other", OTHER)] {
            let ready = || add_address(name, address, 30).and_then(|()| up(name));
            namespace.run(ready).unwrap().unwrap();
        }
        Some(namespaces)
    }

    #[test]
    fn two_namespaces_meet_over_a_pair_with_an_ethernet_mtu() {
        let Some([one, other]) = pair() else { return };
        let bound = other.run(|| TcpListener::bind((OTHER, 0)).unwrap()).unwrap();
        let addr = bound.local_addr().unwrap();
        let mut client = one.run(|| TcpStream::connect(addr).unwrap()).unwrap();
        let (mut server, peer) = bound.accept().unwrap();
        assert_eq!(peer.ip(), IpAddr::V4(ONE));
        client.write_all(b"over").unwrap();
        let mut heard = [0; 4];
        server.read_exact(&mut heard).unwrap();
        assert_eq!(&heard, b"over");
        let segment = nix::sys::socket::getsockopt(&client, nix::sys::socket::sockopt::TcpMaxSeg);
        // 1500 minus the headers of IP and TCP, and minus 12 bytes of TCP timestamps.
        assert_eq!(segment.unwrap(), 1448);
        let mtu = other.run(|| std::fs::read_to_string("/proc/thread-self/net/dev")).unwrap();
        assert!(mtu.unwrap().contains("other:"));
    }

    #[test]
    fn nothing_of_a_pair_is_left_when_its_namespaces_are_gone() {
        let Some([one, other]) = pair() else { return };
        drop(other);
        // The kernel removes a namespace in a thread of its own.
        let start = std::time::Instant::now();
        let interfaces = || std::fs::read_to_string("/proc/thread-self/net/dev").unwrap();
        while one.run(interfaces).unwrap().contains("one:") {
            assert!(start.elapsed().as_secs() < 60, "the other end goes too");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }

    #[test]
    fn what_the_kernel_refuses_is_its_own_error() {
        let Some(made) = namespace() else { return };
        let refused = made.run(|| up("none").unwrap_err()).unwrap();
        assert_eq!(refused.raw_os_error(), Some(libc::ENODEV), "{refused}");
        let end = |name| End { name, namespace: &made };
        veth([end("same"), end("second")], 1500).unwrap();
        let refused = veth([end("same"), end("third")], 1500).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::EEXIST), "{refused}");
        let addr: SocketAddr = "192.0.2.1:9".parse().unwrap();
        assert!(made.run(|| TcpStream::connect(addr).is_err()).unwrap(), "there is no way out");
    }
}
