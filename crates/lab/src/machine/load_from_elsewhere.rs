//! Owns the visit whose load comes from other machines: what is watched here meanwhile, and what is missing of it. Start
//! reading at [`Machine::watch_load_from`].

use std::cell::RefCell;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;

use record::{FleetUse, LoadPlan, Visit};
use units::Nanos;

use super::{Machine, failed};
use crate::elsewhere::{self, Elsewhere, News, Seen};
use crate::error::LabError;
use crate::server::Running;
use crate::surroundings::Ready;
use crate::trial::Window;

impl Machine<'_> {
    /// Lets other machines load a running server, watches it and this machine meanwhile, and fills in the visit.
    pub(super) fn watch_load_from(
        &mut self,
        elsewhere: &Elsewhere,
        (running, ready): (&mut Running, Ready),
        visit: &mut Visit,
    ) -> Result<(), LabError> {
        // Which CPUs they use is theirs to say.
        let plan = LoadPlan { cpus: Vec::new(), ..self.measured_load(running, visit) };
        let Machine { keeper, notes, interrupt, layout, .. } = self;
        let (interrupt, cpus, window) = (*interrupt, &layout.client, Window::of(self.plan));
        if let Some(search) = &self.plan.search {
            let watching = keeper.watch(ready, running, Nanos::ZERO);
            let watching = watching.map_err(failed("cannot watch the machine"))?;
            let (mut notes, mut incomplete) = (Vec::new(), None);
            let mut measure = |plan: &LoadPlan| {
                let mut tell = |news: News<'_>| {
                    if let News::Note(text) = news {
                        notes.push(text.to_owned());
                    }
                };
                let load = elsewhere.generators.load(plan, interrupt, &mut tell);
                let load = load.map_err(LabError::Elsewhere)?;
                incomplete = load.fleet.as_deref().and_then(FleetUse::missing);
                // A rate of which a part was not asked was not tried.
                incomplete.clone().map_or(Ok(load), |why| Err(LabError::Elsewhere(why)))
            };
            let found = self.find_capacity(running, visit, search, (&plan, &mut measure));
            self.notes.extend(notes);
            self.incomplete = incomplete;
            visit.surroundings = Some(Box::new(self.keeper.after(watching, running)));
            return match self.incomplete {
                Some(_) => Ok(()),
                None => unless_interrupted(found, interrupt),
            };
        }
        let (begins, told) = channel();
        let (shared, heard) = (&*running, RefCell::new(std::mem::take(notes)));
        let (load, seen) = std::thread::scope(|scope| {
            let watcher =
                scope.spawn(move || elsewhere::watch(&told, keeper, (shared, ready), window, cpus));
            let mut tell = |news: News<'_>| match news {
                // Nobody listens once the watcher has failed, which it says itself.
                News::Begins(at) => drop(begins.send(at)),
                News::Note(text) => heard.borrow_mut().push(text.to_owned()),
            };
            let load = elsewhere.generators.load(&plan, interrupt, &mut tell);
            drop(begins);
            (load, watcher.join())
        });
        self.notes = heard.into_inner();
        let seen = seen.unwrap_or_else(|_| Err(io::Error::other("the watching thread panicked")));
        let seen = seen.map_err(failed("cannot watch the machine"))?;
        let load = match load {
            Ok(load) => load,
            Err(why) => return unless_interrupted(Err(LabError::Elsewhere(why)), interrupt),
        };
        self.incomplete = load.fleet.as_deref().and_then(FleetUse::missing);
        let seen = seen.map(|Seen { began, observed, surroundings }| {
            visit.surroundings = Some(Box::new(surroundings));
            (began, observed)
        });
        let never = || "nobody said when the load began".to_owned();
        self.note_load(running, visit, load, seen.ok_or_else(never));
        Ok(())
    }
}

/// A user's interrupt is no failure of whoever it interrupted: the visit is dropped.
fn unless_interrupted(
    result: Result<(), LabError>,
    interrupt: &AtomicBool,
) -> Result<(), LabError> {
    match result {
        Err(_) if interrupt.load(Ordering::Relaxed) => Ok(()),
        result => result,
    }
}
