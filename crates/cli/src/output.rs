//! Where output leaves the program: stdout, or a file that appears complete or not at all.

use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use miette::{Report, miette};

use crate::trouble::Trouble;

/// The destination of a report; "-" is stdout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    Stdout,
    File(PathBuf),
}

impl std::str::FromStr for Destination {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(if text == "-" { Self::Stdout } else { Self::File(PathBuf::from(text)) })
    }
}

/// Writes all of `bytes` to the destination, or nothing.
pub fn write(place: &Destination, bytes: &[u8]) -> Result<(), Trouble> {
    match place {
        Destination::Stdout => stdout(bytes),
        Destination::File(path) => file(path, bytes),
    }
}

/// Checks, before the work begins, that its result can be written.
pub fn can_write(place: &Destination) -> Result<(), Trouble> {
    let Destination::File(path) = place else { return Ok(()) };
    let fault = if path.is_dir() {
        Err(io::ErrorKind::IsADirectory.into())
    } else if is_device(path) {
        // Opening a pipe would wait for its reader.
        Ok(())
    } else {
        tempfile::Builder::new().tempfile_in(folder_of(&behind_links(path))).map(drop)
    };
    fault.map_err(|error| Trouble::usage(cannot_write(path, &error)))
}

/// Writes `bytes` to stdout. A reader that has gone (`| head`) is not an error.
pub fn stdout(bytes: &[u8]) -> Result<(), Trouble> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Trouble::failed(miette!("cannot write to stdout: {error}")))
        }
        _ => Ok(()),
    }
}

fn file(path: &Path, bytes: &[u8]) -> Result<(), Trouble> {
    let put = || -> io::Result<()> {
        if is_device(path) {
            return std::fs::OpenOptions::new().write(true).open(path)?.write_all(bytes);
        }
        let path = &behind_links(path);
        // The default mode of new files; the umask applies.
        let readable = std::fs::Permissions::from_mode(0o666);
        let mut beside =
            tempfile::Builder::new().permissions(readable).tempfile_in(folder_of(path))?;
        beside.write_all(bytes)?;
        beside.as_file().sync_all()?;
        beside.persist(path)?;
        Ok(())
    };
    put().map_err(|error| Trouble::failed(cannot_write(path, &error)))
}

/// Whether the path is a pipe, a socket or a device such as /dev/null, which must not be replaced.
pub fn is_device(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir())
}

/// The target of a symbolic link: it is replaced, and the link stays.
fn behind_links(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

pub fn cannot_write(path: &Path, error: &io::Error) -> Report {
    let error = error.to_string();
    // tempfile adds the name of its temporary file, which does not help the user.
    let error = error.split_once(" at path ").map_or(error.as_str(), |(error, _)| error);
    miette!(
        help = "name a file in a folder that exists and that you may write to, or - for stdout",
        "cannot write {}: {error}",
        path.display()
    )
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn what_is_no_file_is_never_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let _there = UnixListener::bind(&path).unwrap();
        let place = Destination::File(path.clone());
        assert!(can_write(&place).is_ok());
        assert!(write(&place, b"{}").is_err(), "a socket is not opened");
        assert!(is_device(&path), "it is still there");
        assert!(write(&Destination::File("/dev/full".into()), b"{}").is_err());
        assert!(is_device(Path::new("/dev/full")));
    }

    #[test]
    fn a_link_stays_and_its_file_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        std::fs::write(&file, "before").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert!(write(&Destination::File(link.clone()), b"after").is_ok());
        assert_eq!(std::fs::read(&file).unwrap(), b"after");
        assert!(link.is_symlink());
    }
}
