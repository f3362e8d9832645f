//! Owns the topic of the network interfaces: packet size, speed, duplex and errors. Start reading at [`look`].

use super::{Change, MachineState, MachineTexts, Mend, Topic};
use crate::words::{self, grouped};

/// See the module.
pub(super) const ITEM: Topic = Topic {
    name: "interfaces",
    title: "network interfaces: MTU, speed, duplex, errors since they came up",
    effect: "a slow or half-duplex link becomes the limit of every server alike, and lost packets add waits of 200 ms \
             and more",
    needs: &[
        "/sys/class/net/*/mtu",
        STATE,
        "/sys/class/net/*/speed",
        "/sys/class/net/*/duplex",
        "/sys/class/net/*/statistics/rx_errors",
        "/sys/class/net/*/statistics/tx_errors",
        "/sys/class/net/*/statistics/collisions",
        "/sys/class/net/*/statistics/rx_packets",
        "/sys/class/net/*/statistics/tx_packets",
    ],
    needs_twice: &[],
    look,
};

const STATE: &str = "/sys/class/net/*/operstate";
/// Mbit/s below which a single small server fills the link.
const SPEED_MIN: u64 = 1000;
/// Share of packets with an error above which retransmissions show in a quantile of 99.9 %: each request takes
/// some ten packets.
const ERROR_SHARE_MAX: f64 = 0.0001;

fn look(texts: &MachineTexts) -> Result<MachineState, String> {
    let name = |(path, _): (&'_ str, &'_ str)| path.split('/').nth(4).map(str::to_owned);
    let is_up = |name: &String| {
        name != "lo" && texts.text(&file(name, "operstate")).is_ok_and(|state| state != "down")
    };
    let names: Vec<String> = texts.matching(STATE).filter_map(name).filter(is_up).collect();
    if names.is_empty() {
        return Err(
            "no interface but loopback is up here, or /sys/class/net cannot be read".to_owned()
        );
    }
    let links: Vec<Link> = names.iter().map(|name| Link::of(texts, name)).collect();
    let seen: Vec<String> = links.iter().map(Link::seen).collect();
    let seen = seen.join("; ");
    let bad: Vec<&Link> = links.iter().filter(|link| link.is_bad()).collect();
    if bad.is_empty() {
        return MachineState::fine(seen);
    }
    let change = |link: &&Link| Change {
        run: format!("ethtool -s {} speed 1000 duplex full autoneg on", link.name),
        today: link.seen(),
        back: None,
    };
    let advice =
        "look at cable, switch port and driver first: ethtool NAME, ethtool -S NAME".to_owned();
    let is_slow = |link: &&&Link| link.is_slow();
    let changes = bad.iter().filter(is_slow).map(change).collect();
    MachineState::worth_changing(seen, Mend { advice, changes })
}

fn file(name: &str, file: &str) -> String {
    format!("/sys/class/net/{name}/{file}")
}

/// One interface.
struct Link {
    name: String,
    mtu: Option<u64>,
    /// Mbit/s; virtual interfaces have none.
    speed: Option<u64>,
    duplex: Option<String>,
    /// Errors and collisions, and packets; `None` where one could not be read.
    errors: Option<(u64, u64)>,
}

impl Link {
    fn of(texts: &MachineTexts, name: &str) -> Self {
        let number = |at: &str| texts.number(&file(name, at)).ok();
        let count = |at: &str| number(&format!("statistics/{at}"));
        let errors = || {
            let errors = count("rx_errors")? + count("tx_errors")? + count("collisions")?;
            Some((errors, count("rx_packets")? + count("tx_packets")?))
        };
        Self {
            name: name.to_owned(),
            mtu: number("mtu"),
            // Drivers that do not know it say -1, 0 or 4294967295.
            speed: number("speed").filter(|&speed| speed > 0 && speed < u64::from(u32::MAX)),
            duplex: texts.text(&file(name, "duplex")).ok().map(str::to_owned),
            errors: errors(),
        }
    }

    fn is_slow(&self) -> bool {
        self.duplex.as_deref() == Some("half") || self.speed.is_some_and(|speed| speed < SPEED_MIN)
    }

    fn is_bad(&self) -> bool {
        let loses =
            |(errors, packets): (u64, u64)| errors as f64 > ERROR_SHARE_MAX * packets as f64;
        self.is_slow() || self.errors.is_some_and(loses)
    }

    fn seen(&self) -> String {
        let unknown = || "unknown".to_owned();
        let speed = self.speed.map_or_else(unknown, |speed| format!("{} Mbit/s", grouped(speed)));
        let duplex = self.duplex.clone().filter(|duplex| duplex != "unknown");
        let duplex = duplex.unwrap_or_else(unknown);
        let errors = self.errors.map_or_else(unknown, |(errors, packets)| {
            format!("{} in {}", grouped(errors), words::count(packets, "packet"))
        });
        let mtu = self.mtu.map_or_else(unknown, grouped);
        format!("{}: MTU {mtu}, speed {speed}, duplex {duplex}, errors {errors}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::super::planted;
    use super::*;

    /// An interface eth0 beside a loopback.
    fn files(speed: &str, duplex: &str, errors: &str) -> Vec<(String, String)> {
        let statistics = ["tx_errors", "collisions", "rx_packets", "tx_packets"];
        let mut files = vec![
            (file("lo", "operstate"), "unknown".to_owned()),
            (file("eth0", "operstate"), "up".to_owned()),
            (file("eth0", "mtu"), "1500".to_owned()),
            (file("eth0", "speed"), speed.to_owned()),
            (file("eth0", "duplex"), duplex.to_owned()),
            (file("eth0", "statistics/rx_errors"), errors.to_owned()),
        ];
        files.extend(statistics.map(|name| {
            let count = if name.ends_with("packets") { "50000" } else { "0" };
            (file("eth0", &format!("statistics/{name}")), count.to_owned())
        }));
        files
    }

    fn borrowed(files: &[(String, String)]) -> Vec<(&str, &str)> {
        files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect()
    }

    #[test]
    fn half_duplex_a_slow_link_and_errors_are_worth_changing() {
        let good = files("10000", "full", "0");
        let seen = planted::fine(&ITEM, &borrowed(&good));
        assert_eq!(
            seen,
            "eth0: MTU 1,500, speed 10,000 Mbit/s, duplex full, errors 0 in 100,000 packets"
        );
        for bad in [files("1000", "half", "0"), files("100", "full", "0")] {
            let (_, run) = planted::mended(&ITEM, &borrowed(&bad));
            assert_eq!(run, "ethtool -s eth0 speed 1000 duplex full autoneg on");
        }
        let (_, advice) = planted::mended(&ITEM, &borrowed(&files("10000", "full", "500")));
        assert!(advice.contains("ethtool -S"), "{advice}");
    }

    #[test]
    fn what_a_virtual_interface_does_not_know_is_unknown() {
        let seen = planted::fine(&ITEM, &borrowed(&files("-1", "unknown", "0")));
        assert!(seen.contains("speed unknown, duplex unknown"), "{seen}");
    }
}
