//! Records how much real visits of this machine vary, for the simulated sessions of the tests:
//! `cargo run --release -p joust-lab --example record_noise -- BLOCKS > tests/fixtures/visit_noise.json`
//! Three real servers, blocks in random order, visits as in the quick study, until `BLOCKS` blocks
//! were quiet: those in which other programs took more than a twentieth of one CPU are left out,
//! because the noise of a compiler next door says nothing of the machine.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example is a program")]

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use joust_lab::runner::{RunOptions, run};
use joust_lab::session::{PlannedVisit, Watch};
use joust_lab::study;
use record::{Metric, Progress, RunRecord, Visit};
use units::{Nanos, Share};

const SERVERS: [&str; 3] = ["apache event", "lighttpd", "nginx"];

/// CPU time of others, as a share of one CPU, above which a block is left out; a second argument
/// replaces it on a machine that is never quiet (then run it with `nice -n -20`).
const FOREIGN_MAX: f64 = 0.05;

/// Watches the run, and what everybody else does meanwhile.
struct Neighbours<'a> {
    begun: (Instant, Ticks),
    quiet: Vec<u32>,
    wanted: usize,
    enough: &'a AtomicBool,
    foreign_max: f64,
}

/// CPU time in ticks: of the whole machine, and of this process with its ended children.
#[derive(Clone, Copy)]
struct Ticks {
    all: f64,
    own: f64,
}

impl Ticks {
    fn now() -> Self {
        let numbers = |text: String, skip: usize, take: usize| -> Vec<f64> {
            let words = text.split_whitespace().skip(skip).take(take);
            words.map(|word| word.parse().expect("a number of ticks")).collect()
        };
        let read = |path| std::fs::read_to_string(path).expect("proc(5) is there");
        // user nice system idle iowait irq softirq steal.
        let cpu = numbers(read("/proc/stat"), 1, 8);
        // Fields 14 to 17: utime, stime, cutime, cstime.
        let own = numbers(read("/proc/self/stat"), 13, 4);
        Self { all: cpu.iter().sum::<f64>() - cpu[3] - cpu[4], own: own.iter().sum() }
    }
}

impl Watch for Neighbours<'_> {
    fn visit_begins(&mut self, planned: PlannedVisit, _: Progress) {
        if planned.position == 0 {
            wait_for_quiet(self.foreign_max);
            self.begun = (std::time::Instant::now(), Ticks::now());
        }
    }

    fn visit_ends(&mut self, visit: &Visit, _: Progress) {
        if visit.position as usize != SERVERS.len() - 1 {
            return;
        }
        let (then, before) = self.begun;
        let now = Ticks::now();
        let foreign = (now.all - before.all - (now.own - before.own)) / 100.0;
        let share = foreign / then.elapsed().as_secs_f64();
        if share <= self.foreign_max {
            self.quiet.push(visit.block);
        }
        eprintln!("block {}: others {share:.2} CPUs; {} quiet", visit.block, self.quiet.len());
        self.enough.store(self.quiet.len() >= self.wanted, Ordering::Relaxed);
    }

    fn message(&mut self, text: &str) {
        eprintln!("{text}");
    }
}

/// Returns after a second in which the machine did next to nothing.
fn wait_for_quiet(foreign_max: f64) {
    loop {
        let before = Ticks::now();
        std::thread::sleep(Duration::from_secs(1));
        if (Ticks::now().all - before.all) / 100.0 <= foreign_max {
            return;
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let blocks: u32 = std::env::args().nth(1).ok_or("how many blocks?")?.parse()?;
    let foreign_max = std::env::args().nth(2).map_or(Ok(FOREIGN_MAX), |typed| typed.parse())?;
    let mut plan = study::quick();
    plan.contenders.retain(|contender| SERVERS.contains(&contender.name.as_str()));
    plan.metrics = vec![Metric::Throughput];
    plan.blocks = record::Blocks { min: 2, max: 100 * blocks, half_width: Share(1e-9) };
    plan.budget = Nanos::from_secs(3 * 3600);
    let options = RunOptions {
        joust_binary: "none".into(),
        joust_version: "fixture".into(),
        ..RunOptions::default()
    };
    let enough = AtomicBool::new(false);
    let begun = (Instant::now(), Ticks::now());
    let mut watch = Neighbours {
        begun,
        quiet: Vec::new(),
        wanted: blocks as usize,
        enough: &enough,
        foreign_max,
    };
    let record = run(plan, &options, &mut watch, &enough)?;
    println!("{}", serde_json::to_string_pretty(&fixture(&record, &watch))?);
    Ok(())
}

fn fixture(record: &RunRecord, watch: &Neighbours<'_>) -> serde_json::Value {
    let mut rates: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (index, contender) in record.plan.contenders.iter().enumerate() {
        let mut visits: Vec<_> =
            record.measured(index).filter(|visit| watch.quiet.contains(&visit.block)).collect();
        visits.sort_by_key(|visit| visit.block);
        let rate = visits.iter().filter_map(|visit| visit.rate_per_s);
        rates.insert(&contender.name, rate.map(|rate| rate.round()).collect());
    }
    serde_json::json!({
        "made": format!(
            "example record_noise of joust-lab, {}, kernel {}, {}, CPUs {}, load average before {}; \
             rates in requests/s, one a block; of {} blocks the {} in which others took at most \
             {} of a CPU",
            record.started,
            record.facts.named.get("kernel").map_or("?", String::as_str),
            record.facts.named.get("cpu_model").map_or("?", String::as_str),
            record.facts.named.get("cpus").map_or("?", String::as_str),
            record.facts.named.get("load_average").map_or("?", String::as_str),
            record.visits.last().map_or(0, |visit| visit.block + 1),
            watch.quiet.len(),
            watch.foreign_max,
        ),
        "warm_up_ms": record.plan.visit.warm_up.as_millis_f64(),
        "measure_ms": record.plan.visit.measure.as_millis_f64(),
        "rates_per_s": rates,
    })
}
