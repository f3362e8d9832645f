//! The server's ring against plain sockets: partial sends, missing buffers, operations that are ended in flight. Start
//! reading at the tests. If io_uring is refused, they report it.

use std::collections::VecDeque;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::Duration;

use joust_sys::clock;
use joust_sys::uring_server::{self, Cut, Event, Id, Kind, Op, ServerRing, Size, Wait, What};
use rustix::event::PollFlags;
use units::Nanos;

/// Longer than anything takes on a loaded machine; only a failing test waits that long.
const LONG: Nanos = Nanos::from_secs(60);

/// A ring; `None`, with a note of the reason, if none is available.
fn ring(buffers: u16) -> Option<ServerRing> {
    match ServerRing::new(Size { operations: 64, buffers }) {
        Ok(ring) => Some(ring),
        Err(error) => {
            skips::note(format_args!("no ring for the server: {error}"));
            None
        }
    }
}

fn pair() -> (TcpStream, OwnedFd) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    client.set_read_timeout(Some(Duration::from(LONG))).unwrap();
    let (server, _) = listener.accept().unwrap();
    server.set_nonblocking(true).unwrap();
    (client, server.into())
}

/// Enters until `is_enough` accepts the events so far; each event comes with its bytes.
fn events(
    ring: &mut ServerRing,
    ops: Vec<(Id, Op<'_>)>,
    is_enough: impl Fn(&[(Event, Vec<u8>)]) -> bool,
) -> Vec<(Event, Vec<u8>)> {
    let until = clock::monotonic() + LONG;
    let mut ops = VecDeque::from(ops);
    let mut all = Vec::new();
    while !is_enough(&all) {
        assert!(clock::monotonic() < until, "it never came: {all:?}");
        ring.enter(ops.drain(..), Wait::Until(until)).unwrap();
        while let Some(event) = ring.next_event() {
            all.push((event, ring.received().to_vec()));
        }
    }
    all
}

#[test]
fn a_wait_ends_in_time_again_and_again_and_earlier_where_that_is_asked_for() {
    let Some(mut ring) = ring(1) else { return };
    let mut asked = clock::monotonic() + LONG;
    ring.enter([], Wait::No).unwrap();
    for ms in [30, 1, 5] {
        let until = clock::monotonic() + Nanos::from_millis(ms);
        while clock::monotonic() < until {
            ring.enter([], Wait::Until(until)).unwrap();
        }
        // An alarm that is armed for later is moved, and does not delay the next one.
        asked = asked.min(until);
    }
    assert!(clock::monotonic() < asked + LONG);
}

#[test]
fn a_send_that_does_not_fit_says_how_much_did_and_the_rest_follows_when_there_is_room() {
    let Some(mut ring) = ring(1) else { return };
    let (mut client, server) = pair();
    let sent: Vec<u8> = (0..20u32 << 20).map(|n| (n / 7) as u8).collect();
    let reader = std::thread::spawn(move || {
        let mut got = Vec::new();
        client.read_to_end(&mut got).unwrap();
        got
    });
    let mut n_sent = 0;
    let mut n_cut = 0;
    while n_sent < sent.len() {
        // In two parts, the first of which may be empty.
        let (head, body) = sent[n_sent..].split_at((sent.len() - n_sent) / 3);
        let op = Op::Send { socket: server.as_fd(), head, body };
        ring.enter([(7, op)], Wait::No).unwrap();
        match ring.cut() {
            [] => n_sent = sent.len(),
            &[Cut { id: 7, sent: Some(taken) }] => {
                n_cut += 1;
                n_sent += taken;
                let poll = Op::Poll(server.as_fd(), PollFlags::OUT);
                let ready = events(&mut ring, vec![(7, poll)], |all| !all.is_empty());
                assert!(matches!(&ready[0].0.what, What::Ready(Ok(_))) && ready[0].0.ended);
            }
            other => panic!("{other:?}"),
        }
    }
    drop(server);
    assert!(n_cut > 0, "20 MiB fit into no send buffer");
    assert!(reader.join().unwrap() == sent);
}

#[test]
fn a_send_to_a_connection_that_is_lost_says_so_and_does_not_hold_up_the_next() {
    let Some(mut ring) = ring(1) else { return };
    let (gone, broken) = pair();
    let (mut client, server) = pair();
    rustix::net::shutdown(&broken, rustix::net::Shutdown::Write).unwrap();
    let send = |socket| Op::Send { socket, head: b"answer", body: b"" };
    ring.enter([(1, send(broken.as_fd())), (2, send(server.as_fd()))], Wait::No).unwrap();
    assert_eq!(ring.cut(), [Cut { id: 1, sent: None }]);
    let mut got = [0; 6];
    client.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"answer");
    drop(gone);
}

#[test]
fn more_bytes_than_buffers_starve_a_receive_which_goes_on_when_it_is_armed_again() {
    let Some(mut ring) = ring(1) else { return };
    let (mut client, server) = pair();
    let sent: Vec<u8> = (0..64u32 << 10).map(|n| (n / 3) as u8).collect();
    client.write_all(&sent).unwrap();
    let (mut got, mut n_starved) = (Vec::new(), 0);
    while got.len() < sent.len() {
        let receive = Op::Receive(server.as_fd());
        let left = sent.len() - got.len();
        let is_enough = |all: &[(Event, Vec<u8>)]| {
            let came: usize = all.iter().map(|(_, bytes)| bytes.len()).sum();
            came == left || all.iter().any(|(event, _)| event.ended)
        };
        for (event, bytes) in events(&mut ring, vec![(3, receive)], is_enough) {
            got.extend(bytes);
            if let What::Received(Err(error)) = event.what {
                assert!(uring_server::is_starved(&error), "{error}");
                n_starved += 1;
            }
        }
    }
    assert!(got == sent && n_starved > 0);
}

#[test]
fn what_is_cancelled_ends_and_its_name_may_be_used_again() {
    let Some(mut ring) = ring(2) else { return };
    let (mut client, server) = pair();
    let ended = |all: &[(Event, Vec<u8>)]| all.iter().filter(|(event, _)| event.ended).count();
    for _ in 0..3 {
        // Armed and ended in one call, and ended by the next.
        let ops = vec![
            (5, Op::Receive(server.as_fd())),
            (5, Op::Poll(server.as_fd(), PollFlags::IN)),
            (5, Op::Cancel(Kind::Receive)),
        ];
        let first = events(&mut ring, ops, |all| ended(all) == 1);
        let (Event { what: What::Received(Err(error)), .. }, _) = &first[0] else {
            panic!("{first:?}")
        };
        assert!(uring_server::is_cancelled(error), "{error}");
        let second = events(&mut ring, vec![(5, Op::Cancel(Kind::Poll))], |all| ended(all) == 1);
        assert!(matches!(&second[0].0.what, What::Ready(Err(_))), "{second:?}");
    }
    client.write_all(b"still here").unwrap();
    let got = events(&mut ring, vec![(5, Op::Receive(server.as_fd()))], |all| !all.is_empty());
    assert_eq!(got[0].1, b"still here");
    // With the receive in flight: the ring ends it before its buffers are freed.
    drop(ring);
    drop(server);
    assert_eq!(client.read(&mut [0; 8]).unwrap(), 0);
}

#[test]
fn accepted_connections_that_nobody_takes_are_closed_with_the_ring() {
    let Some(mut ring) = ring(1) else { return };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut taken = TcpStream::connect(address).unwrap();
    let accept = Op::Accept { listener: listener.as_fd(), many: true };
    let mut first = events(&mut ring, vec![(9, accept)], |all| !all.is_empty());
    let What::Accepted(Ok(socket)) = first.remove(0).0.what else { panic!("{first:?}") };
    let mut left = TcpStream::connect(address).unwrap();
    left.set_read_timeout(Some(Duration::from(LONG))).unwrap();
    ring.enter([], Wait::Until(clock::monotonic() + LONG)).unwrap();
    drop(ring);
    drop(listener);
    // A reset is an end too: the connection may still have been in the backlog.
    assert!(!matches!(left.read(&mut [0; 8]), Ok(1..)));
    rustix::io::write(&socket, b"x").unwrap();
    taken.read_exact(&mut [0; 1]).unwrap();
}
