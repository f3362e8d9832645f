//! Owns the facts of a run as pairs of a label and a text: how it ended, how long it took, on which
//! machine. Must not know layout. Start reading at [`run_facts`].

use record::{Ending, NetworkKind, Plan, RunRecord, Surroundings, UserSkip, VisitState, Workload};
use units::{Bytes, Nanos, Share};

use crate::cell_names;
use crate::cells::disturbances;
use crate::figures::{counted, grouped, listed, significant};
use crate::load_tables;
use crate::wording::{name_of, plain};

/// Label and text of each fact about the run itself.
pub(crate) fn run_facts(record: &RunRecord) -> Vec<(&'static str, String)> {
    let mut facts = vec![
        ("Workload", workload(record)),
        ("Visits", visits(record)),
        ("Ending", ending(record)),
        ("Started", format!("{}, joust {}", plain(&record.started), plain(&record.joust))),
        ("CPUs", layout(record)),
        ("Machine", machine(record)),
    ];
    facts.extend(skips(record).map(|text| ("Skipped", text)));
    facts.extend(bodies(record).map(|text| ("Bodies verified", text)));
    facts.extend(network(record).map(|text| ("Network", text)));
    facts.extend(counters(record).map(|text| ("Counters", text)));
    facts
}

/// Whom the user had skipped; `None` if nobody.
fn skips(record: &RunRecord) -> Option<String> {
    let skip = |skip: UserSkip| {
        let name = name_of(&record.plan.contenders, skip.contender);
        format!("{name}, by the user in block {}", skip.block + 1)
    };
    let all: Vec<String> = record.user_skips().map(skip).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

/// How many bodies were verified under load; `None` if other tools made every load, because they verify none.
fn bodies(record: &RunRecord) -> Option<String> {
    let loads = |contender| record.measured(contender).filter_map(|visit| visit.load.as_ref());
    let contenders =
        || (0..record.plan.contenders.len()).filter(|&one| loads(one).next().is_some());
    contenders().next()?;
    let Some(verified) = load_tables::bodies(contenders().flat_map(loads)) else {
        return Some("none during the load, only before it".to_owned());
    };
    let is_unverified = |&one: &usize| loads(one).all(|load| load.bodies_verified.verified == 0);
    let without: Vec<String> = contenders()
        .filter(is_unverified)
        .map(|one| name_of(&record.plan.contenders, one))
        .collect();
    let without = match &without[..] {
        [] => String::new(),
        names => format!("; none of {}", listed(names)),
    };
    Some(format!("{verified}, compared with what each contender sent before the load{without}"))
}

fn surroundings(record: &RunRecord) -> impl Iterator<Item = &Surroundings> {
    record.visits.iter().filter_map(|visit| visit.surroundings.as_deref())
}

/// Whether the load came from other machines.
fn is_on_a_fleet(record: &RunRecord) -> bool {
    surroundings(record).any(|around| around.network.kind == NetworkKind::Machines)
}

/// The network of the visits; `None` in a file that does not say.
fn network(record: &RunRecord) -> Option<String> {
    let network = &surroundings(record).next()?.network;
    let mtu = network.mtu;
    let text = match network.kind {
        NetworkKind::Veth => format!(
            "server and generator in a network namespace each, joined by a veth pair, MTU {mtu}"
        ),
        NetworkKind::Loopback => {
            let reason = network.reason.as_deref().map(|reason| format!(": {}", plain(reason)));
            format!("loopback, MTU {mtu}{}", reason.unwrap_or_default())
        }
        NetworkKind::Machines => {
            let who = record.facts.named.get("generators");
            let who = who.map(|who| format!(": {}", plain(who))).unwrap_or_default();
            format!("servers on one machine, generators on others{who}")
        }
    };
    let is_mixed = surroundings(record).any(|around| around.network.kind != network.kind);
    Some(if is_mixed { format!("{text}; some visits used another network") } else { text })
}

/// How often the machine's counters were read, and what that cost; `None` in a file without counters.
fn counters(record: &RunRecord) -> Option<String> {
    surroundings(record).next()?;
    let sum = |of: fn(&Surroundings) -> u64| surroundings(record).map(of).sum::<u64>();
    let readings = sum(|around| around.series.at.len() as u64);
    let cost = Nanos(sum(|around| {
        let processes = around.processes.map_or(0, |processes| processes.cost.0);
        around.series.cost.0 + processes
    }));
    let length = sum(|around| around.series.length().0).max(1);
    let share = Share(cost.0 as f64 / length as f64);
    Some(format!(
        "read {} in total, at a cost of {share} of a {} CPU",
        counted(readings, "time"),
        if is_on_a_fleet(record) { "single" } else { "generator" },
    ))
}

/// What the contenders were asked to do, in a sentence.
pub(crate) fn workload(record: &RunRecord) -> String {
    let first = plan_workload(&record.plan, 0);
    let axes = match cell_names::axes(&record.plan) {
        axes if axes.is_empty() => axes,
        axes => format!(", {axes}"),
    };
    match record.plan.cells.len() {
        1 => first,
        n => format!("{n} cells{axes}; the first: {first}"),
    }
}

/// What contenders are asked to do in a cell, in a sentence.
pub(crate) fn plan_workload(plan: &Plan, cell: usize) -> String {
    let work = &plan.cells[cell].workload;
    let keep_alive = if work.keep_alive { "with keep-alive" } else { "without keep-alive" };
    let page = match (work.sleep, work.target.as_str()) {
        (Some(sleep), _) => format!("A program that sleeps {sleep}"),
        (None, Workload::PAGE) => format!("A page of {}", work.page),
        (None, target) => format!("{}, a program", plain(target)),
    };
    let generator = match work.client.as_str() {
        Workload::OURS => "the generator".to_owned(),
        other => plain(other),
    };
    let law = match (&plan.search, work.rate) {
        (Some(search), _) => {
            let goals: Vec<String> = search.goals.iter().map(ToString::to_string).collect();
            format!("open loops, searching for the highest rate that meets {}", listed(&goals))
        }
        (None, Some(rate)) => format!("open loop at {rate}"),
        (None, None) => "closed loop".to_owned(),
    };
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
            "; {disturbed} repeated because the machine was disturbed ({})",
            listed(&reasons)
        ),
    };
    let failed = if failed > 0 { format!(" ({failed} failed)") } else { String::new() };
    format!(
        "{}{failed} in {} over {}; each {}{}{again}",
        counted(begun as u64, "visit"),
        counted(blocks.into(), "block"),
        counted(contenders as u64, "contender"),
        settled(record),
        visit_length(&record.plan),
    )
}

/// What a visit loads its server with.
pub(crate) fn visit_length(plan: &Plan) -> String {
    let visit = plan.visit;
    match &plan.search {
        None => format!("{} warm-up and {} measured", visit.warm_up, visit.measure),
        Some(search) => format!(
            "{} warm-up and a search of at most {} of {}",
            visit.warm_up,
            counted(search.tries_max.into(), "load"),
            visit.load()
        ),
    }
}

/// How long further warm-ups took, if the plan has them.
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
        Ending::Blocks => {
            format!("all {} planned blocks were measured", grouped(blocks.max.into()))
        }
        Ending::Budget => format!("no further block fits the budget of {}", record.plan.budget),
        Ending::Stopped { blocks: made } => format!(
            "the user stopped it after block {} of at most {}",
            grouped((*made).into()),
            grouped(blocks.max.into())
        ),
        Ending::Incomplete { reason } => format!("incomplete: {}", plain(reason)),
    };
    format!("{why}; it took {} s", significant(record.seconds))
}

fn layout(record: &RunRecord) -> String {
    let layout = &record.layout;
    let cpus = |cpus: &[u32]| match cpus {
        [] => "not pinned".to_owned(),
        cpus => cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(","),
    };
    let shared = if layout.shared { "; server and generator share a CPU" } else { "" };
    let other = if is_on_a_fleet(record) { "joust itself" } else { "generator" };
    format!("server {}, {other} {}{shared}", cpus(&layout.server), cpus(&layout.client))
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

/// "24684092 kB", as /proc/meminfo has it (its kB are KiB), with a suitable unit; any other text as it is.
fn memory(text: &str) -> String {
    let kib = text.strip_suffix(" kB").and_then(|number| number.parse::<u64>().ok());
    let bytes = kib.and_then(|kib| kib.checked_mul(1024));
    bytes.map_or_else(|| text.to_owned(), |bytes| Bytes(bytes).to_string())
}

/// The text if there are no findings.
pub(crate) fn no_findings(record: &RunRecord) -> &'static str {
    let measured = record.visits.iter().any(|visit| visit.state == VisitState::Measured);
    if measured {
        "None: no check of the doctor saw an artifact."
    } else {
        "None: nothing was measured."
    }
}

/// How to repeat the run.
pub(crate) fn repeat(record: &RunRecord) -> String {
    let name = plain(&record.plan.name);
    let mut command = match name.as_str() {
        "quick" => "joust run".to_owned(),
        _ => format!("joust run {name}.toml"),
    };
    if is_on_a_fleet(record) {
        command.push_str(" --fleet PLACE --address IPV4");
    }
    command
}

#[cfg(test)]
mod tests {
    use record::{Calm, MachineSeries, Network, Prepared};

    use super::*;

    #[test]
    fn a_run_says_how_many_bodies_it_verified_and_of_whom_none() {
        let mut record = crate::testdata::run_with(2);
        assert_eq!(bodies(&record).as_deref(), Some("none during the load, only before it"));
        for visit in record.visits.iter_mut().filter(|visit| visit.contender == 0) {
            let load = visit.load.as_mut().unwrap();
            load.bodies_verified.verified = load.requests.done;
        }
        let (text, name) = (bodies(&record).unwrap(), name_of(&record.plan.contenders, 1));
        assert!(
            text.contains(", 0 differ, compared with what each contender sent before"),
            "{text}"
        );
        assert!(text.ends_with(&format!("; none of {name}")), "{text}");
        record.visits.iter_mut().for_each(|visit| visit.load = None);
        assert_eq!(bodies(&record), None, "other tools verify none");
    }

    #[test]
    fn which_network_it_was_is_told_with_the_reason_and_what_reading_counters_took() {
        let mut record = crate::testdata::run();
        assert_eq!((network(&record), counters(&record)), (None, None));
        let at = vec![Nanos::ZERO, Nanos::from_secs(1)];
        let series = MachineSeries { at, cost: Nanos::from_millis(3), ..MachineSeries::default() };
        let around = |kind, reason: Option<&str>| Surroundings {
            network: Network {
                kind,
                mtu: 1500,
                reason: reason.map(str::to_owned),
                client_settings: Default::default(),
            },
            prepared: Prepared::default(),
            series: series.clone(),
            processes: None,
            calm: Calm::default(),
            disturbance: None,
        };
        record.visits[0].surroundings = Some(Box::new(around(NetworkKind::Veth, None)));
        assert!(network(&record).unwrap().ends_with("a veth pair, MTU 1500"));
        let told = counters(&record).unwrap();
        assert!(told.starts_with("read 2 times in total, at a cost of 0.3"), "{told}");
        let loopback = around(NetworkKind::Loopback, Some("it needs root"));
        record.visits[1].surroundings = Some(Box::new(loopback));
        assert!(network(&record).unwrap().ends_with("MTU 1500; some visits used another network"));
        record.visits[0].surroundings = None;
        assert_eq!(network(&record).unwrap(), "loopback, MTU 1500: it needs root");
    }

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
