//! Owns how a pool of processes or threads is sized to the connections of a load. Must not know whose configuration
//! the numbers go into: Apache and our own models share names and rules, and get the same sizes.
//!
//! The servers' own defaults grow the pool under load, by one, two, then four processes a second: a visit of a second
//! would measure the growth. So every connection has a worker from the start, and the rules for spare workers have
//! nothing to do. If the study sets one of those rules, the rules are its subject: those that it leaves out keep
//! Apache's defaults.

/// The sizes by name, in an order that Apache accepts: a limit before the values it bounds.
pub(super) type Sizes = Vec<(&'static str, u64)>;

/// Sizes of a pool of processes with one connection each (prefork). `given`: what the study sets.
pub(super) fn processes(connections: u32, given: impl Fn(&str) -> Option<u64>) -> Sizes {
    let rules = ["StartServers", "MinSpareServers", "MaxSpareServers"];
    let ruled = rules.iter().any(|name| given(name).is_some());
    let spare_min = given("MinSpareServers").unwrap_or(5);
    let wanted = u64::from(connections) + spare_min;
    let workers = given("MaxRequestWorkers").unwrap_or(wanted.max(256));
    let (start, spare_max) = if ruled { (5, 10) } else { (wanted.min(workers), wanted.max(10)) };
    vec![
        ("ServerLimit", given("ServerLimit").unwrap_or(workers.max(256))),
        ("StartServers", given("StartServers").unwrap_or(start)),
        ("MinSpareServers", spare_min),
        ("MaxSpareServers", given("MaxSpareServers").unwrap_or(spare_max.max(spare_min + 1))),
        ("MaxRequestWorkers", workers),
    ]
}

/// Sizes of a pool of processes with threads (worker, event). `given`: what the study sets.
pub(super) fn threads(connections: u32, given: impl Fn(&str) -> Option<u64>) -> Sizes {
    let rules = ["StartServers", "MinSpareThreads", "MaxSpareThreads"];
    let ruled = rules.iter().any(|name| given(name).is_some());
    let per_child = given("ThreadsPerChild").unwrap_or(25).max(1);
    let spare_min = given("MinSpareThreads").unwrap_or(75);
    let children = |threads: u64| threads.div_ceil(per_child);
    let wanted = children(u64::from(connections) + spare_min);
    let workers = given("MaxRequestWorkers").unwrap_or(wanted.max(children(400)) * per_child);
    let start = if ruled { 3 } else { wanted.min(workers / per_child).max(1) };
    let start = given("StartServers").unwrap_or(start);
    let spare_max = if ruled { 250 } else { (start * per_child).max(250) };
    vec![
        ("ServerLimit", given("ServerLimit").unwrap_or(children(workers).max(16))),
        ("ThreadLimit", given("ThreadLimit").unwrap_or(per_child.max(64))),
        ("ThreadsPerChild", per_child),
        ("StartServers", start),
        ("MinSpareThreads", spare_min),
        (
            "MaxSpareThreads",
            given("MaxSpareThreads").unwrap_or(spare_max.max(spare_min + per_child)),
        ),
        ("MaxRequestWorkers", workers),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(sizes: &Sizes, name: &str) -> u64 {
        sizes.iter().find(|(known, _)| *known == name).unwrap().1
    }

    #[test]
    fn every_connection_finds_a_worker_and_nothing_is_reaped_or_spawned() {
        for connections in [1_u32, 10, 64, 250, 1000] {
            let idle = u64::from(connections);
            let sizes = processes(connections, |_| None);
            let started = of(&sizes, "StartServers");
            assert!(started >= idle + of(&sizes, "MinSpareServers"));
            assert!(started <= of(&sizes, "MaxSpareServers"));
            assert!(started <= of(&sizes, "MaxRequestWorkers"));
            assert!(of(&sizes, "MaxRequestWorkers") <= of(&sizes, "ServerLimit"));
            for per_child in [1, 25, 64, 100, 500] {
                let given = |name: &str| (name == "ThreadsPerChild").then_some(per_child);
                let sizes = threads(connections, given);
                let started = of(&sizes, "StartServers") * per_child;
                let workers = of(&sizes, "MaxRequestWorkers");
                assert!(started >= idle + of(&sizes, "MinSpareThreads"));
                assert!(started <= of(&sizes, "MaxSpareThreads") && started <= workers);
                assert_eq!(workers % per_child, 0);
                assert!(workers <= of(&sizes, "ServerLimit") * per_child);
                assert!(per_child <= of(&sizes, "ThreadLimit"));
            }
        }
    }

    #[test]
    fn a_ceiling_that_was_set_is_not_overrun() {
        let given = |name: &str| (name == "MaxRequestWorkers").then_some(150);
        assert_eq!(of(&threads(1000, given), "StartServers"), 6);
        assert_eq!(of(&processes(1000, given), "StartServers"), 150);
    }

    #[test]
    fn a_study_that_sets_a_spare_rule_gets_apaches_own_defaults_for_the_others() {
        let sizes = processes(64, |name| (name == "MaxSpareServers").then_some(20));
        assert_eq!((of(&sizes, "StartServers"), of(&sizes, "MinSpareServers")), (5, 5));
        let sizes = threads(64, |name| (name == "MinSpareThreads").then_some(25));
        assert_eq!((of(&sizes, "StartServers"), of(&sizes, "MaxSpareThreads")), (3, 250));
    }
}
