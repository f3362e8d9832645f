//! Peers that stop reading, reset, dribble, or stall at the worst place: what a driver owes its caller
//! all the same. Start reading anywhere; each fact stands alone.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use crate::world::{World, on_every_driver};
use joust_sys::driver::{Leave, Slot};

/// Sends so many pieces to a peer that does not read, and closes; the bytes that came through.
fn came_through(world: &mut World, n_pieces: usize) -> usize {
    let mut peer = world.connect(0);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    (0..n_pieces).for_each(|_| world.driver.send(Slot(0), &[b'!'; PIECE]));
    world.driver.close(Slot(0), Leave::Orderly);
    // The next socket of this process gets the number of the one that is closed.
    let mut stranger = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (mut other_end, _) = listener.accept().unwrap();
    assert!(world.now().is_empty());
    stranger.write_all(b"x").unwrap();
    let mut bytes = [0; 1];
    other_end.read_exact(&mut bytes).unwrap();
    assert_eq!(bytes, *b"x", "another connection was written to, after {n_pieces} pieces");
    let mut heard = Vec::new();
    // A reset where the close left something behind.
    peer.read_to_end(&mut heard).ok();
    heard.len()
}

const PIECE: usize = 4000;

#[test]
fn what_is_left_of_a_send_never_goes_to_the_next_file_of_that_number() {
    on_every_driver(|maker| {
        let mut world = World::new(maker, 1);
        // The last piece of the first row that does not come through whole is one that the kernel takes
        // in part just when the connection is closed.
        let (mut whole, mut cut) = (0, 4000);
        while whole + 1 < cut {
            let middle = (whole + cut) / 2;
            let is_whole = came_through(&mut world, middle) == middle * PIECE;
            *(if is_whole { &mut whole } else { &mut cut }) = middle;
        }
        for n_pieces in whole.saturating_sub(2)..=cut + 2 {
            came_through(&mut world, n_pieces);
        }
    });
}
