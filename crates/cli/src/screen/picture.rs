//! The picture of a load: a thread of its own that draws and listens to keys, so that neither a slow
//! terminal nor a key is ever waited for by the load. Owns that thread. Start reading at
//! [`Picture::begin`].

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ::report::live::{self, Live, View};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use record::{Interval, LoadPlan};

use super::tty::{self, Tty};

/// Time between two frames: what is new comes in intervals of 100 ms, and an eye reads no faster.
const FRAME: Duration = Duration::from_millis(200);
/// How soon the thread sees that the load is over.
const LOOK: Duration = Duration::from_millis(40);

/// A picture that goes away when it is dropped.
pub struct Picture {
    live: Arc<Mutex<Live>>,
    over: Arc<AtomicBool>,
    painter: Option<JoinHandle<()>>,
}

impl Picture {
    /// Takes the terminal and begins to draw on it.
    ///
    /// # Errors
    /// The terminal cannot be taken or has no size, or there is no thread; it is given back.
    pub fn begin(plan: &LoadPlan, view: View, interrupt: &'static AtomicBool) -> io::Result<Self> {
        let live = Arc::new(Mutex::new(Live::new(plan)));
        let over = Arc::new(AtomicBool::new(false));
        tty::take()?;
        let mut picture = Self { live: live.clone(), over: over.clone(), painter: None };
        let terminal = Terminal::new(CrosstermBackend::new(Tty::default()))?;
        if terminal.size()?.area() == 0 {
            return Err(io::Error::other("a terminal without a size"));
        }
        let painter = Painter { live, over, interrupt, terminal, view, frozen: None };
        let thread = thread::Builder::new().name("screen".to_owned());
        picture.painter = Some(thread.spawn(move || painter.paint())?);
        Ok(picture)
    }

    /// Shows the interval in the next frame.
    pub fn add(&self, interval: &Interval) {
        // A painter that has panicked has said so; the load goes on without it.
        if let Ok(mut live) = self.live.lock() {
            live.add(interval);
        }
    }
}

impl Drop for Picture {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(painter) = self.painter.take() {
            // A panic of the painter has been told by the hook.
            let _ = painter.join();
        }
        tty::give_back();
    }
}

/// The thread that draws.
struct Painter {
    live: Arc<Mutex<Live>>,
    over: Arc<AtomicBool>,
    interrupt: &'static AtomicBool,
    terminal: Terminal<CrosstermBackend<Tty>>,
    view: View,
    /// What is shown while the picture stands still.
    frozen: Option<Live>,
}

impl Painter {
    /// Until the load is over or interrupted: then the terminal is given back at once, so that a
    /// second Ctrl-C is a signal again.
    fn paint(mut self) {
        while !self.is_over() {
            let begun = Instant::now();
            // A terminal that is gone is no reason to end a load.
            if self.draw().is_err() {
                break;
            }
            while !self.is_over()
                && let Some(left) = FRAME.checked_sub(begun.elapsed())
            {
                self.listen(left.min(LOOK));
            }
        }
        tty::give_back();
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed) || self.interrupt.load(Ordering::Relaxed)
    }

    fn draw(&mut self) -> io::Result<()> {
        let (view, live, frozen) = (self.view, &self.live, &self.frozen);
        // The load is locked out while a frame is made, not while it is written.
        let draw = |frame: &mut ratatui::Frame<'_>| match frozen {
            Some(frozen) => live::draw(frozen, &view, frame),
            None => live::draw(&live.lock().expect("add does not panic"), &view, frame),
        };
        self.terminal.draw(draw).map(|_| ())
    }

    /// Takes a key, if one comes within the time.
    fn listen(&mut self, wait: Duration) {
        match event::poll(wait) {
            Ok(false) => {}
            Ok(true) => match event::read() {
                Ok(Event::Key(key)) if key.kind == KeyEventKind::Press => self.obey(key),
                // A new size is seen when the next frame is drawn.
                _ => {}
            },
            // No keyboard (stdin is a file, and there is no /dev/tty): signals still end the load.
            Err(_) => thread::sleep(wait),
        }
    }

    fn obey(&mut self, key: KeyEvent) {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if is_control => self.end(),
            KeyCode::Char('q' | 'Q') => self.end(),
            KeyCode::Char(' ') => self.freeze(),
            KeyCode::Char('?' | 'h') => self.view.help = !self.view.help,
            KeyCode::Esc => self.view.help = false,
            _ => {}
        }
    }

    /// Does what Ctrl-C does where the terminal still makes a signal of it; so the next one ends the
    /// process at once.
    fn end(&self) {
        self.interrupt.store(true, Ordering::Relaxed);
        // It can only fail for a signal that does not exist.
        let _ =
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::INT);
    }

    fn freeze(&mut self) {
        self.frozen = match self.frozen.take() {
            Some(_) => None,
            None => self.live.lock().ok().map(|live| live.clone()),
        };
        self.view.frozen = self.frozen.is_some();
    }
}
