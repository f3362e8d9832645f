//! Error pages. Owns reading those that are not part of the site. Start reading at [`open`].
//!
//! Such a page is read once, with the rights of the process that opens the site. The serving processes may run as
//! another user, or be confined to the site (Landlock), and an error is too late to find that out.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::OFlags;

use super::media;
use super::representation::{About, Representation};
use crate::SiteError;
use crate::config::{ErrorPage, HostConfig, Presentation};

/// Bytes of a page that lies in memory as long as the server runs.
const PAGE_BYTES_MAX: u64 = 1024 * 1024;

/// An error page.
#[derive(Debug)]
pub(super) enum Page {
    /// The page at that path of the site.
    OfSite(String),
    /// A page with a file of its own.
    Own(Arc<Representation>),
}

/// The pages of a host, by status.
///
/// # Errors
/// A file that cannot be read, is not a regular file, or is too large.
pub(super) fn open(host: &HostConfig) -> Result<BTreeMap<u16, Page>, SiteError> {
    let open = |(&status, page): (&u16, &ErrorPage)| {
        let page = match page {
            ErrorPage::OfSite(path) => Page::OfSite(path.clone()),
            ErrorPage::Own(own) => Page::Own(Arc::new(read(&own.file, &host.presentation)?)),
        };
        Ok((status, page))
    };
    host.errors.iter().map(open).collect()
}

fn read(path: &Path, presentation: &Presentation) -> Result<Representation, SiteError> {
    let refused = |reason: String| SiteError::ErrorPage { path: path.to_owned(), reason };
    let content = content(path).map_err(|error| refused(error.to_string()))?;
    if content.len() as u64 > PAGE_BYTES_MAX {
        return Err(refused(format!("it is larger than {PAGE_BYTES_MAX} bytes")));
    }
    let name = path.file_name().unwrap_or_default().as_bytes();
    let content_type = media::content_type(name, presentation);
    Ok(Representation::page(content, About { content_type, coding: None, vary: "" }))
}

/// The content of a regular file. One byte beyond the limit shows that it is too large.
fn content(path: &Path) -> io::Result<Vec<u8>> {
    // Without it, opening a pipe would wait for its writer.
    let nonblock = OFlags::NONBLOCK.bits().cast_signed();
    let file = File::options().read(true).custom_flags(nonblock).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut content = Vec::new();
    file.take(PAGE_BYTES_MAX + 1).read_to_end(&mut content)?;
    Ok(content)
}
