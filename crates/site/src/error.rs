//! Why something that a configuration names cannot be served.

use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

/// Why a site cannot be opened. Each text says what failed, on what, and the way out.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the text of each variant says what its fields are")]
pub enum SiteError {
    #[error("directory {path} does not exist: check the path, or serve --fixed BYTES", path = path.display())]
    NoDirectory { path: PathBuf },
    #[error("{path} is not a directory: joust serves the files of a directory", path = path.display())]
    NotADirectory { path: PathBuf },
    #[error("may not read the directory {path}: check its permissions with `namei -l {path}`", path = path.display())]
    DirectoryForbidden { path: PathBuf },
    #[error(
        "the kernel refuses openat2, which keeps requests inside the directory: Linux 5.6 or newer \
         is needed (`uname -r`), or a sandbox that allows it; --fixed BYTES does without"
    )]
    NoOpenBeneath,
    #[error("cannot open the directory {path}: {source}", path = path.display())]
    Directory { path: PathBuf, source: io::Error },
    #[error("a pattern of the configuration cannot be used: {reason}")]
    Pattern { reason: String },
    #[error(
        "cannot use the password file {path}: {reason}; `htpasswd -B -c FILE NAME` makes one",
        path = path.display()
    )]
    Passwords { path: PathBuf, reason: String },
    #[error(
        "cannot use {path} as an error page: {reason}; it is read at the start and at each reload", path = path.display()
    )]
    ErrorPage { path: PathBuf, reason: String },
    #[error(
        "cannot write the access log {path}: {source}; its directory must exist. Name another file \
         (--access-log, or `file` in the access_log of the server or the host), or `off`",
        path = path.display()
    )]
    AccessLog { path: PathBuf, source: io::Error },
    #[error(
        "cannot write the error log {path}: {source}; its directory must exist. Name another with \
         --error-log FILE, or `stderr`, or `off`", path = path.display()
    )]
    ErrorLog { path: PathBuf, source: io::Error },
    #[error("{table}: {error}")]
    Within { table: String, error: Box<Self> },
    #[error("[[gateway]]: {reason}")]
    Gateway { reason: String },
    #[error("{0}")]
    Tls(String),
    #[error("{doing}: {source}")]
    System { doing: &'static str, source: io::Error },
}

impl SiteError {
    /// Why that directory could not be opened.
    pub(crate) fn of_directory(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match Errno::from_io_error(&source) {
            Some(Errno::NOENT) => Self::NoDirectory { path },
            Some(Errno::NOTDIR) => Self::NotADirectory { path },
            Some(Errno::ACCESS) => Self::DirectoryForbidden { path },
            Some(Errno::NOSYS | Errno::PERM) => Self::NoOpenBeneath,
            _ => Self::Directory { path, source },
        }
    }
}
