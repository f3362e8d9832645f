//! Owns the check that kept connections were kept: by ab's count of kept requests, and by the bytes of heads, in
//! which a reply that ends its connection says so. Start reading at [`look`].

use record::{Certainty, Question, Severity};

use crate::printed::check::{Conclusion, Effect, PrintedCheck, Seen};
use crate::printed::row::{Printed, Row};
use crate::words;

/// See the module.
pub(crate) const ITEM: PrintedCheck = PrintedCheck {
    name: "keep_alive_ended",
    severity: Severity::Bound,
    question: Question::DoesItMatter,
    title: "the server ended connections that were to be kept",
    meaning: "the load opened connections that nobody ordered, so servers with another limit did other work",
    detection: "ab -k: complete requests less Keep-Alive requests are replies that ended their connection; seen from \
                2 % on. Confirmed where the bytes of heads say the same: all heads are alike but for `Connection: \
                close` (19 bytes, or 5 less than `Connection: keep-alive`) in just as many replies. Without a count: \
                heads of all replies alike but for a multiple of 19 bytes",
    remedy: "raise the server's limit of requests a connection (nginx keepalive_requests, Apache \
             MaxKeepAliveRequests, lighttpd server.max-keep-alive-requests), or set all servers to the same",
    example: "ab -k against MaxKeepAliveRequests 10: Complete requests: 2000, Keep-Alive requests: 1800",
    source: "httpd, docs/manual/mod/core.html#maxkeepaliverequests; nginx, ngx_http_core_module",
    touches: &[(Conclusion::Rate, Effect::AtLeast), (Conclusion::Ranking, Effect::InDoubt)],
    look,
};

/// Share of replies that ended their connection from which it matters: joust's check of its own loads has 5 %
/// for connections, whose limits are 10 to 1,000 requests; one in a hundred (Apache's default) costs little.
const ENDED_SHARE_MIN: f64 = 0.02;
/// Length of `Connection: close` and its line end.
const CLOSE_BYTES: u64 = 19;
/// By how much `Connection: keep-alive` is longer.
const KEPT_LONGER_BYTES: u64 = 5;
/// Largest share of odd heads that is looked for without a count: a larger one fits too many lengths.
const ODD_SHARE_MAX: f64 = 0.11;
/// Fewest replies for which the rest of a division by them says anything.
const REPLIES_MIN: u64 = 1000;

fn look(printed: &Printed) -> Vec<Seen> {
    printed
        .indexed()
        .filter_map(|(at, row)| counted(at, row).or_else(|| by_heads(at, row)))
        .collect()
}

/// ab -k counts requests on connections that the server promised to keep.
fn counted(at: usize, row: &Row) -> Option<Seen> {
    let report = row.report.as_ref().filter(|report| report.tool == "ab")?;
    let (complete, kept) = (report.requests.complete?, report.requests.kept_alive?);
    let ended = complete.checked_sub(kept)?;
    let share = ended as f64 / complete as f64;
    if complete == 0 || share < ENDED_SHARE_MIN {
        return None;
    }
    let heads = heads(row);
    let says_so = heads.is_some_and(|heads| {
        let less = heads.checked_sub(CLOSE_BYTES.saturating_mul(ended));
        less.is_some_and(|bytes| bytes.is_multiple_of(complete))
            || heads
                .saturating_add(KEPT_LONGER_BYTES.saturating_mul(ended))
                .is_multiple_of(complete)
    });
    // Where none was kept, all heads are alike, and the count alone is witness enough.
    let certainty = if says_so || kept == 0 { Certainty::Confirmed } else { Certainty::Suspected };
    let evidence = format!(
        "{}: {} of {} replies ended their connection ({}), one in {:.1}{}",
        row.name,
        words::grouped(ended),
        words::grouped(complete),
        words::percent(share),
        complete as f64 / ended as f64,
        if says_so && kept > 0 { "; the bytes of their heads say so too" } else { "" },
    );
    Some(Seen { certainty, rows: vec![at], share: Some(share), evidence })
}

/// Bytes of all heads, where the tool tells them apart.
fn heads(row: &Row) -> Option<u64> {
    let traffic = &row.report.as_ref()?.traffic;
    let difference =
        traffic.received.zip(traffic.bodies).map(|(all, bodies)| all.0 - bodies.0.min(all.0));
    traffic.heads.map(|heads| heads.0).or(difference)
}

/// Without a count: all heads but a few are of one length, and those are longer by `Connection: close`.
fn by_heads(at: usize, row: &Row) -> Option<Seen> {
    let report = row.report.as_ref()?;
    let is_of_kept = matches!(report.tool, "weighttp");
    let complete = report.requests.complete.filter(|&n| n >= REPLIES_MIN && is_of_kept)?;
    if report.requests.failed != Some(0) || report.requests.non_2xx != Some(0) {
        return None;
    }
    let rest = heads(row)? % complete;
    let ended = rest / CLOSE_BYTES;
    let share = ended as f64 / complete as f64;
    let is_seen = rest > 0
        && rest.is_multiple_of(CLOSE_BYTES)
        && (ENDED_SHARE_MIN..ODD_SHARE_MAX).contains(&share);
    let evidence = format!(
        "{}: heads of {} replies are alike but for {} bytes, which are {} times `Connection: close` ({})",
        row.name,
        words::grouped(complete),
        words::grouped(rest),
        words::grouped(ended),
        words::percent(share),
    );
    let seen =
        Seen { certainty: Certainty::Suspected, rows: vec![at], share: Some(share), evidence };
    is_seen.then_some(seen)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::printed::testdata::{AB, evidence, printed, with};

    fn kept(kept: u64, heads: u64) -> String {
        let text = with(
            AB,
            "Failed requests:        0",
            &format!("Failed requests: 0\nKeep-Alive requests: {kept}"),
        );
        with(&text, "719600000 bytes", &format!("{} bytes", 672_200_000 + heads))
    }

    #[test]
    fn kept_and_unordered_connections_are_silent() {
        assert_eq!(look(&printed(AB)), []);
        assert_eq!(look(&printed(&kept(198_000, 200_000 * 242 - 5 * 2000))), []);
    }

    #[test]
    fn one_in_ten_is_confirmed_by_the_heads() {
        let told = "paste (ab): 20,000 of 200,000 replies ended their connection (10 %), one in 10.0; the bytes of \
                    their heads say so too";
        for heads in [200_000 * 237 + 19 * 20_000, 200_000 * 261 - 5 * 20_000] {
            let seen = look(&printed(&kept(180_000, heads)));
            assert_eq!(evidence(&seen), [told]);
            assert_eq!(seen[0].certainty, Certainty::Confirmed);
        }
        let seen = look(&printed(&kept(180_000, 200_000 * 237 + 7)));
        assert_eq!(seen[0].certainty, Certainty::Suspected);
    }

    #[test]
    fn keep_alive_that_was_never_granted_is_certain() {
        let seen = look(&printed(&kept(0, 200_000 * 237)));
        assert_eq!((seen[0].certainty, seen[0].share), (Certainty::Confirmed, Some(1.0)));
    }
}
