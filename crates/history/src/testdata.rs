//! Owns synthetic runs for tests, with realistic noise between visits, fixed by a seed. Start reading at [`run`].

use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64;
use record::{
    Analysis, Blocks, Cell, Contender, ContenderFacts, CpuLayout, Ending, Facts, Metric, Plan,
    RunRecord, ServerUse, Visit, VisitPlan, Workload,
};
use units::{Bytes, Nanos, Share};

/// Standard deviation of the log of a visit's rate around its block, and of a block around its run, as measured on real
/// servers.
const SD_VISIT: f64 = 0.02;
const SD_BLOCK: f64 = 0.02;

/// Seeded noise.
pub(crate) struct Noise(Pcg64);

impl Noise {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Pcg64::seed_from_u64(seed))
    }

    /// One standard normal value, by Box and Muller.
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.0.random::<f64>()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.0.random::<f64>()).cos()
    }
}

/// A run with these contenders, each at 1000 requests/s, in one cell.
pub(crate) fn run(names: &[&str], blocks: u32, seed: u64) -> RunRecord {
    let faster = vec![1.0; names.len()];
    run_of(names, blocks, seed, &faster)
}

/// The same, with each contender faster by its factor.
pub(crate) fn run_of(names: &[&str], blocks: u32, seed: u64, faster: &[f64]) -> RunRecord {
    let mut noise = Noise::new(seed);
    let mut visits = Vec::new();
    for block in 0..blocks {
        let shared = SD_BLOCK * noise.normal();
        for (contender, faster) in faster.iter().enumerate() {
            let factor = faster * (shared + SD_VISIT * noise.normal()).exp();
            visits.push(visit(block, contender, factor));
        }
    }
    let contender = |name: &&str| Contender {
        name: (*name).to_owned(),
        server: name.split(' ').next().unwrap_or_default().to_owned(),
        ..Contender::default()
    };
    let facts = |name: &&str| ContenderFacts {
        version: format!("{name}/1.0"),
        command: format!("{name} -c /tmp/joust-scratch-s{seed}/{name}-x{seed}/conf"),
        ..ContenderFacts::default()
    };
    RunRecord {
        format: RunRecord::FORMAT.to_owned(),
        joust: "0.1.0".to_owned(),
        started: format!("2026-11-21T{:02}:{:02}:00+01:00", seed / 60 % 24, seed % 60),
        seconds: 84.6,
        ending: Ending::Blocks,
        plan: Plan {
            name: "made up".to_owned(),
            contenders: names.iter().map(contender).collect(),
            cells: vec![Cell::only(Workload::default())],
            blocks: Blocks { min: 3, max: blocks, half_width: Share(0.02) },
            visit: VisitPlan { measure: Nanos::from_secs(1), ..VisitPlan::default() },
            metrics: vec![Metric::Throughput, Metric::ServerCpu],
            margin: Share(0.02),
            seed,
            ..Plan::default()
        },
        facts: Facts {
            named: [("cpu_model", "EPYC"), ("cpus", "0-1"), ("kernel", "6.12")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
        },
        layout: CpuLayout::default(),
        contenders: names.iter().map(facts).collect(),
        skipped: Vec::new(),
        visits,
        findings: Vec::new(),
        verdicts: Vec::new(),
        analysis: Analysis::default(),
        integrity: record::Integrity::default(),
    }
}

fn visit(block: u32, contender: usize, factor: f64) -> Visit {
    Visit {
        contender,
        block,
        position: contender as u32,
        rate_per_s: Some(1000.0 * factor),
        server: Some(ServerUse {
            cpu: Nanos((1e9 / factor) as u64),
            wall: Nanos::from_secs(1),
            requests: 1000,
            memory: Bytes(4_000_000),
            memory_account: record::MemoryAccount::default(),
            processes: 1,
            threads: 1,
            born: 0,
            cpus: 1,
        }),
        ..Visit::default()
    }
}
