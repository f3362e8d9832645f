//! Owns the check that rate, latency and requests in flight agree. Start reading at [`look`].
//!
//! In a closed loop N requests are in flight, so N = X R (Little's law). What is printed may differ from it by
//! what is no fault: the first and last requests of a connection, the time between two requests of it (one
//! connection a thread of the tool at a time), and wrk's correction, which adds latencies that nobody waited.
//! ab's "Time per request (mean)" is N / X by construction and proves nothing; its mean of Total does.

use record::{Certainty, Question, Severity};

use crate::printed::check::{Conclusion, Effect, PrintedCheck, Seen};
use crate::printed::figure::Figure;
use crate::printed::row::{Origin, Printed, Row};
use crate::printed::words;

/// See the module.
pub(crate) const ITEM: PrintedCheck = PrintedCheck {
    name: "littles_law",
    severity: Severity::Void,
    question: Question::DidItBreakALimit,
    title: "rate times latency is not what was in flight",
    meaning: "a part of the time is in no latency (connecting, delays of the tool itself), or latencies are counted \
              that nobody waited, or fewer connections were at work than ordered",
    detection: "In a closed loop, requests in flight = rate x mean latency, within 3 % and the rounding of \
                what is printed; the first and last requests, and one connection a thread of the tool, may be \
                missing. Confirmed where the loop is known to be closed, or half of the rows obey",
    remedy: "ask what the latency covers (connecting, waiting for a free connection) and how many connections \
             were at work; until then use the rate alone: mean latency = connections / rate",
    example: "4,096 connections, 100,000 requests a second, mean latency 20 ms: 2,000 requests were in flight",
    source: "Little, A Proof for the Queuing Formula L = λW, Operations Research 9(3), 1961",
    touches: &[(Conclusion::Latency, Effect::Void)],
    look,
};

/// By how much the law may be missed for reasons that are not modelled here.
const TOLERANCE_SHARE: f64 = 0.03;
/// Time that a tool may need to start threads and connections, in seconds: h2load needs 35 ms on two CPUs.
const START_SECONDS: f64 = 0.05;
/// Replies that are errors are answered in another time; with more of them the law is not judged.
const ERRORS_SHARE_MAX: f64 = 0.01;
/// From this many rows that obey, a table has shown that its loop is closed.
const OBEYING_MIN: usize = 3;
/// Share of requests that opened a connection from which the words say so.
const RECONNECTS_TOLD_SHARE: f64 = 0.01;

/// Requests in flight by rate and latency, as a share of those ordered.
struct Judged {
    row: usize,
    share: f64,
    breaks: bool,
}

fn look(printed: &Printed) -> Vec<Seen> {
    let judged: Vec<Judged> = printed.indexed().filter_map(|(at, row)| judge(at, row)).collect();
    let mut broken: Vec<&Judged> = judged.iter().filter(|one| one.breaks).collect();
    if broken.is_empty() {
        return Vec::new();
    }
    broken.sort_by(|one, other| one.share.ln().abs().total_cmp(&other.share.ln().abs()).reverse());
    let rows: Vec<usize> = broken.iter().map(|one| one.row).collect();
    let shares: Vec<f64> = broken.iter().map(|one| one.share).collect();
    let told: Vec<String> = broken
        .iter()
        .map(|one| {
            let share = words::percent_range(&[one.share]);
            format!("{} {share}", printed.rows[one.row].name)
        })
        .collect();
    let evidence = format!(
        "{} rate x mean latency is {} of the connections' requests in flight{}{}",
        words::subject(printed, &rows, judged.len()),
        words::percent_range(&shares),
        words::examples(&told),
        reconnecting(printed, &rows),
    );
    vec![Seen { certainty: certainty(printed, &judged), rows, share: None, evidence }]
}

/// Confirmed where the loop is known to be closed, or rows that obey have shown it.
fn certainty(printed: &Printed, judged: &[Judged]) -> Certainty {
    let is_known = judged
        .iter()
        .filter(|one| one.breaks)
        .all(|one| printed.rows[one.row].load.closed == Some(true));
    let obeying = judged.iter().filter(|one| !one.breaks).count();
    let is_shown = obeying >= OBEYING_MIN && 2 * obeying >= judged.len();
    if is_known || is_shown { Certainty::Confirmed } else { Certainty::Suspected }
}

fn reconnecting(printed: &Printed, rows: &[usize]) -> String {
    let many = rows.iter().filter(|&&row| {
        let row = &printed.rows[row];
        let share = row.reconnects.zip(row.complete).map(|(n, all)| n as f64 / all.value);
        share.is_some_and(|share| share > RECONNECTS_TOLD_SHARE)
    });
    match many.count() {
        0 => String::new(),
        n => format!("; {n} of them opened connections anew, which is in no latency"),
    }
}

fn judge(at: usize, row: &Row) -> Option<Judged> {
    if row.load.closed == Some(false) || row.load.reconnects {
        return None;
    }
    // Users of siege and k6 may pause between requests, and hey's and oha's rate may be an ordered one: they do not
    // print which.
    if matches!(row.tool(), Some("siege" | "k6" | "hey" | "oha")) && row.load.closed.is_none() {
        return None;
    }
    let (rate, mean, duration) = (row.rate?, row.total().mean?, row.duration);
    let ordered = match row.may_be_in_flight() {
        Some(ordered) => ordered,
        // Of h2load: at least one stream a client.
        None if row.tool() == Some("h2load") => row.connections?,
        None => return None,
    };
    let errors = row.bad_status.zip(row.complete).map_or(0.0, |(n, all)| n as f64 / all.value);
    if rate.value <= 0.0
        || mean.value <= 0.0
        || (!row.has_errors_in_rate && errors > ERRORS_SHARE_MAX)
    {
        return None;
    }
    let product = rate.times(mean);
    let is_too_small = product.high < least(row, ordered, duration);
    let is_too_large =
        product.low > ordered.high * (1.0 + TOLERANCE_SHARE) && !may_exceed(row, ordered, product);
    Some(Judged {
        row: at,
        share: product.value / ordered.value,
        breaks: is_too_small || is_too_large,
    })
}

/// Fewest requests in flight that a sound load of this kind shows.
fn least(row: &Row, ordered: Figure, duration: Option<Figure>) -> f64 {
    let outside = match row.origin {
        // ab has one thread, whatever the version.
        Origin::Report(_) => row.threads.unwrap_or(1).max(1) as f64,
        // hey's threads are as many as the machine has CPUs; its connections are not printed.
        Origin::Table | Origin::League => 1.0,
    };
    let total = row.total();
    let longest = total
        .max
        .or(row.percentiles.last().map(|(_, at)| *at))
        .or(total.mean)
        .map_or(0.0, |longest| longest.high);
    let connect = row.phase("connect").max.map_or(0.0, |longest| longest.high);
    // A table says how long was ordered, and starts its generator before.
    let start = if row.is_duration_nominal { 0.0 } else { START_SECONDS };
    let ends = duration.map_or(0.0, |time| (longest + connect + start) / time.value.max(1e-9));
    (ordered.low - outside) * (1.0 - TOLERANCE_SHARE - ends)
}

/// Whether more than ordered may be seen without a fault.
fn may_exceed(row: &Row, ordered: Figure, product: Figure) -> bool {
    match row.tool() {
        // With -m above 1; and its times of requests are of a sample.
        Some("h2load") => true,
        // wrk adds latencies where one is at least twice the mean interval (`stats_correct`); with a script
        // that pipelines, a latency is that of a batch.
        Some("wrk") => {
            let interval = ordered.value / row.rate.map_or(f64::INFINITY, |rate| rate.high);
            // What is added to a latency lies below it, evenly; nothing is added to one below two intervals.
            row.total().max.is_none_or(|max| {
                let mean = product.low * interval / ordered.value;
                max.high >= 2.0 * interval * (1.0 - TOLERANCE_SHARE)
                    && mean <= f64::midpoint(interval, max.high) * (1.0 + TOLERANCE_SHARE)
            })
        }
        Some(_) => false,
        // A table does not say which tool it is of. What is a whole multiple is a depth of pipelining.
        None => {
            let multiple = (product.value / ordered.value).round();
            row.pipeline.is_none()
                && multiple >= 2.0
                && product.may_equal(Figure {
                    low: ordered.low * multiple * (1.0 - TOLERANCE_SHARE),
                    value: ordered.value * multiple,
                    high: ordered.high * multiple * (1.0 + TOLERANCE_SHARE),
                })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::printed::testdata::{AB, WRK, evidence, of, printed, with};

    #[test]
    fn reports_that_obey_are_silent() {
        for text in [AB, WRK] {
            assert_eq!(look(&printed(text)), []);
        }
    }

    #[test]
    fn abs_own_mean_proves_nothing_but_that_of_total_does() {
        let text = with(
            AB,
            "Total:          1    6   2.1      6      33",
            "Total:          0    2   2.1      2      33",
        );
        let seen = look(&printed(&text));
        assert_eq!(seen.len(), 1);
        assert_eq!(seen[0].certainty, Certainty::Confirmed);
        let text =
            "paste (ab): rate x mean latency is 31.2 % of the connections' requests in flight";
        assert_eq!(evidence(&seen), [text]);
        // Another "Time per request" is another check's.
        let text = with(
            AB,
            "Time per request:       6.400 [ms] (mean)",
            "Time per request:       2.000 [ms] (mean)",
        );
        assert_eq!(look(&printed(&text)), []);
    }

    #[test]
    fn a_latency_that_rounds_to_nothing_can_be_anything_it_rounds_from() {
        let text =
            with(AB, "Requests per second:    10000.00", "Requests per second:    100000.00");
        let text = with(
            &text,
            "Total:          1    6   2.1      6      33",
            "Total:          0    0   2.1      0      33",
        );
        // 64 in flight at 100,000/s are 0.64 ms, which ab prints as 1, and old ones as 0.
        assert_eq!(look(&printed(&text)), []);
    }

    #[test]
    fn wrk_may_print_more_than_there_was_but_not_less() {
        // One latency of 40 ms is corrected for by wrk: the mean is too large.
        let more = with(WRK, "1.28ms    0.31ms   2.41ms", "1.90ms    3.31ms  40.41ms");
        assert_eq!(look(&printed(&more)), []);
        let less = with(WRK, "1.28ms    0.31ms   2.41ms", "0.64ms    0.31ms   2.41ms");
        let less = with(&less, "0.64ms", "640.00us");
        assert_eq!(look(&printed(&less)).len(), 1);
        let far = with(WRK, "1.28ms    0.31ms   2.41ms", "30.90ms    3.31ms  40.41ms");
        assert_eq!(look(&printed(&far)).len(), 1, "no correction adds as much");
        let none = with(WRK, "1.28ms    0.31ms   2.41ms", "1.90ms    0.31ms   2.41ms");
        assert_eq!(look(&printed(&none)).len(), 1, "nothing was corrected here");
    }

    fn table(rows: &[(u64, f64)]) -> String {
        let mut text = "server,connections,req/s,mean latency (ms),duration\n".to_owned();
        for (at, (rate, mean)) in rows.iter().enumerate() {
            text += &format!("s{at},512,{rate},{mean:.2},10s\n");
        }
        text
    }

    #[test]
    fn rows_of_a_table_are_judged_together() {
        let sound = [(100_003, 5.12), (50_001, 10.24), (20_011, 25.59), (10_007, 51.16)];
        assert_eq!(look(&printed(&table(&sound))), []);
        let mut planted = sound.to_vec();
        planted.extend([(40_003, 6.40), (8_009, 2.00)]);
        let seen = look(&printed(&table(&planted)));
        let text = "2 of 6 rows: rate x mean latency is 3.13 % to 50 % of the connections' requests in flight \
                    (s5 3.13 %, s4 50 %)";
        assert_eq!(evidence(&seen), [text]);
        assert_eq!(
            (seen[0].certainty, seen[0].rows.as_slice()),
            (Certainty::Confirmed, &[5, 4][..])
        );
        // Alone, nothing shows that the loop is closed.
        let seen = look(&printed(&table(&[(40_003, 6.40)])));
        assert_eq!(seen[0].certainty, Certainty::Suspected);
    }

    #[test]
    fn loads_that_the_law_says_nothing_about_are_left_out() {
        let row = r#"[{"framework": "a", "rps": 100000, "avg_latency": "1.00ms",
            "p99_latency": "3.1ms", "connections": 512, "duration": "5s", "pipeline": 1}]"#;
        assert_eq!(look(&of(&[("baseline-512.json", row)])).len(), 1);
        for profile in ["limited-conn-512.json", "json-h2-512.json", "latency-512.json"] {
            assert_eq!(look(&of(&[(profile, row)])), [], "{profile}");
        }
    }
}
