//! What the two users of io_uring share: the generator's driver and the server's ring. Owns a ring and its buffers.
//! Start reading at [`ring::Ring`].

pub(crate) mod buffers;
pub(crate) mod ring;
