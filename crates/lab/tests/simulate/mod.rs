//! A simulated machine in virtual time: visits whose noise is that of real ones, resampled. It takes
//! the same course and gets the same verdicts as the real one. Start reading at [`Simulated`].

#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::collections::{BTreeMap, BTreeSet};

use joust_lab::LabError;
use joust_lab::session::{Failure, PlannedVisit, Stage};
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64;
use record::{
    Blocks, Cell, Contender, ContenderFacts, Metric, Plan, ServerUse, Visit, VisitPlan, VisitState,
    Workload,
};
use units::{Bytes, Nanos, Share};

/// Noise of real visits, taken apart: x = server + block + residual, in logarithms.
#[derive(Debug, Clone)]
pub(crate) struct Noise {
    blocks: Vec<f64>,
    residuals: Vec<f64>,
}

#[derive(serde::Deserialize)]
struct Fixture {
    rates_per_s: BTreeMap<String, Vec<f64>>,
}

impl Noise {
    /// Of the recorded visits.
    pub(crate) fn recorded() -> Self {
        let text = include_str!("../fixtures/visit_noise.json");
        let fixture: Fixture = serde_json::from_str(text).expect("the fixture is right");
        let logs: Vec<Vec<f64>> = fixture
            .rates_per_s
            .values()
            .map(|rates| rates.iter().map(|rate| rate.ln()).collect())
            .collect();
        Self::of(&logs)
    }

    /// None at all.
    pub(crate) fn none() -> Self {
        Self { blocks: vec![0.0], residuals: vec![0.0] }
    }

    /// Two-way decomposition of a row a server and a column a block.
    fn of(logs: &[Vec<f64>]) -> Self {
        let (servers, blocks) = (logs.len(), logs[0].len());
        let rows: Vec<f64> = logs.iter().map(|row| mean(row)).collect();
        let columns: Vec<f64> = (0..blocks)
            .map(|block| mean(&logs.iter().map(|row| row[block]).collect::<Vec<_>>()))
            .collect();
        let all = mean(&rows);
        // The estimated means took degrees of freedom with them; without this the noise would be
        // smaller than that of the machine.
        let freedom = (servers * blocks) as f64 / ((servers - 1) * (blocks - 1)) as f64;
        let residual = |server: usize, block: usize| {
            (logs[server][block] - rows[server] - columns[block] + all) * freedom.sqrt()
        };
        Self {
            blocks: columns.iter().map(|column| column - all).collect(),
            residuals: (0..servers)
                .flat_map(|server| (0..blocks).map(move |block| (server, block)))
                .map(|(server, block)| residual(server, block))
                .collect(),
        }
    }

    /// Standard deviation of what differs between two visits of one block.
    pub(crate) fn sd(&self) -> f64 {
        let squares: Vec<f64> = self.residuals.iter().map(|r| r * r).collect();
        mean(&squares).sqrt()
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// A machine whose servers have a known rate.
pub(crate) struct Simulated<'a> {
    noise: &'a Noise,
    random: Pcg64,
    /// True rate of each contender.
    pub(crate) rates_per_s: Vec<f64>,
    /// Effect of the block that is going on, and its number.
    block: Option<(u32, f64)>,
    now: Nanos,
    /// How long a visit takes.
    pub(crate) visit_takes: Nanos,
    /// How long starting a contender alone takes.
    pub(crate) start_takes: Nanos,
    /// What each visit takes longer than the one before it.
    pub(crate) slows_by: Nanos,
    /// How long a contender that never starts is waited for.
    pub(crate) dead_takes: Nanos,
    /// Contenders that never start.
    pub(crate) dead: BTreeSet<usize>,
    /// Contenders that start in discovery and fail in these blocks.
    pub(crate) fails_in: BTreeMap<usize, Vec<u32>>,
    /// Visits, counted from 0, in which the machine is busy with something else.
    pub(crate) disturbed_in: BTreeSet<usize>,
    /// Visits, counted from 0, in which no request is finished.
    pub(crate) silent_in: BTreeSet<usize>,
    /// By what.
    pub(crate) disturbed_by: record::Disturbance,
    /// A cell with noise of its own, and how much: a share of the rate, up and down in turn.
    pub(crate) noisy_cell: Option<(usize, f64)>,
    /// The visit, counted from 0, in which the user interrupts.
    pub(crate) interrupted_in: Option<usize>,
    visits: usize,
}

impl<'a> Simulated<'a> {
    pub(crate) fn new(noise: &'a Noise, seed: u64, rates_per_s: &[f64]) -> Self {
        Self {
            noise,
            random: Pcg64::seed_from_u64(seed),
            rates_per_s: rates_per_s.to_vec(),
            block: None,
            now: Nanos::ZERO,
            visit_takes: Nanos::from_secs(1),
            start_takes: Nanos::ZERO,
            slows_by: Nanos::ZERO,
            dead_takes: Nanos::ZERO,
            dead: BTreeSet::new(),
            fails_in: BTreeMap::new(),
            disturbed_in: BTreeSet::new(),
            silent_in: BTreeSet::new(),
            disturbed_by: record::Disturbance::ForeignCpu {
                share_of_a_core: units::Share(0.5),
                most: None,
            },
            noisy_cell: None,
            interrupted_in: None,
            visits: 0,
        }
    }

    fn draw(&mut self, from: impl Fn(&Noise) -> &Vec<f64>) -> f64 {
        let pool = from(self.noise);
        pool[self.random.random_range(0..pool.len())]
    }

    fn block_effect(&mut self, block: u32) -> f64 {
        match self.block {
            Some((number, effect)) if number == block => effect,
            _ => {
                let effect = self.draw(|noise| &noise.blocks);
                self.block = Some((block, effect));
                effect
            }
        }
    }
}

impl Stage for Simulated<'_> {
    fn now(&mut self) -> Nanos {
        self.now
    }

    fn discover(&mut self, contender: usize) -> Result<Result<ContenderFacts, Failure>, LabError> {
        let is_dead = self.dead.contains(&contender);
        self.now += if is_dead { self.dead_takes } else { self.start_takes };
        Ok(match is_dead {
            true => Err(Failure {
                reason: "it did not start".into(),
                log_tail: "oops".into(),
                answered: false,
            }),
            false => Ok(ContenderFacts { version: "1".into(), ..ContenderFacts::default() }),
        })
    }

    fn visit(&mut self, planned: PlannedVisit) -> Result<Option<Visit>, LabError> {
        if self.interrupted_in == Some(self.visits) {
            return Ok(None);
        }
        self.visits += 1;
        let started = self.now;
        self.now += if self.dead.contains(&planned.contender) {
            self.dead_takes
        } else {
            self.visit_takes + Nanos(self.slows_by.0 * (self.visits as u64 - 1))
        };
        let effect = self.block_effect(planned.block) + self.draw(|noise| &noise.residuals);
        let turn = if self.visits.is_multiple_of(2) { 1.0 } else { -1.0 };
        let own = self.noisy_cell.filter(|(cell, _)| *cell == planned.cell);
        let own = own.map_or(0.0, |(_, share)| turn * share);
        let rate = self.rates_per_s[planned.contender] * effect.exp() * (1.0 + own);
        let fails = self.dead.contains(&planned.contender)
            || self
                .fails_in
                .get(&planned.contender)
                .is_some_and(|in_| in_.contains(&planned.block));
        let mut visit = measured(planned, rate);
        visit.started = started;
        if self.silent_in.contains(&(self.visits - 1)) {
            visit.rate_per_s = Some(0.0);
        }
        if self.disturbed_in.contains(&(self.visits - 1)) {
            let disturbance = Some(self.disturbed_by.clone());
            let around = record::Surroundings { disturbance, ..Default::default() };
            visit.surroundings = Some(Box::new(around));
        }
        if fails {
            visit.state =
                VisitState::Failed { reason: "it died".into(), log_tail: "last words".into() };
        }
        Ok(Some(visit))
    }
}

/// A visit with a rate, and CPU time and memory that go with it.
pub(crate) fn measured(planned: PlannedVisit, rate_per_s: f64) -> Visit {
    let requests = rate_per_s.round() as u64;
    Visit {
        cell: planned.cell,
        contender: planned.contender,
        block: planned.block,
        position: planned.position,
        attempt: planned.attempt,
        started: Nanos::ZERO,
        state: VisitState::Measured,
        ready_after: Nanos::from_millis(5),
        load: None,
        cut: Nanos::ZERO,
        rate_per_s: Some(rate_per_s),
        server: Some(ServerUse {
            cpu: Nanos::from_secs(1),
            wall: Nanos::from_secs(1),
            requests,
            memory: Bytes(10_000_000),
            memory_account: record::MemoryAccount::default(),
            processes: 1,
            threads: 1,
            born: 0,
            cpus: 1,
        }),
        ..Visit::default()
    }
}

/// A plan for contenders of those names.
pub(crate) fn plan(names: &[&str]) -> Plan {
    Plan {
        name: "simulated".into(),
        question: "Which is faster?".into(),
        contenders: names
            .iter()
            .map(|name| Contender {
                name: (*name).into(),
                server: "nginx".into(),
                ..Contender::default()
            })
            .collect(),
        cells: vec![Cell::only(Workload {
            page: Bytes(3361),
            connections: 64,
            keep_alive: true,
            threads: 1,
            timeout: Nanos::from_secs(5),
            ..Workload::default()
        })],
        blocks: Blocks { min: 8, max: 16, half_width: Share(0.02) },
        visit: VisitPlan {
            warm_up: Nanos::from_millis(150),
            measure: Nanos::from_millis(600),
            ..VisitPlan::default()
        },
        metrics: vec![Metric::Throughput, Metric::ServerCpu, Metric::Memory],
        margin: Share(0.02),
        budget: Nanos::from_secs(600),
        seed: 1,
        ..Plan::default()
    }
}
