//! Owns what a study that requests a program of the site must fulfil: every contender runs programs, and visits are
//! long compared to the program's sleep. Start reading at [`check`].

use record::{Contender, Plan};
use units::Nanos;

use super::keys::Section;
use super::{Form, StudyError};
use crate::adapters;

/// Fewest sleeps in a measurement: fewer show no spread.
const SLEEPS_MIN: u64 = 4;

/// Gives the program another sleep in the short form.
pub(super) fn shorten(
    plan: &mut Plan,
    section: &Section<'_>,
    sleep: Option<Nanos>,
    form: Form,
) -> Result<(), StudyError> {
    let Some(sleep) = sleep else { return Ok(()) };
    if plan.sleeps().len() != 1 {
        let message = "`sleep` in [short] needs a single `sleep` to replace";
        let help =
            "write `sleep` in [workload]; of an axis over it `short` names the values to keep";
        return Err(section.error(message).with_help(help));
    }
    if form == Form::Short {
        let works = plan.cells.iter_mut().map(|cell| &mut cell.workload.sleep);
        let changes = plan.contenders.iter_mut().map(|one| &mut one.work.sleep);
        works.chain(changes).filter(|one| one.is_some()).for_each(|one| *one = Some(sleep));
    }
    Ok(())
}

/// What conflicts with a program that sleeps, and the way out.
pub(super) fn check(plan: &Plan) -> Result<(), (String, String)> {
    for cell in 0..plan.cells.len() {
        for index in plan.in_cell(cell) {
            let work = plan.work(cell, index);
            let Some(sleep) = work.sleep else { continue };
            if work.timeout <= sleep {
                let message = format!(
                    "`timeout` ({}) must be longer than the sleep of the program",
                    work.timeout
                );
                return Err((message, format!("the program sleeps {sleep}: raise `timeout`")));
            }
            let least = Nanos(sleep.0 * SLEEPS_MIN);
            if plan.visit.measure < least {
                let message = format!("`measure` is shorter than {SLEEPS_MIN} sleeps of {sleep}");
                return Err((message, format!("write measure = \"{least}\" or more")));
            }
            runs_programs(&plan.contenders[index])?;
        }
    }
    Ok(())
}

/// Refuses a contender that would send the program's source, or nothing.
fn runs_programs(contender: &Contender) -> Result<(), (String, String)> {
    /// Setting that lets a server run the programs in /cgi-bin/ of the site.
    const SWITCH: &str = "cgi";
    // Only a command or a server elsewhere knows how it treats its site; their answers are checked before the first
    // visit.
    const THEIR_OWN: [&str; 2] = ["command", "url"];
    let Ok(adapter) = adapters::named(&contender.server) else { return Ok(()) };
    if THEIR_OWN.contains(&adapter.name) {
        return Ok(());
    }
    let Contender { name, server, settings, .. } = contender;
    if !adapter.settings.iter().any(|spec| spec.name == SWITCH) {
        let known = |one: &&&adapters::Adapter| one.settings.iter().any(|spec| spec.name == SWITCH);
        let known: Vec<&str> = adapters::ALL.iter().filter(known).map(|one| one.name).collect();
        let message = format!(
            "contender `{name}` is asked for a program, but {server} cannot run programs here"
        );
        return Err((message, format!("those that do: {}", known.join(", "))));
    }
    match adapter.check(settings).is_ok_and(|values| values.is_on(SWITCH)) {
        true => Ok(()),
        false => Err((
            format!("contender `{name}` is asked for a program, but does not run programs"),
            "write cgi = true in its settings".to_owned(),
        )),
    }
}
