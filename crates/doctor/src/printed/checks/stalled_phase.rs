//! Owns the check of which phase of requests holds stalls, and how many. Start reading at [`look`].
//!
//! If a share p of the requests waits T in a phase and the others hardly at all, the phase's mean is p T above
//! the rest, and its variance p (1 - p) T^2. Both give p; where they agree, the phase is of two kinds of requests.

use record::{Certainty, Question, Severity};

use crate::printed::check::{Conclusion, Effect, PrintedCheck, Seen};
use crate::printed::figure::Figure;
use crate::printed::row::{Phase, Printed, Row};
use crate::printed::timers::TIMERS;
use crate::printed::words as rows_words;
use crate::words;

/// See the module.
pub(crate) const ITEM: PrintedCheck = PrintedCheck {
    name: "stalled_phase",
    severity: Severity::Void,
    question: Question::WhyNotDouble,
    title: "one phase of requests is stalled by a timer",
    meaning: "a few requests wait for a timer and make most of the mean; connecting means lost SYNs (a full accept \
              queue), waiting means lost segments or a request whose connection the server does not know",
    detection: "The maximum of a phase lies on a timer of the kernel, and the shares of stalls by mean and by standard \
                deviation agree within a factor of 1.5 and the rounding: (mean - median) / T and sd^2 / T^2. Confirmed \
                where they make half of the phase's mean",
    remedy: "for connecting: raise the listen backlog and net.core.somaxconn; for waiting: look for retransmissions \
             (nstat TcpRetransSegs) on the path",
    example: "Connect: 0 31 173.2 0 1003: 3.1 % of the connections waited one second",
    source: "Bernoulli mixture: mean p T, variance p (1 - p) T^2; httpd, support/ab.c",
    touches: &[(Conclusion::Latency, Effect::Void), (Conclusion::Rate, Effect::AtLeast)],
    look,
};

/// By what factor the two estimates may differ.
const AGREE_FACTOR: f64 = 1.5;
/// Fewest stalled requests by both estimates.
const STALLS_MIN: f64 = 2.0;
/// Largest share of stalled requests that is no longer an exception.
const SHARE_MAX: f64 = 0.5;
/// Share of the mean that stalls make at least: below it the spread of all others may look like stalls.
const OF_MEAN_MIN: f64 = 0.2;
/// Share of the mean that stalls make, from which they rule it.
const OF_MEAN_CONFIRMS: f64 = 0.5;
/// The shortest timer that means and deviations of ab can show, which are whole and tenths of milliseconds.
const TIMER_SECONDS_MIN: f64 = 0.2;

fn look(printed: &Printed) -> Vec<Seen> {
    printed.indexed().filter_map(|(at, row)| look_at(at, row)).collect()
}

/// Phases that are parts of others: the deepest that shows it is where it happens.
const DEEPEST_FIRST: &[&str] = &["connect", "waiting", "processing", Phase::TOTAL];

fn look_at(at: usize, row: &Row) -> Option<Seen> {
    DEEPEST_FIRST.iter().find_map(|name| {
        let stalls = stalls(&row.phase(name), row)?;
        let evidence = format!(
            "{}: {name}: {} of {} requests ({}) waited {} by the mean, {} by the standard deviation; they make {} of \
             the mean",
            row.name,
            words::grouped(stalls.by_mean.round() as u64),
            words::grouped(stalls.requests as u64),
            words::percent(stalls.by_mean / stalls.requests),
            rows_words::time(stalls.timer),
            words::grouped(stalls.by_deviation.round() as u64),
            words::percent(stalls.of_mean),
        );
        let certainty = match stalls.of_mean >= OF_MEAN_CONFIRMS {
            true => Certainty::Confirmed,
            false => Certainty::Suspected,
        };
        let share = Some(stalls.by_mean / stalls.requests);
        Some(Seen { certainty, rows: vec![at], share, evidence })
    })
}

struct Stalls {
    requests: f64,
    timer: f64,
    by_mean: f64,
    by_deviation: f64,
    of_mean: f64,
}

fn stalls(phase: &Phase, row: &Row) -> Option<Stalls> {
    let (mean, sd, max) = (phase.mean?, phase.sd?, phase.max?);
    let requests = row.complete?.value;
    // wrk's figures hold latencies that it added.
    if row.tool() == Some("wrk") {
        return None;
    }
    let rest = phase.median.unwrap_or(phase.min?);
    let rungs = TIMERS.iter().filter(|timer| timer.base() >= TIMER_SECONDS_MIN);
    let timer = rungs.filter(|timer| timer.rung(max).is_some()).map(|timer| timer.base());
    timer.into_iter().find_map(|base| {
        let above = Figure {
            low: (mean.low - rest.high).max(0.0),
            value: mean.value - rest.value,
            high: mean.high - rest.low,
        };
        let by_mean =
            Figure { low: above.low / base, value: above.value / base, high: above.high / base };
        let by_deviation = deviation_share(sd, base)?;
        let agree = by_mean.low <= by_deviation.high * AGREE_FACTOR
            && by_deviation.low <= by_mean.high * AGREE_FACTOR;
        let enough = by_mean.value.min(by_deviation.value) * requests >= STALLS_MIN;
        let of_mean = (above.value / mean.value).min(1.0);
        let is_seen = agree
            && enough
            && of_mean >= OF_MEAN_MIN
            && by_mean.value <= SHARE_MAX
            && rest.high < 0.5 * base;
        is_seen.then_some(Stalls {
            requests,
            timer: base,
            by_mean: by_mean.value * requests,
            by_deviation: by_deviation.value * requests,
            of_mean,
        })
    })
}

/// p of p (1 - p) = sd^2 / T^2, the smaller root.
fn deviation_share(sd: Figure, timer: f64) -> Option<Figure> {
    let share = |sd: f64| {
        let square = (sd / timer).powi(2);
        (square <= 0.25).then(|| (1.0 - (1.0 - 4.0 * square).sqrt()) / 2.0)
    };
    Some(Figure {
        low: share(sd.low)?,
        value: share(sd.value)?,
        high: share(sd.high).unwrap_or(0.5),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::printed::testdata::{AB, WRK, evidence, printed, with};

    #[test]
    fn sound_reports_are_silent() {
        for text in [AB, WRK] {
            assert_eq!(look(&printed(text)), []);
        }
    }

    #[test]
    fn lost_syns_are_counted_twice_over() {
        // 3 % of 200,000 wait 1 s: mean 30 ms, deviation sqrt(0.03 x 0.97) s = 170.6 ms.
        let text = with(
            AB,
            "Connect:        0    1   0.6      1       9",
            "Connect:        0   30 170.6      0    1009",
        );
        let seen = look(&printed(&text));
        let told = "paste (ab): connect: 6,000 of 200,000 requests (3 %) waited 1s by the mean, 6,001 by the standard \
                    deviation; they make 100 % of the mean";
        assert_eq!(evidence(&seen), [told]);
        assert_eq!(seen[0].certainty, Certainty::Confirmed);
        // Half the dose, half the share.
        let text = with(
            AB,
            "Connect:        0    1   0.6      1       9",
            "Connect:        0   15 121.6      0    1009",
        );
        assert!((look(&printed(&text))[0].share.unwrap() - 0.015).abs() < 1e-6);
    }

    #[test]
    fn a_wide_phase_with_its_maximum_on_a_timer_is_none_of_it() {
        let text = with(
            AB,
            "Processing:     1    5   1.9      5      29",
            "Processing:     1  300 160.0    280    1009",
        );
        assert_eq!(look(&printed(&text)), []);
    }

    #[test]
    fn the_phase_tells_where() {
        let text = with(
            AB,
            "Waiting:        0    4   1.8      4      28",
            "Waiting:        0    6  20.0      4     208",
        );
        let seen = look(&printed(&text));
        assert!(
            evidence(&seen)[0].contains("waiting: 2,000 of 200,000 requests (1 %) waited 200ms"),
            "{seen:?}"
        );
    }
}
