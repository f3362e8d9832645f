//! A plan before it is run, for a terminal: who, on what, how often, for how long. Owns its layout.
//! Start reading at [`plan_text`].

use record::{Contender, Plan, Skipped};
use units::Nanos;

use crate::Options;
use crate::figures::{counted, listed};
use crate::run_facts::{plan_workload, visit_length};
use crate::terminal::{Lean, Page, Paint};
use crate::wording::plain;

/// The part of a plan that can be run on this machine.
#[derive(Debug, Clone, Copy)]
pub struct LocalPlan<'a> {
    /// The plan without what is left out; `None`: too little is left to compare.
    pub plan: Option<&'a Plan>,
    /// What is missing, or too old.
    pub left_out: &'a [Skipped],
}

/// What a plan will do, for a terminal; ends in a newline.
pub fn plan_text(plan: &Plan, here: LocalPlan<'_>, options: &Options) -> String {
    let mut page = Page::new(options);
    page.heading(&format!("joust run: {}", plain(&plan.name)), "planned, not run");
    page.paragraph(&plain(&plan.question), Paint::Good);
    let run = here.plan.unwrap_or(plan);
    page.heading("Contenders", "");
    let columns = [("contender", Lean::Left), ("server", Lean::Left), ("settings", Lean::Left)];
    let rows: Vec<Vec<String>> = run.contenders.iter().map(contender_row).collect();
    page.table(&columns, &rows);
    if run.cells.len() > 1 {
        page.heading("Cells", "contenders are compared within each");
        let columns = [("cell", Lean::Left), ("contenders", Lean::Right), ("workload", Lean::Left)];
        let rows: Vec<Vec<String>> = (0..run.cells.len()).map(|cell| cell_row(run, cell)).collect();
        page.table(&columns, &rows);
    }
    page.heading("Plan", "");
    for line in facts(run) {
        page.paragraph(&line, Paint::Plain);
    }
    if let Some(caution) = here.plan.and_then(small_budget) {
        page.paragraph(&caution, Paint::Caution);
    }
    if !here.left_out.is_empty() {
        page.heading("Not on this machine", "left out above");
        for one in here.left_out {
            let how = format!("{}: {}. To include it: {}", one.name, one.reason, one.remedy);
            page.paragraph(&plain(&how), Paint::Caution);
        }
    }
    if here.plan.is_none() {
        page.paragraph(
            "Fewer than two contenders are left: this study cannot run here",
            Paint::Alarm,
        );
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
    vec![plain(&cell.name), contenders, plan_workload(plan, index)]
}

fn facts(plan: &Plan) -> Vec<String> {
    let blocks = plan.blocks;
    let metrics: Vec<&str> = plan.metrics.iter().map(|&metric| metric.info().quantity).collect();
    let visits = plan.visits_per_block() as u64 * u64::from(blocks.min);
    let least = Nanos(plan.load_of_block().0.saturating_mul(blocks.min.into()));
    let load = match plan.search {
        None => format!("{least} of load alone"),
        // How many loads a search makes depends on the server.
        Some(_) => format!("{least} for each load of a search"),
    };
    let workload = match plan.cells.as_slice() {
        [_] => plan_workload(plan, 0),
        cells => format!("{}, listed above", counted(cells.len() as u64, "cell")),
    };
    vec![
        format!("Workload: {workload}"),
        format!("Verdicts on: {}; the first is the primary metric", listed(&metrics)),
        format!(
            "Visits: {} per block, each {}; {} to {}",
            plan.visits_per_block(),
            visit_length(plan),
            blocks.min,
            counted(blocks.max.into(), "block"),
        ),
        format!(
            "Ends: when every interval of the primary metric is within {} of its estimate, or at \
             the budget of {}",
            blocks.half_width, plan.budget
        ),
        format!(
            "Time: {load} for the {} of the minimum number of blocks, plus starting servers; at most {}",
            counted(visits, "visit"),
            plan.budget
        ),
        format!("Margin: {} (smaller differences do not matter); seed {}", plan.margin, plan.seed),
    ]
}

/// What to expect if the loads of the minimum number of blocks alone exceed the budget.
fn small_budget(plan: &Plan) -> Option<String> {
    let block = plan.load_of_block();
    let blocks = plan.budget.0 / block.0.max(1);
    let ends = match blocks {
        _ if blocks >= plan.blocks.min.into() => return None,
        0 => format!("is too short for one block, which is {block} of load"),
        _ => format!(
            "fits at most {} (load alone), and the study requires {}",
            counted(blocks, "block"),
            plan.blocks.min
        ),
    };
    Some(format!("The budget of {} {ends}: raise it, or shorten the visits", plan.budget))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata;

    #[test]
    fn a_plan_names_its_contenders_and_its_time() {
        let plan = testdata::run_with(3).plan;
        let text = plan_text(&plan, LocalPlan { plan: Some(&plan), left_out: &[] }, &wide());
        for part in ["joust prefork", "workers=1", "12s of load alone", "budget of 85s"] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        for part in ["Not on this machine", "cannot run", "The budget"] {
            assert!(!text.contains(part), "{part} is in\n{text}");
        }
    }

    #[test]
    fn a_search_is_no_closed_loop() {
        let mut plan = testdata::run_with(3).plan;
        plan.search = Some(record::SearchPlan {
            goals: record::parse_goals("p99<10ms,errors<0.1%").unwrap(),
            precision: units::Share(0.05),
            tries_max: 20,
        });
        let text = plan_text(&plan, LocalPlan { plan: Some(&plan), left_out: &[] }, &wide());
        for part in
            ["the highest rate that meets p99<10ms and errors<0.1%", "at most 20 loads of 1s"]
        {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        for part in ["closed loop", "measured", "of load alone"] {
            assert!(!text.contains(part), "{part} is in\n{text}");
        }
    }

    #[test]
    fn what_is_not_installed_is_named_with_what_brings_it() {
        let plan = testdata::run_with(3).plan;
        let left_out = [Skipped {
            name: "loop".to_owned(),
            reason: "h2o is not installed".to_owned(),
            remedy: "apt-get install h2o".to_owned(),
        }];
        let told = |here| plan_text(&plan, LocalPlan { plan: here, left_out: &left_out }, &wide());
        let line = "loop: h2o is not installed. To include it: apt-get install h2o";
        assert!(told(Some(&plan)).contains(line));
        assert!(!told(Some(&plan)).contains("cannot run here"));
        assert!(told(None).contains(line) && told(None).contains("cannot run here"));
    }

    #[test]
    fn a_budget_that_is_too_short_by_its_load_alone_is_told() {
        let mut plan = testdata::run_with(3).plan;
        let mut told = |budget| {
            plan.budget = budget;
            plan_text(&plan, LocalPlan { plan: Some(&plan), left_out: &[] }, &wide())
        };
        assert!(!told(Nanos::from_secs(12)).contains("The budget"));
        assert!(
            told(Nanos::from_millis(11_500))
                .contains("fits at most 3 blocks (load alone), and the study requires 4")
        );
        assert!(told(Nanos::from_millis(3_500)).contains("fits at most 1 block (load alone)"));
        assert!(
            told(Nanos::from_millis(2_999)).contains("is too short for one block, which is 3s")
        );
    }

    fn wide() -> Options {
        Options { width: 200, ..Options::default() }
    }
}
