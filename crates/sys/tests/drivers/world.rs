//! The drivers under test, and a world that connects them to peers which a test plays. Start reading at [`World`].

use std::net::{TcpListener, TcpStream};

use joust_sys::driver::{Completion, Driver, Route, Slot, What};
use joust_sys::epoll_driver::EpollDriver;
use joust_sys::uring_driver::{self, UringDriver};
use units::Nanos;

/// A driver under test.
#[derive(Clone, Copy)]
pub(crate) struct Maker {
    pub(crate) name: &'static str,
    /// Makes a driver whose connections the server sees before anything is sent.
    pub(crate) make: fn(u32) -> Box<dyn Driver>,
    pub(crate) make_plain: fn(u32) -> Box<dyn Driver>,
    pub(crate) make_busy: fn(u32) -> Box<dyn Driver>,
    pub(crate) make_stamped: fn(u32) -> Box<dyn Driver>,
    /// Why it cannot be used here, if so.
    pub(crate) refused: fn() -> Option<std::io::Error>,
}

pub(crate) const MAKERS: &[Maker] = &[
    Maker {
        name: "epoll",
        make: |n_slots| Box::new(EpollDriver::new(n_slots).unwrap().ack_with_request(false)),
        make_plain: |n_slots| Box::new(EpollDriver::new(n_slots).unwrap()),
        make_busy: |n_slots| Box::new(EpollDriver::new(n_slots).unwrap().busy_polling(true)),
        make_stamped: |n_slots| {
            let driver = EpollDriver::new(n_slots).unwrap().ack_with_request(false);
            Box::new(driver.with_kernel_stamps(true))
        },
        refused: || None,
    },
    Maker {
        name: "io_uring",
        make: |n_slots| Box::new(UringDriver::new(n_slots).unwrap().ack_with_request(false)),
        make_plain: |n_slots| Box::new(UringDriver::new(n_slots).unwrap()),
        make_busy: |n_slots| Box::new(UringDriver::new(n_slots).unwrap().busy_polling(true)),
        make_stamped: |n_slots| {
            let driver = UringDriver::new(n_slots).unwrap().ack_with_request(false);
            Box::new(driver.with_kernel_stamps(true))
        },
        refused: || uring_driver::is_available(1).err(),
    },
];

pub(crate) fn on_every_driver(fact: impl Fn(Maker)) {
    for maker in MAKERS {
        match (maker.refused)() {
            None => {
                eprintln!("{}", maker.name);
                fact(*maker);
            }
            Some(error) => skips::note(format_args!("{}: {error}", maker.name)),
        }
    }
}

/// A driver and the peers of its slots.
pub(crate) struct World {
    pub(crate) driver: Box<dyn Driver>,
    pub(crate) listener: TcpListener,
}

impl World {
    pub(crate) fn new(maker: Maker, n_slots: u32) -> Self {
        Self::of((maker.make)(n_slots))
    }

    pub(crate) fn of(driver: Box<dyn Driver>) -> Self {
        Self { driver, listener: TcpListener::bind("127.0.0.1:0").unwrap() }
    }

    pub(crate) fn route(&self) -> Route {
        self.listener.local_addr().unwrap().into()
    }

    pub(crate) fn connect(&mut self, slot: u32) -> TcpStream {
        self.driver.connect(Slot(slot), &self.route());
        assert_eq!(self.next(), (slot, What::Connected));
        self.listener.accept().unwrap().0
    }

    /// The next completion, however long it takes.
    pub(crate) fn next(&mut self) -> (u32, What) {
        loop {
            if let Some(Completion { slot, what }) = self.driver.next() {
                return (slot.0, what);
            }
            self.driver.wait(Nanos::MAX).unwrap();
        }
    }

    /// Bytes that arrive on a slot, until `n_bytes` are there.
    pub(crate) fn read(&mut self, slot: u32, n_bytes: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        while bytes.len() < n_bytes {
            assert_eq!(self.next(), (slot, What::Received));
            bytes.extend_from_slice(self.driver.received());
        }
        bytes
    }

    /// All completions that are known now, without waiting.
    pub(crate) fn now(&mut self) -> Vec<(u32, What)> {
        self.driver.wait(Nanos::ZERO).unwrap();
        let known = std::iter::from_fn(|| self.driver.next());
        known.map(|completion| (completion.slot.0, completion.what)).collect()
    }
}
