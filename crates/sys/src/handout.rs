//! Passes an open file from one process to any number of others, which get the access rights of the process that opened
//! it: descriptors in a message on a Unix socket (SCM_RIGHTS, unix(7)). Owns the two sockets. Start reading at
//! [`Handout::put`].
//!
//! The message stays in the queue: a process takes a copy by peeking at it (MSG_PEEK), and the kernel creates new
//! descriptors each time. So nobody has to know how many processes there are, or which of them have asked already, and
//! a process that is forked later finds the message too.
//! asked already, and a process that is forked later finds it as well.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg,
    sendmsg, socketpair,
};

/// A place for one file that other processes can copy.
#[derive(Debug)]
pub struct Handout {
    /// `None`: this process can only take copies.
    giving: Mutex<Option<OwnedFd>>,
    /// At most one message waits here.
    taking: OwnedFd,
}

impl Handout {
    /// An empty one. Processes that are forked later share it.
    ///
    /// # Errors
    /// EMFILE.
    pub fn new() -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (giving, taking) = socketpair(AddressFamily::UNIX, SocketType::DGRAM, flags, None)?;
        Ok(Self { giving: Mutex::new(Some(giving)), taking })
    }

    /// Puts a file there, replacing the one before. For an instant in between there is none.
    ///
    /// # Errors
    /// EPERM in a process that can only take copies; ETOOMANYREFS if more descriptors of this user are in transit than
    /// a process may have.
    pub fn put(&self, file: impl AsFd) -> io::Result<()> {
        let giving = self.giving.lock().unwrap_or_else(PoisonError::into_inner);
        let giving = giving.as_ref().ok_or(Errno::PERM)?;
        // The buffer has no room for the descriptor, so the previous message is dropped with its file.
        while recvmsg(
            &self.taking,
            &mut [IoSliceMut::new(&mut [0])],
            &mut RecvAncillaryBuffer::default(),
            RecvFlags::empty(),
        )
        .is_ok()
        {}
        let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut room);
        let fds = [file.as_fd()];
        assert!(control.push(SendAncillaryMessage::ScmRights(&fds)), "there is room for one");
        sendmsg(giving, &[IoSlice::new(&[0])], &mut control, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// A copy of the descriptor that was put there last; `None`: there is none (yet).
    ///
    /// # Errors
    /// EMFILE.
    pub fn copy(&self) -> io::Result<Option<File>> {
        let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut room);
        let flags = RecvFlags::PEEK | RecvFlags::CMSG_CLOEXEC;
        let came = recvmsg(&self.taking, &mut [IoSliceMut::new(&mut [0])], &mut control, flags);
        let came = match came {
            Err(Errno::AGAIN | Errno::INTR) => return Ok(None),
            came => came?,
        };
        let fds = control.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
            _ => None,
        });
        match fds {
            Some(fd) => Ok(Some(fd.into())),
            // The kernel truncates descriptors that this process has no room for.
            None if came.flags.contains(ReturnFlags::CTRUNC) => Err(Errno::MFILE.into()),
            None => Ok(None),
        }
    }

    /// From now on this process, and those that it forks, can only take copies.
    pub fn only_take(&self) {
        self.giving.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::process::tests::alone;

    #[test]
    fn every_process_has_a_copy_of_what_was_put_there_last() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let handout = Handout::new().unwrap();
        assert!(handout.copy().unwrap().is_none());
        for name in ["first", "second"] {
            handout.put(File::create(at(name)).unwrap()).unwrap();
            for _ in 0..3 {
                alone(|| {
                    handout.only_take();
                    for _ in 0..2 {
                        handout.copy().unwrap().unwrap().write_all(b"x").unwrap();
                    }
                    let flags = rustix::io::fcntl_getfd(handout.copy().unwrap().unwrap()).unwrap();
                    assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
                    assert!(handout.put(File::open("/dev/null").unwrap()).is_err());
                });
            }
        }
        // All copies share one file offset.
        for name in ["first", "second"] {
            assert_eq!(std::fs::read(at(name)).unwrap(), b"xxxxxx", "{name}");
        }
    }
}
