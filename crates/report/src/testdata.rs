//! Owns made-up runs for tests and for looking at outputs: realistic in shape, fixed by a seed.
//! Must not use anything of this crate but through its public face: the example includes it too.
//! Start reading at [`run`].

use std::collections::BTreeMap;

use record::{
    Analysis, Attributed, AttributedPart, Attribution, Band, Blocks, BoundCause, ByteCounts, Cause,
    CauseShare, Cell, Certainty, ClientUse, Coefficient, Contender, ContenderFacts, CpuLayout,
    Ending, Estimate, Explanation, Facts, Finding, Interval, Latencies, LatencyMillis, LoadPlan,
    LoadRecord, LoadStop, Metric, Modes, NoiseFloor, NoiseSource, OutlyingVisit, PairVerdict, Plan,
    Published, PublishedFigure, Question, RankedContender, Ranking, RequestCounts, RunRecord,
    Scalability, ServerUse, SettingValue, Settings, Severity, Shift, ShiftPoint, Skipped,
    StallMode, ThreadUse, ToolClaims, ToolRun, Verdict, Visit, VisitPlan, VisitState, Workload,
};
use units::{Bytes, Nanos, Share};

/// Metrics of the made-up study, the primary one first.
pub(crate) const METRICS: [Metric; 5] =
    [Metric::Throughput, Metric::ServerCpu, Metric::P50, Metric::P99, Metric::Memory];

/// Name, requests/s, CPU us/request, median ms, spread of the log of latency, memory in MB.
type Model = (&'static str, f64, f64, f64, f64, f64);

const MODELS: [Model; 8] = [
    ("joust reactor", 84_000.0, 10.4, 0.71, 0.25, 3.1),
    ("joust prefork", 41_500.0, 21.3, 1.48, 0.40, 11.8),
    ("joust worker", 44_800.0, 19.9, 1.36, 0.38, 8.2),
    ("joust pool", 45_100.0, 19.7, 1.35, 0.45, 4.4),
    ("apache event", 36_200.0, 25.1, 1.72, 0.55, 14.9),
    ("apache prefork", 29_400.0, 31.4, 2.05, 0.70, 38.5),
    ("nginx", 79_900.0, 11.9, 0.76, 0.27, 6.3),
    ("lighttpd", 80_600.0, 11.7, 0.75, 0.30, 4.9),
];

/// Blocks of the made-up run.
const BLOCKS: u32 = 8;

/// A fixed sequence of standard normal numbers (Lehmer's generator and Box and Muller's transform).
struct Noise(u64);

impl Noise {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0 * 48_271 % 2_147_483_647;
        self.0 as f64 / 2_147_483_647.0
    }

    fn normal(&mut self) -> f64 {
        let (radius, angle) = ((-2.0 * self.uniform().ln()).sqrt(), self.uniform());
        radius * (std::f64::consts::TAU * angle).cos()
    }
}

/// Eight contenders, eight blocks; the generator is the limit for the three fastest.
pub(crate) fn run() -> RunRecord {
    run_of(&MODELS, BLOCKS)
}

/// The first `contenders` of the models (again under other names from the ninth on).
pub(crate) fn run_with(contenders: usize) -> RunRecord {
    let names = ["nine", "ten", "eleven", "a twelfth contender with quite a long name of its own"];
    let models: Vec<Model> = (0..contenders)
        .map(|index| match MODELS.get(index) {
            Some(model) => *model,
            None => (names[(index - MODELS.len()) % names.len()], 20_000.0, 40.0, 3.0, 0.6, 50.0),
        })
        .collect();
    run_of(&models, 4)
}

/// Three blocks of three contenders, none of which could be measured.
pub(crate) fn all_failed() -> RunRecord {
    let mut record = run_of(&MODELS[..3], 3);
    for visit in &mut record.visits {
        visit.state = VisitState::Failed {
            reason: "the server did not answer within 10s".to_owned(),
            log_tail: "bind: Address already in use\nno listening sockets available".to_owned(),
        };
        (visit.load, visit.rate_per_s, visit.server) = (None, None, None);
    }
    record.verdicts.clear();
    record.findings.clear();
    record.ending = Ending::Incomplete { reason: "every contender failed".to_owned() };
    record
}

/// One load, without failures.
pub(crate) fn load() -> LoadRecord {
    load_of(&MODELS[4], MODELS[4].1, 0.6, &mut Noise(17))
}

fn run_of(models: &[Model], blocks: u32) -> RunRecord {
    let mut noise = Noise(20_26);
    let mut visits = Vec::new();
    for block in 0..blocks {
        let shared = 0.015 * noise.normal();
        for position in 0..models.len() {
            let contender = (position + block as usize * 3) % models.len();
            let at = (block, position as u32, contender);
            visits.push(visit(models, at, shared, &mut noise));
        }
    }
    let plan = plan(models, blocks);
    let verdicts = verdicts(&visits, models.len());
    RunRecord {
        format: RunRecord::FORMAT.to_owned(),
        joust: "0.1.0".to_owned(),
        started: "2026-11-21T11:14:03Z".to_owned(),
        seconds: 84.6,
        ending: Ending::Budget,
        contenders: models.iter().map(contender_facts).collect(),
        plan,
        facts: facts(),
        layout: CpuLayout { server: vec![0], client: vec![1], shared: false },
        skipped: vec![Skipped {
            name: "apache worker".to_owned(),
            reason: "mpm_worker is not installed".to_owned(),
            remedy: "apt-get install apache2-bin".to_owned(),
        }],
        visits,
        findings: findings(models),
        verdicts,
        analysis: Default::default(),
        integrity: Default::default(),
    }
}

/// A run of three cells, in the last of which the third contender takes no part; the first has figures
/// that were printed elsewhere.
pub(crate) fn celled() -> RunRecord {
    let mut run = run_with(3);
    let base = run.plan.cells[0].clone();
    let cell = |name: &str| Cell { name: name.to_owned(), ..base.clone() };
    run.plan.cells = ["connections=1", "connections=10", "connections=100"].map(cell).into();
    run.plan.contenders[2].cells = vec![0, 1];
    let (visits, verdicts) = (run.visits.clone(), run.verdicts.clone());
    for cell in 1..3 {
        let takes_part = |n: usize| run.plan.contenders[n].takes_part(cell);
        let here = visits.iter().filter(|visit| takes_part(visit.contender));
        run.visits.extend(here.map(|visit| Visit { cell, ..visit.clone() }));
        let here = verdicts.iter().filter(|pair| takes_part(pair.a) && takes_part(pair.b));
        run.verdicts.extend(here.map(|pair| PairVerdict { cell, ..pair.clone() }));
    }
    for finding in &mut run.findings {
        finding.cell = Some(1);
    }
    let figure = |contender, value, of: &str| PublishedFigure {
        contender,
        cell: 0,
        metric: Metric::Throughput,
        value,
        of: of.to_owned(),
    };
    run.analysis = analysis();
    // Another tool loaded the first contender in the first cell.
    for visit in run.visits.iter_mut().filter(|one| one.cell == 0 && one.contender == 0) {
        visit.load = None;
        visit.logged = Some(99_000);
        visit.tool = Some(ToolRun {
            tool: "ab".to_owned(),
            version: "2.3".to_owned(),
            claimed: ToolClaims { requests_done: Some(100_000), ..ToolClaims::default() },
            counts_differently: vec!["it counts a changed length as a failure".to_owned()],
            cpu: Nanos::from_millis(600),
            wall: Nanos::from_secs(1),
            ..ToolRun::default()
        });
    }
    run.plan.published = Some(Published {
        source: "A paper of 2005".to_owned(),
        machine: "300 MHz".to_owned(),
        claim: "the second is twice as fast".to_owned(),
        over: None,
        figures: vec![figure(0, 20.5, ""), figure(1, 41.0, "its second version")],
    });
    run
}

/// A run of five contenders in twenty cells of three axes, in each of which the doctor saw the same.
pub(crate) fn grid() -> RunRecord {
    let mut run = run_with(5);
    let base = run.plan.cells[0].clone();
    let mut names = Vec::new();
    for page in ["3KB", "100KB"] {
        for connections in [1, 10, 100, 500, 1000] {
            for client in ["ab", "siege"] {
                names.push(format!("page={page}, connections={connections}, client={client}"));
            }
        }
    }
    let all = 0..names.len();
    run.plan.cells =
        names.into_iter().map(|name| Cell { name, ..base.clone() }).collect::<Vec<_>>();
    let (visits, verdicts) = (run.visits.clone(), run.verdicts.clone());
    let findings = run.findings.clone();
    let visit = |cell| visits.iter().map(move |visit| Visit { cell, ..visit.clone() });
    let verdict = |cell| verdicts.iter().map(move |pair| PairVerdict { cell, ..pair.clone() });
    let finding = |cell| {
        let of = |one: &Finding| Finding { cell: Some(cell), ..one.clone() };
        findings.iter().map(of).collect::<Vec<_>>()
    };
    run.visits = all.clone().flat_map(visit).collect();
    run.verdicts = all.clone().flat_map(verdict).collect();
    run.findings = all.flat_map(finding).collect();
    run
}

fn plan(models: &[Model], blocks: u32) -> Plan {
    let contenders = models.iter().map(|model| Contender {
        name: model.0.to_owned(),
        server: model.0.split(' ').next().unwrap_or_default().to_owned(),
        settings: Settings::from([("workers".to_owned(), SettingValue::Number(1))]),
        ..Contender::default()
    });
    Plan {
        name: "quick".to_owned(),
        question: "Which server answers a small page with the least work?".to_owned(),
        contenders: contenders.collect(),
        cells: vec![Cell::only(Workload {
            page: Bytes(3361),
            connections: 64,
            keep_alive: true,
            threads: 1,
            timeout: Nanos::from_secs(5),
            ..Workload::default()
        })],
        blocks: Blocks { min: 4, max: blocks, half_width: Share(0.02) },
        visit: VisitPlan {
            warm_up: Nanos::from_millis(300),
            measure: Nanos::from_millis(700),
            ..VisitPlan::default()
        },
        metrics: METRICS.to_vec(),
        margin: Share(0.02),
        budget: Nanos::from_secs(85),
        seed: 2026,
        ..Plan::default()
    }
}

fn contender_facts(model: &Model) -> ContenderFacts {
    let server = model.0.split(' ').next().unwrap_or_default();
    let conf = format!("# {}\nlisten 127.0.0.1:40001;\nkeepalive_requests 1000000;\n", model.0);
    ContenderFacts {
        version: format!("{server} 1.26.3"),
        command: format!("/usr/sbin/{server} -c /tmp/joust-run/{server}.conf"),
        files: vec![(format!("{server}.conf"), conf)],
        parity: BTreeMap::from([
            ("access_log".to_owned(), "off".to_owned()),
            ("keep_alive_requests".to_owned(), "unlimited".to_owned()),
            ("backlog".to_owned(), if model.2 > 15.0 { "511" } else { "4096" }.to_owned()),
        ]),
        body_sha256: "9f2feb0f1ef425b292f2f94bdf4b3ff9ab8f5ee5ff9e3cf1ad5ca08ccaf6e3c1".to_owned(),
        head: "HTTP/1.1 200 OK\r\nContent-Length: 3361\r\nContent-Type: text/html\r\n\r\n"
            .to_owned(),
        ..ContenderFacts::default()
    }
}

fn facts() -> Facts {
    let named = [
        ("cpu_model", "AMD EPYC 9R14"),
        ("cpus", "0-1"),
        ("memory", "7969177 kB"),
        ("kernel", "6.12.48"),
        ("os", "Debian GNU/Linux 13 (trixie)"),
        ("clocksource", "kvm-clock"),
        ("virtualization", "kvm"),
        ("somaxconn", "4096"),
    ];
    Facts { named: named.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect() }
}

fn findings(models: &[Model]) -> Vec<Finding> {
    let fast = (0..models.len()).filter(|&index| is_bound(models, index)).collect();
    vec![
        Finding {
            check: "generator_limit".to_owned(),
            severity: Severity::Bound,
            question: Some(Question::WhyNotDouble),
            certainty: Certainty::Confirmed,
            cell: None,
            contenders: fast,
            alike: false,
            among: false,
            evidence:
                "joust reactor: the generator's CPU was busy 97 % of the time, the server's 72 %"
                    .to_owned(),
            meaning: "the server could have done more, so its rate is a lower bound".to_owned(),
            remedy: "give the generator more CPUs (--cpus), or compare CPU time per request"
                .to_owned(),
            ..Finding::default()
        },
        Finding {
            check: "two_clusters".to_owned(),
            severity: Severity::Void,
            question: Some(Question::DoesItReproduce),
            certainty: Certainty::Suspected,
            cell: None,
            contenders: vec![1],
            alike: false,
            among: false,
            evidence: "joust prefork: 3 visits near 40.1k/s and 5 near 43.7k/s, 9 % apart"
                .to_owned(),
            meaning: "something that is drawn at each start decides the speed".to_owned(),
            remedy: "run more blocks and look at the visits one by one".to_owned(),
            ..Finding::default()
        },
    ]
}

/// The made-up generator reaches 85,000 requests/s, and bounds contenders near that rate.
fn is_bound(models: &[Model], index: usize) -> bool {
    models[index].1 > 75_000.0
}

fn visit(models: &[Model], at: (u32, u32, usize), shared: f64, noise: &mut Noise) -> Visit {
    let (block, position, contender) = at;
    let model = &models[contender];
    let factor = (shared + 0.012 * noise.normal()).exp();
    let busy = if is_bound(models, contender) { 0.97 } else { 0.55 };
    let load = load_of(model, model.1 * factor, busy, noise);
    let cpu_us = model.2 / factor * (0.008 * noise.normal()).exp();
    let wall = Nanos::from_millis(700);
    let requests = load.requests.done;
    let order = u64::from(block) * models.len() as u64 + u64::from(position);
    Visit {
        contender,
        block,
        position,
        started: Nanos::from_millis(order * 1200),
        state: VisitState::Measured,
        ready_after: Nanos::from_millis(30),
        rate_per_s: Some(load.rate_per_s),
        load: Some(load),
        cut: Nanos::from_millis(300),
        server: Some(ServerUse {
            cpu: Nanos((cpu_us * requests as f64 * 1e3) as u64),
            wall,
            requests,
            memory: Bytes((model.5 * 1e6 * (0.01 * noise.normal()).exp()) as u64),
            memory_account: record::MemoryAccount::default(),
            processes: 2,
            threads: 2,
            born: 0,
            cpus: 1,
        }),
        ..Visit::default()
    }
}

fn load_of(model: &Model, rate_per_s: f64, busy: f64, noise: &mut Noise) -> LoadRecord {
    let mut interval = Interval::new(Nanos::from_millis(300), Nanos::from_millis(700));
    let done = (rate_per_s * 0.7) as u64;
    for _ in 0..1500 {
        let tail = if noise.uniform() < 0.004 { 6.0 } else { 1.0 };
        let millis = model.3 * (model.4 * noise.normal()).exp() * tail;
        interval.service.record(Nanos((millis * 1e6) as u64));
    }
    interval.response = interval.service.clone();
    (interval.started, interval.ok) = (done, done);
    interval.bytes_read = done * 3_600;
    let latencies = Latencies {
        service: interval.service.clone(),
        response: interval.response.clone(),
        first_byte: interval.service.clone(),
        ..Latencies::default()
    };
    let wall = Nanos::from_millis(700);
    LoadRecord {
        engine: "epoll".to_owned(),
        seconds: 0.7,
        requests: RequestCounts {
            started: done,
            done,
            ok: done,
            drained: 64,
            ..Default::default()
        },
        status: BTreeMap::from([(200, done)]),
        bytes: ByteCounts { read: done * 3_600, body: done * 3_361, written: done * 60 },
        rate_per_s,
        cpu_us_per_request: Some(busy * 1e6 / rate_per_s),
        connects: 64,
        connect_ms: LatencyMillis::from(&latencies.connect),
        first_byte_ms: LatencyMillis::from(&latencies.first_byte),
        service_ms: LatencyMillis::from(&latencies.service),
        response_ms: LatencyMillis::from(&latencies.response),
        client: ClientUse {
            threads: vec![ThreadUse { cpu: Nanos((7e8 * busy) as u64), wall, pinned_to: Some(1) }],
            lag_max: Nanos::from_micros(180),
            connections_open_max: 64,
        },
        latencies,
        intervals: vec![interval],
        ..LoadRecord::empty(load_plan())
    }
}

fn load_plan() -> LoadPlan {
    LoadPlan {
        connections: 64,
        cpus: vec![1],
        stop: LoadStop { requests: None, duration: Some(Nanos::from_secs(1)) },
        timeout: Nanos::from_secs(5),
        raw_max: 0,
        ..LoadPlan::get(([127, 0, 0, 1], 40_001).into(), "/index.html")
    }
}

fn verdicts(visits: &[Visit], contenders: usize) -> Vec<PairVerdict> {
    let mut verdicts = Vec::new();
    for metric in METRICS {
        for a in 0..contenders {
            verdicts.extend(((a + 1)..contenders).map(|b| pair(visits, metric, a, b)));
        }
    }
    verdicts
}

/// Student's interval on the log ratio over blocks, with t of 7 degrees for all: this is test data.
fn pair(visits: &[Visit], metric: Metric, a: usize, b: usize) -> PairVerdict {
    let of = |contender: usize| {
        let own = visits.iter().filter(move |visit| visit.contender == contender);
        own.filter_map(move |visit| Some((visit.block, visit.value(metric)?)))
    };
    let logs: Vec<f64> = of(a)
        .filter_map(|(block, x)| Some((x / of(b).find(|(other, _)| *other == block)?.1).ln()))
        .collect();
    let n = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / n;
    let sd_ln = (logs.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
    let half = 2.365 * sd_ln / n.sqrt();
    let (ratio, low, high) = (mean.exp(), (mean - half).exp(), (mean + half).exp());
    let blocks = logs.len() as u32;
    let estimate = Estimate { ratio, low, high, blocks, sd_ln, p_holm: 0.001 };
    let bound = |ratio| Verdict::AtLeast { ratio, cause: BoundCause::Ceiling };
    let fast = |index: usize| MODELS.get(index).is_some_and(|model| model.1 > 75_000.0);
    let margin = Share(0.02);
    let (a, b, estimate, verdict) = match (metric, fast(a), fast(b)) {
        (Metric::Throughput, true, true) => {
            let reason =
                "the generator was the limit for both; compare CPU time per request".to_owned();
            (a, b, estimate, Verdict::Withheld { reason })
        }
        (Metric::P50 | Metric::P99, fast_a, fast_b) if fast_a || fast_b => {
            let limited = MODELS[if fast_a { a } else { b }].0;
            let reason = format!(
                "the generator was the limit for {limited}, so its latency holds the generator's \
                 own queue; compare CPU time per request, or use fewer connections"
            );
            (a, b, estimate, Verdict::Withheld { reason })
        }
        (Metric::Throughput, true, false) => (a, b, estimate, bound(low)),
        (Metric::Throughput, false, true) => {
            let turned =
                Estimate { ratio: 1.0 / ratio, low: 1.0 / high, high: 1.0 / low, ..estimate };
            (b, a, turned, bound(turned.low))
        }
        _ if low > 1.0 || high < 1.0 => (a, b, estimate, Verdict::Ratio { ratio, low, high }),
        _ if low > 0.98 && high < 1.02 => (a, b, estimate, Verdict::NoDifference { margin }),
        _ => (a, b, estimate, Verdict::Undecided { more_blocks: Some(14), margin }),
    };
    PairVerdict { cell: 0, metric, a, b, estimate: Some(estimate), verdict, short_of: None }
}

/// Why two contenders of [`celled`] differ.
fn attribution() -> Attribution {
    let cause = |cause, a_ms, b_ms, share: f64| AttributedPart {
        cause,
        a_ms,
        b_ms,
        ln: -0.693 * share,
        share,
        interval: Some(Band { low: share - 0.04, high: share + 0.04 }),
    };
    Attribution {
        cell: 1,
        a: 0,
        b: 1,
        blocks: 12,
        of: Attributed::Throughput,
        ln: -0.693,
        parts: vec![
            cause(Cause::DelayedAck, 0.5, 0.0, 0.496),
            cause(Cause::ServiceTime, 1.5, 1.0, 0.504),
        ],
    }
}

/// The analysis beside the verdicts of [`celled`].
fn analysis() -> Analysis {
    let band = Band { low: 0.9, high: 1.1 };
    let place = |contender, letters: &str| RankedContender {
        contender,
        to_first: 1.0 - 0.1 * contender as f64,
        letters: letters.to_owned(),
        best: Share(0.5),
    };
    let point = |q| ShiftPoint { q, a_ms: 1.0, b_ms: 2.0, difference_ms: band, ratio: band };
    let stall = StallMode { from: Nanos::from_millis(40), share: Share(0.01), mean_ms: 41.5 };
    let modes = |stalls: Vec<StallMode>| Modes { mean_ms: 1.4, main_ms: 1.0, stalls };
    let part = CauseShare { difference_ms: 0.4, ln: 0.34, interval: Some(band) };
    let coefficient = |value| Coefficient { value, interval: Some(band) };
    Analysis {
        rankings: vec![Ranking {
            cell: 1,
            metric: METRICS[0],
            blocks: 12,
            places: vec![place(0, "a"), place(1, "ab")],
            overlapping: true,
            unranked: vec![2],
        }],
        shifts: vec![Shift {
            cell: 1,
            a: 0,
            b: 1,
            blocks: 12,
            points: vec![point(0.5), point(0.99)],
        }],
        explanations: vec![Explanation {
            cell: 1,
            a: 0,
            b: 1,
            blocks: 12,
            of_a: modes(vec![stall]),
            of_b: modes(Vec::new()),
            service: part,
            stalls: part,
            stall_share: Some(0.83),
        }],
        attributions: vec![attribution()],
        scalability: vec![Scalability {
            contender: 0,
            cells: vec![0, 1, 2],
            connections: vec![1, 10, 100],
            lambda: coefficient(10_000.0),
            sigma: coefficient(0.02),
            kappa: coefficient(0.000_1),
            peak: Some(98.0),
            misfit_ln: 0.05,
        }],
        noise_floors: vec![NoiseFloor {
            cell: 1,
            metric: METRICS[0],
            source: NoiseSource::Visits,
            blocks: 12,
            sd_ln: 0.012,
            smallest: Share(0.017),
        }],
        outliers: vec![OutlyingVisit {
            cell: 1,
            metric: METRICS[0],
            contender: 0,
            block: 6,
            value: 204.0,
            usual: 10_240.0,
            off: 0.02,
        }],
    }
}
