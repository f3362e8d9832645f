//! `joust load --stream`: one line per interval while the load runs, to a file, a pipe or stdout. Owns the writing
//! thread, so that a slow or vanished reader never delays the load. Start reading at [`Stream::begin`].

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

use miette::miette;
use record::Interval;
use report::StreamFormat;

use super::args::{Output, StreamAs};
use crate::output::{self, Destination};
use crate::screen::Aside;
use crate::trouble::Trouble;

/// An open stream, until it is ended.
pub struct Stream {
    aside: Aside,
    place: Destination,
    fault: Arc<Mutex<Option<io::Error>>>,
}

impl Stream {
    /// Opens the requested stream, if any. The writing thread opens pipes, because opening one here would wait for its
    /// reader.
    pub fn begin(typed: &Output) -> Result<Option<Self>, Trouble> {
        let Some(place) = typed.stream.clone() else { return Ok(None) };
        let format = typed.stream_format.map_or_else(|| by_name(&place), StreamAs::format);
        let opened = match &place {
            Destination::File(path) if !output::is_device(path) => {
                let file = File::create(path);
                Some(file.map_err(|error| Trouble::failed(output::cannot_write(path, &error)))?)
            }
            _ => None,
        };
        let fault = Arc::new(Mutex::new(None));
        let mut lines = Lines { to: Target::new(&place, opened), fault: fault.clone() };
        let show = move || {
            lines.write(&format.header());
            move |interval: &Interval| lines.write(&format.line(interval))
        };
        let aside = Aside::begin(show).map_err(|error| {
            Trouble::failed(miette!("cannot start the thread of --stream: {error}"))
        })?;
        Ok(Some(Self { aside, place, fault }))
    }

    /// Adds a finished interval.
    pub fn add(&mut self, interval: &Interval) {
        self.aside.add(interval);
    }

    /// Waits at the end of the load, for a bounded time, until all is written. A vanished reader is not an error; a
    /// file that could not be written is one.
    pub fn end(self) -> Result<(), Trouble> {
        let name = match &self.place {
            Destination::Stdout => "stdout".to_owned(),
            Destination::File(path) => path.display().to_string(),
        };
        if !self.aside.end() {
            return Err(Trouble::failed(miette!(
                help = "the lines of its last intervals are missing; the record (--json) has them",
                "--stream: {name} was not read to its end"
            )));
        }
        match self.fault.lock().expect("nobody panics with it").take() {
            Some(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(Trouble::failed(miette!(
                    help = "the lines after that are missing; the record (--json) has them",
                    "--stream: cannot write to {name}: {error}"
                )))
            }
            _ => Ok(()),
        }
    }
}

/// By the suffix of its name; JSON lines if it is unknown.
fn by_name(place: &Destination) -> StreamFormat {
    let is_csv = |path: &Path| path.extension().is_some_and(|end| end.eq_ignore_ascii_case("csv"));
    match place {
        Destination::File(path) if is_csv(path) => StreamFormat::Csv,
        Destination::File(_) | Destination::Stdout => StreamFormat::Ndjson,
    }
}

/// The destination of the lines.
enum Target {
    Stdout,
    /// The writing thread opens it.
    Device(std::path::PathBuf),
    File(File),
    /// Nobody reads, or nothing can be written.
    Gone,
}

impl Target {
    fn new(place: &Destination, opened: Option<File>) -> Self {
        match (opened, place) {
            (Some(file), _) => Self::File(file),
            (None, Destination::File(path)) => Self::Device(path.clone()),
            (None, Destination::Stdout) => Self::Stdout,
        }
    }

    /// Each line is one write, so that a reader sees whole lines.
    fn write(&mut self, text: &str) -> io::Result<()> {
        if let Self::Device(path) = self {
            *self = Self::File(File::options().write(true).open(path)?);
        }
        match self {
            Self::Stdout => {
                let mut out = io::stdout().lock();
                out.write_all(text.as_bytes()).and_then(|()| out.flush())
            }
            Self::File(file) => file.write_all(text.as_bytes()),
            Self::Device(_) | Self::Gone => Ok(()),
        }
    }
}

/// The state of the thread.
struct Lines {
    to: Target,
    fault: Arc<Mutex<Option<io::Error>>>,
}

impl Lines {
    fn write(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        if let Err(error) = self.to.write(text) {
            self.to = Target::Gone;
            *self.fault.lock().expect("nobody panics with it") = Some(error);
        }
    }
}
