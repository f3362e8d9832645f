//! Owns the check that connections were accepted as they came. Start reading at [`look`].
//!
//! A listener keeps a queue of connections that wait to be accepted, as long as its backlog. While it is full the
//! kernel drops each SYN (ListenOverflows, ListenDrops), and the client sends it again: after 1, 2, 3, 4, 5, 7
//! and 11 s since Linux 6.5, after 1, 3, 7 and 15 s before, after 3, 9 and 21 s before 3.1. These clients
//! wait for seconds. Meanwhile they send no requests, and the server answers the others faster.
//!
//! Confirmed needs both: times to connect at these instants (or, where a load is shorter than a second,
//! connections that never came to be), and a counter of the kernel. A lost SYN has the same times and no
//! overflow; then the client's own count of repeated SYNs is the second witness.

use record::{Certainty, Question, Severity};
use units::Nanos;

use super::Check;
use crate::modes;
use crate::timers;
use crate::transport::{self, Of, Times};
use crate::{Evidence, Observation, counters, words};

/// See the module.
pub(crate) const ITEM: Check = Check {
    name: "accept_queue_overflow",
    severity: Severity::Void,
    question: Question::DidItBreakALimit,
    spares_like_pairs: false,
    title: "connections waited for seconds because the kernel dropped their SYN",
    meaning: "the clients that waited made no load, and the others had a server with fewer of them",
    remedy: "raise the server's backlog (listen, ListenBacklog) and net.core.somaxconn, let the server accept \
             sooner, or connect more slowly; report the time to connect apart from service times",
    detection: "At least five connections took as long as a repeated SYN (1, 2, 3, 4, 5, 7, 9, 11, 15 or 21 s, and up to \
             60 ms more) or were never made, and these are 1 % of all connections or of the time of all clients. It \
             is confirmed where ListenOverflows or ListenDrops of the server, or TCPSynRetrans, counted half as many too",
    example: "a server with listen(fd, 1) that does not accept for 300 ms, and `joust load -c 50`",
    source: "https://docs.kernel.org/networking/snmp_counter.html; listen(2); tcp(7)",
    needs: &[&counters::NETSTAT, &counters::LISTENERS],
    look,
};

/// How late such a connection may be: the timer counts ticks of 10 ms at most, and the rest is a busy machine.
const LATE_MAX: Nanos = Nanos::from_millis(60);
/// Minimum number of connections that waited: fewer decide no verdict.
const WAITED_MIN: u64 = 5;
/// Minimum share of the connections that waited, or of the clients' time in which they did. Without keep-alive each
/// client makes thousands of connections, and one that waits for a second is one of them.
const SHARE_MIN: f64 = 0.01;

fn look(evidence: &Evidence) -> Vec<Observation> {
    evidence.contenders().filter_map(|contender| look_at(evidence, contender)).collect()
}

fn look_at(evidence: &Evidence, contender: usize) -> Option<Observation> {
    let times = Times::of(evidence, contender);
    let newer = timers::SYN_AFTER_MS;
    // 3 s is in both, and counts once.
    let older = timers::SYN_AFTER_MS_BEFORE_3_1.into_iter().filter(|after| !newer.contains(after));
    let at_timers: Vec<(u64, u64)> =
        newer.into_iter().chain(older).map(|after| (after, waited(&times, after))).collect();
    let never = never_made(evidence, contender);
    let overflows = transport::listen_drops(evidence, contender);
    let syn_again = transport::moved(evidence, contender, Of::Client, "TcpExt.TCPSynRetrans");
    // A connection that was never made may have many causes; each overflow names the one of one.
    let never = never.min(overflows.unwrap_or(0));
    let waited = never + at_timers.iter().map(|(_, count)| count).sum::<u64>();
    let planned: u64 = evidence.loads(contender).map(|(_, load)| u64::from(load.connections)).sum();
    let asked = times.connect.count().max(planned);
    let of_connections = waited as f64 / asked.max(1) as f64;
    let of_time = time_lost(evidence, contender, never, &at_timers);
    let is_known = overflows.is_some() || syn_again.is_some();
    let counted = overflows.unwrap_or(0).max(syn_again.unwrap_or(0));
    if waited < WAITED_MIN || of_connections.max(of_time) < SHARE_MIN || (is_known && counted == 0)
    {
        return None;
    }
    let longest = transport::highest(evidence, contender, "listeners.queue_max");
    let queue =
        longest.map_or(String::new(), |longest| format!("; the longest queue held {longest}"));
    let counts = match (overflows, syn_again) {
        (None, None) => "no counter of the kernel could be read".to_owned(),
        (dropped, again) => format!(
            "segments of handshakes: {} dropped by the server's kernel, {} sent again",
            words::grouped(dropped.unwrap_or(0)),
            words::grouped(again.unwrap_or(0)),
        ),
    };
    let evidence = format!(
        "{}: {} of {} ({}) waited for a repeated SYN, for a second or more, which is {} of the clients' time; \
         {counts}{queue}",
        evidence.name(contender),
        words::grouped(waited),
        words::count(asked, "connection"),
        words::percent(of_connections),
        words::percent(of_time),
    );
    let is_explained = transport::explains(counted, waited);
    let certainty = if is_explained { Certainty::Confirmed } else { Certainty::Suspected };
    Some(Observation { certainty, share: Some(of_time), contenders: vec![contender], evidence })
}

/// Share of the time of all clients that went by in waits: `at_timers` are milliseconds and how many took that long,
/// and clients whose connection was never made waited for the whole load.
fn time_lost(evidence: &Evidence, contender: usize, never: u64, at_timers: &[(u64, u64)]) -> f64 {
    let (mut clients, mut seconds, mut loads) = (0.0, 0.0, 0.0);
    for (_, load) in evidence.loads(contender) {
        clients += f64::from(load.connections) * load.seconds;
        seconds += load.seconds;
        loads += 1.0;
    }
    let waits: f64 = at_timers.iter().map(|&(ms, count)| ms as f64 / 1000.0 * count as f64).sum();
    let lost = waits + never as f64 * seconds / f64::max(loads, 1.0);
    (lost / f64::max(clients, f64::MIN_POSITIVE)).min(1.0)
}

/// Connections that took as long as a SYN that was sent again after that time; none where that is within a tail.
fn waited(times: &Times, after_ms: u64) -> u64 {
    let from = Nanos::from_millis(after_ms);
    let until = from + LATE_MAX;
    let mode = modes::in_band(&times.connect, from, until);
    let is_alone = || times.connect.quantile_unchecked(0.5) < Nanos::from_millis(100);
    match mode {
        Some(mode) => mode.count,
        // Where most connect within 100 ms, one that takes a second has waited for a timer.
        None if is_alone() => modes::count_between(&times.connect, from, until),
        None => 0,
    }
}

/// Connections that were asked for and never open.
fn never_made(evidence: &Evidence, contender: usize) -> u64 {
    let loads = evidence.loads(contender).filter(|(_, load)| load.plan.keep_alive);
    let missing = loads.map(|(_, load)| {
        let open = load.client.connections_open_max;
        if open == 0 { 0 } else { u64::from(load.connections.saturating_sub(open)) }
    });
    missing.sum()
}

#[cfg(test)]
mod tests {
    use record::{LoadRecord, RunRecord};

    use super::*;
    use crate::testdata;

    /// In each visit of b a given number of connections waited for a second, and the kernel counted them.
    fn planted(waited: u64, counters: &[(&str, i64)]) -> RunRecord {
        let mut run = testdata::run(&["a", "b"], 8);
        for visit in run.visits.iter_mut().filter(|visit| visit.contender == 1) {
            let load = visit.load.as_mut().unwrap();
            late(load, waited);
            testdata::count(visit, counters);
        }
        run
    }

    fn late(load: &mut LoadRecord, waited: u64) {
        (0..waited).for_each(|n| {
            load.latencies.connect.record(Nanos::from_micros(1_003_000 + 700 * n));
        });
        load.connects += waited;
    }

    #[test]
    fn clean_connections_are_silent() {
        assert_eq!(look(&Evidence::of(&testdata::run(&["a", "b"], 8))), []);
    }

    #[test]
    fn dropped_syns_are_confirmed_and_their_share_is_the_dose() {
        let drops = [("server.TcpExt.ListenOverflows", 8), ("client.TcpExt.TCPSynRetrans", 8)];
        for waited in [4, 8, 16] {
            let seen = look(&Evidence::of(&planted(waited, &drops)));
            assert_eq!(seen.len(), 1, "{waited}");
            assert_eq!(
                (seen[0].certainty, &seen[0].contenders[..]),
                (Certainty::Confirmed, &[1][..])
            );
            // Of the time of 64 clients in a load of 0.9 s.
            let dose = waited as f64 / (64.0 * 0.9);
            assert!((seen[0].share.unwrap() / dose - 1.0).abs() < 0.05, "{seen:?}");
        }
        let seen = look(&Evidence::of(&planted(8, &drops)));
        let said = "b: 64 of 576 connections (11.1 %) waited for a repeated SYN, for a second or more, which is 13.9 % of \
                    the clients' time; segments of handshakes: 64 dropped by the server's kernel, 64 sent again";
        assert_eq!(seen[0].evidence, said);
    }

    #[test]
    fn a_second_in_a_connection_of_thousands_is_much_of_a_client_s_time() {
        let mut run = planted(0, &[("server.TcpExt.ListenOverflows", 30)]);
        for visit in run.visits.iter_mut().filter(|visit| visit.contender == 1) {
            let load = visit.load.as_mut().unwrap();
            (0..40_000).for_each(|n| load.latencies.connect.record(Nanos(50_000 + n)));
            late(load, 8);
        }
        let seen = look(&Evidence::of(&run));
        assert!(seen[0].evidence.contains("of the clients' time"), "{seen:?}");
        assert!((seen[0].share.unwrap() - 8.0 / (64.0 * 0.9)).abs() < 0.01, "{seen:?}");
    }

    #[test]
    fn slow_connections_without_a_counter_are_silent_where_it_could_be_read() {
        assert_eq!(look(&Evidence::of(&planted(8, &[]))), []);
        let mut unknown = planted(8, &[]);
        unknown.visits.iter_mut().for_each(|visit| visit.surroundings = None);
        let seen = look(&Evidence::of(&unknown));
        assert_eq!(seen[0].certainty, Certainty::Suspected);
    }

    #[test]
    fn a_few_drops_do_not_confirm_many_waits() {
        let seen = look(&Evidence::of(&planted(8, &[("server.TcpExt.ListenOverflows", 2)])));
        assert_eq!(seen[0].certainty, Certainty::Suspected);
    }

    #[test]
    fn one_connection_a_run_and_a_counter_without_late_connections_are_silent() {
        let drops = [("server.TcpExt.ListenOverflows", 8)];
        assert_eq!(look(&Evidence::of(&planted(0, &drops))), []);
        let mut once = planted(0, &drops);
        late(once.visits[0].load.as_mut().unwrap(), 1);
        assert_eq!(look(&Evidence::of(&once)), []);
    }

    #[test]
    fn a_load_that_is_shorter_than_the_timer_shows_connections_that_were_never_made() {
        let mut run = planted(0, &[("server.TcpExt.ListenOverflows", 30)]);
        for visit in run.visits.iter_mut().filter(|visit| visit.contender == 1) {
            visit.load.as_mut().unwrap().client.connections_open_max -= 10;
        }
        let seen = look(&Evidence::of(&run));
        assert_eq!(seen[0].certainty, Certainty::Confirmed);
        assert!(seen[0].evidence.starts_with("b: 80 of 512 connections"), "{seen:?}");
        // One drop explains one of them.
        for visit in run.visits.iter_mut().filter(|visit| visit.contender == 1) {
            testdata::count(visit, &[("server.TcpExt.ListenOverflows", 0)]);
        }
        let visit = run.visits.iter_mut().find(|visit| visit.contender == 1).unwrap();
        testdata::count(visit, &[("server.TcpExt.ListenOverflows", 1)]);
        assert_eq!(look(&Evidence::of(&run)), []);
    }

    #[test]
    fn connections_over_a_slow_network_are_silent() {
        let mut run = testdata::run(&["a"], 8);
        for visit in &mut run.visits {
            let load = visit.load.as_mut().unwrap();
            (0..2000).for_each(|n| {
                load.latencies.connect.record(Nanos::from_micros(300_000 + 1_000 * n));
            });
            testdata::count(visit, &[("client.TcpExt.TCPSynRetrans", 1)]);
        }
        assert_eq!(look(&Evidence::of(&run)), []);
    }
}
