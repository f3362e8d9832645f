//! The live picture of a load: a thread that sums up, draws and reads keys, so that the load never waits for a slow
//! terminal or a key. Start reading at [`Picture::begin`].
//!
//! On the load's side it costs one copy of an interval, ten times a second. The thread has the lowest priority on the
//! CPUs of the load: it uses what the load leaves idle, and nothing of the server's.

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

use super::aside::{FAREWELL_MAX, join_within};
use super::tty::{self, Tty};

/// Time between two frames: new data comes in intervals of 100 ms, and an eye reads no faster.
const FRAME: Duration = Duration::from_millis(200);
/// The lowest possible priority.
const NICE_MAX: i32 = 19;
/// How soon the thread notices that the load is over.
const LOOK: Duration = Duration::from_millis(40);

/// Most intervals that wait for the painter (5 seconds of them); further ones are merged with the last one.
const ARRIVED_MAX: usize = 50;

/// Intervals that the painter has not seen yet, in order.
type Arrived = Arc<Mutex<Vec<Interval>>>;

/// A picture that disappears when it is dropped.
pub struct Picture {
    arrived: Arrived,
    over: Arc<AtomicBool>,
    painter: Option<JoinHandle<()>>,
}

impl Picture {
    /// Takes the terminal and begins to draw on it.
    ///
    /// # Errors
    /// The terminal cannot be taken or has no size, or there is no thread; the terminal is then given back.
    pub fn begin(plan: &LoadPlan, view: View, interrupt: &'static AtomicBool) -> io::Result<Self> {
        let arrived = Arrived::default();
        let over = Arc::new(AtomicBool::new(false));
        tty::take()?;
        let mut picture = Self { arrived: arrived.clone(), over: over.clone(), painter: None };
        let terminal = Terminal::new(CrosstermBackend::new(Tty::default()))?;
        if terminal.size()?.area() == 0 {
            return Err(io::Error::other("a terminal without a size"));
        }
        let live = Live::new(plan);
        let cpus = plan.cpus.clone();
        let painter =
            Painter { arrived, live, frozen: None, view, terminal, over, interrupt, cpus };
        let thread = thread::Builder::new().name("screen".to_owned());
        picture.painter = Some(thread.spawn(move || painter.paint())?);
        Ok(picture)
    }

    /// Shows the interval in the next frame.
    pub fn add(&self, interval: &Interval) {
        // A panic in the painter has already been reported; the load continues without it.
        let Ok(mut arrived) = self.arrived.lock() else { return };
        if arrived.len() < ARRIVED_MAX {
            arrived.push(interval.clone());
        } else if let Some(last) = arrived.last_mut() {
            last.merge(interval);
            last.length = interval.end().saturating_sub(last.start);
        }
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
struct Painter {
    arrived: Arrived,
    live: Live,
    /// What is shown while the picture is paused.
    frozen: Option<Live>,
    view: View,
    terminal: Terminal<CrosstermBackend<Tty>>,
    over: Arc<AtomicBool>,
    interrupt: &'static AtomicBool,
    /// CPUs of the load; empty: any.
    cpus: Vec<u32>,
}

impl Painter {
    /// Runs until the load is over or interrupted. Then the terminal is given back at once, so that a second Ctrl-C is
    /// a signal again.
    fn paint(mut self) {
        self.step_back();
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

    /// Takes the lowest priority. If that is not allowed, the picture is still useful.
    fn step_back(&self) {
        // On Linux both apply to the calling thread only (man 2 setpriority, "C library/kernel differences").
        let _ = rustix::process::nice(NICE_MAX);
        if !self.cpus.is_empty() {
            let _ = sys::affinity::pin(&self.cpus);
        }
    }

    fn draw(&mut self) -> io::Result<()> {
        let arrived = self.arrived.lock().map(|mut arrived| std::mem::take(&mut *arrived));
        arrived.unwrap_or_default().iter().for_each(|interval| self.live.add(interval));
        let (shown, view) = (self.frozen.as_ref().unwrap_or(&self.live), self.view);
        self.terminal.draw(|frame| live::draw(shown, &view, frame)).map(|_| ())
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
            // There is no keyboard (stdin is a file, and there is no /dev/tty), but signals still end the load.
            Err(_) => thread::sleep(wait),
        }
    }

    fn obey(&mut self, key: KeyEvent) {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if is_control => self.end(),
            KeyCode::Char('q' | 'Q') => self.end(),
            KeyCode::Char(' ') => self.freeze(),
            KeyCode::Char('d') => self.view.distribution = !self.view.distribution,
            KeyCode::Char('?' | 'h') => self.view.help = !self.view.help,
            KeyCode::Esc => self.view.help = false,
            _ => {}
        }
    }

    /// Does what Ctrl-C does while the terminal still turns it into a signal, so the next one ends the process at once.
    fn end(&self) {
        self.interrupt.store(true, Ordering::Relaxed);
        // It can only fail for a signal that does not exist.
        let _ =
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::INT);
    }

    fn freeze(&mut self) {
        self.frozen = if self.frozen.is_none() { Some(self.live.clone()) } else { None };
        self.view.frozen = self.frozen.is_some();
    }
}
