//! Owns the check that unlike servers do not share one ceiling. Start reading at [`look`].

use record::{Certainty, Question, Severity};

use crate::printed::check::{Conclusion, Effect, PrintedCheck, Seen};
use crate::printed::row::Printed;
use crate::printed::words as rows_words;
use crate::words;

/// See the module.
pub(crate) const ITEM: PrintedCheck = PrintedCheck {
    name: "unlike_servers_alike",
    severity: Severity::Void,
    question: Question::WhyNotDouble,
    title: "unlike servers have one rate",
    meaning: "something that they share was the limit: the load tool, its CPU, a link or a fixed rate",
    detection: "The only two servers of a load are within 1 % of each other, or the fastest three or more of a few. In \
                a long table neighbours are near by chance: it is seen where chance makes it less than 1 in 20",
    remedy: "measure a server that does nothing in the same way: the tool's own ceiling has to be far above",
    example: "nginx 32,011 and a Python server 32,105 requests a second, both from one wrk with one thread",
    source: "Gregg, Systems Performance, chapter 12 (why not double?)",
    touches: &[(Conclusion::Rate, Effect::AtLeast), (Conclusion::Ranking, Effect::Void)],
    look,
};

/// How near rates of one ceiling are.
const NEAR_SHARE: f64 = 0.01;
/// Range of rates, as a logarithm, over which servers are thought to spread at least: a factor of 4.
const SPREAD_MIN: f64 = 1.386;
/// Share of its CPUs from which a server was its own limit.
const BUSY_SHARE: f64 = 0.9;
/// Largest number of such groups that chance may make.
const BY_CHANCE_MAX: f64 = 0.05;

fn look(printed: &Printed) -> Vec<Seen> {
    let loads = printed.groups(|one, other| one.is_same_load(other) && one.origin == other.origin);
    loads.into_iter().filter_map(|load| look_at(printed, &load)).collect()
}

fn look_at(printed: &Printed, load: &[usize]) -> Option<Seen> {
    let mut rates: Vec<(f64, usize)> = Vec::new();
    let mut servers: Vec<&str> = Vec::new();
    for &at in load {
        let row = &printed.rows[at];
        // Runs of one server are near each other as they should be.
        let (server, rate) = (row.server.as_deref()?, row.rate?.value);
        if servers.contains(&server) || row.load.closed == Some(false) || rate <= 0.0 {
            return None;
        }
        servers.push(server);
        rates.push((rate, at));
    }
    rates.sort_by(|one, other| other.0.total_cmp(&one.0));
    let fastest = rates.first()?.0;
    let near: Vec<usize> = rates
        .iter()
        .take_while(|(rate, _)| *rate >= fastest / (1.0 + NEAR_SHARE))
        .map(|(_, at)| *at)
        .collect();
    let slowest = rates.last()?.0;
    let spread = (fastest / slowest).ln().max(SPREAD_MIN);
    let by_chance = (rates.len() as f64 - 1.0) * NEAR_SHARE / spread;
    // Each further server of the group is one more accident.
    let expected = by_chance.powi(near.len() as i32 - 1);
    if near.len() < 2 || expected > BY_CHANCE_MAX || (near.len() == 2 && rates.len() > 2) {
        return None;
    }
    // Servers that used up their CPUs met their own limit.
    let is_busy = |at: &usize| {
        let row = &printed.rows[*at];
        row.server_cpus_busy
            .zip(row.server_cpus)
            .is_some_and(|(busy, all)| busy.high >= BUSY_SHARE * all)
    };
    if near.iter().all(is_busy) {
        return None;
    }
    let apart = fastest / printed.rows[*near.last()?].rate?.value - 1.0;
    let evidence = format!(
        "{} have {} within {}",
        rows_words::names(printed, &near),
        rows_words::rate(fastest),
        words::percent(apart),
    );
    Some(Seen { certainty: Certainty::Suspected, rows: near, share: None, evidence })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::printed::testdata::{evidence, printed};

    #[test]
    fn servers_of_their_own_speed_and_runs_of_one_server_are_silent() {
        assert_eq!(look(&printed("server,req/s\na,31001\nb,35007\n")), []);
        assert_eq!(look(&printed("server,req/s\na,31001\na,31009\n")), []);
        assert_eq!(look(&printed("server,req/s\na,31001\nb,31009\nc,9001\n")), []);
    }

    #[test]
    fn two_servers_at_one_rate_are_suspected() {
        let seen = look(&printed("server,req/s\nnginx,32011\nflask,32105\n"));
        assert_eq!(evidence(&seen), ["flask and nginx have 32.1k/s within 0.29 %"]);
    }

    #[test]
    fn a_long_table_has_near_neighbours_by_chance() {
        let mut text = "server,req/s\n".to_owned();
        for n in 0..60 {
            text += &format!("s{n},{}\n", 1000 + n * n);
        }
        text += "t,4600\nu,4601\nv,4602\n";
        assert_eq!(look(&printed(&text)), []);
        let few = "server,req/s\na,32001\nb,32019\nc,32007\nd,9003\n";
        assert_eq!(look(&printed(few)).len(), 1);
    }
}
