//! Owns the facts of a run as pairs of a label and a text: how it ended, how long it took, on which
//! machine. Must not know layout. Start reading at [`run_facts`].

use record::{CpuLayout, Ending, RunRecord, VisitState, Workload};
use units::Bytes;

use crate::cells::disturbances;
use crate::figures::{counted, grouped, listed, significant};
use crate::wording::plain;

/// Label and text of each fact about the run itself.
pub(crate) fn run_facts(record: &RunRecord) -> Vec<(&'static str, String)> {
    vec![
        ("Workload", workload(record)),
        ("Visits", visits(record)),
        ("Ending", ending(record)),
        ("Started", format!("{}, joust {}", plain(&record.started), plain(&record.joust))),
        ("CPUs", layout(&record.layout)),
        ("Machine", machine(record)),
    ]
}

/// What the contenders were asked to do, in a sentence.
pub(crate) fn workload(record: &RunRecord) -> String {
    plan_workload(&record.plan.cells[0].workload)
}

/// What contenders are asked to do, in a sentence.
pub(crate) fn plan_workload(work: &Workload) -> String {
    let keep_alive = if work.keep_alive { "with keep-alive" } else { "one request a connection" };
    let page = match work.target.as_str() {
        Workload::PAGE => format!("A page of {}", work.page),
        target => format!("{}, a program", plain(target)),
    };
    let generator = match work.client.as_str() {
        Workload::OURS => "the generator".to_owned(),
        other => plain(other),
    };
    let law = work.rate.map_or("closed loop".to_owned(), |rate| format!("open loop at {rate}"));
    format!(
        "{page}, {} {keep_alive}, {} of {generator}, {law}",
        counted(work.connections.into(), "connection"),
        counted(work.threads.into(), "thread"),
    )
}

fn visits(record: &RunRecord) -> String {
    let blocks = record.visits.iter().map(|visit| visit.block).max().map_or(0, |last| last + 1);
    let begun = record.visits.len();
    let contenders = record.plan.contenders.len();
    let measured: usize = (0..contenders).map(|c| record.measured(c).count()).sum();
    let again = disturbances(record);
    let disturbed: usize = again.iter().map(|(_, count)| count).sum();
    let failed = begun.saturating_sub(measured + disturbed);
    let reasons: Vec<String> =
        again.iter().map(|(reason, count)| format!("{reason}: {count}")).collect();
    let again = match disturbed {
        0 => String::new(),
        _ => format!(
            "; {disturbed} made again because the machine was disturbed ({})",
            listed(&reasons)
        ),
    };
    let failed = if failed > 0 { format!(" ({failed} failed)") } else { String::new() };
    format!(
        "{}{failed} in {} over {}; each {}{} warm-up and {} measured{again}",
        counted(begun as u64, "visit"),
        counted(blocks.into(), "block"),
        counted(contenders as u64, "contender"),
        settled(record),
        record.plan.visit.warm_up,
        record.plan.visit.measure,
    )
}

/// What further warm-ups took, where the plan has them.
fn settled(record: &RunRecord) -> String {
    let all = || record.visits.iter().filter_map(|visit| visit.settled);
    let (Some(least), Some(most)) =
        (all().map(|settled| settled.took).min(), all().map(|settled| settled.took).max())
    else {
        return String::new();
    };
    let took = if least == most { most.to_string() } else { format!("{least} to {most}") };
    let unsteady = match all().filter(|settled| !settled.steady).count() {
        0 => "all were".to_owned(),
        number => format!("{number} of {} never were", all().count()),
    };
    format!("loaded for {took} until its rate was steady ({unsteady}), then ")
}

/// How the run ended and how long it took.
pub(crate) fn ending(record: &RunRecord) -> String {
    let blocks = &record.plan.blocks;
    let why = match &record.ending {
        Ending::Narrow => {
            format!("every interval of the primary metric is within {}", blocks.half_width)
        }
        Ending::Blocks => format!("all {} planned blocks were made", grouped(blocks.max.into())),
        Ending::Budget => format!("the budget of {} was used", record.plan.budget),
        Ending::Incomplete { reason } => format!("incomplete: {}", plain(reason)),
    };
    format!("{why}, after {} s", significant(record.seconds))
}

fn layout(layout: &CpuLayout) -> String {
    let cpus = |cpus: &[u32]| match cpus {
        [] => "not pinned".to_owned(),
        cpus => cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(","),
    };
    let shared = if layout.shared { "; server and generator share a CPU" } else { "" };
    format!("server {}, generator {}{shared}", cpus(&layout.server), cpus(&layout.client))
}

/// The machine in one line, from the facts that a reader asks for first.
pub(crate) fn machine(record: &RunRecord) -> String {
    let fact = |name: &str| record.facts.named.get(name).map(|text| plain(text));
    let cpus = fact("cpus").map(|list| match cpu_count(&list) {
        Some(count) => counted(count, "CPU"),
        None => format!("CPUs {list}"),
    });
    let memory = fact("memory").map(|text| memory(&text));
    let kernel = fact("kernel").map(|version| format!("Linux {version}"));
    let parts = [fact("cpu_model"), cpus, memory, kernel, fact("virtualization")];
    let known: Vec<String> = parts.into_iter().flatten().filter(|text| !text.is_empty()).collect();
    if known.is_empty() { "not recorded".to_owned() } else { known.join(", ") }
}

/// How many CPUs a list as the kernel writes it names: "0-3,8" are five. `None` for another text.
fn cpu_count(list: &str) -> Option<u64> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
        (last.checked_sub(first)?).checked_add(1)
    };
    list.split(',').map(range).try_fold(0u64, |sum, count| sum.checked_add(count?))
}

/// "24684092 kB", as /proc/meminfo has it (its kB are KiB), with a unit that suits it; another text
/// as it is.
fn memory(text: &str) -> String {
    let kib = text.strip_suffix(" kB").and_then(|number| number.parse::<u64>().ok());
    let bytes = kib.and_then(|kib| kib.checked_mul(1024));
    bytes.map_or_else(|| text.to_owned(), |bytes| Bytes(bytes).to_string())
}

/// What stands in place of findings where there are none.
pub(crate) fn no_findings(record: &RunRecord) -> &'static str {
    let measured = record.visits.iter().any(|visit| visit.state == VisitState::Measured);
    if measured {
        "None: no check of the doctor saw an artifact."
    } else {
        "None: nothing was measured."
    }
}

/// How to do it again.
pub(crate) fn repeat(record: &RunRecord) -> String {
    let name = plain(&record.plan.name);
    match name.as_str() {
        "quick" => "joust run".to_owned(),
        _ => format!("joust run {name}.toml"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_as_the_kernel_writes_them_are_read_as_a_person_would() {
        let cases = [("0-1", Some(2)), ("0", Some(1)), ("0-3,8", Some(5)), ("two", None)];
        for (list, count) in cases {
            assert_eq!(cpu_count(list), count, "{list}");
        }
        assert_eq!(memory("24684092 kB"), "25.3 GB");
        assert_eq!(memory("much"), "much");
    }
}
