//! Owns the sentence that answers a study: who is first, which contenders it is ahead of and by how much at least,
//! and what is open. It says no more than the verdicts say. Must not know layout or colour. Start reading at
//! [`first_place`].

use record::{Contender, Verdict};

use crate::figures::{counted, listed, ratio_down};
use crate::order::Order;
use crate::wording::{Reading, name_of, verdict};

/// Most contenders that are named; of more, the first of them and the number of the others.
const NAMED_MAX: usize = 4;
/// A smaller lead would be printed as 1.000x, which reads as no lead.
const LEAD_PRINTED_MIN: f64 = 1.0005;

/// The sentence, and whether it answers the question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FirstPlace {
    pub(crate) text: String,
    /// Whether a contender is proved ahead, or all are proved equal.
    pub(crate) is_answer: bool,
}

/// Who is first by the metric of an order; `reference`: the contender that others are compared with, if the plan has
/// one.
pub(crate) fn first_place(
    order: &Order,
    contenders: &[Contender],
    reference: Option<usize>,
) -> FirstPlace {
    let teller = FirstPlaceWriter { order, contenders };
    let text = match (order.readings.as_slice(), order.first().as_slice()) {
        ([only], _) => teller.pair(only),
        _ if order.compared.is_empty() => teller.withheld(),
        (_, first) => match reference.filter(|_| !order.is_whole()) {
            Some(reference) => teller.against(reference),
            None if order.readings.iter().all(|one| one.ahead().is_none()) => teller.nobody(),
            None => match first {
                [] => teller.circle(),
                [only] => teller.lone(*only),
                group => teller.shared(group),
            },
        },
    };
    let is_same = |one: &&Reading| matches!(one.verdict, Verdict::NoDifference { .. });
    let is_answer = order.readings.iter().any(|one| one.ahead().is_some())
        || (!order.readings.is_empty() && order.readings.iter().all(is_same));
    FirstPlace { text: format!("{text}{}.", teller.left_out()), is_answer }
}

/// "at least 1.28x".
pub(crate) fn at_least(lead: f64) -> String {
    if lead < LEAD_PRINTED_MIN {
        "more than 1x".to_owned()
    } else {
        format!("at least {}", ratio_down(lead))
    }
}

/// "a, b and c"; of many, the first of them: "a, b, c and 5 more".
pub(crate) fn named<S: AsRef<str>>(names: &[S]) -> String {
    let shown = if names.len() > NAMED_MAX { NAMED_MAX - 1 } else { names.len() };
    let mut parts: Vec<String> =
        names[..shown].iter().map(|name| name.as_ref().to_owned()).collect();
    if names.len() > shown {
        parts.push(format!("{} more", names.len() - shown));
    }
    listed(&parts)
}

/// Puts an order into words.
struct FirstPlaceWriter<'a> {
    order: &'a Order<'a>,
    contenders: &'a [Contender],
}

impl FirstPlaceWriter<'_> {
    fn name(&self, index: usize) -> String {
        name_of(self.contenders, index)
    }

    fn named(&self, some: &[usize]) -> String {
        named(&some.iter().map(|&index| self.name(index)).collect::<Vec<_>>())
    }

    fn quantity(&self) -> &'static str {
        self.order.metric.info().quantity
    }

    /// The only pair, with its ratio.
    fn pair(&self, only: &Reading) -> String {
        let words = self.order.metric.info();
        let (this, that) = (self.name(only.this), self.name(only.that));
        let measured =
            only.measured().unwrap_or_else(|| "too few blocks for an interval".to_owned());
        match &only.verdict {
            Verdict::Ratio { .. } if only.ahead().is_some() => {
                let factor = words.factor_of_pair(&verdict(&only.verdict), &that);
                let short = only.short().map_or_else(String::new, |short| format!(", {short}"));
                format!("{this} {} {that}: {factor}{short}", words.beats)
            }
            Verdict::AtLeast { ratio: bound, .. } if only.ahead().is_some() => {
                let factor = words.factor_of_pair(&at_least(*bound), &that);
                format!("{this} {} {that}: {factor} (measured: {measured})", words.beats)
            }
            Verdict::NoDifference { margin } => {
                let quantity = words.quantity;
                format!(
                    "{this} and {that} show no difference of {margin} or more in {quantity} ({measured})"
                )
            }
            Verdict::Withheld { reason } => {
                let seen = only.measured().map_or_else(String::new, |seen| {
                    format!("; {this} over {that} measured {seen}, which is not to be relied on")
                });
                format!("No answer by {}: withheld, {reason}{seen}", words.quantity)
            }
            open => {
                let said = verdict(open);
                format!("{this} against {that} by {}: {measured}; {said}", words.quantity)
            }
        }
    }

    fn withheld(&self) -> String {
        let quantity = self.quantity();
        match self.order.readings.len() {
            0 => format!("No answer by {quantity}: no pair was compared"),
            n => format!("No answer by {quantity}: all {n} verdicts are withheld"),
        }
    }

    /// One contender that nobody is ahead of.
    fn lone(&self, first: usize) -> String {
        let words = self.order.metric.info();
        let name = self.name(first);
        let rest: Vec<usize> = self.rest(&[first]);
        let behind = self.behind(&[first], &rest);
        let least = behind.first().map_or(1.0, |(lead, _)| *lead);
        if behind.len() < rest.len() {
            let open: Vec<&Reading> =
                rest.iter().filter_map(|&other| self.order.between(first, other)).collect();
            let open: Vec<&Reading> =
                open.into_iter().filter(|one| one.ahead().is_none()).collect();
            let pairs = self.relations(&open, rest.len() - behind.len());
            let ahead = self.ahead_of(&behind);
            return format!(
                "{name} leads by {}: it is ahead of {ahead}, and nobody is ahead of it; {pairs}",
                words.quantity
            );
        }
        let compared = if self.left_out().is_empty() { "" } else { " that were compared" };
        let whom = match rest.as_slice() {
            [only] => self.name(*only),
            rest => format!("each of the other {}{compared}", rest.len()),
        };
        format!("{name} {}: {}", words.first, words.factor(&at_least(least), &whom))
    }

    /// Several contenders that nobody is ahead of.
    fn shared(&self, group: &[usize]) -> String {
        let rest = self.rest(group);
        let behind = self.behind(group, &rest);
        let is_behind = |index: &usize| behind.iter().any(|(_, other)| other == index);
        let partly: Vec<usize> = rest.iter().copied().filter(|index| !is_behind(index)).collect();
        let who = match group.len() {
            n if n > NAMED_MAX => {
                format!("{n} of {} contenders ({})", self.order.compared.len(), self.named(group))
            }
            _ => self.named(group),
        };
        let among = self.order.among(group);
        let pairs = group.len() * (group.len() - 1) / 2;
        let is_same = |one: &&Reading| matches!(one.verdict, Verdict::NoDifference { .. });
        // Only contenders that are proved equal share a place; otherwise one of them may be ahead.
        let first = match among.len() == pairs && among.iter().all(is_same) {
            true => format!("{who} share first place by {}", self.quantity()),
            false => format!("{who} lead by {}, undecided between them", self.quantity()),
        };
        let mut parts = vec![first];
        let all = if group.len() == 2 { "both".to_owned() } else { format!("all {}", group.len()) };
        if !behind.is_empty() {
            parts.push(format!("{all} are ahead of {}", self.ahead_of(&behind)));
        }
        match partly.as_slice() {
            [] => {}
            [only] => parts.push(format!("{} is behind another one", self.name(*only))),
            some => parts.push(format!("{} are each behind another one", self.named(some))),
        }
        parts.push(self.relations(&among, pairs));
        parts.join("; ")
    }

    /// No verdict puts anybody ahead.
    fn nobody(&self) -> String {
        let readings = &self.order.readings;
        let widest = self.widest(readings);
        let widest = widest.map_or_else(String::new, |text| format!("; the widest gap is {text}"));
        if let Some(Verdict::NoDifference { margin }) = readings.first().map(|one| &one.verdict)
            && readings.iter().all(|one| matches!(one.verdict, Verdict::NoDifference { .. }))
        {
            let (quantity, count) = (self.quantity(), self.order.compared.len());
            return format!(
                "No difference of {margin} or more in {quantity} between any two of {count} \
                 contenders{widest}"
            );
        }
        let counts = counts(readings, readings.len(), "");
        format!("Nobody is proved ahead by {}: {counts}{widest}", self.quantity())
    }

    /// Verdicts that contradict each other: each contender is behind another.
    fn circle(&self) -> String {
        format!("Nobody is first by {}: each contender is behind another one", self.quantity())
    }

    /// Each contender against the reference.
    fn against(&self, reference: usize) -> String {
        let others = self.rest(&[reference]);
        let lead = |&index: &usize| Some((self.order.lead(index, reference)?, index));
        let mut ahead: Vec<(f64, usize)> = others.iter().filter_map(lead).collect();
        ahead.sort_by(|left, right| left.0.total_cmp(&right.0));
        let behind = self.behind(&[reference], &others);
        let mut parts = Vec::new();
        for (list, side) in [(ahead, "ahead"), (behind, "behind")] {
            let is = if list.len() == 1 { "is" } else { "are" };
            if !list.is_empty() {
                parts.push(format!("{} {is} {side}", self.with_lead(&list, "")));
            }
        }
        let rest: Vec<&Reading> =
            self.order.readings.iter().copied().filter(|one| one.ahead().is_none()).collect();
        if !rest.is_empty() {
            parts.push(self.relations(&rest, rest.len()));
        }
        format!("Against {} by {}: {}", self.name(reference), self.quantity(), parts.join("; "))
    }

    /// The compared contenders, without some of them.
    fn rest(&self, some: &[usize]) -> Vec<usize> {
        self.order.compared.iter().copied().filter(|index| !some.contains(index)).collect()
    }

    /// The contenders that everyone in a group is ahead of, and by how much at least, the smallest lead first.
    fn behind(&self, group: &[usize], rest: &[usize]) -> Vec<(f64, usize)> {
        let least = |&other: &usize| {
            let leads: Option<Vec<f64>> =
                group.iter().map(|&one| self.order.lead(one, other)).collect();
            Some((leads?.into_iter().reduce(f64::min)?, other))
        };
        let mut behind: Vec<(f64, usize)> = rest.iter().filter_map(least).collect();
        behind.sort_by(|left, right| left.0.total_cmp(&right.0));
        behind
    }

    /// "lighttpd (at least 1.21x) and of 3 more".
    fn ahead_of(&self, behind: &[(f64, usize)]) -> String {
        self.with_lead(behind, "of ")
    }

    fn with_lead(&self, list: &[(f64, usize)], joined: &str) -> String {
        let one =
            |(lead, index): &(f64, usize)| format!("{} ({})", self.name(*index), at_least(*lead));
        match list {
            [] => "nobody".to_owned(),
            [first, second] => format!("{} and {joined}{}", one(first), one(second)),
            [first] => one(first),
            [first, more @ ..] => format!("{} and {joined}{} more", one(first), more.len()),
        }
    }

    /// What is said of pairs in which neither side is ahead; `pairs`: how many there should be.
    fn relations(&self, readings: &[&Reading], pairs: usize) -> String {
        let ([only], 1) = (readings, pairs) else {
            let widest = self
                .widest(readings)
                .map_or_else(String::new, |text| format!(", the widest gap is {text}"));
            return format!("{}{widest}", counts(readings, pairs, " among them"));
        };
        let (this, that) = (self.name(only.this), self.name(only.that));
        let measured = only.measured().map_or_else(String::new, |seen| format!(" ({seen})"));
        match &only.verdict {
            Verdict::NoDifference { margin } => {
                format!("{this} and {that} show no difference of {margin} or more{measured}")
            }
            Verdict::Withheld { .. } => format!("{this} against {that} is withheld"),
            _ => format!("{this} against {that} is undecided{measured}"),
        }
    }

    /// "a over c (1.05x [0.99, 1.11])": the pair with the greatest ratio, among those that are not withheld.
    fn widest(&self, readings: &[&Reading]) -> Option<String> {
        let is_usable = |one: &&&Reading| !matches!(one.verdict, Verdict::Withheld { .. });
        let size = |one: &&&Reading| one.estimate.map_or(0.0, |estimate| estimate.ratio);
        let usable = readings.iter().filter(is_usable);
        let widest = usable.max_by(|left, right| size(left).total_cmp(&size(right)))?;
        let (this, that) = (self.name(widest.this), self.name(widest.that));
        Some(format!("{this} over {that} ({})", widest.measured()?))
    }

    /// "; not compared: caddy": contenders whose verdicts are all withheld, or that have none.
    fn left_out(&self) -> String {
        if self.order.compared.is_empty() || self.order.readings.len() == 1 {
            return String::new();
        }
        let is_out = |index: &usize| !self.order.compared.contains(index);
        let out: Vec<usize> = (0..self.contenders.len()).filter(is_out).collect();
        if out.is_empty() { String::new() } else { format!("; not compared: {}", self.named(&out)) }
    }
}

/// "all 3 pairs are undecided"; "of 3 pairs, 2 are undecided and 1 shows no difference of 2 % or more".
fn counts(readings: &[&Reading], pairs: usize, which: &str) -> String {
    let count = |is: fn(&Verdict) -> bool| readings.iter().filter(|one| is(&one.verdict)).count();
    let same = count(|verdict| matches!(verdict, Verdict::NoDifference { .. }));
    let withheld = count(|verdict| matches!(verdict, Verdict::Withheld { .. }));
    let missing = pairs.saturating_sub(readings.len());
    let margin = readings.iter().find_map(|one| match one.verdict {
        Verdict::NoDifference { margin } => Some(margin),
        _ => None,
    });
    let alike = margin.map_or_else(String::new, |margin| {
        let verb = if same == 1 { "shows" } else { "show" };
        format!("{verb} no difference of {margin} or more")
    });
    let are =
        |count: usize, what: &str| format!("{} {what}", if count == 1 { "is" } else { "are" });
    let open = readings.len() - same - withheld;
    let parts = [
        (open, are(open, "undecided")),
        (same, alike),
        (withheld, are(withheld, "withheld")),
        (missing, are(missing, "not compared")),
    ];
    let parts: Vec<&(usize, String)> = parts.iter().filter(|(count, _)| *count > 0).collect();
    match parts.as_slice() {
        [(1, what)] if pairs == 1 => format!("the only pair {what}"),
        [(2, what)] => format!("both pairs{which} {what}"),
        [(count, what)] => format!("all {count} pairs{which} {what}"),
        parts => {
            let said: Vec<String> = parts.iter().map(|(n, what)| format!("{n} {what}")).collect();
            format!("of {}{which}, {}", counted(pairs as u64, "pair"), listed(&said))
        }
    }
}

#[cfg(test)]
mod tests {
    use record::{BoundCause, Estimate, Metric, PairVerdict, ShortOf};
    use units::Share;

    use super::*;

    const MARGIN: Share = Share(0.02);
    const NAMES: [&str; 9] =
        ["nginx", "h2o", "caddy", "lighttpd", "apache", "go", "node", "python", "ruby"];

    fn contenders(count: usize) -> Vec<Contender> {
        let named = |name: &&str| Contender { name: (*name).to_owned(), ..Contender::default() };
        NAMES[..count].iter().map(named).collect()
    }

    /// A pair whose estimate is `ratio`, from 5 % below to 5 % above it.
    fn pair(metric: Metric, (a, b): (usize, usize), ratio: f64, verdict: Verdict) -> PairVerdict {
        let (low, high) = (ratio * 0.95, ratio * 1.05);
        let estimate = Estimate { ratio, low, high, blocks: 8, sd_ln: 0.05, p_holm: 0.01 };
        let estimate = Some(estimate);
        PairVerdict { cell: 0, metric, a, b, estimate, verdict, short_of: None }
    }

    fn apart(ratio: f64) -> Verdict {
        Verdict::Ratio { ratio, low: ratio * 0.95, high: ratio * 1.05 }
    }

    fn open() -> Verdict {
        Verdict::Undecided { more_blocks: Some(14), margin: MARGIN }
    }

    fn withheld() -> Verdict {
        Verdict::Withheld { reason: "different_bodies on h2o".to_owned() }
    }

    /// Every pair of contenders with the given speeds; `say` gives the verdict for a pair and its ratio.
    fn all_pairs(speeds: &[f64], say: impl Fn(usize, usize, f64) -> Verdict) -> Vec<PairVerdict> {
        let mut pairs = Vec::new();
        for a in 0..speeds.len() {
            for b in a + 1..speeds.len() {
                let ratio = speeds[a] / speeds[b];
                pairs.push(pair(Metric::Throughput, (a, b), ratio, say(a, b, ratio)));
            }
        }
        pairs
    }

    fn say_of(
        count: usize,
        pairs: &[PairVerdict],
        metric: Metric,
        reference: Option<usize>,
    ) -> FirstPlace {
        let readings: Vec<Reading> = pairs.iter().map(Reading::new).collect();
        first_place(&Order::new(metric, &readings, 0..count), &contenders(count), reference)
    }

    fn said(count: usize, pairs: &[PairVerdict]) -> String {
        say_of(count, pairs, Metric::Throughput, None).text
    }

    #[test]
    fn one_pair_is_told_with_its_ratio() {
        let throughput = |ratio, verdict| pair(Metric::Throughput, (0, 1), ratio, verdict);
        let short = PairVerdict {
            short_of: Some(ShortOf { blocks: 3, of: 8 }),
            ..throughput(0.102, apart(0.102))
        };
        let wide = Verdict::AtLeast { ratio: 54.0, cause: BoundCause::WideInterval };
        let cases = [
            (
                throughput(1.32, apart(1.32)),
                "nginx is faster than h2o: 1.32x [1.25, 1.39] the requests/s.",
            ),
            (short, "h2o is faster than nginx: 9.80x [9.34, 10.32] the requests/s, 3 blocks of 8."),
            (
                throughput(216.0, wide),
                "nginx is faster than h2o: at least 54.0x the requests/s (measured: 216x [205, 227]).",
            ),
            (
                throughput(1.0, Verdict::NoDifference { margin: MARGIN }),
                "nginx and h2o show no difference of 2 % or more in requests/s (1.00x [0.95, 1.05]).",
            ),
            (
                throughput(0.99, open()),
                "h2o against nginx by requests/s: 1.01x [0.96, 1.06]; undecided: about 14 more blocks \
                 needed.",
            ),
            (
                throughput(1.02, withheld()),
                "No answer by requests/s: withheld, different_bodies on h2o; nginx over h2o measured \
                 1.02x [0.97, 1.07], which is not to be relied on.",
            ),
            (
                pair(Metric::ServerCpu, (1, 0), 2.5, apart(2.5)),
                "nginx needs less server CPU time per request than h2o: h2o needs 2.50x [2.38, 2.62] \
                 as much.",
            ),
            (
                pair(Metric::P99, (0, 1), 2.0, apart(2.0)),
                "h2o has a shorter p99 service time than nginx: nginx takes 2.00x [1.90, 2.10] as long.",
            ),
        ];
        for (pair, text) in cases {
            assert_eq!(say_of(2, std::slice::from_ref(&pair), pair.metric, None).text, text);
        }
    }

    #[test]
    fn one_that_is_ahead_of_all_others_is_named_with_its_least_lead() {
        let speeds = [2.0, 1.5, 1.2, 1.0, 0.9, 0.5];
        let pairs = all_pairs(&speeds, |_, _, ratio| apart(ratio));
        assert_eq!(
            said(6, &pairs),
            "nginx is fastest: at least 1.26x the requests/s of each of the other 5."
        );
        assert_eq!(
            said(3, &all_pairs(&speeds[..3], |_, _, ratio| apart(ratio))),
            "nginx is fastest: at least 1.26x the requests/s of each of the other 2."
        );
        let cpu = |a, b, ratio| pair(Metric::ServerCpu, (a, b), ratio, apart(ratio));
        let pairs = [cpu(0, 1, 0.5), cpu(0, 2, 0.4), cpu(1, 2, 0.8)];
        assert_eq!(
            say_of(3, &pairs, Metric::ServerCpu, None).text,
            "nginx needs the least server CPU time per request: each of the other 2 needs at least \
             1.90x as much."
        );
    }

    #[test]
    fn a_group_that_shares_first_place_is_named_and_what_is_open_in_it() {
        let speeds = [2.04, 2.0, 1.5, 1.4, 1.3, 1.2];
        let close = |verdict: Verdict| {
            move |a, b, ratio| if (a, b) == (0, 1) { verdict.clone() } else { apart(ratio) }
        };
        let mut pairs = all_pairs(&speeds, close(open()));
        assert_eq!(
            said(6, &pairs),
            "nginx and h2o lead by requests/s, undecided between them; both are ahead of caddy (at \
             least 1.26x) and of 3 more; nginx against h2o is undecided (1.02x [0.97, 1.07])."
        );
        pairs[0].short_of = Some(ShortOf { blocks: 3, of: 8 });
        assert!(
            said(6, &pairs)
                .ends_with("nginx against h2o is undecided (1.02x [0.97, 1.07], 3 blocks of 8).")
        );
        let pairs = all_pairs(&speeds[..3], close(Verdict::NoDifference { margin: MARGIN }));
        assert_eq!(
            said(3, &pairs),
            "nginx and h2o share first place by requests/s; both are ahead of caddy (at least 1.26x); \
             nginx and h2o show no difference of 2 % or more (1.02x [0.97, 1.07])."
        );
        let pairs = all_pairs(&speeds[..3], close(withheld()));
        assert!(
            said(3, &pairs).ends_with("; nginx against h2o is withheld."),
            "{}",
            said(3, &pairs)
        );
    }

    #[test]
    fn one_of_whom_nobody_is_ahead_but_who_is_not_ahead_of_all_leads() {
        let pairs = all_pairs(&[2.2, 1.9, 1.5, 1.0], |a, b, ratio| match (a, b) {
            (0, 2) => open(),
            _ => apart(ratio),
        });
        assert_eq!(
            said(4, &pairs),
            "nginx leads by requests/s: it is ahead of h2o (at least 1.10x) and of lighttpd (at least \
             2.09x), and nobody is ahead of it; nginx against caddy is undecided (1.47x [1.39, 1.54], p after \
             Holm not below 0.02)."
        );
    }

    #[test]
    fn where_nobody_is_proved_ahead_the_widest_gap_is_shown() {
        let speeds = [1.02, 1.01, 1.0];
        assert_eq!(
            said(3, &all_pairs(&speeds, |_, _, _| open())),
            "Nobody is proved ahead by requests/s: all 3 pairs are undecided; the widest gap is nginx over \
             caddy (1.02x [0.97, 1.07])."
        );
        let pairs = all_pairs(&speeds, |_, _, _| Verdict::NoDifference { margin: MARGIN });
        assert_eq!(
            said(3, &pairs),
            "No difference of 2 % or more in requests/s between any two of 3 contenders; the widest \
             gap is nginx over caddy (1.02x [0.97, 1.07])."
        );
        let pairs = all_pairs(&speeds, |a, b, _| match (a, b) {
            (0, 1) => Verdict::NoDifference { margin: MARGIN },
            _ => open(),
        });
        assert!(say_of(3, &pairs, Metric::Throughput, None).text.starts_with(
            "Nobody is proved ahead by requests/s: of 3 pairs, 2 are undecided and 1 shows no difference \
             of 2 % or more; "
        ));
        let pairs = all_pairs(&speeds, |_, _, _| withheld());
        let said = say_of(3, &pairs, Metric::Throughput, None);
        assert_eq!(said.text, "No answer by requests/s: all 3 verdicts are withheld.");
        assert!(!said.is_answer);
    }

    #[test]
    fn bounds_and_withheld_pairs_name_who_is_not_compared() {
        let bound = |ratio: f64| Verdict::AtLeast { ratio, cause: BoundCause::Ceiling };
        let pairs = all_pairs(&[2.0, 1.5, 1.0], |_, b, ratio| match b {
            2 => withheld(),
            _ => bound(ratio * 0.9),
        });
        assert_eq!(
            said(3, &pairs),
            "nginx is fastest: at least 1.20x the requests/s of h2o; not compared: caddy."
        );
        let pairs = all_pairs(&[2.0, 1.5, 1.4, 1.0], |_, b, ratio| match b {
            3 => withheld(),
            _ => apart(ratio),
        });
        assert_eq!(
            said(4, &pairs),
            "nginx is fastest: at least 1.26x the requests/s of each of the other 2 that were \
             compared; not compared: lighttpd."
        );
    }

    /// Of 36 pairs, 14 told apart and 22 undecided.
    #[test]
    fn nine_contenders_of_whom_most_pairs_are_open_have_a_first_group() {
        let speeds = [1.5, 1.45, 1.42, 1.4, 1.38, 1.2, 1.1, 1.05, 1.0];
        let pairs = all_pairs(&speeds, |a, b, ratio| match (a, b) {
            (0..=4, 7 | 8) | (0 | 1, 6) | (0, 5) | (6, 8) => apart(ratio),
            _ => open(),
        });
        let told = pairs.iter().filter(|pair| pair.verdict != open()).count();
        assert_eq!((told, pairs.len()), (14, 36));
        assert_eq!(
            said(9, &pairs),
            "5 of 9 contenders (nginx, h2o, caddy and 2 more) lead by requests/s, undecided between \
             them; all 5 are ahead of python (at least 1.24x) and of ruby (at least 1.31x); go and node are each \
             behind another one; all 10 pairs among them are undecided, the widest gap is nginx over apache \
             (1.09x [1.03, 1.14], p after Holm not below 0.02)."
        );
    }

    #[test]
    fn where_all_are_held_against_one_the_sides_are_named() {
        let mut pairs = all_pairs(&[1.0, 1.2, 0.8, 0.7, 1.01], |_, b, ratio| match b {
            4 => open(),
            _ => apart(ratio),
        });
        pairs.retain(|pair| pair.a == 0);
        assert_eq!(
            say_of(5, &pairs, Metric::Throughput, Some(0)).text,
            "Against nginx by requests/s: h2o (at least 1.14x) is ahead; caddy (at least 1.18x) and \
             lighttpd (at least 1.35x) are behind; apache against nginx is undecided (1.01x [0.96, 1.06])."
        );
    }

    /// A fixed sequence of small numbers (Lehmer's generator).
    fn next(state: &mut u64) -> u64 {
        *state = *state * 48_271 % 2_147_483_647;
        *state >> 8
    }

    /// For any set of verdicts, even contradictory ones: the contender that is called first is behind nobody, and its
    /// lead over all is at most the smallest of its leads.
    #[test]
    fn nobody_is_named_first_whom_a_verdict_puts_behind_and_no_lead_is_overstated() {
        let mut state = 20_26;
        for round in 0..3_000 {
            let count = 2 + (next(&mut state) % 7) as usize;
            let speeds: Vec<f64> =
                (0..count).map(|_| 1.0 + (next(&mut state) % 100) as f64 / 100.0).collect();
            let draws: Vec<u64> = (0..count * count).map(|_| next(&mut state)).collect();
            let pairs = all_pairs(&speeds, |a, b, ratio| match draws[a * count + b] % 7 {
                0 => open(),
                1 => Verdict::NoDifference { margin: MARGIN },
                2 => withheld(),
                3 => Verdict::AtLeast { ratio: ratio * 0.9, cause: BoundCause::Ceiling },
                4 => Verdict::AtMost { ratio: ratio * 1.1, cause: BoundCause::WideInterval },
                _ => apart(ratio),
            });
            let readings: Vec<Reading> = pairs.iter().map(Reading::new).collect();
            let order = Order::new(Metric::Throughput, &readings, 0..count);
            let text = said(count, &pairs);
            let ends =
                [" is fastest", " is faster than", " leads by", " lead by", " share first place"];
            let Some(first) = ends.iter().find_map(|end| Some(text.split_once(end)?.0)) else {
                continue;
            };
            let is_named =
                |index: &usize| first.split(&[' ', ',', '(', ')'][..]).any(|w| w == NAMES[*index]);
            let named: Vec<usize> = (0..count).filter(is_named).collect();
            assert!(!named.is_empty(), "{round}: {text}");
            for &one in &named {
                let ahead = (0..count).find(|&other| order.lead(other, one).is_some());
                assert_eq!(ahead, None, "{round}: {text}");
            }
            let claimed = text.split_once("is fastest: at least ").map(|(_, rest)| rest);
            let claimed = claimed.and_then(|rest| rest.split_once('x')?.0.parse::<f64>().ok());
            for &other in order.compared.iter().filter(|_| claimed.is_some()) {
                let lead = order.lead(named[0], other);
                let holds =
                    other == named[0] || lead.is_some_and(|lead| claimed.unwrap() <= lead + 0.005);
                assert!(holds, "{round}: {text} {lead:?}");
            }
        }
    }
}
