//! What a load was, in one line: law, connections, requests, and what differs from plain keep-alive. Owns the words
//! of a plan; must not know what was measured. Start reading at [`shape`].

use crate::figures::{counted, listed};
use crate::wording::plain;
use record::{HttpVersion, LoadPlan, LoadRecord, Pacing, Pick, RequestPlan, Spread};

/// Most stages of a law that are named; of more, only their number is given.
const STAGES_NAMED_MAX: usize = 4;

/// The shape of a load: "open loop: Poisson 5k/s, 64 connections, 1 thread, keep-alive, epoll".
pub(crate) fn shape(record: &LoadRecord) -> String {
    let plan = &record.plan;
    let mut parts = vec![
        law(&plan.pacing),
        counted(record.connections.into(), "connection"),
        counted(record.threads.into(), "thread"),
        reuse(plan),
    ];
    parts.extend(departures(plan));
    if !record.engine.is_empty() {
        parts.push(format!("engine {}", plain(&record.engine)));
    }
    parts.join(", ")
}

/// The law by which requests were due.
pub(crate) fn law(pacing: &Pacing) -> String {
    let open = |law: String| format!("open loop: {law}");
    match pacing {
        Pacing::Closed => "closed loop".to_owned(),
        Pacing::Think { pause, spread } => {
            let spread = match spread {
                Spread::Constant => "each",
                Spread::Exponential => "on average",
            };
            format!("closed loop with pauses of {pause} {spread}")
        }
        Pacing::Ramp { from, to, over } => open(format!("ramp from {from} to {to} over {over}")),
        Pacing::Stages { stages } if stages.len() > STAGES_NAMED_MAX => {
            let (Some(first), Some(last)) = (stages.first(), stages.last()) else { unreachable!() };
            open(format!("{} stages, from {} to {}", stages.len(), first.rate, last.rate))
        }
        Pacing::Stages { stages } => {
            let each: Vec<String> =
                stages.iter().map(|stage| format!("{} for {}", stage.rate, stage.length)).collect();
            open(format!("stages of {}", listed(&each)))
        }
        Pacing::Replay { instants } => {
            open(format!("{} replayed", counted(instants.len() as u64, "instant")))
        }
        other => {
            let (law, rate) = other.rate_law().expect("every other law has one rate");
            open((law.shown)(rate))
        }
    }
}

fn reuse(plan: &LoadPlan) -> String {
    let closes = !plan.keep_alive || plan.requests.iter().all(RequestPlan::asks_to_close);
    match plan.requests_per_connection {
        _ if closes => "one request per connection".to_owned(),
        Some(most) => format!("{} a connection", counted(most, "request")),
        None => "keep-alive".to_owned(),
    }
}

/// What differs from the plainest load.
fn departures(plan: &LoadPlan) -> Vec<String> {
    let pick = match plan.pick {
        Pick::InOrder => "in order",
        Pick::AtRandom => "at random",
    };
    let has_tls = plan.origins.iter().any(|origin| origin.tls_name.is_some());
    let (n_origins, n_sources) = (plan.origins.len(), plan.sources.len());
    let parts = [
        (plan.n_requests > 1).then(|| {
            format!("{} of {} {pick}", counted(plan.n_requests, "request"), plain(&plan.url))
        }),
        (n_origins > 1).then(|| counted(n_origins as u64, "origin")),
        has_tls.then(|| "TLS".to_owned()),
        (plan.version == HttpVersion::Http10).then(|| "HTTP/1.0".to_owned()),
        (plan.pipeline > 1).then(|| format!("pipelines of {}", plan.pipeline)),
        (n_sources > 0).then(|| {
            let plural = if n_sources == 1 { "" } else { "es" };
            format!("from {n_sources} source address{plural}")
        }),
        plan.cookies.then(|| "cookies kept".to_owned()),
        (plan.follow > 0)
            .then(|| format!("up to {} followed", counted(plan.follow.into(), "redirect"))),
        plan.proxy.as_ref().map(|proxy| format!("through the proxy {}", plain(&proxy.host))),
        plan.expect_continue.then(|| "bodies wait for 100 Continue".to_owned()),
        plan.busy_poll.then(|| "spinning".to_owned()),
    ];
    parts.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use record::Stage;
    use units::{Nanos, PerSecond};

    use super::*;
    use crate::testdata;

    #[test]
    fn a_law_is_named_with_its_rate() {
        let (rate, to) = (PerSecond(5000.0), PerSecond(20_000.0));
        let length = Nanos::from_secs(10);
        let pause = Nanos::from_secs(1);
        let stages = vec![Stage { rate, length }, Stage { rate: to, length }];
        let cases = [
            (Pacing::Closed, "closed loop"),
            (
                Pacing::Think { pause, spread: Spread::Exponential },
                "closed loop with pauses of 1s on average",
            ),
            (Pacing::Constant { rate }, "open loop: constant 5000/s"),
            (Pacing::Poisson { rate: to }, "open loop: Poisson 20k/s"),
            (Pacing::Jitter { rate }, "open loop: 5000/s with jitter"),
            (
                Pacing::Ramp { from: rate, to, over: length },
                "open loop: ramp from 5000/s to 20k/s over 10s",
            ),
            (
                Pacing::Stages { stages: stages.clone() },
                "open loop: stages of 5000/s for 10s and 20k/s for 10s",
            ),
            (
                Pacing::Stages { stages: stages.repeat(3) },
                "open loop: 6 stages, from 5000/s to 20k/s",
            ),
            (
                Pacing::Replay { instants: vec![Nanos::ZERO; 1234] },
                "open loop: 1,234 instants replayed",
            ),
        ];
        for (pacing, words) in cases {
            assert_eq!(law(&pacing), words);
        }
    }

    #[test]
    fn what_departs_from_a_plain_load_is_named_and_nothing_else() {
        let mut load = testdata::load();
        let plain = "closed loop, 64 connections, 1 thread, keep-alive, engine epoll";
        assert_eq!(shape(&load), plain);
        let plan = &mut load.plan;
        plan.url = "urls.txt".to_owned();
        (plan.n_requests, plan.pick, plan.pipeline) = (12, Pick::AtRandom, 4);
        plan.origins[0].tls_name = Some("localhost".to_owned());
        plan.origins.push(plan.origins[0].clone());
        plan.version = HttpVersion::Http10;
        plan.requests_per_connection = Some(100);
        plan.sources = vec![[127, 0, 0, 2].into(), [127, 0, 0, 3].into()];
        let expected = "closed loop, 64 connections, 1 thread, 100 requests a connection, 12 \
                        requests of urls.txt at random, 2 origins, TLS, HTTP/1.0, pipelines of 4, \
                        from 2 source addresses, engine epoll";
        assert_eq!(shape(&load), expected);
    }
}
