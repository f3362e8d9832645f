//! Owns how many CPU cores were at work while a load ran: what tells work from waiting. Start reading at
//! [`busy_cores`].

use record::{LoadRecord, MachineSeries, ServerAddress, Visit};

/// Cores that generator and server kept busy together. Where the server's processes are not known but run on
/// this machine: those that anything kept busy. `None` where neither is known.
///
/// Below one, there was time in which neither of the two worked. That a CPU worked all the time explains bursts
/// without any fault: the server answers all that wait, and then the generator asks again for all.
pub(crate) fn busy_cores(visit: &Visit, load: &LoadRecord) -> Option<f64> {
    if let Some(server) = visit.server {
        let generator: f64 = load.client.threads.iter().map(record::ThreadUse::busy).sum();
        let wall = server.wall.as_secs_f64();
        return (wall > 0.0).then(|| generator + server.cpu.as_secs_f64() / wall);
    }
    is_local(load).then(|| machine_cores(&visit.surroundings.as_ref()?.series))?
}

/// Whether the server ran on the generator's machine, as far as addresses tell.
pub(crate) fn is_local(load: &LoadRecord) -> bool {
    load.plan.origins.iter().all(|origin| match &origin.place {
        ServerAddress::Inet(address) => address.ip().is_loopback(),
        ServerAddress::Unix(_) => true,
    })
}

/// Cores of the machine that were not idle, on average over all readings.
fn machine_cores(series: &MachineSeries) -> Option<f64> {
    const IDLE: [&str; 2] = ["idle_ticks", "iowait_ticks"];
    const BUSY: [&str; 6] =
        ["user_ticks", "nice_ticks", "system_ticks", "irq_ticks", "softirq_ticks", "steal_ticks"];
    let cpus = series.sources.iter().filter(|source| source.starts_with("cpu."));
    let ticks = |cpu: &str, of: &[&str]| -> i64 {
        of.iter().filter_map(|counter| series.change(&format!("{cpu}.{counter}"))).sum()
    };
    let shares = cpus.filter_map(|cpu| {
        let (busy, idle) = (ticks(cpu, &BUSY).max(0) as f64, ticks(cpu, &IDLE).max(0) as f64);
        (busy + idle > 0.0).then(|| busy / (busy + idle))
    });
    let shares: Vec<f64> = shares.collect();
    (!shares.is_empty()).then(|| shares.iter().sum())
}

#[cfg(test)]
mod tests {
    use record::{Course, Surroundings};

    use super::*;
    use crate::testdata;

    fn machine(counters: &[(&str, i64)]) -> Visit {
        let mut series = MachineSeries::default();
        for (name, step) in counters {
            series.sources.insert(name.rsplit_once('.').unwrap().0.to_owned());
            series.counters.insert((*name).to_owned(), Course { first: 3, steps: vec![*step] });
        }
        let surroundings = Some(Box::new(Surroundings { series, ..Surroundings::default() }));
        Visit { surroundings, ..Visit::default() }
    }

    #[test]
    fn generator_and_server_are_summed_and_else_the_whole_machine() {
        let mut run = testdata::run(&["a"], 1);
        testdata::limit(&mut run, 0, 0.25, 0.5);
        let load = run.visits[0].load.clone().unwrap();
        let both = busy_cores(&run.visits[0], &load).unwrap();
        assert!((both - 0.75).abs() < 1e-6, "{both}");
        let ticks = [("cpu.0.user_ticks", 30), ("cpu.0.idle_ticks", 70), ("cpu.1.system_ticks", 9)];
        let alone = machine(&ticks);
        assert!((busy_cores(&alone, &load).unwrap() - 1.3).abs() < 1e-9);
        let mut elsewhere = load.clone();
        elsewhere.plan.origins[0].place = ServerAddress::Inet(([10, 0, 0, 1], 80).into());
        assert_eq!(busy_cores(&alone, &elsewhere), None);
        assert_eq!(busy_cores(&Visit::default(), &load), None);
    }
}
