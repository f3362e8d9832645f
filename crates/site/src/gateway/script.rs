//! From the path of a request to its script: which part of the path names the script, and which part is passed to it.
//! Owns the search and its safety. Start reading at [`Finder::find`].
//!
//! The script is opened beneath its directory (openat2, RESOLVE_BENEATH), and its kind and permissions are those of the
//! open file. It is started by its name in the opened directory, since an interpreter (`#!`) has to open it again.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;
use sys::file::{FileKind, Opened, Root};
use wire::target::SafePath;

use crate::SiteError;
use crate::config::{Content, GatewayConfig, GatewayKind, HostConfig, Mapping};
use crate::hosts::Hide;

/// Knows where the scripts of a gateway lie.
#[derive(Debug)]
pub(super) struct Finder {
    mapping: Mapping,
    /// Shared by hosts, unless it lies in the site of each.
    place: Arc<ScriptLocation>,
    document_root: PathBuf,
    /// Whether the file itself is run, and so must be executable: a CGI program without an interpreter.
    runs_file: bool,
    interpreter: Option<CString>,
    hide: Hide,
}

#[derive(Debug)]
enum ScriptLocation {
    /// One script for all paths: its path, and the directory that it lies in.
    One { path: CString, directory: Option<Opened> },
    /// An application that has no files here.
    Application,
    /// Files beneath this directory, whose path is `path`. With `without_prefix`, the mapping's prefix is not part of
    /// their paths.
    Beneath { root: Root, path: PathBuf, without_prefix: bool },
}

/// The script that answers a request.
#[derive(Debug)]
pub(super) struct Script {
    /// The part of the request's path that names it, decoded: SCRIPT_NAME.
    pub(super) url: Vec<u8>,
    /// What follows it, PATH_INFO; `None`: nothing.
    pub(super) info: Option<Vec<u8>>,
    /// Its path in the file system: SCRIPT_FILENAME; `None` if it has no file.
    pub(super) file: Option<CString>,
    directory: Option<Opened>,
    program: CString,
    interpreter: Option<CString>,
}

impl Script {
    /// What is to be run, from within [`Script::directory`].
    pub(super) fn program(&self) -> &CStr {
        self.interpreter.as_deref().unwrap_or(&self.program)
    }

    /// Its name alone, and never the query.
    pub(super) fn arguments(&self) -> impl Iterator<Item = &CStr> {
        let named = self.file.as_deref().unwrap_or(&self.program);
        std::iter::once(self.interpreter.as_deref().unwrap_or(named))
    }

    /// Where it runs.
    pub(super) fn directory(&self) -> Option<BorrowedFd<'_>> {
        self.directory.as_ref().map(|opened| opened.fd.as_fd())
    }

    /// For the error log.
    pub(super) fn name(&self) -> String {
        String::from_utf8_lossy(&self.url).into_owned()
    }
}

impl Finder {
    /// Opens the directories of the scripts, by the number of the host; `None`: the gateway is not for that host.
    ///
    /// # Errors
    /// A directory that is missing, not a directory, or forbidden.
    pub(super) fn of_hosts(
        gateway: &GatewayConfig,
        hosts: &[HostConfig],
    ) -> Result<Box<[Option<Self>]>, SiteError> {
        let own = ScriptLocation::own(gateway)?.map(Arc::new);
        let open = |host: &HostConfig| match gateway.is_for(host) {
            true => Self::open(gateway, host, own.clone()).map(Some).map_err(host.named()),
            false => Ok(None),
        };
        hosts.iter().map(open).collect()
    }

    /// `own`: where scripts lie that are not files of the site.
    fn open(
        gateway: &GatewayConfig,
        host: &HostConfig,
        own: Option<Arc<ScriptLocation>>,
    ) -> Result<Self, SiteError> {
        let document_root = match &host.content {
            Content::Directory(path) => absolute(path)?,
            Content::Fixed(_) => PathBuf::from("/"),
        };
        let place = match own {
            Some(own) => own,
            None => Arc::new(ScriptLocation::beneath(document_root.clone(), false)?),
        };
        Ok(Self {
            mapping: gateway.mapping.clone(),
            place,
            document_root,
            runs_file: gateway.kind == GatewayKind::Cgi && gateway.interpreter.is_none(),
            interpreter: gateway.interpreter.as_deref().and_then(|path| c_path(path).ok()),
            hide: Hide::new(&host.presentation).map_err(|reason| SiteError::Pattern { reason })?,
        })
    }

    /// Directory of the site, as programs are told.
    pub(super) fn document_root(&self) -> &Path {
        &self.document_root
    }

    /// The script that answers `path`.
    ///
    /// # Errors
    /// The status: 404 if nothing lies there that may be seen, 403 if it may not be run or leads out of its directory,
    /// 503 if the process has no descriptors left.
    pub(super) fn find(&self, path: &SafePath<'_>) -> Result<Script, u16> {
        match &*self.place {
            ScriptLocation::One { path: file, directory } => {
                let directory = match directory {
                    Some(opened) => Some(again(opened)?),
                    None => None,
                };
                let divided = self.prefix_len();
                Ok(self.script(path.path(), divided, Some(file.clone()), directory, file.clone()))
            }
            ScriptLocation::Application => {
                Ok(self.script(path.path(), self.prefix_len(), None, None, CString::default()))
            }
            ScriptLocation::Beneath { root, path: directory, without_prefix } => {
                let start = if *without_prefix { self.prefix_len() } else { 0 };
                self.look(root, directory, path.path(), start)
            }
        }
    }

    /// Bytes of a path that a prefix takes, without its last slash; 0 if scripts are found by their extension.
    fn prefix_len(&self) -> usize {
        match &self.mapping {
            Mapping::Path(prefix) => prefix.len() - 1,
            Mapping::Extension(_) => 0,
        }
    }

    /// Finds the first file along `path`. What follows its first `start` bytes lies beneath the root.
    fn look(
        &self,
        root: &Root,
        directory: &Path,
        path: &[u8],
        start: usize,
    ) -> Result<Script, u16> {
        let relative = path.get(start + 1..).unwrap_or_default();
        if self.hide.hides_path(relative) {
            return Err(404);
        }
        let slashes = relative.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        for end in slashes.map(|(at, _)| at).chain([relative.len()]) {
            let name = &relative[..end];
            if name.is_empty() || !self.may_be(name, path.len() - relative.len() + end) {
                continue;
            }
            let opened = root.look_beneath(&c_string(name)).map_err(|error| status(&error))?;
            match opened.facts.kind {
                FileKind::Directory => continue,
                FileKind::File if !self.runs_file || opened.is_executable() => {}
                FileKind::File | FileKind::Other => return Err(403),
            }
            let (parent, own) = match name.iter().rposition(|&byte| byte == b'/') {
                Some(at) => (&name[..at], &name[at + 1..]),
                None => (&b"."[..], name),
            };
            let parent = root.look_beneath(&c_string(parent)).map_err(|error| status(&error))?;
            let file = directory.join(std::ffi::OsStr::from_bytes(name));
            let file = c_path(&file).map_err(|_| 404_u16)?;
            let program = c_string(&[&b"./"[..], own].concat());
            return Ok(self.script(path, start + 1 + end, Some(file), Some(parent), program));
        }
        // Every name of the path is a directory.
        Err(if relative.is_empty() || relative.ends_with(b"/") { 403 } else { 404 })
    }

    /// Whether the script may end with the first `len` bytes of the path, so that `name` is its file.
    fn may_be(&self, name: &[u8], len: usize) -> bool {
        match &self.mapping {
            Mapping::Path(prefix) => len >= prefix.len(),
            Mapping::Extension(extension) => name.ends_with(extension.as_bytes()),
        }
    }

    /// A script whose URL is the first `divided` bytes of the path.
    fn script(
        &self,
        path: &[u8],
        divided: usize,
        file: Option<CString>,
        directory: Option<Opened>,
        program: CString,
    ) -> Script {
        let (url, info) = path.split_at(divided.min(path.len()));
        Script {
            url: url.to_owned(),
            info: (!info.is_empty()).then(|| info.to_owned()),
            file,
            directory,
            program,
            interpreter: self.interpreter.clone(),
        }
    }
}

impl ScriptLocation {
    /// Where the scripts of a gateway lie; `None`: in the site.
    fn own(gateway: &GatewayConfig) -> Result<Option<Self>, SiteError> {
        match (&gateway.script, &gateway.root) {
            (Some(script), _) => Self::one(script).map(Some),
            (None, _) if !gateway.has_files() => Ok(Some(Self::Application)),
            (None, Some(root)) => Self::beneath(absolute(root)?, true).map(Some),
            (None, None) => Ok(None),
        }
    }

    fn beneath(path: PathBuf, without_prefix: bool) -> Result<Self, SiteError> {
        let root = Root::open(&path).map_err(|source| SiteError::of_directory(&path, source))?;
        Ok(Self::Beneath { root, path, without_prefix })
    }

    fn one(script: &Path) -> Result<Self, SiteError> {
        let script = std::fs::canonicalize(script).map_err(|error| SiteError::Gateway {
            reason: format!("cannot find the script {}: {error}", script.display()),
        })?;
        let parent = script.parent().unwrap_or(Path::new("/"));
        let refused = |source| SiteError::of_directory(parent, source);
        let directory = Root::open(parent).and_then(|root| root.look_beneath(c"."));
        let path = c_path(&script).map_err(refused)?;
        Ok(Self::One { path, directory: Some(directory.map_err(refused)?) })
    }
}

fn again(opened: &Opened) -> Result<Opened, u16> {
    let fd = opened.fd.try_clone().map_err(|error| status(&error))?;
    Ok(Opened { fd, facts: opened.facts })
}

/// An absolute path without symbolic links.
fn absolute(path: &Path) -> Result<PathBuf, SiteError> {
    std::fs::canonicalize(path).map_err(|source| SiteError::of_directory(path, source))
}

fn c_path(path: &Path) -> io::Result<CString> {
    CString::new(path.to_owned().into_os_string().into_vec()).map_err(|_| Errno::INVAL.into())
}

/// A part of a path that was checked.
fn c_string(part: &[u8]) -> CString {
    CString::new(part).expect("a checked path holds no NUL")
}

/// The status that the client gets for an error of the file system.
fn status(error: &io::Error) -> u16 {
    match Errno::from_io_error(error) {
        Some(Errno::NOENT | Errno::NOTDIR | Errno::INVAL | Errno::NAMETOOLONG) => 404,
        Some(Errno::ACCESS | Errno::PERM | Errno::XDEV | Errno::LOOP) => 403,
        Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::AGAIN) => 503,
        _ => 500,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn finder(mapping: Mapping, own_root: bool) -> (tempfile::TempDir, Finder) {
        let outer = tempfile::tempdir().unwrap();
        let site = outer.path().join("site");
        std::fs::create_dir_all(site.join("cgi-bin/sub")).unwrap();
        for (name, mode) in [("cgi-bin/hello", 0o755), ("cgi-bin/text", 0o644), ("a.php", 0o644)] {
            std::fs::write(site.join(name), "#!/bin/sh\n").unwrap();
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(site.join(name), mode).unwrap();
        }
        std::fs::copy(site.join("cgi-bin/hello"), site.join("cgi-bin/sub/deep")).unwrap();
        std::fs::copy(site.join("cgi-bin/hello"), site.join("cgi-bin/.hidden")).unwrap();
        std::fs::copy(site.join("cgi-bin/hello"), outer.path().join("secret")).unwrap();
        symlink("../../secret", site.join("cgi-bin/out")).unwrap();
        let path = if own_root { site.join("cgi-bin") } else { site };
        let root = Root::open(&path).unwrap();
        let runs_file = matches!(mapping, Mapping::Path(_));
        let document_root = path.clone();
        let place = Arc::new(ScriptLocation::Beneath { root, path, without_prefix: own_root });
        let hide = Hide::new(&crate::config::Presentation::default()).unwrap();
        (outer, Finder { mapping, place, document_root, runs_file, interpreter: None, hide })
    }

    fn found(finder: &Finder, target: &str) -> Result<(String, Option<String>), u16> {
        let script = finder.find(&SafePath::new(target).unwrap())?;
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Ok((text(script.url), script.info.map(text)))
    }

    #[test]
    fn the_first_file_on_the_way_is_the_script_and_the_rest_is_for_it() {
        for own_root in [false, true] {
            let (_outer, finder) = finder(Mapping::Path("/cgi-bin/".to_owned()), own_root);
            let script =
                |url: &str, info: Option<&str>| Ok((url.to_owned(), info.map(str::to_owned)));
            let cases = [
                ("/cgi-bin/hello", script("/cgi-bin/hello", None)),
                ("/cgi-bin/hello?a=b", script("/cgi-bin/hello", None)),
                ("/cgi-bin/hello/", script("/cgi-bin/hello", Some("/"))),
                ("/cgi-bin/hello/a%20b/c", script("/cgi-bin/hello", Some("/a b/c"))),
                ("/cgi-bin/sub/deep/x", script("/cgi-bin/sub/deep", Some("/x"))),
                ("/cgi-bin/sub/../hello/x", script("/cgi-bin/hello", Some("/x"))),
                ("/cgi-bin/", Err(403)),
                ("/cgi-bin/sub/", Err(403)),
                ("/cgi-bin/none", Err(404)),
                ("/cgi-bin/text", Err(403)),
                ("/cgi-bin/out", Err(403)),
                ("/cgi-bin/.hidden", Err(404)),
                ("/cgi-bin/hello/.git/x", Err(404)),
            ];
            for (target, expected) in cases {
                assert_eq!(found(&finder, target), expected, "{target}, {own_root}");
            }
        }
    }

    #[test]
    fn a_script_known_by_its_extension_is_a_file_of_the_site() {
        let (outer, finder) = finder(Mapping::Extension(".php".to_owned()), false);
        assert_eq!(found(&finder, "/a.php/b"), Ok(("/a.php".to_owned(), Some("/b".to_owned()))));
        assert_eq!(found(&finder, "/b.php"), Err(404));
        std::fs::create_dir(outer.path().join("site/dir.php")).unwrap();
        assert_eq!(found(&finder, "/dir.php"), Err(404));
    }
}
