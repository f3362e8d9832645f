//! Peers that stop reading, reset, send in small pieces, or stall at the worst point: what a driver still guarantees
//! its caller. Start reading anywhere; the tests are independent.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::Duration;

use joust_sys::driver::{Failure, Leave, Slot, What};
use units::Nanos;

use crate::world::{World, on_every_driver};

/// Sends that many pieces to a peer that does not read, and closes; returns the bytes that arrived.
fn came_through(world: &mut World, n_pieces: usize) -> usize {
    let mut peer = world.connect(0);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    (0..n_pieces).for_each(|_| world.driver.send(Slot(0), &[b'!'; PIECE]));
    world.driver.close(Slot(0), Leave::Orderly);
    // The next socket of this process gets the descriptor number of the closed one.
    let mut stranger = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (mut other_end, _) = listener.accept().unwrap();
    assert!(world.now().is_empty());
    stranger.write_all(b"x").unwrap();
    let mut bytes = [0; 1];
    other_end.read_exact(&mut bytes).unwrap();
    assert_eq!(bytes, *b"x", "another connection was written to, after {n_pieces} pieces");
    let mut heard = Vec::new();
    // A reset, if bytes were left at the close.
    peer.read_to_end(&mut heard).ok();
    heard.len()
}

const PIECE: usize = 4000;

/// How many pieces a peer that does not read takes completely; the kernel takes one more in part.
fn whole_pieces(world: &mut World) -> usize {
    let (mut whole, mut cut) = (0, 4000);
    while whole + 1 < cut {
        let middle = (whole + cut) / 2;
        let is_whole = came_through(world, middle) == middle * PIECE;
        *(if is_whole { &mut whole } else { &mut cut }) = middle;
    }
    whole
}

#[test]
fn what_is_left_of_a_send_never_goes_to_the_next_file_of_that_number() {
    on_every_driver(|maker| {
        let mut world = World::new(maker, 1);
        // A piece that the kernel takes in part while the connection is closed.
        let whole = whole_pieces(&mut world);
        for n_pieces in whole.saturating_sub(2)..=whole + 3 {
            came_through(&mut world, n_pieces);
        }
    });
}

#[test]
fn the_end_of_the_stream_is_told_once() {
    on_every_driver(|maker| {
        let mut world = World::new(maker, 1);
        let mut peer = world.connect(0);
        peer.shutdown(Shutdown::Write).unwrap();
        assert_eq!(world.next(), (0, What::Closed));
        world.driver.send(Slot(0), &vec![0; 20_000_000]);
        let reader = std::thread::spawn(move || {
            peer.read_exact(&mut vec![0; 20_000_000]).unwrap();
            peer
        });
        while !reader.is_finished() {
            let until = world.driver.now() + Nanos::from_millis(1);
            world.driver.wait(until).unwrap();
            assert_eq!(world.driver.next(), None);
        }
        reader.join().unwrap();
    });
}

#[test]
fn what_a_server_said_before_its_reset_is_heard_though_a_send_failed_first() {
    on_every_driver(|maker| {
        let mut world = World::new(maker, 1);
        let mut peer = world.connect(0);
        // Submitted, but not read by the peer: its close is a reset.
        world.driver.send(Slot(0), b"first");
        assert!(world.now().is_empty());
        peer.peek(&mut [0; 1]).unwrap();
        peer.write_all(b"bye").unwrap();
        drop(peer);
        world.driver.send(Slot(0), b"second");
        world.driver.send(Slot(0), b"third");
        assert_eq!(world.read(0, 3), b"bye");
        assert_eq!(world.next(), (0, What::Failed(Failure::Reset)));
    });
}

#[test]
fn a_small_reply_behind_a_long_one_wakes_and_so_does_an_early_end() {
    const N_BODY: usize = 700_000;
    on_every_driver(|maker| {
        for n_missing in [0, 1] {
            let mut world = World::new(maker, 1);
            let mut peer = world.connect(0);
            peer.write_all(b"head").unwrap();
            assert_eq!(world.next(), (0, What::Received));
            world.driver.discard(Slot(0), N_BODY as u64);
            let writer = std::thread::spawn(move || {
                for piece in vec![0; N_BODY - n_missing].chunks(33_333) {
                    peer.write_all(piece).unwrap();
                    std::thread::sleep(Duration::from_micros(200));
                }
                peer
            });
            let mut n_seen = 0;
            let mut peer = None;
            let mut writer = Some(writer);
            loop {
                let (_, what) = if n_seen < N_BODY - n_missing && n_missing == 0 {
                    world.next()
                } else {
                    let mut end =
                        writer.take().map_or_else(|| peer.take().unwrap(), |w| w.join().unwrap());
                    if n_missing == 0 {
                        end.write_all(b"s").unwrap();
                        assert_eq!(world.read(0, 1), b"s");
                        break;
                    }
                    end.shutdown(Shutdown::Write).unwrap();
                    peer = Some(end);
                    world.next()
                };
                match what {
                    What::Discarded(n_bytes) => n_seen += n_bytes as usize,
                    What::Received => n_seen += world.driver.received().len(),
                    What::Closed => break,
                    other => panic!("{other:?}"),
                }
            }
            assert_eq!(n_seen, N_BODY - n_missing);
        }
    });
}
