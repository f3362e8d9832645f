//! Owns the keys with which a server encrypts sessions into tickets for clients, and their rotation. Start reading at
//! [`TicketKeys`].
//!
//! rustls' own ticketer draws each new key at random, so after the first rotation the processes of one server would no
//! longer know each other's tickets. Here the next key is derived from the present one by HKDF (RFC 5869). Processes
//! that were forked from one have the same keys at the same time without communicating. None can recover a key that it
//! has dropped, so yesterday's tickets stay safe even if today's memory leaks.

use std::sync::{Arc, Mutex, PoisonError};

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::hkdf::{HKDF_SHA256, Prk};
use aws_lc_rs::rand;
use rustls::server::ProducesTickets;

/// A key makes tickets for this long, and opens them for the same time again. As in rustls.
const EPOCH_S: u64 = 6 * 3600;

/// Length of the chain's secrets, and of a key.
const SECRET_LEN: usize = 32;

/// Length of a ticket's prefix, which identifies its key without a trial decryption.
const NAME_LEN: usize = 8;

type Secret = [u8; SECRET_LEN];

/// The ticket keys. Cheap to clone; clones share the same keys, so that a new configuration can continue with the
/// tickets of the old one.
#[derive(Debug, Clone)]
pub struct TicketKeys(pub(super) Arc<Tickets>);

impl TicketKeys {
    /// New random keys; `now_s` is the time of day in whole seconds.
    pub fn new(now_s: fn() -> u64) -> Self {
        Self(Arc::new(Tickets::new(now_s)))
    }

    /// Drops expired keys. Making tickets does the same; this is for a process that only keeps the keys for others.
    pub fn keep_up(&self) {
        self.0.with(|_| ());
    }
}

/// Makes and opens tickets.
pub(super) struct Tickets {
    ring: Mutex<Ring>,
    now_s: fn() -> u64,
}

/// The keys of two epochs.
struct Ring {
    /// The epoch of `current`.
    epoch: u64,
    /// The secret from which the next epoch is derived.
    chain: Secret,
    current: Key,
    /// Opens tickets of the previous epoch.
    previous: Option<Key>,
}

struct Key {
    name: [u8; NAME_LEN],
    key: RandomizedNonceKey,
}

impl Tickets {
    /// With a secret of its own; `now_s` is the time of day in whole seconds.
    fn new(now_s: fn() -> u64) -> Self {
        let mut chain = [0; SECRET_LEN];
        rand::fill(&mut chain).expect("the kernel has random bytes");
        let epoch = now_s() / EPOCH_S;
        Self { ring: Mutex::new(Ring::new(chain, epoch)), now_s }
    }

    fn with<T>(&self, use_it: impl FnOnce(&Ring) -> T) -> T {
        // Each step of a rotation leaves usable keys.
        let mut ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        ring.rotate_to((self.now_s)() / EPOCH_S);
        use_it(&ring)
    }
}

impl Ring {
    fn new(chain: Secret, epoch: u64) -> Self {
        Self { epoch, current: Key::of(&chain), chain, previous: None }
    }

    /// A clock that goes back changes nothing. One that jumps ahead costs a few hashes per epoch.
    fn rotate_to(&mut self, epoch: u64) {
        while self.epoch < epoch {
            let next = derived(&self.chain, b"next");
            self.chain.fill(0);
            // Otherwise the compiler would remove zeros that are overwritten later.
            std::hint::black_box(&mut self.chain);
            self.chain = next;
            self.previous = Some(std::mem::replace(&mut self.current, Key::of(&self.chain)));
            self.epoch += 1;
        }
    }
}

impl Key {
    fn of(chain: &Secret) -> Self {
        let key = RandomizedNonceKey::new(&AES_256_GCM, &derived::<SECRET_LEN>(chain, b"key"));
        Self { name: derived(chain, b"name"), key: key.expect("a key of AES-256 has 32 bytes") }
    }
}

/// Bytes that are derived from a secret and do not reveal it.
fn derived<const LEN: usize>(secret: &Secret, purpose: &[u8]) -> [u8; LEN] {
    /// The wanted number of bytes, in the form that the library requires.
    struct Length(usize);
    impl aws_lc_rs::hkdf::KeyType for Length {
        fn len(&self) -> usize {
            self.0
        }
    }
    let mut out = [0; LEN];
    Prk::new_less_safe(HKDF_SHA256, secret)
        .expand(&[b"joust ticket ", purpose], Length(LEN))
        .and_then(|bytes| bytes.fill(&mut out))
        .expect("a few bytes are less than HKDF can give");
    out
}

impl ProducesTickets for Tickets {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        u32::try_from(2 * EPOCH_S).expect("hours in seconds")
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.with(|ring| {
            let Key { name, key } = &ring.current;
            let mut sealed = plain.to_vec();
            let nonce = key.seal_in_place_append_tag(Aad::from(name), &mut sealed).ok()?;
            Some([&name[..], nonce.as_ref(), &sealed].concat())
        })
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        let (name, rest) = ticket.split_at_checked(NAME_LEN)?;
        let (nonce, sealed) = rest.split_at_checked(NONCE_LEN)?;
        self.with(|ring| {
            let mut keys = [Some(&ring.current), ring.previous.as_ref()].into_iter().flatten();
            let Key { key, .. } = keys.find(|key| key.name == name)?;
            let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
            let mut opened = sealed.to_vec();
            let len = key.open_in_place(nonce, Aad::from(name), &mut opened).ok()?.len();
            opened.truncate(len);
            Some(opened)
        })
    }
}

impl std::fmt::Debug for Tickets {
    /// Leaves out the keys.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tickets").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        static NOW_S: Cell<u64> = const { Cell::new(1_700_000_000) };
    }

    fn tickets(chain: Secret) -> Tickets {
        let now_s = || NOW_S.get();
        Tickets { ring: Mutex::new(Ring::new(chain, now_s() / EPOCH_S)), now_s }
    }

    #[test]
    fn two_that_began_alike_open_each_others_tickets_after_any_number_of_rotations() {
        let [one, other] = [(); 2].map(|()| tickets([7; SECRET_LEN]));
        for epochs in [0, 1, 1, 5, 0] {
            NOW_S.set(NOW_S.get() + epochs * EPOCH_S);
            let ticket = one.encrypt(b"a session").unwrap();
            assert_eq!(other.decrypt(&ticket).as_deref(), Some(&b"a session"[..]));
            assert_ne!(one.encrypt(b"a session").unwrap(), ticket, "a nonce is never used twice");
        }
        assert_eq!(tickets([8; SECRET_LEN]).decrypt(&one.encrypt(b"x").unwrap()), None);
    }

    #[test]
    fn a_ticket_is_opened_in_its_epoch_and_the_next_and_no_later() {
        let tickets = tickets([7; SECRET_LEN]);
        let ticket = tickets.encrypt(b"a session").unwrap();
        for opens in [true, true, false] {
            assert_eq!(tickets.decrypt(&ticket).is_some(), opens);
            NOW_S.set(NOW_S.get() + EPOCH_S);
        }
    }

    #[test]
    fn a_ticket_that_was_changed_or_cut_anywhere_is_no_ticket() {
        let tickets = tickets([7; SECRET_LEN]);
        let ticket = tickets.encrypt(b"a session").unwrap();
        for at in 0..ticket.len() {
            let mut changed = ticket.clone();
            changed[at] ^= 1;
            assert_eq!(tickets.decrypt(&changed), None, "byte {at}");
            assert_eq!(tickets.decrypt(&ticket[..at]), None, "cut at {at}");
        }
    }
}
