//! Owns the check that it was not a link that set the rates. Start reading at [`look`].

use record::{Certainty, Question, Severity};

use crate::printed::check::{Conclusion, Effect, PrintedCheck, Seen};
use crate::printed::row::{Printed, Row};
use crate::words;

/// See the module.
pub(crate) const ITEM: PrintedCheck = PrintedCheck {
    name: "bandwidth_ceiling",
    severity: Severity::Bound,
    question: Question::WhyNotDouble,
    title: "bytes a second are the same whatever was measured",
    meaning: "a link or the client was full, so every rate is at least what is printed, and none is a server's own",
    detection: "Three rows or more, of two servers or of replies whose sizes differ by 10 %, have the same bytes a \
                second (coefficient of variation below 1 %). Confirmed where it is 93 % to 100 % of what Ethernet of \
                100 Mbit/s, 1, 2.5, 10, 25, 40 or 100 Gbit/s carries in full segments",
    remedy: "ask for smaller documents, so that requests and not bytes are the limit, or a faster link",
    example: "three servers at 117.1, 117.2 and 117.3 MB/s over 1 Gbit/s",
    source: "IEEE 802.3: 1448 bytes of payload in 1538 bytes of line",
    touches: &[(Conclusion::Rate, Effect::AtLeast), (Conclusion::Ranking, Effect::Void)],
    look,
};

const VARIATION_MAX: f64 = 0.01;
const ROWS_MIN: usize = 3;
const SIZES_APART: f64 = 1.1;
/// Links in bits a second.
const LINKS: &[f64] = &[1e8, 1e9, 2.5e9, 1e10, 2.5e10, 4e10, 1e11];
/// Share of a link's bits that are payload of full segments.
const PAYLOAD_SHARE: f64 = 1448.0 / 1538.0;
/// Share of the payload from which a link counts as full.
const FULL_SHARE: f64 = 0.93;

fn look(printed: &Printed) -> Vec<Seen> {
    // Rows of one table or tool: what counts as bytes differs between tools.
    let groups = printed.groups(|one, other| one.origin == other.origin);
    groups.into_iter().filter_map(|group| look_at(printed, &group)).collect()
}

fn look_at(printed: &Printed, group: &[usize]) -> Option<Seen> {
    let known: Vec<(usize, f64, Option<f64>)> = group
        .iter()
        .filter_map(|&at| {
            let row = &printed.rows[at];
            let bytes = row.bytes_rate.filter(|rate| rate.value > 0.0 && is_precise(row))?.value;
            Some((at, bytes, row.rate.map(|rate| bytes / rate.value)))
        })
        .collect();
    if known.len() < ROWS_MIN {
        return None;
    }
    let rates: Vec<f64> = known.iter().map(|one| one.1).collect();
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    let variance =
        rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / (rates.len() - 1) as f64;
    let variation = variance.sqrt() / mean;
    let sizes: Vec<f64> = known.iter().filter_map(|one| one.2).collect();
    let largest = sizes.iter().copied().fold(0.0, f64::max);
    let smallest = sizes.iter().copied().fold(f64::INFINITY, f64::min);
    let mut servers: Vec<_> = known.iter().map(|one| printed.rows[one.0].server.as_ref()).collect();
    servers.sort();
    servers.dedup();
    if variation >= VARIATION_MAX || (servers.len() < 2 && largest <= SIZES_APART * smallest) {
        return None;
    }
    let link = LINKS.iter().find(|&&bits| {
        let carries = bits / 8.0 * PAYLOAD_SHARE;
        (FULL_SHARE * carries..=bits / 8.0).contains(&mean)
    });
    let evidence = format!(
        "{} of {} have {:.1} MB/s within {}{}",
        words::count(known.len() as u64, "row"),
        words::count(servers.len() as u64, "server"),
        mean / 1e6,
        words::percent(variation),
        link.map_or(String::new(), |bits| format!(
            ", what a link of {} Gbit/s carries",
            bits / 1e9
        )),
    );
    let certainty = if link.is_some() { Certainty::Confirmed } else { Certainty::Suspected };
    Some(Seen { certainty, rows: known.iter().map(|one| one.0).collect(), share: None, evidence })
}

/// Known to the variation that is looked for; units of 1000 or 1024 are one for all rows.
fn is_precise(row: &Row) -> bool {
    row.bytes_rate.is_some_and(|rate| rate.is_within(0.16))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::printed::testdata::{evidence, printed};

    #[test]
    fn servers_with_their_own_rates_are_silent() {
        let text = "server,req/s,MB/s\na,1000,36.0\nb,1100,39.6\nc,1210,43.6\n";
        assert_eq!(look(&printed(text)), []);
        // One server that is saturated at every number of connections is no link.
        let text =
            "server,connections,req/s,MB/s\na,64,1000,36.0\na,128,1001,36.1\na,256,999,36.0\n";
        assert_eq!(look(&printed(text)), []);
    }

    #[test]
    fn a_full_link_is_confirmed_by_its_size() {
        let text = "server,req/s,MB/s\na,31000,116.9\nb,31010,117.2\nc,31020,117.0\n";
        let told =
            "3 rows of 3 servers have 117.0 MB/s within 0.13 %, what a link of 1 Gbit/s carries";
        let seen = look(&printed(text));
        assert_eq!((evidence(&seen), seen[0].certainty), (vec![told], Certainty::Confirmed));
        let text = "server,req/s,MB/s\na,31000,200.9\nb,31010,201.2\nc,31020,201.0\n";
        assert_eq!(look(&printed(text))[0].certainty, Certainty::Suspected);
    }

    #[test]
    fn one_server_with_documents_of_all_sizes_at_one_bandwidth_is_seen() {
        let text = "server,file,req/s,MB/s\na,1k,80000,90.1\na,10k,9000,90.3\na,100k,900,90.2\n";
        assert_eq!(look(&printed(text)).len(), 1);
    }
}
