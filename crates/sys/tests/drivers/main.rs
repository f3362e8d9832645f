//! What every [`Driver`] of the kernel guarantees: one suite over all of them. Owns the tests; a driver is a row of
//! [`world::MAKERS`]. Start reading there.

#![allow(clippy::print_stderr, reason = "a skipped driver says why")]

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::time::Duration;

use joust_sys::driver::{Completion, Failure, Leave, Peer, Route, Slot, What};
use joust_sys::{clock, socket};
use units::Nanos;

mod bad_peers;
mod refused;
mod world;

use world::{World, on_every_driver};

/// Most completions that an endless reply may have in one round: twice the number of buffers that a driver fills before
/// the others have their turn.
const ROUND_COMPLETIONS_MAX: usize = 2 * 16 + 2;

#[test]
fn spinning_waits_to_the_end_and_is_no_cpu_time_of_the_driver() {
    on_every_driver(|maker| {
        let mut driver = (maker.make_busy)(1);
        let (before, thread_before) = (driver.cpu(), clock::thread_cpu());
        let until = driver.now() + Nanos::from_millis(50);
        driver.wait(until).unwrap();
        assert!(driver.now() >= until);
        let (counted, used) = (driver.cpu() - before, clock::thread_cpu() - thread_before);
        assert!(counted.0 * 2 < used.0, "{counted} of {used} counted");
    });
}

fn conversation(mut world: World) {
    let mut peer = world.connect(0);
    for n in 0..3u8 {
        world.driver.send(Slot(0), &[n; 100]);
        // The next wait submits what is pending.
        assert!(world.now().is_empty());
        let mut bytes = [0; 100];
        peer.read_exact(&mut bytes).unwrap();
        assert_eq!(bytes, [n; 100]);
        peer.write_all(&[n; 50]).unwrap();
        assert_eq!(world.read(0, 50), [n; 50]);
    }
    assert!(world.now().is_empty());
    drop(peer);
    assert_eq!(world.next(), (0, What::Closed));
}

#[test]
fn a_conversation_is_a_row_of_completions() {
    on_every_driver(|maker| conversation(World::new(maker, 1)));
}

#[test]
fn a_request_carries_the_ack_of_the_handshake() {
    on_every_driver(|maker| {
        let mut world = World::of((maker.make_plain)(1));
        let route = world.route();
        world.driver.connect(Slot(0), &route);
        assert_eq!(world.next(), (0, What::Connected));
        world.driver.send(Slot(0), b"ping");
        assert!(world.now().is_empty());
        let mut peer = world.listener.accept().unwrap().0;
        // Both came in one packet: the data is there when the server has the connection.
        peer.set_nonblocking(true).unwrap();
        let mut bytes = [0; 8];
        assert_eq!(peer.read(&mut bytes).unwrap(), 4);
    });
}

#[test]
fn a_conversation_while_spinning_is_the_same() {
    on_every_driver(|maker| conversation(World::of((maker.make_busy)(1))));
}

#[test]
fn bytes_and_the_close_behind_them_come_one_after_the_other() {
    on_every_driver(|maker| {
        let mut world = World::new(maker, 2);
        let (mut peer, mut other) = (world.connect(0), world.connect(1));
        peer.write_all(b"last words").unwrap();
        drop(peer);
        other.write_all(b"x").unwrap();
        let mut seen = Vec::new();
        while seen.len() < 3 {
            seen.push(world.next());
        }
        let at = seen.iter().position(|(slot, _)| *slot == 0).unwrap();
        assert_eq!(seen[at..at + 2], [(0, What::Received), (0, What::Closed)]);
    });
}

#[test]
fn all_that_is_known_of_a_slot_comes_before_another_slot() {
    on_every_driver(|maker| {
        let mut world = World::new(maker, 8);
        let mut peers: Vec<_> = (0..8).map(|slot| world.connect(slot)).collect();
        for peer in &mut peers {
            peer.write_all(b"one").unwrap();
        }
        for mut peer in peers {
            peer.write_all(b"two").unwrap();
        }
        let mut slots = Vec::new();
        let mut n_closed = 0;
        while n_closed < 8 {
            let (slot, what) = world.next();
            n_closed += usize::from(what == What::Closed);
            slots.push(slot);
        }
        slots.dedup();
        assert_eq!(slots.len(), 8, "{slots:?}");
    });
}

#[test]
fn what_the_kernel_does_not_take_at_once_is_sent_later_and_in_order() {
    const N_BYTES: usize = 20_000_000;
    on_every_driver(|maker| {
        let mut world = World::new(maker, 1);
        let mut peer = world.connect(0);
        let bytes: Vec<u8> = (0..N_BYTES).map(|n| (n / 1000) as u8).collect();
        let (first, second) = bytes.split_at(N_BYTES - 10);
        world.driver.send(Slot(0), first);
        world.driver.send(Slot(0), second);
        let reader = std::thread::spawn(move || {
            let mut got = vec![0; N_BYTES];
            peer.read_exact(&mut got).unwrap();
            peer.write_all(b"k").unwrap();
            got
        });
        assert_eq!(world.read(0, 1), b"k");
        assert!(reader.join().unwrap() == bytes, "the bytes arrived in another order");
    });
}

#[test]
fn many_small_sends_arrive_in_order_though_the_peer_is_slow() {
    const N_SENDS: usize = 4_000;
    on_every_driver(|maker| {
        let mut world = World::new(maker, 1);
        let mut peer = world.connect(0);
        for n in 0..N_SENDS {
            // More than the peer's queue holds, so some sends are taken in part.
            world.driver.send(Slot(0), &[n as u8; 2999]);
        }
        let reader = std::thread::spawn(move || {
            let mut got = vec![0; N_SENDS * 2999];
            peer.read_exact(&mut got).unwrap();
            peer.write_all(b"k").unwrap();
            got
        });
        assert_eq!(world.read(0, 1), b"k");
        let got = reader.join().unwrap();
        assert!(got.chunks(2999).enumerate().all(|(n, sent)| sent == [n as u8; 2999]));
    });
}

#[test]
fn a_send_is_not_held_up_by_what_else_came() {
    const N_SLOTS: u32 = 16;
    on_every_driver(|maker| {
        let mut world = World::new(maker, N_SLOTS);
        let mut peers: Vec<_> = (0..N_SLOTS).map(|slot| world.connect(slot)).collect();
        peers.iter_mut().for_each(|peer| peer.write_all(b"x").unwrap());
        let (first, _) = world.next();
        world.driver.send(Slot(first), b"y");
        // A few more completions, without a wait.
        (0..8).for_each(|_| assert!(world.driver.next().is_some()));
        let peer = &mut peers[first as usize];
        peer.set_nonblocking(true).unwrap();
        assert_eq!(peer.read(&mut [0; 8]).unwrap(), 1);
    });
}

#[test]
fn an_earlier_use_of_a_slot_is_never_heard_of_again() {
    on_every_driver(|maker| {
        let mut world = World::new(maker, 2);
        let (mut first, mut other) = (world.connect(0), world.connect(1));
        first.write_all(b"too late").unwrap();
        other.write_all(b"x").unwrap();
        // Both are in the batch when slot 0 is closed and connected again.
        world.driver.wait(Nanos::MAX).unwrap();
        world.driver.close(Slot(0), Leave::Orderly);
        let route = world.route();
        world.driver.connect(Slot(0), &route);
        let mut seen = vec![world.next(), world.next()];
        seen.sort_by_key(|(slot, _)| *slot);
        assert_eq!(seen, [(0, What::Connected), (1, What::Received)]);
        assert!(world.now().is_empty());
    });
}

#[test]
fn slots_that_are_used_again_and_again_hear_only_of_their_own_connection() {
    const N_SLOTS: u32 = 4;
    on_every_driver(|maker| {
        let mut world = World::new(maker, N_SLOTS);
        let listener = world.listener.try_clone().unwrap();
        // Each connection gets its number as eight bytes, twice, the second after some delay or
        // never, and garbage whenever it likes.
        let server = std::thread::spawn(move || {
            let mut kept = std::collections::VecDeque::new();
            for n in 0..400u64 {
                let (mut peer, _) = listener.accept().unwrap();
                peer.write_all(&n.to_le_bytes()).ok();
                kept.push_back((n, peer));
                if kept.len() > 8 {
                    let (n, mut late) = kept.pop_front().unwrap();
                    late.write_all(&n.to_le_bytes().repeat(1000)).ok();
                }
            }
        });
        let route = world.route();
        let mut heard: Vec<Vec<u8>> = vec![Vec::new(); N_SLOTS as usize];
        for slot in 0..N_SLOTS {
            world.driver.connect(Slot(slot), &route);
        }
        let mut n_opened = u64::from(N_SLOTS);
        let mut n_heard = 0;
        while n_heard < 400 {
            let (slot, what) = world.next();
            let bytes = &mut heard[slot as usize];
            match what {
                What::Connected => assert!(bytes.is_empty(), "connected twice"),
                What::Received => {
                    bytes.extend_from_slice(world.driver.received());
                    let mut numbers = bytes.chunks_exact(8);
                    let first = numbers.next();
                    assert!(numbers.all(|number| Some(number) == first), "two connections mixed");
                    if first.is_some() {
                        n_heard += 1;
                        bytes.clear();
                        let how = [Leave::Orderly, Leave::Abrupt][n_heard % 2];
                        world.driver.close(Slot(slot), how);
                        if n_opened < 400 {
                            n_opened += 1;
                            world.driver.connect(Slot(slot), &route);
                        }
                    }
                }
                other => panic!("slot {slot}: {other:?}"),
            }
        }
        server.join().unwrap();
    });
}

#[test]
fn an_endless_reply_leaves_the_others_their_turn() {
    on_every_driver(|maker| {
        let mut world = World::new(maker, 2);
        let (mut endless, mut other) = (world.connect(0), world.connect(1));
        let writer = std::thread::spawn(move || while endless.write_all(&[0; 1 << 20]).is_ok() {});
        // However much arrives on slot 0, a round ends, and the other slots are reported.
        for _ in 0..50 {
            world.driver.wait(Nanos::MAX).unwrap();
            let n_completions = std::iter::from_fn(|| world.driver.next()).count();
            assert!(n_completions <= ROUND_COMPLETIONS_MAX, "{n_completions}");
        }
        other.write_all(b"x").unwrap();
        while world.next() != (1, What::Received) {}
        world.driver.close(Slot(0), Leave::Abrupt);
        writer.join().unwrap();
    });
}

#[test]
fn an_endless_body_that_is_discarded_leaves_the_others_their_turn_and_the_slot_to_the_next() {
    on_every_driver(|maker| {
        let mut world = World::new(maker, 2);
        for _ in 0..2 {
            let (mut endless, mut other) = (world.connect(0), world.connect(1));
            let writer =
                std::thread::spawn(move || while endless.write_all(&[0; 1 << 20]).is_ok() {});
            for _ in 0..50 {
                world.driver.wait(Nanos::MAX).unwrap();
                let mut n_completions = 0;
                while let Some(Completion { slot, what }) = world.driver.next() {
                    assert_eq!(slot, Slot(0));
                    assert!(matches!(what, What::Received | What::Discarded(_)), "{what:?}");
                    world.driver.discard(slot, 1 << 40);
                    n_completions += 1;
                }
                assert!(n_completions <= ROUND_COMPLETIONS_MAX, "{n_completions}");
            }
            other.write_all(b"x").unwrap();
            let mut n_discarded = 0;
            loop {
                match world.next() {
                    (0, What::Discarded(n_bytes)) => n_discarded += n_bytes,
                    (0, What::Received) => {}
                    (1, What::Received) => break,
                    other => panic!("{other:?}"),
                }
            }
            assert!(n_discarded < 1 << 40);
            // The old poll must not affect the next user of the slot.
            world.driver.close(Slot(0), Leave::Abrupt);
            world.driver.close(Slot(1), Leave::Orderly);
            writer.join().unwrap();
        }
    });
}

#[test]
fn replies_for_which_there_is_no_room_at_once_come_all_the_same() {
    const N_SLOTS: u32 = 40;
    const N_BYTES: usize = 1_000_000;
    on_every_driver(|maker| {
        let mut world = World::new(maker, N_SLOTS);
        let peers: Vec<_> = (0..N_SLOTS).map(|slot| world.connect(slot)).collect();
        let writers: Vec<_> = peers
            .into_iter()
            .enumerate()
            .map(|(n, mut peer)| {
                std::thread::spawn(move || {
                    let bytes: Vec<u8> = (0..N_BYTES).map(|at| (at / 100 + n) as u8).collect();
                    peer.write_all(&bytes).unwrap();
                })
            })
            .collect();
        let mut n_read = [0; N_SLOTS as usize];
        let mut n_closed = 0;
        while n_closed < N_SLOTS {
            let (slot, what) = world.next();
            if what == What::Closed {
                n_closed += 1;
                continue;
            }
            assert_eq!(what, What::Received);
            let at = &mut n_read[slot as usize];
            for byte in world.driver.received() {
                assert_eq!(*byte, (*at / 100 + slot as usize) as u8);
                *at += 1;
            }
        }
        assert_eq!(n_read, [N_BYTES; N_SLOTS as usize]);
        writers.into_iter().for_each(|writer| writer.join().unwrap());
    });
}

#[test]
fn a_refusal_and_a_reset_are_told_apart() {
    on_every_driver(|maker| {
        let mut world = World::new(maker, 2);
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        world.driver.connect(Slot(1), &closed.into());
        assert_eq!(world.next(), (1, What::Failed(Failure::Refused)));
        world.driver.close(Slot(1), Leave::Orderly);

        let peer = world.connect(0);
        socket::reset_on_close(&peer).unwrap();
        drop(peer);
        assert_eq!(world.next(), (0, What::Failed(Failure::Reset)));
        assert!(world.now().is_empty());
        world.driver.close(Slot(0), Leave::Orderly);
        world.connect(0);
    });
}

#[test]
fn a_send_to_a_peer_that_is_gone_fails_by_a_completion() {
    on_every_driver(|maker| {
        let mut world = World::new(maker, 1);
        let peer = world.connect(0);
        peer.shutdown(Shutdown::Both).unwrap();
        drop(peer);
        assert_eq!(world.next(), (0, What::Closed));
        // The peer answers the first send with RST, after which sending fails.
        world.driver.send(Slot(0), b"x");
        let failed = loop {
            world.driver.send(Slot(0), b"x");
            if let Some(failed) = world.now().pop() {
                break failed;
            }
        };
        assert_eq!(failed, (0, What::Failed(Failure::Reset)));
    });
}

#[test]
fn what_a_server_said_before_it_refused_a_long_request_is_heard() {
    on_every_driver(|maker| {
        let mut world = World::new(maker, 1);
        let mut peer = world.connect(0);
        world.driver.send(Slot(0), &vec![0; 20_000_000]);
        peer.write_all(b"413").unwrap();
        // Unread bytes make the close a reset.
        peer.read_exact(&mut [0; 1]).unwrap();
        assert_eq!(world.read(0, 3), b"413");
        drop(peer);
        let (_, what) = world.next();
        assert!(matches!(what, What::Closed | What::Failed(Failure::Reset)), "{what:?}");
    });
}

#[test]
fn the_peer_hears_at_once_that_it_was_left() {
    on_every_driver(|maker| {
        for (how, is_reset) in [(Leave::Orderly, false), (Leave::Abrupt, true)] {
            let mut world = World::new(maker, 1);
            let mut peer = world.connect(0);
            peer.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            world.driver.close(Slot(0), how);
            // Without any further call of the driver.
            let heard = peer.read(&mut [0; 1]).map_err(|error| error.kind());
            let reset = Err(std::io::ErrorKind::ConnectionReset);
            assert_eq!(heard, if is_reset { reset } else { Ok(0) }, "{how:?}");
        }
    });
}

#[test]
fn a_request_that_was_sent_before_the_close_leaves_before_it() {
    on_every_driver(|maker| {
        let mut world = World::new(maker, 1);
        let mut peer = world.connect(0);
        world.driver.send(Slot(0), b"goodbye");
        world.driver.close(Slot(0), Leave::Orderly);
        let mut heard = Vec::new();
        peer.read_to_end(&mut heard).unwrap();
        assert_eq!(heard, b"goodbye");
    });
}

#[test]
fn closing_ends_what_is_under_way_and_frees_the_descriptor() {
    on_every_driver(|maker| {
        let mut world = World::new(maker, 2);
        // This test has its own address: descriptors are counted by their peers, because parallel tests open and close
        // theirs in the same process.
        let silent: std::net::SocketAddr = "192.0.2.77:9".parse().unwrap();
        let ours = world.listener.local_addr().unwrap();
        for _ in 0..50 {
            // One slot that is connecting, or has failed at once; one with a send and a receive in flight.
            world.driver.connect(Slot(1), &silent.into());
            let peer = {
                let route = world.route();
                world.driver.connect(Slot(0), &route);
                while world.next() != (0, What::Connected) {}
                world.listener.accept().unwrap().0
            };
            world.driver.send(Slot(0), &vec![0; 8_000_000]);
            world.driver.close(Slot(0), Leave::Abrupt);
            world.driver.close(Slot(1), Leave::Orderly);
            drop(peer);
            assert!(world.now().is_empty());
        }
        // The ring ends operations in flight a moment later.
        let until = std::time::Instant::now() + Duration::from_secs(10);
        let mut held = sockets_to([silent, ours]);
        while held > 0 && std::time::Instant::now() < until {
            let _ = world.now();
            std::thread::sleep(Duration::from_millis(1));
            held = sockets_to([silent, ours]);
        }
        assert_eq!(held, 0, "sockets are still held");
    });
}

/// Open sockets of this process whose peer is one of these IPv4 addresses. The kernel's table has address and port in
/// hex, the address in memory order; inode 0 has no owner.
fn sockets_to(peers: [std::net::SocketAddr; 2]) -> usize {
    let row = |addr: std::net::SocketAddr| match addr {
        std::net::SocketAddr::V4(addr) => {
            format!("{:08X}:{:04X}", u32::from_ne_bytes(addr.ip().octets()), addr.port())
        }
        std::net::SocketAddr::V6(_) => unreachable!("the tests' addresses are IPv4"),
    };
    let peers = peers.map(row);
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let is_held = |line: &&str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        peers.iter().any(|peer| fields[2] == peer) && fields[9] != "0"
    };
    table.lines().skip(1).filter(is_held).count()
}

#[test]
fn a_descriptor_that_was_closed_and_is_anothers_is_left_alone() {
    on_every_driver(|maker| {
        for _ in 0..20 {
            let mut world = World::new(maker, 1);
            let _peer = world.connect(0);
            // Operations of the new connection are not submitted yet. The next socket of this process gets the
            // descriptor number of the closed one.
            world.driver.close(Slot(0), Leave::Orderly);
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let mut stranger = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (mut other_end, _) = listener.accept().unwrap();
            assert!(world.now().is_empty());
            other_end.write_all(b"private").unwrap();
            assert!(world.now().is_empty());
            let mut bytes = [0; 7];
            stranger.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            stranger.read_exact(&mut bytes).unwrap();
        }
    });
}

#[test]
fn a_driver_can_go_with_everything_under_way() {
    on_every_driver(|maker| {
        let mut world = World::new(maker, 20);
        let mut peers: Vec<_> = (0..10).map(|slot| world.connect(slot)).collect();
        for (slot, peer) in peers.iter_mut().enumerate() {
            peer.write_all(&[0; 10_000]).unwrap();
            world.driver.send(Slot(slot as u32), &vec![0; 8_000_000]);
        }
        let route = world.route();
        (10..20).for_each(|slot| world.driver.connect(Slot(slot), &route));
        drop(world);
    });
}

/// Replies with a head of 100 bytes and a discarded body, one after the other.
fn discarded_replies(mut world: World, n_body_bytes: u64) {
    const HEAD: usize = 100;
    let mut peer = world.connect(0);
    for n in 0..5u8 {
        world.driver.send(Slot(0), b"?");
        assert!(world.now().is_empty());
        peer.read_exact(&mut [0]).unwrap();
        let reply = [vec![n; HEAD], vec![0xff; n_body_bytes as usize]].concat();
        let mut server = peer.try_clone().unwrap();
        let writer = std::thread::spawn(move || server.write_all(&reply).unwrap());
        let mut n_seen = 0;
        let mut asked = false;
        while n_seen < n_body_bytes + HEAD as u64 {
            match world.next() {
                (0, What::Received) => {
                    let bytes = world.driver.received();
                    let head = HEAD.saturating_sub(n_seen as usize).min(bytes.len());
                    assert!(bytes[..head].iter().all(|byte| *byte == n), "head {n}");
                    assert!(bytes[head..].iter().all(|byte| *byte == 0xff), "body {n}");
                    n_seen += bytes.len() as u64;
                }
                (0, What::Discarded(n_bytes)) => {
                    assert!(asked && n_bytes > 0);
                    n_seen += n_bytes;
                }
                other => panic!("{other:?}"),
            }
            if !asked && n_seen >= HEAD as u64 {
                asked = true;
                world.driver.discard(Slot(0), n_body_bytes + HEAD as u64 - n_seen);
            }
        }
        assert_eq!(n_seen, n_body_bytes + HEAD as u64);
        writer.join().unwrap();
    }
    assert!(world.now().is_empty());
    drop(peer);
    assert_eq!(world.next(), (0, What::Closed));
}

#[test]
fn what_is_discarded_is_counted_and_what_comes_after_it_delivered() {
    on_every_driver(|maker| {
        for n_body_bytes in [0, 1, 1000, 100_000, 5_000_000] {
            discarded_replies(World::new(maker, 1), n_body_bytes);
            discarded_replies(World::of((maker.make_stamped)(1)), n_body_bytes);
        }
    });
}

#[test]
fn of_two_replies_that_are_there_the_second_head_is_delivered() {
    on_every_driver(|maker| {
        let mut world = World::new(maker, 1);
        let mut peer = world.connect(0);
        let reply = [&[b'h'; 10][..], &[b'b'; 50_000]].concat();
        // The first reply makes the driver expect bodies; the others come together.
        for n_replies in [1, 2, 7] {
            peer.write_all(&reply.repeat(n_replies)).unwrap();
            let mut n_left = n_replies * reply.len();
            let mut at = 0;
            while n_left > 0 {
                let n_bytes = match world.next() {
                    (0, What::Discarded(n_bytes)) => n_bytes as usize,
                    (0, What::Received) => {
                        for (n, byte) in world.driver.received().iter().enumerate() {
                            let expected = if (at + n) % reply.len() < 10 { b'h' } else { b'b' };
                            assert_eq!(*byte, expected, "byte {}", at + n);
                        }
                        world.driver.received().len()
                    }
                    other => panic!("{other:?}"),
                };
                at = (at + n_bytes) % reply.len();
                n_left -= n_bytes;
                let n_body_left = if at < 10 { 0 } else { reply.len() - at };
                world.driver.discard(Slot(0), n_body_left as u64);
            }
        }
    });
}

#[test]
fn the_close_behind_a_body_that_is_discarded_is_told() {
    on_every_driver(|maker| {
        for closes_early in [false, true] {
            let mut world = World::new(maker, 1);
            let mut peer = world.connect(0);
            peer.write_all(&[0; 10]).unwrap();
            assert_eq!(world.next(), (0, What::Received));
            world.driver.discard(Slot(0), 200_000 + u64::from(closes_early));
            let writer = std::thread::spawn(move || peer.write_all(&[0; 200_000]).unwrap());
            let mut n_seen = 0;
            loop {
                match world.next() {
                    (0, What::Discarded(n_bytes)) => n_seen += n_bytes,
                    (0, What::Received) => n_seen += world.driver.received().len() as u64,
                    (0, What::Closed) => break,
                    other => panic!("{other:?}"),
                }
            }
            assert_eq!(n_seen, 200_000);
            writer.join().unwrap();
        }
    });
}

#[test]
fn a_stamp_is_of_the_arrival_however_late_the_thread_looks() {
    const ASLEEP: Duration = Duration::from_millis(50);
    on_every_driver(|maker| {
        for discards in [false, true] {
            let mut world = World::of((maker.make_stamped)(1));
            let mut peer = world.connect(0);
            // The kernel begins to stamp some moments after the first request.
            let mut stamped = false;
            for _ in 0..20 {
                peer.write_all(&[0; 10]).unwrap();
                assert_eq!(world.next(), (0, What::Received));
                if discards {
                    world.driver.discard(Slot(0), 90_000);
                }
                let mut n_left = 90_000;
                assert!(world.now().is_empty());
                let before = world.driver.now();
                peer.write_all(&[0; 90_000]).unwrap();
                let after = world.driver.now();
                std::thread::sleep(ASLEEP);
                let mut last = None;
                while n_left > 0 {
                    n_left -= match world.next() {
                        (0, What::Received) => world.driver.received().len(),
                        (0, What::Discarded(n_bytes)) => n_bytes as usize,
                        other => panic!("{other:?}"),
                    };
                    last = world.driver.arrived();
                    assert!(last.is_none_or(|stamp| stamp <= world.driver.now()));
                }
                if let Some(stamp) = last {
                    let slack = Nanos::from_millis(5);
                    assert!(stamp + slack >= before, "{stamp}, written from {before}");
                    assert!(stamp <= after + slack, "{stamp}, written until {after}");
                    stamped = true;
                    break;
                }
            }
            if !stamped {
                skips::note("this machine does not stamp what arrives");
            }
        }
    });
}

#[test]
fn a_unix_socket_is_a_route_too() {
    on_every_driver(|maker| {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("server.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let mut world = World::new(maker, 1);
        let route = Route { to: Peer::Unix(path), from: None };
        world.driver.connect(Slot(0), &route);
        assert_eq!(world.next(), (0, What::Connected));
        let (mut peer, _) = listener.accept().unwrap();
        world.driver.send(Slot(0), b"ping");
        assert!(world.now().is_empty());
        let mut bytes = [0; 4];
        peer.read_exact(&mut bytes).unwrap();
        assert_eq!(&bytes, b"ping");
        peer.write_all(b"pong").unwrap();
        assert_eq!(world.read(0, 4), b"pong");
        world.driver.close(Slot(0), Leave::Abrupt);
        assert_eq!(peer.read(&mut bytes).unwrap(), 0);

        world.driver.connect(Slot(0), &Route { to: Peer::Unix("/nowhere".into()), from: None });
        assert_eq!(world.next(), (0, What::Failed(Failure::Other(2))));
    });
}

#[test]
fn a_connection_comes_from_the_address_that_was_asked_for() {
    on_every_driver(|maker| {
        let mut world = World::new(maker, 1);
        let from = Some("127.0.0.7".parse().unwrap());
        let route = Route { from, ..world.route() };
        world.driver.connect(Slot(0), &route);
        assert_eq!(world.next(), (0, What::Connected));
        let (_, address) = world.listener.accept().unwrap();
        assert_eq!(Some(address.ip()), from);
        world.driver.close(Slot(0), Leave::Orderly);

        // From TEST-NET-1: the address is not this machine's, and the error has nothing to do with ports.
        let from = Some("192.0.2.7".parse().unwrap());
        let route = Route { from, ..world.route() };
        world.driver.connect(Slot(0), &route);
        assert_eq!(world.next(), (0, What::Failed(Failure::Other(99))));
    });
}

#[test]
fn ten_thousand_connections_are_open_at_once() {
    const N_SLOTS: u32 = 10_000;
    // A peer is dropped once it has spoken, so that only the client's files count.
    let limit = socket::raise_file_limit().unwrap_or(0);
    if limit < u64::from(N_SLOTS) + 1000 {
        return skips::note(format_args!("{limit} files may be open"));
    }
    on_every_driver(|maker| {
        let mut world = World::new(maker, N_SLOTS);
        let route = world.route();
        let mut seen = Vec::new();
        for slot in 0..N_SLOTS {
            world.driver.connect(Slot(slot), &route);
            seen.append(&mut world.now());
            let mut peer = world.listener.accept().unwrap().0;
            peer.write_all(&slot.to_le_bytes()).unwrap();
        }
        while seen.len() < 3 * N_SLOTS as usize {
            seen.push(world.next());
        }
        seen.sort_by_key(|(slot, _)| *slot);
        for (slot, of_slot) in (0..).zip(seen.chunks(3)) {
            let whats = [What::Connected, What::Received, What::Closed];
            assert_eq!(of_slot, whats.map(|what| (slot, what)));
        }
    });
}

#[test]
fn a_wait_ends_at_its_instant_and_not_before() {
    on_every_driver(|maker| {
        let mut world = World::new(maker, 1);
        let until = world.driver.now() + Nanos::from_micros(1700);
        world.driver.wait(until).unwrap();
        assert!(world.driver.now() >= until);
    });
}

#[test]
fn a_wait_ends_at_its_instant_whatever_was_waited_for_before() {
    on_every_driver(|maker| {
        let mut world = World::new(maker, 1);
        let mut peer = world.connect(0);
        for (left_at_once, waited_out) in [(60_000, 30), (20, 60)] {
            peer.write_all(b"x").unwrap();
            let far = world.driver.now() + Nanos::from_millis(left_at_once);
            while world.driver.next().is_none() {
                world.driver.wait(far).unwrap();
            }
            let from = world.driver.now();
            let until = from + Nanos::from_millis(waited_out);
            while world.driver.now() < until {
                world.driver.wait(until).unwrap();
                assert!(world.driver.next().is_none());
            }
            assert!(world.driver.now() - from < Nanos::from_secs(30), "as long as the one before");
        }
    });
}

#[test]
fn a_connection_to_this_machine_stands_at_once() {
    on_every_driver(|maker| {
        let mut world = World::new(maker, 2);
        let route = world.route();
        let before = world.driver.now();
        world.driver.connect(Slot(0), &route);
        world.driver.connect(Slot(1), &route);
        let after = world.driver.now();
        // No wait in between: the results reported here are known immediately.
        for slot in 0..2 {
            let connected = world.driver.next();
            assert_eq!(connected, Some(Completion { slot: Slot(slot), what: What::Connected }));
            let arrived = world.driver.arrived().expect("the driver saw it itself");
            assert!((before..=after).contains(&arrived), "{before} {arrived} {after}");
        }
        assert!(world.now().is_empty(), "it is told once");
    });
}

#[test]
fn what_lies_behind_enough_is_told_with_what_comes_next() {
    on_every_driver(|maker| {
        for closes in [false, true] {
            let mut world = World::new(maker, 1);
            let mut peer = world.connect(0);
            peer.write_all(b"head").unwrap();
            assert_eq!(world.next(), (0, What::Received));
            world.driver.discard(Slot(0), 1000);
            let _ = world.now();
            peer.write_all(&[&[0; 1000][..], b"behind"].concat()).unwrap();
            let mut peer = (!closes).then_some(peer);
            let mut rest = Vec::new();
            let mut n_discarded = 0;
            loop {
                match world.next() {
                    (0, What::Discarded(n_bytes)) => n_discarded += n_bytes as usize,
                    (0, What::Received) => rest.extend_from_slice(world.driver.received()),
                    (0, What::Closed) => break,
                    other => panic!("{other:?}"),
                }
                world.driver.reply_complete(Slot(0));
                if n_discarded + rest.len() >= 1000
                    && let Some(mut peer) = peer.take()
                {
                    peer.write_all(b", and more").unwrap();
                }
            }
            let n_body = 1000 - n_discarded;
            assert!(rest[..n_body].iter().all(|byte| *byte == 0));
            let expected: &[u8] = if closes { b"behind" } else { b"behind, and more" };
            assert_eq!(&rest[n_body..], expected);
        }
    });
}

/// A listener with a full queue: a connect to it waits for the kernel's second SYN, a second later.
fn full_listener() -> (TcpListener, Vec<TcpStream>) {
    let conns = joust_sys::listener::Inherited { call_max: Nanos::MAX, nodelay: true };
    let listener = joust_sys::listener::bind(([127, 0, 0, 1], 0).into(), 1, conns).unwrap();
    let addr = listener.local_addr().unwrap();
    let short = Duration::from_millis(100);
    let queued = std::iter::from_fn(|| TcpStream::connect_timeout(&addr, short).ok());
    let queued = queued.take(64).collect();
    (listener, queued)
}

#[test]
fn a_connect_that_has_to_wait_is_told_when_it_is_through() {
    on_every_driver(|maker| {
        let mut world = World::new(maker, 1);
        let (listener, queued) = full_listener();
        world.driver.connect(Slot(0), &listener.local_addr().unwrap().into());
        assert!(world.now().is_empty(), "there is no room for it");
        for _ in queued {
            listener.accept().unwrap();
        }
        assert_eq!(world.next(), (0, What::Connected));
        world.driver.send(Slot(0), b"ping");
        assert!(world.now().is_empty());
        let mut bytes = [0; 8];
        assert_eq!(listener.accept().unwrap().0.read(&mut bytes).unwrap(), 4);
    });
}

#[test]
fn a_connect_that_has_to_wait_is_refused_when_the_listener_goes() {
    on_every_driver(|maker| {
        let mut world = World::new(maker, 1);
        let (listener, _queued) = full_listener();
        world.driver.connect(Slot(0), &listener.local_addr().unwrap().into());
        assert!(world.now().is_empty(), "there is no room for it");
        drop(listener);
        assert_eq!(world.next(), (0, What::Failed(Failure::Refused)));
    });
}
