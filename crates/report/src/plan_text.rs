//! A plan before it is run, for a terminal: who, on what, how often, for how long. Owns its layout.
//! Start reading at [`plan_text`].

use record::{Contender, Plan};
use units::Nanos;

use crate::Options;
use crate::figures::{counted, listed};
use crate::run_facts::plan_workload;
use crate::terminal::{Lean, Page, Paint};
use crate::wording::{plain, words};

/// What a plan will do, for a terminal; ends in a newline.
pub fn plan_text(plan: &Plan, options: &Options) -> String {
    let mut page = Page::new(options);
    page.heading(&format!("joust run: {}", plain(&plan.name)), "planned, not run");
    page.paragraph(&plain(&plan.question), Paint::Good);
    page.heading("Contenders", "");
    let columns = [("contender", Lean::Left), ("server", Lean::Left), ("settings", Lean::Left)];
    let rows: Vec<Vec<String>> = plan.contenders.iter().map(contender_row).collect();
    page.table(&columns, &rows);
    if plan.cells.len() > 1 {
        page.heading("Cells", "contenders are compared within each");
        let columns = [("cell", Lean::Left), ("contenders", Lean::Right), ("workload", Lean::Left)];
        let rows: Vec<Vec<String>> =
            (0..plan.cells.len()).map(|cell| cell_row(plan, cell)).collect();
        page.table(&columns, &rows);
    }
    page.heading("Plan", "");
    for line in facts(plan) {
        page.paragraph(&line, Paint::Plain);
    }
    page.finish()
}

fn contender_row(contender: &Contender) -> Vec<String> {
    let settings: Vec<String> =
        contender.settings.iter().map(|(name, value)| plain(&format!("{name}={value}"))).collect();
    vec![plain(&contender.name), plain(&contender.server), settings.join(" ")]
}

fn cell_row(plan: &Plan, index: usize) -> Vec<String> {
    let cell = &plan.cells[index];
    let contenders = plan.in_cell(index).count().to_string();
    vec![plain(&cell.name), contenders, plan_workload(&cell.workload)]
}

fn facts(plan: &Plan) -> Vec<String> {
    let (blocks, visit) = (plan.blocks, plan.visit);
    let metrics: Vec<&str> = plan.metrics.iter().map(|&metric| words(metric).quantity).collect();
    let load = visit.warm_up.saturating_add(visit.measure);
    let visits = plan.visits_per_block() as u64 * u64::from(blocks.min);
    let least = Nanos(load.0.saturating_mul(visits));
    let workload = match plan.cells.as_slice() {
        [only] => plan_workload(&only.workload),
        cells => format!("{}, listed above", counted(cells.len() as u64, "cell")),
    };
    vec![
        format!("Workload: {workload}"),
        format!("Verdicts on: {}; the first is the primary metric", listed(&metrics)),
        format!(
            "Visits: {} a block, each {} warm-up and {} measured; {} to {}",
            plan.visits_per_block(),
            visit.warm_up,
            visit.measure,
            blocks.min,
            counted(blocks.max.into(), "block"),
        ),
        format!(
            "Ends: when every interval of the primary metric is within {} of its estimate, or at \
             the budget of {}",
            blocks.half_width, plan.budget
        ),
        format!(
            "Time: {least} of load alone for the {} of the least number of blocks; starting servers \
             comes on top; {} at most",
            counted(visits, "visit"),
            plan.budget
        ),
        format!("A difference below {} is of no interest; seed {}", plan.margin, plan.seed),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata;

    #[test]
    fn a_plan_names_its_contenders_and_its_time() {
        let text =
            plan_text(&testdata::run_with(3).plan, &Options { width: 200, ..Options::default() });
        for part in ["joust prefork", "workers=1", "12s of load alone", "budget of 85s"] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
    }
}
