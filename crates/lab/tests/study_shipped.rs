//! The studies that come with joust: each is right in both forms, their short forms end within the time
//! that `make studies` has, and what was printed is set beside today's in both.

use std::path::{Path, PathBuf};

use doctor::parity;
use joust_lab::adapters::{self, Found, Request};
use joust_lab::study::{self, Form};
use record::{ContenderFacts, Metric, Plan};
use units::Nanos;

/// Longest short form of one study.
const SHORT_MAX: Nanos = Nanos::from_secs(5 * 60);
/// Longest for all of them: reports and the first start of each server come on top, within an hour.
const ALL_SHORT_MAX: Nanos = Nanos::from_secs(55 * 60);
/// What starting and ending a server takes, about, beside its load.
const START: Nanos = Nanos::from_millis(200);

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn shipped(form: Form) -> Vec<Plan> {
    let entries = std::fs::read_dir(root().join("studies")).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| study::read(path, form).unwrap_or_else(|e| panic!("{e}"))).collect()
}

fn named(name: &str, form: Form) -> Plan {
    study::read(&root().join(format!("studies/{name}.toml")), form).unwrap()
}

/// Time of the least number of blocks.
fn least(plan: &Plan) -> Nanos {
    let visit = plan.visit.warm_up + plan.visit.measure + START;
    Nanos(visit.0 * plan.visits_per_block() as u64 * u64::from(plan.blocks.min))
}

#[test]
fn every_study_is_right_and_named_in_the_documentation() {
    let page = std::fs::read_to_string(root().join("docs/studies.md")).unwrap();
    for plan in shipped(Form::Full) {
        assert!(least(&plan) <= plan.budget, "{}: {} is planned", plan.name, least(&plan));
        assert!(page.contains(&format!("`{}`", plan.name)), "{}", plan.name);
    }
}

#[test]
fn short_forms_end_in_time() {
    let plans = shipped(Form::Short);
    assert!(plans.len() >= 11);
    for plan in &plans {
        assert!(plan.budget <= SHORT_MAX, "{}: {}", plan.name, plan.budget);
        assert!(least(plan) <= plan.budget, "{}: {} is planned", plan.name, least(plan));
    }
    let all = Nanos(plans.iter().map(|plan| plan.budget.0).sum());
    assert!(all <= ALL_SHORT_MAX, "{all}");
}

#[test]
fn what_was_printed_stands_in_both_forms() {
    let counts = |form| {
        let figures = |plan: Plan| Some((plan.name.clone(), plan.published?.figures.len()));
        shipped(form).into_iter().filter_map(figures).collect::<Vec<_>>()
    };
    let full = counts(Form::Full);
    let printed = [
        ("apache-or-coyote", 6),
        ("prefork-or-worker", 8),
        ("threaded-lighttpd-cgi", 12),
        ("threaded-lighttpd", 28),
        ("three-sizes", 36),
        ("wyvern-threads", 38),
    ];
    let is = full.iter().map(|(name, count)| (name.as_str(), *count));
    assert!(is.eq(printed), "{full:?}");
    for (name, count) in counts(Form::Short) {
        assert!(count >= 3, "{name}: {count}");
    }
}

#[test]
fn memory_that_was_printed_is_read_with_its_unit() {
    let published = named("threaded-lighttpd", Form::Short).published.unwrap();
    let memory = published.figures.iter().filter(|one| one.metric == Metric::Memory);
    let values: Vec<f64> = memory.map(|one| one.value).collect();
    assert_eq!(values, [32e6, 561e6, 32e6, 561e6]);
}

#[test]
fn a_model_that_serves_one_connection_is_asked_only_where_it_can_serve_all() {
    let plan = named("models", Form::Full);
    let alone = plan.contenders.iter().position(|one| one.name == "iterative").unwrap();
    for cell in 0..plan.cells.len() {
        let work = plan.work(cell, alone);
        let fits = work.connections == 1 || !work.keep_alive;
        assert_eq!(plan.contenders[alone].takes_part(cell), fits, "{}", plan.cells[cell].name);
    }
    assert_eq!(plan.cells.len(), 10);
}

#[test]
fn growth_is_fitted_to_as_many_numbers_of_connections_as_the_law_has_coefficients() {
    for form in [Form::Full, Form::Short] {
        let plan = named("models", form);
        let mut connections: Vec<u32> =
            plan.cells.iter().map(|cell| cell.workload.connections).collect();
        connections.sort_unstable();
        connections.dedup();
        assert!(connections.len() >= 3, "{connections:?}");
        assert_eq!(connections.contains(&1000), form == Form::Full, "{connections:?}");
    }
}

/// The parity tables of its contenders as far as they are known without starting a server.
fn configured(plan: &Plan) -> Vec<ContenderFacts> {
    let found = Found { binary: "/x".into(), version: String::new() };
    let facts = |contender: &record::Contender| {
        let adapter = adapters::named(&contender.server).unwrap();
        let request = Request {
            found: &found,
            dir: Path::new("/d"),
            addr: "127.0.0.1:8080".parse().unwrap(),
            docroot: Path::new("/site"),
            cpus: &[],
            connections: plan.cells[0].workload.connections,
            account: None,
            settings: &contender.settings,
        };
        let parity = (adapter.parity)(&adapter.render(&request).unwrap(), "").into_table();
        ContenderFacts { parity, ..ContenderFacts::default() }
    };
    plan.contenders.iter().map(facts).collect()
}

#[test]
fn what_the_contenders_of_a_study_differ_in_is_declared() {
    for plan in shipped(Form::Full) {
        let facts = configured(&plan);
        for cell in 0..plan.cells.len() {
            let pages = parity::pages_asked(&plan, cell);
            let found = parity::differences(&facts, &plan.declared, &pages);
            assert_eq!(found, [], "{} at {}", plan.name, plan.cells[cell].name);
        }
        assert_eq!(parity::unknowns(&facts, &plan.declared), [], "{}", plan.name);
    }
}

#[test]
fn that_our_server_keeps_files_is_a_finding_where_a_study_does_not_declare_it() {
    for name in ["quick", "event-loops", "capacity"] {
        let plan = named(name, Form::Full);
        let mut declared = plan.declared.clone();
        declared.retain(|one| parity::declared_name(one) != "file_cache");
        let pages = parity::pages_asked(&plan, 0);
        let found = parity::differences(&configured(&plan), &declared, &pages);
        assert_eq!(found.len(), 1, "{name}: {found:?}");
        assert_eq!(found[0].switch, "file_cache");
        let of = |who: &str| {
            let index = plan.contenders.iter().position(|one| one.name == who).unwrap();
            let mut values = found[0].values.iter();
            values.find(|(_, all)| all.contains(&index)).unwrap().0.as_str()
        };
        let ours = "on (content, 1 s); above 64 KiB: on (descriptor, 1 s)";
        assert_eq!(of("joust reactor"), ours, "{name}");
        assert_eq!(of("nginx"), "off", "{name}");
        assert_eq!(of("nginx tuned"), of("lighttpd"), "{name}: both keep the descriptor");
    }
}

#[test]
fn ours_without_its_cache_does_for_a_file_what_nginx_does_as_it_comes() {
    let plan = named("event-loops", Form::Full);
    let pair = |plan: &Plan| {
        let among = ["joust reactor uncached", "nginx"];
        plan.contenders.iter().map(|one| among.contains(&one.name.as_str())).collect::<Vec<_>>()
    };
    let facts = configured(&plan);
    let both: Vec<ContenderFacts> =
        facts.into_iter().zip(pair(&plan)).filter_map(|(one, is)| is.then_some(one)).collect();
    assert_eq!(both.len(), 2);
    let pages = [Some(plan.cells[0].workload.page); 2];
    let switches: Vec<&str> = parity::differences(&both, &[], &pages)
        .iter()
        .map(|difference| difference.switch)
        .collect();
    assert!(switches.is_empty(), "ours begins to use sendfile above 64 KiB: {switches:?}");
}
