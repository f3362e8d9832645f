//! Owns what is brought to the same state before each visit, and what is deliberately left to chance and recorded:
//! sockets in TIME_WAIT, the page cache, the length of the server's environment. Start reading at [`prepare`].

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::Duration;

use rand::RngExt as _;
use rand::SeedableRng as _;
use record::Prepared;
use sys::{clock, sock_diag};
use units::{Bytes, Nanos};

use crate::netns::Net;

/// Where the kernel counts sockets of the calling thread's namespace.
const SOCKETS: &str = "/proc/thread-self/net/sockstat";
/// Sockets in TIME_WAIT that do not matter: one in thirty of the ports that Linux uses by default.
const TIME_WAIT_CALM: usize = 1000;
/// Time between two looks at them.
const LOOK: Duration = Duration::from_millis(100);
/// Most files of a site that are read; our own sites have one per cell.
const FILES_MAX: u32 = 10_000;

/// The variable that pads the environment.
const PADDING: &str = "JOUST_PADDING";
/// Longest padding: one page. The environment lies on the stack above everything else, so its length shifts the
/// stack's alignment. That alone can make a program some percent faster or slower (Mytkowicz and others, "Producing
/// wrong data without doing anything obviously wrong!", 2009).
const PADDING_MAX: u32 = 4096;

/// Ports of servers: they need no rights, and lie below the range from which Linux takes ports for connections.
const PORTS: std::ops::Range<u16> = 10_000..32_768;

/// Brings the network and the site to their state before a visit: waits, for at most `patience`, until few sockets of
/// `port` are in TIME_WAIT, and reads every file of the site once into the page cache. The record says what was not
/// reached.
///
/// `port` belongs to a server that is reached at the same one in every visit. A connection in TIME_WAIT blocks its
/// client port only for connections to that server port, until Linux uses it again (over loopback after 1 s,
/// net.ipv4.tcp_tw_reuse). Most servers have another port in each visit: such sockets do not affect them, and there
/// is nothing to wait for.
///
/// # Errors
/// A file of the site cannot be read.
pub fn prepare(
    net: &Net,
    docroot: &Path,
    port: Option<u16>,
    patience: Nanos,
) -> io::Result<Prepared> {
    let begun = clock::monotonic();
    let in_the_way = |port| net.at_client(|| sock_diag::time_wait(port)).ok()?.ok();
    let is_calm = || port.and_then(in_the_way).is_none_or(|left| left <= TIME_WAIT_CALM);
    while !is_calm() && clock::monotonic() - begun < patience {
        std::thread::sleep(LOOK);
    }
    let waited = clock::monotonic() - begun;
    let left = net.at_client(time_wait).ok().flatten();
    let mut warmed = (0, Bytes(0));
    read_through(docroot, &mut warmed)?;
    Ok(Prepared { time_wait: left, waited, warmed, padding: 0, port: 0 })
}

/// Sockets in TIME_WAIT in the calling thread's namespace.
fn time_wait() -> Option<u64> {
    time_wait_of(&fs::read_to_string(SOCKETS).ok()?)
}

/// From a line such as "TCP: inuse 27 orphan 0 tw 8 alloc 30 mem 3".
fn time_wait_of(sockstat: &str) -> Option<u64> {
    let line = sockstat.lines().find_map(|line| line.strip_prefix("TCP:"))?;
    line.split_whitespace().skip_while(|&word| word != "tw").nth(1)?.parse().ok()
}

fn read_through(dir: &Path, read: &mut (u32, Bytes)) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        // Not through a symbolic link, which could form a cycle.
        let kind = entry.file_type()?;
        if kind.is_dir() {
            read_through(&entry.path(), read)?;
        } else if kind.is_file() && read.0 < FILES_MAX {
            let bytes = io::copy(&mut File::open(entry.path())?, &mut io::sink())?;
            *read = (read.0 + 1, Bytes(read.1.0 + bytes));
        }
    }
    Ok(())
}

/// What is left to chance in a visit. It follows from the run's seed and the visit's number alone, so that it can be
/// drawn again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drawn {
    /// Bytes of padding in the environment: 0 to 4095.
    pub padding: u32,
    /// The port that the server listens at, if it is free. It affects how ports hash to the queues of a socket, and
    /// connections to buckets.
    pub port: u16,
}

/// Draws for a visit.
pub fn draw(seed: u64, visit: u64) -> Drawn {
    // A separate stream, because the seed itself draws the order of visits.
    const STREAM: u64 = 0x70ad_d125;
    let seed = seed ^ STREAM ^ visit.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut random = rand_pcg::Pcg64::seed_from_u64(seed);
    Drawn { padding: random.random_range(0..PADDING_MAX), port: random.random_range(PORTS) }
}

/// The variable that pads the environment; its value has that many bytes.
pub fn padding(bytes: u32) -> Vec<(String, String)> {
    match bytes {
        0 => Vec::new(),
        bytes => vec![(PADDING.to_owned(), "x".repeat(bytes as usize))],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_in_time_wait_are_counted() {
        let text =
            "sockets: used 16\nTCP: inuse 1 orphan 0 tw 11839 alloc 1 mem 27\nUDP: inuse 0\n";
        assert_eq!(time_wait_of(text), Some(11_839));
        assert_eq!(time_wait_of("UDP: inuse 0 mem 0\n"), None);
        assert!(time_wait().is_some(), "every Linux counts them");
    }

    #[test]
    fn every_file_of_a_site_is_read_and_a_circle_does_no_harm() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("below")).unwrap();
        fs::write(dir.path().join("a"), [0; 100]).unwrap();
        fs::write(dir.path().join("below/b"), [0; 23]).unwrap();
        std::os::unix::fs::symlink(dir.path(), dir.path().join("below/round")).unwrap();
        let net = Net::loopback("for a test");
        let prepared = prepare(&net, dir.path(), None, Nanos::ZERO).unwrap();
        assert_eq!(prepared.warmed, (2, Bytes(123)));
        assert!(prepared.time_wait.is_some());
        assert!(prepare(&net, &dir.path().join("none"), None, Nanos::ZERO).is_err());
    }

    /// What one client and one server at `port` leave in TIME_WAIT.
    fn leave_in_time_wait(listener: &std::net::TcpListener, count: usize) {
        let addr = listener.local_addr().unwrap();
        for _ in 0..count {
            let client = std::net::TcpStream::connect(addr).unwrap();
            drop(listener.accept().unwrap());
            drop(client);
        }
    }

    #[test]
    fn only_a_port_that_is_used_again_is_waited_for() {
        let (net, dir) = (Net::loopback("for a test"), tempfile::tempdir().unwrap());
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        leave_in_time_wait(&listener, TIME_WAIT_CALM + 100);
        let patience = Nanos::from_millis(300);
        let waited = |port| prepare(&net, dir.path(), port, patience).unwrap().waited;
        let used = listener.local_addr().unwrap().port();
        assert!(waited(Some(used)) >= patience, "the port is used again");
        let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        for port in [None, Some(other.local_addr().unwrap().port())] {
            assert!(waited(port) < patience, "{port:?}: its connections are in nobody's way");
        }
        let left = prepare(&net, dir.path(), None, patience).unwrap().time_wait.unwrap();
        assert!(left > TIME_WAIT_CALM as u64, "what was left is in the record: {left}");
    }

    #[test]
    fn a_fresh_pair_has_nothing_in_time_wait() {
        let (net, dir) = (Net::fresh(), tempfile::tempdir().unwrap());
        if let Some(reason) = &net.facts().reason {
            return skips::note(reason);
        }
        assert_eq!(prepare(&net, dir.path(), None, Nanos::ZERO).unwrap().time_wait, Some(0));
    }

    #[test]
    fn chance_is_drawn_anew_for_each_visit_and_can_be_drawn_again() {
        let drawn = |seed| (0..200).map(|visit| draw(seed, visit)).collect::<Vec<_>>();
        assert_eq!(drawn(7), drawn(7));
        assert_ne!(drawn(7), drawn(8));
        let mean = drawn(7).iter().map(|drawn| drawn.padding).sum::<u32>() / 200;
        // Five standard errors around half a page.
        assert!(mean.abs_diff(PADDING_MAX / 2) < 5 * 84, "{mean}");
        let ports: std::collections::BTreeSet<u16> =
            drawn(7).iter().map(|drawn| drawn.port).collect();
        assert!(ports.len() > 190 && ports.iter().all(|port| PORTS.contains(port)), "{ports:?}");
        assert!(padding(0).is_empty());
        assert_eq!(padding(5), [("JOUST_PADDING".to_owned(), "xxxxx".to_owned())]);
    }
}
