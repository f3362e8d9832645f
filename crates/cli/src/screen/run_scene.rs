//! The live picture of a run. Events come between visits, and the picture is drawn at most four times a second, so
//! that it costs the measurement nothing. Start reading at [`RunPicture::begin`].

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ::report::live::{self, RunLive, RunView};
use lab::session::Command;
use ratatui::Frame;
use ratatui::crossterm::event::KeyCode;
use record::{CpuLayout, Plan};
use units::Nanos;

use super::picture::{Picture, Scene};

/// Most digits of a contender's number that are taken.
const DIGITS_MAX: usize = 4;
/// Most wishes that wait for the end of a visit; further ones are not taken.
const COMMANDS_MAX: usize = 64;

/// What the run and the picture share.
struct Shared {
    live: RunLive,
    /// When the last event came.
    event: Instant,
    /// What the user asked for, in order.
    commands: VecDeque<Command>,
}

/// A picture that disappears when it is dropped. The messages that it showed are then written to stderr.
pub struct RunPicture {
    shared: Arc<Mutex<Shared>>,
    /// `None` once it has been taken down.
    picture: Option<Picture>,
}

impl RunPicture {
    /// Takes the terminal and begins to draw on it.
    ///
    /// # Errors
    /// As for [`Picture::begin`].
    pub fn begin(
        plan: &Plan,
        layout: &CpuLayout,
        view: RunView,
        interrupt: &'static AtomicBool,
    ) -> io::Result<Self> {
        let live = RunLive::new(plan);
        let shared = Shared { live, event: Instant::now(), commands: VecDeque::new() };
        let shared = Arc::new(Mutex::new(shared));
        let scene = RunScene { shared: shared.clone(), view };
        let picture = Picture::begin(scene, cpus_beside(layout), interrupt)?;
        Ok(Self { shared, picture: Some(picture) })
    }

    /// Tells the picture of an event.
    pub fn tell(&self, what: impl FnOnce(&mut RunLive)) {
        // A panic in the painter has already been reported; the run continues without it.
        let Ok(mut shared) = self.shared.lock() else { return };
        what(&mut shared.live);
        shared.event = Instant::now();
    }

    /// Adds a message; the clock goes on.
    pub fn message(&self, text: &str) {
        if let Ok(mut shared) = self.shared.lock() {
            shared.live.message(text);
        }
    }

    /// The next wish of the user.
    pub fn take_command(&self) -> Option<Command> {
        self.shared.lock().ok()?.commands.pop_front()
    }
}

impl Drop for RunPicture {
    fn drop(&mut self) {
        drop(self.picture.take());
        // The alternate screen took them away.
        let Ok(shared) = self.shared.lock() else { return };
        let width = crate::terminal::report_options().width;
        let lines = shared.live.messages().flat_map(|text| ::report::wrapped(&text, width));
        lines.for_each(|line| crate::terminal::say(&line));
    }
}

/// CPUs for the painter: those that neither the server nor the generator has, or else the generator's, which a closed
/// loop leaves idle at times. Empty if nothing is pinned.
fn cpus_beside(layout: &CpuLayout) -> Vec<u32> {
    let allowed = sys::affinity::allowed().unwrap_or_default();
    let is_free = |cpu: &u32| !layout.server.contains(cpu) && !layout.client.contains(cpu);
    let free: Vec<u32> = allowed.into_iter().filter(is_free).collect();
    if free.is_empty() { layout.client.clone() } else { free }
}

struct RunScene {
    shared: Arc<Mutex<Shared>>,
    view: RunView,
}

impl Scene for RunScene {
    const FRAME: Duration = Duration::from_millis(250);

    fn draw(&mut self, frame: &mut Frame<'_>) {
        let Ok(shared) = self.shared.lock() else { return };
        let since = u64::try_from(shared.event.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.view.since = Nanos(since);
        live::draw_run(&shared.live, &self.view, frame);
    }

    fn is_asking(&self) -> bool {
        self.view.asking.is_some()
    }

    fn obey(&mut self, key: KeyCode) {
        if let Some(typed) = self.view.asking.take() {
            self.view.asking = self.answer(typed, key);
            return;
        }
        match key {
            KeyCode::Char('s' | 'S') => self.stop_or_go_on(),
            KeyCode::Char('k' | 'K') => self.view.asking = Some(String::new()),
            KeyCode::Char(digit @ '1'..='9') => self.view.asking = Some(digit.to_string()),
            KeyCode::Char('?' | 'h') => self.view.help = !self.view.help,
            KeyCode::Esc => self.view.help = false,
            _ => {}
        }
    }
}

impl RunScene {
    fn stop_or_go_on(&self) {
        let Ok(mut shared) = self.shared.lock() else { return };
        if shared.commands.len() < COMMANDS_MAX {
            let stops = shared.live.ask_to_stop();
            shared.commands.push_back(if stops { Command::StopAfterBlock } else { Command::GoOn });
        }
    }

    /// A key while the number of a contender is typed; returns what is typed so far, `None` when the question is over.
    fn answer(&self, mut typed: String, key: KeyCode) -> Option<String> {
        match key {
            KeyCode::Char(digit @ '0'..='9') if typed.len() < DIGITS_MAX => typed.push(digit),
            KeyCode::Backspace => drop(typed.pop()),
            KeyCode::Enter => {
                self.skip(&typed);
                return None;
            }
            // Whoever types q here wants to leave the question, not to end the run.
            KeyCode::Esc | KeyCode::Char('q' | 'Q') => return None,
            _ => {}
        }
        Some(typed)
    }

    fn skip(&self, typed: &str) {
        let Ok(mut shared) = self.shared.lock() else { return };
        let Some(contender) = typed.parse::<usize>().ok().and_then(|n| n.checked_sub(1)) else {
            return;
        };
        if shared.commands.len() < COMMANDS_MAX && shared.live.ask_to_skip(contender) {
            shared.commands.push_back(Command::Skip { contender });
        }
    }
}
