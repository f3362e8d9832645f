//! Thousands of worlds, each drawn from a seed: a plan, and a server that does to it whatever servers do.
//! Owns what is drawn. Start reading at the first test. `JOUST_SEED=n cargo test -p joust-load seed` runs
//! one seed.

use std::panic;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use joust_load::LoadOptions;
use joust_load::sim::{self, Act, Connecting, Script, Stall};
use joust_load::source::ListedRequest;
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;
use record::{
    Bodies, ExpectedBody, HttpVersion, LoadPlan, LoadRecord, Outcome, Pacing, Pick, Spread, Stage,
};
use sha2::{Digest as _, Sha256};
use sys::driver::Failure;
use units::{Bytes, Nanos, PerSecond};

use crate::common::{ms, run};

/// Seeds that a run of the tests goes through; `JOUST_SEEDS=n` goes through so many instead.
const SEEDS: u64 = 3000;
/// Of them: those that are run twice.
const REPEATED_ONE_OF: u64 = 16;

/// Zero, as a histogram holds it.
const LATE_MIN: Nanos = Nanos(1);

const BODY_BYTES: [usize; 6] = [0, 1, 100, 5000, 20_000, 100_000];

#[derive(Debug)]
struct Case {
    plan: LoadPlan,
    script: Script,
}

#[test]
fn every_seed_accounts_for_every_request_exactly_once() {
    let seen = Mutex::new(LoadRecord::empty(Case::draw(0).plan));
    for_each_seed(|case| {
        let heard = Arc::new(AtomicU64::new(0));
        let script = Script { heard: Some(heard.clone()), ..case.script.clone() };
        let record = run(&case.plan, &script);
        check_truth(case, &record);
        check_heard(case, &record, heard.load(Ordering::Relaxed));
        let mut seen = seen.lock().unwrap();
        seen.errors.merge(&record.errors);
        seen.requests.ok += record.requests.ok;
        seen.requests.unanswered += record.requests.unanswered;
        seen.requests.drained += record.requests.drained;
        seen.requests.retried += record.requests.retried;
        let sum = seen.open_loop.get_or_insert_default();
        let open_loop = record.open_loop.unwrap_or_default();
        (sum.dropped, sum.left) = (sum.dropped + open_loop.dropped, sum.left + open_loop.left);
    });
    if std::env::var("JOUST_SEED").is_err() {
        check_reach(&seen.into_inner().unwrap());
    }
}

/// Checks the worlds themselves: they differ so much that everything that can happen to a request happens often.
fn check_reach(seen: &LoadRecord) {
    let mut counts: Vec<(Outcome, u64)> = seen.errors.each().collect();
    // No simulated server speaks TLS, is a proxy, or says where a redirect leads.
    let beyond = [
        Outcome::Tls,
        Outcome::TlsTimeout,
        Outcome::Proxy,
        Outcome::TooManyRedirects,
        Outcome::BadRedirect,
    ];
    counts.retain(|(outcome, _)| !beyond.contains(outcome));
    assert!(seen.requests.retried > 1000, "{}", seen.requests.retried);
    counts.push((Outcome::Ok, seen.requests.ok));
    counts.push((Outcome::Unanswered, seen.requests.unanswered));
    assert!(counts.iter().all(|(_, count)| *count > 100), "{counts:?}");
    let open_loop = seen.open_loop.unwrap_or_default();
    assert!(open_loop.dropped > 1000 && open_loop.left > 1000 && seen.requests.drained > 1000);
}

#[test]
fn every_seed_makes_the_same_run_file_twice() {
    let seeds = (0..SEEDS).step_by(REPEATED_ONE_OF as usize);
    for seed in seeds {
        let Case { plan, script } = Case::draw(seed);
        let [first, second] = [(); 2].map(|()| run(&plan, &script).to_json());
        assert!(first == second, "JOUST_SEED={seed} makes two different run files");
    }
}

#[test]
fn another_seed_of_plan_or_world_makes_other_samples() {
    let mut n_chances = 0;
    for seed in (0..SEEDS).step_by(REPEATED_ONE_OF as usize) {
        let Case { plan, script } = Case::draw(seed);
        let one = run(&plan, &script);
        let mut other_plan = plan.clone();
        other_plan.seed += 1;
        let of_other_plan = run(&other_plan, &script);
        let other_script = Script { seed: script.seed + 1, ..script.clone() };
        let of_other_script = run(&plan, &other_script);
        // Whatever is left to chance shows only where enough is drawn.
        if one.raw.len() < 50 {
            continue;
        }
        if matches!(plan.pacing, Pacing::Poisson { .. } | Pacing::Jitter { .. }) {
            n_chances += 1;
            assert_ne!(one.raw, of_other_plan.raw, "JOUST_SEED={seed}");
        }
        let weights = script.acts.iter().map(|(_, weight)| weight);
        if script.acts.len() > 3 && weights.min() > Some(&3) {
            n_chances += 1;
            assert_ne!(one.raw, of_other_script.raw, "JOUST_SEED={seed}");
        }
    }
    assert!(n_chances > 20, "{n_chances}");
}

/// Runs `judge` over every seed, or the one of the environment; names the one that fails.
fn for_each_seed(judge: impl Fn(&Case) + Sync) {
    let judge_one = |seed: u64| {
        let case = Case::draw(seed);
        let judged = panic::catch_unwind(panic::AssertUnwindSafe(|| judge(&case)));
        if let Err(why) = judged {
            let why = why.downcast::<String>().map_or_else(|_| String::new(), |why| *why);
            panic!("JOUST_SEED={seed} fails: {why}\n{case:#?}");
        }
    };
    if let Ok(seed) = std::env::var("JOUST_SEED") {
        return judge_one(seed.parse().expect("JOUST_SEED is a number"));
    }
    let n_seeds = std::env::var("JOUST_SEEDS").map_or(SEEDS, |n| n.parse().expect("a number"));
    std::thread::scope(|scope| {
        for half in 0..2 {
            let judge_one = &judge_one;
            scope.spawn(move || (half..n_seeds).step_by(2).for_each(judge_one));
        }
    });
}

/// What is certain of a record where the server told the truth.
fn check_truth(case: &Case, record: &LoadRecord) {
    let Case { plan, script } = case;
    let errors = &record.errors;
    let does = |is_it: fn(Act) -> bool| script.acts.iter().any(|(act, _)| is_it(*act));
    let all_end = does(|act| !matches!(act, Act::Stop(_)));
    if !does(|act| matches!(act, Act::Status(_))) && !does(lies) {
        assert_eq!(errors.unexpected_status, 0);
    }
    if !does(lies) {
        // Bodies differ by request: a reply that was taken for another request's would show here.
        assert_eq!((errors.wrong_length, errors.protocol), (0, 0));
        if plan.verify.contains.is_none() {
            assert_eq!(errors.wrong_body, 0);
        }
    }
    if script.connects.len() == 1 {
        assert_eq!((errors.connect_refused, errors.connect_failed, errors.fd_exhausted), (0, 0, 0));
    }
    let is_ended_by_count = plan.stop.duration.is_none()
        && !matches!(plan.pacing, Pacing::Replay { .. } | Pacing::Ramp { .. });
    if is_ended_by_count && all_end {
        assert_eq!(Some(record.requests.started), plan.stop.requests);
    }
    if script.client == Nanos::ZERO {
        assert!(record.latencies.late.max().is_none_or(|late| late <= LATE_MIN));
        assert_eq!(record.client.lag_max, Nanos::ZERO);
    }
    if let Pacing::Replay { instants } = &plan.pacing {
        assert!(record.raw.iter().all(|sample| instants.contains(&sample.due)));
    }
}

/// What the servers heard is the client's story too.
fn check_heard(case: &Case, record: &LoadRecord, heard: u64) {
    let (requests, errors) = (&record.requests, &record.errors);
    assert!(heard >= requests.ok);
    let goes_on = |act: Act| {
        use Act::{Chunked, Dribble, Interim, Pause, Reply, SetCookie};
        matches!(act, Reply | Dribble { .. } | Pause { .. } | Interim | Chunked | SetCookie)
    };
    let keeps = case.script.replies_per_connection.is_none();
    let is_calm = keeps && case.script.acts.iter().all(|(act, _)| goes_on(*act));
    let n_lost = errors.timeout_waiting + errors.timeout_reading + requests.unanswered;
    let n_unconnected = errors.connect_refused
        + errors.connect_failed
        + errors.connect_timeout
        + errors.fd_exhausted
        + errors.port_exhausted;
    if is_calm && n_lost == 0 {
        assert_eq!(heard, requests.started - n_unconnected, "each is sent once");
    }
}

/// Whether an act gives a reply, or what follows it, that is not what was asked for.
fn lies(act: Act) -> bool {
    matches!(
        act,
        Act::Longer
            | Act::OtherBytes
            | Act::Surplus
            | Act::Short
            | Act::Garbage
            | Act::InterimFlood(_)
            | Act::Status(204 | 304)
    )
}

impl Case {
    fn draw(seed: u64) -> Self {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let mut plan = plan(&mut random).plan().expect("what is drawn makes a plan");
        if plan.verify.bodies != Bodies::None {
            plan.requests.iter_mut().for_each(|request| {
                let n_bytes = request.target[1..].parse().expect("targets are numbers");
                request.expected = Some(expected(n_bytes));
            });
        }
        Self { script: script(&mut random), plan }
    }
}

fn expected(n_bytes: usize) -> ExpectedBody {
    let digest = Sha256::digest(sim::body(n_bytes));
    let sha256 = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    ExpectedBody { length: Bytes(n_bytes as u64), sha256 }
}

/// Once in so many.
fn one_in(random: &mut Pcg64Mcg, n: u32) -> bool {
    random.random_range(0..n) == 0
}

fn one_of<T: Clone>(random: &mut Pcg64Mcg, choices: &[T]) -> T {
    choices[random.random_range(0..choices.len())].clone()
}

fn plan(random: &mut Pcg64Mcg) -> LoadOptions {
    let mut options = LoadOptions::new("a file of requests");
    let r = random;
    options.asked = requests(r);
    options.draft.pick = one_of(r, &[Pick::InOrder, Pick::AtRandom]);
    let has_bodies = options.asked.iter().any(|asked| !asked.body.is_empty());
    let n_origins = options.asked.iter().filter(|asked| asked.url.contains(":2/")).count();
    options.draft.connections = r.random_range(1..=20);
    options.draft.threads = r.random_range(1..=options.draft.connections.min(3));
    options.draft.keep_alive = !one_in(r, 5);
    options.draft.version = if one_in(r, 8) { HttpVersion::Http10 } else { HttpVersion::Http11 };
    options.draft.expect_continue = has_bodies && one_in(r, 2);
    let may_pipeline = options.draft.keep_alive
        && options.draft.version == HttpVersion::Http11
        && !options.draft.expect_continue
        && n_origins == 0;
    options.draft.pipeline = if may_pipeline && one_in(r, 2) { r.random_range(2..=8) } else { 1 };
    options.draft.requests_per_connection = one_in(r, 4).then(|| r.random_range(1..=10));
    options.draft.cookies = one_in(r, 3);
    options.draft.retry = !one_in(r, 4);
    options.draft.pacing = pacing(r);
    options.draft.stop.requests = one_in(r, 2).then(|| r.random_range(1..=300));
    let must_end = options.draft.stop.requests.is_none();
    options.draft.stop.duration = (must_end || one_in(r, 2)).then(|| ms(r.random_range(20..300)));
    if options.draft.expect_continue && options.draft.stop.duration.is_some() {
        // A second passes before a body is sent unasked.
        options.draft.stop.duration = Some(ms(r.random_range(500..2500)));
    }
    options.draft.timeout = ms(r.random_range(2..60));
    options.draft.drain = ms(r.random_range(0..50));
    options.draft.interval = ms(one_of(r, &[40, 100, 250, 250, 500]));
    options.draft.queue_max = one_of(r, &[1, 3, 20, 1_000_000]);
    options.draft.raw_max = one_of(r, &[20_000, 20_000, 100]);
    options.draft.seed = r.random();
    checks(r, &mut options);
    options
}

fn checks(r: &mut Pcg64Mcg, options: &mut LoadOptions) {
    let verify = &mut options.draft.verify;
    verify.bodies = one_of(
        r,
        &[Bodies::None, Bodies::Length, Bodies::Hash(1.0), Bodies::Hash(0.5), Bodies::Sample],
    );
    if one_in(r, 6) {
        verify.contains = Some("xx".to_owned());
    }
    if one_in(r, 6) {
        verify.headers.push(("content-length".to_owned(), None));
    }
}

fn requests(r: &mut Pcg64Mcg) -> Vec<ListedRequest> {
    let n_requests = r.random_range(1..=4);
    let two_origins = one_in(r, 5);
    let one = |_| {
        let origin = if two_origins { r.random_range(1..=2) } else { 1 };
        let n_bytes = one_of(r, &BODY_BYTES);
        let method = one_of(r, &["GET", "GET", "GET", "HEAD", "POST"]);
        let templated = one_in(r, 3);
        let mut headers = Vec::new();
        if templated {
            headers.push(("X-Number".to_owned(), "{seq}".to_owned()));
        }
        ListedRequest {
            url: format!("http://127.0.0.1:{origin}/{n_bytes}"),
            method: method.to_owned(),
            headers,
            body: if method == "POST" { b"n={seq}&r={rand:1-9999}".to_vec() } else { Vec::new() },
            weight: r.random_range(1..=4),
            at: None,
            templated,
        }
    };
    (0..n_requests).map(one).collect()
}

fn pacing(r: &mut Pcg64Mcg) -> Pacing {
    let rate = PerSecond(10f64.powf(r.random_range(1.0..3.8)));
    let low = PerSecond(rate.0 * r.random_range(0.1..0.9));
    let spread = one_of(r, &[Spread::Constant, Spread::Exponential]);
    let pause = Nanos(r.random_range(0..20_000_000));
    let span = ms(r.random_range(10..300));
    let mut instants: Vec<Nanos> =
        (0..r.random_range(1..300)).map(|_| Nanos(r.random_range(0..300_000_000))).collect();
    instants.sort_unstable();
    match r.random_range(0..10) {
        0 | 1 => Pacing::Closed,
        2 => Pacing::Think { pause, spread },
        3 => Pacing::Constant { rate },
        4 => Pacing::Poisson { rate },
        5 => Pacing::Jitter { rate },
        6 => Pacing::Ramp { from: low, to: rate, over: span },
        7 => Pacing::Ramp { from: rate, to: PerSecond(0.0), over: span },
        8 => {
            let stage = |rate| Stage { rate, length: span };
            Pacing::Stages { stages: vec![stage(low), stage(PerSecond(0.0)), stage(rate)] }
        }
        _ => Pacing::Replay { instants },
    }
}

fn script(r: &mut Pcg64Mcg) -> Script {
    let mut acts = vec![(Act::Reply, r.random_range(1..20))];
    let is_honest = one_in(r, 4);
    for _ in 0..r.random_range(0..=4) {
        let act = act(r);
        if !(is_honest && lies(act)) {
            acts.push((act, r.random_range(1..6)));
        }
    }
    let mut connects = vec![(Connecting::Well, 20)];
    if one_in(r, 3) {
        connects.push((connecting(r), r.random_range(1..5)));
    }
    Script {
        connect: Nanos(r.random_range(0..1_000_000)),
        segment_bytes: one_of(r, &[usize::MAX, 1448, 16_384]),
        connects,
        acts,
        stall: one_in(r, 4)
            .then(|| Stall { at: ms(r.random_range(0..200)), length: ms(r.random_range(1..200)) }),
        client: if one_in(r, 3) { Nanos(r.random_range(0..50_000)) } else { Nanos::ZERO },
        stamps: one_in(r, 4),
        replies_per_connection: one_in(r, 4).then(|| r.random_range(1..40)),
        seed: r.random(),
        ..Script::new(Nanos(r.random_range(1_000..5_000_000)))
    }
}

fn connecting(r: &mut Pcg64Mcg) -> Connecting {
    let choices = [
        Connecting::Fails(Failure::Refused),
        Connecting::Fails(Failure::Reset),
        Connecting::FailsAtOnce(Failure::PortExhausted),
        Connecting::FailsAtOnce(Failure::FdExhausted),
        Connecting::Never,
    ];
    one_of(r, &choices)
}

fn act(r: &mut Pcg64Mcg) -> Act {
    let bytes = one_of(r, &[0, 1, 10, 60, 150, 6000, 50_000]);
    let later = Nanos(r.random_range(0..20_000_000));
    let at_once_or_later = one_of(r, &[Nanos::ZERO, later]);
    let choices = [
        Act::Dribble { bytes: 1 + bytes.max(99), gap: Nanos(later.0 / 100) },
        Act::Pause { bytes, gap: later },
        Act::ReplyThenClose(at_once_or_later),
        Act::HalfClose(at_once_or_later),
        Act::CloseOnNext,
        Act::ReplySayingClose,
        Act::SayCloseGoOn,
        Act::Interim,
        Act::InterimFlood(one_of(r, &[1, 31, 32, 33, 100])),
        Act::Chunked,
        Act::UntilClose,
        Act::Reset(bytes),
        Act::Close(bytes),
        Act::Stop(bytes),
        Act::Status(one_of(r, &[200, 204, 302, 304, 404, 503])),
        Act::SetCookie,
        Act::Longer,
        Act::OtherBytes,
        Act::Surplus,
        Act::Short,
        Act::Garbage,
        Act::FinalAtOnce,
        Act::NoContinue,
        Act::HintsNoContinue,
    ];
    one_of(r, &choices)
}
