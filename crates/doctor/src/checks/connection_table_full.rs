//! Owns the check that the kernel had room for all connections. Start reading at [`look`].
//!
//! Where a firewall keeps state, each connection is an entry of a table (nf_conntrack), which also holds
//! those that ended less than two minutes ago. When it is full, packets of new connections are dropped,
//! on the client's machine as on the server's. The queue of half-open connections is another such table: when it is
//! full, SYNs are dropped (TCPReqQFullDrop), or answered by cookies that forget the client's options
//! (SyncookiesSent).
//!
//! Confirmed needs a count of drops and connections that felt it: late or failed ones. Cookies alone are a suspicion.

use record::{Certainty, Question, Severity};
use units::Nanos;

use super::Check;
use crate::modes;
use crate::transport::{self, Of, Times};
use crate::{Evidence, Observation, counters, words};

/// See the module.
pub(crate) const ITEM: Check = Check {
    name: "connection_table_full",
    severity: Severity::Void,
    question: Question::DidItBreakALimit,
    spares_like_pairs: false,
    title: "a table of connections in the kernel was full",
    meaning: "the kernel dropped packets of new connections, so a limit of the machine was measured",
    remedy: "raise net.netfilter.nf_conntrack_max or exempt the port (iptables -t raw -j NOTRACK); for half-open \
             connections raise net.ipv4.tcp_max_syn_backlog and the server's backlog",
    detection: "Packets that nf_conntrack dropped, or TCPReqQFullDrop of the server, and connections that took a \
             second or failed, one in 1,000: it is confirmed. SyncookiesSent for one connection in 100 is a suspicion",
    example: "sysctl net.netfilter.nf_conntrack_max=100, and `joust load --no-keepalive`",
    source: "https://docs.kernel.org/networking/nf_conntrack-sysctl.html; \
             https://docs.kernel.org/networking/snmp_counter.html",
    needs: &[&counters::CONNTRACK_STATISTICS, &counters::NETSTAT],
    look,
};

/// Share of the connections that were late or failed from which the load is another one.
const FELT_MIN: f64 = 0.001;
/// Share of the connections that cookies were sent for, from which they are worth a word.
const COOKIES_MIN: f64 = 0.01;
/// The earliest repeated SYN.
const LATE: Nanos = Nanos::from_millis(1000);

fn look(evidence: &Evidence) -> Vec<Observation> {
    evidence.contenders().filter_map(|contender| look_at(evidence, contender)).collect()
}

fn look_at(evidence: &Evidence, contender: usize) -> Option<Observation> {
    let of = |of, counter| transport::moved(evidence, contender, of, counter).unwrap_or(0);
    let dropped = of(Of::Either, "conntrack.drop") + of(Of::Either, "conntrack.insert_failed");
    let half_open = of(Of::Server, "TcpExt.TCPReqQFullDrop");
    let cookies = of(Of::Server, "TcpExt.SyncookiesSent");
    let times = Times::of(evidence, contender);
    let late = modes::count_between(&times.connect, LATE, Nanos::MAX);
    let failed: u64 = evidence
        .loads(contender)
        .map(|(_, load)| load.errors.connect_timeout + load.errors.connect_failed)
        .sum();
    let asked = times.connect.count() + failed;
    let felt = (late + failed) as f64 / asked.max(1) as f64;
    let is_full = dropped + half_open > 0 && felt >= FELT_MIN;
    let has_cookies = cookies as f64 >= COOKIES_MIN * asked as f64 && cookies > 0;
    if !is_full && !has_cookies {
        return None;
    }
    let evidence = format!(
        "{}: {} of {} ({}) took a second or failed; nf_conntrack dropped {}, the full queue of half-open connections \
         {}, and {} sent",
        evidence.name(contender),
        words::grouped(late + failed),
        words::count(asked, "connection"),
        words::percent(felt),
        words::count(dropped, "packet"),
        words::count(half_open, "SYN"),
        words::count(cookies, "SYN cookie") + if cookies == 1 { " was" } else { " were" },
    );
    Some(Observation {
        certainty: if is_full { Certainty::Confirmed } else { Certainty::Suspected },
        share: Some(if is_full { felt } else { (cookies as f64 / asked.max(1) as f64).min(1.0) }),
        contenders: vec![contender],
        evidence,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata;

    fn planted(late: u64, counters: &[(&str, i64)]) -> Vec<Observation> {
        let mut run = testdata::run(&["a", "b"], 8);
        for visit in run.visits.iter_mut().filter(|visit| visit.contender == 1) {
            let load = visit.load.as_mut().unwrap();
            (0..late).for_each(|_| load.latencies.connect.record(Nanos::from_millis(1010)));
            testdata::count(visit, counters);
        }
        look(&Evidence::of(&run))
    }

    #[test]
    fn a_full_table_that_is_felt_is_confirmed_and_its_share_is_the_dose() {
        for counter in
            ["client.conntrack.drop", "server.conntrack.drop", "server.TcpExt.TCPReqQFullDrop"]
        {
            for late in [8, 16] {
                let seen = planted(late, &[(counter, late as i64)]);
                assert_eq!((seen.len(), seen[0].certainty), (1, Certainty::Confirmed));
                let dose = late as f64 / (64 + late) as f64;
                assert!((seen[0].share.unwrap() / dose - 1.0).abs() < 0.01, "{seen:?}");
            }
        }
    }

    #[test]
    fn cookies_are_a_suspicion_and_one_witness_is_silent() {
        let seen = planted(0, &[("server.TcpExt.SyncookiesSent", 30)]);
        assert_eq!(seen[0].certainty, Certainty::Suspected);
        assert!(seen[0].evidence.contains("240 SYN cookies were sent"), "{seen:?}");
        assert_eq!(planted(0, &[("server.conntrack.drop", 8)]), []);
        assert_eq!(planted(8, &[]), []);
        assert_eq!(planted(0, &[]), []);
    }
}
