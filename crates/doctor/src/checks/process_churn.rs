//! Owns the check for servers that end and start their processes while they are measured. Start reading at
//! [`look`].
//!
//! Apache's prefork with `MaxConnectionsPerChild 100` forks a process for every hundred connections, and with few
//! spare servers a client waits for it. The mean hides it; the slowest requests are made by it. A server that
//! starts a process for each request by design (CGI, inetd) is not meant: there every request has that cost.
//!
//! Births are counted at readings, so of processes that live for milliseconds only some are seen. The kernel
//! counts all forks of the machine, those of others too. Neither alone is enough.

use record::{Certainty, LoadRecord, Question, Severity, Visit};
use stats::Histogram;

use super::Check;
use crate::{Evidence, Observation, counters, words};

/// See the module.
pub(crate) const ITEM: Check = Check {
    name: "process_churn",
    severity: Severity::Void,
    question: Question::WhyNotDouble,
    spares_like_pairs: false,
    title: "the server ended and started processes while it was measured",
    meaning: "starting processes is part of the rate, and requests that waited for one make the tail",
    remedy: "let processes live (Apache and joust: MaxConnectionsPerChild 0) and keep enough of them waiting \
             (MaxSpareServers at least the number of connections, StartServers as many); change one of the two \
             directives at a time to see which costs what",
    detection: "More than one process born or ended in 1,000 requests, or one born in two seconds, five at least; of a \
             load alone, as many forks of the machine as connections that the server ended. It is confirmed if requests \
             of more than five median times hold more than 10 % of the time, or if there is one in 1,000 \
             requests and the machine forked or clients had to connect again as often, or 10 % of the \
             connections had no reply at the end",
    example: "Apache's prefork with MaxConnectionsPerChild 100 and MaxSpareServers 2, or \
             `joust serve --model prefork --fault churn=100`",
    source: "https://httpd.apache.org/docs/2.4/mod/mpm_common.html#maxconnectionsperchild; \
             https://httpd.apache.org/docs/2.4/mod/prefork.html#maxspareservers",
    needs: &[&counters::STAT],
    look,
};

/// Fewer births are those of an idle server that adjusts its spare processes.
const BORN_MIN: u64 = 5;
/// Births over requests and over time, of which one is enough.
const BORN_PER_REQUEST_MIN: f64 = 1e-3;
const BORN_PER_S_MIN: f64 = 0.5;
/// Forks over requests from which on a process for each request is how the server works.
const FORKS_BY_DESIGN: f64 = 0.5;
/// The machine's forks, or connections that had to be made again, over births: counted apart, they agree.
const AGREE: std::ops::RangeInclusive<f64> = 0.5..=2.0;
/// Connections without a reply at the end: they wait for a process.
const UNANSWERED_MIN: f64 = 0.1;
/// A request belongs to the tail from this many median service times on, and the tail matters from this share of
/// the time of all requests on.
const TAIL_FROM: f64 = 5.0;
const TAIL_SHARE_MIN: f64 = 0.1;

fn look(evidence: &Evidence) -> Vec<Observation> {
    evidence.contenders().filter_map(|contender| look_at(evidence, contender)).collect()
}

/// Sums over the loads of a contender.
#[derive(Debug, Default)]
struct Sums {
    born: u64,
    died: u64,
    requests: u64,
    seconds: f64,
    connections: u64,
    unanswered: u64,
    connected_again: u64,
    ended_by_server: u64,
    /// `None` where it is not known of each load.
    forks: Option<u64>,
    service: Histogram,
    visits: usize,
    /// Whether births are those of the server's processes.
    is_server_known: bool,
}

fn look_at(evidence: &Evidence, contender: usize) -> Option<Observation> {
    let work = |visit: &Visit| evidence.run.plan.work(visit.cell, contender);
    let mut sums = Sums { forks: Some(0), is_server_known: true, ..Sums::default() };
    for (visit, load) in evidence.loads(contender) {
        // A program that is asked for is a process of its own.
        if work(visit).sleep.is_some() {
            return None;
        }
        sums.add(visit, load, work(visit).keep_alive);
    }
    let tail = tail_share(&sums.service);
    let (certainty, seen) = match sums.is_server_known {
        true => sums.of_server(tail)?,
        false => sums.of_machine(tail)?,
    };
    let evidence = format!(
        "{}: {seen} for {} in {:.1} s; requests of more than five median service times hold {} of the time",
        evidence.name(contender),
        words::count(sums.requests, "request"),
        sums.seconds,
        words::percent(tail),
    );
    let share = (tail > 0.0).then_some(tail);
    Some(Observation { certainty, share, contenders: vec![contender], evidence })
}

impl Sums {
    fn add(&mut self, visit: &Visit, load: &LoadRecord, is_kept: bool) {
        let around = visit.surroundings.as_ref();
        let forks = around.and_then(|around| around.series.change("stat.processes"));
        self.forks = self.forks.zip(forks).map(|(sum, forks)| sum + forks.max(0) as u64);
        match visit.server {
            Some(server) => {
                self.born += u64::from(server.born);
                self.requests += server.requests;
                self.seconds += server.wall.as_secs_f64();
            }
            None => {
                self.is_server_known = false;
                self.requests += load.requests.done;
                self.seconds += load.seconds;
            }
        }
        self.died +=
            around.and_then(|around| around.processes).map_or(0, |all| u64::from(all.died));
        self.connections += u64::from(load.connections);
        self.unanswered += load.requests.unanswered;
        if is_kept {
            self.connected_again += load.connects.saturating_sub(u64::from(load.connections));
            self.ended_by_server += load.connection_ends.by_server;
        }
        if let Some(service) = visit.service_after_cut() {
            self.service.merge(&service);
        }
        self.visits += 1;
    }

    fn is_by_design(&self) -> bool {
        self.forks.is_some_and(|forks| forks as f64 >= FORKS_BY_DESIGN * self.requests as f64)
    }

    /// Of processes that are known to be the server's.
    fn of_server(&self, tail: f64) -> Option<(Certainty, String)> {
        // Processes that ended may not be replaced before the load is over.
        let most = self.born.max(self.died);
        let changes = most as f64;
        // A pool that shrinks ends about one a second, so that ends are held against requests alone.
        let is_often = changes > BORN_PER_REQUEST_MIN * self.requests as f64
            || self.born as f64 > BORN_PER_S_MIN * self.seconds;
        if most < BORN_MIN || !is_often || self.is_by_design() {
            return None;
        }
        let is_forked = self.born >= BORN_MIN
            && self.forks.is_some_and(|forks| forks as f64 >= AGREE.start() * self.born as f64);
        let is_again = self.connected_again as f64 >= AGREE.start() * changes;
        let is_short = self.unanswered as f64 >= UNANSWERED_MIN * self.connections as f64;
        // A pool that grows to its size starts processes too, and few for its requests.
        let is_part_of_work = changes > BORN_PER_REQUEST_MIN * self.requests as f64;
        let has_witness = is_forked || is_again || is_short;
        let is_sure =
            (is_part_of_work && has_witness) || (self.born >= BORN_MIN && tail > TAIL_SHARE_MIN);
        let certainty = if is_sure { Certainty::Confirmed } else { Certainty::Suspected };
        let ended = match self.died {
            0 => String::new(),
            died => format!(" and {} ended", words::grouped(died)),
        };
        let without = match is_short {
            false => String::new(),
            true => format!(
                " ({} of {} had no reply at the end)",
                words::grouped(self.unanswered),
                words::count(self.connections, "connection")
            ),
        };
        let seen = format!(
            "{} {}{ended} while {} {} measured{without}",
            words::grouped(self.born),
            if self.born == 1 { "process was born" } else { "processes were born" },
            words::count(self.visits as u64, "visit"),
            if self.visits == 1 { "was" } else { "were" },
        );
        Some((certainty, seen))
    }

    /// Of a load alone: whoever forks on the machine may be another. Its forks must be as many as the
    /// connections that the server ended, and requests must have waited.
    fn of_machine(&self, tail: f64) -> Option<(Certainty, String)> {
        let (forks, ended) = (self.forks?, self.ended_by_server);
        let is_often = ended as f64 > BORN_PER_REQUEST_MIN * self.requests as f64;
        let agree = AGREE.contains(&(forks as f64 / ended.max(1) as f64));
        if ended < BORN_MIN || !is_often || !agree || self.is_by_design() || tail <= TAIL_SHARE_MIN
        {
            return None;
        }
        let seen = format!(
            "the server ended {} while the machine started {} processes or threads,",
            words::count(ended, "connection"),
            words::grouped(forks),
        );
        Some((Certainty::Confirmed, seen.trim_end_matches(',').to_owned()))
    }
}

/// Share of the time of all requests that those of the tail hold.
fn tail_share(service: &Histogram) -> f64 {
    let Some(typical) = service.quantile(0.5) else { return 0.0 };
    let from = typical.0 as f64 * TAIL_FROM;
    let (mut all, mut tail) = (0.0, 0.0);
    for (span, requests) in service.buckets() {
        let time = span.0 as f64 * requests as f64;
        all += time;
        tail += if span.0 as f64 > from { time } else { 0.0 };
    }
    tail / all
}

#[cfg(test)]
mod tests {
    use record::{ConnectionEnds, Course, ProcessesUse, RunRecord, Surroundings};
    use units::Nanos;

    use super::*;
    use crate::testdata;

    fn seen(run: &RunRecord) -> Vec<Observation> {
        look(&Evidence::of(run))
    }

    fn with_forks(visit: &mut Visit, forks: i64) {
        let mut around = Surroundings::default();
        around.series.sources.insert("stat".to_owned());
        let course = Course { first: 9, steps: vec![forks] };
        around.series.counters.insert("stat.processes".to_owned(), course);
        visit.surroundings = Some(Box::new(around));
    }

    /// Eight visits of a and b; a given number of processes of b's are born in each, and a given number of requests of
    /// each interval of 100 take 20 ms, not 1 ms.
    fn with(born: u32, slow: u64, forks: Option<i64>) -> RunRecord {
        let mut run = testdata::run(&["a", "b"], 8);
        for visit in run.visits.iter_mut().filter(|visit| visit.contender == 1) {
            visit.server.as_mut().unwrap().born = born;
            let load = visit.load.as_mut().unwrap();
            for interval in &mut load.intervals {
                (0..slow).for_each(|_| interval.service.record(Nanos::from_millis(20)));
            }
            if let Some(forks) = forks {
                with_forks(visit, forks);
            }
        }
        run
    }

    /// The same, with no process born; a given number end in each visit of b's.
    fn with_ends(died: u32, slow: u64) -> RunRecord {
        let mut run = with(0, slow, None);
        for visit in run.visits.iter_mut().filter(|visit| visit.contender == 1) {
            let processes = Some(ProcessesUse { died, ..ProcessesUse::default() });
            visit.surroundings =
                Some(Box::new(Surroundings { processes, ..Surroundings::default() }));
        }
        run
    }

    #[test]
    fn births_with_forks_or_with_a_tail_are_confirmed_and_the_remedy_names_both_directives() {
        for run in [with(400, 0, Some(410)), with(400, 2, None)] {
            let seen = seen(&run);
            assert_eq!(seen.len(), 1);
            let (certainty, who) = (seen[0].certainty, seen[0].contenders.as_slice());
            assert_eq!((certainty, who), (Certainty::Confirmed, &[1][..]));
            let text =
                "b: 3,200 processes were born while 8 visits were measured for 320,000 requests";
            assert!(seen[0].evidence.starts_with(text), "{}", seen[0].evidence);
        }
        for directive in ["MaxConnectionsPerChild", "MaxSpareServers"] {
            assert!(ITEM.remedy.contains(directive));
        }
    }

    #[test]
    fn births_that_nothing_else_shows_are_suspected() {
        assert_eq!(seen(&with(400, 0, None))[0].certainty, Certainty::Suspected);
        assert_eq!(seen(&with(400, 0, Some(3)))[0].certainty, Certainty::Suspected);
        // A pool that grows: 5 in 40,000 requests, each of them a fork.
        assert_eq!(seen(&with(5, 0, Some(5)))[0].certainty, Certainty::Suspected);
    }

    #[test]
    fn processes_that_end_and_are_not_replaced_leave_connections_without_a_reply() {
        let mut run = with_ends(80, 0);
        assert_eq!(seen(&run)[0].certainty, Certainty::Suspected);
        for visit in run.visits.iter_mut().filter(|visit| visit.contender == 1) {
            visit.load.as_mut().unwrap().requests.unanswered = 16;
        }
        let seen = seen(&run);
        assert_eq!(seen[0].certainty, Certainty::Confirmed);
        let text = "b: 0 processes were born and 640 ended while 8 visits were measured (128 of 512 connections \
                    had no reply at the end) for 320,000 requests";
        assert!(seen[0].evidence.starts_with(text), "{}", seen[0].evidence);
    }

    #[test]
    fn a_pool_that_shrinks_while_requests_are_slow_is_silent() {
        assert_eq!(seen(&with_ends(2, 5)), [], "16 of 64 ended in 320,000 requests");
    }

    #[test]
    fn half_as_many_slow_requests_are_half_of_the_share() {
        let share = |slow| seen(&with(400, slow, Some(400)))[0].share.unwrap();
        // Of 100 ms in requests of 1 ms, 40 and 20 ms more.
        let (whole, half) = (share(2), share(1));
        assert!((half / whole - 0.5).abs() < 0.1, "{half} of {whole}");
    }

    #[test]
    fn servers_that_keep_their_processes_are_silent() {
        assert_eq!(seen(&testdata::run(&["a", "b"], 8)), []);
        assert_eq!(seen(&with(0, 5, Some(900))), [], "others fork, and the tail has other causes");
        let mut few = with(0, 0, Some(2));
        few.visits.iter_mut().take(4).for_each(|visit| visit.server.as_mut().unwrap().born = 1);
        assert_eq!(seen(&few), []);
    }

    #[test]
    fn a_process_for_each_request_is_how_some_servers_work() {
        assert_eq!(seen(&with(400, 2, Some(40_000))), []);
        let mut sleeping = with(400, 2, Some(400));
        sleeping.plan.cells[0].workload.sleep = Some(Nanos::from_millis(10));
        assert_eq!(seen(&sleeping), []);
    }

    #[test]
    fn of_a_load_alone_forks_must_be_as_many_as_connections_that_ended() {
        let alone = |ended: u64, forks: i64, slow: u64| {
            let mut run = with(0, slow, None);
            run.visits.truncate(2);
            run.visits.retain(|visit| visit.contender == 1);
            let visit = &mut run.visits[0];
            visit.server = None;
            let ends = ConnectionEnds { by_server: ended, ..ConnectionEnds::default() };
            visit.load.as_mut().unwrap().connection_ends = ends;
            with_forks(visit, forks);
            seen(&run).first().map(|one| one.certainty)
        };
        assert_eq!(alone(450, 460, 2), Some(Certainty::Confirmed));
        assert_eq!(alone(450, 40, 2), None, "closed, and nothing was started");
        assert_eq!(alone(450, 4000, 2), None, "others fork");
        assert_eq!(alone(450, 460, 0), None, "no request waited");
        assert_eq!(alone(0, 460, 2), None);
    }
}
