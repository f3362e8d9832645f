//! Owns the check that the client had local ports. Start reading at [`look`].
//!
//! A connection that its client closes keeps its port for 60 s (TIME_WAIT). Between two addresses there are as many
//! ports as net.ipv4.ip_local_port_range says, 28,232 by default, so that without keep-alive a client can make some 470
//! connections a second for long, and then none (EADDRNOTAVAIL). The requests that failed so never reached a server.

use record::{Certainty, Question, Severity};

use super::Check;
use crate::transport::{self, Of};
use crate::{Evidence, Observation, counters, words};

/// See the module.
pub(crate) const ITEM: Check = Check {
    name: "local_ports_exhausted",
    severity: Severity::Void,
    question: Question::DidItBreakALimit,
    spares_like_pairs: false,
    title: "the client had no local port left",
    meaning: "requests failed in the client's kernel, and the rate is that of ports which become free",
    remedy: "keep connections alive, use several local addresses (--source), widen \
             net.ipv4.ip_local_port_range, set net.ipv4.tcp_tw_reuse=1, or let the server close",
    detection: "Requests that failed with EADDRNOTAVAIL: each is a count, so one in 1,000 is confirmed",
    example: "sysctl net.ipv4.ip_local_port_range='40000 40100', and `joust load --no-keepalive`",
    source: "https://docs.kernel.org/networking/ip-sysctl.html (ip_local_port_range, tcp_tw_reuse)",
    needs: &[&counters::SOCKSTAT, &counters::NETSTAT],
    look,
};

/// Share of the requests from which the load is another one.
const SHARE_MIN: f64 = 0.001;

fn look(evidence: &Evidence) -> Vec<Observation> {
    evidence.contenders().filter_map(|contender| look_at(evidence, contender)).collect()
}

fn look_at(evidence: &Evidence, contender: usize) -> Option<Observation> {
    let (failed, started) =
        evidence.loads(contender).fold((0, 0), |(failed, started), (_, load)| {
            (failed + load.errors.port_exhausted, started + load.requests.started)
        });
    let share = failed as f64 / started.max(1) as f64;
    if share < SHARE_MIN {
        return None;
    }
    let waiting = transport::highest(evidence, contender, "sockstat.TCP_tw")
        .map_or(String::new(), |most| {
            format!("; up to {} were in TIME_WAIT", words::count(most, "connection"))
        });
    let given_up = transport::moved(evidence, contender, Of::Client, "TcpExt.TCPTimeWaitOverflow");
    let given_up = given_up.filter(|many| *many > 0).map_or(String::new(), |many| {
        format!(", and {} more than the kernel keeps", words::grouped(many))
    });
    let range =
        port_range(evidence, contender).map_or(String::new(), |range| format!("; ports {range}"));
    let evidence = format!(
        "{}: {} of {} ({}) failed because no local port was free{waiting}{given_up}{range}",
        evidence.name(contender),
        words::grouped(failed),
        words::count(started, "request"),
        words::percent(share),
    );
    Some(Observation {
        certainty: Certainty::Confirmed,
        share: Some(share),
        contenders: vec![contender],
        evidence,
    })
}

/// The ports that the client may use, as the kernel writes them: those of its own network, or the machine's.
fn port_range(evidence: &Evidence, contender: usize) -> Option<String> {
    let own = evidence.loads(contender).find_map(|(visit, _)| {
        let settings = &visit.surroundings.as_ref()?.network.client_settings;
        settings.get("net.ipv4.ip_local_port_range").cloned()
    });
    let text = own.or_else(|| evidence.run.facts.named.get("port_range").cloned())?;
    Some(text.split_whitespace().collect::<Vec<_>>().join(" to "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata;

    fn planted(failed: u64) -> Vec<Observation> {
        let mut run = testdata::run(&["a", "b"], 8);
        run.facts.named.insert("port_range".to_owned(), "32768\t60999".to_owned());
        for visit in run.visits.iter_mut().filter(|visit| visit.contender == 1) {
            let load = visit.load.as_mut().unwrap();
            load.errors.port_exhausted = failed;
            load.requests.ok -= failed;
            load.requests.failed += failed;
            testdata::count(visit, &[("client.sockstat.TCP_tw", 28_000)]);
        }
        look(&Evidence::of(&run))
    }

    #[test]
    fn requests_without_a_port_are_confirmed_and_their_share_is_the_dose() {
        for failed in [450, 900] {
            let seen = planted(failed);
            assert_eq!(seen.len(), 1);
            assert_eq!(
                (seen[0].certainty, &seen[0].contenders[..]),
                (Certainty::Confirmed, &[1][..])
            );
            assert!((seen[0].share.unwrap() - failed as f64 / 45_000.0).abs() < 1e-9, "{seen:?}");
        }
        let said = "b: 3,600 of 360,000 requests (1 %) failed because no local port was free; up to \
                    28,000 connections were in TIME_WAIT; ports 32768 to 60999";
        assert_eq!(planted(450)[0].evidence, said);
    }

    #[test]
    fn a_full_table_without_a_failure_and_a_single_failure_are_silent() {
        assert_eq!(planted(0), []);
        assert_eq!(planted(1), []);
    }
}
