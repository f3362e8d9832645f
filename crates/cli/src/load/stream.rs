//! `joust load --stream`: a line an interval while the load runs, to a file, a pipe or stdout. Owns the
//! thread that writes, so that a reader that is slow, or gone, never holds the load up. Start reading at
//! [`Stream::begin`].

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

/// A stream that is being written, until it is ended.
pub struct Stream {
    aside: Aside,
    place: Destination,
    fault: Arc<Mutex<Option<io::Error>>>,
}

impl Stream {
    /// Opens what was asked for, if anything was. A pipe is opened by the thread that writes: to open it
    /// here would wait for its reader.
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

    /// An interval is over.
    pub fn add(&mut self, interval: &Interval) {
        self.aside.add(interval);
    }

    /// The load is over: waits, for a bounded time, until all is written. A reader that has gone is no
    /// failure; a file that could not be written is one.
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

/// By the end of its name; JSON lines where that does not say.
fn by_name(place: &Destination) -> StreamFormat {
    let is_csv = |path: &Path| path.extension().is_some_and(|end| end.eq_ignore_ascii_case("csv"));
    match place {
        Destination::File(path) if is_csv(path) => StreamFormat::Csv,
        Destination::File(_) | Destination::Stdout => StreamFormat::Ndjson,
    }
}

/// Where lines go.
enum Target {
    Stdout,
    /// To be opened by who writes.
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

/// What the thread has.
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
