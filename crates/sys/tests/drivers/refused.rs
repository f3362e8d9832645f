//! io_uring as sandboxes forbid it: by a seccomp filter on a thread of the test. Start reading at
//! [`refused_where`].

use std::io;

use joust_sys::uring_driver;

/// The result of `is_available` on a thread whose `call`s fail with `errno`.
fn refused_where(call: libc::c_long, errno: libc::c_int) -> io::Result<()> {
    let thread = std::thread::spawn(move || {
        forbid(call, errno)?;
        uring_driver::is_available(1)
    });
    thread.join().expect("a refusal is an error, not a panic")
}

/// Makes a system call of this thread fail (seccomp(2)).
fn forbid(call: libc::c_long, errno: libc::c_int) -> io::Result<()> {
    let step = |code: u32, jf, k| libc::sock_filter { code: code as u16, jt: 0, jf, k };
    // The number of the call is the first word of the filter's input.
    let mut steps = [
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, call as u32),
        step(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ERRNO | errno as u32),
        step(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let filter = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    // SAFETY: an attribute of this thread, no memory.
    let promised = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    let mode = libc::SECCOMP_MODE_FILTER;
    // SAFETY: the kernel reads the filter during the call; it and its steps outlive that.
    let filtered = unsafe { libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const filter, 0, 0) };
    if promised == 0 && filtered == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[test]
fn a_sandbox_that_forbids_any_call_of_io_uring_is_named() {
    // A call that does not exist.
    if let Err(error) = refused_where(-1, 0) {
        return skips::note(format_args!("{error}"));
    }
    const SETUP: libc::c_long = libc::SYS_io_uring_setup;
    const REGISTER: libc::c_long = libc::SYS_io_uring_register;
    const ENTER: libc::c_long = libc::SYS_io_uring_enter;
    let cases = [
        (SETUP, libc::EPERM, io::ErrorKind::PermissionDenied),
        (SETUP, libc::ENOSYS, io::ErrorKind::Unsupported),
        (REGISTER, libc::EPERM, io::ErrorKind::PermissionDenied),
        (ENTER, libc::EPERM, io::ErrorKind::PermissionDenied),
        (ENTER, libc::ENOSYS, io::ErrorKind::Unsupported),
    ];
    for (call, errno, kind) in cases {
        let error = refused_where(call, errno).expect_err("a call is forbidden");
        assert_eq!(error.kind(), kind, "{call} {errno}: {error}");
        assert!(error.to_string().contains("seccomp"), "{error}");
    }
}
