//! A load while it runs, as OpenMetrics text: for Prometheus and Grafana. What it keeps is that of the live screen.
//! Start reading at [`LiveMetrics::text`].

use record::{Interval, LoadPlan};
use units::Nanos;

use crate::live::model::{Live, QUANTILES};
use crate::live::{AgentFigures, AgentState};
use crate::open_metrics::{Family, Kind, Label, labels, text};
use crate::outcome_words::outcome_words;

/// A load so far.
pub struct LiveMetrics {
    live: Live,
}

impl LiveMetrics {
    /// A load that has not begun.
    pub fn new(plan: &LoadPlan) -> Self {
        Self { live: Live::new(plan) }
    }

    /// Takes in the interval that follows on the last one.
    pub fn add(&mut self, interval: &Interval) {
        self.live.add(interval);
    }

    /// Takes in how the agents of a fleet stand, all of them.
    pub fn set_agents(&mut self, agents: &[AgentFigures]) {
        self.live.set_agents(agents);
    }

    /// The text, ending in `# EOF`. Counts are of the load so far; rate and lateness are of its last second.
    pub fn text(&self) -> String {
        let mut families = self.of_load();
        if !self.live.agents().is_empty() {
            families.extend(of_agents(self.live.agents()));
        }
        text(&families)
    }

    fn of_load(&self) -> Vec<Family> {
        let live = &self.live;
        let alone = |value: f64| vec![(String::new(), value)];
        let ended = [("ok", live.ok()), ("failed", live.whole_load().failed)];
        let ended = ended.map(|(outcome, count)| (labels(&[("outcome", outcome)]), count as f64));
        let failed = live.errors().each().filter(|(_, count)| *count > 0);
        let failed = failed
            .map(|(kind, count)| (labels(&[("outcome", outcome_words(kind))]), count as f64))
            .collect();
        let quantiles = QUANTILES.iter().filter_map(|q| {
            let value = live.response().quantile(*q)?.as_secs_f64();
            Some((labels(&[("quantile", &q.to_string())]), value))
        });
        let longest = live.response().max().map(|max| (String::new(), max.as_secs_f64()));
        vec![
            gauge("joust_elapsed", "seconds", "time since the load began", {
                alone(live.elapsed().as_secs_f64())
            }),
            gauge(
                "joust_rate",
                "requests_per_second",
                "requests that ended well in the last second",
                alone(live.last_second().rate_per_s()),
            ),
            counter("joust_requests_started", "requests started", alone(live.started() as f64)),
            counter("joust_requests", "requests that ended, by outcome", ended.into()),
            counter("joust_requests_failed", "requests that failed, by cause", failed),
            Family {
                kind: Kind::Summary,
                ..gauge("joust_response", "seconds", "response time so far", quantiles.collect())
            },
            gauge("joust_response_max", "seconds", "longest response time so far", {
                longest.into_iter().collect()
            }),
        ]
    }
}

fn of_agents(agents: &[AgentFigures]) -> Vec<Family> {
    let each = |value: fn(&AgentFigures) -> Option<f64>| {
        let sample = |agent: &AgentFigures| Some((named(agent, &[]), value(agent)?));
        agents.iter().filter_map(sample).collect::<Vec<_>>()
    };
    let heard = agents.iter().filter(|agent| agent.state.is_heard()).count();
    let states = agents.iter().map(|agent| (named(agent, &[("state", agent.state.word())]), 1.0));
    let lost = agents.iter().filter(|agent| agent.state >= AgentState::Failed).count();
    let alone = |count: usize| vec![(String::new(), count as f64)];
    vec![
        gauge("joust_agents_expected", "", "agents that have a share", alone(agents.len())),
        gauge("joust_agents_heard", "", "agents that were heard a short time ago", alone(heard)),
        gauge("joust_agents_failed", "", "agents that failed or are lost", alone(lost)),
        gauge("joust_agent_state", "", "where an agent is, by its label", states.collect()),
        gauge(
            "joust_agent_rate",
            "requests_per_second",
            "requests that ended well in an agent's last window",
            each(|agent| agent.rate_per_s),
        ),
        gauge(
            "joust_agent_lateness",
            "seconds",
            "how late requests were sent in an agent's last window, on average",
            each(|agent| agent.lateness.map(Nanos::as_secs_f64)),
        ),
        gauge("joust_agent_clock_error", "seconds", "largest error of an agent's clock", {
            each(|agent| agent.clock_error.map(Nanos::as_secs_f64))
        }),
    ]
}

/// Labels of an agent, with others.
fn named(agent: &AgentFigures, others: &[Label<'_>]) -> String {
    let share = format!("{}/{}", agent.share.index + 1, agent.share.of);
    let own = [("agent", agent.name.as_str()), ("share", &share)];
    labels(&[&own, others].concat())
}

fn gauge(name: &str, unit: &'static str, help: &str, samples: Vec<(String, f64)>) -> Family {
    let name = if unit.is_empty() { name.to_owned() } else { format!("{name}_{unit}") };
    Family { kind: Kind::Gauge, name, unit, help: help.to_owned(), samples }
}

fn counter(name: &str, help: &str, samples: Vec<(String, f64)>) -> Family {
    let (name, help) = (name.to_owned(), help.to_owned());
    Family { kind: Kind::Counter, name, unit: "", help, samples }
}

#[cfg(test)]
mod tests {
    use record::Share;

    use super::*;
    use crate::testdata;

    fn agent(index: u32, state: AgentState) -> AgentFigures {
        AgentFigures {
            name: format!("a{}", index + 1),
            share: Share { index, of: 2 },
            state,
            rate_per_s: Some(50.0),
            lateness: Some(Nanos::from_micros(120)),
            clock_error: None,
        }
    }

    #[test]
    fn a_load_and_its_agents_are_samples() {
        let mut metrics = LiveMetrics::new(&testdata::load().plan);
        let mut interval = Interval::new(Nanos::ZERO, Nanos::from_secs(1));
        (interval.started, interval.ok, interval.errors.protocol) = (1_234_570, 1_234_567, 3);
        (0..1_000).for_each(|_| interval.response.record(Nanos::from_millis(2)));
        metrics.add(&interval);
        metrics.set_agents(&[agent(0, AgentState::Running), agent(1, AgentState::Lost)]);
        let text = metrics.text();
        for line in [
            "# TYPE joust_requests counter",
            "joust_requests_started_total 1234570",
            "joust_requests_total{outcome=\"ok\"} 1234567",
            "joust_requests_total{outcome=\"failed\"} 3",
            "# TYPE joust_response_seconds summary",
            "# UNIT joust_response_seconds seconds",
            "joust_agents_expected 2",
            "joust_agents_heard 1",
            "joust_agent_state{agent=\"a2\",share=\"2/2\",state=\"lost\"} 1",
            "joust_agent_lateness_seconds{agent=\"a1\",share=\"1/2\"} 0.00012",
        ] {
            assert!(text.lines().any(|one| one == line), "no `{line}` in\n{text}");
        }
        assert!(text.ends_with("# EOF\n") && !text.contains("joust_agent_clock_error_seconds{"));
        let quantile = text.lines().find(|line| line.contains("quantile=\"0.99\"")).unwrap();
        let value: f64 = quantile.rsplit(' ').next().unwrap().parse().unwrap();
        assert!((value - 0.002).abs() < 0.0001, "{quantile}");
    }

    #[test]
    fn a_load_of_one_machine_has_no_agents() {
        let text = LiveMetrics::new(&testdata::load().plan).text();
        assert!(
            !text.contains("agent") && text.contains("joust_requests_started_total 0"),
            "{text}"
        );
    }
}
