//! The live picture of a load. On the load's side it costs one copy of an interval, ten times a second. Start reading at
//! [`LoadPicture::begin`].

use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ::report::live::{self, AgentFigures, Live, View};
use ratatui::Frame;
use ratatui::crossterm::event::KeyCode;
use record::{Interval, LoadPlan};

use super::picture::{Picture, Scene};

/// Most intervals that wait for the painter (5 seconds of them); further ones are merged with the last one.
const ARRIVED_MAX: usize = 50;

/// What the painter has not seen yet.
#[derive(Default)]
struct News {
    /// In order.
    intervals: Vec<Interval>,
    agents: Option<Vec<AgentFigures>>,
}

type Arrived = Arc<Mutex<News>>;

/// A picture that disappears when it is dropped.
pub struct LoadPicture {
    arrived: Arrived,
    _picture: Picture,
}

impl LoadPicture {
    /// Takes the terminal and begins to draw on it, on the CPUs of the load.
    ///
    /// # Errors
    /// As for [`Picture::begin`].
    pub fn begin(plan: &LoadPlan, view: View, interrupt: &'static AtomicBool) -> io::Result<Self> {
        let arrived = Arrived::default();
        let scene =
            LoadScene { arrived: arrived.clone(), live: Live::new(plan), frozen: None, view };
        let picture = Picture::begin(scene, plan.cpus.clone(), interrupt)?;
        Ok(Self { arrived, _picture: picture })
    }

    /// Shows the interval in the next frame.
    pub fn add(&self, interval: &Interval) {
        // A panic in the painter has already been reported; the load continues without it.
        let Ok(mut arrived) = self.arrived.lock() else { return };
        let arrived = &mut arrived.intervals;
        if arrived.len() < ARRIVED_MAX {
            arrived.push(interval.clone());
        } else if let Some(last) = arrived.last_mut() {
            last.merge(interval);
            last.length = interval.end().saturating_sub(last.start);
        }
    }

    /// Shows the agents of a fleet in the next frame.
    pub fn set_agents(&self, agents: &[AgentFigures]) {
        if let Ok(mut arrived) = self.arrived.lock() {
            arrived.agents = Some(agents.to_vec());
        }
    }
}

struct LoadScene {
    arrived: Arrived,
    live: Live,
    /// What is shown while the picture is paused.
    frozen: Option<Live>,
    view: View,
}

impl Scene for LoadScene {
    /// New data comes in intervals of 100 ms, and an eye reads no faster.
    const FRAME: Duration = Duration::from_millis(200);

    fn draw(&mut self, frame: &mut Frame<'_>) {
        let arrived = self.arrived.lock().map(|mut arrived| std::mem::take(&mut *arrived));
        let News { intervals, agents } = arrived.unwrap_or_default();
        intervals.iter().for_each(|interval| self.live.add(interval));
        if let Some(agents) = agents {
            self.live.set_agents(&agents);
        }
        live::draw(self.frozen.as_ref().unwrap_or(&self.live), &self.view, frame);
    }

    fn obey(&mut self, key: KeyCode) {
        match key {
            KeyCode::Char(' ') => {
                self.frozen = if self.frozen.is_none() { Some(self.live.clone()) } else { None };
                self.view.frozen = self.frozen.is_some();
            }
            KeyCode::Char('d') => self.view.distribution = !self.view.distribution,
            KeyCode::Char('?' | 'h') => self.view.help = !self.view.help,
            KeyCode::Esc => self.view.help = false,
            _ => {}
        }
    }
}
