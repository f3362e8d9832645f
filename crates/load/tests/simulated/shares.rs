//! Shares of one plan, as agents have them: together they are the load of one machine. Start reading at the first test.

use joust_load::sim::Script;
use joust_load::{MergeInput, merge};
use record::{LoadPlan, LoadRecord, Pacing, Share, Stage};
use stats::Histogram;
use units::{Nanos, PerSecond};

use crate::common::{check, ms, plan, run};

const AGENTS: [u32; 4] = [1, 2, 4, 7];

/// The merged record of so many agents.
fn shared(whole: &LoadPlan, of: u32, script: &Script) -> LoadRecord {
    let input = |index| {
        let plan = LoadPlan { share: Share { index, of }, ..whole.clone() };
        let record = LoadRecord { began_unix_ms: Some(1_000), ..run(&plan, script) };
        MergeInput { name: format!("a-{index}"), record, findings: Vec::new(), acting: Vec::new() }
    };
    merge((0..of).map(input).collect()).unwrap()
}

fn due(record: &LoadRecord) -> Vec<Nanos> {
    let mut due: Vec<Nanos> = record.raw.iter().map(|sample| sample.due).collect();
    due.sort_unstable();
    due
}

#[test]
fn the_instants_of_all_agents_are_those_of_one_machine_to_the_nanosecond() {
    let rate = PerSecond(730.0);
    let stage = |rate| Stage { rate: PerSecond(rate), length: Nanos::from_secs(1) };
    let laws = [
        Pacing::Constant { rate },
        Pacing::Poisson { rate },
        Pacing::Jitter { rate },
        Pacing::Ramp { from: PerSecond(10.0), to: rate, over: Nanos::from_secs(2) },
        Pacing::Stages { stages: vec![stage(100.0), stage(900.0)] },
        Pacing::Replay { instants: (0..500u64).map(|n| ms(n * n % 1_900)).collect() },
    ];
    for mut law in laws {
        if let Pacing::Replay { instants } = &mut law {
            instants.sort_unstable();
        }
        let whole = plan(|options| {
            let draft = &mut options.draft;
            (draft.connections, draft.stop.duration) = (28, Some(Nanos::from_secs(2)));
            draft.pacing = law.clone();
        });
        let script = Script::new(ms(3));
        let alone = run(&whole, &script);
        assert!(alone.requests.started > 400, "{law:?}");
        for of in AGENTS {
            let together = shared(&whole, of, &script);
            check(&together);
            assert_eq!(due(&together), due(&alone), "{of} agents, {law:?}");
            assert_eq!(together.requests, alone.requests, "{of} agents, {law:?}");
            assert_eq!(together.rate_seconds(), alone.rate_seconds(), "{of} agents, {law:?}");
            assert_eq!((together.connections, together.plan.connections), (28, 28));
        }
    }
}

#[test]
fn a_number_of_requests_is_divided_and_their_quantiles_are_those_of_all_samples() {
    let whole = plan(|options| {
        let draft = &mut options.draft;
        (draft.connections, draft.stop.requests) = (21, Some(2_003));
    });
    for of in AGENTS {
        let together = shared(&whole, of, &Script::new(ms(3)));
        assert_eq!((together.requests.started, together.plan.stop.requests), (2_003, Some(2_003)));
        let mut all = Histogram::new();
        together.raw.iter().for_each(|sample| all.record(sample.done - sample.sent));
        for q in [0.5, 0.9, 0.99, 0.999] {
            assert_eq!(together.latencies.service.quantile(q), all.quantile(q), "{of}, {q}");
        }
    }
}
