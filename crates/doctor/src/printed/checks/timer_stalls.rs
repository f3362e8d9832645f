//! Owns the check that the tail of latencies does not sit on the kernel's timers. Start reading at [`look`].

use record::{Certainty, Question, Severity};

use crate::printed::check::{Conclusion, Effect, PrintedCheck, Seen};
use crate::printed::figure::Figure;
use crate::printed::row::{Printed, Row};
use crate::printed::timers::{TIMERS, Timer};
use crate::printed::words;

/// See the module.
pub(crate) const ITEM: PrintedCheck = PrintedCheck {
    name: "timer_stalls",
    severity: Severity::Void,
    question: Question::WhyNotDouble,
    title: "the tail sits on a timer of the kernel",
    meaning: "these requests waited for a timer (a lost SYN, a lost segment, a delayed acknowledgement), not for the \
              server",
    detection: "Two percentiles or more, or a percentile and the maximum, lie within 6 % above a timer or a sum of its \
                doublings (40 ms; 200 ms; 1, 3, 7, 15 s; 3, 9, 21 s; 3.375 s), and the percentile before them lies \
                below half of it. From 1 s on the maximum alone is enough, 20 times above the percentile before it",
    remedy: "look for the witness: nstat TcpExtListenOverflows, TcpRetransSegs, TcpExtDelayedACKs on both sides; raise \
             the backlog, or set TCP_NODELAY",
    example: "50 % 2 ms, 98 % 5 ms, 99 % 1003 ms, 100 % 3008 ms",
    source: "Linux, include/net/tcp.h (TCP_DELACK_MIN, TCP_RTO_MIN, TCP_TIMEOUT_INIT); RFC 6298",
    touches: &[(Conclusion::Latency, Effect::InDoubt), (Conclusion::Rate, Effect::AtLeast)],
    look,
};

/// How far below a timer the rest of the latencies has to end.
const BULK_SHARE_MAX: f64 = 0.5;
/// How far above the rest of the latencies a lone maximum has to be.
const LONE_TIMES: f64 = 20.0;
/// From this timer on a lone maximum is told: shorter ones are met by accident.
const LONE_SECONDS_MIN: f64 = 1.0;

fn look(printed: &Printed) -> Vec<Seen> {
    printed.indexed().filter_map(|(at, row)| look_at(at, row)).collect()
}

fn look_at(at: usize, row: &Row) -> Option<Seen> {
    let ladder = ladder(row);
    let (timer, first, rung) = TIMERS.iter().find_map(|timer| {
        let first = ladder.iter().position(|(_, time)| timer.rung(*time).is_some())?;
        let rung = timer.rung(ladder[first].1)?;
        is_timer_made(timer, &ladder, first).then_some((timer, first, rung))
    })?;
    let (name, time) = &ladder[first];
    let before = match first {
        0 => String::new(),
        _ => format!(", {} {}", ladder[first - 1].0, words::time(ladder[first - 1].1.value)),
    };
    let share = name.strip_suffix(" %").and_then(|percent| percent.parse::<f64>().ok());
    let evidence = format!(
        "{}: {name} within {}, just above {} ({}){before}",
        row.name,
        words::time(time.value),
        words::time(rung),
        timer.cause,
    );
    let share = share.map(|percent| 1.0 - percent / 100.0);
    Some(Seen { certainty: Certainty::Suspected, rows: vec![at], share, evidence })
}

/// Percentiles and the maximum, ascending.
fn ladder(row: &Row) -> Vec<(String, Figure)> {
    let tail = row.percentiles.iter().filter(|(percent, _)| *percent < 100.0);
    let mut ladder: Vec<(String, Figure)> =
        tail.map(|(percent, time)| (format!("{percent} %"), *time)).collect();
    if ladder.is_empty() {
        ladder.extend(row.total().mean.map(|mean| ("the mean".to_owned(), mean)));
    }
    let max = row.total().max.or(row.percentile(100.0));
    ladder.extend(max.map(|max| ("the longest".to_owned(), max)));
    ladder
}

/// Two figures or more from `first` on lie on rungs of the timer, and all before it far below. What lies above may
/// be waits that met several timers.
fn is_timer_made(timer: &Timer, ladder: &[(String, Figure)], first: usize) -> bool {
    let Some((_, before)) = first.checked_sub(1).map(|at| &ladder[at]) else { return false };
    let above = &ladder[first..];
    let on = above.iter().take_while(|(_, time)| timer.rung(*time).is_some()).count();
    let is_lone = above.len() == 1
        && timer.base() >= LONE_SECONDS_MIN
        && before.high * LONE_TIMES < above[0].1.low;
    before.high < BULK_SHARE_MAX * timer.base() && (on > 1 || is_lone)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::printed::testdata::{AB, WRK, evidence, printed, with};

    #[test]
    fn tails_off_the_timers_are_silent() {
        for text in [AB, WRK] {
            assert_eq!(look(&printed(text)), []);
        }
        // A lone maximum near a short timer is met by accident.
        let text = with(AB, " 100%     33", " 100%     42");
        let text = with(&text, "2.1      6      33", "2.1      6      42");
        assert_eq!(look(&printed(&text)), []);
    }

    #[test]
    fn a_lost_syn_is_seen_by_its_second() {
        let text = with(AB, " 100%     33", " 100%   1008");
        let text = with(&text, "2.1      6      33", "2.1      6    1008");
        let seen = look(&printed(&text));
        let told = "paste (ab): the longest within 1.01s, just above 1s (a SYN that was sent again), 99 % 14ms";
        assert_eq!(evidence(&seen), [told]);
    }

    #[test]
    fn a_plateau_is_seen_below_longer_waits() {
        let text = with(AB, "  95%     10", "  95%   3055");
        let text = with(&text, "  98%     12\n  99%     14", "  98%   3090\n  99%   3402");
        let text = with(&text, " 100%     33", " 100%  21080");
        let seen = look(&printed(&with(&text, "2.1      6      33", "2.1      6   21080")));
        assert!(evidence(&seen)[0].contains("95 % within 3.06s, just above 3s"), "{seen:?}");
        assert!((seen[0].share.unwrap() - 0.05).abs() < 1e-9);
    }

    #[test]
    fn delayed_acknowledgements_need_two_figures() {
        let text = with(AB, "  99%     14", "  99%     41");
        let text = with(&text, " 100%     33", " 100%     42");
        let text = with(&text, "2.1      6      33", "2.1      6      42");
        let seen = look(&printed(&text));
        assert!(evidence(&seen)[0].contains("just above 40ms"), "{seen:?}");
        assert!((seen[0].share.unwrap() - 0.01).abs() < 1e-9);
    }
}
