//! What `joust load` has of fleets in a build without them: nothing is asked for. Start reading at [`gather`].

use std::convert::Infallible;
use std::sync::atomic::AtomicBool;

use record::{LoadPlan, LoadRecord};

use super::Shows;
use crate::trouble::Trouble;

/// No flag.
#[derive(clap::Args)]
pub struct Fleet {}

impl Fleet {
    pub fn is_asked_for(&self) -> bool {
        false
    }

    pub fn allows_incomplete(&self) -> bool {
        false
    }
}

/// There is none.
pub type Gathered = Infallible;

pub fn check(_: &Fleet, _: &LoadPlan) -> Result<(), Trouble> {
    Ok(())
}

pub fn gather(_: &LoadPlan, _: &Fleet, _: &dyn Fn(&str)) -> Result<Option<Gathered>, Trouble> {
    Ok(None)
}

pub fn measure(
    _: &LoadPlan,
    _: &Fleet,
    gathered: Gathered,
    _: &'static AtomicBool,
    _: &Shows<'_>,
    _: &dyn Fn(&str),
) -> Result<LoadRecord, Trouble> {
    match gathered {}
}
