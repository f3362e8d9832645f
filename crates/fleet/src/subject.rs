//! Subjects and keys of a fleet on the broker. Start reading here.

use crate::ids::Id;

/// Orders to an agent.
pub fn orders(agent: &Id) -> String {
    format!("joust.v1.cmd.{agent}")
}

/// The controller's beat.
pub fn beat(run: &Id) -> String {
    format!("joust.v1.ctl.{run}")
}

/// The beats of all controllers.
pub const BEATS: &str = "joust.v1.ctl.*";

/// An agent's answers.
pub fn answers(run: &Id, agent: &Id) -> String {
    format!("joust.v1.ans.{run}.{agent}")
}

/// The answers of all agents of a run.
pub fn all_answers(run: &Id) -> String {
    format!("joust.v1.ans.{run}.*")
}

/// Questions for the run clock.
pub fn clock(run: &Id) -> String {
    format!("joust.v1.clk.{run}")
}

/// Windows and records of an agent.
pub fn messages(run: &Id, agent: &Id) -> String {
    format!("joust.v1.m.{run}.{agent}")
}

/// Windows and records of all agents of a run.
pub fn all_messages(run: &Id) -> String {
    format!("joust.v1.m.{run}.*")
}

/// Who commands a run, and where it is.
pub fn state(run: &Id) -> String {
    format!("{run}.state")
}
