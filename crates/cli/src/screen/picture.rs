//! A live picture: a thread that draws a scene and reads keys, so that what is measured never waits for a slow terminal
//! or a key. Must not know what is drawn. Start reading at [`Picture::begin`].
//!
//! The thread has the lowest priority, on CPUs that no server is measured on: it uses what others leave idle.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::{Frame, Terminal};

use super::aside::{FAREWELL_MAX, join_within};
use super::tty::{self, Tty};

/// The lowest possible priority.
const NICE_MAX: i32 = 19;
/// How soon the thread notices that the end has come.
const LOOK: Duration = Duration::from_millis(40);

/// What is drawn, and what its keys do.
pub trait Scene: Send + 'static {
    /// Time between two frames.
    const FRAME: Duration;

    /// Draws what is known now.
    fn draw(&mut self, frame: &mut Frame<'_>);

    /// Handles a key; Ctrl-C, and q unless [`Scene::is_asking`], end everything and do not come here.
    fn obey(&mut self, key: KeyCode);

    /// Whether an answer is typed.
    fn is_asking(&self) -> bool {
        false
    }
}

/// A picture that disappears when it is dropped.
pub struct Picture {
    over: Arc<AtomicBool>,
    painter: Option<JoinHandle<()>>,
}

impl Picture {
    /// Takes the terminal and begins to draw on it, by a thread on `cpus` (empty: on any). `interrupt` is set by q and
    /// Ctrl-C, as SIGINT does.
    ///
    /// # Errors
    /// The terminal cannot be taken or has no size, or there is no thread; the terminal is then given back.
    pub fn begin<S: Scene>(
        scene: S,
        cpus: Vec<u32>,
        interrupt: &'static AtomicBool,
    ) -> io::Result<Self> {
        let over = Arc::new(AtomicBool::new(false));
        tty::take()?;
        let mut picture = Self { over: over.clone(), painter: None };
        let terminal = Terminal::new(CrosstermBackend::new(Tty::default()))?;
        if terminal.size()?.area() == 0 {
            return Err(io::Error::other("a terminal without a size"));
        }
        let painter = Painter { scene, terminal, over, interrupt, cpus };
        let thread = thread::Builder::new().name("screen".to_owned());
        picture.painter = Some(thread.spawn(move || painter.paint())?);
        Ok(picture)
    }
}

impl Drop for Picture {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(painter) = self.painter.take() {
            // If it hangs in a write that nobody reads, giving the terminal back would hang there too.
            if !join_within(painter, FAREWELL_MAX) {
                return;
            }
        }
        tty::give_back();
    }
}

/// The thread that draws.
struct Painter<S> {
    scene: S,
    terminal: Terminal<CrosstermBackend<Tty>>,
    over: Arc<AtomicBool>,
    interrupt: &'static AtomicBool,
    cpus: Vec<u32>,
}

impl<S: Scene> Painter<S> {
    /// Runs until the end or an interrupt. Then the terminal is given back at once, so that a second Ctrl-C is a signal
    /// again.
    fn paint(mut self) {
        self.step_back();
        while !self.is_over() {
            let begun = Instant::now();
            // A terminal that is gone is no reason to end a measurement.
            if self.terminal.draw(|frame| self.scene.draw(frame)).is_err() {
                break;
            }
            while !self.is_over()
                && let Some(left) = S::FRAME.checked_sub(begun.elapsed())
            {
                self.listen(left.min(LOOK));
            }
        }
        tty::give_back();
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed) || self.interrupt.load(Ordering::Relaxed)
    }

    /// Takes the lowest priority. If that is not allowed, the picture is still useful.
    fn step_back(&self) {
        // On Linux both apply to the calling thread only (man 2 setpriority, "C library/kernel differences").
        let _ = rustix::process::nice(NICE_MAX);
        if !self.cpus.is_empty() {
            let _ = sys::affinity::pin(&self.cpus);
        }
    }

    /// Handles a key, if one comes within the time.
    fn listen(&mut self, wait: Duration) {
        match event::poll(wait) {
            Ok(false) => {}
            Ok(true) => match event::read() {
                Ok(Event::Key(key)) if key.kind == KeyEventKind::Press => self.obey(key),
                // A new size takes effect when the next frame is drawn.
                _ => {}
            },
            // There is no keyboard (stdin is a file, and there is no /dev/tty), but signals still end everything.
            Err(_) => thread::sleep(wait),
        }
    }

    fn obey(&mut self, key: KeyEvent) {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if is_control => self.end(),
            KeyCode::Char('q' | 'Q') if !self.scene.is_asking() => self.end(),
            code => self.scene.obey(code),
        }
    }

    /// Does what Ctrl-C does while the terminal still turns it into a signal, so the next one ends the process at once.
    fn end(&self) {
        self.interrupt.store(true, Ordering::Relaxed);
        // It can only fail for a signal that does not exist.
        let _ =
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::INT);
    }
}
