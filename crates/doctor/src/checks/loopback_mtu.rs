//! Owns the note that replies went over loopback in packets that no Ethernet has. Start reading at [`look`].
//!
//! Loopback has an MTU of 65,536 bytes: a reply of 64 KB is one packet there, and 46 on Ethernet. Servers that send
//! head and body apart, or copy what others map, look better than they are on a network.

use record::{
    Certainty, LoadRecord, MachineSeries, NetworkKind, Question, ServerAddress, Severity, Visit,
};

use super::Check;
use crate::counters::INTERFACES;
use crate::{Evidence, Observation, words};

/// See the module.
pub(crate) const ITEM: Check = Check {
    name: "loopback_mtu",
    severity: Severity::Note,
    question: Question::DoesItMatter,
    spares_like_pairs: false,
    title: "replies went over loopback in packets that no Ethernet carries",
    meaning: "the kernel had fewer packets to handle than over a network, where a reply is split",
    remedy: "let client and server have a network each (`joust run` as root does), set Ethernet's MTU \
             (`ip link set lo mtu 1500`), or say so beside the result",
    detection: "The network is loopback, its MTU is 65,536 (or its packets are longer than Ethernet's), and \
                replies are longer than the 1,448 bytes that a packet of Ethernet has room for",
    example: "any benchmark against 127.0.0.1",
    source: "ip-link(8); HttpArena sets an MTU of 1,500 on loopback",
    needs: &[&INTERFACES],
    look,
};

/// Loopback's default; smaller ones were set by someone.
const LOOPBACK_MTU: u32 = 65_536;
/// Payload of TCP in a packet of Ethernet, with timestamps: 1,500 less 52.
const SEGMENT_MAX: f64 = 1_448.0;
/// Longest packet of Ethernet.
const ETHERNET_MTU: i64 = 1_500;

fn look(evidence: &Evidence) -> Vec<Observation> {
    let touched: Vec<(usize, f64)> =
        evidence.contenders().filter_map(|one| Some((one, long_replies(evidence, one)?))).collect();
    let Some(longest) = touched.iter().map(|(_, bytes)| *bytes).reduce(f64::max) else {
        return Vec::new();
    };
    let contenders: Vec<usize> = touched.into_iter().map(|(one, _)| one).collect();
    let evidence = format!(
        "{}: replies of up to {} bytes went over loopback, {} packets each on Ethernet",
        evidence.names(&contenders),
        words::grouped(longest.round() as u64),
        (longest / SEGMENT_MAX).ceil(),
    );
    vec![Observation { share: None, certainty: Certainty::Confirmed, contenders, evidence }]
}

/// Bytes of a contender's replies, where they are split on Ethernet and were not here.
fn long_replies(evidence: &Evidence, contender: usize) -> Option<f64> {
    let mut loads = evidence.loads(contender);
    let (_, load) =
        loads.find(|(visit, load)| is_loopback(visit, load) && load.requests.done > 0)?;
    let bytes = load.bytes.read as f64 / load.requests.done as f64;
    (bytes > SEGMENT_MAX).then_some(bytes)
}

fn is_loopback(visit: &Visit, load: &LoadRecord) -> bool {
    let Some(surroundings) = &visit.surroundings else { return false };
    let network = &surroundings.network;
    match network.mtu {
        // A load alone does not know: its packets tell.
        0 => goes_to_itself(load) && has_long_packets(&surroundings.series),
        mtu => network.kind == NetworkKind::Loopback && mtu >= LOOPBACK_MTU,
    }
}

fn goes_to_itself(load: &LoadRecord) -> bool {
    load.plan.origins.iter().all(|origin| match &origin.place {
        ServerAddress::Inet(address) => address.ip().is_loopback(),
        ServerAddress::Unix(_) => false,
    })
}

/// Whether the mean packet of loopback was longer than Ethernet's longest: requests and acknowledgements, which are
/// short, counted in.
fn has_long_packets(series: &MachineSeries) -> bool {
    let moved = |counter| series.change(&format!("both.dev.lo.{counter}"));
    match (moved("rx_bytes"), moved("rx_packets")) {
        (Some(bytes), Some(packets)) => packets > 0 && bytes / packets > ETHERNET_MTU,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use record::{Course, Network, RunRecord, Surroundings};

    use super::*;
    use crate::testdata;

    fn over(kind: NetworkKind, mtu: u32) -> RunRecord {
        let mut run = testdata::run(&["a", "b"], 4);
        for visit in &mut run.visits {
            let network = Network { kind, mtu, ..Network::default() };
            visit.surroundings =
                Some(Box::new(Surroundings { network, ..Surroundings::default() }));
        }
        run
    }

    #[test]
    fn other_networks_other_mtus_and_short_replies_are_silent() {
        assert_eq!(look(&Evidence::of(&testdata::run(&["a", "b"], 4))), []);
        assert_eq!(look(&Evidence::of(&over(NetworkKind::Veth, 1_500))), []);
        assert_eq!(look(&Evidence::of(&over(NetworkKind::Loopback, 1_500))), []);
        let mut short = over(NetworkKind::Loopback, LOOPBACK_MTU);
        for load in short.visits.iter_mut().filter_map(|visit| visit.load.as_mut()) {
            load.bytes.read = load.requests.done * 1_448;
        }
        assert_eq!(look(&Evidence::of(&short)), []);
    }

    #[test]
    fn long_replies_over_loopback_are_noted_once_for_all() {
        let seen = look(&Evidence::of(&over(NetworkKind::Loopback, LOOPBACK_MTU)));
        assert_eq!((seen.len(), seen[0].contenders.as_slice()), (1, &[0, 1][..]));
        let text =
            "a and b: replies of up to 3,500 bytes went over loopback, 3 packets each on Ethernet";
        assert_eq!(seen[0].evidence, text);
    }

    #[test]
    fn a_load_alone_is_told_by_the_packets_of_loopback() {
        let found = |bytes: i64, packets: i64| {
            let mut load = testdata::load();
            let course = |step| Course { first: 0, steps: vec![step] };
            load.machine = Some(Box::new(MachineSeries {
                sources: ["both.dev.lo".to_owned()].into(),
                counters: [
                    ("both.dev.lo.rx_bytes".to_owned(), course(bytes)),
                    ("both.dev.lo.rx_packets".to_owned(), course(packets)),
                ]
                .into(),
                ..MachineSeries::default()
            }));
            crate::examine_load(&load).iter().any(|one| one.check == ITEM.name)
        };
        assert!(found(1_800_000, 1_000));
        assert!(!found(800_000, 1_000));
    }
}
