//! Which agent, thread and connection does which part of a load. Owns the division, which is fixed before the start,
//! so that counts add up exactly. Start reading at [`thread_shares`].

use record::{LoadPlan, Share};

use crate::pacing::ArrivalShare;

/// One thread's part of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ThreadShare {
    /// Connections, at least 1.
    pub(crate) connections: u32,
    /// Index of the first of them in the agent's load.
    pub(crate) first_conn: u32,
    /// Requests to start; `u64::MAX` if only time ends the load.
    pub(crate) requests: u64,
    /// Most requests in its raw log.
    pub(crate) raw_max: u32,
    /// Most requests that may wait for a connection.
    pub(crate) queue_max: u64,
    /// Its index among all threads of the load, and their number.
    pub(crate) thread: u32,
    pub(crate) threads: u32,
    /// Which requests of the whole load are its own.
    pub(crate) turn: ArrivalShare,
}

impl ArrivalShare {
    /// Number, in the whole load, of the `n`th request of this thread, from 0.
    pub(crate) fn index_of(self, n: u64) -> u64 {
        let own = u64::from(self.n);
        n / own * u64::from(self.of) + u64::from(self.first) + n % own
    }
}

/// The share of each thread of this agent. Requests are divided by connections, not by threads: with 3 connections on
/// 2 threads each connection gets a third of them, so that none finishes long before the others. The instants of an
/// open loop are divided in the same way, so that the counts agree.
pub(crate) fn thread_shares(plan: &LoadPlan) -> Vec<ThreadShare> {
    let (agents, agent) = (u64::from(plan.share.of), u64::from(plan.share.index));
    let all_conns = u64::from(plan.connections);
    let connections = plan.share.part(all_conns);
    let threads = u64::from(plan.threads).min(connections);
    let first_of_agent: u64 = (0..plan.share.index)
        .map(|before| Share { index: before, ..plan.share }.part(all_conns))
        .sum();
    let mut first_conn = 0;
    let share = |thread| {
        let n_conns = part(connections, threads, thread);
        let first = first_of_agent + first_conn;
        let of_conns = first..first + n_conns;
        let share = ThreadShare {
            connections: n_conns as u32,
            first_conn: first_conn as u32,
            requests: plan
                .stop
                .requests
                .map_or(u64::MAX, |n| of_conns.clone().map(|conn| part(n, all_conns, conn)).sum()),
            raw_max: raw_share(plan, (all_conns, of_conns), (threads, thread)),
            queue_max: part(plan.share.part(plan.queue_max), threads, thread).max(1),
            thread: (agent * u64::from(plan.threads) + thread) as u32,
            threads: (agents * u64::from(plan.threads)) as u32,
            turn: ArrivalShare { first: first as u32, n: n_conns as u32, of: plan.connections },
        };
        first_conn += n_conns;
        share
    };
    (0..threads).map(share).collect()
}

/// Part `index` of `whole` in `of` parts.
fn part(whole: u64, of: u64, index: u64) -> u64 {
    Share { index: index as u32, of: of as u32 }.part(whole)
}

/// Room for samples. A log that should hold every request has room for all requests of a thread, whether they are
/// divided by connections, as here, or by threads, as a scenario may do. Together, the threads may have more room
/// than the plan allows; merging their logs settles that.
fn raw_share(
    plan: &LoadPlan,
    (all_conns, of_conns): (u64, std::ops::Range<u64>),
    (threads, thread): (u64, u64),
) -> u32 {
    let raw_max = u64::from(plan.raw_max);
    let by_conns: u64 = of_conns.map(|conn| part(raw_max, all_conns, conn)).sum();
    by_conns.max(part(raw_max, threads, thread)) as u32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::options::LoadOptions;

    proptest! {
        #[test]
        fn parts_add_up_and_are_fair(
            connections in 1u32..300,
            threads in 1u32..20,
            requests in 0u64..100_000,
            agents in 1u32..5,
        ) {
            prop_assume!(threads <= connections / agents);
            let mut options = LoadOptions::new("http://127.0.0.1:1/");
            options.draft.connections = connections;
            options.draft.threads = threads;
            options.draft.stop.requests = Some(requests.max(1));
            let mut plan = options.plan().unwrap();
            plan.share.of = agents;
            let mut sums = (0, 0);
            for index in 0..agents {
                plan.share.index = index;
                let shares = thread_shares(&plan);
                prop_assert_eq!(shares.len(), threads as usize);
                let mut next = 0;
                for share in shares {
                    prop_assert_eq!(share.first_conn, next);
                    prop_assert_eq!(share.turn.first, sums.0 + next);
                    next += share.connections;
                    prop_assert!(share.connections >= 1);
                    sums.1 += share.requests;
                    if u64::from(plan.raw_max) >= requests {
                        prop_assert!(u64::from(share.raw_max) >= share.requests, "room for all");
                    }
                }
                sums.0 += next;
            }
            prop_assert_eq!(sums, (connections, requests.max(1)));
        }
    }

    #[test]
    fn requests_go_by_connections() {
        let mut options = LoadOptions::new("http://127.0.0.1:1/");
        (options.draft.connections, options.draft.threads, options.draft.stop.requests) =
            (3, 2, Some(300));
        let shares = thread_shares(&options.plan().unwrap());
        let of: Vec<(u32, u64)> = shares.iter().map(|s| (s.connections, s.requests)).collect();
        assert_eq!(of, [(2, 200), (1, 100)]);
    }
}
