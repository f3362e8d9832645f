//! A file that one process opens and any number of others take copies of, with the rights that the one had
//! who opened it: descriptors in a message of a Unix socket (SCM_RIGHTS, unix(7)). Owns the two sockets.
//! Start reading at [`Handout::put`].
//!
//! The message stays in the queue: who takes a copy peeks at it (MSG_PEEK), for which the kernel makes
//! descriptors anew each time. So nobody has to know how many processes there are, or which of them have
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

/// Where a file is put for others.
#[derive(Debug)]
pub struct Handout {
    /// `None`: this process only takes.
    giving: Mutex<Option<OwnedFd>>,
    /// At most one message waits here.
    taking: OwnedFd,
}

impl Handout {
    /// One with nothing in it. Processes that are forked later share it.
    ///
    /// # Errors
    /// EMFILE.
    pub fn new() -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (giving, taking) = socketpair(AddressFamily::UNIX, SocketType::DGRAM, flags, None)?;
        Ok(Self { giving: Mutex::new(Some(giving)), taking })
    }

    /// Puts a file there, in the place of the one before. Between the two there is none for an instant.
    ///
    /// # Errors
    /// EPERM in a process that only takes; ETOOMANYREFS where more descriptors of this user are under way
    /// than a process may have.
    pub fn put(&self, file: impl AsFd) -> io::Result<()> {
        let giving = self.giving.lock().unwrap_or_else(PoisonError::into_inner);
        let giving = giving.as_ref().ok_or(Errno::PERM)?;
        // Without room for its descriptor, the message before is dropped, and the file with it.
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

    /// A descriptor of the file that was put there last; `None`: there is none, or none yet.
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
            // The kernel leaves out what this process has no room for.
            None if came.flags.contains(ReturnFlags::CTRUNC) => Err(Errno::MFILE.into()),
            None => Ok(None),
        }
    }

    /// From now on this process, and those that it forks, can only take.
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
        // The offset is one that all copies share.
        for name in ["first", "second"] {
            assert_eq!(std::fs::read(at(name)).unwrap(), b"xxxxxx", "{name}");
        }
    }
}
